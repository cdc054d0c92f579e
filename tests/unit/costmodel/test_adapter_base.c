/* unit/costmodel/test_adapter_base.c - what PEFT's models hold beside adapters: joint linear layers, weights of GPTQ, what
 * torch.autocast still casts, gradients that frozen norms have not. */
#include <string.h>

#include "costmodel/activations.h"
#include "costmodel/adapter.h"
#include "costmodel/states.h"
#include "report/report.h"
#include "spec/load.h"

static Spec *load_on(const char *gpu, const char *training, const char *framework)
{
    GError *error = NULL;
    g_autofree char *text = g_strdup_printf(
        "{\"model\":\"llama2-7b\",\"cluster\":{\"accelerator\":\"%s\",\"gpus_per_node\":1,"
        "\"nodes\":1},\"training\":{\"sequence_length\":1024,\"global_batch\":8,%s%s},"
        "\"execution\":{\"framework\":\"%s\",\"attention\":\"flash2\"}}",
        gpu, strstr(training, "micro_batch") != NULL ? "" : "\"micro_batch\":1,", training, framework);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", &error);
    g_assert_no_error(error);
    Spec *spec = g_new0(Spec, 1);
    spec_load_json(orr_json_root(doc), "test", NULL, false, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return spec;
}

static Spec *load(const char *training, const char *framework)
{
    return load_on("a100-sxm4-80gb", training, framework);
}

#define LORA(targets) "\"task\":\"lora\",\"adapter\":{\"rank\":16,\"targets\":" targets "}"
#define QLORA(base)   "\"task\":\"qlora\",\"adapter\":{\"rank\":16,\"base_dtype\":\"" base "\"}"

/* Bytes and launches of the ops of a layer's pass, or of the head's, that have this name. */
typedef struct Sum {
    double bytes;
    int launches;
} Sum;

static Sum sum_of(const Spec *spec, bool head, CostPass pass, const char *name)
{
    CostShape shape;
    g_autofree CostGraph *graph = g_new(CostGraph, 1);
    Sum sum = {0};
    cost_shape_init(&shape, spec);
    if (head)
        cost_graph(&shape, cost_ops_head, graph);
    else
        cost_graph_layer(&shape, 3, graph);
    const CostOps *ops = &graph->pass[pass];
    for (int i = 0; i < ops->count; i++) {
        if (strcmp(ops->op[i].name, name) != 0)
            continue;
        const CostMoved moved = cost_op_moved(&ops->op[i]);
        sum.bytes += moved.read + moved.written;
        sum.launches += ops->op[i].kernels;
    }
    return sum;
}

/* A joint layer has one A; Megatron's fused adapters differ in what is added apart, which PEFT does. */
static void test_joint(void)
{
    g_autofree Spec *joint = load(LORA("[\"c_attn\",\"gate_up_proj\"]"), "transformers-ddp"),
                    *apart = load(LORA("[\"q_proj\",\"k_proj\",\"v_proj\",\"gate_proj\",\"up_proj\"]"),
                                  "transformers-ddp");
    g_assert_cmpfloat(cost_trained_parameters(joint), ==, 32 * 16.0 * (4096 + 3 * 4096 + 4096 + 2 * 11008));
    g_assert_cmpfloat(cost_trained_parameters(apart) - cost_trained_parameters(joint), ==,
                      32 * 16.0 * 3 * 4096);
    g_assert_cmpint(sum_of(joint, false, COST_FORWARD, "adapter a").launches, ==, 2);
    g_assert_cmpint(sum_of(apart, false, COST_FORWARD, "adapter a").launches, ==, 5);
    g_assert_cmpint(sum_of(joint, false, COST_FORWARD, "adapter add").launches, ==, 2);
}

/* Half a byte, a scale and a zero for 128; 16.5 bytes moved for each weight forward, and 2 kept, none backward. */
static void test_int4(void)
{
    const SpecAdapter int4 = {.base_dtype = SPEC_BASE_INT4};
    const double weights = 4 * 4096.0 * 4096 + 3 * 4096.0 * 11008;
    g_assert_cmpfloat(cost_base_bytes(&int4), ==, 0.51953125);
    g_autofree Spec *spec = load(QLORA("int4"), "transformers-deepspeed");
    g_assert_cmpfloat(sum_of(spec, false, COST_FORWARD, "widen weight").bytes +
                          sum_of(spec, false, COST_FORWARD, "mask weight").bytes,
                      ==, 16.5 * weights);
    g_assert_cmpint(sum_of(spec, false, COST_BACKWARD_INPUT, "widen weight").launches, ==, 0);
    CostShape shape;
    g_autofree CostGraph *graph = g_new(CostGraph, 1);
    cost_shape_init(&shape, spec);
    cost_graph_layer(&shape, 3, graph);
    double kept = 0;
    for (int i = 0; i < graph->pass[COST_FORWARD].kept_count; i++)
        if (strcmp(graph->pass[COST_FORWARD].kept[i].name, "widened weight") == 0)
            kept += graph->pass[COST_FORWARD].kept[i].bytes;
    g_assert_cmpfloat(kept, ==, 2 * weights);
}

/* Frozen weights in 16 bits leave torch.autocast nothing to cast; bitsandbytes' models have norms, embedding and head in
 * fp32, and a stream of fp32 with them. */
static void test_autocast(void)
{
    g_autofree Spec *lora = load(LORA("\"attention\""), "transformers-ddp"),
                    *qlora = load(QLORA("nf4"), "transformers-ddp"),
                    *gptq = load(QLORA("int4"), "transformers-ddp");
    g_assert_false(cost_autocasts(lora));
    g_assert_false(cost_autocasts(gptq));
    g_assert_true(cost_autocasts(qlora));
    g_assert_cmpint(sum_of(lora, false, COST_FORWARD, "autocast weight").launches, ==, 0);
    g_assert_cmpint(sum_of(lora, true, COST_FORWARD, "autocast weight").launches, ==, 0);
    g_assert_cmpint(sum_of(qlora, false, COST_FORWARD, "autocast weight").launches, ==, 0);
    g_assert_cmpfloat(sum_of(qlora, true, COST_FORWARD, "autocast weight").bytes, ==, 6 * 4096.0 * 32000);
    g_assert_cmpint(sum_of(qlora, false, COST_FORWARD, "autocast").launches, >, 0);
    g_assert_cmpfloat(cost_frozen_bytes(qlora, COST_PART_HEAD, 0).dense_bytes, ==,
                      4 * (32000.0 * 4096 + 4096));
    g_assert_cmpfloat(cost_frozen_bytes(gptq, COST_PART_HEAD, 0).dense_bytes, ==,
                      2 * (32000.0 * 4096 + 4096));
}

/* Nobody asks for the gradient of a frozen norm's weight: two of 28 launches, 8 of 92 bytes an element, for each of two norms. */
static void test_norms(void)
{
    g_autofree Spec *lora = load(LORA("\"attention\""), "transformers-deepspeed"),
                    *sft = load("\"task\":\"sft\"", "transformers-deepspeed");
    const Sum frozen = sum_of(lora, false, COST_BACKWARD_INPUT, "norm"),
              trained = sum_of(sft, false, COST_BACKWARD_INPUT, "norm");
    g_assert_cmpint(trained.launches - frozen.launches, ==, 2 * 2);
    g_assert_cmpfloat(trained.bytes - frozen.bytes, ==, 2 * 8 * 1024.0 * 4096);
    g_assert_cmpfloat(sum_of(lora, false, COST_FORWARD, "norm").bytes, ==,
                      sum_of(sft, false, COST_FORWARD, "norm").bytes);
}

/* Casts of frozen linears write rows alone: 3 bytes an element on Hopper, where training all writes a transpose, 4. Blocks of
 * 32 once and not twice; 4 bits without the Hadamard transform. */
static void test_casts(void)
{
    static const struct {
        const char *gpu, *precision;
        double each;
        int launches;
    } cases[] = {{"h100-sxm5-80gb", "fp8", 3, 4},
                 {"b200-sxm-180gb", "fp8", 3, 4},
                 {"b200-sxm-180gb", "mxfp8", 2 + 1 + 1.0 / 32, 4},
                 {"b200-sxm-180gb", "nvfp4", 4 + 0.5 + 1.0 / 16, 12}};
    const double elements = 1024.0 * (3 * 4096 + 11008);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *training =
            g_strdup_printf("\"precision\":\"%s\"," LORA("\"attention\""), cases[i].precision);
        g_autofree Spec *spec = load_on(cases[i].gpu, training, "megatron-core");
        const Sum casts = sum_of(spec, false, COST_FORWARD, "cast");
        g_assert_cmpfloat_with_epsilon(casts.bytes, cases[i].each * elements, 1);
        g_assert_cmpint(casts.launches, ==, cases[i].launches);
    }
}

