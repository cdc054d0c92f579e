/* costmodel/collective.c - seconds, bytes and SM share of a collective on a cluster.
 *
 * NCCL's tuner (costmodel/nccl.c) names algorithm and protocol; the time of each comes from the fitted parameters of
 * SpecCollectiveModel. The choice is made for the accelerator's reference node, so that a scenario which only
 * changes a link's rate or latency compares the same algorithm. docs/MODEL-collectives.md derives the formulas.
 */
#include "costmodel/collective.h"

#include <glib.h>
#include <math.h>

#include "costmodel/nccl.h"
#include "costmodel/nic.h"
#include "costmodel/wires.h"

/* The group on the machine: n ranks = k domains of p on average, and what joins them. */
typedef struct Ground {
    const SpecCollectiveModel *inside, *across;
    bool nvlink;
    int n, k;
    double p;
    double up_crowding;             /* of scale-up links; 1: none */
    double rails;                   /* NICs in the domain with the fewest: p where all hold the same number */
    double link_bytes_per_s;        /* scale-up, of one GPU, alone */
    double shared_link_bytes_per_s; /* the same in a group of this size */
    double cut_s_per_byte;  /* that each sends to each other, over the narrowest cut of the group's links */
    double nic_bytes_per_s; /* one GPU's share of its NIC, plateau, congestion and sharing included */
    double nic_alone_bytes_per_s; /* the same without congestion */
    double net_latency_s;         /* one small message between nodes */
    double wire_bytes, own_bytes; /* a rank sends; a rank copies from itself */
    CostNcclQuery query;
    CostNcclChoice choice;
} Ground;

static const SpecCollectiveModel *inside_of(const SpecCluster *cluster)
{
    const SpecCollectiveModel *own = &cluster->collectives, *gpu = &cluster->accelerator.model.collectives;
    if (own->fitted > 0 && own->offset_s > 0)
        return own;
    return gpu->fitted > 0 && gpu->offset_s > 0 ? gpu : &spec_collective_model_default;
}

static const SpecCollectiveModel *across_of(const SpecCluster *cluster)
{
    const SpecCollectiveModel *own = &cluster->collectives, *gpu = &cluster->accelerator.model.collectives;
    if (own->fitted > 0 && own->nic_frac > 0)
        return own;
    return gpu->fitted > 0 && gpu->nic_frac > 0 ? gpu : &spec_collective_model_default;
}

/* Bytes that each rank sends, over all links. */
static double wire_bytes(const CostCollective *c)
{
    double n = c->group.ranks;
    switch (c->op) {
    case COST_ALL_REDUCE:
        return 2 * (n - 1) / n * c->bytes;
    case COST_ALL_GATHER:
    case COST_REDUCE_SCATTER:
    case COST_ALL_TO_ALL:
        return (n - 1) / n * c->bytes;
    default:
        return c->bytes;
    }
}

int cost_group_domains(const CostGroup *group)
{
    int per_domain = CLAMP(group->per_domain, 1, group->ranks);
    return group->domains > 0 ? group->domains : (group->ranks + per_domain - 1) / per_domain;
}

CostGroup cost_group_among(const CostGroup *group, int ranks, int per_domain)
{
    return (CostGroup){.ranks = ranks,
                       .per_domain = per_domain,
                       .nic_sharers = 1,
                       .up_crowding = group->up_crowding,
                       .out_crowding = group->out_crowding,
                       .all_to_all_crowding = group->all_to_all_crowding};
}

/* The graphs that NCCL's search finds on the reference node. Without GPUDirect the way to a NIC leads over the CPU, beyond what
 * LL128 is enabled for. Source: [NCCL] src/graph/paths.cc, tuning.cc */
