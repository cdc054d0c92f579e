/* calibrate/fit/fit_table.c - one table of measurements becomes one profile for scenarios/calibrations. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "calibrate/fit/ceilings.h"
#include "calibrate/fit/collective_rows.h"
#include "calibrate/fit/collectives.h"
#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_host.h"
#include "calibrate/fit/fit_interference.h"
#include "calibrate/fit/fit_kernels.h"
#include "calibrate/fit/fit_moves.h"
#include "calibrate/fit/fit_network.h"
#include "calibrate/fit/fit_unknown.h"
#include "calibrate/fit/held_out.h"
#include "calibrate/fit/recorded.h"

typedef struct Table {
    OrrJsonDoc *doc;
    GArray *rows;        /* CalRow */
    GString *skipped;    /* rows that are not among them, and why */
    GPtrArray *profiles; /* CalProfile* */
} Table;

static void table_clear(Table *table)
{
    orr_json_free(table->doc);
    g_clear_pointer(&table->rows, g_array_unref);
    if (table->skipped != NULL)
        g_string_free(table->skipped, TRUE);
    g_clear_pointer(&table->profiles, g_ptr_array_unref);
}

static bool table_open(Table *table, const char *path, const char *accelerator, GString *log, GError **error)
{
    *table = (Table){.skipped = g_string_new(NULL)};
    g_autofree char *scenarios = orr_scenarios_dir(error);
    g_autofree char *folder = scenarios != NULL ? g_build_filename(scenarios, "accelerators", NULL) : NULL;
    if (folder == NULL || !cal_recorded_open(path, accelerator, &table->doc, NULL, error) ||
        !cal_profiles_read(folder, &table->profiles, error))
        return false;
    cal_recorded_left_out(orr_json_root(table->doc), table->skipped);
    table->rows = cal_table_rows(orr_json_root(table->doc), table->skipped);
    cal_rows_of(table->rows, table->profiles);
    if (log != NULL)
        g_string_append(log, table->skipped->str);
    return true;
}

/* The only accelerator of the table; an error names them when there are several. */
static char *only_accelerator(const Table *table, const char *path, GError **error)
{
    g_autoptr(GString) names = g_string_new(NULL);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    const char *last = NULL;
    int rows = 0;
    const OrrJson *root = orr_json_root(table->doc);
    for (const OrrJson *list = orr_json_first(root); list != NULL; list = orr_json_next(list))
        for (const OrrJson *row = orr_json_type(list) == ORR_JSON_LIST ? orr_json_first(list) : NULL;
             row != NULL; row = orr_json_next(row), rows++) {
            const OrrJson *gpu = orr_json_type(row) == ORR_JSON_OBJECT ? orr_json_member(row, "gpu") : NULL;
            if (gpu == NULL || orr_json_type(gpu) != ORR_JSON_TEXT ||
                !g_hash_table_add(seen, (gpointer)orr_json_text(gpu)))
                continue;
            last = orr_json_text(gpu);
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", last);
        }
    if (g_hash_table_size(seen) == 1)
        return g_strdup(last);
    if (rows == 0)
        cal_table_no_row(path, NULL, table->skipped, error);
    else
        orr_fail(error, ORR_ERROR_INPUT, "%s: rows of %s; choose one with --accelerator NAME", path,
                 names->len > 0 ? names->str : "no accelerator that is named");
    return NULL;
}

/* The rows of a sweep with a cuDNN before 9.17 are those kernels themselves: recipes of that time take nothing off again.
 * Source: [CudnnVersions] */
static void note_early_cudnn(const Table *table, const GPtrArray *rows, CalProfile *profile, GString *log)
{
    const OrrJson *stamp = orr_json_member(orr_json_root(table->doc), "stamp");
    const char *version = stamp != NULL ? orr_json_text_of(stamp, "cudnn", "") : "";
    SpecAttentionModel *model = &profile->accelerator.model.attention[SPEC_ATTENTION_CUDNN];
    int major = 0, minor = 0, fitted = 0;
    for (guint i = 0; i < rows->len; i++) {
        const CalRow *row = g_ptr_array_index(rows, i);
        fitted += row->kind == CAL_ATTENTION && row->attention.kernel == SPEC_ATTENTION_CUDNN;
    }
    if (fitted == 0 || sscanf(version, "%d.%d", &major, &minor) != 2 || major != 9 || minor >= 17 ||
        (model->early_frac >= 1 && model->backward_early_frac >= 1))
        return;
    model->early_frac = model->backward_early_frac = 1;
    if (log != NULL)
        g_string_append_printf(log, "attention rows are of cuDNN %s: early_frac is 1, they are that time's\n",
                               version);
}

