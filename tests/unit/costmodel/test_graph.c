/* tests/unit/costmodel/test_graph.c - the graph of a layer: what its forward keeps, by kind of layer, against
 * closed forms over random models, degrees and precisions; and which of it each recomputation makes again. */
#include <string.h>

#include "costmodel/activations.h"
#include "costmodel/flops.h"
#include "costmodel/moe.h"
#include "costmodel/params.h"

#define ROUNDS 4000

static bool coin(GRand *rand)
{
    return g_rand_boolean(rand);
}

static int power(GRand *rand, int low, int high) /* of two, from 2^low to 2^high */
{
    return 1 << g_rand_int_range(rand, low, high + 1);
}

static SpecModel random_model(GRand *rand)
{
    const int heads = power(rand, 3, 6), head_dim = power(rand, 6, 7);
    SpecModel model = {.layers = 8,
                       .hidden = heads * head_dim,
                       .heads = heads,
                       .kv_heads = coin(rand) ? heads : 8,
                       .head_dim = head_dim,
                       .ffn_hidden = 256 * g_rand_int_range(rand, 1, 40),
                       .gated_mlp = coin(rand),
                       .vocab = 51200,
                       .max_positions = 8192,
                       .norm = coin(rand) ? SPEC_NORM_LAYERNORM : SPEC_NORM_RMSNORM,
                       .position = coin(rand) ? SPEC_POSITION_LEARNED : SPEC_POSITION_ROPE,
                       .biases = coin(rand) ? SPEC_BIASES_ALL : SPEC_BIASES_NONE,
                       .causal = true};
    model.dropout_frac = coin(rand) ? 0.1 : 0;
    model.qk_norm = coin(rand);
    model.attention_window_tokens = coin(rand) ? 512 : 0;
    model.attention_window_every = 2;
    if (coin(rand)) { /* experts in every second layer from the third on; those of the last two are more */
        model.moe = (SpecMoe){.experts = 16,
                              .top_k = 2,
                              .expert_ffn_hidden = 128 * g_rand_int_range(rand, 1, 8),
                              .dense_layers = 2,
                              .layer_step = 2,
                              .late_layers = coin(rand) ? 2 : 0,
                              .late_experts = 32};
        if (model.moe.late_layers == 0 && coin(rand)) {
            model.moe.run_count = 2;
            model.moe.run[0] =
                (SpecMoeRun){.layers = 1, .experts = 64, .top_k = 4, .expert_ffn_hidden = 256, .kind = 1};
            model.moe.run[1] =
                (SpecMoeRun){.layers = 2, .experts = 8, .top_k = 1, .expert_ffn_hidden = 768, .kind = 2};
        }
        model.moe.shared_experts = coin(rand);
        model.moe.shared_expert_ffn_hidden = 1024;
    }
    return model;
}

static Spec random_spec(GRand *rand)
{
    Spec spec = {.model = random_model(rand)};
    const int tensor = power(rand, 0, 3), context = power(rand, 0, 1);
    spec.cluster.gpus_per_node = spec.cluster.scale_up_domain_gpus = 64;
    spec.cluster.nodes = 1;
    spec.training = (SpecTraining){.sequence_length = 1024 * power(rand, 0, 2),
                                   .global_batch = 64,
                                   .micro_batch = power(rand, 0, 2),
                                   .precision = SPEC_PRECISION_FP16,
                                   .predicted_frac = 1};
    spec.parallel = (SpecParallel){.tensor = tensor,
                                   .sequence_parallel = tensor > 1 && coin(rand),
                                   .context = context,
                                   .context_mode = SPEC_CONTEXT_ALLGATHER,
                                   .pipeline = 1,
                                   .virtual_stages = 1,
                                   .data = 64 / tensor / context,
                                   .expert = 2,
                                   .expert_tensor = 1};
    spec.execution.attention = coin(rand) ? SPEC_ATTENTION_UNFUSED : SPEC_ATTENTION_FLASH2;
    spec.execution.framework.kernels.softmax = coin(rand)   ? SPEC_SOFTMAX_FUSED
                                               : coin(rand) ? SPEC_SOFTMAX_EAGER
                                                            : SPEC_SOFTMAX_NARROW;
    spec.execution.framework.kernels.fused_swiglu = coin(rand);
    return spec;
}

