/* unit/costmodel/test_adapter.c - low-rank adapters: weights by hand, FLOPs, tensors that are kept, bytes, what is refused. */
#include <math.h>
#include <string.h>

#include "costmodel/activations.h"
#include "costmodel/adapter.h"
#include "costmodel/flops.h"
#include "costmodel/states.h"
#include "report/report.h"
#include "spec/load.h"
#include "spec/resolve.h"

#define LLAMA7B  "\"model\":\"llama2-7b\""
#define LLAMA70B "\"model\":\"llama2-70b\""
#define QWEN30B  "\"model\":\"qwen3-30b-a3b\""
#define DEEPSEEK "\"model\":\"deepseek-v2-lite\""

static void load(const char *model, const char *training, const char *more, Spec *spec)
{
    GError *error = NULL;
    g_autofree char *text = g_strdup_printf(
        "{%s,\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},\"training\":{\"sequence_length\":1024,"
        "\"global_batch\":16,\"micro_batch\":%d,%s}%s}",
        model, strstr(training, "po\"") != NULL ? 2 : 1, training, more);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "test", NULL, false, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
}

static Report run(const Spec *spec, OrrArena *arena)
{
    static const ReportOptions checked = {.check = true};
    GError *error = NULL;
    Report report;
    report_run(spec, NULL, &checked, arena, &report, &error);
    g_assert_no_error(error);
    return report;
}

#define LORA(rank, targets) "\"task\":\"lora\",\"adapter\":{\"rank\":" rank ",\"targets\":" targets "}"

/* r (n + m) of each linear layer. */
static void test_parameters(void)
{
    static const struct {
        const char *model, *training;
        double want;
    } cases[] = {
        {LLAMA7B, LORA("16", "\"all-linear\""), 39976960},
        {LLAMA7B, LORA("16", "\"attention\""), 32 * 4 * 16 * 8192.0},
        {LLAMA7B, LORA("8", "[\"q_proj\",\"v_proj\"]"), 32 * 2 * 8 * 8192.0},
        {LLAMA7B, LORA("4", "\"mlp\""), 32 * 3 * 4 * (4096 + 11008.0)},
        {LLAMA70B, LORA("16", "\"attention\""), 80 * 16 * (8192 + 8192 + 2 * (8192 + 1024) + 8192 + 8192.0)},
        /* MLPerf's: one adapter for queries, keys and values */
        {LLAMA70B, "\"task\":\"lora\",\"adapter\":{\"rank\":16,\"fused\":true}", 44564480},
        {LLAMA7B, "\"task\":\"sft\"", 6738415616.0},
        /* 128 experts with an adapter each; or one for all of a rank */
        {QWEN30B, LORA("8", "\"all-linear\""),
         48 * 8 * (2 * (2048 + 4096) + 2 * (2048 + 512.0) + 128 * 3 * (2048 + 768.0))},
        {QWEN30B,
         "\"task\":\"lora\",\"adapter\":{\"rank\":8,\"targets\":\"mlp\",\"share_expert_adapters\":true}",
         48 * 8 * 3 * (2048 + 768.0)},
        /* latent attention: q, kv_a, kv_b, o; a dense layer, then a shared MLP and 64 experts */
        {DEEPSEEK, LORA("4", "\"attention\""),
         27 * 4 * (2048 + 3072.0 + 2048 + 576 + 512 + 4096 + 2048 + 2048)},
        {DEEPSEEK, LORA("4", "\"mlp\""),
         4 * 3 * (2048 + 10944.0 + 26 * (2048 + 2816.0) + 26 * 64 * (2048 + 1408.0))},
        {DEEPSEEK, LORA("4", "[\"kv_a_proj_with_mqa\",\"kv_b_proj\"]"), 27 * 4 * (2048 + 576 + 512 + 4096.0)},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        load(cases[i].model, cases[i].training, "", spec);
        g_assert_cmpfloat(cost_trained_parameters(spec), ==, cases[i].want);
    }
}

