/* cli/collective_case.c - from a command line to a machine, its fabric and the ranks on it. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/units.h"
#include "cli/collective.h"
#include "network/work.h"
#include "sim/picoseconds.h"
#include "spec/load.h"
#include "traffic/fabric.h"

static bool whole_number(const char *flag, const char *text, int64_t least, int64_t most, int64_t *ret_value,
                         GError **error)
{
    char *end = NULL;
    const gint64 value = g_ascii_strtoll(text, &end, 10);
    if (end == text || *end != '\0' || value < least || value > most)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--%s: %s is not a whole number from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, flag,
                        *text != '\0' ? text : "\"\"", least, most);
    *ret_value = value;
    return true;
}

static bool size_of(const char *word, bool none_allowed, double *ret_bytes, GError **error)
{
    if (!orr_parse_quantity(word, ORR_UNIT_BYTES, ret_bytes, error)) {
        g_prefix_error(error, "--bytes: ");
        return false;
    }
    if (!(*ret_bytes >= (none_allowed ? 0 : 1) && *ret_bytes <= 1e13))
        return orr_fail(error, ORR_ERROR_INPUT, "--bytes: %s is not from 1 byte to 10 TB", word);
    *ret_bytes = floor(*ret_bytes);
    return true;
}

bool cli_collective_sizes(const char *text, bool none_allowed, GArray *sizes, GError **error)
{
    const char *dots = strstr(text, "..");
    if (dots != NULL) {
        g_autofree char *first = g_strndup(text, (gsize)(dots - text));
        double from = 0, to = 0;
        if (!size_of(first, false, &from, error) || !size_of(dots + 2, false, &to, error))
            return false;
        if (to < from)
            return orr_fail(error, ORR_ERROR_INPUT, "--bytes: %s goes down; write 8..8GiB (doubling)", text);
        for (; from <= to; from *= 2)
            g_array_append_val(sizes, from);
        return true;
    }
    g_auto(GStrv) words = g_strsplit(text, ",", -1);
    for (char **word = words; *word != NULL; word++) {
        double bytes = 0;
        if (!size_of(g_strstrip(*word), none_allowed, &bytes, error))
            return false;
        g_array_append_val(sizes, bytes);
    }
    return sizes->len > 0 || orr_fail(error, ORR_ERROR_INPUT, "--bytes: no size is given");
}

bool cli_collective_cluster(const char *name, char **sets, int gpus, SpecCluster *ret_cluster, GError **error)
{
    SpecCluster cluster;
    if (!spec_load_cluster(name, &cluster, error))
        return false;
    OrrJsonDoc *doc = orr_json_parse("{}", 2, "--cluster", NULL);
    g_autofree char *nodes =
        g_strdup_printf("%d", (gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node);
    g_autoptr(GString) quoted = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, quoted, true);
    orr_jw_text(&w, NULL, name);
    bool ok = orr_json_set(doc, "preset", quoted->str, error) && orr_json_set(doc, "nodes", nodes, error);
    for (char **set = sets; ok && set != NULL && *set != NULL; set++) {
        const char *equals = strchr(*set, '=');
        g_autofree char *key = equals != NULL ? g_strndup(*set, (gsize)(equals - *set)) : NULL;
        const char *path = key != NULL && g_str_has_prefix(key, "cluster.") ? key + strlen("cluster.") : key;
        ok = path != NULL && *path != '\0'
                 ? orr_json_set(doc, path, equals + 1, error)
                 : orr_fail(error, ORR_ERROR_INPUT, "--set %s: write it as cluster.key=value", *set);
    }
    ok = ok && spec_load_cluster_json(orr_json_root(doc), "--cluster", ret_cluster, error);
    orr_json_free(doc);
    return ok;
}

/* --- the fabric --- */

static bool read_dims(const char *text, NetFabric *fabric, GError **error)
{
    g_auto(GStrv) words = g_strsplit(text, "x", -1);
    const guint count = g_strv_length(words);
    if (count > NET_MAX_DIMS)
        return orr_fail(error, ORR_ERROR_INPUT, "--dims: %s has more than %d dimensions", text, NET_MAX_DIMS);
    int64_t volume = 1;
    for (guint i = 0; i < count; i++) {
        int64_t size = 0;
        if (!whole_number("dims", words[i], 1, NET_MAX_RANKS, &size, error))
            return false;
        volume *= size;
        if (volume > NET_MAX_RANKS)
            return orr_fail(error, ORR_ERROR_INPUT, "--dims: %s are more than %d ranks", text, NET_MAX_RANKS);
        fabric->dims[i] = (int)size;
    }
    fabric->dim_count = (int)count;
    return true;
}

