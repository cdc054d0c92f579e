/* schedule/facts.c - see facts.h. Tested: unit/schedule/test_schedule_facts.c */
#include "schedule/facts.h"

#include <string.h>

enum { WINDOWS = 8, CANDIDATES = 4 * WINDOWS };

/* The fullest moment so far, by some measure. */
typedef struct Fullest {
    int64_t level; /* -1: none */
    SimMoment moment;
} Fullest;

typedef struct Scan {
    const SimScheduleShape *shape;
    OrrArena *arena; /* what is kept lives in; candidates in `scratch` */
    OrrArena *scratch;
    const SimOrder *order;
    SimRankFacts *facts;
    int32_t *whole, *late; /* [chunks]: now */
    int32_t *forwards;     /* [chunks]: done so far */
    int32_t *summed;       /* [chunks]: weight gradients done so far */
    int64_t alive, alive_late;
    int64_t at;                    /* op */
    Fullest window[WINDOWS][2][2]; /* [part of the order][gradients][with late activations] */
    Fullest summing, incomplete, first_backward;
    bool backward_seen;
} Scan;

static int32_t *counts_new(OrrArena *arena, int chunks)
{
    return ORR_ARENA_NEW(arena, int32_t, chunks);
}

static void copy_counts(SimMoment *moment, const int32_t *whole, const int32_t *late, int chunks)
{
    memcpy(moment->whole, whole, sizeof(int32_t) * (size_t)chunks);
    memcpy(moment->late, late, sizeof(int32_t) * (size_t)chunks);
}

static void offer(const Scan *scan, Fullest *fullest, int64_t level, int chunk, bool backward)
{
    SimMoment *moment = &fullest->moment;
    if (level <= fullest->level)
        return;
    if (moment->whole == NULL) {
        moment->whole = counts_new(scan->scratch, scan->shape->chunks);
        moment->late = counts_new(scan->scratch, scan->shape->chunks);
    }
    copy_counts(moment, scan->whole, scan->late, scan->shape->chunks);
    moment->chunk = chunk;
    moment->backward = backward;
    fullest->level = level;
}

/* Every chunk has begun to sum its gradient; `incomplete`: and none has added its last. */
static bool sums(const Scan *scan, bool incomplete)
{
    const int per_chunk = scan->shape->microbatches;
    for (int c = 0; c < scan->shape->chunks; c++)
        if (scan->summed[c] == 0 || (incomplete && scan->summed[c] >= per_chunk))
            return false;
    return true;
}

/* At the start of a pass, with what it takes. */
static void look(Scan *scan, int chunk, bool backward)
{
    const int64_t part = scan->at * WINDOWS / scan->order->count;
    offer(scan, &scan->window[part][backward][0], scan->alive, chunk, backward);
    offer(scan, &scan->window[part][backward][1], scan->alive + scan->alive_late, chunk, backward);
    if (backward && scan->backward_seen && sums(scan, false))
        offer(scan, &scan->summing, scan->alive, chunk, backward);
    if (backward && scan->backward_seen && sums(scan, true))
        offer(scan, &scan->incomplete, scan->alive, chunk, backward);
}

static void see_forward(Scan *scan, int chunk)
{
    scan->whole[chunk]++;
    scan->forwards[chunk]++;
    scan->alive++;
    look(scan, chunk, false);
}

static void see_first_backward(Scan *scan, int chunk)
{
    bool all = true;
    for (int c = 0; c < scan->shape->chunks; c++)
        all = all && scan->forwards[c] > 0;
    if (all)
        offer(scan, &scan->first_backward, scan->alive, chunk, true);
    scan->backward_seen = true;
}

static void see_backward(Scan *scan, SimPass pass, int chunk)
{
    if (!scan->backward_seen)
        see_first_backward(scan, chunk);
    look(scan, chunk, true);
    if (pass != SIM_PASS_BACKWARD_WEIGHT) {
        scan->whole[chunk]--;
        scan->alive--;
    }
    if (pass == SIM_PASS_BACKWARD_INPUT) {
        scan->late[chunk]++;
        scan->alive_late++;
    } else if (pass == SIM_PASS_BACKWARD_WEIGHT) {
        scan->late[chunk]--;
        scan->alive_late--;
        scan->facts->weights_left[chunk]++;
    }
    if (pass != SIM_PASS_BACKWARD_INPUT)
        scan->summed[chunk]++;
    if (pass != SIM_PASS_BACKWARD_WEIGHT)
        memset(scan->facts->weights_left, 0, sizeof(int32_t) * (size_t)scan->shape->chunks);
}

static void see_op(Scan *scan, const SimPassOp *op)
{
    switch ((SimPass)op->pass) {
    case SIM_PASS_FORWARD:
        see_forward(scan, op->chunk);
        return;
    case SIM_PASS_FORWARD_BACKWARD:
        scan->facts->pairs[op->chunk]++;
        see_forward(scan, op->chunk);
        see_backward(scan, SIM_PASS_BACKWARD, op->chunk2);
        return;
    default:
        see_backward(scan, (SimPass)op->pass, op->chunk);
    }
}

