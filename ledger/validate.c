/* ledger/validate.c - replays measurement rows and sums up their errors. See validate.h. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "ledger/ablation.h"
#include "ledger/generation.h"
#include "ledger/validate_stats.h"
#include "spec/measurement.h"

typedef struct Replay {
    const char *path;
    const char *const *sets;
    LedgerChoose choose;
    LedgerProgress progress;
    void *progress_data;
    Ledger *ledger;
    LedgerResiduals *shipped; /* NULL: none */
    GHashTable *named;        /* framework_text: the profile that it names, or NULL */
    int done, total;
} Replay;

static void row_free(gpointer data)
{
    LedgerRow *row = data;
    g_free(row->id);
    g_free(row->memory_kind);
    g_free(row->framework);
    g_free(row->skipped);
    g_free(row->cell);
    g_free(row->note);
    g_strfreev(row->said);
    g_free(row);
}

static void source_free(gpointer data)
{
    LedgerSource *source = data;
    g_free(source->file);
    g_free(source);
}

void ledger_clear(Ledger *ledger)
{
    g_clear_pointer(&ledger->rows, g_ptr_array_unref);
    g_clear_pointer(&ledger->sources, g_ptr_array_unref);
    g_clear_pointer(&ledger->residuals, ledger_residuals_free);
}

static char *cell_of(const Spec *spec)
{
    const SpecModel *model = &spec->model;
    return g_strdup_printf("%d %d %d %d %d %d %d | %s | %d | %d %d", model->layers, model->hidden,
                           model->heads, model->kv_heads, model->ffn_hidden, model->vocab, model->moe.experts,
                           spec->cluster.accelerator.name, spec_gpus(spec), spec->training.global_batch,
                           spec->training.sequence_length);
}

/* What the caching allocator holds with its context. A run that wants more than the card has is measured at the card's:
 * the allocator gives cached blocks back, or waits for those that a stream still uses, before it fails. */
static double held_bytes(const Report *report)
{
    return fmax(report->needed_bytes, fmin(report->reserved_bytes, report->capacity_bytes));
}

/* Allocated: what tensors take, unless its software logs what is reserved. Reserved: what the caching allocator holds.
 * Device: that and the context. */
static double memory_of_kind(const Report *report, const char *kind)
{
    const SpecFramework *framework = &report->spec->execution.framework;
    if (g_strcmp0(kind, "reserved") == 0 ||
        (g_strcmp0(kind, "allocated") == 0 && framework->allocator.log_reports_reserved)) {
        return held_bytes(report) - spec_context_bytes(report->spec);
    }
    return g_strcmp0(kind, "device") == 0 ? held_bytes(report) : report->peak_bytes;
}

static void add_residual(LedgerResiduals *residuals, const Report *report, LedgerRow *row)
{
    LedgerResidual residual = ledger_residual_of(report);
    residual.id = row->id;
    residual.source = row->source;
    residual.log_ratio = log(row->measured_step_s / row->predicted_step_s);
    row->residual = (int)residuals->rows->len;
    ledger_residuals_add(residuals, &residual);
}

static void compare_memory(const Report *report, LedgerResiduals *residuals, LedgerRow *row)
{
    const Spec *spec = report->spec;
    row->predicted_memory_bytes = memory_of_kind(report, row->memory_kind);
    row->memory_error_frac = row->predicted_memory_bytes / row->measured_memory_bytes - 1;
    row->framework = g_strdup(spec->execution.framework.name);
    row->capacity_bytes = report->capacity_bytes;
    row->memory_verdict = report->memory_verdict;
    row->reserve_bytes = report->reserve_bytes;
    row->seen_bytes = report->seen_frac * report->capacity_bytes;
    const LedgerMemoryResidual residual = {
        .source = row->source,
        .id = row->id,
        .accelerator = spec->cluster.accelerator.name,
        .framework = row->framework,
        .kind = row->memory_assumed ? "assumed" : row->memory_kind,
        .beyond_frac = (row->measured_memory_bytes - row->predicted_memory_bytes) / row->capacity_bytes};
    ledger_residuals_add_memory(residuals, &residual);
}

static void compare(const Report *report, LedgerResiduals *residuals, LedgerRow *row)
{
    row->fits = report->fits;
    row->predicted_step_s = (double)report->step_ps * 1e-12;
    if (row->measured_step_s > 0) {
        row->error_frac = row->predicted_step_s / row->measured_step_s - 1;
        row->traits = ledger_traits(report);
        add_residual(residuals, report, row);
    }
    if (row->measured_memory_bytes > 0)
        compare_memory(report, residuals, row);
    if (report->interval_coverage > 0 && row->measured_step_s > 0) {
        ledger_set_interval(row, report->interval_low_s, report->interval_high_s);
    }
}

