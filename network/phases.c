/* network/phases.c - what generators share: rings and chains over a line of ranks, and counts of steps and chunks. */
#include "network/phases.h"

static int net_line_rank(const NetLine *line, int index)
{
    return line->first + index * line->stride;
}

NetLine net_dim_line(const NetShape *shape, int rank, int dim)
{
    int stride = 1;
    for (int d = 0; d < dim; d++)
        stride *= shape->dims[d];
    const int at = rank / stride % shape->dims[dim];
    return (NetLine){.first = rank - at * stride, .stride = stride, .size = shape->dims[dim], .at = at};
}

static int modulo(int value, int modulus)
{
    const int rest = value % modulus;
    return rest < 0 ? rest + modulus : rest;
}

static void send_block(const NetLine *line, const NetBlocks *blocks, int block, bool reduce, NetSends *sends)
{
    const int next = net_line_rank(line, (line->at + 1) % line->size);
    const int index = modulo(block, line->size);
    net_send(sends, next, blocks->first + index * blocks->pitch, blocks->stride, blocks->count, reduce);
}

void net_ring_reduce_scatter(const NetLine *line, const NetBlocks *blocks, int shift, int step,
                             NetSends *sends)
{
    send_block(line, blocks, line->at - step + shift, true, sends);
}

void net_ring_all_gather(const NetLine *line, const NetBlocks *blocks, int shift, int step, NetSends *sends)
{
    send_block(line, blocks, line->at - step + 1 + shift, false, sends);
}

void net_ring_all_reduce(const NetLine *line, const NetBlocks *blocks, int step, NetSends *sends)
{
    if (step < line->size - 1)
        net_ring_reduce_scatter(line, blocks, 0, step, sends);
    else
        net_ring_all_gather(line, blocks, 0, step - (line->size - 1), sends);
}

int net_chain_steps(int size, int segments)
{
    return size > 1 ? size - 2 + segments : 0;
}

void net_chain_broadcast(const NetLine *line, const NetBlocks *segment, int segments, int step,
                         NetSends *sends)
{
    const int index = step - line->at;
    if (line->at < line->size - 1 && index >= 0 && index < segments)
        net_send(sends, net_line_rank(line, line->at + 1), segment->first + index * segment->pitch,
                 segment->stride, segment->count, false);
}

void net_chain_reduce(const NetLine *line, const NetBlocks *segment, int segments, int step, NetSends *sends)
{
    const int index = step - (line->size - 1 - line->at);
    if (line->at > 0 && index >= 0 && index < segments)
        net_send(sends, net_line_rank(line, line->at - 1), segment->first + index * segment->pitch,
                 segment->stride, segment->count, true);
}

void net_join(const NetShape *shape, int rank, int step, NetSends *sends, int before, NetGenerator *first,
              NetGenerator *second)
{
    if (step < before)
        first(shape, rank, step, sends);
    else
        second(shape, rank, step - before, sends);
}

/* --- counts --- */

int64_t net_chunks_one(const NetShape *shape)
{
    (void)shape;
    return 1;
}

int64_t net_chunks_ranks(const NetShape *shape)
{
    return shape->ranks;
}

int64_t net_chunks_pairs(const NetShape *shape)
{
    return (int64_t)shape->ranks * shape->ranks;
}

int64_t net_chunks_segments(const NetShape *shape)
{
    return shape->segments;
}

int net_steps_one(const NetShape *shape)
{
    return shape->ranks > 1 ? 1 : 0;
}

int net_steps_two(const NetShape *shape)
{
    return shape->ranks > 1 ? 2 : 0;
}

int net_steps_others(const NetShape *shape)
{
    return shape->ranks - 1;
}

int net_steps_others_twice(const NetShape *shape)
{
    return 2 * (shape->ranks - 1);
}

int net_steps_log(const NetShape *shape)
{
    return net_log2_up(shape->ranks);
}

int net_steps_log_twice(const NetShape *shape)
{
    return 2 * net_log2_up(shape->ranks);
}

int net_steps_chain(const NetShape *shape)
{
    return net_chain_steps(shape->ranks, shape->segments);
}
