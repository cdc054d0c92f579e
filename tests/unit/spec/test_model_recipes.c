/* unit/spec/test_model_recipes.c - what a framework's recipes set for a model on a GPU (spec/recipes.c). */
#include <glib.h>
#include <string.h>

#include "spec/recipes.h"

#define SCENARIO(more)                                                                                       \
    "{\"model\":{\"name\":\"deepseek-v3\",\"layers\":61},"                                                   \
    "\"cluster\":{\"accelerator\":{\"name\":\"gb300-nvl72\"}},"                                              \
    "\"training\":{\"precision\":\"mxfp8\"},"                                                                \
    "\"parallel\":{\"pipeline\":2,\"virtual_stages\":8" more "},"                                            \
    "\"execution\":{\"framework\":{\"recipes\":["                                                            \
    "{\"models\":[\"deepseek\"],\"stages\":16,\"scenario\":{\"parallel\":{\"order\":\"first\"}}},"           \
    "{\"models\":[\"deepseek-v3\"],\"layers\":61,\"accelerators\":[\"gb300-nvl72\"],"                        \
    "\"precisions\":[\"mxfp8\"],\"scenario\":{\"parallel\":{\"order\":\"second\",\"zero\":2},"               \
    "\"training\":{\"head_8bit\":true}}},"                                                                   \
    "{\"accelerators\":[\"h100-sxm5-80gb\"],\"scenario\":{\"parallel\":{\"data\":7}}}]}}}"

static OrrJsonDoc *applied(const char *text, GPtrArray *notes)
{
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", &error);
    g_assert_no_error(error);
    g_assert_true(spec_recipes_apply(&doc, NULL, "test", notes, &error));
    g_assert_no_error(error);
    return doc;
}

static const OrrJson *member(const OrrJsonDoc *doc, const char *object, const char *key)
{
    return orr_json_member(orr_json_member(orr_json_root(doc), object), key);
}

static void test_first_that_says_so(void)
{
    g_autoptr(GPtrArray) notes = g_ptr_array_new_with_free_func(g_free);
    OrrJsonDoc *doc = applied(SCENARIO(""), notes);
    g_assert_cmpstr(orr_json_text(member(doc, "parallel", "order")), ==, "first");
    g_assert_cmpfloat(orr_json_number(member(doc, "parallel", "zero")), ==, 2);
    g_assert_true(orr_json_bool(member(doc, "training", "head_8bit")));
    g_assert_cmpstr(orr_json_text(member(doc, "training", "precision")), ==, "mxfp8");
    g_assert_null(member(doc, "parallel", "data")); /* another GPU's */
    g_assert_cmpuint(notes->len, ==, 3);
    g_assert_cmpstr(notes->pdata[0], ==, "parallel.order=\"first\" (recipe)");
    orr_json_free(doc);
}

static void test_scenario_stands(void)
{
    OrrJsonDoc *doc = applied(SCENARIO(",\"order\":\"mine\",\"zero\":1"), NULL);
    g_assert_cmpstr(orr_json_text(member(doc, "parallel", "order")), ==, "mine");
    g_assert_cmpfloat(orr_json_number(member(doc, "parallel", "zero")), ==, 1);
    orr_json_free(doc);
}

static void test_none(void)
{
    const char *text = "{\"model\":{\"name\":\"m\"},\"execution\":{\"framework\":{}}}";
    OrrJsonDoc *doc = applied(text, NULL);
    g_autofree char *dumped = orr_json_dump(orr_json_root(doc));
    g_assert_cmpstr(dumped, ==, text);
    orr_json_free(doc);
}

/* A profile says 3 and 5, its recipes 4 (the first) and 6; `own` is the scenario as written. */
static OrrJsonDoc *applied_over(const char *own, GPtrArray *notes)
{
    static const char text[] =
        "{\"model\":{\"name\":\"m\"},\"execution\":{\"framework\":{"
        "\"host\":{\"kernel_host_s\":3,\"step_overhead_s\":5},\"recipes\":["
        "{\"models\":[\"m\"],\"scenario\":{\"execution\":{\"overlap_besides\":[\"expert\"],"
        "\"framework\":{\"host\":{\"kernel_host_s\":4}}}}},"
        "{\"models\":[\"m\"],\"scenario\":{\"execution\":{\"framework\":{\"host\":{\"kernel_host_s\":6}}}}}]}"
        "}}";
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", NULL);
    OrrJsonDoc *asked = orr_json_parse(own, strlen(own), "test", NULL);
    g_assert_true(spec_recipes_apply(&doc, orr_json_root(asked), "test", notes, NULL));
    orr_json_free(asked);
    return doc;
}

static double host(const OrrJsonDoc *doc, const char *key)
{
    return orr_json_number_of(orr_json_member(member(doc, "execution", "framework"), "host"), key, -1);
}

