/* network/algorithm.c - pieces, their bytes, and the messages of a step. */
#include "network/phases.h"

#include <string.h>

/* Of `count` chunks first, first + stride ... those below `limit`. */
static int64_t below(const NetPiece *piece, int64_t limit)
{
    if (piece->first >= limit)
        return 0;
    return MIN((limit - piece->first + piece->stride - 1) / piece->stride, piece->count);
}

/* Bytes of every chunk, and how many of them have one more. */
typedef struct Chunks {
    int64_t bytes, longer;
} Chunks;

static Chunks cut(const NetAlgorithm *algorithm, const NetShape *shape, int64_t bytes)
{
    if (algorithm->op == NET_SEND_RECV)
        return (Chunks){.bytes = bytes};
    const int64_t total = algorithm->op == NET_ALL_TO_ALL ? bytes * shape->ranks : bytes;
    const int64_t chunks = algorithm->chunks(shape);
    return (Chunks){total / chunks, total % chunks};
}

static int64_t bytes_of(const Chunks *chunks, const NetPiece *piece)
{
    return piece->count * chunks->bytes + (chunks->longer > 0 ? below(piece, chunks->longer) : 0);
}

int64_t net_piece_bytes(const NetAlgorithm *algorithm, const NetShape *shape, int64_t bytes,
                        const NetPiece *piece)
{
    const Chunks chunks = cut(algorithm, shape, bytes);
    return bytes_of(&chunks, piece);
}

void net_step_clear(NetStep *step)
{
    g_free(step->messages);
    g_free(step->first_of);
    net_sends_clear(&step->scratch);
    memset(step, 0, sizeof *step);
}

static void add_message(NetStep *step, int from, int to, int64_t bytes, int first)
{
    if (step->count > first && step->messages[step->count - 1].to == to) {
        step->messages[step->count - 1].bytes += bytes;
        return;
    }
    if (step->count == step->capacity) {
        step->capacity = MAX(64, 2 * step->capacity);
        step->messages = g_renew(NetMessage, step->messages, step->capacity);
    }
    step->messages[step->count++] = (NetMessage){.from = from, .to = to, .bytes = bytes};
}

void net_step_fill(NetStep *step, const NetAlgorithm *algorithm, const NetShape *shape, int64_t bytes,
                   int index)
{
    const int ranks = shape->ranks + net_algorithm_switches(algorithm, shape);
    const Chunks chunks = cut(algorithm, shape, bytes);
    if (step->first_of == NULL)
        step->first_of = g_new0(int32_t, ranks + 1);
    step->count = 0;
    for (int rank = 0; rank < ranks; rank++) {
        const int first = step->count;
        step->first_of[rank] = first;
        step->scratch.count = 0;
        algorithm->sends(shape, rank, index, &step->scratch);
        for (int i = 0; i < step->scratch.count; i++) {
            const NetPiece *piece = &step->scratch.pieces[i];
            add_message(step, rank, piece->peer, bytes_of(&chunks, piece), first);
        }
    }
    step->first_of[ranks] = step->count;
}

int net_steps_alike(const NetAlgorithm *algorithm, const NetShape *shape, int64_t bytes, int index)
{
    static const struct {
        NetGenerator *sends;
        NetAlike *alike;
    } rings[] = {
        {net_ring_reduce_scatter_sends, net_ring_alike},   {net_ring_all_gather_sends, net_ring_alike},
        {net_ring_all_reduce_sends, net_ring_twice_alike}, {net_dims_reduce_scatter_sends, net_dims_alike},
        {net_dims_all_gather_sends, net_dims_up_alike},    {net_dims_all_reduce_sends, net_dims_twice_alike},
        {net_mesh_all_reduce_sends, net_mesh_alike},
    };
    if (cut(algorithm, shape, bytes).longer > 0)
        return 0;
    for (gsize i = 0; i < G_N_ELEMENTS(rings); i++)
        if (rings[i].sends == algorithm->sends)
            return rings[i].alike(shape, index);
    return 0;
}

bool net_step_same(const NetStep *a, const NetStep *b)
{
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->messages, b->messages, sizeof *a->messages * (gsize)a->count) == 0);
}
