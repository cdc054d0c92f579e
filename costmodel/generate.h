/* costmodel/generate.h - answers to many prompts, written by replicas of an inference engine until the last one ends.
 *
 * A replica has as many sequences as its cache and its engine allow; the next one starts where one ends. Lengths of answers
 * are spread over their distribution (one a quantile) and dealt to replicas in drawn order; the replica with the longest is
 * followed. No arrivals: all prompts are there when the clock starts.
 */
#ifndef ORR_COSTMODEL_GENERATE_H
#define ORR_COSTMODEL_GENERATE_H

#include "base/lengths.h"
#include "costmodel/decode.h"

typedef struct CostGenerateAsk {
    double prompts, samples_per_prompt; /* whole numbers of at least 1 */
    double prompt_tokens;               /* of each; at least 1 */
    OrrLengths answers;                 /* tokens of an answer */
    int most_sequences;                 /* of a replica at once; 0: the engine's */
    unsigned seed;
} CostGenerateAsk;

typedef struct CostGenerated {
    double seconds, prefill_s, decode_s;
    double tail_s; /* at the end, with at most half as many sequences as at most */
    double tokens; /* of all answers */
    double tokens_per_s, tokens_per_s_per_gpu;
    double sequences;              /* of the followed replica */
    double most_batch, mean_batch; /* sequences at once; the mean over steps */
    double mean_context;           /* tokens of a sequence, over the same */
    double steps, preempted;
    double capacity_tokens, capacity_bytes; /* of the cache of a rank */
    double peak_bytes;                      /* of a rank: weights, work and the cache when it holds most */
    double cache_bytes;                     /* of a rank, when it holds most */
    double weights_bytes;                   /* of a rank */
    double part_s[COST_DECODE_PART_COUNT];  /* of decode_s */
} CostGenerated;

/* `decode` made for at least the sequences that a replica may have. Fails where a prompt with its longest answer is more than a
 * cache holds, or the model has no such position. */
bool cost_generate(const CostDecode *decode, const CostGenerateAsk *ask, CostGenerated *ret_result,
                   GError **error);

/* Fails where the software of `spec` has no engine: training frameworks, and those without a preset that give none. */
bool cost_generate_has_engine(const Spec *spec, GError **error);

/* Sequences that a replica of the question may have at most: for cost_decode_init(). */
double cost_generate_most(const Spec *spec, const CostGenerateAsk *ask);

#endif
