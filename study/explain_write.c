/* study/explain_write.c - an explanation as ten sentences, and as JSON. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "study/explain.h"
#include "report/page.h"

#define LEAST_GAIN 0.0005 /* rounds to 0.1 % */

static void sentence(GString *out, int *number, const char *format, ...) G_GNUC_PRINTF(3, 4);

static void sentence(GString *out, int *number, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    g_autofree char *text = g_strdup_vprintf(format, values);
    va_end(values);
    g_autofree char *label = g_strdup_printf("%3d.", ++*number);
    report_page_entry(out, label, 5, text);
}

static const ExplainBind *bind_at(const Explanation *explanation, guint index)
{
    return index < explanation->binds->len ? &g_array_index(explanation->binds, ExplainBind, index) : NULL;
}

static void write_binds(const Explanation *explanation, int *number, GString *out)
{
    const ExplainBind *first = bind_at(explanation, 0);
    g_autoptr(GString) others = g_string_new(NULL);
    double percents = round(100 * first->share);
    for (guint i = 1; i < explanation->binds->len; i++) {
        const ExplainBind *bind = bind_at(explanation, i);
        if (bind->share < 0.01)
            continue;
        percents += round(100 * bind->share);
        g_string_append_printf(others, "%s%s %.0f\u00a0%%", others->len > 0 ? ", " : "", bind->words,
                               100 * bind->share);
    }
    if (g_str_equal(first->key, "bubble"))
        sentence(out, number, "The pipeline bubble binds most: ranks wait for %.0f %% of the step.",
                 100 * first->share);
    else
        sentence(
            out, number,
            "What binds most is %s: %.0f %% of the step scales with it (simulated with 10 %% more of it).",
            first->words, 100 * first->share);
    if (others->len > 0 && percents > 100)
        sentence(out, number,
                 "Then come %s. These add up to more than 100 %%, because overlapped work counts under each "
                 "resource.",
                 others->str);
    else if (others->len > 0)
        sentence(out, number, "Then come%s %s. The rest cannot be put down to a single resource.",
                 strchr(others->str, ',') == NULL ? "s" : "", others->str);
    else
        sentence(out, number, "Nothing else carries 1 %% of the step.");
}

static char *set_words(const ExplainChange *change)
{
    GString *words = g_string_new(change->set[0]);
    for (gsize i = 1; i < G_N_ELEMENTS(change->set) && change->set[i] != NULL; i++)
        g_string_append_printf(words, "%s%s", i == 1 ? " (with " : ", ", change->set[i]);
    if (change->set[1] != NULL)
        g_string_append_c(words, ')');
    return g_string_free(words, FALSE);
}

static bool is_gain(const ExplainChange *change)
{
    return change->fits && change->gain_frac >= LEAST_GAIN;
}

/* Changes behind `first` whose gain comes out of the same part and is no larger: "; for the same reason X brings 5.1 %, Y 4.4 %". */
static void append_likes(const GArray *changes, guint first, GString *line)
{
    const char *cause = g_array_index(changes, ExplainChange, first).cause;
    int named = 0;
    for (guint i = first + 1; cause != NULL && i < changes->len && named < 2; i++) {
        const ExplainChange *change = &g_array_index(changes, ExplainChange, i);
        if (!is_gain(change) || change->spare || change->cause == NULL || !g_str_equal(change->cause, cause))
            continue;
        g_autofree char *words = set_words(change);
        g_string_append_printf(line, "%s%s%s %.1f\u00a0%%", named == 0 ? "; for the same reason " : ", ",
                               words, named == 0 ? " brings" : "", 100 * change->gain_frac);
        named++;
    }
}

static bool told_before(const GArray *changes, guint index)
{
    const ExplainChange *change = &g_array_index(changes, ExplainChange, index);
    for (guint i = 0; change->cause != NULL && i < index; i++) {
        const ExplainChange *before = &g_array_index(changes, ExplainChange, i);
        if (is_gain(before) && before->cause != NULL && g_str_equal(before->cause, change->cause))
            return true;
    }
    return false;
}

/* The strongest change of each part of the step that gains come out of, the others of that part behind it. */
static void write_changes(const Explanation *explanation, int *number, GString *out)
{
    const GArray *changes = explanation->changes;
    int shown = 0;
    char step[ORR_TEXT_SIZE];
    for (guint i = 0; i < changes->len && shown < EXPLAIN_CHANGES; i++) {
        const ExplainChange *change = &g_array_index(changes, ExplainChange, i);
        if (!is_gain(change) || told_before(changes, i))
            continue;
        g_autofree char *words = set_words(change);
        g_autoptr(GString) line = g_string_new(NULL);
        g_string_printf(line, "%s would bring %.1f %%: %s", words, 100 * change->gain_frac,
                        orr_text_seconds(step, (double)change->step_ps * 1e-12));
        if (change->cause != NULL)
            g_string_append_printf(line, ", mostly less %s", change->cause);
        if (change->edge)
            g_string_append(line, ", with memory at the edge");
        append_likes(changes, i, line);
        sentence(out, number, "%s.", line->str);
        shown++;
    }
    if (shown == 0)
        sentence(out, number, "None of %d changes that were simulated makes the step faster and fits.",
                 explanation->tried);
    else if (shown < EXPLAIN_CHANGES)
        sentence(out, number, "No other of %d changes that were simulated is faster and fits.",
                 explanation->tried);
}

