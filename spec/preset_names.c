/* spec/preset_names.c - which presets there are, and what names a file instead. */
#include <string.h>

#include "base/file.h"
#include "spec/resolve.h"

bool spec_is_path(const char *name)
{
    return strchr(name, '/') != NULL || g_str_has_suffix(name, ".json");
}

static int compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

GPtrArray *spec_preset_names(const char *kind, GError **error)
{
    g_autofree char *root = orr_scenarios_dir(error);
    if (root == NULL)
        return NULL;
    g_autofree char *path = g_build_filename(root, kind, NULL);
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GDir) folder = g_dir_open(path, 0, NULL);
    const char *file;
    while (folder != NULL && (file = g_dir_read_name(folder)) != NULL)
        if (g_str_has_suffix(file, ".json"))
            g_ptr_array_add(names, g_strndup(file, strlen(file) - strlen(".json")));
    g_ptr_array_sort(names, compare_names);
    return names;
}
