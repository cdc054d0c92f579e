/* plots/waterfall.c - where the peak goes: from the dense peak of the accelerator down to the model FLOP/s.
 *
 * Every figure is a share of the step, averaged over ranks. Time outside compute is lost whole; of the time in
 * compute what model FLOPs at full peak would not have needed is lost to kernels below peak. So the losses and the
 * MFU add up to 1:
 *
 *   mfu + (compute share - mfu) + sum of the other shares + idle share = 1
 *
 * Source: identity of the report's `mfu` and part times.   Tested: unit/plots/test_plots.c
 */
#include <math.h>

#include "plots/data.h"
#include "plots/driver.h"

#include "base/units.h"
#include "report/parts.h"

typedef struct LossWord {
    int part; /* SimPart; -1: idle */
    const char *label;
} LossWord;

static const LossWord loss_words[] = {
    {SIM_PART_COMPUTE, "kernel loss"},
    {SIM_PART_RECOMPUTE, "recompute"},
    {SIM_PART_TENSOR_COMM, "tensor comm"},
    {SIM_PART_CONTEXT_COMM, "context comm"},
    {SIM_PART_EXPERT_COMM, "expert comm"},
    {SIM_PART_PIPELINE_COMM, "pipeline comm"},
    {SIM_PART_DATA_COMM, "data comm"},
    {SIM_PART_OFFLOAD, "offload"},
    {SIM_PART_OPTIMIZER, "optimizer"},
    {SIM_PART_OTHER, "other"},
    {-1, "bubble"},
    {SIM_PART_COUNT + REPORT_LATE_STRAGGLERS, "slow GPUs"},
    {SIM_PART_COUNT + REPORT_LATE_LENGTHS, "longest texts"},
    {SIM_PART_COUNT + REPORT_LATE_INPUT, "input"},
};

G_STATIC_ASSERT(G_N_ELEMENTS(loss_words) == PLOT_LOSS_COUNT);

void plot_losses(const Report *report, PlotLoss ret_losses[PLOT_LOSS_COUNT])
{
    const SimResult *result = &report->result;
    const double rank_time_ps = (double)result->ranks * (double)report->step_ps;
    for (int i = 0; i < PLOT_LOSS_COUNT; i++) {
        const int part = loss_words[i].part;
        double sum_ps = 0.0;
        if (part >= SIM_PART_COUNT)
            sum_ps = (double)result->ranks * (double)report->late_ps[part - SIM_PART_COUNT];
        for (int rank = 0; part < SIM_PART_COUNT && rank < result->ranks; rank++)
            sum_ps += (double)(part < 0 ? result->rank[rank].idle_ps : result->rank[rank].part_ps[part]);
        const double share = rank_time_ps > 0.0 ? sum_ps / rank_time_ps : 0.0;
        ret_losses[i] =
            (PlotLoss){loss_words[i].label, part == SIM_PART_COMPUTE ? share - report->mfu : share};
    }
}

ExplainLoss plot_largest_loss(const Report *report)
{
    PlotLoss losses[PLOT_LOSS_COUNT];
    int largest = 0;
    plot_losses(report, losses);
    for (int i = 1; i < PLOT_LOSS_COUNT; i++)
        if (losses[i].frac > losses[largest].frac)
            largest = i;
    return (ExplainLoss){losses[largest].label, losses[largest].frac};
}

