/* tests/unit/costmodel/test_tiles.c - MLPs over tiles of the sequence and matrices over tiles of their output: the same work,
 * less memory, more time; and one tile is no tile. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "costmodel/activations.h"
#include "costmodel/flops.h"
#include "costmodel/ops.h"
#include "costmodel/pass.h"
#include "spec/load.h"
#include "tests/unit/layer_fixture.h"

/* Llama 3 8B, two sequences of 4,096 tokens on each of eight H100s. */
static Spec tiled(int mlp, int weights)
{
    static const char text[] = "{\"model\":\"llama3-8b\",\"cluster\":\"dgx-h100\",\"training\":{\"sequence_"
                               "length\":4096,\"micro_batch\":2,"
                               "\"global_batch\":16},\"parallel\":{\"zero\":3},\"execution\":{\"framework\":"
                               "\"transformers-deepspeed\"}}";
    GError *error = NULL;
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "here", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "here", NULL, false, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    spec->training.mlp_tiles = mlp;
    spec->parallel.weight_tiles = weights;
    return *spec;
}

typedef struct Totals {
    double model, again, seconds, temp, kept;
} Totals;

static Totals totals_of(const Spec *spec)
{
    CostShape shape;
    CostGraph graph;
    Totals sum = {0};
    cost_shape_init(&shape, spec);
    cost_graph_layer(&shape, 0, &graph);
    for (int pass = 0; pass < COST_PASS_COUNT; pass++) {
        const CostTime time = cost_time_ops(&shape, &graph.pass[pass], (CostPass)pass);
        sum.seconds += time.compute_s;
        for (int i = 0; i < graph.pass[pass].count; i++) {
            const CostOp *op = &graph.pass[pass].op[i];
            *(op->again ? &sum.again : &sum.model) += op->model_flops;
        }
    }
    const CostActivations activations = cost_activations(&shape, &graph, COST_RECOMPUTE_OP_ALL);
    sum.temp = activations.backward_temp_bytes;
    sum.kept = cost_activations(&shape, &graph, COST_RECOMPUTE_OP_NONE).kept_bytes;
    return sum;
}

static void one_is_none(void)
{
    const Spec none = tiled(0, 0), one = tiled(1, 1);
    const Totals a = totals_of(&none), b = totals_of(&one);
    for (int pass = 0; pass < COST_PASS_COUNT; pass++)
        g_assert_cmpint(fixture_layer_ops(&none, (CostPass)pass).count, ==,
                        fixture_layer_ops(&one, (CostPass)pass).count);
    g_assert_true(a.seconds <= b.seconds && a.seconds >= b.seconds);
    g_assert_true(a.model <= b.model && a.model >= b.model && b.again <= 0);
    g_assert_true(a.temp <= b.temp && a.temp >= b.temp && a.kept <= b.kept && a.kept >= b.kept);
}

/* Two sequences of 4,096 tokens, 14,336 wide, gated: 6 products of 2 x 8,192 x 4,096 x 14,336 FLOPs forward, once more in the
 * backward; what an eager gated MLP keeps inside (gate, up, the gate's activation, their product) is of one tile alone. */
static void mlp(void)
{
    const Spec whole = tiled(1, 1);
    const Totals before = totals_of(&whole);
    const double tokens = 8192, wide = 2 * tokens * 14336;
    const bool eager = !whole.execution.framework.kernels.fused_swiglu && !whole.execution.compiled;
    const double inner = (eager ? 4 : 3) * wide;
    double seconds = before.seconds, temp = before.temp;
    for (int tiles = 2; tiles <= 256; tiles *= 4) {
        const Spec spec = tiled(tiles, 1);
        const Totals after = totals_of(&spec);
        g_test_message("%d tiles: %.2f ms, %.2f GB at the peak of a backward", tiles, after.seconds * 1e3,
                       after.temp * 1e-9);
        g_assert_cmpfloat_with_epsilon(after.model / before.model, 1, 1e-12);
        g_assert_cmpfloat_with_epsilon(after.again / (6 * tokens * 4096 * 14336), 1, 1e-12);
        g_assert_cmpfloat_with_epsilon((before.kept - after.kept) / inner, 1, 1e-12);
        g_assert_cmpfloat(after.temp, <=, temp);
        g_assert_cmpfloat(after.seconds, >, seconds);
        seconds = after.seconds;
        temp = after.temp;
        const CostFlops flops = cost_flops(&spec, NULL, 0), plain = cost_flops(&whole, NULL, 0);
        g_assert_cmpfloat_with_epsilon(flops.model / plain.model, 1, 1e-12);
        g_assert_cmpfloat(flops.hardware, >, plain.hardware);
    }
    g_assert_cmpfloat(temp, <, before.temp - 0.98 * inner);
}

/* A recomputation that stops early ends with the sum before the MLP's output linear, where nothing drops out; behind it where
 * the MLP runs in tiles, whose function keeps its input when it returns. */
static void stops_early(void)
{
    for (int tiles = 1; tiles <= 8; tiles *= 8) {
        Spec spec = tiled(tiles, 1);
        spec.execution.framework.kernels.recompute_stops_early = true;
        const CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
        int outs = 0;
        for (int i = 0; i < ops.count; i++) {
            if (!g_str_equal(ops.op[i].name, "mlp out"))
                continue;
            outs++;
            g_assert_cmpint(cost_runs_again(&spec, &ops, i, COST_RECOMPUTE_OP_ALL), ==, tiles > 1);
            g_assert_false(cost_runs_again(&spec, &ops, ops.count - 1, COST_RECOMPUTE_OP_ALL));
        }
        g_assert_cmpint(outs, ==, 1);
    }
}

static void weights(void)
{
    const Spec whole = tiled(1, 1);
    const Totals before = totals_of(&whole);
    double seconds = before.seconds;
    for (int tiles = 2; tiles <= 128; tiles *= 4) {
        const Spec spec = tiled(1, tiles);
        const Totals after = totals_of(&spec);
        g_test_message("%d tiles: %.2f ms", tiles, after.seconds * 1e3);
        g_assert_cmpfloat_with_epsilon(after.model / before.model, 1, 1e-12);
        g_assert_cmpfloat(after.again, ==, 0);
        g_assert_cmpfloat_with_epsilon(after.kept / before.kept, 1, 1e-12);
        g_assert_cmpfloat(after.seconds, >, seconds);
        seconds = after.seconds;
    }
    Spec sharded_less = tiled(1, 8); /* weights that stay are not cut */
    sharded_less.parallel.zero = 2;
    g_assert_cmpfloat_with_epsilon(totals_of(&sharded_less).seconds / before.seconds, 1, 1e-12);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tiles/one-is-none", one_is_none);
    g_test_add_func("/tiles/mlp", mlp);
    g_test_add_func("/tiles/stops-early", stops_early);
    g_test_add_func("/tiles/weights", weights);
    return g_test_run();
}
