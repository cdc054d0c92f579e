/* tests/unit/step/test_measured.c - steps whose passes were measured: worked out by hand, equal to the predicted step where
 * the seconds are the predicted ones, alike whether folded or not, and what they would be without stragglers. */
#include <string.h>

#include "base/json.h"
#include "program/measured.h"
#include "report/report.h"
#include "step/step.h"

#define MS INT64_C(1000000000) /* ps */

static const char TEXT[] =
    "{\"model\":\"gpt-1.5b\",\"cluster\":{\"preset\":\"dgx-h100\",\"gpus_per_node\":%d,\"nodes\":1},"
    "\"training\":{\"sequence_length\":1024,\"global_batch\":%d,\"micro_batch\":1},"
    "\"parallel\":{\"pipeline\":%d,\"data\":%d,\"zero\":%d,\"schedule\":\"%s\",\"virtual_stages\":%d},"
    "\"execution\":{\"framework\":{\"preset\":\"megatron-core\",\"host\":{\"step_overhead_s\":0},"
    "\"pipeline\":{\"deferred_head_gradients\":0}},"
    "\"overlap\":[%s]%s%s%s}}";

typedef struct Shape {
    int pipeline, data, microbatches, zero, chunks;
    const char *schedule, *overlap;
} Shape;

static bool load(const Shape *shape, const char *passes, const char *set, Spec *spec, GError **error)
{
    const char *sets[] = {set, NULL};
    g_autofree char *text = g_strdup_printf(
        TEXT, shape->pipeline * shape->data, shape->microbatches * shape->data, shape->pipeline, shape->data,
        shape->zero, shape->schedule != NULL ? shape->schedule : "1f1b", MAX(1, shape->chunks),
        shape->overlap != NULL ? shape->overlap : "",
        passes != NULL ? ",\"measured_passes\":{\"passes\":[" : "", passes != NULL ? passes : "",
        passes != NULL ? "]}" : "");
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "here", error);
    g_assert_nonnull(doc);
    const bool ok = spec_load_json(orr_json_root(doc), "here", sets, false, spec, NULL, error);
    orr_json_free(doc);
    return ok;
}

typedef struct Answer {
    int64_t step_ps;
    ReportMeasured measured;
} Answer;

