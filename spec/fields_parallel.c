/* spec/fields_parallel.c - field table of how the work is split over GPUs. */
#include <string.h>

#include "spec/fields_internal.h"
#include "spec/orders.h"

#define DEGREE_MAX 1e6

/* A word, "auto", or the path of a file of op orders. */
static bool read_schedule(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecParallel *parallel = (SpecParallel *)(void *)((char *)target - offsetof(SpecParallel, schedule));
    if (spec_is_auto(node)) {
        parallel->schedule = (SpecSchedule)SPEC_AUTO;
        return context->allow_auto ||
               spec_read_fail(context, NULL, error,
                              "\"auto\" leaves the choice to a search; give a schedule such as 1f1b here");
    }
    if (orr_json_type(node) == ORR_JSON_OBJECT) {
        parallel->schedule = SPEC_SCHEDULE_FILE;
        return spec_orders_take(node, context->texts, parallel, error);
    }
    SpecWords words = spec_words_schedule;
    words.what = "a pipeline schedule, nor the path of a file of op orders (.json or .csv)";
    int schedule = 0;
    if (!spec_read_word(context, &words, node, &schedule, error))
        return false;
    parallel->schedule = (SpecSchedule)schedule;
    return true;
}

static bool read_stage_layers(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecParallel *parallel = target;
    if (spec_is_auto(node)) {
        parallel->stage_layers_count = SPEC_AUTO;
        return true;
    }
    if (orr_json_type(node) != ORR_JSON_LIST)
        return spec_read_fail(context, node, error, "is %s; give a list of layers, one number a model stage",
                              orr_json_type_name(node));
    const int count = orr_json_count(node);
    if (count > SPEC_MAX_STAGES)
        return spec_read_fail(context, NULL, error, "lists %d stages; give at most %d", count,
                              SPEC_MAX_STAGES);
    int i = 0;
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item))
        if (!spec_read_int(context, item, 0, 1e5, &parallel->stage_layers[i++], error))
            return false;
    parallel->stage_layers_count = count;
    return true;
}

static bool read_microbatches(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecParallel *parallel = target;
    if (spec_is_auto(node)) {
        parallel->replica_microbatches_count = SPEC_AUTO;
        return true;
    }
    const int count = orr_json_type(node) == ORR_JSON_LIST ? orr_json_count(node) : 0;
    if (count < 1 || count > SPEC_MOST_REPLICAS)
        return spec_read_fail(
            context, NULL, error,
            "is not a list of 1 to %d numbers; give the micro-batches of each replica of the "
            "model, or \"auto\"",
            SPEC_MOST_REPLICAS);
    int i = 0, value = 0;
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item)) {
        if (!spec_read_int(context, item, 1, UINT16_MAX, &value, error))
            return false;
        parallel->replica_microbatches[i++] = (uint16_t)value;
    }
    parallel->replica_microbatches_count = count;
    return true;
}

