/* spec/resolve.c - presets, profiles, overrides and calibrations become one document. What of a scenario does is said in
 * resolve_scenario.c. */
#include "spec/resolve_internal.h"

#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "spec/calibration.h"
#include "spec/framework_keys.h"
#include "spec/import_hf.h"
#include "spec/model_names.h"
#include "spec/orders.h"
#include "spec/groups.h"
#include "spec/resolve_network.h"
#include "spec/read.h"
#include "spec/resolve_faults.h"

#define MAX_PRESET_DEPTH 8

bool spec_resolver_fail(const Resolver *resolver, const char *key, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *message = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    orr_fail(resolver->error, ORR_ERROR_INPUT, "%s: %s: %s", resolver->where, key, message);
    return false;
}

/* --- presets --- */

static char **with_end(GPtrArray *names)
{
    g_ptr_array_add(names, NULL);
    return (char **)names->pdata;
}

static bool fail_no_preset(const Resolver *resolver, const char *kind, const char *key, const char *name)
{
    g_autoptr(GPtrArray) names = spec_preset_names(kind, resolver->error);
    if (names == NULL)
        return false;
    g_autofree char *meant = spec_preset_suggestion(names, name);
    if (meant != NULL)
        return spec_resolver_fail(resolver, key, "\"%.80s\" is not one of the %s; did you mean %s?", name,
                                  kind, meant);
    enum { FEW = 8 }; /* are told */
    g_autofree char *all = names->len <= FEW ? g_strjoinv(", ", with_end(names)) : NULL;
    return spec_resolver_fail(
        resolver, key,
        "\"%.80s\" is not one of the %s%s%s%s; give %s of scenarios/%s, or a path ending in .json", name,
        kind, all != NULL ? " (" : "", all != NULL ? all : "", all != NULL ? ")" : "",
        all != NULL ? "one" : "the name of a file", kind);
}

/* File that `name` is called by: a path, from the scenario's folder or from where the user stands, as --set has it, or
 * a preset; NULL where there is none. */
static char *file_called(const Resolver *resolver, const char *kind, const char *name)
{
    char *path = NULL;
    if (spec_is_path(name)) {
        path = g_path_is_absolute(name) || resolver->base_dir == NULL
                   ? g_strdup(name)
                   : g_build_filename(resolver->base_dir, name, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_REGULAR))
            return path;
        g_free(path);
        path = g_strdup(name);
    } else {
        g_autofree char *root = orr_scenarios_dir(NULL), *file = g_strconcat(name, ".json", NULL);
        path = root != NULL && name[0] != '\0' ? g_build_filename(root, kind, file, NULL) : NULL;
    }
    if (path != NULL && g_file_test(path, G_FILE_TEST_IS_REGULAR))
        return path;
    g_free(path);
    return NULL;
}

/* File of a preset, or of the model that Hugging Face calls so, whose own name *other then is; NULL with an error that names
 * the nearest. */
static char *preset_path(const Resolver *resolver, const char *kind, const char *key, const char *name,
                         char **other)
{
    char *path = file_called(resolver, kind, name);
    if (path == NULL && strcmp(kind, "models") == 0 && !g_str_has_suffix(name, ".json"))
        *other = spec_model_preset(name);
    if (*other != NULL)
        path = file_called(resolver, kind, *other);
    if (path != NULL)
        return path;
    if (!spec_is_path(name))
        fail_no_preset(resolver, kind, key, name);
    else if (strcmp(kind, "models") == 0 && g_ascii_isalnum(name[0]) && !g_str_has_suffix(name, ".json"))
        spec_resolver_fail(resolver, key,
                           "\"%.200s\" is not a file, and no preset has its shape; download its config.json "
                           "and give its path",
                           name);
    else
        spec_resolver_fail(
            resolver, key,
            "\"%.200s\" is not a file; give the path of a file, or the name of a preset (scenarios/%s)", name,
            kind);
    return NULL;
}

static void add_once(GPtrArray *lines, const char *line)
{
    for (guint i = 0; i < lines->len; i++)
        if (strcmp(g_ptr_array_index(lines, i), line) == 0)
            return;
    g_ptr_array_add(lines, g_strdup(line));
}

