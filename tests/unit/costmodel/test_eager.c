/* tests/unit/costmodel/test_eager.c - what PyTorch's own layers launch: chains of kernels, linear layers kept
 * apart, repeated keys, casts and transposes of torchao. Bytes are counted by hand. */
#include <math.h>
#include <string.h>

#include "costmodel/memory_bound.h"
#include "costmodel/activations.h"
#include "costmodel/ops.h"
#include "costmodel/pass.h"
#include "tests/unit/kernel_fixture.h"
#include "tests/unit/layer_fixture.h"

static const double TOKENS = 2 * 4096.0, HIDDEN = 4096, QUERIES = 4096, KEYS = 1024, FFN = 14336;

static void chains(void)
{
    Spec spec = fixture_spec(1, false);
    spec.execution.framework.kernels.norm = SPEC_NORM_KERNEL_EAGER;
    CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(fixture_moved(&ops, "norm"), ==, 2 * 18 * TOKENS * HIDDEN);
    g_assert_cmpfloat(fixture_moved(&ops, "norm by element"), ==, 2 * 18 * TOKENS * HIDDEN);
    g_assert_cmpfloat(fixture_moved(&ops, "rope"), ==, 20 * TOKENS * (QUERIES + KEYS));
    g_assert_cmpfloat(fixture_moved(&ops, "activation"), ==,
                      10 * TOKENS * FFN); /* silu 2 + 2, product 4 + 2 */
    ops = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    g_assert_cmpfloat(fixture_moved(&ops, "norm"), ==, 2 * 70 * TOKENS * HIDDEN);
    g_assert_cmpfloat(fixture_moved(&ops, "norm by element"), ==, 2 * 22 * TOKENS * HIDDEN);
    g_assert_cmpfloat(fixture_moved(&ops, "rope"), ==, 20 * TOKENS * (QUERIES + KEYS));
    g_assert_cmpfloat(fixture_moved(&ops, "activation"), ==, 18 * TOKENS * FFN); /* three kernels of 4 + 2 */
    spec.model.norm = SPEC_NORM_LAYERNORM;                                       /* one kernel */
    ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(fixture_moved(&ops, "norm"), ==, 2 * 4 * TOKENS * HIDDEN);
    spec.model.norm = SPEC_NORM_RMSNORM;
    spec.execution.compiled = true;
    ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(fixture_moved(&ops, "norm"), ==, 2 * 4 * TOKENS * HIDDEN);
}

/* A product that adds its bias saves the passes that read and write its output; the gradients are sums of their own. */
static void bias_in_products(void)
{
    Spec spec = fixture_spec(1, false);
    spec.model.biases = SPEC_BIASES_ALL;
    spec.model.gated_mlp = false;
    const double residual = 2 * 4.0 * TOKENS * HIDDEN, activation = 4.0 * TOKENS * FFN,
                 width = TOKENS * (QUERIES + 2 * KEYS);
    const CostOps apart = fixture_layer_ops(&spec, COST_FORWARD),
                  apart_back = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT);
    spec.execution.framework.kernels.bias = SPEC_BIAS_IN_PRODUCT;
    const CostOps inside = fixture_layer_ops(&spec, COST_FORWARD),
                  inside_back = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT);
    g_assert_cmpfloat(fixture_moved(&apart, "residual") - fixture_moved(&inside, "residual"), ==, residual);
    g_assert_cmpfloat(fixture_moved(&apart, "activation") - fixture_moved(&inside, "activation"), ==,
                      activation);
    g_assert_cmpfloat(fixture_moved(&inside_back, "qkv bias grad") -
                          fixture_moved(&apart_back, "qkv bias grad"),
                      ==, 2 * width);
    g_assert_cmpfloat(fixture_moved(&inside, "qkv bias"), ==, 0);
}

/* A scaled rotation is unfused where plain ones are one kernel: 7 and 3 elements of 2 bytes forward, 5 and 5 backward; MLA's
 * has its own kernel, and a compiler does not mind. */
