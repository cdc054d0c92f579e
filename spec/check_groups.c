/* spec/check_groups.c - what a mixed cluster needs: nodes that add up, GPUs a node that agree, and features that know of it. */
#include "spec/checks.h"

static const char *not_yet(const Spec *spec)
{
    if (spec->parallel.servers.servers > 0)
        return "parallel.parameter_server";
    if (spec->jitter.given && spec_offloads(&spec->offload))
        return "jitter and offload at once";
    return spec->model.list.text != NULL ? "a model that is a list of layers" : NULL;
}

static bool check_nodes(const Check *check)
{
    const SpecCluster *cluster = &check->spec->cluster;
    int nodes = 0;
    for (int i = 0; i < cluster->group_count; i++) {
        const SpecGroup *group = &cluster->groups[i];
        nodes += group->nodes;
        if (group->gpus_per_node != cluster->gpus_per_node)
            return spec_check_fail(check,
                                   "cluster.groups: \"%s\" has %d GPUs a node, others have %d; give groups "
                                   "with gpus_per_node alike",
                                   group->name, group->gpus_per_node, cluster->gpus_per_node);
        if (!(group->accelerator.peak_flops_per_s[spec_gemm_dtype(check->spec->training.precision)] > 0))
            return spec_check_fail(check,
                                   "training.precision: \"%s\" is none that accelerator \"%s\" of "
                                   "cluster.groups has; give one that all groups have",
                                   spec_word(&spec_words_precision, (int)check->spec->training.precision),
                                   group->accelerator.name);
    }
    if (nodes == cluster->nodes)
        return true;
    return spec_check_fail(check, "cluster.nodes: %d, but the groups have %d; leave it out, or give %d",
                           cluster->nodes, nodes, nodes);
}

static bool check_microbatches(const Check *check)
{
    const SpecParallel *parallel = &check->spec->parallel;
    const int count = parallel->replica_microbatches_count, micro = check->spec->training.micro_batch;
    const int all = check->spec->training.global_batch / MAX(micro, 1);
    int sum = 0;
    if (count <= 0)
        return true;
    if (count != parallel->data)
        return spec_check_fail(check,
                               "parallel.replica_microbatches: %d numbers for %d replicas of the model; list "
                               "one a replica, or \"auto\"",
                               count, parallel->data);
    for (int i = 0; i < count; i++)
        sum += parallel->replica_microbatches[i];
    if (sum == all && check->spec->training.global_batch % micro == 0)
        return true;
    return spec_check_fail(check,
                           "parallel.replica_microbatches: the numbers add up to %d, but global_batch %d of "
                           "micro_batch %d has %d; let them add up to that",
                           sum, check->spec->training.global_batch, micro, all);
}

bool spec_check_groups(const Check *check)
{
    const SpecParallel *parallel = &check->spec->parallel;
    if (check->spec->cluster.group_count == 0) {
        if (parallel->stage_layers_count != SPEC_AUTO && parallel->replica_microbatches_count == 0)
            return true;
        return spec_check_fail(check,
                               "parallel.%s: deals work out by what each GPU type can; give cluster.groups, "
                               "or leave it out",
                               parallel->stage_layers_count == SPEC_AUTO ? "stage_layers: \"auto\""
                                                                         : "replica_microbatches");
    }
    if (check->spec->cluster.network.fidelity == SPEC_FIDELITY_FLOW)
        return spec_check_fail(
            check,
            "cluster.network.fidelity: \"flow\" draws fabrics whose links are alike, not those of "
            "cluster.groups; give \"analytic\", where an exchange lasts as long as its slowest member's");
    const char *feature = not_yet(check->spec);
    if (feature != NULL)
        return spec_check_fail(check, "cluster.groups: not together with %s; leave one of the two out",
                               feature);
    return check_nodes(check) && check_microbatches(check);
}
