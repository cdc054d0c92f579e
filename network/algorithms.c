/* network/algorithms.c - the table of algorithms. */
#include <string.h>

#include "base/text.h"
#include "network/phases.h"

static const struct {
    const char *name;
    double per_other; /* bus factor: this times (n-1)/n; 0: 1 */
} ops[NET_OP_COUNT] = {
    [NET_SEND_RECV] = {"send-recv", 0},
    [NET_BROADCAST] = {"broadcast", 0},
    [NET_REDUCE] = {"reduce", 0},
    [NET_SCATTER] = {"scatter", 1},
    [NET_GATHER] = {"gather", 1},
    [NET_ALL_GATHER] = {"all-gather", 1},
    [NET_REDUCE_SCATTER] = {"reduce-scatter", 1},
    [NET_ALL_REDUCE] = {"all-reduce", 2},
    [NET_ALL_TO_ALL] = {"all-to-all", 1},
    [NET_BARRIER] = {"barrier", 0},
    [NET_COPY] = {"copy", 0},
    [NET_SIGNAL] = {"signal", 0},
    [NET_WAIT] = {"wait", 0},
};

const char *net_op_name(NetOp op)
{
    return ops[op].name;
}

bool net_op_find(const char *word, NetOp *ret_op)
{
    g_autofree char *name = g_strdelimit(g_strdup(word), "_", '-');
    if (strcmp(name, "alltoall") == 0)
        strcpy(name, "a2a");
    if (strcmp(name, "send") == 0 || strcmp(name, "recv") == 0) { /* two ends of one message */
        *ret_op = NET_SEND_RECV;
        return true;
    }
    for (int op = 0; op < NET_OP_COUNT; op++) {
        if (strcmp(ops[op].name, name) == 0 || (op == NET_ALL_TO_ALL && strcmp(name, "a2a") == 0)) {
            *ret_op = (NetOp)op;
            return true;
        }
    }
    return false;
}

bool net_op_moves_data(NetOp op)
{
    return op != NET_BARRIER && op != NET_SIGNAL && op != NET_WAIT;
}

bool net_op_reduces(NetOp op)
{
    return op == NET_REDUCE || op == NET_REDUCE_SCATTER || op == NET_ALL_REDUCE;
}

double net_op_bus_factor(NetOp op, int ranks)
{
    return ops[op].per_other > 0 ? ops[op].per_other * (ranks - 1) / ranks : 1;
}

