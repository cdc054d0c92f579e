/* network/topologies.c - the generators of fabrics, one a row.
 *
 * Between nodes every uplink is a link of its own, at the NIC's rate, so that flows can collide on it. Latency sits on the
 * first link of a way: a GPU's port; in grids on every link.
 */
#include "network/topology.h"

#include <math.h>
#include <string.h>

#define DEFAULT_LEAF_GPUS  32
#define DEFAULT_POD_LEAVES 8

static int add_switch(NetTopology *t, const char *kind, int index)
{
    return net_add_vertex(t, false, true, "%s%d", kind, index);
}

static void port(NetTopology *t, int gpu, int to, int64_t rate, int64_t latency_ps, int weight)
{
    net_add_link(t, gpu, to, (double)rate, latency_ps, weight);
    net_add_link(t, to, gpu, (double)rate, 0, weight);
}

static void add_gpus(NetTopology *t, const NetFabric *f, bool relays)
{
    for (int g = 0; g < f->gpus; g++)
        net_add_vertex(t, true, relays, "gpu%d", g);
    t->gpus_per_node = f->gpus_per_node;
    t->dims[0] = f->gpus_per_node;
    t->dims[1] = f->gpus / f->gpus_per_node;
    t->dim_count = 2;
}

/* --- inside nodes --- */

static void join_by_switch(NetTopology *t, const NetFabric *f, int first, int count)
{
    const int center = add_switch(t, "nvswitch", first / f->gpus_per_node);
    for (int g = first; g < first + count; g++)
        port(t, g, center, f->up_bytes_per_s, f->up_latency_ps, 1);
}

static void join_by_pairs(NetTopology *t, const NetFabric *f, int first, int count)
{
    const double each = (double)f->up_bytes_per_s / MAX(count - 1, 1);
    for (int a = first; a < first + count; a++)
        for (int b = a + 1; b < first + count; b++)
            net_add_cable(t, a, b, each, f->up_latency_ps, 1);
}

/* Four GPUs a PCIe switch, and the switches on one root complex. */
static void join_by_pcie(NetTopology *t, const NetFabric *f, int first, int count)
{
    const int root = add_switch(t, "root", first / f->gpus_per_node);
    for (int s = 0; s * 4 < count; s++) {
        const int plx = net_add_vertex(t, false, true, "pcie%d.%d", first / f->gpus_per_node, s);
        net_add_cable(t, plx, root, (double)f->up_bytes_per_s, 0, 1);
        for (int g = first + s * 4; g < first + MIN(count, s * 4 + 4); g++)
            port(t, g, plx, f->up_bytes_per_s, f->up_latency_ps, 1);
    }
}

static void add_nodes(NetTopology *t, const NetFabric *f)
{
    add_gpus(t, f, false);
    for (int first = 0; f->gpus_per_node > 1 && first < f->gpus; first += f->gpus_per_node) {
        if (f->inside == NET_INSIDE_PAIRS)
            join_by_pairs(t, f, first, f->gpus_per_node);
        else if (f->inside == NET_INSIDE_PCIE)
            join_by_pcie(t, f, first, f->gpus_per_node);
        else
            join_by_switch(t, f, first, f->gpus_per_node);
    }
}

static bool one_domain(const NetFabric *f, NetTopology *t, GError **error)
{
    (void)error;
    NetFabric whole = *f;
    whole.gpus_per_node = f->gpus;
    add_nodes(t, &whole);
    return true;
}

static bool build_nvswitch(const NetFabric *f, NetTopology *t, GError **error)
{
    NetFabric own = *f;
    own.inside = NET_INSIDE_SWITCH;
    return one_domain(&own, t, error);
}

static bool build_pairs(const NetFabric *f, NetTopology *t, GError **error)
{
    NetFabric own = *f;
    own.inside = NET_INSIDE_PAIRS;
    return one_domain(&own, t, error);
}

