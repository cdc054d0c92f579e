/* spec/load.c - the way from a file to a checked Spec: overrides, presets, reading, defaults, contradictions. */
#include "spec/load.h"

#include <string.h>

#include "base/file.h"
#include "spec/complete.h"
#include "spec/framework_keys.h"
#include "spec/read.h"
#include "spec/recipes.h"
#include "spec/resolve.h"
#include "spec/set_times.h"
#include "spec/texts.h"

void spec_source_clear(SpecSource *source)
{
    g_clear_pointer(&source->resolved, g_free);
    g_clear_pointer(&source->folder, g_free);
    g_clear_pointer(&source->scenario_hash, g_free);
    g_clear_pointer(&source->profiles, g_ptr_array_unref);
    g_clear_pointer(&source->notes, g_ptr_array_unref);
    g_clear_pointer(&source->defaulted, g_ptr_array_unref);
    g_clear_pointer(&source->texts, g_ptr_array_unref);
}

static void source_init(SpecSource *source)
{
    *source = (SpecSource){.profiles = g_ptr_array_new_with_free_func(g_free),
                           .notes = g_ptr_array_new_with_free_func(g_free),
                           .defaulted = g_ptr_array_new_with_free_func(g_free)};
}

/* A profile named as it was called before. */
static void note_renamed(const OrrJson *scenario, const OrrJson *resolved, GPtrArray *defaulted)
{
    const OrrJson *execution = orr_json_member(scenario, "execution");
    const OrrJson *asked = execution != NULL ? orr_json_member(execution, "framework") : NULL;
    const OrrJson *name =
        orr_json_member(orr_json_member(orr_json_member(resolved, "execution"), "framework"), "name");
    if (asked == NULL || orr_json_type(asked) != ORR_JSON_TEXT || spec_is_path(orr_json_text(asked)) ||
        name == NULL || orr_json_type(name) != ORR_JSON_TEXT ||
        strcmp(orr_json_text(asked), orr_json_text(name)) == 0)
        return;
    g_ptr_array_add(defaulted, g_strdup_printf("execution.framework=%s (\"%s\" is its old name)",
                                               orr_json_text(name), orr_json_text(asked)));
}

/* "execution.framework" is filled in while presets are looked up, before the reader sees it. */
static void note_framework(const OrrJson *scenario, GPtrArray *defaulted)
{
    const OrrJson *execution = orr_json_member(scenario, "execution");
    const OrrJson *framework = execution != NULL ? orr_json_member(execution, "framework") : NULL;
    if (framework == NULL || orr_json_type(framework) == ORR_JSON_NULL)
        g_ptr_array_add(defaulted, g_strdup("execution.framework=megatron-core"));
}

/* A scenario that offloads from a cluster without a host gets the one that its GPUs usually have, and the report says so. */
static bool assume_host(Spec *spec, GPtrArray *defaulted, GError **error)
{
    SpecCluster *cluster = &spec->cluster;
    const char *usual = cluster->accelerator.reference_host;
    const bool wants = spec_offloads(&spec->offload) || (int)spec->offload.scheme == SPEC_AUTO;
    const bool described =
        cluster->host.cores > 0 || cluster->host.dram_bytes > 0 || cluster->host.dram_bytes_per_s > 0;
    if (!wants || described || cluster->group_count > 0 || usual[0] == '\0')
        return true;
    g_autofree SpecCluster *other = g_new0(SpecCluster, 1);
    if (!spec_load_cluster(usual, other, error))
        return false;
    cluster->host = other->host;
    cluster->host_assumed = true;
    if (defaulted != NULL)
        g_ptr_array_add(defaulted, g_strdup_printf("cluster.host=that of %s", usual));
    return true;
}

static bool read_spec(const OrrJson *resolved, const char *where, bool allow_auto, Spec *spec,
                      SpecSource *source, GError **error)
{
    SpecReadContext context;
    spec_read_context_init(&context, where, &spec_table_scenario, allow_auto, source->defaulted);
    context.texts = source->texts;
    const bool ok = spec_read_table(&context, &spec_table_scenario, resolved, spec, error);
    spec_read_context_clear(&context);
    return ok && spec_complete_noted(spec, where, source->defaulted, error) &&
           assume_host(spec, source->defaulted, error) && spec_check(spec, where, error);
}

static const OrrJson *collectives_of(const OrrJson *scenario)
{
    const OrrJson *cluster = orr_json_member(scenario, "cluster");
    const bool object = cluster != NULL && orr_json_type(cluster) == ORR_JSON_OBJECT;
    const OrrJson *block = object ? orr_json_member(cluster, "collectives") : NULL;
    return block != NULL && orr_json_type(block) == ORR_JSON_OBJECT ? block : NULL;
}

