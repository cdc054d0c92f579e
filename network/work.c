/* network/work.c - what simulating a collective would take. */
#include "network/work.h"

#include "base/units.h"
#include "network/ways.h"

#define SAMPLED_RANKS 8
#define SAMPLED_STEPS 4

/* Measured on one core: a message of a known route, one by flows, a new route, a vertex of a table of distances. */
#define MESSAGE_S      7e-8
#define FLOW_MESSAGE_S 7e-7
#define ROUTE_S        2e-6
#define DISTANCE_S     5e-8
#define MESSAGE_BYTES  32.0
#define FLOW_BYTES     300.0
#define ROUTE_BYTES    120.0
#define MOST_KEPT      2e7
#define DISTANCE_BYTES 4.0
#define SEARCHED_S     4e-6 /* a new route where there are no tables of distances */
#define VERTEX_BYTES   64.0
#define LINK_BYTES     200.0
#define STEP_SENDER_S  1e-8 /* asking a rank what it sends */

/* Spread over all, and unlikely to fall on the same number of every node. */
static int sample(int index, int count)
{
    return (int)(((uint64_t)index * 2654435761u + 12345u) % (uint64_t)count);
}

/* Of one rank: pieces a step, in the mean of the steps tried and at most; routes: pairs that it begins. */
typedef struct Sampled {
    double mean, most, routes;
} Sampled;

static Sampled sample_rank(const NetRun *run, int rank, int steps)
{
    NetSends sends = {0};
    Sampled of = {0};
    int peer = -1;
    bool turns = false;
    const int tried = MIN(steps, SAMPLED_STEPS);
    for (int s = 0; s < tried; s++) {
        sends.count = 0;
        run->algorithm->sends(&run->shape, rank, tried == steps ? s : sample(s, steps), &sends);
        of.mean += (double)sends.count / tried;
        of.most = MAX(of.most, sends.count);
        if (sends.count > 0) {
            turns = turns || (peer >= 0 && sends.pieces[0].peer != peer);
            peer = sends.pieces[0].peer;
        }
    }
    net_sends_clear(&sends);
    of.routes = MIN(of.most * (turns ? steps : 1), run->shape.ranks);
    return of;
}

/* Steps of which all those that are known to be alike count as two. */
static int steps_worked(const NetRun *run, int steps)
{
    int worked = 0;
    for (int s = 0; s < steps;) {
        const int times = 1 + net_steps_alike(run->algorithm, &run->shape, run->bytes, s);
        worked += MIN(times, 2);
        s += times;
    }
    return worked;
}

/* Weights of all vertices to those that are asked for. */
static double distances_of(const NetTopology *t, int ranks, bool *ret_searched)
{
    int relays = 0;
    for (int v = 0; v < t->vertex_count; v++)
        relays += t->vertices[v].relays;
    *ret_searched = relays > NET_MOST_TABLED;
    return *ret_searched ? 0 : (double)ranks * t->vertex_count;
}

NetWork net_work(const NetRun *run, bool flows)
{
    const int ranks = run->shape.ranks, steps = run->algorithm->steps(&run->shape);
    const double worked = (double)steps_worked(run, steps) / MAX(steps, 1);
    const Sampled root = sample_rank(run, run->shape.root, steps);
    Sampled each = {0};
    for (int i = 0; i < SAMPLED_RANKS; i++) {
        const Sampled of = sample_rank(run, sample(i + 1, ranks), steps);
        each.mean += of.mean / SAMPLED_RANKS;
        each.most += of.most / SAMPLED_RANKS;
        each.routes += of.routes / SAMPLED_RANKS;
    }
    bool searched = false;
    const NetTopology *t = run->topology;
    const double distances = distances_of(t, ranks, &searched), routes = each.routes * ranks + root.routes;
    NetWork work = {.messages =
                        MAX((each.mean * ranks + root.mean) * steps, ranks - 1)}; /* everyone hears once */
    work.seconds = worked * (work.messages * (flows ? FLOW_MESSAGE_S + MESSAGE_S : MESSAGE_S) +
                             (double)steps * ranks * STEP_SENDER_S) +
                   MIN(routes, worked * work.messages) * (searched ? SEARCHED_S : ROUTE_S) +
                   distances * DISTANCE_S;
    work.bytes = (each.most * ranks + root.most) * (flows ? FLOW_BYTES : MESSAGE_BYTES) +
                 MIN(routes, MOST_KEPT) * ROUTE_BYTES + distances * DISTANCE_BYTES +
                 t->vertex_count * VERTEX_BYTES + t->link_count * LINK_BYTES;
    return work;
}

bool net_work_refuse(const NetRun *run, const NetWork *work, GError **error)
{
    char messages[ORR_TEXT_SIZE], bytes[ORR_TEXT_SIZE], seconds[ORR_TEXT_SIZE], even[2 * ORR_TEXT_SIZE];
    const NetAlgorithm *algorithm = run->algorithm;
    const int64_t chunks = algorithm->chunks(&run->shape);
    if (run->bytes % chunks != 0 && net_steps_alike(algorithm, &run->shape, chunks, 0) > 0)
        g_snprintf(even, sizeof even, ", or bytes that come out even, such as %" G_GINT64_FORMAT,
                   (run->bytes / chunks + 1) * chunks);
    else
        even[0] = '\0';
    return orr_fail(
        error, ORR_ERROR_INPUT,
        "--ranks: %s over %d ranks sends %s messages, which would take some %s and %s to simulate; "
        "give fewer ranks%s",
        run->algorithm->name, run->shape.ranks, orr_text_count(messages, work->messages),
        orr_text_bytes(bytes, work->bytes), orr_text_seconds(seconds, work->seconds), even);
}