/* Tensor ranks: all of A and a part of B where outputs are cut, a part of A and all of B where inputs are. */
static void test_cut(void)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    load(LLAMA7B, LORA("16", "\"all-linear\""), ",\"parallel\":{\"tensor\":4}", spec);
    const CostParams params = cost_trained_params(spec, COST_PART_LAYER, 0);
    const double qkv = 3 * 16 * (4096 + 4096 / 4.0), out = 16 * (4096 / 4.0 + 4096),
                 in = 2 * 16 * (4096 + 11008 / 4.0), down = 16 * (11008 / 4.0 + 4096);
    g_assert_cmpfloat(cost_rank_weights(&params, &spec->parallel).dense, ==, qkv + out + in + down);
    g_assert_cmpint(params.matrices, ==, 14);
    g_assert_cmpint(params.vectors, ==, 0);
}

static double pass_flops(const CostOps *ops)
{
    double sum = 0;
    for (int i = 0; i < ops->count; i++)
        sum += ops->op[i].kind == COST_OP_GEMM ? ops->op[i].model_flops : 0;
    return sum;
}

/* Products of a layer: 2 P T forward, 2 P T for the input's gradient, none for the weights'; adapters 2 T each in all three. */
static void test_flops(void)
{
    g_autofree Spec *all = g_new0(Spec, 1), *lora = g_new0(Spec, 1);
    CostShape shape;
    CostGraph *graph = g_new(CostGraph, 2);
    load(LLAMA7B, "\"task\":\"sft\"", "", all);
    load(LLAMA7B, LORA("16", "\"all-linear\""), "", lora);
    cost_shape_init(&shape, all);
    cost_graph_layer(&shape, 3, &graph[0]);
    cost_shape_init(&shape, lora);
    cost_graph_layer(&shape, 3, &graph[1]);
    const double adapters = 2 * 1024.0 * 1249280,
                 linear = 2 * 1024.0 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 11008);
    g_assert_cmpfloat(pass_flops(&graph[0].pass[COST_BACKWARD_WEIGHT]), ==, linear);
    for (int pass = COST_FORWARD; pass <= COST_BACKWARD_INPUT; pass++)
        g_assert_cmpfloat_with_epsilon(pass_flops(&graph[1].pass[pass]) - pass_flops(&graph[0].pass[pass]),
                                       adapters, 1);
    g_assert_cmpfloat(pass_flops(&graph[1].pass[COST_BACKWARD_WEIGHT]), ==, adapters);
    cost_graph(&shape, cost_ops_head, &graph[1]);
    g_assert_cmpint(graph[1].pass[COST_BACKWARD_WEIGHT].count, ==, 0);
    g_assert_cmpfloat(pass_flops(&graph[1].pass[COST_BACKWARD_INPUT]), ==, 2 * 1024.0 * 4096 * 32000);
    g_free(graph);
}

/* Experts: 2 T k r (n + m) of each projection in all three passes, whether adapters are shared or not; expert ranks divide what is
 * trained; frozen experts are widened. */
static void test_experts(void)
{
    static const char *const share[] = {"", ",\"share_expert_adapters\":true"};
    const double adapters = 2 * 1024.0 * 8 * 16 * 3 * (2048 + 768);
    CostGraph *graph = g_new(CostGraph, 2);
    for (int i = 0; i < 2; i++) {
        g_autofree Spec *frozen = g_new0(Spec, 1), *lora = g_new0(Spec, 1);
        g_autofree char *training = g_strdup_printf(
            "\"task\":\"qlora\",\"adapter\":{\"rank\":16,\"targets\":\"mlp\",\"base_dtype\":\"nf4\"%s}",
            share[i]);
        CostShape shape;
        load(QWEN30B, LORA("16", "\"attention\""), ",\"parallel\":{\"expert\":4,\"data\":8}", frozen);
        load(QWEN30B, training, ",\"parallel\":{\"expert\":4,\"data\":8}", lora);
        const CostParams params = cost_trained_params(lora, COST_PART_LAYER, 0);
        g_assert_cmpfloat(cost_rank_weights(&params, &lora->parallel).expert, ==,
                          (i == 0 ? 32 : 1) * 16 * 3 * (2048 + 768.0));
        cost_shape_init(&shape, frozen);
        cost_graph_layer(&shape, 3, &graph[0]);
        cost_shape_init(&shape, lora);
        cost_graph_layer(&shape, 3, &graph[1]);
        double weights = 0, widened = 0;
        for (int k = 0; k < graph[1].pass[COST_BACKWARD_WEIGHT].count; k++)
            weights += graph[1].pass[COST_BACKWARD_WEIGHT].op[k].model_flops;
        for (int k = 0; k < graph[1].pass[COST_FORWARD].count; k++) {
            const CostOp *op = &graph[1].pass[COST_FORWARD].op[k];
            widened += strcmp(op->name, "widen weight") == 0 && op->module == COST_MODULE_MOE
                           ? op->u.memory.elements
                           : 0;
        }
        g_assert_cmpfloat_with_epsilon(weights, adapters, 1);
        g_assert_cmpfloat(widened, ==, 32 * 3 * 2048.0 * 768);
    }
    g_free(graph);
}

