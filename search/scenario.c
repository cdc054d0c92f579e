/* search/scenario.c - see scenario.h. Tested: cli/test_cli_answers.c */
#include "search/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "search/axes.h"
#include "search/mixed.h"
#include "spec/load.h"
#include "spec/resolve.h"

/* What no scenario has as "auto", and a plan or a front of machines sets. */
static const struct {
    const char *key;
    size_t offset;
    bool always; /* written even where the scenario's own value stays: what is derived follows others */
} numbers[] = {
    {"cluster.nodes", offsetof(Spec, cluster.nodes), true},
    {"cluster.gpus_per_node", offsetof(Spec, cluster.gpus_per_node), false},
    {"cluster.scale_up_domain_gpus", offsetof(Spec, cluster.scale_up_domain_gpus), false},
    {"training.global_batch", offsetof(Spec, training.global_batch), true},
};

static int number_at(const Spec *spec, size_t offset)
{
    int value;
    memcpy(&value, (const char *)spec + offset, sizeof value);
    return value;
}

typedef struct Edit {
    OrrJsonDoc *doc;
    GError **error;
    bool ok;
} Edit;

static void set(Edit *edit, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void set(Edit *edit, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    g_autofree char *text = g_strdup_vprintf(format, values);
    va_end(values);
    edit->ok = edit->ok && spec_resolve_set(edit->doc, text, edit->error);
}

static void set_word(Edit *edit, const char *key, const SpecWords *words, int asked, int chosen)
{
    if (asked != chosen)
        set(edit, "%s=\"%s\"", key, spec_word(words, chosen));
}

static void set_overlap(Edit *edit, const char *key, unsigned asked, unsigned chosen)
{
    if (asked == chosen)
        return;
    g_autoptr(GString) list = g_string_new(NULL);
    for (int i = 0; i < spec_words_overlap.count; i++)
        if ((chosen & 1u << i) != 0)
            g_string_append_printf(list, "%s\"%s\"", list->len > 0 ? "," : "",
                                   orr_word(&spec_words_overlap, i));
    set(edit, "%s=[%s]", key, list->str);
}

/* A section that is one word, as "offload": "auto", becomes an object. */
static void open_section(Edit *edit, const SearchAxis *axis)
{
    g_autofree char *section = g_strndup(axis->key, strcspn(axis->key, "."));
    const OrrJson *own = orr_json_member(orr_json_root(edit->doc), section);
    if (own != NULL && orr_json_type(own) != ORR_JSON_OBJECT)
        set(edit, "%s={}", section);
}

static void set_axes(Edit *edit, const Spec *asked, const Spec *chosen)
{
    int count = 0;
    const SearchAxis *axes = search_axes(&count);
    for (int i = 0; i < count; i++) {
        g_autoptr(GString) value = g_string_new(NULL);
        OrrJsonWriter w;
        if (!search_axis_is_saved(&axes[i], asked, chosen))
            continue;
        orr_jw_init(&w, value, true);
        search_axis_write(&axes[i], &w, NULL, chosen);
        open_section(edit, &axes[i]);
        set(edit, "%s=%s", axes[i].key, value->str);
    }
}

static void set_list(Edit *edit, const char *key, const int *values, int count)
{
    g_autoptr(GString) list = g_string_new(NULL);
    for (int i = 0; i < count; i++)
        g_string_append_printf(list, "%s%d", i > 0 ? "," : "", values[i]);
    if (count > 0)
        set(edit, "%s=[%s]", key, list->str);
}

/* The groups of a mixed cluster with the nodes that they have at the choice. */
static void set_groups(Edit *edit, const Spec *asked, const Spec *chosen)
{
    const OrrJson *cluster = orr_json_member(orr_json_root(edit->doc), "cluster");
    const OrrJson *groups = cluster != NULL ? orr_json_member(cluster, "groups") : NULL;
    g_autoptr(GString) list = g_string_new("[");
    int g = 0;
    if (groups == NULL || asked->cluster.nodes == chosen->cluster.nodes)
        return;
    for (const OrrJson *item = orr_json_first(groups); item != NULL; item = orr_json_next(item), g++) {
        OrrJsonDoc *group = orr_json_copy(item, "cluster.groups");
        g_autofree char *nodes = g_strdup_printf("%d", chosen->cluster.groups[g].nodes);
        edit->ok = edit->ok && orr_json_set(group, "nodes", nodes, edit->error);
        g_autofree char *text = orr_json_dump(orr_json_root(group));
        g_string_append_printf(list, "%s%s", g > 0 ? "," : "", text);
        orr_json_free(group);
    }
    g_string_append_c(list, ']');
    edit->ok = edit->ok && orr_json_set(edit->doc, "cluster.groups", list->str, edit->error);
}

/* What only a mixed cluster may say, of a scenario that has got another cluster. */
static void drop_dealt(Edit *edit, const Spec *asked)
{
    static const char *const keys[] = {"stage_layers", "replica_microbatches"};
    const OrrJson *parallel = orr_json_member(orr_json_root(edit->doc), "parallel");
    for (gsize i = 0; i < G_N_ELEMENTS(keys) && asked->cluster.group_count == 0 && parallel != NULL; i++) {
        const OrrJson *node = orr_json_member(parallel, keys[i]);
        if (node != NULL && orr_json_type(node) == ORR_JSON_TEXT)
            set(edit, "parallel.%s=null", keys[i]);
    }
}

/* Layers and micro-batches that were dealt out to the GPUs of a mixed cluster. */
static void set_dealt(Edit *edit, const Spec *asked, const Spec *chosen)
{
    int stages = 0, replicas = 0;
    g_autofree int *layers = search_mixed_layers(asked, chosen, &stages),
                   *microbatches = search_mixed_microbatches(asked, chosen, &replicas);
    set_list(edit, "parallel.stage_layers", layers, stages);
    set_list(edit, "parallel.replica_microbatches", microbatches, replicas);
}

static void set_choices(Edit *edit, const Spec *asked, const Spec *chosen)
{
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++) {
        const int value = number_at(chosen, numbers[i].offset);
        if (numbers[i].always || number_at(asked, numbers[i].offset) != value)
            set(edit, "%s=%d", numbers[i].key, value);
    }
    set_axes(edit, asked, chosen);
    if (asked->execution.compiled != chosen->execution.compiled) /* a precision's */
        set(edit, "execution.compiled=%s", chosen->execution.compiled ? "true" : "false");
    drop_dealt(edit, asked);
    set_dealt(edit, asked, chosen);
    set_groups(edit, asked, chosen);
}

