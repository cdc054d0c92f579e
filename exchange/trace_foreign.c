/* exchange/trace_foreign.c - see trace_foreign.h. Tested: unit/exchange/test_trace_dialects.c */
#include "exchange/trace_foreign.h"

#include <string.h>

#define INSTEAD "; give the trace of PyTorch's profiler (torch.profiler, export_chrome_trace)"
#define UNPACK  "; unpack it and give the trace in it"
#define NSYS    "; give 'nsys stats --report cuda_gpu_trace --format csv' of its recording"
#define REPORT                                                                                               \
    "is a report of TraceLens, which has sums and not each kernel; give the trace that it was made from"
#define PASSES                                                                                               \
    "is a timeline of passes, as StragglerAnalysis has them, and has no kernels; "                           \
    "execution.measured_passes of a scenario takes seconds of passes"

typedef struct Foreign {
    const char *word, *what;
} Foreign;

/* What has these letters at that place. */
static const struct {
    const char *letters;
    gsize at;
    const char *what;
} texts[] = {
    {"SQLite format 3", 0, "is a database, as Nsight Systems writes" NSYS},
    {"NVIDIA Tegra Profiler", 0, "is a recording of Nsight Systems (.nsys-rep)" NSYS},
    {"Time (%),", 0, "is a summary of Nsight Systems, with sums and not each kernel" NSYS},
    {"\x80", 0, "is a pickle, as dumps of the flight recorder and snapshots of memory are" INSTEAD},
    {"{\"1\": {\"total\":", 0, "is a log of a pipeline, as Primus writes, which has no kernels" INSTEAD},
    {"{\"world_size\":", 0, "says how a pipeline was split, as Primus writes, and has no kernels" INSTEAD},
    {"[[", 0, "is a timeline of memory (export_memory_timeline)" INSTEAD},
    {"ustar", 257, "is an archive of tar; unpack it and give a trace, or the folder of all ranks'"},
    {"PK\3\4", 0, "is an archive of zip" UNPACK},
    {"\x28\xb5\x2f\xfd", 0, "is packed with zstd" UNPACK},
    {"\xfd"
     "7zXZ",
     0, "is packed with xz" UNPACK},
    {"BZh", 0, "is packed with bzip2" UNPACK},
    {"PAR1", 0, "is a table of Parquet, as StragglerAnalysis keeps its spans of passes" INSTEAD},
    {"/host:metadata", 5, "is an XPlane of JAX" INSTEAD}, /* behind its length, of two to four bytes */
    {"/host:metadata", 6, "is an XPlane of JAX" INSTEAD},
    {"/host:metadata", 7, "is an XPlane of JAX" INSTEAD},
    {"version https://git-lfs", 0, "is a pointer of Git LFS and not the file; fetch it with git lfs pull"},
    {"<!DOCTYPE", 0, "is a page of HTML and no trace: what was to be fetched was not there"},
    {"<html", 0, "is a page of HTML and no trace: what was to be fetched was not there"},
    {"\xff\xfe", 0, "is UTF-16; write it as UTF-8 (in PowerShell -Encoding utf8)"},
    {"\xfe\xff", 0, "is UTF-16; write it as UTF-8 (in PowerShell -Encoding utf8)"},
    {"type,time ms,", 0, REPORT},
    {"name,param: ", 0, REPORT},
    {"name,op category,", 0, REPORT},
    {"name,Count,", 0, REPORT},
    {"name,Kernel duration", 0, REPORT},
    {"name,Input ", 0, REPORT},
    {"op category,", 0, REPORT},
    {"rank,Process Group", 0, REPORT},
    {"Collective name,", 0, REPORT},
};

const char *trace_foreign_text(const TraceBytes *bytes)
{
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        const gsize length = strlen(texts[i].letters);
        if (bytes->left >= texts[i].at + length &&
            memcmp(bytes->at + texts[i].at, texts[i].letters, length) == 0)
            return texts[i].what;
    }
    return NULL;
}

static const char *find(const Foreign *list, gsize count, const TraceSlice *word)
{
    for (gsize i = 0; i < count; i++)
        if (trace_slice_is(word, list[i].word))
            return list[i].what;
    return NULL;
}

const char *trace_foreign_key(const TraceSlice *key)
{
    static const Foreign keys[] = {
        {"nodes", "is an execution trace, which has no times of kernels" INSTEAD},
        {"rocprofiler-sdk-tool",
         "is JSON of rocprofv3; give its trace of kernels as CSV (--output-format csv)"},
        {"planes", "is an XPlane of JAX" INSTEAD},
        {"segments", "is a snapshot of memory" INSTEAD},
        {"NPKIT_EVENT_GPU_SEND", "is a summary of NPKit, with times of primitives and no kernels" INSTEAD},
        {"step_t_base", "is a result of StragglerAnalysis, with steps and no kernels" INSTEAD},
    };
    return find(keys, G_N_ELEMENTS(keys), key);
}

const char *trace_foreign_category(const TraceSlice *category)
{
    static const Foreign categories[] = {
        {"forward-compute", PASSES},
        {"backward-compute", PASSES},
        {"mtia_ccp_events", "is a trace of MTIA, whose kernels are not read: only CUDA's and ROCm's are"},
        {"cuda_profiler_range",
         "has ranges of CUPTI's counters and no kernels; record it without profiler metrics"},
    };
    return find(categories, G_N_ELEMENTS(categories), category);
}
