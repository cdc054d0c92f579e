/* ledger/own.c - see own.h. */
#include "ledger/own.h"

#include <math.h>

#include "spec/names.h"

LedgerTraits ledger_traits(const Report *report)
{
    const Spec *spec = report->spec;
    const SpecParallel *parallel = &spec->parallel;
    const SpecTraining *training = &spec->training;
    const double sizes[LEDGER_TRAIT_SIZES] = {report->gpus,          parallel->tensor,
                                              parallel->pipeline,    parallel->context,
                                              spec->model.hidden,    training->sequence_length,
                                              training->micro_batch, (double)report->step_ps * 1e-12};
    const guint words[LEDGER_TRAIT_WORDS] = {g_str_hash(spec->cluster.accelerator.name),
                                             (guint)training->precision,
                                             g_str_hash(spec->execution.framework.name),
                                             (guint)spec->execution.attention,
                                             (guint)parallel->zero,
                                             (guint)(spec->model.moe.experts > 0),
                                             g_str_hash(spec->model.name)};
    LedgerTraits traits;
    for (int i = 0; i < LEDGER_TRAIT_SIZES; i++)
        traits.size[i] = log(fmax(sizes[i], 1e-6));
    for (int i = 0; i < LEDGER_TRAIT_SHARES; i++)
        traits.share[i] = (double)(i < SIM_PART_COUNT ? report->part_ps[i] : report->bubble_ps) /
                          fmax((double)report->step_ps, 1);
    for (int i = 0; i < LEDGER_TRAIT_WORDS; i++)
        traits.word[i] = words[i];
    return traits;
}

/* In the order of ledger_traits(): a run this many times as large in one size is one deviation away. */
static const double lengths[LEDGER_TRAIT_SIZES] = {64, 2, 4, 16, 16, 16, 4, 8};

double ledger_likeness(const LedgerTraits *a, const LedgerTraits *b)
{
    double squares = 0;
    int words = 0;
    for (int i = 0; i < LEDGER_TRAIT_SIZES; i++) {
        const double away = (a->size[i] - b->size[i]) / log(lengths[i]);
        squares += away * away;
    }
    for (int i = 0; i < LEDGER_TRAIT_SHARES; i++) {
        const double away = (a->share[i] - b->share[i]) / LEDGER_OWN_SHARE;
        squares += away * away;
    }
    for (int i = 0; i < LEDGER_TRAIT_WORDS; i++)
        words += a->word[i] != b->word[i];
    return exp(-0.5 * squares) * pow(LEDGER_OWN_WORD, words);
}

static double covariance(const LedgerTraits *a, const LedgerTraits *b)
{
    return LEDGER_OWN_SHARED * LEDGER_OWN_SHARED +
           LEDGER_OWN_LOCAL * LEDGER_OWN_LOCAL * ledger_likeness(a, b);
}

/* Lower triangle L of the covariances of the runs with their noise, L L' = K; row by row. */
static double *factorise(const LedgerOwnRun *runs, int count)
{
    double *lower = g_new0(double, (gsize)count *(gsize)count);
    for (int i = 0; i < count; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = covariance(&runs[i].traits, &runs[j].traits) +
                         (i == j ? LEDGER_OWN_NOISE * LEDGER_OWN_NOISE : 0);
            for (int k = 0; k < j; k++)
                sum -= lower[i * count + k] * lower[j * count + k];
            lower[i * count + j] = i == j ? sqrt(sum) : sum / lower[j * count + j];
        }
    }
    return lower;
}

/* L^-1 x in place. */
static void solve(const double *lower, int count, double *x)
{
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < i; k++)
            x[i] -= lower[i * count + k] * x[k];
        x[i] /= lower[i * count + i];
    }
}

LedgerOwnSays ledger_own_says(const LedgerOwnRun *runs, int count, const LedgerTraits *traits)
{
    const double all = covariance(traits, traits) + LEDGER_OWN_NOISE * LEDGER_OWN_NOISE;
    g_autofree double *lower = factorise(runs, count);
    g_autofree double *towards = g_new(double, (gsize)MAX(count, 1)),
                      *ratios = g_new(double, (gsize)MAX(count, 1));
    for (int i = 0; i < count; i++) {
        towards[i] = covariance(&runs[i].traits, traits);
        ratios[i] = runs[i].log_ratio;
    }
    solve(lower, count, towards);
    solve(lower, count, ratios);
    double mean = 0, known = 0;
    for (int i = 0; i < count; i++) {
        mean += towards[i] * ratios[i];
        known += towards[i] * towards[i];
    }
    return (LedgerOwnSays){.log_ratio = mean, .deviation_frac = sqrt(fmax(0, all - known) / all)};
}

void ledger_own_fill(const LedgerOwnRun *runs, int count, Report *report)
{
    const LedgerTraits traits = ledger_traits(report);
    const LedgerOwnSays says = ledger_own_says(runs, count, &traits);
    const double step_s = (double)report->step_ps * 1e-12;
    const double reach = says.deviation_frac * log(step_s / report->interval_low_s);
    report->own = (ReportOwn){.runs = count,
                              .factor = exp(says.log_ratio),
                              .step_s = step_s * exp(says.log_ratio),
                              .low_s = step_s * exp(says.log_ratio - reach),
                              .high_s = step_s * exp(says.log_ratio + reach)};
}
