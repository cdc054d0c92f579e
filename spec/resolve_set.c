/* spec/resolve_set.c - "key.path=value" written into a scenario's document. */
#include <string.h>

#include "spec/fields.h"
#include "spec/framework_keys.h"
#include "spec/read.h"
#include "spec/resolve.h"

/* Texts that stand for an object, and the key under which the object holds them. */
static const struct {
    const char *path, *key;
} short_forms[] = {
    {"model", "preset"},
    {"cluster", "preset"},
    {"cluster.accelerator", "preset"},
    {"cluster.accelerator.generation", "like"},
    {"execution.framework", "preset"},
    {"training.recompute", "mode"},
    {"storage", "preset"},
    {"faults", "preset"},
    {"jitter", "preset"},
    {"workload", "preset"},
    {"faults.checkpoint.storage", "preset"},
};

static const OrrJson *node_at(const OrrJsonDoc *doc, const char *path)
{
    g_auto(GStrv) keys = g_strsplit(path, ".", -1);
    const OrrJson *node = orr_json_root(doc);
    for (int i = 0; node != NULL && keys[i] != NULL; i++)
        node = orr_json_member(node, keys[i]);
    return node;
}

#define FRAMEWORK_PREFIX "execution.framework."

/* A framework object of ungrouped keys gets its groups, so that what is set afterwards replaces them. */
static bool group_framework(OrrJsonDoc *doc, GError **error)
{
    const OrrJson *framework = node_at(doc, "execution.framework");
    if (framework == NULL || orr_json_type(framework) != ORR_JSON_OBJECT)
        return true;
    OrrJsonDoc *grouped = orr_json_copy(framework, "execution.framework");
    const bool ok = spec_framework_group_keys(grouped, orr_json_name(doc), "execution.framework", error);
    g_autofree char *value = ok ? orr_json_dump(orr_json_root(grouped)) : NULL;
    orr_json_free(grouped);
    return ok && orr_json_set(doc, "execution.framework", value, error);
}

/* The key path of `length` bytes; an ungrouped key of a framework goes to its group. */
static char *grouped_path(const char *text, gsize length)
{
    char *path = g_strndup(text, length);
    if (!g_str_has_prefix(path, FRAMEWORK_PREFIX))
        return path;
    const char *rest = path + strlen(FRAMEWORK_PREFIX);
    g_autofree char *grouped = spec_framework_grouped_key(rest);
    if (grouped == NULL || (spec_table_find(&spec_table_framework, rest) != NULL && text[length + 1] == '{'))
        return path;
    char *moved = g_strconcat(FRAMEWORK_PREFIX, grouped, NULL);
    g_free(path);
    return moved;
}

bool spec_resolve_set(OrrJsonDoc *doc, const char *set, GError **error)
{
    const char *equals = strchr(set, '=');
    if (equals == NULL || equals == set) {
        orr_fail(error, ORR_ERROR_INPUT,
                 "--set: \"%.80s\" is not KEY=VALUE; write it like training.micro_batch=2", set);
        return false;
    }
    g_autofree char *path = grouped_path(set, (gsize)(equals - set));
    if (g_str_has_prefix(path, FRAMEWORK_PREFIX) && !group_framework(doc, error))
        return false;
    for (guint i = 0; i < G_N_ELEMENTS(short_forms); i++) {
        g_autofree char *prefix = g_strconcat(short_forms[i].path, ".", NULL);
        const OrrJson *node = g_str_has_prefix(path, prefix) ? node_at(doc, short_forms[i].path) : NULL;
        if (node == NULL || orr_json_type(node) != ORR_JSON_TEXT)
            continue;
        g_autofree char *value = orr_json_dump(node), *inside = g_strconcat(prefix, short_forms[i].key, NULL);
        if (!orr_json_set(doc, short_forms[i].path, "{}", error) || !orr_json_set(doc, inside, value, error))
            return false;
    }
    return orr_json_set(doc, path, equals + 1, error);
}