/* The name in error and stamp: what was written, without the folder of presets. */
void spec_resolver_add_profile(const Resolver *resolver, const char *kind, const char *name,
                               const OrrJson *object)
{
    if (resolver->profiles == NULL)
        return;
    g_autofree char *text = orr_json_dump(object);
    g_autofree char *hash = orr_hash_text(text, strlen(text));
    g_autofree char *shown = spec_is_path(name) ? g_strdup(name) : g_strconcat(kind, "/", name, NULL);
    g_autofree char *line = g_strconcat(shown, " ", hash, NULL);
    add_once(resolver->profiles, line);
}

/* Frameworks' files of before recipes had groups are read too, and keys of before. */
static bool group_keys(const Resolver *in, const char *kind, OrrJsonDoc *doc, const char *at, const char *key)
{
    return strcmp(kind, "frameworks") != 0 || spec_framework_todays_keys(doc, at, key, in->notes, in->error);
}

/* A preset's file under its old name: {"renamed_to": NEW}. NULL: it is none; g_free. */
static char *renamed_to(const OrrJson *root)
{
    const OrrJson *name = orr_json_type(root) == ORR_JSON_OBJECT ? orr_json_member(root, "renamed_to") : NULL;
    return name != NULL && orr_json_type(name) == ORR_JSON_TEXT ? g_strdup(orr_json_text(name)) : NULL;
}

/* What `import` prints of a model alone stands for the model in it. */
static OrrJsonDoc *unwrapped(const char *kind, OrrJsonDoc *doc, const char *path)
{
    const OrrJson *root = orr_json_root(doc);
    const OrrJson *model = orr_json_type(root) == ORR_JSON_OBJECT && strcmp(kind, "models") == 0
                               ? orr_json_member(root, "model")
                               : NULL;
    if (model == NULL || orr_json_type(model) != ORR_JSON_OBJECT)
        return doc;
    OrrJsonDoc *inner = orr_json_copy(model, path);
    orr_json_free(doc);
    return inner;
}

static OrrJsonDoc *read_preset(const Resolver *resolver, const char *kind, const char *key, const char *name);

/* A Hugging Face configuration as a model; what it says that a model has no field for is noted. */
static OrrJsonDoc *import_model(const Resolver *resolver, const char *name, const char *path,
                                const OrrJson *root)
{
    g_autoptr(GPtrArray) changes = g_ptr_array_new_with_free_func(g_free),
                         harmless = g_ptr_array_new_with_free_func(g_free);
    OrrJsonDoc *imported = spec_import_hf_said(root, path, changes, harmless, resolver->error);
    for (guint i = 0; resolver->notes != NULL && i < changes->len; i++)
        g_ptr_array_add(resolver->notes, g_strdup_printf("%s: not in the prediction: %s", name,
                                                         (const char *)g_ptr_array_index(changes, i)));
    return imported;
}

/* The object of a preset's file, which may start from another preset; `doc` may be changed. */
static OrrJsonDoc *resolve_file(const Resolver *resolver, const char *kind, const char *path, OrrJsonDoc *doc)
{
    if (orr_json_type(orr_json_root(doc)) != ORR_JSON_OBJECT) {
        orr_fail(resolver->error, ORR_ERROR_INPUT, "%s: the file holds %s; it must hold one object", path,
                 orr_json_type_name(orr_json_root(doc)));
        return NULL;
    }
    if (strcmp(kind, "calibrations") == 0)
        return orr_json_copy(orr_json_root(doc), orr_json_name(doc));
    if (!group_keys(resolver, kind, doc, path, kind) ||
        !spec_preset_check(orr_json_root(doc), kind, path, resolver->error))
        return NULL;
    g_autofree char *folder = g_path_get_dirname(path);
    Resolver inside = *resolver;
    inside.where = path;
    inside.base_dir = folder;
    inside.depth++;
    return spec_resolver_object(&inside, kind, kind, orr_json_root(doc), NULL);
}

static OrrJsonDoc *read_file(const Resolver *resolver, const char *kind, const char *key, const char *name,
                             const char *path)
{
    if (resolver->files != NULL)
        preset_files_add(resolver->files, path);
    OrrJsonDoc *doc = orr_json_read_file(path, resolver->error), *resolved = NULL;
    if (doc == NULL)
        return NULL;
    doc = unwrapped(kind, doc, path);
    g_autofree char *renamed = renamed_to(orr_json_root(doc));
    if (renamed != NULL) {
        Resolver again = *resolver;
        again.depth++;
        resolved = read_preset(&again, kind, key, renamed);
    } else {
        spec_resolver_add_profile(resolver, kind, name, orr_json_root(doc));
        resolved = strcmp(kind, "models") == 0 && spec_is_hf_config(orr_json_root(doc))
                       ? import_model(resolver, name, path, orr_json_root(doc))
                       : resolve_file(resolver, kind, path, doc);
    }
    orr_json_free(doc);
    return resolved;
}

