/* tests/unit/costmodel/test_placement.c - ranks on the machine: groups counted one by one over every rank of random
 * jobs agree with what the cost model asks for, and orders mean what Megatron-Core means by them. */
#include <string.h>

#include "base/error.h"
#include "costmodel/placement.h"
#include "spec/placement.h"
#include "tests/unit/draws.h"

static const char *const ORDERS[] = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "dp-tp-cp-ep-pp", "pp-tp-cp-ep-dp",
                                     "cp-tp-ep-dp-pp", "ep-dp-tp-cp-pp", "dp-pp-ep-cp-tp"};
static const int SIZES[] = {1, 2, 3, 4, 5, 6, 8};

#define PICK(rand, list) (list)[g_rand_int_range((rand), 0, (int)G_N_ELEMENTS(list))]

static Spec job(const char *order, int node, int domain, int tensor, int context, int data, int pipeline)
{
    Spec spec = {.cluster = {.gpus_per_node = node, .scale_up_domain_gpus = domain},
                 .parallel = {.tensor = tensor,
                              .context = context,
                              .data = data,
                              .pipeline = pipeline,
                              .expert = 1,
                              .expert_tensor = 1}};
    g_strlcpy(spec.parallel.order, order, sizeof spec.parallel.order);
    spec.cluster.nodes = tensor * context * data * pipeline / node;
    return spec;
}

/* Index of `rank` along the dimension that `name` names, ranks dealt out digit by digit. First letters tell dimensions
 * apart. */
static int digit(const Spec *spec, bool experts, const char *name, int rank)
{
    const SpecParallel *p = &spec->parallel;
    const int all = p->tensor * p->context * p->data;
    for (const char *text = p->order; *text != '\0'; text += text[2] == '-' ? 3 : 2) {
        const int size = *text == 't'   ? (experts ? p->expert_tensor : p->tensor)
                         : *text == 'c' ? (experts ? 1 : p->context)
                         : *text == 'e' ? (experts ? p->expert : 1)
                         : *text == 'd' ? (experts ? all / (p->expert * p->expert_tensor) : p->data)
                                        : p->pipeline;
        if (*text == *name)
            return rank % size;
        rank /= size;
    }
    g_assert_not_reached();
}

static bool member(CostRanks ranks, const char *name)
{
    switch (ranks) {
    case COST_RANKS_TENSOR:
    case COST_RANKS_EXPERT_TENSOR:
        return strcmp(name, "tp") == 0;
    case COST_RANKS_CONTEXT:
        return strcmp(name, "cp") == 0;
    case COST_RANKS_REPLICAS:
        return strcmp(name, "cp") == 0 || strcmp(name, "dp") == 0;
    case COST_RANKS_EXPERT:
        return strcmp(name, "ep") == 0;
    case COST_RANKS_EXPERT_REPLICAS:
        return strcmp(name, "dp") == 0;
    default:
        return true;
    }
}

/* Two ranks are in one instance when they differ in the group's own dimensions only. */
static bool together(const Spec *spec, CostRanks ranks, int a, int b)
{
    static const char *const names[] = {"tp", "cp", "ep", "dp", "pp"};
    const bool experts = ranks >= COST_RANKS_EXPERT && ranks <= COST_RANKS_EXPERT_REPLICAS;
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        if (!member(ranks, names[i]) &&
            digit(spec, experts, names[i], a) != digit(spec, experts, names[i], b))
            return false;
    return true;
}

static int gcd(int a, int b)
{
    return b == 0 ? a : gcd(b, a % b);
}

/* Every instance, one rank at a time. */
static CostGroup counted(const Spec *spec, CostRanks ranks)
{
    const int gpus = spec_gpus(spec), domain = spec_domain_gpus(spec);
    CostGroup worst = {.domains = 1};
    for (int first = 0; first < gpus; first++) {
        int count = 0, domains = 0, here = 0, last = -1, rails = G_MAXINT, block = 0;
        for (int rank = 0; rank < gpus; rank++) {
            if (!together(spec, ranks, first, rank))
                continue;
            if (rank / domain != last) {
                rails = domains > 0 ? MIN(rails, here) : rails;
                block = gcd(block, count);
                domains++, here = 0;
            }
            last = rank / domain;
            here++, count++;
        }
        rails = MIN(rails, here);
        worst.ranks = count;
        worst.per_domain = gcd(gcd(worst.per_domain, block), count);
        const bool more = domains > worst.domains;
        if (domains > 1 && (worst.domains == 1 || rails < worst.rails || (rails == worst.rails && more)))
            worst.domains = domains, worst.rails = rails;
    }
    worst.rails = worst.domains == 1 ? worst.ranks : worst.rails;
    return worst;
}

