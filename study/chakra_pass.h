/* study/chakra_pass.h - a pass over a stage or a segment as stretches of computing and collectives between them. */
#ifndef ORR_STUDY_CHAKRA_PASS_H
#define ORR_STUDY_CHAKRA_PASS_H

#include "exchange/chakra.h"
#include "study/chakra_ranks.h"
#include "study/trace_items.h"

typedef struct ChakraPiece {
    double until_frac; /* of the pass's computing that is done before the collective, or at the end */
    bool collective, beside;
    TraceClass kind;
    ChakraGroup group;
    double bytes; /* that a rank puts in */
} ChakraPiece;

typedef struct ChakraPasses ChakraPasses;
ChakraPasses *chakra_passes_new(const Report *report);
void chakra_passes_free(ChakraPasses *passes);
/* ChakraPiece in their order, kept; the last is no collective. `segment` -1: the whole stage. */
const GArray *chakra_passes_pieces(ChakraPasses *passes, const ChakraRanks *ranks, SimTag tag, int stage,
                                   int segment);

/* Of a work, without what it waits for communication. */
double chakra_computing_ps(const SimWork *work);
/* What a rank puts into a collective of which it sends so many bytes. */
double chakra_put_in(TraceClass kind, int ranks, double sent);
/* How gradients are reduced. */
TraceClass chakra_reduce_class(const Report *report);
/* What of a step files for other simulators have no words for; NULL: nothing. */
const char *chakra_lacks(const Report *report);

#endif
