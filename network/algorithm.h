/* network/algorithm.h - collectives as step generators: who sends which chunks to whom, step by step.
 *
 * A row of net_algorithms() is one algorithm of one operation. Its generator says for (rank, step) what the rank sends:
 * pieces of a peer, a range of chunks, and whether the peer adds them to what it holds or keeps them instead. Time,
 * bytes, flows on a fabric and the proof of what everyone holds in the end all come from these pieces.
 * No link, no rate, no second is known here.
 */
#ifndef ORR_NETWORK_ALGORITHM_H
#define ORR_NETWORK_ALGORITHM_H

#include <stdint.h>

#include "base/error.h"

typedef enum {
    NET_SEND_RECV, /* every rank to the next one */
    NET_BROADCAST,
    NET_REDUCE,
    NET_SCATTER,
    NET_GATHER,
    NET_ALL_GATHER,
    NET_REDUCE_SCATTER,
    NET_ALL_REDUCE,
    NET_ALL_TO_ALL,
    NET_BARRIER,
    NET_COPY,   /* the root's buffer into the next rank's memory, one-sided */
    NET_SIGNAL, /* the root tells everyone, without data */
    NET_WAIT,   /* the root goes on when all others have told it */
    NET_OP_COUNT
} NetOp;

/* "all-reduce" ... */
const char *net_op_name(NetOp op);
/* Underscores pass for hyphens; false when no operation is called so. */
bool net_op_find(const char *word, NetOp *ret_op);
/* False: it carries no bytes, only the word that somebody is there. */
bool net_op_moves_data(NetOp op);
/* It combines what ranks hold: a sum, or the least or greatest of it. */
bool net_op_reduces(NetOp op);
/* Bus bandwidth over algorithm bandwidth of nccl-tests; 2 (n-1)/n of an all-reduce. */
double net_op_bus_factor(NetOp op, int ranks);

#define NET_MAX_DIMS  8
#define NET_MAX_RANKS (1 << 20)

/* What a generator is asked about. Ranks count the first dimension fastest: rank = x + X (y + Y z). */
typedef struct NetShape {
    int ranks;
    int dims[NET_MAX_DIMS]; /* their product is `ranks`; hierarchical: GPUs a node, nodes */
    int dim_count;          /* 1 with dims[0] = ranks: flat */
    int root;
    int segments; /* of pipelines, 1 or more */
} NetShape;

/* Chunks first, first + stride ... of them `count`. Pieces of one step to one peer travel as one message. */
typedef struct NetPiece {
    int32_t peer;
    int32_t first, stride, count;
    bool reduce; /* the peer adds them; else they replace what it has */
} NetPiece;

/* Grows as needed; net_sends_clear() when done. Zeroed: empty. */
typedef struct NetSends {
    NetPiece *pieces;
    int count, capacity;
} NetSends;

void net_sends_clear(NetSends *sends);
void net_send(NetSends *sends, int peer, int first, int stride, int count, bool reduce);
/* Chunks first .. first + count - 1 modulo `modulus`. */
void net_send_round(NetSends *sends, int peer, int first, int count, int modulus, bool reduce);

typedef struct NetAlgorithm {
    NetOp op;
    const char *name;
    const char *formula; /* seconds: n ranks, S bytes, a latency, B rate, lg = ceil(log2 n), s segments */
    const char *help;
    int least_dims; /* 2: wants nodes or a grid; 0 and 1: any shape */
    int most_dims;  /* 0: as many as there are */
    int (*steps)(const NetShape *shape);
    int64_t (*chunks)(const NetShape *shape);
    void (*sends)(const NetShape *shape, int rank, int step, NetSends *sends);
    int (*switches)(
        const NetShape *shape); /* peers ranks, ranks + 1 ... that reduce in the network; NULL: none */
    bool streamed; /* switches send on what is still coming in: their step adds its latency and no bytes */
} NetAlgorithm;

const NetAlgorithm *net_algorithms(int *ret_count);
/* NULL and a sentence that names those of the operation. */
const NetAlgorithm *net_algorithm_find(NetOp op, const char *name, GError **error);
/* NULL: it can run on this shape; else why not, for people. */
const char *net_algorithm_refuses(const NetAlgorithm *algorithm, const NetShape *shape);
int net_algorithm_switches(const NetAlgorithm *algorithm, const NetShape *shape);

/* Bytes of a piece. All-gather, reduce-scatter, gather, scatter: `bytes` is the whole tensor; all-to-all: what one rank
 * sends, its own part included; send-receive: the message. The first chunks are a byte longer where they do not
 * come out even. */
int64_t net_piece_bytes(const NetAlgorithm *algorithm, const NetShape *shape, int64_t bytes,
                        const NetPiece *piece);

/* Everything that is sent in one step, as messages: those of rank r stand from first_of[r] to first_of[r + 1]. */
typedef struct NetMessage {
    int32_t from, to;
    int64_t bytes;
} NetMessage;

typedef struct NetStep {
    NetMessage *messages;
    int count, capacity;
    int32_t *first_of; /* [ranks + switches + 1] */
    NetSends scratch;
} NetStep;

void net_step_clear(NetStep *step);
void net_step_fill(NetStep *step, const NetAlgorithm *algorithm, const NetShape *shape, int64_t bytes,
                   int index);
/* How many steps after this one are known to send the same messages as it does, without asking what they send. */
int net_steps_alike(const NetAlgorithm *algorithm, const NetShape *shape, int64_t bytes, int index);
/* The same messages, in the same order. */
bool net_step_same(const NetStep *a, const NetStep *b);

/* ceil(log2 n); 0 for 1. */
int net_log2_up(int n);
/* The largest power of two up to n. */
int net_power_below(int n);

#endif
