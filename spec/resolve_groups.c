/* spec/resolve_groups.c - groups of a mixed cluster: each becomes an object of its own, the first one the cluster's base. */
#include "spec/groups.h"

#include <string.h>

static bool fail(const char *where, GError **error, const char *problem)
{
    return orr_fail(error, ORR_ERROR_INPUT,
                    "%s: cluster.groups: %s; write [{\"preset\": \"dgx-h100\", \"nodes\": 4}, {\"preset\": "
                    "\"dgx-a100-80gb\", \"nodes\": 8}]",
                    where, problem);
}

/* The first group without its own nodes, below what the cluster itself says. */
static void put_below(OrrJsonDoc **cluster, const OrrJson *first, const char *where, double nodes)
{
    OrrJsonDoc *base = orr_json_copy(first, where);
    orr_json_remove(base, "nodes");
    OrrJsonDoc *merged = orr_json_merge(orr_json_root(base), orr_json_root(*cluster), where);
    orr_json_free(base);
    orr_json_free(*cluster);
    *cluster = merged;
    if (orr_json_member(orr_json_root(*cluster), "nodes") == NULL) {
        g_autofree char *text = g_strdup_printf("%.0f", nodes);
        const bool set = orr_json_set(*cluster, "nodes", text, NULL);
        g_assert(set);
    }
}

/* What the entries have of their own may stand beside them only as the first entry has it, as in a resolved scenario. */
static bool check_beside(const OrrJson *cluster, const OrrJson *first, const char *where, GError **error)
{
    static const char *const own[] = {"accelerator",
                                      "gpus_per_node",
                                      "scale_up_domain_gpus",
                                      "scale_up_bytes_per_s",
                                      "scale_out_bytes_per_s_per_gpu",
                                      "scale_out_latency_s",
                                      "usd_per_gpu_hour",
                                      "host_power_w_per_gpu",
                                      "topology",
                                      "collectives",
                                      "host",
                                      "calibration"};
    for (gsize i = 0; i < G_N_ELEMENTS(own); i++) {
        const OrrJson *beside = orr_json_member(cluster, own[i]), *theirs = orr_json_member(first, own[i]);
        if (beside == NULL)
            continue;
        g_autofree char *left = orr_json_dump(beside), *right = theirs != NULL ? orr_json_dump(theirs) : NULL;
        if (right == NULL || strcmp(left, right) != 0)
            return orr_fail(error, ORR_ERROR_INPUT,
                            "%s: cluster.%s: beside cluster.groups, whose entries have their own; give it in "
                            "each entry, as cluster.groups.0.%s, and leave cluster.preset out",
                            where, own[i], own[i]);
    }
    return true;
}

bool spec_resolve_groups(OrrJsonDoc **cluster, const char *where, SpecResolveGroup resolve,
                         const void *resolver, GError **error)
{
    const OrrJson *groups = orr_json_member(orr_json_root(*cluster), "groups");
    if (groups == NULL || orr_json_type(groups) == ORR_JSON_NULL)
        return true;
    if (orr_json_type(groups) != ORR_JSON_LIST || orr_json_count(groups) == 0)
        return fail(where, error, "is not a list of groups of nodes");
    g_autoptr(GString) list = g_string_new("[");
    OrrJsonDoc *first = NULL;
    double nodes = 0;
    bool ok = true;
    for (const OrrJson *item = orr_json_first(groups); ok && item != NULL; item = orr_json_next(item)) {
        OrrJsonDoc *whole = NULL;
        if (orr_json_type(item) != ORR_JSON_OBJECT)
            ok = fail(where, error, "an entry is not an object");
        else if (orr_json_member(item, "groups") != NULL)
            ok = fail(where, error, "a group has no groups of its own");
        else if (orr_json_number_of(item, "nodes", 0) < 1)
            ok = fail(where, error, "an entry does not say how many nodes it has");
        else
            ok = (whole = resolve(resolver, item)) != NULL;
        if (!ok)
            break;
        g_autofree char *text = orr_json_dump(orr_json_root(whole));
        g_string_append_printf(list, "%s%s", list->len > 1 ? "," : "", text);
        nodes += orr_json_number_of(item, "nodes", 0);
        if (first == NULL)
            first = whole;
        else
            orr_json_free(whole);
    }
    g_string_append_c(list, ']');
    ok = ok && check_beside(orr_json_root(*cluster), orr_json_root(first), where, error) &&
         orr_json_set(*cluster, "groups", list->str, error);
    if (ok)
        put_below(cluster, orr_json_root(first), where, nodes);
    orr_json_free(first);
    return ok;
}
