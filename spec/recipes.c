/* spec/recipes.c - see recipes.h. Tested: unit/test_model_recipes.c */
#include "spec/recipes.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "spec/recipe_facts.h"

static bool is_list_of_texts(const OrrJson *node)
{
    bool texts = orr_json_type(node) == ORR_JSON_LIST;
    for (const OrrJson *item = texts ? orr_json_first(node) : NULL; item != NULL; item = orr_json_next(item))
        texts = texts && orr_json_type(item) == ORR_JSON_TEXT;
    return texts;
}

static bool check_facts(const OrrJson *list, const char *where, GError **error)
{
    if (!is_list_of_texts(list))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: execution.framework.recipes: facts is %s; give a list of " SPEC_RECIPE_FACTS,
                        where, orr_json_type_name(list));
    for (const OrrJson *item = orr_json_first(list); item != NULL; item = orr_json_next(item))
        if (!spec_recipe_fact_is(orr_json_text(item)))
            return orr_fail(
                error, ORR_ERROR_INPUT,
                "%s: execution.framework.recipes: facts: no \"%s\"; give some of " SPEC_RECIPE_FACTS, where,
                orr_json_text(item));
    return true;
}

static bool check_member(const OrrJson *member, const char *where, GError **error)
{
    const char *key = orr_json_key(member);
    if (strcmp(key, "facts") == 0)
        return check_facts(member, where, error);
    if (strcmp(key, "models") == 0 || strcmp(key, "accelerators") == 0 || strcmp(key, "precisions") == 0)
        return is_list_of_texts(member) ||
               orr_fail(error, ORR_ERROR_INPUT,
                        "%s: execution.framework.recipes: %s is %s; give a list of names", where, key,
                        orr_json_type_name(member));
    if (strcmp(key, "stages") == 0 || strcmp(key, "layers") == 0)
        return orr_json_type(member) == ORR_JSON_NUMBER ||
               orr_fail(error, ORR_ERROR_INPUT, "%s: execution.framework.recipes: %s is %s; give a number",
                        where, key, orr_json_type_name(member));
    if (strcmp(key, "scenario") == 0)
        return orr_json_type(member) == ORR_JSON_OBJECT ||
               orr_fail(error, ORR_ERROR_INPUT,
                        "%s: execution.framework.recipes: scenario is %s; give a part of one", where,
                        orr_json_type_name(member));
    return strcmp(key, "source") == 0 || orr_fail(error, ORR_ERROR_INPUT,
                                                  "%s: execution.framework.recipes: no key \"%s\"; give "
                                                  "models, layers, accelerators, precisions, "
                                                  "stages, facts, scenario or source",
                                                  where, key);
}

bool spec_recipes_check(const OrrJson *recipes, const char *where, GError **error)
{
    if (recipes == NULL)
        return true;
    if (orr_json_type(recipes) != ORR_JSON_LIST)
        return orr_fail(error, ORR_ERROR_INPUT, "%s: execution.framework.recipes: %s; give a list of recipes",
                        where, orr_json_type_name(recipes));
    for (const OrrJson *recipe = orr_json_first(recipes); recipe != NULL; recipe = orr_json_next(recipe)) {
        if (orr_json_type(recipe) != ORR_JSON_OBJECT || orr_json_member(recipe, "scenario") == NULL)
            return orr_fail(
                error, ORR_ERROR_INPUT,
                "%s: execution.framework.recipes: an entry without \"scenario\"; give what it sets", where);
        for (const OrrJson *at = orr_json_first(recipe); at != NULL; at = orr_json_next(at))
            if (!check_member(at, where, error))
                return false;
    }
    return true;
}

/* The object at `path`, or NULL. */
static const OrrJson *object_at(const OrrJson *from, const char *path)
{
    g_auto(GStrv) keys = g_strsplit(path, ".", -1);
    for (int i = 0; keys[i] != NULL && from != NULL; i++)
        from = orr_json_type(from) == ORR_JSON_OBJECT ? orr_json_member(from, keys[i]) : NULL;
    return from != NULL && orr_json_type(from) == ORR_JSON_OBJECT ? from : NULL;
}

/* The text at `key` of the object at `path`, in lower case. */
static char *text_at(const OrrJson *scenario, const char *path, const char *key, const char *absent)
{
    const OrrJson *object = object_at(scenario, path);
    const OrrJson *node = object != NULL ? orr_json_member(object, key) : NULL;
    const bool text = node != NULL && orr_json_type(node) == ORR_JSON_TEXT;
    return g_ascii_strdown(text ? orr_json_text(node) : absent, -1);
}

