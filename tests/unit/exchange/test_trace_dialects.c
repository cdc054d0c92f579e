/* tests/unit/exchange/test_trace_dialects.c - an extract, made by us, of each kind of file that public repositories hold as
 * traces: it loads, or one sentence says what it is. Files: deepseek-ai/profile-data, AMD-AGI/TraceLens,
 * facebookresearch/HolisticTraceAnalysis and param, ByteDance-Seed/StragglerAnalysis, AMD-AGI/Primus, spcl/atlahs. */
#include <string.h>

#include "exchange/trace.h"

static TraceTable *table;

#define CUDA_ARGS                                                                                            \
    "\"queued\":0,\"device\":0,\"context\":1,\"stream\":7,\"correlation\":31,\"registers per thread\":168,"  \
    "\"shared memory\":233984,\"blocks per SM\":0.848485,\"warps per SM\":10.18,\"grid\":[112,1,1],"         \
    "\"block\":[384,1,1],\"est. achieved occupancy %\":16"
#define LAUNCH                                                                                               \
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":9,\"tid\":9,\"ts\":10,"    \
    "\"dur\":3,\"args\":{\"External id\":5,\"correlation\":31}}"
#define OP                                                                                                   \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":9,\"tid\":9,\"ts\":9,\"dur\":6,"         \
    "\"args\":{\"External id\":5,\"Input Dims\":[[64,32],[32,16]],\"Input type\":[\"c10::BFloat16\","        \
    "\"c10::BFloat16\"]}}"

