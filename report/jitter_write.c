/* report/jitter_write.c - what jitter does to a step, as text and JSON. */
#include <math.h>

#include "report/jitter.h"
#include "report/page.h"

enum { LABEL_COLUMN = 14 };

static void append_gain(GString *line, const char *what, double gain_frac)
{
    if (!isnan(gain_frac))
        g_string_append_printf(line, "%s%s %+.1f %%", line->len > 0 ? ", " : "", what, 100 * gain_frac);
}

void report_jitter_text(const Report *report, GString *out)
{
    const ReportJitter *jitter = &report->jitter;
    char mean[ORR_TEXT_SIZE], p50[ORR_TEXT_SIZE], p99[ORR_TEXT_SIZE];
    if (!jitter->told)
        return;
    g_autofree char *step =
        g_strdup_printf("p50 %s, p99 %s, mean %s over %d step%s: %+.2f %% against GPUs that are all alike",
                        orr_text_seconds(p50, (double)jitter->p50_ps * 1e-12),
                        orr_text_seconds(p99, (double)jitter->p99_ps * 1e-12),
                        orr_text_seconds(mean, jitter->mean_s), jitter->steps, jitter->steps > 1 ? "s" : "",
                        100 * (jitter->mean_s / ((double)report_ideal_ps(report) * 1e-12) - 1));
    g_string_append_c(out, '\n');
    report_page_entry(out, "Jitter", LABEL_COLUMN, step);
    if (!(jitter->slowest_frac > 0))
        return;
    g_autofree char *who = g_strdup_printf(
        "all wait for GPU %d (node %d, stage %d of replica %d), %.1f %% slower for good than a full one",
        jitter->slowest_gpu, jitter->slowest_node, jitter->slowest_pipeline_rank, jitter->slowest_data_rank,
        100 * jitter->slowest_frac);
    report_page_entry(out, "  Waits", LABEL_COLUMN, who);
    g_autoptr(GString) line = g_string_new(NULL);
    append_gain(line, "a healthy node in its place", jitter->evict_gain_frac);
    append_gain(line, "its replica made a backup that no other waits for", jitter->backup_gain_frac);
    append_gain(line, "replicas that do not wait for each other", jitter->async_gain_frac);
    g_string_append(line, " of tokens/s");
    report_page_entry(out, "  Would help", LABEL_COLUMN, line->str);
}

void report_jitter_json(const Report *report, OrrJsonWriter *w)
{
    const ReportJitter *jitter = &report->jitter;
    if (!jitter->told) {
        orr_jw_null(w, "jitter");
        return;
    }
    orr_jw_begin(w, "jitter", '{');
    orr_jw_int(w, "steps", jitter->steps);
    orr_jw_number(w, "mean_s", jitter->mean_s);
    orr_jw_ps(w, "p50_s", jitter->p50_ps);
    orr_jw_ps(w, "p99_s", jitter->p99_ps);
    orr_jw_ps(w, "worst_s", jitter->worst_ps);
    orr_jw_int(w, "simulated_ranks", jitter->simulated_ranks);
    orr_jw_begin(w, "slowest", '{');
    orr_jw_int(w, "gpu", jitter->slowest_gpu);
    orr_jw_int(w, "node", jitter->slowest_node);
    orr_jw_int(w, "pipeline_rank", jitter->slowest_pipeline_rank);
    orr_jw_int(w, "data_rank", jitter->slowest_data_rank);
    orr_jw_number(w, "slower_frac", jitter->slowest_frac);
    orr_jw_end(w, '}');
    orr_jw_begin(w, "gain", '{');
    orr_jw_number(w, "evict_frac", jitter->evict_gain_frac);
    orr_jw_number(w, "backup_frac", jitter->backup_gain_frac);
    orr_jw_number(w, "async_frac", jitter->async_gain_frac);
    orr_jw_end(w, '}');
    orr_jw_end(w, '}');
}
