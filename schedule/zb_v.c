/* schedule/zb_v.c - ZB-V: the model goes down the ranks and back up, so that every rank holds the
 * activations of p micro-batches.
 *
 * Chunk 0 is stage r, chunk 1 stage 2p - 1 - r. The recipe is written for at least 2p - 1 micro-batches; with
 * fewer, those that do not exist are left out.
 *
 *   F <= B, W <= F, m >= 2p - 1: span = m(F + B + W) + (p - 1) max(B - W, (B - F)/2, 0)  (times of both chunks)
 * Source: [Qi2024]     Tested: golden/test_schedules.c
 */
#include "schedule/schedules.h"

typedef struct {
    SimOrder *order;
    int microbatches;
    int next[2][SIM_PASS_BACKWARD_WEIGHT + 1]; /* micro-batch of the next op of a chunk and pass */
} Writer;

static void add(Writer *w, SimPass pass, int chunk)
{
    int microbatch = w->next[chunk][pass]++;
    if (microbatch < w->microbatches)
        sim_order_add(w->order, pass, chunk, microbatch);
}

static void add_backward(Writer *w, int chunk)
{
    add(w, SIM_PASS_BACKWARD_INPUT, chunk);
    add(w, SIM_PASS_BACKWARD_WEIGHT, chunk);
}

static void fill_phases(Writer *w, int p, int r, int n)
{
    int *forward_a = &w->next[0][SIM_PASS_FORWARD], *forward_b = &w->next[1][SIM_PASS_FORWARD];
    for (int i = 0; i < 2 * (p - r) - 1; i++)
        add(w, SIM_PASS_FORWARD, 0);
    for (int i = 0; i < r; i++) {
        add(w, SIM_PASS_FORWARD, 1);
        add(w, SIM_PASS_FORWARD, 0);
    }
    for (int i = 0; i < p - r; i++) {
        add(w, SIM_PASS_FORWARD, 1);
        add_backward(w, 1);
    }
    while (*forward_b < *forward_a || *forward_a < n) {
        if (*forward_a < n)
            add(w, SIM_PASS_FORWARD, 0);
        add_backward(w, 0);
        add(w, SIM_PASS_FORWARD, 1);
        add_backward(w, 1);
    }
    for (int i = 0; i < r; i++) {
        add(w, SIM_PASS_BACKWARD_INPUT, 0);
        add(w, SIM_PASS_BACKWARD_INPUT, 1);
    }
    for (int i = 0; i < p - r; i++)
        add_backward(w, 0);
}

void sim_schedule_zb_v(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order)
{
    int m = shape->microbatches;
    *ret_order = sim_order_new(arena, 6 * (int64_t)m);
    Writer w = {.order = ret_order, .microbatches = m};
    fill_phases(&w, shape->ranks, rank, MAX(2 * shape->ranks - 1, m));
    for (int chunk = 1; chunk >= 0; chunk--) {
        while (w.next[chunk][SIM_PASS_BACKWARD_WEIGHT] < m)
            add(&w, SIM_PASS_BACKWARD_WEIGHT, chunk);
    }
}