static void scaled_rope(void)
{
    Spec spec = fixture_spec(1, false);
    spec.execution.framework.kernels.rope = SPEC_ROPE_FUSED;
    const double rotated = TOKENS * (QUERIES + KEYS);
    CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(fixture_moved(&ops, "rope"), ==, 4 * rotated);
    g_assert_cmpfloat(fixture_moved(&ops, "rotate"), ==, 0);
    spec.model.rope_scaled = true;
    ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(fixture_moved(&ops, "rotate"), ==, 14 * rotated);
    g_assert_cmpfloat(fixture_moved(&ops, "rope"), ==, 6 * rotated);
    ops = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    g_assert_cmpfloat(fixture_moved(&ops, "rotate"), ==, 10 * rotated);
    g_assert_cmpfloat(fixture_moved(&ops, "rope"), ==, 10 * rotated);
    spec.execution.compiled = true;
    ops = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    g_assert_cmpfloat(fixture_moved(&ops, "rotate"), ==, 0);
}

static double addressed(const CostOps *ops, const char *name)
{
    double elements = 0;
    for (int i = 0; i < ops->count; i++)
        elements += strcmp(ops->op[i].name, name) == 0 ? ops->op[i].u.memory.addressed : 0;
    return elements;
}

/* Halves that are views move the bytes of complex numbers, 20 each way, but 3.5 and 2.5 elements of each are addressed one by
 * one; what was turned is joined as before. A fused kernel and a compiler leave nothing of it. */
static void rope_of_halves(void)
{
    Spec spec = fixture_spec(1, false);
    SpecRecipeKernels *kernels = &spec.execution.framework.kernels;
    const double rotated = TOKENS * (QUERIES + KEYS);
    for (int backward = 0; backward < 2; backward++) {
        const CostPass pass = backward ? COST_BACKWARD_INPUT : COST_FORWARD;
        kernels->rope = SPEC_ROPE_COMPLEX;
        CostOps ops = fixture_layer_ops(&spec, pass);
        const double streamed = fixture_moved(&ops, "rope");
        g_assert_cmpfloat(addressed(&ops, "rotate"), ==, 0);
        kernels->rope = SPEC_ROPE_HALVES;
        ops = fixture_layer_ops(&spec, pass);
        const double stream = fixture_moved(&ops, "rope");
        g_assert_cmpfloat(fixture_moved(&ops, "rotate") + stream, ==, streamed);
        g_assert_cmpfloat(addressed(&ops, "rotate"), ==, (backward ? 2.5 : 3.5) * rotated);
        kernels->rope = SPEC_ROPE_HALVES_JOINED;
        ops = fixture_layer_ops(&spec, pass);
        g_assert_cmpfloat(fixture_moved(&ops, "rope"), ==, stream + (backward ? 8 : 4) * rotated);
        kernels->rope = SPEC_ROPE_FUSED;
        ops = fixture_layer_ops(&spec, pass);
        g_assert_cmpfloat(fixture_moved(&ops, "rope"), ==, 4 * rotated);
        g_assert_cmpfloat(fixture_moved(&ops, "rotate"), ==, 0);
    }
    spec.execution.compiled = true;
    const CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(addressed(&ops, "rotate"), ==, 0);
}

/* Latent attention turns complex numbers; a join copies what was turned; backward its empty part is cleared and added: 2 and 4 more of 2 bytes. */
static void joined_rope(void)
{
    Spec spec = fixture_spec(1, false);
    spec.model.mla =
        (SpecMla){.kv_lora_rank = 512, .qk_nope_head_dim = 128, .qk_rope_head_dim = 64, .v_head_dim = 128};
    const double rotated = TOKENS * 32 * 64;
    spec.execution.framework.kernels.rope = SPEC_ROPE_HALVES_JOINED;
    const CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(fixture_moved(&ops, "rope"), ==, 24 * rotated);
    const CostOps back = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    g_assert_cmpfloat(fixture_moved(&back, "rope"), ==, 28 * rotated);
}

