/* report/parts.c - the words of every report. */
#include "report/parts.h"

typedef struct PartWord {
    int part; /* SimPart; -1: the bubble */
    const char *key, *label;
} PartWord;

/* In the order of the report. */
static const PartWord part_words[REPORT_TIME_COUNT] = {
    {SIM_PART_COMPUTE, "compute_s", "compute"},
    {SIM_PART_RECOMPUTE, "recompute_s", "recompute"},
    {SIM_PART_TENSOR_COMM, "tensor_comm_s", "tensor comm"},
    {SIM_PART_CONTEXT_COMM, "context_comm_s", "context comm"},
    {SIM_PART_EXPERT_COMM, "expert_comm_s", "expert comm"},
    {SIM_PART_PIPELINE_COMM, "pipeline_comm_s", "pipeline comm"},
    {SIM_PART_DATA_COMM, "data_comm_s", "data comm"},
    {SIM_PART_OFFLOAD, "offload_s", "offload"},
    {SIM_PART_OPTIMIZER, "optimizer_s", "optimizer"},
    {-1, "bubble_s", "bubble"},
    {SIM_PART_OTHER, "other_s", "other"},
};

static const char *const part_names[SIM_PART_COUNT] = {
    [SIM_PART_COMPUTE] = "compute",         [SIM_PART_RECOMPUTE] = "recompute",
    [SIM_PART_TENSOR_COMM] = "tensor_comm", [SIM_PART_CONTEXT_COMM] = "context_comm",
    [SIM_PART_EXPERT_COMM] = "expert_comm", [SIM_PART_PIPELINE_COMM] = "pipeline_comm",
    [SIM_PART_DATA_COMM] = "data_comm",     [SIM_PART_OFFLOAD] = "offload",
    [SIM_PART_OPTIMIZER] = "optimizer",     [SIM_PART_OTHER] = "other",
};

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
    [SIM_STREAM_STORAGE] = "storage",
};

static const char *const mem_names[SIM_MEM_COUNT] = {
    [SIM_MEM_ACTIVATIONS] = "activations", [SIM_MEM_WORKSPACE] = "workspace", [SIM_MEM_WEIGHTS] = "weights",
    [SIM_MEM_GRADIENTS] = "gradients",     [SIM_MEM_OPTIMIZER] = "optimizer", [SIM_MEM_HOST] = "host",
};

void report_times(const int64_t part_ps[SIM_PART_COUNT], int64_t bubble_ps,
                  ReportTime ret_times[REPORT_TIME_COUNT])
{
    for (int i = 0; i < REPORT_TIME_COUNT; i++) {
        const PartWord *word = &part_words[i];
        ret_times[i] = (ReportTime){word->key, word->label, word->part < 0 ? bubble_ps : part_ps[word->part]};
    }
}

const char *report_part_name(SimPart part)
{
    g_assert((unsigned)part < SIM_PART_COUNT);
    return part_names[part];
}

const char *report_tag_label(SimTag tag)
{
    g_assert((unsigned)tag < SIM_TAG_COUNT);
    return tag_labels[tag];
}

const char *report_stream_label(SimStream stream)
{
    g_assert((unsigned)stream < SIM_STREAM_COUNT);
    return stream_labels[stream];
}

const char *report_mem_name(SimMem mem)
{
    g_assert((unsigned)mem < SIM_MEM_COUNT);
    return mem_names[mem];
}
