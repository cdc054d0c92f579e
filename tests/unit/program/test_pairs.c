/* tests/unit/program/test_pairs.c - a forward beside a backward of another stage lasts as long as the kernels of those two
 * passes, or as their exchanges where these are longer; stages that differ show whose passes are counted. */
#include <string.h>

#include "program/works.h"
#include "step/step.h"
#include "spec/load.h"

/* Dense layers first, then experts, so that the stages of a rank differ. */
static void load(const char *schedule, int virtual_stages, double slowdown, Spec *ret_spec)
{
    GError *error = NULL;
    g_autofree char *text = g_strdup_printf(
        "{\"model\":{\"name\":\"m\",\"layers\":9,\"hidden\":1024,\"heads\":8,\"ffn_hidden\":8192,\"vocab\":"
        "32000,"
        "\"moe\":{\"experts\":8,\"top_k\":2,\"expert_ffn_hidden\":1024,\"dense_layers\":3}},"
        "\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":2,\"scale_out_bytes_per_s_per_gpu\":%g},"
        "\"training\":{\"sequence_length\":2048,\"global_batch\":64,\"micro_batch\":1,\"recompute\":"
        "\"full\"},"
        "\"parallel\":{\"pipeline\":2,\"virtual_stages\":%d,\"schedule\":\"%s\",\"expert\":8,\"order\":"
        "\"pp-tp-cp-ep-dp\"}}",
        50e9 / slowdown, virtual_stages, schedule);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "pairs", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "pairs", NULL, false, ret_spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
}

static int64_t exchange_ps(const SimStage *stage, SimPass pass, int64_t *ret_kernels_ps)
{
    int64_t exchange = 0, whole = 0;
    for (int i = 0; i < stage->segment_count; i++) {
        const SimWork work = sim_segment_work(&stage->segments[i], pass);
        exchange += work.part_ps[SIM_PART_EXPERT_COMM];
        whole += sim_work_duration_ps(&work);
    }
    *ret_kernels_ps = whole - exchange;
    return exchange;
}

static void check_pairs(const char *schedule, int virtual_stages, double slowdown, bool exchange_is_longer)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrArena *arena = orr_arena_new();
    SimPlan plan;
    GError *error = NULL;
    load(schedule, virtual_stages, slowdown, spec);
    sim_step_plan(spec, arena, &plan, &error);
    g_assert_no_error(error);
    int longer = 0;
    for (int s = 0; s < 4; s++) {
        int64_t ahead = 0, back = 0;
        const int64_t exchange = exchange_ps(&plan.stages[s], SIM_PASS_FORWARD, &ahead) +
                                 exchange_ps(&plan.stages[3 - s], SIM_PASS_BACKWARD, &back);
        g_assert_cmpint(exchange, >, 0);
        g_assert_cmpint(sim_work_duration_ps(&plan.stages[s].overlapped_pair), ==,
                        MAX(exchange, ahead + back));
        longer += exchange > ahead + back;
    }
    g_assert_cmpint(longer > 0, ==, exchange_is_longer);
    orr_arena_free(arena);
}

static void test_pairs(void)
{
    check_pairs("dualpipe", 1, 1, false);
    check_pairs("dualpipe", 1, 1000, true);
    check_pairs("dualpipev", 2, 1, false);
    check_pairs("dualpipev", 2, 1000, true);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pairs/forward-and-backward-of-two-stages", test_pairs);
    return g_test_run();
}
