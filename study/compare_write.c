/* study/compare_write.c - a comparison as a page of text, as JSON, as CSV. Computes nothing but differences. */
#include <math.h>

#include "base/text.h"
#include "study/compare.h"
#include "report/page.h"
#include "report/parts.h"

enum { LABEL_COLUMN = 14 };

#define GIB 1073741824.0

/* One row of the comparison. */
typedef struct CompareRow {
    const char *section, *key, *label;
    double a, b;
} CompareRow;

static void add_row(GArray *rows, const char *section, const char *key, const char *label, double a, double b)
{
    const CompareRow row = {section, key, label, a, b};
    g_array_append_val(rows, row);
}

static const ReportStage *fullest(const Report *report)
{
    const ReportStage *most = &report->stages[0];
    for (int i = 1; i < report->stage_count; i++)
        if (report->stages[i].peak_bytes > most->peak_bytes)
            most = &report->stages[i];
    return most;
}

static double step_tokens(const Report *report)
{
    return (double)report->spec->training.global_batch * report->spec->training.sequence_length;
}

/* GPU-seconds that a million tokens cost, of `seconds` of a step: comparable whatever the batch and the cluster. */
static double per_tokens(const Report *report, double seconds)
{
    return seconds * report->gpus / step_tokens(report) * 1e6;
}

static void add_summary(const Comparison *comparison, GArray *rows)
{
    const Report *a = comparison->a, *b = comparison->b;
    add_row(rows, "summary", "gpus", "GPUs", a->gpus, b->gpus);
    add_row(rows, "summary", "step_s", "step (s)", (double)a->step_ps * 1e-12, (double)b->step_ps * 1e-12);
    add_row(rows, "summary", "tokens_per_s", "tokens/s", a->tokens_per_s, b->tokens_per_s);
    add_row(rows, "summary", "tokens_per_s_per_gpu", "tokens/s/GPU", a->tokens_per_s_per_gpu,
            b->tokens_per_s_per_gpu);
    add_row(rows, "summary", "mfu", "MFU", a->mfu, b->mfu);
    add_row(rows, "summary", "hfu", "HFU", a->hfu, b->hfu);
    add_row(rows, "summary", "bubble_frac", "bubble, mean", a->bubble_frac, b->bubble_frac);
    if (a->days > 0 && b->days > 0) {
        add_row(rows, "summary", "days", "days of computing", a->days, b->days);
        if (a->effective.told && b->effective.told)
            add_row(rows, "summary", "effective_days", "effective days", a->effective.days,
                    b->effective.days);
        add_row(rows, "summary", "gpu_hours", "GPU-hours", a->gpu_hours, b->gpu_hours);
    }
    if (a->usd > 0 && b->usd > 0)
        add_row(rows, "summary", "usd", "USD", a->usd, b->usd);
    if (a->kwh > 0 && b->kwh > 0)
        add_row(rows, "summary", "kwh", "kWh", a->kwh, b->kwh);
}

static void add_time(const Comparison *comparison, GArray *rows)
{
    ReportTime a[REPORT_TIME_COUNT], b[REPORT_TIME_COUNT];
    report_times(comparison->a->part_ps, comparison->a->bubble_ps, comparison->a->late_ps, a);
    report_times(comparison->b->part_ps, comparison->b->bubble_ps, comparison->b->late_ps, b);
    for (int i = 0; i < REPORT_TIME_COUNT; i++)
        add_row(rows, "time", a[i].key, a[i].label, (double)a[i].ps * 1e-12, (double)b[i].ps * 1e-12);
}

static void add_memory(const Comparison *comparison, GArray *rows)
{
    const ReportStage *a = fullest(comparison->a), *b = fullest(comparison->b);
    add_row(rows, "memory", "weights_bytes", "weights", a->weights_bytes, b->weights_bytes);
    add_row(rows, "memory", "gradients_bytes", "gradients", a->gradients_bytes, b->gradients_bytes);
    add_row(rows, "memory", "optimizer_bytes", "optimizer", a->optimizer_bytes, b->optimizer_bytes);
    add_row(rows, "memory", "activations_bytes", "activations", a->activations_bytes, b->activations_bytes);
    add_row(rows, "memory", "workspace_bytes", "workspace", a->workspace_bytes, b->workspace_bytes);
    add_row(rows, "memory", "reserved_besides_bytes", "reserved besides", a->reserved_bytes - a->peak_bytes,
            b->reserved_bytes - b->peak_bytes);
}

