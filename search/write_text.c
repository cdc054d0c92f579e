/* search/write_text.c - a search's answer as a page of text, at most 100 columns. */
#include "answer/answer.h"
#include "base/text.h"
#include "report/groups.h"
#include "report/page.h"
#include "report/parts.h"
#include "search/hardware.h"
#include "search/limits.h"
#include "search/plain.h"
#include "search/walk.h"
#include "search/write_internal.h"
#include "spec/notes.h"

enum { LABEL_COLUMN = 14, POINT_COLUMN = 31, SURVIVORS_EXPLAINED = 2000 };

static void append_entry(GString *out, const char *label, const char *format, ...) G_GNUC_PRINTF(3, 4);

static void append_entry(GString *out, const char *label, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    report_page_entry(out, label, LABEL_COLUMN, text);
}

static const char *whole(char *text, int64_t value)
{
    return report_page_whole(text, (double)value);
}

/* The bound that most of those points rest on that were simulated for nothing. */
static void append_loose(GString *out, const SearchResult *result)
{
    char points[ORR_TEXT_SIZE], simulated[ORR_TEXT_SIZE];
    int most = 0;
    for (int kind = 1; kind < SEARCH_BOUND_COUNT; kind++)
        if (result->loose[kind].survivors > result->loose[most].survivors)
            most = kind;
    const SearchSlack *loose = &result->loose[most];
    if (MAX(result->survivors, result->simulated) <= SURVIVORS_EXPLAINED || loose->survivors == 0)
        return;
    append_entry(
        out, "loose bound",
        "bound \"%s\" was the largest of %s points and ruled out none of them; it was %.1f %% below the "
        "simulated time (mean of %s)",
        search_bound_key((SearchBoundKind)most), whole(points, loose->survivors),
        loose->simulated > 0 ? 100 * loose->below_frac / (double)loose->simulated : 0,
        whole(simulated, loose->simulated));
}

/* What no other point is. */
static const char *better_words(SearchFor by)
{
    switch (by) {
    case SEARCH_FOR_DAYS:
        return "takes fewer days";
    case SEARCH_FOR_COST:
        return "costs less";
    case SEARCH_FOR_ENERGY:
        return "takes less energy";
    default:
        return "is faster";
    }
}

static void append_proof(GString *out, const SearchResult *result)
{
    char seconds[ORR_TEXT_SIZE], points[ORR_TEXT_SIZE];
    if (result->proved) {
        append_entry(out, "proof", "no other point of the space %s; gap 0", better_words(result->by));
        return;
    }
    append_entry(out, "undecided", "%s points: the time was over", whole(points, result->open));
    if (result->best->len == 0)
        append_entry(out, "proof", "none: nothing that fits was found in time");
    else if (result->gap_frac >= 1)
        append_entry(
            out, "proof",
            "none yet, the gap is all of the %s: the time was over before the other points were bounded",
            search_goal_word(result->by));
    else if (result->by != SEARCH_FOR_STEP)
        append_entry(out, "proof", "no undecided point has more than %.1f %% less %s than the best (the gap)",
                     100 * result->gap_frac, search_goal_word(result->by));
    else if (result->gap_frac > 0)
        append_entry(
            out, "proof",
            "no undecided point is more than %.1f %% faster than the best (the gap): none takes less than %s",
            100 * result->gap_frac, orr_text_seconds(seconds, (double)result->least_open_ps * 1e-12));
    else
        append_entry(out, "proof", "the best is the fastest, the runners-up may not be; gap 0");
}

/* A choice of schedules that the stages a rank leave no choice. */
static void append_only_schedule(GString *out, const SearchSpace *space)
{
    const SpecParallel *parallel = &space->spec->parallel;
    const SearchPartition *only = NULL;
    if ((int)parallel->schedule != SPEC_AUTO || parallel->virtual_stages == SPEC_AUTO)
        return;
    for (int i = 0; i < space->partitions_count; i++)
        for (int k = 0; k < space->partitions[i].count; k++) {
            const SearchPartition *one = &space->partitions[i].partition[k];
            if (space->partitions[i].pipeline > 1 && only != NULL && one->schedule != only->schedule)
                return;
            only = space->partitions[i].pipeline > 1 ? one : only;
        }
    if (only != NULL)
        append_entry(out, "schedule",
                     "only %s is left to choose from: parallel.virtual_stages is %d; give it \"auto\" too",
                     spec_word(&spec_words_schedule, (int)only->schedule), parallel->virtual_stages);
}