static void fill_query(Ground *g, const SpecCluster *cluster, const CostCollective *c)
{
    const SpecAccelerator *gpu = &cluster->accelerator;
    const SpecCollectiveModel *in = g->inside;
    CostNcclQuery *q = &g->query;
    *q = (CostNcclQuery){.op = c->op,
                         .bytes = c->bytes,
                         .ranks = g->n,
                         .nodes = g->k,
                         .nccl_row = gpu->generation.nccl_row,
                         .nvlink = g->nvlink,
                         .ll128 = in->ll128_frac > 0 && !(g->k > 1 && cluster->network.host_copies),
                         .sharp = g->across->sharp > 0 || cluster->collectives.sharp > 0,
                         .simple_only = g->across->net_simple_only > 0,
                         .amd_cpu = g->across->amd_cpu > 0,
                         .net_latency_s = g->across->net_told_latency_s,
                         .tuner = g->across->tuner};
    double nic = gpu->reference_scale_out_bytes_per_s_per_gpu > 0
                     ? gpu->reference_scale_out_bytes_per_s_per_gpu
                     : cluster->scale_out_bytes_per_s_per_gpu;
    if (g->across->net_told_bytes_per_s > 0)
        nic = g->across->net_told_bytes_per_s;
    double ring = in->ring_channels * in->ring_channel_bytes_per_s;
    double channel = ring / MAX(in->ring_channels, 1);
    /* a channel enters and leaves a node of p GPUs by NICs: p - 1 hops between its GPUs */
    const double inside = g->nvlink && g->p > 1 ? ring * g->p / (g->p - 1) : 0;
    const CostNcclGraph net = cost_nccl_net_graph(gpu->generation.nccl_row, g->rails, nic, inside);
    q->ring = q->tree = g->k > 1 ? net : (CostNcclGraph){in->ring_channels, channel, channel};
    if (g->k ==
        2) /* a tree crosses once each way where a ring crosses twice: NCCL's search goes on inside the node */
        q->tree.inside_bytes_per_s =
            MAX(net.inside_bytes_per_s, MIN(2 * net.inside_bytes_per_s, ring / net.channels));
    if (in->nvls_channels > 0 && g->rails >= in->nvls_min_ranks)
        q->nvls = (CostNcclGraph){in->nvls_channels, in->nvls_channel_bytes_per_s,
                                  net.channels * net.across_bytes_per_s / in->nvls_channels};
}

static Ground ground_of(const SpecCluster *cluster, const CostCollective *c)
{
    const SpecAccelerator *gpu = &cluster->accelerator;
    Ground g = {.inside = inside_of(cluster), .across = across_of(cluster)};
    g.n = c->group.ranks;
    g.k = cost_group_domains(&c->group);
    g.p = (double)g.n / g.k;
    g.rails = c->group.rails > 0 ? c->group.rails : g.p;
    double link =
        cluster->scale_up_bytes_per_s > 0 ? cluster->scale_up_bytes_per_s : gpu->scale_up_bytes_per_s;
    g.nvlink = link > 0 && cluster->topology != SPEC_TOPOLOGY_PCIE;
    g.link_bytes_per_s = link > 0 ? link : gpu->host_link_bytes_per_s;
    g.up_crowding = c->group.up_crowding > 0 ? c->group.up_crowding : 1;
    g.shared_link_bytes_per_s = g.link_bytes_per_s * cost_wires_share(cluster, g.inside, g.p) / g.up_crowding;
    g.cut_s_per_byte = cost_wires_cut_s(cluster, g.p) / g.link_bytes_per_s;
    const double crowding = c->op == COST_ALL_TO_ALL && c->group.all_to_all_crowding > 0
                                ? c->group.all_to_all_crowding
                                : c->group.out_crowding;
    const CostNic nic = cost_nic(cluster, g.across, c->group.nic_sharers, crowding, g.k);
    g.nic_alone_bytes_per_s = nic.alone_bytes_per_s;
    g.nic_bytes_per_s = nic.bytes_per_s;
    g.net_latency_s = cluster->scale_out_latency_s + g.across->net_latency_s;
    if (cluster->network.host_copies) /* a copy before and one after */
        g.net_latency_s += 2 * g.inside->simple_hop_s;
    bool copies = c->op == COST_ALL_REDUCE || c->op == COST_ALL_GATHER || c->op == COST_REDUCE_SCATTER ||
                  c->op == COST_ALL_TO_ALL;
    g.wire_bytes = wire_bytes(c);
    g.own_bytes = copies ? c->bytes / g.n : 0;
    fill_query(&g, cluster, c);
    g.choice = cost_nccl_choose(&g.query);
    return g;
}

CostNcclQuery cost_nccl_query(const SpecCluster *cluster, const CostCollective *collective)
{
    return ground_of(cluster, collective).query;
}

