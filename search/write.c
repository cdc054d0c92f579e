/* search/write.c - a search's answer as JSON and CSV; docs/SEARCH.md has the meaning of every key. */
#include <string.h>

#include "answer/answer.h"
#include "base/text.h"
#include "report/parts.h"
#include "search/axes.h"
#include "search/hardware.h"
#include "search/limits.h"
#include "search/mixed.h"
#include "search/plain.h"
#include "search/walk.h"
#include "search/write_internal.h"
#include "spec/notes.h"

/* --- what "auto" became --- */

static void write_list(OrrJsonWriter *w, const char *key, const int *numbers, int count)
{
    if (count == 0)
        return;
    orr_jw_begin(w, key, '[');
    for (int i = 0; i < count; i++)
        orr_jw_int(w, NULL, numbers[i]);
    orr_jw_end(w, ']');
}

static void write_dealt(OrrJsonWriter *w, const Spec *asked, const Spec *chosen)
{
    int stages = 0, replicas = 0;
    g_autofree int *layers = search_mixed_layers(asked, chosen, &stages),
                   *microbatches = search_mixed_microbatches(asked, chosen, &replicas);
    write_list(w, "stage_layers", layers, stages);
    write_list(w, "replica_microbatches", microbatches, replicas);
}

/* Members of one object of the scenario, by the axes whose keys begin with its name. */
static void write_section(OrrJsonWriter *w, const char *section, const Spec *asked, const Spec *chosen)
{
    int count = 0;
    const SearchAxis *axes = search_axes(&count);
    for (int i = 0; i < count; i++)
        if (g_str_has_prefix(axes[i].key, section) && axes[i].key[strlen(section)] == '.' &&
            !axes[i].inexact && search_axis_is_set(&axes[i], asked, chosen))
            search_axis_write(&axes[i], w, search_axis_member(&axes[i]), chosen);
}

static bool section_is_auto(const char *section, const Spec *asked)
{
    int count = 0;
    const SearchAxis *axes = search_axes(&count);
    for (int i = 0; i < count; i++)
        if (g_str_has_prefix(axes[i].key, section) && search_axis_is_auto(&axes[i], asked))
            return true;
    return false;
}

void search_write_choice(OrrJsonWriter *w, const Spec *asked, const Spec *chosen)
{
    static const char *const sections[] = {"training", "parallel", "execution", "offload"};
    for (gsize i = 0; i < G_N_ELEMENTS(sections); i++) {
        if (strcmp(sections[i], "offload") == 0 && !section_is_auto(sections[i], asked))
            continue;
        orr_jw_begin(w, sections[i], '{');
        write_section(w, sections[i], asked, chosen);
        if (strcmp(sections[i], "parallel") == 0)
            write_dealt(w, asked, chosen);
        orr_jw_end(w, '}');
    }
}

/* --- points --- */

static bool write_report(OrrJsonWriter *w, const Spec *spec, const SpecSource *source,
                         const SearchResult *result, GError **error)
{
    const AnswerAsk ask = {.run = {.analytic = true},
                           .residuals = result->residuals,
                           .own = result->own,
                           .own_count = result->own_count,
                           .assumed = result->assumed,
                           .where = "search"};
    OrrArena *arena = orr_arena_new();
    Report report;
    bool ok = answer_ask(spec, source, &ask, arena, &report, error);
    if (ok) {
        g_autoptr(GString) text = g_string_new(NULL);
        report_write_json(&report, text);
        OrrJsonDoc *doc = orr_json_parse(text->str, text->len, "report", error);
        ok = doc != NULL;
        if (ok)
            orr_jw_node(w, "report", orr_json_root(doc));
        orr_json_free(doc);
    }
    orr_arena_free(arena);
    return ok;
}

typedef struct Writing {
    OrrJsonWriter *w;
    const SearchResult *result;
    const SpecSource *source;
    Spec *scratch;
} Writing;

/* Of the scenario's tokens: at one number of GPUs all follow the step. */
static void write_campaign(OrrJsonWriter *w, const SearchCampaign *campaign)
{
    if (!(campaign->days > 0))
        return;
    orr_jw_number(w, "days", campaign->days);
    orr_jw_number(w, "gpu_hours", campaign->gpu_hours);
    if (campaign->usd > 0)
        orr_jw_number(w, "usd", campaign->usd);
    if (campaign->kwh > 0)
        orr_jw_number(w, "kwh", campaign->kwh);
    orr_jw_number(w, "effective_days", campaign->effective_days);
}

