/* tests/cli/test_cli_explain.c - `orrery explain`: every change that it names runs to what it says, what binds is what a
 * faster part would save, and a page has no more than a dozen sentences. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "tests/cli/runner.h"

static const OrrJson *at(const OrrJson *node, const char *key)
{
    const OrrJson *member = orr_json_member(node, key);
    g_assert_nonnull(member);
    return member;
}

static OrrJsonDoc *json_of(CliRun *run, const char *name)
{
    GError *error = NULL;
    cli_assert_done(run, name);
    OrrJsonDoc *doc = orr_json_parse(run->out, run->out_length, name, &error);
    g_assert_no_error(error);
    cli_run_clear(run);
    return doc;
}

/* Picoseconds of the scenario with these settings. */
static gint64 run_with(const char *path, const OrrJson *sets)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(words, g_strdup("run"));
    g_ptr_array_add(words, g_strdup(path));
    g_ptr_array_add(words, g_strdup("--format"));
    g_ptr_array_add(words, g_strdup("json"));
    for (const OrrJson *set = sets != NULL ? orr_json_first(sets) : NULL; set != NULL;
         set = orr_json_next(set)) {
        g_ptr_array_add(words, g_strdup("--set"));
        g_ptr_array_add(words, g_strdup(orr_json_text(set)));
    }
    g_ptr_array_add(words, NULL);
    CliRun run = cli_run(NULL, (const char *const *)words->pdata);
    OrrJsonDoc *doc = json_of(&run, "run");
    const gint64 ps = llround(orr_json_number(at(orr_json_root(doc), "step_s")) * 1e12);
    orr_json_free(doc);
    return ps;
}

static void test_changes_run(void)
{
    static const char *const names[] = {"gpt3-175b", "llama3-70b-h100", "gpt2-xl-1gpu",
                                        "blenderbot_zero2_maxbatch"};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *file = g_strdup_printf("scenarios/examples/%s.json", names[i]),
                        *path = cli_source(file);
        CliRun run = cli_run(NULL, CLI_WORDS("explain", path, "--format", "json"));
        OrrJsonDoc *doc = json_of(&run, names[i]);
        const OrrJson *root = orr_json_root(doc);
        const double own_s = orr_json_number(at(root, "step_s"));
        bool unfit = false;
        g_assert_cmpint(llround(own_s * 1e12), ==, run_with(path, NULL));
        g_assert_cmpint(orr_json_count(at(root, "changes")), >=, 3);
        for (const OrrJson *change = orr_json_first(at(root, "changes")); change != NULL;
             change = orr_json_next(change)) {
            const double step_s = orr_json_number(at(change, "step_s"));
            g_assert_cmpint(llround(step_s * 1e12), ==, run_with(path, at(change, "set")));
            g_assert_cmpfloat(fabs(orr_json_number(at(change, "gain_frac")) - (1 - step_s / own_s)), <, 1e-9);
            g_assert_false(unfit && orr_json_bool(at(change, "fits"))); /* those that fit come first */
            unfit |= !orr_json_bool(at(change, "fits"));
        }
        orr_json_free(doc);
    }
}

/* A kernel written for the tensor cores of Hopper is nothing to change to on other GPUs. */
static void test_kernels_of_other_gpus(void)
{
    static const char *const others[] = {"rtx-4090-24gb", "l40s-pcie", "rtx-pro-6000-pcie", "dgx-spark-gb10",
                                         "rtx-5090-32gb", "l4-24gb",   "a100-sxm4-80gb"};
    g_autofree char *path = cli_source("scenarios/examples/gpt2-xl-1gpu.json");
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++) {
        g_autofree char *set = g_strconcat("cluster.accelerator=", others[i], NULL);
        CliRun run = cli_run(NULL, CLI_WORDS("explain", path, "--format", "json", "--set", set, "--set",
                                             "training.precision=bf16"));
        cli_assert_done(&run, others[i]);
        g_assert_null(strstr(run.out, "execution.attention=flash3"));
        cli_run_clear(&run);
    }
}