/* A fit begins at the preset's own blocks: what no row speaks of stays there. */
static int fit_kernels(const Table *table, CalProfile *profile, GString *untold, GString *log)
{
    g_autoptr(GPtrArray) rows = g_ptr_array_new();
    for (guint i = 0; i < table->rows->len; i++) {
        CalRow *row = &g_array_index(table->rows, CalRow, i);
        if (strcmp(row->accelerator, profile->name) == 0 && cal_row_fitted(row))
            g_ptr_array_add(rows, row);
    }
    g_autofree CalProfile *before = g_new(CalProfile, 1);
    *before = *profile;
    profile->untold = untold;
    cal_fit_profile(profile, rows, profile->doc != NULL ? before : NULL);
    profile->untold = NULL;
    note_early_cudnn(table, rows, profile, log);
    if (log != NULL)
        cal_held_out(profile, rows, profile->doc != NULL ? before : NULL, log);
    const int moves = cal_fit_moves(orr_json_root(table->doc), profile->name, &profile->accelerator, log);
    if (log != NULL)
        cal_layers_beside(orr_json_root(table->doc), &profile->accelerator, log);
    return (int)rows->len + moves;
}

/* 1 fitted, 0 no rows, -1 failed. */
static int fit_collectives(const Table *table, const SpecCluster *cluster, SpecCollectiveModel *ret_model,
                           GString *log, GError **error)
{
    const OrrJson *list = orr_json_member(orr_json_root(table->doc), "collective_measurements");
    int inside = 0;
    if (list != NULL && !cal_collectives_inside(list, cluster, &inside, error))
        return -1;
    if (inside == 0)
        return 0;
    g_autoptr(GString) unused = g_string_new(NULL);
    return cal_fit_collectives_on(list, cluster, ret_model, log != NULL ? log : unused, error) ? 1 : -1;
}

static void log_fit(const CalProfile *profile, GString *log)
{
    for (int i = 0; log != NULL && i < profile->condition_count; i++) {
        const CalCondition *condition = &profile->conditions[i];
        if (condition->rows <= 0)
            continue;
        g_string_append_printf(
            log, "%-20s %-10s %-16s %4d rows  median %5.1f %%  p90 %5.1f %%  bias %+5.1f %%\n", profile->name,
            condition->kind == CAL_GEMM        ? spec_word(&spec_words_dtype, condition->block)
            : condition->kind == CAL_ATTENTION ? spec_word(&spec_words_attention, condition->block)
                                               : "memory",
            condition->source, condition->rows, 100 * condition->median_frac, 100 * condition->p90_frac,
            100 * condition->bias_frac);
    }
}

/* What a table gave. */
typedef struct Found {
    int kernel_rows;
    bool collectives; /* `links` are fitted, or hold the interference's shares */
    SpecCollectiveModel links;
    CalNetwork network;
    CalInterferences interference;
    CalHost host;
    CalCeilings ceilings;
    CalErrors link_errors;
    int link_rows;
} Found;

