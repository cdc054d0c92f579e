/* tests/unit/report/test_data_schemes.c - lists of layers, parameter servers, compression and buckets in scenarios:
 * what runs, what comes back when they are off, and what is refused. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "report/report.h"
#include "spec/notes.h"

/* Layers of 1 s forward and 2 s backward, whose gradients take 3, 1 and 1 s on a host link of 1 GB/s. */
#define THREE                                                                                                \
    "{\"name\":\"three\",\"model\":{\"layers\":[{\"parameters\":0.75e9,\"seconds\":3},"                      \
    "{\"parameters\":0.25e9,\"seconds\":3,\"repeat\":2}]},\"cluster\":{\"accelerator\":{\"preset\":"         \
    "\"a100-sxm4-80gb\",\"host_link_bytes_per_s\":\"1 GB/s\"},\"gpus_per_node\":1,\"nodes\":1},"             \
    "\"training\":{\"sequence_length\":1,\"global_batch\":1,\"precision\":\"fp32\",\"optimizer\":"           \
    "\"momentum\"},\"execution\":{\"framework\":\"mxnet-horovod\"}}"
#define DDP                                                                                                  \
    "{\"name\":\"ddp\",\"model\":{\"layers\":[{\"flops\":1e9,\"parameters\":1e6},{\"flops\":1e12,"           \
    "\"parameters\":234e6}]},\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},\"training\":{"               \
    "\"sequence_length\":1,\"global_batch\":8,\"precision\":\"fp32\",\"optimizer\":\"momentum\"},"           \
    "\"parallel\":{\"data\":8},\"execution\":{\"framework\":{\"preset\":\"pytorch-ddp\"}}}"

static bool load(const char *text, const char *const *sets, Spec *spec, char **ret_message)
{
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", &error);
    g_assert_no_error(error);
    const bool ok = spec_load_json(orr_json_root(doc), "test", sets, false, spec, NULL, &error);
    orr_json_free(doc);
    *ret_message = ok ? NULL : g_strdup(error->message);
    g_clear_error(&error);
    return ok;
}

