/* ledger/validate_write.c - the ledger as text, JSON and CSV. */
#include <math.h>

#include "base/json.h"
#include "report/page.h"
#include "base/text.h"
#include "base/units.h"
#include "ledger/validate.h"

static const char *percent(char *text, double frac)
{
    if (isnan(frac)) {
        return "-";
    }
    g_snprintf(text, ORR_TEXT_SIZE, "%.1f %%", 100 * frac);
    return text;
}

static const char *signed_percent(char *text, double frac)
{
    if (isnan(frac)) {
        return "-";
    }
    g_snprintf(text, ORR_TEXT_SIZE, "%+.1f %%", 100 * frac);
    return text;
}

static const char *whole_percent(char *text, double frac)
{
    if (isnan(frac)) {
        return "-";
    }
    g_snprintf(text, ORR_TEXT_SIZE, "%.0f %%", 100 * frac);
    return text;
}

static const char *tau_text(char *text, const LedgerStats *stats)
{
    if (stats->kendall_pairs == 0) {
        return "-";
    }
    g_snprintf(text, ORR_TEXT_SIZE, "%.2f (%d)", stats->kendall_tau, stats->kendall_pairs);
    return text;
}

static void stats_row(OrrTable *table, const char *name, const LedgerStats *stats, double full_mape)
{
    char rows[ORR_TEXT_SIZE], skipped[ORR_TEXT_SIZE], text[8][ORR_TEXT_SIZE];
    g_snprintf(rows, sizeof rows, "%d", stats->rows);
    g_snprintf(skipped, sizeof skipped, "%d", stats->skipped);
    const char *cells[] = {name,
                           rows,
                           skipped,
                           percent(text[0], stats->mape),
                           percent(text[1], full_mape),
                           signed_percent(text[2], stats->bias),
                           percent(text[3], stats->p90),
                           percent(text[4], stats->worst),
                           tau_text(text[5], stats),
                           percent(text[6], stats->memory_mape),
                           whole_percent(text[7], stats->coverage)};
    orr_table_row(table, cells);
}

static void write_sources(const Ledger *ledger, GString *out)
{
    static const char *const HEADERS[] = {"source",          "rows",   "skipped", "mean |error|",
                                          "full confidence", "bias",   "P90",     "worst",
                                          "tau (pairs)",     "memory", "coverage"};
    OrrTable *table = orr_table_new(HEADERS, G_N_ELEMENTS(HEADERS));
    for (guint i = 0; i < ledger->sources->len; i++) {
        const LedgerSource *source = ledger->sources->pdata[i];
        stats_row(table, source->file, &source->all, source->full.mape);
    }
    stats_row(table, "all rows", &ledger->overall, NAN);
    report_page_table(table, out, 2);
    orr_table_free(table);
}

static void write_rows(const Ledger *ledger, GString *out)
{
    static const char *const HEADERS[] = {"row",       "measured", "predicted", "error", "memory measured",
                                          "predicted", "error"};
    OrrTable *table = orr_table_new(HEADERS, G_N_ELEMENTS(HEADERS));
    for (guint i = 0; i < ledger->rows->len; i++) {
        const LedgerRow *row = ledger->rows->pdata[i];
        char text[6][ORR_TEXT_SIZE];
        const bool time = row->skipped == NULL && row->measured_step_s > 0;
        const bool memory = row->skipped == NULL && row->memory_kind != NULL;
        const char *cells[] = {row->id,
                               row->measured_step_s > 0 ? orr_text_seconds(text[0], row->measured_step_s)
                                                        : "-",
                               time ? orr_text_seconds(text[1], row->predicted_step_s) : "-",
                               time ? signed_percent(text[2], row->error_frac) : "-",
                               memory ? orr_text_bytes(text[3], row->measured_memory_bytes) : "-",
                               memory ? orr_text_bytes(text[4], row->predicted_memory_bytes) : "-",
                               memory ? signed_percent(text[5], row->memory_error_frac) : "-"};
        orr_table_row(table, cells);
    }
    report_page_table(table, out, 2);
    orr_table_free(table);
}

