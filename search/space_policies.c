/* search/space_policies.c - recomputation, and policies of data parallelism and messages, that the "auto" fields allow. */
#include "search/space_parts.h"

#include "spec/notes.h"

int search_recomputes(const SearchSpace *space, const SearchPartition *partition,
                      SpecRecompute *ret_recomputes)
{
    const Spec *spec = space->spec;
    int count = 0;
    if (space->recompute == 0) {
        ret_recomputes[0] = spec->training.recompute;
        return 1;
    }
    static const SpecRecomputeMode WHOLE[] = {SPEC_RECOMPUTE_NONE, SPEC_RECOMPUTE_SELECTIVE,
                                              SPEC_RECOMPUTE_SELECTIVE_OP};
    for (gsize i = 0; i < G_N_ELEMENTS(WHOLE); i++)
        if (space->recompute & 1u << WHOLE[i])
            ret_recomputes[count++] = (SpecRecompute){.mode = WHOLE[i], .every_n_layers = 1};
    static const int EVERY[] = {8, 4, 3, 2};
    for (gsize i = 0; i < G_N_ELEMENTS(EVERY); i++)
        if (space->recompute & 1u << SPEC_RECOMPUTE_SELECTIVE_LAYER && EVERY[i] <= spec->model.layers)
            ret_recomputes[count++] =
                (SpecRecompute){SPEC_RECOMPUTE_SELECTIVE_LAYER, .every_n_layers = EVERY[i]};
    if ((space->recompute & 1u << SPEC_RECOMPUTE_FULL) == 0)
        return count;
    const bool partial = spec->execution.framework.kernels.recompute_partial ||
                         search_restricted(&spec->search.recompute_layers);
    for (int layers = 1; partial && layers < partition->most_layers; layers++)
        if (search_allowed(&spec->search.recompute_layers, layers))
            ret_recomputes[count++] =
                (SpecRecompute){.mode = SPEC_RECOMPUTE_FULL, .layers = layers, .every_n_layers = 1};
    ret_recomputes[count++] = (SpecRecompute){.mode = SPEC_RECOMPUTE_FULL, .every_n_layers = 1};
    return count;
}

/* Of execution.overlap, what a group leaves to its policies. */
#define POLICY_OVERLAP (SPEC_OVERLAP_GRAD_REDUCE | SPEC_OVERLAP_PARAM_GATHER | SPEC_OVERLAP_PIPELINE)

bool search_varies_overlap(const SearchSpace *space)
{
    return (space->spec->execution.overlap & SPEC_OVERLAP_AUTO) != 0;
}

SearchPolicy search_widest_policy(const SearchSpace *space)
{
    const unsigned given = space->spec->execution.overlap & POLICY_OVERLAP;
    return (SearchPolicy){.zero = MAX(0, space->spec->parallel.zero),
                          .overlap = search_varies_overlap(space) ? POLICY_OVERLAP : given};
}

static void add_policies(const SearchSpace *space, const SearchGroup *group, int zero, int zero_group_gpus,
                         GArray *policies)
{
    const Spec *spec = space->spec;
    SearchPolicy policy = {.zero = zero, .zero_group_gpus = zero_group_gpus};
    const unsigned own = POLICY_OVERLAP;
    if (!search_varies_overlap(space)) {
        policy.overlap = spec->execution.overlap & POLICY_OVERLAP;
        g_array_append_val(policies, policy);
        return;
    }
    const int64_t replicas = (int64_t)group->data * group->context;
    unsigned bits = spec_overlap_choices(&spec->execution.framework, zero, replicas, group->pipeline);
    bits &= spec->search.overlap != 0 ? spec->search.overlap
                                      : spec_framework_overlaps(&spec->execution.framework);
    for (unsigned subset = 0; subset <= own; subset++)
        if ((subset & ~bits) == 0) {
            policy.overlap = subset;
            g_array_append_val(policies, policy);
        }
}

static void add_shard_groups(const SearchSpace *space, const SearchGroup *group, int zero, GArray *policies)
{
    const Spec *spec = space->spec;
    const int own = spec->parallel.zero_group_gpus;
    if (own != SPEC_AUTO) {
        if (own <= 0 || (zero > 0 && group->data % own == 0))
            add_policies(space, group, zero, own, policies);
        return;
    }
    if (search_allowed(&spec->search.zero_group_gpus, 0) || zero == 0)
        add_policies(space, group, zero, 0, policies);
    for (int size = 2; zero > 0 && size <= group->data && size < group->data * group->context; size++)
        if (group->data % size == 0 && search_allowed(&spec->search.zero_group_gpus, size))
            add_policies(space, group, zero, size, policies);
}

/* Nothing to shard over: the ZeRO stages are one. */
bool search_is_alone(const Spec *spec, const SearchGroup *group)
{
    return group->data * group->context == 1 &&
           (spec->model.moe.experts == 0 || group->tensor <= group->expert * MAX(1, group->expert_tensor));
}

SearchPolicy *search_policies(const SearchSpace *space, const SearchGroup *group, int *ret_count)
{
    const Spec *spec = space->spec;
    const SpecOffload *offload = &space->offloads[group->scheme];
    const bool one = group->data == 1 && group->context == 1;
    GArray *policies = g_array_new(FALSE, FALSE, sizeof(SearchPolicy));
    for (int zero = 0; zero <= 3; zero++) {
        const int own = spec->parallel.zero;
        if (own != SPEC_AUTO ? own != zero
                             : !search_allowed(&spec->search.zero, zero) ||
                                   (!search_restricted(&spec->search.zero) &&
                                    !spec_has_zero(&spec->execution.framework, group->pipeline, zero)))
            continue;
        if (!spec_offload_allows(offload, zero, one))
            continue;
        add_shard_groups(space, group, zero, policies);
        if (own == SPEC_AUTO && search_is_alone(spec, group))
            break;
    }
    *ret_count = (int)policies->len;
    return (SearchPolicy *)(void *)g_array_free(policies, FALSE);
}