/* A bias is read with the product's output and written over it, its gradient summed once. */
static void bias_apart(void)
{
    Spec spec = fixture_spec(1, false);
    const double width = TOKENS * (QUERIES + 2 * KEYS);
    spec.model.biases = SPEC_BIASES_QKV;
    for (int apart = 0; apart < 2; apart++) {
        spec.execution.framework.kernels.bias = apart ? SPEC_BIAS_QKV_APART : SPEC_BIAS_ADDED;
        const CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
        g_assert_cmpfloat(fixture_moved(&ops, "qkv bias"), ==, apart * 4 * width);
        const CostOps back = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT);
        g_assert_cmpfloat(fixture_moved(&back, "qkv bias grad"), ==, apart * 2 * width);
        spec.execution.compiled = true; /* a compiler whose products are a library's has that kernel too */
        const CostOps compiled = fixture_layer_ops(&spec, COST_FORWARD);
        g_assert_cmpfloat(fixture_moved(&compiled, "qkv bias"), ==, apart * 4 * width);
        spec.execution.compiled = false;
    }
    spec.execution.framework.kernels.bias = SPEC_BIAS_IN_PRODUCT;
    spec.execution.compiled = true; /* and one that adds it in the product sums its gradient with others */
    const CostOps fused = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT);
    g_assert_cmpfloat(fixture_moved(&fused, "qkv bias grad"), ==, 0);
}

/* FLOPs stay; products of 1,024 and 4,096 columns take longer than one of 6,144. */
static void kept_apart(void)
{
    Spec spec = fixture_spec(1, false);
    for (int pass = 0; pass < COST_PASS_COUNT; pass++) {
        spec.execution.framework.kernels.projections = SPEC_PROJECTIONS_JOINED;
        const CostOps one = fixture_layer_ops(&spec, (CostPass)pass);
        spec.execution.framework.kernels.projections = SPEC_PROJECTIONS_SEPARATE;
        const CostOps apart = fixture_layer_ops(&spec, (CostPass)pass);
        double flops[2] = {0};
        int kernels[2] = {0};
        for (int i = 0; i < one.count; i++) {
            flops[0] += one.op[i].full_flops;
            kernels[0] += one.op[i].kind == COST_OP_GEMM ? one.op[i].kernels : 0;
        }
        for (int i = 0; i < apart.count; i++) {
            flops[1] += apart.op[i].full_flops;
            kernels[1] += apart.op[i].kind == COST_OP_GEMM ? apart.op[i].kernels : 0;
        }
        g_assert_cmpfloat(flops[0], ==, flops[1]);
        g_assert_cmpint(kernels[0], ==, 4);
        g_assert_cmpint(kernels[1], ==, 7);
        /* three sums of two gradients: read both, write one */
        const double sums = pass == COST_BACKWARD_INPUT ? 3 * 6 * TOKENS * HIDDEN : 0;
        g_assert_cmpfloat(fixture_moved(&apart, "add input grads"), ==, sums);
    }
}

static double products_s(const Spec *spec, CostPass pass)
{
    CostShape shape;
    double seconds = 0;
    cost_shape_init(&shape, spec);
    const CostOps ops = fixture_layer_ops(spec, pass);
    for (int i = 0; i < ops.count; i++) {
        seconds += ops.op[i].kind == COST_OP_GEMM ? cost_op_s(&shape, &ops.op[i]) : 0;
    }
    return seconds;
}

static void kept_apart_takes_longer(void)
{
    Spec spec = fixture_spec(1, false);
    spec.cluster.accelerator.sm_count = 132;
    spec.cluster.accelerator.l2_bytes = 50e6;
    spec.cluster.accelerator.memory_bytes_per_s = 3.3e12;
    spec.cluster.accelerator.peak_flops_per_s[SPEC_BF16] = 989e12;
    for (int pass = 0; pass < COST_PASS_COUNT; pass++) {
        spec.execution.framework.kernels.projections = SPEC_PROJECTIONS_JOINED;
        const double one_s = products_s(&spec, (CostPass)pass);
        spec.execution.framework.kernels.projections = SPEC_PROJECTIONS_SEPARATE;
        g_assert_cmpfloat(products_s(&spec, (CostPass)pass), >, one_s);
        g_assert_cmpfloat(products_s(&spec, (CostPass)pass), <, 1.2 * one_s);
    }
}

