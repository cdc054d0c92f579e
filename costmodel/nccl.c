/* costmodel/nccl.c - NCCL's tuner: latency and bandwidth tables of 2.30, and the choice made with them.
 *
 * Rows of the tables are Volta, Ampere, Hopper, Blackwell; columns are 1 node, 2 nodes, more. GB/s and microseconds,
 * as NCCL keeps them. Symbols: n ranks, k nodes, p = n / k, C channels, W bus bandwidth.
 */
#include "costmodel/nccl.h"

#include <glib.h>
#include <math.h>

#include "base/memo.h"

#define PROTOCOLS COST_NCCL_PROTOCOL_COUNT

static const double base_latency_us[COST_NCCL_ALGORITHM_COUNT][PROTOCOLS] = {
    [COST_NCCL_TREE] = {6.8, 14.0, 8.4}, [COST_NCCL_RING] = {6.6, 14.0, 8.4}, [COST_NCCL_PAT] = {8, 8, 8}};

enum { LINK_NVLINK, LINK_PCI, LINK_NET, LINK_COUNT };

static const double hop_latency_us[LINK_COUNT][COST_NCCL_ALGORITHM_COUNT][PROTOCOLS] = {
    [LINK_NVLINK] = {[COST_NCCL_TREE] = {0.6, 1.25, 4.0},
                     [COST_NCCL_RING] = {0.6, 1.9, 3.4},
                     [COST_NCCL_COLLNET_DIRECT] = {0, 0, 3.7},
                     [COST_NCCL_COLLNET_CHAIN] = {0, 0, 2.8},
                     [COST_NCCL_NVLS] = {0, 0, 25},
                     [COST_NCCL_NVLS_TREE] = {0, 0, 25},
                     [COST_NCCL_PAT] = {0, 0, 4}},
    [LINK_PCI] = {[COST_NCCL_TREE] = {1.0, 1.9, 4.0},
                  [COST_NCCL_RING] = {1.0, 2.5, 5.7},
                  [COST_NCCL_COLLNET_DIRECT] = {0, 0, 3.7},
                  [COST_NCCL_COLLNET_CHAIN] = {0, 0, 2.8},
                  [COST_NCCL_PAT] = {0, 0, 4}},
    [LINK_NET] = {[COST_NCCL_TREE] = {5.0, 8.5, 14},
                  [COST_NCCL_RING] = {2.7, 4.0, 14},
                  [COST_NCCL_COLLNET_DIRECT] = {0, 0, 31},
                  [COST_NCCL_COLLNET_CHAIN] = {0, 0, 30},
                  [COST_NCCL_NVLS] = {0, 0, 18},
                  [COST_NCCL_NVLS_TREE] = {0, 0, 20.9},
                  [COST_NCCL_PAT] = {0, 0, 14}}};

static const double ll_max[4][3] = {{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}};
static const double ring_ll128_channel[4] = {20, 20, 36.7, 40};
static const double tree_ll128_channel[4][3] = {
    {20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}};
static const double tree_channel[4][3] = {
    {26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}};
static const double nvls_tree_channel[4][3] = {
    {26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 80}};
static const double nvls_efficiency[4] = {0, 0, 0.85, 0.74};

/* Tree all-reduce: bandwidth at 64 B x 2^i over the plateau. */
#define TREE_SIZES 23
static const double tree_correction[PROTOCOLS][TREE_SIZES] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}};

static const char *const algorithm_names[] = {"tree",      "ring", "collnet-direct", "collnet-chain", "nvls",
                                              "nvls-tree", "pat"};
static const char *const protocol_names[] = {"ll", "ll128", "simple"};

const char *cost_nccl_algorithm_name(CostNcclAlgorithm algorithm)
{
    g_assert(algorithm >= 0 && algorithm < COST_NCCL_ALGORITHM_COUNT);
    return algorithm_names[algorithm];
}

/* Letters of `name` at the head of `word`, hyphens left out; 0: it begins otherwise. */
static int begins_with(const char *word, const char *name)
{
    int letters = 0;
    for (; *name; name++) {
        if (*name == '-')
            continue;
        while (*word == '-' || *word == '_')
            word++;
        if (g_ascii_tolower(*word) != *name)
            return 0;
        word++, letters++;
    }
    return g_ascii_isalpha(*word) ? 0 : letters;
}

