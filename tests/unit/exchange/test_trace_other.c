/* tests/unit/exchange/test_trace_other.c - what other profilers write: tables of Nsight Systems and rocprof, NCCL Inspector's
 * lines, the flight recorder's dump. The texts are our own, with the fields that these tools write. */
#include <string.h>

#include "exchange/trace.h"

static TraceTable *table;

static TraceRank *parse(const char *text)
{
    GError *error = NULL;
    TraceRank *rank = trace_rank_parse(text, strlen(text), "t", table, &error);
    g_assert_no_error(error);
    return rank;
}

static void refuse(const char *text, const char *words)
{
    GError *error = NULL;
    g_assert_null(trace_rank_parse(text, strlen(text), "t", table, &error));
    if (strstr(error->message, words) == NULL)
        g_error("\"%s\" does not say \"%s\"", error->message, words);
    g_error_free(error);
}

static void check(const TraceRank *rank, guint index, int64_t begin_ps, int64_t dur_ps, TraceClass kind,
                  double bytes)
{
    const TraceKernel *kernel = trace_kernel(rank, index);
    g_assert_cmpint(kernel->begin_ps, ==, begin_ps);
    g_assert_cmpint(kernel->dur_ps, ==, dur_ps);
    g_assert_cmpint(trace_kernel_class(rank, kernel), ==, kind);
    g_assert_cmpfloat(kernel->bytes, ==, bytes);
}

#define NSYS                                                                                                 \
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),"       \
    "Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name\r\n"

static void nsys(void)
{
    TraceRank *rank =
        parse(NSYS "1000000500,2000,11,1,1,1,128,1,1,32,0.000,0.000,,,,,NVIDIA H100 80GB HBM3 (0),1,7,"
                   "\"void cutlass::Kernel2<cutlass_80_gemm>(T1, \"\"T2\"\")\"\r\n"
                   "1000003000,1500,12,,,,,,,,,,4.194,2796.0,Pinned,Device,NVIDIA H100 80GB HBM3 "
                   "(0),1,14,[CUDA memcpy HtoD]\n"
                   "1000003500,100,13,1,1,1,128,1,1,32,0,0,,,,,NVIDIA H100 80GB HBM3 (1),1,7,elsewhere\n"
                   "\n1000009000,7000,14,1,1,1,128,1,1,32,0,0,,,,,NVIDIA H100 80GB HBM3 (0),1,20,"
                   "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)");
    g_assert_cmpint(rank->kernels->len, ==, 3);
    g_assert_cmpint(rank->elsewhere, ==, 1);
    g_assert_cmpstr(rank->device, ==, "NVIDIA H100 80GB HBM3 (0)");
    check(rank, 0, 0, 2000000, TRACE_PRODUCTS, 0);
    check(rank, 1, 2500000, 1500000, TRACE_COPIES, 4194000);
    check(rank, 2, 8500000, 7000000, TRACE_ALL_REDUCE, 0);
    g_assert_cmpint(trace_kernel(rank, 1)->stream, ==, 14);
    g_assert_cmpint(rank->base_us, ==, 1000000);
    trace_rank_free(rank);
}

/* Begins and ends; another unit. */
static void rocprof(void)
{
    TraceRank *rank =
        parse("\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Kernel_Id\",\"Kernel_Name\",\"Correlation_Id\","
              "\"Start_Timestamp\",\"End_Timestamp\",\"Private_Segment_Size\"\n"
              "\"KERNEL_DISPATCH\",4,2,11,\"Cijk_Ailk_Bljk_BBS_BH_MT256x256x64\",5,7000000123456,"
              "7000000133456,0\n"
              "\"KERNEL_DISPATCH\",4,3,12,\"ncclDevKernel_Generic\",6,7000000143456,7000000153457,0\n");
    check(rank, 0, 0, 10000000, TRACE_PRODUCTS, 0);
    g_assert_cmpint(trace_kernel(rank, 1)->begin_ps, ==, 20000000);
    g_assert_cmpint(trace_kernel(rank, 1)->dur_ps, ==, 10001000);
    g_assert_cmpint(trace_kernel(rank, 1)->stream, ==, 3);
    trace_rank_free(rank);
    rank = parse("Start (us),Duration (us),Name\n5,2.5,a\n4,1,b\n"); /* by begin */
    g_assert_cmpint(trace_kernel(rank, 1)->begin_ps - trace_kernel(rank, 0)->begin_ps, ==, 1000000);
    g_assert_cmpint(trace_kernel(rank, 1)->dur_ps, ==, 2500000);
    trace_rank_free(rank);
}