/* Gate and up sum over 14,336 each when they hand their input a gradient, not over both: no long sum there. */
static void rowwise_sums_of_parts(void)
{
    Spec spec = fixture_spec(1, true);
    spec.cluster.accelerator.sm_count = 132;
    spec.cluster.accelerator.memory_bytes_per_s = 3.3e12;
    spec.cluster.accelerator.peak_flops_per_s[SPEC_FP8] = 1979e12;
    spec.training.precision = SPEC_PRECISION_FP8_ROWWISE;
    spec.execution.framework.kernels.rowwise_gemm_frac = 1;
    for (int apart = 0; apart < 2; apart++) {
        spec.execution.framework.kernels.projections =
            apart ? SPEC_PROJECTIONS_SEPARATE : SPEC_PROJECTIONS_JOINED;
        spec.execution.framework.kernels.rowwise_long_gemm_frac = 1;
        const double even_s = products_s(&spec, COST_BACKWARD_INPUT);
        spec.execution.framework.kernels.rowwise_long_gemm_frac = 0.5;
        const double slow_s = products_s(&spec, COST_BACKWARD_INPUT);
        if (apart)
            g_assert_cmpfloat(slow_s, ==, even_s);
        else
            g_assert_cmpfloat(slow_s, >, 1.3 * even_s);
    }
}

static double kept(const Spec *spec)
{
    CostShape shape;
    cost_shape_init(&shape, spec);
    return cost_layer_activations(&shape, 0, 0).kept_bytes;
}

/* The gradients that gate and up hand to their input. */
static void parts_wait_for_their_sum(void)
{
    Spec spec = fixture_spec(1, true);
    CostShape shape;
    double bytes[2];
    for (int apart = 0; apart < 2; apart++) {
        spec.execution.framework.kernels.projections =
            apart ? SPEC_PROJECTIONS_SEPARATE : SPEC_PROJECTIONS_JOINED;
        cost_shape_init(&shape, &spec);
        bytes[apart] = cost_layer_activations(&shape, 0, 0).backward_temp_bytes;
    }
    g_assert_cmpfloat(bytes[1] - bytes[0], ==, 2 * TOKENS * HIDDEN);
}

static void repeated(void)
{
    Spec spec = fixture_spec(1, false);
    const double before = kept(&spec);
    spec.execution.framework.context.repeats_kv = true;
    const CostOps forward = fixture_layer_ops(&spec, COST_FORWARD),
                  backward = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    g_assert_cmpfloat(fixture_moved(&forward, "repeat keys"), ==, 2 * 2 * TOKENS * (QUERIES + KEYS));
    g_assert_cmpfloat(fixture_moved(&backward, "repeat keys"), ==, 2 * 2 * TOKENS * (QUERIES + KEYS));
    g_assert_cmpfloat(kept(&spec) - before, ==, 2 * 2 * TOKENS * (QUERIES - KEYS));
    spec.execution.compiled = true; /* spread again in the backward */
    const double compiled = kept(&spec);
    spec.execution.framework.context.repeats_kv = false;
    g_assert_cmpfloat(kept(&spec), ==, compiled);
    spec.execution.framework.context.repeats_kv = true;
    spec.model.kv_heads = 32;
    const CostOps whole = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(fixture_moved(&whole, "repeat keys"), ==, 0);
}

