/* tests/unit/report/test_balance.c - who waits for whom inside a layer, as the report tells it, and that the step
 * has it in it. */
#include <string.h>

#include "base/json.h"
#include "report/report.h"

static Report run(const char *const *sets, OrrArena *arena)
{
    static const char text[] =
        "{\"model\":{\"layers\":8,\"hidden\":2048,\"heads\":16,\"ffn_hidden\":8192,\"vocab\":32000,"
        "\"moe\":{\"experts\":32,\"top_k\":2,\"expert_ffn_hidden\":2048}},"
        "\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":2},"
        "\"training\":{\"sequence_length\":16384,\"global_batch\":16,\"micro_batch\":1},"
        "\"parallel\":{\"context\":4,\"expert\":8},\"execution\":{\"framework\":\"megatron-core\"}}";
    const ReportOptions options = {.check = true};
    GError *error = NULL;
    Spec *spec = ORR_ARENA_NEW(arena, Spec, 1);
    Report report;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "here", &error);
    spec_load_json(orr_json_root(doc), "here", sets, false, spec, NULL, &error);
    g_assert_no_error(error);
    report_run(spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return report;
}

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL}, arena)

static void context(void)
{
    OrrArena *arena = orr_arena_new();
    const Report zigzag = RUN("parallel.context_mode=ring"), naive = RUN("parallel.context_mode=ring-naive"),
                 striped = RUN("parallel.context_mode=ring-striped");
    g_assert_cmpint(naive.context_ranks, ==, 4);
    for (int rank = 0; rank < 4; rank++) {
        g_assert_cmpfloat_with_epsilon(naive.context_work[rank], (2.0 * rank + 1) / 4, 1e-12);
        g_assert_cmpfloat_with_epsilon(zigzag.context_work[rank], 1, 1e-12);
        g_assert_cmpfloat_with_epsilon(striped.context_work[rank], 1, 1e-3);
    }
    g_assert_cmpfloat_with_epsilon(naive.context_busiest, 7.0 / 4, 1e-12);
    g_assert_cmpint(naive.step_ps, >, zigzag.step_ps);
    orr_arena_free(arena);
}

static void experts(void)
{
    OrrArena *arena = orr_arena_new();
    static const char *const ZIPF = "training.router={\"distribution\":\"zipf\",\"exponent\":0.8}";
    const Report even = RUN("training.router=even"), hot = RUN(ZIPF),
                 copied = RUN(ZIPF, "parallel.expert_replicas=32"),
                 dealt = RUN(ZIPF, "parallel.expert_rebalance=true");
    g_assert_cmpfloat(even.expert_busiest, ==, 1);
    g_assert_cmpfloat(hot.expert_busiest, >, 1.5);
    g_assert_cmpfloat(dealt.expert_busiest, <, hot.expert_busiest);
    g_assert_cmpfloat(copied.expert_busiest, <, dealt.expert_busiest);
    g_assert_cmpint(hot.step_ps, >, dealt.step_ps);
    g_assert_cmpint(dealt.step_ps, >, copied.step_ps);
    orr_arena_free(arena);
}

/* Capacity takes what is full off: nothing of an even router, less the larger it is; all ranks work alike then. */
static void capacity(void)
{
    OrrArena *arena = orr_arena_new();
    static const char *const ZIPF = "training.router={\"distribution\":\"zipf\",\"exponent\":0.8}";
    const Report even = RUN("model.moe.capacity_factor=1"), tight = RUN(ZIPF, "model.moe.capacity_factor=1"),
                 wide = RUN(ZIPF, "model.moe.capacity_factor=2"), dropless = RUN(ZIPF);
    g_assert_cmpfloat(even.dropped_frac, ==, 0);
    g_assert_cmpfloat(tight.dropped_frac, >, 0.2);
    g_assert_cmpfloat(wide.dropped_frac, <, tight.dropped_frac);
    g_assert_cmpfloat(wide.dropped_frac, >, 0);
    g_assert_cmpfloat(dropless.dropped_frac, ==, 0);
    g_assert_cmpfloat(tight.expert_busiest, ==, 1);
    g_assert_cmpint(wide.step_ps, >, tight.step_ps);
    orr_arena_free(arena);
}

/* An expert takes no more than all tokens: where it has room for these nothing is dropped. */
static void room_for_all_tokens(void)
{
    OrrArena *arena = orr_arena_new();
    static const char *const HOT = "training.router={\"distribution\":\"zipf\",\"exponent\":3}";
    const Report some = RUN(HOT, "model.moe.top_k=16", "model.moe.capacity_factor=1.9"),
                 none = RUN(HOT, "model.moe.top_k=16", "model.moe.capacity_factor=2"),
                 everywhere = RUN(HOT, "model.moe.top_k=32", "model.moe.capacity_factor=1");
    g_assert_cmpfloat(some.dropped_frac, >, 0);
    g_assert_cmpfloat(none.dropped_frac, ==, 0);
    g_assert_cmpfloat(everywhere.dropped_frac, ==, 0);
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/balance/context", context);
    g_test_add_func("/balance/experts", experts);
    g_test_add_func("/balance/capacity", capacity);
    g_test_add_func("/balance/room-for-all-tokens", room_for_all_tokens);
    return g_test_run();
}