static void append_certificate(GString *out, const SearchResult *result)
{
    char points[ORR_TEXT_SIZE], count[ORR_TEXT_SIZE], seconds[ORR_TEXT_SIZE];
    g_autofree char *processes =
        result->processes > 1 ? g_strdup_printf(" of each of %d processes", result->processes) : g_strdup("");
    append_entry(out, "space", "%s points, decided in %s on %d thread%s%s", whole(points, result->points),
                 orr_text_seconds(seconds, result->seconds), result->jobs, result->jobs == 1 ? "" : "s",
                 processes);
    append_only_schedule(out, result->space);
    bool first = true;
    for (int kind = 0; kind < SEARCH_BOUND_COUNT; kind++) {
        if (result->pruned[kind] == 0)
            continue;
        append_entry(out, first ? "left out" : "", "%14s  %-9s %s", whole(count, result->pruned[kind]),
                     search_bound_key((SearchBoundKind)kind), search_bound_words((SearchBoundKind)kind));
        first = false;
    }
    for (int i = 0; i < SEARCH_USER_LIMITS; i++)
        if (result->space->beyond[i] > 0)
            append_entry(out, "not allowed", "%14s  %s", whole(count, result->space->beyond[i]),
                         search_limit_field((SearchUserLimit)i));
    g_autofree char *seeds =
        result->seeds > 0 ? g_strdup_printf(" (a bound had ruled out %" G_GINT64_FORMAT " of them too)",
                                            (gint64)result->seeds)
                          : g_strdup("");
    append_entry(out, "simulated", "%s%s; points checked singly: %s", whole(count, result->simulated), seeds,
                 whole(points, result->evaluated));
    append_loose(out, result);
    if (result->refused > 0)
        append_entry(out, "refused", "%s by the simulator", whole(count, result->refused));
    append_proof(out, result);
}

static void append_point(GString *out, const char *lead, const SearchResult *result, const SearchRun *run)
{
    g_autofree char *point = search_describe(result, run->id);
    char seconds[ORR_TEXT_SIZE], bytes[ORR_TEXT_SIZE];
    g_autofree char *label =
        g_strdup_printf("%s %-9s %-10s", lead, orr_text_seconds(seconds, (double)run->step_ps * 1e-12),
                        orr_text_bytes(bytes, run->reserved_bytes));
    report_page_entry(out, label, POINT_COLUMN, point);
    if (run->host_bytes > 0)
        g_string_append_printf(out, "%*s%s a GPU in the host's memory\n", POINT_COLUMN, "",
                               orr_text_bytes(bytes, run->host_bytes));
}

/* The part of the step in which a runner-up loses most, and, where that is far more than it is slower by, the one in which
 * it wins most. */
static void append_reason(GString *out, const SearchRun *best, const SearchRun *run)
{
    ReportTime mine[REPORT_TIME_COUNT], theirs[REPORT_TIME_COUNT];
    char more[ORR_TEXT_SIZE], part[ORR_TEXT_SIZE];
    int largest = 0, least = 0;
    report_times(best->part_ps, best->bubble_ps, best->late_ps, theirs);
    report_times(run->part_ps, run->bubble_ps, run->late_ps, mine);
    if (run->step_ps == best->step_ps) {
        g_string_append_printf(out, "%*sas fast\n", POINT_COLUMN, "");
        return;
    }
    if (run->step_ps < best->step_ps) {
        g_string_append_printf(out, "%*sa faster step\n", POINT_COLUMN, "");
        return;
    }
    for (int i = 1; i < REPORT_TIME_COUNT; i++) {
        if (mine[i].ps - theirs[i].ps > mine[largest].ps - theirs[largest].ps)
            largest = i;
        if (mine[i].ps - theirs[i].ps < mine[least].ps - theirs[least].ps)
            least = i;
    }
    const int64_t lost_ps = mine[largest].ps - theirs[largest].ps;
    g_autoptr(GString) line = g_string_new(NULL);
    g_string_printf(line, "slower by %s: %s %+.1f %% of the step (%s)",
                    orr_text_seconds(more, (double)(run->step_ps - best->step_ps) * 1e-12),
                    mine[largest].label, 100.0 * (double)lost_ps / (double)best->step_ps,
                    orr_text_seconds(part, (double)lost_ps * 1e-12));
    if (lost_ps > 2 * (run->step_ps - best->step_ps) && mine[least].ps < theirs[least].ps)
        g_string_append_printf(line, ", %s %s less", mine[least].label,
                               orr_text_seconds(part, (double)(theirs[least].ps - mine[least].ps) * 1e-12));
    report_page_entry(out, "", POINT_COLUMN, line->str);
}