static Report run(const char *text, const char *const *sets, OrrArena *arena)
{
    Spec *spec = orr_arena_alloc(arena, sizeof *spec);
    GError *error = NULL;
    char *message = NULL;
    Report report;
    if (!load(text, sets, spec, &message))
        g_error("%s", message);
    const ReportOptions options = {.check = true};
    const bool ok = report_run(spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    return report;
}

static double step_s(const char *text, const char *const *sets)
{
    OrrArena *arena = orr_arena_new();
    const double seconds = (double)run(text, sets, arena).step_ps * 1e-12;
    orr_arena_free(arena);
    return seconds;
}

#define SERVERS(rest) "parallel.parameter_server={\"servers\":1,\"startup_s\":0" rest "}"

static void test_timelines(void)
{
    const char *const naive[] = {SERVERS(",\"scheme\":\"naive\""), NULL};
    const char *const wfbp[] = {SERVERS(""), NULL};
    const char *const priority[] = {SERVERS(",\"scheme\":\"bytescheduler\",\"partition_bytes\":5e8"), NULL};
    const char *const barrier[] = {
        SERVERS(",\"scheme\":\"bytescheduler\",\"partition_bytes\":5e8,\"barrier\":true"), NULL};
    g_assert_cmpfloat_with_epsilon(step_s(THREE, naive), 19, 1e-9);
    g_assert_cmpfloat_with_epsilon(step_s(THREE, wfbp), 15, 1e-9);
    g_assert_cmpfloat_with_epsilon(step_s(THREE, priority), 12.5, 1e-9);
    g_assert_cmpfloat(step_s(THREE, barrier), >=, 12.5);
}

/* The report's parts of an iteration; the optimizer and its states are the servers'. */
static void test_split(void)
{
    const char *const sets[] = {SERVERS(",\"update_bytes_per_s\":\"5 GB/s\""), NULL};
    OrrArena *arena = orr_arena_new();
    const Report report = run(THREE, sets, arena);
    const SimServerResult *servers = report.plan.servers;
    g_assert_nonnull(servers);
    g_assert_cmpint(servers->compute_ps + servers->exposed_ps, ==, report.step_ps);
    g_assert_cmpint(report.part_ps[SIM_PART_DATA_COMM], ==, servers->exposed_ps);
    g_assert_cmpint(report.part_ps[SIM_PART_OPTIMIZER], ==, 0);
    g_assert_cmpfloat_with_epsilon((double)servers->push_ps * 1e-12, 5, 1e-9);
    g_assert_cmpfloat_with_epsilon((double)servers->pull_ps * 1e-12, 5, 1e-9);
    g_assert_cmpfloat_with_epsilon((double)servers->server_ps * 1e-12, 1, 1e-9);
    g_assert_cmpfloat(report.stages[0].optimizer_bytes, <, 1);
    g_autoptr(GString) text = g_string_new(NULL), json = g_string_new(NULL);
    report_write_text(&report, text);
    report_write_json(&report, json);
    g_assert_nonnull(strstr(text->str, "Parameter servers: 1 dedicated, wfbp, sync; 3 parts"));
    g_assert_nonnull(strstr(json->str, "\"parameter_server\""));
    orr_arena_free(arena);
}

/* Eight workers on two leaves, their server behind a third: uplinks and copies through host memory are seen. */
static void test_servers_on_networks(void)
{
    static const char served[] =
        "{\"name\":\"served\",\"model\":\"vgg-16\",\"cluster\":{\"accelerator\":\"v100-sxm2-32gb\","
        "\"gpus_per_node\":1,\"nodes\":8,\"scale_out_bytes_per_s_per_gpu\":3e9},\"training\":{"
        "\"sequence_length\":1,\"global_batch\":256,\"micro_batch\":32,\"precision\":\"fp32\",\"optimizer\":"
        "\"momentum\"},\"parallel\":{\"data\":8,\"data_scheme\":\"parameter_server\","
        "\"parameter_server\":{\"servers\":1,\"startup_s\":0}},\"execution\":{\"framework\":\"mxnet-"
        "horovod\"}}";
    const char *const over[] = {"cluster.oversubscription=16", NULL};
    const char *const copied[] = {"cluster.network.host_copies=true",
                                  "cluster.accelerator.host_link_bytes_per_s=0.3e9", NULL};
    const char *const direct[] = {"cluster.accelerator.host_link_bytes_per_s=0.3e9", NULL};
    const char *const flow[] = {"cluster.network.fidelity=flow", NULL};
    const double plain = step_s(served, NULL);
    OrrArena *arena = orr_arena_new();
    const double bytes = run(served, over, arena).plan.servers->nic_up_bytes;
    g_assert_cmpfloat_with_epsilon(step_s(served, over) / plain, 4,
                                   0.3); /* 4 x 3 GB/s over 16 below 3 GB/s */
    g_assert_cmpfloat(step_s(served, over), >=, bytes / (4 * 3e9 / 16));
    g_assert_cmpfloat(step_s(served, copied), >=, bytes / 8 / 0.3e9);
    g_assert_cmpfloat(step_s(served, copied), >, step_s(served, direct));
    char *message = NULL;
    Spec spec;
    g_assert_false(load(served, flow, &spec, &message));
    g_assert_nonnull(strstr(message, "cluster.network.fidelity: \"flow\" knows collectives alone"));
    g_free(message);
    orr_arena_free(arena);
}

/* DDP's hooks reduce whatever the overlap says, which is told; without hooks the word counts. */
static void test_hooks(void)
{
    static const struct {
        const char *sets[3];
        bool told;
    } cases[] = {{{"execution.overlap=[]"}, true},
                 {{"execution.overlap=[\"grad_reduce\"]"}, false},
                 {{"execution.overlap=[]", "execution.framework.data_parallel.reductions=as-asked"}, false}};
    double steps[3];
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GPtrArray) notes = g_ptr_array_new_with_free_func(g_free);
        char *message = NULL;
        bool told = false;
        Spec spec;
        g_assert_true(load(DDP, cases[i].sets, &spec, &message));
        spec_notes(&spec, notes);
        for (guint k = 0; k < notes->len; k++)
            told |= strstr(notes->pdata[k], "reductions=as-asked") != NULL;
        g_assert_cmpint(told, ==, cases[i].told);
        steps[i] = step_s(DDP, cases[i].sets);
    }
    g_assert_cmpfloat(steps[0], ==, steps[1]);
    g_assert_cmpfloat(steps[2], >, steps[1]);
}

