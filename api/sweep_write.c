/* api/sweep_write.c - the rows of a sweep as JSON and CSV. */
#include <math.h>

#include "api/sweep.h"
#include "base/text.h"

/* Where the values of a row go, by name. */
typedef struct Sink {
    OrrJsonWriter *json; /* or */
    GPtrArray *cells;    /* of CSV, char* */
    GPtrArray *headers;  /* of CSV, char*; filled for the first row only; NULL: not wanted */
} Sink;

static void put_text(Sink *sink, const char *key, const char *text)
{
    if (sink->json != NULL) {
        orr_jw_text(sink->json, key, text);
        return;
    }
    if (sink->headers != NULL)
        g_ptr_array_add(sink->headers, g_strdup(key));
    g_ptr_array_add(sink->cells, g_strdup(text != NULL ? text : ""));
}

static void put_number(Sink *sink, const char *key, double value, bool known)
{
    known = known && !isnan(value);
    if (sink->json != NULL && known) {
        orr_jw_number(sink->json, key, value);
    } else if (sink->json != NULL) {
        orr_jw_null(sink->json, key);
    } else {
        char text[G_ASCII_DTOSTR_BUF_SIZE];
        put_text(sink, key, known ? g_ascii_formatd(text, sizeof text, "%.15g", value) : "");
    }
}

static void put_row(Sink *sink, const GArray *fields, const ApiSweepRow *row)
{
    ReportTime times[REPORT_TIME_COUNT];
    const int64_t none[SIM_PART_COUNT] = {0};
    const bool ran = row->reason == NULL;
    report_times(none, 0, NULL, times);
    for (guint i = 0; i < fields->len; i++) {
        char *end = NULL;
        const double number = g_ascii_strtod(row->values[i], &end);
        if (end != row->values[i] && *end == '\0')
            put_number(sink, g_array_index(fields, ApiVary, i).key, number, true);
        else
            put_text(sink, g_array_index(fields, ApiVary, i).key, row->values[i]);
    }
    put_number(sink, "gpus", row->gpus, ran);
    if (sink->json != NULL && ran)
        orr_jw_bool(sink->json, "fits", row->fits);
    else
        put_text(sink, "fits", !ran ? NULL : row->fits ? "true" : "false");
    put_number(sink, "step_s", row->step_s, ran);
    put_number(sink, "tokens_per_s", row->tokens_per_s, ran);
    put_number(sink, "tokens_per_s_per_gpu", row->tokens_per_s_per_gpu, ran);
    put_number(sink, "mfu", row->mfu, ran);
    put_number(sink, "hfu", row->hfu, ran);
    put_number(sink, "bubble_frac", row->bubble_frac, ran);
    for (int i = 0; i < REPORT_TIME_COUNT; i++) {
        g_autofree char *key = g_strconcat("time.", times[i].key, NULL);
        put_number(sink, key, row->time_s[i], ran);
    }
    put_number(sink, "peak_bytes", row->peak_bytes, ran);
    put_number(sink, "reserved_bytes", row->reserved_bytes, ran);
    put_number(sink, "short_bytes", row->short_bytes, ran);
    put_number(sink, "interval_low_s", row->low_s, row->low_s > 0);
    put_number(sink, "interval_high_s", row->high_s, row->high_s > 0);
    put_number(sink, "days", row->days, row->days > 0);
    put_number(sink, "effective_days", row->effective_days, row->effective_days > 0);
    put_number(sink, "usd", row->usd, row->usd > 0);
    put_text(sink, "verdict", row->verdict);
    put_text(sink, "chosen", row->chosen);
    put_text(sink, "reason", row->reason);
}

void api_sweep_json(const GArray *fields, const GArray *rows, GString *out)
{
    OrrJsonWriter writer;
    orr_jw_init(&writer, out, false);
    Sink sink = {.json = &writer};
    orr_jw_begin(&writer, NULL, '{');
    orr_jw_int(&writer, "schema", 1);
    orr_jw_text(&writer, "version", ORRERY_VERSION);
    orr_jw_bool(&writer, "partial", rows->len < api_sweep_count(fields));
    orr_jw_begin(&writer, "rows", '[');
    for (guint i = 0; i < rows->len; i++) {
        orr_jw_begin(&writer, NULL, '{');
        put_row(&sink, fields, &g_array_index(rows, ApiSweepRow, i));
        orr_jw_end(&writer, '}');
    }
    orr_jw_end(&writer, ']');
    orr_jw_end(&writer, '}');
    g_string_append_c(out, '\n');
}

void api_sweep_csv(const GArray *fields, const GArray *rows, GString *out)
{
    for (guint i = 0; i < rows->len; i++) { /* a table each: a million rows of cells would take gigabytes */
        g_autoptr(GPtrArray) cells = g_ptr_array_new_with_free_func(g_free);
        g_autoptr(GPtrArray) headers = g_ptr_array_new_with_free_func(g_free);
        Sink sink = {.cells = cells, .headers = i == 0 ? headers : NULL};
        put_row(&sink, fields, &g_array_index(rows, ApiSweepRow, i));
        OrrTable *table = orr_table_new(i == 0 ? (const char *const *)headers->pdata : NULL, (int)cells->len);
        orr_table_row(table, (const char *const *)cells->pdata);
        orr_table_csv(table, out);
        orr_table_free(table);
    }
}
