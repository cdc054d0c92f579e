/* tests/unit/exchange/test_kineto.c - traces of profilers, in the dialects of the years: what is read, and what is refused in one
 * sentence. The texts are our own, with the fields that Kineto writes. */
#include <glib/gstdio.h>
#include <string.h>

#include "exchange/trace.h"

static TraceTable *table;

static TraceRank *parse(const char *text)
{
    GError *error = NULL;
    TraceRank *rank = trace_rank_parse(text, strlen(text), "t.json", table, &error);
    g_assert_no_error(error);
    return rank;
}

#define NOW                                                                                                  \
    "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA H100 80GB "                      \
    "HBM3\",\"numSms\":132},"                                                                                \
    "{\"id\":1,\"name\":\"other\"}],\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":3,\"world_size\":8,"  \
    "\"pg_config\":[{\"pg_name\":\"0\",\"ranks\":[0,1]}]},\"traceEvents\":[\n"                               \
    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#7\",\"pid\":1,\"tid\":1,\"ts\":"      \
    "5000000.5,"                                                                                             \
    "\"dur\":900.25,\"args\":{\"External id\":1}},\n"                                                        \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":1,\"ts\":5000010,\"dur\":20,"  \
    "\"args\":{\"External id\":11,\"Input Dims\":[[64,32],[32,16]],\"Input "                                 \
    "type\":[\"c10::BFloat16\",\"c10::"                                                                      \
    "BFloat16\"]}},\n"                                                                                       \
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":"       \
    "5000012.125,"                                                                                           \
    "\"dur\":5,\"args\":{\"External id\":11,\"correlation\":77}},\n"                                         \
    "{\"ph\":\"s\",\"id\":77,\"pid\":1,\"tid\":1,\"ts\":5000012,\"cat\":\"ac2g\",\"name\":\"ac2g\"},\n"      \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"nvjet_hsh_128x256\",\"pid\":0,\"tid\":7,\"ts\":5000020."    \
    "001,"                                                                                                   \
    "\"dur\":1.5,\"args\":{\"External "                                                                      \
    "id\":11,\"device\":0,\"stream\":7,\"correlation\":77,\"grid\":[1,2,3]}},\n"                             \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<"  \
    "4096ul>)\","                                                                                            \
    "\"pid\":0,\"tid\":20,\"ts\":5000030,\"dur\":100,\"args\":{\"device\":0,\"stream\":20,\"correlation\":"  \
    "78,"                                                                                                    \
    "\"Collective name\":\"_allgather_base\",\"In msg nelems\":1000,\"Out msg nelems\":8000,\"Group "        \
    "size\":8,"                                                                                              \
    "\"dtype\":\"BFloat16\",\"Process Group Name\":\"0\",\"Process Group Ranks\":\"[0,1,2,3,4,5,6,7]\"}},\n" \
    "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD (Pinned -> Device)\",\"pid\":0,\"tid\":7,"  \
    "\"ts\":5000200,\"dur\":3,\"args\":{\"device\":0,\"stream\":7,\"correlation\":79,\"bytes\":4096}}\n]}"