/* Fields that belong together change together; changes of one cause are told in one sentence; what has room on the GPU leaves it
 * last. */
static void test_changes_together(void)
{
    g_autofree char *path = cli_source("scenarios/examples/gpt3-175b.json");
    CliRun run = cli_run(NULL, CLI_WORDS("explain", path, "--format", "json"));
    OrrJsonDoc *doc = json_of(&run, "together");
    const OrrJson *changes = at(orr_json_root(doc), "changes"), *first = orr_json_first(changes);
    g_autofree char *set = orr_json_dump(at(first, "set"));
    g_assert_nonnull(strstr(set, "parallel.schedule=interleaved"));
    g_assert_nonnull(strstr(set, "parallel.virtual_stages="));
    g_assert_cmpstr(orr_json_text(at(first, "less")), ==, "bubble");
    g_assert_cmpfloat(orr_json_number(at(first, "gain_frac")), >, 0.1);
    bool offloads = false;
    int interleaved = 0, shapes = 0;
    for (const OrrJson *change = first; change != NULL; change = orr_json_next(change)) {
        g_autofree char *words = orr_json_dump(at(change, "set"));
        const bool offload = strstr(words, "offload=") != NULL;
        g_assert_false(offloads && !offload && orr_json_bool(at(change, "fits")));
        offloads |= offload;
        interleaved += strstr(words, "schedule=interleaved") != NULL; /* the best number of stages alone */
        shapes += strstr(words, "parallel.tensor=4") != NULL && strstr(words, "parallel.pipeline=16") != NULL;
    }
    g_assert_true(offloads);
    g_assert_cmpint(interleaved, ==, 1);
    g_assert_cmpint(shapes, ==, 1);
    orr_json_free(doc);
    run = cli_run(NULL, CLI_WORDS("explain", path));
    cli_assert_done(&run, "explain");
    g_assert_nonnull(strstr(run.out, "mostly less bubble"));
    g_assert_nonnull(strstr(run.out, "for the same reason"));
    g_assert_null(strstr(run.out, "offload"));
    cli_run_clear(&run);
}

/* Of a run with these settings: what the scenario asks of its software in vain. */
static int notes_with(const char *path, const char *framework, const OrrJson *sets)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    static char *const run_words[] = {"--format", "json", "--set"};
    g_ptr_array_add(words, (gpointer) "run");
    g_ptr_array_add(words, (gpointer)path);
    g_ptr_array_add(words, run_words[0]);
    g_ptr_array_add(words, run_words[1]);
    g_ptr_array_add(words, run_words[2]);
    g_ptr_array_add(words, (gpointer)framework);
    for (const OrrJson *set = sets != NULL ? orr_json_first(sets) : NULL; set != NULL;
         set = orr_json_next(set)) {
        g_ptr_array_add(words, run_words[2]);
        g_ptr_array_add(words, (gpointer)orr_json_text(set));
    }
    g_ptr_array_add(words, NULL);
    CliRun run = cli_run(NULL, (const char *const *)words->pdata);
    OrrJsonDoc *doc = json_of(&run, framework);
    const int count = orr_json_count(at(orr_json_root(doc), "notes"));
    orr_json_free(doc);
    return count;
}

