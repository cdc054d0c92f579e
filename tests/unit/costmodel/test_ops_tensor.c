/* tests/unit/costmodel/test_ops_tensor.c - ops that tensor parallelism adds: what travels, what it is copied for, and what
 * hides it. */
#include <math.h>
#include <string.h>

#include "costmodel/ops.h"
#include "costmodel/pass.h"
#include "spec/load.h"
#include "tests/unit/layer_fixture.h"
#include "tests/unit/tensor_fixture.h"

static void gathers_of_frameworks(void)
{
    Spec spec = make_spec(4, true, SPEC_ATTENTION_CUDNN);
    const double whole = 8192.0 * 4096 * 2;
    CostOps ops = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    g_assert_cmpfloat(gathered(&ops), ==, 4 * whole); /* two inputs again, two output gradients */
    spec.execution.framework.tensor.keeps_gathered_input = true;
    spec.execution.framework.tensor.tensor_layout_copies = 1;
    ops = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    g_assert_cmpfloat(gathered(&ops), ==, 2 * whole);
    g_assert_cmpfloat(move_bytes(&ops, "layout"), ==, 2 * 2 * whole);
    ops = fixture_layer_ops(&spec, COST_FORWARD); /* two gathers, two reduce-scatters */
    g_assert_cmpfloat(move_bytes(&ops, "layout"), ==, 4 * 2 * whole);
    spec.training.precision = SPEC_PRECISION_FP8;
    spec.execution.framework.tensor.tensor_gather_8bit = true;
    ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(gathered(&ops), ==, whole);
    /* for the weight gradients, tokens innermost: two inputs and two output gradients, whole */
    spec.cluster.accelerator.generation = *spec_generation("hopper");
    ops = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT);
    g_assert_cmpfloat(move_bytes(&ops, "transpose"), ==, 4 * whole);
    spec.cluster.accelerator.generation = *spec_generation("blackwell");
    ops = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT);
    g_assert_cmpfloat(move_bytes(&ops, "transpose"), ==, 0);
    spec.training.precision = SPEC_PRECISION_FP8_ROWWISE;
    ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(gathered(&ops), ==, 2 * whole);
}

static int count_named(const CostOps *ops, const char *name)
{
    int count = 0;
    for (int i = 0; i < ops->count; i++) {
        count += strcmp(ops->op[i].name, name) == 0;
    }
    return count;
}

/* Pieces are multiplied where they arrive, and added where they lie. A cast between gather and product leaves a gather as
 * it is, and what reads a sum of products, the backward's reduce-scatters, stays whole where nothing runs beside it. The
 * weights' gradients want what came in pieces, two inputs and two output gradients, in the order of several sequences. */
static void pieces_of_products(void)
{
    Spec spec = make_spec(4, true, SPEC_ATTENTION_CUDNN);
    SpecRecipeTensor *tensor = &spec.execution.framework.tensor;
    const double whole = 8192.0 * 4096 * 2;
    tensor->keeps_gathered_input = true;
    tensor->tensor_layout_copies = 1;
    tensor->tensor_gather_8bit = true;
    tensor->tensor_overlap = SPEC_TENSOR_PIECES;
    tensor->overlap_tensor_backward = false;
    spec.execution.overlap = SPEC_OVERLAP_TENSOR;
    static const struct {
        SpecPrecision precision;
        int forward, backward, weight; /* gathers that are put in order */
    } cases[] = {
        {SPEC_PRECISION_BF16, 0, 0, 4},
        {SPEC_PRECISION_FP8_TENSORWISE, 0, 0, 0},
        {SPEC_PRECISION_FP8_ROWWISE, 2, 2, 0},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        spec.training.precision = cases[i].precision;
        for (int sums = 0; sums < 2; sums++) {
            tensor->tensor_overlap = sums == 1 ? SPEC_TENSOR_SUMMED_PIECES : SPEC_TENSOR_PIECES;
            const CostOps forward = fixture_layer_ops(&spec, COST_FORWARD),
                          input = fixture_layer_ops(&spec, COST_BACKWARD_INPUT),
                          weight = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT);
            g_assert_cmpfloat(move_bytes(&forward, "layout"), ==, cases[i].forward * 2 * whole);
            g_assert_cmpfloat(move_bytes(&input, "layout"), ==, cases[i].backward * 2 * whole);
            g_assert_cmpfloat(move_bytes(&weight, "layout"), ==, (2 + cases[i].weight) * 2 * whole);
            g_assert_cmpfloat(move_bytes(&forward, "sum pieces"), ==, sums * 2 * (whole + whole / 4));
        }
    }
    tensor->overlap_tensor_backward = true;
    const CostOps weight = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT);
    g_assert_cmpfloat(move_bytes(&weight, "layout"), ==, 2 * 2 * whole); /* row-wise: as without overlap */
    spec.training.precision = SPEC_PRECISION_BF16;
    const CostOps beside = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT);
    g_assert_cmpfloat(move_bytes(&beside, "layout"), ==, 4 * 2 * whole);
    spec.training.micro_batch = 1;
    spec.training.sequence_length *= 2;
    const CostOps one = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT);
    g_assert_cmpfloat(move_bytes(&one, "layout"), ==, 0);
}