static void test_now(void)
{
    TraceRank *rank = parse(NOW);
    g_assert_cmpstr(rank->device, ==, "NVIDIA H100 80GB HBM3");
    g_assert_cmpint(rank->rank, ==, 3);
    g_assert_cmpint(rank->world, ==, 8);
    g_assert_cmpint(rank->events, ==, 7);
    g_assert_cmpint(rank->kernels->len, ==, 3);
    g_assert_cmpint(rank->steps->len, ==, 1);
    g_assert_cmpint(g_array_index(rank->steps, TraceStep, 0).number, ==, 7);
    const TraceKernel *product = trace_kernel(rank, 0), *gather = trace_kernel(rank, 1),
                      *copy = trace_kernel(rank, 2);
    /* times since the whole microsecond of the first event, to the picosecond */
    g_assert_cmpint(rank->base_us, ==, 5000000);
    g_assert_cmpint(product->begin_ps, ==, 20001000);
    g_assert_cmpint(product->dur_ps, ==, 1500000);
    g_assert_cmpint(product->launch_ps, ==, 12125000);
    g_assert_cmpint(product->stream, ==, 7);
    g_assert_cmpint(trace_kernel_class(rank, product), ==, TRACE_PRODUCTS);
    double size[3], groups = 0;
    g_assert_true(trace_op_product(&g_array_index(rank->ops, TraceOp, product->op), size, &groups));
    g_assert_cmpfloat(size[0], ==, 64);
    g_assert_cmpfloat(size[1], ==, 16);
    g_assert_cmpfloat(size[2], ==, 32);
    g_assert_cmpint(trace_kernel_class(rank, gather), ==, TRACE_ALL_GATHER);
    g_assert_cmpfloat(gather->bytes, ==, 16000); /* what all have behind it, 2 bytes each */
    g_assert_cmpint(gather->ranks, ==, 8);
    g_assert_cmpint(gather->op, ==, -1);
    g_assert_true(gather->launch_ps == TRACE_NO_LAUNCH);
    g_assert_cmpint(trace_kernel_class(rank, copy), ==, TRACE_COPIES);
    g_assert_cmpfloat(copy->bytes, ==, 4096);
    g_assert_true(rank->shapes);
    trace_rank_free(rank);
}

/* PyTorch 1.8: capital categories, ids in quotes, whole microseconds, the step among the operators, a bare list. */
static void test_old(void)
{
    TraceRank *rank = parse(
        "[{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"ProfilerStep#2\",\"pid\":9,\"tid\":1,\"ts\":100,"
        "\"dur\":50},"
        "{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"aten::addmm\",\"pid\":9,\"tid\":1,\"ts\":101,\"dur\":"
        "2,"
        "\"args\":{\"External id\":\"5\",\"Input "
        "dims\":\"[[7],[3,5],[5,7]]\",\"bad\":NaN,\"worse\":-Infinity}},"
        "{\"ph\":\"X\",\"cat\":\"Runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":9,\"tid\":1,\"ts\":102,"
        "\"dur\":1,"
        "\"args\":{\"external id\":\"5\",\"correlation\":\"66\"}},"
        "{\"ph\":\"X\",\"cat\":\"Kernel\",\"name\":\"volta_sgemm_128x64\",\"pid\":0,\"tid\":\"stream "
        "7\",\"ts\":110,"
        "\"dur\":4,\"args\":{\"stream\":\"7\",\"correlation\":\"66\",\"device\":0}},"
        "{\"ph\":\"X\",\"cat\":\"Kernel\",\"name\":\"C:\\\\dir \\\"q\\\" "
        "ncclKernel_AllReduce_RING_LL_Sum_float\",\"pid\":0,"
        "\"ts\":1.2e2,\"dur\":\"6.5\",\"args\":{\"stream\":\"9\",\"correlation\":67,\"device\":0}},"
        "{\"ph\":\"X\",\"cat\":\"Memset\",\"name\":\"Memset "
        "(Device)\",\"ts\":118,\"dur\":1,\"args\":{\"device\":0}},"
        "{\"ph\":\"X\",\"cat\":\"Kernel\",\"name\":\"gemm\",\"ts\":118,\"dur\":1,\"args\":{\"device\":1}}]");
    g_assert_cmpint(rank->rank, ==, -1);
    g_assert_cmpint(rank->kernels->len, ==, 3);
    g_assert_cmpint(rank->elsewhere, ==, 1); /* another GPU of the same process */
    g_assert_cmpint(g_array_index(rank->steps, TraceStep, 0).end_ps, ==, 50000000);
    const TraceKernel *product = trace_kernel(rank, 0), *reduce = trace_kernel(rank, 2);
    g_assert_cmpint(product->launch_ps, ==, 2000000);
    g_assert_cmpint(product->stream, ==, 7);
    double size[3], groups = 0;
    g_assert_true(trace_op_product(&g_array_index(rank->ops, TraceOp, product->op), size, &groups));
    g_assert_cmpfloat(size[0] * 100 + size[1] * 10 + size[2], ==, 375);
    g_assert_cmpint(trace_kernel_class(rank, reduce), ==, TRACE_ALL_REDUCE);
    g_assert_cmpint(reduce->begin_ps, ==, 20000000);
    g_assert_cmpint(reduce->dur_ps, ==, 6500000);
    g_assert_cmpstr(g_array_index(rank->names, TraceName, reduce->name).text, ==,
                    "C:\\dir \"q\" ncclKernel_AllReduce_RING_LL_Sum_float");
    trace_rank_free(rank);
}

