/* traffic/exchange.c - see exchange.h. The messages are those of network/'s generators. */
#include "traffic/exchange.h"

#include <string.h>

/* Bytes that are reduced: only their ratios count. */
#define BYTES ((int64_t)1 << 40)

static const NetAlgorithm *generator_of(SpecNetworkAlgorithm algorithm)
{
    const NetAlgorithm *generator =
        net_algorithm_find(NET_ALL_REDUCE, spec_word(&spec_words_network_algorithm, (int)algorithm), NULL);
    g_assert(generator != NULL);
    return generator;
}

static NetShape shape_of(int ranks)
{
    return (NetShape){.ranks = ranks, .dims = {ranks}, .dim_count = 1, .segments = 1};
}

int traffic_exchange_phases(SpecNetworkAlgorithm algorithm, int ranks)
{
    const NetShape shape = shape_of(ranks);
    return algorithm == SPEC_NETWORK_HALVING && ranks > 1 ? generator_of(algorithm)->steps(&shape) : 1;
}

void traffic_exchange_clear(TrafficExchange *exchange)
{
    g_free(exchange->messages);
    memset(exchange, 0, sizeof *exchange);
}

static void take(TrafficExchange *exchange, const NetStep *step)
{
    exchange->messages = g_renew(NetMessage, exchange->messages, exchange->count + MAX(step->count, 1));
    memcpy(exchange->messages + exchange->count, step->messages,
           sizeof *step->messages * (size_t)step->count);
    exchange->count += step->count;
}

void traffic_exchange_fill(TrafficExchange *exchange, SpecNetworkAlgorithm algorithm, int ranks, int phase)
{
    if (exchange->messages != NULL && exchange->ranks == ranks && exchange->phase == phase)
        return;
    const NetAlgorithm *generator = generator_of(algorithm);
    const NetShape shape = shape_of(ranks);
    const bool all = algorithm != SPEC_NETWORK_HALVING;
    const int steps = generator->steps(&shape);
    NetStep step = {0};
    traffic_exchange_clear(exchange);
    exchange->ranks = ranks;
    exchange->phase = phase;
    exchange->together = all;
    for (int s = all ? 0 : phase; s < (all ? steps : phase + 1); s++) {
        net_step_fill(&step, generator, &shape, BYTES, s);
        take(exchange, &step);
    }
    net_step_clear(&step);
    g_autofree double *sent = g_new0(double, ranks), *got = g_new0(double, ranks);
    for (int i = 0; i < exchange->count; i++) {
        sent[exchange->messages[i].from] += (double)exchange->messages[i].bytes;
        got[exchange->messages[i].to] += (double)exchange->messages[i].bytes;
    }
    for (int r = 0; r < ranks; r++)
        exchange->largest = MAX(exchange->largest, MAX(sent[r], got[r]));
}
