/* search/write.c - a search's answer as JSON and CSV; docs/SEARCH.md has the meaning of every key. */
#include <string.h>

#include "answer/answer.h"
#include "base/text.h"
#include "spec/notes.h"
#include "report/parts.h"
#include "search/hardware.h"
#include "search/limits.h"
#include "search/mixed.h"
#include "search/plain.h"
#include "search/walk.h"
#include "search/write_internal.h"

/* --- what "auto" became --- */

static void write_int(OrrJsonWriter *w, const char *key, int asked, int value)
{
    if (asked == SPEC_AUTO)
        orr_jw_int(w, key, value);
}

static void write_recompute(OrrJsonWriter *w, const SpecRecompute *recompute)
{
    const char *mode = spec_word(&spec_words_recompute, (int)recompute->mode);
    const bool every = recompute->mode == SPEC_RECOMPUTE_SELECTIVE_LAYER;
    if (recompute->layers == 0 && !every) {
        orr_jw_text(w, "recompute", mode);
        return;
    }
    orr_jw_begin(w, "recompute", '{');
    orr_jw_text(w, "mode", mode);
    orr_jw_int(w, every ? "every_n_layers" : "layers", every ? recompute->every_n_layers : recompute->layers);
    orr_jw_end(w, '}');
}

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

static void write_parallel(OrrJsonWriter *w, const Spec *all_asked, const Spec *all_chosen)
{
    const SpecParallel *asked = &all_asked->parallel, *chosen = &all_chosen->parallel;
    orr_jw_begin(w, "parallel", '{');
    write_int(w, "tensor", asked->tensor, chosen->tensor);
    if (asked->sequence_parallel == SPEC_AUTO)
        orr_jw_bool(w, "sequence_parallel", chosen->sequence_parallel == 1);
    write_int(w, "context", asked->context, chosen->context);
    write_int(w, "pipeline", asked->pipeline, chosen->pipeline);
    write_int(w, "virtual_stages", asked->virtual_stages, chosen->virtual_stages);
    if ((int)asked->schedule == SPEC_AUTO)
        orr_jw_text(w, "schedule", spec_word(&spec_words_schedule, (int)chosen->schedule));
    write_int(w, "data", asked->data, chosen->data);
    write_int(w, "expert", asked->expert, chosen->expert);
    write_int(w, "expert_tensor", asked->expert_tensor, chosen->expert_tensor);
    if ((int)asked->moe_dispatcher == SPEC_AUTO)
        orr_jw_text(w, "moe_dispatcher", spec_word(&spec_words_dispatcher, (int)chosen->moe_dispatcher));
    if (strcmp(asked->order, "auto") == 0)
        orr_jw_text(w, "order", chosen->order);
    write_int(w, "zero", asked->zero, chosen->zero);
    write_int(w, "zero_group_gpus", asked->zero_group_gpus, chosen->zero_group_gpus);
    if (asked->embedding_as_layer != chosen->embedding_as_layer)
        orr_jw_bool(w, "embedding_as_layer", chosen->embedding_as_layer);
    if (asked->loss_as_layer != chosen->loss_as_layer)
        orr_jw_bool(w, "loss_as_layer", chosen->loss_as_layer);
    write_dealt(w, all_asked, all_chosen);
    orr_jw_end(w, '}');
}

static void write_execution(OrrJsonWriter *w, const SpecExecution *asked, const SpecExecution *chosen)
{
    orr_jw_begin(w, "execution", '{');
    if ((int)asked->attention == SPEC_AUTO)
        orr_jw_text(w, "attention", spec_word(&spec_words_attention, (int)chosen->attention));
    if ((asked->overlap & SPEC_OVERLAP_AUTO) != 0) {
        orr_jw_begin(w, "overlap", '[');
        for (int i = 0; i < spec_words_overlap.count; i++)
            if ((chosen->overlap & 1u << i) != 0)
                orr_jw_text(w, NULL, orr_word(&spec_words_overlap, i));
        orr_jw_end(w, ']');
    }
    orr_jw_end(w, '}');
}