/* Keys of the framework: a recipe stands before its profile, the scenario before both. */
static void test_framework_keys(void)
{
    g_autoptr(GPtrArray) notes = g_ptr_array_new_with_free_func(g_free);
    OrrJsonDoc *doc = applied_over("{\"execution\":{\"framework\":\"f\"}}", notes);
    g_assert_cmpfloat(host(doc, "kernel_host_s"), ==, 4);
    g_assert_cmpfloat(host(doc, "step_overhead_s"), ==, 5);
    g_assert_cmpuint(notes->len, ==, 2);
    g_assert_cmpstr(notes->pdata[1], ==, "execution.framework.host.kernel_host_s=4 (recipe)");
    orr_json_free(doc);
    doc = applied_over("{\"execution\":{\"framework\":{\"host\":{\"kernel_host_s\":7}}}}", NULL);
    g_assert_cmpfloat(host(doc, "kernel_host_s"), ==, 7);
    orr_json_free(doc);
}

/* A list that the scenario states is the whole list. */
static void test_stated_overlap(void)
{
    static const struct {
        const char *own;
        bool besides;
    } cases[] = {{"{}", true},
                 {"{\"execution\":{\"overlap\":\"auto\"}}", true},
                 {"{\"execution\":{\"overlap\":[\"grad_reduce\"]}}", false}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        OrrJsonDoc *doc = applied_over(cases[i].own, NULL);
        g_assert_cmpint(orr_json_first(member(doc, "execution", "overlap_besides")) != NULL, ==,
                        cases[i].besides);
        orr_json_free(doc);
    }
}

static void test_refused(void)
{
    static const char *const bad[][2] = {
        {"{}", "give a list of recipes"},
        {"[{}]", "without \"scenario\""},
        {"[{\"scenario\":{},\"models\":\"m\"}]", "give a list of names"},
        {"[{\"scenario\":{},\"stages\":\"m\"}]", "give a number"},
        {"[{\"scenario\":{},\"model\":[]}]", "no key \"model\""},
        {"[{\"scenario\":{},\"facts\":[\"eager\"]}]", "no \"eager\"; give some of shared-model"},
        {"[{\"scenario\":{},\"facts\":true}]", "give a list of shared-model"},
        {"[{\"scenario\":3}]", "give a part of one"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        OrrJsonDoc *doc = orr_json_parse(bad[i][0], strlen(bad[i][0]), "test", NULL);
        g_assert_false(spec_recipes_check(orr_json_root(doc), "f.json", &error));
        g_assert_nonnull(strstr(error->message, bad[i][1]));
        g_assert_true(g_str_has_prefix(error->message, "f.json: "));
        orr_json_free(doc);
    }
}

/* Layers of a number of stages that is not known yet. */
static void test_splits(void)
{
    static const char *const text =
        "{\"model\":{\"name\":\"m\",\"layers\":6},\"parallel\":{\"pipeline\":\"auto\"%s},"
        "\"execution\":{\"framework\":{\"recipes\":["
        "{\"models\":[\"other\"],\"stages\":2,\"scenario\":{\"parallel\":{\"stage_layers\":[5,1]}}},"
        "{\"models\":[\"m\"],\"stages\":2,\"scenario\":{\"parallel\":{\"stage_layers\":[4,2]}}},"
        "{\"models\":[\"m\"],\"stages\":4,\"scenario\":{\"parallel\":{\"stage_layers\":[1,2,2,1]}}}]}}}";
    static const struct {
        const char *more, *splits;
    } cases[] = {{"", "2:4,2;4:1,2,2,1"}, {",\"stage_layers\":[3,3]", NULL}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GString) own = g_string_new(text);
        g_string_replace(own, "%s", cases[i].more, 1);
        OrrJsonDoc *doc = orr_json_parse(own->str, own->len, "test", NULL);
        g_assert_cmpstr(spec_recipes_splits(orr_json_root(doc)), ==, cases[i].splits);
        orr_json_free(doc);
    }
    g_autofree SpecParallel *parallel = g_new0(SpecParallel, 1);
    parallel->recipe_splits = cases[0].splits;
    parallel->pipeline = parallel->virtual_stages = 2;
    g_assert_true(spec_recipes_take_split(parallel));
    g_assert_cmpint(parallel->stage_layers_count, ==, 4);
    g_assert_cmpint(parallel->stage_layers[1], ==, 2);
    parallel->pipeline = 3; /* no recipe */
    g_assert_false(spec_recipes_take_split(parallel));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/recipes/first", test_first_that_says_so);
    g_test_add_func("/recipes/scenario", test_scenario_stands);
    g_test_add_func("/recipes/none", test_none);
    g_test_add_func("/recipes/framework", test_framework_keys);
    g_test_add_func("/recipes/overlap", test_stated_overlap);
    g_test_add_func("/recipes/refused", test_refused);
    g_test_add_func("/recipes/splits", test_splits);
    return g_test_run();
}
