/* study/trace_learn.c - see trace_learn.h. */
#include "study/trace_learn.h"

#include <math.h>
#include <string.h>

#include "base/units.h"
#include "report/page.h"
#include "study/trace_predict.h"

enum { MOST_ROUNDS = 12 };

#define CLOSE_ENOUGH 1e-7
#define LEAST_EXCESS (-0.95)
#define MOST_EXCESS  19

/* Classes that a recipe knows are the first of a trace's, and named alike. */
G_STATIC_ASSERT((int)SPEC_LEARNED_SEND_RECEIVE == (int)TRACE_SEND_RECEIVE);

/* Kernels of no known class are of the layers, as far as anybody knows. */
static double class_s(const TraceSums *sums, TraceClass kind)
{
    const double more_s = kind == TRACE_ELEMENTWISE ? sums->class_s[TRACE_OTHER] : 0;
    return trace_class_s(sums, kind) + more_s;
}

/* Moves the classes' factors; returns how far the farthest was off. */
static double fit_classes(const TraceSums *measured, const TraceSums *predicted, SpecRecipeLearned *learned)
{
    double farthest = 0;
    for (int kind = 0; kind < SPEC_LEARNED_CLASSES; kind++) {
        double *excess = &learned->excess_frac[kind];
        const double one_s = class_s(measured, (TraceClass)kind),
                     other_s = class_s(predicted, (TraceClass)kind);
        if (one_s <= 0 || other_s <= 0)
            continue;
        *excess = CLAMP((1 + *excess) * one_s / other_s - 1, LEAST_EXCESS, MOST_EXCESS);
        farthest = fmax(farthest, fabs(one_s / other_s - 1));
    }
    return farthest;
}

static double compute_kernels(const TraceSums *sums)
{
    double kernels = 0;
    for (int kind = 0; kind <= TRACE_OPTIMIZER; kind++)
        kernels += sums->class_kernels[kind];
    return kernels;
}

/* Idle time: gaps go to every kernel where no other stage can cause them; the rest is of the step. */
static double fit_idle(const TraceSums *measured, const TraceSums *predicted, const Spec *spec,
                       SpecRecipeHost *host)
{
    double gaps_s = measured->fall_s[TRACE_FALL_GAPS] - predicted->fall_s[TRACE_FALL_GAPS],
           late_s = measured->fall_s[TRACE_FALL_HOST] - predicted->fall_s[TRACE_FALL_HOST];
    const double off_s = gaps_s + late_s, kernels = compute_kernels(predicted);
    if (spec->parallel.pipeline == 1 && kernels > 0) {
        const double gap_s = fmax(0, host->kernel_gap_s + gaps_s / kernels);
        gaps_s -= (gap_s - host->kernel_gap_s) * kernels;
        host->kernel_gap_s = gap_s;
    }
    host->step_overhead_s = fmax(0, host->step_overhead_s + gaps_s + late_s);
    return measured->step_s > 0 ? fabs(off_s) / measured->step_s : 0;
}

/* The rank of the first trace as `spec` predicts it; NULL with an error. `ret_step_s`: the simulated step. */
static TraceRank *predict(const GPtrArray *ranks, const Spec *spec, double *ret_step_s, GError **error)
{
    const TraceRank *first = ranks->pdata[0];
    const ReportOptions options = {.record = SIM_RECORD_SPANS, .ideal = true};
    OrrArena *arena = orr_arena_new();
    Report report;
    TraceRank *predicted = NULL;
    if (report_run(spec, NULL, &options, arena, &report, error)) {
        predicted = trace_predict(&report, trace_pipeline_rank(&report, first->rank, first->world));
        *ret_step_s = (double)report_ideal_ps(&report) * 1e-12;
    }
    orr_arena_free(arena);
    return predicted;
}

/* How far ops that are met stand from their class's factor: the standard deviation of measured over predicted, by time. */
static void find_spreads(const GPtrArray *ranks, const TraceRank *predicted, TraceLearned *learned)
{
    double weight[TRACE_CLASSES] = {0}, square[TRACE_CLASSES] = {0};
    int ops[TRACE_CLASSES] = {0};
    TraceAnswer answer = trace_answer(ranks, predicted);
    for (guint i = 0; i < answer.ops->len; i++) {
        const TraceOpRow *row = &g_array_index(answer.ops, TraceOpRow, i);
        if (row->measured_s <= 0 || row->predicted_s <= 0)
            continue;
        const double off = row->measured_s / row->predicted_s - 1;
        weight[row->kind] += row->measured_s;
        square[row->kind] += row->measured_s * off * off;
        ops[row->kind]++;
    }
    for (int kind = 0; kind < TRACE_CLASSES; kind++) {
        learned->kernels[kind] = answer.measured.class_kernels[kind];
        learned->spread_frac[kind] = ops[kind] > 1 ? sqrt(square[kind] / weight[kind]) : NAN;
    }
    trace_answer_clear(&answer);
}