static const NetAlgorithm table[] = {
    {NET_SEND_RECV, "direct", "a + S/B", "every rank to the next one", 0, 0, net_steps_one, net_chunks_ranks,
     net_next_sends, NULL, false},

    {NET_BROADCAST, "binomial", "lg (a + S/B)", "who has it doubles every step", 0, 0, net_steps_log,
     net_chunks_one, net_binomial_broadcast_sends, NULL, false},
    {NET_BROADCAST, "pipelined", "(n-2+s)(a + S/(sB))", "a chain, in segments", 0, 0, net_steps_chain,
     net_chunks_segments, net_chain_broadcast_sends, NULL, false},
    {NET_BROADCAST, "direct", "a + (n-1) S/B", "the root to everyone at once", 0, 0, net_steps_one,
     net_chunks_one, net_direct_broadcast_sends, NULL, false},
    {NET_BROADCAST, "linear", "(n-1)(a + S/B)", "the root to one after the other", 0, 0, net_steps_others,
     net_chunks_one, net_linear_broadcast_sends, NULL, false},

    {NET_BROADCAST, "scatter-ring", "(lg+n-1) a + 2(n-1)/n S/B", "parts down a tree, then around a ring", 0,
     0, net_scatter_ring_steps, net_chunks_ranks, net_scatter_ring_sends, NULL, false},

    {NET_REDUCE, "binomial", "lg (a + S/B)", "who still holds a part halves every step", 0, 0, net_steps_log,
     net_chunks_one, net_binomial_reduce_sends, NULL, false},
    {NET_REDUCE, "pipelined", "(n-2+s)(a + S/(sB))", "a chain, in segments", 0, 0, net_steps_chain,
     net_chunks_segments, net_chain_reduce_sends, NULL, false},
    {NET_REDUCE, "direct", "a + (n-1) S/B", "everyone to the root at once", 0, 0, net_steps_one,
     net_chunks_one, net_direct_reduce_sends, NULL, false},
    {NET_REDUCE, "linear", "(n-1)(a + S/B)", "one after the other to the root", 0, 0, net_steps_others,
     net_chunks_one, net_linear_reduce_sends, NULL, false},

    {NET_REDUCE, "halving-gather",
     "2 lg a + 2(n-1)/n S/B; unless n is a power of 2 two steps and up to 3/2 S/B more",
     "reduce-scatter by halving, the parts up a tree", 0, 0, net_halving_gather_steps, net_chunks_ranks,
     net_halving_gather_sends, NULL, false},
    {NET_REDUCE, "ring-gather", "n a + 2(n-1)/n S/B", "reduce-scatter around a ring, then all parts at once",
     0, 0, net_ring_gather_steps, net_chunks_ranks, net_ring_gather_sends, NULL, false},

    {NET_SCATTER, "binomial", "lg a + (n-1)/n S/B", "halves of what is left, down a tree", 0, 0,
     net_steps_log, net_chunks_ranks, net_binomial_scatter_sends, NULL, false},
    {NET_SCATTER, "linear", "(n-1)(a + S/(nB))", "the root to one after the other", 0, 0, net_steps_others,
     net_chunks_ranks, net_linear_scatter_sends, NULL, false},
    {NET_SCATTER, "direct", "a + (n-1)/n S/B", "the root to everyone at once", 0, 0, net_steps_one,
     net_chunks_ranks, net_direct_scatter_sends, NULL, false},

    {NET_GATHER, "binomial", "lg a + (n-1)/n S/B", "up a tree", 0, 0, net_steps_log, net_chunks_ranks,
     net_binomial_gather_sends, NULL, false},
    {NET_GATHER, "linear", "(n-1)(a + S/(nB))", "one after the other to the root", 0, 0, net_steps_others,
     net_chunks_ranks, net_linear_gather_sends, NULL, false},
    {NET_GATHER, "direct", "a + (n-1)/n S/B", "everyone to the root at once", 0, 0, net_steps_one,
     net_chunks_ranks, net_direct_gather_sends, NULL, false},

    {NET_ALL_GATHER, "ring", "(n-1)(a + S/(nB))", "blocks go around", 0, 0, net_steps_others,
     net_chunks_ranks, net_ring_all_gather_sends, NULL, false},
    {NET_ALL_GATHER, "recursive-doubling",
     "lg a + (n-1)/n S/B; unless n is a power of 2 two steps and up to 3/2 S/B more",
     "what everyone has doubles", 0, 0, net_folded_steps, net_chunks_ranks, net_doubling_sends, NULL, false},
    {NET_ALL_GATHER, "bruck", "lg a + (n-1)/n S/B", "distances 1, 2, 4 ... around any n", 0, 0, net_steps_log,
     net_chunks_ranks, net_bruck_all_gather_sends, NULL, false},
    {NET_ALL_GATHER, "pat", "lg a + (n-1)/n S/B", "parallel aggregated trees, the farthest first", 0, 0,
     net_steps_log, net_chunks_ranks, net_pat_all_gather_sends, NULL, false},
    {NET_ALL_GATHER, "pairwise", "(n-1)(a + S/(nB))", "the own block to one peer a step", 0, 0,
     net_steps_others, net_chunks_ranks, net_pairwise_all_gather_sends, NULL, false},
    {NET_ALL_GATHER, "direct", "a + (n-1)/n S/B", "the own block to everyone at once", 0, 0, net_steps_one,
     net_chunks_ranks, net_direct_all_gather_sends, NULL, false},
    {NET_ALL_GATHER, "rails", "(k-1)(a2 + S/(nB2)) + (g-1)(a1 + S/(gB1))",
     "rings along the last dimension first, then in the node", 2, 0, net_dims_steps, net_chunks_ranks,
     net_dims_all_gather_sends, NULL, false},

    {NET_REDUCE_SCATTER, "ring", "(n-1)(a + S/(nB))", "sums go around", 0, 0, net_steps_others,
     net_chunks_ranks, net_ring_reduce_scatter_sends, NULL, false},
    {NET_REDUCE_SCATTER, "recursive-halving",
     "lg a + (n-1)/n S/B; unless n is a power of 2 two steps and up to 3/2 S/B more",
     "what everyone sums halves", 0, 0, net_folded_steps, net_chunks_ranks, net_halving_sends, NULL, false},
    {NET_REDUCE_SCATTER, "pat", "lg a + (n-1)/n S/B", "parallel aggregated trees, the nearest first", 0, 0,
     net_steps_log, net_chunks_ranks, net_pat_reduce_scatter_sends, NULL, false},
    {NET_REDUCE_SCATTER, "pairwise", "(n-1)(a + S/(nB))", "one peer's part a step", 0, 0, net_steps_others,
     net_chunks_ranks, net_pairwise_reduce_scatter_sends, NULL, false},
    {NET_REDUCE_SCATTER, "direct", "a + (n-1)/n S/B", "everyone's part to everyone at once", 0, 0,
     net_steps_one, net_chunks_ranks, net_direct_reduce_scatter_sends, NULL, false},
    {NET_REDUCE_SCATTER, "rails", "(g-1)(a1 + S/(gB1)) + (k-1)(a2 + S/(nB2))",
     "rings in the node, then along every rail", 2, 0, net_dims_steps, net_chunks_ranks,
     net_dims_reduce_scatter_sends, NULL, false},

    {NET_ALL_REDUCE, "ring", "2(n-1)(a + S/(nB))", "reduce-scatter and all-gather around a ring", 0, 0,
     net_steps_others_twice, net_chunks_ranks, net_ring_all_reduce_sends, NULL, false},
    {NET_ALL_REDUCE, "halving-doubling-naive", "2 lg (a + S/B)",
     "the upper half hands all to the lower, step by step, and gets all back", 0, 0, net_steps_log_twice,
     net_chunks_one, net_naive_halving_doubling_sends, NULL, false},
    {NET_ALL_REDUCE, "recursive-halving-doubling",
     "2 lg a + 2(n-1)/n S/B; unless n is a power of 2 for 2^k below it, and 2 (a + S/B) more",
     "Rabenseifner: reduce-scatter by halving, all-gather by doubling", 0, 0, net_folded_steps_twice,
     net_chunks_power, net_rabenseifner_sends, NULL, false},
    {NET_ALL_REDUCE, "butterfly", "lg (a + S/B); unless n is a power of 2 (floor(log2 n) + 2)(a + S/B)",
     "recursive doubling: everyone exchanges all with one peer a step", 0, 0, net_folded_steps,
     net_chunks_one, net_butterfly_sends, NULL, false},
    {NET_ALL_REDUCE, "binomial", "2 lg (a + S/B)", "binomial reduce, then binomial broadcast", 0, 0,
     net_steps_log_twice, net_chunks_one, net_binomial_all_reduce_sends, NULL, false},
    {NET_ALL_REDUCE, "pipelined", "2(h+s-1)(a + 2S/(sB)) at most, h = floor(log2 n)",
     "one binary tree, up and down in segments", 0, 0, net_pipelined_tree_steps, net_chunks_segments,
     net_pipelined_tree_sends, NULL, false},
    {NET_ALL_REDUCE, "double-binary-tree", "(2 lg+s-1) a + 2S/B (2 lg+s-1)/s at most",
     "two binary trees, half of the bytes each, up and down at once", 0, 0, net_double_tree_steps,
     net_double_tree_chunks, net_double_tree_sends, NULL, false},
    {NET_ALL_REDUCE, "direct", "2 (a + (n-1)/n S/B)", "two-shot: everyone sums one part and hands it out", 0,
     0, net_steps_two, net_chunks_ranks, net_direct_all_reduce_sends, NULL, false},
    {NET_ALL_REDUCE, "one-shot", "a + (n-1) S/B", "everyone hands all it has to everyone", 0, 0,
     net_steps_one, net_chunks_one, net_one_shot_sends, NULL, false},
    {NET_ALL_REDUCE, "hierarchical-leader", "2(g-2+s)(a1 + S/(sB1)) + 2(k-1)(a2 + S/(kB2))",
     "chains to a leader of each node, a ring of leaders, chains back", 2, 2, net_leader_steps,
     net_leader_chunks, net_leader_sends, NULL, false},
    {NET_ALL_REDUCE, "hierarchical-rails", "2(g-1)(a1 + S/(gB1)) + 2(k-1)(a2 + S/(nB2))",
     "reduce-scatter in the node, all-reduce along every rail, all-gather in the node", 2, 2,
     net_dims_steps_twice, net_chunks_ranks, net_dims_all_reduce_sends, NULL, false},
    {NET_ALL_REDUCE, "hierarchical-halving",
     "2(g-1)(a1 + S/(gB1)) + 2 lg k a2 + 2(k-1)/k S/(gB2); unless k is a power of 2 for 2^j below it, and 2 "
     "(a2 "
     "+ S/(gB2)) more",
     "reduce-scatter in the node, halving and doubling along every rail, all-gather in the node", 2, 2,
     net_rails_halving_steps, net_rails_halving_chunks, net_rails_halving_sends, NULL, false},
    {NET_ALL_REDUCE, "torus-2d", "2(X-1)(a + S/(XB1)) + 2(Y-1)(a + S/(XYB2))",
     "reduce-scatter along rows, all-reduce along columns, all-gather along rows", 2, 2, net_dims_steps_twice,
     net_chunks_ranks, net_dims_all_reduce_sends, NULL, false},
    {NET_ALL_REDUCE, "torus-3d", "2 sum over d of (n_d-1)(a + S_d/(n_d B)), S_d = S/(n_1 .. n_(d-1))",
     "the same along three or more dimensions", 3, 0, net_dims_steps_twice, net_chunks_ranks,
     net_dims_all_reduce_sends, NULL, false},
    {NET_ALL_REDUCE, "mesh-2d", "2(X-1)(a + S/(XB1)) + 2(Y-1)(a + S/(YB2))",
     "a whole all-reduce along rows, then along columns", 2, 0, net_dims_steps_twice, net_chunks_ranks,
     net_mesh_all_reduce_sends, NULL, false},
    {NET_ALL_REDUCE, "nvls", "2a + S/B", "the switch sums and hands out (NVLink-SHARP)", 0, 0, net_steps_two,
     net_chunks_one, net_nvls_sends, net_nvls_switches, true},
    {NET_ALL_REDUCE, "sharp", "2(g-1)(a1 + S/(gB1)) + 2a2 + S/(gB2)",
     "reduce-scatter in the node, each rail's sum in the network, all-gather in the node", 2, 2,
     net_sharp_steps, net_chunks_ranks, net_sharp_sends, net_sharp_switches, true},

    {NET_ALL_TO_ALL, "pairwise", "(n-1)(a + S/(nB))", "one peer a step", 0, 0, net_steps_others,
     net_chunks_pairs, net_pairwise_all_to_all_sends, NULL, false},
    {NET_ALL_TO_ALL, "direct", "a + (n-1)/n S/B", "everyone to everyone at once", 0, 0, net_steps_one,
     net_chunks_pairs, net_direct_all_to_all_sends, NULL, false},
    {NET_ALL_TO_ALL, "bruck", "lg (a + S/(2B)); less unless n is a power of 2", "blocks hop by 1, 2, 4 ...",
     0, 0, net_steps_log, net_chunks_pairs, net_bruck_all_to_all_sends, NULL, false},
    {NET_ALL_TO_ALL, "hierarchical", "(g-1)(a1 + S/(gB1)) + (k-1)(a2 + S/(kB2))",
     "in the node to the receiver's rail, then along it", 2, 2, net_dims_steps, net_chunks_pairs,
     net_dims_all_to_all_sends, NULL, false},

    {NET_BARRIER, "dissemination", "lg a", "done when the last one has arrived", 0, 0, net_steps_log,
     net_chunks_one, net_dissemination_sends, NULL, false},

    {NET_COPY, "direct", "a + S/B", "the root's buffer into the next rank's memory", 0, 0, net_steps_one,
     net_chunks_one, net_copy_sends, NULL, false},
    {NET_SIGNAL, "direct", "a", "the root to everyone at once", 0, 0, net_steps_one, net_chunks_one,
     net_direct_broadcast_sends, NULL, false},
    {NET_SIGNAL, "binomial", "lg a", "who has heard it doubles every step", 0, 0, net_steps_log,
     net_chunks_one, net_binomial_broadcast_sends, NULL, false},
    {NET_WAIT, "direct", "a", "everyone to the root at once", 0, 0, net_steps_one, net_chunks_one,
     net_direct_reduce_sends, NULL, false},
    {NET_WAIT, "binomial", "lg a", "who still has to tell halves every step", 0, 0, net_steps_log,
     net_chunks_one, net_binomial_reduce_sends, NULL, false},
};