/* Bytes of one layer in 16 bits, T tokens of a rank, P of them where the sequence is split further, a heads, g of keys and
 * values, d wide: inputs of two blocks and of their norms 8 P h, masks 2 P h; queries, keys, values, attention's output;
 * scores and their mask, dropped out or not, with an fp32 softmax where it is eager and casts, or 4 T a; then the MLP or the experts. */
static double dense_bytes(const Spec *spec, const CostShape *shape)
{
    const double width = spec->model.ffn_hidden / shape->tensor;
    const double each = spec->model.gated_mlp ? (spec->execution.framework.kernels.fused_swiglu ? 6 : 8)
                                              : 4; /* in and out of it */
    return each * shape->tokens * width;
}

static double expert_bytes(const Spec *spec, const CostShape *shape, int layer)
{
    const SpecMoe *moe = &spec->model.moe;
    const double own = shape->tokens / shape->tensor, wide = spec->model.gated_mlp ? 6 : 4;
    const SpecMoeRun ours = cost_layer_moe(&spec->model, layer);
    const double experts = ours.experts, rows = own * ours.top_k;
    const double shared = moe->shared_experts > 0 ? moe->shared_expert_ffn_hidden / shape->tensor : 0;
    return 8 * own * experts + rows * (2 * shape->hidden + wide * ours.expert_ffn_hidden) +
           wide * shape->tokens * shared;
}

static double core_bytes(const Spec *spec, const CostShape *shape)
{
    const double scores = shape->batch * shape->heads * shape->sequence / shape->context * shape->sequence;
    const bool dropout = spec->model.dropout_frac > 0;
    const SpecRecipeKernels *kernels = &spec->execution.framework.kernels;
    const bool wide = kernels->softmax == SPEC_SOFTMAX_EAGER;
    const double eager = dropout ? 4 + 1 + 2 : 4 + 2, fused = dropout ? 2 + 1 + 2 : 2;
    return spec->execution.attention == SPEC_ATTENTION_UNFUSED ? scores * (wide ? eager : fused)
                                                               : 4 * shape->tokens * shape->heads;
}

static double layer_bytes(const Spec *spec, const CostShape *shape, int layer)
{
    const double inputs = shape->part_tokens * shape->hidden * (spec->model.dropout_frac > 0 ? 10 : 8);
    const double heads = 2 * shape->tokens * (2 * shape->heads + 2 * shape->kv_heads) * shape->head_dim;
    const double normed = 2 * shape->tokens * (shape->heads + shape->kv_heads) * shape->head_dim;
    return inputs + heads + (spec->model.qk_norm ? normed : 0) + core_bytes(spec, shape) +
           (cost_layer_has_experts(&spec->model, layer) ? expert_bytes(spec, shape, layer)
                                                        : dense_bytes(spec, shape));
}

static double kept(const CostShape *shape, int layer)
{
    return cost_layer_activations(shape, layer, 0).kept_bytes;
}

static void kept_by_kind(void)
{
    GRand *rand = g_rand_new_with_seed(7);
    for (int round = 0; round < ROUNDS; round++) {
        Spec spec = random_spec(rand);
        CostShape shape;
        cost_shape_init(&shape, &spec);
        for (int layer = 0; layer < spec.model.layers; layer++) {
            const double whole = layer_bytes(&spec, &shape, layer);
            spec.training.recompute.mode = SPEC_RECOMPUTE_NONE;
            g_assert_cmpfloat_with_epsilon(kept(&shape, layer) / whole, 1, 1e-12);
            spec.training.recompute.mode = SPEC_RECOMPUTE_SELECTIVE;
            g_assert_cmpfloat_with_epsilon(kept(&shape, layer) / (whole - core_bytes(&spec, &shape)), 1,
                                           1e-12);
            spec.training.recompute.mode = SPEC_RECOMPUTE_FULL;
            g_assert_cmpfloat(kept(&shape, layer), ==, 2 * shape.part_tokens * shape.hidden);
        }
    }
    g_rand_free(rand);
}