static bool build_pcie(const NetFabric *f, NetTopology *t, GError **error)
{
    NetFabric own = *f;
    own.inside = NET_INSIDE_PCIE;
    return one_domain(&own, t, error);
}

/* --- between nodes: leaves and what is above them --- */

/* Uplinks of a switch with `down` ports: at full rate as many as the oversubscription leaves, evened out. */
static int uplinks(int down, double oversubscription, double *ret_rate_frac)
{
    const int count = MAX(1, (int)floor(down / oversubscription + 0.5));
    *ret_rate_frac = down / (oversubscription * count);
    return count;
}

/* `leaves` switches from vertex `leaf` on, with `down` ports each, all joined by as many spines as each has uplinks. */
static void join_leaves(NetTopology *t, const NetFabric *f, int leaf, int leaves, int down, double over)
{
    double frac = 1;
    const int spines = uplinks(down, over, &frac);
    for (int s = 0; leaves > 1 && s < spines; s++) {
        const int spine = add_switch(t, "spine", s);
        for (int l = 0; l < leaves; l++)
            net_add_cable(t, leaf + l, spine, (double)f->out_bytes_per_s * frac, 0, NET_WEIGHT_ACROSS);
    }
}

static int add_leaves(NetTopology *t, int count)
{
    const int first = t->vertex_count;
    for (int l = 0; l < count; l++)
        add_switch(t, "leaf", l);
    return first;
}

/* A GPU's NIC on its leaf. Without GPUDirect it reads and writes host memory, so that a message is copied there before and
 * from there after: a way more at either end, which takes a step inside the node. */
static void plug(NetTopology *t, const NetFabric *f, int gpu, int leaf)
{
    if (f->host_bytes_per_s > 0) {
        const int host = net_add_vertex(t, false, true, "host%d", gpu);
        net_add_cable(t, gpu, host, (double)f->host_bytes_per_s, f->up_latency_ps, NET_WEIGHT_ACROSS);
        gpu = host;
    }
    port(t, gpu, leaf, f->out_bytes_per_s, f->out_latency_ps, NET_WEIGHT_ACROSS);
}

static int leaf_gpus_of(const NetFabric *f)
{
    return f->leaf_gpus > 0 ? f->leaf_gpus : MIN(DEFAULT_LEAF_GPUS, MAX(f->gpus / 2, 1));
}

static bool build_leaf_spine(const NetFabric *f, NetTopology *t, GError **error)
{
    (void)error;
    add_nodes(t, f);
    const int down = leaf_gpus_of(f), leaves = (f->gpus + down - 1) / down, leaf = add_leaves(t, leaves);
    for (int g = 0; g < f->gpus; g++)
        plug(t, f, g, leaf + g / down);
    join_leaves(t, f, leaf, leaves, down, f->oversubscription);
    return true;
}

static bool build_nvl72(const NetFabric *f, NetTopology *t, GError **error)
{
    NetFabric own = *f;
    own.inside = NET_INSIDE_SWITCH;
    own.gpus_per_node = MIN(72, f->gpus);
    if (f->gpus % own.gpus_per_node != 0)
        return orr_fail(error, ORR_ERROR_INPUT, "nvl72: %d GPUs do not fill domains of 72", f->gpus);
    if (own.leaf_gpus == 0)
        own.leaf_gpus = own.gpus_per_node;
    return build_leaf_spine(&own, t, error);
}

/* GPU x of every node on a leaf of rail x; `leaf_gpus` nodes a leaf. */
static bool build_rail(const NetFabric *f, NetTopology *t, GError **error)
{
    (void)error;
    add_nodes(t, f);
    const int nodes = f->gpus / f->gpus_per_node, down = f->leaf_gpus > 0 ? f->leaf_gpus : DEFAULT_LEAF_GPUS;
    const int a_rail = (nodes + down - 1) / down, leaves = a_rail * f->gpus_per_node;
    const int leaf = add_leaves(t, leaves);
    for (int g = 0; g < f->gpus; g++)
        plug(t, f, g, leaf + g % f->gpus_per_node * a_rail + g / f->gpus_per_node / down);
    join_leaves(t, f, leaf, leaves, MIN(down, nodes), f->oversubscription);
    return true;
}