static void test_classes(void)
{
    static const struct {
        const char *kernel;
        TraceClass kind;
    } cases[] = {
        {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", TRACE_SEND_RECEIVE},
        {"ncclKernel_ReduceScatter_RING_LL_Sum_half(ncclWorkElem)", TRACE_REDUCE_SCATTER},
        {"void deep_ep::internode::dispatch<false, 4>(int)", TRACE_ALL_TO_ALL},
        {"Cijk_Alik_Bljk_BBS_BH_MT256x256x64", TRACE_PRODUCTS},
        {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", TRACE_PRODUCTS},
        {"void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits>", TRACE_ATTENTION},
        {"cudnn_generated_fort_native_sdpa_sm90_knob_7_fprop", TRACE_ATTENTION},
        {"void cutlass::device_kernel<flash::FlashAttnBwd<flash::Collective>>", TRACE_ATTENTION},
        {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>", TRACE_NORMS},
        {"triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_3", TRACE_NORMS},
        {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor>",
         TRACE_OPTIMIZER},
        {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add>", TRACE_ELEMENTWISE},
        {"triton_poi_fused_mul_silu_5", TRACE_ELEMENTWISE},
        {"void dpsk::grouped_gemm::cuda::utils::transpose<512, 128, 4, 4>", TRACE_ELEMENTWISE},
        {"Memcpy DtoD (Device -> Device)", TRACE_COPIES},
        {"cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1", TRACE_PRODUCTS},
        {"MIOpenBatchNormFwdTrainSpatial", TRACE_NORMS},
        {"void cudnn::ops::nchwToNhwcKernel<float, float>", TRACE_ELEMENTWISE},
        {"something of our own", TRACE_OTHER},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpstr(trace_class_word(trace_table_class(table, cases[i].kernel, NULL)), ==,
                        trace_class_word(cases[i].kind));
    /* an all-to-all of NCCL is sends and receives: the collective's name says it */
    TraceRank *rank =
        parse("[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_SendRecv\",\"ts\":1,\"dur\":1,"
              "\"args\":{\"Collective name\":\"all_to_allv\",\"dtype\":\"Float8_e4m3fn\",\"In msg "
              "nelems\":10,\"Out msg nelems\":12}}]");
    g_assert_cmpint(trace_kernel_class(rank, trace_kernel(rank, 0)), ==, TRACE_ALL_TO_ALL);
    g_assert_cmpfloat(trace_kernel(rank, 0)->bytes, ==, 12);
    trace_rank_free(rank);
}

/* RCCL's kernels have one name for all collectives, and kernels of others have none of their own. */
static void test_by_operator(void)
{
    TraceRank *rank = parse(
        "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"c10d::_allgather_base_\",\"ts\":1,\"dur\":1,\"args\":"
        "{\"External id\":4}},{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"hipLaunchKernel\",\"ts\":1,"
        "\"dur\":1,\"args\":{\"External id\":4,\"correlation\":9}},{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":"
        "\"ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)\",\"ts\":2,\"dur\":3,\"args\":{"
        "\"correlation\":9}},{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_Generic("
        "ncclDevKernelArgsStorage<4096ul>)\",\"ts\":7,\"dur\":3,\"args\":{\"correlation\":10}}]");
    g_assert_cmpint(trace_kernel_class(rank, trace_kernel(rank, 0)), ==, TRACE_ALL_GATHER);
    g_assert_cmpint(trace_kernel_class(rank, trace_kernel(rank, 1)), ==, TRACE_OTHER_COLLECTIVE);
    trace_rank_free(rank);
}

static void test_table(void)
{
    static const char *const bad[][2] = {
        {"{\"patterns\":[[\"a*\",\"produce\"]]}", "products, attention"},
        {"{\"patterns\":[[\"a*\"]]}", "not a pair"},
        {"{\"patterns\":[[\"a*\",\"norms\",\"wait\"]]}", "with \"waits\" behind it or not"},
        {"{\"patterns\":[[\"a*\",\"norms\",\"waits\",1]]}", "not a pair"},
        {"{\"pattern\":[]}", "no list \"patterns\""},
        {"[", "t.json"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        GError *error = NULL;
        g_assert_null(trace_table_read(bad[i][0], strlen(bad[i][0]), "t.json", &error));
        g_assert_nonnull(strstr(error->message, bad[i][1]));
        g_error_free(error);
    }
    const char *own =
        "{\"patterns\":[[\"A*b*\",\"norms\"],[\"n*\",\"all-to-all\",\"waits\"],[\"*\",\"copies\"]]}";
    bool waits = true;
    TraceTable *mine = trace_table_read(own, strlen(own), "t.json", NULL);
    g_assert_cmpint(trace_table_class(mine, "axxBy", NULL), ==, TRACE_NORMS);
    g_assert_cmpint(trace_table_class(mine, "xab", &waits), ==, TRACE_COPIES);
    g_assert_false(waits);
    g_assert_cmpint(trace_table_class(mine, "notify", &waits), ==, TRACE_ALL_TO_ALL);
    g_assert_true(waits);
    trace_table_free(mine);
}

static void test_refused(void)
{
    static const char *const bad[][2] = {
        {"", "is empty"},
        {"hello", "not JSON"},
        {"{\"a\":1}", "no events"},
        {"[]", "no events"},
        {"{\"schema\":\"1.0.1\",\"nodes\":[{\"id\":1}]}", "execution trace"},
        {"{\"header\":{},\"coll_perf\":{}}", "NCCL Inspector"},
        {"{\"version\":\"2\",\"entries\":[]}", "flight recorder"},
        {"SQLite format 3 and more", "Nsight"},
        {"{\"rocprofiler-sdk-tool\":[{\"metadata\":{\"node\":", "rocprofv3"},
        {"{\"1\": {\"total\": 7.5, \"fwd_start\": [0.1]}}", "Primus"},
        {"{\"traceEvents\":[{\"ph\":\"X\"}]}", "no kernels of a GPU"},
        {"{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"na", "cut off"},
        {"{\"traceEvents\":[{\"ph\":\"X\"}", "cut off"},
        {"{\"traceEvents\":[{\"ph\":}]}", "not JSON"},
        {"{\"traceEvents\":[{\"ph\":\"X\"}{\"ph\":\"X\"}]}", "comma"},
        {"[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a\",\"ts\":1,\"dur\":1},{\"ph\":\"X\",\"cat\":"
         "\"kernel\","
         "\"name\":\"a\",\"ts\":9e14,\"dur\":1}]",
         "not one run"},
        {"[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a\",\"ts\":1,\"dur\":-5}]", "times that can be"},
    };
    char archive[512] = "rank0.json";
    GError *error = NULL;
    memcpy(archive + 257, "ustar", 5);
    g_assert_null(trace_rank_parse(archive, sizeof archive, "t.tar", table, &error));
    g_assert_nonnull(strstr(error->message, "archive of tar"));
    g_clear_error(&error);
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_null(trace_rank_parse(bad[i][0], strlen(bad[i][0]), "t.json", table, &error));
        g_assert_nonnull(error);
        if (strstr(error->message, bad[i][1]) == NULL)
            g_error("%s: %s", bad[i][0], error->message);
        g_assert_true(g_str_has_prefix(error->message, "t.json: "));
        g_clear_error(&error);
    }
}

/* Events across the windows of a file are those of a text. */
static void test_streams(void)
{
    g_autoptr(GString) text = g_string_new("{\"traceEvents\":[");
    g_autofree char *pad = g_strnfill(3000, 'x');
    int64_t sum_ps = 0;
    for (int i = 0; i < 1200; i++) {
        g_string_append_printf(
            text,
            "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k%d\",\"ts\":%d.5,\"dur\":%d,\"args\":"
            "{\"stack\":\"%s\",\"stream\":%d}}",
            i > 0 ? " ,\n" : "", i % 7, i * 10, i % 9, pad, i % 3);
        sum_ps += (int64_t)(i % 9) * 1000000;
    }
    g_string_append(text, "],\"traceName\":\"a\"}");
    g_assert_cmpuint(text->len, >, 3 << 20); /* more than a window */
    g_autofree char *path = NULL;
    const int fd = g_file_open_tmp("traceXXXXXX.json", &path, NULL);
    g_assert_true(g_close(fd, NULL));
    g_assert_true(g_file_set_contents(path, text->str, (gssize)text->len, NULL));
    GError *error = NULL;
    TraceRank *file = trace_rank_read(path, table, &error), *memory = parse(text->str);
    g_assert_no_error(error);
    g_assert_cmpint(file->kernels->len, ==, 1200);
    g_assert_cmpint(file->names->len, ==, 7);
    for (guint i = 0; i < file->kernels->len; i++) {
        const TraceKernel *one = trace_kernel(file, i), *other = trace_kernel(memory, i);
        g_assert_cmpint(one->begin_ps, ==, other->begin_ps);
        g_assert_cmpint(one->dur_ps, ==, other->dur_ps);
        g_assert_cmpint(one->stream, ==, other->stream);
        g_assert_cmpint(one->name, ==, other->name);
        sum_ps -= trace_kernel(file, i)->dur_ps;
    }
    g_assert_cmpint(sum_ps, ==, 0);
    trace_rank_free(file);
    trace_rank_free(memory);
    g_unlink(path);
}

/* A collective begins when its last rank does; what the others wait is no transfer. */
static void test_meet(void)
{
    static const char form[] =
        "[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce\",\"ts\":%d,\"dur\":%d,"
        "\"args\":{\"stream\":9,"
        "\"Process Group "
        "Name\":\"1\"}},{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce\",\"ts\":%d,"
        "\"dur\":%d,\"args\":{\"stream\":9,\"Process Group Name\":\"1\"}}]";
    g_autofree char *one = g_strdup_printf(form, 10, 25, 100, 5), *two = g_strdup_printf(form, 10, 5, 100, 9);
    g_autoptr(GPtrArray) ranks = g_ptr_array_new();
    g_ptr_array_add(ranks, parse(one));
    g_ptr_array_add(ranks, parse(two));
    TraceKernel *late = &g_array_index(((TraceRank *)ranks->pdata[1])->kernels, TraceKernel, 0);
    TraceKernel *far = &g_array_index(((TraceRank *)ranks->pdata[1])->kernels, TraceKernel, 1);
    late->begin_ps += 20000000; /* the second comes 20 us later */
    far->begin_ps += 50000000;  /* ... and here when the first has ended: not one collective */
    g_assert_cmpint(trace_meet(ranks), ==, 1);
    g_assert_cmpint(trace_kernel(ranks->pdata[0], 0)->wait_ps, ==, 20000000);
    g_assert_cmpint(late->wait_ps, ==, 0);
    g_assert_cmpint(trace_kernel(ranks->pdata[0], 1)->wait_ps, ==, 0);
    trace_rank_free(ranks->pdata[0]);
    trace_rank_free(ranks->pdata[1]);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    table = trace_table_load(NULL);
    g_assert_nonnull(table);
    g_test_add_func("/exchange/trace/now", test_now);
    g_test_add_func("/exchange/trace/old", test_old);
    g_test_add_func("/exchange/trace/classes", test_classes);
    g_test_add_func("/exchange/trace/by_operator", test_by_operator);
    g_test_add_func("/exchange/trace/table", test_table);
    g_test_add_func("/exchange/trace/refused", test_refused);
    g_test_add_func("/exchange/trace/streams", test_streams);
    g_test_add_func("/exchange/trace/meet", test_meet);
    const int status = g_test_run();
    trace_table_free(table);
    return status;
}
