/* workload/loop.c - see loop.h. */
#include "workload/loop.h"

#include <glib.h>
#include <string.h>

#include "base/error.h"

/* Turns until the order of events repeats; the second half of them is measured. */
enum { TURNS = 32 };

typedef struct Span {
    int64_t begin_ps, end_ps;
} Span;

typedef struct Loop {
    const LoopPhase *phases;
    int count, parts, staleness, ahead; /* ahead: phases that run `staleness` steps before the others */
    int steps;
    int64_t free_ps[LOOP_MOST_PARTS];
    Span *spans; /* [step x count] */
    int64_t *waited_ps;
} Loop;

static int phases_ahead(const LoopPhase *phases, int count)
{
    int ahead = 0;
    for (int k = 0; k < count; k++)
        ahead = phases[k].generates ? k + 1 : ahead;
    return ahead;
}

static Span *span_of(const Loop *loop, int step, int phase)
{
    return &loop->spans[step * loop->count + phase];
}

static int64_t step_end_ps(const Loop *loop, int step)
{
    int64_t end_ps = 0;
    for (int k = 0; k < loop->count; k++)
        end_ps = MAX(end_ps, span_of(loop, step, k)->end_ps);
    return end_ps;
}

static void place(Loop *loop, int step, int k)
{
    const LoopPhase *phase = &loop->phases[k];
    const int held[] = {phase->part, phase->other};
    int64_t free_ps = 0, begin_ps = 0;
    for (int h = 0; h < 2; h++)
        if (held[h] >= 0)
            free_ps = MAX(free_ps, loop->free_ps[held[h]]);
    begin_ps = free_ps;
    for (int j = 0; j < k; j++)
        if (phase->after & 1u << j)
            begin_ps = MAX(begin_ps, span_of(loop, step, j)->end_ps);
    const int weights = step - 1 - loop->staleness;
    if (phase->generates && weights >= 0)
        begin_ps = MAX(begin_ps, step_end_ps(loop, weights));
    *span_of(loop, step, k) = (Span){begin_ps, begin_ps + phase->ps};
    loop->waited_ps[step * loop->count + k] = begin_ps - free_ps;
    for (int h = 0; h < 2; h++)
        if (held[h] >= 0)
            loop->free_ps[held[h]] = begin_ps + phase->ps;
}

static void run(Loop *loop)
{
    for (int turn = 0; turn < loop->steps; turn++) {
        for (int step = turn == 0 ? 0 : turn + loop->staleness;
             step <= turn + loop->staleness && step < loop->steps; step++)
            for (int k = 0; k < loop->ahead; k++)
                place(loop, step, k);
        for (int k = loop->ahead; k < loop->count; k++)
            place(loop, turn, k);
    }
}

bool loop_fits_clock(const LoopPhase *phases, int count, int staleness)
{
    const int64_t most_ps = INT64_MAX / (TURNS + 2 * staleness + 1);
    int64_t sum_ps = 0;
    for (int k = 0; k < count; k++) {
        if (phases[k].ps > most_ps - sum_ps)
            return false;
        sum_ps += phases[k].ps;
    }
    return true;
}

static void loop_new(const LoopPhase *phases, int count, int parts, int staleness, Loop *loop)
{
    g_assert(count >= 1 && count <= LOOP_MOST_PHASES && parts <= LOOP_MOST_PARTS && staleness >= 0 &&
             staleness <= LOOP_MOST_STALENESS);
    *loop = (Loop){.phases = phases,
                   .count = count,
                   .parts = parts,
                   .staleness = staleness,
                   .ahead = phases_ahead(phases, count),
                   .steps = TURNS + 2 * staleness};
    loop->spans = g_new0(Span, (gsize)loop->steps * (gsize)count);
    loop->waited_ps = g_new0(int64_t, (gsize)loop->steps * (gsize)count);
    run(loop);
}

static void loop_clear(Loop *loop)
{
    g_free(loop->spans);
    g_free(loop->waited_ps);
}

/* The last turn whose phases ahead are all placed. */
static int last_turn(const Loop *loop)
{
    return loop->steps - 1 - loop->staleness;
}

/* When all that a phase waits for is over; its own begin where it waits for nothing. */
static int64_t ready_ps(const Loop *loop, int step, int k)
{
    const LoopPhase *phase = &loop->phases[k];
    const int weights = step - 1 - loop->staleness;
    int64_t ready_ps = G_MININT64;
    for (int j = 0; j < k; j++)
        if ((phase->after & 1u << j) != 0)
            ready_ps = MAX(ready_ps, span_of(loop, step, j)->end_ps);
    if (phase->generates && weights >= 0)
        ready_ps = MAX(ready_ps, step_end_ps(loop, weights));
    return ready_ps > G_MININT64 ? ready_ps : span_of(loop, step, k)->begin_ps;
}

