/* network/algorithms_log.c - logarithmic exchanges: butterfly, halving and doubling, Bruck, dissemination, PAT.
 *
 * Where n is no power of two, butterflies fold: of the first 2 (n - 2^k) ranks the even ones hand what they have to
 * their odd neighbour before, and get the result after.
 * Source: [Thakur2005, Rabenseifner2004] and for PAT [NCCL]
 */
#include "network/phases.h"

/* Of a fold: the rank that stands for virtual number v, and the first chunk that is v's (of one each). */
typedef struct Fold {
    int power, extra; /* 2^k and n - 2^k */
    int v;            /* -1: handed over */
    bool folded;      /* there is a step before and one after */
} Fold;

static Fold fold_of(const NetShape *shape, int rank)
{
    Fold f = {.power = net_power_below(shape->ranks)};
    f.extra = shape->ranks - f.power;
    f.folded = f.extra > 0;
    if (rank >= 2 * f.extra)
        f.v = rank - f.extra;
    else
        f.v = rank % 2 == 1 ? rank / 2 : -1;
    return f;
}

static int rank_of(const Fold *fold, int v)
{
    return v < fold->extra ? 2 * v + 1 : v + fold->extra;
}

static int chunk_of(const Fold *fold, int v)
{
    return v < fold->extra ? 2 * v : v + fold->extra;
}

int net_folded_steps(const NetShape *shape)
{
    const int power = net_power_below(shape->ranks), log = net_log2_up(power);
    return power < shape->ranks ? log + 2 : log;
}

int net_folded_steps_twice(const NetShape *shape)
{
    const int power = net_power_below(shape->ranks), log = net_log2_up(power);
    return power < shape->ranks ? 2 * log + 2 : 2 * log;
}

int64_t net_chunks_power(const NetShape *shape)
{
    return net_power_below(shape->ranks);
}

/* What the two outer steps carry: `before` from the even rank to its odd neighbour, `after` back. */
typedef struct Outer {
    NetPiece before, after;
} Outer;

/* True when the step was an outer one, or the rank has nothing to do in the inner ones; else *step becomes its number
 * among these. */
static bool outer_step(const Fold *fold, int rank, int last, const Outer *outer, int *step, NetSends *sends)
{
    if (!fold->folded)
        return false;
    const NetPiece *b = &outer->before, *a = &outer->after;
    if (*step == 0 && fold->v < 0)
        net_send(sends, rank + 1, b->first, b->stride, b->count, b->reduce);
    if (*step == last && fold->v >= 0 && fold->v < fold->extra)
        net_send(sends, rank - 1, a->first, a->stride, a->count, false);
    const bool done = *step == 0 || *step == last || fold->v < 0;
    *step -= 1;
    return done;
}

static Outer whole_outer(int chunks)
{
    return (Outer){.before = {.stride = 1, .count = chunks, .reduce = true},
                   .after = {.stride = 1, .count = chunks}};
}

/* Everyone exchanges all it has. */
NET_GENERATOR(net_butterfly_sends)
{
    const Fold fold = fold_of(shape, rank);
    const Outer outer = whole_outer(1);
    int inner = step;
    if (!outer_step(&fold, rank, net_log2_up(fold.power) + 1, &outer, &inner, sends))
        net_send(sends, rank_of(&fold, fold.v ^ (1 << inner)), 0, 1, 1, true);
}

/* Halving: of its block, v sends the half that is nearer to its partner and adds up the other one. Chunks of virtual
 * ranks a to b begin where `mapped` says. */
static void halve(const Fold *fold, int step, bool mapped, NetSends *sends)
{
    const int d = fold->power >> (step + 1), partner = fold->v ^ d, base = partner - partner % d;
    const int from = mapped ? chunk_of(fold, base) : base, to = mapped ? chunk_of(fold, base + d) : base + d;
    net_send(sends, rank_of(fold, partner), from, 1, to - from, true);
}

static void twice(const Fold *fold, int step, bool mapped, NetSends *sends)
{
    const int d = 1 << step, base = fold->v - fold->v % d;
    const int from = mapped ? chunk_of(fold, base) : base, to = mapped ? chunk_of(fold, base + d) : base + d;
    net_send(sends, rank_of(fold, fold->v ^ d), from, 1, to - from, false);
}

NET_GENERATOR(net_rabenseifner_sends)
{
    const Fold fold = fold_of(shape, rank);
    const Outer outer = whole_outer(fold.power);
    const int log = net_log2_up(fold.power);
    int inner = step;
    if (outer_step(&fold, rank, 2 * log + 1, &outer, &inner, sends))
        return;
    if (inner < log)
        halve(&fold, inner, false, sends);
    else
        twice(&fold, inner - log, false, sends);
}

NET_GENERATOR(net_halving_sends)
{
    const Fold fold = fold_of(shape, rank);
    Outer outer = whole_outer(shape->ranks);
    outer.after = (NetPiece){.first = rank - 1, .stride = 1, .count = 1};
    int inner = step;
    if (!outer_step(&fold, rank, net_log2_up(fold.power) + 1, &outer, &inner, sends))
        halve(&fold, inner, true, sends);
}

NET_GENERATOR(net_doubling_sends)
{
    const Fold fold = fold_of(shape, rank);
    Outer outer = whole_outer(shape->ranks);
    outer.before = (NetPiece){.first = rank, .stride = 1, .count = 1};
    int inner = step;
    if (!outer_step(&fold, rank, net_log2_up(fold.power) + 1, &outer, &inner, sends))
        twice(&fold, inner, true, sends);
}

/* --- distances 1, 2, 4 ... around all ranks --- */

NET_GENERATOR(net_bruck_all_gather_sends)
{
    const int n = shape->ranks, d = 1 << step;
    net_send_round(sends, (rank + n - d) % n, rank, MIN(d, n - d), n, false);
}

/* A block that has a distance D to go is forwarded by 2^k in the steps k of D's bits. */
NET_GENERATOR(net_bruck_all_to_all_sends)
{
    const int n = shape->ranks, d = 1 << step;
    for (int distance = d; distance < n; distance++) {
        if ((distance & d) == 0)
            continue;
        const int source = (rank + n - (distance & (d - 1))) % n;
        net_send(sends, (rank + d) % n, source * n + (source + distance) % n, 1, 1, false);
    }
}

NET_GENERATOR(net_dissemination_sends)
{
    net_send(sends, (rank + (1 << step)) % shape->ranks, 0, 1, 1, true);
}

/* PAT: the farthest first, so that what a rank forwards in one step is many small blocks. A block that is o ranks from
 * its owner goes on by d while o has none of the lower bits yet. */
NET_GENERATOR(net_pat_all_gather_sends)
{
    const int n = shape->ranks, d = 1 << (net_log2_up(n) - 1 - step);
    for (int offset = 0; offset + d < n; offset += 2 * d)
        net_send(sends, (rank + d) % n, (rank + n - offset) % n, 1, 1, false);
}

/* The same backwards in time, with sums. */
NET_GENERATOR(net_pat_reduce_scatter_sends)
{
    const int n = shape->ranks, d = 1 << step, peer = (rank + n - d) % n;
    for (int offset = 0; offset + d < n; offset += 2 * d)
        net_send(sends, peer, (peer + n - offset) % n, 1, 1, true);
}
