/* tests/unit/costmodel/test_moe_routing.c - routing in closed form, and the busiest rank. */
#include <math.h>
#include <string.h>

#include "costmodel/spread.h"
#include "costmodel/moe.h"
#include "costmodel/ops.h"
#include "costmodel/params.h"
#include "costmodel/pass.h"
#include "spec/load.h"

#define CLOSE(a, b, eps) g_assert_cmpfloat_with_epsilon((a), (b), (eps) + 1e-15)

static void nodes_touched(void)
{
    CLOSE(cost_moe_places_touched(256, 8, 8, 0, 0), 5.295, 5e-4);
    CLOSE(cost_moe_places_touched(256, 8, 4, 0, 0), 3.614, 5e-4);
    CLOSE(cost_moe_places_touched(256, 8, 2, 0, 0), 1.993, 5e-4);
    CLOSE(cost_moe_places_touched(256, 8, 1, 0, 0), 1, 1e-12);
    CLOSE(cost_moe_places_touched(256, 1, 8, 0, 0), 1, 1e-9);   /* one expert lies in one place */
    CLOSE(cost_moe_places_touched(16, 16, 8, 0, 0), 8, 1e-12);  /* all experts: all places */
    CLOSE(cost_moe_places_touched(256, 8, 256, 0, 0), 8, 1e-9); /* an expert a place: one each */
}

/* Draws top_k different experts of groups chosen evenly, and counts the places that they lie in. */
static double drawn_places(GRand *rand, int experts, int top_k, int places, int groups, int top_groups)
{
    double sum = 0;
    const int rounds = 20000, per_group = experts / groups;
    for (int round = 0; round < rounds; round++) {
        int group[64], expert[1024], count = 0;
        bool hit[1024] = {false};
        for (int g = 0; g < groups; g++) {
            group[g] = g;
        }
        for (int g = 0; g < top_groups; g++) {
            const int other = g_rand_int_range(rand, g, groups), swap = group[g];
            group[g] = group[other], group[other] = swap;
            for (int i = 0; i < per_group; i++) {
                expert[count++] = group[g] * per_group + i;
            }
        }
        for (int k = 0; k < top_k; k++) {
            const int other = g_rand_int_range(rand, k, count), swap = expert[k];
            expert[k] = expert[other], expert[other] = swap;
            hit[expert[k] / (experts / places)] = true;
        }
        for (int p = 0; p < places; p++) {
            sum += hit[p];
        }
    }
    return sum / rounds;
}

static void group_limited(void)
{
    static const struct {
        int experts, top_k, places, groups, top_groups;
    } cases[] = {
        {256, 8, 8, 8, 4}, {256, 8, 4, 8, 4}, {256, 8, 64, 8, 4}, {160, 6, 8, 8, 3}, {64, 6, 2, 8, 2}};
    GRand *rand = g_rand_new_with_seed(7);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const double exact = cost_moe_places_touched(cases[i].experts, cases[i].top_k, cases[i].places,
                                                     cases[i].groups, cases[i].top_groups);
        CLOSE(exact,
              drawn_places(rand, cases[i].experts, cases[i].top_k, cases[i].places, cases[i].groups,
                           cases[i].top_groups),
              0.03);
        g_assert_cmpfloat(exact, <=, fmin(cases[i].top_k, cases[i].places));
    }
    g_assert_cmpfloat(cost_moe_places_touched(256, 8, 8, 8, 4), <=, 4); /* node-limited */
    CLOSE(cost_moe_places_touched(256, 8, 8, 8, 8), cost_moe_places_touched(256, 8, 8, 0, 0), 1e-12);
    g_rand_free(rand);
}

static void capacity(void)
{
    const double share[] = {0.5, 0.25, 0.125, 0.125};
    CLOSE(cost_moe_capacity(1, 1000, 2, 4), 500, 0);
    CLOSE(cost_moe_capacity(1.25, 1001, 1, 8), 157, 0); /* Switch: 156.4 rounded up */
    CLOSE(cost_moe_dropped_frac(share, 4, 1000, 250), 0.25, 1e-12);
    CLOSE(cost_moe_dropped_frac(share, 4, 1000, 500), 0, 0);
}

static double factor(SpecRouter router, int experts, int ranks, int replicas, bool rebalance, double rows)
{
    const CostPlacement placement = {
        .experts = experts, .ranks = ranks, .replicas = replicas, .rebalance = rebalance};
    return cost_moe_load_factor(&router, &placement, rows);
}

/* The busiest of `bins` after `rows` even draws, over the mean. */
static double drawn_factor(GRand *rand, int bins, int rows)
{
    double sum = 0;
    for (int round = 0; round < 400; round++) {
        int count[64] = {0}, most = 0;
        for (int i = 0; i < rows; i++) {
            const int bin = g_rand_int_range(rand, 0, bins);
            count[bin] += 1;
            most = MAX(most, count[bin]);
        }
        sum += (double)most * bins / rows;
    }
    return sum / 400;
}

