/* spec/fields_offload.c - field tables of a node's host and of what a scenario moves there. */
#include <string.h>

#include "spec/fields_internal.h"

static const SpecField host_fields[] = {
    SPEC_F_NOTE("source", "Where the numbers come from, key by key."),
    SPEC_F_INT(SpecHost, sockets, 1, 64, "1", 0, "Processors of a node, each with memory of its own."),
    SPEC_F_INT(SpecHost, cores, 0, 65536, "0", 0, "Cores of a node; 0: not known."),
    SPEC_F_DOUBLE(SpecHost, dram_bytes, ORR_UNIT_BYTES, 0, 1e16, "0", 0, "Memory of a node; 0: not known."),
    SPEC_F_DOUBLE(SpecHost, dram_bytes_per_s, ORR_UNIT_BYTES_PER_S, 0, 1e14, "0", 0,
                  "Memory bandwidth of one socket, of the data sheet; 0: not known."),
    SPEC_F_DOUBLE(SpecHost, dram_stream_frac, ORR_UNIT_FRAC, 0.01, 1, "0.85", 0,
                  "Share of dram_bytes_per_s that streams of reads and writes reach."),
    SPEC_F_DOUBLE(
        SpecHost, core_bytes_per_s, ORR_UNIT_BYTES_PER_S, 1e6, 1e12, "1e10", 0,
        "Rate at which one core moves memory: its outstanding cache lines over the memory's latency."),
    SPEC_F_DOUBLE(SpecHost, launch_frac, ORR_UNIT_FRAC, 0.01, 10, "1", 0,
                  "Speed of one core at launching kernels and at Python, over that of the x86 hosts on which "
                  "recipes were measured. Host times of recipes are divided by it."),
    SPEC_F_INT(SpecHost, gpus_per_pcie_root, 1, 64, "1", 0,
               "GPUs that share one port of the processor: copies of all at once share its rate."),
    SPEC_F_DOUBLE(SpecHost, pcie_root_bytes_per_s, ORR_UNIT_BYTES_PER_S, 0, 1e14, "0", 0,
                  "Rate of a PCIe root port, one way. 0: the rate of one GPU's link."),
    SPEC_F_DOUBLE(
        SpecHost, pinned_frac, ORR_UNIT_FRAC, 0.01, 1, "0.88", 0,
        "Share of the link's rate that copies from and to page-locked memory reach: 55.6 of 63 GB/s on "
        "PCIe 5 x16 [nvbandwidth]."),
    SPEC_F_DOUBLE(SpecHost, pageable_frac, ORR_UNIT_FRAC, 0.001, 1, "0.15", 0,
                  "Copy rate of ordinary (pageable) host memory over the rate of pinned memory. Such copies "
                  "pass a small pinned buffer [DeepSpeedPinned]."),
    SPEC_F_DOUBLE(
        SpecHost, duplex_frac, ORR_UNIT_FRAC, 0.5, 1, "1", 0,
        "Share of its rate that each way keeps when both are busy: 1 PCIe, 0.5 where the two share."),
    SPEC_F_DOUBLE(
        SpecHost, direct_frac, ORR_UNIT_FRAC, 0.01, 1, "0.8", 0,
        "Rate of kernels that read the host's memory where it is, over that of copies: an estimate."),
    SPEC_F_DOUBLE(SpecHost, nvme_bytes, ORR_UNIT_BYTES, 0, 1e18, "0", 0, "Disks of a node; 0: none."),
    SPEC_F_DOUBLE(SpecHost, nvme_read_bytes_per_s, ORR_UNIT_BYTES_PER_S, 0, 1e14, "0", 0,
                  "Rate at which all disks of a node read together."),
    SPEC_F_DOUBLE(SpecHost, nvme_write_bytes_per_s, ORR_UNIT_BYTES_PER_S, 0, 1e14, "0", 0,
                  "Rate at which all disks of a node write together."),
    SPEC_F_DOUBLE(SpecHost, nvme_latency_s, ORR_UNIT_SECONDS, 0, 1, "1e-4", 0,
                  "Time from a request to its data on an idle flash disk, an estimate. It counts where "
                  "offload.aio says how many requests are on their way."),
};
SPEC_TABLE(spec_table_host, "cluster.host",
           "The host of one node: memory levels below the GPUs' and the ways to them.", host_fields);