/* The operation fuser: adapters are added in the product; of four casts forward those before the MLP's products ride with
 * norm and activation, backward that of the activation's gradient. */
static void test_fuser(void)
{
    static const char *const fused[] = {"", ",\"fused\":true"};
    Sum casts[2], back[2], adds[2], activation[2];
    for (int i = 0; i < 2; i++) {
        g_autofree char *training = g_strdup_printf(
            "\"precision\":\"fp8\",\"task\":\"lora\",\"adapter\":{\"rank\":16,\"targets\":\"linear_qkv\"%s}",
            fused[i]);
        g_autofree Spec *spec = load_on("h100-sxm5-80gb", training, "megatron-core");
        g_assert_cmpfloat(cost_trained_parameters(spec), ==, 32 * 16.0 * 4 * 4096);
        casts[i] = sum_of(spec, false, COST_FORWARD, "cast");
        back[i] = sum_of(spec, false, COST_BACKWARD_INPUT, "cast");
        adds[i] = sum_of(spec, false, COST_FORWARD, "adapter add");
        activation[i] = sum_of(spec, false, COST_FORWARD, "activation");
    }
    g_assert_cmpfloat(casts[0].bytes - casts[1].bytes, ==, 3 * 1024.0 * (4096 + 11008));
    g_assert_cmpfloat(back[0].bytes - back[1].bytes, ==, 3 * 1024.0 * 2 * 11008);
    g_assert_cmpfloat(activation[0].bytes - activation[1].bytes, ==, 1024.0 * 11008);
    g_assert_cmpint(adds[0].launches, ==, 1);
    g_assert_cmpint(adds[1].launches, ==, 0);
}

