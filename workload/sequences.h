/* workload/sequences.h - sequences of many lengths as micro-batches of the replicas that train on them. */
#ifndef ORR_WORKLOAD_SEQUENCES_H
#define ORR_WORKLOAD_SEQUENCES_H

#include "base/lengths.h"
#include "spec/spec.h"

/* The sequences of a step: prompt and answer. Tokens. */
typedef struct Sequences {
    double count;          /* trained on */
    double prompt, answer; /* means */
    double mean, square;   /* of the whole sequence: mean, and mean of the squares */
    double longest;        /* mean of the longest of `count` */
    double room;           /* what padding gives each; 0: not padded */
    OrrLengths answers;
} Sequences;

void sequences_of(const SpecWorkload *workload, Sequences *ret_sequences);

/* What a replica works off for so many of them: `microbatches` rows of `tokens` each, with attention over documents of
 * `document_tokens` (0: over whole rows). Rows of one length that are counted, not packed by tokens, stay `sequences` side by
 * side, so that attention that keeps its scores keeps them for each alone. */
typedef struct SequenceRows {
    int microbatches;
    int tokens;
    int sequences; /* of `tokens` / `sequences` in a micro-batch; 1: one, or several packed in a row */
    double document_tokens;
    double busiest_frac; /* tokens of the busiest replica over the mean */
} SequenceRows;

/* `count` sequences on the replicas of `spec`, the parallel layout of which decides how rows are cut. */
SequenceRows sequences_rows(const Sequences *sequences, const SpecWorkload *workload, const Spec *spec,
                            double count, int micro_batch);

/* Trainers deal whole sequences, as many to each replica, and refuse what does not divide: false, with what would.
 * Source: [NemoRl] algorithms/grpo.py ("must be divisible by data_parallel size") */
bool sequences_check_dealt(const Sequences *sequences, const SpecWorkload *workload, const Spec *spec,
                           const char *where, GError **error);

/* The scenario with these rows as its batch. */
void sequences_put(const SequenceRows *rows, Spec *spec);

/* Mean length of exponentially distributed documents whose attention in a row of `tokens` has `pairs` pairs; 0: as many as
 * one text of the whole row, or more. */
double sequences_document_tokens(double tokens, double pairs);

#endif