static void check(const Spec *spec, CostRanks ranks)
{
    const CostGroup group = cost_group(spec, ranks), expected = counted(spec, ranks);
    const int rails = group.rails > 0 ? group.rails : group.per_domain;
    if (group.per_domain != expected.per_domain || rails != expected.rails)
        g_test_message("%s node %d domain %d t%d c%d d%d p%d e%dx%d group %d: %d %d %d, not %d %d %d",
                       spec->parallel.order, spec->cluster.gpus_per_node, spec->cluster.scale_up_domain_gpus,
                       spec->parallel.tensor, spec->parallel.context, spec->parallel.data,
                       spec->parallel.pipeline, spec->parallel.expert, spec->parallel.expert_tensor,
                       (int)ranks, group.per_domain, cost_group_domains(&group), rails, expected.per_domain,
                       expected.domains, expected.rails);
    g_assert_cmpint(group.ranks, ==, expected.ranks);
    g_assert_cmpint(group.per_domain, ==, expected.per_domain);
    g_assert_cmpint(cost_group_domains(&group), ==, expected.domains);
    g_assert_cmpint(rails, ==, expected.rails);
}

static bool inside(const Spec *spec, int a, int b)
{
    const int gpus = spec_gpus(spec), domain = spec_domain_gpus(spec);
    for (int rank = 0; rank < gpus; rank++)
        for (int other = 0; other < gpus; other++) {
            bool same = digit(spec, false, "pp", rank) == a && digit(spec, false, "pp", other) == b;
            for (const char *const *name = (const char *const[]){"tp", "cp", "dp", NULL}; *name != NULL;
                 name++)
                same = same && digit(spec, false, *name, rank) == digit(spec, false, *name, other);
            if (same && rank / domain != other / domain)
                return false;
        }
    return true;
}

static void random_jobs(void)
{
    GRand *rand = g_rand_new_with_seed(5);
    int tried = 0, uneven = 0;
    while (tried < DRAWS(1500)) {
        const int tensor = PICK(rand, SIZES), context = g_rand_int_range(rand, 1, 4),
                  data = PICK(rand, SIZES), pipeline = g_rand_int_range(rand, 1, 5),
                  gpus = tensor * context * data * pipeline;
        const int node = PICK(rand, SIZES), domain = node * g_rand_int_range(rand, 1, 4);
        if (gpus % node != 0 || gpus > 300)
            continue;
        Spec spec = job(PICK(rand, ORDERS), node, domain, tensor, context, data, pipeline);
        const int expert = PICK(rand, SIZES), slices = PICK(rand, SIZES);
        GError *error = NULL;
        check(&spec, COST_RANKS_TENSOR);
        check(&spec, COST_RANKS_CONTEXT);
        check(&spec, COST_RANKS_REPLICAS);
        check(&spec, COST_RANKS_ALL);
        uneven += cost_group(&spec, COST_RANKS_TENSOR).rails > 0;
        for (int r = 1; r < pipeline; r++)
            g_assert_cmpint(cost_pipeline_inside(&spec, r - 1, r), ==, inside(&spec, r - 1, r));
        if (tensor * context * data % (expert * slices) == 0) {
            spec.parallel.expert = expert;
            spec.parallel.expert_tensor = slices;
            spec.model.moe.experts = 1;
            if (spec_check_order(&spec, &error)) {
                check(&spec, COST_RANKS_EXPERT);
                check(&spec, COST_RANKS_EXPERT_TENSOR);
                check(&spec, COST_RANKS_EXPERT_REPLICAS);
            }
            g_clear_error(&error);
        }
        tried++;
    }
    g_assert_cmpint(uneven, >, DRAWS(100));
    g_rand_free(rand);
}