/* What is suggested is something that the software offers: no run of it says that it lacks what was suggested. */
static void test_changes_are_offered(void)
{
    static const struct {
        const char *framework, *lacks[5];
    } rows[] = {
        {"execution.framework=torchtitan", {"flash3", "unfused", "cudnn", "expert", "selective\""}},
        {"execution.framework=nanotron", {"flash3", "cudnn", "compiled=true", "zb-", "zero=2"}},
        {"execution.framework=deepspeed",
         {"breadth-first", "interleaved", "compiled=true", "pipeline\"", NULL}},
        {"execution.framework=megatron-lm-2021", {"flash2", "flash3", "cudnn", "compiled=true", NULL}}};
    g_autofree char *path = cli_source("scenarios/examples/llama3-70b-h100.json");
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        const int lacks = notes_with(path, rows[i].framework, NULL);
        CliRun run =
            cli_run(NULL, CLI_WORDS("explain", path, "--set", rows[i].framework, "--format", "json"));
        OrrJsonDoc *doc = json_of(&run, rows[i].framework);
        const OrrJson *changes = at(orr_json_root(doc), "changes");
        g_assert_cmpint(orr_json_count(changes), >=, 3);
        for (const OrrJson *change = orr_json_first(changes); change != NULL;
             change = orr_json_next(change)) {
            g_autofree char *set = orr_json_dump(at(change, "set"));
            for (int k = 0; k < (int)G_N_ELEMENTS(rows[i].lacks) && rows[i].lacks[k] != NULL; k++)
                if (strstr(set, rows[i].lacks[k]) != NULL && strstr(set, "overlap") == NULL)
                    g_error("%s: %s", rows[i].framework, set);
            g_assert_cmpint(notes_with(path, rows[i].framework, at(change, "set")), <=, lacks);
        }
        orr_json_free(doc);
    }
}

/* A tenth more of what binds saves what the shares say; more peak on the command line is more peak inside. */
static void test_binds(void)
{
    g_autofree char *path = cli_source("scenarios/examples/gpt3-175b.json");
    CliRun run = cli_run(NULL, CLI_WORDS("explain", path, "--format", "json"));
    OrrJsonDoc *doc = json_of(&run, "binds");
    const OrrJson *root = orr_json_root(doc);
    CliRun faster = cli_run(NULL, CLI_WORDS("run", path, "--format", "json", "--set",
                                            "cluster.scale_up_bytes_per_s=330000000000"));
    OrrJsonDoc *run_doc = json_of(&faster, "faster links");
    const double gain =
        1 - orr_json_number(at(orr_json_root(run_doc), "step_s")) / orr_json_number(at(root, "step_s"));
    double last = 2;
    int found = 0;
    for (const OrrJson *bind = orr_json_first(at(root, "binds")); bind != NULL; bind = orr_json_next(bind)) {
        const double share = orr_json_number(at(bind, "step_frac"));
        g_assert_cmpfloat(share, <=, last);
        last = share;
        if (strcmp(orr_json_text(at(bind, "what")), "scale_up") == 0) {
            g_assert_cmpfloat(fabs(share - gain * 11), <, 1e-6);
            found++;
        }
    }
    g_assert_cmpint(found, ==, 1);
    g_assert_cmpint(orr_json_count(at(root, "binds")), ==, 6);
    orr_json_free(doc);
    orr_json_free(run_doc);
}

/* What lies below the GPUs' memory binds where something leaves it: there the host's update is half of the step. */
static void test_binds_below(void)
{
    g_autofree char *path = cli_source("scenarios/examples/superoffload_gh200.json");
    CliRun run = cli_run(NULL, CLI_WORDS("explain", path, "--format", "json"));
    OrrJsonDoc *doc = json_of(&run, "binds");
    const OrrJson *binds = at(orr_json_root(doc), "binds"), *first = orr_json_first(binds);
    g_assert_cmpint(orr_json_count(binds), ==, 9);
    g_assert_cmpstr(orr_json_text(at(first, "what")), ==, "host_memory");
    g_assert_cmpfloat(orr_json_number(at(first, "step_frac")), >, 0.5);
    orr_json_free(doc);
}

