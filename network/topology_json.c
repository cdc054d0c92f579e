/* network/topology_json.c - a fabric as a list of nodes and links. */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "network/topology.h"
#include "sim/picoseconds.h"

#define MOST_NODES 200000
#define MOST_LINKS 4000000

typedef struct Reading {
    const char *name;
    NetTopology *topology;
    GHashTable *numbers; /* name -> 1 + vertex */
} Reading;

static bool wrong(const Reading *r, const OrrJson *node, const char *what, GError **error)
{
    g_autofree char *shown = orr_json_show(node);
    return orr_fail(error, ORR_ERROR_INPUT, "%s: %s %s", r->name, shown, what);
}

/* Text with a unit, or a number in base units, from `least` to `most`. */
static bool quantity(const Reading *r, const OrrJson *link, const char *key, OrrUnit unit, double absent,
                     double least, double most, double *ret_value, GError **error)
{
    const OrrJson *node = orr_json_member(link, key);
    double value = absent;
    if (node != NULL && orr_json_type(node) == ORR_JSON_NUMBER)
        value = orr_json_number(node);
    else if (node != NULL && (orr_json_type(node) != ORR_JSON_TEXT ||
                              !orr_parse_quantity(orr_json_text(node), unit, &value, NULL)))
        return wrong(r, node, "is not a quantity", error);
    if (!(value >= least && value <= most))
        return orr_fail(error, ORR_ERROR_INPUT, "%s: %s of a link is %g; it can be %g to %g", r->name, key,
                        value, least, most);
    *ret_value = value;
    return true;
}

/* GPUs come first among the vertices: `gpus` says which of the two passes this is. */
static bool read_node(Reading *r, const OrrJson *node, bool gpus, GError **error)
{
    const bool object = orr_json_type(node) == ORR_JSON_OBJECT;
    const char *name = object ? orr_json_text_of(node, "name", NULL)
                              : (orr_json_type(node) == ORR_JSON_TEXT ? orr_json_text(node) : NULL);
    const OrrJson *is_switch = object ? orr_json_member(node, "switch") : NULL,
                  *relays = object ? orr_json_member(node, "relays") : NULL;
    if (name == NULL || name[0] == '\0' || strlen(name) >= sizeof r->topology->vertices[0].name)
        return wrong(
            r, node,
            "is not a node; write \"NAME\" or { \"name\": NAME, \"switch\": true } with at most 23 letters",
            error);
    if ((is_switch != NULL && orr_json_type(is_switch) != ORR_JSON_BOOL) ||
        (relays != NULL && orr_json_type(relays) != ORR_JSON_BOOL))
        return wrong(r, node, "says neither true nor false of \"switch\" or \"relays\"", error);
    const bool gpu = is_switch == NULL || !orr_json_bool(is_switch);
    if (gpu != gpus)
        return true;
    if (g_hash_table_contains(r->numbers, name))
        return orr_fail(error, ORR_ERROR_INPUT, "%s: two nodes are called \"%s\"", r->name, name);
    const int v = net_add_vertex(r->topology, gpu, relays != NULL ? orr_json_bool(relays) : !gpu, "%s", name);
    g_hash_table_insert(r->numbers, g_strdup(name), GINT_TO_POINTER(v + 1));
    return true;
}

static bool end_of(const Reading *r, const OrrJson *link, const char *key, int *ret_vertex, GError **error)
{
    const char *name = orr_json_text_of(link, key, NULL);
    if (name == NULL)
        return wrong(r, link, "is not a link; write { \"from\", \"to\", \"bytes_per_s\" }", error);
    const int number = GPOINTER_TO_INT(g_hash_table_lookup(r->numbers, name));
    if (number == 0)
        return orr_fail(error, ORR_ERROR_INPUT, "%s: a link ends at \"%s\", which is not a node", r->name,
                        name);
    *ret_vertex = number - 1;
    return true;
}