/* One step inside a node. Where NICs are the slow links, a SIMPLE step over NVLink hides behind them in part. */
static double hop_s(const Ground *g)
{
    const SpecCollectiveModel *in = g->inside;
    double simple = g->k > 1 ? MIN(in->simple_hop_s, g->across->net_ring_hop_s) : in->simple_hop_s;
    const double hops[] = {in->ll_hop_s, in->ll128_hop_s, simple};
    return hops[g->choice.protocol];
}

/* Data in what is sent: LL carries 4 of 8 bytes, LL128 120 of 128. [NCCL] */
static const double protocol_payload[] = {0.5, 120.0 / 128, 1};

/* Channels of rings and trees that cross nodes. */
static double net_channels(const Ground *g)
{
    const double own = g->across->net_channels;
    return own > 0 ? own : MAX(g->inside->ring_channels, 1);
}

/* One step between nodes with a message of so many bytes. What LL128 takes over LL is NCCL's (4.0 - 2.7 us) [NCCL]; a
 * message that is not eager waits for the receiver's answer, one of LL128 that is cut over rails for the last of
 * them. */
static double net_hop_s(const Ground *g, CostNcclProtocol protocol, double message_bytes)
{
    const SpecCollectiveModel *net = g->across;
    const double more[] = {0, 1.3e-6, net->net_simple_s}, sent = message_bytes / protocol_payload[protocol];
    double hop = g->net_latency_s + more[protocol];
    if (sent > net->net_eager_bytes)
        hop += net->net_rendezvous_s;
    if (net->net_stripe_bytes > 0 && sent > net->net_stripe_bytes)
        hop += net->net_stripe_s;
    return hop * (1 + net->net_hop_congestion_frac * log2(MAX(g->k / 2.0, 1)));
}

/* Bus rate of the chosen protocol over scale-up links. */
static double inside_ring_bytes_per_s(const Ground *g)
{
    const double fracs[] = {g->inside->ll_frac, g->inside->ll128_frac, g->inside->ring_frac};
    return g->shared_link_bytes_per_s * fracs[g->choice.protocol];
}

/* Bus rate of a ring of the chosen protocol. */
static double ring_bytes_per_s(const Ground *g)
{
    const double inside = inside_ring_bytes_per_s(g);
    if (g->k == 1)
        return inside;
    double net = g->rails * g->nic_bytes_per_s * protocol_payload[g->choice.protocol];
    return g->p > 1 ? MIN(inside, net) : net;
}

static double copy_s(const Ground *g, double frac)
{
    return frac > 0 ? g->own_bytes / (g->link_bytes_per_s * frac) : 0;
}

/* What a protocol adds to hops and wire: LL spreads over channels, SIMPLE fills its pipeline. */
static double protocol_extra_s(const Ground *g, double steps)
{
    const SpecCollectiveModel *in = g->inside;
    if (g->choice.protocol == COST_NCCL_SIMPLE)
        return g->p > 1 ? sqrt(steps * in->ring_fill_s * g->wire_bytes / g->shared_link_bytes_per_s) : 0;
    double channels = cost_nccl_channels(&g->query, g->choice);
    return in->ll_spread_s * (g->choice.protocol == COST_NCCL_LL ? 1 - 1 / channels : 1);
}

/* The buffer's share of a protocol: a slice of two steps of SIMPLE, one step of 576,000 bytes of data with LL128, half a
 * step of 64 KiB with LL. [NCCL] */
static const double ring_largest_bytes[] = {32768, 576000, 2097152};

/* A rank's part of a channel. */
static double ring_part_bytes(const Ground *g)
{
    return g->query.bytes / g->n / net_channels(g);
}

/* What one send of a ring carries. */
static double ring_message_bytes(const Ground *g)
{
    const double part = ring_part_bytes(g);
    return MIN(g->choice.protocol == COST_NCCL_SIMPLE ? part / 2 : part,
               ring_largest_bytes[g->choice.protocol]);
}

/* How often a channel goes round between nodes: what does not fit one send of LL or LL128 waits for the next round,
 * which a rank begins when it has ended the one before. SIMPLE sends its chunks as slices, of which the next is under
 * way already; inside a node the fitted rates hold the rounds. [NCCL] all_reduce.h */
