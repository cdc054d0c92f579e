/* spec/groups.c - see groups.h: reading groups, and taking one of them for all. */
#include "spec/groups.h"

#include "spec/complete.h"
#include "spec/fields_internal.h"

static bool read_group(SpecReadContext *context, const OrrJson *item, SpecGroup *ret_group, GError **error)
{
    g_autofree SpecCluster *own = g_new0(SpecCluster, 1);
    context->quiet++;
    const bool ok = spec_read_table(context, &spec_table_cluster, item, own, error) &&
                    spec_complete_cluster(own, context->where, NULL, error);
    context->quiet--;
    if (!ok)
        return false;
    *ret_group = (SpecGroup){.accelerator = own->accelerator,
                             .nodes = own->nodes,
                             .gpus_per_node = own->gpus_per_node,
                             .scale_up_domain_gpus = own->scale_up_domain_gpus,
                             .scale_up_bytes_per_s = own->scale_up_bytes_per_s,
                             .scale_out_bytes_per_s_per_gpu = own->scale_out_bytes_per_s_per_gpu,
                             .scale_out_latency_s = own->scale_out_latency_s,
                             .usd_per_gpu_hour = own->usd_per_gpu_hour,
                             .host_power_w_per_gpu = own->host_power_w_per_gpu,
                             .topology = own->topology,
                             .collectives = own->collectives};
    g_strlcpy(ret_group->name, own->name[0] != '\0' ? own->name : own->accelerator.name,
              sizeof ret_group->name);
    return true;
}

bool spec_read_groups(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecCluster *cluster = target;
    if (context->partial) /* of a preset's file: its groups are looked up first */
        return true;
    const int count = orr_json_type(node) == ORR_JSON_LIST ? orr_json_count(node) : 0;
    if (count < 1 || count > SPEC_MOST_GROUPS)
        return spec_read_fail(
            context, NULL, error,
            "is no list of 1 to %d groups; write [{\"preset\": \"dgx-h100\", \"nodes\": 4}, "
            "{\"preset\": \"dgx-a100-80gb\", \"nodes\": 8}]",
            SPEC_MOST_GROUPS);
    int i = 0;
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item))
        if (!read_group(context, item, &cluster->groups[i++], error))
            return false;
    cluster->group_count = count;
    return true;
}

void spec_group_alone(const Spec *spec, int group, Spec *ret_spec)
{
    const SpecGroup *own = &spec->cluster.groups[group];
    const bool usual = spec->execution.attention == spec_default_attention(spec);
    *ret_spec = *spec;
    SpecCluster *cluster = &ret_spec->cluster;
    cluster->group_count = 0;
    cluster->accelerator = own->accelerator;
    cluster->scale_up_domain_gpus = own->scale_up_domain_gpus;
    cluster->scale_up_bytes_per_s = own->scale_up_bytes_per_s;
    cluster->scale_out_bytes_per_s_per_gpu = own->scale_out_bytes_per_s_per_gpu;
    cluster->scale_out_latency_s = own->scale_out_latency_s;
    cluster->usd_per_gpu_hour = own->usd_per_gpu_hour;
    cluster->host_power_w_per_gpu = own->host_power_w_per_gpu;
    cluster->topology = own->topology;
    cluster->collectives = own->collectives;
    if (usual)
        ret_spec->execution.attention = spec_default_attention(ret_spec);
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