/* An absent list names all. */
static bool names(const OrrJson *recipe, const char *key, const char *name, bool prefix)
{
    const OrrJson *list = orr_json_member(recipe, key);
    bool found = list == NULL;
    for (const OrrJson *item = list != NULL ? orr_json_first(list) : NULL; item != NULL;
         item = orr_json_next(item))
        found = found || (prefix ? g_str_has_prefix(name, orr_json_text(item))
                                 : strcmp(name, orr_json_text(item)) == 0);
    return found;
}

static bool is_number(const OrrJson *recipe, const char *key, double number)
{
    const double wanted = orr_json_number_of(recipe, key, number);
    return number >= wanted && number <= wanted;
}

/* All that it asks for. */
static bool has_facts(const OrrJson *recipe, const OrrJson *scenario)
{
    const OrrJson *list = orr_json_member(recipe, "facts");
    bool all = true;
    for (const OrrJson *item = list != NULL ? orr_json_first(list) : NULL; item != NULL;
         item = orr_json_next(item))
        all = all && spec_recipe_fact_holds(orr_json_text(item), scenario);
    return all;
}

static double layers_of(const OrrJson *scenario)
{
    const OrrJson *model = object_at(scenario, "model");
    const OrrJson *layers = model != NULL ? orr_json_member(model, "layers") : NULL;
    return layers != NULL && orr_json_type(layers) == ORR_JSON_NUMBER ? orr_json_number(layers) : 0;
}

static double stages_of(const OrrJson *scenario)
{
    const OrrJson *parallel = object_at(scenario, "parallel");
    const char *const keys[] = {"pipeline", "virtual_stages"};
    double stages = 1;
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        const OrrJson *node = parallel != NULL ? orr_json_member(parallel, keys[i]) : NULL;
        stages *= node == NULL ? 1 : orr_json_type(node) == ORR_JSON_NUMBER ? orr_json_number(node) : 0;
    }
    return stages;
}

/* But for its stages. */
static bool matches_otherwise(const OrrJson *recipe, const OrrJson *scenario)
{
    g_autofree char *model = text_at(scenario, "model", "name", "");
    g_autofree char *accelerator = text_at(scenario, "cluster.accelerator", "name", "");
    g_autofree char *precision = text_at(scenario, "training", "precision", "bf16");
    return names(recipe, "models", model, true) && names(recipe, "accelerators", accelerator, false) &&
           names(recipe, "precisions", precision, false) &&
           is_number(recipe, "layers", layers_of(scenario)) && has_facts(recipe, scenario);
}

static bool matches(const OrrJson *recipe, const OrrJson *scenario)
{
    return matches_otherwise(recipe, scenario) && is_number(recipe, "stages", stages_of(scenario));
}

/* Keys of `part` that `scenario` (NULL: nothing there) leaves out. */
static void note_added(const OrrJson *part, const OrrJson *scenario, const char *path, GPtrArray *notes)
{
    for (const OrrJson *at = orr_json_first(part); at != NULL; at = orr_json_next(at)) {
        g_autofree char *key = g_strconcat(path, path[0] != '\0' ? "." : "", orr_json_key(at), NULL);
        const bool inside = scenario != NULL && orr_json_type(scenario) == ORR_JSON_OBJECT;
        const OrrJson *there = inside ? orr_json_member(scenario, orr_json_key(at)) : NULL;
        if (orr_json_type(at) == ORR_JSON_OBJECT &&
            (there == NULL || orr_json_type(there) == ORR_JSON_OBJECT)) {
            note_added(at, there, key, notes);
        } else if (there == NULL) {
            g_autofree char *value = orr_json_dump(at);
            g_ptr_array_add(notes, g_strdup_printf("%s=%s (recipe)", key, value));
        }
    }
}

/* {"execution": {"framework": framework}} */
static OrrJsonDoc *in_execution(const OrrJson *framework, const char *where)
{
    const char *empty = "{\"execution\":{\"framework\":{}}}";
    OrrJsonDoc *doc = orr_json_parse(empty, strlen(empty), where, NULL);
    orr_json_take(doc, "execution.framework", orr_json_copy(framework, where));
    return doc;
}

/* Keys of a framework that matching recipes set stand before those of its profile, behind those of the scenario. */
static void apply_framework(OrrJsonDoc **doc, OrrJsonDoc *taken, const OrrJson *own, const char *where,
                            GPtrArray *notes)
{
    const OrrJson *said = own != NULL ? object_at(own, "execution.framework") : NULL;
    if (notes != NULL)
        note_added(orr_json_root(taken), said, "execution.framework", notes);
    if (said != NULL)
        orr_json_merge_into(taken, said);
    OrrJsonDoc *over = in_execution(orr_json_root(taken), where);
    orr_json_merge_into(*doc, orr_json_root(over));
    orr_json_free(over);
}

