/* tests/golden/test_vectors.c - numbers that papers and lecture notes print, to the last digit they give. */
#include <math.h>

#include "costmodel/activations.h"
#include "costmodel/flops.h"
#include "costmodel/params.h"
#include "costmodel/states.h"
#include "costmodel/textbook.h"

#define GIB 1073741824.0
#define MIB 1048576.0

static SpecModel gpt(int layers, int hidden, int heads, int vocab, int positions)
{
    return (SpecModel){.layers = layers,
                       .hidden = hidden,
                       .heads = heads,
                       .kv_heads = heads,
                       .head_dim = hidden / heads,
                       .ffn_hidden = 4 * hidden,
                       .vocab = vocab,
                       .tied_embeddings = true,
                       .norm = SPEC_NORM_LAYERNORM,
                       .biases = SPEC_BIASES_ALL,
                       .position = SPEC_POSITION_LEARNED,
                       .max_positions = positions,
                       .causal = true,
                       .dropout_frac = 0.1};
}

static SpecModel llama(int layers, int hidden, int heads, int kv_heads, int ffn, int vocab)
{
    return (SpecModel){.layers = layers,
                       .hidden = hidden,
                       .heads = heads,
                       .kv_heads = kv_heads,
                       .head_dim = hidden / heads,
                       .ffn_hidden = ffn,
                       .vocab = vocab,
                       .gated_mlp = true,
                       .norm = SPEC_NORM_RMSNORM,
                       .position = SPEC_POSITION_ROPE,
                       .causal = true};
}

static SpecModel deepseek_v3(void)
{
    SpecModel model = llama(61, 7168, 128, 128, 18432, 129280);
    model.head_dim = 128;
    model.mla = (SpecMla){1536, 512, 128, 64, 128};
    model.moe = (SpecMoe){.experts = 256,
                          .top_k = 8,
                          .expert_ffn_hidden = 2048,
                          .shared_experts = 1,
                          .shared_expert_ffn_hidden = 2048,
                          .dense_layers = 3,
                          .layer_step = 1};
    return model;
}

static void check_parameters(const SpecModel *model, double expected)
{
    g_assert_cmpfloat(cost_parameters(model, 0, false), ==, expected);
}

static void parameters(void)
{
    SpecModel notes = gpt(96, 12288, 96, 50257, 2048);
    SpecModel gpt3 = notes, megatron = gpt(96, 12288, 96, 51200, 2048), gpt2 = gpt(48, 1600, 25, 50257, 1024);
    notes.biases =
        SPEC_BIASES_MLP; /* the notes' V h + L (12 h^2 + 5 h): MLP biases only, no norms, no positions */
    notes.norm = SPEC_NORM_NONE;
    notes.position = SPEC_POSITION_NONE;
    check_parameters(&notes, 174569631744.0);
    check_parameters(&gpt3, 174604259328.0);
    check_parameters(&megatron, 174615822336.0 + 2 * 12288); /* the paper's form leaves the final norm out */
    check_parameters(&gpt2, 1557611200.0);
    const SpecModel llama3_8b = llama(32, 4096, 32, 8, 14336, 128256);
    const SpecModel llama3_70b = llama(80, 8192, 64, 8, 28672, 128256);
    const SpecModel llama3_405b = llama(126, 16384, 128, 8, 53248, 128256);
    const SpecModel llama2_7b = llama(32, 4096, 32, 32, 11008, 32000);
    check_parameters(&llama3_8b, 8030261248.0);
    check_parameters(&llama3_70b, 70553706496.0);
    check_parameters(&llama3_405b, 405853388800.0);
    check_parameters(&llama2_7b, 6738415616.0);
}

static void parameters_deepseek(void)
{
    const SpecModel model = deepseek_v3();
    check_parameters(&model, 671026404352.0);
    const double active = cost_parameters(&model, 0, true);
    g_assert_cmpfloat_with_epsilon(active / 1e9, 37.55, 0.005);
    const CostParams dense_layer = cost_part_params(&model, COST_PART_LAYER, 0);
    const double mlp = 3.0 * 7168 * 18432, norms = 2 * 7168;
    g_assert_cmpfloat(dense_layer.tensor_sharded + dense_layer.replicated - mlp - norms, ==, 187107328.0);
}

