/* spec/run_length.c - how long the whole run is. Tested: unit/spec/test_run_length.c */
#include "spec/run_length.h"

#include <math.h>

#include "base/error.h"

double spec_text_tokens(const SpecTraining *training)
{
    OrrLengths lengths;
    if (!training->lengths.given)
        return training->sequence_length;
    spec_lengths(&training->lengths, training->sequence_length, &lengths);
    return orr_lengths_mean(&lengths);
}

static double packed_frac(const SpecTraining *training)
{
    OrrLengths lengths;
    if (!training->lengths.packed)
        return 1;
    spec_lengths(&training->lengths, training->sequence_length, &lengths);
    return orr_lengths_packed(&lengths, training->sequence_length);
}

bool spec_complete_run_length(SpecTraining *training, const char *where, GError **error)
{
    if (training->lengths.given)
        training->lengths.packed_frac = packed_frac(training);
    if (!(training->epochs > 0))
        return true;
    if (!(training->samples > 0))
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: training.epochs: %g of a data set of unknown size; give its sequences as training.samples",
            where, training->epochs);
    const double tokens = training->epochs * training->samples * spec_text_tokens(training);
    if (training->tokens > 0 && fabs(training->tokens - tokens) > 1e-9 * tokens)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: training.epochs: %g come to %.9g tokens, but training.tokens is %.9g; give one of them",
            where, training->epochs, tokens, training->tokens);
    training->tokens = tokens;
    return true;
}
