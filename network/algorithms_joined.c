/* network/algorithms_joined.c - one algorithm after another: broadcast as scatter and all-gather, reduce as
 * reduce-scatter and gather, and halving and doubling along the rails of nodes.
 *
 * Source: [VanDeGeijn1994] for the broadcast, [Thakur2005] for the reduce, [Accl2021] for the rails
 */
#include "network/phases.h"

/* Van de Geijn's: parts down a binomial tree, then around a ring. */
int net_scatter_ring_steps(const NetShape *shape)
{
    return net_steps_log(shape) + net_steps_others(shape);
}

NET_GENERATOR(net_scatter_ring_sends)
{
    net_join(shape, rank, step, sends, net_steps_log(shape), net_binomial_scatter_sends,
             net_ring_all_gather_sends);
}

int net_halving_gather_steps(const NetShape *shape)
{
    return net_folded_steps(shape) + net_steps_log(shape);
}

NET_GENERATOR(net_halving_gather_sends)
{
    net_join(shape, rank, step, sends, net_folded_steps(shape), net_halving_sends, net_binomial_gather_sends);
}

int net_ring_gather_steps(const NetShape *shape)
{
    return shape->ranks > 1 ? shape->ranks : 0;
}

/* Sums around a ring, then everyone's part to the root at once. */
NET_GENERATOR(net_ring_gather_sends)
{
    net_join(shape, rank, step, sends, net_steps_others(shape), net_ring_reduce_scatter_sends,
             net_direct_gather_sends);
}

/* --- rings in the node, halving and doubling along every rail. Chunks: places in a node x parts of a rail --- */

static NetShape rail_of(const NetShape *shape)
{
    return (NetShape){.ranks = shape->dims[1], .dims = {shape->dims[1]}, .dim_count = 1, .segments = 1};
}

int net_rails_halving_steps(const NetShape *shape)
{
    const NetShape rail = rail_of(shape);
    return 2 * (shape->dims[0] - 1) + net_folded_steps_twice(&rail);
}

int64_t net_rails_halving_chunks(const NetShape *shape)
{
    const NetShape rail = rail_of(shape);
    return shape->dims[0] * net_chunks_power(&rail);
}

NET_GENERATOR(net_rails_halving_sends)
{
    const NetShape rail = rail_of(shape);
    const int g = shape->dims[0], along = net_folded_steps_twice(&rail), from = sends->count;
    const NetLine node = net_dim_line(shape, rank, 0);
    const NetBlocks blocks = {.pitch = 1, .stride = g, .count = (int)net_chunks_power(&rail)};
    if (step < g - 1) {
        net_ring_reduce_scatter(&node, &blocks, -1, step, sends);
    } else if (step >= g - 1 + along) {
        net_ring_all_gather(&node, &blocks, -1, step - (g - 1) - along, sends);
    } else {
        net_rabenseifner_sends(&rail, rank / g, step - (g - 1), sends);
        for (int i = from; i < sends->count; i++) {
            NetPiece *piece = &sends->pieces[i];
            piece->peer = piece->peer * g + node.at;
            piece->first = piece->first * g + node.at;
            piece->stride *= g;
        }
    }
}