/* Ranks get as many samples each, and the last step of an epoch may have fewer; without samples nothing is said. */
static void test_epoch(void)
{
    static const struct {
        const char *data, *batch, *samples;
        double each, steps;
    } cases[] = {{"parallel.data=2", "training.global_batch=64", "training.samples=10000", 5000, 157},
                 {"parallel.data=8", "training.global_batch=256", "training.samples=10000", 1250, 40},
                 {"parallel.data=3", "training.global_batch=96", "training.samples=1023", 341, 11}};
    OrrArena *arena = orr_arena_new();
    const Report silent = run(DDP, NULL, arena);
    g_assert_cmpfloat(silent.epoch_steps, ==, 0);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        char *nodes = g_strdup_printf("cluster.nodes=%s", strchr(cases[i].data, '=') + 1);
        const char *const sets[] = {cases[i].data,
                                    cases[i].batch,
                                    cases[i].samples,
                                    nodes,
                                    "cluster.gpus_per_node=1",
                                    "cluster.scale_up_domain_gpus=1",
                                    NULL};
        const Report report = run(DDP, sets, arena);
        g_autoptr(GString) json = g_string_new(NULL);
        report_write_json(&report, json);
        g_assert_cmpfloat(report.epoch_rank_samples, ==, cases[i].each);
        g_assert_cmpfloat(report.epoch_steps, ==, cases[i].steps);
        g_assert_cmpfloat_with_epsilon(report.epoch_s, cases[i].steps * (double)report.step_ps * 1e-12, 1e-9);
        g_assert_nonnull(strstr(json->str, "\"samples_per_rank\""));
        g_free(nodes);
    }
    orr_arena_free(arena);
}

/* Rank 0's weights go to all replicas once: the report says so of DistributedDataParallel, and no step has it. */
static void test_broadcast(void)
{
    OrrArena *arena = orr_arena_new();
    const char *const off[] = {"execution.framework.data_parallel.initial_broadcast=false", NULL};
    const Report report = run(DDP, NULL, arena), without = run(DDP, off, arena);
    g_autoptr(GString) json = g_string_new(NULL), other = g_string_new(NULL);
    report_write_json(&report, json);
    report_write_json(&without, other);
    g_assert_cmpint(report.step_ps, ==, without.step_ps);
    const char *at = strstr(json->str, "\"initial_broadcast\"");
    g_assert_nonnull(at);
    g_assert_null(strstr(other->str, "\"initial_broadcast\""));
    const double bytes = g_ascii_strtod(strchr(strstr(at, "\"bytes\""), ':') + 1, NULL),
                 seconds = g_ascii_strtod(strchr(strstr(at, "\"seconds\""), ':') + 1, NULL);
    g_assert_cmpfloat(bytes, ==, report.stages[0].weights_bytes);
    g_assert_cmpfloat(seconds, >=, bytes / report.spec->cluster.scale_up_bytes_per_s);
    orr_arena_free(arena);
}

static void test_parameters(void)
{
    OrrArena *arena = orr_arena_new();
    const Report report = run(DDP, NULL, arena);
    g_assert_cmpfloat_with_epsilon(report.parameters, 235e6, 1);
    g_assert_cmpfloat_with_epsilon(report.model_flops_per_s_per_gpu * 8 * (double)report.step_ps * 1e-12,
                                   3 * 8 * 1.001e12, 1e6);
    g_assert_null(report.plan.servers);
    g_assert_null(report.plan.compression);
    orr_arena_free(arena);
}

/* Measured time of one run sets the scale of its layers; the optimizer is as before. */
static void test_time_frac(void)
{
    const char *const twice[] = {"model.time_frac=2", NULL};
    OrrArena *arena = orr_arena_new();
    const Report plain = run(DDP, NULL, arena), scaled = run(DDP, twice, arena);
    g_assert_cmpfloat_with_epsilon((double)scaled.part_ps[SIM_PART_COMPUTE],
                                   2 * (double)plain.part_ps[SIM_PART_COMPUTE],
                                   1e-3 * (double)plain.part_ps[SIM_PART_COMPUTE]);
    g_assert_cmpint(scaled.part_ps[SIM_PART_OPTIMIZER], ==, plain.part_ps[SIM_PART_OPTIMIZER]);
    orr_arena_free(arena);
}