/* What was said while a preset was resolved, to whoever asks now. The object; the rest is freed. */
static OrrJsonDoc *pass_on(const Resolver *resolver, PresetGiven *given)
{
    for (guint i = 0; resolver->profiles != NULL && i < given->profiles->len; i++)
        add_once(resolver->profiles, g_ptr_array_index(given->profiles, i));
    for (guint i = 0; resolver->notes != NULL && i < given->notes->len; i++)
        g_ptr_array_add(resolver->notes, g_strdup(g_ptr_array_index(given->notes, i)));
    OrrJsonDoc *doc = g_steal_pointer(&given->doc);
    preset_given_clear(given);
    return doc;
}

/* A shipped preset, from memory when it was asked for before and its files are as they were. */
static OrrJsonDoc *shipped_preset(const Resolver *resolver, const char *kind, const char *key,
                                  const char *name, const char *path)
{
    PresetGiven given = {0};
    if (preset_kept(path, &given))
        return pass_on(resolver, &given);
    given = (PresetGiven){.profiles = g_ptr_array_new_with_free_func(g_free),
                          .notes = g_ptr_array_new_with_free_func(g_free)};
    g_autoptr(GArray) files = preset_files_new();
    Resolver noting = *resolver;
    noting.profiles = given.profiles;
    noting.notes = given.notes;
    noting.files = files;
    given.doc = read_file(&noting, kind, key, name, path);
    if (given.doc != NULL)
        preset_keep(path, &given, files);
    return pass_on(resolver, &given);
}

static OrrJsonDoc *read_preset(const Resolver *resolver, const char *kind, const char *key, const char *name)
{
    if (resolver->depth >= MAX_PRESET_DEPTH) {
        spec_resolver_fail(resolver, key,
                           "\"%.80s\" starts from a preset that starts from itself; end the circle", name);
        return NULL;
    }
    g_autofree char *other = NULL, *path = preset_path(resolver, kind, key, name, &other);
    if (path == NULL)
        return NULL;
    name = other != NULL ? other : name;
    return resolver->depth == 0 && !spec_is_path(name) ? shipped_preset(resolver, kind, key, name, path)
                                                       : read_file(resolver, kind, key, name, path);
}

/* --- objects that start from presets --- */

/* A node as an object: text becomes {"preset": text}. NULL with an error for anything else. */
static OrrJsonDoc *as_object(const Resolver *resolver, const char *key, const OrrJson *node)
{
    if (orr_json_type(node) == ORR_JSON_OBJECT)
        return orr_json_copy(node, resolver->where);
    if (orr_json_type(node) != ORR_JSON_TEXT) {
        g_autofree char *shown = orr_json_show(node);
        spec_resolver_fail(resolver, key, "%s is %s; give a preset's name, a path, or an object", shown,
                           orr_json_type_name(node));
        return NULL;
    }
    OrrJsonDoc *doc = orr_json_parse("{}", 2, resolver->where, NULL);
    g_autofree char *value = orr_json_dump(node);
    const bool set = orr_json_set(doc, "preset", value, NULL);
    g_assert(set);
    return doc;
}

/* {"model": calibration's block ...}: what goes between a preset of this kind and its overrides. */
static OrrJsonDoc *calibrated_members(const char *kind, const OrrJson *calibration)
{
    static const struct {
        const char *kind, *key;
    } members[] = {{"accelerators", "model"},
                   {"accelerators", "speed_spread_frac"},
                   {"clusters", "collectives"},
                   {"clusters", "host"}};
    OrrJsonDoc *doc = NULL;
    for (size_t i = 0; calibration != NULL && i < G_N_ELEMENTS(members); i++) {
        const OrrJson *block =
            strcmp(members[i].kind, kind) == 0 ? orr_json_member(calibration, members[i].key) : NULL;
        if (block == NULL)
            continue;
        if (doc == NULL)
            doc = orr_json_parse("{}", 2, "calibration", NULL);
        orr_json_take(doc, members[i].key, orr_json_copy(block, "calibration"));
    }
    return doc;
}

