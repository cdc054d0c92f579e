/* spec/fields_network.c - field tables of a cluster's fabric and of what else is on it. */
#include <math.h>
#include <string.h>

#include "spec/fields_internal.h"
#include "spec/texts.h"

/* A generator's name, or an object of nodes and links (a path has become what its file says). */
static bool read_topology(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    const char **topology = target;
    if (orr_json_type(node) == ORR_JSON_TEXT) {
        *topology =
            orr_json_text(node)[0] != '\0' ? spec_keep_text(context->texts, orr_json_text(node)) : NULL;
        return true;
    }
    if (orr_json_type(node) != ORR_JSON_OBJECT)
        return spec_read_fail(
            context, node, error,
            "is not a topology; give a name from 'orrery list topologies', the path of a file of nodes "
            "and links, or such an object");
    g_autofree char *text = orr_json_dump(node);
    *topology = spec_keep_text(context->texts, text);
    return true;
}

static bool read_dims(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecNetwork *network = (SpecNetwork *)(void *)((char *)target - offsetof(SpecNetwork, dims));
    network->dim_count = 0;
    if (orr_json_type(node) != ORR_JSON_LIST || orr_json_count(node) > SPEC_MAX_DIMS)
        return spec_read_fail(context, node, error,
                              "is not a list of at most %d sizes; give one such as [8, 4]", SPEC_MAX_DIMS);
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item))
        if (!spec_read_int(context, item, 1, 1 << 20, &network->dims[network->dim_count++], error))
            return false;
    return true;
}

/* "leaf0-spine1" (failed), "leaf0-spine1=0.5" (half its rate). */
static bool take_failed_link(const char *text, SpecFailedLink *link)
{
    const char *equals = strchr(text, '='), *dash = strchr(text, '-');
    const size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
    char *end = NULL;
    link->frac = equals != NULL ? g_ascii_strtod(equals + 1, &end) : 0;
    if (dash == NULL || dash >= text + length || (end != NULL && (*end != '\0' || end == equals + 1)) ||
        !(link->frac >= 0 && link->frac <= 1))
        return false;
    const size_t from = (size_t)(dash - text), to = length - from - 1;
    if (from == 0 || to == 0 || from >= sizeof link->from || to >= sizeof link->to)
        return false;
    memcpy(link->from, text, from);
    memcpy(link->to, dash + 1, to);
    link->from[from] = link->to[to] = '\0';
    return true;
}

static bool read_failed_links(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecNetwork *network = (SpecNetwork *)(void *)((char *)target - offsetof(SpecNetwork, failed_links));
    network->failed_link_count = 0;
    if (orr_json_type(node) != ORR_JSON_LIST || orr_json_count(node) > SPEC_MAX_FAILED_LINKS)
        return spec_read_fail(context, node, error,
                              "is not a list of at most %d links; give one such as [\"leaf0-spine1=0.5\"]",
                              SPEC_MAX_FAILED_LINKS);
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item))
        if (orr_json_type(item) != ORR_JSON_TEXT ||
            !take_failed_link(orr_json_text(item), &network->failed_links[network->failed_link_count++]))
            return spec_read_fail(
                context, item, error,
                "names no link; write \"leaf0-spine1\" (failed) or \"leaf0-spine1=0.5\" (half its "
                "rate)");
    return true;
}

static const SpecField traffic_fields[] = {
    SPEC_F_NAME(SpecTraffic, name, "\"traffic\"", "Name in reports."),
    SPEC_F_WORD(SpecTraffic, links, &spec_words_traffic_links, "\"front-end\"", 0,
                "fabric: the links that the job uses; front-end: a node's links of their own to storage."),
    SPEC_F_DOUBLE(SpecTraffic, bytes_per_gpu, ORR_UNIT_BYTES, 1, 1e15, NULL, SPEC_FIELD_REQUIRED,
                  "What each GPU of the job sends, from the beginning of the step."),
    SPEC_F_DOUBLE(SpecTraffic, bytes_per_s_per_gpu, ORR_UNIT_BYTES_PER_S, 0, 1e14, "0", 0,
                  "Most that it sends at; 0: all that its links take."),
    SPEC_F_NAME(SpecTraffic, to, "\"\"",
                "fabric: the vertex where storage is; default: at the leaf switch of each GPU."),
};
static SPEC_TABLE(table_traffic, "cluster.network.traffic",
                  "What else a job sends during a step: a checkpoint, data.", traffic_fields);

static bool read_traffic(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecNetwork *network = (SpecNetwork *)(void *)((char *)target - offsetof(SpecNetwork, traffic));
    network->traffic_count = 0;
    if (orr_json_type(node) != ORR_JSON_LIST || orr_json_count(node) > SPEC_MAX_TRAFFIC)
        return spec_read_fail(context, node, error,
                              "is not a list of at most %d; give one such as [{ \"name\": \"checkpoint\", "
                              "\"bytes_per_gpu\": \"10 GB\" }]",
                              SPEC_MAX_TRAFFIC);
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item)) {
        SpecTraffic *traffic = &network->traffic[network->traffic_count++];
        if (orr_json_type(item) != ORR_JSON_OBJECT)
            return spec_read_fail(context, item, error, "is not an object with bytes_per_gpu");
        if (!spec_read_table(context, &table_traffic, item, traffic, error))
            return false;
    }
    return true;
}

