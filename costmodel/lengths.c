/* costmodel/lengths.c - see lengths.h. Tested: unit/costmodel/test_padding.c */
#include "costmodel/lengths.h"

#include <math.h>

static bool pads(const Spec *spec)
{
    return spec->training.lengths.given && !spec->training.lengths.packed;
}

static void lengths_of(const Spec *spec, OrrLengths *out)
{
    spec_lengths(&spec->training.lengths, spec->training.sequence_length, out);
}

double cost_positions(const Spec *spec)
{
    OrrLengths lengths;
    if (!pads(spec))
        return spec->training.sequence_length;
    lengths_of(spec, &lengths);
    return orr_lengths_longest(&lengths, spec->training.micro_batch);
}

double cost_longest_over_mean(const Spec *spec)
{
    OrrLengths lengths;
    if (!pads(spec))
        return 1;
    lengths_of(spec, &lengths);
    return lengths.tokens[lengths.count - 1] / orr_lengths_longest(&lengths, spec->training.micro_batch);
}

double cost_trained_tokens(const Spec *spec)
{
    const SpecTraining *training = &spec->training;
    OrrLengths lengths;
    if (!pads(spec))
        return (double)training->global_batch * training->sequence_length *
               (training->lengths.given ? training->lengths.packed_frac : 1);
    lengths_of(spec, &lengths);
    return training->global_batch * orr_lengths_mean(&lengths);
}

double cost_packed_pairs(const Spec *spec)
{
    const SpecLengths *given = &spec->training.lengths;
    OrrLengths lengths;
    if (!given->given || !given->packed)
        return 0;
    lengths_of(spec, &lengths);
    const double each = orr_lengths_square(&lengths) / orr_lengths_mean(&lengths) / 2;
    return fmin(each, spec->training.sequence_length / 2.0) * spec->training.sequence_length *
           given->packed_frac;
}

double cost_lengths_wait_frac(const Spec *spec)
{
    OrrLengths lengths, sums;
    if (!pads(spec) || spec->parallel.data < 2)
        return 0;
    lengths_of(spec, &lengths);
    /* weights that are gathered layer by layer keep the ranks together within each micro-batch */
    const double draws = spec->training.micro_batch,
                 times = spec->parallel.zero >= 3 ? 1 : spec_microbatches(spec),
                 mean = orr_lengths_longest(&lengths, draws);
    if (times <= 1)
        return orr_lengths_longest(&lengths, draws * spec->parallel.data) / mean - 1;
    const double variance = orr_lengths_longest_variance(&lengths, draws) / (mean * mean) / times;
    orr_lengths_log_normal(mean, sqrt(log1p(variance)), lengths.tokens[lengths.count - 1], &sums);
    return fmax(0, orr_lengths_longest(&sums, spec->parallel.data) / mean - 1);
}