/* Elements: 1/8 of a rank's hidden activations before a gather, whole behind it. */
static void casts(void)
{
    Spec spec = fixture_spec(8, true);
    SpecFramework *framework = &spec.execution.framework;
    const double part = TOKENS / 8 * HIDDEN, heads = TOKENS * QUERIES / 8, ffn = TOKENS * FFN / 8;
    const double out = TOKENS * (QUERIES + 2 * KEYS) / 8, gate = 2 * ffn;
    const double weights = (HIDDEN * (2 * QUERIES + 2 * KEYS) + 3 * HIDDEN * FFN) / 8;
    framework->tensor.tensor_gather_8bit = true;
    spec.training.precision = SPEC_PRECISION_FP8_TENSORWISE;
    CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(fixture_moved(&ops, "cast"), ==, 4 * (2 * part + heads + ffn));
    g_assert_cmpfloat(fixture_moved(&ops, "weight cast"), ==, 0);
    framework->kernels.casts =
        SPEC_CASTS_TORCHAO; /* copies for the weight gradient; "transpose" of what is gathered */
    ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(fixture_moved(&ops, "cast"), ==, 3 * (2 * part + heads + ffn));
    g_assert_cmpfloat(fixture_moved(&ops, "cast transpose"), ==, 0);
    ops = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    g_assert_cmpfloat(fixture_moved(&ops, "cast"), ==, 3 * (2 * part + out + gate));
    g_assert_cmpfloat(fixture_moved(&ops, "cast transpose"), ==, 2 * weights);
    ops = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT);
    g_assert_cmpfloat(fixture_moved(&ops, "cast transpose"), ==, 2 * (heads + ffn + out + gate));
    g_assert_cmpfloat(fixture_moved(&ops, "transpose"), ==, 2 * 4 * 8 * part);
    spec.training.precision = SPEC_PRECISION_FP8_ROWWISE;
    ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(fixture_moved(&ops, "cast"), ==, 3 * (2 * 8 * part + heads + ffn));
    g_assert_cmpfloat(fixture_moved(&ops, "weight cast"), ==, 3 * weights);
    ops = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT);
    g_assert_cmpfloat(fixture_moved(&ops, "cast"), ==, 2 * (4 * 8 * part + heads + ffn + out + gate));
    g_assert_cmpfloat(fixture_moved(&ops, "cast transpose"), ==,
                      3 * (4 * 8 * part + heads + ffn + out + gate));
    g_assert_cmpfloat(fixture_moved(&ops, "transpose"), ==, 0);
    spec.cluster.accelerator.generation = *spec_generation("blackwell"); /* products take either order */
    spec.training.precision = SPEC_PRECISION_FP8_TENSORWISE;
    ops = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT);
    g_assert_cmpfloat(fixture_moved(&ops, "cast transpose") + fixture_moved(&ops, "transpose"), ==, 0);
}

static double maxima(const Spec *spec, CostPass pass)
{
    const CostOps ops = fixture_layer_ops(spec, pass);
    double count = 0;
    for (int i = 0; i < ops.count; i++) {
        count += strcmp(ops.op[i].name, "maximum") == 0 ? ops.op[i].repeat : 0;
    }
    return count;
}

static void maxima_are_agreed(void)
{
    Spec spec = fixture_spec(8, true);
    spec.execution.framework.kernels.casts = SPEC_CASTS_TORCHAO;
    spec.execution.framework.kernels.projections = SPEC_PROJECTIONS_SEPARATE;
    g_assert_cmpfloat(maxima(&spec, COST_FORWARD), ==, 0);
    spec.training.precision = SPEC_PRECISION_FP8_TENSORWISE;
    g_assert_cmpfloat(maxima(&spec, COST_FORWARD), ==, 4);
    g_assert_cmpfloat(maxima(&spec, COST_BACKWARD_INPUT), ==, 7); /* a gradient for each linear layer */
    spec.training.precision = SPEC_PRECISION_FP8_ROWWISE;
    g_assert_cmpfloat(maxima(&spec, COST_FORWARD), ==, 0);
}

static double crossed(const CostOps *ops, const char *name)
{
    double sum = 0;
    for (int i = 0; i < ops->count; i++) {
        if (ops->op[i].kind == COST_OP_COLLECTIVE && strcmp(ops->op[i].name, name) == 0) {
            sum += ops->op[i].u.collective.collective.bytes;
        }
    }
    return sum;
}

/* Queries, keys, values, gate and up gather the same input five times instead of twice, and scatter five gradients; what
 * row-parallel layers exchange stays, and so does everything where the projections are one product. */
