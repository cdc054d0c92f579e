/* A file with several mistakes is refused with all of them, and no valid field is ever among them. */
#include "base/json.h"
#include "spec/load.h"
#include "tests/unit/test_spec_support.h"

static char *refused(const char *text)
{
    GError *error = NULL;
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "mine.json", &error);
    g_assert_no_error(error);
    g_assert_false(spec_load_json(orr_json_root(doc), "mine.json", NULL, true, spec, NULL, &error));
    char *message = g_strdup(error->message);
    g_error_free(error);
    orr_json_free(doc);
    return message;
}

#define REST ", \"training\": {\"sequence_length\": 4096, \"global_batch\": 64"

/* The one that stops the reader stands first; each of the others once. */
static void test_all_are_told(void)
{
    static const struct {
        const char *text, *first;
        const char *others[5];
    } cases[] = {
        {"{\"modle\": \"llama3-8b\", \"model\": \"llama3-8b\", \"cluster\": {\"preset\": \"dgx-h100\", "
         "\"noodes\": 2}" REST
         ", \"micro_bach\": 1}, \"paralel\": {}, \"execution\": {\"framework\": \"megatron-cor\"}}",
         "mine.json: execution.framework: \"megatron-cor\" is not one of the frameworks",
         {"; also modle: unknown key", "; also cluster.noodes: unknown key",
          "; also training.micro_bach: unknown key", "; also paralel: unknown key"}},
        {"{\"model\": \"llama3-8b\", \"cluster\": \"dgx-h100\"" REST
         ", \"optimizer\": \"adamm\", \"micro_batch\": -2, \"tokens\": \"many\"}, \"parallel\": {\"zero\": "
         "9, "
         "\"sequence_parallel\": 1}}",
         "mine.json: training.micro_batch: -2 is out of range",
         {"; also training.tokens: \"many\" is not a quantity", "; also training.optimizer: \"adamm\" is no",
          "; also parallel.zero: 9 is out of range", "; also parallel.sequence_parallel: 1 is a number"}},
        {"{\"model\": {\"layers\": 4, \"hiden\": 64, \"heads\": 0}, \"cluster\": \"dgx-h100\"" REST "}}",
         "mine.json: model.hiden: unknown key",
         {"; also model.heads: 0 is out of range"}},
        {"{\"model\": \"llama3-8b\", \"cluster\": \"dgx-h100\"" REST
         ", \"recompute\": {\"mode\": \"fulll\", \"layers\": -3, \"every\": 2}}, \"offload\": "
         "{\"scheme\": \"x\", \"ratio\": 7}}",
         "mine.json: training.recompute.every: unknown key",
         {"; also training.recompute.mode: \"fulll\" is not",
          "; also training.recompute.layers: -3 is out of range", "; also offload.scheme: \"x\" is not",
          "; also offload.ratio: 7 is out of range"}},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *message = refused(cases[i].text);
        if (!g_str_has_prefix(message, cases[i].first))
            g_error("begins otherwise: %s", message);
        for (int k = 0; cases[i].others[k] != NULL; k++) {
            const char *found = strstr(message, cases[i].others[k]);
            if (found == NULL || strstr(found + 1, cases[i].others[k]) != NULL)
                g_error("not once \"%s\": %s", cases[i].others[k], message);
        }
    }
}

/* Hundreds are counted, one is alone. */
static void test_few_words(void)
{
    g_autoptr(GString) text = g_string_new("{\"model\": \"llama3-8b\", \"cluster\": \"dgx-h100\"" REST);
    for (int i = 0; i < 300; i++)
        g_string_append_printf(text, ", \"key_%d\": %d", i, i);
    g_string_append(text, "}}");
    g_autofree char *many = refused(text->str);
    g_assert_nonnull(strstr(many, "; also 291 more"));
    g_assert_cmpuint(strlen(many), <, 2000);
    g_autofree char *one =
        refused("{\"model\": \"llama3-8b\", \"cluster\": \"dgx-h100\"" REST ", \"key\": 1}}");
    g_assert_null(strstr(one, "; also"));
    g_autofree char *preset =
        refused("{\"model\": \"llama3-8b\", \"cluster\": \"dgx-h100\"" REST "}, \"faults\": \"spot\"}");
    g_assert_null(strstr(preset, "; also"));
}

/* One mistake put into what loads: nothing that was right is called wrong. */
static void check_alone(const OrrJson *scenario, const char *name)
{
    static const char *const sets[] = {"training.no_such_key=1", NULL};
    g_autofree Spec *spec = g_new0(Spec, 1);
    GError *error = NULL;
    g_assert_false(spec_load_json(scenario, name, sets, true, spec, NULL, &error));
    const char *also = strstr(error->message, "; also"); /* behind a path that only the file's folder has */
    if (also != NULL &&
        (!g_str_has_prefix(also, "; also training.no_such_key") || strstr(also + 1, "; also") != NULL))
        g_error("%s: %s", name, error->message);
    g_error_free(error);
}

static void test_nothing_right_is_told(void)
{
    static const char *const folders[] = {"examples", "measurements", "blind"};
    int files = 0, scenarios = 0;
    for (gsize f = 0; f < G_N_ELEMENTS(folders); f++) {
        g_autofree char *folder = g_build_filename(ORRERY_SOURCE_SCENARIOS, folders[f], NULL);
        GDir *dir = g_dir_open(folder, 0, NULL);
        for (const char *name = g_dir_read_name(dir); name != NULL; name = g_dir_read_name(dir)) {
            g_autofree char *path = g_build_filename(folder, name, NULL);
            OrrJsonDoc *doc = g_str_has_suffix(name, ".json") ? orr_json_read_file(path, NULL) : NULL;
            const OrrJson *root = doc != NULL ? orr_json_root(doc) : NULL;
            files += root != NULL;
            if (root != NULL && orr_json_type(root) == ORR_JSON_OBJECT)
                check_alone(root, name);
            else if (root != NULL)
                for (const OrrJson *row = orr_json_first(root); row != NULL; row = orr_json_next(row)) {
                    check_alone(orr_json_member(row, "scenario"), name);
                    scenarios++;
                }
            orr_json_free(doc);
        }
        g_dir_close(dir);
    }
    g_assert_cmpint(files, >, 60);
    g_assert_cmpint(scenarios, >, 800);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/spec/mistakes/all", test_all_are_told);
    g_test_add_func("/spec/mistakes/few-words", test_few_words);
    g_test_add_func("/spec/mistakes/nothing-right", test_nothing_right_is_told);
    return g_test_run();
}
