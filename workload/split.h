/* workload/split.h - how many nodes train and how many generate: every split of a machine, with proof.
 *
 * No split is faster than
 *   max(g, t) where generation runs ahead of training, g + t where it does not,    t = F / (GPUs x peak)
 * with g its generation and F the FLOPs of products in training and forwards. Splits are asked in the order of this bound until
 * the next bound is above what has been found.
 */
#ifndef ORR_WORKLOAD_SPLIT_H
#define ORR_WORKLOAD_SPLIT_H

#include "base/units.h"
#include "workload/workload.h"

enum { SPLIT_MOST_ROWS = 20 };

typedef struct SplitRow {
    int nodes, apart, tensor; /* apart 0: all GPUs do both in turn */
    SpecRanks train
        [SPEC_MOST_ROLES]; /* of each role that forwards or trains on the scenario's nodes; 0: of others */
    int degree;            /* row of the tensor degrees */
    int train_gpus, rollout_gpus; /* the same ones where they are colocated */
    int64_t step_ps, bound_ps;
    double tokens_per_s, tokens_per_s_per_gpu;
    const char *bound_by;
} SplitRow;

typedef struct Splits {
    const Spec *spec; /* borrowed */
    SplitRow row[SPLIT_MOST_ROWS];
    int row_count;   /* the fastest that fit, rising */
    int nodes, gpus; /* of the whole machine */
    int space;       /* splits, each in all layouts */
    int layouts;     /* of each role that has the scenario's */
    int asked;       /* of them, in full and with an answer */
    int refused;     /* layouts that do not divide, or memory that does not hold it */
    int pruned;      /* bound above what was found */
    char why[512];   /* the first of them was refused; "": its models do not fit in memory, or none was */
} Splits;

/* The scenario's nodes and those of the role that generates, dealt anew; that role's tensor degree too, in powers of two
 * within a node, and tensor, pipeline and context ranks of each role that has the scenario's layout: its own or powers of two.
 * A row is a split with its best layouts. `top` rows are proved, at most SPLIT_MOST_ROWS. */
bool splits_search(const Spec *spec, const SpecSource *source, int top, Splits *ret_splits, GError **error);

/* The same on a machine of so many nodes. */
bool splits_search_on(const Spec *spec, const SpecSource *source, int nodes, int top, Splits *ret_splits,
                      GError **error);
/* Nodes of the whole machine as the scenario has it. */
int splits_nodes(const Spec *spec);

#define SPLITS_LAYOUT_NOTE                                                                                   \
    "t, p, c: tensor, pipeline and context ranks (parallel) of the roles that train or score"

/* "t2 p1 c1" where all have it, else "actor t2 p1 c1, critic t1 p1 c1"; the caller frees it. */
char *splits_layout(const Spec *spec, const SplitRow *row);
void splits_write_layout(const Spec *spec, const SplitRow *row, OrrJsonWriter *w);
void splits_write_json(const Splits *splits, const SpecSource *source, GString *out);
void splits_write_text(const Splits *splits, GString *out);
/* A split a row, for people or `plain`; the caller frees it. */
OrrTable *splits_table(const Splits *splits, bool plain);
void splits_write_csv(const Splits *splits, GString *out);

#endif