/* Of a list of layers there are no kernels to name; what its servers' connections take is among what binds. */
static void test_layer_list(void)
{
    g_autofree char *path = cli_source("scenarios/examples/ps_sharded.json");
    CliRun text = cli_run(NULL, CLI_WORDS("explain", path));
    g_assert_null(strstr(text.out, "are ."));
    g_assert_null(strstr(text.out, "qkv"));
    cli_run_clear(&text);
    CliRun run = cli_run(NULL, CLI_WORDS("explain", path, "--format", "json"));
    OrrJsonDoc *doc = json_of(&run, "layers");
    g_assert_cmpint(orr_json_count(at(orr_json_root(doc), "binds")), ==, 10);
    orr_json_free(doc);
}

/* The kernels' shares of the loss are all of it. */
static void test_kernels(void)
{
    g_autofree char *path = cli_source("scenarios/examples/gpt3-175b.json");
    CliRun run = cli_run(NULL, CLI_WORDS("explain", path, "--format", "json"));
    OrrJsonDoc *doc = json_of(&run, "kernels");
    double loss = 0, time = 0;
    for (const OrrJson *kernel = orr_json_first(at(orr_json_root(doc), "kernels")); kernel != NULL;
         kernel = orr_json_next(kernel)) {
        loss += orr_json_number(at(kernel, "loss_frac"));
        time += orr_json_number(at(kernel, "time_frac"));
    }
    g_assert_cmpfloat(fabs(loss - 1), <, 1e-9);
    g_assert_cmpfloat(fabs(time - 1), <, 1e-9);
    orr_json_free(doc);
}

/* No figure that gets better makes the step slower; together they bring no more than all of the step. */
static void test_figures(void)
{
    static const char *const names[] = {"gpt3-175b", "llama3-70b-h100", "gpt2-xl-1gpu"};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *file = g_strdup_printf("scenarios/examples/%s.json", names[i]),
                        *path = cli_source(file);
        CliRun run = cli_run(NULL, CLI_WORDS("explain", path, "--format", "json"));
        OrrJsonDoc *doc = json_of(&run, names[i]);
        double sum = 0, last = 2;
        for (const OrrJson *figure = orr_json_first(at(orr_json_root(doc), "figures")); figure != NULL;
             figure = orr_json_next(figure)) {
            const double elasticity = orr_json_number(at(figure, "elasticity"));
            g_assert_cmpfloat(elasticity, >, -0.002);
            g_assert_cmpfloat(fabs(elasticity), <=, last);
            last = fabs(elasticity);
            sum += elasticity;
        }
        g_assert_cmpfloat(sum, >, 0.5);
        g_assert_cmpfloat(sum, <, 1.02);
        orr_json_free(doc);
    }
}

static double step_with(const char *path, const char *set)
{
    CliRun run = cli_run(NULL, CLI_WORDS("run", path, "--set", set, "--format", "json"));
    OrrJsonDoc *doc = json_of(&run, set);
    const double step_s = orr_json_number(at(orr_json_root(doc), "step_s"));
    orr_json_free(doc);
    return step_s;
}

/* A figure that explain makes better is a key of the scenario, and does to a run what the table says. */
static void test_figures_as_keys(void)
{
    g_autofree char *path = cli_source("scenarios/examples/gpt3-175b.json");
    CliRun run = cli_run(NULL, CLI_WORDS("explain", path, "--format", "json"));
    OrrJsonDoc *doc = json_of(&run, "figures");
    int tried = 0;
    for (const OrrJson *figure = orr_json_first(at(orr_json_root(doc), "figures"));
         figure != NULL && tried < 9; figure = orr_json_next(figure)) {
        const char *key = orr_json_text(at(figure, "figure"));
        const bool time = g_str_has_suffix(key, "_s") && !g_str_has_suffix(key, "_per_s");
        g_autofree char *set = g_strdup_printf("%s=x%s", key, time ? "0.990099009900990099" : "1.01");
        const double step_s = orr_json_number(at(figure, "step_s"));
        g_assert_cmpfloat_with_epsilon(step_with(path, set), step_s, 1e-9 * step_s);
        tried++;
    }
    g_assert_cmpint(tried, ==, 9);
    orr_json_free(doc);
}

