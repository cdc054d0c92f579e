/* search/late.c - see late.h. Tested: cli/test_cli_one_answer.c */
#include "search/late.h"

#include "search/space.h"
#include "search/walk.h"

bool search_is_late(const Spec *spec)
{
    return spec->jitter.given || spec->data.given || spec->training.skipped_steps_frac > 0;
}

/* `like` as in ReportOptions; `ret_report` may be NULL, its lists are gone. */
static void settle_run(const SearchResult *result, const Report *like, SearchRun *run, Report *ret_report)
{
    const ReportOptions options = {.analytic = true, .like = like};
    g_autofree Spec *spec = g_new(Spec, 1);
    OrrArena *arena = orr_arena_new();
    Report report;
    search_point_dealt(result->space, run->id, spec);
    if (report_run(spec, NULL, &options, arena, &report, NULL)) {
        search_run_take_step(&report, run);
        if (ret_report != NULL)
            *ret_report = report;
    }
    orr_arena_free(arena);
}

void search_settle_run(const SearchResult *result, SearchRun *run)
{
    settle_run(result, NULL, run, NULL);
}

/* The run of the same configuration among the best, where it is settled already. */
static const SearchRun *settled(const SearchResult *result, const SearchRun *run)
{
    for (guint i = 0; i < result->best->len; i++) {
        const SearchRun *best = &g_array_index(result->best, SearchRun, i);
        if (search_id_compare(&best->id, &run->id) == 0)
            return best;
    }
    return NULL;
}

static void settle_all(const SearchResult *result, GArray *runs, const Report *like)
{
    for (guint i = 0; i < runs->len; i++) {
        SearchRun *run = &g_array_index(runs, SearchRun, i);
        const SearchRun *best = settled(result, run);
        if (best != NULL)
            *run = *best;
        else
            settle_run(result, like, run, NULL);
    }
}

void search_settle(SearchResult *result, const Spec *asked)
{
    Report first = {0};
    if (!search_is_late(asked) || result->best->len == 0)
        return;
    for (guint i = 0; i < result->best->len; i++)
        settle_run(result, NULL, &g_array_index(result->best, SearchRun, i), i == 0 ? &first : NULL);
    settle_all(result, result->families, NULL);
    settle_all(result, result->pareto, NULL);
    if (first.step_ps == 0)
        return;
    first.spec = asked; /* its own is gone */
    settle_all(result, result->misses, &first);
    for (int i = 0; i < SEARCH_SENSITIVITIES; i++)
        if (result->sensitivity[i].step_ps > 0)
            result->sensitivity[i].step_ps = report_late_like(&first, result->sensitivity[i].step_ps);
}