/* Pods of leaves below aggregation switches (full rate), planes of cores above (oversubscribed). */
static bool build_fat_tree(const NetFabric *f, NetTopology *t, GError **error)
{
    (void)error;
    add_nodes(t, f);
    const int down = leaf_gpus_of(f), leaves = (f->gpus + down - 1) / down;
    const int a_pod = f->pod_leaves > 0 ? f->pod_leaves : MIN(DEFAULT_POD_LEAVES, MAX(leaves / 2, 1));
    const int pods = (leaves + a_pod - 1) / a_pod, leaf = add_leaves(t, leaves);
    for (int g = 0; g < f->gpus; g++)
        plug(t, f, g, leaf + g / down);
    const double rate = (double)f->out_bytes_per_s;
    const int agg = t->vertex_count;
    for (int a = 0; a < pods * down; a++)
        net_add_vertex(t, false, true, "agg%d.%d", a / down, a % down);
    for (int l = 0; l < leaves; l++)
        for (int a = 0; a < down; a++)
            net_add_cable(t, leaf + l, agg + l / a_pod * down + a, rate, 0, NET_WEIGHT_ACROSS);
    double frac = 1;
    const int cores = uplinks(a_pod, f->oversubscription, &frac);
    for (int c = 0; pods > 1 && c < down * cores; c++) {
        const int core = add_switch(t, "core", c);
        for (int p = 0; p < pods; p++)
            net_add_cable(t, agg + p * down + c / cores, core, rate * frac, 0, NET_WEIGHT_ACROSS);
    }
    return true;
}

/* Racks of 16 GPUs, pods of 192 racks, 1:7 above them unless the fabric says otherwise. [Llama3] */
static bool build_llama3(const NetFabric *f, NetTopology *t, GError **error)
{
    NetFabric own = *f;
    own.leaf_gpus = f->leaf_gpus > 0 ? f->leaf_gpus : 16;
    own.pod_leaves = f->pod_leaves > 0 ? f->pod_leaves : 192;
    if (!(f->oversubscription > 1))
        own.oversubscription = 7;
    return build_fat_tree(&own, t, error);
}

/* Balanced: routers with h GPUs, 2h in a group joined by pairs, each with h links to other groups. */
static bool build_dragonfly(const NetFabric *f, NetTopology *t, GError **error)
{
    const int h = f->leaf_gpus > 0 ? f->leaf_gpus : MAX(f->gpus_per_node, 2), routers = 2 * h,
              per_group = h * routers;
    const int groups = (f->gpus + per_group - 1) / per_group;
    if (groups > routers * h + 1)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "dragonfly: %d GPUs a router reach %d groups, not %d; give more GPUs a leaf", h,
                        routers * h + 1, groups);
    add_nodes(t, f);
    const int first = t->vertex_count;
    for (int r = 0; r < groups * routers; r++)
        add_switch(t, "router", r);
    for (int g = 0; g < f->gpus; g++)
        plug(t, f, g, first + g / h);
    const double rate = (double)f->out_bytes_per_s;
    for (int group = 0; group < groups; group++) {
        for (int a = 0; a < routers; a++)
            for (int b = a + 1; b < routers; b++)
                net_add_cable(t, first + group * routers + a, first + group * routers + b, rate, 0,
                              NET_WEIGHT_ACROSS);
        /* Global link i of a group goes to the group i + 1 further on; as many rounds as the ports allow. */
        for (int to = group + 1; to < groups; to++) {
            const int out = to - group - 1, back = groups - 2 - out;
            for (int round = 0; groups > 1 && round < routers * h / (groups - 1); round++) {
                const int a = (out + round * (groups - 1)) / h, b = (back + round * (groups - 1)) / h;
                net_add_cable(t, first + group * routers + a, first + to * routers + b, rate, 0,
                              NET_WEIGHT_ACROSS);
            }
        }
    }
    return true;
}