/* Latents of 1536 and 512 + 64 travel twice each way, the block's input once more; nowhere else. */
static void cut_latents(void)
{
    const double tokens = 8192.0, latents = tokens * (1536 + 512 + 64) * 2, whole = tokens * 4096 * 2;
    for (int on = 0; on < 2; on++) {
        Spec spec = make_spec(4, true, SPEC_ATTENTION_CUDNN);
        spec.model.mla = (SpecMla){.q_lora_rank = 1536,
                                   .kv_lora_rank = 512,
                                   .qk_nope_head_dim = 128,
                                   .qk_rope_head_dim = 64,
                                   .v_head_dim = 128};
        spec.execution.framework.tensor.cuts_latents = on == 1;
        const CostOps forward = fixture_layer_ops(&spec, COST_FORWARD),
                      backward = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
        g_assert_cmpint(count_named(&forward, "latents"), ==, 4 * on);
        g_assert_cmpint(count_named(&forward, "gather"), ==, 2 + on);
        g_assert_cmpfloat(gathered(&forward), ==, (2 + on) * whole + on * 2 * latents);
        g_assert_cmpint(count_named(&backward, "latents"), ==, 4 * on);
        spec.model.mla = (SpecMla){0};
        const CostOps plain = fixture_layer_ops(&spec, COST_FORWARD);
        g_assert_cmpint(count_named(&plain, "latents"), ==, 0);
    }
}

/* Blocks are scaled along rows for one product and along columns for the other, so a gradient that both read travels
 * twice, and user buffers have no room for the scales; one scale for the whole tensor asks all ranks for the maximum
 * first. 4 bits are never cut in pieces. */
static void scales_of_gathered_tensors(void)
{
    Spec spec = make_spec(4, true, SPEC_ATTENTION_CUDNN);
    const double elements = 8192.0 * 4096;
    spec.execution.framework.tensor.keeps_gathered_input = true;
    spec.execution.framework.tensor.tensor_gather_8bit = true;
    spec.execution.framework.tensor.tensor_overlap = SPEC_TENSOR_PIECES;
    spec.execution.overlap = SPEC_OVERLAP_TENSOR;
    static const struct {
        SpecPrecision precision;
        double element; /* bytes as it travels */
        int ways, maxima, apart;
        bool overlaps;
    } cases[] = {
        {SPEC_PRECISION_FP8, 1, 1, 0, 0, true},
        {SPEC_PRECISION_FP8_CS, 1, 1, 2, 0, true},
        {SPEC_PRECISION_MXFP8, 1 + 1.0 / 32, 2, 0, 2, true},
        {SPEC_PRECISION_NVFP4, 0.5 + 1.0 / 16, 2, 2, 0, false},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        spec.training.precision = cases[i].precision;
        CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
        g_assert_cmpfloat(gathered(&ops), ==, 2 * elements * cases[i].element);
        g_assert_cmpint(count_named(&ops, "maximum"), ==, cases[i].maxima);
        ops = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
        g_assert_cmpfloat(gathered(&ops), ==, 2 * elements * cases[i].element * cases[i].ways);
        g_assert_cmpint(count_named(&ops, "maximum"), ==, cases[i].maxima);
        g_assert_cmpint(count_named(&ops, "gather scales"), ==, cases[i].apart); /* along rows alone */
        spec.execution.overlap = 0; /* without user buffers data and scales are one collective */
        ops = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
        g_assert_cmpint(count_named(&ops, "gather scales"), ==, 0);
        g_assert_cmpfloat(gathered(&ops), ==, 2 * elements * cases[i].element * cases[i].ways);
        spec.execution.overlap = SPEC_OVERLAP_TENSOR;
        CostShape shape;
        cost_shape_init(&shape, &spec);
        g_assert_true(cost_overlaps_tensor(&shape) == cases[i].overlaps);
        ops = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT); /* two inputs and two output gradients */
        const bool fp4 = cases[i].precision == SPEC_PRECISION_NVFP4;
        g_assert_cmpint(count_named(&ops, "interleave"), ==, fp4 ? 4 : 0);
        for (int k = 0; k < ops.count; k++) {
            if (strcmp(ops.op[k].name, "interleave") == 0) {
                g_assert_cmpfloat(cost_moved_bytes(&ops.op[k]), ==, 2 * elements * cases[i].element);
            }
        }
    }
    spec.training.precision = SPEC_PRECISION_FP8_TENSORWISE;
    spec.execution.framework.kernels.casts = SPEC_CASTS_TORCHAO; /* of every cast, and of each once */
    const CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpint(count_named(&ops, "maximum"), ==, 4);
}

