/* spec/fields_hardware.c - field tables of accelerators and clusters. */
#include <string.h>

#include "spec/complete.h"
#include "spec/fields_internal.h"

#define PEAK(word, dtype)                                                                                    \
    {                                                                                                        \
        .key = word, .type = SPEC_TYPE_DOUBLE, .unit = ORR_UNIT_FLOPS_PER_S,                                 \
        .offset = offsetof(SpecAccelerator, peak_flops_per_s[dtype]), .min = 0, .max = 1e20,                 \
        .default_text = "0", .help = "Dense peak in " word "; 0: no matrix units for it."                    \
    }
static const SpecField peak_fields[] = {
    PEAK("fp32", SPEC_FP32), PEAK("tf32", SPEC_TF32), PEAK("fp16", SPEC_FP16), PEAK("bf16", SPEC_BF16),
    PEAK("fp8", SPEC_FP8),   PEAK("fp4", SPEC_FP4),   PEAK("int8", SPEC_INT8), PEAK("int4", SPEC_INT4),
};
static SPEC_TABLE(table_peak, "accelerator.peak_flops_per_s",
                  "Dense peak of matrix products, per number format.", peak_fields);

#define REFERENCE(word, member, type_, unit_, hi, text)                                                      \
    {                                                                                                        \
        .key = word, .type = type_, .unit = unit_, .offset = offsetof(SpecAccelerator, member), .min = 0,    \
        .max = hi, .default_text = "0", .help = text                                                         \
    }
static const SpecField reference_fields[] = {
    REFERENCE("gpus_per_node", reference_gpus_per_node, SPEC_TYPE_INT, ORR_UNIT_NONE, 65536,
              "GPUs of a node."),
    REFERENCE("scale_up_domain_gpus", reference_scale_up_domain_gpus, SPEC_TYPE_INT, ORR_UNIT_NONE, 65536,
              "GPUs joined by scale-up links."),
    REFERENCE("scale_out_bytes_per_s_per_gpu", reference_scale_out_bytes_per_s_per_gpu, SPEC_TYPE_DOUBLE,
              ORR_UNIT_BYTES_PER_S, 1e14, "Network rate of a GPU, one way."),
    {.key = "topology",
     .type = SPEC_TYPE_WORD,
     .offset = offsetof(SpecAccelerator, reference_topology),
     .words = &spec_words_topology,
     .default_text = "\"switch\"",
     .help = "How the GPUs of a scale-up domain are joined."},
    REFERENCE(
        "mesh_gpus", reference_mesh_gpus, SPEC_TYPE_INT, ORR_UNIT_NONE, 65536,
        "GPUs of a board without a switch, on which links go directly from GPU to GPU; 0: there is none."),
    REFERENCE("mesh_power_w", reference_mesh_power_w, SPEC_TYPE_DOUBLE, ORR_UNIT_WATTS, 1e6,
              "Power limit of one GPU on that board; 0: power_w."),
    {.key = "host_of",
     .type = SPEC_TYPE_NAME,
     .offset = offsetof(SpecAccelerator, reference_host),
     .size = sizeof(((SpecAccelerator *)0)->reference_host),
     .default_text = "\"\"",
     .help = "Cluster whose host is assumed where a scenario offloads and its cluster has none."},
};
static SPEC_TABLE(table_reference, "accelerator.reference_node",
                  "The node this accelerator is usually sold in.", reference_fields);