static bool read_jobs(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecNetwork *network = (SpecNetwork *)(void *)((char *)target - offsetof(SpecNetwork, jobs));
    network->job_count = 0;
    if (orr_json_type(node) != ORR_JSON_LIST || orr_json_count(node) > SPEC_MAX_JOBS)
        return spec_read_fail(context, node, error, "is not a list of at most %d scenarios or paths of them",
                              SPEC_MAX_JOBS);
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item)) {
        if (orr_json_type(item) != ORR_JSON_OBJECT)
            return spec_read_fail(context, item, error, "is not a scenario, nor the path of one (.json)");
        g_autofree char *text = orr_json_dump(item);
        network->jobs[network->job_count++] = spec_keep_text(context->texts, text);
    }
    return true;
}

#define LIST_SCHEMA "{\"type\":\"array\"}"

static const SpecField network_fields[] = {
    SPEC_F_WORD(SpecNetwork, fidelity, &spec_words_fidelity, "\"analytic\"", 0,
                "analytic: every collective is priced as if alone. flow: all messages of a step share one "
                "fabric, and the report's network section gives the cost (docs/NETWORK.md)."),
    SPEC_F_CUSTOM(
        SpecNetwork, topology, read_topology, "\"\"", 0,
        "a name of 'orrery list topologies', the path of a file of nodes and links, or such an object",
        "{\"type\":[\"string\",\"object\"]}", NULL,
        "The fabric; default: NVSwitch or its like in a domain, rails between domains, a fat tree where the "
        "cluster is oversubscribed."),
    SPEC_F_CUSTOM(SpecNetwork, dims, read_dims, "[]", 0, "a list of sizes", LIST_SCHEMA, NULL,
                  "Sizes of a grid (torus, mesh-2d, bcube)."),
    SPEC_F_INT(SpecNetwork, leaf_gpus, 0, 65536, "0", 0,
               "GPUs of a leaf (of rails: one GPU of so many nodes); 0: the topology's own number."),
    SPEC_F_INT(SpecNetwork, pod_leaves, 0, 65536, "0", 0, "Leaves of a pod; 0: the topology's own number."),
    SPEC_F_WORD(
        SpecNetwork, routing, &spec_words_routing, "\"shortest\"", 0,
        "Which of equally short paths a message takes. With analytic fidelity and ecmp (Ethernet, RoCE "
        "without adaptive routing), groups that span several leaf switches get 60/95 of the NICs' rate."),
    SPEC_F_INT(SpecNetwork, seed, 0, 1e9, "0", 0, "Seed of the hash that ecmp and e-ecmp route by."),
    SPEC_F_WORD(SpecNetwork, algorithm, &spec_words_network_algorithm, "\"ring\"", 0,
                "Which domains exchange at once in reductions and gathers: NCCL's rings along every rail, "
                "its trees, or pairs."),
    SPEC_F_BOOL(SpecNetwork, lossless, "false", 0,
                "Switches pause their senders (PFC). A message queued after a paused one waits too."),
    SPEC_F_BOOL(SpecNetwork, host_copies, "false", 0,
                "Without GPUDirect, a NIC's traffic passes host memory at half the rate of the GPU's PCIe "
                "link. NCCL does so where GPU and NIC share no PCIe switch."),
    SPEC_F_CUSTOM(SpecNetwork, failed_links, read_failed_links, "[]", 0,
                  "a list of links such as \"leaf0-spine1\" (failed) or \"leaf0-spine1=0.5\" (half its rate)",
                  LIST_SCHEMA, NULL, "Links that failed or run at a part of their rate, both ways."),
    SPEC_F_INT(SpecNetwork, machine_nodes, 0, 1e6, "0", 0,
               "Scale-up domains of the whole fabric; 0: those of the job."),
    SPEC_F_INT(SpecNetwork, first_node, 0, 1e6, "0", 0,
               "The domain of the fabric with the job's first ranks."),
    SPEC_F_INT(SpecNetwork, node_stride, 1, 1e6, "1", 0,
               "How far apart the domains of the job are on the fabric."),
    SPEC_F_CUSTOM(SpecNetwork, traffic, read_traffic, "[]", 0, "a list of objects with bytes_per_gpu",
                  LIST_SCHEMA, &table_traffic,
                  "Other traffic of the job at the same time: checkpoints, training data."),
    SPEC_F_DOUBLE(SpecNetwork, front_end_bytes_per_s, ORR_UNIT_BYTES_PER_S, 0, 1e14, "0", 0,
                  "A node's links to storage and the front end, one way; needed by traffic on them."),
    SPEC_F_CUSTOM(SpecNetwork, jobs, read_jobs, "[]", 0, "a list of scenarios or paths of them", LIST_SCHEMA,
                  NULL,
                  "Other jobs on the same fabric, each on the domains that its own cluster.network says."),
};
SPEC_TABLE(spec_table_network, "cluster.network", "The fabric, link by link, and what else is on it.",
           network_fields);