/* Reductions beside weight gradients: shared SMs hide most of them, products dealt out beforehand nothing, user buffers
 * most again. */
static void static_products_hide_nothing(void)
{
    Spec spec = make_spec(4, true, SPEC_ATTENTION_CUDNN);
    CostShape shape;
    g_autoptr(GError) error = NULL;
    g_assert_true(spec_load_cluster("dgx-b200", &spec.cluster, &error));
    spec.cluster.nodes = 1;
    spec.execution.framework.kernels.attention_speed_frac = 1;
    spec.execution.framework.tensor.overlap_tensor_backward = true;
    spec.training.sequence_length = 16384;
    const CostOps ops = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT);
    double alone_s = 0;
    g_assert_true(spec.cluster.accelerator.static_products);
    cost_shape_init(&shape, &spec);
    for (int i = 0; i < ops.count; i++) {
        alone_s += ops.op[i].kind == COST_OP_COLLECTIVE ? cost_op_s(&shape, &ops.op[i]) : 0;
    }
    g_assert_cmpfloat_with_epsilon(cost_time_ops(&shape, &ops, COST_BACKWARD_WEIGHT).comm_s[COST_COMM_TENSOR],
                                   alone_s, 1e-12);
    spec.execution.overlap = SPEC_OVERLAP_TENSOR;
    g_assert_cmpfloat(cost_time_ops(&shape, &ops, COST_BACKWARD_WEIGHT).comm_s[COST_COMM_TENSOR], <,
                      0.7 * alone_s);
    spec.execution.overlap = 0;
    spec.cluster.accelerator.static_products = false;
    cost_shape_init(&shape, &spec);
    g_assert_cmpfloat(cost_time_ops(&shape, &ops, COST_BACKWARD_WEIGHT).comm_s[COST_COMM_TENSOR], <,
                      0.7 * alone_s);
    /* What nothing hides waits for streams and ranks. */
    spec.execution.framework.tensor.overlap_tensor_backward = false;
    const double before_s = cost_time_ops(&shape, &ops, COST_BACKWARD_WEIGHT).comm_s[COST_COMM_TENSOR];
    spec.execution.framework.host.collective_gap_s = 1e-5;
    g_assert_cmpfloat_with_epsilon(cost_time_ops(&shape, &ops, COST_BACKWARD_WEIGHT).comm_s[COST_COMM_TENSOR],
                                   before_s + 2e-5, 1e-12);
}

/* Tensor communication of a layer's pass that compute waits for, with `overlap`. */
static double waited_s(const Spec *spec, CostPass pass, unsigned overlap)
{
    Spec other = *spec;
    CostShape shape;
    other.execution.overlap = overlap;
    cost_shape_init(&shape, &other);
    const CostOps ops = fixture_layer_ops(&other, pass);
    return cost_time_ops(&shape, &ops, pass).comm_s[COST_COMM_TENSOR];
}

/* A rank's own quarter of a product hides a gather of the input, and backward of the output's gradient, at most for as long
 * as it takes; what is left of the product is two smaller ones, which take no less. */
static void own_part_hides_gathers(void)
{
    Spec spec = make_spec(4, true, SPEC_ATTENTION_CUDNN);
    CostShape shape;
    g_autoptr(GError) error = NULL;
    g_assert_true(spec_load_accelerator("h100-sxm5-80gb", &spec.cluster.accelerator, &error));
    spec.execution.framework.kernels.attention_speed_frac = 1;
    spec.execution.framework.tensor.tensor_overlap = SPEC_TENSOR_OWN_PRODUCTS;
    spec.training.sequence_length = 16384;
    for (int pass = COST_FORWARD; pass <= COST_BACKWARD_INPUT; pass++) {
        const CostOps ops = fixture_layer_ops(&spec, (CostPass)pass);
        const char *const parts[2][2] = {{"qkv", "mlp in"}, {"attention out", "mlp out"}};
        double own_s = 0;
        cost_shape_init(&shape, &spec);
        for (int i = 0; i < ops.count; i++)
            for (int j = 0; j < 2; j++)
                own_s += g_str_equal(ops.op[i].name, parts[pass][j]) ? cost_op_s(&shape, &ops.op[i]) / 4 : 0;
        const double alone_s = waited_s(&spec, (CostPass)pass, 0),
                     beside_s = waited_s(&spec, (CostPass)pass, SPEC_OVERLAP_TENSOR);
        g_assert_cmpfloat(own_s, >, 0);
        g_assert_cmpfloat(beside_s, <, alone_s);
        g_assert_cmpfloat(beside_s, >=, alone_s - own_s);
    }
}