static double ring_rounds(const Ground *g)
{
    if (g->k == 1 || g->choice.protocol == COST_NCCL_SIMPLE)
        return 1;
    return MAX(ceil(ring_part_bytes(g) / ring_largest_bytes[g->choice.protocol]), 1);
}

/* Ring: (steps - m) hops inside, m between nodes, each round; bytes at the slower of NVLink and the nodes' NICs together.
 * Source: [NCCL] for steps and m      Tested: unit/costmodel/test_collective.c */
static double ring_s(const Ground *g)
{
    bool reduce = g->query.op == COST_ALL_REDUCE;
    double steps = (reduce ? 2.0 : 1.0) * (g->n - 1), across = g->k > 1 ? steps * g->k / g->n : 0;
    double net_hop = net_hop_s(g, g->choice.protocol, ring_message_bytes(g));
    return g->inside->offset_s + ring_rounds(g) * ((steps - across) * hop_s(g) + across * net_hop) +
           protocol_extra_s(g, g->k > 1 ? steps - across : steps) + copy_s(g, g->inside->copy_frac) +
           g->wire_bytes / ring_bytes_per_s(g);
}

/* Bus rate of a double binary tree: over two nodes each is the other's root, so that NICs carry every byte once and not
 * 2 (n-1)/n times as in a ring, up to what the channels sum. */
static double tree_bytes_per_s(const Ground *g)
{
    if (g->k == 1)
        return ring_bytes_per_s(g);
    if (g->k > 2)
        return ring_bytes_per_s(g) * g->across->tree_frac;
    double net = g->rails * g->nic_bytes_per_s * protocol_payload[g->choice.protocol];
    net =
        MAX(net * g->across->tree_frac, MIN(net * g->wire_bytes / g->query.bytes,
                                            cost_nccl_tree_limit_bytes_per_s(&g->query, g->choice.protocol)));
    return g->p > 1 ? MIN(inside_ring_bytes_per_s(g) * g->across->tree_frac, net) : net;
}

/* Where none is measured: half of what p4de shows, whose plug-in doubles NCCL's buffers and so its chunks. */
#define TREE_FILL_S 4e-4

/* Tree all-reduce: a chain in each node, a double binary tree across nodes. Of a channel eight chunks are under way
 * between two nodes, NCCL's buffer, so that with LL128 it sends no more than eight chunks in the time of a message and of its
 * receiver's answer. */
static double tree_s(const Ground *g)
{
    double depth = ceil(log2(g->k)), steps = 2 * (g->p - 1), channels = net_channels(g);
    double net_hop = 0, wire = g->wire_bytes / tree_bytes_per_s(g);
    if (g->k > 1 && g->choice.protocol == COST_NCCL_LL128) {
        double chunk = cost_nccl_tree_ll128_chunk_bytes(g->query.bytes, g->n, g->k, channels);
        net_hop = net_hop_s(g, COST_NCCL_LL128, MIN(chunk, g->query.bytes / channels));
        wire = MAX(wire, g->query.bytes / (channels * chunk) * 2 * net_hop / 8);
    } else if (g->k > 1) {
        channels = MIN(channels, cost_nccl_channels(&g->query, g->choice));
        net_hop = net_hop_s(g, g->choice.protocol, g->query.bytes / channels);
        if (g->choice.protocol == COST_NCCL_SIMPLE)
            wire += sqrt((g->across->net_fill_s > 0 ? g->across->net_fill_s : TREE_FILL_S) * wire);
    }
    return g->inside->offset_s + steps * hop_s(g) + 2 * depth * net_hop + protocol_extra_s(g, steps) +
           copy_s(g, g->inside->copy_frac) + wire;
}

#define NVLS_CHUNK_BYTES 524288.0 /* as the EFA plug-in sets it and NCCL before 2.19 had it */

#define NVLS_MOST_HEADS   32.0 /* NCCL_MAX_NVLS_ARITY [NCCL] device.h */
#define NVLS_FITTED_HEADS 8.0  /* nvls_fill_s is that of nodes with eight GPUs */