static double kept(const char *training, const char *name)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autofree CostGraph *graph = g_new(CostGraph, 1);
    CostShape shape;
    double bytes = 0;
    load(LLAMA7B, training, ",\"execution\":{\"attention\":\"flash2\"}", spec);
    cost_shape_init(&shape, spec);
    cost_graph_layer(&shape, 3, graph);
    const CostOps *forward = &graph->pass[COST_FORWARD];
    for (int i = 0; i < forward->kept_count; i++)
        bytes += strcmp(forward->kept[i].name, name) == 0 ? forward->kept[i].bytes : 0;
    return bytes;
}

/* Inputs of frozen products are not kept unless an adapter reads them. */
static void test_kept(void)
{
    const double wide = 2 * 1024.0 * 11008, narrow = 2 * 1024.0 * 4096;
    g_assert_cmpfloat(kept("\"task\":\"sft\"", "mlp output input"), ==, wide);
    g_assert_cmpfloat(kept(LORA("16", "\"attention\""), "mlp output input"), ==, 0);
    g_assert_cmpfloat(kept(LORA("16", "\"attention\""), "mlp input"), ==, 0);
    g_assert_cmpfloat(kept(LORA("16", "\"mlp\""), "mlp input"), ==, narrow);
    g_assert_cmpfloat(kept(LORA("16", "[\"down_proj\"]"), "mlp output input"), ==, wide);
    g_assert_cmpfloat(kept(LORA("16", "\"mlp\""), "attention output"), ==, narrow); /* the core's own */
    g_assert_cmpfloat(kept(LORA("16", "\"attention\""), "adapter columns"), ==, 2 * 1024.0 * 4 * 16);
    g_assert_cmpfloat(kept(LORA("16", "\"attention\""), "adapter inputs"), ==, 0);
    /* dropout: three more masks and two more copies behind the norm, a mask of the output projection's */
    g_assert_cmpfloat(
        kept("\"task\":\"lora\",\"adapter\":{\"rank\":16,\"dropout_frac\":0.1}", "adapter inputs"), ==,
        (2 * 2 + 3 + 1) * 1024.0 * 4096);
}

static void test_bytes(void)
{
    const SpecAdapter nf4 = {.base_dtype = SPEC_BASE_NF4, .double_quantised = true};
    const SpecAdapter plain = {.base_dtype = SPEC_BASE_NF4};
    g_assert_cmpfloat(cost_base_bytes(&nf4), ==, 0.5 + 0.127 / 8 + (1.0 / 64 + 1.0 / 4096 - 0.127 / 8));
    g_assert_cmpfloat(cost_base_bytes(&plain), ==, 0.5625);
    g_autofree Spec *spec = g_new0(Spec, 1);
    load(LLAMA7B, "\"task\":\"qlora\",\"adapter\":{\"rank\":16,\"base_dtype\":\"int8\"}",
         ",\"parallel\":{\"tensor\":2}", spec);
    const CostFrozen layer = cost_frozen_bytes(spec, COST_PART_LAYER, 0),
                     head = cost_frozen_bytes(spec, COST_PART_HEAD, 0);
    g_assert_cmpfloat(layer.dense_bytes, ==, (4 * 4096.0 * 4096 + 3 * 4096.0 * 11008) / 2 + 2 * 2 * 4096);
    g_assert_cmpfloat(head.dense_bytes, ==, 2 * 32000.0 * 4096 / 2 + 2 * 4096);
}