/* The profile that free text names; borrowed, NULL: none. */
static const char *named_by(const Replay *replay, const char *text)
{
    if (text == NULL)
        return NULL;
    if (!g_hash_table_contains(replay->named, text))
        g_hash_table_insert(replay->named, g_strdup(text), ledger_framework_of_text(text));
    return g_hash_table_lookup(replay->named, text);
}

/* The row's overlap is not stated, or the user left it to the software. */
static bool leaves_overlap(const Replay *replay, const OrrJson *execution)
{
    bool leaves = execution == NULL || orr_json_member(execution, "overlap") == NULL;
    for (int i = 0; replay->sets != NULL && replay->sets[i] != NULL; i++)
        leaves = leaves || strcmp(replay->sets[i], "execution.overlap=null") == 0;
    return leaves;
}

/* The row names its software without a generation: its release or its date says which; where overlap is left to it,
 * how it was launched counts too. Before the user's own settings, which win. */
static bool load(const Replay *replay, const OrrJson *scenario, const char *date, const char *where,
                 Spec *ret_spec, GError **error)
{
    const OrrJson *execution = orr_json_member(scenario, "execution");
    const OrrJson *own = orr_json_member(execution, "framework"); /* a profile with keys of the row's own */
    const bool keys = own != NULL && orr_json_type(own) == ORR_JSON_OBJECT;
    const char *stated = keys ? orr_json_text_of(own, "preset", NULL)
                              : orr_json_text_of(execution, "framework", NULL),
               *text = orr_json_text_of(execution, "framework_text", NULL);
    const char *named = named_by(replay, text);
    const char *framework =
        leaves_overlap(replay, execution) ? ledger_framework_launched(stated, text) : stated;
    g_autofree char *month = ledger_software_month(text, date);
    const char *profile = named != NULL ? named : framework;
    g_autofree char *generation =
        profile != NULL && month != NULL ? ledger_framework_of_date(profile, month) : NULL;
    if (generation == NULL && g_strcmp0(profile, stated) != 0)
        generation = g_strdup(profile);
    g_autofree char *first =
        g_strdup_printf("execution.framework%s=\"%s\"", keys ? ".preset" : "", generation);
    g_autoptr(GPtrArray) sets = g_ptr_array_new();
    if (generation != NULL) {
        g_ptr_array_add(sets, first);
    }
    for (int i = 0; replay->sets != NULL && replay->sets[i] != NULL; i++) {
        g_ptr_array_add(sets, (gpointer)replay->sets[i]);
    }
    g_ptr_array_add(sets, NULL);
    return spec_load_json(scenario, where, (const char *const *)sets->pdata, true, ret_spec, NULL, error);
}

static bool simulate(const Replay *replay, const OrrJson *scenario, const char *date, const char *where,
                     LedgerRow *row, GError **error)
{
    const ReportOptions options = {0};
    Spec loaded, chosen;
    Report report;
    if (!load(replay, scenario, date, where, &loaded, error) || !replay->choose(&loaded, &chosen, error)) {
        return false;
    }
    row->cell = cell_of(&chosen);
    OrrArena *arena = orr_arena_new();
    const bool ok = report_run(&chosen, NULL, &options, arena, &report, error);
    if (ok) {
        ledger_interval_fill(replay->shipped, arena, &report);
        ledger_memory_fill(replay->shipped, NULL, &report);
        compare(&report, replay->ledger->residuals, row);
    }
    orr_arena_free(arena);
    return ok;
}

/* The row's figures. One that the field table refuses, such as a misspelt key, leaves a note and what can be read. */
static void take_measured(const OrrJson *node, const char *where, LedgerRow *row)
{
    const OrrJson *measured = orr_json_member(node, "measured");
    SpecMeasurement strict;
    GError *error = NULL;
    if (spec_read_measurement(node, where, &strict, &error)) {
        row->measured_step_s = strict.measured.step_s;
        row->measured_memory_bytes = strict.measured.peak_memory_bytes;
        row->memory_assumed = strict.measured.memory_assumed;
        row->memory_uncertainty_frac = strict.measured.memory_uncertainty_frac;
        return;
    }
    row->measured_step_s = fmax(0, orr_json_number_of(measured, "step_s", 0));
    row->measured_memory_bytes = fmax(0, orr_json_number_of(measured, "peak_memory_bytes", 0));
    row->memory_uncertainty_frac = orr_json_number_of(measured, "memory_uncertainty_frac", 0);
    row->note = g_strdup(error->message);
    g_error_free(error);
}

