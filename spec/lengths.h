/* spec/lengths.h - lengths of the texts that are trained on, and whether they are packed into rows or padded. */
#ifndef ORR_SPEC_LENGTHS_H
#define ORR_SPEC_LENGTHS_H

#include <stdbool.h>

#include "base/lengths.h"

#define SPEC_LENGTHS_MOST 64

typedef struct SpecLengths {
    bool given;
    double mean, log_sd; /* tokens; standard deviation of the logarithm */
    int max;             /* longer ones are cut off; 0: at the sequence's length */
    bool drop_longer;    /* they are left out instead */
    bool
        packed; /* several to a row of the sequence's length; or each padded to the longest of its micro-batch */
    bool from_file;      /* which is not read yet: of a scenario as it was written */
    int histogram_count; /* in place of mean and log_sd; 0: none */
    float histogram_tokens[SPEC_LENGTHS_MOST], histogram_weight[SPEC_LENGTHS_MOST];
    double packed_frac; /* of a row that texts fill, 1 where they are not packed; complete */
} SpecLengths;

/* Context ranks split rows of one length: rows that texts fill, or texts that are all as long. */
static inline bool spec_lengths_split(const SpecLengths *lengths)
{
    return !lengths->given || lengths->packed;
}

/* The distribution with what is too long cut off, or without it; lengths->given. False: no text is left. */
bool spec_lengths(const SpecLengths *lengths, int sequence_length, OrrLengths *out);

#endif
