/* network/proof.c - contributions, counted. */
#include "network/proof.h"

#include <string.h>

typedef struct Proof {
    const NetAlgorithm *algorithm;
    const NetShape *shape;
    NetHoldings now, before;
    int64_t cells;
} Proof;

static bool sums(NetOp op)
{
    return net_op_reduces(op) || op == NET_BARRIER || op == NET_WAIT;
}

static const char *const reductions[NET_REDUCTION_COUNT] = {"sum", "min", "max"};

bool net_reduction_find(const char *word, NetReduction *ret_reduction)
{
    for (int i = 0; i < NET_REDUCTION_COUNT; i++) {
        if (strcmp(word, reductions[i]) == 0) {
            *ret_reduction = (NetReduction)i;
            return true;
        }
    }
    return false;
}

/* Rank that a chunk belongs to: by contiguous ranges. */
static int owner(const Proof *proof, int chunk)
{
    return (int)((int64_t)chunk * proof->shape->ranks / proof->now.chunks);
}

/* Whether `rank` begins with the chunk (its own contribution to it). */
static bool begins(const Proof *proof, int rank, int chunk)
{
    const NetShape *shape = proof->shape;
    if (rank >= shape->ranks)
        return false;
    switch (proof->algorithm->op) {
    case NET_BROADCAST:
    case NET_SCATTER:
    case NET_COPY:
    case NET_SIGNAL:
        return rank == shape->root;
    case NET_ALL_TO_ALL:
        return chunk / shape->ranks == rank;
    case NET_SEND_RECV:
    case NET_GATHER:
    case NET_ALL_GATHER:
        return owner(proof, chunk) == rank;
    default:
        return true;
    }
}

/* Whether it must have it in the end, whole. */
static bool must_have(const Proof *proof, int rank, int chunk)
{
    const NetShape *shape = proof->shape;
    switch (proof->algorithm->op) {
    case NET_SEND_RECV:
        return owner(proof, chunk) == (rank + shape->ranks - 1) % shape->ranks;
    case NET_REDUCE:
    case NET_GATHER:
    case NET_WAIT:
        return rank == shape->root;
    case NET_COPY:
        return rank == (shape->root + 1) % shape->ranks;
    case NET_SCATTER:
    case NET_REDUCE_SCATTER:
        return owner(proof, chunk) == rank;
    case NET_ALL_TO_ALL:
        return chunk % shape->ranks == rank;
    default:
        return true;
    }
}

static uint8_t *cell(NetHoldings *holdings, int rank, int chunk)
{
    return holdings->times + ((int64_t)rank * holdings->chunks + chunk) * holdings->sources;
}

static void begin(Proof *proof)
{
    for (int rank = 0; rank < proof->now.ranks; rank++)
        for (int chunk = 0; chunk < proof->now.chunks; chunk++)
            if (begins(proof, rank, chunk))
                cell(&proof->now, rank, chunk)[proof->now.sources > 1 ? rank : 0] = 1;
}

static bool something(const uint8_t *times, int sources)
{
    for (int i = 0; i < sources; i++)
        if (times[i] > 0)
            return true;
    return false;
}

static bool apply(Proof *proof, int from, int step, const NetPiece *piece, GError **error)
{
    const int sources = proof->now.sources;
    for (int i = 0; i < piece->count; i++) {
        const int chunk = piece->first + i * piece->stride;
        if (piece->peer < 0 || piece->peer >= proof->now.ranks || chunk < 0 || chunk >= proof->now.chunks ||
            !something(cell(&proof->before, from, chunk), sources))
            return orr_fail(error, ORR_ERROR_INTERNAL,
                            "%s %s: in step %d rank %d sends chunk %d, which it has not",
                            net_op_name(proof->algorithm->op), proof->algorithm->name, step, from, chunk);
        const uint8_t *sent = cell(&proof->before, from, chunk);
        uint8_t *held = cell(&proof->now, piece->peer, chunk);
        for (int s = 0; s < sources; s++)
            held[s] = (uint8_t)(piece->reduce ? MIN(held[s] + sent[s], 255) : sent[s]);
    }
    return true;
}