/* Texts that may be paths, from the scenario's folder. */
static void anchor_paths(Edit *edit, const char *folder)
{
    static const char *const keys[][3] = {
        {"model"},
        {"model", "preset"},
        {"cluster"},
        {"cluster", "preset"},
        {"cluster", "accelerator"},
        {"cluster", "accelerator", "preset"},
        {"cluster", "calibration"},
        {"execution", "framework"},
        {"execution", "framework", "preset"},
        {"parallel", "schedule"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(keys) && folder != NULL; i++) {
        const OrrJson *node = orr_json_root(edit->doc);
        g_autoptr(GString) path = g_string_new(NULL);
        for (int k = 0; k < 3 && keys[i][k] != NULL && node != NULL; k++) {
            node = orr_json_type(node) == ORR_JSON_OBJECT ? orr_json_member(node, keys[i][k]) : NULL;
            g_string_append_printf(path, "%s%s", k > 0 ? "." : "", keys[i][k]);
        }
        if (node == NULL || orr_json_type(node) != ORR_JSON_TEXT || g_path_is_absolute(orr_json_text(node)) ||
            !(spec_is_path(orr_json_text(node)) || g_str_has_suffix(orr_json_text(node), ".csv")))
            continue;
        g_autofree char *file = g_canonicalize_filename(orr_json_text(node), folder);
        g_autofree char *real = g_canonicalize_filename(file, NULL);
        g_autoptr(GString) quoted = g_string_new(NULL);
        OrrJsonWriter w;
        orr_jw_init(&w, quoted, true);
        orr_jw_text(&w, NULL, g_file_test(real, G_FILE_TEST_EXISTS) ? real : orr_json_text(node));
        edit->ok = edit->ok && orr_json_set(edit->doc, path->str, quoted->str, edit->error);
    }
}

/* The split of layers that was run. */
static void keep_split(Edit *edit, const Spec *chosen)
{
    int counts[SPEC_MAX_STAGES];
    const int stages = chosen->parallel.pipeline * chosen->parallel.virtual_stages;
    if (stages <= SPEC_MAX_STAGES && spec_stage_layers(chosen, counts, NULL))
        set_list(edit, "parallel.stage_layers", counts, stages);
}

/* What a recipe of the software says for just these degrees, where the search ran something else. */
static void keep_from_recipes(Edit *edit, const Spec *asked, const Spec *chosen)
{
    g_autofree Spec *again = g_new0(Spec, 1);
    if (!edit->ok || !spec_load_json(orr_json_root(edit->doc), "scenario", NULL, false, again, NULL, NULL))
        return;
    if (asked->parallel.stage_layers_count == 0 &&
        (again->parallel.stage_layers_count > 0 || chosen->parallel.stage_layers_count > 0))
        keep_split(edit, chosen);
    if (chosen->model.moe.experts > 0)
        set_word(edit, "parallel.moe_dispatcher", &spec_words_dispatcher, (int)again->parallel.moe_dispatcher,
                 (int)chosen->parallel.moe_dispatcher);
    set_overlap(edit, "execution.overlap_besides", again->execution.overlap_besides,
                chosen->execution.overlap_besides);
}

OrrJsonDoc *search_scenario(const SpecSource *source, const Spec *asked, const Spec *chosen,
                            const char *cluster, GError **error)
{
    Edit edit = {.error = error, .ok = true};
    edit.doc = orr_json_parse(source->resolved, strlen(source->resolved), "scenario", error);
    if (edit.doc == NULL)
        return NULL;
    g_autofree char *folder = source->folder != NULL ? g_canonicalize_filename(source->folder, NULL) : NULL;
    orr_json_remove(edit.doc, "search");
    anchor_paths(&edit, folder);
    if (cluster != NULL)
        edit.ok = edit.ok && orr_json_set(edit.doc, "cluster", cluster, error);
    set_choices(&edit, asked, chosen);
    keep_from_recipes(&edit, asked, chosen);
    if (edit.ok)
        return edit.doc;
    orr_json_free(edit.doc);
    return NULL;
}

bool search_scenario_write(const SpecSource *source, const Spec *asked, const Spec *chosen,
                           const char *cluster, GString *out, GError **error)
{
    OrrJsonDoc *doc = search_scenario(source, asked, chosen, cluster, error);
    if (doc == NULL)
        return false;
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_node(&w, NULL, orr_json_root(doc));
    g_string_append_c(out, '\n');
    orr_json_free(doc);
    return true;
}