static Answer ask(const Shape *shape, const char *passes, bool unfold)
{
    const ReportOptions options = {.check = true, .unfold = unfold};
    GError *error = NULL;
    Report report;
    OrrArena *arena = orr_arena_new();
    Spec *spec = ORR_ARENA_NEW(arena, Spec, 1);
    load(shape, passes, NULL, spec, &error);
    g_assert_no_error(error);
    report_run(spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    const Answer answer = {.step_ps = report.step_ps, .measured = report.measured};
    orr_arena_free(arena);
    return answer;
}

/* --- by hand --- */

/* 3 micro-batches on 2 stages: (3 + 1) (10 + 20) ms, two messages of 1 ms on the way of each, and what is before and behind. */
static void by_hand(void)
{
    const Shape shape = {.pipeline = 2, .data = 1, .microbatches = 3};
    const char *passes =
        "{\"stage\":0,\"forward_s\":0.01,\"backward_s\":0.02,\"send_forward_s\":0,\"begin_s\":0.005,"
        "\"end_s\":0.001,\"embedding_reduce_s\":0.004,\"norm_s\":0.002,\"optimizer_s\":0.003},"
        "{\"stage\":1,\"forward_s\":0.01,\"backward_s\":0.02,\"send_backward_s\":0,"
        "\"optimizer_s\":0.002,\"embedding_reduce_s\":0.004}";
    const Answer answer = ask(&shape, passes, false);
    g_assert_cmpint(answer.step_ps, ==, 5 * MS + 4 * 30 * MS + (1 + 4 + 2 + 3) * MS);
    /* Optimizers take their mean: 2.5 ms. The others are the same in all rows. */
    g_assert_true(answer.measured.told);
    g_assert_cmpint(answer.measured.even_ps, ==, answer.step_ps - MS / 2);
}

/* Each message is on the way of the first forward and the last backward. */
static void messages(void)
{
    const Shape shape = {.pipeline = 2, .data = 1, .microbatches = 1};
    const char *none = "{\"stage\":0,\"forward_s\":0.01,\"backward_s\":0.02,\"send_forward_s\":0},"
                       "{\"stage\":1,\"forward_s\":0.01,\"backward_s\":0.02,\"send_backward_s\":0}";
    const char *some = "{\"stage\":0,\"forward_s\":0.01,\"backward_s\":0.02,\"send_forward_s\":[0.001]},"
                       "{\"stage\":1,\"forward_s\":0.01,\"backward_s\":0.02,\"send_backward_s\":0.0025}";
    g_assert_cmpint(ask(&shape, some, false).step_ps - ask(&shape, none, false).step_ps, ==, 35 * MS / 10);
}

/* One long backward on the last stage of 1F1B delays all that come behind it; elsewhere in the bubble it costs nothing. */
static void one_long_pass(void)
{
    const Shape shape = {.pipeline = 2, .data = 1, .microbatches = 2};
    const char *even = "{\"stage\":0,\"forward_s\":0.01,\"backward_s\":0.02},"
                       "{\"stage\":1,\"forward_s\":0.01,\"backward_s\":0.02}";
    const char *late = "{\"stage\":0,\"forward_s\":0.01,\"backward_s\":0.02},"
                       "{\"stage\":1,\"forward_s\":0.01,\"backward_s\":[0.02,0.024]}";
    const char *hidden = "{\"stage\":0,\"forward_s\":[0.01,0.014],\"backward_s\":0.02},"
                         "{\"stage\":1,\"forward_s\":0.01,\"backward_s\":0.02}";
    g_assert_cmpint(ask(&shape, late, false).step_ps - ask(&shape, even, false).step_ps, ==, 4 * MS);
    g_assert_cmpint(ask(&shape, hidden, false).step_ps, ==, ask(&shape, even, false).step_ps);
}

/* --- replicas --- */

/* They meet where gradients are reduced: the step is the slower one's, and the means split what it is slower by. */
static void replicas(void)
{
    const Shape shape = {.pipeline = 2, .data = 2, .microbatches = 4};
    const char *common = "{\"stage\":0,\"forward_s\":0.01,\"backward_s\":0.02,\"reduce_s\":0.006},"
                         "{\"stage\":1,\"forward_s\":0.01,\"backward_s\":0.02,\"reduce_s\":0.006}";
    const char *slow = "{\"stage\":0,\"replica\":1,\"forward_s\":0.02,\"backward_s\":0.04},"
                       "{\"stage\":1,\"replica\":1,\"forward_s\":0.02,\"backward_s\":0.04}";
    const char *all = "{\"stage\":0,\"forward_s\":0.02,\"backward_s\":0.04,\"reduce_s\":0.006},"
                      "{\"stage\":1,\"forward_s\":0.02,\"backward_s\":0.04,\"reduce_s\":0.006}";
    g_autofree char *both = g_strconcat(common, ",", slow, NULL);
    const Answer mixed = ask(&shape, both, false);
    g_assert_cmpint(mixed.step_ps, ==, ask(&shape, all, false).step_ps);
    g_assert_cmpint(mixed.step_ps, ==, ask(&shape, both, true).step_ps);
    g_assert_cmpint(mixed.measured.replicas_ps, ==, mixed.step_ps);
    g_assert_cmpint(mixed.measured.stages_ps, ==, mixed.measured.even_ps);
    g_assert_cmpint(mixed.step_ps - mixed.measured.even_ps, ==, 5 * 15 * MS);
}

/* --- what was predicted, given back --- */

static void add_times(GString *out, const char *key, int64_t ps)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf(out, ",\"%s\":%s", key, g_ascii_dtostr(number, sizeof number, (double)ps * 1e-12));
}

