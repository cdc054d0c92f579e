/* unit/costmodel/test_generate.c - writing answers: closed forms, caches, the tail, and that better is never slower. */
#include <math.h>
#include <string.h>

#include "costmodel/generate.h"
#include "costmodel/moe.h"
#include "spec/load.h"

static Spec *take(const char *model, const char *precision, const char *more, const char *accelerator)
{
    GError *error = NULL;
    Spec *spec = g_new0(Spec, 1);
    g_autofree char *text = g_strdup_printf(
        "{\"model\":\"%s\",\"cluster\":{\"accelerator\":%s,\"gpus_per_node\":8,\"nodes\":%d},\"training\":{"
        "\"precision\":\"%s\",\"sequence_length\":128,\"global_batch\":16},\"parallel\":{%s},\"execution\":{"
        "\"framework\":"
        "\"tensorrt-llm\"}}",
        model, accelerator, strstr(more, "16") != NULL ? 2 : 1, precision, more);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "test", NULL, false, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return spec;
}

#define H100 "\"h100-sxm5-80gb\""

static CostGenerateAsk asked(double prompts, double samples, double mean, double log_sd)
{
    CostGenerateAsk ask = {
        .prompts = prompts, .samples_per_prompt = samples, .prompt_tokens = 256, .seed = 1};
    orr_lengths_log_normal(mean, log_sd, 4 * mean, &ask.answers);
    return ask;
}

static CostGenerated generate(const Spec *spec, const CostGenerateAsk *ask)
{
    GError *error = NULL;
    CostDecode decode;
    CostGenerated result;
    cost_decode_init(spec, cost_generate_most(spec, ask), &decode, &error);
    g_assert_no_error(error);
    cost_generate(&decode, ask, &result, &error);
    g_assert_no_error(error);
    return result;
}

static void near(double value, double want, double frac)
{
    g_assert_cmpfloat_with_epsilon(value, want, frac * fabs(want));
}

/* Sixteen equal answers at once: as many steps as tokens, each at its context; no tail, nobody gives way. */
static void test_closed_form(void)
{
    g_autofree Spec *spec = take("llama3-8b", "bf16", "\"data\":8", H100);
    const CostGenerateAsk ask = asked(128, 1, 500, 0);
    GError *error = NULL;
    CostDecode decode;
    cost_decode_init(spec, 16, &decode, &error);
    g_assert_no_error(error);
    double decode_s = 0;
    for (int step = 0; step < 500; step++) {
        const CostDecodeTime time = cost_decode_step(&decode, 16, 16 * (256.0 + step));
        decode_s += cost_decode_total_s(&time);
    }
    const CostGenerated result = generate(spec, &ask);
    near(result.decode_s, decode_s, 1e-9);
    near(result.prefill_s, cost_prefill_s(&decode, 32, 256) / 2, 1e-9);
    near(result.seconds, result.prefill_s + result.decode_s, 1e-12);
    near(result.tokens_per_s, 128 * 500 / result.seconds, 1e-12);
    g_assert_cmpfloat(result.steps, ==, 500);
    g_assert_cmpfloat(result.mean_batch, ==, 16);
    g_assert_cmpfloat(result.tail_s, ==, 0);
    g_assert_cmpfloat(result.preempted, ==, 0);
}

/* Keys and values: 2 x 8 heads x 128 x 2 bytes x 32 layers of Llama 3 8B; 576 x 2 x 61 of DeepSeek-V3. */
static void test_cache(void)
{
    static const struct {
        const char *model, *precision, *layout;
        double token_bytes, weights_bytes;
    } cases[] = {
        {"llama3-8b", "bf16", "\"data\":8", 32 * 2 * 8 * 128.0, 2 * 8030261248.0},
        {"llama3-8b", "bf16", "\"tensor\":4,\"data\":2", 32 * 2 * 2 * 128.0, 2 * 8030261248.0 / 4},
        {"llama3-8b", "fp8", "\"data\":8", 32 * 2 * 8 * 128.0, 8030261248.0 + 2 * 128256 * 4096.0},
        {"deepseek-v3", "fp8", "\"data\":8,\"expert\":8", 61 * 576.0, 0},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree Spec *spec =
            take(cases[i].model, cases[i].precision, cases[i].layout, "\"b300-sxm-288gb\"");
        GError *error = NULL;
        CostDecode decode;
        cost_decode_init(spec, 8, &decode, &error);
        g_assert_no_error(error);
        near(decode.token_bytes, cases[i].token_bytes, 1e-9); /* 8 bits */
        if (cases[i].weights_bytes > 0)
            near(decode.weights_bytes, cases[i].weights_bytes, 2e-3);
        near(cost_decode_capacity_tokens(&decode, 8), decode.cache_bytes / decode.token_bytes, 1e-9);
    }
}