/* --- text --- */

static void summary_cell(char *text, double value, bool share)
{
    if (share)
        g_snprintf(text, ORR_TEXT_SIZE, "%.1f %%", value * 100);
    else if (fabs(value) >= 1e4)
        report_page_whole(text, value);
    else
        g_snprintf(text, ORR_TEXT_SIZE, "%.6g", value);
}

/* `value` printed with `decimals` is no "-0". */
static double no_minus_zero(double value, int decimals)
{
    return fabs(value) < 0.5 * pow(10, -decimals) ? 0.0 : value;
}

static void write_summary(const Comparison *comparison, GString *out)
{
    enum { COLUMNS = 4 };
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(CompareRow));
    OrrTable *table = orr_table_new((const char *const[]){"", "A", "B", "B / A"}, COLUMNS);
    add_summary(comparison, rows);
    for (guint i = 0; i < rows->len; i++) {
        const CompareRow *row = &g_array_index(rows, CompareRow, i);
        const bool share = row->a <= 1 && row->b <= 1 && g_str_equal(row->section, "summary") &&
                           (g_str_has_suffix(row->key, "fu") || g_str_has_suffix(row->key, "_frac"));
        char cell[3][ORR_TEXT_SIZE];
        summary_cell(cell[0], row->a, share);
        summary_cell(cell[1], row->b, share);
        cell[2][0] = '\0';
        if (row->a > 0)
            g_snprintf(cell[2], ORR_TEXT_SIZE, "%.3f", row->b / row->a);
        orr_table_row(table, (const char *[COLUMNS]){row->label, cell[0], cell[1], cell[2]});
    }
    g_string_append_c(out, '\n');
    report_page_table(table, out, 2);
    orr_table_free(table);
}

/* Of a difference: what parts that cancel out leave is many times smaller than each, and "1393 %" says nothing. */
static void share_cell(char *text, double share)
{
    const double factor = fabs(share);
    if (factor < 2)
        g_snprintf(text, ORR_TEXT_SIZE, "%.0f %%", no_minus_zero(share * 100, 0));
    else
        g_snprintf(text, ORR_TEXT_SIZE, "%s%.*f x", share < 0 ? "-" : "", factor < 10 ? 1 : 0, factor);
}

/* Rows of one section with their differences and what share of the whole each is; `unit` divides the values. */
static void write_section(GArray *rows, const char *total, double unit, int decimals, GString *out)
{
    enum { COLUMNS = 5 };
    OrrTable *table =
        orr_table_new((const char *const[]){"", "A", "B", "B - A", "of the difference"}, COLUMNS);
    double sum_a = 0, sum_b = 0;
    for (guint i = 0; i < rows->len; i++) {
        sum_a += g_array_index(rows, CompareRow, i).a;
        sum_b += g_array_index(rows, CompareRow, i).b;
    }
    add_row(rows, "", "", total, sum_a, sum_b);
    for (guint i = 0; i < rows->len; i++) {
        const CompareRow *row = &g_array_index(rows, CompareRow, i);
        const double least = 0.5 * pow(10, -decimals) * unit;
        char cell[4][ORR_TEXT_SIZE] = {{0}};
        if (fabs(row->a) < least && fabs(row->b) < least)
            continue;
        g_snprintf(cell[0], ORR_TEXT_SIZE, "%.*f", decimals, row->a / unit);
        g_snprintf(cell[1], ORR_TEXT_SIZE, "%.*f", decimals, row->b / unit);
        g_snprintf(cell[2], ORR_TEXT_SIZE, "%+.*f", decimals, (row->b - row->a) / unit);
        if (fabs(sum_b - sum_a) > least)
            share_cell(cell[3], (row->b - row->a) / (sum_b - sum_a));
        orr_table_row(table, (const char *[COLUMNS]){row->label, cell[0], cell[1], cell[2], cell[3]});
    }
    report_page_table(table, out, 2);
    orr_table_free(table);
}