/* The interval around the best: that of `run`. */
static void append_interval(GString *out, const SearchResult *result, const SearchRun *run)
{
    const AnswerAsk ask = {.run = {.analytic = true},
                           .residuals = result->residuals,
                           .own = result->own,
                           .own_count = result->own_count};
    char low[ORR_TEXT_SIZE], high[ORR_TEXT_SIZE];
    g_autofree Spec *spec = g_new(Spec, 1);
    OrrArena *arena = orr_arena_new();
    Report report;
    search_point_dealt(result->space, run->id, spec);
    const bool ran = result->residuals != NULL && answer_ask(spec, NULL, &ask, arena, &report, NULL);
    if (ran && report.interval_coverage > 0) {
        g_autofree char *line = g_strdup_printf(
            "%s to %s (%.0f %% of comparable published runs)", orr_text_seconds(low, report.interval_low_s),
            orr_text_seconds(high, report.interval_high_s), 100 * report.interval_coverage);
        report_page_entry(out, "", POINT_COLUMN, line);
    }
    orr_arena_free(arena);
}

/* "12.5 days (12.3 days of computing), 4,500,000 USD for 1 T tokens", as `run` and `plan` have them; of the scenario's
 * tokens; nothing where none are given. */
static void append_campaign(GString *out, const SearchResult *result, const SearchRun *run)
{
    const Spec *spec = result->space->spec;
    const SearchCampaign campaign = search_campaign(result, run);
    char days[ORR_TEXT_SIZE], computing[ORR_TEXT_SIZE], cost[ORR_TEXT_SIZE], tokens[ORR_TEXT_SIZE],
        kwh[ORR_TEXT_SIZE];
    if (!(campaign.days > 0))
        return;
    orr_text_seconds(computing, campaign.days * 86400);
    orr_text_seconds(days, campaign.effective_days * 86400);
    const bool effective = campaign.effective_days > 0;
    g_autofree char *energy = result->by == SEARCH_FOR_ENERGY
                                  ? g_strdup_printf(", %s kWh", report_page_whole(kwh, campaign.kwh))
                                  : g_strdup("");
    g_autofree char *line = g_strdup_printf(
        "%s%s%s of computing%s, %s %s%s for %s tokens", effective ? days : "", effective ? " (" : "",
        computing, effective ? ")" : "",
        report_page_whole(cost, campaign.usd > 0 ? campaign.usd : campaign.gpu_hours),
        campaign.usd > 0 ? "USD" : "GPU-hours", energy, orr_text_count(tokens, spec->training.tokens));
    report_page_entry(out, "", POINT_COLUMN, line);
}

static bool same_run(const SearchRun *a, const SearchRun *b)
{
    return search_id_compare(&a->id, &b->id) == 0;
}

/* How much worse a run is than the best, of what the search goes by. */
static double beyond(const SearchResult *result, const SearchRun *best, const SearchRun *run)
{
    return result->by == SEARCH_FOR_STEP ? (double)(run->step_ps - best->step_ps) / (double)best->step_ps
                                         : run->figure / best->figure - 1;
}

/* What the best list holds besides the rows shown: neighbours within a family. */
static void append_neighbours(GString *out, const SearchResult *result)
{
    guint others = 0;
    const char *first = result->by == SEARCH_FOR_STEP ? "fastest" : "best";
    const SearchRun *best = &g_array_index(result->best, SearchRun, 0), *last = best;
    for (guint i = 0; i < result->best->len; i++) {
        const SearchRun *run = &g_array_index(result->best, SearchRun, i);
        bool shown = false;
        for (guint k = 0; k < result->families->len; k++)
            shown |= same_run(run, &g_array_index(result->families, SearchRun, k));
        others += !shown;
        last = run;
    }
    if (others == 0)
        return;
    g_autofree char *line = g_strdup_printf(
        "%u more of the %u %s share a layout with one above and lie within %.2f %% of the best "
        "(--format json "
        "lists them); layouts behind the %u %s are the best that were simulated",
        others, result->best->len, first, 100.0 * beyond(result, best, last), result->best->len, first);
    report_page_entry(out, "", 4, line);
}

