/* spec/groups.h - a cluster of several kinds of nodes side by side, and what a group of them is on its own.
 *
 * Nodes are numbered group after group, GPUs node after node. Every group has the same number of GPUs a node, so that ranks
 * fall on the same places whatever their type; all else is its own: accelerator, links, memory, price, power.
 */
#ifndef ORR_SPEC_GROUPS_H
#define ORR_SPEC_GROUPS_H

#include "base/json.h"
#include "spec/spec.h"

/* The spec as if all of the cluster's nodes were of group `group`. Attention that the software chose by the generation of
 * the first group is chosen anew. */
void spec_group_alone(const Spec *spec, int group, Spec *ret_spec);

/* The group of a GPU, by its number. */
int spec_group_of_gpu(const Spec *spec, int64_t gpu);

/* GPUs of a group. */
static inline int64_t spec_group_gpus(const Spec *spec, int group)
{
    return (int64_t)spec->cluster.groups[group].nodes * spec->cluster.gpus_per_node;
}

/* Least number of nodes that has the groups in their proportions; 1 where all nodes are alike. */
int spec_groups_unit(const SpecCluster *cluster);

/* Makes the cluster one of `nodes` nodes, a multiple of the above, with its groups in proportion. False, and nothing done, where
 * it is none. */
bool spec_set_nodes(SpecCluster *cluster, int nodes);

/* Leaves nodes[g] of each group, some in all; groups of none go. */
void spec_groups_keep(Spec *spec, const int *nodes);

/* spec/resolve_groups.c: presets of the groups become their objects; what the cluster leaves out, but for its nodes, is of
 * the first of them. `cluster` is the document of a scenario's cluster; `resolve` makes one group's object whole. */
typedef OrrJsonDoc *(*SpecResolveGroup)(const void *resolver, const OrrJson *node);
bool spec_resolve_groups(OrrJsonDoc **cluster, const char *where, SpecResolveGroup resolve,
                         const void *resolver, GError **error);

#endif