static const SpecField servers_fields[] = {
    SPEC_F_INT(SpecServers, servers, 1, 1e5, NULL, SPEC_FIELD_REQUIRED, "Machines that hold parameters."),
    SPEC_F_WORD(SpecServers, placement, &spec_words_server_placement, "\"dedicated\"", 0,
                "Where servers run. dedicated: on machines without workers. colocated: on the workers' first "
                "machines. byteps: on both, in shares that fill all NICs."),
    SPEC_F_WORD(SpecServers, scheme, &spec_words_server_scheme, "\"wfbp\"", 0,
                "Order in which layers travel. naive: all are pushed, then all are pulled. wfbp: each layer "
                "when its gradient is there. bytescheduler: in parts, the first layers first."),
    SPEC_F_WORD(SpecServers, mode, &spec_words_server_mode, "\"sync\"", 0,
                "When weights come back. sync: all workers have pushed. async: the worker's own push is "
                "applied. bounded: async, with no worker more than `staleness` iterations ahead."),
    SPEC_F_INT(SpecServers, staleness, 0, 1e6, "0", 0,
               "Mode bounded: iterations that a worker may be ahead of the slowest one."),
    SPEC_F_BOOL(SpecServers, barrier, "false", 0,
                "No forward before all weights are back; false: each layer waits for its own."),
    SPEC_F_DOUBLE(SpecServers, partition_bytes, ORR_UNIT_BYTES, 0, 1e15, NULL, SPEC_FIELD_DERIVED,
                  "Layers go in parts of this size; 0: whole. Default 0, bytescheduler 4,096,000 (BytePS)."),
    SPEC_F_DOUBLE(
        SpecServers, credit_bytes, ORR_UNIT_BYTES, 0, 1e15, "0", 0,
        "Most bytes of a worker that are on their way in one direction; 0: one part on each connection."),
    SPEC_F_DOUBLE(SpecServers, startup_s, ORR_UNIT_SECONDS, 0, 1e3, NULL, SPEC_FIELD_DERIVED,
                  "Start-up of each transfer; default the cluster's scale_out_latency_s."),
    SPEC_F_DOUBLE(SpecServers, nic_bytes_per_s, ORR_UNIT_BYTES_PER_S, 0, 1e15, "0", 0,
                  "Rate of the NIC of a server's own machine, one way; 0: as on a worker's machine."),
    SPEC_F_DOUBLE(SpecServers, flow_bytes_per_s, ORR_UNIT_BYTES_PER_S, 0, 1e15, "0", 0,
                  "Most that one connection carries (one TCP flow); 0: no limit."),
    SPEC_F_DOUBLE(SpecServers, incast_frac, ORR_UNIT_FRAC, 0, 10, "0", 0,
                  "Loss by incast: j flows into a NIC get 1 / (1 + incast_frac (j - 1)) of its rate."),
    SPEC_F_DOUBLE(SpecServers, sum_bytes_per_s, ORR_UNIT_BYTES_PER_S, 0, 1e15, "0", 0,
                  "Rate at which a server's cores and DRAM add up gradients; 0: they take no time."),
    SPEC_F_DOUBLE(SpecServers, update_bytes_per_s, ORR_UNIT_BYTES_PER_S, 0, 1e15, "0", 0,
                  "Rate at which a server's optimizer applies gradients; 0: it takes no time."),
    SPEC_F_WORD(SpecServers, spread, &spec_words_spread, "\"none\"", 0,
                "How the time of an iteration differs between workers and iterations."),
    SPEC_F_DOUBLE(SpecServers, spread_frac, ORR_UNIT_FRAC, 0, 1, "0.1", 0,
                  "Spread normal: standard deviation over the mean."),
    SPEC_F_BOOL(SpecServers, spread_lasts, "false", 0,
                "true: each worker draws once, for all iterations. false: it draws again in each iteration."),
    SPEC_F_INT(SpecServers, seed, 0, 2e9, "1", 0, "Seed of the random draws."),
    SPEC_F_INT(SpecServers, iterations, 1, 1e6, NULL, SPEC_FIELD_DERIVED,
               "Iterations that are simulated after the warm-up. Default 4; with a spread, or without a "
               "barrier between workers, 200."),
};
static SPEC_TABLE(table_servers, "parallel.parameter_server", "Parameter servers.", servers_fields);

static const SpecField compression_fields[] = {
    SPEC_F_WORD(SpecCompression, kind, &spec_words_compression, NULL, SPEC_FIELD_REQUIRED,
                "What is sent. topk: the largest elements with their indices. int8 and onebit: blocks of 256 "
                "with a scale. fp16: a cast."),
    SPEC_F_DOUBLE(SpecCompression, fraction, ORR_UNIT_FRAC, 1e-9, 1, "0.01", 0,
                  "Kind topk: share of the elements that is sent."),
    SPEC_F_BOOL(SpecCompression, error_feedback, "false", 0,
                "What was left out is kept in fp32 and added to the next gradient."),
};
static SPEC_TABLE(table_compression, "parallel.compression", "Gradient compression.", compression_fields);