/* A list that the scenario states is the list: nothing runs besides. */
static void keep_stated_overlap(OrrJsonDoc *doc, const OrrJson *own)
{
    const OrrJson *execution = own != NULL ? object_at(own, "execution") : NULL;
    const OrrJson *overlap = execution != NULL ? orr_json_member(execution, "overlap") : NULL;
    if (overlap != NULL && orr_json_type(overlap) == ORR_JSON_LIST &&
        orr_json_member(execution, "overlap_besides") == NULL)
        orr_json_set(doc, "execution.overlap_besides", "[]", NULL);
}

bool spec_recipes_apply(OrrJsonDoc **doc, const OrrJson *own, const char *where, GPtrArray *notes,
                        GError **error)
{
    const OrrJson *framework = object_at(orr_json_root(*doc), "execution.framework");
    const OrrJson *recipes = framework != NULL ? orr_json_member(framework, "recipes") : NULL;
    if (!spec_recipes_check(recipes, where, error))
        return false;
    if (recipes == NULL)
        return true;
    OrrJsonDoc *asked = orr_json_copy(orr_json_root(*doc), where),
               *taken = orr_json_parse("{}", 2, where, NULL);
    keep_stated_overlap(*doc, own);
    recipes = orr_json_member(object_at(orr_json_root(asked), "execution.framework"), "recipes");
    for (const OrrJson *recipe = orr_json_first(recipes); recipe != NULL; recipe = orr_json_next(recipe)) {
        if (!matches(recipe, orr_json_root(asked)))
            continue;
        OrrJsonDoc *part = orr_json_copy(orr_json_member(recipe, "scenario"), where);
        const OrrJson *keys = object_at(orr_json_root(part), "execution.framework");
        if (keys != NULL) { /* the first that says so */
            OrrJsonDoc *before = taken;
            taken = orr_json_merge(keys, orr_json_root(before), where);
            orr_json_free(before);
            orr_json_take(part, "execution.framework", orr_json_parse("{}", 2, where, NULL));
        }
        if (notes != NULL)
            note_added(orr_json_root(part), orr_json_root(*doc), "", notes);
        OrrJsonDoc *merged = orr_json_merge(orr_json_root(part), orr_json_root(*doc), where);
        orr_json_free(*doc);
        orr_json_free(part);
        *doc = merged;
    }
    apply_framework(doc, taken, own, where, notes);
    orr_json_free(taken);
    orr_json_free(asked);
    return true;
}

static void append_split(const OrrJson *recipe, GString *splits)
{
    const OrrJson *parallel = object_at(recipe, "scenario.parallel");
    const OrrJson *layers = parallel != NULL ? orr_json_member(parallel, "stage_layers") : NULL;
    if (layers == NULL || orr_json_type(layers) != ORR_JSON_LIST)
        return;
    g_string_append_printf(splits, "%s%d:", splits->len > 0 ? ";" : "",
                           (int)orr_json_number_of(recipe, "stages", 0));
    for (const OrrJson *item = orr_json_first(layers); item != NULL; item = orr_json_next(item))
        g_string_append_printf(splits, "%s%d", item == orr_json_first(layers) ? "" : ",",
                               orr_json_type(item) == ORR_JSON_NUMBER ? (int)orr_json_number(item) : -1);
}

const char *spec_recipes_splits(const OrrJson *scenario)
{
    const OrrJson *framework = object_at(scenario, "execution.framework"),
                  *parallel = object_at(scenario, "parallel");
    const OrrJson *recipes = framework != NULL ? orr_json_member(framework, "recipes") : NULL;
    g_autoptr(GString) splits = g_string_new(NULL);
    if (recipes == NULL || parallel == NULL || orr_json_member(parallel, "stage_layers") != NULL ||
        stages_of(scenario) > 0)
        return NULL;
    for (const OrrJson *recipe = orr_json_first(recipes); recipe != NULL; recipe = orr_json_next(recipe))
        if (orr_json_member(recipe, "stages") != NULL && matches_otherwise(recipe, scenario))
            append_split(recipe, splits);
    return splits->len > 0 ? g_intern_string(splits->str) : NULL;
}

bool spec_recipes_take_split(SpecParallel *parallel)
{
    const char *at = parallel->recipe_splits;
    const int stages = parallel->pipeline * parallel->virtual_stages;
    for (char *end = NULL; at != NULL; at = strchr(at, ';'), at = at != NULL ? at + 1 : NULL) {
        if (strtol(at, &end, 10) != stages)
            continue;
        parallel->stage_layers_count = 0;
        while (parallel->stage_layers_count < SPEC_MAX_STAGES && (*end == ':' || *end == ','))
            parallel->stage_layers[parallel->stage_layers_count++] = (int)strtol(end + 1, &end, 10);
        return true;
    }
    return false;
}