static const SpecField accelerator_fields[] = {
    SPEC_F_FILE_KEYS("accelerators"),
    SPEC_F_NAME(SpecAccelerator, name, "\"\"", "What reports call the accelerator."),
    SPEC_F_DOUBLE(SpecAccelerator, memory_bytes, ORR_UNIT_BYTES, 1e6, 1e15, NULL, SPEC_FIELD_REQUIRED,
                  "Memory of one GPU that software can use."),
    SPEC_F_DOUBLE(SpecAccelerator, memory_bytes_per_s, ORR_UNIT_BYTES_PER_S, 1e6, 1e17, NULL,
                  SPEC_FIELD_REQUIRED, "Memory bandwidth of the data sheet."),
    SPEC_F_GROUP("peak_flops_per_s", SpecAccelerator, table_peak, SPEC_FIELD_REQUIRED | SPEC_FIELD_FITTED,
                 "Dense peak of matrix products, per number format."),
    SPEC_F_DOUBLE(SpecAccelerator, fp64_flops_per_s, ORR_UNIT_FLOPS_PER_S, 0, 1e20, "0", 0,
                  "Peak in fp64 without tensor cores, as sheets print it; no time uses it. 0: not given."),
    SPEC_F_DOUBLE(SpecAccelerator, fp64_tensor_flops_per_s, ORR_UNIT_FLOPS_PER_S, 0, 1e20, "0", 0,
                  "Peak of matrix products in fp64, as sheets print it; no time uses it. 0: not given."),
    SPEC_F_DOUBLE(SpecAccelerator, sparsity_gain, ORR_UNIT_NONE, 1, 4, "1", 0,
                  "Peak with 2:4 sparse weights over the dense peak, as data sheets print it. No time uses "
                  "it: training is dense. 1: none, or not given."),
    SPEC_F_INT(SpecAccelerator, sm_count, 1, 1e7, NULL, SPEC_FIELD_REQUIRED,
               "Streaming multiprocessors (compute units)."),
    SPEC_F_DOUBLE(SpecAccelerator, l2_bytes, ORR_UNIT_BYTES, 0, 1e14, "0", 0,
                  "Size of the last-level cache."),
    SPEC_F_BOOL(
        SpecAccelerator, static_products, "false", 0,
        "The library's products hold every SM and are dealt out beforehand: a collective beside one hides "
        "nothing unless software leaves it SMs."),
    SPEC_F_DOUBLE(SpecAccelerator, exponentials_per_s, ORR_UNIT_NONE, 0, 1e16, "0", 0,
                  "Exponentials a second of the special function units. Attention kernels that were measured "
                  "on another "
                  "accelerator are scaled by it. 0: not known."),
    SPEC_F_DOUBLE(SpecAccelerator, power_w, ORR_UNIT_WATTS, 0, 1e6, "0", 0,
                  "Power limit of one GPU; 0: not known."),
    SPEC_F_DOUBLE(SpecAccelerator, power_cap_w, ORR_UNIT_WATTS, 0, 1e6, "0", 0,
                  "Lower power limit set by the operator. Dense kernels slow down to it. 0: none."),
    SPEC_F_DOUBLE(
        SpecAccelerator, idle_power_w, ORR_UNIT_WATTS, 0, 1e6, "0", 0,
        "Power of one GPU that waits while a job holds its memory; 0: not known, counted as power_w."),
    SPEC_F_INT(SpecAccelerator, matrix_unit, 0, 4096, "0", 0,
               "Width of the accelerator's square matrix units, for accelerators without SMs. Attention "
               "heads that are not a multiple of it fill the units in part. 0: not known."),
    SPEC_F_BOOL(SpecAccelerator, split_attention_backward, "false", 0,
                "For accelerators without SMs: attention's backward has one kernel for queries and one for "
                "keys and values. Both compute the scores again: seven products instead of five."),
    SPEC_F_DOUBLE(
        SpecAccelerator, speed_spread_frac, ORR_UNIT_FRAC, 0, 0.5, "0", 0,
        "Standard deviation of sustained speed between chips; a synchronous job runs at its slowest."),
    {.key = "generation",
     .type = SPEC_TYPE_CUSTOM,
     .offset = offsetof(SpecAccelerator, generation),
     .size = sizeof(SpecGeneration),
     .default_text = "\"other\"",
     .words = &spec_words_generation,
     .read = spec_read_generation,
     .table = &spec_table_generation,
     .form = "or an object with \"like\" and the traits that differ",
     .help =
         "Traits that the chips of its time share: kernels, tables of libraries, what recipes do on them. "
         "A GPU of \"other\" gets assumed ones, and reports say so."},
    SPEC_F_DOUBLE(SpecAccelerator, scale_up_bytes_per_s, ORR_UNIT_BYTES_PER_S, 0, 1e15, "0", 0,
                  "Scale-up links (NVLink and kin) of one GPU, one way; 0: PCIe only."),
    SPEC_F_DOUBLE(SpecAccelerator, host_link_bytes_per_s, ORR_UNIT_BYTES_PER_S, 0, 1e14, "0", 0,
                  "Link to the host's memory, one way."),
    SPEC_F_GROUP("reference_node", SpecAccelerator, table_reference, 0,
                 "The node this accelerator is usually sold in."),
    SPEC_F_OBJECT(SpecAccelerator, model, spec_table_kernel_model, SPEC_FIELD_DERIVED | SPEC_FIELD_FITTED,
                  "Fitted parameters of its kernels; absent: defaults of the time model."),
};
SPEC_TABLE(spec_table_accelerator, "accelerator", "One GPU or other accelerator.", accelerator_fields);