/* Of the changes the fastest that fits, of a scenario that does not. */
static void append_fitting(const Explanation *explanation, GString *line)
{
    char step[ORR_TEXT_SIZE];
    const ExplainChange *first =
        explanation->changes->len > 0 ? &g_array_index(explanation->changes, ExplainChange, 0) : NULL;
    if (first == NULL || !first->fits) {
        g_string_append(line,
                        "; no single change makes it fit: search with training.recompute and the degrees "
                        "\"auto\"");
        return;
    }
    g_autofree char *words = set_words(first);
    g_string_append_printf(line, "; %s fits%s, in %s", words, first->edge ? " at the edge" : "",
                           orr_text_seconds(step, (double)first->step_ps * 1e-12));
}

/* What memory rules out, or what would make room. */
static void write_memory(const Explanation *explanation, int *number, GString *out)
{
    const Report *report = explanation->report;
    const ExplainChange *best = NULL;
    g_autofree char *occupied = report_occupied(report);
    for (guint i = 0; i < explanation->changes->len && best == NULL; i++) {
        const ExplainChange *change = &g_array_index(explanation->changes, ExplainChange, i);
        best = !change->fits && change->gain_frac >= LEAST_GAIN ? change : NULL;
    }
    g_autoptr(GString) line = g_string_new(NULL);
    g_string_printf(line, "Memory: %s, %s", report_memory_word(report->memory_verdict), occupied);
    if (!isnan(report->memory_odds) && report->memory_verdict == REPORT_MEMORY_EDGE)
        g_string_append_printf(line, " (odds %.0f %%)", 100 * report->memory_odds);
    g_autofree char *words = best != NULL ? set_words(best) : NULL;
    if (report->memory_verdict == REPORT_MEMORY_NONE)
        append_fitting(explanation, line);
    else if (best != NULL)
        g_string_append_printf(line, "; it rules out %s, which would bring %.1f %%", words,
                               100 * best->gain_frac);
    sentence(out, number, "%s.", line->str);
}

static bool is_comm(const char *label)
{
    return g_str_has_suffix(label, " comm");
}

static void write_kernels(const Explanation *explanation, const ExplainLoss *largest, int *number,
                          GString *out)
{
    const bool comm = is_comm(largest->label);
    const GArray *kernels = comm ? explanation->collectives : explanation->kernels;
    g_autoptr(GString) list = g_string_new(NULL);
    for (guint i = 0; i < kernels->len && i < EXPLAIN_KERNELS; i++) {
        const ExplainKernel *kernel = &g_array_index(kernels, ExplainKernel, i);
        const double share = comm ? kernel->share : kernel->loss_share;
        if (share >= 0.005)
            g_string_append_printf(list, "%s%s %.0f\u00a0%%", list->len > 0 ? ", " : "", kernel->name,
                                   100 * share);
    }
    if (list->len == 0) /* waiting, or what has no kernels */
        sentence(out, number, "The largest loss is %s, %.1f %% of the step.",
                 g_str_equal(largest->label, "kernel loss") ? "kernels below peak" : largest->label,
                 100 * largest->frac);
    else if (g_str_equal(largest->label, "kernel loss"))
        sentence(out, number,
                 "The largest loss, kernels below peak (%.1f %% of the step), is made of %s; run --kernels "
                 "has each.",
                 100 * largest->frac, list->str);
    else if (comm)
        sentence(out, number, "The largest loss is %s, %.1f %% of the step; by time, collectives are %s.",
                 largest->label, 100 * largest->frac, list->str);
    else
        sentence(out, number, "The largest loss is %s, %.1f %% of the step; kernels below peak are %s.",
                 largest->label, 100 * largest->frac, list->str);
}

enum { NUMBERS_WIDTH = 26 }; /* of the table's figures and what lies between */

