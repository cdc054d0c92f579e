/* network/phases.h - generators of network/algorithms.c's table, one family a file, and the pieces they share. Internal. */
#ifndef ORR_NETWORK_PHASES_H
#define ORR_NETWORK_PHASES_H

#include "network/algorithm.h"

/* Ranks first, first + stride ...; the one that is asked is number `at`. */
typedef struct NetLine {
    int first, stride, size, at;
} NetLine;

/* Chunks of block i of a line: first + i * pitch, and so on by `stride`, `count` of them. */
typedef struct NetBlocks {
    int first, pitch, stride, count;
} NetBlocks;

NetLine net_dim_line(const NetShape *shape, int rank, int dim);

/* Ring of size - 1 steps. Reduce-scatter: number i sends block i - step + shift and ends up with i + 1 + shift whole;
 * all-gather: it begins with block i + 1 + shift. */
void net_ring_reduce_scatter(const NetLine *line, const NetBlocks *blocks, int shift, int step,
                             NetSends *sends);
void net_ring_all_gather(const NetLine *line, const NetBlocks *blocks, int shift, int step, NetSends *sends);
/* Both: 2 (size - 1) steps. */
void net_ring_all_reduce(const NetLine *line, const NetBlocks *blocks, int step, NetSends *sends);

/* A chain of size - 2 + segments steps (none for one rank) from number 0 to the last, or to number 0 with sums. */
int net_chain_steps(int size, int segments);
void net_chain_broadcast(const NetLine *line, const NetBlocks *segment, int segments, int step,
                         NetSends *sends);
void net_chain_reduce(const NetLine *line, const NetBlocks *segment, int segments, int step, NetSends *sends);

#define NET_GENERATOR(name) void name(const NetShape *shape, int rank, int step, NetSends *sends)

typedef NET_GENERATOR(NetGenerator);

/* Of rings: steps after this one with the same peers and as many chunks. */
typedef int NetAlike(const NetShape *shape, int step);
NetAlike net_ring_alike, net_ring_twice_alike; /* algorithms_ring.c */
NetAlike net_dims_alike, net_dims_up_alike,
    net_dims_twice_alike; /* algorithms_dims.c: from the first, the last, both */
NetAlike net_mesh_alike;

/* phases.c */
/* One after another: `before` steps of the first, then the second from its own step 0 on. */
void net_join(const NetShape *shape, int rank, int step, NetSends *sends, int before, NetGenerator *first,
              NetGenerator *second);
int64_t net_chunks_one(const NetShape *shape);
int64_t net_chunks_ranks(const NetShape *shape);
int64_t net_chunks_pairs(const NetShape *shape);
int64_t net_chunks_segments(const NetShape *shape);
int net_steps_one(const NetShape *shape);
int net_steps_two(const NetShape *shape);
int net_steps_others(const NetShape *shape);       /* n - 1 */
int net_steps_others_twice(const NetShape *shape); /* 2 (n - 1) */
int net_steps_log(const NetShape *shape);          /* lg */
int net_steps_log_twice(const NetShape *shape);
int net_steps_chain(const NetShape *shape);

/* algorithms_ring.c */
NET_GENERATOR(net_ring_reduce_scatter_sends);
NET_GENERATOR(net_ring_all_gather_sends);
NET_GENERATOR(net_ring_all_reduce_sends);
NET_GENERATOR(net_chain_broadcast_sends);
NET_GENERATOR(net_chain_reduce_sends);
NET_GENERATOR(net_next_sends);

/* algorithms_pairs.c: everyone with everyone */
NET_GENERATOR(net_direct_broadcast_sends);
NET_GENERATOR(net_copy_sends);
NET_GENERATOR(net_direct_reduce_sends);
NET_GENERATOR(net_direct_scatter_sends);
NET_GENERATOR(net_direct_gather_sends);
NET_GENERATOR(net_direct_all_gather_sends);
NET_GENERATOR(net_direct_reduce_scatter_sends);
NET_GENERATOR(net_direct_all_reduce_sends);
NET_GENERATOR(net_one_shot_sends);
NET_GENERATOR(net_direct_all_to_all_sends);
NET_GENERATOR(net_linear_broadcast_sends);
NET_GENERATOR(net_linear_reduce_sends);
NET_GENERATOR(net_linear_scatter_sends);
NET_GENERATOR(net_linear_gather_sends);
NET_GENERATOR(net_pairwise_all_gather_sends);
NET_GENERATOR(net_pairwise_reduce_scatter_sends);
NET_GENERATOR(net_pairwise_all_to_all_sends);

/* algorithms_tree.c */
NET_GENERATOR(net_binomial_broadcast_sends);
NET_GENERATOR(net_binomial_reduce_sends);
NET_GENERATOR(net_binomial_scatter_sends);
NET_GENERATOR(net_binomial_gather_sends);
NET_GENERATOR(net_binomial_all_reduce_sends);
NET_GENERATOR(net_naive_halving_doubling_sends);
NET_GENERATOR(net_pipelined_tree_sends);
int net_pipelined_tree_steps(const NetShape *shape);
NET_GENERATOR(net_double_tree_sends);
int net_double_tree_steps(const NetShape *shape);
int64_t net_double_tree_chunks(const NetShape *shape);

/* algorithms_log.c */
int net_folded_steps(const NetShape *shape); /* lg of a power of two, else one more on either side */
int net_folded_steps_twice(const NetShape *shape);
int64_t net_chunks_power(const NetShape *shape);
NET_GENERATOR(net_butterfly_sends);
NET_GENERATOR(net_rabenseifner_sends);
NET_GENERATOR(net_halving_sends);
NET_GENERATOR(net_doubling_sends);
NET_GENERATOR(net_bruck_all_gather_sends);
NET_GENERATOR(net_bruck_all_to_all_sends);
NET_GENERATOR(net_dissemination_sends);
NET_GENERATOR(net_pat_all_gather_sends);
NET_GENERATOR(net_pat_reduce_scatter_sends);

/* algorithms_dims.c: one dimension after the other, and reduction in the network */
int net_dims_steps(const NetShape *shape); /* sum of (size - 1) */
int net_dims_steps_twice(const NetShape *shape);
NET_GENERATOR(net_dims_reduce_scatter_sends);
NET_GENERATOR(net_dims_all_gather_sends);
NET_GENERATOR(net_dims_all_reduce_sends);
NET_GENERATOR(net_dims_all_to_all_sends);
NET_GENERATOR(net_mesh_all_reduce_sends);
int net_leader_steps(const NetShape *shape);
int64_t net_leader_chunks(const NetShape *shape);
NET_GENERATOR(net_leader_sends);
NET_GENERATOR(net_nvls_sends);
int net_nvls_switches(const NetShape *shape);
int net_sharp_steps(const NetShape *shape);
int net_sharp_switches(const NetShape *shape);
NET_GENERATOR(net_sharp_sends);

/* algorithms_joined.c: one after another */
int net_scatter_ring_steps(const NetShape *shape);
NET_GENERATOR(net_scatter_ring_sends);
int net_halving_gather_steps(const NetShape *shape);
NET_GENERATOR(net_halving_gather_sends);
int net_ring_gather_steps(const NetShape *shape);
NET_GENERATOR(net_ring_gather_sends);
int net_rails_halving_steps(const NetShape *shape);
int64_t net_rails_halving_chunks(const NetShape *shape);
NET_GENERATOR(net_rails_halving_sends);

#endif