bool cost_nccl_algorithm_find(const char *word, CostNcclAlgorithm *ret_algorithm)
{
    int most = 0;
    for (int a = 0; a < COST_NCCL_ALGORITHM_COUNT; a++) {
        const int letters = begins_with(word, algorithm_names[a]);
        if (letters > most) {
            most = letters;
            *ret_algorithm = (CostNcclAlgorithm)a;
        }
    }
    return most > 0;
}

const char *cost_nccl_protocol_name(CostNcclProtocol protocol)
{
    g_assert(protocol >= 0 && protocol < COST_NCCL_PROTOCOL_COUNT);
    return protocol_names[protocol];
}

#define MOST_CHANNELS 32 /* of a search, before they are doubled [NCCL] */

/* Speeds that a search across nodes tries: before Hopper, Hopper, Blackwell. [NCCL] search.cc */
static const double net_speeds_gbps[3][20] = {
    {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12},
    {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12},
    {96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12}};

CostNcclGraph cost_nccl_net_graph(int nccl_row, double rails, double nic_bytes_per_s,
                                  double inside_bytes_per_s)
{
    const int row = MAX(nccl_row - 1, 0);
    const double nic_gbps = 1e-9 * nic_bytes_per_s, inside_gbps = 1e-9 * inside_bytes_per_s,
                 most = CLAMP(floor(rails), 1, MOST_CHANNELS);
    double speed = nic_gbps, channels = most, best = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(net_speeds_gbps[0]) && net_speeds_gbps[row][i] > 0; i++) {
        const double tried = net_speeds_gbps[row][i];
        /* a channel passes through every GPU of the node */
        const double fit = inside_bytes_per_s > 0 ? MIN(most, floor(inside_gbps / tried)) : most;
        if (tried <= nic_gbps && fit * tried > best) {
            speed = tried, channels = fit;
            best = fit * tried;
        }
    }
    if (row > 0 ? speed >= 50 || channels <= 4 : speed >= 25)
        channels *= 2, speed /= 2;
    return (CostNcclGraph){channels, 1e9 * speed, 1e9 * speed};
}

static int node_column(int nodes)
{
    return MIN(nodes, 3) - 1;
}

/* LL's ceiling: by GPU on one node, by CPU across nodes (row 0: Intel, row 1: AMD). */
static double ll_limit(const CostNcclQuery *query)
{
    int row = query->nodes == 1 ? query->nccl_row : (query->amd_cpu ? 1 : 0);
    return ll_max[row][node_column(query->nodes)];
}

static int ring_steps(CostCollectiveOp op, int ranks)
{
    switch (op) {
    case COST_ALL_REDUCE:
        return 2 * (ranks - 1);
    case COST_ALL_GATHER:
    case COST_REDUCE_SCATTER:
        return ranks - 1;
    default:
        return ranks;
    }
}

static const CostNcclGraph *graph_of(const CostNcclQuery *query, CostNcclAlgorithm algorithm)
{
    switch (algorithm) {
    case COST_NCCL_TREE:
        return &query->tree;
    case COST_NCCL_NVLS:
    case COST_NCCL_NVLS_TREE:
        return &query->nvls;
    case COST_NCCL_COLLNET_DIRECT:
    case COST_NCCL_COLLNET_CHAIN:
        return &query->collnet;
    default:
        return &query->ring;
    }
}

static bool allowed(const CostNcclQuery *query, CostNcclAlgorithm algorithm, CostNcclProtocol protocol)
{
    bool ring_only = query->op == COST_BROADCAST || query->op == COST_REDUCE;
    bool reduce = query->op == COST_ALL_REDUCE;
    if (graph_of(query, algorithm)->channels < 1 || (protocol == COST_NCCL_LL128 && !query->ll128))
        return false;
    if (query->simple_only && query->nodes > 1 && protocol != COST_NCCL_SIMPLE)
        return false;
    if (algorithm == COST_NCCL_RING)
        return true;
    if (ring_only || (algorithm == COST_NCCL_TREE && !reduce))
        return false;
    if (algorithm == COST_NCCL_TREE)
        return true;
    if (protocol != COST_NCCL_SIMPLE)
        return false;
    bool in_switch = nvls_efficiency[query->nccl_row] > 0 && query->nvls.channels >= 2;
    switch (algorithm) {
    case COST_NCCL_NVLS:
        return in_switch && (query->nodes == 1 || query->sharp);
    case COST_NCCL_NVLS_TREE:
        return in_switch && reduce && query->nodes > 1;
    case COST_NCCL_PAT:
        return !reduce && query->nodes == query->ranks && query->nodes > 1;
    default:
        return query->sharp && query->nodes > 1 && query->nvlink &&
               (reduce || algorithm == COST_NCCL_COLLNET_DIRECT);
    }
}