/* GPT: s b h (34 + 5 a s / h), of which tensor ranks divide 24 and the scores, and sequence parallelism the rest. */
static void gpt(void)
{
    GRand *rand = g_rand_new_with_seed(11);
    for (int round = 0; round < ROUNDS; round++) {
        Spec spec = random_spec(rand);
        SpecModel *model = &spec.model;
        model->kv_heads = model->heads, model->ffn_hidden = 4 * model->hidden;
        model->gated_mlp = model->qk_norm = false, model->dropout_frac = 0.1, model->moe = (SpecMoe){0};
        spec.parallel.context = 1;
        spec.execution.attention = SPEC_ATTENTION_UNFUSED;
        spec.execution.framework.kernels.softmax = SPEC_SOFTMAX_FUSED;
        CostShape shape;
        cost_shape_init(&shape, &spec);
        const double t = shape.tensor, s = shape.sequence, h = shape.hidden;
        const double want =
            shape.batch * s * h *
            (10 / (shape.sequence_parallel ? t : 1) + 24 / t + 5 * model->heads * s / (h * t));
        g_assert_cmpfloat_with_epsilon(kept(&shape, 0) / want, 1, 1e-12);
    }
    g_rand_free(rand);
}

static const SpecRecompute RECOMPUTE[] = {
    {.mode = SPEC_RECOMPUTE_NONE},
    {.mode = SPEC_RECOMPUTE_FULL},
    {.mode = SPEC_RECOMPUTE_SELECTIVE},
    {.mode = SPEC_RECOMPUTE_SELECTIVE_OP},
    {.mode = SPEC_RECOMPUTE_MODULES, .modules = SPEC_MODULE_LAYERNORM | SPEC_MODULE_MLP},
    {.mode = SPEC_RECOMPUTE_MODULES, .modules = SPEC_MODULE_MOE_ACT | SPEC_MODULE_CORE_ATTN},
    {.mode = SPEC_RECOMPUTE_MODULES, .modules = SPEC_MODULE_MOE | SPEC_MODULE_SHARED_EXPERTS},
};

/* Tensors are written before they are kept; what is dropped is made again by an op that runs again, and with what stays it
 * adds up to what is kept without recomputation. */
static void check_tensors(const CostShape *shape, int layer)
{
    const Spec *spec = shape->spec;
    CostGraph graph;
    cost_graph_layer(shape, layer, &graph);
    const CostOps *forward = &graph.pass[COST_FORWARD];
    const CostRecomputeExtent extent = cost_recompute_extent(spec, 0);
    const CostActivations all = cost_activations(shape, &graph, COST_RECOMPUTE_OP_NONE),
                          some = cost_activations(shape, &graph, extent);
    double dropped = 0;
    for (int i = 0; i < forward->kept_count; i++) {
        const CostTensor *tensor = &forward->kept[i];
        g_assert_cmpint(tensor->written_by, <=, tensor->kept_by);
        g_assert_cmpint(tensor->kept_by, <, forward->count);
        if (cost_drops_tensor(spec, forward, tensor, extent)) {
            const bool product =
                tensor->product % 2 == 1; /* a second product of one op may run again alone */
            g_assert_true(product || cost_runs_again(spec, forward, tensor->written_by, extent));
            dropped += tensor->bytes;
        }
    }
    g_assert_cmpfloat_with_epsilon((some.kept_bytes + dropped) / all.kept_bytes, 1, 1e-12);
    g_assert_cmpfloat_with_epsilon((some.backward_temp_bytes - dropped) / all.backward_temp_bytes, 1, 1e-9);
    g_assert_cmpint(graph.pass[COST_BACKWARD_INPUT].kept_count + graph.pass[COST_BACKWARD_WEIGHT].kept_count,
                    ==, 0);
}

static double read_or_undivided(const CostOps *ops, const CostOp *like)
{
    double bytes = 0;
    for (int i = 0; i < ops->count; i++) {
        const CostMoved moved = cost_op_moved(&ops->op[i]);
        const bool alike = ops->op[i].module == like->module && g_str_equal(ops->op[i].name, like->name);
        bytes += alike ? moved.read + moved.undivided : 0;
    }
    return bytes;
}

/* A kernel that keeps tensors has a backward of its name, which reads them; one that makes a tensor writes as much. */
static void check_moved(const CostGraph *graph)
{
    const CostOps *forward = &graph->pass[COST_FORWARD];
    for (int i = 0; i < forward->kept_count; i++) {
        const CostOp *reader = &forward->op[forward->kept[i].kept_by];
        double kept_bytes = 0;
        for (int j = 0; j < forward->kept_count; j++) {
            const CostOp *other = &forward->op[forward->kept[j].kept_by];
            const bool alike = other->module == reader->module && g_str_equal(other->name, reader->name);
            kept_bytes += alike ? forward->kept[j].bytes : 0;
        }
        if (reader->kind == COST_OP_MEMORY) {
            g_assert_cmpfloat(read_or_undivided(&graph->pass[COST_BACKWARD_INPUT], reader), >=, kept_bytes);
        }
        const int writer = forward->kept[i].written_by;
        if (writer != COST_OUTSIDE && forward->op[writer].kind != COST_OP_COLLECTIVE) {
            const CostMoved moved = cost_op_moved(&forward->op[writer]);
            const bool inside =
                forward->op[writer].kind == COST_OP_ATTENTION; /* sums of rows: 4 bytes a head */
            g_assert_cmpfloat((moved.written + moved.undivided) * (inside ? 1.1 : 1), >=,
                              forward->kept[i].bytes * (1 - 1e-12));
        }
    }
}