/* A piece of queries, keys and values that are apart is a kernel for each of them, as small as each. */
static void pieces_of_parts(void)
{
    Spec spec = make_spec(4, true, SPEC_ATTENTION_CUDNN);
    CostShape shape;
    CostPassSteps steps;
    g_autoptr(GError) error = NULL;
    g_assert_true(spec_load_accelerator("h100-sxm5-80gb", &spec.cluster.accelerator, &error));
    spec.execution.framework.kernels.attention_speed_frac = 1;
    spec.execution.framework.kernels.projections = SPEC_PROJECTIONS_SEPARATE;
    spec.execution.framework.tensor.tensor_overlap = SPEC_TENSOR_PIECES;
    spec.execution.overlap = SPEC_OVERLAP_TENSOR;
    spec.model.kv_heads = 4; /* one on each rank */
    spec.training.sequence_length = 16384;
    cost_shape_init(&shape, &spec);
    const CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
    cost_pass_steps(&shape, &ops, NULL, COST_FORWARD, &steps);
    for (int i = 0; i < ops.count; i++) {
        if (!g_str_equal(ops.op[i].name, "gather"))
            continue;
        const CostOp *product = &ops.op[steps.step[i].under];
        double parts_s = 0;
        for (int k = 0; k < COST_MAX_PARTS && product->parts[k] > 0; k++) {
            CostGemm piece = product->u.gemm;
            piece.m /= 4, piece.n = product->parts[k];
            parts_s += shape.slowest * cost_gemm_s(&shape.accelerator, &piece);
        }
        g_assert_cmpint(steps.step[i].beside, ==, COST_BESIDE_PIECES);
        g_assert_cmpfloat_with_epsilon(steps.step[i].part_s, fmax(parts_s, cost_op_s(&shape, product) / 4),
                                       1e-12);
        g_assert_true(product->parts[2] <= 0 || parts_s > cost_op_s(&shape, product) / 4);
    }
}

static double product_flops(const CostOps *ops)
{
    double sum = 0;
    for (int i = 0; i < ops->count; i++) {
        const CostGemm *gemm = &ops->op[i].u.gemm;
        sum += ops->op[i].kind == COST_OP_GEMM ? gemm->m * gemm->n * gemm->k * gemm->groups : 0;
    }
    return sum;
}

/* Grids cut a product into other blocks: of as many operations on each rank. */
static void blocks_of_grids(void)
{
    static const struct {
        SpecTensorScheme scheme;
        int tensor, depth;
    } grids[] = {{SPEC_TENSOR_2D, 4, 1}, {SPEC_TENSOR_2_5D, 8, 2}, {SPEC_TENSOR_3D, 8, 1}};
    for (gsize i = 0; i < G_N_ELEMENTS(grids); i++)
        for (CostPass pass = COST_FORWARD; pass < COST_PASS_COUNT; pass++) {
            Spec spec = make_spec(grids[i].tensor, false, SPEC_ATTENTION_CUDNN);
            const CostOps line = fixture_layer_ops(&spec, pass);
            spec.parallel.tensor_scheme = grids[i].scheme;
            spec.parallel.tensor_depth = grids[i].depth;
            const CostOps grid = fixture_layer_ops(&spec, pass);
            const double flops = product_flops(&line);
            g_assert_cmpfloat(flops, >, 0);
            g_assert_cmpfloat_with_epsilon(product_flops(&grid) / flops, 1, 1e-12);
        }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ops/blocks-of-grids", blocks_of_grids);
    g_test_add_func("/ops/own-part-hides-gathers", own_part_hides_gathers);
    g_test_add_func("/ops/gathers-of-frameworks", gathers_of_frameworks);
    g_test_add_func("/ops/pieces-of-products", pieces_of_products);
    g_test_add_func("/ops/pieces-of-parts", pieces_of_parts);
    g_test_add_func("/ops/cut-latents", cut_latents);
    g_test_add_func("/ops/scales-of-gathered-tensors", scales_of_gathered_tensors);
    g_test_add_func("/ops/static-products-hide-nothing", static_products_hide_nothing);
    return g_test_run();
}
