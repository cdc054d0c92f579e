/* spec/resolve_lengths.h - a file of texts' lengths becomes the histogram that it counts. */
#ifndef ORR_SPEC_RESOLVE_LENGTHS_H
#define ORR_SPEC_RESOLVE_LENGTHS_H

#include "spec/resolve_internal.h"

/* training.lengths.file, where there is one: a line a text, a count of tokens, or an object with length, tokens or
 * num_tokens, or with a list of input_ids. In its place comes training.lengths.histogram. More than 64 lengths are put together where
 * that changes the sum of squares least; the mean stays. False with the resolver's error. */
bool spec_resolve_lengths(const Resolver *resolver, OrrJsonDoc *doc);

#endif