static bool same_work(const Comparison *comparison)
{
    return comparison->a->gpus == comparison->b->gpus &&
           step_tokens(comparison->a) >= step_tokens(comparison->b) &&
           step_tokens(comparison->a) <= step_tokens(comparison->b);
}

static void write_time(const Comparison *comparison, GString *out)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(CompareRow));
    add_time(comparison, rows);
    if (same_work(comparison)) {
        g_string_append_c(out, '\n');
        report_page_say(out, 0, "Time of the step, seconds on the last rank to finish");
        write_section(rows, "step", 1, comparison->a->step_ps > INT64_C(1000000000000) ? 3 : 6, out);
        return;
    }
    for (guint i = 0; i < rows->len; i++) {
        CompareRow *row = &g_array_index(rows, CompareRow, i);
        row->a = per_tokens(comparison->a, row->a);
        row->b = per_tokens(comparison->b, row->b);
    }
    g_string_append_c(out, '\n');
    report_page_say(out, 0, "Time, GPU-seconds a million tokens (GPUs or tokens of a step differ)");
    write_section(rows, "all", 1, 2, out);
}

static void write_memory(const Comparison *comparison, GString *out)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(CompareRow));
    add_memory(comparison, rows);
    g_string_append_c(out, '\n');
    report_page_say(out, 0, "Memory of the fullest stage (A: %d, B: %d) at its peak, GiB",
                    fullest(comparison->a)->stage, fullest(comparison->b)->stage);
    write_section(rows, "reserved", GIB, 2, out);
    g_autofree char *fits =
        g_strdup_printf("A %s %.1f GiB, B %s %.1f GiB", comparison->a->fits ? "fits" : "DOES NOT FIT",
                        comparison->a->capacity_bytes / GIB, comparison->b->fits ? "fits" : "DOES NOT FIT",
                        comparison->b->capacity_bytes / GIB);
    report_page_entry(out, "  Capacity", LABEL_COLUMN, fits);
}

static void write_fields(const Comparison *comparison, GString *out)
{
    enum { COLUMNS = 4 };
    const double a_s = (double)comparison->a->step_ps * 1e-12;
    if (comparison->fields->len == 0) {
        g_string_append(out, "\nNo field differs\n");
        return;
    }
    g_string_append_c(out, '\n');
    report_page_entry(out, "", 0, "Fields that differ, and the step of A with B's value of that field alone");
    OrrTable *table = orr_table_new((const char *const[]){"", "A", "B", "A's step with it alone"}, COLUMNS);
    for (guint i = 0; i < comparison->fields->len; i++) {
        const CompareField *field = &g_array_index(comparison->fields, CompareField, i);
        char step[ORR_TEXT_SIZE];
        g_autofree char *alone =
            field->tried ? g_strdup_printf("%s (%+.1f %%)%s", orr_text_seconds(step, field->step_s),
                                           no_minus_zero((field->step_s / a_s - 1) * 100, 1),
                                           field->fits ? "" : ", does not fit")
            : field->reason != NULL ? g_strdup("not valid alone")
                                    : g_strdup("");
        orr_table_row(table, (const char *[COLUMNS]){field->key, field->a, field->b, alone});
    }
    report_page_table(table, out, 2);
    orr_table_free(table);
}

static void write_name(const char *label, const char *file, const Report *report, GString *out)
{
    g_autofree char *text =
        report->spec->name[0] != '\0' ? g_strdup_printf("%s (%s)", report->spec->name, file) : g_strdup(file);
    report_page_entry(out, label, LABEL_COLUMN, text);
}

void report_compare_text(const Comparison *comparison, GString *out)
{
    write_name("A", comparison->names[0], comparison->a, out);
    write_name("B", comparison->names[1], comparison->b, out);
    write_summary(comparison, out);
    write_time(comparison, out);
    write_memory(comparison, out);
    write_fields(comparison, out);
}

/* --- JSON and CSV --- */

