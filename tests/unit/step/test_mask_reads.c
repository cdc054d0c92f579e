/* tests/unit/step/test_mask_reads.c - what a graph of the whole iteration waits for before it starts, where samples carry a
 * mask, and where nothing changes. */
#include <string.h>

#include "base/json.h"
#include "report/report.h"

static const char TEXT[] =
    "{\"model\":\"llama3-8b\",\"cluster\":{\"accelerator\":\"gb200-nvl72\",\"gpus_per_node\":4,\"nodes\":2},"
    "\"training\":{\"sequence_length\":4096,\"global_batch\":32,\"micro_batch\":1,\"recompute\":\"none\"},"
    "\"parallel\":{\"pipeline\":4,\"virtual_stages\":4,\"schedule\":\"interleaved\",\"zero\":1},"
    "\"execution\":{\"framework\":\"megatron-core\",\"overlap\":[]}}";

static int64_t step_ps(const char *const *sets)
{
    const ReportOptions options = {.check = true};
    GError *error = NULL;
    Report report;
    OrrArena *arena = orr_arena_new();
    Spec *spec = ORR_ARENA_NEW(arena, Spec, 1);
    OrrJsonDoc *doc = orr_json_parse(TEXT, strlen(TEXT), "here", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "here", sets, false, spec, NULL, &error);
    g_assert_no_error(error);
    report_run(spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    orr_arena_free(arena);
    return report.step_ps;
}

#define SETS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char ON[] = "execution.framework.host.reads_masks=true",
                  WHOLE[] = "execution.cuda_graph=full_iteration",
                  LAYER[] = "execution.cuda_graph=transformer_engine/['attn']",
                  RATES[] = "cluster.host={\"core_bytes_per_s\":1e10,\"pageable_frac\":0.1}",
                  LINK[] = "cluster.accelerator={\"preset\":\"gb200-nvl72\",\"host_link_bytes_per_s\":2e11}";

/* 16 micro-batches of 2 replicas: 4096^2 bytes each, read and written at 10 GB/s, and sent at 20 GB/s for each of 4 chunks. */
static void whole_iterations(void)
{
    const int64_t mask_ps = 4096 * 4096 * 100LL,
                  more = step_ps(SETS(ON, WHOLE, RATES, LINK)) - step_ps(SETS(WHOLE, RATES, LINK));
    g_assert_cmpint(more, ==, 16 * (2 * mask_ps + 4 * mask_ps / 2));
}

/* Graphs of layers start micro-batch by micro-batch; without a graph as well. */
static void elsewhere(void)
{
    g_assert_cmpint(step_ps(SETS(ON, LAYER)), ==, step_ps(SETS(LAYER)));
    g_assert_cmpint(step_ps(SETS(ON, RATES)), ==, step_ps(SETS(RATES)));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mask-reads/whole-iterations", whole_iterations);
    g_test_add_func("/mask-reads/elsewhere", elsewhere);
    return g_test_run();
}