static void planner(void)
{
    const double gpus = cost_textbook_gpus(175e9, 300e9, 160e12, 30 * 86400.0);
    g_assert_cmpfloat_with_epsilon(gpus, 759.5, 0.1);
    g_assert_cmpfloat(ceil(gpus), ==, 760);
    g_assert_cmpfloat(ceil(cost_textbook_gpus(175e9, 300e9, 140e12, 30 * 86400.0)), ==, 869);
    g_assert_cmpfloat_with_epsilon(cost_textbook_seconds(175e9, 300e9, 1024, 140e12) / 86400, 33.9, 0.05);
    g_assert_cmpfloat_with_epsilon(cost_textbook_seconds(1008e9, 450e9, 3072, 163e12) / 86400, 83.9, 0.05);
}

/* 7.5B parameters, 64 data-parallel ranks, ZeRO's own recipe. [Rajbhandari2020], figure 1 */
static void zero_stages(void)
{
    static const double EXPECTED_GB[] = {120, 31.406, 16.641, 1.875};
    Spec spec = {0};
    spec.training.precision = SPEC_PRECISION_FP16;
    spec.training.states.recipe = SPEC_STATES_ZERO_FP16;
    spec.training.micro_batch = 1, spec.training.global_batch = 64;
    spec.training.gradient_dtype = spec.training.gradient_reduce_dtype = (SpecDtype)SPEC_AUTO;
    spec.parallel =
        (SpecParallel){.tensor = 1, .context = 1, .pipeline = 1, .data = 64, .expert = 1, .expert_tensor = 1};
    for (int zero = 0; zero <= 3; zero++) {
        spec.parallel.zero = zero;
        const CostStates states = cost_states(&spec, &(CostWeights){.dense = 7.5e9});
        const double sum = states.weights_bytes + states.gradients_bytes + states.optimizer_bytes;
        g_assert_cmpfloat_with_epsilon(sum / 1e9, EXPECTED_GB[zero], 0.0006);
    }
}

static double recipe_bytes(SpecStatesRecipe recipe, double parameters_count)
{
    Spec spec = {0};
    spec.training.precision = SPEC_PRECISION_BF16;
    spec.training.states.recipe = recipe;
    spec.training.gradient_dtype = spec.training.gradient_reduce_dtype = (SpecDtype)SPEC_AUTO;
    spec.parallel =
        (SpecParallel){.tensor = 1, .context = 1, .pipeline = 1, .data = 1, .expert = 1, .expert_tensor = 1};
    const CostStates states = cost_states(&spec, &(CostWeights){.dense = parameters_count});
    return states.weights_bytes + states.gradients_bytes + states.optimizer_bytes;
}

/* A recipe that a scenario names holds in fp32 too, and whatever its gradients are summed in. */
static void named_recipes(void)
{
    static const SpecPrecision PRECISIONS[] = {SPEC_PRECISION_FP32, SPEC_PRECISION_BF16};
    for (size_t i = 0; i < G_N_ELEMENTS(PRECISIONS); i++) {
        Spec spec = {.training = {.precision = PRECISIONS[i], .gradient_dtype = SPEC_BF16}};
        spec.training.states = (SpecStates){.recipe = SPEC_STATES_FP32_ADAM_NOTES, .named = true};
        CostRecipe recipe = cost_recipe(&spec);
        g_assert_cmpfloat(recipe.weights + recipe.gradients + recipe.master + recipe.moments, ==, 20);
        spec.training.states.recipe = SPEC_STATES_MEGATRON_FP32_GRADS;
        recipe = cost_recipe(&spec);
        g_assert_cmpfloat(recipe.weights + recipe.gradients + recipe.master + recipe.moments, ==, 18);
        spec.training.states.named = false; /* the framework's */
        recipe = cost_recipe(&spec);
        g_assert_cmpfloat(recipe.weights + recipe.gradients + recipe.master + recipe.moments, ==, 16);
    }
}

