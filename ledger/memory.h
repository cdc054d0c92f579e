/* ledger/memory.h - whether a configuration fits, from how much memory published runs took beyond their predictions.
 *
 * What must fit is what the tensors of a run need. Only a peak of allocated tensors tells it: what a caching allocator
 * reserves, and what a device shows, grows while there is room and is given back before an allocation fails, so such a
 * reading bounds the need from above and no more. Source: [PyTorch] c10/cuda/CUDACachingAllocator.cpp, release_cached_blocks
 *
 *   reserve = the k-th smallest of beyond_frac over n runs, k = ceil(LEDGER_MEMORY_COVERAGE (n + 1)), at most n
 *     over allocated peaks of configurations that are published, of sources that do not only judge (blind sets, whose
 *     software is often another's profile): of the framework's own where there are LEDGER_MEMORY_NEEDS, else over all;
 *     twice that where no run of the framework has a published memory; never below 0. A share of the GPU's memory.
 *   odds = share of the same runs whose beyond_frac is no more than the share that a configuration leaves free
 *   seen = the same quantile of all readings, of the framework where there are LEDGER_MEMORY_RUNS (and no more than of
 *     all): what runs took beyond their prediction with what allocators took because there was room
 * The k-th of n + 1 covers one more run of the same kind with at least LEDGER_MEMORY_COVERAGE, which the plain
 * quantile of n does not. Source: Vovk et al., Algorithmic Learning in a Random World (split conformal prediction)
 * Ignores: that the error of a run depends on its layout; that of one source the runs are alike.
 * Tested: unit/ledger/test_memory_verdict.c, published/test_ledger.c
 */
#ifndef ORR_LEDGER_MEMORY_H
#define ORR_LEDGER_MEMORY_H

#include "ledger/residuals.h"

#define LEDGER_MEMORY_COVERAGE 0.98
#define LEDGER_MEMORY_RUNS     20
#define LEDGER_MEMORY_NEEDS    10

/* "megatron-core" of "megatron-core-2024": generations of one software count together; g_free. */
char *ledger_framework_family(const char *name);

typedef struct LedgerReserve {
    double frac, seen_frac; /* of the GPU's memory */
    int runs;               /* that frac comes from; 0: none are known, frac 0 */
    bool own;               /* of the framework alone */
    bool doubled;           /* no run of the framework has a published memory */
} LedgerReserve;

/* From all sources but `left_out` (-1: from all). */
LedgerReserve ledger_reserve(const LedgerResiduals *residuals, const char *framework, int left_out);

/* NAN: no runs are known. */
double ledger_memory_odds(const LedgerResiduals *residuals, const char *framework, double free_frac);

/* What a user asks for instead: a share ("0.1", "10 %") or bytes ("8 GiB"). NULL: nothing asked. */
typedef struct LedgerReserveAsk {
    bool given;
    double frac, bytes; /* one of them 0 */
} LedgerReserveAsk;
bool ledger_reserve_parse(const char *text, LedgerReserveAsk *ret_ask, GError **error);

/* Refuses a reserve that leaves nothing of the scenario's GPU. */
bool ledger_reserve_check(const LedgerReserveAsk *ask, const Spec *spec, GError **error);

/* Bytes to keep free on the scenario's GPU: what was asked, else none where the scenario's `search` limits memory by
 * itself, else the ledger's. `residuals` may be NULL. */
double ledger_reserve_bytes(const LedgerResiduals *residuals, const LedgerReserveAsk *ask, const Spec *spec);

/* Fills the report's reserve, verdict and odds. */
void ledger_memory_fill(const LedgerResiduals *residuals, const LedgerReserveAsk *ask, Report *report);

#endif