static bool run_step(Proof *proof, int step, NetSends *sends, GError **error)
{
    memcpy(proof->before.times, proof->now.times, (size_t)proof->cells);
    for (int rank = 0; rank < proof->now.ranks; rank++) {
        sends->count = 0;
        proof->algorithm->sends(proof->shape, rank, step, sends);
        for (int i = 0; i < sends->count; i++)
            if (!apply(proof, rank, step, &sends->pieces[i], error))
                return false;
    }
    return true;
}

static bool whole(const Proof *proof, const uint8_t *times)
{
    const bool once = net_op_moves_data(proof->algorithm->op) && proof->now.reduction == NET_SUM;
    for (int i = 0; i < proof->now.sources; i++)
        if (times[i] == 0 || (times[i] > 1 && once))
            return false;
    return true;
}

static bool check(const Proof *proof, GError **error)
{
    for (int rank = 0; rank < proof->shape->ranks; rank++) {
        for (int chunk = 0; chunk < proof->now.chunks; chunk++) {
            if (!must_have(proof, rank, chunk) || whole(proof, net_held(&proof->now, rank, chunk)))
                continue;
            g_autofree char *text = net_held_text(&proof->now, proof->algorithm, rank, chunk);
            return orr_fail(error, ORR_ERROR_INTERNAL, "%s %s: rank %d ends with %s in chunk %d",
                            net_op_name(proof->algorithm->op), proof->algorithm->name, rank, text, chunk);
        }
    }
    return true;
}

bool net_prove(const NetAlgorithm *algorithm, const NetShape *shape, NetReduction reduction, NetWatch watch,
               void *data, GError **error)
{
    Proof proof = {.algorithm = algorithm, .shape = shape, .now = {.reduction = reduction}};
    proof.now.ranks = shape->ranks + net_algorithm_switches(algorithm, shape);
    proof.now.chunks = (int)algorithm->chunks(shape);
    proof.now.sources = sums(algorithm->op) ? shape->ranks : 1;
    proof.cells = (int64_t)proof.now.ranks * proof.now.chunks * proof.now.sources;
    if (proof.cells > NET_PROOF_CELLS)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%d ranks and %d chunks are too many to follow every contribution; show fewer ranks",
                        shape->ranks, proof.now.chunks);
    proof.before = proof.now;
    proof.now.times = g_malloc0((gsize)proof.cells);
    proof.before.times = g_malloc0((gsize)proof.cells);
    begin(&proof);
    NetSends sends = {0};
    const int steps = algorithm->steps(shape);
    bool ok = true;
    if (watch != NULL)
        watch(&proof.now, -1, data);
    for (int step = 0; ok && step < steps; step++) {
        ok = run_step(&proof, step, &sends, error);
        if (ok && watch != NULL)
            watch(&proof.now, step, data);
    }
    ok = ok && check(&proof, error);
    net_sends_clear(&sends);
    g_free(proof.now.times);
    g_free(proof.before.times);
    return ok;
}

char *net_held_text(const NetHoldings *holdings, const NetAlgorithm *algorithm, int rank, int chunk)
{
    const uint8_t *times = net_held(holdings, rank, chunk);
    GString *text = g_string_new(NULL);
    if (!sums(algorithm->op)) {
        g_string_append(text, times[0] > 0 ? "x" : "-");
        return g_string_free(text, FALSE);
    }
    const bool sum = holdings->reduction == NET_SUM;
    for (int s = 0; s < holdings->sources; s++) {
        if (times[s] == 0)
            continue;
        g_string_append_printf(text, "%s%d", text->len > 0 ? (sum ? "+" : ",") : "", s);
        if (times[s] > 1 && sum)
            g_string_append_printf(text, "(x%d)", times[s]);
    }
    if (text->len == 0)
        g_string_append_c(text, '-');
    else if (!sum) {
        g_string_prepend(text, holdings->reduction == NET_MIN ? "min(" : "max(");
        g_string_append_c(text, ')');
    }
    return g_string_free(text, FALSE);
}