void search_write_figures(OrrJsonWriter *w, const SearchResult *result, const SearchRun *run)
{
    ReportTime times[REPORT_TIME_COUNT];
    orr_jw_ps(w, "step_s", run->step_ps);
    orr_jw_number(w, "mfu", run->mfu);
    orr_jw_number(w, "bubble_frac", run->bubble_frac);
    orr_jw_number(w, "peak_bytes", run->peak_bytes);
    orr_jw_number(w, "reserved_bytes", run->reserved_bytes);
    if (run->host_bytes > 0)
        orr_jw_number(w, "host_bytes", run->host_bytes);
    const SearchCampaign campaign = search_campaign(result, run);
    write_campaign(w, &campaign);
    report_times(run->part_ps, run->bubble_ps, run->late_ps, times);
    orr_jw_begin(w, "time", '{');
    for (int i = 0; i < REPORT_TIME_COUNT; i++)
        orr_jw_ps(w, times[i].key, times[i].ps);
    orr_jw_end(w, '}');
}

static void write_short(OrrJsonWriter *w, const Spec *spec, const SearchRun *run)
{
    orr_jw_number(w, "short_bytes", run->short_bytes);
    orr_jw_text(w, "limit", search_limits_short_of(spec, run));
}

typedef enum { FIGURES, REPORTS, MISSES } PointStyle;

/* Row `index` of `runs`, of `result` (the search itself, or that of what is plain). */
static bool write_point(Writing *writing, const SearchResult *result, const SearchRun *run, PointStyle style,
                        bool recommended, GError **error)
{
    OrrJsonWriter *w = writing->w;
    search_point_dealt(result->space, run->id, writing->scratch);
    orr_jw_begin(w, NULL, '{');
    if (style == REPORTS) {
        orr_jw_bool(w, "recommended", recommended);
        orr_jw_ps(w, "step_s", run->step_ps);
        orr_jw_number(w, "mfu", run->mfu);
    }
    search_write_choice(w, writing->result->space->spec, writing->scratch);
    if (style == MISSES)
        write_short(w, result->space->spec, run);
    if (style == REPORTS && !write_report(w, writing->scratch, writing->source, writing->result, error))
        return false;
    if (style != REPORTS)
        search_write_figures(w, result, run);
    orr_jw_end(w, '}');
    return true;
}

static bool write_points(Writing *writing, const char *key, const GArray *runs, PointStyle style,
                         GError **error)
{
    const SearchResult *result = writing->result;
    const int recommended = style == REPORTS && runs->len > 0 ? search_recommended(result) : 0;
    orr_jw_begin(writing->w, key, '[');
    for (guint i = 0; i < runs->len; i++)
        if (!write_point(writing, result, &g_array_index(runs, SearchRun, i), style, (int)i == recommended,
                         error))
            return false;
    if (recommended < 0 &&
        !write_point(writing, &result->plain->result,
                     &g_array_index(result->plain->result.best, SearchRun, 0), style, true, error))
        return false;
    orr_jw_end(writing->w, ']');
    return true;
}

void search_write_certificate(OrrJsonWriter *w, const SearchResult *result)
{
    orr_jw_int(w, "space", result->points);
    orr_jw_begin(w, "pruned", '{');
    for (int kind = 0; kind < SEARCH_BOUND_COUNT; kind++)
        orr_jw_int(w, search_bound_key((SearchBoundKind)kind), result->pruned[kind]);
    orr_jw_end(w, '}');
    orr_jw_begin(w, "limits", '{');
    for (int i = 0; i < SEARCH_USER_LIMITS; i++)
        if (result->space->beyond[i] > 0)
            orr_jw_int(w, search_limit_field((SearchUserLimit)i), result->space->beyond[i]);
    orr_jw_end(w, '}');
    orr_jw_int(w, "evaluated", result->evaluated);
    orr_jw_int(w, "survivors", result->survivors);
    orr_jw_int(w, "simulated", result->simulated);
    orr_jw_int(w, "seeds", result->seeds);
    orr_jw_int(w, "refused", result->refused);
    orr_jw_int(w, "open", result->open);
    orr_jw_begin(w, "loose", '{');
    for (int kind = 0; kind < SEARCH_BOUND_COUNT; kind++) {
        const SearchSlack *loose = &result->loose[kind];
        if (loose->survivors == 0)
            continue;
        orr_jw_begin(w, search_bound_key((SearchBoundKind)kind), '{');
        orr_jw_int(w, "survivors", loose->survivors);
        orr_jw_int(w, "simulated", loose->simulated);
        orr_jw_number(w, "below_frac",
                      loose->simulated > 0 ? loose->below_frac / (double)loose->simulated : 0);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, '}');
    orr_jw_number(w, "seconds", result->seconds);
    orr_jw_bool(w, "proved", result->proved);
    orr_jw_number(w, "gap_frac", result->gap_frac);
    if (!result->proved)
        orr_jw_ps(w, "least_open_s", result->least_open_ps);
}