static void gathers_each(void)
{
    Spec spec = fixture_spec(4, false), apart = spec;
    const double whole = 2 * TOKENS * HIDDEN;
    for (int split = 0; split < 2; split++) {
        spec.execution.framework.kernels.projections =
            split != 0 ? SPEC_PROJECTIONS_SEPARATE : SPEC_PROJECTIONS_JOINED;
        apart.execution.framework.kernels.projections =
            split != 0 ? SPEC_PROJECTIONS_SEPARATE_EXCHANGED : SPEC_PROJECTIONS_JOINED;
        const CostOps was[] = {fixture_layer_ops(&spec, COST_FORWARD),
                               fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT)},
                      is[] = {fixture_layer_ops(&apart, COST_FORWARD),
                              fixture_layer_ops(&apart, COST_BACKWARD_WEIGHT)};
        g_assert_cmpfloat(crossed(&was[0], "gather"), ==, 2 * whole);
        g_assert_cmpfloat(crossed(&is[0], "gather"), ==, (split ? 5 : 2) * whole);
        g_assert_cmpfloat(crossed(&is[1], "input grad"), ==, (split ? 5 : 2) * whole);
        g_assert_cmpfloat(crossed(&is[0], "reduce"), ==, crossed(&was[0], "reduce"));
        g_assert_cmpint(is[0].count, ==, was[0].count);
    }
}

/* All logits on every rank: gathered once, and the loss moves as much as on one rank. */
static void gathers_logits(void)
{
    Spec spec = fixture_spec(4, false), alone = fixture_spec(1, false);
    spec.execution.framework.loss = (SpecRecipeLoss){.kernel = SPEC_LOSS_UNFUSED, .gathers_logits = true};
    alone.execution.framework.loss.kernel = SPEC_LOSS_UNFUSED;
    CostShape shape, one;
    CostOps ops = {.count = 0}, whole = {.count = 0};
    cost_shape_init(&shape, &spec);
    cost_shape_init(&one, &alone);
    cost_ops_head(&shape, COST_FORWARD, &ops);
    cost_ops_head(&one, COST_FORWARD, &whole);
    g_assert_cmpfloat(crossed(&ops, "gather logits"), ==, 2 * TOKENS * 128256);
    g_assert_cmpfloat(crossed(&ops, "loss reduce"), ==, 0);
    g_assert_cmpfloat(fixture_moved(&ops, "loss"), ==, fixture_moved(&whole, "loss"));
    spec.execution.framework.loss.gathers_logits = false;
    ops = (CostOps){.count = 0};
    cost_shape_init(&shape, &spec);
    cost_ops_head(&shape, COST_FORWARD, &ops);
    g_assert_cmpfloat(crossed(&ops, "gather logits"), ==, 0);
    g_assert_cmpfloat(fixture_moved(&ops, "loss"), <, fixture_moved(&whole, "loss") / 3);
}

static double kept_as(const CostOps *ops, const char *name)
{
    double sum = 0;
    for (int i = 0; i < ops->kept_count; i++) {
        sum += strcmp(ops->kept[i].name, name) == 0 ? ops->kept[i].bytes : 0;
    }
    return sum;
}

/* The stream is fp32: a norm 28 and 92 bytes an element, its input cast to 16 bits for each of q, k, v, gate and up (4 + 2,
 * and 2 + 4 back), every weight once forward and its gradient back. In fp32 training there is nothing to cast. */