/* What fills the pipeline of NVLink-SHARP. Every GPU, up to NCCL's most, is head of a part of the message, and chunks
 * get smaller with what a head and channel have to do (enqueue.cc), so that with more heads there are fewer chunks to
 * pipeline: NCCL's ladder keeps chunks near the square root of that share, and the fill grows as the heads. */
static double nvls_fill_s(const Ground *g)
{
    const double heads = MIN(g->rails, NVLS_MOST_HEADS) / NVLS_FITTED_HEADS;
    return sqrt(g->inside->nvls_fill_s * heads * g->wire_bytes / g->link_bytes_per_s);
}

/* Reduction in the NVLink switch; across nodes a tree, where two nodes exchange each byte once. */
static double nvls_s(const Ground *g)
{
    const SpecCollectiveModel *in = g->inside;
    double wire = g->up_crowding * g->wire_bytes / (g->link_bytes_per_s * in->nvls_frac),
           latency = in->offset_s + in->nvls_latency_s;
    if (g->k > 1) {
        const bool sharp = g->choice.algorithm == COST_NCCL_NVLS;
        const double nics =
            MIN(g->rails, NVLS_MOST_HEADS); /* heads alone send between nodes [NCCL] connect.cc */
        double net = nics * g->nic_bytes_per_s * (g->k == 2 ? 2 : g->across->nvls_tree_frac);
        if (sharp) /* sums in the network's switches: nothing of it meets, and NCCL counts a NIC's rate once */
            net = nics * g->nic_alone_bytes_per_s;
        wire = MAX(wire, g->wire_bytes / net);
        double chunk =
            cost_nccl_nvls_tree_chunk_bytes(g->query.bytes, net_channels(g) * g->p, NVLS_CHUNK_BYTES);
        latency += 2 * (sharp ? 1 : ceil(log2(g->k))) * net_hop_s(g, COST_NCCL_SIMPLE, chunk);
    }
    return latency + nvls_fill_s(g) + wire;
}

/* PAT all-gather and reduce-scatter, one rank a node: logarithmic steps. Its constants are NCCL's own. */
static double pat_s(const Ground *g)
{
    double net_hop = net_hop_s(g, COST_NCCL_SIMPLE, g->query.bytes / g->n / net_channels(g));
    return g->inside->offset_s + ceil(log2(g->k)) * net_hop / 3.5 + 2.8e-6 * g->n + protocol_extra_s(g, 0) +
           g->wire_bytes / (0.75 * g->nic_bytes_per_s);
}

/* All-to-all and send-receive: every rank's bytes to peers in its node over scale-up links, to the others over its
 * own NIC, both at once.
 *
 *   t = offset + latency + (n-1) peer + max(S (p-1)/n / B_up, S/n c, S (n-r)/n / B_nic) + S/n / B_copy
 *
 * r: members of the smallest domain, whose ranks have the most peers elsewhere. c: what the links in the middle of a mesh
 * or torus need for what its halves send to each other (wires.h).
 */
static double messages_s(const Ground *g, const CostCollective *c)
{
    const SpecCollectiveModel *in = g->inside;
    bool all = c->op == COST_ALL_TO_ALL;
    double inside = all ? c->bytes * (g->p - 1) / g->n : (g->k == 1 ? c->bytes : 0);
    double outside = all ? c->bytes * (g->n - g->rails) / g->n : (g->k > 1 ? c->bytes : 0);
    double up = inside / g->shared_link_bytes_per_s, out = outside / g->nic_bytes_per_s;
    double latency = in->offset_s + in->alltoall_ll_s + (all ? in->alltoall_peer_s * (g->n - 1) : 0);
    if (g->k > 1)
        latency += net_hop_s(g, g->choice.protocol, all ? c->bytes / g->n : c->bytes);
    if (g->choice.protocol == COST_NCCL_SIMPLE)
        latency += in->alltoall_simple_s + sqrt(in->alltoall_fill_s * up);
    const double cut = all ? g->up_crowding * c->bytes / g->n * g->cut_s_per_byte : 0;
    return latency + MAX(MAX(up / in->alltoall_frac, cut), out) + copy_s(g, in->alltoall_copy_frac);
}