/* A tail where lengths differ; more at once never writes fewer tokens; sharing a prompt reads it once. */
static void test_batches(void)
{
    g_autofree Spec *spec = take("llama3-8b", "bf16", "\"data\":8", H100);
    double before = 0;
    for (int most = 1; most <= 256; most *= 4) {
        CostGenerateAsk ask = asked(2048, 1, 400, 0.7);
        ask.most_sequences = most;
        const CostGenerated result = generate(spec, &ask);
        g_assert_cmpfloat(result.tokens_per_s, >, before);
        g_assert_cmpfloat(result.most_batch, ==, most);
        before = result.tokens_per_s;
    }
    const CostGenerateAsk even = asked(256, 1, 400, 0), wide = asked(256, 1, 400, 0.9),
                          apart = asked(2048, 1, 400, 0), shared = asked(256, 8, 400, 0);
    g_assert_cmpfloat(generate(spec, &even).tail_s, ==, 0);
    g_assert_cmpfloat(generate(spec, &wide).tail_s, >, 0);
    g_assert_cmpfloat(generate(spec, &wide).seconds, >, generate(spec, &even).seconds);
    near(generate(spec, &shared).prefill_s, generate(spec, &apart).prefill_s / 8, 1e-9);
}

/* A cache too small for all: those that reserve wait, the others give way, and every token is written once. */
static void test_room(void)
{
    g_autofree Spec *spec = take("llama3-8b", "bf16", "\"data\":8",
                                 "{\"preset\":\"h100-sxm5-80gb\",\"memory_bytes\":\"22 GiB\"}");
    const CostGenerateAsk ask = asked(2048, 1, 700, 0.8);
    const CostGenerated waits = generate(spec, &ask);
    spec->execution.framework.engine.reserves_longest = false;
    const CostGenerated gives = generate(spec, &ask);
    g_assert_cmpfloat(waits.preempted, ==, 0);
    g_assert_cmpfloat(gives.preempted, >, 0);
    g_assert_cmpfloat(gives.mean_batch, >, waits.mean_batch);
    g_assert_cmpfloat(waits.mean_batch * waits.mean_context, <, waits.capacity_tokens);
    g_assert_cmpfloat(gives.mean_batch * gives.mean_context, <, gives.capacity_tokens);
    g_assert_cmpfloat(gives.tokens, ==, waits.tokens);
}

/* Two answers of 700 tokens behind 256, in a cache of 1,500: after 494 steps it is full, the newer gives way, and goes on with
 * its last 206 where the older has ended. */
static void test_gives_way(void)
{
    g_autofree Spec *spec = take("llama3-8b", "bf16", "\"data\":8", H100);
    const CostGenerateAsk ask = asked(16, 1, 700, 0);
    GError *error = NULL;
    CostDecode decode;
    CostGenerated result;
    spec->execution.framework.engine.reserves_longest = false;
    cost_decode_init(spec, 2, &decode, &error);
    g_assert_no_error(error);
    decode.cache_bytes = 1500 * decode.token_bytes;
    cost_generate(&decode, &ask, &result, &error);
    g_assert_no_error(error);
    g_assert_cmpfloat(result.preempted, ==, 1);
    g_assert_cmpfloat(result.steps, ==, 906);
    near(result.prefill_s / (cost_prefill_s(&decode, 32, 256) / 32 / 256), 2 * 256 + 256 + 494, 1e-9);
}