static void write_skipped(const Ledger *ledger, GString *out)
{
    if (ledger->overall.skipped == 0) {
        return;
    }
    g_string_append(out, "\nSkipped\n");
    for (guint i = 0; i < ledger->rows->len; i++) {
        const LedgerRow *row = ledger->rows->pdata[i];
        if (row->skipped != NULL) {
            report_page_say(out, 2, "%s: %s", row->id, row->skipped);
        }
    }
}

static void write_adapters(const LedgerStats *stats, GString *out)
{
    char time[ORR_TEXT_SIZE], memory[ORR_TEXT_SIZE];
    report_page_say(out, 2, "runs of lora and qlora (%d): mean |error| of time %s, of memory %s (%d runs)",
                    stats->rows, percent(time, stats->mape), percent(memory, stats->memory_mape),
                    stats->memory_rows);
}

void ledger_write_text(const Ledger *ledger, bool every_row, GString *out)
{
    char text[ORR_TEXT_SIZE];
    report_page_say(out, 0, "Published runs replayed: %d rows, %d skipped", ledger->overall.rows,
                    ledger->overall.skipped);
    g_string_append_c(out, '\n');
    if (every_row) {
        write_rows(ledger, out);
        g_string_append_c(out, '\n');
    }
    write_sources(ledger, out);
    g_string_append_c(out, '\n');
    report_page_say(out, 2, "mean of the sources' mean |error|: %s", percent(text, ledger->macro_mape));
    if (!isnan(ledger->overall_full.mape)) {
        char p90[ORR_TEXT_SIZE];
        report_page_say(out, 2, "runs of full confidence: mean |error| %s, P90 %s",
                        percent(text, ledger->overall_full.mape), percent(p90, ledger->overall_full.p90));
    }
    if (!isnan(ledger->overall_experts.mape)) {
        char bias[ORR_TEXT_SIZE];
        report_page_say(out, 2, "runs of models with experts (%d): mean |error| %s, bias %s",
                        ledger->overall_experts.rows, percent(text, ledger->overall_experts.mape),
                        signed_percent(bias, ledger->overall_experts.bias));
    }
    if (ledger->overall_adapters.rows > 0)
        write_adapters(&ledger->overall_adapters, out);
    if (ledger->overall.interval_rows > 0) {
        g_autofree char *line = g_strdup_printf(
            "coverage: runs inside the %.0f %% interval that run prints: %s of %d", 100 * LEDGER_COVERAGE,
            percent(text, ledger->overall.coverage), ledger->overall.interval_rows);
        report_page_entry(out, "", 2, line);
    }
    write_skipped(ledger, out);
}

static void left_out_row(OrrTable *table, const char *name, const LedgerStats *stats)
{
    char rows[ORR_TEXT_SIZE], text[4][ORR_TEXT_SIZE];
    g_snprintf(rows, sizeof rows, "%d", stats->interval_rows);
    const char *cells[] = {name,
                           rows,
                           percent(text[0], stats->mape),
                           signed_percent(text[1], stats->bias),
                           whole_percent(text[2], stats->coverage),
                           percent(text[3], stats->half_width)};
    orr_table_row(table, cells);
}

void ledger_write_left_out(const Ledger *ledger, GString *out)
{
    static const char *const HEADERS[] = {"source left out", "runs",      "mean |error|", "bias",
                                          "coverage",        "half-width"};
    char text[4][ORR_TEXT_SIZE];
    OrrTable *table = orr_table_new(HEADERS, G_N_ELEMENTS(HEADERS));
    g_string_append_printf(
        out, "Each source predicted with %.0f %% intervals made from the other sources alone\n\n",
        100 * LEDGER_COVERAGE);
    for (guint i = 0; i < ledger->sources->len; i++) {
        const LedgerSource *source = ledger->sources->pdata[i];
        left_out_row(table, source->file, &source->all);
    }
    left_out_row(table, "all runs", &ledger->overall);
    report_page_table(table, out, 2);
    orr_table_free(table);
    g_string_append_printf(out,
                           "\n  coverage: %s of %d runs, %s as a mean of the sources\n"
                           "  macro error (mean of the sources' mean |error|): %s\n"
                           "  macro error had each run been corrected by the other sources' bias: %s\n",
                           percent(text[0], ledger->overall.coverage), ledger->overall.interval_rows,
                           percent(text[1], ledger->macro_coverage), percent(text[2], ledger->macro_mape),
                           percent(text[3], ledger->corrected_mape));
    write_skipped(ledger, out);
}

