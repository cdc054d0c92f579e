/* sim/engine_words.c - what ops and streams are called, in traces and in messages. */
#include "sim/engine.h"

static const char *const tag_labels[SIM_TAG_COUNT] = {
    [SIM_TAG_FORWARD] = "forward",
    [SIM_TAG_BACKWARD] = "backward",
    [SIM_TAG_BACKWARD_INPUT] = "backward input",
    [SIM_TAG_BACKWARD_WEIGHT] = "backward weight",
    [SIM_TAG_FORWARD_BACKWARD] = "forward and backward",
    [SIM_TAG_SEND_FORWARD] = "send activation",
    [SIM_TAG_SEND_BACKWARD] = "send gradient",
    [SIM_TAG_GRAD_REDUCE] = "reduce gradients",
    [SIM_TAG_PARAM_GATHER] = "gather parameters",
    [SIM_TAG_EMBEDDING_REDUCE] = "reduce tied embedding",
    [SIM_TAG_GRAD_NORM] = "gradient norm",
    [SIM_TAG_OPTIMIZER] = "optimizer",
    [SIM_TAG_OVERHEAD] = "step overhead",
    [SIM_TAG_OFFLOAD] = "offload",
};

static const char *const stream_labels[SIM_STREAM_COUNT] = {
    [SIM_STREAM_COMPUTE] = "compute",
    [SIM_STREAM_TENSOR] = "tensor comm",
    [SIM_STREAM_DATA] = "data comm",
    [SIM_STREAM_SEND_NEXT] = "send to next stage",
    [SIM_STREAM_SEND_PREV] = "send to previous stage",
    [SIM_STREAM_H2D] = "host to device",
    [SIM_STREAM_D2H] = "device to host",
    [SIM_STREAM_HOST] = "host",
    [SIM_STREAM_NVME_READ] = "disk read",
    [SIM_STREAM_NVME_WRITE] = "disk write",
};

const char *sim_tag_label(SimTag tag)
{
    g_assert((unsigned)tag < SIM_TAG_COUNT);
    return tag_labels[tag];
}

const char *sim_stream_label(SimStream stream)
{
    g_assert((unsigned)stream < SIM_STREAM_COUNT);
    return stream_labels[stream];
}
