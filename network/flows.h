/* network/flows.h - flows on links, max-min fair, in integer picoseconds.
 *
 * A flow waits for its latency, then moves its bytes at a rate that max-min fairness gives it among all that are under
 * way. When flows come or go, rates are settled once an instant and only for flows that a crowded link joins with
 * them: a link that can serve all its flows at what their slowest link allows binds nobody. Ends move with rates. Same
 * input, same order, to the picosecond. The arena owns all memory; lists of links grow in it to the most flows at once.
 */
#ifndef ORR_NETWORK_FLOWS_H
#define ORR_NETWORK_FLOWS_H

#include "base/arena.h"
#include "network/topology.h"

typedef struct NetFlows NetFlows;

/* Up to `slots` flows at once, of up to `hops` links each. The topology is borrowed. */
NetFlows *net_flows_new(const NetTopology *topology, int32_t slots, int hops, OrrArena *arena);

/* Slot (free) becomes a flow over `links`, from now on. No links or no bytes: it takes its latency alone. */
void net_flows_start(NetFlows *flows, int32_t slot, const int32_t *links, int hops, int64_t bytes,
                     int64_t latency_ps);

/* The next flow that ends, and when; its slot is free again. False: none is under way. */
bool net_flows_next(NetFlows *flows, int64_t *ret_time_ps, int32_t *ret_slot);

/* [links] flows on each link, those that wait for their latency included: counted from the first call on, which comes
 * before any flow starts. */
const int32_t *net_flows_on(NetFlows *flows);
/* Bytes that a link has carried. */
int64_t net_flows_carried(const NetFlows *flows, int32_t link);
/* Bytes that no flow stands for, over these links. */
void net_flows_carry(NetFlows *flows, const int32_t *links, int hops, int64_t bytes);
/* Instants at which a link that could not serve all its flows had a say in their rates. */
int64_t net_flows_shared(const NetFlows *flows);

/* Nothing takes longer, and nobody begins later (46 days): the clock has room for both. */
#define NET_LONGEST_PS ((int64_t)4000000000000000000)

/* Picoseconds of `bytes` at a rate; at most NET_LONGEST_PS. */
int64_t net_transfer_ps(double bytes, double bytes_per_s);

#endif