static void json_frac(OrrJsonWriter *w, const char *key, double value)
{
    if (isnan(value)) {
        orr_jw_null(w, key);
    } else {
        orr_jw_number(w, key, value);
    }
}

static void json_row(OrrJsonWriter *w, const LedgerRow *row)
{
    const bool time = row->skipped == NULL && row->measured_step_s > 0;
    const bool memory = row->skipped == NULL && row->memory_kind != NULL;
    orr_jw_begin(w, NULL, '{');
    orr_jw_text(w, "id", row->id);
    orr_jw_text(w, "confidence", row->full_confidence ? "full" : "partial");
    json_frac(w, "measured_step_s", row->measured_step_s > 0 ? row->measured_step_s : NAN);
    json_frac(w, "predicted_step_s", row->skipped == NULL ? row->predicted_step_s : NAN);
    json_frac(w, "error_frac", time ? row->error_frac : NAN);
    json_frac(w, "measured_memory_bytes", row->memory_kind != NULL ? row->measured_memory_bytes : NAN);
    json_frac(w, "predicted_memory_bytes", memory ? row->predicted_memory_bytes : NAN);
    json_frac(w, "memory_error_frac", memory ? row->memory_error_frac : NAN);
    orr_jw_text(w, "memory_kind", row->memory_kind);
    if (row->has_interval) {
        orr_jw_bool(w, "inside_interval", row->inside_interval);
    } else {
        orr_jw_null(w, "inside_interval");
    }
    json_frac(w, "interval_low_s", row->has_interval ? row->interval_low_s : NAN);
    json_frac(w, "interval_high_s", row->has_interval ? row->interval_high_s : NAN);
    orr_jw_bool(w, "fits", row->fits);
    orr_jw_text(w, "skipped", row->skipped);
    orr_jw_end(w, '}');
}

static void json_stats(OrrJsonWriter *w, const LedgerStats *stats)
{
    orr_jw_int(w, "rows", stats->rows);
    orr_jw_int(w, "skipped", stats->skipped);
    json_frac(w, "mape", stats->mape);
    json_frac(w, "median", stats->median);
    json_frac(w, "p90", stats->p90);
    json_frac(w, "worst", stats->worst);
    json_frac(w, "bias", stats->bias);
    json_frac(w, "kendall_tau", stats->kendall_tau);
    orr_jw_int(w, "kendall_pairs", stats->kendall_pairs);
    json_frac(w, "memory_mape", stats->memory_mape);
    json_frac(w, "interval_coverage", stats->coverage);
    json_frac(w, "interval_half_width", stats->half_width);
}

static void json_left_out(OrrJsonWriter *w, const Ledger *ledger)
{
    if (!ledger->left_out) {
        orr_jw_null(w, "leave_one_out");
        return;
    }
    orr_jw_begin(w, "leave_one_out", '{');
    json_frac(w, "interval_coverage", ledger->overall.coverage);
    json_frac(w, "macro_interval_coverage", ledger->macro_coverage);
    json_frac(w, "macro_mape", ledger->macro_mape);
    json_frac(w, "corrected_macro_mape", ledger->corrected_mape);
    orr_jw_end(w, '}');
}

