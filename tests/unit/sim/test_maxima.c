/* tests/unit/sim/test_maxima.c - delayed scales whose maxima all ranks of a stage agree on behind each pass: what that costs,
 * over how many ranks, and where nothing changes. */
#include <string.h>

#include "base/json.h"
#include "report/report.h"

static const char TEXT[] =
    "{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":2},"
    "\"training\":{\"sequence_length\":8192,\"global_batch\":64,\"micro_batch\":1,\"recompute\":\"none\"},"
    "\"parallel\":{\"tensor\":2,\"zero\":1},\"execution\":{\"framework\":\"megatron-core\",\"overlap\":[]}}";

static Report run(const char *const *sets, OrrArena *arena)
{
    const ReportOptions options = {.check = true};
    GError *error = NULL;
    Report report;
    Spec *spec = ORR_ARENA_NEW(arena, Spec, 1);
    OrrJsonDoc *doc = orr_json_parse(TEXT, strlen(TEXT), "here", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "here", sets, false, spec, NULL, &error);
    g_assert_no_error(error);
    report_run(spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return report;
}

#define SETS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char OFF[] = "execution.framework.tensor.shares_maxima=none", FP8[] = "training.precision=fp8";

/* Picoseconds of the exchanges of one step. */
static int64_t exchanges_ps(const char *const *with, const char *const *without)
{
    OrrArena *arena = orr_arena_new();
    const Report on = run(with, arena), off = run(without, arena);
    const int64_t more = on.part_ps[SIM_PART_TENSOR_COMM] - off.part_ps[SIM_PART_TENSOR_COMM];
    g_assert_cmpint(on.step_ps - off.step_ps, >=, more);
    orr_arena_free(arena);
    return more;
}

/* A reduction behind each pass: twice as many micro-batches, twice as many; over all ranks, also those that share nothing
 * else. */
static void behind_each_pass(void)
{
    const int64_t eight = exchanges_ps(SETS(FP8), SETS(FP8, OFF));
    g_assert_cmpint(eight, >, 16 * 10 * 1000000LL); /* 8 micro-batches, two passes, over 10 us each */
    g_assert_cmpint(eight, <, 16 * 200 * 1000000LL);
    g_assert_cmpint(
        exchanges_ps(SETS(FP8, "training.global_batch=128"), SETS(FP8, OFF, "training.global_batch=128")), ==,
        2 * eight);
    const int64_t node = exchanges_ps(SETS(FP8, "cluster.nodes=1", "training.global_batch=32"),
                                      SETS(FP8, OFF, "cluster.nodes=1", "training.global_batch=32"));
    g_assert_cmpint(node, >, 0);
    g_assert_cmpint(node, <, eight);
    const int64_t many = exchanges_ps(SETS(FP8, "cluster.nodes=64", "training.global_batch=2048"),
                                      SETS(FP8, OFF, "cluster.nodes=64", "training.global_batch=2048"));
    g_assert_cmpint(many, >, eight);
}

/* Tensor and context ranks alone: less than all, the same over any number of replicas, and what all is where there are no
 * replicas. */
static void among_tensor_ranks(void)
{
    const char tensor[] = "execution.framework.tensor.shares_maxima=tensor", many[] = "cluster.nodes=64",
               batch[] = "training.global_batch=2048";
    const int64_t few = exchanges_ps(SETS(FP8, tensor), SETS(FP8, OFF));
    g_assert_cmpint(few, >, 0);
    g_assert_cmpint(few, <, exchanges_ps(SETS(FP8), SETS(FP8, OFF)));
    g_assert_cmpint(exchanges_ps(SETS(FP8, tensor, many, batch), SETS(FP8, OFF, many, batch)), ==, few);
    const char eight[] = "parallel.tensor=8", context[] = "parallel.context=2";
    g_assert_cmpint(exchanges_ps(SETS(FP8, tensor, eight, context), SETS(FP8, OFF, eight, context)), ==,
                    exchanges_ps(SETS(FP8, eight, context), SETS(FP8, OFF, eight, context)));
}

/* Without tensor ranks the exchange is named by those that take part: replicas, or context ranks alone. */
static void named_by_who_takes_part(void)
{
    const struct {
        const char *among, *context;
        SimPart part;
    } rows[] = {
        {"execution.framework.tensor.shares_maxima=all", "parallel.context=1", SIM_PART_DATA_COMM},
        {"execution.framework.tensor.shares_maxima=all", "parallel.context=2", SIM_PART_DATA_COMM},
        {"execution.framework.tensor.shares_maxima=tensor", "parallel.context=2", SIM_PART_CONTEXT_COMM}};
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        OrrArena *arena = orr_arena_new();
        const Report on = run(SETS(FP8, "parallel.tensor=1", rows[i].context, rows[i].among), arena),
                     off = run(SETS(FP8, "parallel.tensor=1", rows[i].context, OFF), arena);
        g_assert_cmpint(on.part_ps[rows[i].part], >, off.part_ps[rows[i].part]);
        g_assert_cmpint(on.part_ps[SIM_PART_TENSOR_COMM], ==, 0);
        orr_arena_free(arena);
    }
}

/* Scales of their own, or one rank a stage: no step changes. */
static void elsewhere(void)
{
    static const char *const others[] = {"training.precision=bf16", "training.precision=fp8-cs"};
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
        OrrArena *arena = orr_arena_new();
        g_assert_cmpint(run(SETS(others[i]), arena).step_ps, ==, run(SETS(others[i], OFF), arena).step_ps);
        orr_arena_free(arena);
    }
    OrrArena *arena = orr_arena_new();
    const char *const alone[] = {FP8, "parallel.tensor=1", "parallel.pipeline=16", "parallel.data=1", NULL},
                      *const off[] = {
                          FP8, "parallel.tensor=1", "parallel.pipeline=16", "parallel.data=1", OFF, NULL};
    g_assert_cmpint(run(alone, arena).step_ps, ==, run(off, arena).step_ps);
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/maxima/behind-each-pass", behind_each_pass);
    g_test_add_func("/maxima/among-tensor-ranks", among_tensor_ranks);
    g_test_add_func("/maxima/named-by-who-takes-part", named_by_who_takes_part);
    g_test_add_func("/maxima/elsewhere", elsewhere);
    return g_test_run();
}