/* 936 MB of a layer in buckets of 1 MiB are 892 reductions, each with its latency. */
static void test_buckets(void)
{
    const char *const small[] = {"execution.framework.data_parallel.bucket_bytes=1048576", NULL};
    const char *const whole[] = {"execution.framework.data_parallel.bucket_bytes=1048576",
                                 "execution.framework.data_parallel.bucket_fill=layers", NULL};
    const char *const usual[] = {"execution.framework.data_parallel.bucket_bytes=26214400", NULL};
    OrrArena *arena = orr_arena_new();
    const SimSegment *cut = &run(DDP, small, arena).plan.stages[0].segments[1];
    const SimSegment *uncut = &run(DDP, whole, arena).plan.stages[0].segments[1];
    const SimSegment *mid = &run(DDP, usual, arena).plan.stages[0].segments[1];
    const int64_t cut_ps = sim_work_duration_ps(&cut->grad_reduce),
                  whole_ps = sim_work_duration_ps(&uncut->grad_reduce);
    g_assert_cmpint(cut_ps % 892, ==, 0);
    g_assert_cmpint(cut_ps, >, 2 * whole_ps);
    g_assert_cmpint(sim_work_duration_ps(&mid->grad_reduce), >, whole_ps);
    g_assert_cmpint(sim_work_duration_ps(&mid->grad_reduce), <, cut_ps);
    orr_arena_free(arena);
}

/* The first bucket of 1 MiB closes with the last layers, so that something is on the wire early. */
static void test_first_bucket(void)
{
    static const char layers[] = "model.layers=[{\"flops\":1e11,\"parameters\":1e6},{\"flops\":1e11,"
                                 "\"parameters\":1e6},{\"flops\":1e11,\"parameters\":1e6}]";
    const char *const with[] = {layers, NULL};
    const char *const without[] = {layers, "execution.framework.data_parallel.first_bucket_bytes=0", NULL};
    OrrArena *arena = orr_arena_new();
    const SimSegment *first = run(DDP, with, arena).plan.stages[0].segments;
    const SimSegment *one = run(DDP, without, arena).plan.stages[0].segments;
    g_assert_cmpint(sim_work_duration_ps(&first[2].grad_reduce), >, 0);
    g_assert_cmpint(sim_work_duration_ps(&first[1].grad_reduce), ==, 0);
    g_assert_cmpint(sim_work_duration_ps(&first[0].grad_reduce), >, 0);
    g_assert_cmpint(sim_work_duration_ps(&one[2].grad_reduce), ==, 0);
    orr_arena_free(arena);
}

static void test_compression(void)
{
    const char *const topk[] = {"parallel.compression={\"kind\":\"topk\",\"fraction\":0.01,"
                                "\"error_feedback\":true}",
                                NULL};
    const char *const int8[] = {"parallel.compression={\"kind\":\"int8\"}", NULL};
    const char *const onebit[] = {"parallel.compression={\"kind\":\"onebit\"}", NULL};
    const char *const fp16[] = {"parallel.compression={\"kind\":\"fp16\"}", NULL};
    const char *const none[] = {"parallel.compression={\"kind\":\"none\"}", NULL};
    OrrArena *arena = orr_arena_new();
    const Report plain = run(DDP, NULL, arena), sparse = run(DDP, topk, arena);
    const SimCompression *compression = sparse.plan.compression;
    g_assert_cmpint(run(DDP, none, arena).step_ps, ==, plain.step_ps);
    g_assert_cmpfloat_with_epsilon(compression->payload_bytes, 0.01 * 8 * 235e6, 1); /* value and index */
    g_assert_cmpfloat_with_epsilon(compression->volume_break_even_frac, 1.0 / 8, 1e-12);
    g_assert_cmpfloat_with_epsilon(compression->residual_bytes, 4 * 235e6, 1);
    g_assert_cmpfloat_with_epsilon(sparse.stages[0].optimizer_bytes - plain.stages[0].optimizer_bytes,
                                   4 * 235e6, 10);
    g_assert_cmpfloat(compression->break_even_frac, >, 0);
    g_assert_cmpfloat(compression->break_even_frac, <, 1.0 / 8); /* selecting costs */
    g_assert_cmpfloat_with_epsilon(run(DDP, int8, arena).plan.compression->payload_bytes,
                                   235e6 * (1 + 4.0 / 256), 1);
    g_assert_cmpfloat_with_epsilon(run(DDP, onebit, arena).plan.compression->payload_bytes,
                                   235e6 * (1.0 / 8 + 4.0 / 256), 1);
    g_assert_cmpfloat_with_epsilon(run(DDP, fp16, arena).plan.compression->payload_bytes, 2 * 235e6, 1);
    orr_arena_free(arena);
}

