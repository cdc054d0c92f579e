/* jobs/write.c - policies side by side, as a table and as JSON. */
#include "base/text.h"
#include "base/units.h"
#include "jobs/trace.h"

void jobs_write_text(const JobsTrace *trace, const JobsResult *results, int count, int width, GString *out)
{
    enum { COLUMNS = 8 };
    static const char *const headers[COLUMNS] = {"policy",   "busy",         "makespan",        "mean wait",
                                                 "p90 wait", "longest wait", "mean completion", "fairness"};
    char text[COLUMNS][ORR_TEXT_SIZE];
    g_string_append_printf(out, "%u jobs on ", trace->jobs->len);
    for (int p = 0; p < trace->pool_count; p++)
        g_string_append_printf(out, "%s%d %s", p > 0 ? " and " : "", trace->pools[p].gpus,
                               trace->pools[p].name);
    g_string_append_printf(out, "%s%.0f GPU-hours of work\n\n", width > 0 && width < 60 ? "\n" : ": ",
                           results[0].work_gpu_s / 3600);
    OrrTable *table = orr_table_new(headers, COLUMNS);
    for (int i = 0; i < count; i++) {
        const JobsResult *result = &results[i];
        g_snprintf(text[1], ORR_TEXT_SIZE, "%.1f %%", 100 * result->utilisation);
        g_snprintf(text[7], ORR_TEXT_SIZE, "%.3f", result->fairness);
        orr_table_row(table,
                      (const char *[COLUMNS]){jobs_policy_name(result->policy), text[1],
                                              orr_text_seconds(text[2], result->makespan_s),
                                              orr_text_seconds(text[3], result->wait_s.mean),
                                              orr_text_seconds(text[4], result->wait_s.p90),
                                              orr_text_seconds(text[5], result->wait_s.most),
                                              orr_text_seconds(text[6], result->completion_s.mean), text[7]});
    }
    orr_table_print_within(table, out, 2, width);
    orr_table_free(table);
}

static void write_spread(OrrJsonWriter *w, const char *key, const OrrSpread *spread)
{
    orr_jw_begin(w, key, '{');
    orr_jw_number(w, "mean", spread->mean);
    orr_jw_number(w, "p50", spread->p50);
    orr_jw_number(w, "p90", spread->p90);
    orr_jw_number(w, "most", spread->most);
    orr_jw_end(w, '}');
}

void jobs_write_json(const JobsTrace *trace, const JobsResult *results, int count, GString *out)
{
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_int(&w, "schema", 1);
    orr_jw_int(&w, "jobs", trace->jobs->len);
    orr_jw_begin(&w, "policies", '[');
    for (int i = 0; i < count; i++) {
        const JobsResult *result = &results[i];
        orr_jw_begin(&w, NULL, '{');
        orr_jw_text(&w, "policy", jobs_policy_name(result->policy));
        orr_jw_number(&w, "utilisation", result->utilisation);
        orr_jw_number(&w, "makespan_s", result->makespan_s);
        write_spread(&w, "wait_s", &result->wait_s);
        write_spread(&w, "completion_s", &result->completion_s);
        orr_jw_number(&w, "fairness", result->fairness);
        orr_jw_number(&w, "work_gpu_hours", result->work_gpu_s / 3600);
        orr_jw_number(&w, "done_gpu_hours", result->done_gpu_s / 3600);
        orr_jw_number(&w, "held_gpu_hours", result->held_gpu_s / 3600);
        orr_jw_end(&w, '}');
    }
    orr_jw_end(&w, ']');
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}
