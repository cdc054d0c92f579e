/* sim/check_rates.c - every op does its work at the rates it had, no resource is used beyond its capacity at any instant,
 * and no tier holds more than fits. Recomputed from spans, rate changes and levels. */
#include "sim/checked_run.h"

#include <inttypes.h>
#include <stdlib.h>

/* --- rates --- */

/* Changes are recorded by time; a counting sort by stream keeps that order within each. */
void sim_check_sort_rates(Check *c)
{
    const SimResult *result = c->result;
    const int64_t streams = (int64_t)result->ranks * SIM_MAX_STREAMS;
    c->first_rate = ORR_ARENA_NEW(c->arena, int64_t, streams + 2);
    c->rates = ORR_ARENA_NEW(c->arena, const SimRateChange *, result->rate_count);
    int64_t *next = c->first_rate + 1; /* becomes first_rate itself once all are placed */
    for (int64_t i = 0; i < result->rate_count; i++)
        next[(int64_t)result->rates[i].rank * SIM_MAX_STREAMS + result->rates[i].stream + 1]++;
    for (int64_t i = 1; i <= streams; i++)
        next[i] += next[i - 1];
    for (int64_t i = 0; i < result->rate_count; i++) {
        const SimRateChange *change = &result->rates[i];
        c->rates[next[(int64_t)change->rank * SIM_MAX_STREAMS + change->stream]++] = change;
    }
}

