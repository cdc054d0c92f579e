/* tests/unit/step/test_buckets.c - buckets of tensors, dealt from the first on and filled from the last: published offsets, what holds for any sizes, which
 * layer completes which bucket, and what is the same where one bucket holds all. */
#include <string.h>

#include "base/json.h"
#include "report/report.h"
#include "step/buckets.h"
#include "step/policy.h"

/* Sizes of tensors, buckets of 8: a tensor that would overflow opens the next, one of 10 is a bucket by itself. */
static void offsets(void)
{
    static const double elements[] = {5, 3, 4, 10, 2, 2, 5, 3};
    static const int buckets[] = {0, 0, 1, 2, 3, 3, 4, 4}, one[] = {0, 0, 0, 0, 0, 0, 0, 0};
    static const double at[] = {0, 5, 0, 0, 0, 2, 0, 5}, whole[] = {0, 5, 8, 12, 22, 24, 26, 31};
    int bucket[8];
    double offset[8];
    g_assert_cmpint(sim_deal_buckets(elements, 8, 8, bucket, offset), ==, 5);
    g_assert_true(memcmp(bucket, buckets, sizeof bucket) == 0);
    g_assert_true(memcmp(offset, at, sizeof offset) == 0);
    g_assert_cmpint(sim_deal_buckets(elements, 8, 0, bucket, offset), ==, 1);
    g_assert_true(memcmp(bucket, one, sizeof bucket) == 0);
    g_assert_true(memcmp(offset, whole, sizeof offset) == 0);
    g_assert_cmpint(sim_deal_buckets(elements, 0, 8, bucket, offset), ==, 0);
}

/* Any sizes: order is kept, no bucket of several tensors overflows, and none could have taken the first of the next. */
static void any_sizes(void)
{
    GRand *rand = g_rand_new_with_seed(7);
    for (int round = 0; round < 300; round++) {
        double elements[40], offset[40];
        int bucket[40];
        const int count = g_rand_int_range(rand, 1, 41), most = g_rand_int_range(rand, 1, 60);
        for (int i = 0; i < count; i++)
            elements[i] = g_rand_int_range(rand, 1, 30);
        const int buckets = sim_deal_buckets(elements, count, most, bucket, offset);
        g_assert_cmpint(bucket[count - 1], ==, buckets - 1);
        for (int i = 1; i < count; i++) {
            const double end = offset[i - 1] + elements[i - 1];
            const bool opens = bucket[i] > bucket[i - 1];
            g_assert_cmpint(bucket[i] - bucket[i - 1], ==, opens);
            g_assert_cmpfloat(offset[i], ==, opens ? 0 : end);
            g_assert_true(opens ? end + elements[i] > most : end + elements[i] <= most);
        }
    }
    g_rand_free(rand);
}

/* From the last tensor on, buckets of 7: 3 and 5 fill one, 2 and 2 and 10 the next, 4 and 3 a third; 5 is left. */
static void filled(void)
{
    static const double elements[] = {5, 3, 4, 10, 2, 2, 5, 3};
    static const int buckets[] = {0, 1, 1, 2, 2, 2, 3, 3}, four[] = {0, 0, 0, 0};
    int bucket[8];
    g_assert_cmpint(sim_fill_buckets(elements, 8, 7, bucket), ==, 4);
    g_assert_true(memcmp(bucket, buckets, sizeof bucket) == 0);
    g_assert_cmpint(sim_fill_buckets(elements, 4, 0, bucket), ==, 1);
    g_assert_true(memcmp(bucket, four, sizeof four) == 0);
    g_assert_cmpint(sim_fill_buckets(elements, 0, 7, bucket), ==, 0);
}