/* Three sides as even as they come. */
static void cube(int volume, NetFabric *fabric)
{
    int best[3] = {1, 1, volume};
    for (int x = 1; x * x * x <= volume; x++)
        for (int y = x; volume % x == 0 && y * y <= volume / x; y++)
            if (volume / x % y == 0) {
                best[0] = x;
                best[1] = y;
                best[2] = volume / x / y;
            }
    memcpy(fabric->dims, best, sizeof best);
    fabric->dim_count = 3;
}

static bool read_file(const char *path, NetTopology *topology, GError **error)
{
    OrrJsonDoc *doc = orr_json_read_file(path, error);
    const bool ok = doc != NULL && net_topology_read(orr_json_root(doc), path, topology, error);
    orr_json_free(doc);
    return ok;
}

/* Of nodes and links: a path, or a name in scenarios/topologies. NULL: it is a generator's. */
static char *file_of(const char *name)
{
    if (strchr(name, '/') != NULL || g_str_has_suffix(name, ".json"))
        return g_strdup(name);
    g_autofree char *scenarios = orr_scenarios_dir(NULL), *file = g_strconcat(name, ".json", NULL);
    g_autofree char *path =
        scenarios != NULL ? g_build_filename(scenarios, "topologies", file, NULL) : g_strdup(file);
    return g_file_test(path, G_FILE_TEST_EXISTS) ? g_steal_pointer(&path) : NULL;
}

static bool build(const char *name, const NetFabric *fabric, NetTopology *topology, GError **error)
{
    g_autofree char *path = file_of(name);
    return path != NULL ? read_file(path, topology, error)
                        : net_topology_build(name, fabric, topology, error);
}

static bool fail_links(char **words, NetTopology *topology, GError **error)
{
    for (char **word = words; word != NULL && *word != NULL; word++) {
        g_auto(GStrv) halves = g_strsplit(*word, "=", 2);
        g_auto(GStrv) ends = g_strsplit(halves[0] != NULL ? halves[0] : "", "-", 2);
        double frac = 0;
        char *end = NULL;
        if (halves[0] != NULL && halves[1] != NULL)
            frac = g_ascii_strtod(halves[1], &end);
        if (g_strv_length(ends) != 2)
            return orr_fail(
                error, ORR_ERROR_INPUT,
                "--fail: %s names no link; write leaf0-spine1 (failed) or leaf0-spine1=0.5 (half its rate)",
                *word);
        if ((end != NULL && (*end != '\0' || end == halves[1])) || !(frac >= 0 && frac <= 1))
            return orr_fail(error, ORR_ERROR_INPUT, "--fail: %s: \"%s\" is not a fraction from 0 to 1", *word,
                            halves[1]);
        if (!net_topology_degrade(topology, ends[0], ends[1], frac, error))
            return false;
    }
    return true;
}

/* Text that is not given leaves the value as it is. */
static bool quantity(const char *flag, const char *text, OrrUnit unit, double least, double most,
                     const char *range, double *value, GError **error)
{
    if (text == NULL)
        return true;
    if (!orr_parse_quantity(text, unit, value, error)) {
        g_prefix_error(error, "--%s: ", flag);
        return false;
    }
    return (*value >= least && *value <= most) ||
           orr_fail(error, ORR_ERROR_INPUT, "--%s: %s is not %s", flag, text, range);
}