/* The paper's claim: 65 billion parameters on one GPU of 48 GB, quantised; not in 16 bits. */
static void test_one_gpu(void)
{
    static const char one[] =
        "{\"model\":\"llama-65b\",\"cluster\":{\"accelerator\":\"rtx-pro-6000-pcie\",\"gpus_per_node\":1,"
        "\"nodes\":1},\"training\":{\"sequence_length\":512,\"global_batch\":16,\"micro_batch\":1,"
        "\"recompute\":\"full\",%s},\"execution\":{\"framework\":\"transformers-ddp\"}}";
    static const struct {
        const char *training;
        bool fits;
    } cases[] = {
        {"\"task\":\"qlora\",\"adapter\":{\"rank\":64,\"targets\":\"all-linear\",\"base_dtype\":\"nf4\"}",
         true},
        {"\"task\":\"lora\",\"adapter\":{\"rank\":64,\"targets\":\"all-linear\"}", false}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_autofree char *training = g_strdup_printf("%s", cases[i].training);
        g_autoptr(GString) text = g_string_new(one);
        OrrArena *arena = orr_arena_new();
        GError *error = NULL;
        g_string_replace(text, "%s", training, 1);
        OrrJsonDoc *doc = orr_json_parse(text->str, text->len, "test", &error);
        static const char *const sets[] = {"cluster.accelerator.memory_bytes=48e9", NULL};
        spec_load_json(orr_json_root(doc), "test", sets, false, spec, NULL, &error);
        g_assert_no_error(error);
        g_assert_cmpint(run(spec, arena).fits, ==, cases[i].fits);
        orr_json_free(doc);
        orr_arena_free(arena);
    }
}

/* Sharded, frozen weights are gathered as they are stored and never reduced; unsharded they take all ranks' memory alike. */
static void test_sharded(void)
{
    OrrArena *arena = orr_arena_new();
    g_autofree Spec *spec = g_new0(Spec, 1), *quantised = g_new0(Spec, 1), *whole = g_new0(Spec, 1);
    load(LLAMA7B, LORA("16", "\"attention\""),
         ",\"parallel\":{\"data\":8,\"zero\":3},\"execution\":{\"framework\":\"pytorch-fsdp2\"}", spec);
    load(LLAMA7B, "\"task\":\"qlora\",\"adapter\":{\"rank\":16,\"base_dtype\":\"nf4\"}",
         ",\"parallel\":{\"data\":8,\"zero\":3},\"execution\":{\"framework\":\"pytorch-fsdp2\"}", quantised);
    load(LLAMA7B, LORA("16", "\"attention\""),
         ",\"parallel\":{\"data\":8,\"zero\":0},\"execution\":{\"framework\":\"pytorch-ddp\"}", whole);
    const Report fsdp = run(spec, arena), qlora = run(quantised, arena), ddp = run(whole, arena);
    const double base = 2 * 6738415616.0, trained = 16777216;
    g_assert_cmpfloat_with_epsilon(ddp.stages[0].weights_bytes, base + 2 * trained, 1e6);
    g_assert_cmpfloat(ddp.stages[0].gradients_bytes, <=, 4 * 2 * trained);
    g_assert_cmpfloat(fsdp.stages[0].weights_bytes, <, ddp.stages[0].weights_bytes / 4);
    g_assert_cmpint(sim_work_duration_ps(&qlora.plan.stages[0].segments[5].param_gather), <,
                    sim_work_duration_ps(&fsdp.plan.stages[0].segments[5].param_gather) / 2);
    g_assert_cmpint(sim_work_duration_ps(&fsdp.plan.stages[0].segments[5].grad_reduce), <,
                    sim_work_duration_ps(&fsdp.plan.stages[0].segments[5].param_gather) / 4);
    g_assert_cmpint(sim_work_duration_ps(&fsdp.plan.stages[0].segments[0].grad_reduce), ==, 0);
    orr_arena_free(arena);
}