/* The block counts as a whole or not at all: what a scenario writes into one that does not count would do nothing. */
static bool check_collectives(const OrrJson *asked, const OrrJson *resolved, const char *where,
                              GError **error)
{
    const OrrJson *own = collectives_of(asked), *whole = collectives_of(resolved);
    const OrrJson *first = own != NULL ? orr_json_first(own) : NULL;
    if (first == NULL || whole == NULL || orr_json_number_of(whole, "fitted", 0) > 0)
        return true;
    return orr_fail(error, ORR_ERROR_INPUT,
                    "%s: cluster.collectives.%s: does nothing while cluster.collectives.fitted is 0; set "
                    "that to 1 too, and "
                    "the block stands in place of the accelerator's",
                    where, orr_json_key(first));
}

/* `bare`: the resolved scenario before its recipes; `own`: as it was written. What is refused at a precision is kept as
 * "". */
static void keep_precisions(const OrrJsonDoc *bare, const OrrJson *own, const char *where, GPtrArray *texts,
                            Spec *spec)
{
    for (int i = 0; i < spec_words_precision.count; i++) {
        if ((spec->search.precision & 1u << i) == 0 || i == (int)spec->training.precision)
            continue;
        g_autofree char *word = g_strdup_printf("\"%s\"", spec_word(&spec_words_precision, i));
        OrrJsonDoc *doc = orr_json_copy(orr_json_root(bare), where);
        const bool ok = orr_json_set(doc, "training.precision", word, NULL) &&
                        spec_recipes_apply(&doc, own, where, NULL, NULL);
        g_autofree char *text = ok ? orr_json_dump(orr_json_root(doc)) : g_strdup("");
        spec->search.at_precision[i] = spec_keep_text(texts, text);
        g_autofree Spec *trial = g_new0(Spec, 1);
        if (!spec_load_at_precision(spec, (SpecPrecision)i, trial))
            spec->search.at_precision[i] = "";
        orr_json_free(doc);
    }
}

bool spec_load_at_precision(const Spec *spec, SpecPrecision precision, Spec *ret_spec)
{
    const char *text = spec->search.at_precision[precision];
    *ret_spec = *spec;
    if (text == NULL || text[0] == '\0')
        return text == NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "scenario", NULL);
    SpecSource source;
    source_init(&source);
    memset(ret_spec, 0, sizeof *ret_spec);
    const bool ok = doc != NULL && read_spec(orr_json_root(doc), "scenario", true, ret_spec, &source, NULL);
    spec_source_clear(&source);
    orr_json_free(doc);
    return ok;
}

/* Behind a part that is missing: the others that the file lacks, in the same sentence. */
static void tell_lacking(const OrrJson *scenario, GString *message)
{
    g_autoptr(GString) lacking = g_string_new(NULL);
    bool is_one = false;
    int count = 0;
    for (int i = 0; i < spec_table_scenario.count; i++) {
        const SpecField *field = &spec_table_scenario.fields[i];
        if (!(field->flags & SPEC_FIELD_REQUIRED) || orr_json_member(scenario, field->key) != NULL)
            continue;
        g_autofree char *said = g_strdup_printf(": %s: missing;", field->key);
        if (strstr(message->str, said) != NULL)
            is_one = true;
        else
            g_string_append_printf(lacking, "%s%s", count++ > 0 ? " and " : "", field->key);
    }
    if (is_one && count > 0)
        g_string_append_printf(message, "; %s %s missing too", lacking->str, count > 1 ? "are" : "is");
}

/* Behind what failed: the other mistakes that the reader sees in the file as it stands, presets left as names. */
static void tell_others(const OrrJson *scenario, const char *where, bool allow_auto, GError **error)
{
    enum { MOST = 8 };
    if (error == NULL || *error == NULL || orr_json_type(scenario) != ORR_JSON_OBJECT)
        return;
    g_autofree Spec *scratch = g_new0(Spec, 1);
    g_autoptr(GPtrArray) mistakes = g_ptr_array_new_with_free_func(g_free);
    SpecReadContext context;
    spec_read_context_init(&context, where, &spec_table_scenario, allow_auto, NULL);
    context.partial = true;
    context.mistakes = mistakes;
    spec_read_table(&context, &spec_table_scenario, scenario, scratch, NULL);
    spec_read_context_clear(&context);
    g_autoptr(GString) all = g_string_new((*error)->message);
    tell_lacking(scenario, all);
    g_autofree char *file = g_strconcat(where, ": ", NULL);
    guint told = 0;
    for (guint i = 0; i < mistakes->len; i++) {
        const char *mistake = g_ptr_array_index(mistakes, i);
        if (strncmp(mistake, (*error)->message, strcspn(mistake, ";")) == 0)
            continue; /* what stopped the reader */
        if (++told <= MOST)
            g_string_append_printf(all, ORR_ALSO "%s",
                                   mistake + (g_str_has_prefix(mistake, file) ? strlen(file) : 0));
    }
    if (told > MOST)
        g_string_append_printf(all, ORR_ALSO "%u more", told - MOST);
    g_free((*error)->message);
    (*error)->message = g_strdup(all->str);
}

