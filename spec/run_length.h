/* spec/run_length.h - how long the whole run is: in tokens, or in epochs of a data set. */
#ifndef ORR_SPEC_RUN_LENGTH_H
#define ORR_SPEC_RUN_LENGTH_H

#include "spec/spec.h"

/* Sets training.tokens [tokens] from training.epochs, where that is what is given: epochs * samples * sequence_length. Fails
 * where the samples are missing, or the tokens say something else. `where`: the scenario's file. */
bool spec_complete_run_length(SpecTraining *training, const char *where, GError **error);

#endif