#define LINE(coll, rank, bytes, us)                                                                          \
    "{\"header\":{\"id\":\"0x7f8c496ae9f661\",\"rank\":" rank ",\"n_ranks\":8,\"nnodes\":1},"                \
    "\"metadata\":{\"inspector_output_format_version\":\"v4.0\",\"dump_timestamp_us\":1748030377748202},"    \
    "\"coll_perf\":{\"coll\":\"" coll "\",\"coll_sn\":1407,\"coll_msg_size_bytes\":" bytes                   \
    ",\"coll_exec_time_us\":" us                                                                             \
    ",\"coll_timing_source\":\"kernel_gpu\",\"coll_algobw_gbs\":277.2,\"coll_busbw_gbs\":485.2}}\n"

static void inspector(void)
{
    TraceRank *rank =
        parse(LINE("AllReduce", "3", "17179869184", "61974") LINE("ReduceScatter", "3", "1048576", "20.5"));
    g_assert_cmpint(rank->rank, ==, 3);
    g_assert_cmpint(rank->world, ==, 8);
    check(rank, 0, 0, 61974000000, TRACE_ALL_REDUCE, 17179869184.0);
    check(rank, 1, 61974000000, 20500000, TRACE_REDUCE_SCATTER, 1048576);
    g_assert_cmpint(trace_kernel(rank, 1)->ranks, ==, 8);
    trace_rank_free(rank);
}

/* Sizes of all tensors; the GPU's own time where it was taken, else when the watchdog saw it. */
static void flight(void)
{
    TraceRank *rank = parse(
        "{\"entries\":[{\"record_id\":0,\"pg_id\":0,\"process_group\":[\"0\",\"default_pg\"],\"collective_"
        "seq_id\":1,"
        "\"profiling_name\":\"nccl:all_reduce\",\"time_created_ns\":1700000000000000000,\"duration_ms\":1.5,"
        "\"input_sizes\":[[3,4],[2]],\"input_dtypes\":[\"BFloat16\",\"BFloat16\"],\"output_sizes\":[[3,4],[2]"
        "],"
        "\"state\":\"completed\",\"time_discovered_started_ns\":1700000000001000000,"
        "\"time_discovered_completed_ns\":1700000000009000000},"
        "{\"profiling_name\":\"nccl:_all_gather_base\",\"time_created_ns\":1700000000010000000,"
        "\"input_sizes\":[[16]],\"input_dtypes\":[\"Float\"],\"output_sizes\":[[128]],"
        "\"time_discovered_started_ns\":1700000000011000000,\"time_discovered_completed_ns\":"
        "1700000000013000000},"
        "{\"profiling_name\":\"nccl:all_reduce\",\"state\":\"scheduled\",\"time_created_ns\":"
        "1700000000020000000,"
        "\"time_discovered_started_ns\":null,\"time_discovered_completed_ns\":null,\"input_sizes\":[]}],"
        "\"pg_config\":{\"0\":{\"name\":\"0\",\"ranks\":\"[0, 1]\"}},\"version\":\"2.10\"}");
    g_assert_cmpint(rank->events, ==, 3);
    g_assert_cmpint(rank->kernels->len, ==, 2);
    check(rank, 0, 0, 1500000000, TRACE_ALL_REDUCE, 28);
    check(rank, 1, INT64_C(10000000000), INT64_C(2000000000), TRACE_ALL_GATHER, 512);
    trace_rank_free(rank);
}

static void refusals(void)
{
    refuse("Start (ns),Duration (ns),Strm\n1,2,3\n",
           "is a table without begins, durations and names of kernels");
    refuse("Start (ns),Duration (ns),Name\n", "is a table without a row");
    refuse("Start (ns),Duration (ns),Name\n1,2\n", "line 2 has not the 3 cells");
    refuse("Start (ns),Duration (ns),Name\n1,x,k\n", "\"x\" is not a time");
    refuse("Start (ns),Duration (ns),Name\n1,2,k\n9000000000000000000,2,k\n", "more than 26 days apart");
    refuse("{\"header\":{\"rank\":0},\"events\":{}}\n",
           "line 1 is not a collective as NCCL Inspector's format v4.0");
    refuse(LINE("AllReduce", "3", "1", "1") "{\"coll_perf\":{\"coll\":\"AllRe", "line 2 is not a collective");
    refuse("{\"version\":\"2.10\",\"entries\":[{\"profiling_name\":\"nccl:all_reduce\"}]}",
           "TORCH_NCCL_ENABLE_TIMING=1");
    refuse("{\"entries\":[{\"profiling_name\":\"nccl", "is not a whole dump of PyTorch's flight recorder");
}

int main(int argc, char **argv)
{
    GError *error = NULL;
    g_test_init(&argc, &argv, NULL);
    table = trace_table_load(&error);
    g_assert_no_error(error);
    g_test_add_func("/exchange/trace-other/nsys", nsys);
    g_test_add_func("/exchange/trace-other/rocprof", rocprof);
    g_test_add_func("/exchange/trace-other/inspector", inspector);
    g_test_add_func("/exchange/trace-other/flight", flight);
    g_test_add_func("/exchange/trace-other/refusals", refusals);
    const int failed = g_test_run();
    trace_table_free(table);
    return failed;
}