/* Each has one kernel of GPU 0 that lasts 4 us. */
static const struct {
    const char *text;
    TraceClass kind;
    const char *op; /* of the host; NULL: not known */
} loads[] = {
    /* profile-data's train.json: DeepEP's kernels, whole microseconds, no shapes. */
    {"{\"schemaVersion\":1,\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":0,\"world_size\":64},"
     "\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA "
     "H800\"}],\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\","
     "\"name\":\"void deep_ep::internode::combine<14>(int4*)\",\"pid\":0,\"tid\":27,\"ts\":1740001,\"dur\":4,"
     "\"args\":{" CUDA_ARGS "}}],\"traceName\":\"t\"}",
     TRACE_ALL_TO_ALL, NULL},
    /* The same: what only meets the other ranks. */
    {"{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"void "
     "dpsk::ep::internode::cached_notify<false>\","
     "\"pid\":0,\"tid\":27,\"ts\":1740001,\"dur\":4,\"args\":{" CUDA_ARGS "}}]}",
     TRACE_ALL_TO_ALL, NULL},
    /* TraceLens h100: launches of the driver, stacks of Python, External id of the launch. */
    {"{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"a.py(3): f\",\"ts\":8,\"dur\":9,"
     "\"args\":{\"Python id\":1,\"Python parent id\":null}}," OP "," LAUNCH
     ",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"nvjet_hsh_128x64_64x8_2x1_v_bz_TNT\",\"ts\":20.5,\"dur\":"
     "4,"
     "\"args\":{\"External id\":5," CUDA_ARGS "}}]}",
     TRACE_PRODUCTS, "aten::mm"},
    /* TraceLens h100, Qwen1.5: kernels without an external id meet the operator by their launch. */
    {"{\"traceEvents\":[" OP "," LAUNCH
     ",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"sm90_xmma_gemm_bf16\",\"ts\":20.25,\"dur\":4.000,"
     "\"args\":{" CUDA_ARGS "}}]}",
     TRACE_PRODUCTS, "aten::mm"},
    /* TraceLens mi300: HIP's launches are called cuda_runtime, kernels have a kind. */
    {"{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"hipExtModuleLaunchKernel\",\"ts\":"
     "10,"
     "\"dur\":2,\"args\":{\"External id\":5,\"correlation\":31,\"kernel\":\"Cijk\"}}," OP
     ",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"Cijk_Alik_Bljk_BBS_BH_MT256x256x64\",\"pid\":0,\"tid\":3,"
     "\"ts\":20.125,\"dur\":4,\"args\":{\"External id\":5,\"device\":0,\"stream\":3,\"correlation\":31,"
     "\"kind\":\"Dispatch Kernel\",\"grid\":[304,1,1],\"block\":[256,1,1]}}]}",
     TRACE_PRODUCTS, "aten::mm"},
    /* TraceLens mi210 and resnet_act_checkpoint: no operators, no external ids. */
    {"{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"attn_fwd.kd\",\"ts\":20.125,\"dur\":4,"
     "\"args\":{\"device\":0,\"stream\":3,\"correlation\":31,\"kind\":\"Dispatch Kernel\"}}]}",
     TRACE_ATTENTION, NULL},
    /* TraceLens b200: overhead of the profiler, and annotations on the GPU, which are no kernels. */
    {"{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"overhead\",\"name\":\"CUPTI\",\"ts\":1,\"dur\":9,\"args\":{}}"
     ","
     "{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"step\",\"ts\":20,\"dur\":40,\"args\":{}},"
     "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"multimem_all_reduce_kernel\",\"ts\":20,\"dur\":4,"
     "\"args\":{" CUDA_ARGS "}}]}",
     TRACE_ALL_REDUCE, NULL},
    /* HTA's mi250 of ROCm 6.2. */
    {"{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"void at::native::(anonymous namespace)::"
     "cuComputeGradInput<float>\",\"ts\":20.5,\"dur\":4,\"args\":{\"External id\":5,\"correlation\":31,"
     "\"device\":0,\"kind\":\"Dispatch Kernel\",\"stream\":0}}," OP "]}",
     TRACE_NORMS, "aten::mm"},
    /* HTA's inference_rank_1, of 2021: capital letters, and "external id". */
    {"{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"Runtime\",\"name\":\"cudaLaunchKernel\",\"ts\":10,\"dur\":2,"
     "\"args\":{\"correlation\":31,\"external id\":5}},{\"ph\":\"X\",\"cat\":\"Kernel\","
     "\"name\":\"volta_sgemm_128x64_nn\",\"ts\":20,\"dur\":4,\"args\":{\"external id\":5," CUDA_ARGS "}}]}",
     TRACE_PRODUCTS, NULL},
    /* HTA's df_index_resolver and trace_diff: NCCL before its kernels were called ncclDevKernel, no sizes. */
    {"{\"traceEvents\":[{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"ts\":1},"
     "{\"ph\":\"s\",\"cat\":\"async_cpu_to_gpu\",\"id\":31,\"ts\":10,\"name\":\"x\"},{\"ph\":\"X\",\"cat\":"
     "\"kernel\","
     "\"name\":\"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)\",\"ts\":20,\"dur\":4,"
     "\"args\":{\"External id\":5," CUDA_ARGS "}}]}",
     TRACE_ALL_REDUCE, NULL},
    /* HTA's ns_resolution_trace and nccl_parser_config: nanoseconds, sizes of collectives. */
    {"{\"baseTimeNanoseconds\":1712000000000000000,\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\","
     "\"name\":\"ncclDevKernel_SendRecv(ncclDevComm*)\",\"ts\":2413669238416.123,\"dur\":4.000,"
     "\"args\":{\"Collective name\":\"all_to_allv\",\"In msg nelems\":8,\"Out msg nelems\":8,\"Group "
     "size\":2,"
     "\"dtype\":\"Float\"," CUDA_ARGS "}}]}",
     TRACE_ALL_TO_ALL, NULL},
    /* HTA's critical_path: waits for events, and its own overlay. */
    {"{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"Stream Wait "
     "Event\",\"ts\":19,\"dur\":1,"
     "\"args\":{\"correlation\":2}},{\"ph\":\"f\",\"cat\":\"critical_path\",\"name\":\"x\",\"ts\":4,\"bp\":"
     "\"e\"},"
     "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"void "
     "at::native::vectorized_elementwise_kernel<4>\",\"ts\":20,"
     "\"dur\":4,\"args\":{" CUDA_ARGS "}}]}",
     TRACE_ELEMENTWISE, NULL},
    /* HTA's call_stack: a bare list; negative and missing times of other kernels are left out. */
    {"[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"ts\":20,\"dur\":4,\"args\":{" CUDA_ARGS "}},"
     "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"ts\":20,\"dur\":-4},"
     "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"dur\":4}]",
     TRACE_PRODUCTS, NULL},
    /* Nsight Systems: what `nsys stats` says before its table; the mark of UTF-8; rocprofv3 with other columns first. */
    {"Generating SQLite file a.sqlite from a.nsys-rep\nProcessing [a.sqlite] with [cuda_gpu_trace.py]... \n\n"
     "Start (ns),Duration (ns),Strm,Name\n1000,4000,7,ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL\n",
     TRACE_REDUCE_SCATTER, NULL},
    {"\xef\xbb\xbfStart (us),Duration (us),Name\r\n1,4,flash_fwd_kernel\r\n", TRACE_ATTENTION, NULL},
    {"\xef\xbb\xbf[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"ts\":20,\"dur\":4}]", TRACE_PRODUCTS,
     NULL},
    {"\"Agent_Id\",\"Kernel_Name\",\"Start_Timestamp\",\"End_Timestamp\"\n1,\"multi_tensor_apply_kernel\","
     "5000,9000\n",
     TRACE_OPTIMIZER, NULL},
};

