/* spec/run_length.c - how long the whole run is. Tested: unit/spec/test_run_length.c */
#include "spec/run_length.h"

#include <math.h>

#include "base/error.h"

bool spec_complete_run_length(SpecTraining *training, const char *where, GError **error)
{
    if (!(training->epochs > 0))
        return true;
    if (!(training->samples > 0))
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: training.epochs: %g of a data set of unknown size; give its sequences as training.samples",
            where, training->epochs);
    const double tokens = training->epochs * training->samples * training->sequence_length;
    if (training->tokens > 0 && fabs(training->tokens - tokens) > 1e-9 * tokens)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: training.epochs: %g come to %.9g tokens, but training.tokens is %.9g; give one of them",
            where, training->epochs, tokens, training->tokens);
    training->tokens = tokens;
    return true;
}
