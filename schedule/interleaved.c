/* schedule/interleaved.c - Megatron-LM's interleaved 1F1B, exactly, micro-batches not divisible by the
 * ranks included.
 *
 * Virtual micro-batches are listed group by group (G micro-batches, default p; the last group may be short),
 * chunk by chunk within a group. Forward step i runs entry i; backward step i runs the micro-batch of entry
 * i on chunk v - 1 - c_i. Rank r warms up with w = min(n, 2(p - 1 - r) + (v - 1) G), n = m v.
 *
 *   p | m: T = m(F + A) + (p - 1)(F + A)/v;  live chunks at most min(n, 2(p - 1 - r) + (v - 1) G + 1)
 * With p not dividing m it is slower, and some short last groups lock it: the check replays those.
 * Source: [Narayanan2021], Megatron-LM schedules.py get_schedule_table     Tested: golden/test_schedules.c
 */
#include "schedule/schedules.h"

static int group_of(const SimScheduleShape *shape)
{
    return shape->group > 0 ? shape->group : shape->ranks;
}

/* Entry `i` of the list. */
static void entry_of(const SimScheduleShape *shape, int64_t i, int *ret_chunk, int *ret_microbatch)
{
    int64_t per_group = (int64_t)group_of(shape) * shape->chunks;
    int first = (int)(i / per_group) * group_of(shape);
    int size = MIN(group_of(shape), shape->microbatches - first);
    int within = (int)(i % per_group);
    *ret_chunk = within / size;
    *ret_microbatch = first + within % size;
}

static void add_step(const SimScheduleShape *shape, SimPass pass, int64_t i, SimOrder *order)
{
    int chunk, microbatch;
    entry_of(shape, i, &chunk, &microbatch);
    if (pass == SIM_PASS_BACKWARD)
        chunk = shape->chunks - 1 - chunk;
    sim_order_add(order, pass, chunk, microbatch);
}

void sim_schedule_interleaved(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order)
{
    int64_t n = (int64_t)shape->microbatches * shape->chunks;
    int64_t ahead = 2 * (int64_t)(shape->ranks - 1 - rank) + (int64_t)(shape->chunks - 1) * group_of(shape);
    if (shape->chunks == 1)
        ahead = shape->ranks - 1 - rank; /* no virtual stages: plain 1F1B */
    int64_t warmup = MIN(n, ahead);
    *ret_order = sim_order_new(arena, 2 * n);
    for (int64_t i = 0; i < warmup; i++)
        add_step(shape, SIM_PASS_FORWARD, i, ret_order);
    for (int64_t i = 0; i < n - warmup; i++) {
        add_step(shape, SIM_PASS_FORWARD, warmup + i, ret_order);
        add_step(shape, SIM_PASS_BACKWARD, i, ret_order);
    }
    for (int64_t i = n - warmup; i < n; i++)
        add_step(shape, SIM_PASS_BACKWARD, i, ret_order);
}

/* The pass of the stage next to `stage`, from which `op` gets its input, is done. */
static bool may_run(const SimScheduleShape *shape, const bool *forward, const bool *backward,
                    const SimPassOp *op, int stage)
{
    int64_t m = shape->microbatches, k = op->microbatch;
    if (op->pass == SIM_PASS_FORWARD)
        return stage == 0 || forward[(stage - 1) * m + k];
    bool last = stage == shape->ranks * shape->chunks - 1;
    return forward[stage * m + k] && (last || backward[(stage + 1) * m + k]);
}

/* Replays the orders without time: does every rank come to its end? */
static bool runs_to_its_end(const SimScheduleShape *shape)
{
    OrrArena *arena = orr_arena_new();
    int64_t m = shape->microbatches, passes = m * shape->ranks * shape->chunks;
    bool *forward = ORR_ARENA_NEW(arena, bool, passes), *backward = ORR_ARENA_NEW(arena, bool, passes);
    SimOrder *orders = ORR_ARENA_NEW(arena, SimOrder, shape->ranks);
    int64_t *next = ORR_ARENA_NEW(arena, int64_t, shape->ranks), done = 0;
    for (int r = 0; r < shape->ranks; r++)
        sim_schedule_interleaved(shape, r, arena, &orders[r]);
    for (int64_t before = -1; before != done;) {
        before = done;
        for (int r = 0; r < shape->ranks; r++) {
            for (; next[r] < orders[r].count; next[r]++, done++) {
                const SimPassOp *op = &orders[r].ops[next[r]];
                int stage = op->chunk * shape->ranks + r;
                if (!may_run(shape, forward, backward, op, stage))
                    break;
                (op->pass == SIM_PASS_FORWARD ? forward : backward)[stage * m + op->microbatch] = true;
            }
        }
    }
    orr_arena_free(arena);
    return done == 2 * passes;
}

bool sim_schedule_interleaved_check(const SimScheduleShape *shape, GError **error)
{
    int group = group_of(shape), rest = shape->microbatches % group;
    if (shape->chunks > 1 && group < shape->ranks) {
        g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT,
                    "the interleaved schedule needs at least as many micro-batches a group (%d) as pipeline "
                    "ranks (%d)",
                    group, shape->ranks);
        return false;
    }
    /* Only a last group shorter than the pipeline, after a whole one, can lock it. */
    if (rest > 0 && rest < shape->ranks && shape->microbatches > group && !runs_to_its_end(shape)) {
        g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT,
                    "the interleaved schedule locks up with %d micro-batches in groups of %d on %d pipeline "
                    "ranks; a last group of %d must not be shorter than the ranks; %d micro-batches would "
                    "work",
                    shape->microbatches, group, shape->ranks, rest, shape->microbatches - rest + group);
        return false;
    }
    return true;
}