/* --- grids --- */

static bool grid_dims(const NetFabric *f, NetTopology *t, int least, const char *name, GError **error)
{
    int volume = 1;
    for (int d = 0; d < f->dim_count; d++)
        volume *= f->dims[d];
    if (f->dim_count < least || volume != f->gpus)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: give the sizes of %d or more dimensions whose product is %d GPUs, as in --dims %dx%d", name,
            least, f->gpus, f->gpus > 1 ? 2 : 1, f->gpus > 1 ? f->gpus / 2 : 1);
    add_gpus(t, f, true);
    memcpy(t->dims, f->dims, sizeof t->dims);
    t->dim_count = f->dim_count;
    return true;
}

/* A GPU's rate spreads over 2 links a dimension. */
static void add_grid(const NetFabric *f, NetTopology *t, bool wrap)
{
    const double rate = (double)f->up_bytes_per_s / (2 * f->dim_count);
    int stride = 1;
    for (int d = 0; d < f->dim_count; stride *= f->dims[d++]) {
        for (int g = 0; g < f->gpus; g++) {
            const int at = g / stride % f->dims[d];
            if (at + 1 < f->dims[d])
                net_add_cable(t, g, g + stride, rate, f->up_latency_ps, 1);
            else if (wrap && f->dims[d] > 1)
                net_add_cable(t, g, g - at * stride, rate, f->up_latency_ps, 1);
        }
    }
}

static bool build_torus(const NetFabric *f, NetTopology *t, GError **error)
{
    if (!grid_dims(f, t, 1, "torus", error))
        return false;
    add_grid(f, t, true);
    return true;
}

/* TPU v4: cubes of 4 x 4 x 4, the faces of which optical switches join to a torus of any three multiples of 4. A circuit
 * is set up once and shared by nobody, so that it is a link; --dims says how the cubes are wired. [LockwoodTpuV4] */
static bool build_tpu_cubes(const NetFabric *f, NetTopology *t, GError **error)
{
    for (int d = 0; d < f->dim_count; d++)
        if (f->dim_count != 3 || f->dims[d] % 4 != 0)
            return orr_fail(
                error, ORR_ERROR_INPUT,
                "tpu-cubes: optical switches join cubes of 4x4x4; give three multiples of 4, as in "
                "--dims 4x8x8");
    return build_torus(f, t, error);
}

static bool build_mesh(const NetFabric *f, NetTopology *t, GError **error)
{
    if (!grid_dims(f, t, 2, "mesh-2d", error))
        return false;
    add_grid(f, t, false);
    return true;
}

/* BCube: in each dimension the GPUs that differ in it alone share a switch; GPUs pass messages on. */
static bool build_bcube(const NetFabric *f, NetTopology *t, GError **error)
{
    if (!grid_dims(f, t, 1, "bcube", error))
        return false;
    int stride = 1;
    for (int d = 0; d < f->dim_count; stride *= f->dims[d++]) {
        const int first = t->vertex_count, size = f->dims[d];
        for (int s = 0; s < f->gpus / size; s++)
            net_add_vertex(t, false, true, "level%d.%d", d, s);
        for (int g = 0; g < f->gpus; g++)
            port(t, g, first + g / (stride * size) * stride + g % stride, f->out_bytes_per_s,
                 f->out_latency_ps, 1);
    }
    return true;
}

/* Boards of GPUs joined by pairs, without any switch: GPU x of a board is cabled to GPU x of the next, around. */
static bool build_boards(const NetFabric *f, NetTopology *t, GError **error)
{
    (void)error;
    add_gpus(t, f, true);
    const int g = f->gpus_per_node;
    for (int first = 0; first < f->gpus; first += g)
        join_by_pairs(t, f, first, g);
    for (int a = 0; a < f->gpus && f->gpus > g; a++)
        if (f->gpus > 2 * g || a < g)
            net_add_cable(t, a, (a + g) % f->gpus, (double)f->out_bytes_per_s / 2, f->out_latency_ps,
                          NET_WEIGHT_ACROSS);
    return true;
}