static void write_profile(const CalProfile *profile, const char *path, const Found *found, GString *out_json)
{
    OrrJsonWriter writer;
    g_autofree char *base = g_path_get_basename(path);
    g_autofree char *source = g_strdup_printf("fitted to %s", base);
    orr_jw_init(&writer, out_json, false);
    orr_jw_begin(&writer, NULL, '{');
    if (profile->doc == NULL) {
        cal_unknown_write(profile, source, &writer);
    } else {
        orr_jw_int(&writer, "schema", 1);
        orr_jw_text(&writer, "name", profile->name);
        orr_jw_text(&writer, "source", source);
        orr_jw_text(&writer, "accelerator", profile->name);
    }
    orr_jw_begin(&writer, "model", '{');
    if (found->kernel_rows > 0)
        cal_profile_write_fitted(profile, &writer);
    if (found->collectives)
        cal_write_collectives(&writer, "collectives", &found->links);
    orr_jw_end(&writer, '}');
    if (profile->doc == NULL) { /* a file of an accelerator holds nothing else */
        orr_jw_end(&writer, '}');
        g_string_append_c(out_json, '\n');
        return;
    }
    if (found->link_rows > 0) {
        orr_jw_begin(&writer, "collective_fit", '{');
        orr_jw_int(&writer, "rows", found->link_rows);
        orr_jw_number(&writer, "median_frac", found->link_errors.median_frac);
        orr_jw_number(&writer, "p90_frac", found->link_errors.p90_frac);
        orr_jw_number(&writer, "bias_frac", found->link_errors.bias_frac);
        orr_jw_end(&writer, '}');
    }
    cal_host_write(&found->host, &writer);
    cal_network_write(&found->network, &writer);
    cal_interference_write(&found->interference, &writer);
    cal_ceilings_write(&found->ceilings, &writer);
    orr_jw_end(&writer, '}');
    g_string_append_c(out_json, '\n');
}

static void kernel_residuals(const Table *table, CalProfile *profile, GArray *residuals)
{
    for (guint i = 0; i < table->rows->len; i++) {
        const CalRow *row = &g_array_index(table->rows, CalRow, i);
        char group[64] = "memory bound", what[128] = "stream";
        if (strcmp(row->accelerator, profile->name) != 0 || !cal_row_fitted(row))
            continue;
        if (row->kind == CAL_GEMM) {
            g_snprintf(group, sizeof group, "gemm %s", spec_word(&spec_words_dtype, (int)row->gemm.dtype));
            g_snprintf(what, sizeof what, "%.0f x %.0f x %.0f x %.0f", row->gemm.groups, row->gemm.m,
                       row->gemm.n, row->gemm.k);
        } else if (row->kind == CAL_ATTENTION) {
            g_snprintf(group, sizeof group, "attention %s",
                       spec_word(&spec_words_attention, (int)row->attention.kernel));
            g_snprintf(what, sizeof what, "%.0f x %.0f tokens, %.0f heads%s", row->attention.batch,
                       row->attention.q_tokens, row->attention.heads,
                       row->attention.backward ? ", backward" : "");
        }
        cal_residual_add(residuals, group, what, row->measured_s, cal_predict_s(profile, row));
    }
    cal_move_residuals(orr_json_root(table->doc), profile->name, &profile->accelerator, residuals);
}

static bool link_residuals(const Table *table, const SpecCluster *cluster, Found *found, GArray *residuals,
                           GError **error)
{
    const OrrJson *list = orr_json_member(orr_json_root(table->doc), "collective_measurements");
    g_autoptr(GArray) links = g_array_new(FALSE, TRUE, sizeof(CalResidual));
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(double));
    if (!cal_collective_residuals(list, cluster, links, error))
        return false;
    for (guint i = 0; i < links->len; i++) {
        const CalResidual *row = &g_array_index(links, CalResidual, i);
        const double frac = row->predicted_s / row->measured_s - 1;
        g_array_append_val(errors, frac);
        cal_residual_add(residuals, row->group, row->what, row->measured_s, row->predicted_s);
    }
    found->link_rows = (int)errors->len;
    if (found->link_rows > 0)
        cal_error_summary((double *)(void *)errors->data, found->link_rows, &found->link_errors.median_frac,
                          &found->link_errors.p90_frac, &found->link_errors.bias_frac);
    return true;
}

