/* costmodel/decode.h - what an inference engine takes to read prompts and to write one token of each of many answers.
 *
 * Costs are of one rank of a replica: tensor ranks share every sequence; ranks of experts alone (tensor 1, expert above 1)
 * have sequences of their own and exchange rows. The engine is execution.framework.engine, the format of weights
 * training.precision. docs/MODEL-generation.md derives it.
 */
#ifndef ORR_COSTMODEL_DECODE_H
#define ORR_COSTMODEL_DECODE_H

#include "costmodel/ops.h"

typedef enum {
    COST_DECODE_PRODUCTS,  /* linear layers and the head */
    COST_DECODE_ATTENTION, /* keys and values read */
    COST_DECODE_COMM,      /* sums of tensor ranks, exchanges of experts */
    COST_DECODE_SMALL,     /* norms, activations, routing, sampling */
    COST_DECODE_HOST,      /* gaps between kernels, and what the host takes for a step */
    COST_DECODE_PART_COUNT
} CostDecodePart;

typedef struct CostDecodeTime {
    double part_s[COST_DECODE_PART_COUNT];
    double kernels; /* that are launched */
} CostDecodeTime;

double cost_decode_total_s(const CostDecodeTime *time);

enum { COST_DECODE_GRID = 40, COST_DECODE_LOADS = 4 };

/* Rows of the rank whose experts have most, over the mean, where so many tokens of all ranks meet their experts. */
typedef struct CostDecodeLoads {
    double tokens[COST_DECODE_LOADS], load[COST_DECODE_LOADS]; /* rising tokens */
    double share[SPEC_MAX_EXPERTS];                            /* of all rows, of each expert */
} CostDecodeLoads;

typedef struct CostDecode {
    CostShape shape;
    int replicas;          /* that generate by themselves: data-parallel ranks */
    int pipeline;          /* batches in flight, one a stage */
    double weights_bytes;  /* of a rank */
    double work_bytes;     /* of a rank: activations of one step, graphs and context */
    double cache_bytes;    /* that are left to keys and values, of a rank */
    double token_bytes;    /* that one token more of a sequence takes of a rank's cache */
    double sequence_bytes; /* at most of one sequence, in layers that keep their window alone */
    double read_bytes;     /* of keys and values of one token on a rank, in layers without a window */
    double window_tokens;  /* of those with one */
    double window_token_bytes;
    double sequence_host_s; /* of the host, for each sequence of a step */
    double pair_flops;      /* of a new token with one earlier one, all layers of a rank */
    double window_pair_flops;
    CostDecodeLoads loads;
    double batch[COST_DECODE_GRID]; /* rising; times of a step without attention */
    CostDecodeTime at[COST_DECODE_GRID];
    int grid;
} CostDecode;

/* `spec` complete: model, cluster, parallel (tensor, expert, pipeline, data), training.precision, execution.framework with an
 * engine. Fails where the weights leave no room for a token. `most`: sequences that a rank may ever have. */
bool cost_decode_init(const Spec *spec, double most, CostDecode *ret_decode, GError **error);

/* Tokens that the caches of a rank hold. */
double cost_decode_capacity_tokens(const CostDecode *decode, double sequences);

/* One token more for each of `batch` sequences of a rank that hold `tokens` in all. */
CostDecodeTime cost_decode_step(const CostDecode *decode, double batch, double tokens);

/* Seconds to read `prompts` prompts of `tokens` tokens, in chunks of the engine's tokens. */
double cost_prefill_s(const CostDecode *decode, double prompts, double tokens);

#endif