static void moved(void)
{
    GRand *rand = g_rand_new_with_seed(29);
    for (int round = 0; round < ROUNDS / 4; round++) {
        const Spec spec = random_spec(rand);
        CostShape shape;
        CostGraph graph;
        cost_shape_init(&shape, &spec);
        for (int layer = 0; layer < spec.model.layers; layer++) {
            cost_graph_layer(&shape, layer, &graph);
            check_moved(&graph);
        }
    }
    g_rand_free(rand);
}

static void recomputed(void)
{
    GRand *rand = g_rand_new_with_seed(13);
    for (int round = 0; round < ROUNDS; round++) {
        Spec spec = random_spec(rand);
        CostShape shape;
        spec.training.recompute = RECOMPUTE[round % (int)G_N_ELEMENTS(RECOMPUTE)];
        spec.execution.framework.kernels.recompute_stops_early = coin(rand);
        cost_shape_init(&shape, &spec);
        for (int layer = 0; layer < spec.model.layers; layer++) {
            check_tensors(&shape, layer);
        }
    }
    g_rand_free(rand);
}

/* A dense GPT without dropout, one sequence: a layer's forward is 24 s h^2 of products and 2 s^2 h of causal attention. */
static Spec gpt_spec(SpecRecompute recompute)
{
    GRand *rand = g_rand_new_with_seed(1);
    Spec spec = random_spec(rand);
    SpecModel *model = &spec.model;
    g_rand_free(rand);
    model->kv_heads = model->heads, model->ffn_hidden = 4 * model->hidden;
    model->gated_mlp = false, model->dropout_frac = 0, model->moe = (SpecMoe){0};
    model->attention_window_tokens = 0;
    spec.execution.attention = SPEC_ATTENTION_FLASH2;
    spec.training.global_batch = 1;
    spec.training.recompute = recompute;
    return spec;
}

static double recompute_flops(SpecRecompute recompute, bool stops_early, const int *stage_layers, int stages)
{
    Spec spec = gpt_spec(recompute);
    spec.execution.framework.kernels.recompute_stops_early = stops_early;
    const CostFlops flops = cost_flops(&spec, stage_layers, stages);
    g_assert_cmpfloat(flops.hardware, ==, flops.model + flops.recompute);
    return flops.recompute;
}

/* What really runs again: not the MLP's output linear where recomputation stops early, layers by their place in the stages
 * that there are; nothing for what a fused kernel computes twice by itself. */
static void hardware_flops(void)
{
    const Spec spec = gpt_spec((SpecRecompute){.mode = SPEC_RECOMPUTE_NONE});
    const SpecRecompute full = {.mode = SPEC_RECOMPUTE_FULL},
                        first = {.mode = SPEC_RECOMPUTE_FULL, .layers = 1},
                        core = {.mode = SPEC_RECOMPUTE_SELECTIVE}, none = {.mode = SPEC_RECOMPUTE_NONE},
                        every = {.mode = SPEC_RECOMPUTE_SELECTIVE_LAYER, .every_n_layers = 2};
    const double s = spec.training.sequence_length, h = spec.model.hidden;
    const double layer = 24 * s * h * h + 2 * s * s * h;
    const int uneven[] = {3, 5}, one[] = {8};
    g_assert_cmpfloat(recompute_flops(none, false, one, 1), ==, 0);
    g_assert_cmpfloat(recompute_flops(core, false, one, 1), ==, 8 * 2 * s * s * h);
    g_assert_cmpfloat(recompute_flops(full, false, one, 1), ==, 8 * layer);
    g_assert_cmpfloat(recompute_flops(full, true, one, 1), ==, 8 * (layer - 8 * s * h * h));
    g_assert_cmpfloat(recompute_flops(first, false, one, 1), ==, layer);
    g_assert_cmpfloat(recompute_flops(first, false, uneven, 2), ==, 2 * layer);
    g_assert_cmpfloat(recompute_flops(every, false, one, 1), ==, 4 * layer);
    g_assert_cmpfloat(recompute_flops(every, false, uneven, 2), ==, (2 + 3) * layer);
}

