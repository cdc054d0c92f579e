/* tests/unit/costmodel/test_exchange_beside.c - what kernels of each kind lose to an exchange that hides beside them. */
#include <string.h>

#include "costmodel/exchange_beside.h"
#include "tests/unit/run_fixture.h"

/* DeepEP's 20 of 132 SMs beside a layer of DeepSeek-V3. */
static void test_losses(void)
{
    Run *run = run_example("deepseek-v3-pair", NULL, &(ReportOptions){0});
    CostShape shape;
    CostGraph *graph = g_new(CostGraph, 1);
    cost_shape_init(&shape, run->spec);
    cost_graph_layer(&shape, 1, graph);
    int seen[3] = {0};
    for (int pass = 0; pass < COST_BACKWARD_WEIGHT; pass++) {
        const CostOps *ops = &graph->pass[pass];
        const CostExchangeShare share = cost_exchange_share(&shape, ops, NULL);
        g_assert_cmpfloat(share.sms, ==, 20);
        g_assert_cmpfloat(share.memory_frac, >, 0.05);
        g_assert_cmpfloat(share.memory_frac, <, 0.25);
        for (int i = 0; i < ops->count; i++) {
            const CostOp *op = &ops->op[i];
            const double loss = cost_exchange_loss_s(&shape, op, &share) / cost_op_s(&shape, op);
            if (op->kind == COST_OP_COLLECTIVE) {
                g_assert_cmpfloat(loss, ==, 0);
            } else if (op->kind == COST_OP_MEMORY &&
                       (strcmp(op->name, "norm") == 0 || op->u.memory.norm.blocks == COST_NORM_SUMMAND)) {
                g_assert_cmpfloat(loss, ==, 1); /* blocks for 132 SMs on 112: two waves */
                seen[0]++;
            } else if (op->kind == COST_OP_MEMORY && op->module != COST_MODULE_NORM) {
                g_assert_cmpfloat_with_epsilon(loss, share.memory_frac / (1 - share.memory_frac), 1e-12);
                seen[1]++;
            } else if (op->kind != COST_OP_MEMORY) {
                g_assert_cmpfloat(loss, >=, 0);
                g_assert_cmpfloat(loss, <, 1); /* one wave more at most */
                seen[2] += loss > 0.1;
            }
        }
    }
    g_assert_true(seen[0] >= 4 && seen[1] >= 10 && seen[2] >= 10);
    g_free(graph);
    run_free(run);
}

/* Nothing hides: nothing is lost. */
static void test_nothing_hides(void)
{
    Run *run = run_example("deepseek-v3-pair", "execution.overlap=[\"grad_reduce\"]", &(ReportOptions){0});
    CostShape shape;
    CostGraph *graph = g_new(CostGraph, 1);
    cost_shape_init(&shape, run->spec);
    cost_graph_layer(&shape, 1, graph);
    const CostExchangeShare share = cost_exchange_share(&shape, &graph->pass[COST_FORWARD], NULL);
    g_assert_cmpfloat(share.sms, ==, 0);
    for (int i = 0; i < graph->pass[COST_FORWARD].count; i++)
        g_assert_cmpfloat(cost_exchange_loss_s(&shape, &graph->pass[COST_FORWARD].op[i], &share), ==, 0);
    g_free(graph);
    run_free(run);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/costmodel/exchange-beside/losses", test_losses);
    g_test_add_func("/costmodel/exchange-beside/nothing-hides", test_nothing_hides);
    return g_test_run();
}
