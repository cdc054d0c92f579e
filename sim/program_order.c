/* sim/program_order.c - is an order of passes one that a training step could follow? Orders may come from
 * outside, so the messages name rank, pass, stage and micro-batch. */
#include "sim/program_builder.h"

enum { DONE_FORWARD = 1, DONE_BACKWARD = 2, DONE_WEIGHT = 4 };

static const char *const PASS_NAMES[] = {
    [SIM_PASS_FORWARD] = "forward",
    [SIM_PASS_BACKWARD] = "backward",
    [SIM_PASS_BACKWARD_INPUT] = "input backward",
    [SIM_PASS_BACKWARD_WEIGHT] = "weight backward",
};

static const uint8_t MAKES[] = {
    [SIM_PASS_FORWARD] = DONE_FORWARD,
    [SIM_PASS_BACKWARD] = DONE_BACKWARD | DONE_WEIGHT,
    [SIM_PASS_BACKWARD_INPUT] = DONE_BACKWARD,
    [SIM_PASS_BACKWARD_WEIGHT] = DONE_WEIGHT,
};

static const uint8_t NEEDS[] = {
    [SIM_PASS_FORWARD] = 0,
    [SIM_PASS_BACKWARD] = DONE_FORWARD,
    [SIM_PASS_BACKWARD_INPUT] = DONE_FORWARD,
    [SIM_PASS_BACKWARD_WEIGHT] = DONE_FORWARD | DONE_BACKWARD,
};

static bool fail(const Builder *b, int rank, SimPass pass, int stage, int microbatch, const char *what,
                 GError **error)
{
    orr_fail(error, ORR_ERROR_INPUT, "schedule \"%s\": rank %d runs the %s of stage %d, micro-batch %d %s",
             b->plan->schedule->name, rank, PASS_NAMES[pass], stage, microbatch, what);
    return false;
}

/* The neighbour's result when it is made on the same rank; true when it is not, or is there. */
static bool neighbour_done(const Builder *b, const uint8_t *done, int rank, int stage, int neighbour,
                           int microbatch, uint8_t what)
{
    SimPlacement placement = b->plan->schedule->placement;
    if (neighbour < 0 || neighbour >= b->stages)
        return true;
    if (placement == SIM_PLACE_BIDIRECTIONAL && neighbour / b->ranks != stage / b->ranks)
        return true;
    return b->rank_of_stage[neighbour] != rank ||
           (done[(int64_t)neighbour * b->microbatches + microbatch] & what);
}

static bool check_pass(const Builder *b, uint8_t *done, int rank, const int *stage_of_chunk, SimPass pass,
                       int chunk, int microbatch, GError **error)
{
    if (chunk < 0 || chunk >= b->chunks || microbatch < 0 || microbatch >= b->microbatches) {
        orr_fail(error, ORR_ERROR_INPUT,
                 "schedule \"%s\": rank %d names chunk %d, micro-batch %d; there are %d chunks and %d "
                 "micro-batches",
                 b->plan->schedule->name, rank, chunk, microbatch, b->chunks, b->microbatches);
        return false;
    }
    const int stage = stage_of_chunk[chunk];
    uint8_t *mine = &done[(int64_t)stage * b->microbatches + microbatch];
    const uint8_t makes = MAKES[pass], needs = NEEDS[pass];
    if (*mine & makes)
        return fail(b, rank, pass, stage, microbatch, "twice; list it once", error);
    if ((*mine & needs) != needs)
        return fail(b, rank, pass, stage, microbatch,
                    "before the pass that it needs; a forward comes first, then its backward, whole or the "
                    "input's before the weights'",
                    error);
    if (pass == SIM_PASS_FORWARD &&
        !neighbour_done(b, done, rank, stage, stage - 1, microbatch, DONE_FORWARD))
        return fail(b, rank, pass, stage, microbatch,
                    "before that of the stage before it, on the same rank; turn them round", error);
    if ((pass == SIM_PASS_BACKWARD || pass == SIM_PASS_BACKWARD_INPUT) &&
        !neighbour_done(b, done, rank, stage, stage + 1, microbatch, DONE_BACKWARD))
        return fail(b, rank, pass, stage, microbatch,
                    "before that of the stage after it, on the same rank; turn them round", error);
    *mine |= makes;
    return true;
}

static bool check_rank(const Builder *b, uint8_t *done, int rank, GError **error)
{
    const SimOrder *order = &b->orders[rank];
    int *stages = ORR_ARENA_NEW(b->arena, int, b->chunks);
    for (int chunk = 0; chunk < b->chunks; chunk++)
        stages[chunk] = sim_stage_of(b->plan->schedule->placement, b->ranks, b->chunks, rank, chunk);
    for (int64_t i = 0; i < order->count; i++) {
        const SimPassOp *op = &order->ops[i];
        bool pair = op->pass == SIM_PASS_FORWARD_BACKWARD;
        SimPass first = pair ? SIM_PASS_FORWARD : (SimPass)op->pass;
        if (!check_pass(b, done, rank, stages, first, op->chunk, op->microbatch, error))
            return false;
        if (pair && !check_pass(b, done, rank, stages, SIM_PASS_BACKWARD, op->chunk2, op->microbatch2, error))
            return false;
    }
    return true;
}

/* The first pass of `expected` that (stage, microbatch) lacks, or has although the other copy should. */
static bool fail_incomplete(const Builder *b, int stage, int microbatch, uint8_t found, uint8_t expected,
                            GError **error)
{
    const uint8_t differs = found ^ expected;
    const SimPass pass = differs & DONE_FORWARD    ? SIM_PASS_FORWARD
                         : differs & DONE_BACKWARD ? SIM_PASS_BACKWARD
                                                   : SIM_PASS_BACKWARD_WEIGHT;
    int rank, chunk;
    sim_place_of(b->plan->schedule->placement, b->ranks, b->chunks, stage, &rank, &chunk);
    if (expected == 0)
        return fail(b, rank, pass, stage, microbatch, "which belongs to the other copy of the model", error);
    orr_fail(error, ORR_ERROR_INPUT,
             "schedule \"%s\": rank %d never runs the %s of stage %d, micro-batch %d; list it once",
             b->plan->schedule->name, rank, PASS_NAMES[pass], stage, microbatch);
    return false;
}

bool sim_orders_check(const Builder *b, GError **error)
{
    uint8_t *done = ORR_ARENA_NEW(b->arena, uint8_t, (int64_t)b->stages * b->microbatches);
    bool two_copies = b->plan->schedule->placement == SIM_PLACE_BIDIRECTIONAL;
    for (int rank = 0; rank < b->ranks; rank++) {
        if (!check_rank(b, done, rank, error))
            return false;
    }
    for (int stage = 0; stage < b->stages; stage++) {
        for (int k = 0; k < b->microbatches; k++) {
            bool other_copy = two_copies && (stage >= b->ranks) != (k >= b->microbatches / 2);
            uint8_t expected = other_copy ? 0 : DONE_FORWARD | DONE_BACKWARD | DONE_WEIGHT;
            uint8_t found = done[(int64_t)stage * b->microbatches + k];
            if (found != expected)
                return fail_incomplete(b, stage, k, found, expected, error);
        }
    }
    return true;
}