static void autocast(void)
{
    Spec spec = fixture_spec(1, false);
    spec.execution.framework.kernels.norm = SPEC_NORM_KERNEL_EAGER;
    spec.execution.framework.kernels.projections = SPEC_PROJECTIONS_SEPARATE;
    const CostOps plain = fixture_layer_ops(&spec, COST_FORWARD);
    spec.execution.framework.kernels.autocast = true;
    const double stream = TOKENS * HIDDEN, weights = HIDDEN * (2 * QUERIES + 2 * KEYS) + 3 * HIDDEN * FFN;
    CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(fixture_moved(&ops, "norm"), ==, 2 * 12 * stream);
    g_assert_cmpfloat(fixture_moved(&ops, "norm by element"), ==, 2 * 16 * stream);
    g_assert_cmpfloat(fixture_moved(&ops, "autocast"), ==, 5 * 6 * stream);
    g_assert_cmpfloat(fixture_moved(&ops, "autocast weight"), ==, 6 * weights);
    g_assert_cmpfloat(fixture_moved(&ops, "residual"), ==, 2 * 10 * stream);
    g_assert_cmpfloat(kept_as(&ops, "layer input"), ==, 2 * kept_as(&plain, "layer input"));
    g_assert_cmpfloat(kept_as(&ops, "qkv input"), ==, 3 * kept_as(&plain, "qkv input"));
    g_assert_cmpfloat(kept_as(&ops, "weight cast"), ==, 2 * weights);
    ops = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    g_assert_cmpfloat(fixture_moved(&ops, "norm"), ==, 2 * 72 * stream);
    g_assert_cmpfloat(fixture_moved(&ops, "norm by element"), ==, 2 * 20 * stream);
    g_assert_cmpfloat(fixture_moved(&ops, "autocast"), ==, 5 * 6 * stream);
    spec.execution.compiled = true; /* the norm casts what it writes: 4 + 2 */
    ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(fixture_moved(&ops, "norm"), ==, 2 * 6 * stream);
    g_assert_cmpfloat(fixture_moved(&ops, "autocast"), ==, 0);
    spec.training.precision = SPEC_PRECISION_FP32;
    ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(fixture_moved(&ops, "autocast weight"), ==, 0);
}

/* Without sequence parallelism the input's gradient is reduced once for each that reads it, and each keeps its own. */
static void exchanged_apart(void)
{
    Spec spec = fixture_spec(4, false);
    spec.parallel.sequence_parallel = 0;
    spec.execution.framework.kernels.projections = SPEC_PROJECTIONS_SEPARATE;
    double bytes[2], input[2];
    for (int on = 0; on < 2; on++) {
        spec.execution.framework.kernels.projections =
            on ? SPEC_PROJECTIONS_SEPARATE_EXCHANGED : SPEC_PROJECTIONS_SEPARATE;
        const CostOps ops = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT),
                      forward = fixture_layer_ops(&spec, COST_FORWARD);
        bytes[on] = 0;
        for (int i = 0; i < ops.count; i++) {
            bytes[on] += ops.op[i].kind == COST_OP_COLLECTIVE ? ops.op[i].u.collective.collective.bytes : 0;
        }
        input[on] = kept_as(&forward, "qkv input") + kept_as(&forward, "mlp input");
    }
    g_assert_cmpfloat(bytes[1], ==, 2.5 * bytes[0]); /* 3 + 2 in place of 1 + 1 */
    g_assert_cmpfloat(input[1], ==, 2.5 * input[0]);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/eager/chains", chains);
    g_test_add_func("/eager/bias-in-products", bias_in_products);
    g_test_add_func("/eager/scaled-rope", scaled_rope);
    g_test_add_func("/eager/joined-rope", joined_rope);
    g_test_add_func("/eager/rope-of-halves", rope_of_halves);
    g_test_add_func("/eager/bias-apart", bias_apart);
    g_test_add_func("/eager/kept-apart", kept_apart);
    g_test_add_func("/eager/kept-apart-takes-longer", kept_apart_takes_longer);
    g_test_add_func("/eager/rowwise-sums-of-parts", rowwise_sums_of_parts);
    g_test_add_func("/eager/parts-wait-for-their-sum", parts_wait_for_their_sum);
    g_test_add_func("/eager/repeated", repeated);
    g_test_add_func("/eager/casts", casts);
    g_test_add_func("/eager/maxima", maxima_are_agreed);
    g_test_add_func("/eager/gathers-each", gathers_each);
    g_test_add_func("/eager/gathers-logits", gathers_logits);
    g_test_add_func("/eager/autocast", autocast);
    g_test_add_func("/eager/exchanged-apart", exchanged_apart);
    return g_test_run();
}