/* A module of multi-token prediction runs again as the layers do: with its join of 4 s h^2, unless only a stage's first layers
 * are recomputed. */
static void multi_token(void)
{
    Spec spec = gpt_spec((SpecRecompute){.mode = SPEC_RECOMPUTE_FULL});
    const double s = spec.training.sequence_length, h = spec.model.hidden;
    const double without = cost_flops(&spec, NULL, 0).recompute;
    spec.model.mtp_layers = 1;
    const double module = 24 * s * h * h + 2 * s * s * h + 4 * s * h * h;
    g_assert_cmpfloat(cost_flops(&spec, NULL, 0).recompute - without, ==, module);
    spec.training.recompute.layers = 2;
    g_assert_cmpfloat(cost_flops(&spec, NULL, 0).recompute, ==, without / 4);
}

/* Besides its layer a module keeps the next token's embedding before the norm and both halves of what the join reads. */
static void multi_token_kept(void)
{
    GRand *rand = g_rand_new_with_seed(17);
    for (int round = 0; round < 200; round++) {
        Spec spec = random_spec(rand);
        CostShape shape;
        CostGraph module;
        spec.model.mtp_layers = 1;
        spec.training.recompute.mode = SPEC_RECOMPUTE_NONE;
        cost_shape_init(&shape, &spec);
        cost_graph(&shape, cost_ops_mtp, &module);
        const double join = cost_activations(&shape, &module, COST_RECOMPUTE_OP_NONE).kept_bytes -
                            layer_bytes(&spec, &shape, spec.model.layers - 1);
        g_assert_cmpfloat_with_epsilon(join / (3 * 2 * shape.part_tokens * shape.hidden), 1, 1e-9);
    }
    g_rand_free(rand);
}

/* torchtitan's per-op policy with linear layers apart: of query, key, value, output, gate, up and down it runs the second, fourth
 * and sixth again, and drops what those alone wrote; of one product for several there is no half. */
static void every_second_product(void)
{
    Spec spec = gpt_spec((SpecRecompute){.mode = SPEC_RECOMPUTE_SELECTIVE_OP});
    SpecModel *model = &spec.model;
    model->gated_mlp = true, model->kv_heads = model->heads / 2, model->ffn_hidden = 3 * model->hidden;
    spec.parallel.context = spec.parallel.tensor = 1;
    spec.parallel.sequence_parallel = 0;
    const double s = spec.training.sequence_length, h = model->hidden;
    for (int apart = 0; apart < 2; apart++) {
        CostShape shape;
        CostGraph graph;
        spec.execution.framework.kernels.projections =
            apart ? SPEC_PROJECTIONS_SEPARATE : SPEC_PROJECTIONS_JOINED;
        cost_shape_init(&shape, &spec);
        cost_graph_layer(&shape, 0, &graph);
        const CostOps *forward = &graph.pass[COST_FORWARD];
        const double again = apart ? h * h / 2 + h * h + 3 * h * h : h * h + 3 * h * h;
        g_assert_cmpfloat(cost_flops(&spec, NULL, 0).recompute, ==, 8 * 2 * s * again);
        for (int i = 0; i < forward->kept_count; i++) {
            const char *name = forward->kept[i].name;
            const bool second = strcmp(name, "key") == 0 || strcmp(name, "gate input") == 0,
                       first = strcmp(name, "query") == 0 || strcmp(name, "value") == 0 ||
                               strcmp(name, "activation input") == 0 || strcmp(name, "attention output") == 0;
            const bool dropped = cost_drops_tensor(&spec, forward, &forward->kept[i], COST_RECOMPUTE_OP_SOME);
            g_assert_false(first && dropped);
            if (second)
                g_assert_cmpint(dropped, ==, apart);
        }
    }
}

/* The policy keeps what reduce-scatters return and no all-reduce's: in a compiled graph the product that a reduce-scatter
 * alone reads does not run again, in eager code and without sequence parallelism it does. */