static double nvls_bus(const CostNcclQuery *query, CostNcclAlgorithm algorithm)
{
    const CostNcclGraph *g = &query->nvls;
    int row = query->nccl_row, column = node_column(query->nodes);
    double p = (double)query->ranks / query->nodes;
    double gain = query->op == COST_ALL_REDUCE ? 2 : (p - 1) / p;
    double b = 1e-9 * g->inside_bytes_per_s * nvls_efficiency[row] * (g->channels - 1) / g->channels * gain;
    if (query->nodes > 1)
        b = MIN(b, 1e-9 * g->across_bytes_per_s *
                       (algorithm == COST_NCCL_NVLS_TREE && query->nodes <= 2 ? 2 : 1));
    if (algorithm == COST_NCCL_NVLS_TREE)
        b = MIN(b, nvls_tree_channel[row][column]);
    return g->channels * b;
}

static double tree_bus(const CostNcclQuery *query, double w, double channels, CostNcclProtocol protocol)
{
    int row = query->nccl_row, column = node_column(query->nodes);
    w = MIN(0.92 * w, channels * tree_channel[row][column]);
    if (protocol == COST_NCCL_LL)
        w = MIN(w / 3.8, ll_limit(query));
    else if (protocol == COST_NCCL_LL128)
        w = MIN(w * (query->nodes == 1 ? 7.0 / 9 : 120.0 / 128), channels * tree_ll128_channel[row][column]);
    return w;
}

double cost_nccl_tree_limit_bytes_per_s(const CostNcclQuery *query, CostNcclProtocol protocol)
{
    const int row = query->nccl_row, column = node_column(query->nodes);
    const double channel =
        protocol == COST_NCCL_LL128 ? tree_ll128_channel[row][column] : tree_channel[row][column];
    return 1e9 * query->tree.channels * channel * (query->ranks - 1) / query->ranks;
}

/* In-network reduction with CollNet (SHARP). */
static double collnet_bus(const CostNcclQuery *query, CostNcclAlgorithm algorithm, double w)
{
    const CostNcclGraph *g = &query->collnet;
    double p = (double)query->ranks / query->nodes;
    if (algorithm == COST_NCCL_COLLNET_CHAIN)
        return w;
    if (query->op != COST_ALL_REDUCE)
        return 1e-9 * p * MIN(g->inside_bytes_per_s, 0.9 * g->across_bytes_per_s);
    double factor = p / g->channels;
    factor -= (factor - 1) / 2;
    return w / factor * (query->nccl_row >= 2 ? 0.85 : 1);
}

/* W: GB/s on the bus. */
static double bus_gbps(const CostNcclQuery *query, CostNcclAlgorithm algorithm, CostNcclProtocol protocol)
{
    const CostNcclGraph *g = graph_of(query, algorithm);
    bool collnet = algorithm == COST_NCCL_COLLNET_DIRECT || algorithm == COST_NCCL_COLLNET_CHAIN;
    double w =
        1e-9 * g->channels * (query->nodes <= 2 || collnet ? g->inside_bytes_per_s : g->across_bytes_per_s);
    switch (algorithm) {
    case COST_NCCL_NVLS:
    case COST_NCCL_NVLS_TREE:
        return nvls_bus(query, algorithm);
    case COST_NCCL_TREE:
        return tree_bus(query, w, g->channels, protocol);
    case COST_NCCL_PAT:
        return 0.75 * w;
    case COST_NCCL_RING:
        if (protocol == COST_NCCL_LL)
            return MIN(ll_limit(query), w / 2);
        if (protocol == COST_NCCL_LL128)
            return MIN(0.92 * w, g->channels * ring_ll128_channel[query->nccl_row]);
        return w;
    default:
        return collnet_bus(query, algorithm, w);
    }
}

static double tree_size_correction(const CostNcclQuery *query, CostNcclProtocol protocol)
{
    int i = (int)floor(log2(MAX(floor(query->bytes / 64), 1)));
    return i < TREE_SIZES ? tree_correction[protocol][i] : 1;
}