/* The scenario as written, with what it says of its framework under today's keys. */
static OrrJsonDoc *under_todays_keys(const OrrJson *scenario, const OrrJson *resolved, const char *where)
{
    OrrJsonDoc *own = orr_json_copy(scenario, where);
    const OrrJson *execution = orr_json_member(orr_json_root(own), "execution");
    const OrrJson *said = execution != NULL && orr_json_type(execution) == ORR_JSON_OBJECT
                              ? orr_json_member(execution, "framework")
                              : NULL;
    if (said == NULL || orr_json_type(said) != ORR_JSON_OBJECT)
        return own;
    OrrJsonDoc *framework = orr_json_copy(said, where);
    spec_framework_todays_keys(framework, where, "execution.framework", NULL, NULL);
    spec_framework_say_as(framework, orr_json_member(orr_json_member(resolved, "execution"), "framework"));
    orr_json_take(own, "execution.framework", framework);
    return own;
}

static bool load(OrrJsonDoc *doc, const char *where, const char *base_dir, const char *const *sets,
                 bool allow_auto, Spec *ret_spec, SpecSource *ret_source, GError **error);

/* "key=value", or "key=x2": twice what the scenario as it stands has there. */
static bool set_one(OrrJsonDoc *doc, const char *where, const char *base_dir, const char *set, GError **error)
{
    if (!spec_set_is_times(set))
        return spec_resolve_set(doc, set, error);
    g_autofree Spec *now = g_new0(Spec, 1);
    OrrJsonDoc *copy = orr_json_copy(orr_json_root(doc), where);
    const bool ok = load(copy, where, base_dir, NULL, true, now, NULL, error);
    orr_json_free(copy);
    g_autofree char *plain = ok ? spec_set_times(now, set, error) : NULL;
    return plain != NULL && spec_resolve_set(doc, plain, error);
}

static bool load(OrrJsonDoc *doc, const char *where, const char *base_dir, const char *const *sets,
                 bool allow_auto, Spec *ret_spec, SpecSource *ret_source, GError **error)
{
    for (int i = 0; sets != NULL && sets[i] != NULL; i++)
        if (!set_one(doc, where, base_dir, sets[i], error))
            return false;
    SpecSource source;
    source_init(&source);
    source.texts = ret_source != NULL ? spec_texts_new() : NULL;
    OrrJsonDoc *resolved =
        spec_resolve_scenario(orr_json_root(doc), where, base_dir, source.profiles, source.notes, error);
    Spec *spec = g_new0(Spec, 1);
    const bool searched = resolved != NULL && orr_json_member(orr_json_root(resolved), "search") != NULL;
    OrrJsonDoc *bare = searched ? orr_json_copy(orr_json_root(resolved), where) : NULL;
    OrrJsonDoc *own =
        resolved != NULL ? under_todays_keys(orr_json_root(doc), orr_json_root(resolved), where) : NULL;
    bool ok =
        resolved != NULL && spec_recipes_apply(&resolved, orr_json_root(own), where, source.defaulted, error);
    if (ok) {
        note_framework(orr_json_root(doc), source.defaulted);
        note_renamed(orr_json_root(doc), orr_json_root(resolved), source.defaulted);
        spec->parallel.recipe_splits = spec_recipes_splits(orr_json_root(resolved));
        ok = read_spec(orr_json_root(resolved), where, allow_auto, spec, &source, error) &&
             check_collectives(orr_json_root(doc), orr_json_root(resolved), where, error) &&
             (allow_auto || !spec->workload.given || spec_check_dealt(spec, where, error));
    }
    if (ok && spec->search.precision != 0)
        keep_precisions(bare, orr_json_root(own), where, source.texts, spec);
    orr_json_free(bare);
    orr_json_free(own);
    if (ok) {
        g_autofree char *text = orr_json_dump(orr_json_root(resolved));
        source.scenario_hash = orr_hash_text(text, strlen(text));
        source.resolved = orr_json_dump(orr_json_root(doc));
        source.folder = g_strdup(base_dir);
        *ret_spec = *spec;
    }
    if (ok && ret_source != NULL)
        *ret_source = source;
    else
        spec_source_clear(&source);
    g_free(spec);
    orr_json_free(resolved);
    if (!ok)
        tell_others(orr_json_root(doc), where, allow_auto, error);
    return ok;
}

