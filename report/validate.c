/* report/validate.c - replays measurement rows and sums up their errors. See validate.h. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "report/validate.h"

typedef struct Replay {
    const char *path;
    const char *const *sets;
    ValidateChoose choose;
    ValidateProgress progress;
    void *progress_data;
    ValidateLedger *ledger;
    int done, total;
} Replay;

static void row_free(gpointer data)
{
    ValidateRow *row = data;
    g_free(row->id);
    g_free(row->memory_kind);
    g_free(row->skipped);
    g_free(row->cell);
    g_free(row);
}

static void source_free(gpointer data)
{
    ValidateSource *source = data;
    g_free(source->file);
    g_free(source);
}

void validate_clear(ValidateLedger *ledger)
{
    g_clear_pointer(&ledger->rows, g_ptr_array_unref);
    g_clear_pointer(&ledger->sources, g_ptr_array_unref);
}

static double number_member(const OrrJson *object, const char *key)
{
    const OrrJson *node = object != NULL ? orr_json_member(object, key) : NULL;
    return node != NULL && orr_json_type(node) == ORR_JSON_NUMBER ? orr_json_number(node) : 0;
}

static const char *text_member(const OrrJson *object, const char *key)
{
    const OrrJson *node = object != NULL ? orr_json_member(object, key) : NULL;
    return node != NULL && orr_json_type(node) == ORR_JSON_TEXT ? orr_json_text(node) : NULL;
}

static char *cell_of(const Spec *spec)
{
    const SpecModel *model = &spec->model;
    return g_strdup_printf("%d %d %d %d %d %d %d | %s | %d | %d %d", model->layers, model->hidden,
                           model->heads, model->kv_heads, model->ffn_hidden, model->vocab, model->moe.experts,
                           spec->cluster.accelerator.name, spec_gpus(spec), spec->training.global_batch,
                           spec->training.sequence_length);
}

/* Allocated: what tensors take. Reserved: what the caching allocator holds. Device: that and the context. */
static double memory_of_kind(const Report *report, const char *kind)
{
    const double context = report->spec->execution.framework.context_bytes;
    if (g_strcmp0(kind, "reserved") == 0) {
        return report->reserved_bytes - context;
    }
    return g_strcmp0(kind, "device") == 0 ? report->reserved_bytes : report->peak_bytes;
}

static void compare(const Report *report, ValidateRow *row)
{
    row->fits = report->fits;
    row->predicted_step_s = (double)report->step_ps * 1e-12;
    if (row->measured_step_s > 0) {
        row->error_frac = row->predicted_step_s / row->measured_step_s - 1;
    }
    if (row->measured_memory_bytes > 0) {
        row->predicted_memory_bytes = memory_of_kind(report, row->memory_kind);
        row->memory_error_frac = row->predicted_memory_bytes / row->measured_memory_bytes - 1;
    }
    if (report->interval_coverage > 0 && row->measured_step_s > 0) {
        row->has_interval = true;
        row->inside_interval =
            row->measured_step_s >= report->interval_low_s && row->measured_step_s <= report->interval_high_s;
    }
}

static bool simulate(const Replay *replay, const OrrJson *scenario, const char *where, ValidateRow *row,
                     GError **error)
{
    const ReportOptions options = {0};
    Spec loaded, chosen;
    Report report;
    if (!spec_load_json(scenario, where, replay->sets, true, &loaded, NULL, error) ||
        !replay->choose(&loaded, &chosen, error)) {
        return false;
    }
    row->cell = cell_of(&chosen);
    OrrArena *arena = orr_arena_new();
    const bool ok = report_run(&chosen, NULL, &options, arena, &report, error);
    if (ok) {
        compare(&report, row);
    }
    orr_arena_free(arena);
    return ok;
}

