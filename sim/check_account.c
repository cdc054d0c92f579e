/* sim/check_account.c - the figures of each rank follow from its spans: time adds up, bytes and memory too. */
#include "sim/checked_run.h"

#include <inttypes.h>
#include <stdlib.h>

static bool check_equal(int rank, const char *what, int64_t reported, int64_t found, GError **error)
{
    if (reported != found)
        return sim_check_fail(error, "rank %d reports %s %" PRId64 ", its spans say %" PRId64, rank, what,
                              reported, found);
    return true;
}

typedef struct {
    int64_t start_ps, end_ps, first_start_ps, last_end_ps, busy_ps, scale_up_bytes, scale_out_bytes;
    int64_t part_ps[SIM_PART_COUNT]; /* of compute-stream ops at full rate */
    bool computed;
} Sums;

static void add_span(const Check *c, const SimSpan *span, Sums *sums)
{
    const SimWork *work = &c->program->works[span->work];
    sums->start_ps = MIN(sums->start_ps, span->start_ps);
    sums->end_ps = MAX(sums->end_ps, span->end_ps);
    sums->scale_up_bytes += work->scale_up_bytes;
    sums->scale_out_bytes += work->scale_out_bytes;
    if (span->stream != SIM_STREAM_COMPUTE)
        return;
    if (!sums->computed)
        sums->first_start_ps = span->start_ps;
    sums->computed = true;
    sums->last_end_ps = span->end_ps;
    sums->busy_ps += span->end_ps - span->start_ps;
    for (int part = 0; part < SIM_PART_COUNT; part++)
        sums->part_ps[part] += work->part_ps[part];
}

/* Its compute takes less than its ops say. */
static bool is_fast(const SimProgram *program, int rank)
{
    return program->rank_speed != NULL && program->rank_speed[rank] > SIM_FULL_RATE;
}

static bool check_rank(const Check *c, int r, const Sums *sums, GError **error)
{
    const SimRankResult *rank = &c->result->rank[r];
    int64_t total_ps = rank->idle_ps, parts_ps = 0;
    for (int part = 0; part < SIM_PART_COUNT; part++) {
        total_ps += rank->part_ps[part];
        parts_ps += rank->part_ps[part];
        if (rank->part_ps[part] < sums->part_ps[part] && !is_fast(c->program, r))
            return sim_check_fail(error, "rank %d reports less of part %d than its ops have", r, part);
    }
    if (rank->idle_ps < 0 || parts_ps < rank->busy_ps)
        return sim_check_fail(error, "rank %d is busy longer than its parts", r);
    return check_equal(r, "a step of (ps)", total_ps, c->result->step_ps, error) &&
           check_equal(r, "a start at (ps)", rank->start_ps,
                       c->program->skewed && sums->start_ps < INT64_MAX ? sums->start_ps : 0, error) &&
           check_equal(r, "an end at (ps)", rank->end_ps, sums->end_ps, error) &&
           check_equal(r, "a first start at (ps)", rank->first_start_ps, sums->first_start_ps, error) &&
           check_equal(r, "a last end at (ps)", rank->last_end_ps, sums->last_end_ps, error) &&
           check_equal(r, "busy time (ps)", rank->busy_ps, sums->busy_ps, error) &&
           check_equal(r, "bytes sent inside the domain", rank->scale_up_bytes, sums->scale_up_bytes,
                       error) &&
           check_equal(r, "bytes sent outside", rank->scale_out_bytes, sums->scale_out_bytes, error);
}

bool sim_check_times(const Check *c, GError **error)
{
    const SimResult *result = c->result;
    Sums *sums = ORR_ARENA_NEW(c->arena, Sums, result->ranks);
    for (int r = 0; r < result->ranks; r++)
        sums[r].start_ps = INT64_MAX;
    for (int64_t i = 0; i < result->span_count; i++)
        add_span(c, &result->spans[i], &sums[result->spans[i].rank]);
    int64_t step_ps = 0, end_ps = 0;
    int critical = 0;
    for (int r = 0; r < result->ranks; r++) {
        if (!check_rank(c, r, &sums[r], error))
            return false;
        end_ps = MAX(end_ps, sums[r].end_ps);
        if (sums[r].end_ps - result->rank[r].start_ps > step_ps) {
            step_ps = sums[r].end_ps - result->rank[r].start_ps;
            critical = r;
        }
    }
    if (result->end_ps != end_ps)
        return sim_check_fail(error, "the last op ends at %" PRId64 " ps, not %" PRId64, end_ps,
                              result->end_ps);
    if (result->step_ps != step_ps || result->critical_rank != critical)
        return sim_check_fail(error,
                              "the step takes %" PRId64 " ps on rank %d, not %" PRId64 " ps on rank %d",
                              step_ps, critical, result->step_ps, result->critical_rank);
    return true;
}

typedef struct {
    int64_t time_ps;
    int32_t rank;
    const int64_t *delta_bytes;
} Change;

static int compare_changes(const void *a, const void *b)
{
    const Change *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->time_ps > y->time_ps) - (x->time_ps < y->time_ps);
}

static int compare_levels(const void *a, const void *b)
{
    const SimLevel *x = *(const SimLevel *const *)a, *y = *(const SimLevel *const *)b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->time_ps > y->time_ps) - (x->time_ps < y->time_ps);
}