static void test_loads(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(loads); i++) {
        GError *error = NULL;
        TraceRank *rank = trace_rank_parse(loads[i].text, strlen(loads[i].text), "t", table, &error);
        if (rank == NULL)
            g_error("%s: %s", loads[i].text, error->message);
        g_assert_cmpint(rank->kernels->len, ==, 1);
        const TraceKernel *kernel = trace_kernel(rank, 0);
        g_assert_cmpint(kernel->dur_ps, ==, 4000000);
        g_assert_cmpint(kernel->wait_ps, ==, strstr(loads[i].text, "notify") != NULL ? 4000000 : 0);
        if (trace_kernel_class(rank, kernel) != loads[i].kind)
            g_error("%s: %s", loads[i].text, trace_class_word(trace_kernel_class(rank, kernel)));
        g_assert_cmpstr(kernel->op >= 0 ? g_array_index(rank->ops, TraceOp, kernel->op).name : NULL, ==,
                        loads[i].op);
        g_assert_cmpint(rank->untimed, ==, loads[i].text[0] == '[' ? 2 : 0);
        trace_rank_free(rank);
    }
}

#define KERNEL(times) "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"g\"," times "}]}"
#define CPU(category)                                                                                        \
    "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"" category                                                    \
    "\",\"name\":\"x\",\"pid\":0,\"tid\":0,\"ts\":1.5,\"dur\":2,\"args\":{\"step\":23}}]}"

