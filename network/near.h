/* network/near.h - shortest ways between two relays, found when they are asked for. Internal to the ways.
 *
 * Tables of weights grow with the square of the relays; a search from both ends at once grows with what lies around
 * them, and what it finds is kept in a table of fixed size. The same links, in the same order.
 */
#ifndef ORR_NETWORK_NEAR_H
#define ORR_NETWORK_NEAR_H

#include "network/ways.h"

/* The ways are borrowed, with their indices. */
NetNear *net_near_new(NetWays *ways);
void net_near_free(NetNear *near);

/* How relay v (a vertex) passes on to the receiver; net_hop_find() without tables. */
NetHop net_near_hop(NetNear *near, int v, int goal);

#endif