/* Another name of scale_out_latency_s. */
static bool read_latency(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    static const SpecField field =
        SPEC_F_DOUBLE(SpecCluster, scale_out_latency_s, ORR_UNIT_SECONDS, 0, 1, NULL, 0, "");
    return spec_read_number(context, &field, node, target, error);
}

/* 4, or as people write it: "4:1", "1:4". Either way round the larger over the smaller. */
static bool read_oversubscription(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    static const SpecField field =
        SPEC_F_DOUBLE(SpecCluster, oversubscription, ORR_UNIT_NONE, 1, 1000, NULL, 0, "");
    if (orr_json_type(node) != ORR_JSON_TEXT)
        return spec_read_number(context, &field, node, target, error);
    char *colon = NULL, *end = NULL;
    const double left = g_ascii_strtod(orr_json_text(node), &colon);
    const double right = *colon == ':' ? g_ascii_strtod(colon + 1, &end) : 1;
    const bool plain = strspn(orr_json_text(node), "0123456789.eE:") == strlen(orr_json_text(node));
    const bool read = plain && (*colon == ':' ? end != colon + 1 && *end == '\0' : *colon == '\0');
    const double ratio = left >= right ? left / right : right / left;
    if (!read || !(left > 0 && right > 0 && ratio <= field.max) || (*colon == '\0' && left < 1))
        return spec_read_fail(context, node, error,
                              "is not a ratio; give a number from 1 to 1000, or two such as \"4:1\"");
    *(double *)target = ratio;
    return true;
}

/* A cluster holds groups of nodes, each read as a cluster of its own. */
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
                             .collectives = own->collectives,
                             .host = own->host};
    g_strlcpy(ret_group->name, own->name[0] != '\0' ? own->name : own->accelerator.name,
              sizeof ret_group->name);
    return true;
}

static bool read_groups(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecCluster *cluster = target;
    if (context->partial) /* of a preset's file: its groups are looked up first */
        return true;
    const int count = orr_json_type(node) == ORR_JSON_LIST ? orr_json_count(node) : 0;
    if (count < 1 || count > SPEC_MOST_GROUPS)
        return spec_read_fail(
            context, NULL, error,
            "is not a list of 1 to %d groups; write [{\"preset\": \"dgx-h100\", \"nodes\": 4}, "
            "{\"preset\": \"dgx-a100-80gb\", \"nodes\": 8}]",
            SPEC_MOST_GROUPS);
    int i = 0;
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item))
        if (!read_group(context, item, &cluster->groups[i++], error))
            return false;
    cluster->group_count = count;
    return true;
}