static void load_of_the_busiest(void)
{
    const SpecRouter even = {.distribution = SPEC_ROUTER_EVEN},
                     uniform = {.distribution = SPEC_ROUTER_UNIFORM};
    GRand *rand = g_rand_new_with_seed(11);
    CLOSE(factor(even, 64, 8, 0, false, 4096), 1, 0);
    CLOSE(factor(uniform, 64, 1, 0, false, 4096), 1, 0);
    for (int rows = 512; rows <= 8192; rows *= 4) {
        CLOSE(factor(uniform, 64, 8, 0, false, rows), drawn_factor(rand, 8, rows), 0.02);
        CLOSE(factor(uniform, 64, 64, 0, false, rows) / drawn_factor(rand, 64, rows), 1, 0.06);
    }
    CLOSE(factor(uniform, 64, 8, 0, false, 1e12), 1, 1e-4); /* the law of large numbers */
    g_rand_free(rand);
}

/* The busiest of `ranks` blocks of experts after `tokens` tokens drew `top_k` different experts each, over the mean. */
static double drawn_distinct(GRand *rand, int experts, int ranks, int top_k, int tokens)
{
    enum { ROUNDS = 300 };
    double sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int count[64] = {0}, most = 0;
        for (int token = 0; token < tokens; token++) {
            int deck[64];
            for (int e = 0; e < experts; e++)
                deck[e] = e;
            for (int k = 0; k < top_k; k++) {
                const int pick = g_rand_int_range(rand, k, experts), taken = deck[pick];
                deck[pick] = deck[k];
                count[taken * ranks / experts]++;
            }
        }
        for (int r = 0; r < ranks; r++)
            most = MAX(most, count[r]);
        sum += (double)most * ranks / (tokens * top_k);
    }
    return sum / ROUNDS;
}

/* Drawn without replacement, loads scatter less: of what exceeds the mean (E - k) / (E - 1), under its root. */
static void without_replacement(void)
{
    static const struct {
        int experts, ranks, top_k;
    } cases[] = {{8, 8, 2}, {8, 8, 5}, {64, 8, 6}, {16, 4, 8}, {32, 32, 16}};
    const SpecRouter uniform = {.distribution = SPEC_ROUTER_UNIFORM};
    GRand *rand = g_rand_new_with_seed(23);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        enum { TOKENS = 1024 };
        const CostPlacement placement = {
            .experts = cases[i].experts, .ranks = cases[i].ranks, .top_k = cases[i].top_k};
        const double exact = cost_moe_load_factor(&uniform, &placement, TOKENS * cases[i].top_k),
                     drawn = drawn_distinct(rand, cases[i].experts, cases[i].ranks, cases[i].top_k, TOKENS);
        g_test_message("%d experts, %d ranks, top %d: %.4f, drawn %.4f", cases[i].experts, cases[i].ranks,
                       cases[i].top_k, exact, drawn);
        CLOSE((exact - 1) / (drawn - 1), 1, 0.06);
    }
    g_rand_free(rand);
}

/* Tokens that go to all experts but one, or to all, leave a router little to choose. */
static void no_expert_twice(void)
{
    const SpecRouter routers[] = {{.distribution = SPEC_ROUTER_UNIFORM},
                                  {.distribution = SPEC_ROUTER_ZIPF, .exponent = 2},
                                  {.distribution = SPEC_ROUTER_DIRICHLET, .concentration = 0.1}};
    for (gsize i = 0; i < G_N_ELEMENTS(routers); i++) {
        for (int ranks = 2; ranks <= 8; ranks *= 2) {
            CostPlacement placement = {.experts = 8, .ranks = ranks, .top_k = 8};
            CLOSE(cost_moe_load_factor(&routers[i], &placement, 4096), 1, 1e-12);
            placement.top_k = 7;
            g_assert_cmpfloat(cost_moe_load_factor(&routers[i], &placement, 4096), <=, 8.0 / 7 + 1e-12);
            placement.top_k = 1;
            CLOSE(cost_moe_load_factor(&routers[i], &placement, 4096),
                  factor(routers[i], 8, ranks, 0, false, 4096), 0);
        }
    }
}

static void skewed(void)
{
    const SpecRouter flat = {.distribution = SPEC_ROUTER_ZIPF, .exponent = 0},
                     zipf = {.distribution = SPEC_ROUTER_ZIPF, .exponent = 1},
                     broad = {.distribution = SPEC_ROUTER_DIRICHLET, .concentration = 1e5},
                     exponential = {.distribution = SPEC_ROUTER_DIRICHLET, .concentration = 1};
    double harmonic = 0, share[64];
    for (int i = 1; i <= 64; i++) {
        harmonic += 1.0 / i;
    }
    CLOSE(factor(flat, 64, 8, 0, false, 1e12), 1, 1e-4);
    CLOSE(factor(zipf, 64, 64, 0, false, 1e14), 64 / harmonic,
          1e-4); /* the first expert's share of the whole */
    CLOSE(factor(broad, 64, 64, 0, false, 1e14), 1, 0.02);
    CLOSE(factor(exponential, 64, 64, 0, false, 1e14), harmonic,
          0.02 * harmonic); /* E max of n exponentials: H_n */
    cost_moe_shares(&zipf, 64, share);
    double sum = 0;
    for (int i = 0; i < 64; i++) {
        sum += share[i];
    }
    CLOSE(sum, 1, 1e-12);
}