static bool read_link(Reading *r, const OrrJson *link, GError **error)
{
    int from = 0, to = 0;
    double rate = 0, latency = 0, count = 1;
    if (orr_json_type(link) != ORR_JSON_OBJECT)
        return wrong(r, link, "is not a link; write { \"from\", \"to\", \"bytes_per_s\" }", error);
    if (!end_of(r, link, "from", &from, error) || !end_of(r, link, "to", &to, error) ||
        !quantity(r, link, "bytes_per_s", ORR_UNIT_BYTES_PER_S, 0, 1, (double)NET_MAX_BYTES_PER_S, &rate,
                  error) ||
        !quantity(r, link, "latency_s", ORR_UNIT_SECONDS, 0, 0, 1, &latency, error) ||
        !quantity(r, link, "count", ORR_UNIT_NONE, 1, 1, 64, &count, error))
        return false;
    if (rate * floor(count) > (double)NET_MAX_BYTES_PER_S)
        return wrong(r, link, "carries more than 4 TB/s in all", error);
    if (from == to)
        return orr_fail(error, ORR_ERROR_INPUT, "%s: a link joins \"%s\" with itself", r->name,
                        r->topology->vertices[from].name);
    const OrrJson *one_way = orr_json_member(link, "one_way");
    const bool both = one_way == NULL || orr_json_type(one_way) != ORR_JSON_BOOL || !orr_json_bool(one_way);
    const int64_t latency_ps = sim_ps(latency);
    /* Cables side by side are one link of their rate. */
    net_add_link(r->topology, from, to, rate * floor(count), latency_ps, 1);
    if (both)
        net_add_link(r->topology, to, from, rate * floor(count), latency_ps, 1);
    return true;
}

static const OrrJson *list_of(const OrrJson *root, const char *key, const char *name, int most,
                              GError **error)
{
    const OrrJson *list = orr_json_type(root) == ORR_JSON_OBJECT ? orr_json_member(root, key) : NULL;
    if (list == NULL || orr_json_type(list) != ORR_JSON_LIST || orr_json_count(list) > most) {
        orr_fail(error, ORR_ERROR_INPUT, "%s: a topology has a list \"%s\" of at most %d", name, key, most);
        return NULL;
    }
    return list;
}

static bool read_all(Reading *r, const OrrJson *nodes, const OrrJson *links, const OrrJson *root,
                     GError **error)
{
    for (int pass = 0; pass < 2; pass++)
        for (const OrrJson *node = orr_json_first(nodes); node != NULL; node = orr_json_next(node))
            if (!read_node(r, node, pass == 0, error))
                return false;
    if (r->topology->gpus < 2)
        return orr_fail(error, ORR_ERROR_INPUT, "%s: a topology has two GPUs or more", r->name);
    for (const OrrJson *link = orr_json_first(links); link != NULL; link = orr_json_next(link))
        if (!read_link(r, link, error))
            return false;
    const double each = orr_json_number_of(root, "gpus_per_node", r->topology->gpus);
    if (!(each >= 1 && each <= r->topology->gpus) || r->topology->gpus % (int)each != 0)
        return orr_fail(error, ORR_ERROR_INPUT, "%s: gpus_per_node is %g and must divide %d", r->name, each,
                        r->topology->gpus);
    r->topology->gpus_per_node = (int)each;
    r->topology->dims[0] = (int)each;
    r->topology->dims[1] = r->topology->gpus / (int)each;
    r->topology->dim_count = 2;
    return true;
}

bool net_topology_read(const OrrJson *root, const char *name, NetTopology *ret_topology, GError **error)
{
    const OrrJson *nodes = list_of(root, "nodes", name, MOST_NODES, error);
    const OrrJson *links = nodes != NULL ? list_of(root, "links", name, MOST_LINKS, error) : NULL;
    if (links == NULL)
        return false;
    NetTopology topology = {0};
    Reading reading = {.name = name, .topology = &topology};
    reading.numbers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    const bool ok = read_all(&reading, nodes, links, root, error);
    g_hash_table_destroy(reading.numbers);
    if (!ok) {
        net_topology_clear(&topology);
        return false;
    }
    g_strlcpy(topology.name, orr_json_text_of(root, "name", "custom"), sizeof topology.name);
    net_topology_index(&topology);
    *ret_topology = topology;
    return true;
}
