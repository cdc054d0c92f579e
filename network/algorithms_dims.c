/* network/algorithms_dims.c - one dimension after the other (tori, rails, grids), leaders of nodes, and reduction in
 * the network.
 *
 * Chunks are numbered like ranks. After reduce-scatters along dimensions 0 .. d a rank holds the chunks that share its
 * first d + 1 coordinates. Source: [Thakur2005]; torus and leaders as in docs/MODEL-collectives.md; NVLS, SHARP [NCCL]
 */
#include "network/phases.h"

static int volume_below(const NetShape *shape, int dim)
{
    int volume = 1;
    for (int d = 0; d < dim; d++)
        volume *= shape->dims[d];
    return volume;
}

/* Block i of dimension d among the chunks that a rank still works on. */
static NetBlocks dim_blocks(const NetShape *shape, int rank, int dim)
{
    const int below = volume_below(shape, dim), with = below * shape->dims[dim];
    return (NetBlocks){.first = rank % below, .pitch = below, .stride = with, .count = shape->ranks / with};
}

/* The dimension that `step` belongs to, counted from the first or from the last, and its step within. */
static int dim_of(const NetShape *shape, int *step, bool upward)
{
    for (int i = 0; i < shape->dim_count; i++) {
        const int dim = upward ? i : shape->dim_count - 1 - i;
        if (*step < shape->dims[dim] - 1)
            return dim;
        *step -= shape->dims[dim] - 1;
    }
    g_assert_not_reached();
}

int net_dims_steps(const NetShape *shape)
{
    int steps = 0;
    for (int d = 0; d < shape->dim_count; d++)
        steps += shape->dims[d] - 1;
    return steps;
}

int net_dims_steps_twice(const NetShape *shape)
{
    return 2 * net_dims_steps(shape);
}

int net_dims_alike(const NetShape *shape, int step)
{
    const int dim = dim_of(shape, &step, true);
    return shape->dims[dim] - 2 - step;
}

int net_dims_up_alike(const NetShape *shape, int step)
{
    const int dim = dim_of(shape, &step, false);
    return shape->dims[dim] - 2 - step;
}

int net_dims_twice_alike(const NetShape *shape, int step)
{
    const int before = net_dims_steps(shape);
    return step < before ? net_dims_alike(shape, step) : net_dims_up_alike(shape, step - before);
}

NET_GENERATOR(net_dims_reduce_scatter_sends)
{
    int inner = step;
    const int dim = dim_of(shape, &inner, true);
    const NetLine line = net_dim_line(shape, rank, dim);
    const NetBlocks blocks = dim_blocks(shape, rank, dim);
    net_ring_reduce_scatter(&line, &blocks, -1, inner, sends);
}

NET_GENERATOR(net_dims_all_gather_sends)
{
    int inner = step;
    const int dim = dim_of(shape, &inner, false);
    const NetLine line = net_dim_line(shape, rank, dim);
    const NetBlocks blocks = dim_blocks(shape, rank, dim);
    net_ring_all_gather(&line, &blocks, -1, inner, sends);
}

NET_GENERATOR(net_dims_all_reduce_sends)
{
    net_join(shape, rank, step, sends, net_dims_steps(shape), net_dims_reduce_scatter_sends,
             net_dims_all_gather_sends);
}

/* To the member of the own node that sits where the receiver sits in its node, then along that place's rail. */
NET_GENERATOR(net_dims_all_to_all_sends)
{
    const int n = shape->ranks, g = shape->dims[0], k = shape->dims[1], node = rank / g, local = rank % g;
    if (step < g - 1) {
        const int place = (local + step + 1) % g;
        net_send(sends, node * g + place, rank * n + place, g, k, false);
    } else {
        const int to = (node + step - (g - 1) + 1) % k;
        net_send(sends, to * g + local, node * g * n + to * g + local, n, g, false);
    }
}

int net_mesh_alike(const NetShape *shape, int step)
{
    int dim = 0;
    while (step >= 2 * (shape->dims[dim] - 1))
        step -= 2 * (shape->dims[dim++] - 1);
    return 2 * (shape->dims[dim] - 1) - 1 - step;
}

/* A whole ring all-reduce along every dimension in turn. */
NET_GENERATOR(net_mesh_all_reduce_sends)
{
    int inner = step, dim = 0;
    while (inner >= 2 * (shape->dims[dim] - 1))
        inner -= 2 * (shape->dims[dim++] - 1);
    const NetLine line = net_dim_line(shape, rank, dim);
    const int width = shape->ranks / shape->dims[dim];
    const NetBlocks blocks = {.first = 0, .pitch = width, .stride = 1, .count = width};
    net_ring_all_reduce(&line, &blocks, inner, sends);
}

/* --- leaders: chains in the node, a ring of leaders. Chunks: segments x nodes --- */

int net_leader_steps(const NetShape *shape)
{
    return 2 * net_chain_steps(shape->dims[0], shape->segments) + 2 * (shape->dims[1] - 1);
}

int64_t net_leader_chunks(const NetShape *shape)
{
    return (int64_t)shape->segments * shape->dims[1];
}

NET_GENERATOR(net_leader_sends)
{
    const int s = shape->segments, k = shape->dims[1];
    const int chain = net_chain_steps(shape->dims[0], s), ring = 2 * (k - 1);
    const NetLine node = net_dim_line(shape, rank, 0), leaders = net_dim_line(shape, rank, 1);
    const NetBlocks segment = {.first = 0, .pitch = k, .stride = 1, .count = k};
    const NetBlocks block = {.first = 0, .pitch = s, .stride = 1, .count = s};
    if (step < chain)
        net_chain_reduce(&node, &segment, s, step, sends);
    else if (step >= chain + ring)
        net_chain_broadcast(&node, &segment, s, step - chain - ring, sends);
    else if (node.at == 0)
        net_ring_all_reduce(&leaders, &block, step - chain, sends);
}

/* --- sums in the switch --- */

int net_nvls_switches(const NetShape *shape)
{
    (void)shape;
    return 1;
}

NET_GENERATOR(net_nvls_sends)
{
    if (step == 0 && rank < shape->ranks)
        net_send(sends, shape->ranks, 0, 1, 1, true);
    for (int peer = 0; step == 1 && rank == shape->ranks && peer < shape->ranks; peer++)
        net_send(sends, peer, 0, 1, 1, false);
}

/* Reduce-scatter in the node, each rail's sum in its switch (of number x = place in the node), all-gather. */
int net_sharp_switches(const NetShape *shape)
{
    return shape->dims[0];
}

int net_sharp_steps(const NetShape *shape)
{
    return 2 * (shape->dims[0] - 1) + 2;
}

NET_GENERATOR(net_sharp_sends)
{
    const int g = shape->dims[0], k = shape->dims[1];
    if (rank >= shape->ranks) {
        const int rail = rank - shape->ranks;
        for (int node = 0; step == g && node < k; node++)
            net_send(sends, node * g + rail, rail, g, k, false);
        return;
    }
    const NetLine line = net_dim_line(shape, rank, 0);
    const NetBlocks blocks = dim_blocks(shape, rank, 0);
    if (step < g - 1)
        net_ring_reduce_scatter(&line, &blocks, -1, step, sends);
    else if (step == g - 1)
        net_send(sends, shape->ranks + line.at, line.at, g, k, true);
    else if (step > g)
        net_ring_all_gather(&line, &blocks, -1, step - g - 1, sends);
}