/* A larger rank, more targets, dropout: never faster, never smaller. Frozen: faster and smaller than training all. */
static void test_orders(void)
{
    static const char *const more[] = {
        LORA("8", "[\"q_proj\"]"),
        LORA("8", "\"attention\""),
        LORA("64", "\"attention\""),
        LORA("64", "\"all-linear\""),
        "\"task\":\"lora\",\"adapter\":{\"rank\":64,\"targets\":\"all-linear\",\"dropout_frac\":0.1}",
        "\"task\":\"sft\""};
    static const char *const layouts[] = {
        ",\"parallel\":{\"tensor\":2,\"data\":4,\"zero\":1}",
        ",\"parallel\":{\"tensor\":2,\"pipeline\":2,\"sequence_parallel\":true}"};
    for (gsize k = 0; k < G_N_ELEMENTS(layouts); k++) {
        int64_t before_ps = 0;
        double before_bytes = 0;
        for (gsize i = 0; i < G_N_ELEMENTS(more); i++) {
            g_autofree Spec *spec = g_new0(Spec, 1);
            OrrArena *arena = orr_arena_new();
            load(LLAMA7B, more[i], layouts[k], spec);
            const Report report = run(spec, arena);
            if (i + 1 < G_N_ELEMENTS(more))
                g_assert_cmpint(report.step_ps, >=, before_ps);
            g_assert_cmpfloat(report.peak_bytes, >=, before_bytes);
            before_ps = report.step_ps;
            before_bytes = report.peak_bytes;
            orr_arena_free(arena);
        }
    }
}

/* A cached reference costs nothing; one with adapters off a forward; a second model a forward and its weights. */
static void test_preference(void)
{
    static const char *const references[] = {"", ",\"reference\":\"cached\"",
                                             ",\"reference\":\"adapter-off\"", ",\"reference\":\"model\""};
    int64_t step_ps[4], forward_ps = 0, plain_ps = 0;
    double weights[4];
    for (int i = 0; i < 4; i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        OrrArena *arena = orr_arena_new();
        g_autofree char *training = g_strdup_printf("\"task\":\"%s\"%s,\"adapter\":{\"rank\":16}",
                                                    i == 0 ? "lora" : "dpo", references[i]);
        g_autofree char *text = g_strdup_printf(
            "{" LLAMA7B
            ",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},\"training\":{\"sequence_length\":1024,"
            "\"global_batch\":16,\"micro_batch\":2,%s},\"parallel\":{\"data\":8,\"zero\":0},\"execution\":{"
            "\"framework\":"
            "\"pytorch-ddp\"}}",
            training);
        GError *error = NULL;
        OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", &error);
        spec_load_json(orr_json_root(doc), "test", NULL, false, spec, NULL, &error);
        g_assert_no_error(error);
        const Report report = run(spec, arena);
        step_ps[i] = report.step_ps;
        weights[i] = report.stages[0].weights_bytes;
        const int64_t layer_ps = sim_work_duration_ps(&report.plan.stages[0].segments[5].forward);
        plain_ps = i == 0 ? layer_ps : plain_ps;
        forward_ps = i == 2 ? layer_ps : forward_ps;
        orr_json_free(doc);
        orr_arena_free(arena);
    }
    g_assert_cmpint(step_ps[1], ==, step_ps[0]);
    g_assert_cmpint(step_ps[2], >, step_ps[1]);
    g_assert_cmpint(step_ps[3], ==, step_ps[2]);
    g_assert_cmpint(forward_ps, <, 2 * plain_ps); /* without the adapters' products */
    g_assert_cmpint(forward_ps, >, plain_ps + plain_ps / 2);
    g_assert_cmpfloat(weights[2], ==, weights[1]);
    g_assert_cmpfloat_with_epsilon(weights[3] - weights[2], 2 * 6738415616.0, 1);
}

/* Pairs without a reference take what pairs take whose reference is cached, and the loss of the chosen half once more. */
static void test_no_reference(void)
{
    int64_t step_ps[2];
    for (int i = 0; i < 2; i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        OrrArena *arena = orr_arena_new();
        load(LLAMA7B,
             i == 0 ? "\"task\":\"dpo\",\"reference\":\"cached\",\"adapter\":{\"rank\":16}"
                    : "\"task\":\"orpo\",\"adapter\":{\"rank\":16}",
             ",\"parallel\":{\"tensor\":8}", spec);
        step_ps[i] = run(spec, arena).step_ps;
        orr_arena_free(arena);
    }
    g_assert_cmpint(step_ps[1], >, step_ps[0]);
    g_assert_cmpint(step_ps[1], <, step_ps[0] + step_ps[0] / 1000);
}

