/* schedule/zb_auto.c - automatic zero bubble: the shortest of many orders that keep within a memory limit, for the
 * times and bytes at hand.
 *
 * Every rank runs its forwards, input and weight gradients in the order of the micro-batches, so an order is a row of
 * passes. Candidates are ZB-H1 and ZB-H2, and what a greedy clock makes: it warms up with as many forwards as depth and
 * memory allow, then runs what is there, and puts weight gradients into waits and where memory is full. What the
 * heuristic of [Qi2024] leaves to a grid search are the fields of `Rules`: how deep to warm up; whether a forward may
 * delay the first backward; whether a backward goes before a forward; whether a weight gradient may fill a wait that is
 * shorter than it; where every micro-batch is reduced, whether its gradient goes first when no reduction is left to run.
 * Orders over the limit are dropped; the shortest are handed back, of equal ones the one that holds least first.
 *
 * A greedy clock with more room is not always faster. So it runs with less as well, at levels that do not depend on the
 * room there is: what is tried with little memory is tried again with more.
 *
 * Memory is counted as the engine does: a forward takes a micro-batch's activations when it starts, an input gradient
 * gives part back when it ends, a weight gradient the rest. A rank that holds nothing may always run one forward, which
 * makes every limit feasible; where some rank has no room for one, nothing fits, and the limit is the memory of ZB-H1.
 * Reductions of gradients follow them on a stream of their own. Not looked at: gathers, and so nothing of ZeRO-3; what
 * shares slow down.
 * Source: [Qi2024]     Tested: unit/schedule/test_zb_auto.c
 */
#include "schedule/schedules.h"

#include <math.h>
#include <string.h>

#define UNKNOWN INT64_MAX

enum { FEW_PASSES = 64 }; /* ranks x micro-batches, where every level is tried */

enum { FORWARD, INPUT, WEIGHT, KINDS };

/* Depth: forwards beyond input gradients on rank r are at most 1 + depth_eighths (p - 1 - r) / 8. */
typedef struct {
    int depth_eighths; /* 0: memory alone */
    bool delays_first_backward, backward_first, fills_short_waits;
    bool feeds_reductions; /* a weight gradient goes first where the stream of reductions would run dry */
} Rules;

typedef struct {
    int64_t done[KINDS];
    int64_t free_ps; /* its compute is over */
    int64_t next_free_ps, previous_free_ps;
    int64_t reduced_ps[2]; /* when the last reductions are over, the one before first */
    int64_t first_ps, wake_ps;
    int64_t held_bytes, peak_bytes;
    int64_t told; /* number of the call that set wake_ps */
    bool idle, last_was_forward;
    uint8_t *passes;
    int64_t count;
} Rank;

typedef struct {
    const SimScheduleShape *shape;
    const SimScheduleCosts *costs;
    Rank *ranks;
    int64_t *forward_ps, *gradient_ps; /* [ranks][micro-batches]: input is there; UNKNOWN: not yet */
    int64_t told;
    const int64_t *limit_bytes; /* [ranks] of this try */
    bool full;                  /* some forward had to wait for room */
} Board;

typedef struct {
    uint8_t *passes;             /* [ranks][KINDS x micro-batches] */
    int64_t span_ps, held_bytes; /* of all ranks at their peaks */
} Found;

/* The shortest so far, no two alike. */
typedef struct {
    Found *rows; /* [most + 1], the last one to write into */
    int count, most;
} Best;

static Board new_board(const SimScheduleShape *shape, const SimScheduleCosts *costs, OrrArena *arena)
{
    const int64_t p = shape->ranks, m = shape->microbatches;
    Board board = {.shape = shape, .costs = costs, .limit_bytes = costs->limit_bytes};
    board.ranks = ORR_ARENA_NEW(arena, Rank, p);
    board.forward_ps = ORR_ARENA_NEW(arena, int64_t, p * m);
    board.gradient_ps = ORR_ARENA_NEW(arena, int64_t, p * m);
    for (int64_t i = 0; i < p * m; i++) {
        board.forward_ps[i] = i < m ? 0 : UNKNOWN;
        board.gradient_ps[i] = UNKNOWN;
    }
    for (int r = 0; r < p; r++) {
        board.ranks[r].passes = ORR_ARENA_NEW(arena, uint8_t, KINDS * m);
        board.ranks[r].first_ps = board.ranks[r].wake_ps = UNKNOWN;
    }
    return board;
}

