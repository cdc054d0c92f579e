/* tests/unit/costmodel/test_moe_fused.c - experts' products with what is fused behind them: bytes, SMs left free. */
#include <math.h>
#include <string.h>

#include "costmodel/ops.h"
#include "costmodel/pass.h"
#include "spec/load.h"

#define CLOSE(a, b, eps) g_assert_cmpfloat_with_epsilon((a), (b), (eps) + 1e-15)

/* DeepSeek-V3 with 32 expert ranks of a rack: 32768 rows a rank, experts 2048 wide. */
static const char scenario[] =
    "{\"model\":\"deepseek-v3\",\"cluster\":{\"accelerator\":\"gb200-nvl72\",\"gpus_per_node\":4,"
    "\"nodes\":64},"
    "\"training\":{\"sequence_length\":4096,\"global_batch\":65536,\"precision\":\"mxfp8\"},"
    "\"parallel\":{\"expert\":32,\"moe_dispatcher\":\"hybridep\"},\"execution\":{\"framework\":"
    "\"megatron-core\"}}";

static void load_spec(const char *set, const char *overlap, Spec *spec)
{
    const char *const sets[] = {set, overlap, NULL};
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(scenario, strlen(scenario), "test", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "test", sets, false, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
}

/* Products that leave every SM free are a mistake; software without the fused kernel never asks. */
static void no_sm_left(void)
{
    static const struct {
        const char *free_sms, *beside, *says;
    } cases[] = {
        {"fused_mlp_free_sms=151", "training.precision=mxfp8", NULL},
        {"fused_mlp_free_sms=152", "training.precision=mxfp8",
         "execution.framework.experts.fused_mlp_free_sms: 152 of a GPU with 152 SMs; give at most 151"},
        {"fused_mlp_free_sms=152", "training.precision=bf16", NULL},
        {"fused_mlp_free_sms=152", "execution.framework.experts.expert_products=each", NULL},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *free_sms = g_strconcat("execution.framework.experts.", cases[i].free_sms, NULL);
        const char *const sets[] = {free_sms, cases[i].beside, NULL};
        g_autoptr(GError) error = NULL;
        static Spec spec;
        OrrJsonDoc *doc = orr_json_parse(scenario, strlen(scenario), "test", NULL);
        const bool ok = spec_load_json(orr_json_root(doc), "test", sets, false, &spec, NULL, &error);
        orr_json_free(doc);
        g_assert_cmpint(ok, ==, cases[i].says == NULL);
        g_assert_true(ok || strstr(error->message, cases[i].says) != NULL);
    }
}

static CostOp product(const Spec *spec, CostPass pass, const char *name)
{
    CostOps ops = {.count = 0};
    CostShape shape;
    cost_shape_init(&shape, spec);
    cost_ops_moe(&shape, pass, COST_OUTSIDE, &ops);
    for (int i = 0; i < ops.count; i++) {
        if (strcmp(ops.op[i].name, name) == 0) {
            return ops.op[i];
        }
    }
    g_assert_not_reached();
}

static void bytes_behind_products(void)
{
    static Spec spec;
    const double rows = 32768, f = 2048, both_casts = 2 * (1 + 1.0 / 32);
    load_spec("training.precision=mxfp8", "execution.overlap=[]", &spec);
    CLOSE(product(&spec, COST_FORWARD, "experts in").u.gemm.fused_bytes, rows * f * both_casts, 1);
    CLOSE(product(&spec, COST_FORWARD, "experts out").u.gemm.fused_bytes, 0, 0);
    CLOSE(product(&spec, COST_BACKWARD_INPUT, "experts out").u.gemm.fused_bytes,
          rows * f * (2 * (2 + both_casts) - 2), 1);
    CLOSE(product(&spec, COST_BACKWARD_INPUT, "experts in").u.gemm.fused_bytes, 0, 0);
    load_spec("execution.framework.experts.expert_products=each", "execution.overlap=[]", &spec);
    CLOSE(product(&spec, COST_FORWARD, "experts in").u.gemm.fused_bytes, 0, 0);
    g_assert_cmpint(product(&spec, COST_FORWARD, "experts in").u.gemm.free_sms, ==, 0);
}

static double product_s(const Spec *spec, CostPass pass, const char *name)
{
    CostShape shape;
    cost_shape_init(&shape, spec);
    const CostOp op = product(spec, pass, name);
    return cost_op_s(&shape, &op);
}

/* 16 of 152 SMs: products are up to that much slower, but for weight gradients, another kernel. */
static void free_sms(void)
{
    static Spec spec, none;
    load_spec("training.precision=mxfp8", "execution.overlap=[]", &spec);
    load_spec("execution.framework.experts.fused_mlp_free_sms=0", "execution.overlap=[]", &none);
    g_assert_cmpint(product(&spec, COST_FORWARD, "experts in").u.gemm.free_sms, ==, 16);
    static const char *const names[] = {"experts in", "experts out"};
    for (int i = 0; i < 2; i++) {
        for (int pass = COST_FORWARD; pass <= COST_BACKWARD_INPUT; pass++) {
            const double ratio =
                product_s(&spec, (CostPass)pass, names[i]) / product_s(&none, (CostPass)pass, names[i]);
            g_assert_cmpfloat(ratio, >, 1.02);
            g_assert_cmpfloat(ratio, <, 1.02 * 152.0 / 136);
        }
        CLOSE(product_s(&spec, COST_BACKWARD_WEIGHT, names[i]),
              product_s(&none, COST_BACKWARD_WEIGHT, names[i]), 0);
    }
}

static double compute_s(const char *set, const char *overlap)
{
    static Spec spec;
    CostShape shape;
    double sum_s = 0;
    load_spec(set, overlap, &spec);
    cost_shape_init(&shape, &spec);
    for (int pass = 0; pass < 3; pass++) {
        CostOps ops = {.count = 0};
        cost_ops_moe(&shape, (CostPass)pass, COST_OUTSIDE, &ops);
        sum_s += cost_time_ops(&shape, &ops, (CostPass)pass).compute_s;
    }
    return sum_s;
}

/* What an exchange takes of the SMs beside products that left some free is less: less is lost by the two together. */
static void beside_exchanges(void)
{
    const char *margin = "execution.framework.experts.fused_mlp_free_sms=16",
               *none = "execution.framework.experts.fused_mlp_free_sms=0", *apart = "execution.overlap=[]",
               *beside = "execution.overlap=[\"expert\"]";
    const double free_lost = compute_s(margin, apart) - compute_s(none, apart),
                 exchange_lost = compute_s(none, beside) - compute_s(none, apart),
                 both_lost = compute_s(margin, beside) - compute_s(none, apart);
    g_assert_cmpfloat(free_lost, >, 0);
    g_assert_cmpfloat(exchange_lost, >, 0);
    g_assert_cmpfloat(both_lost, >, fmax(free_lost, exchange_lost));
    g_assert_cmpfloat(both_lost, <, free_lost + exchange_lost);
}

/* However many SMs products leave free, beside an exchange passes take no less than apart from it. */
static void free_beyond_use(void)
{
    static const int free_sms[] = {0, 16, 64, 128, 151};
    for (gsize i = 0; i < G_N_ELEMENTS(free_sms); i++) {
        g_autofree char *set =
            g_strdup_printf("execution.framework.experts.fused_mlp_free_sms=%d", free_sms[i]);
        g_assert_cmpfloat(compute_s(set, "execution.overlap=[\"expert\"]"), >=,
                          compute_s(set, "execution.overlap=[]"));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/moe-fused/bytes-behind-products", bytes_behind_products);
    g_test_add_func("/moe-fused/free-sms", free_sms);
    g_test_add_func("/moe-fused/no-sm-left", no_sm_left);
    g_test_add_func("/moe-fused/beside-exchanges", beside_exchanges);
    g_test_add_func("/moe-fused/free-beyond-use", free_beyond_use);
    return g_test_run();
}