/* Layer's forward of one task and reference, sharded or not; *ret_step_ps, *ret_gather_ps: the step, and a layer's gather. */
static int64_t forward_of(const char *task, int zero, OrrArena *arena, int64_t *ret_step_ps,
                          int64_t *ret_gather_ps)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autofree char *more = g_strdup_printf(",\"parallel\":{\"data\":8,\"zero\":%d}", zero);
    load(LLAMA7B, task, more, spec);
    const Report report = run(spec, arena);
    const SimSegment *segment = &report.plan.stages[0].segments[5];
    *ret_step_ps = report.step_ps;
    *ret_gather_ps = sim_work_duration_ps(&segment->param_gather);
    return sim_work_duration_ps(&segment->forward);
}

/* Verdicts: without the KL term and with a cached reference the step of sft or lora. The term is a forward of what is trained,
 * and one of the reference; sharded weights are gathered for each. */
static void test_verdicts(void)
{
    static const char *const tasks[] = {
        "\"task\":\"sft\"",
        "\"task\":\"apo-unpaired\",\"reference\":\"cached\"",
        "\"task\":\"kto\",\"reference\":\"cached\"",
        "\"task\":\"apo-unpaired\",\"reference\":\"model\"",
        "\"task\":\"kto\",\"reference\":\"adapter-off\",\"adapter\":{\"rank\":16}",
        "\"task\":\"kto\",\"reference\":\"model\"",
        "\"task\":\"lora\",\"adapter\":{\"rank\":16}",
        "\"task\":\"apo-unpaired\",\"reference\":\"cached\",\"adapter\":{\"rank\":16}",
    };
    for (int zero = 0; zero <= 3; zero += 3) {
        int64_t forward_ps[8], step_ps[8], gather_ps[8];
        OrrArena *arena = orr_arena_new();
        for (int i = 0; i < 8; i++)
            forward_ps[i] = forward_of(tasks[i], zero, arena, &step_ps[i], &gather_ps[i]);
        const int64_t once_ps = forward_ps[3] - forward_ps[0];
        g_assert_cmpint(step_ps[1], ==, step_ps[0]);
        g_assert_cmpint(step_ps[7], ==, step_ps[6]);
        g_assert_cmpint(forward_ps[4], >, 3 * forward_ps[6]); /* two of four are without adapters */
        g_assert_cmpint(forward_ps[4], <, 4 * forward_ps[6]);
        g_assert_cmpint(forward_ps[2] - forward_ps[0], ==, once_ps); /* no adapters: forwards are alike */
        g_assert_cmpint(forward_ps[5] - forward_ps[0], ==, 3 * once_ps);
        g_assert_cmpint(gather_ps[2], ==, 2 * gather_ps[0]);
        g_assert_cmpint(gather_ps[5] - 2 * gather_ps[0], ==, 2 * (gather_ps[3] - gather_ps[0]));
        g_assert_true(zero == 0 || gather_ps[0] > 0);
        orr_arena_free(arena);
    }
}

/* Every model has room on the list of what is kept, with all that adapters keep, in every software. */
static void test_presets(void)
{
    g_autoptr(GPtrArray) models = spec_preset_names("models", NULL);
    g_autoptr(GPtrArray) frameworks = spec_preset_names("frameworks", NULL);
    int ran = 0;
    for (guint i = 0; i < models->len * frameworks->len; i++) {
        const char *model = g_ptr_array_index(models, i % models->len),
                   *framework = g_ptr_array_index(frameworks, i / models->len);
        if (i % models->len > 1 && strstr(model, "deepseek") == NULL && i % 7 != 0)
            continue; /* latent attention with experts keeps most */
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_autofree char *text = g_strdup_printf("{\"model\":\"%s\",\"cluster\":{\"preset\":\"dgx-h100\","
                                                "\"nodes\":1},\"training\":{\"sequence_length\":512,"
                                                "\"global_batch\":8,\"task\":\"lora\",\"adapter\":{\"rank\":"
                                                "8,\"targets\":\"all-linear\",\"dropout_frac\":"
                                                "0.1}},\"execution\":{\"framework\":\"%s\"}}",
                                                model, framework);
        OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", NULL);
        const bool loads = spec_load_json(orr_json_root(doc), "test", NULL, false, spec, NULL, NULL);
        orr_json_free(doc);
        if (!loads)
            continue;
        CostShape shape;
        cost_shape_init(&shape, spec);
        g_assert_cmpfloat(cost_layer_activations(&shape, spec->model.layers - 1, 0).kept_bytes, >, 0);
        ran++;
    }
    g_assert_cmpint(ran, >, 500);
}