/* Half of the layers of gpt-oss have a window of 128: they read that much, and keep all or that. */
static void test_windows(void)
{
    CostDecode decode[2];
    for (int kept = 0; kept < 2; kept++) {
        g_autofree Spec *spec = take("gpt-oss-20b", "bf16", "\"data\":8", H100);
        GError *error = NULL;
        spec->execution.framework.engine.keeps_windows = kept;
        cost_decode_init(spec, 8, &decode[kept], &error);
        g_assert_no_error(error);
        const double read_s = cost_decode_step(&decode[kept], 8, 80000).part_s[COST_DECODE_ATTENTION] -
                              cost_decode_step(&decode[kept], 8, 40000).part_s[COST_DECODE_ATTENTION];
        near(read_s, 12 * 8 * 64 * 2 * 40000.0 / (989.4e12 / 4096 * 11),
             1e-3);                     /* in 8 bits; windows read no more */
        decode[kept].shape.spec = NULL; /* goes with `spec` */
    }
    near(decode[1].token_bytes, 2 * decode[0].token_bytes, 1e-12);
    near(decode[0].sequence_bytes, 128 * decode[0].token_bytes, 1e-12);
    g_assert_cmpfloat(decode[1].sequence_bytes, ==, 0);
    near(decode[1].read_bytes, decode[0].read_bytes, 1e-12);
}

/* The host takes its time for a step and for each sequence of it. */
static void test_host(void)
{
    CostDecodeTime time[2];
    for (int slow = 0; slow < 2; slow++) {
        g_autofree Spec *spec = take("llama3-8b", "bf16", "\"data\":8", H100);
        GError *error = NULL;
        CostDecode decode;
        spec->execution.framework.engine.sequence_host_s = slow ? 13e-6 : 0;
        spec->execution.framework.engine.step_host_s = slow ? 2e-3 : 1e-3;
        cost_decode_init(spec, 64, &decode, &error);
        g_assert_no_error(error);
        time[slow] = cost_decode_step(&decode, 50, 5000);
    }
    near(time[1].part_s[COST_DECODE_HOST] - time[0].part_s[COST_DECODE_HOST], 1e-3 + 50 * 13e-6, 1e-9);
    near(time[1].part_s[COST_DECODE_PRODUCTS], time[0].part_s[COST_DECODE_PRODUCTS], 1e-15);
}

/* A host half as fast takes twice what the recipe says of steps and sequences; with launches alone, twice of these. */
static void test_slow_host(void)
{
    CostDecodeTime time[4];
    CostDecode decode;
    for (int way = 0; way < 4; way++) {
        g_autofree Spec *spec = take("llama3-8b", "bf16", "\"data\":8", H100);
        GError *error = NULL;
        spec->cluster.host.launch_frac = way % 2 == 0 ? 1 : 0.5;
        spec->execution.framework.engine.captures_graphs = way < 2;
        spec->execution.framework.engine.sequence_host_s = 3e-6;
        spec->execution.framework.engine.step_host_s = 2e-3;
        spec->execution.framework.host.kernel_host_s = 1e-3;
        cost_decode_init(spec, 64, &decode, &error);
        g_assert_no_error(error);
        time[way] = cost_decode_step(&decode, 50, 5000);
    }
    near(time[1].part_s[COST_DECODE_HOST] - time[0].part_s[COST_DECODE_HOST], 2e-3 + 50 * 3e-6, 1e-9);
    near(cost_decode_total_s(&time[3]), 2 * cost_decode_total_s(&time[2]), 1e-9);
}

