/* calibrate/fit/merge.c - see merge.h. */
#include "calibrate/fit/merge.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"

typedef struct Sweep {
    const char *path;
    const OrrJson *root, *stamp;
} Sweep;

static bool open_sweep(const char *path, GPtrArray *docs, Sweep *ret_sweep, GError **error)
{
    OrrJsonDoc *doc = orr_json_read_file(path, error);
    if (doc == NULL)
        return false;
    g_ptr_array_add(docs, doc);
    const OrrJson *root = orr_json_root(doc);
    const OrrJson *stamp = orr_json_type(root) == ORR_JSON_OBJECT ? orr_json_member(root, "stamp") : NULL;
    *ret_sweep = (Sweep){path, root, stamp};
    if (stamp != NULL && orr_json_type(stamp) == ORR_JSON_OBJECT &&
        orr_json_text_of(stamp, "device", "")[0] != '\0')
        return true;
    return orr_fail(error, ORR_ERROR_INPUT,
                    "%s: has no \"stamp\" with a device; merge takes what orrery-calibrate wrote", path);
}

/* Of one device, and not one sweep twice. */
static bool check_pair(const Sweep *a, const Sweep *b, GError **error)
{
    static const char *const identity[] = {"uuid", "date", "host"};
    const char *device = orr_json_text_of(a->stamp, "device", ""),
               *other = orr_json_text_of(b->stamp, "device", "");
    bool same = true;
    if (strcmp(device, other) != 0)
        return orr_fail(error, ORR_ERROR_INPUT, "%s: is of %s, %s of %s; merge tables of one GPU", b->path,
                        other, a->path, device);
    for (size_t i = 0; i < G_N_ELEMENTS(identity); i++)
        same = same && strcmp(orr_json_text_of(a->stamp, identity[i], ""),
                              orr_json_text_of(b->stamp, identity[i], "")) == 0;
    return !same ||
           orr_fail(error, ORR_ERROR_INPUT, "%s: is the same sweep as %s; leave one out", b->path, a->path);
}

static bool is_section(const OrrJson *list)
{
    return orr_json_type(list) == ORR_JSON_LIST && strcmp(orr_json_key(list), "skipped") != 0 &&
           strcmp(orr_json_key(list), "stamps") != 0;
}

static void write_rows(OrrJsonWriter *w, const OrrJson *list, int sweep)
{
    for (const OrrJson *row = orr_json_first(list); row != NULL; row = orr_json_next(row)) {
        if (orr_json_type(row) != ORR_JSON_OBJECT)
            continue;
        orr_jw_begin(w, NULL, '{');
        for (const OrrJson *member = orr_json_first(row); member != NULL; member = orr_json_next(member))
            if (strcmp(orr_json_key(member), "sweep") != 0)
                orr_jw_node(w, orr_json_key(member), member);
        orr_jw_int(w, "sweep", sweep);
        orr_jw_end(w, '}');
    }
}

/* The sections in the order in which the sweeps first have them. */
static void write_sections(OrrJsonWriter *w, const GArray *sweeps)
{
    g_autoptr(GHashTable) done = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < sweeps->len; i++)
        for (const OrrJson *list = orr_json_first(g_array_index(sweeps, Sweep, i).root); list != NULL;
             list = orr_json_next(list)) {
            const char *key = orr_json_key(list);
            if (!is_section(list) || !g_hash_table_add(done, (gpointer)key))
                continue;
            orr_jw_begin(w, key, '[');
            for (guint j = i; j < sweeps->len; j++) {
                const OrrJson *same = orr_json_member(g_array_index(sweeps, Sweep, j).root, key);
                if (same != NULL && is_section(same))
                    write_rows(w, same, (int)j);
            }
            orr_jw_end(w, ']');
        }
}

bool cal_merge_tables(char *const *paths, GString *out, GError **error)
{
    g_autoptr(GPtrArray) docs = g_ptr_array_new_with_free_func((GDestroyNotify)orr_json_free);
    g_autoptr(GArray) sweeps = g_array_new(FALSE, TRUE, sizeof(Sweep));
    for (; *paths != NULL; paths++) {
        Sweep sweep;
        if (!open_sweep(*paths, docs, &sweep, error))
            return false;
        for (guint i = 0; i < sweeps->len; i++)
            if (!check_pair(&g_array_index(sweeps, Sweep, i), &sweep, error))
                return false;
        g_array_append_val(sweeps, sweep);
    }
    if (sweeps->len < 2)
        return orr_fail(error, ORR_ERROR_INPUT, "merge takes two tables or more");
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_int(&w, "schema", 1);
    orr_jw_node(&w, "stamp", g_array_index(sweeps, Sweep, 0).stamp);
    orr_jw_begin(&w, "stamps", '[');
    for (guint i = 0; i < sweeps->len; i++)
        orr_jw_node(&w, NULL, g_array_index(sweeps, Sweep, i).stamp);
    orr_jw_end(&w, ']');
    write_sections(&w, sweeps);
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
    return true;
}