/* At the fraction where top-k breaks even it takes as long as the dense all-reduce. */
static void test_break_even(void)
{
    const char *topk[] = {"parallel.compression={\"kind\":\"topk\"}", NULL, NULL};
    OrrArena *arena = orr_arena_new();
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    const double even = run(DDP, topk, arena).plan.compression->break_even_frac;
    g_ascii_dtostr(number, sizeof number, even);
    g_autofree char *set = g_strconcat("parallel.compression.fraction=", number, NULL);
    topk[1] = set;
    const SimCompression *at = run(DDP, topk, arena).plan.compression;
    g_assert_cmpfloat_with_epsilon(at->compressed_s / at->dense_s, 1, 1e-3);
    orr_arena_free(arena);
}

/* GPU 0 sends and takes (n - 1)(weights + gradients); two GPUs have half of what four have to move, less one part. */
static void test_single_process(void)
{
    const char *const all[] = {"parallel.data_scheme=single_process", NULL};
    OrrArena *arena = orr_arena_new();
    const Report report = run(DDP, all, arena);
    const double rate = report.spec->cluster.scale_up_bytes_per_s;
    g_assert_cmpfloat_with_epsilon((double)report.part_ps[SIM_PART_DATA_COMM] * 1e-12, 7 * 235e6 * 8 / rate,
                                   1e-9);
    orr_arena_free(arena);
}

static void test_refused(void)
{
    static const struct {
        const char *text, *set, *set2, *expect;
    } cases[] = {
        {THREE, "parallel.parameter_server={\"servers\":0}", NULL, "servers: 0 is out of range"},
        {THREE, SERVERS(",\"staleness\":2"), NULL, "no bound; give mode"},
        {THREE, SERVERS(",\"placement\":\"byteps\""), NULL, "one worker"},
        {THREE, "parallel.data_scheme=parameter_server", NULL, "needs a parameter_server object"},
        {THREE, "parallel.data_scheme=allreduce", SERVERS(""), "leave the object out"},
        {THREE, "parallel.compression={\"kind\":\"topk\",\"fraction\":1.5}", NULL,
         "fraction: 1.5 is out of range"},
        {THREE, "model.hidden=1024", NULL, "are a transformer's"},
        {THREE, "model.layers=[]", NULL, "lists no layer with parameters"},
        {THREE, "training.recompute=selective", NULL, "all layers or none"},
        {THREE, "offload.scheme=zero-offload", NULL, "offload: a list of model.layers stays on the GPU"},
        {DDP, "parallel.data=4", "parallel.context=2", "no sequences to split"},
        {DDP, "parallel.zero=1", "parallel.compression={\"kind\":\"topk\"}", "give zero 0: the largest"},
        {DDP, "parallel.zero=1", SERVERS(""), "goes with data parallelism alone"},
        {DDP, "cluster.nodes=2", "parallel.data_scheme=single_process", "parallel.data"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *const sets[] = {cases[i].set, cases[i].set2, NULL};
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_autofree char *message = NULL;
        g_assert_false(load(cases[i].text, sets, spec, &message));
        if (strstr(message, cases[i].expect) == NULL || strchr(message, '\n') != NULL)
            g_error("case %u: \"%s\" lacks \"%s\"", i, message, cases[i].expect);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/data-schemes/timelines", test_timelines);
    g_test_add_func("/data-schemes/split", test_split);
    g_test_add_func("/data-schemes/parameters", test_parameters);
    g_test_add_func("/data-schemes/servers-on-networks", test_servers_on_networks);
    g_test_add_func("/data-schemes/hooks", test_hooks);
    g_test_add_func("/data-schemes/epoch", test_epoch);
    g_test_add_func("/data-schemes/broadcast", test_broadcast);
    g_test_add_func("/data-schemes/time-frac", test_time_frac);
    g_test_add_func("/data-schemes/buckets", test_buckets);
    g_test_add_func("/data-schemes/first-bucket", test_first_bucket);
    g_test_add_func("/data-schemes/compression", test_compression);
    g_test_add_func("/data-schemes/break-even", test_break_even);
    g_test_add_func("/data-schemes/single-process", test_single_process);
    g_test_add_func("/data-schemes/refused", test_refused);
    return g_test_run();
}