bool trace_learn(const GPtrArray *ranks, const Spec *spec, TraceLearned *ret_learned, GError **error)
{
    g_autofree Spec *own = g_memdup2(spec, sizeof *spec);
    SpecFramework *framework = &own->execution.framework;
    const TraceSums measured = trace_sums_mean(ranks);
    TraceLearned learned = {.measured_s = measured.step_s};
    for (int round = 0;; round++) {
        TraceRank *predicted = predict(ranks, own, &learned.after_s, error);
        if (predicted == NULL)
            return false;
        const TraceSums sums = trace_sums(predicted);
        if (round == 0)
            learned.before_s = learned.after_s;
        learned.learned = framework->learned; /* what gave this prediction */
        learned.kernel_gap_s = framework->host.kernel_gap_s;
        learned.step_overhead_s = framework->host.step_overhead_s;
        find_spreads(ranks, predicted, &learned);
        const double off = fmax(fit_classes(&measured, &sums, &framework->learned),
                                fit_idle(&measured, &sums, own, &framework->host));
        trace_rank_free(predicted);
        if (off < CLOSE_ENOUGH || round + 1 == MOST_ROUNDS)
            break;
    }
    *ret_learned = learned;
    return true;
}

/* --- writing --- */

static void json_of_learned(const TraceLearned *learned, OrrJsonWriter *w)
{
    orr_jw_begin(w, "host", '{');
    orr_jw_number(w, "kernel_gap_s", learned->kernel_gap_s);
    orr_jw_number(w, "step_overhead_s", learned->step_overhead_s);
    orr_jw_end(w, '}');
    orr_jw_begin(w, "learned", '[');
    for (int kind = 0; kind < SPEC_LEARNED_CLASSES; kind++) {
        const double excess_frac = learned->learned.excess_frac[kind];
        if (excess_frac == 0)
            continue;
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "class", spec_word(&spec_words_learned, kind));
        orr_jw_number(w, "excess_frac", excess_frac);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
}

void trace_learned_json(const TraceLearned *learned, const OrrJson *base, const char *from, GString *out)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *source =
        g_strdup_printf("learned from %s: a step of %.6g s, predicted %.6g s before and %.6g s with it", from,
                        learned->measured_s, learned->before_s, learned->after_s);
    OrrJsonWriter w;
    orr_jw_init(&w, text, true);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_int(&w, "schema", 1);
    orr_jw_text(&w, "name", "learned");
    if (base != NULL && orr_json_type(base) == ORR_JSON_TEXT)
        orr_jw_text(&w, "preset", orr_json_text(base));
    orr_jw_text(&w, "source", source);
    json_of_learned(learned, &w);
    orr_jw_end(&w, '}');
    OrrJsonDoc *added = orr_json_parse(text->str, text->len, "learned", NULL);
    g_assert(added != NULL);
    OrrJsonDoc *whole = base != NULL && orr_json_type(base) == ORR_JSON_OBJECT
                            ? orr_json_merge(base, orr_json_root(added), "learned")
                            : orr_json_copy(orr_json_root(added), "learned");
    orr_jw_init(&w, out, false);
    orr_jw_node(&w, NULL, orr_json_root(whole));
    g_string_append_c(out, '\n');
    orr_json_free(whole);
    orr_json_free(added);
}

static void text_of_classes(const TraceLearned *learned, GString *out)
{
    const char *headers[] = {"class", "kernels a step", "time over the model's", "ops of it differ by"};
    OrrTable *table = orr_table_new(headers, (int)G_N_ELEMENTS(headers));
    for (int kind = 0; kind < SPEC_LEARNED_CLASSES; kind++) {
        char cells[3][ORR_TEXT_SIZE];
        if (learned->kernels[kind] <= 0)
            continue;
        g_snprintf(cells[0], ORR_TEXT_SIZE, "%.6g", learned->kernels[kind]);
        g_snprintf(cells[1], ORR_TEXT_SIZE, "%.4f", 1 + learned->learned.excess_frac[kind]);
        if (isnan(learned->spread_frac[kind]))
            g_strlcpy(cells[2], "-", ORR_TEXT_SIZE);
        else
            g_snprintf(cells[2], ORR_TEXT_SIZE, "%.1f %%", 100 * learned->spread_frac[kind]);
        const char *row[] = {trace_class_word((TraceClass)kind), cells[0], cells[1], cells[2]};
        orr_table_row(table, row);
    }
    report_page_table(table, out, 2);
    orr_table_free(table);
}

void trace_learned_text(const TraceLearned *learned, GString *out)
{
    text_of_classes(learned, out);
    g_string_append_printf(
        out,
        "\n  gap between two kernels %.3f us, of a step with nothing running %.3f ms\n"
        "  step: measured %.6g s, predicted %.6g s before (%+.1f %%), %.6g s with it (%+.1f %%)\n",
        learned->kernel_gap_s * 1e6, learned->step_overhead_s * 1e3, learned->measured_s, learned->before_s,
        100 * (learned->before_s / learned->measured_s - 1), learned->after_s,
        100 * (learned->after_s / learned->measured_s - 1));
}