/* Figures that move the step by a thousandth of what they move; the end of a key where the page is narrow. */
static void write_figures(const GArray *figures, GString *out)
{
    static const char *const headers[] = {"1 % better", "step", "elasticity"};
    OrrTable *table = orr_table_new(headers, (int)G_N_ELEMENTS(headers));
    bool any = false;
    for (guint i = 0; i < figures->len; i++) {
        const ExplainFigure *figure = &g_array_index(figures, ExplainFigure, i);
        if (fabs(figure->elasticity) < 0.001)
            continue;
        any = true;
        const int most = MAX(report_page_width() - NUMBERS_WIDTH, 8), length = (int)strlen(figure->key);
        g_autofree char *key =
            length <= most ? g_strdup(figure->key) : g_strconcat("..", figure->key + length - most + 2, NULL);
        g_autofree char *change = g_strdup_printf("%+.3f %%", -100 * figure->gain_frac),
                        *elasticity = g_strdup_printf("%.3f", figure->elasticity);
        orr_table_row(table, (const char *const[]){key, change, elasticity});
    }
    if (any) {
        g_string_append_c(out, '\n');
        report_page_table(table, out, 2);
    }
    orr_table_free(table);
}

void report_explain_text(const Explanation *explanation, const ExplainLoss *largest, GString *out)
{
    const Report *report = explanation->report;
    const Spec *spec = report->spec;
    char step[ORR_TEXT_SIZE], gpus[ORR_TEXT_SIZE];
    int number = 0;
    report_page_entry(out, "", 0, spec->name[0] != '\0' ? spec->name : spec->model.name);
    g_string_append_c(out, '\n');
    sentence(out, &number, "A step takes %s on %s, MFU %.1f %%.",
             orr_text_seconds(step, (double)report->step_ps * 1e-12), report_page_gpus(gpus, report->gpus),
             100 * report->mfu);
    write_binds(explanation, &number, out);
    write_kernels(explanation, largest, &number, out);
    write_changes(explanation, &number, out);
    write_memory(explanation, &number, out);
    write_figures(explanation->figures, out);
}

static void json_kernels(OrrJsonWriter *w, const char *key, const GArray *kernels)
{
    orr_jw_begin(w, key, '[');
    for (guint i = 0; i < kernels->len; i++) {
        const ExplainKernel *kernel = &g_array_index(kernels, ExplainKernel, i);
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "kernel", kernel->name);
        orr_jw_text(w, "kind", kernel->kind);
        orr_jw_number(w, "time_frac", kernel->share);
        orr_jw_number(w, "loss_frac", kernel->loss_share);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
}

void report_explain_json(const Explanation *explanation, const ExplainLoss *largest, GString *out)
{
    OrrJsonWriter writer;
    OrrJsonWriter *w = &writer;
    orr_jw_init(w, out, false);
    orr_jw_begin(w, NULL, '{');
    orr_jw_int(w, "schema", 1);
    orr_jw_text(w, "scenario", explanation->report->spec->name);
    orr_jw_ps(w, "step_s", explanation->report->step_ps);
    orr_jw_number(w, "mfu", explanation->report->mfu);
    orr_jw_begin(w, "binds", '[');
    for (guint i = 0; i < explanation->binds->len; i++) {
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "what", bind_at(explanation, i)->key);
        orr_jw_number(w, "step_frac", bind_at(explanation, i)->share);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
    orr_jw_begin(w, "figures", '[');
    for (guint i = 0; i < explanation->figures->len; i++) {
        const ExplainFigure *figure = &g_array_index(explanation->figures, ExplainFigure, i);
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "figure", figure->key);
        orr_jw_ps(w, "step_s", figure->step_ps);
        orr_jw_number(w, "gain_frac", figure->gain_frac);
        orr_jw_number(w, "elasticity", figure->elasticity);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
    orr_jw_begin(w, "largest_loss", '{');
    orr_jw_text(w, "what", largest->label);
    orr_jw_number(w, "step_frac", largest->frac);
    orr_jw_end(w, '}');
    orr_jw_int(w, "tried", explanation->tried);
    orr_jw_begin(w, "changes", '[');
    for (guint i = 0; i < explanation->changes->len; i++) {
        const ExplainChange *change = &g_array_index(explanation->changes, ExplainChange, i);
        orr_jw_begin(w, NULL, '{');
        orr_jw_begin(w, "set", '[');
        for (gsize k = 0; k < G_N_ELEMENTS(change->set) && change->set[k] != NULL; k++)
            orr_jw_text(w, NULL, change->set[k]);
        orr_jw_end(w, ']');
        orr_jw_ps(w, "step_s", change->step_ps);
        orr_jw_number(w, "gain_frac", change->gain_frac);
        orr_jw_bool(w, "fits", change->fits);
        orr_jw_bool(w, "at_the_edge", change->edge);
        if (change->cause != NULL)
            orr_jw_text(w, "less", change->cause);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
    json_kernels(w, "kernels", explanation->kernels);
    json_kernels(w, "collectives", explanation->collectives);
    orr_jw_end(w, '}');
    g_string_append_c(out, '\n');
}