static void replay_row(Replay *replay, const OrrJson *node, int index)
{
    const OrrJson *measured = orr_json_member(node, "measured");
    const OrrJson *scenario = orr_json_member(node, "scenario");
    const char *id = orr_json_text_of(node, "id", NULL),
               *kind = orr_json_text_of(measured, "memory_kind", NULL);
    LedgerRow *row = g_new0(LedgerRow, 1);
    char *where = g_strdup_printf("%s: row %d (%s)", replay->path, index + 1, id != NULL ? id : "no id");
    GError *error = NULL;
    row->id = g_strdup(id != NULL ? id : where);
    row->source = (int)replay->ledger->sources->len - 1;
    row->residual = -1;
    row->full_confidence = g_strcmp0(orr_json_text_of(node, "confidence", NULL), "full") == 0;
    row->said = scenario != NULL ? ledger_row_said(scenario) : NULL;
    take_measured(node, where, row);
    row->memory_kind = row->measured_memory_bytes > 0 ? g_strdup(kind != NULL ? kind : "allocated") : NULL;
    if (scenario == NULL) {
        row->skipped = g_strdup("the row has no \"scenario\"");
    } else if (row->measured_step_s <= 0 && row->measured_memory_bytes <= 0) {
        row->skipped = row->note != NULL
                           ? g_steal_pointer(&row->note)
                           : g_strdup("neither measured.step_s nor measured.peak_memory_bytes is given");
    } else if (!simulate(replay, scenario, orr_json_text_of(node, "date", NULL), where, row, &error)) {
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
    LedgerSource *source = g_new0(LedgerSource, 1);
    source->file = g_path_get_basename(replay->path);
    g_ptr_array_add(replay->ledger->sources, source);
    g_autofree char *folder = g_path_get_dirname(replay->path), *kind = g_path_get_basename(folder);
    if (g_str_equal(kind, "blind")) /* nothing is learnt from the times of a blind set */
        g_hash_table_add(replay->ledger->residuals->judging,
                         GINT_TO_POINTER((int)replay->ledger->residuals->sources->len));
    g_ptr_array_add(replay->ledger->residuals->sources, g_strdup(source->file));
    index = 0;
    for (const OrrJson *node = orr_json_first(root); node != NULL; node = orr_json_next(node), index++) {
        replay_row(replay, node, index);
    }
    return true;
}

static int rows_in(GPtrArray *documents)
{
    int total = 0;
    for (guint i = 0; i < documents->len; i++) {
        total += orr_json_count(orr_json_root(documents->pdata[i]));
    }
    return total;
}

bool ledger_replay(const char *const *paths, int count, const char *const *sets, LedgerChoose choose,
                   LedgerProgress progress, void *progress_data, Ledger *ret_ledger, GError **error)
{
    Ledger ledger = {.rows = g_ptr_array_new_with_free_func(row_free),
                     .sources = g_ptr_array_new_with_free_func(source_free),
                     .residuals = ledger_residuals_new()};
    GPtrArray *documents = g_ptr_array_new_with_free_func((GDestroyNotify)orr_json_free);
    Replay replay = {.sets = sets,
                     .choose = choose,
                     .progress = progress,
                     .progress_data = progress_data,
                     .ledger = &ledger,
                     .named = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free)};
    bool ok = ledger_residuals_shipped(&replay.shipped, error);
    for (int i = 0; ok && i < count; i++) {
        OrrJsonDoc *doc = orr_json_read_file(paths[i], error);
        ok = doc != NULL;
        if (ok) {
            g_ptr_array_add(documents, doc);
        }
    }
    replay.total = ok ? rows_in(documents) : 0;
    if (ok && replay.total == 0)
        ok = orr_fail(error, ORR_ERROR_INPUT,
                      "%s: holds no rows; give a list of measured runs (orrery help measurement)", paths[0]);
    for (int i = 0; ok && i < count; i++) {
        replay.path = paths[i];
        ok = replay_document(&replay, documents->pdata[i], error);
    }
    g_ptr_array_unref(documents);
    ledger_residuals_free(replay.shipped);
    g_hash_table_unref(replay.named);
    if (!ok) {
        ledger_clear(&ledger);
        return false;
    }
    ledger_sum_up(&ledger);
    *ret_ledger = ledger;
    return true;
}
