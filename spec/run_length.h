/* spec/run_length.h - how long the whole run is: in tokens, or in epochs of a data set. */
#ifndef ORR_SPEC_RUN_LENGTH_H
#define ORR_SPEC_RUN_LENGTH_H

#include "spec/spec.h"

/* Sets training.tokens [tokens] from training.epochs, where that is what is given: epochs * samples * their length,
 * which is sequence_length, or the mean of training.lengths; and the share of a row that packing fills. Fails
 * where the samples are missing, or the tokens say something else. `where`: the scenario's file. */
bool spec_complete_run_length(SpecTraining *training, const char *where, GError **error);

/* Tokens of a text of the data set, on average: sequence_length, or those of training.lengths with what is too long cut
 * off. */
double spec_text_tokens(const SpecTraining *training);

#endif
