/* study/trace_write.c - what a trace says, as a page of text, as JSON, as CSV. Computes nothing but shares. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "report/page.h"
#include "study/trace_answer.h"

enum { COLUMNS = 5, SHOWN_OPS = 12, LABEL_COLUMN = 14 };

#define MS_PER_S      1e3
#define LEAST_AT_ONCE 0.005 /* of a class's kernels */

/* Predicted over measured, less 1; NAN where nothing was measured. */
static double error_frac(double measured, double predicted)
{
    return measured > 0 ? predicted / measured - 1 : NAN;
}

/* --- text --- */

typedef char Cells[COLUMNS][ORR_TEXT_SIZE];

static void ms_cell(char *text, double seconds)
{
    g_snprintf(text, ORR_TEXT_SIZE, "%.3f", seconds * MS_PER_S);
}

static void frac_cell(char *text, double frac)
{
    if (isnan(frac))
        g_strlcpy(text, "-", ORR_TEXT_SIZE);
    else
        g_snprintf(text, ORR_TEXT_SIZE, "%+.1f %%", 100 * frac);
}

static void put_row(OrrTable *table, const char *label, double kernels, double measured_s, double predicted_s,
                    const TraceAnswer *answer)
{
    Cells cells;
    if (kernels >= 0)
        g_snprintf(cells[0], ORR_TEXT_SIZE, "%.6g", kernels);
    else
        g_strlcpy(cells[0], "", ORR_TEXT_SIZE);
    ms_cell(cells[1], measured_s);
    if (answer->compared) {
        ms_cell(cells[2], predicted_s);
        frac_cell(cells[3], error_frac(measured_s, predicted_s));
    } else {
        g_snprintf(cells[2], ORR_TEXT_SIZE, "%.1f %%",
                   100 * measured_s / MAX(answer->measured.step_s, 1e-15));
        g_strlcpy(cells[3], "", ORR_TEXT_SIZE);
    }
    const char *row[COLUMNS] = {label, cells[0], cells[1], cells[2], cells[3]};
    orr_table_row(table, row);
}

static OrrTable *table_of(const TraceAnswer *answer, const char *first)
{
    const char *compared[COLUMNS] = {first, "kernels", "measured (ms)",
                                     answer->recorded ? "beside (ms)" : "predicted (ms)",
                                     answer->recorded ? "change" : "error"};
    const char *alone[COLUMNS] = {first, "kernels", "ms a step", "of the step", ""};
    return orr_table_new(answer->compared ? compared : alone, answer->compared ? COLUMNS : COLUMNS - 1);
}

static void finish_table(OrrTable *table, GString *out)
{
    report_page_table(table, out, 2);
    g_string_append_c(out, '\n');
    orr_table_free(table);
}

static void write_head(const TraceAnswer *answer, GString *out)
{
    const TraceRank *first = answer->ranks->pdata[0];
    char step[ORR_TEXT_SIZE];
    g_autoptr(GString) what = g_string_new(NULL);
    g_string_append_printf(what, "%s", first->device[0] != '\0' ? first->device : "a GPU of unknown name");
    if (answer->ranks->len > 1)
        g_string_append_printf(what, ", %u ranks", answer->ranks->len);
    else if (first->rank >= 0)
        g_string_append_printf(what, ", rank %d", first->rank);
    if (first->world > 0)
        g_string_append_printf(what, " of %d", first->world);
    report_page_entry(out, "trace", LABEL_COLUMN, what->str);
    orr_text_seconds(step, answer->measured.step_s);
    g_string_printf(
        what, "%s%s", step,
        answer->measured.marked ? "" : " (no ProfilerStep marks kernels: all of the trace is one step)");
    if (answer->measured.steps > 1)
        g_string_append_printf(what, ", the mean of %d", answer->measured.steps);
    report_page_entry(out, "step", LABEL_COLUMN, what->str);
    if (answer->compared) {
        orr_text_seconds(step, answer->predicted.step_s);
        g_string_printf(what, "%s, %+.1f %%", step,
                        100 * error_frac(answer->measured.step_s, answer->predicted.step_s));
        report_page_entry(out, answer->recorded ? "beside" : "predicted", LABEL_COLUMN, what->str);
    }
    g_string_append_c(out, '\n');
}