bool spec_load_file(const char *path, const char *const *sets, bool allow_auto, Spec *ret_spec,
                    SpecSource *ret_source, GError **error)
{
    g_autofree char *file = spec_scenario_path(path, error);
    OrrJsonDoc *doc = file != NULL ? orr_json_read_file(file, error) : NULL;
    if (doc == NULL)
        return false;
    g_autofree char *folder = g_path_get_dirname(file);
    g_autofree char *name = g_strdup(orr_json_name(doc)); /* of "-": "standard input" */
    const bool ok = load(doc, name, folder, sets, allow_auto, ret_spec, ret_source, error);
    orr_json_free(doc);
    return ok;
}

bool spec_load_json(const OrrJson *scenario, const char *where, const char *const *sets, bool allow_auto,
                    Spec *ret_spec, SpecSource *ret_source, GError **error)
{
    OrrJsonDoc *doc = orr_json_copy(scenario, where);
    const bool ok = load(doc, where, NULL, sets, allow_auto, ret_spec, ret_source, error);
    orr_json_free(doc);
    return ok;
}

bool spec_load_again(const SpecSource *source, const char *where, const char *const *sets, Spec *ret_spec,
                     SpecSource *ret_source, GError **error)
{
    OrrJsonDoc *doc = orr_json_parse(source->resolved, strlen(source->resolved), where, error);
    const bool ok = doc != NULL && load(doc, where, source->folder, sets, true, ret_spec, ret_source, error);
    orr_json_free(doc);
    return ok;
}

/* --- a role --- */

/* Keys of `part` in place of those of `doc`; a layout and a model are whole, as parts of two make neither. */
static void put_role(OrrJsonDoc *doc, const OrrJson *part)
{
    static const char *const whole[] = {"model", "parallel"};
    for (gsize i = 0; i < G_N_ELEMENTS(whole); i++)
        if (orr_json_member(part, whole[i]) != NULL)
            orr_json_remove(doc, whole[i]);
    orr_json_merge_into(doc, part);
}

bool spec_role_has_layout(const SpecRole *role)
{
    OrrJsonDoc *doc =
        role->scenario != NULL ? orr_json_parse(role->scenario, strlen(role->scenario), "role", NULL) : NULL;
    const bool has = doc != NULL && orr_json_member(orr_json_root(doc), "parallel") != NULL;
    orr_json_free(doc);
    return has;
}

static bool generates(const SpecWorkload *workload, int role)
{
    for (int i = 0; i < workload->phase_count; i++)
        if (workload->phase[i].kind == SPEC_PHASE_GENERATE && workload->phase[i].role == role)
            return true;
    return false;
}

/* What a role's scenario is loaded with, beside what it says. */
static GPtrArray *role_sets(const Spec *spec, int role, SpecRanks ranks, bool has_engine)
{
    const SpecWorkload *workload = &spec->workload;
    const SpecRole *own = &workload->role[role];
    const int host = spec_role_host(workload, role),
              nodes = host >= 0 ? workload->role[host].nodes : spec->cluster.nodes;
    GPtrArray *sets = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(sets, g_strdup_printf("cluster.nodes=%d", nodes));
    g_ptr_array_add(sets, g_strdup_printf("training.global_batch=%d", spec->cluster.gpus_per_node * nodes));
    g_ptr_array_add(sets, g_strdup_printf("training.sequence_length=%d", spec->training.sequence_length));
    g_ptr_array_add(sets, g_strdup("training.micro_batch=1"));
    if (own->scalar_head)
        g_ptr_array_add(sets, g_strdup("model.scalar_head=true"));
    else if (generates(workload, role) && !has_engine)
        g_ptr_array_add(sets, g_strdup_printf("execution.framework=%s", workload->generation.engine));
    const int count[] = {ranks.tensor, ranks.pipeline, ranks.context};
    static const char *const keys[] = {"tensor", "pipeline", "context"};
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++)
        if (count[i] > 0)
            g_ptr_array_add(sets, g_strdup_printf("parallel.%s=%d", keys[i], count[i]));
    g_ptr_array_add(sets, NULL);
    return sets;
}