/* When the input of the rank's next pass of a kind is there; UNKNOWN when nobody has started to make it, or no such
 * pass is left. */
static int64_t ready_ps(const Board *board, int r, int kind)
{
    const Rank *rank = &board->ranks[r];
    const int64_t m = board->shape->microbatches, next = rank->done[kind];
    if (next == m)
        return UNKNOWN;
    if (kind == FORWARD)
        return board->forward_ps[r * m + next];
    if (next >= rank->done[kind - 1])
        return UNKNOWN;
    return kind == WEIGHT || r + 1 == board->shape->ranks ? 0 : board->gradient_ps[r * m + next];
}

static bool fits(const Board *board, int r)
{
    const Rank *rank = &board->ranks[r];
    return rank->held_bytes == 0 ||
           rank->held_bytes + board->costs->stages[r].taken_bytes <= board->limit_bytes[r];
}

static int64_t lasts_ps(const Board *board, int r, int kind)
{
    const SimStageCosts *stage = &board->costs->stages[r];
    return kind == FORWARD ? stage->forward_ps : kind == INPUT ? stage->input_ps : stage->weight_ps;
}

/* Sends the result of a pass that ends at `end_ps`; gives when compute may go on. */
static int64_t send(Board *board, int r, int kind, int64_t end_ps)
{
    const int64_t m = board->shape->microbatches, k = board->ranks[r].done[kind];
    const SimStageCosts *stage = &board->costs->stages[r];
    const int other = kind == FORWARD ? r + 1 : r - 1;
    if (kind == WEIGHT || other < 0 || other >= board->shape->ranks)
        return end_ps;
    int64_t *stream = kind == FORWARD ? &board->ranks[r].next_free_ps : &board->ranks[r].previous_free_ps;
    *stream = MAX(*stream, end_ps) + (kind == FORWARD ? stage->next_hop_ps : stage->previous_hop_ps);
    (kind == FORWARD ? board->forward_ps : board->gradient_ps)[other * m + k] = *stream;
    return board->costs->blocking ? *stream : end_ps;
}

/* A weight gradient from `start_ps` whose pieces are reduced on a stream of their own; gives when compute may go on. */
static int64_t reduce(Board *board, int r, int64_t start_ps)
{
    Rank *rank = &board->ranks[r];
    const SimStageCosts *stage = &board->costs->stages[r];
    const int64_t pieces = MAX(1, stage->pieces);
    int64_t now = start_ps;
    for (int64_t i = 0; i < pieces; i++) {
        if (board->costs->reduces_in_turn)
            now = MAX(now, rank->reduced_ps[0]);
        now += stage->weight_ps * (i + 1) / pieces - stage->weight_ps * i / pieces;
        rank->reduced_ps[0] = rank->reduced_ps[1];
        rank->reduced_ps[1] = MAX(rank->reduced_ps[1], now) + stage->reduce_ps * (i + 1) / pieces -
                              stage->reduce_ps * i / pieces;
        if (board->costs->reduces_alone)
            now = rank->reduced_ps[1];
    }
    return now;
}

