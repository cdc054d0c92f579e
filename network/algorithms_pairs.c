/* network/algorithms_pairs.c - everyone with everyone: all at once, or one peer a step. Chunk src * n + dst of an
 * all-to-all is what src has for dst.
 *
 * Source: [Thakur2005]
 */
#include "network/phases.h"

static int later(const NetShape *shape, int rank, int distance)
{
    return (rank + distance) % shape->ranks;
}

/* --- all at once --- */

NET_GENERATOR(net_direct_broadcast_sends)
{
    (void)step;
    for (int d = 1; rank == shape->root && d < shape->ranks; d++)
        net_send(sends, later(shape, rank, d), 0, 1, 1, false);
}

NET_GENERATOR(net_copy_sends)
{
    (void)step;
    if (rank == shape->root && shape->ranks > 1)
        net_send(sends, later(shape, rank, 1), 0, 1, 1, false);
}

NET_GENERATOR(net_direct_reduce_sends)
{
    (void)step;
    if (rank != shape->root)
        net_send(sends, shape->root, 0, 1, 1, true);
}

NET_GENERATOR(net_direct_scatter_sends)
{
    (void)step;
    for (int d = 1; rank == shape->root && d < shape->ranks; d++)
        net_send(sends, later(shape, rank, d), later(shape, rank, d), 1, 1, false);
}

NET_GENERATOR(net_direct_gather_sends)
{
    (void)step;
    if (rank != shape->root)
        net_send(sends, shape->root, rank, 1, 1, false);
}

NET_GENERATOR(net_direct_all_gather_sends)
{
    (void)step;
    for (int d = 1; d < shape->ranks; d++)
        net_send(sends, later(shape, rank, d), rank, 1, 1, false);
}

NET_GENERATOR(net_direct_reduce_scatter_sends)
{
    (void)step;
    for (int d = 1; d < shape->ranks; d++)
        net_send(sends, later(shape, rank, d), later(shape, rank, d), 1, 1, true);
}

/* "Two-shot": everyone sums one part, everyone hands it out. */
NET_GENERATOR(net_direct_all_reduce_sends)
{
    if (step == 0)
        net_direct_reduce_scatter_sends(shape, rank, step, sends);
    else
        net_direct_all_gather_sends(shape, rank, step, sends);
}

/* "One-shot": everyone hands all it has to everyone, who sums it all. */
NET_GENERATOR(net_one_shot_sends)
{
    (void)step;
    for (int d = 1; d < shape->ranks; d++)
        net_send(sends, later(shape, rank, d), 0, 1, 1, true);
}

NET_GENERATOR(net_direct_all_to_all_sends)
{
    (void)step;
    for (int d = 1; d < shape->ranks; d++)
        net_send(sends, later(shape, rank, d), rank * shape->ranks + later(shape, rank, d), 1, 1, false);
}

/* --- one after the other --- */

NET_GENERATOR(net_linear_broadcast_sends)
{
    if (rank == shape->root)
        net_send(sends, later(shape, rank, step + 1), 0, 1, 1, false);
}

NET_GENERATOR(net_linear_reduce_sends)
{
    if (rank == later(shape, shape->root, step + 1))
        net_send(sends, shape->root, 0, 1, 1, true);
}

NET_GENERATOR(net_linear_scatter_sends)
{
    if (rank == shape->root)
        net_send(sends, later(shape, rank, step + 1), later(shape, rank, step + 1), 1, 1, false);
}

NET_GENERATOR(net_linear_gather_sends)
{
    if (rank == later(shape, shape->root, step + 1))
        net_send(sends, shape->root, rank, 1, 1, false);
}

NET_GENERATOR(net_pairwise_all_gather_sends)
{
    net_send(sends, later(shape, rank, step + 1), rank, 1, 1, false);
}

NET_GENERATOR(net_pairwise_reduce_scatter_sends)
{
    net_send(sends, later(shape, rank, step + 1), later(shape, rank, step + 1), 1, 1, true);
}

NET_GENERATOR(net_pairwise_all_to_all_sends)
{
    const int peer = later(shape, rank, step + 1);
    net_send(sends, peer, rank * shape->ranks + peer, 1, 1, false);
}
