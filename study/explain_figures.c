/* study/explain_figures.c - the one list of hardware figures that explain makes better. Tested: cli/test_cli_explain.c */
#include "study/explain_figures.h"

#include <stddef.h>
#include <string.h>

/* Where a figure stands: of a mixed cluster, in each of its groups too. */
typedef enum { IN_SPEC, IN_CLUSTER, IN_ACCELERATOR, IN_HOST } Place;

static const struct {
    const char *key, *resource; /* resource: of ExplainBind, "latency" where none */
    Place place;
    bool is_time; /* better when smaller */
    size_t offset, group_offset;
} figures[] = {
#define PEAK(dtype, word)                                                                                    \
    {                                                                                                        \
        "cluster.accelerator.peak_flops_per_s." word, "compute", IN_ACCELERATOR, false,                      \
            offsetof(SpecAccelerator, peak_flops_per_s) + (dtype) * sizeof(double), 0                        \
    }
#define ACCELERATOR(member, resource, is_time)                                                               \
    {                                                                                                        \
        "cluster.accelerator." #member, resource, IN_ACCELERATOR, is_time,                                   \
            offsetof(SpecAccelerator, member), 0                                                             \
    }
#define CLUSTER(member, resource, is_time)                                                                   \
    {                                                                                                        \
        "cluster." #member, resource, IN_CLUSTER, is_time, offsetof(SpecCluster, member),                    \
            offsetof(SpecGroup, member)                                                                      \
    }
#define HOST(member, resource, is_time)                                                                      \
    {                                                                                                        \
        "cluster.host." #member, resource, IN_HOST, is_time, offsetof(SpecHost, member), 0                   \
    }
#define SPEC(member, resource, is_time)                                                                      \
    {                                                                                                        \
#member, resource, IN_SPEC, is_time, offsetof(Spec, member), 0                                       \
    }
    PEAK(SPEC_FP32, "fp32"),
    PEAK(SPEC_TF32, "tf32"),
    PEAK(SPEC_FP16, "fp16"),
    PEAK(SPEC_BF16, "bf16"),
    PEAK(SPEC_FP8, "fp8"),
    PEAK(SPEC_FP4, "fp4"),
    PEAK(SPEC_INT8, "int8"),
    PEAK(SPEC_INT4, "int4"),
    ACCELERATOR(memory_bytes_per_s, "hbm", false),
    CLUSTER(scale_up_bytes_per_s, "scale_up", false),
    CLUSTER(scale_out_bytes_per_s_per_gpu, "scale_out", false),
    CLUSTER(scale_out_latency_s, "latency", true),
    CLUSTER(collectives.offset_s, "latency", true),
    CLUSTER(collectives.net_latency_s, "latency", true),
    ACCELERATOR(model.collectives.offset_s, "latency", true),
    ACCELERATOR(model.collectives.net_latency_s, "latency", true),
    {"cluster.accelerator.model.gemm.shared.latency_s", "latency", IN_ACCELERATOR, true,
     offsetof(SpecAccelerator, model.gemm_shared.latency_s), 0},
    ACCELERATOR(model.memory_bound.latency_s, "latency", true),
    SPEC(execution.framework.host.kernel_host_s, "host", true),
    SPEC(execution.framework.host.kernel_gap_s, "host", true),
    SPEC(execution.framework.host.collective_gap_s, "host", true),
    SPEC(execution.framework.host.step_overhead_s, "host", true),
    SPEC(execution.framework.host.microbatch_overhead_s, "host", true),
    HOST(dram_bytes_per_s, "host_memory", false),
    HOST(core_bytes_per_s, "host_memory", false),
    HOST(pcie_root_bytes_per_s, "host_link", false),
    ACCELERATOR(host_link_bytes_per_s, "host_link", false),
    HOST(nvme_read_bytes_per_s, "disks", false),
    HOST(nvme_write_bytes_per_s, "disks", false),
    SPEC(parallel.servers.nic_bytes_per_s, "servers", false),
    SPEC(parallel.servers.flow_bytes_per_s, "servers", false),
    SPEC(parallel.servers.sum_bytes_per_s, "servers", false),
    SPEC(parallel.servers.update_bytes_per_s, "servers", false),
    SPEC(storage.read_bytes_per_s, "input", false),
    SPEC(storage.node_bytes_per_s, "input", false),
    SPEC(data.front_end_bytes_per_s, "input", false),
    SPEC(data.tokens_per_s, "input", false),
};

int explain_figure_count(void)
{
    return (int)G_N_ELEMENTS(figures);
}

const char *explain_figure_key(int figure)
{
    return figures[figure].key;
}

static double *value_of(Spec *spec, int figure, int group)
{
    SpecCluster *cluster = &spec->cluster;
    void *base = spec;
    size_t offset = figures[figure].offset;
    if (figures[figure].place == IN_CLUSTER) {
        base = group < 0 ? (void *)cluster : (void *)&cluster->groups[group];
        offset = group < 0 ? offset : figures[figure].group_offset;
    } else if (figures[figure].place == IN_ACCELERATOR) {
        base = group < 0 ? &cluster->accelerator : &cluster->groups[group].accelerator;
    } else if (figures[figure].place == IN_HOST) {
        base = group < 0 ? &cluster->host : &cluster->groups[group].host;
    }
    return (double *)(void *)((char *)base + offset);
}

bool explain_figure_better(Spec *spec, int figure, double factor)
{
    const int groups = figures[figure].place == IN_SPEC ? 0 : spec->cluster.group_count;
    bool given = false;
    for (int group = -1; group < groups; group++) {
        double *value = value_of(spec, figure, group);
        given |= *value > 0;
        *value = figures[figure].is_time ? *value / factor : *value * factor;
    }
    return given;
}

void explain_resource_better(Spec *spec, const char *resource, double factor)
{
    for (int figure = 0; figure < explain_figure_count(); figure++)
        if (strcmp(figures[figure].resource, resource) == 0)
            explain_figure_better(spec, figure, factor);
}