bool search_write_json(const SearchResult *result, const SpecSource *source, GString *out, GError **error)
{
    OrrJsonWriter writer;
    OrrJsonWriter *w = &writer;
    g_autofree Spec *scratch = g_new(Spec, 1);
    Writing writing = {w, result, source, scratch};
    orr_jw_init(w, out, false);
    orr_jw_begin(w, NULL, '{');
    orr_jw_int(w, "schema", 1);
    orr_jw_text(w, "scenario", result->space->spec->name);
    g_autofree char *wrong = spec_chip_note(result->space->spec);
    if (wrong != NULL)
        orr_jw_text(w, "note", wrong);
    if (result->by != SEARCH_FOR_STEP)
        orr_jw_text(w, "for", search_goal_word(result->by));
    search_write_certificate(w, result);
    orr_jw_number(w, "reserve_bytes", result->space->spec->search.reserve_memory_bytes);
    orr_jw_number(w, "families_proved", result->families_proved);
    orr_jw_bool(w, "pareto_proved", result->pareto_proved);
    orr_jw_int(w, "pareto_simulated", result->pareto_simulated);
    if (!write_points(&writing, "best", result->best, REPORTS, error) ||
        !write_points(&writing, "families", result->families, FIGURES, error) ||
        !write_points(&writing, "pareto", result->pareto, FIGURES, error) ||
        !write_points(&writing, "nearest_misses", result->misses, MISSES, error))
        return false;
    orr_jw_begin(w, "sensitivity", '[');
    for (int i = 0; i < SEARCH_SENSITIVITIES; i++) {
        const SearchSensitivity *one = &result->sensitivity[i];
        if (one->step_ps == 0)
            continue;
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "what", one->what);
        orr_jw_number(w, "more_frac", 0.1);
        orr_jw_ps(w, "step_s", one->step_ps);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
    orr_jw_end(w, '}');
    g_string_append_c(out, '\n');
    return true;
}

/* --- CSV --- */

static void add_cell(GPtrArray *cells, const char *format, double value, bool known)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_ptr_array_add(cells, g_strdup(known ? g_ascii_formatd(text, sizeof text, format, value) : ""));
}

static void add_axes(GPtrArray *cells, const Spec *chosen)
{
    int count = 0;
    const SearchAxis *axes = search_axes(&count);
    for (int i = 0; i < count; i++)
        if (search_axis_column(&axes[i]) != NULL)
            g_ptr_array_add(cells, chosen != NULL ? search_axis_cell(&axes[i], chosen)
                                                  : g_strdup(search_axis_column(&axes[i])));
}

/* `run` NULL: the headers. Days are empty where the scenario does not say its tokens, or what fails. */
static GPtrArray *csv_line(const SearchResult *result, const SearchRun *run, guint rank, Spec *scratch)
{
    static const char *const first[] = {"rank", "step_s", "mfu", "reserved_bytes"};
    GPtrArray *cells = g_ptr_array_new_with_free_func(g_free);
    if (run == NULL) {
        for (gsize i = 0; i < G_N_ELEMENTS(first); i++)
            g_ptr_array_add(cells, g_strdup(first[i]));
        add_axes(cells, NULL);
        g_ptr_array_add(cells, g_strdup("days"));
        g_ptr_array_add(cells, g_strdup("effective_days"));
        return cells;
    }
    const SearchCampaign campaign = search_campaign(result, run);
    search_point_spec(result->space, run->id, scratch);
    g_ptr_array_add(cells, g_strdup_printf("%u", rank));
    g_ptr_array_add(cells, g_strdup_printf("%" G_GINT64_FORMAT ".%012" G_GINT64_FORMAT,
                                           (gint64)(run->step_ps / 1000000000000),
                                           (gint64)(run->step_ps % 1000000000000)));
    add_cell(cells, "%.6f", run->mfu, true);
    add_cell(cells, "%.0f", run->reserved_bytes, true);
    add_axes(cells, scratch);
    add_cell(cells, "%.4f", campaign.days, campaign.days > 0);
    add_cell(cells, "%.4f", campaign.effective_days, campaign.effective_days > 0);
    return cells;
}

void search_write_csv(const SearchResult *result, GString *out)
{
    g_autofree Spec *scratch = g_new(Spec, 1);
    g_autoptr(GPtrArray) headers = csv_line(result, NULL, 0, NULL);
    OrrTable *table = orr_table_new((const char *const *)headers->pdata, (int)headers->len);
    for (guint i = 0; i < result->best->len; i++) {
        g_autoptr(GPtrArray) cells =
            csv_line(result, &g_array_index(result->best, SearchRun, i), i + 1, scratch);
        orr_table_row(table, (const char *const *)cells->pdata);
    }
    orr_table_csv(table, out);
    orr_table_free(table);
}