/* Everything that is alive at `b` is alive at `a` too. */
static bool covers(const SimMoment *a, const SimMoment *b, int chunks)
{
    if (a->chunk != b->chunk || a->backward != b->backward)
        return false;
    for (int c = 0; c < chunks; c++)
        if (a->whole[c] < b->whole[c] || a->whole[c] + a->late[c] < b->whole[c] + b->late[c])
            return false;
    return true;
}

static void add_moment(Scan *scan, const SimMoment *moment)
{
    SimRankFacts *facts = scan->facts;
    int kept = 0;
    for (int i = 0; i < facts->moment_count; i++)
        if (covers(&facts->moments[i], moment, scan->shape->chunks))
            return;
    for (int i = 0; i < facts->moment_count; i++)
        if (!covers(moment, &facts->moments[i], scan->shape->chunks))
            facts->moments[kept++] = facts->moments[i];
    facts->moments[kept++] = *moment;
    facts->moment_count = kept;
}

static SimMoment kept(const Scan *scan, const SimMoment *moment)
{
    SimMoment copy = *moment;
    copy.whole = counts_new(scan->arena, scan->shape->chunks);
    copy.late = counts_new(scan->arena, scan->shape->chunks);
    copy_counts(&copy, moment->whole, moment->late, scan->shape->chunks);
    return copy;
}

static SimMoment *found(const Scan *scan, const Fullest *fullest)
{
    if (fullest->level < 0)
        return NULL;
    SimMoment *moment = ORR_ARENA_NEW(scan->arena, SimMoment, 1);
    *moment = kept(scan, &fullest->moment);
    return moment;
}

static void scan_rank(const SimScheduleShape *shape, const SimOrder *order, OrrArena *arena,
                      SimRankFacts *facts)
{
    Scan scan = {.shape = shape, .arena = arena, .scratch = orr_arena_new(), .order = order, .facts = facts};
    SimMoment moments[CANDIDATES];
    int32_t **counts[] = {&scan.whole, &scan.late, &scan.forwards, &scan.summed};
    Fullest *windows = &scan.window[0][0][0];
    for (size_t i = 0; i < G_N_ELEMENTS(counts); i++)
        *counts[i] = counts_new(scan.scratch, shape->chunks);
    for (int i = 0; i < CANDIDATES; i++)
        windows[i].level = -1;
    scan.summing.level = scan.incomplete.level = scan.first_backward.level = -1;
    facts->weights_left = counts_new(arena, shape->chunks);
    facts->pairs = counts_new(arena, shape->chunks);
    facts->moments = moments;
    for (scan.at = 0; scan.at < order->count; scan.at++)
        see_op(&scan, &order->ops[scan.at]);
    for (int i = 0; i < CANDIDATES; i++)
        if (windows[i].level >= 0)
            add_moment(&scan, &windows[i].moment);
    facts->moments = ORR_ARENA_NEW(arena, SimMoment, facts->moment_count);
    for (int i = 0; i < facts->moment_count; i++)
        facts->moments[i] = kept(&scan, &moments[i]);
    facts->summing = found(&scan, &scan.summing);
    facts->incomplete = found(&scan, &scan.incomplete);
    facts->first_backward = found(&scan, &scan.first_backward);
    orr_arena_free(scan.scratch);
}

/* Rank 0 holds the first stage as its chunk 0. */
static int64_t count_round_trips(const SimScheduleShape *shape, const SimOrder *order, OrrArena *arena)
{
    int64_t *forward_at = ORR_ARENA_NEW(arena, int64_t, shape->microbatches), trips = 0, last = -1;
    for (int64_t i = 0; i < order->count; i++) {
        const SimPassOp *op = &order->ops[i];
        if (op->pass == SIM_PASS_FORWARD && op->chunk == 0)
            forward_at[op->microbatch] = i;
        const bool gradient = op->pass == SIM_PASS_BACKWARD || op->pass == SIM_PASS_BACKWARD_INPUT;
        if (!gradient || op->chunk != 0 || forward_at[op->microbatch] <= last)
            continue;
        trips++;
        last = i;
    }
    return trips;
}

const SimOrderFacts *sim_order_facts(const SimSchedule *schedule, const SimScheduleShape *shape,
                                     OrrArena *arena)
{
    SimOrderFacts *facts = ORR_ARENA_NEW(arena, SimOrderFacts, 1);
    OrrArena *scratch = orr_arena_new();
    SimOrder *orders = ORR_ARENA_NEW(scratch, SimOrder, shape->ranks);
    g_assert(!sim_schedule_needs_times(schedule));
    facts->ranks = ORR_ARENA_NEW(arena, SimRankFacts, shape->ranks);
    sim_schedule_orders(schedule, shape, scratch, orders);
    for (int r = 0; r < shape->ranks; r++)
        scan_rank(shape, &orders[r], arena, &facts->ranks[r]);
    if (!sim_schedule_has(schedule, SIM_TRAIT_PAIRS))
        facts->round_trips = count_round_trips(shape, &orders[0], scratch);
    orr_arena_free(scratch);
    return facts;
}
