/* network/proof.h - what every rank holds after each step, and whether it is what the operation promises.
 *
 * Symbols instead of numbers: of each chunk a rank holds, how often each rank's contribution is in it. Steps are
 * snapshots: what a step sends is what was held before it. Not for time, and for few ranks: memory is
 * ranks x chunks x contributors.
 */
#ifndef ORR_NETWORK_PROOF_H
#define ORR_NETWORK_PROOF_H

#include "network/algorithm.h"

typedef enum { NET_SUM, NET_MIN, NET_MAX, NET_REDUCTION_COUNT } NetReduction;

/* "sum" ...; false: it is none of them. */
bool net_reduction_find(const char *word, NetReduction *ret_reduction);

typedef struct NetHoldings {
    NetReduction reduction;
    int ranks; /* with switches behind them */
    int chunks, sources;
    uint8_t *times; /* [rank][chunk][source] */
} NetHoldings;

/* More than this many cells are refused by net_prove(). */
#define NET_PROOF_CELLS ((int64_t)1 << 28)

static inline const uint8_t *net_held(const NetHoldings *holdings, int rank, int chunk)
{
    return holdings->times + ((int64_t)rank * holdings->chunks + chunk) * holdings->sources;
}

/* Called before the first step (step -1) and after each. */
typedef void (*NetWatch)(const NetHoldings *holdings, int step, void *data);

/* Runs all steps. A contribution that is promised is to be there exactly once; of a barrier, of signals and of a least or
 * greatest value at least once, for hearing it twice does no harm. False with a sentence that names the first rank and chunk that hold something else than promised, or a
 * piece that its sender did not have. */
bool net_prove(const NetAlgorithm *algorithm, const NetShape *shape, NetReduction reduction, NetWatch watch,
               void *data, GError **error);

/* "0+1+2", "min(0,1,2)": who is in it, in the style of the operation; "-": nothing. g_free */
char *net_held_text(const NetHoldings *holdings, const NetAlgorithm *algorithm, int rank, int chunk);

#endif