#define PART_TIER                                                                                            \
    SPEC_F_WORD(SpecOffloadPart, tier, &spec_words_tier, NULL, SPEC_FIELD_DERIVED,                           \
                "Where the tensors lie: on the GPU, in the host's memory or on the node's disks. Default: "  \
                "the scheme's.")
#define PART_FRACTION                                                                                        \
    SPEC_F_DOUBLE(SpecOffloadPart, fraction, ORR_UNIT_FRAC, 0, 1, NULL, SPEC_FIELD_DERIVED,                  \
                  "Share of the bytes that lies in that tier; the rest stays on the GPU. Default 1.")

static const SpecField part_fields[] = {PART_TIER, PART_FRACTION};
static SPEC_TABLE(table_part, "offload.optimizer", "One kind of state.", part_fields);

static const SpecField activation_fields[] = {
    PART_TIER,
    PART_FRACTION,
    {.key = "modules",
     .type = SPEC_TYPE_WORD_SET,
     .offset = offsetof(SpecOffloadPart, modules),
     .words = &spec_words_offload_module,
     .default_text = "[]",
     .help = "Modules whose saved inputs are offloaded, as Megatron-Core's --offload-modules. Empty: the "
             "whole layer."},
    SPEC_F_DOUBLE(SpecOffloadPart, resident_bytes, ORR_UNIT_BYTES, 0, 1e18, NULL, SPEC_FIELD_DERIVED,
                  "Dynamic evicting: bytes of a micro-batch's activations that stay in a stage. Tensors "
                  "leave in the order of bytes times the time to fetch them. Default: none leave."),
};
static SPEC_TABLE(table_activations, "offload.activations", "Tensors between forward and backward.",
                  activation_fields);

static const SpecField aio_fields[] = {
    SPEC_F_DOUBLE(SpecAio, block_bytes, ORR_UNIT_BYTES, 0, 1e12, "0", 0,
                  "Bytes of one request; 0: no limit but the disks' rates. DeepSpeed: 1 MiB."),
    SPEC_F_INT(SpecAio, queue_depth, 1, 65536, "8", 0,
               "Requests of one thread that are on their way at once."),
    SPEC_F_INT(SpecAio, threads, 1, 1024, "1", 0, "Threads of a process that issue requests."),
    SPEC_F_BOOL(SpecAio, overlap_events, "true", 0,
                "A request that is done makes room for the next one; false: all of a queue are waited for."),
    SPEC_F_BOOL(SpecAio, pipeline_read, "false", 0,
                "States of the next tile are read while one is updated (DeepSpeed's pipeline_read)."),
    SPEC_F_BOOL(SpecAio, pipeline_write, "false", 0,
                "States of the last tile are written while one is updated (DeepSpeed's pipeline_write)."),
};
static SPEC_TABLE(table_aio, "offload.aio", "How a process asks the disks.", aio_fields);

