/* traffic/exchange.h - which domains send what to each other in a reduction, other than around a ring. Internal. */
#ifndef ORR_TRAFFIC_EXCHANGE_H
#define ORR_TRAFFIC_EXCHANGE_H

#include "network/algorithm.h"
#include "spec/spec.h"

/* Messages between `ranks` domains. */
typedef struct TrafficExchange {
    int ranks, phase;
    bool together; /* they go at one pace: a pipeline */
    NetMessage *messages;
    int count;
    double largest; /* most bytes that a domain sends or gets: 1 at full pace */
} TrafficExchange;

/* Phases of an all-reduce of `algorithm` over `ranks` domains: what follows each other in time. Trees pipeline: one. */
int traffic_exchange_phases(SpecNetworkAlgorithm algorithm, int ranks);
/* Anew unless it is that phase of so many already; zeroed: empty. */
void traffic_exchange_fill(TrafficExchange *exchange, SpecNetworkAlgorithm algorithm, int ranks, int phase);
void traffic_exchange_clear(TrafficExchange *exchange);

#endif