/* Kernels, collectives, interference, ceilings: what the table has rows of. */
static bool fit_everything(const Table *table, CalProfile *profile, const char *cluster_name, Found *found,
                           GArray *residuals, GString *log, GError **error)
{
    const OrrJson *root = orr_json_root(table->doc);
    g_autofree SpecCluster *cluster = g_new0(SpecCluster, 1);
    found->links = profile->accelerator.model.collectives;
    g_autoptr(GString) untold = g_string_new(NULL);
    found->kernel_rows = fit_kernels(table, profile, untold, log);
    if (log != NULL && untold->len > 0)
        g_string_append_printf(log, "the rows do not tell %s: only the times of all together count\n",
                               untold->str);
    cal_reference_cluster(&profile->accelerator, cluster);
    const int fitted = fit_collectives(table, cluster, &found->links, log, error);
    if (fitted < 0)
        return false;
    profile->accelerator.model.collectives = found->links;
    if (!cal_fit_network(root, &profile->accelerator, cluster_name, fitted == 0 && found->kernel_rows == 0,
                         &found->network, residuals, log, error))
        return false;
    cal_reference_cluster(&profile->accelerator, cluster);
    found->interference = cal_fit_interference(root, cluster, &found->links);
    found->collectives = fitted > 0;
    for (int i = 0; i < found->interference.count; i++)
        found->collectives |= found->interference.kind[i].field != NULL && found->links.fitted > 0;
    found->ceilings = cal_ceilings(root, table->rows, &profile->accelerator);
    found->host = cal_fit_host(root, profile->accelerator.host_link_bytes_per_s);
    kernel_residuals(table, profile, residuals);
    return fitted == 0 || link_residuals(table, cluster, found, residuals, error);
}

static void log_found(const CalProfile *profile, const Found *found, GString *log)
{
    if (log == NULL)
        return;
    log_fit(profile, log);
    if (found->link_rows > 0)
        g_string_append_printf(
            log, "%-20s %-10s %-16s %4d rows  median %5.1f %%  p90 %5.1f %%  bias %+5.1f %%\n", profile->name,
            "collective", "all", found->link_rows, 100 * found->link_errors.median_frac,
            100 * found->link_errors.p90_frac, 100 * found->link_errors.bias_frac);
    cal_network_print(&found->network, log);
    cal_interference_print(&found->interference, log);
    cal_host_log(&found->host, log);
    if (found->kernel_rows > 0)
        cal_ceilings_print(&found->ceilings, log);
}

/* Rows there are, but none that a fit reads: the best of many shapes, floors. */
static bool nothing_fitted(const Table *table, const char *path, const char *name, GError **error)
{
    for (guint i = 0; i < table->rows->len; i++)
        if (strcmp(g_array_index(table->rows, CalRow, i).accelerator, name) == 0)
            return orr_fail(
                error, ORR_ERROR_INPUT,
                "%s: its rows of %s are the best of many shapes, or kernels that no framework runs, "
                "which a fit does not read; `calibrate check` compares them with the preset",
                path, name);
    return cal_table_no_row(path, name, table->skipped, error);
}

bool cal_fit_table(const char *path, const char *accelerator, const char *cluster, GArray *residuals,
                   GString *out_json, GString *log, GError **error)
{
    Table table;
    g_autofree Found *found = g_new0(Found, 1);
    g_autofree char *name = NULL;
    CalProfile *profile = NULL;
    if (table_open(&table, path, accelerator, log, error))
        name = accelerator != NULL ? g_strdup(accelerator) : only_accelerator(&table, path, error);
    g_autofree CalProfile *unknown = NULL;
    const OrrJson *root = table.doc != NULL ? orr_json_root(table.doc) : NULL;
    if (name != NULL && accelerator == NULL && cal_profile_find(table.profiles, name) == NULL &&
        orr_json_member(root, "stamp") != NULL)
        profile = unknown = cal_unknown_profile(root, table.rows, name, error);
    else if (name != NULL)
        profile = cal_profile_named(table.profiles, name, error);
    if (unknown != NULL && log != NULL)
        g_string_append_printf(log,
                               "%s has no preset: the profile is an accelerator of its own, for --set "
                               "cluster.accelerator=FILE; its peaks are the best rates measured\n",
                               name);
    bool ok = profile != NULL && fit_everything(&table, profile, cluster, found, residuals, log, error);
    if (profile != NULL && !ok)
        g_prefix_error(error, "%s: ", path);
    if (ok && found->kernel_rows == 0 && !found->collectives && found->network.rows == 0 &&
        found->interference.count == 0 && found->host.pinned_frac <= 0 && found->host.dram_bytes_per_s <= 0)
        ok = nothing_fitted(&table, path, name, error);
    if (ok) {
        log_found(profile, found, log);
        write_profile(profile, path, found, out_json);
    }
    table_clear(&table);
    return ok;
}
