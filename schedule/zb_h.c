/* schedule/zb_h.c - zero-bubble pipelines ZB-H1 and ZB-H2: weight gradients fill the waits.
 *
 * Rank r, h = 1 or 2: w = min(m, h(p - 1 - r)) forwards; then until every input backward is done: a forward
 * if any is left, an input backward, and a weight backward once more than h r of them are pending; then
 * the weight backwards that remain.
 *
 *   ZB-H1, m >= p:      T = m(F + B + W) + (p - 1) max(F + B - W, B, F);  live micro-batches p on every rank
 *   ZB-H2, m >= 2p - 1: span = m(F + B + W) + (p - 1) max(F + B - 2W, B - F, 0);  live 2p - 1
 * Source: [Qi2024]     Tested: golden/test_schedules.c
 */
#include "schedule/schedules.h"

static void generate(const SimScheduleShape *shape, int rank, int h, OrrArena *arena, SimOrder *order)
{
    int m = shape->microbatches;
    int forwards = MIN(m, h * (shape->ranks - 1 - rank));
    int weights = 0;
    *order = sim_order_new(arena, 3 * (int64_t)m);
    for (int k = 0; k < forwards; k++)
        sim_order_add(order, SIM_PASS_FORWARD, 0, k);
    for (int k = 0; k < m; k++) {
        if (forwards < m)
            sim_order_add(order, SIM_PASS_FORWARD, 0, forwards++);
        sim_order_add(order, SIM_PASS_BACKWARD_INPUT, 0, k);
        if (k + 1 - weights > h * rank)
            sim_order_add(order, SIM_PASS_BACKWARD_WEIGHT, 0, weights++);
    }
    while (weights < m)
        sim_order_add(order, SIM_PASS_BACKWARD_WEIGHT, 0, weights++);
}

void sim_schedule_zb_h1(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order)
{
    generate(shape, rank, 1, arena, ret_order);
}

void sim_schedule_zb_h2(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order)
{
    generate(shape, rank, 2, arena, ret_order);
}
