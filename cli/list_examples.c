/* cli/list_examples.c - see list_examples.h. */
#include "cli/list_examples.h"

#include <string.h>

#include "base/file.h"
#include "spec/resolve.h"

const CliColumn cli_example_columns[CLI_EXAMPLE_COLUMNS] = {
    {"name", "name", CLI_SHOW_TEXT},
    {"what", "what it is", CLI_SHOW_TEXT},
};

/* The title; of one that is called as its file what the comment says first. g_free. */
static char *title_of(const OrrJson *scenario, const char *file)
{
    const char *title = orr_json_text_of(scenario, "name", ""),
               *comment = orr_json_text_of(scenario, "comment", title);
    if (strcmp(title, file) != 0)
        return g_strdup(title);
    const char *end = strstr(comment, ". ");
    char *first = end != NULL ? g_strndup(comment, (gsize)(end - comment)) : g_strdup(comment);
    if (g_str_has_suffix(first, "."))
        first[strlen(first) - 1] = '\0';
    return first;
}

bool cli_list_examples(const char *folder, CliListing *listing, GError **error)
{
    g_autofree char *root = orr_scenarios_dir(error);
    g_autoptr(GPtrArray) names = root != NULL ? spec_preset_names(folder, error) : NULL;
    for (guint i = 0; names != NULL && i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);
        g_autofree char *file = g_strconcat(name, ".json", NULL),
                        *path = g_build_filename(root, folder, file, NULL);
        OrrJsonDoc *doc = orr_json_read_file(path, error);
        if (doc == NULL)
            return false;
        g_autofree char *title = title_of(orr_json_root(doc), name);
        cli_listing_text(listing, name);
        cli_listing_text(listing, title);
        orr_json_free(doc);
    }
    return names != NULL;
}
