/* Memory of loops: what engines and forwards keep on a GPU while others work there. */
#include "tests/unit/loop_fixture.h"

/* An engine that keeps its cache takes that much more of the GPU from who trains there, and nothing of its own peak. */
static void test_kept_cache(void)
{
    static const char loop[] =
        "{\"preset\":\"grpo\",\"generation\":{\"engine\":\"deepspeed-chat\",\"prompts\":16,"
        "\"samples_per_prompt\":8,\"prompt_tokens\":128,\"answer_tokens\":{\"mean\":896}}}";
    double needed[2][2];
    for (int kept = 0; kept < 2; kept++) {
        const char *const sets[] = {kept ? NULL
                                         : "workload.roles.rollout={\"execution\":{\"framework\":{\"preset\":"
                                           "\"deepspeed-chat\",\"engine\":{\"keeps_cache\":false}}}}",
                                    NULL};
        Asked *asked = ask(loop, sets);
        g_assert_no_error(asked->error);
        needed[kept][0] = asked->workload.role[asked->workload.phase[0].phase->role].needed_bytes;
        needed[kept][1] = 0;
        for (int i = 0; i < asked->workload.phase_count; i++)
            if (asked->workload.phase[i].phase->kind == SPEC_PHASE_TRAIN)
                needed[kept][1] = asked->workload.role[asked->workload.phase[i].phase->role].needed_bytes;
        asked_free(asked);
    }
    /* 16 sequences a replica of 2 ranks; the last step of 1,024 tokens; keys and values of 4 layers, 10 rows of workspace */
    g_assert_cmpfloat_with_epsilon(needed[1][0], needed[0][0], 1);
    g_assert_cmpfloat_with_epsilon(needed[1][1] - needed[0][1],
                                   16 * 1024.0 * (4 * 2 * 1024 / 2 * 2 + 10 * 1024 * 2), 1);
}

/* Forwards that keep what they return need it of the GPU on top of each other; seconds stay. */
static void test_kept_outputs(void)
{
    static const char loop[] =
        "{\"preset\":\"grpo\",\"keeps_outputs\":%s,\"generation\":{\"prompts\":16,"
        "\"samples_per_prompt\":8,\"prompt_tokens\":128,\"answer_tokens\":{\"mean\":896}}}";
    g_autofree char *without = g_strdup_printf(loop, "false"), *with = g_strdup_printf(loop, "true");
    Asked *off = ask(without, NULL), *on = ask(with, NULL);
    g_assert_no_error(off->error);
    g_assert_no_error(on->error);
    const Workload *one = &off->workload, *other = &on->workload;
    const int actor = one->phase[2].phase->role, reference = one->phase[3].phase->role;
    g_assert_cmpint(one->step_ps, ==, other->step_ps);
    g_assert_cmpfloat(one->role[reference].capacity_bytes, ==, 0);
    /* 16 sequences of 1,024 tokens on a replica of 2 ranks: 4 layers of 8 heads of 128, 32,000 logits, all in 16 bits */
    const double cache = 16 * 1024.0 * 4 * 2 * 1024 * 2 / 2, logits = 16 * 1024.0 * 32000 * 2 / 2;
    g_assert_cmpfloat_with_epsilon(other->role[reference].output_bytes, cache + logits, 1);
    g_assert_cmpfloat_with_epsilon(other->role[actor].scoring_bytes,
                                   spec_context_bytes(other->role[actor].spec) + logits, 1);
    g_assert_cmpfloat(other->role[reference].needed_bytes, >=,
                      other->role[reference].resting_bytes + other->role[reference].scoring_bytes +
                          2 * (cache + logits)); /* those of the actor are there too */
    g_assert_true(other->fits);
    asked_free(off);
    asked_free(on);
}

/* An engine of whole batches has no waves: what memory cannot hold at once is refused, and nothing else changes. */
static void test_whole_batches(void)
{
    static const char loop[] =
        "{\"preset\":\"grpo\",\"generation\":{\"prompts\":%d,\"samples_per_prompt\":8,"
        "\"prompt_tokens\":128,\"answer_tokens\":{\"mean\":896}},\"roles\":{\"rollout\":{"
        "\"execution\":{\"framework\":{\"preset\":\"vllm\",\"engine\":{\"max_sequences\":100000,"
        "\"whole_batches\":%s}}}}}}";
    const int prompts[] = {16, 16384};
    int64_t ps[2][2];
    for (int large = 0; large < 2; large++)
        for (int whole = 0; whole < 2; whole++) {
            g_autofree char *text = g_strdup_printf(loop, prompts[large], whole ? "true" : "false");
            Asked *asked = ask(text, NULL);
            if (large && whole) {
                g_assert_error(asked->error, ORR_ERROR, ORR_ERROR_INPUT);
                g_assert_nonnull(strstr(asked->error->message, "are written at once"));
            } else {
                g_assert_no_error(asked->error);
            }
            ps[large][whole] = asked->workload.phase[0].ps;
            asked_free(asked);
        }
    g_assert_cmpint(ps[0][0], ==, ps[0][1]);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/workload/kept-cache", test_kept_cache);
    g_test_add_func("/workload/kept-outputs", test_kept_outputs);
    g_test_add_func("/workload/whole-batches", test_whole_batches);
    return g_test_run();
}