/* Runs a pass from `start_ps`. */
static void run(Board *board, int r, int kind, int64_t start_ps)
{
    Rank *rank = &board->ranks[r];
    const SimStageCosts *stage = &board->costs->stages[r];
    rank->first_ps = MIN(rank->first_ps, start_ps);
    const bool last = rank->done[WEIGHT] + 1 == board->shape->microbatches;
    const bool reduces = kind == WEIGHT && stage->reduce_ps > 0 && (last || board->costs->reduces_each);
    rank->free_ps =
        send(board, r, kind, reduces ? reduce(board, r, start_ps) : start_ps + lasts_ps(board, r, kind));
    if (kind == FORWARD)
        rank->held_bytes += stage->taken_bytes;
    rank->peak_bytes = MAX(rank->peak_bytes, rank->held_bytes);
    if (kind == INPUT)
        rank->held_bytes -= stage->taken_bytes - stage->late_bytes;
    if (kind == WEIGHT)
        rank->held_bytes -= stage->late_bytes;
    rank->passes[rank->count++] = (uint8_t)kind;
    rank->done[kind]++;
    if (kind != WEIGHT)
        rank->last_was_forward = kind == FORWARD;
}

/* How long the step is, or UNKNOWN when a rank holds more than it may. */
static int64_t judge(const Board *board, int64_t *ret_held_bytes)
{
    int64_t longest_ps = 0;
    *ret_held_bytes = 0;
    for (int r = 0; r < board->shape->ranks; r++) {
        const Rank *rank = &board->ranks[r];
        if (rank->peak_bytes > MAX(board->costs->limit_bytes[r], board->costs->stages[r].taken_bytes))
            return UNKNOWN;
        *ret_held_bytes += rank->peak_bytes;
        const int64_t end_ps = MAX(rank->free_ps, rank->reduced_ps[1]);
        longest_ps = MAX(longest_ps, end_ps - (board->costs->skewed ? rank->first_ps : 0));
    }
    return longest_ps;
}

static bool comes_before(const Found *a, const Found *b)
{
    return a->span_ps < b->span_ps || (a->span_ps == b->span_ps && a->held_bytes < b->held_bytes);
}

static void keep_if_good(const Board *board, Best *best)
{
    Found *row = &best->rows[best->count];
    const int64_t count = KINDS * (int64_t)board->shape->microbatches;
    row->span_ps = judge(board, &row->held_bytes);
    if (row->span_ps == UNKNOWN ||
        (best->count == best->most && !comes_before(row, &best->rows[best->count - 1])))
        return;
    for (int r = 0; r < board->shape->ranks; r++) {
        g_assert(board->ranks[r].count == count);
        memcpy(row->passes + r * count, board->ranks[r].passes, (size_t)count);
    }
    int at = best->count;
    for (; at > 0 && comes_before(row, &best->rows[at - 1]); at--)
        continue;
    for (int i = at - 1; i >= 0 && !comes_before(&best->rows[i], row); i--) {
        if (memcmp(best->rows[i].passes, row->passes, (size_t)(board->shape->ranks * count)) == 0)
            return;
    }
    const Found found = *row;
    for (int i = best->count; i > at; i--)
        best->rows[i] = best->rows[i - 1];
    best->rows[at] = found;
    best->count = MIN(best->count + 1, best->most);
}

/* --- the greedy clock --- */

static bool deep_enough(const Board *board, const Rules *rules, int r)
{
    const Rank *rank = &board->ranks[r];
    return rules->depth_eighths > 0 && 8 * (rank->done[FORWARD] - rank->done[INPUT] - 1) >=
                                           rules->depth_eighths * (board->shape->ranks - 1 - r);
}

/* The pass that the rank starts now; KINDS: it waits. */
static int choose(Board *board, const Rules *rules, int r, int64_t now)
{
    const Rank *rank = &board->ranks[r];
    if (rules->feeds_reductions && ready_ps(board, r, WEIGHT) != UNKNOWN &&
        rank->reduced_ps[1] <= now + lasts_ps(board, r, WEIGHT))
        return WEIGHT;
    const bool deep = deep_enough(board, rules, r), may_forward = !deep && fits(board, r);
    const int64_t forward_ps = may_forward ? ready_ps(board, r, FORWARD) : UNKNOWN;
    board->full = board->full || (!deep && !may_forward);
    const int64_t input_ps = ready_ps(board, r, INPUT);
    if (input_ps <= now) {
        const bool turn = rank->last_was_forward || rules->backward_first;
        return forward_ps > now || turn ? INPUT : FORWARD;
    }
    if (forward_ps <= now) {
        const bool delays = input_ps - now < lasts_ps(board, r, FORWARD);
        if (!delays || rank->done[INPUT] > 0 || rules->delays_first_backward)
            return FORWARD;
        return KINDS;
    }
    if (ready_ps(board, r, WEIGHT) == UNKNOWN)
        return KINDS;
    const int64_t wait_ps = MIN(forward_ps, input_ps) - now;
    return wait_ps >= lasts_ps(board, r, WEIGHT) || rules->fills_short_waits ? WEIGHT : KINDS;
}