static void recipes(void)
{
    static const double SIZES[] = {1e9, 7e9, 70e9, 405e9}, BYTES_16[] = {16e9, 112e9, 1120e9, 6480e9},
                        BYTES_20[] = {20e9, 140e9, 1400e9, 8100e9};
    for (int i = 0; i < 4; i++) {
        g_assert_cmpfloat(recipe_bytes(SPEC_STATES_FP32_ADAM, SIZES[i]), ==, BYTES_16[i]);
        g_assert_cmpfloat(recipe_bytes(SPEC_STATES_BF16_FP32_ACC, SIZES[i]), ==, BYTES_20[i]);
    }
    g_assert_cmpfloat(recipe_bytes(SPEC_STATES_ZERO_FP16, 175e9), ==, 2800e9);
    g_assert_cmpfloat(recipe_bytes(SPEC_STATES_MEGATRON_FP32_GRADS, 1e9), ==, 18e9);
    g_assert_cmpfloat(recipe_bytes(SPEC_STATES_MEGATRON_FP16_GRADS, 1e9), ==, 20e9);
    g_assert_cmpfloat(recipe_bytes(SPEC_STATES_FSDP_BF16, 1e9), ==, 8e9);
    g_assert_cmpfloat(recipe_bytes(SPEC_STATES_FSDP_MIXED, 1e9), ==, 16e9);
    g_assert_cmpfloat(recipe_bytes(SPEC_STATES_FP32_ADAM_NOTES, 1e9), ==, 20e9);
    g_assert_cmpfloat(recipe_bytes(SPEC_STATES_MIXED_12, 1e9), ==, 12e9);
    g_assert_cmpfloat(recipe_bytes(SPEC_STATES_MEGATRON_BF16_GRADS, 1e9), ==, 16e9);
}

static Spec activation_spec(const SpecModel *model, int batch, int sequence, int tensor,
                            bool sequence_parallel, SpecRecomputeMode recompute)
{
    Spec spec = {.model = *model};
    spec.cluster.gpus_per_node = spec.cluster.scale_up_domain_gpus = tensor;
    spec.cluster.nodes = 1;
    spec.training = (SpecTraining){.sequence_length = sequence,
                                   .global_batch = batch,
                                   .micro_batch = batch,
                                   .precision = SPEC_PRECISION_FP16,
                                   .recompute = {.mode = recompute, .every_n_layers = 1},
                                   .predicted_frac = 1,
                                   .gradient_dtype = SPEC_FP32,
                                   .gradient_reduce_dtype = SPEC_FP32};
    spec.parallel = (SpecParallel){.tensor = tensor,
                                   .sequence_parallel = sequence_parallel,
                                   .context = 1,
                                   .pipeline = 1,
                                   .virtual_stages = 1,
                                   .data = 1,
                                   .expert = 1,
                                   .expert_tensor = 1};
    spec.execution.attention = SPEC_ATTENTION_UNFUSED;
    spec.execution.framework.kernels.softmax = SPEC_SOFTMAX_FUSED;
    return spec;
}

static double layer_bytes(const Spec *spec)
{
    CostShape shape;
    cost_shape_init(&shape, spec);
    return cost_layer_activations(&shape, 0, 0).kept_bytes;
}

/* 22B: h 6144, 64 heads, s 2048, b 4, t 8. [Korthikanti2022], table 2 and figure 1 */
static void activations_22b(void)
{
    static const struct {
        bool sequence_parallel;
        SpecRecomputeMode recompute;
        double layer_mib, model_gib;
    } CASES[] = {
        {false, SPEC_RECOMPUTE_NONE, 1264, 59.25},     {true, SPEC_RECOMPUTE_NONE, 844, 39.5625},
        {false, SPEC_RECOMPUTE_SELECTIVE, 624, 29.25}, {true, SPEC_RECOMPUTE_SELECTIVE, 204, 9.5625},
        {false, SPEC_RECOMPUTE_FULL, 96, 4.5},
    };
    const SpecModel model = gpt(48, 6144, 64, 51200, 2048);
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        const Spec spec = activation_spec(&model, 4, 2048, 8, CASES[i].sequence_parallel, CASES[i].recompute);
        g_assert_cmpfloat(layer_bytes(&spec), ==, CASES[i].layer_mib * MIB);
        g_assert_cmpfloat(48 * layer_bytes(&spec), ==, CASES[i].model_gib * GIB);
    }
}