bool spec_load_role(const Spec *spec, const SpecSource *source, int role, SpecRanks ranks, const char *where,
                    Spec *ret_spec, SpecSource *ret_source, GError **error)
{
    const SpecRole *own = &spec->workload.role[role];
    OrrJsonDoc *doc = orr_json_parse(source->resolved, strlen(source->resolved), where, error);
    OrrJsonDoc *part = doc != NULL && own->scenario != NULL
                           ? orr_json_parse(own->scenario, strlen(own->scenario), where, error)
                           : NULL;
    if (doc == NULL || (own->scenario != NULL && part == NULL)) {
        orr_json_free(doc);
        return false;
    }
    orr_json_remove(doc, "workload");
    if (part != NULL)
        put_role(doc, orr_json_root(part));
    const bool has_engine = part != NULL && orr_json_member(orr_json_root(part), "execution") != NULL;
    g_autoptr(GPtrArray) sets = role_sets(spec, role, ranks, has_engine);
    const bool ok = load(doc, where, source->folder, (const char *const *)sets->pdata, false, ret_spec,
                         ret_source, error);
    orr_json_free(part);
    orr_json_free(doc);
    return ok;
}

/* --- one preset --- */

static bool load_preset(const char *kind, const char *name, const SpecTable *table, size_t size,
                        void *ret_target, GError **error)
{
    OrrJsonDoc *doc = spec_resolve_preset(kind, name, name, kind, NULL, NULL, error);
    if (doc == NULL)
        return false;
    g_autofree void *target = g_malloc0(size);
    SpecReadContext context;
    spec_read_context_init(&context, name, &spec_table_scenario, false, NULL);
    bool ok = spec_read_table(&context, table, orr_json_root(doc), target, error);
    spec_read_context_clear(&context);
    orr_json_free(doc);
    if (ok && table == &spec_table_model)
        ok = spec_complete_model(target, 0, 0, name, NULL, error);
    if (ok)
        memcpy(ret_target, target, size);
    return ok;
}

bool spec_load_model(const char *name_or_path, SpecModel *ret_model, GError **error)
{
    return load_preset("models", name_or_path, &spec_table_model, sizeof *ret_model, ret_model, error);
}

bool spec_load_accelerator(const char *name_or_path, SpecAccelerator *ret_accelerator, GError **error)
{
    return load_preset("accelerators", name_or_path, &spec_table_accelerator, sizeof *ret_accelerator,
                       ret_accelerator, error);
}

bool spec_load_framework(const char *name_or_path, SpecFramework *ret_framework, GError **error)
{
    return load_preset("frameworks", name_or_path, &spec_table_framework, sizeof *ret_framework,
                       ret_framework, error);
}

bool spec_load_faults(const char *name_or_path, SpecFaults *ret_faults, GError **error)
{
    if (!load_preset("faults", name_or_path, &spec_table_faults, sizeof *ret_faults, ret_faults, error))
        return false;
    ret_faults->given = true;
    return true;
}

bool spec_load_storage(const char *name_or_path, SpecStorage *ret_storage, GError **error)
{
    return load_preset("storage", name_or_path, &spec_table_storage, sizeof *ret_storage, ret_storage, error);
}

bool spec_load_cluster_json(const OrrJson *asked, const char *where, SpecCluster *ret_cluster, GError **error)
{
    OrrJsonDoc *doc = spec_resolve_cluster(asked, where, NULL, NULL, error);
    if (doc == NULL)
        return false;
    g_autofree SpecCluster *cluster = g_new0(SpecCluster, 1);
    SpecReadContext context;
    spec_read_context_init(&context, where, &spec_table_scenario, false, NULL);
    bool ok = spec_read_table(&context, &spec_table_cluster, orr_json_root(doc), cluster, error);
    ok = ok && spec_complete_cluster(cluster, where, NULL, error);
    spec_read_context_clear(&context);
    orr_json_free(doc);
    if (ok)
        *ret_cluster = *cluster;
    return ok;
}

bool spec_load_cluster(const char *name_or_path, SpecCluster *ret_cluster, GError **error)
{
    OrrJsonDoc *asked = orr_json_parse("{}", 2, name_or_path, NULL);
    g_autoptr(GString) quoted = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, quoted, true);
    orr_jw_text(&w, NULL, name_or_path);
    const bool set = orr_json_set(asked, "preset", quoted->str, NULL);
    g_assert(set);
    const bool ok = spec_load_cluster_json(orr_json_root(asked), name_or_path, ret_cluster, error);
    orr_json_free(asked);
    return ok;
}
