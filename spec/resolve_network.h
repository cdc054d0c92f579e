/* spec/resolve_network.h - files that a cluster's network names become what they hold. */
#ifndef ORR_SPEC_RESOLVE_NETWORK_H
#define ORR_SPEC_RESOLVE_NETWORK_H

#include "base/json.h"

/* `cluster` is a document whose root is a cluster object: network.topology and network.jobs that are paths (from
 * `base_dir`; a topology also a name of scenarios/topologies) are replaced by the objects of their files. */
bool spec_resolve_network(OrrJsonDoc *cluster, const char *where, const char *base_dir, GError **error);

#endif