/* `ranks` 0: all GPUs of the file of nodes and links. */
static bool read_fabric(const CollectiveArgs *args, CollectiveCase *c, int ranks, GError **error)
{
    NetFabric fabric = {.gpus = ranks, .gpus_per_node = ranks};
    const char *name = "nvswitch";
    double rate = 0, latency = -1;
    if (!quantity("rate", args->rate, ORR_UNIT_BYTES_PER_S, 1, (double)NET_MAX_BYTES_PER_S,
                  "from 1 byte/s to 4 TB/s", &rate, error) ||
        !quantity("latency", args->latency, ORR_UNIT_SECONDS, 0, 1, "from 0 to 1 s", &latency, error))
        return false;
    if (c->has_cluster)
        name = traffic_cluster_fabric(&c->cluster, ranks, &fabric);
    if (args->rate != NULL)
        fabric.up_bytes_per_s = fabric.out_bytes_per_s = (int64_t)rate;
    if (args->latency != NULL)
        fabric.up_latency_ps = fabric.out_latency_ps = sim_ps(latency);
    if (args->dims != NULL && !read_dims(args->dims, &fabric, error))
        return false;
    name = args->topology != NULL ? args->topology : name;
    if (name == NULL)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--cluster %s: how several of its nodes are joined is not known; give --topology",
                        args->cluster);
    if (fabric.dim_count == 0 && strcmp(name, "torus") == 0)
        cube(ranks, &fabric);
    if (!build(name, &fabric, &c->topology, error) || !fail_links(args->fail, &c->topology, error))
        return false;
    ranks = ranks > 0 ? ranks : c->topology.gpus;
    if (ranks < 2)
        return orr_fail(error, ORR_ERROR_INPUT, "%s has %d GPU; a collective takes two", c->topology.name,
                        ranks);
    if (ranks > c->topology.gpus)
        return orr_fail(error, ORR_ERROR_INPUT, "--ranks: %d are more than the %d GPUs of %s", ranks,
                        c->topology.gpus, c->topology.name);
    NetShape *shape = &c->run.shape;
    shape->ranks = ranks;
    const bool full = ranks == c->topology.gpus;
    memcpy(shape->dims, full && args->dims == NULL ? c->topology.dims : fabric.dims, sizeof shape->dims);
    shape->dim_count = full && args->dims == NULL ? c->topology.dim_count : fabric.dim_count;
    int volume = 1;
    for (int d = 0; d < shape->dim_count; d++)
        volume *= shape->dims[d];
    if (args->dims != NULL && volume != ranks)
        return orr_fail(error, ORR_ERROR_INPUT, "--dims: the product of %s is %d, not %d ranks", args->dims,
                        volume, ranks);
    if (shape->dim_count < 1 || volume != ranks ||
        (args->dims == NULL && shape->dim_count == 2 && (shape->dims[0] == 1 || shape->dims[1] == 1))) {
        shape->dim_count = 1;
        shape->dims[0] = ranks;
    }
    return true;
}

/* Which GPU a rank runs on. */
static bool read_order(const char *text, CollectiveCase *c, GError **error)
{
    const int ranks = c->run.shape.ranks, g = c->topology.gpus_per_node, nodes = (ranks + g - 1) / g;
    if (text == NULL || strcmp(text, "node") == 0)
        return true;
    c->place = g_new(int32_t, ranks);
    c->run.place = c->place;
    if (strcmp(text, "scatter") == 0) {
        for (int r = 0; r < ranks; r++)
            c->place[r] = r % nodes * g + r / nodes;
        return true;
    }
    g_auto(GStrv) words = g_strsplit(text, ",", -1);
    if ((int)g_strv_length(words) != ranks)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--order: write node, scatter, or the GPU of each of the %d ranks", ranks);
    g_autofree bool *taken = g_new0(bool, c->topology.gpus);
    for (int r = 0; r < ranks; r++) {
        int64_t gpu = 0;
        if (!whole_number("order", words[r], 0, c->topology.gpus - 1, &gpu, error))
            return false;
        if (taken[gpu])
            return orr_fail(error, ORR_ERROR_INPUT, "--order: two ranks are on GPU %s", words[r]);
        taken[gpu] = true;
        c->place[r] = (int32_t)gpu;
    }
    return true;
}

static bool read_reduction(const char *word, CollectiveCase *c, GError **error)
{
    if (word == NULL)
        return true;
    if (!net_reduction_find(word, &c->reduction))
        return orr_fail(error, ORR_ERROR_INPUT, "--reduce: %s is not one of sum, min, max", word);
    if (!net_op_reduces(c->op))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--reduce: %s combines nothing; give it to reduce, reduce-scatter or all-reduce",
                        net_op_name(c->op));
    return true;
}

static bool read_choices(const CollectiveArgs *args, CollectiveCase *c, GError **error)
{
    int64_t seed = 0, seeds = 0, root = 0, segments = 0;
    const char *fidelity = args->fidelity != NULL ? args->fidelity : "analytic";
    if (strcmp(fidelity, "analytic") != 0 && strcmp(fidelity, "flow") != 0)
        return orr_fail(error, ORR_ERROR_INPUT, "--fidelity: %s is neither analytic nor flow", fidelity);
    c->flows = strcmp(fidelity, "flow") == 0;
    if (!read_reduction(args->reduce, c, error))
        return false;
    if (args->library != NULL && (c->library = net_library_find(args->library, error)) == NULL)
        return false;
    if (args->routing != NULL && !net_routing_find(args->routing, &c->run.routing, error))
        return false;
    if ((args->seed != NULL && !whole_number("seed", args->seed, 0, INT64_MAX, &seed, error)) ||
        (args->seeds != NULL && !whole_number("seeds", args->seeds, 1, 10000, &seeds, error)) ||
        (args->root != NULL && !whole_number("root", args->root, 0, c->run.shape.ranks - 1, &root, error)) ||
        (args->segments != NULL && !whole_number("segments", args->segments, 1, 65536, &segments, error)))
        return false;
    if (seeds > 0 && (!c->flows || (c->run.routing != NET_ROUTE_ECMP && c->run.routing != NET_ROUTE_E_ECMP)))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--seeds: routes hang on a seed with --fidelity flow and --routing ecmp or e-ecmp "
                        "only, not with %s and %s",
                        fidelity, net_routing_name(c->run.routing));
    c->seeds = (int)seeds;
    c->run.most_flows = NET_WORK_MOST_FLOWS;
    c->run.seed = (uint64_t)seed;
    c->run.shape.root = (int)root;
    c->segments = (int)segments;
    return true;
}

