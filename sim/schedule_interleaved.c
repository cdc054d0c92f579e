/* sim/schedule_interleaved.c - Megatron-LM's interleaved 1F1B, exactly, micro-batches not divisible by the
 * ranks included.
 *
 * Virtual micro-batches are listed group by group (G micro-batches, default p; the last group may be short),
 * chunk by chunk within a group. Forward step i runs entry i; backward step i runs the micro-batch of entry
 * i on chunk v - 1 - c_i. Rank r warms up with w = min(n, 2(p - 1 - r) + (v - 1) G), n = m v.
 *
 *   p | m: T = m(F + A) + (p - 1)(F + A)/v;  live chunks at most min(n, 2(p - 1 - r) + (v - 1) G + 1)
 * Source: [Narayanan2021], Megatron-LM schedules.py get_schedule_table     Tested: golden/test_schedules.c
 */
#include "sim/schedules.h"

static int group_of(const SimScheduleShape *shape)
{
    return shape->group > 0 ? shape->group : shape->ranks;
}

bool sim_schedule_interleaved_check(const SimScheduleShape *shape, GError **error)
{
    if (shape->chunks > 1 && group_of(shape) < shape->ranks) {
        g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT,
                    "the interleaved schedule needs at least as many micro-batches a group (%d) as pipeline "
                    "ranks (%d)",
                    group_of(shape), shape->ranks);
        return false;
    }
    return true;
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
    int64_t warmup = MIN(n, ahead + shape->extra_warmup);
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