static void wake(Board *board, int r, int64_t time_ps)
{
    Rank *rank = &board->ranks[r];
    if (time_ps >= rank->wake_ps)
        return;
    rank->wake_ps = time_ps;
    rank->told = board->told++;
}

/* The rank that wakes next, of several at one instant the one that was told first; -1: all sleep. */
static int next_awake(const Board *board)
{
    int next = -1;
    for (int r = 0; r < board->shape->ranks; r++) {
        const Rank *rank = &board->ranks[r], *best = next < 0 ? NULL : &board->ranks[next];
        if (rank->wake_ps != UNKNOWN && (best == NULL || rank->wake_ps < best->wake_ps ||
                                         (rank->wake_ps == best->wake_ps && rank->told < best->told)))
            next = r;
    }
    return next;
}

/* Lets rank `r` choose; a neighbour that waits is told when its input comes. */
static void turn(Board *board, const Rules *rules, int r, int64_t now)
{
    Rank *rank = &board->ranks[r];
    const int kind = choose(board, rules, r, now);
    rank->wake_ps = UNKNOWN;
    rank->idle = kind == KINDS;
    if (rank->idle) {
        for (int next = FORWARD; next <= INPUT; next++) {
            const int64_t time_ps = ready_ps(board, r, next);
            if (time_ps != UNKNOWN && time_ps > now)
                wake(board, r, time_ps);
        }
        return;
    }
    run(board, r, kind, now);
    wake(board, r, rank->free_ps);
    const int other = kind == FORWARD ? r + 1 : r - 1;
    if (kind != WEIGHT && other >= 0 && other < board->shape->ranks && board->ranks[other].idle) {
        const int64_t time_ps = ready_ps(board, other, kind);
        if (time_ps != UNKNOWN)
            wake(board, other, MAX(time_ps, now));
    }
}

/* Gives whether the limit held anything up. */
static bool try_rules(const SimScheduleShape *shape, const SimScheduleCosts *costs, const Rules *rules,
                      const int64_t *limit_bytes, Best *best)
{
    OrrArena *scratch = orr_arena_new();
    Board board = new_board(shape, costs, scratch);
    board.limit_bytes = limit_bytes;
    for (int r = 0; r < shape->ranks; r++)
        wake(&board, r, 0);
    for (int r = next_awake(&board); r >= 0; r = next_awake(&board))
        turn(&board, rules, r, board.ranks[r].wake_ps);
    keep_if_good(&board, best);
    orr_arena_free(scratch);
    return board.full;
}

/* --- orders that are given --- */

/* Ranks run what is theirs as soon as its input is there. */
static void try_orders(const SimScheduleShape *shape, const SimScheduleCosts *costs,
                       void (*generate)(const SimScheduleShape *, int, OrrArena *, SimOrder *), Best *best)
{
    static const uint8_t KIND_OF[] = {
        [SIM_PASS_FORWARD] = FORWARD, [SIM_PASS_BACKWARD_INPUT] = INPUT, [SIM_PASS_BACKWARD_WEIGHT] = WEIGHT};
    OrrArena *scratch = orr_arena_new();
    Board board = new_board(shape, costs, scratch);
    SimOrder *orders = ORR_ARENA_NEW(scratch, SimOrder, shape->ranks);
    int64_t left = KINDS * (int64_t)shape->ranks * shape->microbatches;
    for (int r = 0; r < shape->ranks; r++)
        generate(shape, r, scratch, &orders[r]);
    while (left > 0) {
        for (int r = 0; r < shape->ranks; r++) {
            Rank *rank = &board.ranks[r];
            for (; rank->count < orders[r].count; left--) {
                const int kind = KIND_OF[orders[r].ops[rank->count].pass];
                const int64_t input_ps = ready_ps(&board, r, kind);
                if (input_ps == UNKNOWN)
                    break;
                run(&board, r, kind, MAX(rank->free_ps, input_ps));
            }
        }
    }
    keep_if_good(&board, best);
    orr_arena_free(scratch);
}