bool cli_collective_op(const char *word, NetOp *ret_op, GError **error)
{
    return net_op_find(word, ret_op) ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "--op: no collective is called \"%s\"; `orrery list collectives` names them", word);
}

bool cli_collective_read(const CollectiveArgs *args, CollectiveCase *c, GError **error)
{
    int64_t ranks = 0;
    if (!cli_collective_op(args->op != NULL ? args->op : "all-reduce", &c->op, error))
        return false;
    g_autofree char *file = args->topology != NULL ? file_of(args->topology) : NULL;
    const bool wired = file != NULL;
    if (args->ranks == NULL && (!wired || args->cluster != NULL))
        return orr_fail(error, ORR_ERROR_INPUT, "--ranks is needed: how many GPUs take part");
    if (args->ranks != NULL && !whole_number("ranks", args->ranks, 2, NET_MAX_RANKS, &ranks, error))
        return false;
    if (args->cluster == NULL && args->rate == NULL && !wired)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "which machine? give --cluster NAME, a --topology FILE.json, or --rate and --latency "
                        "of plain ports");
    c->has_cluster = args->cluster != NULL;
    if (c->has_cluster &&
        !cli_collective_cluster(args->cluster, args->common.sets, (int)ranks, &c->cluster, error))
        return false;
    if (!read_fabric(args, c, (int)ranks, error))
        return false;
    c->run.topology = &c->topology;
    if (!read_order(args->order, c, error) || !read_choices(args, c, error))
        return false;
    c->run.routes = net_routes_plain(&c->topology, c->run.routing, c->run.seed);
    return true;
}

NetSituation cli_collective_situation(const CollectiveCase *c, int64_t bytes)
{
    const int each = MAX(c->topology.gpus_per_node, 1), ranks = c->run.shape.ranks;
    return (NetSituation){.op = c->op, .ranks = ranks, .nodes = (ranks + each - 1) / each, .bytes = bytes};
}

void cli_collective_clear(CollectiveCase *c)
{
    net_routes_free(c->run.routes);
    net_topology_clear(&c->topology);
    g_free(c->place);
}

bool cli_collective_library(const SpecCluster *cluster, NetOp op, int ranks, double bytes,
                            CostCollective *ret_collective)
{
    static const int known[NET_OP_COUNT] = {
        [NET_SEND_RECV] = COST_SEND_RECV,
        [NET_BROADCAST] = COST_BROADCAST,
        [NET_REDUCE] = COST_REDUCE,
        [NET_SCATTER] = -1,
        [NET_GATHER] = -1,
        [NET_ALL_GATHER] = COST_ALL_GATHER,
        [NET_REDUCE_SCATTER] = COST_REDUCE_SCATTER,
        [NET_ALL_REDUCE] = COST_ALL_REDUCE,
        [NET_ALL_TO_ALL] = COST_ALL_TO_ALL,
        [NET_BARRIER] = -1,
        [NET_COPY] = -1,
        [NET_SIGNAL] = -1,
        [NET_WAIT] = -1,
    };
    if (known[op] < 0)
        return false;
    const int domain =
        cluster->scale_up_domain_gpus > 0 ? cluster->scale_up_domain_gpus : cluster->gpus_per_node;
    const int each = MIN(domain, ranks), last = ranks % each;
    *ret_collective = (CostCollective){.op = (CostCollectiveOp)known[op], .bytes = bytes};
    ret_collective->group = (CostGroup){.ranks = ranks,
                                        .per_domain = each,
                                        .domains = (ranks + each - 1) / each,
                                        .rails = last > 0 ? last : each,
                                        .nic_sharers = 1,
                                        .out_crowding = MAX(cluster->oversubscription, 1)};
    return true;
}