/* B: S / B is the time on the wire, GB/s. */
static double algorithm_gbps(const CostNcclQuery *query, CostNcclAlgorithm algorithm,
                             CostNcclProtocol protocol)
{
    double w = bus_gbps(query, algorithm, protocol);
    bool reduce = query->op == COST_ALL_REDUCE;
    bool nvls = algorithm == COST_NCCL_NVLS || algorithm == COST_NCCL_NVLS_TREE;
    if (algorithm == COST_NCCL_RING || (nvls && reduce))
        return w * query->ranks / ring_steps(query->op, query->ranks);
    if (!reduce)
        return w;
    return w / 2 * (algorithm == COST_NCCL_TREE ? tree_size_correction(query, protocol) : 1);
}

/* A step between nodes; SIMPLE waits for the network once more, to flush what it got. */
static double net_step_us(const CostNcclQuery *query, CostNcclAlgorithm algorithm, CostNcclProtocol protocol)
{
    return hop_latency_us[LINK_NET][algorithm][protocol] +
           1e6 * query->net_latency_s * (protocol == COST_NCCL_SIMPLE ? 2 : 1);
}

static double ring_latency_us(const CostNcclQuery *query, CostNcclProtocol protocol, double inside)
{
    bool simple = protocol == COST_NCCL_SIMPLE;
    int k = query->nodes, n = query->ranks, steps = ring_steps(query->op, n);
    double base = base_latency_us[COST_NCCL_RING][protocol];
    if (query->op == COST_BROADCAST || query->op == COST_REDUCE) {
        int link = k > 1 ? LINK_NET : (query->nvlink ? LINK_NVLINK : LINK_PCI);
        return base + hop_latency_us[link][simple ? COST_NCCL_TREE : COST_NCCL_RING][protocol];
    }
    if (k == 1)
        return base + steps * inside;
    double overhead = (query->amd_cpu ? 2 : 1) * (simple ? 3 : 1);
    double x = net_step_us(query, k == n ? COST_NCCL_TREE : COST_NCCL_RING, protocol);
    int m = query->op == COST_ALL_REDUCE ? 2 * (k - 1) : k - 1;
    double latency = base + (steps - m) * MAX(inside, overhead) + m * x;
    if (simple && query->op == COST_ALL_REDUCE && query->bytes / (query->ring.channels * n) >= 64)
        latency *= query->nccl_row >= 1 ? 1.4 : 1.9;
    return latency;
}

static double latency_us(const CostNcclQuery *query, CostNcclAlgorithm algorithm, CostNcclProtocol protocol)
{
    double inside = hop_latency_us[query->nvlink ? LINK_NVLINK : LINK_PCI][algorithm][protocol];
    double x = net_step_us(query, algorithm, protocol);
    double base = base_latency_us[algorithm][protocol];
    int k = query->nodes, n = query->ranks;
    double p = (double)n / k, depth = floor(log2(k));
    switch (algorithm) {
    case COST_NCCL_RING:
        return ring_latency_us(query, protocol, inside);
    case COST_NCCL_TREE:
        return base + 2 * ((p - 1) * inside + depth * x);
    case COST_NCCL_COLLNET_DIRECT:
        return base + 2 * (MIN(1, p - 1) * inside + 0.4 * (p - 1)) + x;
    case COST_NCCL_COLLNET_CHAIN:
        return base + 2 * (p - 1) * inside + x;
    case COST_NCCL_NVLS:
        return inside + (k > 1 ? x : 0);
    case COST_NCCL_NVLS_TREE:
        return base + inside + 2 * depth * x;
    default:
        return base + depth * x / 3.5 + 2.8 * n;
    }
}

double cost_nccl_estimate_s(const CostNcclQuery *query, CostNcclAlgorithm algorithm,
                            CostNcclProtocol protocol)
{
    g_assert(query->ranks >= 2 && query->nodes >= 1 && query->nodes <= query->ranks && query->bytes >= 0);
    g_assert(query->op != COST_ALL_TO_ALL && query->op != COST_SEND_RECV);
    if (!allowed(query, algorithm, protocol))
        return INFINITY;
    double gbps = algorithm_gbps(query, algorithm, protocol);
    return gbps > 0 ? 1e-6 * (latency_us(query, algorithm, protocol) + query->bytes / (1e3 * gbps))
                    : INFINITY;
}