/* Without captured graphs a step takes what the GPU does or what the host launches, whichever is longer. */
static void test_eager(void)
{
    CostDecodeTime time[3];
    CostDecode decode;
    for (int way = 0; way < 3; way++) {
        g_autofree Spec *spec = take("llama3-8b", "bf16", "\"data\":8", H100);
        GError *error = NULL;
        spec->execution.framework.engine.captures_graphs = way == 0;
        spec->execution.framework.engine.sequence_host_s = 0;
        spec->execution.framework.engine.step_host_s = 2e-3;
        spec->execution.framework.host.kernel_host_s = way == 2 ? 1e-3 : 1e-9;
        cost_decode_init(spec, 64, &decode, &error);
        g_assert_no_error(error);
        time[way] = cost_decode_step(&decode, 50, 5000);
    }
    /* 32 layers of two norms, four products, a rotation, attention, an activation; the head and its draw */
    g_assert_cmpfloat(time[0].kernels, ==, 32 * 9 + 2);
    near(cost_decode_total_s(&time[1]), cost_decode_total_s(&time[0]), 1e-15);
    near(cost_decode_total_s(&time[2]), (32 * 9 + 2) * 1e-3 + 2e-3, 1e-9);
}

/* Experts meet the rows of the step: what a micro-batch of training would have does not matter, and where rows are few the busiest
 * rank has more of the mean. */
static void test_loads(void)
{
    CostDecode decode[2];
    for (int other = 0; other < 2; other++) {
        g_autofree Spec *spec = take("qwen3-30b-a3b", "bf16", "\"expert\":8,\"data\":8", H100);
        GError *error = NULL;
        spec->training.router.distribution = SPEC_ROUTER_ZIPF;
        spec->training.router.exponent = 0.1;
        spec->training.micro_batch = other ? 64 : 1;
        cost_decode_init(spec, 64, &decode[other], &error);
        g_assert_no_error(error);
        const CostPlacement placement = {.experts = 128, .ranks = 8, .top_k = 8};
        const double tokens = decode[other].loads.tokens[1];
        near(decode[other].loads.load[1],
             cost_moe_load_factor(&spec->training.router, &placement, 8 * tokens), 1e-12);
    }
    g_assert_cmpfloat(decode[0].loads.tokens[0], ==, 8);
    g_assert_cmpfloat(decode[0].loads.load[0], >, decode[0].loads.load[COST_DECODE_LOADS - 1] + 0.05);
    for (int i = 0; i < decode[0].grid; i++)
        near(cost_decode_total_s(&decode[1].at[i]), cost_decode_total_s(&decode[0].at[i]), 1e-15);
}

/* Software whose attention writes its scores reads prompts more slowly, long ones most. */
static void test_unfused(void)
{
    double more[2];
    for (int longer = 0; longer < 2; longer++) {
        double seconds[2];
        for (int unfused = 0; unfused < 2; unfused++) {
            g_autofree Spec *spec = take("llama3-8b", "bf16", "\"data\":8", H100);
            GError *error = NULL;
            CostDecode decode;
            spec->execution.attention = unfused ? SPEC_ATTENTION_UNFUSED : SPEC_ATTENTION_FLASH2;
            cost_decode_init(spec, 64, &decode, &error);
            g_assert_no_error(error);
            seconds[unfused] = cost_prefill_s(&decode, 8, longer ? 4096 : 1024);
        }
        more[longer] = seconds[1] / seconds[0];
    }
    g_assert_cmpfloat(more[0], >, 1);
    g_assert_cmpfloat(more[1], >, more[0]);
}

/* Five sequences in a graph of eight: products of eight, keys and values of their own; eight as without graphs. */
static void test_padded(void)
{
    CostDecode decode[2];
    CostDecodeTime five[2], eight[2];
    for (int pads = 0; pads < 2; pads++) {
        g_autofree Spec *spec = take("llama3-8b", "bf16", "\"data\":8", H100);
        GError *error = NULL;
        spec->execution.framework.engine.pads_batches = pads;
        spec->execution.framework.engine.sequence_host_s = 0;
        cost_decode_init(spec, 9, &decode[pads], &error);
        g_assert_no_error(error);
        five[pads] = cost_decode_step(&decode[pads], 5, 5000);
        eight[pads] = cost_decode_step(&decode[pads], 8, 5000);
    }
    for (int part = 0; part < COST_DECODE_PART_COUNT; part++) {
        if (part == COST_DECODE_COMM)
            continue; /* one rank */
        near(eight[1].part_s[part], eight[0].part_s[part], 1e-12);
        near(five[1].part_s[part], eight[0].part_s[part], 1e-12);
    }
    g_assert_cmpfloat(five[0].part_s[COST_DECODE_SMALL], <, five[1].part_s[COST_DECODE_SMALL]);
    g_assert_cmpfloat(decode[1].batch[decode[1].grid - 1], >=, 16);
}

