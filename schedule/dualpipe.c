/* schedule/dualpipe.c - DualPipe and DualPipeV: forward and backward of different micro-batches run as
 * one overlapped pair.
 *
 * DualPipe feeds micro-batches from both ends through two copies of the model; direction 0 of a rank is the
 * one whose first stages are nearer. DualPipeV is the half of it: one copy in V shape, direction = chunk.
 * With H the ranks from the end to the middle (p/2, or p for V) and h the rank counted from its end:
 *
 *   1) 2(H-h-1) x F0   2) (h+1) x (F0 F1)   3) (H-h-1) x (B1 W F1)   4) (m'-2H+h+1) x ((F0&A1) (F1&A0))
 *   5) (H-h-1) x (A1 (F1&A0))   6) (h+1) x (X1 X0)   7) (H-h-1) x (W B0)   8) (h+1) x W
 *
 * m' = micro-batches a direction; X is a whole backward in the first half, an input backward after it; on
 * the middle ranks the first pair of 4) is not overlapped. W takes the oldest pending weight gradient.
 * Idle time with B = W = F: (PP/2 - 1)(F&A + A - 3W), PP = 2H; an upper bound otherwise.
 * Source: [DualPipe], [DeepSeekV3]     Tested: golden/test_schedules.c
 */
#include "schedule/schedules.h"

typedef struct {
    SimOrder *order;
    int chunk[2];   /* of each direction */
    int forward[2]; /* next micro-batch of each direction */
    int backward[2];
    SimPassOp *pending; /* weight backwards, oldest first */
    int64_t pending_first, pending_count;
} Writer;

static void add_forward(Writer *w, int direction)
{
    sim_order_add(w->order, SIM_PASS_FORWARD, w->chunk[direction], w->forward[direction]++);
}

static void add_backward(Writer *w, int direction)
{
    sim_order_add(w->order, SIM_PASS_BACKWARD, w->chunk[direction], w->backward[direction]++);
}

static void add_backward_input(Writer *w, int direction)
{
    sim_order_add(w->order, SIM_PASS_BACKWARD_INPUT, w->chunk[direction], w->backward[direction]);
    w->pending[w->pending_count++] =
        (SimPassOp){.chunk = (int16_t)w->chunk[direction], .microbatch = w->backward[direction]};
    w->backward[direction]++;
}

static void add_weight(Writer *w)
{
    g_assert(w->pending_first < w->pending_count);
    const SimPassOp *op = &w->pending[w->pending_first++];
    sim_order_add(w->order, SIM_PASS_BACKWARD_WEIGHT, op->chunk, op->microbatch);
}

static void add_pair(Writer *w, int forward, int backward)
{
    sim_order_add_pair(w->order, w->chunk[forward], w->forward[forward]++, w->chunk[backward],
                       w->backward[backward]++);
}

static void fill_first_half(Writer *w, int half, int h, int microbatches)
{
    for (int i = 0; i < 2 * (half - h - 1); i++)
        add_forward(w, 0);
    for (int i = 0; i < h + 1; i++) {
        add_forward(w, 0);
        add_forward(w, 1);
    }
    for (int i = 0; i < half - h - 1; i++) {
        add_backward_input(w, 1);
        add_weight(w);
        add_forward(w, 1);
    }
    for (int i = 0; i < microbatches - 2 * half + h + 1; i++) {
        if (i == 0 && h == half - 1) {
            add_forward(w, 0);
            add_backward(w, 1);
        } else {
            add_pair(w, 0, 1);
        }
        add_pair(w, 1, 0);
    }
}

static void fill_second_half(Writer *w, int half, int h)
{
    for (int i = 0; i < half - h - 1; i++) {
        add_backward(w, 1);
        add_pair(w, 1, 0);
    }
    for (int i = 0; i < h + 1; i++) {
        int middle = (h + 1) / 2;
        bool split_1 = i > middle || (i == middle && h % 2 == 1);
        bool split_0 = i >= middle;
        (split_1 ? add_backward_input : add_backward)(w, 1);
        (split_0 ? add_backward_input : add_backward)(w, 0);
    }
    for (int i = 0; i < half - h - 1; i++) {
        add_weight(w);
        add_backward_input(w, 0);
    }
    for (int i = 0; i < h + 1; i++)
        add_weight(w);
}

static void fill(Writer *w, int half, int h, int microbatches, OrrArena *arena)
{
    w->pending = ORR_ARENA_NEW(arena, SimPassOp, 2 * (int64_t)microbatches);
    fill_first_half(w, half, h, microbatches);
    fill_second_half(w, half, h);
    g_assert(w->pending_first == w->pending_count);
}

bool sim_schedule_dualpipe_check(const SimScheduleShape *shape, GError **error)
{
    if (shape->ranks % 2 != 0 || shape->microbatches % 2 != 0 || shape->microbatches < 2 * shape->ranks) {
        g_set_error(
            error, ORR_ERROR, ORR_ERROR_INPUT,
            "dualpipe needs an even number of pipeline ranks (%d) and an even number of micro-batches "
            "(%d), at least twice the ranks (%d)",
            shape->ranks, shape->microbatches, 2 * shape->ranks);
        return false;
    }
    return true;
}

void sim_schedule_dualpipe(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order)
{
    int p = shape->ranks, each = shape->microbatches / 2;
    int near = rank < p / 2 ? 0 : 1;
    *ret_order = sim_order_new(arena, 3 * (int64_t)shape->microbatches);
    Writer w = {.order = ret_order, .chunk = {near, 1 - near}};
    for (int direction = 0; direction < 2; direction++)
        w.forward[direction] = w.backward[direction] = w.chunk[direction] * each;
    fill(&w, p / 2, MIN(rank, p - 1 - rank), each, arena);
}

bool sim_schedule_dualpipev_check(const SimScheduleShape *shape, GError **error)
{
    if (shape->microbatches < 2 * shape->ranks) {
        g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT,
                    "dualpipev needs at least twice as many micro-batches (%d) as pipeline ranks (%d)",
                    shape->microbatches, shape->ranks);
        return false;
    }
    return true;
}

void sim_schedule_dualpipev(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order)
{
    *ret_order = sim_order_new(arena, 6 * (int64_t)shape->microbatches);
    Writer w = {.order = ret_order, .chunk = {0, 1}};
    fill(&w, shape->ranks, rank, shape->microbatches, arena);
}
