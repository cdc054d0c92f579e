/* search/probe.h - what a model's pieces cost and keep on a rank of a group, as step/pieces.h reads
 * them from plans: the simulator's own picoseconds and bytes; used by costs.c alone.
 */
#ifndef ORR_SEARCH_PROBE_H
#define ORR_SEARCH_PROBE_H

#include "search/costs.h"

/* What a layer costs with one choice of recomputation. */
typedef struct SearchLayerRecompute {
    int64_t ps; /* runs again in the backward */
    StepSplit side;
    int64_t kept_bytes, input_only_bytes, forward_temp_bytes, backward_temp_bytes;
} SearchLayerRecompute;

typedef struct SearchLayer {
    StepPiece piece; /* passes: the least of all choices of recomputation */
    SearchLayerRecompute again[SEARCH_RECOMPUTED_COUNT];
} SearchLayer;

/* Fills in everything but the sums of `ret_costs`, and a row of `ret_rows` [layers], zero before, for every layer.
 * Of one `kind` of GPUs (search/hardware.h). `whole`: every choice of recomputation that the space may try, otherwise none. */
void search_probe(const SearchSpace *space, const SearchGroup *group, int kind, bool whole, OrrArena *scratch,
                  SearchCosts *ret_costs, SearchLayer *ret_rows);

/* Whether a group's probe holds for every data and pipeline degree. */
bool search_placed_alike(const SearchSpace *space, const SearchGroup *group);

#endif