static void known_spans(void)
{
    Spec spec = job("tp-cp-ep-dp-pp", 8, 8, 8, 1, 4, 2);
    g_assert_cmpint(cost_group(&spec, COST_RANKS_TENSOR).per_domain, ==, 8);
    g_assert_cmpint(cost_group(&spec, COST_RANKS_REPLICAS).per_domain, ==, 1);
    spec = job("dp-tp-cp-ep-pp", 8, 8, 8, 1, 4, 2); /* data inside: a tensor group has two ranks a node */
    g_assert_cmpint(cost_group(&spec, COST_RANKS_TENSOR).per_domain, ==, 2);
    g_assert_cmpint(cost_group(&spec, COST_RANKS_REPLICAS).per_domain, ==, 4);
    spec = job("tp-cp-ep-dp-pp", 8, 8, 16, 1, 2, 2); /* a stage's tensor group over two nodes */
    g_assert_cmpint(cost_group(&spec, COST_RANKS_TENSOR).per_domain, ==, 8);
    g_assert_cmpint(cost_group_domains(&(CostGroup){.ranks = 16, .per_domain = 8}), ==, 2);
    spec = job("tp-cp-ep-dp-pp", 8, 8, 6, 1, 4, 1); /* 6 of 8: some groups lie 4 + 2 and 2 + 4 */
    const CostGroup six = cost_group(&spec, COST_RANKS_TENSOR);
    g_assert_cmpint(six.domains, ==, 2);
    g_assert_cmpint(six.rails, ==, 2);
    g_assert_cmpint(six.per_domain, ==, 2);
    spec = job("tp-cp-ep-pp-dp", 8, 8, 2, 1, 4, 4); /* the pipeline inside the node */
    g_assert_true(cost_pipeline_inside(&spec, 0, 3));
    spec = job("tp-cp-ep-dp-pp", 8, 8, 2, 1, 2, 4); /* two pipeline ranks a node: every second boundary */
    g_assert_true(cost_pipeline_inside(&spec, 0, 1));
    g_assert_false(cost_pipeline_inside(&spec, 1, 2));
    g_assert_true(cost_pipeline_inside(&spec, 2, 3));
}

/* 256 GPUs of NVL72 racks take 64 of each; 72 x 3 take all; 19 nodes of 4 fill one rack after the other. */
static void racks(void)
{
    const struct {
        int nodes, gpus;
    } cases[] = {{64, 64}, {16, 64}, {54, 72}, {128, 64}, {19, 72}, {13, 52}};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Spec spec = job("", 4, 72, 1, 1, 4 * cases[i].nodes, 1);
        g_assert_cmpint(spec_domain_gpus(&spec), ==, cases[i].gpus);
    }
}

static void refused(void)
{
    static const struct {
        const char *order, *reason;
    } cases[] = {{"tp-cp-dp", "parallel.order"},
                 {"tp-cp-ep-dp-dp-pp", "parallel.order"},
                 {"tp-cp-ep-dp-ppx", "not an order of the dimensions"},
                 {"tp-cp-dp-pp", "has no ep"},
                 {"tp-cp-ep-pp-dp", "those of experts 8"}};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Spec spec = job(cases[i].order, 8, 8, 2, 1, 16, 2);
        GError *error = NULL;
        spec.parallel.expert = 8;
        spec.model.moe.experts = 8;
        g_assert_false(spec_check_order(&spec, &error));
        g_assert_nonnull(strstr(error->message, cases[i].reason));
        g_error_free(error);
    }
    Spec spec = job("tp-cp-ep-pp-dp", 8, 8, 2, 1, 16, 2); /* 2 expert ranks where 2 tensor ranks were */
    spec.parallel.expert = 2;
    spec.model.moe.experts = 8;
    g_assert_true(spec_check_order(&spec, NULL));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/placement/random-jobs", random_jobs);
    g_test_add_func("/placement/known-spans", known_spans);
    g_test_add_func("/placement/racks", racks);
    g_test_add_func("/placement/refused", refused);
    return g_test_run();
}