static void test_refused(void)
{
    static const char *const cases[][2] = {
        {"\"task\":\"lora\"", "needs training.adapter"},
        {"\"task\":\"orpo\",\"reference\":\"cached\"", "give none"},
        {"\"task\":\"qlora\"", "needs training.adapter"},
        {"\"task\":\"lora\",\"adapter\":{\"rank\":0}", "rank"},
        {"\"adapter\":{\"rank\":8}", "give \"lora\" or \"qlora\""},
        {"\"task\":\"qlora\",\"adapter\":{\"rank\":8}", "give nf4, int4, int8 or fp8"},
        {"\"task\":\"lora\",\"adapter\":{\"rank\":8,\"base_dtype\":\"nf4\"}", "give task \"qlora\""},
        {"\"task\":\"lora\",\"adapter\":{\"rank\":8,\"targets\":[]}", "is empty"},
        {"\"task\":\"lora\",\"adapter\":{\"rank\":8,\"targets\":\"q_prj\"}", "q_proj"},
        {"\"task\":\"lora\",\"mlp_tiles\":2,\"adapter\":{\"rank\":8}", "training.mlp_tiles"},
        {"\"task\":\"lroa\"", "lora"},
        {"\"task\":\"sft\",\"adapter\":{\"base_dtype\":\"nf4\"}", "adapter.rank: missing"},
        {"\"task\":\"lora\",\"adapter\":{\"rank\":8,\"targets\":[\"kv_b_proj\"]}", "kv_b_proj is not one"},
        {"\"task\":\"lora\",\"adapter\":{\"rank\":8,\"modules_to_save\":[\"norm\"]}",
         "embed_tokens, lm_head"},
        {"\"task\":\"reward\",\"micro_batch\":2,\"adapter\":{\"rank\":8,\"modules_to_save\":[\"lm_head\"]}",
         "leave lm_head out"},
        {"\"task\":\"dpo\"", "cached, adapter-off or model"},
        {"\"task\":\"kto\"", "cached, adapter-off or model"},
        {"\"reference\":\"model\"", "give none"},
        {"\"task\":\"dpo\",\"reference\":\"adapter-off\"", "without training.adapter"},
        {"\"task\":\"dpo\",\"reference\":\"model\",\"micro_batch\":1", "a pair has two"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf(
            "{" LLAMA7B
            ",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},\"training\":{\"sequence_length\":1024,"
            "\"global_batch\":16,%s}}",
            cases[i][0]);
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_autoptr(GError) error = NULL;
        OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", NULL);
        g_assert_false(spec_load_json(orr_json_root(doc), "test", NULL, false, spec, NULL, &error));
        if (strstr(error->message, cases[i][1]) == NULL)
            g_error("%s says: %s", cases[i][0], error->message);
        orr_json_free(doc);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/adapter/parameters", test_parameters);
    g_test_add_func("/adapter/cut", test_cut);
    g_test_add_func("/adapter/flops", test_flops);
    g_test_add_func("/adapter/experts", test_experts);
    g_test_add_func("/adapter/kept", test_kept);
    g_test_add_func("/adapter/bytes", test_bytes);
    g_test_add_func("/adapter/one-gpu", test_one_gpu);
    g_test_add_func("/adapter/sharded", test_sharded);
    g_test_add_func("/adapter/orders", test_orders);
    g_test_add_func("/adapter/preference", test_preference);
    g_test_add_func("/adapter/no-reference", test_no_reference);
    g_test_add_func("/adapter/verdicts", test_verdicts);
    g_test_add_func("/adapter/presets", test_presets);
    g_test_add_func("/adapter/refused", test_refused);
    return g_test_run();
}