static const NetTopologyRow rows[] = {
    {"nvswitch", "all GPUs on one switch of the scale-up links (DGX-2 and later)", "n B/2", build_nvswitch,
     false},
    {"pairs", "a link between every two GPUs, its rate an equal part (MI300X)", "(n/2)^2 B/(n-1)",
     build_pairs, false},
    {"pcie-tree", "four GPUs a PCIe switch, switches on a root complex", "B of one switch's uplink",
     build_pcie, false},
    {"nvl72", "domains of 72 GPUs on switches, NICs on leaves and spines",
     "n/2 of GPU and NIC rate in a domain", build_nvl72, false},
    {"leaf-spine", "two tiers: leaves of 32 GPUs, spines above, oversubscribed as the cluster says",
     "n B/2 / oversubscription", build_leaf_spine, false},
    {"fat-tree", "three tiers: leaves, pods, cores; oversubscription above pods", "n B/2 / oversubscription",
     build_fat_tree, false},
    {"rail", "GPU x of every node on a leaf of rail x, spines above", "n B/2 / oversubscription, and NVLink",
     build_rail, false},
    {"llama3-pods", "racks of 16 GPUs, pods of 3,072, 1:7 between pods", "n B/2 / 7", build_llama3, false},
    {"dragonfly", "groups of routers joined by pairs, groups joined by pairs",
     "global links between the halves", build_dragonfly, false},
    {"bcube", "a switch for every line of a grid, GPUs pass messages on", "n B/2 of even sizes", build_bcube,
     true},
    {"torus", "a grid of any dimensions that wraps around", "2 n/d links for the longest side d", build_torus,
     true},
    {"tpu-cubes", "cubes of 4x4x4 that optical switches join to a torus, wired as the dims say (TPU v4)",
     "2 n/d links for the longest side d", build_tpu_cubes, true},
    {"mesh-2d", "a grid that does not wrap", "n/d links for the longest side d", build_mesh, true},
    {"boards", "boards of GPUs joined by pairs, cabled to the next board, no switch",
     "cables of two cuts of the ring", build_boards, false},
};

const NetTopologyRow *net_topologies(int *ret_count)
{
    *ret_count = (int)G_N_ELEMENTS(rows);
    return rows;
}

bool net_topology_build(const char *name, const NetFabric *fabric, NetTopology *ret_topology, GError **error)
{
    NetFabric f = *fabric;
    f.gpus_per_node = CLAMP(f.gpus_per_node, 1, f.gpus);
    f.oversubscription = MAX(f.oversubscription, 1);
    if (f.up_bytes_per_s > NET_MAX_BYTES_PER_S || f.out_bytes_per_s > NET_MAX_BYTES_PER_S)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "a link carries at most 4 TB/s, not %" G_GINT64_FORMAT " bytes/s",
                        MAX(f.up_bytes_per_s, f.out_bytes_per_s));
    if (f.gpus % f.gpus_per_node != 0)
        return orr_fail(error, ORR_ERROR_INPUT, "%d GPUs do not fill nodes of %d", f.gpus, f.gpus_per_node);
    g_autoptr(GString) known = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_string_append_printf(known, "%s%s", i > 0 ? ", " : "", rows[i].name);
        if (strcmp(rows[i].name, name) != 0)
            continue;
        NetTopology topology = {0};
        if (!rows[i].build(&f, &topology, error)) {
            net_topology_clear(&topology);
            return false;
        }
        g_strlcpy(topology.name, name, sizeof topology.name);
        net_topology_index(&topology);
        *ret_topology = topology;
        return true;
    }
    return orr_fail(error, ORR_ERROR_INPUT,
                    "no topology is called \"%s\"; there are %s, and files of nodes and links", name,
                    known->str);
}