static const SpecField cluster_fields[] = {
    SPEC_F_FILE_KEYS("clusters"),
    SPEC_F_NAME(SpecCluster, name, "\"\"", "What reports call the cluster."),
    SPEC_F_OBJECT(SpecCluster, accelerator, spec_table_accelerator, SPEC_FIELD_REQUIRED | SPEC_FIELD_PRESET,
                  "The accelerator: a preset's name, a path, or an object."),
    SPEC_F_INT(SpecCluster, gpus_per_node, 1, 65536, NULL, SPEC_FIELD_DERIVED,
               "GPUs of one node; default the accelerator's reference node."),
    SPEC_F_INT(SpecCluster, nodes, 1, 1e6, "1", 0, "Nodes; GPUs = nodes x gpus_per_node."),
    SPEC_F_INT(SpecCluster, scale_up_domain_gpus, 1, 65536, NULL, SPEC_FIELD_DERIVED,
               "GPUs joined by scale-up links, may span nodes; default the accelerator's reference node when "
               "its gpus_per_node is the same, else gpus_per_node."),
    SPEC_F_DOUBLE(SpecCluster, scale_up_bytes_per_s, ORR_UNIT_BYTES_PER_S, 0, 1e15, NULL, SPEC_FIELD_DERIVED,
                  "Scale-up rate of one GPU, one way; default the accelerator's."),
    SPEC_F_DOUBLE(SpecCluster, scale_out_bytes_per_s_per_gpu, ORR_UNIT_BYTES_PER_S, 0, 1e14, NULL,
                  SPEC_FIELD_DERIVED,
                  "Network rate of one GPU, one way; default the accelerator's reference node."),
    SPEC_F_DOUBLE(SpecCluster, scale_out_latency_s, ORR_UNIT_SECONDS, 0, 1, "5e-06", 0,
                  "Latency of one message between hosts, end to end. The default is NCCL's figure for a tree "
                  "step over InfiniBand or RoCE. EFA takes 7 to 15 times as long (clusters aws-*)."),
    {.key = "latency_s",
     .type = SPEC_TYPE_CUSTOM,
     .offset = offsetof(SpecCluster, scale_out_latency_s),
     .read = read_latency,
     .form = "a number from 0 to 1 s",
     .schema = "{\"type\":[\"number\",\"string\"]}",
     .help = "Another name of scale_out_latency_s."},
    SPEC_F_WORD(SpecCluster, topology, &spec_words_topology, NULL, SPEC_FIELD_DERIVED,
                "How the GPUs of one scale-up domain are connected. Default: the accelerator's "
                "(reference_node.topology). Nodes with reference_node.mesh_gpus GPUs, a board without a "
                "switch, are a mesh; one node alone may be part of such a board."),
    {.key = "oversubscription",
     .type = SPEC_TYPE_CUSTOM,
     .offset = offsetof(SpecCluster, oversubscription),
     .read = read_oversubscription,
     .default_text = "1",
     .form = "a number from 1 to 1000, or a ratio such as \"4:1\"",
     .schema = "{\"type\":[\"number\",\"string\"]}",
     .help =
         "Network rate below the oversubscribed switches over the rate above; 1: full bisection. They lie "
         "above pods of a fat tree, or above leaves where cluster.network.topology says leaf-spine or rail. "
         "What stays in a pod is as fast as ever."},
    SPEC_F_DOUBLE(SpecCluster, usd_per_gpu_hour, ORR_UNIT_USD, 0, 1e6, "0", 0,
                  "Price of a GPU hour; 0: not given."),
    SPEC_F_DOUBLE(SpecCluster, usd_per_kwh, ORR_UNIT_USD, 0, 1e3, "0", 0,
                  "Price of a kWh that is paid on top of usd_per_gpu_hour, as for hardware one owns; 0: the "
                  "hour's price holds it. Loops over several models do not count it."),
    SPEC_F_DOUBLE(SpecCluster, co2_g_per_kwh, ORR_UNIT_NONE, 0, 1e4, "0", 0,
                  "Grams of CO2 of a kWh of the region's electricity; 0: not given."),
    SPEC_F_INT(SpecCluster, rack_gpus, 0, 65536, "0", 0,
               "GPUs of a rack, which plan --whole-racks rents, powers and pays as a whole; 0: not given."),
    SPEC_F_DOUBLE(SpecCluster, pue, ORR_UNIT_NONE, 1, 10, "1", 0,
                  "Power usage effectiveness: facility power over IT power."),
    SPEC_F_DOUBLE(SpecCluster, host_power_w_per_gpu, ORR_UNIT_WATTS, 0, 1e6, "0", 0,
                  "Power of CPUs, network cards and fans for each GPU."),
    SPEC_F_OBJECT(SpecCluster, collectives, spec_table_collective_model,
                  SPEC_FIELD_DERIVED | SPEC_FIELD_FITTED,
                  "Fitted parameters of collectives; absent: the accelerator's."),
    SPEC_F_OBJECT(SpecCluster, host, spec_table_host, SPEC_FIELD_FITTED,
                  "A node's memory, cores and disks, to which offloading moves tensors."),
    SPEC_F_OBJECT(SpecCluster, network, spec_table_network, SPEC_FIELD_FITTED,
                  "The fabric, link by link, on which all messages of a step meet."),
    SPEC_F_NAME(
        SpecCluster, calibration, "\"\"",
        "A profile of scenarios/calibrations (name or path) whose fitted blocks go before the accelerator's "
        "and the cluster's."),
    {.key = "groups",
     .type = SPEC_TYPE_CUSTOM,
     .flags = SPEC_FIELD_DERIVED,
     .read = read_groups,
     .form = "a list of clusters with their nodes, like {\"preset\": \"dgx-h100\", \"nodes\": 4}",
     .schema = "{\"type\":\"array\",\"items\":{\"type\":\"object\"},\"maxItems\":4}",
     .help = "Nodes of different kinds side by side, numbered group after group. What the cluster itself "
             "leaves out comes from the first group."},
};
SPEC_TABLE(spec_table_cluster, "cluster", "The machine: nodes of accelerators and the network between them.",
           cluster_fields);