static const SpecField offload_fields[] = {
    SPEC_F_INT(SpecOffload, activation_layers, 0, SPEC_OFFLOAD_ALL - 1, NULL,
               SPEC_FIELD_AUTO | SPEC_FIELD_DERIVED,
               "First layers of each model stage whose activations wait in host memory. Default: 0, or all "
               "where offload.activations has a tier."),
    SPEC_F_WORD(
        SpecOffload, scheme, &spec_words_offload, NULL, SPEC_FIELD_AUTO | SPEC_FIELD_DERIVED,
        "What moves where and in which order: a row of the table in docs/MODEL.md; default: the plainest one "
        "that moves what the tiers say."),
    SPEC_F_OBJECT(SpecOffload, optimizer, table_part, SPEC_FIELD_DERIVED,
                  "Where master weights and moments lie."),
    SPEC_F_OBJECT(SpecOffload, gradients, table_part, SPEC_FIELD_DERIVED,
                  "Where gradients lie once they are reduced."),
    SPEC_F_OBJECT(SpecOffload, weights, table_part, SPEC_FIELD_DERIVED,
                  "Where the weights that passes use lie."),
    SPEC_F_OBJECT(SpecOffload, activations, table_activations, SPEC_FIELD_DERIVED,
                  "Where the activations of activation_layers lie."),
    {.key = "delayed_update",
     .type = SPEC_TYPE_TRISTATE,
     .offset = offsetof(SpecOffload, delayed_update),
     .flags = SPEC_FIELD_DERIVED,
     .help = "The host updates weights while the next step runs, which uses weights one update old. Default: "
             "the scheme's."},
    SPEC_F_DOUBLE(
        SpecOffload, ratio, ORR_UNIT_FRAC, 0, 1, NULL, SPEC_FIELD_DERIVED,
        "Share of the parameters that the host updates, the GPU the others; default 1, twin-flow 0.3."),
    SPEC_F_INT(
        SpecOffload, window_layers, 0, 100000, "0", 0,
        "Scheme stronghold: layers of weights on the GPU at once; 0: the fewest that hide the copies."),
    SPEC_F_INT(
        SpecOffload, prefetch_depth, 0, 3, NULL, SPEC_FIELD_DERIVED,
        "ZeRO-3 with weights off the GPU: what runs ahead of its use: 1 gathers, 2 copies too, 3 disks too; "
        "default: the scheme's."),
    SPEC_F_BOOL(SpecOffload, overlap_update, "false", 0,
                "The host updates each piece once its gradients have arrived, while others are copied "
                "(Megatron-Core's --overlap-cpu-optimizer-d2h-h2d). False: once all have arrived."),
    SPEC_F_BOOL(SpecOffload, pinned, "true", 0, "The host's buffers are page-locked."),
    SPEC_F_INT(SpecOffload, threads, 0, 65536, "0", 0,
               "Threads of a process's optimizer on the host (OMP_NUM_THREADS; torchrun's default is 1). 0: "
               "one for each core of its share of the socket."),
    SPEC_F_DOUBLE(SpecOffload, subgroup_parameters, ORR_UNIT_NONE, 1, 1e15, "1e9", 0,
                  "Parameters of a tile. The states of one tile at a time are read from disk, updated and "
                  "written back."),
    SPEC_F_OBJECT(SpecOffload, aio, table_aio, 0, "Requests to the disks."),
};
SPEC_TABLE(spec_table_offload, "offload", "What leaves the GPU's memory.", offload_fields);

static void clear(SpecOffload *offload)
{
    static const SpecOffloadPart unset = {.tier = (SpecTier)SPEC_UNSET, .fraction = SPEC_UNSET};
    *offload = (SpecOffload){.scheme = (SpecOffloadScheme)SPEC_UNSET,
                             .optimizer = unset,
                             .gradients = unset,
                             .weights = unset,
                             .activations = unset,
                             .activation_layers = SPEC_UNSET,
                             .delayed_update = SPEC_UNSET,
                             .ratio = SPEC_UNSET,
                             .prefetch_depth = SPEC_UNSET,
                             .pinned = true,
                             .subgroup_parameters = 1e9,
                             .aio = {.queue_depth = 8, .threads = 1, .overlap_events = true}};
}

bool spec_read_offload(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecOffload *offload = target;
    const char *text = orr_json_type(node) == ORR_JSON_TEXT ? orr_json_text(node) : NULL;
    clear(offload);
    if (text != NULL && strcmp(text, "none") == 0) {
        offload->scheme = SPEC_OFFLOAD_NONE;
        return true;
    }
    if (spec_is_auto(node) && context->allow_auto) {
        offload->scheme = (SpecOffloadScheme)SPEC_AUTO;
        return true;
    }
    if (text != NULL && strcmp(text, "activations") == 0) {
        offload->activation_layers = SPEC_OFFLOAD_ALL;
        return true;
    }
    if (text != NULL && strcmp(text, "optimizer") == 0) {
        offload->scheme = SPEC_OFFLOAD_ZERO_OFFLOAD;
        return true;
    }
    if (text != NULL && strcmp(text, "params") == 0) {
        offload->scheme = SPEC_OFFLOAD_ZERO3_OFFLOAD;
        return true;
    }
    if (orr_json_type(node) != ORR_JSON_OBJECT)
        return spec_read_fail(context, node, error,
                              "is not a way to offload; give \"none\", \"activations\", \"optimizer\", "
                              "\"params\", \"auto\" or an "
                              "object such as {\"scheme\": \"zero-offload\"}");
    SpecReadContext inside = *context;
    inside.quiet++;
    if (!spec_read_table(&inside, &spec_table_offload, node, target, error))
        return false;
    const OrrJson *activations = orr_json_member(node, "activations");
    offload->activations.evicts = activations != NULL && orr_json_type(activations) == ORR_JSON_OBJECT &&
                                  orr_json_member(activations, "resident_bytes") != NULL;
    return true;
}