/* A calibration's figures of one framework: {"frameworks": {NAME: {...}}}. */
static OrrJsonDoc *framework_block(const OrrJson *framework, const OrrJson *calibration)
{
    const OrrJson *name = orr_json_member(framework, "name");
    const OrrJson *blocks = calibration != NULL ? orr_json_member(calibration, "frameworks") : NULL;
    if (name == NULL || orr_json_type(name) != ORR_JSON_TEXT || blocks == NULL)
        return NULL;
    const OrrJson *block = orr_json_member(blocks, orr_json_text(name));
    OrrJsonDoc *doc = block != NULL ? orr_json_copy(block, "calibration") : NULL;
    const bool ok = doc == NULL || spec_framework_todays_keys(doc, "calibration", "frameworks", NULL, NULL);
    g_assert(ok); /* checked with the rest of the calibration */
    return doc;
}

static const char *inner_key(const char *kind)
{
    return strcmp(kind, "clusters") == 0 ? "accelerator" : NULL;
}

/* Inside a cluster, "accelerator" as text counts as {"preset": text}; such a name replaces a preset's accelerator
 * as a whole, an object overrides it key by key. */
static bool normalise_inner(const Resolver *resolver, const char *kind, OrrJsonDoc *doc, bool *ret_was_name)
{
    const char *inner = inner_key(kind);
    const OrrJson *node = inner != NULL ? orr_json_member(orr_json_root(doc), inner) : NULL;
    if (node == NULL || orr_json_type(node) == ORR_JSON_NULL)
        return true;
    *ret_was_name = orr_json_type(node) == ORR_JSON_TEXT;
    g_autofree char *path = g_strconcat("cluster.", inner, NULL); /* clusters alone have one */
    OrrJsonDoc *object = as_object(resolver, path, node);
    if (object == NULL)
        return false;
    orr_json_take(doc, inner, object);
    return true;
}

/* Traits over a generation's name change that generation: {"like": name} takes them. */
static void keep_generation(OrrJsonDoc *base, const OrrJson *over)
{
    const OrrJson *traits = orr_json_member(over, "generation"),
                  *name = orr_json_member(orr_json_root(base), "generation");
    if (traits == NULL || orr_json_type(traits) != ORR_JSON_OBJECT || name == NULL ||
        orr_json_type(name) != ORR_JSON_TEXT)
        return;
    g_autofree char *value = orr_json_dump(name);
    const bool set =
        orr_json_set(base, "generation", "{}", NULL) && orr_json_set(base, "generation.like", value, NULL);
    g_assert(set);
}

/* A preset and its overrides as one object; inner presets are left as {"preset": name}. */
OrrJsonDoc *spec_resolver_object(const Resolver *resolver, const char *kind, const char *key,
                                 const OrrJson *node, const OrrJson *calibration)
{
    OrrJsonDoc *over = as_object(resolver, key, node);
    bool replaced = false;
    if (over == NULL || !normalise_inner(resolver, kind, over, &replaced) ||
        !group_keys(resolver, kind, over, resolver->where, key)) {
        orr_json_free(over);
        return NULL;
    }
    const OrrJson *preset = orr_json_member(orr_json_root(over), "preset");
    OrrJsonDoc *base = NULL;
    if (preset == NULL || orr_json_type(preset) == ORR_JSON_NULL) {
        base = orr_json_parse("{}", 2, resolver->where, NULL);
    } else if (orr_json_type(preset) != ORR_JSON_TEXT) {
        g_autofree char *shown = orr_json_show(preset), *path = g_strconcat(key, ".preset", NULL);
        spec_resolver_fail(resolver, path, "%s is %s; give the name of a preset", shown,
                           orr_json_type_name(preset));
    } else {
        base = read_preset(resolver, kind, key, orr_json_text(preset));
    }
    if (base == NULL) {
        orr_json_free(over);
        return NULL;
    }
    orr_json_remove(over, "preset");
    if (replaced)
        orr_json_remove(base, inner_key(kind));
    if (resolver->depth > 0 && strcmp(kind, "frameworks") == 0)
        orr_json_remove(base,
                        "software"); /* words name the profile that has them, not those that start from it */
    OrrJsonDoc *block = strcmp(kind, "frameworks") == 0 ? framework_block(orr_json_root(base), calibration)
                                                        : calibrated_members(kind, calibration);
    if (block != NULL)
        orr_json_merge_into(base, orr_json_root(block));
    if (strcmp(kind, "accelerators") == 0)
        keep_generation(base, orr_json_root(over));
    orr_json_merge_into(base, orr_json_root(over));
    orr_json_free(block);
    orr_json_free(over);
    if (strcmp(kind, "frameworks") == 0 &&
        !spec_framework_translate(base, resolver->where, resolver->error)) {
        orr_json_free(base);
        return NULL;
    }
    return base;
}