/* What is no trace of a GPU's kernels: the words that its sentence has. */
static const struct {
    const char *text, *words;
} refused[] = {
    {"", "is empty"},
    {"\xef\xbb\xbf", "is empty"},
    /* StragglerAnalysis */
    {"[{\"name\":\"backward-compute\",\"cat\":\"backward-compute\",\"pid\":0,\"tid\":0,\"ts\":848671.67,"
     "\"dur\":138679.7,\"ph\":\"X\",\"args\":{\"step\":23,\"model_chunk\":0,\"mb_id\":0,\"seq_id\":0}}]",
     "StragglerAnalysis"},
    {"{\"job_meta\":{\"trial_name\":\"ST\"},\"step_t_base\":{\"23\":2.4}}", "StragglerAnalysis"},
    {"PAR1\x15\x04\x15\x10", "Parquet"},
    /* HTA */
    {CPU("mtia_ccp_events"), "MTIA"},
    {CPU("cuda_profiler_range"), "CUPTI"},
    {CPU("cpu_op"), "has no kernels of a GPU"},
    {"[[-1, 1, 37888, 7], [-1, 1, 512, 7]]", "timeline of memory"},
    {"{\"segments\":[],\"device_traces\":[]}", "snapshot of memory"},
    /* Chakra, param */
    {"{\"schema\":\"1.0.3-chakra.0.0.4\",\"pid\":1,\"nodes\":[{\"id\":1}]}", "execution trace"},
    /* Primus, atlahs, TraceLens, JAX */
    {"{\"1\": {\"total\": 7.5, \"fwd_start\": [0.1]}}", "Primus"},
    {"{\"world_size\": 8, \"dp_size\": 1}", "Primus"},
    {"{\"NPKIT_EVENT_GPU_SEND\":{\"32768\":[2936]}}", "NPKit"},
    {"type,time ms,percent\ncomputation_time,1,2\n", "TraceLens"},
    {"Collective name,dtype,In msg nelems\n", "TraceLens"},
    {"{\"rocprofiler-sdk-tool\":[{\"metadata\":{}}]}", "rocprofv3"},
    {"\n\xe3\xdc\x07\x12\x0e.../host:metadata", "not JSON"}, /* its letters are elsewhere */
    {"\n\xe3\xdc\x07\x12\x0e/host:metadata\"", "XPlane"},
    /* Nsight Systems */
    {"SQLite format 3", "Nsight Systems"},
    {"NVIDIA Tegra Profiler Report", "nsys stats"},
    {"Time (%),Total Time (ns),Instances\n", "summary of Nsight Systems"},
    /* Archives, and what was not copied */
    {"PK\3\4", "zip"},
    {"\x28\xb5\x2f\xfd", "zstd"},
    {"\xfd"
     "7zXZ",
     "xz"},
    {"BZh9", "bzip2"},
    {"\x80\x04\x95", "pickle"},
    {"\xff\xfe{", "UTF-16"},
    {"version https://git-lfs.github.com/spec/v1\n", "Git LFS"},
    {"<!DOCTYPE html>", "HTML"},
    /* Damage */
    {"{\"traceEvents\":[{\"ph\":\"X\",}]}", "an event is not JSON"},
    {KERNEL("\"dur\":1"), "none has times that can be"},
    {KERNEL("\"ts\":1e300,\"dur\":1"), "none has times that can be"},
    {KERNEL("\"ts\":1,\"dur\":1e300"), "none has times that can be"},
    {KERNEL("\"ts\":NaN,\"dur\":1"), "none has times that can be"},
    {KERNEL("\"ts\":1,\"dur\":-3"), "none has times that can be"},
    {KERNEL("\"ts\":1,\"dur\":0"), "lasts longer than 0"},
    {"Start (ns),Duration (ns),Name\n1,2,a\nlate,2,b\n", "line 3: \"late\" is not a time"},
    {"Start (ns),Duration (ns),Name\n1,,a\n", "line 2: \"\" is not a time"},
    {"Start (ns),Duration (ns),Name\n1,-2,a\n", "line 2: its kernel ends before it begins"},
    {"BeginNs,EndNs,KernelName\n5,4,a\n", "line 2: its kernel ends before it begins"},
    {"Processing [a.sqlite]\n", "without begins"},
};

static void test_refused(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(refused); i++) {
        GError *error = NULL;
        TraceRank *rank = trace_rank_parse(refused[i].text, strlen(refused[i].text), "t", table, &error);
        if (rank != NULL || strstr(error->message, refused[i].words) == NULL)
            g_error("%s: %s", refused[i].text, rank != NULL ? "loads" : error->message);
        g_assert_true(g_str_has_prefix(error->message, "t: "));
        g_assert_null(strchr(error->message, '\n'));
        g_error_free(error);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    table = trace_table_load(NULL);
    g_test_add_func("/exchange/trace-dialects/loads", test_loads);
    g_test_add_func("/exchange/trace-dialects/refused", test_refused);
    const int status = g_test_run();
    trace_table_free(table);
    return status;
}
