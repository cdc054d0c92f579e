/* spec/fields_collective.c - the "collectives" block of clusters and calibrations and of the "model" block of
 * accelerators: parameters of the NCCL time model. docs/MODEL-collectives.md says what they mean.
 *
 * A block may hold one half (inside a scale-up domain, across nodes) or both; a half is there when its first
 * parameter is. Inside a half, a key left out is 0: the effect is off.
 */
#include <stddef.h>

#include "spec/fields.h"

static bool read_note(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    (void)context, (void)target;
    if (orr_json_type(node) == ORR_JSON_TEXT || orr_json_type(node) == ORR_JSON_LIST)
        return true;
    g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT, "\"%s\" is %s; it is a note: a text or a list",
                orr_json_key(node) ? orr_json_key(node) : "", orr_json_type_name(node));
    return false;
}

#define NOTE(name, text)                                                                                     \
    {                                                                                                        \
        .key = name, .type = SPEC_TYPE_CUSTOM, .flags = SPEC_FIELD_DERIVED, .read = read_note,               \
        .help = (text)                                                                                       \
    }
#define F(member, unit_, hi, text)                                                                           \
    SPEC_F_DOUBLE(SpecCollectiveModel, member, ORR_UNIT_##unit_, 0, hi, "0", 0, text)

static const SpecField collective_fields[] = {
    F(fitted, NONE, 1, "1: this block counts; 0: as if it were absent."),
    F(ring_channels, NONE, 64, "Channels of the ring graph that NCCL picks inside the domain."),
    F(ring_channel_bytes_per_s, BYTES_PER_S, 1e15,
      "Rate of one channel of the ring graph, for NCCL's choice only."),
    F(nvls_channels, NONE, 64, "Channels of the NVLink-SHARP graph; 0: the switch cannot reduce."),
    F(nvls_channel_bytes_per_s, BYTES_PER_S, 1e15,
      "Rate of one channel of the NVLink-SHARP graph, for NCCL's choice only."),
    F(nvls_min_ranks, NONE, 1e6, "Smallest group inside one domain that uses NVLink-SHARP."),
    F(offset_s, SECONDS, 1, "Start of a collective: launch and first synchronisation."),
    F(ll_hop_s, SECONDS, 1, "One ring step inside the domain, protocol LL."),
    F(ll_spread_s, SECONDS, 1, "Extra latency of LL and LL128 once a message is spread over many channels."),
    F(ll128_hop_s, SECONDS, 1, "One ring step inside the domain, protocol LL128."),
    F(simple_hop_s, SECONDS, 1, "One ring step inside the domain, protocol SIMPLE."),
    F(ring_fill_s, SECONDS, 1, "Pipeline fill of SIMPLE rings: adds sqrt(steps x fill x wire time)."),
    F(nvls_latency_s, SECONDS, 1, "Latency of NVLink-SHARP beyond offset_s."),
    F(nvls_fill_s, SECONDS, 1, "Time to fill the pipeline of NVLink-SHARP. It adds sqrt(fill x wire time)."),
    F(alltoall_ll_s, SECONDS, 1, "Latency of send-receive and all-to-all beyond offset_s."),
    F(alltoall_simple_s, SECONDS, 1, "Extra latency of messages above 16 KiB a peer (protocol SIMPLE)."),
    F(alltoall_peer_s, SECONDS, 1, "Latency that each peer adds to an all-to-all."),
    F(alltoall_fill_s, SECONDS, 1, "Pipeline fill of SIMPLE messages: adds sqrt(fill x wire time)."),
    F(ll_frac, FRAC, 8, "Bus rate of LL rings over the scale-up rate."),
    F(ll128_frac, FRAC, 8, "Bus rate of LL128 rings over the scale-up rate; 0: NCCL does not use LL128."),
    F(ring_frac, FRAC, 8, "Bus rate of SIMPLE rings over the scale-up rate, for endless messages."),
    F(nvls_frac, FRAC, 8,
      "Bus rate of NVLink-SHARP all-reduce over the scale-up rate, for endless messages."),
    F(alltoall_frac, FRAC, 8,
      "Rate of send-receive and all-to-all over the scale-up rate, for endless messages."),
    F(copy_frac, FRAC, 100, "Rate at which a rank copies its own part, over the scale-up rate; 0: no cost."),
    F(alltoall_copy_frac, FRAC, 100,
      "Rate at which a rank copies its own part in an all-to-all, over the scale-up rate."),
    F(share_exponent, NONE, 8, "Links that ranks share (PCIe): rate times (2/ranks)^x; 0: switched."),
    F(ring_sm_frac, FRAC, 1,
      "Share of SMs and memory bandwidth that rings take from compute that runs at the same time."),
    F(nvls_sm_frac, FRAC, 1, "Share of SMs and memory rate that NVLink-SHARP takes from overlapped compute."),
    F(alltoall_sm_frac, FRAC, 1,
      "Share of SMs and memory rate that all-to-all and send-receive take from overlapped compute."),
    F(nic_frac, FRAC, 2, "Rate of one NIC over its line rate, for endless messages."),
    F(tree_frac, FRAC, 2, "Bus rate of tree all-reduce across nodes over that of the ring."),
    F(nvls_tree_frac, FRAC, 2, "Bus rate of NVLS-tree all-reduce over three or more nodes over the ring's."),
    F(net_latency_s, SECONDS, 1, "What a step between nodes takes beyond the cluster's scale_out_latency_s."),
    F(net_simple_s, SECONDS, 1, "What one step between nodes takes more with protocol SIMPLE."),
    F(net_ring_hop_s, SECONDS, 1, "One SIMPLE step inside a node of a ring or tree that crosses nodes."),
    F(net_congestion_frac, FRAC, 10, "Growth of wire time with every doubling of the nodes beyond two."),
    F(net_hop_congestion_frac, FRAC, 10, "Growth of a step between nodes with every doubling beyond two."),
    F(net_eager_bytes, BYTES, 1e9, "Messages up to this size leave before the receiver answers."),
    F(net_rendezvous_s, SECONDS, 1,
      "Time that a longer message waits for the receiver's answer; 0: nothing."),
    F(net_stripe_bytes, BYTES, 1e9, "Messages above this size are cut over the rails of a GPU's NIC."),
    F(net_stripe_s, SECONDS, 1, "Time that a step takes more when its message is cut over rails."),
    F(net_channels, NONE, 64, "Channels of rings and trees that cross nodes; 0: as many as inside."),
    F(net_fill_s, SECONDS, 1,
      "Time to fill the pipeline of SIMPLE trees across nodes. It adds sqrt(fill x wire time)."),
    F(net_told_latency_s, SECONDS, 1,
      "Latency of a step that the network's plug-in tells NCCL, for its choice only."),
    F(net_told_bytes_per_s, BYTES_PER_S, 1e15,
      "Rate of a rank's NICs that NCCL sees, for its choice only; 0: the accelerator's reference node's."),
    F(net_simple_only, NONE, 1,
      "1: across nodes only SIMPLE, as where the network keeps no order of stores."),
    F(amd_cpu, NONE, 1,
      "1: hosts have AMD CPUs, which changes NCCL's choice of an algorithm. 0: they have others."),
    F(sharp, NONE, 1, "1: the network's switches sum (SHARP), so that NVLink-SHARP spans nodes."),
    SPEC_F_WORD(
        SpecCollectiveModel, tuner, &spec_words_tuner, "\"nccl\"", 0,
        "Who names NCCL's algorithm: nccl, or the regions of AWS's plug-in for p5, p5en or p6 (B200)."),
    F(net_sm_frac, FRAC, 1, "SM and memory share of collectives that only cross nodes."),
    NOTE("source", "Where the measurements come from."),
    NOTE("derived_from", "The profile whose fit was carried over, and why."),
    NOTE("fits", "Fit error: rows, median and 90th percentile of |predicted/measured - 1|."),
};

/* The middle of the fitted switched accelerators, rounded; NCCL's own latencies across nodes. */
const SpecCollectiveModel spec_collective_model_default = {
    .fitted = 1,
    .ring_channels = 12,
    .ring_channel_bytes_per_s = 25e9,
    .offset_s = 7e-6,
    .ll_hop_s = 1e-6,
    .ll_spread_s = 1e-6,
    .simple_hop_s = 8e-6,
    .alltoall_ll_s = 2e-6,
    .alltoall_simple_s = 3e-6,
    .alltoall_peer_s = 3e-7,
    .alltoall_fill_s = 2e-6,
    .ll_frac = 0.4,
    .ring_frac = 0.85,
    .alltoall_frac = 0.75,
    .copy_frac = 1.2,
    .alltoall_copy_frac = 1.2,
    .ring_sm_frac = 0.15,
    .alltoall_sm_frac = 0.15,
    .nic_frac = 0.95,
    .tree_frac = 0.8,
    .nvls_tree_frac = 0.8,
    .net_simple_s = 11.3e-6,
    .net_ring_hop_s = 3.4e-6,
    .net_congestion_frac = 0.02,
    .net_sm_frac = 0.03,
};

const SpecTable spec_table_collective_model = {
    .name = "collectives",
    .help = "Time of NCCL's collectives inside a scale-up domain and across nodes.",
    .fields = collective_fields,
    .count = (int)G_N_ELEMENTS(collective_fields),
};