/* Any sizes: order is kept, every bucket but the first is full, and none was before its first tensor. */
static void filled_any_sizes(void)
{
    GRand *rand = g_rand_new_with_seed(11);
    for (int round = 0; round < 300; round++) {
        double elements[40];
        int bucket[40];
        const int count = g_rand_int_range(rand, 1, 41), least = g_rand_int_range(rand, 1, 60);
        for (int i = 0; i < count; i++)
            elements[i] = g_rand_int_range(rand, 1, 30);
        const int buckets = sim_fill_buckets(elements, count, least, bucket);
        g_assert_cmpint(bucket[0], ==, 0);
        g_assert_cmpint(bucket[count - 1], ==, buckets - 1);
        double held = 0;
        for (int i = count - 1; i >= 0; i--) {
            const bool closes = i == 0 || bucket[i - 1] < bucket[i];
            g_assert_cmpint(i == 0 ? 0 : bucket[i] - bucket[i - 1], ==, i > 0 && closes);
            g_assert_cmpfloat(held, <, least);
            held += elements[i];
            g_assert_true(!closes || i == 0 || held >= least);
            held = closes ? 0 : held;
        }
    }
    g_rand_free(rand);
}

/* Segments of 1, 1, 3, 2 and 5 million parameters of 2 bytes: 2 MB fill the first bucket and 8 MB the others, no size never
 * does, and units each do. */
static void filled_by_segments(void)
{
    static const double segments[] = {1e6, 1e6, 3e6, 2e6, 5e6};
    static const bool sizes[] = {true, false, true, false, true};
    StepPolicy policy = {.first_bucket_bytes = 2e6, .bucket_bytes = 8e6, .gradient_wire_bytes = 2};
    StepFilling filling = step_filling(&policy);
    double held = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(segments); i++) {
        held += segments[i];
        const bool completes = step_completes_bucket(&filling, held);
        g_assert_cmpint(completes, ==, sizes[i]);
        held = completes ? 0 : held;
    }
    policy = (StepPolicy){.gradient_wire_bytes = 2};
    filling = step_filling(&policy);
    g_assert_false(step_completes_bucket(&filling, 1e15));
    policy.fill = STEP_FILL_SEGMENTS;
    filling = step_filling(&policy);
    g_assert_true(step_completes_bucket(&filling, 1));
}

static Report run(const char *text, const char *const *sets, OrrArena *arena)
{
    const ReportOptions options = {.check = true};
    GError *error = NULL;
    Report report;
    Spec *spec = ORR_ARENA_NEW(arena, Spec, 1);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "here", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "here", sets, false, spec, NULL, &error);
    g_assert_no_error(error);
    report_run(spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return report;
}

#define SETS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Four layers of 1, 3, 3 and 2 million fp32 parameters in buckets of 4 million: {1, 3}, {3}, {2} from the first on, where
 * filling from the last on gives {2, 3} and {3, 1}. */
static void layers_of_a_list(void)
{
    static const char text[] =
        "{\"model\":{\"layers\":[{\"flops\":1e10,\"parameters\":1e6},{\"flops\":1e10,\"parameters\":3e6},"
        "{\"flops\":1e10,\"parameters\":3e6},{\"flops\":1e10,\"parameters\":2e6}]},"
        "\"cluster\":{\"accelerator\":\"v100-sxm2-32gb\",\"gpus_per_node\":1,\"nodes\":8,"
        "\"scale_out_bytes_per_s_per_gpu\":3.125e9},"
        "\"training\":{\"sequence_length\":1,\"global_batch\":256,\"micro_batch\":32,\"precision\":\"fp32\","
        "\"optimizer\":\"momentum\"},\"parallel\":{\"data\":8},\"execution\":{\"framework\":{\"preset\":"
        "\"pytorch-ddp\",\"data_parallel\":{\"bucket_bytes\":16e6,\"first_bucket_bytes\":0,"
        "\"bucket_fill\":\"layers\"}}}}";
    static const int first[] = {1, 0, 1, 1}, last[] = {1, 0, 1, 0};
    OrrArena *arena = orr_arena_new();
    const Report filled = run(text, NULL, arena);
    const Report dealt = run(text, SETS("execution.framework.data_parallel.bucket_fill=from-first"), arena);
    for (int i = 0; i < 4; i++) {
        const SimSegment *a = &dealt.plan.stages[0].segments[i], *b = &filled.plan.stages[0].segments[i];
        g_assert_cmpint(sim_work_duration_ps(&a->grad_reduce) > 0, ==, first[i]);
        g_assert_cmpint(sim_work_duration_ps(&b->grad_reduce) > 0, ==, last[i]);
    }
    orr_arena_free(arena);
}