static double chosen_s(Ground *g, CostNcclChoice choice)
{
    g->choice = choice;
    switch (choice.algorithm) {
    case COST_NCCL_TREE:
        return tree_s(g);
    case COST_NCCL_NVLS:
    case COST_NCCL_NVLS_TREE:
        return nvls_s(g);
    case COST_NCCL_PAT:
        return pat_s(g);
    default:
        return ring_s(g);
    }
}

/* NCCL's estimates place its switches between protocols a little off, so its choice for a larger message can be the
 * faster one already. The time is the least over the choices for the power of two nearest to this size and for all
 * above: near NCCL's own, and a longer message never takes less. What a plug-in names stands, and so does what NCCL
 * picks from what a plug-in tells it: both are known exactly, and behind a switch a longer message may well take less. */
double cost_collective_s(const SpecCluster *cluster, const CostCollective *collective)
{
    g_assert(collective->group.ranks >= 1 && collective->bytes >= 0);
    if (collective->group.ranks == 1 || collective->bytes <= 0)
        return 0;
    Ground g = ground_of(cluster, collective);
    if (collective->op == COST_ALL_TO_ALL || collective->op == COST_SEND_RECV)
        return messages_s(&g, collective);
    const bool told = g.k > 1 && g.across->net_told_latency_s > 0;
    if (g.choice.by_plugin || told)
        return chosen_s(&g, g.choice);
    double seconds = INFINITY;
    const unsigned choices = cost_nccl_choices_upward(&g.query);
    for (int i = 0; i < COST_NCCL_ALGORITHM_COUNT * COST_NCCL_PROTOCOL_COUNT; i++) {
        const CostNcclChoice choice = {.algorithm = (CostNcclAlgorithm)(i / COST_NCCL_PROTOCOL_COUNT),
                                       .protocol = (CostNcclProtocol)(i % COST_NCCL_PROTOCOL_COUNT)};
        if ((choices & 1u << i) != 0)
            seconds = MIN(seconds, chosen_s(&g, choice));
    }
    return seconds;
}

double cost_collective_by_s(const SpecCluster *cluster, const CostCollective *collective,
                            CostNcclAlgorithm algorithm)
{
    Ground g = ground_of(cluster, collective);
    CostNcclChoice best = {.algorithm = algorithm, .seconds = INFINITY};
    for (int p = 0; p < COST_NCCL_PROTOCOL_COUNT; p++) {
        const double estimate = cost_nccl_estimate_s(&g.query, algorithm, (CostNcclProtocol)p);
        if (estimate < best.seconds)
            best.protocol = (CostNcclProtocol)p, best.seconds = estimate;
    }
    return isfinite(best.seconds) ? chosen_s(&g, best) : INFINITY;
}

CostTraffic cost_collective_traffic(const CostCollective *c)
{
    double n = c->group.ranks, k = cost_group_domains(&c->group), p = n / k, s = c->bytes;
    if (n <= 1)
        return (CostTraffic){0, 0};
    switch (c->op) {
    case COST_ALL_REDUCE:
        return (CostTraffic){2 * (p - 1) / p * s, 2 * (k - 1) / k * s / p};
    case COST_ALL_GATHER:
    case COST_REDUCE_SCATTER:
        return (CostTraffic){(p - 1) / p * s, (k - 1) / k * s / p};
    case COST_ALL_TO_ALL:
        return (CostTraffic){(p - 1) / n * s, (n - p) / n * s};
    case COST_SEND_RECV:
        return k > 1 ? (CostTraffic){0, s} : (CostTraffic){s, 0};
    default: /* a chain: n - 1 hops, k - 1 of them between domains, averaged over the ranks */
        return (CostTraffic){(n - k) / n * s, (k - 1) / n * s};
    }
}

double cost_collective_sm_frac(const SpecCluster *cluster, const CostCollective *collective)
{
    if (collective->group.ranks <= 1)
        return 0;
    Ground g = ground_of(cluster, collective);
    if (g.k == g.n)
        return g.across->net_sm_frac;
    if (collective->op == COST_ALL_TO_ALL || collective->op == COST_SEND_RECV)
        return g.inside->alltoall_sm_frac;
    bool nvls = g.choice.algorithm == COST_NCCL_NVLS || g.choice.algorithm == COST_NCCL_NVLS_TREE;
    return nvls ? g.inside->nvls_sm_frac : g.inside->ring_sm_frac;
}
