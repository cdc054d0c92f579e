/* report/batches.c - the sizes of a step that a run grows through, as text and JSON. Nothing here computes. */
#include "report/page.h"
#include "report/batches.h"

void report_batches_text(const Report *report, int column, GString *out)
{
    char batch[ORR_TEXT_SIZE], length[ORR_TEXT_SIZE], tokens[ORR_TEXT_SIZE], step[ORR_TEXT_SIZE],
        days[ORR_TEXT_SIZE];
    enum { SHOWN = 6 };
    for (int i = 0; i < report->batch_count; i++) {
        const ReportBatch *size = &report->batches[i];
        if (report->batch_count > SHOWN && i == SHOWN - 2) { /* a ramp: its first sizes, then its end */
            g_autofree char *more = g_strdup_printf("%d more sizes up to", report->batch_count - SHOWN + 1);
            report_page_entry(out, "", column, more);
            i = report->batch_count - 2;
            continue;
        }
        g_autofree char *line = g_strdup_printf(
            "%s sequences of %s tokens: %s tokens in %s, %s a step",
            report_page_whole(batch, size->global_batch), report_page_whole(length, size->sequence_length),
            orr_text_count(tokens, size->tokens), orr_text_seconds(days, size->days * 86400),
            orr_text_seconds(step, size->step_s));
        report_page_entry(out, i == 0 ? "Batches" : "", column, line);
    }
}

void report_batches_json(const Report *report, OrrJsonWriter *w)
{
    if (report->batch_count == 0)
        return;
    orr_jw_begin(w, "batch_schedule", '[');
    for (int i = 0; i < report->batch_count; i++) {
        const ReportBatch *size = &report->batches[i];
        orr_jw_begin(w, NULL, '{');
        orr_jw_int(w, "global_batch", size->global_batch);
        orr_jw_int(w, "sequence_length", size->sequence_length);
        orr_jw_number(w, "tokens", size->tokens);
        orr_jw_number(w, "step_s", size->step_s);
        orr_jw_number(w, "days", size->days);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
}