/* Layers of a transformer: the same bytes in more reductions of whole tensors; with one bucket, the same step. */
static void transformers(void)
{
    static const char text[] =
        "{\"model\":\"gpt2-xl\",\"cluster\":{\"preset\":\"dgx-a100-80gb\",\"nodes\":1},"
        "\"training\":{\"sequence_length\":1024,\"global_batch\":16,\"micro_batch\":2},"
        "\"parallel\":{\"data\":8},\"execution\":{\"framework\":\"pytorch-ddp\"}}";
    static const char deal[] = "execution.framework.data_parallel.bucket_fill=from-first",
                      whole[] = "execution.framework.data_parallel.bucket_bytes=0",
                      none[] = "execution.framework.data_parallel.first_bucket_bytes=0";
    OrrArena *arena = orr_arena_new();
    const Report dealt = run(text, SETS(deal), arena);
    const SimStage *stage = &dealt.plan.stages[0];
    for (int i = 0; i < stage->segment_count;
         i++) /* each layer's matrices are larger than a bucket, or fill it */
        g_assert_cmpint(sim_work_duration_ps(&stage->segments[i].grad_reduce), >, 0);
    for (int zero = 0; zero < 2; zero++) {
        const char *const sharded = zero ? "parallel.zero=1" : "parallel.zero=0";
        g_assert_cmpint(run(text, SETS(deal, whole, none, sharded), arena).step_ps, ==,
                        run(text, SETS(whole, none, sharded), arena).step_ps);
    }
    orr_arena_free(arena);
}

/* Megatron-Core: more buckets than layers complete where a bucket ends inside a layer; larger ones over more ranks; one, where
 * nothing overlaps. With one bucket it is no other step than with buckets of layers. */
static void megatron(void)
{
    static const char text[] =
        "{\"model\":\"gpt2-xl\",\"cluster\":{\"preset\":\"dgx-a100-80gb\",\"nodes\":1},"
        "\"training\":{\"sequence_length\":1024,\"global_batch\":16,\"micro_batch\":2,\"precision\":\"bf16\"}"
        ","
        "\"parallel\":{\"data\":8,\"zero\":1},\"execution\":{\"framework\":\"megatron-core\"}}";
    static const char overlap[] = "execution.overlap=[\"grad_reduce\",\"param_gather\"]",
                      size[] = "execution.framework.data_parallel.bucket_bytes=90e6",
                      whole[] = "execution.framework.data_parallel.bucket_bytes=0",
                      layers[] = "execution.framework.data_parallel.bucket_fill=layers",
                      ranks[] = "execution.framework.data_parallel.bucket_rank_bytes=1e9";
    OrrArena *arena = orr_arena_new();
    const Report some = run(text, SETS(overlap, size), arena),
                 late = run(text, SETS("execution.overlap=[]"), arena),
                 one = run(text, SETS(overlap, whole), arena),
                 many_ranks = run(text, SETS(overlap, size, ranks), arena);
    int reductions = 0, after = 0, large = 0;
    for (int i = 0; i < some.plan.stages[0].segment_count; i++) {
        reductions += sim_work_duration_ps(&some.plan.stages[0].segments[i].grad_reduce) > 0;
        after += sim_work_duration_ps(&late.plan.stages[0].segments[i].grad_reduce) > 0;
        large += sim_work_duration_ps(&many_ranks.plan.stages[0].segments[i].grad_reduce) > 0;
    }
    g_assert_cmpint(reductions, >, 20);
    g_assert_cmpint(after, ==, 1);
    g_assert_cmpint(large, ==, 1);
    g_assert_cmpint(one.step_ps, ==, run(text, SETS(overlap, whole, layers), arena).step_ps);
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/buckets/offsets", offsets);
    g_test_add_func("/buckets/any-sizes", any_sizes);
    g_test_add_func("/buckets/filled", filled);
    g_test_add_func("/buckets/filled-any-sizes", filled_any_sizes);
    g_test_add_func("/buckets/filled-by-segments", filled_by_segments);
    g_test_add_func("/buckets/megatron", megatron);
    g_test_add_func("/buckets/layers-of-a-list", layers_of_a_list);
    g_test_add_func("/buckets/transformers", transformers);
    return g_test_run();
}