/* --- the search --- */

/* Those given; where a rank has no room for one micro-batch no order fits, and one that holds a single micro-batch would
 * only say so more slowly. */
static SimScheduleCosts with_room(const SimScheduleShape *shape, const SimScheduleCosts *given,
                                  OrrArena *arena)
{
    SimScheduleCosts costs = *given;
    bool room = true;
    for (int r = 0; r < shape->ranks; r++)
        room = room && given->limit_bytes[r] >= given->stages[r].taken_bytes;
    if (room)
        return costs;
    costs.limit_bytes = ORR_ARENA_NEW(arena, int64_t, shape->ranks);
    for (int r = 0; r < shape->ranks; r++)
        costs.limit_bytes[r] = MAX(given->limit_bytes[r], given->stages[r].taken_bytes * shape->ranks);
    return costs;
}

/* Whether limits are one number of micro-batches for all ranks, which grows on all by one. */
static bool counts_microbatches(const SimScheduleShape *shape, const SimScheduleCosts *costs)
{
    const int64_t count = costs->limit_bytes[0] / MAX(1, costs->stages[0].taken_bytes);
    for (int r = 0; r < shape->ranks; r++) {
        const int64_t limit = costs->limit_bytes[r], taken = costs->stages[r].taken_bytes;
        if (taken > 0 ? limit % taken != 0 || limit / taken != count : limit != 0)
            return false;
    }
    return true;
}

/* The limits with which rank `of` has room for `own_bytes` and no more; false: some rank has no room for a micro-batch, or
 * there is not so much. */
static bool level(const SimScheduleShape *shape, const SimScheduleCosts *costs, int of, int64_t own_bytes,
                  int64_t *ret_limit_bytes)
{
    const bool counted = counts_microbatches(shape, costs);
    const int64_t less_bytes = costs->limit_bytes[of] - own_bytes;
    const double microbatches = (double)own_bytes / (double)MAX(1, costs->stages[of].taken_bytes);
    for (int r = 0; r < shape->ranks; r++) {
        const int64_t taken_bytes = costs->stages[r].taken_bytes;
        ret_limit_bytes[r] =
            counted ? llround(microbatches * (double)taken_bytes) : costs->limit_bytes[r] - less_bytes;
        if (ret_limit_bytes[r] < taken_bytes)
            return false;
    }
    return less_bytes >= 0;
}

/* Levels cost time: so many to an octave that the tries of all rules run about a million passes, by the shape alone; 0: those
 * of 1F1B's memory and of ZB-H2's. */
static int levels_an_octave(const SimScheduleShape *shape)
{
    enum { MOST_PASSES = 1000000, RULES = 48, MOST_AN_OCTAVE = 4 };
    const int64_t passes = KINDS * (int64_t)shape->ranks * shape->microbatches;
    const double levels = (double)MOST_PASSES / (double)passes / RULES,
                 octaves = log2(shape->microbatches + 1);
    return (int)fmin(MOST_AN_OCTAVE, levels / octaves);
}

/* All of them where passes are few. */
static bool is_level(const SimScheduleShape *shape, int an_octave, int64_t microbatches)
{
    const int64_t p = shape->ranks;
    int64_t step = 1;
    if (microbatches == p || microbatches == 2 * p - 1 || p * shape->microbatches <= FEW_PASSES)
        return true;
    while (an_octave > 0 && 2 * an_octave * step <= microbatches)
        step *= 2;
    return an_octave > 0 && microbatches % step == 0;
}

