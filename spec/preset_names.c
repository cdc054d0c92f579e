/* spec/preset_names.c - which presets there are, what names a file instead, and which was meant. */
#include <string.h>

#include "base/file.h"
#include "base/text.h"
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

/* A name as people remember it: "DGX_H100", "llama-3-8b" and "dgx1" for dgx-h100, llama3-8b, dgx-1. g_free. */
static char *letters_of(const char *name)
{
    GString *out = g_string_new(NULL);
    for (; *name != '\0'; name++)
        if (g_ascii_isalnum(*name))
            g_string_append_c(out, g_ascii_tolower(*name));
    return g_string_free(out, FALSE);
}

/* The longest name that `name` begins with but for case and dashes ("dgx1-v100": dgx-1), or NULL. */
static const char *longest_begin(const GPtrArray *names, const char *name)
{
    g_autofree char *letters = letters_of(name);
    const char *best = NULL;
    gsize most = 2; /* letters and digits that say nothing */
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *other = letters_of(g_ptr_array_index(names, i));
        if (strlen(other) > most && g_str_has_prefix(letters, other)) {
            best = g_ptr_array_index(names, i);
            most = strlen(other);
        }
    }
    return best;
}

/* Where `letters` begin `name` or what stands behind one of its dashes: 2, 1; 0: nowhere. */
static int begins_part(const char *name, const char *letters)
{
    for (const char *part = name; part != NULL; part = strchr(part, '-')) {
        part += *part == '-';
        g_autofree char *own = letters_of(part);
        if (g_str_has_prefix(own, letters))
            return part == name ? 2 : 1;
    }
    return 0;
}

/* "h100": h100-nvl-94gb, h100-pcie-80gb ...; "4090": rtx-4090-24gb. NULL where none or too many begin so. */
static char *that_begin_so(const GPtrArray *names, const char *name)
{
    enum { MOST = 6, LEAST_LETTERS = 2 };
    g_autofree char *letters = letters_of(name);
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *own = letters_of(g_ptr_array_index(names, i));
        if (strcmp(own, letters) == 0)
            return g_strdup_printf("\"%s\"", (const char *)g_ptr_array_index(names, i));
    }
    for (int where = 2; where > 0 && strlen(letters) >= LEAST_LETTERS; where--) {
        g_autoptr(GString) begin = g_string_new(NULL);
        int found = 0;
        for (guint i = 0; i < names->len; i++)
            if (begins_part(g_ptr_array_index(names, i), letters) == where && found++ < MOST)
                g_string_append_printf(begin, "%s\"%s\"", begin->len > 0 ? ", " : "",
                                       (const char *)g_ptr_array_index(names, i));
        if (found > 0)
            return found > MOST ? NULL : g_strconcat(found > 1 ? "one of " : "", begin->str, NULL);
    }
    return NULL;
}

char *spec_preset_suggestion(const GPtrArray *names, const char *name)
{
    const char *slash = strrchr(name, '/');
    name = slash != NULL ? slash + 1 : name;
    char *begin = that_begin_so(names, name);
    if (begin != NULL)
        return begin;
    const char *near = orr_nearest(name, (const char *const *)names->pdata, (int)names->len),
               *longest = longest_begin(names, name);
    if (near == NULL && longest == NULL)
        return NULL;
    if (near == NULL || longest == NULL || strcmp(near, longest) == 0)
        return g_strdup_printf("\"%s\"", near != NULL ? near : longest);
    return g_strdup_printf("\"%s\" or \"%s\"", longest, near);
}

/* "models", where `word` names one; NULL: no preset that a scenario names. */
static const char *preset_called(const char *word)
{
    static const char *const kinds[] = {"models", "clusters", "accelerators", "frameworks"};
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autoptr(GPtrArray) names = spec_preset_names(kinds[i], NULL);
        for (guint j = 0; names != NULL && j < names->len; j++)
            if (strcmp(g_ptr_array_index(names, j), word) == 0)
                return kinds[i];
    }
    return NULL;
}

static bool fail_no_scenario(const char *word, GError **error)
{
    if (word[0] == '{')
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%.40s...: a scenario is a file; send a text as in 'orrery run - < FILE'", word);
    const char *kind = preset_called(word);
    if (kind != NULL)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: one of the %s, not a scenario; give a file such as {\"model\": \"%s\", "
            "\"cluster\": \"%s\", \"training\": {\"sequence_length\": 4096, \"global_batch\": 64}}",
            word, kind, strcmp(kind, "models") == 0 ? word : "llama3-8b",
            strcmp(kind, "clusters") == 0 ? word : "dgx-h100");
    g_autoptr(GPtrArray) names = spec_preset_names("examples", NULL);
    g_autofree char *meant = names != NULL ? spec_preset_suggestion(names, word) : NULL;
    return orr_fail(error, ORR_ERROR_INPUT, "%s: neither a file nor one of the examples; %s%s%s", word,
                    meant != NULL ? "did you mean " : "give a path, or what 'orrery list examples' names",
                    meant != NULL ? meant : "", meant != NULL ? "?" : "");
}

char *spec_scenario_path(const char *word, GError **error)
{
    if (strcmp(word, "-") == 0 || (spec_is_path(word) && word[0] != '{') ||
        g_file_test(word, G_FILE_TEST_EXISTS))
        return g_strdup(word);
    g_autofree char *root = orr_scenarios_dir(NULL), *file = g_strconcat(word, ".json", NULL);
    char *path = root != NULL && word[0] != '{' ? g_build_filename(root, "examples", file, NULL) : NULL;
    if (path != NULL && g_file_test(path, G_FILE_TEST_IS_REGULAR))
        return path;
    g_free(path);
    fail_no_scenario(word, error);
    return NULL;
}