static void replay_row(Replay *replay, const OrrJson *node, int index)
{
    const OrrJson *measured = orr_json_member(node, "measured");
    const OrrJson *scenario = orr_json_member(node, "scenario");
    const char *id = text_member(node, "id"), *kind = text_member(measured, "memory_kind");
    ValidateRow *row = g_new0(ValidateRow, 1);
    char *where = g_strdup_printf("%s: row %d (%s)", replay->path, index + 1, id != NULL ? id : "no id");
    GError *error = NULL;
    row->id = g_strdup(id != NULL ? id : where);
    row->source = (int)replay->ledger->sources->len - 1;
    row->full_confidence = g_strcmp0(text_member(node, "confidence"), "full") == 0;
    row->measured_step_s = number_member(measured, "step_s");
    row->measured_memory_bytes = number_member(measured, "peak_memory_bytes");
    row->memory_uncertainty_frac = number_member(measured, "memory_uncertainty_frac");
    row->memory_kind = row->measured_memory_bytes > 0 ? g_strdup(kind != NULL ? kind : "allocated") : NULL;
    if (scenario == NULL) {
        row->skipped = g_strdup("the row has no \"scenario\"");
    } else if (row->measured_step_s <= 0 && row->measured_memory_bytes <= 0) {
        row->skipped = g_strdup("neither measured.step_s nor measured.peak_memory_bytes is given");
    } else if (!simulate(replay, scenario, where, row, &error)) {
        row->skipped = g_strdup(error->message);
        g_clear_error(&error);
    }
    g_free(where);
    g_ptr_array_add(replay->ledger->rows, row);
    replay->done += 1;
    if (replay->progress != NULL) {
        replay->progress(replay->done, replay->total, replay->progress_data);
    }
}

static bool replay_document(Replay *replay, const OrrJsonDoc *doc, GError **error)
{
    const OrrJson *root = orr_json_root(doc);
    int index = 0;
    if (orr_json_type(root) != ORR_JSON_LIST) {
        g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT, "%s: is %s; a measurement file is a list of rows",
                    replay->path, orr_json_type_name(root));
        return false;
    }
    for (const OrrJson *node = orr_json_first(root); node != NULL; node = orr_json_next(node), index++) {
        if (orr_json_type(node) != ORR_JSON_OBJECT) {
            g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT,
                        "%s: row %d is %s; a row is an object with \"id\", \"scenario\" and \"measured\"",
                        replay->path, index + 1, orr_json_type_name(node));
            return false;
        }
    }
    ValidateSource *source = g_new0(ValidateSource, 1);
    source->file = g_path_get_basename(replay->path);
    g_ptr_array_add(replay->ledger->sources, source);
    index = 0;
    for (const OrrJson *node = orr_json_first(root); node != NULL; node = orr_json_next(node), index++) {
        replay_row(replay, node, index);
    }
    return true;
}

/* --- statistics --- */

typedef struct Selection {
    const ValidateLedger *ledger;
    int source; /* -1: all */
    bool full_only;
} Selection;

static bool selects(const Selection *selection, const ValidateRow *row)
{
    return (selection->source < 0 || row->source == selection->source) &&
           (!selection->full_only || row->full_confidence);
}

