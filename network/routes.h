/* network/routes.h - which links a message takes. */
#ifndef ORR_NETWORK_ROUTES_H
#define ORR_NETWORK_ROUTES_H

#include "network/topology.h"

typedef enum {
    NET_ROUTE_SHORTEST, /* of equally short ways the one that the receiver's port picks, as InfiniBand's tables do */
    NET_ROUTE_ECMP,     /* a hash of sender, receiver and flow picks at every switch */
    NET_ROUTE_E_ECMP,   /* the same, and messages between nodes are split into NET_E_ECMP_FLOWS flows */
    NET_ROUTE_ADAPTIVE, /* at every switch the link with the fewest flows when the message starts */
    NET_ROUTE_RAIL,     /* across nodes over the GPU of the own node that is on the receiver's rail (PXN) */
    NET_ROUTING_COUNT
} NetRouting;

#define NET_E_ECMP_FLOWS 16
#define NET_MAX_HOPS     64

const char *net_routing_name(NetRouting routing);
bool net_routing_find(const char *word, NetRouting *ret_routing, GError **error);

typedef struct NetRoutes NetRoutes;

/* Borrows the topology. `flows_on` [links] is read by adaptive routing while it runs; may be NULL for the others. */
NetRoutes *net_routes_new(const NetTopology *topology, NetRouting routing, uint64_t seed,
                          const int32_t *flows_on);
void net_routes_free(NetRoutes *routes);

/* Links from vertex `from` to `to` for flow number `flow` of the pair; valid until the next call. Returns the hops, -1:
 * there is no way, or one of more than NET_MAX_HOPS. */
int net_route(NetRoutes *routes, int from, int to, int flow, const int32_t **ret_links);

/* How many of the calls so far had to find their way; the others asked for one that was still known. */
int64_t net_routes_found(const NetRoutes *routes);

/* Flows that a message of the pair is split into. */
int net_route_flows(const NetRoutes *routes, int from, int to);

#endif