static void append_recommended(GString *out, const SearchResult *result)
{
    const int row = search_recommended(result);
    const SearchResult *from = row >= 0 ? result : &result->plain->result;
    const SearchRun *best = &g_array_index(result->best, SearchRun, 0);
    const SearchRun *run = &g_array_index(from->best, SearchRun, (guint)MAX(0, row));
    if (row == 0)
        return;
    g_string_append(out, "\nRecommended: needs no extra options of the framework\n");
    append_point(out, "   *", from, run);
    append_reason(out, best, run);
    append_campaign(out, from, run);
}

/* Which rows other points of their layouts, that no bound was asked about, may beat. */
static void append_unproved(GString *out, const SearchResult *result)
{
    const int first = result->families_proved + 1, last = (int)result->families->len;
    if (!result->proved || first > last)
        return;
    g_autofree char *rows = first == last ? g_strdup_printf("row %d is", last)
                                          : g_strdup_printf("rows %d to %d are", first, last);
    append_entry(
        out, "not proved",
        "%s beyond the %u best: the %s simulated of that layout; others of it, which the proof of the "
        "best leaves out, may be %s",
        rows, result->best->len, result->by == SEARCH_FOR_STEP ? "fastest" : "best",
        result->by == SEARCH_FOR_STEP ? "faster" : "better");
}

/* One row a layout: the fastest of its family. */
static void append_best(GString *out, const SearchResult *result)
{
    g_string_append(out, "\nBest          step      memory\n");
    const SearchRun *best = &g_array_index(result->best, SearchRun, 0);
    for (guint i = 0; i < result->families->len; i++) {
        const SearchRun *run = &g_array_index(result->families, SearchRun, i);
        g_autofree char *lead = g_strdup_printf("%4u", i + 1);
        append_point(out, lead, result, run);
        if (i > 0) {
            append_reason(out, best, run);
            if (result->by != SEARCH_FOR_STEP)
                append_campaign(out, result, run);
            continue;
        }
        append_interval(out, result, run);
        char tokens[ORR_TEXT_SIZE];
        g_autofree char *rates =
            g_strdup_printf("MFU %.1f %%, bubble %.1f %%, %s tokens/s a GPU", 100 * run->mfu,
                            100 * run->bubble_frac, report_page_whole(tokens, run->tokens_per_s_per_gpu));
        report_page_entry(out, "", POINT_COLUMN, rates);
        append_campaign(out, result, run);
    }
    append_neighbours(out, result);
    append_unproved(out, result);
    append_recommended(out, result);
}

/* What of the memory may be used, and what is kept free. */
static void append_memory(GString *out, const SearchResult *result)
{
    const Spec *spec = result->space->spec;
    const char *field = NULL;
    char most[ORR_TEXT_SIZE], all[ORR_TEXT_SIZE];
    const double limit = search_limits_capacity_bytes(spec, &field);
    const double whole_bytes = search_hardware_most_bytes(spec);
    if (limit < whole_bytes)
        append_entry(out, "memory", "at most %s of %s a GPU (%s; --memory-reserve changes what is kept free)",
                     orr_text_bytes(most, limit), orr_text_bytes(all, whole_bytes), field);
    else
        append_entry(out, "memory", "all %s of a GPU, nothing kept free", orr_text_bytes(all, whole_bytes));
}

/* Whether two runs are of one layout family. */
static bool same_layout(const SearchResult *result, const SearchRun *a, const SearchRun *b)
{
    g_autofree Spec *specs = g_new(Spec, 2);
    search_point_spec(result->space, a->id, &specs[0]);
    search_point_spec(result->space, b->id, &specs[1]);
    return search_same_family(&specs[0].parallel, &specs[1].parallel);
}

/* Of those that trade time for memory, each clearly smaller than the one before it: neighbours of one layout by more,
 * and always the smallest. */
static void append_front(GString *out, const SearchResult *result)
{
    const double whole_bytes = search_hardware_most_bytes(result->space->spec);
    const SearchRun *shown = NULL;
    if (result->pareto->len == 0)
        return;
    g_string_append(out, "\nPareto        step      memory");
    if (report_page_width() >= 88)
        g_string_append(out, result->pareto_proved
                                 ? ": no other point is both faster and smaller (proved)"
                                 : ": faster or smaller than all others that were simulated");
    g_string_append_c(out, '\n');
    for (guint i = 0; i < result->pareto->len; i++) {
        const SearchRun *run = &g_array_index(result->pareto, SearchRun, i);
        const bool last = i + 1 == result->pareto->len;
        const double step_frac = shown != NULL && !last && same_layout(result, shown, run) ? 0.2 : 0.03;
        if (shown != NULL && run->reserved_bytes > shown->reserved_bytes - step_frac * whole_bytes)
            continue;
        append_point(out, "    ", result, run);
        shown = run;
    }
}

