/* spec/groups.c - see groups.h: one group taken for all. */
#include "spec/groups.h"

/* What a cluster says of its nodes becomes that of group `own`. */
static void take(Spec *spec, const SpecGroup *own)
{
    const bool usual = spec->execution.attention == spec_default_attention(spec);
    SpecCluster *cluster = &spec->cluster;
    cluster->accelerator = own->accelerator;
    cluster->scale_up_domain_gpus = own->scale_up_domain_gpus;
    cluster->scale_up_bytes_per_s = own->scale_up_bytes_per_s;
    cluster->scale_out_bytes_per_s_per_gpu = own->scale_out_bytes_per_s_per_gpu;
    cluster->scale_out_latency_s = own->scale_out_latency_s;
    cluster->usd_per_gpu_hour = own->usd_per_gpu_hour;
    cluster->host_power_w_per_gpu = own->host_power_w_per_gpu;
    cluster->topology = own->topology;
    cluster->collectives = own->collectives;
    cluster->host = own->host;
    if (usual)
        spec->execution.attention = spec_default_attention(spec);
}

void spec_group_alone(const Spec *spec, int group, Spec *ret_spec)
{
    *ret_spec = *spec;
    take(ret_spec, &spec->cluster.groups[group]);
    ret_spec->cluster.group_count = 0;
}

void spec_groups_keep(Spec *spec, const int *nodes)
{
    SpecCluster *cluster = &spec->cluster;
    int count = 0;
    cluster->nodes = 0;
    for (int g = 0; g < cluster->group_count; g++) {
        if (nodes[g] == 0)
            continue;
        cluster->groups[count] = cluster->groups[g];
        cluster->groups[count++].nodes = nodes[g];
        cluster->nodes += nodes[g];
    }
    g_assert(count > 0);
    cluster->group_count = count;
    take(spec, &cluster->groups[0]);
}

int spec_group_of_gpu(const Spec *spec, int64_t gpu)
{
    int group = 0;
    while (group + 1 < spec->cluster.group_count && gpu >= spec_group_gpus(spec, group))
        gpu -= spec_group_gpus(spec, group++);
    return group;
}

int spec_groups_unit(const SpecCluster *cluster)
{
    int common = 0, nodes = 0;
    for (int g = 0; g < cluster->group_count; g++) {
        int other = cluster->groups[g].nodes;
        nodes += other;
        while (other != 0) {
            const int rest = common % other;
            common = other;
            other = rest;
        }
    }
    return common > 0 ? nodes / common : 1;
}

bool spec_set_nodes(SpecCluster *cluster, int nodes)
{
    const int unit = spec_groups_unit(cluster), before = cluster->nodes;
    if (nodes % unit != 0)
        return false;
    for (int g = 0; g < cluster->group_count; g++)
        cluster->groups[g].nodes = (int)((int64_t)cluster->groups[g].nodes * nodes / before);
    cluster->nodes = nodes;
    return true;
}
