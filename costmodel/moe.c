/* costmodel/moe.c - see moe.h. */
#include "costmodel/spread.h"
#include "costmodel/moe.h"

#include <glib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/draws.h"
#include "base/memo.h"
#include "costmodel/ops.h"

/* log C(n, k) */
static double log_choose(double n, double k)
{
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

/* Probability that none of `k` draws out of `n` falls on `here` of them. */
static double missed(double n, double here, double k)
{
    return n - here < k ? 0 : exp(log_choose(n - here, k) - log_choose(n, k));
}

double cost_moe_places_touched(int experts, int top_k, int places, int groups, int top_groups)
{
    g_assert(experts >= 1 && top_k >= 1 && top_k <= experts && places >= 1);
    const double e = experts, k = top_k, here = e / places;
    if (groups < 2 || top_groups < 1 || top_groups >= groups) {
        return places * (1 - missed(e, here, k));
    }
    const double per_group = e / groups, allowed = per_group * top_groups;
    if (places >= groups) { /* a group spans places: its experts in one place, if the group is chosen */
        return places * ((double)top_groups / groups) * (1 - missed(allowed, here, k));
    }
    const int groups_here = groups / places;
    double none = 0; /* probability that a place gets nothing: over how many of its groups are chosen */
    for (int chosen = 0; chosen <= MIN(groups_here, top_groups); chosen++) {
        if (top_groups - chosen > groups - groups_here) {
            continue;
        }
        const double weight =
            exp(log_choose(groups_here, chosen) + log_choose(groups - groups_here, top_groups - chosen) -
                log_choose(groups, top_groups));
        none += weight * missed(allowed, per_group * chosen, k);
    }
    return places * (1 - none);
}

double cost_moe_capacity(double factor, double tokens, int top_k, int experts)
{
    return ceil(factor * tokens * top_k / experts);
}

double cost_moe_dropped_frac(const double *share, int experts, double rows, double capacity)
{
    double dropped = 0;
    for (int i = 0; i < experts; i++) {
        dropped += fmax(0, share[i] * rows - capacity);
    }
    return rows > 0 ? dropped / rows : 0;
}

/* Regularised lower incomplete gamma function P(a, x): its series below a + 1, else the continued fraction of its
 * complement. Source: [AbramowitzStegun] 6.5.29, 6.5.31 */
static double gamma_probability(double a, double x)
{
    if (x <= 0) {
        return 0;
    }
    const double scale = exp(a * log(x) - x - lgamma(a));
    if (x < a + 1) {
        double term = 1 / a, sum = term;
        for (int n = 1; n < 2000 && term > sum * 1e-14; n++) {
            term *= x / (a + n);
            sum += term;
        }
        return scale * sum;
    }
    double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
    for (int n = 1; n < 2000; n++) {
        const double an = -n * (n - a);
        b += 2;
        d = 1 / (an * d + b);
        c = b + an / c;
        h *= d * c;
        if (fabs(d * c - 1) < 1e-14) {
            break;
        }
    }
    return 1 - scale * h;
}

static double gamma_quantile(double a, double probability)
{
    double low = 0, high = a + 10 * sqrt(a) + 10;
    while (gamma_probability(a, high) < probability) {
        high *= 2;
    }
    for (int i = 0; i < 80; i++) {
        const double middle = (low + high) / 2;
        if (gamma_probability(a, middle) < probability) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (low + high) / 2;
}

/* Order statistics of `experts` gamma variates, at Blom's positions, rising from the last one. Kept by shape and count. */
static void gamma_order(double shape, int experts, double *ret_order)
{
    typedef struct Key {
        double shape, experts;
    } Key;
    static OrrMemo memo = ORR_MEMO(Key, double[SPEC_MAX_EXPERTS], 8);
    const Key key = {shape, experts};
    bool known = false;
    double *order = experts <= SPEC_MAX_EXPERTS ? orr_memo_place(&memo, &key, &known) : ret_order;
    for (int i = 0; i < experts && !known; i++)
        order[i] = gamma_quantile(shape, (experts - i - 0.375) / (experts + 0.25));
    if (order != ret_order)
        memcpy(ret_order, order, (size_t)experts * sizeof *order);
}

/* A fixed shuffle of ranks of popularity over expert indices: where the hot experts lie is an accident of training. */
static void shuffle(double *share, int experts)
{
    OrrLcg lcg = {UINT64_C(0x9E3779B97F4A7C15)};
    for (int i = experts - 1; i > 0; i--) {
        const int j = orr_lcg_below(&lcg, i + 1);
        const double swap = share[i];
        share[i] = share[j];
        share[j] = swap;
    }
}

void cost_moe_shares(const SpecRouter *router, int experts, double *share)
{
    double sum = 0;
    if (router->distribution == SPEC_ROUTER_LEARNED || router->distribution == SPEC_ROUTER_DIRICHLET)
        gamma_order(router->concentration, experts, share);
    for (int i = 0; i < experts; i++) {
        switch (router->distribution) {
        case SPEC_ROUTER_ZIPF:
            share[i] = pow(i + 1, -router->exponent);
            break;
        case SPEC_ROUTER_LEARNED:
        case SPEC_ROUTER_DIRICHLET:
            break;
        case SPEC_ROUTER_HISTOGRAM:
            share[i] = i < router->histogram_count ? (double)router->histogram[i] : 0;
            break;
        default:
            share[i] = 1;
        }
        sum += share[i];
    }
    for (int i = 0; i < experts; i++) {
        share[i] = sum > 0 ? share[i] / sum : 1.0 / experts;
    }
    if (router->distribution == SPEC_ROUTER_ZIPF || router->distribution == SPEC_ROUTER_DIRICHLET ||
        router->distribution == SPEC_ROUTER_LEARNED) {
        shuffle(share, experts);
    }
}

static int descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Copies of every expert: one, and `replicas` more, each for the expert that is busiest a copy. */
static void replicate(const double *share, int experts, int replicas, int *copies)
{
    for (int i = 0; i < experts; i++) {
        copies[i] = 1;
    }
    for (int r = 0; r < replicas; r++) {
        int busiest = 0;
        for (int i = 1; i < experts; i++) {
            if (share[i] / copies[i] > share[busiest] / copies[busiest]) {
                busiest = i;
            }
        }
        copies[busiest] += 1;
    }
}

/* Load of each rank, slots filled in order or hottest first onto the least loaded rank with room. */
static void place(double *slots, int count, int ranks, bool balanced, double *load)
{
    const int room = (count + ranks - 1) / ranks;
    int *used = g_new0(int, (gsize)ranks);
    if (balanced) {
        qsort(slots, (size_t)count, sizeof *slots, descending);
    }
    for (int i = 0; i < count; i++) {
        int rank = i / room;
        if (balanced) {
            rank = -1;
            for (int r = 0; r < ranks; r++) {
                if (used[r] < room && (rank < 0 || load[r] < load[rank])) {
                    rank = r;
                }
            }
        }
        load[rank] += slots[i];
        used[rank] += 1;
    }
    g_free(used);
}

/* Variance of a rank's rows over that of as many draws with replacement: a token's experts are all different, and of an
 * even router hypergeometric.   (E - k) / (E - 1) */
static double no_expert_twice(const CostPlacement *placement)
{
    const double experts = placement->experts, k = MAX(1, placement->top_k);
    return experts > 1 ? fmax(0, (experts - k) / (experts - 1)) : 0;
}

/* `scatter`: of the variance of independent draws, how much there is; 0: the rows are given. */
static double expected_maximum(double *load, int ranks, double rows, double scatter)
{
    double most = 0;
    qsort(load, (size_t)ranks, sizeof *load, descending);
    for (int j = 1; j <= ranks; j++) {
        const double mean = load[j - 1] * rows;
        most = fmax(most, mean + sqrt(scatter * mean) * cost_largest_deviate(j));
    }
    return most;
}

double cost_moe_load_factor(const SpecRouter *router, const CostPlacement *placement, double rows)
{
    const int experts = placement->experts, ranks = placement->ranks, replicas = placement->replicas;
    if (ranks < 2 || rows <= 0 || router->distribution == SPEC_ROUTER_EVEN) {
        return 1;
    }
    double *share = g_new0(double, (gsize)experts), *slots = g_new0(double, (gsize)(experts + replicas)),
           *load = g_new0(double, (gsize)ranks);
    int *copies = g_new0(int, (gsize)experts), count = 0;
    cost_moe_shares(router, experts, share);
    replicate(share, experts, replicas, copies);
    for (int i = 0; i < experts; i++) {
        for (int c = 0; c < copies[i]; c++) {
            slots[count++] = share[i] / copies[i];
        }
    }
    place(slots, count, ranks, placement->rebalance || replicas > 0, load);
    const int held = (count + ranks - 1) / ranks;
    const double scatter = router->distribution == SPEC_ROUTER_HISTOGRAM ? 0 : no_expert_twice(placement);
    const double most =
        fmin(expected_maximum(load, ranks, rows, scatter), rows * held / MAX(held, placement->top_k));
    g_free(share);
    g_free(slots);
    g_free(load);
    g_free(copies);
    return fmax(1, most * ranks / rows);
}

double cost_moe_exchange_sms(const Spec *spec)
{
    const SpecMoeDispatcher dispatcher = spec->parallel.moe_dispatcher;
    return dispatcher == SPEC_DISPATCHER_DEEPEP     ? 20
           : dispatcher == SPEC_DISPATCHER_HYBRIDEP ? spec->execution.framework.experts.hybridep_sms
                                                    : 0;
}

CostExchange cost_moe_exchange(const Spec *spec, const CostGroup *group, double tokens, double row_bytes)
{
    const SpecMoe *moe = &spec->model.moe;
    const double n = group->ranks, nodes = cost_group_domains(group), p = n / nodes, k = moe->top_k;
    CostExchange exchange = {.received_rows = tokens * k};
    if (group->ranks < 2) {
        return exchange;
    }
    const double sent = tokens * row_bytes;
    switch (spec->parallel.moe_dispatcher) {
    case SPEC_DISPATCHER_DEEPEP:
    case SPEC_DISPATCHER_HYBRIDEP: {
        const double on_nodes = cost_moe_places_touched(moe->experts, moe->top_k, (int)nodes,
                                                        moe->router_groups, moe->router_top_groups);
        const double on_ranks = cost_moe_places_touched(moe->experts, moe->top_k, group->ranks,
                                                        moe->router_groups, moe->router_top_groups);
        exchange.scale_out_bytes = sent * on_nodes * (nodes - 1) / nodes;
        exchange.scale_up_bytes = sent * on_ranks * (p - 1) / p;
        exchange.received_rows = tokens * on_ranks;
        return exchange;
    }
    case SPEC_DISPATCHER_HIERARCHICAL:
        exchange.scale_out_bytes = sent * k * (nodes - 1) / nodes;
        exchange.scale_up_bytes = sent * k * (p - 1) / p;
        return exchange;
    default:
        exchange.scale_out_bytes = sent * k * (n - p) / n;
        exchange.scale_up_bytes = sent * k * (p - 1) / n;
        return exchange;
    }
}
