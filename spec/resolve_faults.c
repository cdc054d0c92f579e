/* spec/resolve_faults.c - presets of faults, storage, jitter and workloads become their objects. */
#include "spec/resolve_faults.h"

#include "spec/resolve.h"

typedef struct Place {
    const char *kind, *key;
} Place;

static const OrrJson *member_at(const OrrJson *object, const char *path)
{
    g_auto(GStrv) keys = g_strsplit(path, ".", -1);
    for (int i = 0; object != NULL && keys[i] != NULL; i++)
        object = orr_json_type(object) == ORR_JSON_OBJECT ? orr_json_member(object, keys[i]) : NULL;
    return object;
}

/* The object at `key`, which may be a preset's name or hold one, with that preset below its own members. */
static bool resolve_place(const Place *place, OrrJsonDoc *doc, const char *where, const char *base_dir,
                          GPtrArray *profiles, GError **error)
{
    const OrrJson *node = member_at(orr_json_root(doc), place->key);
    if (node == NULL || orr_json_type(node) == ORR_JSON_NULL)
        return true;
    const bool named = orr_json_type(node) == ORR_JSON_TEXT;
    const OrrJson *preset = named                                    ? node
                            : orr_json_type(node) == ORR_JSON_OBJECT ? orr_json_member(node, "preset")
                                                                     : NULL;
    if (preset == NULL || orr_json_type(preset) != ORR_JSON_TEXT)
        return true; /* no preset, or the reader says what is wrong */
    OrrJsonDoc *base =
        spec_resolve_preset(place->kind, orr_json_text(preset), where, place->key, base_dir, profiles, error);
    if (base == NULL)
        return false;
    if (!named) {
        OrrJsonDoc *over = orr_json_copy(node, where);
        orr_json_remove(over, "preset");
        orr_json_merge_into(base, orr_json_root(over));
        orr_json_free(over);
    }
    orr_json_take(doc, place->key, base);
    return true;
}

bool spec_resolve_faults(OrrJsonDoc *doc, const char *where, const char *base_dir, GPtrArray *profiles,
                         GError **error)
{
    static const Place places[] = {{"storage", "storage"},
                                   {"faults", "faults"},
                                   {"storage", "faults.checkpoint.storage"},
                                   {"jitter", "jitter"},
                                   {"workloads", "workload"}};
    for (gsize i = 0; i < G_N_ELEMENTS(places); i++)
        if (!resolve_place(&places[i], doc, where, base_dir, profiles, error))
            return false;
    return true;
}