static int64_t sum(const SimStage *stage, bool forward)
{
    int64_t ps = 0;
    for (int i = 0; i < stage->segment_count; i++) {
        const SimSegment *segment = &stage->segments[i];
        ps += forward ? sim_work_duration_ps(&segment->forward)
                      : sim_work_duration_ps(&segment->recompute) +
                            sim_work_duration_ps(&segment->backward_input) +
                            sim_work_duration_ps(&segment->backward_weight);
    }
    return ps;
}

static char *predicted(const Shape *shape)
{
    GString *out = g_string_new(NULL);
    GError *error = NULL;
    SimPlan plan;
    OrrArena *arena = orr_arena_new();
    Spec *spec = ORR_ARENA_NEW(arena, Spec, 1);
    load(shape, NULL, NULL, spec, &error);
    g_assert_no_error(error);
    sim_step_plan(spec, arena, &plan, &error);
    g_assert_no_error(error);
    for (int s = 0; s < plan.shape.ranks * plan.shape.chunks; s++) {
        g_string_append_printf(out, "%s{\"stage\":%d", s > 0 ? "," : "", s);
        add_times(out, "forward_s", sum(&plan.stages[s], true));
        add_times(out, "backward_s", sum(&plan.stages[s], false));
        add_times(out, "send_forward_s", sim_work_duration_ps(&plan.stages[s].send_next));
        add_times(out, "send_backward_s", sim_work_duration_ps(&plan.stages[s].send_prev));
        if (s < plan.shape.ranks)
            add_times(out, "optimizer_s", sim_work_duration_ps(&plan.ranks[s].optimizer));
        g_string_append_c(out, '}');
    }
    orr_arena_free(arena);
    return g_string_free(out, FALSE);
}

/* Also in segments, whose reductions run beside the last backward, in chunks, and in halves. */
static void as_predicted(void)
{
    const Shape shapes[] = {
        {.pipeline = 2, .data = 2, .microbatches = 4},
        {.pipeline = 4,
         .data = 2,
         .microbatches = 8,
         .zero = 1,
         .overlap = "\"grad_reduce\",\"param_gather\""},
        {.pipeline = 2, .data = 4, .microbatches = 4, .zero = 1, .chunks = 2, .schedule = "interleaved"},
        {.pipeline = 4, .data = 1, .microbatches = 8, .schedule = "zb-h1"}};
    for (gsize i = 0; i < G_N_ELEMENTS(shapes); i++) {
        g_autofree char *passes = predicted(&shapes[i]);
        const Answer given = ask(&shapes[i], passes, false), plain = ask(&shapes[i], NULL, false);
        g_assert_cmpint(given.step_ps, ==, plain.step_ps);
        g_assert_false(plain.measured.told);
    }
}

/* A longer pass makes no step shorter, whichever it is. */
static void longer_is_never_faster(void)
{
    const Shape shape = {
        .pipeline = 4, .data = 2, .microbatches = 3, .zero = 1, .overlap = "\"grad_reduce\""};
    const char *base =
        "{\"stage\":0,\"forward_s\":0.01,\"backward_s\":0.02},{\"stage\":1,\"forward_s\":0.011,"
        "\"backward_s\":0.019},{\"stage\":2,\"forward_s\":0.013,\"backward_s\":0.025},{\"stage\":3,\"forward_"
        "s\":0.01,\"backward_s\":0.02}";
    const int64_t before_ps = ask(&shape, base, false).step_ps;
    for (int i = 0; i < 16; i++) {
        g_autofree char *more = g_strdup_printf("%s,{\"stage\":%d,\"replica\":%d,\"%s\":[0.03,0.03,0.03]}",
                                                base, i % 4, i / 4 % 2, i < 8 ? "forward_s" : "backward_s");
        g_assert_cmpint(ask(&shape, more, false).step_ps, >=, before_ps);
    }
}

