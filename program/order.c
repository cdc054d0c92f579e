/* program/order.c - is an order of passes one that a training step could follow? Orders may come from
 * outside, so the messages name rank, pass, stage and micro-batch. */
#include "program/builder.h"

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

/* A stage of the rank: what of it is done, [microbatches], and of its neighbours where these are on the same rank. */
typedef struct {
    int stage;
    uint8_t *done;
    const uint8_t *before, *after; /* NULL: on another rank, or none */
} Checked;

/* NULL where the neighbour is of another rank or copy of the model. */
static const uint8_t *done_beside(const Builder *b, const uint8_t *done, int rank, int stage, int neighbour)
{
    const bool two_copies = b->plan->schedule->placement == SIM_PLACE_BIDIRECTIONAL;
    if (neighbour < 0 || neighbour >= b->stages || b->rank_of_stage[neighbour] != rank ||
        (two_copies && neighbour / b->ranks != stage / b->ranks))
        return NULL;
    return &done[(int64_t)b->chunk_of_stage[neighbour] * b->microbatches];
}

/* Takes the pass down where it fits behind what is done. */
static inline bool take_pass(const Checked *chunks, unsigned chunk_count, unsigned microbatches, SimPass pass,
                             int chunk, int microbatch)
{
    if ((unsigned)chunk >= chunk_count || (unsigned)microbatch >= microbatches)
        return false;
    const Checked *at = &chunks[chunk];
    const uint8_t makes = MAKES[pass], needs = NEEDS[pass], found = at->done[microbatch];
    if ((found & (makes | needs)) != needs ||
        ((makes & DONE_FORWARD) && at->before != NULL && !(at->before[microbatch] & DONE_FORWARD)) ||
        ((makes & DONE_BACKWARD) && at->after != NULL && !(at->after[microbatch] & DONE_BACKWARD)))
        return false;
    at->done[microbatch] = found | makes;
    return true;
}

/* Why it does not. */
static bool fail_pass(const Builder *b, const Checked *chunks, int rank, SimPass pass, int chunk,
                      int microbatch, GError **error)
{
    if (chunk < 0 || chunk >= b->chunks || microbatch < 0 || microbatch >= b->microbatches)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "schedule \"%s\": rank %d names chunk %d, micro-batch %d; there are %d chunks and %d "
                        "micro-batches",
                        b->plan->schedule->name, rank, chunk, microbatch, b->chunks, b->microbatches);
    const Checked *at = &chunks[chunk];
    const uint8_t found = at->done[microbatch];
    if (found & MAKES[pass])
        return fail(b, rank, pass, at->stage, microbatch, "twice; list it once", error);
    if ((found & NEEDS[pass]) != NEEDS[pass])
        return fail(b, rank, pass, at->stage, microbatch,
                    "before the pass that it needs; a forward comes first, then its backward, whole or the "
                    "input's before the weights'",
                    error);
    return fail(b, rank, pass, at->stage, microbatch,
                pass == SIM_PASS_FORWARD
                    ? "before that of the stage before it, on the same rank; turn them round"
                    : "before that of the stage after it, on the same rank; turn them round",
                error);
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

/* Every pass of the stage is there. */
static bool check_complete(const Builder *b, const uint8_t *done, int stage, GError **error)
{
    const bool two_copies = b->plan->schedule->placement == SIM_PLACE_BIDIRECTIONAL;
    for (int k = 0; k < b->microbatches; k++) {
        const bool other_copy = two_copies && (stage >= b->ranks) != (k >= b->microbatches / 2);
        const uint8_t expected = other_copy ? 0 : DONE_FORWARD | DONE_BACKWARD | DONE_WEIGHT;
        if (done[k] != expected)
            return fail_incomplete(b, stage, k, done[k], expected, error);
    }
    return true;
}

bool sim_order_check(const Builder *b, int rank, const SimOrder *order, OrrArena *scratch, GError **error)
{
    uint8_t *done = ORR_ARENA_NEW(scratch, uint8_t, (int64_t)b->chunks * b->microbatches);
    Checked *chunks = ORR_ARENA_NEW(scratch, Checked, b->chunks);
    for (int c = 0; c < b->chunks; c++) {
        const int stage = sim_stage_of(b->plan->schedule->placement, b->ranks, b->chunks, rank, c);
        chunks[c] = (Checked){.stage = stage,
                              .done = &done[(int64_t)c * b->microbatches],
                              .before = done_beside(b, done, rank, stage, stage - 1),
                              .after = done_beside(b, done, rank, stage, stage + 1)};
    }
    const unsigned count = (unsigned)b->chunks, microbatches = (unsigned)b->microbatches;
    for (int64_t i = 0; i < order->count; i++) {
        const SimPassOp *op = &order->ops[i];
        const bool pair = op->pass == SIM_PASS_FORWARD_BACKWARD;
        const SimPass first = pair ? SIM_PASS_FORWARD : (SimPass)op->pass;
        if (!take_pass(chunks, count, microbatches, first, op->chunk, op->microbatch))
            return fail_pass(b, chunks, rank, first, op->chunk, op->microbatch, error);
        if (pair && !take_pass(chunks, count, microbatches, SIM_PASS_BACKWARD, op->chunk2, op->microbatch2))
            return fail_pass(b, chunks, rank, SIM_PASS_BACKWARD, op->chunk2, op->microbatch2, error);
    }
    for (int c = 0; c < b->chunks; c++) {
        if (!check_complete(b, chunks[c].done, chunks[c].stage, error))
            return false;
    }
    return true;
}