static int compare_doubles(gconstpointer a, gconstpointer b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Linear interpolation between order statistics. */
static double quantile(const GArray *sorted, double q)
{
    if (sorted->len == 0) {
        return NAN;
    }
    const double at = q * (sorted->len - 1);
    const guint low = (guint)floor(at), high = MIN(low + 1, sorted->len - 1);
    const double frac = at - low;
    return (1 - frac) * g_array_index(sorted, double, low) + frac * g_array_index(sorted, double, high);
}

/* Rank agreement over pairs of one cell whose measured times differ by more than 5 %. */
static void kendall(const Selection *selection, ValidateStats *stats)
{
    const GPtrArray *rows = selection->ledger->rows;
    int agree = 0;
    for (guint i = 0; i < rows->len; i++) {
        for (guint j = i + 1; j < rows->len; j++) {
            const ValidateRow *a = rows->pdata[i], *b = rows->pdata[j];
            if (!selects(selection, a) || !selects(selection, b) || a->source != b->source ||
                a->predicted_step_s <= 0 || b->predicted_step_s <= 0 || a->measured_step_s <= 0 ||
                b->measured_step_s <= 0 || strcmp(a->cell, b->cell) != 0 ||
                fabs(a->measured_step_s / b->measured_step_s - 1) <= 0.05) {
                continue;
            }
            const bool same =
                (a->measured_step_s < b->measured_step_s) == (a->predicted_step_s < b->predicted_step_s);
            agree += same ? 1 : -1;
            stats->kendall_pairs += 1;
        }
    }
    stats->kendall_tau = stats->kendall_pairs > 0 ? (double)agree / stats->kendall_pairs : NAN;
}

static void finish_errors(GArray *errors, ValidateStats *stats)
{
    double sum = 0;
    g_array_sort(errors, compare_doubles);
    for (guint i = 0; i < errors->len; i++) {
        sum += g_array_index(errors, double, i);
    }
    stats->mape = errors->len > 0 ? sum / errors->len : NAN;
    stats->median = quantile(errors, 0.5);
    stats->p90 = quantile(errors, 0.9);
    stats->worst = quantile(errors, 1);
}

static ValidateStats statistics(const Selection *selection)
{
    ValidateStats stats = {0};
    GArray *errors = g_array_new(FALSE, FALSE, sizeof(double));
    double bias = 0, memory = 0;
    for (guint i = 0; i < selection->ledger->rows->len; i++) {
        const ValidateRow *row = selection->ledger->rows->pdata[i];
        if (!selects(selection, row)) {
            continue;
        }
        stats.rows += 1;
        stats.skipped += row->skipped != NULL;
        if (row->skipped == NULL && row->measured_step_s > 0) {
            const double absolute = fabs(row->error_frac);
            g_array_append_val(errors, absolute);
            bias += row->error_frac;
        }
        if (row->skipped == NULL && row->memory_kind != NULL) {
            memory += fabs(row->memory_error_frac);
            stats.memory_rows += 1;
        }
    }
    stats.bias = errors->len > 0 ? bias / errors->len : NAN;
    stats.memory_mape = stats.memory_rows > 0 ? memory / stats.memory_rows : NAN;
    finish_errors(errors, &stats);
    kendall(selection, &stats);
    g_array_free(errors, TRUE);
    return stats;
}

static double coverage(const ValidateLedger *ledger)
{
    int with = 0, inside = 0;
    for (guint i = 0; i < ledger->rows->len; i++) {
        const ValidateRow *row = ledger->rows->pdata[i];
        with += row->has_interval;
        inside += row->has_interval && row->inside_interval;
    }
    return with > 0 ? (double)inside / with : NAN;
}

static void sum_up(ValidateLedger *ledger)
{
    double macro = 0;
    int counted = 0;
    for (guint i = 0; i < ledger->sources->len; i++) {
        ValidateSource *source = ledger->sources->pdata[i];
        source->all = statistics(&(Selection){ledger, (int)i, false});
        source->full = statistics(&(Selection){ledger, (int)i, true});
        if (!isnan(source->all.mape)) {
            macro += source->all.mape;
            counted += 1;
        }
    }
    ledger->overall = statistics(&(Selection){ledger, -1, false});
    ledger->macro_mape = counted > 0 ? macro / counted : NAN;
    ledger->interval_coverage = coverage(ledger);
}

static int rows_in(GPtrArray *documents)
{
    int total = 0;
    for (guint i = 0; i < documents->len; i++) {
        total += orr_json_count(orr_json_root(documents->pdata[i]));
    }
    return total;
}

bool validate_files(const char *const *paths, int count, const char *const *sets, ValidateChoose choose,
                    ValidateProgress progress, void *progress_data, ValidateLedger *ret_ledger,
                    GError **error)
{
    ValidateLedger ledger = {.rows = g_ptr_array_new_with_free_func(row_free),
                             .sources = g_ptr_array_new_with_free_func(source_free)};
    GPtrArray *documents = g_ptr_array_new_with_free_func((GDestroyNotify)orr_json_free);
    Replay replay = {.sets = sets,
                     .choose = choose,
                     .progress = progress,
                     .progress_data = progress_data,
                     .ledger = &ledger};
    bool ok = true;
    for (int i = 0; ok && i < count; i++) {
        OrrJsonDoc *doc = orr_json_read_file(paths[i], error);
        ok = doc != NULL;
        if (ok) {
            g_ptr_array_add(documents, doc);
        }
    }
    replay.total = ok ? rows_in(documents) : 0;
    for (int i = 0; ok && i < count; i++) {
        replay.path = paths[i];
        ok = replay_document(&replay, documents->pdata[i], error);
    }
    g_ptr_array_unref(documents);
    if (!ok) {
        validate_clear(&ledger);
        return false;
    }
    sum_up(&ledger);
    *ret_ledger = ledger;
    return true;
}