/* --- pieces add up --- */

static void stretched(void)
{
    SimWork a = {.part_ps = {[SIM_PART_COMPUTE] = 3, [SIM_PART_TENSOR_COMM] = 4}},
            b = {.part_ps = {[SIM_PART_COMPUTE] = 3}}, none = {.scale_up_bytes = 0};
    sim_work_stretch(&a, 0, 10, 25);
    sim_work_stretch(&b, 7, 10, 25);
    g_assert_cmpint(a.part_ps[SIM_PART_COMPUTE], ==, 8);      /* 7.5 */
    g_assert_cmpint(a.part_ps[SIM_PART_TENSOR_COMM], ==, 10); /* to 17.5 */
    g_assert_cmpint(sim_work_duration_ps(&a) + sim_work_duration_ps(&b), ==, 25);
    sim_work_stretch(&none, 0, 0, 9);
    g_assert_cmpint(sim_work_duration_ps(&none), ==, 9);
}

/* --- refusals --- */

static void refuse(const Shape *shape, const char *passes, const char *set, const char *words)
{
    GError *error = NULL;
    Spec *spec = g_new0(Spec, 1);
    g_assert_false(load(shape, passes, set, spec, &error));
    if (strstr(error->message, words) == NULL)
        g_error("\"%s\" does not say \"%s\"", error->message, words);
    g_error_free(error);
    g_free(spec);
}

static void refusals(void)
{
    const Shape shape = {.pipeline = 2, .data = 2, .microbatches = 4};
    const char *row = "{\"stage\":0,\"forward_s\":0.01}";
    refuse(&shape, "{\"stage\":2,\"forward_s\":0.01}", NULL, "stage 2, but there are 2");
    refuse(&shape, "{\"stage\":0,\"replica\":2,\"forward_s\":0.01}", NULL,
           "replica 2, but parallel.data is 2");
    refuse(&shape, "{\"stage\":0,\"forward_s\":[0.01,0.01]}", NULL, "forward_s: 2 numbers, but a step has 4");
    refuse(&shape, "{\"stage\":0,\"norm_s\":[0.01,0.01]}", NULL, "norm_s: 2 numbers, but a step has 1");
    refuse(&shape, "{\"stage\":0,\"forward_s\":-1}", NULL, "forward_s: -1 is not a number of seconds");
    refuse(&shape, "{\"stage\":0,\"forward_s\":[0.01,\"x\",0.01,0.01]}", NULL,
           "\"x\" is not a number of seconds");
    refuse(&shape, "{\"stage\":0,\"forwards_s\":0.01}", NULL, "unknown key");
    refuse(&shape, "{\"forward_s\":0.01}", NULL, "stage: missing");
    refuse(&shape, "{\"stage\":0}", NULL, "says nothing");
    refuse(&shape, row, "parallel.zero=3", "does not go with parallel.zero 3");
    refuse(&shape, row, "jitter={\"rank_spread_frac\":0.01}", "does not go with jitter");
    const Shape sharded = {.pipeline = 2, .data = 2, .microbatches = 4, .zero = 1};
    refuse(&sharded, row, "offload=optimizer", "does not go with offload");
    refuse(&shape, NULL, "execution.measured_passes=nowhere.json", "\"nowhere.json\" is not a file");
    refuse(&shape, NULL, "execution.measured_passes=3", "is a number; give the path of a file");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/measured/by-hand", by_hand);
    g_test_add_func("/measured/messages", messages);
    g_test_add_func("/measured/one-long-pass", one_long_pass);
    g_test_add_func("/measured/replicas", replicas);
    g_test_add_func("/measured/as-predicted", as_predicted);
    g_test_add_func("/measured/longer-is-never-faster", longer_is_never_faster);
    g_test_add_func("/measured/stretched", stretched);
    g_test_add_func("/measured/refusals", refusals);
    return g_test_run();
}