static void test_better(void)
{
    static const char *const machines[][2] = {
        {H100, "{\"preset\":\"h100-sxm5-80gb\",\"memory_bytes_per_s\":4e12}"},
        {H100, "{\"preset\":\"h100-sxm5-80gb\",\"memory_bytes\":\"120 GiB\"}"},
        {H100, "{\"preset\":\"h100-sxm5-80gb\",\"scale_up_bytes_per_s\":9e11}"},
        {"\"a100-sxm4-80gb\"", H100},
    };
    static const char *const models[][2] = {{"llama3-8b", "\"tensor\":2,\"data\":4"},
                                            {"qwen3-30b-a3b", "\"expert\":8,\"data\":8"}};
    for (gsize i = 0; i < G_N_ELEMENTS(machines); i++)
        for (gsize k = 0; k < G_N_ELEMENTS(models); k++) {
            g_autofree Spec *slow = take(models[k][0], "bf16", models[k][1], machines[i][0]);
            g_autofree Spec *fast = take(models[k][0], "bf16", models[k][1], machines[i][1]);
            const CostGenerateAsk ask = asked(2048, 2, 600, 0.8);
            g_assert_cmpfloat(generate(fast, &ask).seconds, <=, 1.005 * generate(slow, &ask).seconds);
        }
}

/* Of 128 experts with 8 a token, one token meets 8 and many meet all: the step's products grow with what is met. */
static void test_experts(void)
{
    g_autofree Spec *spec = take("qwen3-30b-a3b", "bf16", "\"data\":8", H100);
    GError *error = NULL;
    CostDecode decode;
    cost_decode_init(spec, 512, &decode, &error);
    g_assert_no_error(error);
    const CostDecodeTime one = cost_decode_step(&decode, 1, 100),
                         many = cost_decode_step(&decode, 256, 25600);
    const double experts = 128 * 3 * 2048 * 768.0 * 2 * 48 / 3.35e12; /* all of them read once [s] */
    g_assert_cmpfloat(one.part_s[COST_DECODE_PRODUCTS], <, experts);
    g_assert_cmpfloat(many.part_s[COST_DECODE_PRODUCTS], >, experts);
    g_assert_cmpfloat(many.part_s[COST_DECODE_ATTENTION], >, one.part_s[COST_DECODE_ATTENTION]);
}

static void test_refused(void)
{
    GError *error = NULL;
    CostDecode decode;
    CostGenerated result;
    g_autofree Spec *large = take("llama3-70b", "bf16", "\"data\":8", H100);
    g_assert_false(cost_decode_init(large, 8, &decode, &error));
    g_assert_nonnull(strstr(error->message, "leave no room"));
    g_clear_error(&error);
    g_autofree Spec *both_ways = take("bert-large", "bf16", "\"data\":8", H100);
    g_assert_false(cost_decode_init(both_ways, 8, &decode, &error));
    g_assert_nonnull(strstr(error->message, "give a causal one"));
    g_clear_error(&error);
    g_autofree Spec *context = take("llama3-8b", "bf16", "\"context\":2,\"data\":4", H100);
    g_assert_false(cost_decode_init(context, 8, &decode, &error));
    g_assert_nonnull(strstr(error->message, "parallel.context"));
    g_clear_error(&error);
    g_autofree Spec *spec = take("llama3-8b", "bf16", "\"data\":8", H100);
    cost_decode_init(spec, 8, &decode, &error);
    CostGenerateAsk ask = asked(8, 1, 9000, 0);
    g_assert_false(cost_generate(&decode, &ask, &result, &error));
    g_assert_nonnull(strstr(error->message, "8192 positions"));
    g_clear_error(&error);
    spec->model.max_positions = 0;
    ask = asked(8, 1, 5e6, 0);
    g_assert_false(cost_generate(&decode, &ask, &result, &error));
    g_assert_nonnull(strstr(error->message, "caches of a GPU hold"));
    g_clear_error(&error);
}