static Rules rules_of(unsigned bits, int depth_eighths)
{
    return (Rules){.depth_eighths = depth_eighths,
                   .delays_first_backward = (bits & 1u) != 0,
                   .backward_first = (bits & 2u) != 0,
                   .fills_short_waits = (bits & 4u) != 0,
                   .feeds_reductions = (bits & 8u) != 0};
}

/* Levels of the first rank, of the last and of one between, which hold states of their own: so many micro-batches, and
 * beside them what one keeps until its weight gradient. Of many passes the first rank's whole ones. */
static void try_levels(const SimScheduleShape *shape, const SimScheduleCosts *costs, const Rules *rules,
                       Best *best)
{
    const int p = shape->ranks, of[] = {0, p / 2, p - 1};
    const bool few = (int64_t)p * shape->microbatches <= FEW_PASSES;
    const int an_octave = levels_an_octave(shape);
    int64_t *limit_bytes = g_new(int64_t, p);
    for (int i = 0; i < (few && p > 2 ? 3 : 1); i++) {
        const SimStageCosts *stage = &costs->stages[of[i]];
        bool full = true;
        for (int64_t n = 2; full && n < 2 * (shape->microbatches + 1); n += few ? 1 : 2) {
            const int64_t own_bytes = n / 2 * stage->taken_bytes + n % 2 * stage->late_bytes;
            if (is_level(shape, an_octave, n / 2) && level(shape, costs, of[i], own_bytes, limit_bytes))
                full = try_rules(shape, costs, rules, limit_bytes, best);
        }
    }
    g_free(limit_bytes);
}

int sim_schedule_zb_auto_all(const SimScheduleShape *shape, const SimScheduleCosts *given, int most,
                             OrrArena *arena, SimOrder **ret_orders)
{
    const SimScheduleCosts allowed = with_room(shape, given, arena), *costs = &allowed;
    static const int DEPTHS[] = {8, 10, 12, 14, 16, 20, 24, 0};
    static const SimPass PASSES[KINDS] = {SIM_PASS_FORWARD, SIM_PASS_BACKWARD_INPUT,
                                          SIM_PASS_BACKWARD_WEIGHT};
    const int64_t count = KINDS * (int64_t)shape->microbatches;
    const bool few = (int64_t)shape->ranks * shape->microbatches <= FEW_PASSES;
    Best best = {.rows = ORR_ARENA_NEW(arena, Found, most + 1), .most = most};
    for (int i = 0; i <= most; i++)
        best.rows[i].passes = ORR_ARENA_NEW(arena, uint8_t, shape->ranks * count);
    int64_t *endless = ORR_ARENA_NEW(arena, int64_t, shape->ranks);
    for (int r = 0; r < shape->ranks; r++)
        endless[r] = INT64_MAX / 2;
    try_orders(shape, costs, sim_schedule_zb_h1, &best);
    try_orders(shape, costs, sim_schedule_zb_h2, &best);
    for (unsigned bits = 0; bits < (costs->reduces_each ? 16 : 8); bits++) {
        for (size_t i = 0; i < G_N_ELEMENTS(DEPTHS); i++) {
            const Rules rules = rules_of(bits, DEPTHS[i]);
            try_rules(shape, costs, &rules, endless, &best);
            try_rules(shape, costs, &rules, costs->limit_bytes, &best);
            if (few || DEPTHS[i] % 4 == 0)
                try_levels(shape, costs, &rules, &best);
        }
    }
    g_assert(best.count > 0);
    for (int k = 0; k < best.count; k++) {
        ret_orders[k] = ORR_ARENA_NEW(arena, SimOrder, shape->ranks);
        for (int r = 0; r < shape->ranks; r++) {
            int next[KINDS] = {0};
            ret_orders[k][r] = sim_order_new(arena, count);
            for (int64_t i = 0; i < count; i++) {
                const int kind = best.rows[k].passes[r * count + i];
                sim_order_add(&ret_orders[k][r], PASSES[kind], 0, next[kind]++);
            }
        }
    }
    return best.count;
}