/* What every op took and gave back, by rank and time. */
static Change *list_changes(const Check *c, int64_t *ret_count)
{
    Change *changes = ORR_ARENA_NEW(c->arena, Change, 2 * c->result->span_count);
    int64_t count = 0;
    for (int r = 0; r < c->result->ranks; r++) {
        for (int s = 0; s < SIM_MAX_STREAMS; s++) {
            const SimList *list = sim_check_list(c, r, s);
            for (int64_t i = 0; i < list->count; i++) {
                const int32_t op = list->instrs[i].op;
                if (op == SIM_ONLY_WAITS || c->program->ops[op].mem < 0)
                    continue;
                const SimSpan *span = sim_check_span(c, r, s, sim_check_ordinals(c, r, s)[i]);
                const SimMemDelta *mem = &c->program->mems[c->program->ops[op].mem];
                changes[count++] = (Change){span->start_ps, r, mem->start_bytes};
                changes[count++] = (Change){span->end_ps, r, mem->end_bytes};
            }
        }
    }
    qsort(changes, (size_t)count, sizeof *changes, compare_changes);
    *ret_count = count;
    return changes;
}

static bool check_ends_as_begun(const Check *c, int r, const int64_t *bytes, int64_t peak_bytes,
                                GError **error)
{
    const SimRankResult *rank = &c->result->rank[r];
    const int64_t *static_bytes = c->program->class_list[r / c->program->replicas].static_bytes;
    int64_t at_peak_bytes = 0;
    int kind_count = 0;
    const SimMemKind *kinds = sim_program_mem_kinds(c->program, &kind_count);
    for (int kind = 0; kind < kind_count; kind++) {
        at_peak_bytes += kinds[kind].tier == SIM_TIER_GPU ? rank->at_peak_bytes[kind] : 0;
        if (bytes[kind] != static_bytes[kind] || rank->final_bytes[kind] != static_bytes[kind])
            return sim_check_fail(error,
                                  "rank %d ends with %" PRId64 " bytes of kind %d, it began with %" PRId64, r,
                                  bytes[kind], kind, static_bytes[kind]);
    }
    return check_equal(r, "a peak of (bytes)", rank->peak_bytes, peak_bytes, error) &&
           check_equal(r, "a peak made of (bytes)", at_peak_bytes, peak_bytes, error);
}

/* Replays one rank's changes beside its recorded levels; both cursors move on. */
static bool check_rank_memory(const Check *c, int r, const Change **change, const Change *end,
                              const SimLevel ***level, const SimLevel *const *last, GError **error)
{
    int kind_count = 0;
    const SimMemKind *kinds = sim_program_mem_kinds(c->program, &kind_count);
    int64_t bytes[SIM_MAX_MEMS], peak_bytes = INT64_MIN, host_bytes = 0, time_ps = 0;
    for (int kind = 0; kind < kind_count; kind++)
        bytes[kind] = c->program->class_list[r / c->program->replicas].static_bytes[kind];
    for (;;) {
        int64_t total_bytes = 0;
        for (; *change < end && (*change)->rank == r && (*change)->time_ps == time_ps; (*change)++) {
            for (int kind = 0; kind < kind_count; kind++)
                bytes[kind] += (*change)->delta_bytes[kind];
        }
        if (*level == last || (**level)->rank != r || (**level)->time_ps != time_ps)
            return sim_check_fail(error, "rank %d has no memory level at %" PRId64 " ps", r, time_ps);
        for (int kind = 0; kind < kind_count; kind++) {
            total_bytes += kinds[kind].tier == SIM_TIER_GPU ? bytes[kind] : 0;
            if (bytes[kind] < 0)
                return sim_check_fail(error,
                                      "rank %d holds %" PRId64 " bytes of kind %d at %" PRId64
                                      " ps: something is given back or read before it arrives",
                                      r, bytes[kind], kind, time_ps);
            if ((**level)->bytes[kind] != bytes[kind])
                return sim_check_fail(error,
                                      "rank %d holds %" PRId64 " bytes of kind %d at %" PRId64
                                      " ps, its level says %" PRId64,
                                      r, bytes[kind], kind, time_ps, (**level)->bytes[kind]);
        }
        peak_bytes = MAX(peak_bytes, total_bytes);
        int64_t now_bytes = 0;
        for (int kind = 0; kind < kind_count; kind++)
            now_bytes += kinds[kind].tier == SIM_TIER_HOST ? bytes[kind] : 0;
        host_bytes = MAX(host_bytes, now_bytes);
        (*level)++;
        if (*change == end || (*change)->rank != r)
            break;
        time_ps = (*change)->time_ps;
    }
    return check_equal(r, "a peak on the host of (bytes)", c->result->rank[r].host_peak_bytes, host_bytes,
                       error) &&
           check_ends_as_begun(c, r, bytes, peak_bytes, error);
}

bool sim_check_memory(const Check *c, GError **error)
{
    int64_t count, levels = c->result->level_count;
    const Change *change = list_changes(c, &count);
    const Change *end = change + count;
    const SimLevel **level = ORR_ARENA_NEW(c->arena, const SimLevel *, levels);
    for (int64_t i = 0; i < levels; i++)
        level[i] = &c->result->levels[i];
    qsort(level, (size_t)levels, sizeof(const SimLevel *), compare_levels);
    const SimLevel *const *last = level + levels;
    for (int r = 0; r < c->result->ranks; r++) {
        if (!check_rank_memory(c, r, &change, end, &level, last, error))
            return false;
    }
    if (level != last)
        return sim_check_fail(error, "%td memory levels too many", last - level);
    return true;
}