static CostDecodeTime largest_step(const Spec *spec, CostDecode *ret_decode)
{
    GError *error = NULL;
    cost_decode_init(spec, 64, ret_decode, &error);
    g_assert_no_error(error);
    return ret_decode->at[ret_decode->grid - 1];
}

/* Mixtral on one H100 in 16 bits: two experts of eight a token, 3 x 4,096 x 14,336 weights each; what each share of a measured
 * kernel does, alone. An entry for other GPUs or another format changes nothing. */
static void test_measured_experts(void)
{
    g_autofree Spec *spec = take("mixtral-8x7b", "bf16", "\"data\":8", H100);
    spec->training.router.distribution = SPEC_ROUTER_UNIFORM; /* the closed form below */
    SpecExpertKernels *experts = &spec->execution.framework.engine.experts;
    spec->cluster.accelerator.memory_bytes = 192e9;
    CostDecode decode;
    experts->count = 0;
    const CostDecodeTime grouped = largest_step(spec, &decode);
    SpecExpertKernel *kernel = &experts->kernel[0];
    *kernel = (SpecExpertKernel){SPEC_EXPERTS_16BIT, spec->cluster.accelerator.generation, 1e-4, 1, 1, 1};
    experts->count = 1;
    const CostDecodeTime base = largest_step(spec, &decode);
    const double batch = decode.batch[decode.grid - 1], met = 8 * (1 - pow(0.75, batch)),
                 rows = 2 * batch * decode.shape.expert_load,
                 rate = decode.shape.accelerator.memory_bytes_per_s,
                 peak = decode.shape.accelerator.peak_flops_per_s[SPEC_BF16],
                 read_s = 2 * 3 * 4096.0 * 14336 / rate,
                 multiply_s = 2 * 3 * 4096.0 * 14336 * (rows / met + 64) / peak;
    kernel->memory_frac = kernel->flops_frac = 0.5;
    near(largest_step(spec, &decode).part_s[COST_DECODE_PRODUCTS] - base.part_s[COST_DECODE_PRODUCTS],
         32 * met * pow(pow(read_s, 4) + pow(multiply_s, 4), 0.25), 1e-9);
    kernel->rows_frac = 0.25;
    kernel->start_s = 3e-4;
    near(largest_step(spec, &decode).part_s[COST_DECODE_SMALL] - base.part_s[COST_DECODE_SMALL],
         32 * (2e-4 + (4 - 1) * 4 * 4096 * (rows + batch) / rate), 1e-9);
    kernel->format = SPEC_EXPERTS_FP8;
    near(largest_step(spec, &decode).part_s[COST_DECODE_PRODUCTS], grouped.part_s[COST_DECODE_PRODUCTS],
         1e-15);
    kernel->format = SPEC_EXPERTS_16BIT;
    kernel->generation = *spec_generation("blackwell");
    near(largest_step(spec, &decode).part_s[COST_DECODE_PRODUCTS], grouped.part_s[COST_DECODE_PRODUCTS],
         1e-15);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/generate/closed-form", test_closed_form);
    g_test_add_func("/generate/cache", test_cache);
    g_test_add_func("/generate/batches", test_batches);
    g_test_add_func("/generate/room", test_room);
    g_test_add_func("/generate/gives-way", test_gives_way);
    g_test_add_func("/generate/windows", test_windows);
    g_test_add_func("/generate/host", test_host);
    g_test_add_func("/generate/eager", test_eager);
    g_test_add_func("/generate/slow-host", test_slow_host);
    g_test_add_func("/generate/loads", test_loads);
    g_test_add_func("/generate/unfused", test_unfused);
    g_test_add_func("/generate/padded", test_padded);
    g_test_add_func("/generate/better", test_better);
    g_test_add_func("/generate/experts", test_experts);
    g_test_add_func("/generate/measured-experts", test_measured_experts);
    g_test_add_func("/generate/refused", test_refused);
    return g_test_run();
}
