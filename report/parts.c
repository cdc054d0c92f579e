/* report/parts.c - the words of every report. */
#include "report/parts.h"

#define GIB 1073741824.0

typedef struct PartWord {
    int part; /* SimPart, then ReportLate; -1: the bubble */
    const char *key, *label;
} PartWord;

/* In the order of the report. */
static const PartWord part_words[] = {
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
    {SIM_PART_COUNT + REPORT_LATE_STRAGGLERS, "stragglers_s", "slow GPUs"},
    {SIM_PART_COUNT + REPORT_LATE_LENGTHS, "lengths_s", "longest texts"},
    {SIM_PART_COUNT + REPORT_LATE_INPUT, "input_s", "input"},
};
G_STATIC_ASSERT(G_N_ELEMENTS(part_words) == REPORT_TIME_COUNT);

static const char *const part_names[SIM_PART_COUNT] = {
    [SIM_PART_COMPUTE] = "compute",         [SIM_PART_RECOMPUTE] = "recompute",
    [SIM_PART_TENSOR_COMM] = "tensor_comm", [SIM_PART_CONTEXT_COMM] = "context_comm",
    [SIM_PART_EXPERT_COMM] = "expert_comm", [SIM_PART_PIPELINE_COMM] = "pipeline_comm",
    [SIM_PART_DATA_COMM] = "data_comm",     [SIM_PART_OFFLOAD] = "offload",
    [SIM_PART_OPTIMIZER] = "optimizer",     [SIM_PART_OTHER] = "other",
};

static const char *const mem_names[SIM_MEM_COUNT] = {
    [SIM_MEM_ACTIVATIONS] = "activations",
    [SIM_MEM_WORKSPACE] = "workspace",
    [SIM_MEM_WEIGHTS] = "weights",
    [SIM_MEM_GRADIENTS] = "gradients",
    [SIM_MEM_OPTIMIZER] = "optimizer",
    [SIM_MEM_HOST] = "host",
    [SIM_MEM_NVME] = "nvme",
};

void report_times(const int64_t part_ps[SIM_PART_COUNT], int64_t bubble_ps,
                  const int64_t late_ps[REPORT_LATE_COUNT], ReportTime ret_times[REPORT_TIME_COUNT])
{
    for (int i = 0; i < REPORT_TIME_COUNT; i++) {
        const PartWord *word = &part_words[i];
        int64_t ps = bubble_ps;
        if (word->part >= SIM_PART_COUNT)
            ps = late_ps != NULL ? late_ps[word->part - SIM_PART_COUNT] : 0;
        else if (word->part >= 0)
            ps = part_ps[word->part];
        ret_times[i] = (ReportTime){word->key, word->label, ps};
    }
}

const char *report_part_name(SimPart part)
{
    g_assert((unsigned)part < SIM_PART_COUNT);
    return part_names[part];
}

const char *report_mem_name(SimMem mem)
{
    g_assert((unsigned)mem < SIM_MEM_COUNT);
    return mem_names[mem];
}

const char *report_memory_word(ReportMemory verdict)
{
    static const char *const words[] = {"does not fit", "at the edge", "fits"};
    return words[verdict];
}

double report_occupied_bytes(const Report *report)
{
    return report->reserved_bytes <= report->capacity_bytes ? report->reserved_bytes : report->needed_bytes;
}

char *report_occupied(const Report *report)
{
    const ReportOffload *below = &report->offload;
    if (below->on && !below->host_fits)
        return g_strdup_printf("host: %.1f of %.1f GiB a node", below->host_bytes / GIB,
                               below->host_capacity_bytes / GIB);
    if (below->on && !below->nvme_fits)
        return g_strdup_printf("disks: %.1f of %.1f GiB a node", below->nvme_bytes / GIB,
                               below->nvme_capacity_bytes / GIB);
    return g_strdup_printf("%.1f of %.1f GiB", report_occupied_bytes(report) / GIB,
                           report->capacity_bytes / GIB);
}

const char *report_items(const Report *report)
{
    return report->spec->model.list.text != NULL ? "samples" : "tokens";
}

double report_items_of(const Report *report, double tokens)
{
    return report->spec->model.list.text != NULL ? tokens / report->spec->training.sequence_length : tokens;
}