static CostNcclChoice choose(const CostNcclQuery *query)
{
    CostNcclChoice best = {.algorithm = COST_NCCL_RING, .protocol = COST_NCCL_SIMPLE, .seconds = INFINITY};
    if (query->op == COST_ALL_TO_ALL || query->op == COST_SEND_RECV) {
        double message_bytes = query->op == COST_SEND_RECV ? query->bytes : query->bytes / query->ranks;
        best.protocol = message_bytes <= 16384 ? COST_NCCL_LL : COST_NCCL_SIMPLE;
        best.seconds = 0;
        return best;
    }
    CostNcclChoice told = {.by_plugin = true};
    if (cost_nccl_region(query, &told.algorithm, &told.protocol)) {
        told.seconds = cost_nccl_estimate_s(query, told.algorithm, told.protocol);
        if (isfinite(told.seconds))
            return told;
    }
    for (int a = 0; a < COST_NCCL_ALGORITHM_COUNT; a++)
        for (int p = 0; p < COST_NCCL_PROTOCOL_COUNT; p++) {
            double seconds = cost_nccl_estimate_s(query, (CostNcclAlgorithm)a, (CostNcclProtocol)p);
            if (seconds < best.seconds)
                best = (CostNcclChoice){
                    .algorithm = (CostNcclAlgorithm)a, .protocol = (CostNcclProtocol)p, .seconds = seconds};
        }
    return best;
}

CostNcclChoice cost_nccl_choose(const CostNcclQuery *query)
{
    static OrrMemo memo = ORR_MEMO(CostNcclQuery, CostNcclChoice, 2048);
    bool known;
    CostNcclChoice *choice = orr_memo_place(&memo, query, &known);
    if (!known)
        *choice = choose(query);
    return *choice;
}

#define LARGEST_BYTES 17179869184.0 /* 16 GiB: beyond it choices no longer change */

unsigned cost_nccl_choices_upward(const CostNcclQuery *query)
{
    static OrrMemo memo = ORR_MEMO(CostNcclQuery, uint64_t, 2048);
    CostNcclQuery sized = *query;
    bool known;
    sized.bytes = MIN(exp2(round(log2(MAX(query->bytes, 1)))), LARGEST_BYTES);
    uint64_t *choices = orr_memo_place(&memo, &sized, &known);
    for (; !known && sized.bytes <= LARGEST_BYTES; sized.bytes *= 2) {
        const CostNcclChoice choice = choose(&sized);
        *choices |= (uint64_t)1 << (choice.algorithm * COST_NCCL_PROTOCOL_COUNT + choice.protocol);
    }
    return (unsigned)*choices;
}

double cost_nccl_channels(const CostNcclQuery *query, CostNcclChoice choice)
{
    double threads = 512, bytes_a_thread = choice.protocol == COST_NCCL_SIMPLE ? 64 : 8;
    if (choice.algorithm == COST_NCCL_RING && choice.protocol == COST_NCCL_LL)
        bytes_a_thread *= query->ranks;
    double channels = query->bytes / (threads * bytes_a_thread);
    return CLAMP(channels, 1, MAX(graph_of(query, choice.algorithm)->channels, 1));
}

double cost_nccl_tree_ll128_chunk_bytes(double bytes, int ranks, int nodes, double channels)
{
    double chunk =
        120.0 * 640 * 8 / 16 * 15; /* LL128: 120 elements of 8 bytes a thread of 640, 15 of 16 data */
    const double p = (double)ranks / nodes, deep = 1 + floor(log2(nodes)) + 0.1 * p;
    while (floor(bytes / (channels * chunk)) < deep * 64 / p && chunk > 131072)
        chunk /= 2;
    while (floor(bytes / (channels * chunk)) < deep * 16 / p && chunk > 32768)
        chunk /= 2;
    return chunk;
}

double cost_nccl_nvls_tree_chunk_bytes(double bytes, double channels_heads, double largest)
{
    static const struct {
        double fewest, bytes;
    } steps[] = {{32, 262144}, {16, 131072}, {4, 65536}, {1, 32768}};
    double chunk = largest;
    for (gsize i = 0; i < G_N_ELEMENTS(steps); i++)
        if (bytes < steps[i].fewest * channels_heads * chunk && chunk > steps[i].bytes)
            chunk = steps[i].bytes;
    return chunk;
}
