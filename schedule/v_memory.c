/* schedule/v_memory.c - V-Half and V-Min: V-shaped pipelines with about half and a third of the activations
 * of 1F1B, for part of its bubble.
 *
 * Each rank repeats a building block of six unit slots (forward, input and weight gradient of both chunks);
 * the block's offsets decide how long an activation lives. Weight gradients fill the slots left over, the
 * oldest first. The ramps at both ends are then tightened: while the pattern is not yet, or no longer, in its
 * steady part, a rank runs the first op of its list that is ready in unit time, weight gradients last, as
 * long as no rank's peak rises above that of the pattern.
 *
 *   V-Half, rank i: Fa 2i, Fb 3p-i-2, Bb 3p+d+2i-1, Ba 6p+d-i-2;   d = 3 if 2 | p, else 0
 *   V-Min,  rank i: Fa i,  Fb 2p-i-1, Bb 2p+d+i,    Ba 4p+d-i-1;   d = 2 if 3 | p, else 0
 *
 * With F = B = W the bubble is at most 1/2 and 2/3 of that of 1F1B; with unequal times V-Min's grows with the
 * micro-batches. Source: [Qi2024V]     Tested: golden/test_schedules.c
 */
#include "schedule/schedules.h"

#include <stdlib.h>

enum { FORWARD_A, FORWARD_B, INPUT_B, INPUT_A, WEIGHT_B, WEIGHT_A, KINDS };
enum { PATTERN = INPUT_A + 1, PERIOD = 6, WINDOW = 64 };

typedef void (*Offsets)(int p, int rank, int64_t *ret_slots);

static void v_half(int p, int rank, int64_t *ret_slots)
{
    int delay = p % 2 == 0 ? 3 : 0;
    ret_slots[FORWARD_A] = 2 * rank;
    ret_slots[FORWARD_B] = 3 * p - rank - 2;
    ret_slots[INPUT_B] = 3 * p + delay + 2 * rank - 1;
    ret_slots[INPUT_A] = 6 * p + delay - rank - 2;
}

static void v_min(int p, int rank, int64_t *ret_slots)
{
    int delay = p % 3 == 0 ? 2 : 0;
    ret_slots[FORWARD_A] = rank;
    ret_slots[FORWARD_B] = 2 * p - rank - 1;
    ret_slots[INPUT_B] = 2 * p + delay + rank;
    ret_slots[INPUT_A] = 4 * p + delay - rank - 1;
}

typedef struct {
    int64_t slot; /* in the pattern */
    int32_t kind, microbatch;
    bool taken;
} Entry;

typedef struct {
    Entry *entries; /* in the order of the pattern */
    int64_t count, head;
    int64_t *done_slot[KINDS]; /* [micro-batch] end; 0: not yet */
    int live;
} Rank;

typedef struct {
    const SimScheduleShape *shape;
    Rank *ranks;
    int64_t steady_from, steady_until; /* slots of the pattern */
    int peak;
} Board;

static int change_of_live(int kind)
{
    return kind <= FORWARD_B ? 1 : kind >= WEIGHT_B ? -1 : 0;
}

static int compare_entries(const void *a, const void *b)
{
    const Entry *x = a, *y = b;
    return (x->slot > y->slot) - (x->slot < y->slot);
}

/* The pattern of one rank with its weight gradients; gives its peak. */
static int lay_out(const SimScheduleShape *shape, const int64_t *slots, OrrArena *arena, Rank *rank)
{
    int m = shape->microbatches;
    int64_t count = 0, placed = 0, slot = 0, weights = 0;
    Entry *pattern = ORR_ARENA_NEW(arena, Entry, PATTERN * (int64_t)m);
    Entry *waiting = ORR_ARENA_NEW(arena, Entry, 2 * (int64_t)m);
    rank->entries = ORR_ARENA_NEW(arena, Entry, KINDS * (int64_t)m);
    for (int kind = 0; kind < PATTERN; kind++) {
        for (int k = 0; k < m; k++)
            pattern[count++] =
                (Entry){.slot = slots[kind] + PERIOD * (int64_t)k, .kind = kind, .microbatch = k};
    }
    qsort(pattern, (size_t)count, sizeof *pattern, compare_entries);
    for (int64_t i = 0; i <= count; i++) {
        for (; placed < weights && (i == count || slot < pattern[i].slot); slot++) {
            rank->entries[rank->count] = waiting[placed++];
            rank->entries[rank->count++].slot = slot;
        }
        if (i == count)
            break;
        rank->entries[rank->count++] = pattern[i];
        slot = pattern[i].slot + 1;
        if (pattern[i].kind >= INPUT_B)
            waiting[weights++] =
                (Entry){.kind = pattern[i].kind + WEIGHT_B - INPUT_B, .microbatch = pattern[i].microbatch};
    }
    int live = 0, peak = 0;
    for (int64_t i = 0; i < rank->count; i++) {
        live += change_of_live(rank->entries[i].kind);
        peak = MAX(peak, live);
    }
    for (int kind = 0; kind < KINDS; kind++)
        rank->done_slot[kind] = ORR_ARENA_NEW(arena, int64_t, m);
    return peak;
}