static void add_bar(GString *csv, const char *label, double from, double to, const char *kind, double shown)
{
    char low[G_ASCII_DTOSTR_BUF_SIZE], high[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(low, sizeof low, "%.6g", fmin(from, to) * 100.0);
    g_ascii_formatd(high, sizeof high, "%.6g", fmax(from, to) * 100.0);
    plot_csv_text(csv, label);
    g_autofree char *percent = g_strdup_printf(shown < 0.0 ? "+%.1f %%" : "%.1f %%", fabs(shown) * 100.0);
    g_string_append_printf(csv, ",%s,%s,%s,%s\n", low, high, kind, percent);
}

GString *plot_bars(const Report *report, int *ret_bars)
{
    const double shown_from = 0.0005; /* rounds to 0.1 % */
    PlotLoss losses[PLOT_LOSS_COUNT];
    GString *csv = g_string_new("label,low_percent,high_percent,kind,shown\n");
    double level = 1.0;
    int bars = 2;
    plot_losses(report, losses);
    add_bar(csv, "dense peak", 0.0, 1.0, "peak", 1.0);
    for (int i = 0; i < PLOT_LOSS_COUNT; i++) {
        const double below = level - losses[i].frac;
        if (fabs(losses[i].frac) >= shown_from) {
            add_bar(csv, losses[i].label, below, level, losses[i].label, losses[i].frac);
            bars++;
        }
        level = below;
    }
    add_bar(csv, "model FLOPs", 0.0, report->mfu, "rest", report->mfu);
    if (ret_bars != NULL)
        *ret_bars = bars;
    return csv;
}

bool plot_waterfall(const Report *report, const PlotTarget *target, GError **error)
{
    int bars = 0;
    PlotJob job;
    g_autoptr(GString) csv = plot_bars(report, &bars);
    char peak[ORR_TEXT_SIZE], achieved[ORR_TEXT_SIZE];
    plot_job_init(&job, "waterfall");
    g_string_append_len(job.csv, csv->str, (gssize)csv->len);
    g_autofree char *caption = g_strdup_printf(
        "from the dense %s peak of %s a GPU down to %s of model FLOPs: MFU %.1f %%",
        spec_word(&spec_words_precision, (int)report->spec->training.precision),
        orr_text_si(peak, cost_peak_flops_per_s(report->spec), "FLOP/s"),
        orr_text_si(achieved, report->model_flops_per_s_per_gpu, "FLOP/s"), report->mfu * 100.0);
    plot_set_heading(&job, report->spec->name, caption);
    plot_set_number(&job, "bars", bars);
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    return ok;
}

/* --- from one scenario to another --- */

static double tokens_of(const Report *report)
{
    return (double)report->spec->training.global_batch * report->spec->training.sequence_length;
}

static void add_step(GString *csv, const char *label, double from, double to, const char *kind, double shown,
                     bool is_change)
{
    char low[G_ASCII_DTOSTR_BUF_SIZE], high[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(low, sizeof low, "%.6g", fmin(from, to));
    g_ascii_formatd(high, sizeof high, "%.6g", fmax(from, to));
    plot_csv_text(csv, label);
    g_autofree char *text = g_strdup_printf(is_change ? "%+.3g" : "%.4g", shown);
    g_string_append_printf(csv, ",%s,%s,%s,%s\n", low, high, kind, text);
}

bool plot_difference(const Report *a, const Report *b, const char *const names[2], const PlotTarget *target,
                     GError **error)
{
    const double least_frac = 0.002;
    ReportTime at[REPORT_TIME_COUNT], to[REPORT_TIME_COUNT];
    const bool alike = a->gpus == b->gpus && fabs(tokens_of(a) - tokens_of(b)) < 0.5;
    const double of_a = 1e-12 * (alike ? 1 : a->gpus / tokens_of(a) * 1e6),
                 of_b = 1e-12 * (alike ? 1 : b->gpus / tokens_of(b) * 1e6), first = (double)a->step_ps * of_a,
                 last = (double)b->step_ps * of_b;
    double level = first, most = fmax(first, last), least = fmin(first, last), small = 0;
    int bars = 2;
    PlotJob job;
    plot_job_init(&job, "difference");
    report_times(a->part_ps, a->bubble_ps, a->late_ps, at);
    report_times(b->part_ps, b->bubble_ps, b->late_ps, to);
    g_string_append(job.csv, "label,low,high,kind,shown\n");
    add_step(job.csv, "A", 0, first, "whole", first, false);
    for (int i = 0; i < REPORT_TIME_COUNT; i++) {
        const double change = (double)to[i].ps * of_b - (double)at[i].ps * of_a;
        if (fabs(change) < least_frac * fmax(first, last)) {
            small += change;
            continue;
        }
        add_step(job.csv, at[i].label, level, level + change, change > 0 ? "more" : "less", change, true);
        level += change;
        most = fmax(most, level);
        least = fmin(least, level);
        bars++;
    }
    if (fabs(small) >= least_frac * fmax(first, last)) {
        add_step(job.csv, "the rest", level, level + small, small > 0 ? "more" : "less", small, true);
        bars++;
    }
    add_step(job.csv, "B", 0, last, "whole", last, false);
    plot_set_number(&job, "bars", bars);
    plot_set_number(&job, "most", most);
    plot_set_number(&job, "least", least);
    plot_set_text(&job, "unit", alike ? "step (s)" : "GPU-seconds a million tokens");
    g_autofree char *heading = g_strdup_printf("A: %s    B: %s", names[0], names[1]);
    plot_set_heading(&job, heading,
                     "The step of A, what each part of it takes more or less in B, and the step of B");
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    return ok;
}