void search_write_choice(OrrJsonWriter *w, const Spec *asked, const Spec *chosen)
{
    orr_jw_begin(w, "training", '{');
    write_int(w, "micro_batch", asked->training.micro_batch, chosen->training.micro_batch);
    if ((int)asked->training.recompute.mode == SPEC_AUTO)
        write_recompute(w, &chosen->training.recompute);
    if (asked->search.precision != 0)
        orr_jw_text(w, "precision", spec_word(&spec_words_precision, (int)chosen->training.precision));
    orr_jw_end(w, '}');
    write_parallel(w, asked, chosen);
    write_execution(w, &asked->execution, &chosen->execution);
    const bool scheme = (int)asked->offload.scheme == SPEC_AUTO;
    if (asked->offload.activation_layers == SPEC_AUTO || scheme) {
        orr_jw_begin(w, "offload", '{');
        if (scheme)
            orr_jw_text(w, "scheme", spec_word(&spec_words_offload, (int)chosen->offload.scheme));
        if (scheme && spec_offloads_states(&chosen->offload))
            orr_jw_number(w, "ratio", chosen->offload.ratio);
        if (asked->offload.activation_layers == SPEC_AUTO)
            orr_jw_int(w, "activation_layers", chosen->offload.activation_layers);
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
    search_write_certificate(w, result);
    orr_jw_number(w, "reserve_bytes", result->space->spec->search.reserve_memory_bytes);
    orr_jw_number(w, "families_proved", result->families_proved);
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

/* Two cells, empty where the scenario does not say its tokens or what fails. */
static void append_days(GString *line, const SearchResult *result, const SearchRun *run)
{
    const SearchCampaign campaign = search_campaign(result, run);
    const double days = campaign.days, effective = campaign.effective_days;
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf(line, ",%s", days > 0 ? g_ascii_formatd(text, sizeof text, "%.4f", days) : "");
    g_string_append_printf(line, ",%s",
                           effective > 0 ? g_ascii_formatd(text, sizeof text, "%.4f", effective) : "");
}

void search_write_csv(const SearchResult *result, GString *out)
{
    static const char *const headers[] = {"rank",
                                          "step_s",
                                          "mfu",
                                          "reserved_bytes",
                                          "tensor",
                                          "sequence_parallel",
                                          "context",
                                          "pipeline",
                                          "virtual_stages",
                                          "schedule",
                                          "data",
                                          "expert",
                                          "expert_tensor",
                                          "moe_dispatcher",
                                          "order",
                                          "zero",
                                          "zero_group_gpus",
                                          "micro_batch",
                                          "recompute",
                                          "precision",
                                          "activation_layers",
                                          "attention",
                                          "embedding_as_layer",
                                          "loss_as_layer",
                                          "overlap",
                                          "offload_scheme",
                                          "offload_ratio",
                                          "days",
                                          "effective_days"};
    enum { COLUMNS = G_N_ELEMENTS(headers) };
    g_autofree Spec *spec = g_new(Spec, 1);
    OrrTable *table = orr_table_new(headers, COLUMNS);
    for (guint i = 0; i < result->best->len; i++) {
        const SearchRun *run = &g_array_index(result->best, SearchRun, i);
        search_point_spec(result->space, run->id, spec);
        const SpecParallel *p = &spec->parallel;
        g_autofree char *recompute = spec_recompute_words(&spec->training.recompute);
        g_autoptr(GString) line = g_string_new(NULL);
        char mfu[G_ASCII_DTOSTR_BUF_SIZE], reserved[G_ASCII_DTOSTR_BUF_SIZE];
        g_string_append_printf(line, "%u,%" G_GINT64_FORMAT ".%012" G_GINT64_FORMAT ",%s,%s,", i + 1,
                               run->step_ps / 1000000000000, run->step_ps % 1000000000000,
                               g_ascii_formatd(mfu, sizeof mfu, "%.6f", run->mfu),
                               g_ascii_formatd(reserved, sizeof reserved, "%.0f", run->reserved_bytes));
        g_string_append_printf(line, "%d,%d,%d,%d,%d,%s,%d,%d,%d,%s,%s,%d,%d,%d,%s,%s,%d,%s,%d,%d,",
                               p->tensor, p->sequence_parallel, p->context, p->pipeline, p->virtual_stages,
                               spec_word(&spec_words_schedule, (int)p->schedule), p->data, p->expert,
                               p->expert_tensor, spec_word(&spec_words_dispatcher, (int)p->moe_dispatcher),
                               p->order, p->zero, p->zero_group_gpus, spec->training.micro_batch, recompute,
                               spec_word(&spec_words_precision, (int)spec->training.precision),
                               spec->offload.activation_layers,
                               spec_word(&spec_words_attention, (int)spec->execution.attention),
                               p->embedding_as_layer, p->loss_as_layer);
        for (int bit = 0, first = 1; bit < spec_words_overlap.count; bit++)
            if ((spec->execution.overlap & 1u << bit) != 0) {
                g_string_append_printf(line, "%s%s", first != 0 ? "" : " ",
                                       orr_word(&spec_words_overlap, bit));
                first = 0;
            }
        g_string_append_printf(line, ",%s,%g", spec_word(&spec_words_offload, (int)spec->offload.scheme),
                               spec->offload.ratio);
        append_days(line, result, run);
        g_auto(GStrv) cells = g_strsplit(line->str, ",", COLUMNS);
        orr_table_row(table, (const char *const *)cells);
    }
    orr_table_csv(table, out);
    orr_table_free(table);
}