static void append_misses(GString *out, const SearchResult *result)
{
    const Spec *spec = result->space->spec;
    char bytes[ORR_TEXT_SIZE];
    if (result->misses->len == 0)
        return;
    g_string_append_c(out, '\n');
    report_page_entry(out, "", 0, "Nearest configurations that would not be slower and do not fit");
    for (guint i = 0; i < result->misses->len; i++) {
        const SearchRun *run = &g_array_index(result->misses, SearchRun, i);
        bool known = false; /* the nearest of its layout stands for the others */
        for (guint k = 0; k < i && !known; k++)
            known = same_layout(result, &g_array_index(result->misses, SearchRun, k), run);
        if (known)
            continue;
        const bool edge = !run->short_of_host && !run->short_of_tier &&
                          spec->search.reserve_memory_bytes > 0 &&
                          run->reserved_bytes <= search_hardware_most_bytes(spec);
        append_point(out, "    ", result, run);
        g_autofree char *line =
            g_strdup_printf("short by %s of %s%s", orr_text_bytes(bytes, run->short_bytes),
                            search_limits_short_of(spec, run), edge ? "; at the edge without it" : "");
        report_page_entry(out, "", POINT_COLUMN, line);
    }
}

/* Where the software's profile names no schedules, those of others were tried too. */
static void append_schedules(GString *out, const SearchResult *result)
{
    g_autofree Spec *chosen = g_new(Spec, 1);
    const Spec *spec = result->space->spec;
    if (result->best->len == 0 || (int)spec->parallel.schedule != SPEC_AUTO ||
        spec->execution.framework.pipeline.schedules != 0 || spec->search.schedule != 0)
        return;
    search_point_spec(result->space, g_array_index(result->best, SearchRun, 0).id, chosen);
    const SimSchedule *schedule = sim_schedule_at((int)chosen->parallel.schedule);
    if (chosen->parallel.pipeline == 1 || sim_schedule_has(schedule, SIM_TRAIT_COMMON))
        return;
    g_autofree char *note = g_strdup_printf(
        "every one was tried; whether %s has %s is not known. --set "
        "'search.schedule=[\"%s\",\"%s\"]' keeps to what most software has",
        spec->execution.framework.name, schedule->name, sim_schedule_at(sim_schedule_usual(1))->name,
        sim_schedule_at(sim_schedule_usual(2))->name);
    append_entry(out, "schedules", "%s", note);
}

static void append_sensitivity(GString *out, const SearchResult *result)
{
    const SearchRun *best = result->best->len > 0 ? &g_array_index(result->best, SearchRun, 0) : NULL;
    char seconds[ORR_TEXT_SIZE];
    if (best == NULL)
        return;
    g_string_append(out, "\nTen percent more of\n");
    for (int i = 0; i < SEARCH_SENSITIVITIES; i++) {
        const SearchSensitivity *one = &result->sensitivity[i];
        if (one->step_ps > 0)
            append_entry(out, one->what, "%s (%+.2f %%)",
                         orr_text_seconds(seconds, (double)one->step_ps * 1e-12),
                         100.0 * (double)(one->step_ps - best->step_ps) / (double)best->step_ps);
    }
}

void search_write_text(const SearchResult *result, GString *out)
{
    const Spec *spec = result->space->spec;
    char gpus[ORR_TEXT_SIZE];
    report_page_entry(out, "", 0, spec->name[0] != '\0' ? spec->name : "Search");
    g_string_append_c(out, '\n');
    g_autofree char *kinds = report_groups_words(spec);
    append_entry(out, "machine", "%s x %s, %s", whole(gpus, spec_gpus(spec)), kinds, spec->model.name);
    g_autofree char *wrong = spec_chip_note(spec);
    if (wrong != NULL)
        append_entry(out, "note", "%s", wrong);
    append_memory(out, result);
    if (result->by != SEARCH_FOR_STEP)
        append_entry(out, "decided by", "%s", search_goal_word(result->by));
    append_certificate(out, result);
    append_schedules(out, result);
    if (result->best->len > 0)
        append_best(out, result);
    else if (result->proved)
        g_string_append(out, "\nNo configuration fits in memory.\n");
    append_front(out, result);
    append_misses(out, result);
    append_sensitivity(out, result);
}