/* Classes of which several streams run kernels at once. */
static void write_at_once(const TraceAnswer *answer, GString *out)
{
    const TraceSums *sums = &answer->measured;
    for (int kind = 0; kind < TRACE_CLASSES; kind++) {
        const double busy_s = sums->class_busy_s[kind], other_s = answer->predicted.class_busy_s[kind];
        if (sums->class_s[kind] - busy_s <= LEAST_AT_ONCE * sums->class_s[kind])
            continue;
        g_autofree char *error = answer->compared
                                     ? g_strdup_printf(" (%+.1f %%)", 100 * error_frac(busy_s, other_s))
                                     : g_strdup("");
        report_page_say(out, 2, "Of %s several run at once: one or more run for %.3f ms%s.",
                        trace_class_word((TraceClass)kind), busy_s * MS_PER_S, error);
    }
}

static void write_classes(const TraceAnswer *answer, GString *out)
{
    OrrTable *table = table_of(answer, "kernels of a class, summed");
    double measured_s = 0, predicted_s = 0, waits_s = 0, kernels = 0;
    for (int kind = 0; kind < TRACE_CLASSES; kind++) {
        const double one_s = trace_class_s(&answer->measured, kind),
                     other_s = trace_class_s(&answer->predicted, kind);
        waits_s += answer->measured.class_wait_s[kind];
        measured_s += one_s;
        predicted_s += other_s;
        kernels += answer->measured.class_kernels[kind];
        if (answer->measured.class_kernels[kind] > 0 || other_s > 0)
            put_row(table, trace_class_word((TraceClass)kind), answer->measured.class_kernels[kind], one_s,
                    other_s, answer);
    }
    put_row(table, "sum", kernels, measured_s, predicted_s, answer);
    finish_table(table, out);
    write_at_once(answer, out);
    if (waits_s > 0)
        report_page_say(out, 2, "Collectives wait %.3f ms besides for their last rank.", waits_s * MS_PER_S);
    if (!answer->compared || answer->absolute_s <= 0)
        return;
    report_page_say(out, 2, "The classes' differences come to %.3f ms in sum, %.3f ms in size.",
                    answer->error_s * MS_PER_S, answer->absolute_s * MS_PER_S);
    if (answer->cancelled && !answer->recorded)
        report_page_say(out, 2, "The sum of all kernels is right by cancellation.");
    g_string_append_c(out, '\n');
}

static void write_fall(const TraceAnswer *answer, GString *out)
{
    OrrTable *table = table_of(answer, "every instant of the step");
    for (int fall = 0; fall < TRACE_FALLS; fall++)
        put_row(table, trace_fall_help((TraceFall)fall), -1, answer->measured.fall_s[fall],
                answer->predicted.fall_s[fall], answer);
    put_row(table, "step", -1, answer->measured.step_s, answer->predicted.step_s, answer);
    finish_table(table, out);
    if (answer->measured.communication_s > 0) {
        report_page_say(out, 2, "Communication runs for %.3f ms, %.0f %% of that during kernels.",
                        answer->measured.communication_s * MS_PER_S,
                        100 * answer->measured.beside_s / answer->measured.communication_s);
        g_string_append_c(out, '\n');
    }
}

static void write_ops(const TraceAnswer *answer, GString *out)
{
    OrrTable *table =
        table_of(answer, answer->compared ? "ops, largest difference first" : "kernels, longest first");
    for (guint i = 0; i < answer->ops->len && i < SHOWN_OPS; i++) {
        const TraceOpRow *row = &g_array_index(answer->ops, TraceOpRow, i);
        put_row(table, row->text, row->measured_kernels, row->measured_s, row->predicted_s, answer);
    }
    finish_table(table, out);
    if (answer->compared)
        report_page_say(
            out, 2,
            answer->recorded
                ? "Kernels of the trace alone: %.3f ms. Of the other recording alone: %.3f ms."
                : "Met by no predicted op: %.3f ms measured. Met by no measured one: %.3f ms predicted.",
            answer->unmatched_measured_s * MS_PER_S, answer->unmatched_predicted_s * MS_PER_S);
}