static void activations_gpt3(void)
{
    const SpecModel model = gpt(96, 12288, 96, 50257, 2048);
    const double sequences = 3.2e6 / 2048;
    const Spec none = activation_spec(&model, 1, 2048, 1, false, SPEC_RECOMPUTE_NONE);
    const Spec selective = activation_spec(&model, 1, 2048, 1, false, SPEC_RECOMPUTE_SELECTIVE);
    const Spec full = activation_spec(&model, 1, 2048, 1, false, SPEC_RECOMPUTE_FULL);
    g_assert_cmpfloat(96 * layer_bytes(&none), ==, 256.5 * GIB);
    g_assert_cmpfloat_with_epsilon(sequences * 96 * layer_bytes(&none) / 1e12, 430.3, 0.05);
    g_assert_cmpfloat_with_epsilon(sequences * 96 * layer_bytes(&selective) / 1e12, 128.3, 0.05);
    g_assert_cmpfloat_with_epsilon(sequences * 96 * layer_bytes(&full) / 1e12, 7.55, 0.005);
}

/* Llama with fused kernels: 8h + 4ad + 4 kv d + 6f + 4a bytes a token and layer. */
static void activations_llama(void)
{
    static const struct {
        int layers, hidden, heads, kv_heads, ffn;
        double token_bytes;
    } CASES[] = {{32, 4096, 32, 8, 14336, 139392},
                 {80, 8192, 64, 8, 28672, 274688},
                 {126, 16384, 128, 8, 53248, 520704}};
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        const SpecModel model =
            llama(CASES[i].layers, CASES[i].hidden, CASES[i].heads, CASES[i].kv_heads, CASES[i].ffn, 128256);
        Spec spec = activation_spec(&model, 1, 8192, 1, false, SPEC_RECOMPUTE_NONE);
        spec.execution.attention = SPEC_ATTENTION_FLASH2;
        spec.execution.framework.kernels.fused_swiglu = true;
        g_assert_cmpfloat(layer_bytes(&spec), ==, 8192 * CASES[i].token_bytes);
    }
}

static void flops_sc21(void)
{
    const SpecModel model = gpt(96, 12288, 96, 51200, 2048);
    Spec spec = activation_spec(&model, 1, 2048, 1, false, SPEC_RECOMPUTE_FULL);
    spec.training.global_batch = 1536;
    g_assert_cmpfloat_with_epsilon(cost_convention_flops(&spec, COST_CONVENTION_SC21) / 1e18, 4.511, 0.0005);
    /* The op list itself, with full attention and recomputation of the layers, is the paper's formula. */
    const CostFlops counted = cost_flops(&spec, NULL, 0);
    const double layers_again = counted.model_full - 6.0 * 1536 * 2048 * 12288 * 51200;
    g_assert_cmpfloat_with_epsilon((counted.model_full + layers_again / 3) / 1e18, 4.511, 0.0005);
    g_assert_cmpfloat_with_epsilon(
        counted.model_full / cost_convention_flops(&spec, COST_CONVENTION_KORTHIKANTI), 1, 1e-12);
    /* 6 P T within 3 % of the exact count at s = 2048 */
    g_assert_cmpfloat_with_epsilon(cost_convention_flops(&spec, COST_CONVENTION_6ND) / counted.model, 1,
                                   0.03);
}

static void flops_independent_of_split(void)
{
    const SpecModel model = llama(80, 8192, 64, 8, 28672, 128256);
    const Spec whole = activation_spec(&model, 4, 4096, 1, false, SPEC_RECOMPUTE_NONE);
    const Spec split = activation_spec(&model, 4, 4096, 8, true, SPEC_RECOMPUTE_SELECTIVE);
    g_assert_cmpfloat(cost_flops(&whole, NULL, 0).model, ==, cost_flops(&split, NULL, 0).model);
    g_assert_cmpfloat(cost_flops(&whole, NULL, 0).recompute, ==, 0);
    g_assert_cmpfloat(cost_flops(&split, NULL, 0).recompute, >, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vectors/parameters", parameters);
    g_test_add_func("/vectors/parameters/deepseek-v3", parameters_deepseek);
    g_test_add_func("/vectors/planner", planner);
    g_test_add_func("/vectors/zero-stages", zero_stages);
    g_test_add_func("/vectors/recipes", recipes);
    g_test_add_func("/vectors/recipes-named", named_recipes);
    g_test_add_func("/vectors/activations/22b", activations_22b);
    g_test_add_func("/vectors/activations/gpt3", activations_gpt3);
    g_test_add_func("/vectors/activations/llama", activations_llama);
    g_test_add_func("/vectors/flops/sc21", flops_sc21);
    g_test_add_func("/vectors/flops/independent-of-split", flops_independent_of_split);
    return g_test_run();
}