static void json_memory(OrrJsonWriter *w, const LedgerMemory *memory)
{
    const double rows = memory->rows;
    orr_jw_begin(w, "memory_reserve", '{');
    orr_jw_int(w, "rows", memory->rows);
    json_frac(w, "seen_covered_frac", memory->seen / rows);
    orr_jw_int(w, "needs", memory->needs);
    json_frac(w, "covered_frac", memory->needs > 0 ? (double)memory->covered / memory->needs : NAN);
    json_frac(w, "left_out_covered_frac",
              memory->needs > 0 ? (double)memory->left_out_covered / memory->needs : NAN);
    json_frac(w, "does_not_fit_frac", memory->none / rows);
    json_frac(w, "at_the_edge_frac", memory->edge / rows);
    orr_jw_end(w, '}');
}

void ledger_write_json(const Ledger *ledger, GString *out)
{
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_int(&w, "schema", 1);
    orr_jw_begin(&w, "rows", '[');
    for (guint i = 0; i < ledger->rows->len; i++) {
        json_row(&w, ledger->rows->pdata[i]);
    }
    orr_jw_end(&w, ']');
    orr_jw_begin(&w, "sources", '[');
    for (guint i = 0; i < ledger->sources->len; i++) {
        const LedgerSource *source = ledger->sources->pdata[i];
        orr_jw_begin(&w, NULL, '{');
        orr_jw_text(&w, "file", source->file);
        json_stats(&w, &source->all);
        json_frac(&w, "full_confidence_mape", source->full.mape);
        orr_jw_end(&w, '}');
    }
    orr_jw_end(&w, ']');
    orr_jw_begin(&w, "overall", '{');
    json_stats(&w, &ledger->overall);
    json_frac(&w, "macro_mape", ledger->macro_mape);
    json_frac(&w, "full_confidence_mape", ledger->overall_full.mape);
    json_frac(&w, "full_confidence_p90", ledger->overall_full.p90);
    json_frac(&w, "experts_mape", ledger->overall_experts.mape);
    json_frac(&w, "experts_bias", ledger->overall_experts.bias);
    json_frac(&w, "adapters_mape", ledger->overall_adapters.mape);
    json_frac(&w, "adapters_memory_mape", ledger->overall_adapters.memory_mape);
    orr_jw_end(&w, '}');
    json_left_out(&w, ledger);
    json_memory(&w, &ledger->memory);
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}

static const char *plain(char *text, double value, bool present)
{
    if (!present) {
        return "";
    }
    return g_ascii_formatd(text, ORR_TEXT_SIZE, "%.9g", value);
}

void ledger_write_csv(const Ledger *ledger, GString *out)
{
    static const char *const HEADERS[] = {"file",
                                          "id",
                                          "confidence",
                                          "measured_step_s",
                                          "predicted_step_s",
                                          "error_frac",
                                          "measured_memory_bytes",
                                          "predicted_memory_bytes",
                                          "memory_error_frac",
                                          "interval_low_s",
                                          "interval_high_s",
                                          "skipped"};
    OrrTable *table = orr_table_new(HEADERS, G_N_ELEMENTS(HEADERS));
    for (guint i = 0; i < ledger->rows->len; i++) {
        const LedgerRow *row = ledger->rows->pdata[i];
        const LedgerSource *source = ledger->sources->pdata[row->source];
        const bool ran = row->skipped == NULL, time = row->measured_step_s > 0,
                   memory = row->memory_kind != NULL;
        char text[8][ORR_TEXT_SIZE];
        const char *cells[] = {source->file,
                               row->id,
                               row->full_confidence ? "full" : "partial",
                               plain(text[0], row->measured_step_s, time),
                               plain(text[1], row->predicted_step_s, ran),
                               plain(text[2], row->error_frac, ran && time),
                               plain(text[3], row->measured_memory_bytes, memory),
                               plain(text[4], row->predicted_memory_bytes, ran && memory),
                               plain(text[5], row->memory_error_frac, ran && memory),
                               plain(text[6], row->interval_low_s, row->has_interval),
                               plain(text[7], row->interval_high_s, row->has_interval),
                               row->skipped != NULL ? row->skipped : ""};
        orr_table_row(table, cells);
    }
    orr_table_csv(table, out);
    orr_table_free(table);
}
