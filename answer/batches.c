/* answer/batches.c - see batches.h. Tested: unit/answer/test_batches.c
 *
 * A schedule's sizes follow each other: size i trains n_i tokens at its own step. Days are the sum of n_i over the tokens
 * of a step times its seconds. A batch that grows by N sequences has as many sequences at each size on its way.
 * Source: Megatron-LM core/num_microbatches_calculator.py (--rampup-batch-size)
 */
#include "answer/batches.h"

#include <math.h>

#include "costmodel/lengths.h"

enum { MOST_SIZES = 1024 };

/* What all sizes add up to. */
typedef struct Sum {
    double hours, kwh;
} Sum;

static ReportBatch size_of(const Report *report, double tokens)
{
    const SpecTraining *training = &report->spec->training;
    return (ReportBatch){.global_batch = training->global_batch,
                         .sequence_length = training->sequence_length,
                         .tokens = tokens,
                         .step_s = (double)report->step_ps * 1e-12,
                         .days = tokens / report->tokens_per_s / 86400};
}

static bool add_size(const ReportOptions *options, const Report *report, int batch, int length, double tokens,
                     Sum *sum, ReportBatch *ret_size, GError **error)
{
    g_autofree Spec *spec = g_memdup2(report->spec, sizeof *report->spec);
    const ReportOptions own = {.ideal = options->ideal, .analytic = options->analytic};
    OrrArena *arena = orr_arena_new();
    Report size;
    spec->training.batches_count = 0;
    spec->training.global_batch = batch;
    spec->training.sequence_length = length;
    spec->training.tokens = tokens;
    const bool ok = spec_check(spec, "", error) && report_run(spec, NULL, &own, arena, &size, error);
    if (ok) {
        *ret_size = size_of(&size, tokens);
        sum->hours += size.days * 24;
        sum->kwh += size.kwh;
    } else
        g_prefix_error(error, "training.batch_schedule: at %d sequences of %d tokens: ", batch, length);
    orr_arena_free(arena);
    return ok;
}

/* Sizes of entry `index` on its way to the next batch, and how many there are. */
static int sizes_of(const SpecTraining *training, int index)
{
    const SpecBatches *entry = &training->batches[index];
    return entry->by > 0 ? (spec_batches_next(training, index) - entry->global_batch) / entry->by : 1;
}

static bool add_entry(const ReportOptions *options, Report *report, int index, Sum *sum, GError **error)
{
    const SpecTraining *training = &report->spec->training;
    const SpecBatches *entry = &training->batches[index];
    const int length = entry->sequence_length > 0 ? entry->sequence_length : training->sequence_length,
              sizes = sizes_of(training, index);
    for (int i = 0; i < sizes; i++)
        if (!add_size(options, report, entry->global_batch + i * entry->by, length,
                      spec_batches_tokens(training, index) / sizes, sum,
                      &report->batches[report->batch_count++], error))
            return false;
    return true;
}

bool answer_batches(const ReportOptions *options, OrrArena *arena, Report *report, GError **error)
{
    const SpecTraining *training = &report->spec->training;
    double before = 0;
    int sizes = 1;
    Sum sum = {0};
    if (training->batches_count == 0 || !(report->days > 0) || options->textbook)
        return true;
    for (int i = 0; i < training->batches_count; i++) {
        before += spec_batches_tokens(training, i);
        sizes += sizes_of(training, i);
    }
    if (sizes > MOST_SIZES)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "training.batch_schedule: %d sizes of a step, more than %d; let the batch grow by more", sizes,
            MOST_SIZES);
    report->batches = ORR_ARENA_NEW(arena, ReportBatch, sizes);
    for (int i = 0; i < training->batches_count; i++)
        if (!add_entry(options, report, i, &sum, error))
            return false;
    const double rest = training->tokens - before, share = rest / training->tokens;
    report->batches[report->batch_count++] = size_of(report, rest);
    const double hours = report->days * 24 * share + sum.hours,
                 usd = report_hours_usd(report) * hours / (report->days * 24);
    report->days = hours / 24;
    report->gpu_hours = hours * report->gpus;
    report_energy_fill(report, usd, report->kwh * share + sum.kwh);
    return true;
}