/* Of the newest weights that have arrived when `step` begins to generate; phases of steps behind `last` are not all placed. */
static int weights_age(const Loop *loop, int last, int step, int k)
{
    int newest = MIN(last, step - 1);
    while (newest >= 0 && step_end_ps(loop, newest) > span_of(loop, step, k)->begin_ps)
        newest--;
    return step - 1 - newest;
}

static void fill(const Loop *loop, LoopResult *result)
{
    const int last = last_turn(loop), first = last / 2;
    const int64_t span_ps = step_end_ps(loop, last) - step_end_ps(loop, first);
    int64_t earliest_ps = G_MAXINT64;
    memset(result, 0, sizeof *result);
    result->step_ps = span_ps / (last - first);
    for (int k = 0; k < loop->count; k++) {
        const int step = k < loop->ahead ? last + loop->staleness : last;
        const LoopPhase *phase = &loop->phases[k];
        result->begin_ps[k] = span_of(loop, step, k)->begin_ps;
        result->waited_ps[k] = loop->waited_ps[step * loop->count + k];
        result->ready_ps[k] = ready_ps(loop, step, k);
        if (phase->generates)
            result->weights_age = MAX(result->weights_age, weights_age(loop, last, step, k));
        earliest_ps = MIN(earliest_ps, result->begin_ps[k]);
        if (phase->part >= 0)
            result->busy_ps[phase->part] += phase->ps;
        if (phase->other >= 0 && phase->other != phase->part)
            result->busy_ps[phase->other] += phase->ps;
    }
    for (int k = 0; k < loop->count; k++) {
        result->begin_ps[k] -= earliest_ps;
        result->ready_ps[k] -= earliest_ps;
    }
}

void loop_run(const LoopPhase *phases, int count, int parts, int staleness, LoopResult *ret_result)
{
    Loop loop;
    loop_new(phases, count, parts, staleness, &loop);
    fill(&loop, ret_result);
    loop_clear(&loop);
}

/* --- what loops promise --- */

static bool holds(const LoopPhase *phase, int part)
{
    return part >= 0 && (phase->part == part || phase->other == part);
}

static bool apart(const Loop *loop, int a, int b, GError **error)
{
    const Span *first = &loop->spans[a], *second = &loop->spans[b];
    const LoopPhase *one = &loop->phases[a % loop->count], *two = &loop->phases[b % loop->count];
    if ((!holds(two, one->part) && !holds(two, one->other)) || first->end_ps <= second->begin_ps ||
        second->end_ps <= first->begin_ps || one->ps == 0 || two->ps == 0)
        return true;
    return orr_fail(error, ORR_ERROR_INTERNAL, "loop: phases %d and %d hold one part at once",
                    a % loop->count, b % loop->count);
}

static bool check_span(const Loop *loop, int step, int k, GError **error)
{
    const LoopPhase *phase = &loop->phases[k];
    const Span *span = span_of(loop, step, k);
    const int weights = step - 1 - loop->staleness;
    if (span->end_ps - span->begin_ps != phase->ps)
        return orr_fail(error, ORR_ERROR_INTERNAL, "loop: phase %d of step %d did not run", k, step);
    for (int j = 0; j < k; j++)
        if ((phase->after & 1u << j) && span_of(loop, step, j)->end_ps > span->begin_ps)
            return orr_fail(error, ORR_ERROR_INTERNAL, "loop: phase %d did not wait for phase %d", k, j);
    return !phase->generates || weights < 0 || step_end_ps(loop, weights) <= span->begin_ps ||
           orr_fail(error, ORR_ERROR_INTERNAL, "loop: step %d generates with weights older than step %d",
                    step, weights);
}

bool loop_check(const LoopPhase *phases, int count, int parts, int staleness, GError **error)
{
    Loop loop;
    LoopResult result;
    loop_new(phases, count, parts, staleness, &loop);
    fill(&loop, &result);
    bool ok = true;
    for (int step = 0; ok && step <= last_turn(&loop); step++)
        for (int k = 0; ok && k < count; k++)
            ok = check_span(&loop, step, k, error);
    for (int a = 0; ok && a < loop.steps * count; a++)
        for (int b = a + 1; ok && b < loop.steps * count; b++)
            ok = apart(&loop, a, b, error);
    for (int part = 0; ok && part < parts; part++)
        if (result.busy_ps[part] > result.step_ps)
            ok = orr_fail(error, ORR_ERROR_INTERNAL, "loop: part %d is busy for longer than a step", part);
    loop_clear(&loop);
    return ok;
}