static void rebalanced(void)
{
    const SpecRouter zipf = {.distribution = SPEC_ROUTER_ZIPF, .exponent = 1};
    SpecRouter given = {.distribution = SPEC_ROUTER_HISTOGRAM, .histogram_count = 4};
    const float loads[] = {4, 4, 1, 1};
    for (int i = 0; i < 4; i++) {
        given.histogram[i] = loads[i];
    }
    CLOSE(factor(given, 4, 2, 0, false, 1000), 1.6, 1e-12); /* in order: 8 of 10 on the first rank */
    CLOSE(factor(given, 4, 2, 0, true, 1000), 1, 1e-12);    /* dealt: 4 + 1 each */
    CLOSE(factor(given, 4, 4, 0, true, 1000), 1.6, 1e-12);  /* an expert a rank: nothing to deal */
    CLOSE(factor(given, 4, 4, 4, true, 1000), 16.0 / 15,
          1e-6); /* copies 3 + 3 + 1 + 1: slots of 4/3 and 1, two a rank */
    double before = INFINITY;
    for (int replicas = 0; replicas <= 64; replicas += 8) {
        const double now = factor(zipf, 64, 8, replicas, true, 1e9);
        g_assert_cmpfloat(now, <=,
                          before + 0.01); /* dealing hottest first is near the best, not always nearer */
        g_assert_cmpfloat(now, >=, 1);
        before = now;
    }
    CLOSE(before, 1, 0.03);
}

/* Gini coefficient of loads: the mean difference of any two over twice their mean. */
static double gini(const SpecRouter *router, int experts)
{
    double *share = g_new0(double, (gsize)experts), apart = 0;
    cost_moe_shares(router, experts, share);
    for (int i = 0; i < experts; i++) {
        for (int j = 0; j < experts; j++) {
            apart += fabs(share[i] - share[j]);
        }
    }
    g_free(share);
    return apart / (2 * experts);
}

static void load_deepseek(const char *software, const char *training, Spec *spec)
{
    g_autofree char *text = g_strdup_printf(
        "{\"schema\":1,\"name\":\"x\",\"model\":\"deepseek-v3\",\"cluster\":{\"accelerator\":\"h100-sxm5-"
        "80gb\","
        "\"nodes\":16,\"gpus_per_node\":8},\"training\":{\"sequence_length\":4096,\"global_batch\":128%s},"
        "\"parallel\":{\"expert\":64},\"execution\":{\"framework\":\"%s\"}}",
        training, software);
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "test", NULL, false, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
}

/* What measured routers have, and who takes it; a word of the scenario wins. */
static void learned(void)
{
    static Spec spec;
    load_deepseek("megatron-lm", "", &spec);
    g_assert_cmpint(spec.training.router.distribution, ==, SPEC_ROUTER_LEARNED);
    CLOSE(gini(&spec.training.router, 256), 0.24, 0.005);
    g_assert_cmpfloat(
        cost_moe_load_factor(&spec.training.router, &(CostPlacement){.experts = 256, .ranks = 64}, 1e9), >,
        1.2);
    load_deepseek("megatron-core", ",\"router\":\"framework\"", &spec); /* its recipes force a balance */
    g_assert_cmpint(spec.training.router.distribution, ==, SPEC_ROUTER_EVEN);
    load_deepseek("megatron-lm", ",\"router\":\"even\"", &spec);
    g_assert_cmpint(spec.training.router.distribution, ==, SPEC_ROUTER_EVEN);
    load_deepseek("megatron-core", ",\"router\":\"learned\"", &spec);
    g_assert_cmpint(spec.training.router.distribution, ==, SPEC_ROUTER_LEARNED);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/moe/nodes-touched", nodes_touched);
    g_test_add_func("/moe/group-limited", group_limited);
    g_test_add_func("/moe/capacity", capacity);
    g_test_add_func("/moe/load-of-the-busiest", load_of_the_busiest);
    g_test_add_func("/moe/without-replacement", without_replacement);
    g_test_add_func("/moe/no-expert-twice", no_expert_twice);
    g_test_add_func("/moe/skewed", skewed);
    g_test_add_func("/moe/rebalanced", rebalanced);
    g_test_add_func("/moe/learned", learned);
    return g_test_run();
}
