/* spec/framework_keys.c - ungrouped keys of a framework move into the groups of its recipe. */
#include "spec/framework_keys.h"

#include <string.h>

#include "spec/fields.h"

/* Keys that have another name in their group. */
static const struct {
    const char *flat, *grouped;
} renamed[] = {
    {"loss", "loss.kernel"},
    {"own_part_products", "tensor.local_chunk_gemms"},
    {"list_passes", "data_parallel.tensor_list_copies"},
    {"list_rank_host_s", "data_parallel.tensor_list_rank_host_s"},
    {"logs_reserved", "allocator.log_reports_reserved"},
};

/* Keys that recipes had once, and why they have them no more. Read, noted and left out. */
static const struct {
    const char *group, *key, *why;
} deleted[] = {
    {"kernels", "compiled_kernel_frac", "compiled layers list the kernels that are left"},
    {"kernels", "qkv_copies", "copies are entries of the list ops"},
    {"kernels", "qkv_backward_copies", "copies are entries of the list ops"},
};

static bool has_key(const SpecTable *table, const char *key)
{
    for (int i = 0; i < table->count; i++)
        if (strcmp(table->fields[i].key, key) == 0)
            return true;
    return false;
}

char *spec_framework_grouped_key(const char *flat)
{
    for (guint i = 0; i < G_N_ELEMENTS(renamed); i++)
        if (strcmp(renamed[i].flat, flat) == 0)
            return g_strdup(renamed[i].grouped);
    for (guint i = 0; i < G_N_ELEMENTS(deleted); i++)
        if (strcmp(deleted[i].key, flat) == 0)
            return g_strconcat(deleted[i].group, ".", flat, NULL);
    const SpecTable *framework = &spec_table_framework;
    for (int i = 0; i < framework->count; i++) {
        const SpecField *group = &framework->fields[i];
        if (group->type == SPEC_TYPE_OBJECT && has_key(group->table, flat))
            return g_strconcat(group->key, ".", flat, NULL);
    }
    return NULL;
}

/* Member of `object` at "group.key", or NULL. */
static const OrrJson *grouped_member(const OrrJson *object, const char *path)
{
    g_auto(GStrv) keys = g_strsplit(path, ".", 2);
    const OrrJson *group = orr_json_member(object, keys[0]);
    return group != NULL && orr_json_type(group) == ORR_JSON_OBJECT ? orr_json_member(group, keys[1]) : NULL;
}

bool spec_framework_group_keys(OrrJsonDoc *doc, const char *where, const char *key, GError **error)
{
    g_autoptr(GPtrArray) flat = g_ptr_array_new_with_free_func(g_free);
    for (const OrrJson *member = orr_json_first(orr_json_root(doc)); member != NULL;
         member = orr_json_next(member)) {
        g_autofree char *grouped = spec_framework_grouped_key(orr_json_key(member));
        if (grouped != NULL && orr_json_type(member) != ORR_JSON_OBJECT)
            g_ptr_array_add(flat, g_strdup(orr_json_key(member)));
    }
    for (guint i = 0; i < flat->len; i++) {
        const char *old = g_ptr_array_index(flat, i);
        g_autofree char *grouped = spec_framework_grouped_key(old);
        g_autofree char *value = orr_json_dump(orr_json_member(orr_json_root(doc), old));
        if (grouped_member(orr_json_root(doc), grouped) != NULL)
            return orr_fail(error, ORR_ERROR_INPUT,
                            "%s: %s: \"%s\" is \"%s\" today, and both are given; keep the latter", where, key,
                            old, grouped);
        orr_json_remove(doc, old);
        if (!orr_json_set(doc, grouped, value, error))
            return false;
    }
    return true;
}

static void drop_deleted(OrrJsonDoc *doc, const char *where, GPtrArray *notes)
{
    for (guint i = 0; i < G_N_ELEMENTS(deleted); i++) {
        const OrrJson *group = orr_json_member(orr_json_root(doc), deleted[i].group);
        if (group == NULL || orr_json_type(group) != ORR_JSON_OBJECT ||
            orr_json_member(group, deleted[i].key) == NULL)
            continue;
        OrrJsonDoc *rest = orr_json_copy(group, where);
        orr_json_remove(rest, deleted[i].key);
        g_autofree char *value = orr_json_dump(orr_json_root(rest));
        const bool set = orr_json_set(doc, deleted[i].group, value, NULL);
        g_assert(set); /* an object for an object */
        orr_json_free(rest);
        if (notes != NULL)
            g_ptr_array_add(notes,
                            g_strdup_printf("%s: %s.%s is no key of frameworks any more and does nothing: %s",
                                            where, deleted[i].group, deleted[i].key, deleted[i].why));
    }
}

bool spec_framework_todays_keys(OrrJsonDoc *doc, const char *where, const char *key, GPtrArray *notes,
                                GError **error)
{
    if (!spec_framework_group_keys(doc, where, key, error))
        return false;
    drop_deleted(doc, where, notes);
    return true;
}