/* 1,024 x 32,000 logits. A reference makes its own beside log-softmax, 4 bytes, that waits; orpo's chosen half has a loss more,
 * which is kept and takes its time. */
static void test_preference_logits(void)
{
    static const char *const tasks[] = {"\"task\":\"dpo\",\"reference\":\"cached\"",
                                        "\"task\":\"dpo\",\"reference\":\"model\"", "\"task\":\"orpo\""};
    const double logits = 2 * 1024.0 * 32000;
    CostActivations head[3];
    double loss[3];
    for (int i = 0; i < 3; i++) {
        g_autofree char *training = g_strdup_printf("\"micro_batch\":2,%s", tasks[i]);
        g_autofree Spec *spec = load(training, "transformers-fsdp");
        CostShape shape;
        spec->execution.framework.loss.kernel = SPEC_LOSS_UNFUSED;
        cost_shape_init(&shape, spec);
        head[i] = cost_head_activations(&shape);
        loss[i] = sum_of(spec, true, COST_FORWARD, "loss").bytes;
    }
    g_assert_cmpfloat(head[1].forward_temp_bytes - head[0].forward_temp_bytes, ==, 4 * logits);
    g_assert_cmpfloat(head[1].kept_bytes, ==, head[0].kept_bytes);
    g_assert_cmpfloat(head[2].kept_bytes - head[0].kept_bytes, ==, 2 * logits);
    g_assert_cmpfloat(loss[1], ==, loss[0]);
    g_assert_cmpfloat(loss[2], ==, 1.5 * loss[0]);
}

/* Under DeepSpeed's offloads. States of adapters leave, frozen weights stay; with parameters off the GPU frozen ones leave
 * too, and every pass fetches them as they are stored. Llama 2 7B on a node, rank 16 on all linear layers: 39,976,960 trained
 * weights of 2 bytes, 12 of states, 4 of the host's gradients. */
static void test_offloaded(void)
{
    static const double TRAINED = 39976960, ALL = 6738415616.0;
    static const struct {
        const char *scheme, *zero;
        double weights, optimizer, host; /* bytes of all 8 ranks */
    } cases[] = {{"none", "1", 8 * 2 * (ALL + TRAINED), 12 * TRAINED, 0},
                 {"zero-offload", "1", 8 * 2 * (ALL + TRAINED), 0, 16 * TRAINED},
                 {"zero3-offload", "3", 0, 0, 2 * (ALL + TRAINED) + 16 * TRAINED}};
    double step_ps = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        static const ReportOptions checked = {.check = true};
        GError *error = NULL;
        g_autofree char *text = g_strdup_printf(
            "{\"model\":\"llama2-7b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},\"training\":{"
            "\"sequence_length\":1024,\"global_batch\":8,\"micro_batch\":1," LORA(
                "\"all-linear\"") "},"
                                  "\"parallel\":{\"data\":8,\"zero\":%s},\"offload\":{\"scheme\":\"%s\"},"
                                  "\"execution\":{\"framework\":\"transformers-deepspeed\",\"attention\":"
                                  "\"flash2\"}}",
            cases[i].zero, cases[i].scheme);
        g_autofree Spec *spec = g_new0(Spec, 1);
        OrrArena *arena = orr_arena_new();
        Report report;
        OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", &error);
        g_assert_no_error(error);
        spec_load_json(orr_json_root(doc), "test", NULL, false, spec, NULL, &error);
        g_assert_no_error(error);
        report_run(spec, NULL, &checked, arena, &report, &error);
        g_assert_no_error(error);
        const int64_t *held = report.plan.ranks[0].static_bytes;
        g_assert_cmpfloat_with_epsilon(8 * (double)held[SIM_MEM_WEIGHTS], cases[i].weights, 64);
        g_assert_cmpfloat_with_epsilon(8 * (double)held[SIM_MEM_OPTIMIZER], cases[i].optimizer, 64);
        g_assert_cmpfloat_with_epsilon(8 * (double)held[SIM_MEM_HOST], cases[i].host, 64);
        g_assert_cmpfloat((double)report.step_ps, >, step_ps);
        step_ps = (double)report.step_ps;
        orr_arena_free(arena);
        orr_json_free(doc);
    }
}