const NetAlgorithm *net_algorithms(int *ret_count)
{
    *ret_count = (int)G_N_ELEMENTS(table);
    return table;
}

const NetAlgorithm *net_algorithm_find(NetOp op, const char *name, GError **error)
{
    g_autoptr(GString) known = g_string_new(NULL);
    if (strcmp(name, "rabenseifner") == 0)
        name = "recursive-halving-doubling";
    for (gsize i = 0; i < G_N_ELEMENTS(table); i++) {
        if (table[i].op != op)
            continue;
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
        g_string_append_printf(known, "%s%s", known->len > 0 ? ", " : "", table[i].name);
    }
    orr_fail(error, ORR_ERROR_INPUT, "%s has no algorithm \"%s\"; it can be %s", net_op_name(op), name,
             known->str);
    return NULL;
}

const char *net_algorithm_refuses(const NetAlgorithm *algorithm, const NetShape *shape)
{
    if (algorithm->least_dims > shape->dim_count)
        return algorithm->least_dims == 2 ? "it wants two dimensions: nodes with several ranks, or a grid"
                                          : "it wants three dimensions";
    if (algorithm->most_dims > 0 && algorithm->most_dims < shape->dim_count)
        return "it has two dimensions, and the ranks lie in more";
    if (algorithm->chunks(shape) > G_MAXINT32)
        return "with that many ranks the blocks cannot be told apart";
    return NULL;
}

int net_algorithm_switches(const NetAlgorithm *algorithm, const NetShape *shape)
{
    return algorithm->switches != NULL ? algorithm->switches(shape) : 0;
}
