/* spec/orders.h - op orders of a pipeline that a user wrote down instead of naming a schedule.
 *
 * One line a pipeline rank, ops in the order in which the rank runs them, between commas or blanks:
 *
 *   0F3        forward of model stage 0, micro-batch 3
 *   0B3        its whole backward
 *   0I3  0W3   ... or the gradients of its input and of its weights apart
 *   (4F1;0B0)OVERLAP_F_B   a forward and a whole backward of the same rank, overlapped
 *
 * These are the words of PyTorch's compute-only schedule files (torchtitan: pipeline_parallel_schedule_csv), so a
 * ".csv" is such a file as it stands; its empty cells mean nothing here. A ".json" holds
 * { "schema": 1, "name", "source", "orders": [ a line, ... ] }. Ranks, stages and micro-batches are what the ops
 * name. Whether a step can follow the orders is asked in program/order.c and, for circles, by the engine.
 */
#ifndef ORR_SPEC_ORDERS_H
#define ORR_SPEC_ORDERS_H

#include "base/arena.h"
#include "base/json.h"
#include "spec/spec.h"

typedef enum { SPEC_OP_FORWARD, SPEC_OP_BACKWARD, SPEC_OP_INPUT, SPEC_OP_WEIGHT, SPEC_OP_PAIR } SpecOp;

typedef struct SpecOrderOp {
    SpecOp op;
    int stage, microbatch;
    int stage2, microbatch2; /* SPEC_OP_PAIR: of the backward */
} SpecOrderOp;

typedef struct SpecOrderRow {
    SpecOrderOp *ops;
    int64_t count;
} SpecOrderRow;

typedef struct SpecOrderTable {
    SpecOrders orders;  /* `text` is the caller's, not interned */
    SpecOrderRow *rows; /* [orders.ranks] */
} SpecOrderTable;

/* Reads lines of ops; everything lives in `arena`. Fails, naming `where`, rank and op, on what is no op and on stages
 * that lie on the ranks in none of the ways of SimPlacement. */
bool spec_orders_parse(const char *text, const char *where, OrrArena *arena, SpecOrderTable *ret_table,
                       GError **error);

/* A text that means a file of orders and no schedule's name. */
bool spec_is_orders_path(const char *text);

/* A file as the object {"file": name, "orders": [line, ...]} that a resolved scenario holds. `path`: where it lies;
 * `name`: what the scenario calls it. */
OrrJsonDoc *spec_orders_read_file(const char *path, const char *name, GError **error);

/* Reads that object: name and orders of `parallel`, its text interned and held by `texts` (spec/texts.h). */
bool spec_orders_take(const OrrJson *object, GPtrArray *texts, SpecParallel *parallel, GError **error);

#endif