static int products(const Spec *spec, CostPass pass)
{
    CostShape shape;
    g_autofree CostGraph *graph = g_new(CostGraph, 1);
    int count = 0;
    cost_shape_init(&shape, spec);
    cost_graph(&shape, cost_ops_head, graph);
    for (int i = 0; i < graph->pass[pass].count; i++)
        count += graph->pass[pass].op[i].kind == COST_OP_GEMM;
    return count;
}

/* Tables that are trained whole: a copy of each, its gradient and moments beside the frozen one; the head's weight gradient is
 * a product again. Without any, the same picoseconds. */
static void test_saved(void)
{
    static const struct {
        const char *tables;
        double count;
        int products;
    } cases[] = {
        {"[]", 0, 0}, {"[\"wte\"]", 1, 0}, {"[\"lm_head\"]", 1, 1}, {"[\"embed_tokens\",\"lm_head\"]", 2, 1}};
    const double table = 32000.0 * 4096, adapters = 32 * 2 * 16 * 8192.0;
    double step_ps = 0, held = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        static const ReportOptions checked = {.check = true};
        GError *error = NULL;
        g_autofree char *training = g_strdup_printf("\"task\":\"lora\",\"adapter\":{\"rank\":16,\"targets\":["
                                                    "\"q_proj\",\"v_proj\"],\"modules_to_save\":%s}",
                                                    cases[i].tables);
        g_autofree Spec *spec = load(training, "transformers-ddp"),
                        *plain = load(LORA("[\"q_proj\",\"v_proj\"]"), "transformers-ddp");
        OrrArena *arena = orr_arena_new();
        Report report, before;
        report_run(spec, NULL, &checked, arena, &report, &error);
        g_assert_no_error(error);
        report_run(plain, NULL, &checked, arena, &before, &error);
        g_assert_no_error(error);
        g_assert_cmpfloat(cost_trained_parameters(spec), ==, adapters + cases[i].count * table);
        g_assert_cmpint(products(spec, COST_BACKWARD_WEIGHT), ==, cases[i].products);
        const int64_t *bytes = report.plan.ranks[0].static_bytes, *less = before.plan.ranks[0].static_bytes;
        g_assert_cmpfloat((double)(bytes[SIM_MEM_WEIGHTS] - less[SIM_MEM_WEIGHTS]), ==,
                          2 * cases[i].count * table);
        g_assert_cmpfloat((double)(bytes[SIM_MEM_OPTIMIZER] - less[SIM_MEM_OPTIMIZER]), ==,
                          4 * cases[i].count * table);
        if (i == 0)
            g_assert_cmpint(report.step_ps, ==, before.step_ps);
        g_assert_cmpfloat((double)report.step_ps, >=, step_ps);
        g_assert_cmpfloat(report.peak_bytes, >=, held);
        step_ps = i == 1 ? 0 : (double)report.step_ps;
        held = report.peak_bytes;
        orr_arena_free(arena);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/adapter-base/joint", test_joint);
    g_test_add_func("/adapter-base/int4", test_int4);
    g_test_add_func("/adapter-base/autocast", test_autocast);
    g_test_add_func("/adapter-base/norms", test_norms);
    g_test_add_func("/adapter-base/casts", test_casts);
    g_test_add_func("/adapter-base/fuser", test_fuser);
    g_test_add_func("/adapter-base/preference-logits", test_preference_logits);
    g_test_add_func("/adapter-base/offloaded", test_offloaded);
    g_test_add_func("/adapter-base/saved", test_saved);
    return g_test_run();
}