static bool is_done(const Board *board, int rank, int kind, int microbatch, int64_t now)
{
    if (rank < 0 || rank >= board->shape->ranks)
        return true;
    int64_t done_slot = board->ranks[rank].done_slot[kind][microbatch];
    return done_slot > 0 && done_slot <= now;
}

/* Chunk a goes down the ranks, chunk b back up; gradients the other way. */
static bool is_ready(const Board *board, int rank, const Entry *entry, int64_t now)
{
    if (entry->kind >= WEIGHT_B)
        return is_done(board, rank, entry->kind - (WEIGHT_B - INPUT_B), entry->microbatch, now);
    bool down = entry->kind == FORWARD_A || entry->kind == INPUT_B;
    return is_done(board, down ? rank - 1 : rank + 1, entry->kind, entry->microbatch, now) &&
           (entry->kind == FORWARD_A || is_done(board, rank, entry->kind - 1, entry->microbatch, now));
}

/* The entry that the rank runs now; NULL: none. */
static Entry *choose(const Board *board, int r, int64_t now)
{
    const Rank *rank = &board->ranks[r];
    Entry *weight = NULL;
    int live = rank->live, highest = rank->live;
    for (int64_t i = rank->head, seen = 0; i < rank->count && seen < WINDOW; i++) {
        Entry *entry = &rank->entries[i];
        if (entry->taken)
            continue;
        bool steady = entry->slot >= board->steady_from && entry->slot <= board->steady_until;
        if (steady && seen > 0)
            break;
        seen++;
        if (is_ready(board, r, entry, now) && (entry->kind > FORWARD_B || highest < board->peak)) {
            if (entry->kind < WEIGHT_B || steady)
                return entry;
            weight = weight == NULL ? entry : weight;
        }
        if (steady)
            break;
        live += change_of_live(entry->kind);
        highest = MAX(highest, live);
    }
    return weight;
}

static void take(Rank *rank, Entry *entry, int64_t now, SimOrder *order)
{
    static const SimPass PASSES[KINDS] = {SIM_PASS_FORWARD,         SIM_PASS_FORWARD,
                                          SIM_PASS_BACKWARD_INPUT,  SIM_PASS_BACKWARD_INPUT,
                                          SIM_PASS_BACKWARD_WEIGHT, SIM_PASS_BACKWARD_WEIGHT};
    bool chunk_a = entry->kind == FORWARD_A || entry->kind == INPUT_A || entry->kind == WEIGHT_A;
    entry->taken = true;
    rank->live += change_of_live(entry->kind);
    rank->done_slot[entry->kind][entry->microbatch] = now + 1;
    while (rank->head < rank->count && rank->entries[rank->head].taken)
        rank->head++;
    if (order != NULL)
        sim_order_add(order, PASSES[entry->kind], chunk_a ? 0 : 1, entry->microbatch);
}

/* The orders of ranks `from` to `to`, into ret_orders [to - from + 1]. */
static void generate(const SimScheduleShape *shape, int from, int to, Offsets offsets, OrrArena *arena,
                     SimOrder *ret_orders)
{
    OrrArena *scratch = orr_arena_new();
    Board board = {.shape = shape, .ranks = ORR_ARENA_NEW(scratch, Rank, shape->ranks)};
    int64_t slots[PATTERN], left = 0;
    for (int r = shape->ranks - 1; r >= 0; r--) {
        offsets(shape->ranks, r, slots);
        int peak = lay_out(shape, slots, scratch, &board.ranks[r]);
        board.peak = MAX(board.peak, peak);
        left += board.ranks[r].count;
    }
    board.steady_from = slots[INPUT_A];
    board.steady_until = slots[FORWARD_A] + PERIOD * (int64_t)(shape->microbatches - 1);
    for (int r = from; r <= to; r++)
        ret_orders[r - from] = sim_order_new(arena, KINDS * (int64_t)shape->microbatches);
    for (int64_t now = 0; left > 0; now++) {
        for (int r = 0; r < shape->ranks; r++) {
            Entry *entry = choose(&board, r, now);
            if (entry == NULL)
                continue;
            take(&board.ranks[r], entry, now, r >= from && r <= to ? &ret_orders[r - from] : NULL);
            left--;
        }
    }
    orr_arena_free(scratch);
}

void sim_schedule_v_half(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order)
{
    generate(shape, rank, rank, v_half, arena, ret_order);
}

void sim_schedule_v_half_ranks(const SimScheduleShape *shape, OrrArena *arena, SimOrder *ret_orders)
{
    generate(shape, 0, shape->ranks - 1, v_half, arena, ret_orders);
}

void sim_schedule_v_min(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order)
{
    generate(shape, rank, rank, v_min, arena, ret_order);
}

void sim_schedule_v_min_ranks(const SimScheduleShape *shape, OrrArena *arena, SimOrder *ret_orders)
{
    generate(shape, 0, shape->ranks - 1, v_min, arena, ret_orders);
}