static void write_json_rows(OrrJsonWriter *w, const char *key, const GArray *rows)
{
    orr_jw_begin(w, key, '{');
    for (guint i = 0; i < rows->len; i++) {
        const CompareRow *row = &g_array_index(rows, CompareRow, i);
        orr_jw_begin(w, row->key, '{');
        orr_jw_number(w, "a", row->a);
        orr_jw_number(w, "b", row->b);
        orr_jw_number(w, "difference", row->b - row->a);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, '}');
}

static void write_json_side(OrrJsonWriter *w, const char *key, const char *file, const Report *report)
{
    orr_jw_begin(w, key, '{');
    orr_jw_text(w, "file", file);
    orr_jw_text(w, "scenario", report->spec->name);
    orr_jw_text(w, "scenario_hash", report->source != NULL ? report->source->scenario_hash : NULL);
    orr_jw_bool(w, "fits", report->fits);
    orr_jw_end(w, '}');
}

static void write_json_fields(OrrJsonWriter *w, const Comparison *comparison)
{
    orr_jw_begin(w, "fields", '[');
    for (guint i = 0; i < comparison->fields->len; i++) {
        const CompareField *field = &g_array_index(comparison->fields, CompareField, i);
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "key", field->key);
        orr_jw_text(w, "a", field->a);
        orr_jw_text(w, "b", field->b);
        if (field->tried)
            orr_jw_number(w, "alone_step_s", field->step_s);
        else
            orr_jw_null(w, "alone_step_s");
        orr_jw_text(w, "reason", field->reason);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
}

void report_compare_json(const Comparison *comparison, GString *out)
{
    static void (*const sections[])(const Comparison *, GArray *) = {add_summary, add_time, add_memory};
    static const char *const names[] = {"summary", "time", "memory"};
    OrrJsonWriter writer;
    orr_jw_init(&writer, out, false);
    orr_jw_begin(&writer, NULL, '{');
    orr_jw_int(&writer, "schema", 1);
    orr_jw_text(&writer, "version", ORRERY_VERSION);
    write_json_side(&writer, "a", comparison->names[0], comparison->a);
    write_json_side(&writer, "b", comparison->names[1], comparison->b);
    for (gsize i = 0; i < G_N_ELEMENTS(sections); i++) {
        g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(CompareRow));
        sections[i](comparison, rows);
        write_json_rows(&writer, names[i], rows);
    }
    write_json_fields(&writer, comparison);
    orr_jw_end(&writer, '}');
    g_string_append_c(out, '\n');
}

void report_compare_csv(const Comparison *comparison, GString *out)
{
    enum { COLUMNS = 6 };
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(CompareRow));
    OrrTable *table = orr_table_new(
        (const char *const[]){"section", "key", "a", "b", "difference", "alone_step_s"}, COLUMNS);
    add_summary(comparison, rows);
    add_time(comparison, rows);
    add_memory(comparison, rows);
    for (guint i = 0; i < rows->len; i++) {
        const CompareRow *row = &g_array_index(rows, CompareRow, i);
        char a[G_ASCII_DTOSTR_BUF_SIZE], b[G_ASCII_DTOSTR_BUF_SIZE], difference[G_ASCII_DTOSTR_BUF_SIZE];
        orr_table_row(table,
                      (const char *[COLUMNS]){
                          row->section, row->key, g_ascii_formatd(a, sizeof a, "%.15g", row->a),
                          g_ascii_formatd(b, sizeof b, "%.15g", row->b),
                          g_ascii_formatd(difference, sizeof difference, "%.15g", row->b - row->a), ""});
    }
    for (guint i = 0; i < comparison->fields->len; i++) {
        const CompareField *field = &g_array_index(comparison->fields, CompareField, i);
        char step[G_ASCII_DTOSTR_BUF_SIZE] = "";
        if (field->tried)
            g_ascii_formatd(step, sizeof step, "%.15g", field->step_s);
        orr_table_row(table, (const char *[COLUMNS]){"field", field->key, field->a, field->b, "", step});
    }
    orr_table_csv(table, out);
    orr_table_free(table);
}