/* The calibration that a cluster names, read and checked; NULL without error when it names none. */
bool spec_resolver_calibration(const Resolver *resolver, const OrrJson *cluster, OrrJsonDoc **ret_doc)
{
    const OrrJson *name = orr_json_member(cluster, "calibration");
    *ret_doc = NULL;
    if (name == NULL || orr_json_type(name) != ORR_JSON_TEXT || orr_json_text(name)[0] == '\0')
        return true;
    OrrJsonDoc *doc = read_preset(resolver, "calibrations", "cluster.calibration", orr_json_text(name));
    if (doc == NULL)
        return false;
    if (!spec_calibration_check(orr_json_root(doc), orr_json_name(doc), cluster, resolver->error)) {
        orr_json_free(doc);
        return false;
    }
    *ret_doc = doc;
    return true;
}

static OrrJsonDoc *resolve_alike(const Resolver *resolver, const OrrJson *node);

static OrrJsonDoc *resolve_group(const void *resolver, const OrrJson *node)
{
    return resolve_alike(resolver, node);
}

/* A cluster, mixed or not. */
OrrJsonDoc *spec_resolver_cluster(const Resolver *resolver, const OrrJson *node)
{
    OrrJsonDoc *cluster = resolve_alike(resolver, node);
    if (cluster == NULL ||
        spec_resolve_groups(&cluster, resolver->where, resolve_group, resolver, resolver->error))
        return cluster;
    orr_json_free(cluster);
    return NULL;
}

/* Cluster, its calibration, its accelerator. */
static OrrJsonDoc *resolve_alike(const Resolver *resolver, const OrrJson *node)
{
    OrrJsonDoc *plain = spec_resolver_object(resolver, "clusters", "cluster", node, NULL),
               *calibration = NULL;
    if (plain == NULL || !spec_resolver_calibration(resolver, orr_json_root(plain), &calibration)) {
        orr_json_free(plain);
        return NULL;
    }
    OrrJsonDoc *cluster =
        plain; /* with a calibration: once more, with its block between preset and overrides */
    const OrrJson *calibrated = NULL;
    if (calibration != NULL) {
        calibrated = orr_json_root(calibration);
        orr_json_free(plain);
        cluster = spec_resolver_object(resolver, "clusters", "cluster", node, calibrated);
    }
    const OrrJson *accelerator =
        cluster != NULL ? orr_json_member(orr_json_root(cluster), "accelerator") : NULL;
    if (accelerator != NULL && orr_json_type(accelerator) != ORR_JSON_NULL) {
        OrrJsonDoc *object =
            spec_resolver_object(resolver, "accelerators", "cluster.accelerator", accelerator, calibrated);
        if (object == NULL) {
            orr_json_free(cluster);
            cluster = NULL;
        } else {
            orr_json_take(cluster, "accelerator", object);
        }
    }
    orr_json_free(calibration);
    if (cluster != NULL &&
        !spec_resolve_network(cluster, resolver->where, resolver->base_dir, resolver->error)) {
        orr_json_free(cluster);
        cluster = NULL;
    }
    return cluster;
}

OrrJsonDoc *spec_resolve_preset(const char *kind, const char *name_or_path, const char *where,
                                const char *key, const char *base_dir, GPtrArray *profiles, GError **error)
{
    const Resolver resolver = {.where = where, .base_dir = base_dir, .profiles = profiles, .error = error};
    return read_preset(&resolver, kind, key, name_or_path);
}

OrrJsonDoc *spec_resolve_cluster(const OrrJson *cluster, const char *where, const char *base_dir,
                                 GPtrArray *profiles, GError **error)
{
    const Resolver resolver = {.where = where, .base_dir = base_dir, .profiles = profiles, .error = error};
    return spec_resolver_cluster(&resolver, cluster);
}
