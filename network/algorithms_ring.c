/* network/algorithms_ring.c - rings and chains over all ranks.
 *
 * Source: [PatarasukYuan2009] for the ring; chains as MPI libraries pipeline them [Thakur2005]
 */
#include "network/phases.h"

static NetLine all_ranks(const NetShape *shape, int rank)
{
    return (NetLine){.first = 0, .stride = 1, .size = shape->ranks, .at = rank};
}

/* The root is number 0. */
static int from_root(const NetShape *shape, int rank)
{
    return (rank - shape->root + shape->ranks) % shape->ranks;
}

static const NetBlocks single = {.first = 0, .pitch = 1, .stride = 1, .count = 1};

/* Rank r ends with chunk r. */
NET_GENERATOR(net_ring_reduce_scatter_sends)
{
    const NetLine line = all_ranks(shape, rank);
    net_ring_reduce_scatter(&line, &single, -1, step, sends);
}

NET_GENERATOR(net_ring_all_gather_sends)
{
    const NetLine line = all_ranks(shape, rank);
    net_ring_all_gather(&line, &single, -1, step, sends);
}

/* In step s of the first half rank r sends chunk r - s, and owns r + 1 when it ends. */
NET_GENERATOR(net_ring_all_reduce_sends)
{
    const NetLine line = all_ranks(shape, rank);
    net_ring_all_reduce(&line, &single, step, sends);
}

/* Turns numbers from the root back into ranks. */
static void turn(const NetShape *shape, NetSends *sends, int from)
{
    for (int i = from; i < sends->count; i++)
        sends->pieces[i].peer = (sends->pieces[i].peer + shape->root) % shape->ranks;
}

NET_GENERATOR(net_chain_broadcast_sends)
{
    const NetLine line = all_ranks(shape, from_root(shape, rank));
    const int from = sends->count;
    net_chain_broadcast(&line, &single, shape->segments, step, sends);
    turn(shape, sends, from);
}

NET_GENERATOR(net_chain_reduce_sends)
{
    const NetLine line = all_ranks(shape, from_root(shape, rank));
    const int from = sends->count;
    net_chain_reduce(&line, &single, shape->segments, step, sends);
    turn(shape, sends, from);
}

/* Chunk r is rank r's message. */
NET_GENERATOR(net_next_sends)
{
    (void)step;
    net_send(sends, (rank + 1) % shape->ranks, rank, 1, 1, false);
}

int net_ring_alike(const NetShape *shape, int step)
{
    return net_steps_others(shape) - 1 - step;
}

int net_ring_twice_alike(const NetShape *shape, int step)
{
    return net_steps_others_twice(shape) - 1 - step;
}