static const SpecField parallel_fields[] = {
    SPEC_F_INT(SpecParallel, tensor, 1, DEGREE_MAX, "1", SPEC_FIELD_AUTO, "Tensor-parallel degree t."),
    SPEC_F_INT(SpecParallel, tensor_preferred, 0, DEGREE_MAX, "0", 0,
               "What tensor \"auto\" of a run takes where it fits; the framework's recipes set it. 0: none."),
    SPEC_F_WORD(SpecParallel, tensor_scheme, &spec_words_tensor, "\"1d\"", 0,
                "How linear layers are split over tensor ranks. 1d: Megatron. 2d: q x q. 2.5d: q x q x "
                "depth. 3d: q x q x q."),
    SPEC_F_INT(SpecParallel, tensor_depth, 1, DEGREE_MAX, "1", 0, "Scheme 2.5d: layers of the grid."),
    {.key = "sequence_parallel",
     .type = SPEC_TYPE_TRISTATE,
     .offset = offsetof(SpecParallel, sequence_parallel),
     .flags = SPEC_FIELD_AUTO | SPEC_FIELD_DERIVED,
     .help = "Norms, dropout and residuals are split along the sequence over the tensor-parallel ranks; "
             "default the framework's, mostly false."},
    SPEC_F_INT(SpecParallel, context, 1, DEGREE_MAX, "1", SPEC_FIELD_AUTO,
               "Context-parallel degree: the sequence is split over this many ranks."),
    SPEC_F_INT(SpecParallel, pipeline, 1, DEGREE_MAX, "1", SPEC_FIELD_AUTO, "Pipeline-parallel degree p."),
    SPEC_F_INT(
        SpecParallel, pipeline_preferred, 0, DEGREE_MAX, "0", 0,
        "What pipeline \"auto\" of a run takes where it fits; the framework's recipes set it. 0: none."),
    SPEC_F_INT(SpecParallel, virtual_stages, 1, SPEC_MAX_STAGES, NULL, SPEC_FIELD_AUTO | SPEC_FIELD_DERIVED,
               "Model chunks on each pipeline rank; default 1 (2 for the V-shaped schedules)."),
    SPEC_F_INT(SpecParallel, data, 1, DEGREE_MAX, NULL, SPEC_FIELD_AUTO | SPEC_FIELD_DERIVED,
               "Data-parallel degree d; default GPUs / (tensor x context x pipeline)."),
    SPEC_F_WORD(SpecParallel, data_scheme, &spec_words_data_scheme, NULL, SPEC_FIELD_DERIVED,
                "How replicas put their gradients together: allreduce (default), parameter_server, or "
                "single_process (torch.nn.DataParallel: weights, gradients and outputs pass through GPU 0)."),
    {.key = "parameter_server",
     .type = SPEC_TYPE_OBJECT,
     .offset = offsetof(SpecParallel, servers),
     .size = sizeof(SpecServers),
     .flags = SPEC_FIELD_DERIVED,
     .table = &table_servers,
     .help = "Parameter servers, for data_scheme parameter_server."},
    SPEC_F_OBJECT(SpecParallel, compression, table_compression, SPEC_FIELD_DERIVED,
                  "Compression of gradients on the wire; absent: none."),
    SPEC_F_INT(SpecParallel, expert, 1, DEGREE_MAX, "1", SPEC_FIELD_AUTO,
               "Expert-parallel degree, within data x context x tensor."),
    SPEC_F_INT(
        SpecParallel, expert_tensor, 1, DEGREE_MAX, NULL, SPEC_FIELD_AUTO | SPEC_FIELD_DERIVED,
        "Tensor-parallel degree of experts; default 1 (experts are whole) where expert is above 1, else "
        "tensor."),
    SPEC_F_INT(SpecParallel, zero, 0, 3, NULL, SPEC_FIELD_AUTO | SPEC_FIELD_DERIVED,
               "ZeRO stage: 1 shards optimizer states over data-parallel ranks, 2 gradients too, 3 weights "
               "too (FSDP); default the framework's, 0 on one rank."),
    SPEC_F_INT(SpecParallel, zero_group_gpus, 0, DEGREE_MAX, "0", SPEC_FIELD_AUTO,
               "Shard within groups of this many data-parallel ranks (HSDP); 0: over all."),
    SPEC_F_INT(SpecParallel, weight_tiles, 1, 4096, "1", 0,
               "ZeRO-3: parts that each weight matrix is cut into along its output, experts excepted. Parts "
               "are gathered, used and freed in turn (memory-centric tiling [Rajbhandari2021])."),
    {.key = "schedule",
     .type = SPEC_TYPE_CUSTOM,
     .offset = offsetof(SpecParallel, schedule),
     .flags = SPEC_FIELD_AUTO | SPEC_FIELD_DERIVED,
     .words = &spec_words_schedule,
     .read = read_schedule,
     .form = "or the path of a file of op orders (.json or .csv)",
     .schema = "{\"type\":[\"string\",\"object\"]}",
     .help = "Pipeline schedule; default 1f1b, or interleaved with virtual stages."},
    SPEC_F_INT(
        SpecParallel, microbatch_group, 0, 1e6, "0", 0,
        "Micro-batches that a model chunk runs before the rank turns to the next one, with an interleaved "
        "schedule; at least as many as pipeline ranks. More hide messages and hold more activations. 0: "
        "pipeline."),
    SPEC_F_INT(
        SpecParallel, live_microbatches, 0, 1e6, "0", 0,
        "Schedule zb-auto: activations that a pipeline rank may hold, in micro-batches. As many as pipeline "
        "ranks is 1F1B's memory; twice as many is ZB-2P's [Qi2024]. 0: as many as fit in GPU memory."),
    {.key = "order",
     .type = SPEC_TYPE_NAME,
     .offset = offsetof(SpecParallel, order),
     .size = sizeof(((SpecParallel *)0)->order),
     .default_text = "\"tp-cp-ep-dp-pp\"",
     .flags = SPEC_FIELD_AUTO,
     .help = "Which ranks are neighbours: dimensions, innermost first; nodes are filled in that order."},
    SPEC_F_WORD(SpecParallel, moe_dispatcher, &spec_words_dispatcher, NULL,
                SPEC_FIELD_AUTO | SPEC_FIELD_DERIVED,
                "What carries tokens to experts; default the framework's. one-hot: products with masks of "
                "the slots of model.moe.capacity_factor (GShard, MaxText) on both sides of an all-to-all. "
                "ragged: an all-to-all into buffers with room for all that may come (XLA)."),
    SPEC_F_BOOL(
        SpecParallel, moe_dispatch_fp8, "false", 0,
        "Tokens travel to their experts in 8 bits with a scale for every 128; they return, and gradients "
        "travel, in 16."),
    SPEC_F_INT(SpecParallel, expert_replicas, 0, 1e5, "0", 0,
               "Further copies of the busiest experts, over all ranks of an expert group."),
    SPEC_F_BOOL(SpecParallel, expert_rebalance, "false", 0,
                "true: experts are assigned to ranks so that their loads are even. false: in order."),
    SPEC_F_WORD(SpecParallel, context_mode, &spec_words_context, NULL, SPEC_FIELD_DERIVED,
                "How context ranks exchange keys and values; default the framework's."),
    SPEC_F_INT(SpecParallel, context_inner, 0, DEGREE_MAX, "0", 0,
               "Mode hierarchical: context ranks of one all-to-all. 0: the ranks of a scale-up domain."),
    SPEC_F_BOOL(SpecParallel, quantized_weight_gather, "false", 0,
                "ZeRO-3: weights are gathered in 8 bits (ZeRO++ qwZ)."),
    SPEC_F_BOOL(SpecParallel, secondary_weight_shard, "false", 0,
                "ZeRO-3: a second shard in every node serves the backward's gathers (ZeRO++ hpZ)."),
    SPEC_F_BOOL(SpecParallel, quantized_gradient_reduce, "false", 0,
                "ZeRO-3: gradients are reduced in 4 bits by two all-to-alls (ZeRO++ qgZ)."),
    {.key = "stage_layers",
     .type = SPEC_TYPE_CUSTOM,
     .flags = SPEC_FIELD_DERIVED,
     .read = read_stage_layers,
     .form = "a list of layers, one number a model stage, or \"auto\" in a mixed cluster",
     .schema = "{\"anyOf\":[{\"type\":\"array\",\"items\":{\"type\":\"integer\",\"minimum\":0},"
               "\"maxItems\":1024},{\"const\":\"auto\"}]}",
     .help = "Layers of each of pipeline x virtual_stages model stages; default: spread evenly. \"auto\": by "
             "the speed and the memory of the GPUs in cluster.groups."},
    {.key = "replica_microbatches",
     .type = SPEC_TYPE_CUSTOM,
     .flags = SPEC_FIELD_DERIVED,
     .read = read_microbatches,
     .form = "a list of numbers, one a replica of the model, or \"auto\"",
     .schema = "{\"anyOf\":[{\"type\":\"array\",\"items\":{\"type\":\"integer\",\"minimum\":1},"
               "\"maxItems\":1024},{\"const\":\"auto\"}]}",
     .help = "Micro-batches of a step that each data rank takes, in a cluster of groups; default: all as "
             "many. \"auto\": by the speed of their GPUs."},
    SPEC_F_INT(SpecParallel, first_stage_layers, 0, 1e5, "0", 0,
               "Layers of the first pipeline rank; 0: derived."),
    SPEC_F_INT(SpecParallel, last_stage_layers, 0, 1e5, "0", 0,
               "Layers of the last pipeline rank; 0: derived."),
    SPEC_F_BOOL(SpecParallel, embedding_as_layer, "false", 0,
                "The embedding counts as a layer when layers are assigned to stages."),
    SPEC_F_BOOL(SpecParallel, loss_as_layer, "false", 0,
                "Output layer and loss count as a layer when layers are assigned to stages."),
    SPEC_F_BOOL(SpecParallel, mtp_as_layer, "false", 0,
                "Multi-token prediction modules count as layers when layers are assigned to stages."),
};
SPEC_TABLE(spec_table_parallel, "parallel", "How the work is split over GPUs.", parallel_fields);