static void write_ranks(const TraceAnswer *answer, GString *out)
{
    const char *headers[] = {"rank", "step (ms)", "compute", "communication",
                             "skew", "copies",    "host",    "gaps"};
    if (answer->ranks->len < 2)
        return;
    OrrTable *table = orr_table_new(headers, (int)G_N_ELEMENTS(headers));
    for (guint i = 0; i < answer->ranks->len; i++) {
        const TraceRank *rank = answer->ranks->pdata[i];
        const TraceSums sums = trace_sums(rank);
        char cells[TRACE_FALLS + 2][ORR_TEXT_SIZE];
        const char *row[TRACE_FALLS + 2];
        g_snprintf(cells[0], ORR_TEXT_SIZE, "%d", rank->rank >= 0 ? rank->rank : (int)i);
        ms_cell(cells[1], sums.step_s);
        for (int fall = 0; fall < TRACE_FALLS; fall++)
            ms_cell(cells[fall + 2], sums.fall_s[fall]);
        for (int cell = 0; cell < TRACE_FALLS + 2; cell++)
            row[cell] = cells[cell];
        orr_table_row(table, row);
    }
    finish_table(table, out);
}

void trace_answer_text(const TraceAnswer *answer, GString *out)
{
    const TraceRank *first = answer->ranks->pdata[0];
    write_head(answer, out);
    write_classes(answer, out);
    write_fall(answer, out);
    write_ranks(answer, out);
    write_ops(answer, out);
    if (first->elsewhere > 0)
        report_page_say(out, 2, "%" G_GINT64_FORMAT " kernels of other GPUs in %s are left out.",
                        first->elsewhere, first->path);
    if (first->untimed > 0)
        report_page_say(out, 2, "%" G_GINT64_FORMAT " kernels of %s whose times cannot be are left out.",
                        first->untimed, first->path);
    if (!first->shapes)
        report_page_say(out, 2, "The trace has no sizes of operands; record_shapes=True puts them in.");
}

/* --- JSON --- */

static const char *other_key(const TraceAnswer *answer)
{
    return answer->recorded ? "beside_s" : "predicted_s";
}

static const char *change_key(const TraceAnswer *answer)
{
    return answer->recorded ? "change_frac" : "error_frac";
}

static void json_pair(OrrJsonWriter *w, const TraceAnswer *answer, double measured_s, double predicted_s)
{
    orr_jw_number(w, "measured_s", measured_s);
    if (!answer->compared)
        return;
    orr_jw_number(w, other_key(answer), predicted_s);
    orr_jw_number(w, change_key(answer), error_frac(measured_s, predicted_s));
}

static void json_classes(OrrJsonWriter *w, const TraceAnswer *answer)
{
    orr_jw_begin(w, "classes", '[');
    for (int kind = 0; kind < TRACE_CLASSES; kind++) {
        if (answer->measured.class_kernels[kind] <= 0 && answer->predicted.class_s[kind] <= 0)
            continue;
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "class", trace_class_word((TraceClass)kind));
        json_pair(w, answer, trace_class_s(&answer->measured, kind), trace_class_s(&answer->predicted, kind));
        orr_jw_number(w, "kernels", answer->measured.class_kernels[kind]);
        orr_jw_number(w, "busy_s", answer->measured.class_busy_s[kind]);
        if (answer->measured.class_wait_s[kind] > 0)
            orr_jw_number(w, "wait_s", answer->measured.class_wait_s[kind]);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
}

static void json_fall(OrrJsonWriter *w, const TraceAnswer *answer)
{
    orr_jw_begin(w, "waterfall", '[');
    for (int fall = 0; fall < TRACE_FALLS; fall++) {
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "part", trace_fall_word((TraceFall)fall));
        json_pair(w, answer, answer->measured.fall_s[fall], answer->predicted.fall_s[fall]);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
}

