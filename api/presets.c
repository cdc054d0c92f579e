/* api/presets.c - lists and reads preset files. */
#include "api/presets.h"

#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

static const char *const kinds[] = {"models",     "accelerators", "clusters", "frameworks", "schedules",
                                    "topologies", "faults",       "storage",  "examples"};

/* The folder of a kind; g_free. NULL with an error. */
static char *kind_folder(const char *kind, GError **error)
{
    g_autofree char *scenarios = orr_scenarios_dir(error);
    if (scenarios == NULL)
        return NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (strcmp(kinds[i], kind) == 0)
            return g_build_filename(scenarios, kind, NULL);
    g_autofree char *all = g_strjoinv(
        ", ", (char **)(void *)(const char *const[]){kinds[0], kinds[1], kinds[2], kinds[3], kinds[4],
                                                     kinds[5], kinds[6], kinds[7], kinds[8], NULL});
    orr_fail(error, ORR_ERROR_INPUT, "no presets of kind \"%s\"; there are %s", kind, all);
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static GPtrArray *names_in(const char *folder, GError **error)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    if (dir == NULL) {
        orr_fail(error, ORR_ERROR_IO, "%s: cannot open the folder of presets", folder);
        return NULL;
    }
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (const char *file = g_dir_read_name(dir); file != NULL; file = g_dir_read_name(dir))
        if (g_str_has_suffix(file, ".json") && file[0] != '.')
            g_ptr_array_add(names, g_strndup(file, strlen(file) - strlen(".json")));
    qsort(names->pdata, names->len, sizeof(void *), by_name);
    return names;
}

bool api_presets_list(const char *kind, GString *out, GError **error)
{
    g_autofree char *folder = kind_folder(kind, error);
    g_autoptr(GPtrArray) names = folder != NULL ? names_in(folder, error) : NULL;
    if (names == NULL)
        return false;
    OrrJsonWriter w;
    orr_jw_init(&w, out, true);
    orr_jw_begin(&w, NULL, '[');
    for (guint i = 0; i < names->len; i++)
        orr_jw_text(&w, NULL, g_ptr_array_index(names, i));
    orr_jw_end(&w, ']');
    return true;
}

bool api_presets_read(const char *kind, const char *name, GString *out, GError **error)
{
    g_autofree char *folder = kind_folder(kind, error);
    g_autoptr(GPtrArray) names = folder != NULL ? names_in(folder, error) : NULL;
    g_autofree char *text = NULL;
    if (names == NULL)
        return false;
    for (guint i = 0; i < names->len; i++) {
        if (strcmp(g_ptr_array_index(names, i), name) != 0)
            continue;
        g_autofree char *file = g_strconcat(name, ".json", NULL),
                        *path = g_build_filename(folder, file, NULL);
        gsize length = 0;
        if (!g_file_get_contents(path, &text, &length, error))
            return false;
        g_string_append_len(out, text, (gssize)length);
        return true;
    }
    const char *near = orr_nearest(name, (const char *const *)names->pdata, (int)names->len);
    return orr_fail(error, ORR_ERROR_INPUT, "no preset \"%s\" among %s%s%s%s", name, kind,
                    near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
                    near != NULL ? "\"?" : "");
}
