/* search/hardware.h - searching a mixed cluster: which kind of GPU lies where at a group of points, and what that bounds.
 *
 * A kind is an entry of cluster.groups; a cluster whose nodes are alike is of one. Bounds are those of one replica of the
 * model, each stage with the times and bytes of its own kind: a step is over when all replicas are done, a message takes the
 * longer of what its two ends would, a collective is as late as its last member, so that nothing of the others makes it
 * shorter. Where layers or micro-batches are dealt out anew at every point ("auto"), no stage is known, and one bound holds:
 *
 *   T >= M W / S                           S = sum over GPUs (one of each tensor and context group) of 1 / r
 *   T >= C + A + (M - D) (W + A / R) / S    one stage a rank, passes whole: a micro-batch fills and drains the pipeline
 *
 *   T >= M / sum over replicas of 1 / s       s = the least that the slowest rank takes for its whole layers, dealt out best
 *
 * M micro-batches over D replicas. A kind takes r <= R times as long for the whole model as the best one (any r would do);
 * W is the sum over layers and ends of their least c / r, C of their least c, with c their times on each kind; A is what runs
 * again in the backward at least. A micro-batch keeps rank p at least r_p w_p + a_p, where the w_p add up to W and the a_p
 * to A or more; T - C - A is what a replica has for all of its own but one.
 * Tested: unit/search/test_mixed_search.c
 */
#ifndef ORR_SEARCH_HARDWARE_H
#define ORR_SEARCH_HARDWARE_H

#include "search/costs.h"

/* Kinds of GPUs of a space: 1 where all are alike. */
static inline int search_hardware_count(const Spec *spec)
{
    return MAX(1, spec->cluster.group_count);
}

/* What each kind of GPUs takes for the whole model over the best one: [kinds], 1 or more. */
static inline const double *search_hardware_slowness(const SearchTables *tables, int index)
{
    return &tables->slowness[index * tables->kinds];
}

/* The spec as if every GPU were of one kind; a copy where they are. */
void search_hardware_spec(const Spec *spec, int kind, Spec *ret_spec);

/* Whether every kind of GPUs multiplies this type, and has the fitted attention kernel; where the kernel is the one that the
 * software would choose for the first kind, each has its own choice (spec/groups.h). */
bool search_hardware_has(const Spec *spec, SpecDtype dtype);
bool search_hardware_fitted(const Spec *spec, SpecAttention kernel);

/* GPUs of a scale-up domain of the kind (spec/placement.h). */
int search_hardware_domain_gpus(const Spec *spec, int kind);

/* Bytes of the largest of the GPUs' memories, and by how much one kind's is smaller: what a rank on it counts as more. */
double search_hardware_most_bytes(const Spec *spec);
double search_hardware_lacks_bytes(const Spec *spec, int kind);

/* Layers or micro-batches are dealt out anew at every point, so that no stage's own times are known before. */
bool search_hardware_dealt(const Spec *spec);

/* Whether each tensor and context group of the group lies on GPUs of one kind; true where all are alike. */
bool search_hardware_allows(const SearchSpace *space, const SearchGroup *group);

/* Kinds of the pipeline ranks [pipeline] of the replica whose GPUs take longest. */
void search_hardware_slowest(const SearchTables *tables, const SearchGroup *group, int *ret_kinds);

/* The first of the bounds above, in picoseconds; 0 where all GPUs are alike. */
int64_t search_hardware_bound(const SearchTables *tables, const SearchGroup *group);

/* The second, with `again_ps` for A. `even`: replicas meet in each micro-batch, and take as many. */
int64_t search_hardware_fill_bound(const SearchTables *tables, const SearchGroup *group, int64_t again_ps,
                                   bool even);

/* The third, where layers are dealt out: layer_ps[kind] is the least that one takes of a micro-batch. */
int64_t search_hardware_deal_bound(const SearchTables *tables, const SearchGroup *group,
                                   const int64_t *layer_ps, bool even);

#endif