static void test_page(void)
{
    g_autofree char *path = cli_source("scenarios/examples/gpt3-175b.json");
    CliRun run = cli_run(NULL, CLI_WORDS("explain", path));
    CliRun csv = cli_run(NULL, CLI_WORDS("explain", path, "--format", "csv"));
    cli_assert_done(&run, "page");
    cli_assert_refused(&csv, "csv", "--format");
    g_assert_nonnull(strstr(run.out, "  1. A step takes "));
    g_assert_nonnull(strstr(run.out, " would bring "));
    g_assert_nonnull(strstr(run.out, "The largest loss, "));
    g_assert_nonnull(strstr(run.out, "Memory: fits"));
    g_assert_null(strstr(run.out, " 13. "));
    cli_run_clear(&run);
    cli_run_clear(&csv);
}

/* Shares that are more than the step together say why. */
static void test_shares_side_by_side(void)
{
    static const char *const names[] = {"gpt3-175b", "llama3-70b-h100", "gpt2-xl-1gpu", "fsdp_8b_8h100",
                                        "mt-nlg-530b"};
    int over = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *file = g_strdup_printf("scenarios/examples/%s.json", names[i]),
                        *path = cli_source(file);
        CliRun run = cli_run(NULL, CLI_WORDS("explain", path, "--format", "json"));
        OrrJsonDoc *doc = json_of(&run, names[i]);
        double percents = 0;
        for (const OrrJson *bind = orr_json_first(at(orr_json_root(doc), "binds")); bind != NULL;
             bind = orr_json_next(bind)) {
            const double share = orr_json_number(at(bind, "step_frac"));
            percents += share >= 0.01 ? round(100 * share) : 0;
        }
        orr_json_free(doc);
        CliRun page = cli_run(NULL, CLI_WORDS("explain", path));
        cli_assert_done(&page, names[i]);
        g_assert_true((strstr(page.out, "more than 100") != NULL) == (percents > 100));
        over += percents > 100;
        cli_run_clear(&page);
    }
    g_assert_cmpint(over, >, 0);
    g_assert_cmpint(over, <, (int)G_N_ELEMENTS(names));
}

/* What simulates the step many times counts them all before it begins: `run` answers here in seconds. */
static void test_too_many_passes(void)
{
    g_autofree char *path = cli_source("scenarios/examples/gpt3-175b.json");
    const char *const rows[][8] = {
        {"explain", path}, {"report", path}, {"compare", path, path}, {"plot", path, "--what", "tornado"}};
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        const char *words[12];
        int count = 0;
        while (rows[i][count] != NULL) {
            words[count] = rows[i][count];
            count++;
        }
        words[count] = "--set";
        words[count + 1] = "training.global_batch=10000000";
        words[count + 2] = NULL;
        CliRun run = cli_run(NULL, words);
        cli_assert_refused(&run, rows[i][0], " to simulate some ");
        cli_run_clear(&run);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/explain/changes-run", test_changes_run);
    g_test_add_func("/cli/explain/kernels-of-other-gpus", test_kernels_of_other_gpus);
    g_test_add_func("/cli/explain/changes-together", test_changes_together);
    g_test_add_func("/explain/changes-are-offered", test_changes_are_offered);
    g_test_add_func("/explain/binds", test_binds);
    g_test_add_func("/explain/binds-below", test_binds_below);
    g_test_add_func("/explain/layer-list", test_layer_list);
    g_test_add_func("/explain/kernels", test_kernels);
    g_test_add_func("/explain/figures", test_figures);
    g_test_add_func("/explain/figures-as-keys", test_figures_as_keys);
    g_test_add_func("/explain/page", test_page);
    g_test_add_func("/cli/explain/side-by-side", test_shares_side_by_side);
    g_test_add_func("/cli/explain/too-many-passes", test_too_many_passes);
    return g_test_run();
}
