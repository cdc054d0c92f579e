/* spec/resolve_network.c - files that a cluster's network names become what they hold. */
#include "spec/resolve_network.h"

#include <string.h>

#include "base/file.h"

static bool is_path(const char *name)
{
    return strchr(name, '/') != NULL || g_str_has_suffix(name, ".json");
}

static char *path_of(const char *name, const char *base_dir)
{
    return g_path_is_absolute(name) || base_dir == NULL ? g_strdup(name)
                                                        : g_build_filename(base_dir, name, NULL);
}

/* What file `path` holds, as text; `key` says who names it. */
static char *content_of(const char *path, const char *name, const char *where, const char *key,
                        GError **error)
{
    if (!g_file_test(path, G_FILE_TEST_IS_REGULAR)) {
        orr_fail(error, ORR_ERROR_INPUT, "%s: %s: \"%.200s\" is not a file, from the scenario's folder",
                 where, key, name);
        return NULL;
    }
    OrrJsonDoc *doc = orr_json_read_file(path, error);
    char *text = doc != NULL ? orr_json_dump(orr_json_root(doc)) : NULL;
    orr_json_free(doc);
    return text;
}

static bool resolve_topology(OrrJsonDoc *cluster, const OrrJson *network, const char *where,
                             const char *base_dir, GError **error)
{
    const OrrJson *topology = orr_json_member(network, "topology");
    if (topology == NULL || orr_json_type(topology) != ORR_JSON_TEXT)
        return true;
    const char *name = orr_json_text(topology);
    g_autofree char *scenarios = orr_scenarios_dir(NULL), *file = g_strconcat(name, ".json", NULL);
    g_autofree char *preset =
        scenarios != NULL && !is_path(name) ? g_build_filename(scenarios, "topologies", file, NULL) : NULL;
    const bool known = preset != NULL && g_file_test(preset, G_FILE_TEST_IS_REGULAR);
    if (!known && !is_path(name))
        return true; /* a generator's name, or none */
    g_autofree char *path = known ? g_strdup(preset) : path_of(name, base_dir);
    g_autofree char *text = content_of(path, name, where, "cluster.network.topology", error);
    return text != NULL && orr_json_set(cluster, "network.topology", text, error);
}

static bool resolve_jobs(OrrJsonDoc *cluster, const OrrJson *network, const char *where, const char *base_dir,
                         GError **error)
{
    const OrrJson *jobs = orr_json_member(network, "jobs");
    if (jobs == NULL || orr_json_type(jobs) != ORR_JSON_LIST)
        return true;
    g_autoptr(GString) list = g_string_new("[");
    for (const OrrJson *job = orr_json_first(jobs); job != NULL; job = orr_json_next(job)) {
        const bool text = orr_json_type(job) == ORR_JSON_TEXT;
        g_autofree char *path = text ? path_of(orr_json_text(job), base_dir) : NULL;
        g_autofree char *content =
            text ? content_of(path, orr_json_text(job), where, "cluster.network.jobs", error)
                 : orr_json_dump(job);
        if (content == NULL)
            return false;
        g_string_append_printf(list, "%s%s", list->len > 1 ? "," : "", content);
    }
    g_string_append_c(list, ']');
    return orr_json_set(cluster, "network.jobs", list->str, error);
}

bool spec_resolve_network(OrrJsonDoc *cluster, const char *where, const char *base_dir, GError **error)
{
    const OrrJson *network = orr_json_member(orr_json_root(cluster), "network");
    if (network == NULL || orr_json_type(network) != ORR_JSON_OBJECT)
        return true; /* the reader says what is wrong */
    if (!resolve_topology(cluster, network, where, base_dir, error))
        return false;
    network = orr_json_member(orr_json_root(cluster), "network");
    return resolve_jobs(cluster, network, where, base_dir, error);
}