static void scattered_product(void)
{
    static const struct {
        bool compiled, split, again;
    } cases[] = {{true, true, false}, {false, true, true}, {true, false, true}, {false, false, true}};
    Spec spec = gpt_spec((SpecRecompute){.mode = SPEC_RECOMPUTE_SELECTIVE_OP});
    spec.execution.framework.kernels.projections = SPEC_PROJECTIONS_SEPARATE;
    spec.parallel.context = 1, spec.parallel.tensor = 2;
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        CostShape shape;
        CostGraph graph;
        int seen = 0;
        spec.execution.compiled = cases[i].compiled;
        spec.parallel.sequence_parallel = cases[i].split;
        cost_shape_init(&shape, &spec);
        cost_graph_layer(&shape, 0, &graph);
        const CostOps *forward = &graph.pass[COST_FORWARD];
        for (int op = 0; op < forward->count; op++) {
            if (strcmp(forward->op[op].name, "attention out") != 0)
                continue;
            g_assert_cmpint(cost_recomputes_op(&spec, forward, op), ==, cases[i].again);
            seen++;
        }
        g_assert_cmpint(seen, ==, 1);
    }
}

/* Grouped products of experts and routers are not among the products that the policy keeps by turns; what the norms of
 * queries and keys write is made again from the products that it keeps. */
static void products_never_kept(void)
{
    static const char *const again[] = {"qkv", "attention out", "router", "experts in", "experts out"};
    Spec spec = gpt_spec((SpecRecompute){.mode = SPEC_RECOMPUTE_SELECTIVE_OP});
    CostShape shape;
    CostGraph graph;
    guint seen = 0, kept = 0;
    spec.execution.framework.kernels.projections = SPEC_PROJECTIONS_SEPARATE;
    spec.parallel.context = spec.parallel.tensor = 1;
    spec.parallel.sequence_parallel = 0;
    spec.model.qk_norm = true;
    spec.model.norm = SPEC_NORM_RMSNORM;
    spec.model.moe =
        (SpecMoe){.experts = 8, .top_k = 2, .expert_ffn_hidden = spec.model.hidden, .layer_step = 1};
    cost_shape_init(&shape, &spec);
    cost_graph_layer(&shape, 0, &graph);
    const CostOps *forward = &graph.pass[COST_FORWARD];
    for (int i = 0; i < forward->count; i++)
        for (guint k = 0; k < G_N_ELEMENTS(again); k++)
            if (strcmp(forward->op[i].name, again[k]) == 0) {
                g_assert_true(cost_recomputes_op(&spec, forward, i));
                seen++;
            }
    g_assert_cmpuint(seen, ==, G_N_ELEMENTS(again));
    for (int i = 0; i < forward->kept_count; i++) {
        const char *name = forward->kept[i].name;
        const bool product = strcmp(name, "query before norm") == 0 || strcmp(name, "value") == 0,
                   made = strcmp(name, "query") == 0 || strcmp(name, "key") == 0 ||
                          strcmp(name, "key before norm") == 0 ||
                          strcmp(name, "expert activation input") == 0;
        const bool dropped = cost_drops_tensor(&spec, forward, &forward->kept[i], COST_RECOMPUTE_OP_SOME);
        if (product || made)
            g_assert_cmpint(dropped, ==, made);
        kept += product || made;
    }
    g_assert_cmpuint(kept, ==, 6);
}

/* Layers of one kind have one graph: a million of them cost what so many times a few do (bench_costs: and no longer). */
static void many_layers(void)
{
    Spec spec = gpt_spec((SpecRecompute){.mode = SPEC_RECOMPUTE_FULL});
    const double eight = cost_flops(&spec, NULL, 0).recompute;
    spec.model.layers = 1000000;
    const CostFlops flops = cost_flops(&spec, NULL, 0);
    g_assert_cmpfloat_with_epsilon(flops.recompute / eight, 1000000 / 8, 1e-6);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/graph/kept-by-kind", kept_by_kind);
    g_test_add_func("/graph/gpt", gpt);
    g_test_add_func("/graph/recomputed", recomputed);
    g_test_add_func("/graph/scattered-product", scattered_product);
    g_test_add_func("/graph/products-never-kept", products_never_kept);
    g_test_add_func("/graph/moved", moved);
    g_test_add_func("/graph/hardware-flops", hardware_flops);
    g_test_add_func("/graph/multi-token", multi_token);
    g_test_add_func("/graph/multi-token-kept", multi_token_kept);
    g_test_add_func("/graph/every-second-product", every_second_product);
    g_test_add_func("/graph/many-layers", many_layers);
    return g_test_run();
}
