/* spec/checks.h - what the spec/check*.c files share. */
#ifndef ORR_SPEC_CHECKS_H
#define ORR_SPEC_CHECKS_H

#include "spec/load.h"

typedef struct Check {
    const Spec *spec;
    const char *where;
    GError **error;
} Check;

/* Chosen, not "auto". */
static inline bool spec_check_known(int degree)
{
    return degree > 0;
}

/* Sets "<where>: <message>" and returns false. */
bool spec_check_fail(const Check *check, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* `degree` divides `value`; else says so and which divisors there are. */
bool spec_check_divides(const Check *check, const char *key, int degree, const char *what, int value);
/* "1, 2, 4" */
char *spec_check_divisors(int64_t number);

/* spec/check_moe.c: experts of the model, expert parallelism, the router. */
bool spec_check_moe(const Check *check);
bool spec_check_expert(const Check *check);
bool spec_check_router(const Check *check);

/* ZeRO++, or a part of it. */
static inline bool spec_is_zero_plus(const SpecParallel *parallel)
{
    return parallel->quantized_weight_gather || parallel->secondary_weight_shard ||
           parallel->quantized_gradient_reduce;
}

/* spec/fields_adapter.c: training.task, training.adapter. */
bool spec_check_adapter(const Check *check);
bool spec_check_lengths(const Check *check);
/* What of ZeRO++ changes how trained weights alone are gathered, as a key; NULL: nothing. */
const char *spec_gathers_trained_alone(const SpecParallel *parallel);
/* A model of rewards has a head of one number, which shares no table. */
void spec_complete_task(Spec *spec);
bool spec_check_freeze(const Check *check);

/* spec/check_vision.c: model.vision, training.images. */
bool spec_check_vision(const Check *check);

/* spec/fields_batches.c: training.batch_schedule. */
bool spec_check_batches(const Check *check);

/* spec/check_tiles.c: parallel.weight_tiles, training.mlp_tiles. */
bool spec_check_tiles(const Check *check);

/* spec/check_workload.c: a loop over several models. */
bool spec_check_workload(const Check *check);

/* spec/check_groups.c: a cluster of several kinds of nodes. */
bool spec_check_groups(const Check *check);

/* spec/check_measured.c: seconds of passes from a trace. */
bool spec_check_measured(const Check *check);

/* spec/check_pipeline.c: optimizer's norm, orders, schedule, layout of layers, offload and search. */
bool spec_check_pipeline(const Check *check);

#endif
