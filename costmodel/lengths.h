/* costmodel/lengths.h - what texts of many lengths cost, packed into rows or padded to the longest of their micro-batch. */
#ifndef ORR_COSTMODEL_LENGTHS_H
#define ORR_COSTMODEL_LENGTHS_H

#include "spec/spec.h"

/* Positions that a sequence of a micro-batch takes, on average: sequence_length, or where texts are padded the longest of
 * micro_batch draws. What the longest possible takes over that, for memory. */
double cost_positions(const Spec *spec);
double cost_longest_over_mean(const Spec *spec);

/* Tokens of a step that are trained on [tokens]: positions without padding. */
double cost_trained_tokens(const Spec *spec);

/* Pairs of tokens of a packed row that see each other, of a causal model: each token half of its own text.
 * 0 where texts are not packed by lengths. */
double cost_packed_pairs(const Spec *spec);

/* By how much the longest of the data-parallel ranks' batches exceeds their mean, which all wait for: 0.3 for 30 %. Ranks
 * meet once a step, or where weights are gathered layer by layer (ZeRO 3) in every micro-batch. Sums of a rank's
 * micro-batches are taken as log-normal with their mean and variance. Ignores: that replicas of HSDP meet less often, and that packed rows differ in their attention. */
double cost_lengths_wait_frac(const Spec *spec);

#endif
