/* serve/safe.c - see safe.h. Tested: unit/serve/test_safe.c, cli/test_serve.py */
#include "serve/safe.h"

#include <string.h>

#include "spec/model_names.h"

/* "50 GB/s", "1e9 FLOP/s": a number, a unit, and one slash with letters behind it. */
static bool is_rate(const char *text)
{
    const char *c = text;
    if (!g_ascii_isdigit(*c))
        return false;
    c += strspn(c, "0123456789.eE+");
    c += *c == ' ';
    c += strspn(c, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    if (*c != '/')
        return false;
    c++;
    return *c != '\0' && strspn(c, "abcdefghijklmnopqrstuvwxyz") == strlen(c);
}

/* A backslash could hide a slash in JSON within a text. */
static bool names_a_file(const char *text)
{
    static const char *const endings[] = {".json", ".csv", ".txt", ".toml", ".yaml", ".yml", ".gz", ".."};
    if (strcmp(text, "-") == 0 || strchr(text, '\\') != NULL || text[0] == '~')
        return true;
    for (gsize i = 0; i < G_N_ELEMENTS(endings); i++)
        if (strstr(text, endings[i]) != NULL &&
            !(strcmp(endings[i], "..") == 0 && g_ascii_isdigit(text[0]) && strchr(text, '/') == NULL))
            return true;
    return strchr(text, '/') != NULL && !is_rate(text);
}

/* "Qwen/Qwen2.5-7B-Instruct": an owner and a model that a preset is of. */
static bool names_a_model(const char *key, const char *text)
{
    const char *slash = strchr(text, '/');
    g_autofree char *preset =
        key != NULL && strcmp(key, "model") == 0 && slash != NULL && g_ascii_isalnum(text[0]) &&
                g_ascii_isalnum(slash[1]) &&
                strspn(text, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "-_./") == strlen(text) &&
                strchr(slash + 1, '/') == NULL && strstr(text, "..") == NULL &&
                !g_str_has_suffix(text, ".json")
            ? spec_model_preset(text)
            : NULL;
    return preset != NULL;
}

/* Read by people alone, never opened. */
static bool is_prose(const char *key, int depth)
{
    return key != NULL &&
           ((depth == 2 && strcmp(key, "name") == 0) || strcmp(key, "framework_text") == 0 ||
            strcmp(key, "note") == 0 || strcmp(key, "$schema") == 0 || strcmp(key, "source") == 0);
}

/* training.lengths.file, whatever its name is: as a key, in --set's words, or in an object as text. */
static bool is_file_key(const char *key, const char *text)
{
    return (key != NULL && (strcmp(key, "file") == 0 || g_str_has_suffix(key, ".file"))) ||
           strstr(text, "lengths.file") != NULL || strstr(text, "\"file\"") != NULL;
}

static bool check(const ServeTool *tool, const OrrJson *node, const char *key, int depth, GError **error)
{
    key = orr_json_key(node) != NULL ? orr_json_key(node) : key;
    if (orr_json_type(node) == ORR_JSON_TEXT && !is_prose(key, depth) &&
        ((names_a_file(orr_json_text(node)) && !names_a_model(key, orr_json_text(node))) ||
         is_file_key(key, orr_json_text(node))))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: %.100s looks like the path of a file, and no files are read over HTTP; give the "
                        "name of a preset, or the object itself",
                        tool->name, key != NULL ? key : "an argument");
    if (orr_json_type(node) != ORR_JSON_OBJECT && orr_json_type(node) != ORR_JSON_LIST)
        return true;
    for (const OrrJson *child = orr_json_first(node); child != NULL; child = orr_json_next(child)) {
        const char *own = orr_json_key(child);
        if (own != NULL && strpbrk(own, "/\\=") != NULL)
            return orr_fail(error, ORR_ERROR_INPUT, "%s: \"%.100s\" is not the name of a field", tool->name,
                            own);
        if (!check(tool, child, key, depth + 1, error))
            return false;
    }
    return true;
}

bool serve_safe(const ServeTool *tool, const OrrJson *arguments, GError **error)
{
    static const char *const local[] = {"file", "own_runs"};
    if (arguments == NULL || orr_json_type(arguments) != ORR_JSON_OBJECT)
        return true;
    for (const OrrJson *node = orr_json_first(arguments); node != NULL; node = orr_json_next(node)) {
        const char *key = orr_json_key(node);
        for (gsize i = 0; i < G_N_ELEMENTS(local); i++)
            if (strcmp(key, local[i]) == 0)
                return orr_fail(error, ORR_ERROR_INPUT,
                                "%s: %s is the path of a file, and no files are read over HTTP", tool->name,
                                key);
        const bool body = strcmp(key, "text") == 0 &&
                          (strcmp(tool->name, "import") == 0 || strcmp(tool->name, "trace") == 0);
        const bool free = strcmp(tool->name, "help") == 0 && strcmp(key, "topic") == 0;
        if (!body && !free && !check(tool, node, NULL, 1, error))
            return false;
    }
    return true;
}
