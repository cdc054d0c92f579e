/* network/algorithms_tree.c - trees: binomial, halving and doubling of who takes part, pipelined, double binary.
 *
 * Numbers count from the root. Source: [Thakur2005] binomial; [Sanders2009] two trees, laid out as NCCL does [NCCL]
 */
#include "network/phases.h"

static int number_of(const NetShape *shape, int rank)
{
    return (rank - shape->root + shape->ranks) % shape->ranks;
}

static int rank_of(const NetShape *shape, int number)
{
    return (number + shape->root) % shape->ranks;
}

/* --- binomial --- */

/* Distance of a step that begins with the farthest. */
static int far_first(const NetShape *shape, int step)
{
    return 1 << (net_log2_up(shape->ranks) - 1 - step);
}

NET_GENERATOR(net_binomial_broadcast_sends)
{
    const int number = number_of(shape, rank), d = far_first(shape, step);
    if (number % (2 * d) == 0 && number + d < shape->ranks)
        net_send(sends, rank_of(shape, number + d), 0, 1, 1, false);
}

NET_GENERATOR(net_binomial_reduce_sends)
{
    const int number = number_of(shape, rank), d = 1 << step;
    if (number % (2 * d) == d)
        net_send(sends, rank_of(shape, number - d), 0, 1, 1, true);
}

/* What is for numbers `from` up to `to`. */
static void send_numbers(const NetShape *shape, int peer, int from, int to, NetSends *sends)
{
    const int end = MIN(to, shape->ranks);
    net_send_round(sends, rank_of(shape, peer), rank_of(shape, from), end - from, shape->ranks, false);
}

NET_GENERATOR(net_binomial_scatter_sends)
{
    const int number = number_of(shape, rank), d = far_first(shape, step);
    if (number % (2 * d) == 0 && number + d < shape->ranks)
        send_numbers(shape, number + d, number + d, number + 2 * d, sends);
}

NET_GENERATOR(net_binomial_gather_sends)
{
    const int number = number_of(shape, rank), d = 1 << step;
    if (number % (2 * d) == d)
        send_numbers(shape, number - d, number, number + d, sends);
}

NET_GENERATOR(net_binomial_all_reduce_sends)
{
    net_join(shape, rank, step, sends, net_steps_log(shape), net_binomial_reduce_sends,
             net_binomial_broadcast_sends);
}

/* Those that take part halve step by step, the upper half handing all it has to the lower; then they double again. */
NET_GENERATOR(net_naive_halving_doubling_sends)
{
    const int half = net_log2_up(shape->ranks), number = number_of(shape, rank);
    if (step < half) {
        const int d = far_first(shape, step);
        if (number >= d && number < 2 * d)
            net_send(sends, rank_of(shape, number - d), 0, 1, 1, true);
    } else {
        const int d = 1 << (step - half);
        if (number < d && number + d < shape->ranks)
            net_send(sends, rank_of(shape, number + d), 0, 1, 1, false);
    }
}

/* --- one binary tree, in segments: up, then down --- */

static int depth_of(int number)
{
    int depth = 0;
    for (int n = number + 1; n > 1; n /= 2)
        depth++;
    return depth;
}

int net_pipelined_tree_steps(const NetShape *shape)
{
    return shape->ranks > 1 ? 2 * (depth_of(shape->ranks - 1) + shape->segments - 1) : 0;
}

NET_GENERATOR(net_pipelined_tree_sends)
{
    const int height = depth_of(shape->ranks - 1), half = height + shape->segments - 1;
    const int number = number_of(shape, rank), depth = depth_of(number);
    if (step < half) {
        const int segment = step - (height - depth);
        if (number > 0 && segment >= 0 && segment < shape->segments)
            net_send(sends, rank_of(shape, (number - 1) / 2), segment, 1, 1, true);
        return;
    }
    const int segment = step - half - depth;
    for (int child = 2 * number + 1; child <= 2 * number + 2 && child < shape->ranks; child++)
        if (segment >= 0 && segment < shape->segments)
            net_send(sends, rank_of(shape, child), segment, 1, 1, false);
}

/* --- two binary trees, each with half of the bytes; who is a leaf of one is inside the other --- */

static int lowest_bit(int number)
{
    return number & -number;
}

static int parent_of(int number, int ranks)
{
    const int bit = lowest_bit(number), up = (number ^ bit) | (bit << 1);
    return up < ranks ? up : number ^ bit;
}

/* Parents stand on a lower level than their children; the deepest is lg. */
static int level_of(int number, int ranks)
{
    return number == 0 ? 0 : net_log2_up(ranks) - net_log2_up(lowest_bit(number));
}

/* Place of a rank in tree 0 or 1: the second tree is the first one mirrored, or turned by one for odd n. */
static int place_in(int tree, int rank, int ranks)
{
    if (tree == 0)
        return rank;
    return ranks % 2 == 0 ? ranks - 1 - rank : (rank + ranks - 1) % ranks;
}

static int rank_at(int tree, int place, int ranks)
{
    if (tree == 0)
        return place;
    return ranks % 2 == 0 ? ranks - 1 - place : (place + 1) % ranks;
}

int net_double_tree_steps(const NetShape *shape)
{
    return shape->ranks > 1 ? 2 * net_log2_up(shape->ranks) + shape->segments - 1 : 0;
}

int64_t net_double_tree_chunks(const NetShape *shape)
{
    return 2 * (int64_t)shape->segments;
}

static void send_down(const NetShape *shape, int tree, int place, int chunk, NetSends *sends)
{
    const int n = shape->ranks, top = place == 0 ? 1 << net_log2_up(n) : lowest_bit(place);
    for (int bit = 1; bit < top; bit *= 2) {
        const int near[2] = {place - bit, place + bit};
        for (int i = 0; i < 2; i++)
            if (near[i] > 0 && near[i] < n && parent_of(near[i], n) == place)
                net_send(sends, rank_at(tree, near[i], n), chunk, 1, 1, false);
    }
}

/* Segment j goes up from level l in step j + lg - l and down from it in step j + lg + l. */
NET_GENERATOR(net_double_tree_sends)
{
    const int n = shape->ranks, lg = net_log2_up(n), s = shape->segments;
    for (int tree = 0; tree < 2; tree++) {
        const int place = place_in(tree, rank, n), level = level_of(place, n);
        const int up = step - (lg - level), down = step - (lg + level);
        if (place > 0 && up >= 0 && up < s)
            net_send(sends, rank_at(tree, parent_of(place, n), n), tree * s + up, 1, 1, true);
        if (down >= 0 && down < s)
            send_down(shape, tree, place, tree * s + down, sends);
    }
}