/* First change of the span's stream at or after its start; those of the op itself come before its end. */
static int64_t first_change(const Check *c, const SimSpan *span, int64_t *ret_end)
{
    const int64_t stream = (int64_t)span->rank * SIM_MAX_STREAMS + span->stream;
    int64_t low = c->first_rate[stream], high = c->first_rate[stream + 1];
    *ret_end = high;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (c->rates[middle]->time_ps < span->start_ps)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool sim_check_work(const Check *c, const SimSpan *span, int64_t duration_ps, GError **error)
{
    int64_t end = 0, at_ps = span->start_ps, done_ps = 0, done_frac = 0, rate = SIM_FULL_RATE;
    for (int64_t i = first_change(c, span, &end);; i++) {
        const bool more = i < end && c->rates[i]->time_ps < span->end_ps;
        const int64_t until_ps = more ? c->rates[i]->time_ps : span->end_ps;
        const int64_t low = (until_ps - at_ps) % SIM_FULL_RATE * rate + done_frac;
        done_ps += (until_ps - at_ps) / SIM_FULL_RATE * rate + low / SIM_FULL_RATE;
        done_frac = low % SIM_FULL_RATE;
        at_ps = until_ps;
        if (!more)
            break;
        rate = c->rates[i]->rate;
    }
    /* The end is the first picosecond at which all is done. */
    if (done_ps < duration_ps || done_ps > duration_ps || done_frac >= rate)
        return sim_check_fail(error,
                              "an op of rank %d stream %d of %" PRId64 " ps lasts %" PRId64
                              " ps, in which it does %" PRId64 " ps of work",
                              span->rank, span->stream, duration_ps, span->end_ps - span->start_ps, done_ps);
    return true;
}

/* --- capacities --- */

typedef struct {
    int64_t time_ps, instance;
    int64_t amount;   /* used from then on, or no longer: negative */
    int64_t capacity; /* of a change of capacity; -1: none */
    int64_t order;    /* of changes at one time */
} Use;

typedef struct {
    const Check *check;
    GArray *uses;
    int64_t *first_instance; /* [rows + 1] */
} Uses;

static int compare_uses(const void *a, const void *b)
{
    const Use *x = a, *y = b;
    if (x->instance != y->instance)
        return x->instance < y->instance ? -1 : 1;
    if (x->time_ps != y->time_ps)
        return x->time_ps < y->time_ps ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static int64_t instances_of(const Uses *u, int row)
{
    const SimResource *resource = &u->check->program->resources[row];
    return resource->instance_of_rank != NULL ? resource->instances : u->check->result->ranks;
}

static int64_t instance_of(const Uses *u, const SimShare *share, int rank)
{
    const SimResource *resource = &u->check->program->resources[share->resource];
    int64_t number = share->instance > 0                  ? share->instance - 1
                     : resource->instance_of_rank != NULL ? resource->instance_of_rank[rank]
                                                          : rank;
    return number < 0 ? -1 : u->first_instance[share->resource] + number;
}

/* Rounded down; a crawl at the smallest rate, which the engine grants where nothing is left, counts for nothing. */
static int64_t used_at(const Uses *u, const SimShare *share, int64_t rate)
{
    const int64_t grain =
        u->check->program->rate_grain > 0 ? u->check->program->rate_grain : SIM_FULL_RATE / 1024;
    if (share->mode == SIM_SHARE_RESERVED)
        return share->amount;
    if (rate <= grain)
        return 0;
    return share->amount / SIM_FULL_RATE * rate + share->amount % SIM_FULL_RATE * rate / SIM_FULL_RATE;
}

static void add_use(Uses *u, int64_t instance, int64_t from_ps, int64_t until_ps, int64_t amount)
{
    const Use begin = {from_ps, instance, amount, -1, 0}, end = {until_ps, instance, -amount, -1, 0};
    if (amount == 0 || from_ps == until_ps || instance < 0)
        return;
    g_array_append_val(u->uses, begin);
    g_array_append_val(u->uses, end);
}

static void add_span(Uses *u, const SimSpan *span)
{
    const Check *c = u->check;
    const SimWork *work = &c->program->works[span->work];
    const SimShare *share;
    for (int k = 0; (share = sim_work_share(work, k)) != NULL; k++) {
        const int64_t instance = instance_of(u, share, span->rank);
        int64_t end = 0, at_ps = span->start_ps, rate = SIM_FULL_RATE;
        for (int64_t i = first_change(c, span, &end); i < end && c->rates[i]->time_ps < span->end_ps; i++) {
            add_use(u, instance, at_ps, c->rates[i]->time_ps, used_at(u, share, rate));
            at_ps = c->rates[i]->time_ps;
            rate = c->rates[i]->rate;
        }
        add_use(u, instance, at_ps, span->end_ps, used_at(u, share, rate));
    }
}

static void add_capacity_changes(Uses *u)
{
    const SimProgram *program = u->check->program;
    for (int row = 0; row < program->resource_count; row++) {
        for (int64_t i = 0; i < instances_of(u, row); i++) {
            const Use whole = {0, u->first_instance[row] + i, 0, program->resources[row].capacity, 0};
            g_array_append_val(u->uses, whole);
        }
    }
    for (int64_t k = 0; k < program->capacity_event_count; k++) {
        const SimCapacityEvent *event = &program->capacity_events[k];
        for (int64_t i = 0; i < instances_of(u, event->resource); i++) {
            const Use change = {event->time_ps, u->first_instance[event->resource] + i, 0, event->capacity,
                                k + 1};
            if (event->instance < 0 || event->instance == i)
                g_array_append_val(u->uses, change);
        }
    }
}

static bool check_uses(const Uses *u, GError **error)
{
    const SimProgram *program = u->check->program;
    int64_t used = 0, capacity = 0;
    int row = 0;
    for (guint i = 0; i < u->uses->len; i++) {
        const Use *use = &g_array_index(u->uses, Use, i), *next = use + 1;
        used += use->amount;
        capacity = use->capacity >= 0 ? use->capacity : capacity;
        while (use->instance >= u->first_instance[row + 1])
            row++;
        if (i + 1 < u->uses->len && next->instance == use->instance && next->time_ps == use->time_ps)
            continue;
        if (used > capacity)
            return sim_check_fail(
                error, "at %" PRId64 " ps ops use %" PRId64 " of \"%s\" %" PRId64 ", which has %" PRId64,
                use->time_ps, used, program->resources[row].name, use->instance - u->first_instance[row],
                capacity);
    }
    return true;
}

bool sim_check_capacities(const Check *c, GError **error)
{
    const SimProgram *program = c->program;
    Uses u = {.check = c,
              .uses = g_array_new(FALSE, FALSE, sizeof(Use)),
              .first_instance = ORR_ARENA_NEW(c->arena, int64_t, program->resource_count + 1)};
    for (int row = 0; row < program->resource_count; row++)
        u.first_instance[row + 1] = u.first_instance[row] + instances_of(&u, row);
    add_capacity_changes(&u);
    for (int64_t i = 0; i < c->result->span_count; i++)
        add_span(&u, &c->result->spans[i]);
    if (u.uses->len > 0)
        qsort(u.uses->data, u.uses->len, sizeof(Use), compare_uses);
    const bool ok = check_uses(&u, error);
    g_array_free(u.uses, TRUE);
    return ok;
}

/* --- tiers --- */

static int64_t bytes_in_tier(const SimProgram *program, const int64_t *bytes, int tier)
{
    int kinds = 0;
    const SimMemKind *rows = sim_program_mem_kinds(program, &kinds);
    int64_t sum = 0;
    for (int kind = 0; kind < kinds; kind++)
        sum += rows[kind].tier == tier ? bytes[kind] : 0;
    return sum;
}

/* [instances] Most bytes that each instance of a tier holds. */
static int64_t *tier_peaks(const Check *c, int tier, const SimTier *row, int32_t *ret_instances)
{
    const SimResult *result = c->result;
    const int32_t instances = row->instance_of_rank != NULL ? row->instances : result->ranks;
    int64_t *of_rank = ORR_ARENA_NEW(c->arena, int64_t, result->ranks);
    int64_t *held = ORR_ARENA_NEW(c->arena, int64_t, instances);
    int64_t *peak = ORR_ARENA_NEW(c->arena, int64_t, instances);
    int64_t first = 0;
    for (int64_t i = 0; i < result->level_count; i++) {
        const SimLevel *level = &result->levels[i];
        const int32_t at = row->instance_of_rank != NULL ? row->instance_of_rank[level->rank] : level->rank;
        if (at >= 0) {
            const int64_t bytes = bytes_in_tier(c->program, level->bytes, tier);
            held[at] += bytes - of_rank[level->rank];
            of_rank[level->rank] = bytes;
        }
        if (i + 1 < result->level_count && result->levels[i + 1].time_ps == level->time_ps)
            continue;
        for (; first <= i; first++) {
            const int32_t rank = result->levels[first].rank;
            const int32_t own = row->instance_of_rank != NULL ? row->instance_of_rank[rank] : rank;
            if (own >= 0)
                peak[own] = MAX(peak[own], held[own]);
        }
    }
    *ret_instances = instances;
    return peak;
}

static bool check_tier(const Check *c, int tier, const SimTier *row, GError **error)
{
    int32_t instances = 0;
    const int64_t *reported = c->result->tier_peak_bytes[tier], *peak = tier_peaks(c, tier, row, &instances);
    for (int32_t i = 0; i < instances; i++) {
        if (row->capacity_bytes > 0 && peak[i] > row->capacity_bytes)
            return sim_check_fail(error, "%s %d holds %" PRId64 " bytes, more than its %" PRId64, row->name,
                                  i, peak[i], row->capacity_bytes);
        if (reported != NULL && peak[i] != reported[i])
            return sim_check_fail(error, "%s %d reports a peak of %" PRId64 " bytes, its levels say %" PRId64,
                                  row->name, i, reported[i], peak[i]);
    }
    return true;
}

void sim_program_unbounded(SimProgram *program, OrrArena *arena)
{
    SimTier *tiers = ORR_ARENA_NEW(arena, SimTier, program->tier_count);
    for (int i = 0; i < program->tier_count; i++) {
        tiers[i] = program->tiers[i];
        tiers[i].capacity_bytes = 0;
    }
    program->tiers = tiers;
}

bool sim_run_overfills(const SimProgram *program, const SimResult *result)
{
    const Check check = {.program = program, .result = result, .arena = orr_arena_new()};
    bool over = false;
    int tiers = 0;
    const SimTier *rows = sim_program_tiers(program, &tiers);
    for (int tier = 0; tier < tiers; tier++) {
        int32_t instances = 0;
        const int64_t *peak =
            rows[tier].capacity_bytes > 0 ? tier_peaks(&check, tier, &rows[tier], &instances) : NULL;
        for (int32_t i = 0; i < instances; i++)
            over = over || peak[i] > rows[tier].capacity_bytes;
    }
    orr_arena_free(check.arena);
    return over;
}

bool sim_check_tiers(const Check *c, GError **error)
{
    int tiers = 0;
    const SimTier *rows = sim_program_tiers(c->program, &tiers);
    for (int tier = 0; tier < tiers; tier++) {
        if ((rows[tier].capacity_bytes > 0 || c->result->tier_peak_bytes[tier] != NULL) &&
            !check_tier(c, tier, &rows[tier], error))
            return false;
    }
    return true;
}