static void json_ops(OrrJsonWriter *w, const TraceAnswer *answer)
{
    orr_jw_begin(w, "ops", '[');
    for (guint i = 0; i < answer->ops->len; i++) {
        const TraceOpRow *row = &g_array_index(answer->ops, TraceOpRow, i);
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "op", row->text);
        orr_jw_text(w, "class", trace_class_word(row->kind));
        json_pair(w, answer, row->measured_s, row->predicted_s);
        orr_jw_number(w, "kernels", row->measured_kernels);
        if (answer->compared)
            orr_jw_number(w, answer->recorded ? "beside_kernels" : "predicted_kernels",
                          row->predicted_kernels);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
}

void trace_answer_json(const TraceAnswer *answer, GString *out)
{
    const TraceRank *first = answer->ranks->pdata[0];
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_int(&w, "schema", 1);
    orr_jw_text(&w, "version", ORRERY_VERSION);
    orr_jw_text(&w, "device", first->device);
    orr_jw_int(&w, "ranks", answer->ranks->len);
    orr_jw_int(&w, "steps", answer->measured.steps);
    orr_jw_bool(&w, "steps_marked", answer->measured.marked);
    orr_jw_begin(&w, "step", '{');
    json_pair(&w, answer, answer->measured.step_s, answer->predicted.step_s);
    orr_jw_end(&w, '}');
    json_classes(&w, answer);
    json_fall(&w, answer);
    orr_jw_number(&w, "communication_s", answer->measured.communication_s);
    orr_jw_number(&w, "communication_beside_s", answer->measured.beside_s);
    if (answer->compared) {
        orr_jw_begin(&w, "unmatched", '{');
        orr_jw_number(&w, "measured_s", answer->unmatched_measured_s);
        orr_jw_number(&w, other_key(answer), answer->unmatched_predicted_s);
        orr_jw_end(&w, '}');
    }
    if (answer->compared && !answer->recorded) {
        orr_jw_number(&w, "error_s", answer->error_s);
        orr_jw_number(&w, "absolute_error_s", answer->absolute_s);
        orr_jw_bool(&w, "cancelled", answer->cancelled);
    }
    json_ops(&w, answer);
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}

/* --- CSV --- */

static void csv_row(OrrTable *table, const TraceAnswer *answer, const char *section, const char *key,
                    double kernels, double measured_s, double predicted_s)
{
    char cells[4][ORR_TEXT_SIZE];
    const double values[4] = {kernels, measured_s, answer->compared ? predicted_s : NAN,
                              answer->compared ? error_frac(measured_s, predicted_s) : NAN};
    for (int i = 0; i < 4; i++) {
        if (isnan(values[i]))
            cells[i][0] = '\0';
        else
            g_ascii_formatd(cells[i], ORR_TEXT_SIZE, "%.9g", values[i]);
    }
    const char *row[] = {section, key, cells[0], cells[1], cells[2], cells[3]};
    orr_table_row(table, row);
}

void trace_answer_csv(const TraceAnswer *answer, GString *out)
{
    const char *headers[] = {"section",         "key", "kernels", "measured_s", other_key(answer),
                             change_key(answer)};
    OrrTable *table = orr_table_new(headers, (int)G_N_ELEMENTS(headers));
    csv_row(table, answer, "step", "step", NAN, answer->measured.step_s, answer->predicted.step_s);
    for (int kind = 0; kind < TRACE_CLASSES; kind++)
        csv_row(table, answer, "class", trace_class_word((TraceClass)kind),
                answer->measured.class_kernels[kind], trace_class_s(&answer->measured, kind),
                trace_class_s(&answer->predicted, kind));
    for (int fall = 0; fall < TRACE_FALLS; fall++)
        csv_row(table, answer, "waterfall", trace_fall_word((TraceFall)fall), NAN,
                answer->measured.fall_s[fall], answer->predicted.fall_s[fall]);
    for (guint i = 0; i < answer->ops->len; i++) {
        const TraceOpRow *row = &g_array_index(answer->ops, TraceOpRow, i);
        csv_row(table, answer, "op", row->text, row->measured_kernels, row->measured_s, row->predicted_s);
    }
    orr_table_csv(table, out);
    orr_table_free(table);
}
