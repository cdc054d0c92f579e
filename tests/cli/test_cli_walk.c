/* tests/cli/test_cli_walk.c - what a new user met on a walk through the program with a 70B model: defaults that are the
 * software's, answers that launch, imports that know the cluster, pages that fit the terminal. */
#include <string.h>

#include "tests/cli/runner.h"

#define LLAMA                                                                                                \
    "{\"model\":\"llama3-70b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":64},\"training\":{\"sequence_" \
    "length\":8192,\"global_batch\":512,\"tokens\":2e12},\"execution\":{\"framework\":\"torchtitan\"}}"

/* The file `name` of `folder`. */
static void put(const char *folder, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static char *with_llama(void)
{
    char *folder = cli_scratch_new();
    put(folder, "a.json", LLAMA);
    return folder;
}

static void assert_says(const CliRun *run, const char *what, const char *text)
{
    if (run->status != 0 || strstr(run->out, text) == NULL)
        g_error("%s: exit %d, no \"%s\" in: %s%s", what, run->status, text, run->out, run->err);
}

/* --- defaults that are the software's --- */

/* Software that shards as it stands does so where a scenario does not say. */
static void test_zero_is_the_softwares(void)
{
    static const struct {
        const char *framework, *layout;
    } rows[] = {{"torchtitan", "tp1 pp1 dp512 zero3"},    {"pytorch-fsdp2", "tp1 pp1 dp512 zero3"},
                {"pytorch-fsdp1", "tp1 pp1 dp512 zero3"}, {"transformers-fsdp", "tp1 pp1 dp512 zero3"},
                {"meta-llama3", "tp1 pp1 dp512 zero2"},   {"pytorch-ddp", "tp1 pp1 dp512 zero0"},
                {"generic", "tp1 pp1 dp512 zero0"},       {"megatron-lm", "tp1 pp1 dp512 zero0"},
                {"megatron-core", "tp1 pp1 dp512 zero1"}};
    char *folder = with_llama();
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *set = g_strconcat("execution.framework=", rows[i].framework, NULL);
        CliRun run = cli_run(folder, CLI_WORDS("run", "a.json", "--set", set));
        assert_says(&run, rows[i].framework, rows[i].layout);
        cli_run_clear(&run);
    }
    static const char *const splits[][2] = {{"torchtitan", "tp8 sp pp1"}, {"pytorch-fsdp2", "tp8 pp1"}};
    for (gsize i = 0; i < G_N_ELEMENTS(splits); i++) {
        g_autofree char *set = g_strconcat("execution.framework=", splits[i][0], NULL);
        CliRun run = cli_run(folder, CLI_WORDS("run", "a.json", "--set", set, "--set", "parallel.tensor=8"));
        assert_says(&run, splits[i][0], splits[i][1]);
        cli_run_clear(&run);
    }
    CliRun told = cli_run(folder, CLI_WORDS("run", "a.json", "--set", "parallel.zero=0"));
    assert_says(&told, "told", "dp512 zero0");
    CliRun alone = cli_run(folder, CLI_WORDS("run", "a.json", "--set", "cluster.nodes=1", "--set",
                                             "parallel.tensor=8", "--verbose"));
    assert_says(&alone, "one rank", "dp1 zero0");
    cli_run_clear(&told);
    cli_run_clear(&alone);
    cli_scratch_free(folder);
}

/* --- recomputation that the software has --- */

static void test_recompute_is_the_softwares(void)
{
    static const char *const lacks[][2] = {{"torchtitan", "{\"mode\":\"full\",\"layers\":61}"},
                                           {"torchtitan", "selective"},
                                           {"nanotron", "selective"},
                                           {"megatron-core", "selective-op"}};
    static const char *const has[][2] = {{"torchtitan", "full"},
                                         {"torchtitan", "selective-op"},
                                         {"nanotron", "full"},
                                         {"megatron-core", "selective"},
                                         {"megatron-core", "{\"mode\":\"full\",\"layers\":61}"},
                                         {"pytorch-fsdp2", "{\"mode\":\"full\",\"layers\":61}"}};
    char *folder = with_llama();
    for (gsize i = 0; i < G_N_ELEMENTS(lacks) + G_N_ELEMENTS(has); i++) {
        const bool lacking = i < G_N_ELEMENTS(lacks);
        const char *const *row = lacking ? lacks[i] : has[i - G_N_ELEMENTS(lacks)];
        g_autofree char *framework = g_strconcat("execution.framework=", row[0], NULL),
                        *recompute = g_strconcat("training.recompute=", row[1], NULL),
                        *note = g_strconcat(row[0], " has no recompute", NULL);
        CliRun run = cli_run(folder, CLI_WORDS("run", "a.json", "--set", framework, "--set", recompute));
        g_assert_cmpint(run.status, ==, 0);
        if ((strstr(run.out, note) != NULL) != lacking)
            g_error("%s %s: %s", row[0], row[1], run.out);
        cli_run_clear(&run);
    }
    cli_scratch_free(folder);
}

/* What a search saves is what the scenario's own software launches. */
static void test_winner_launches(void)
{
    static const char *const formats[] = {"torchtitan", "nanotron"};
    char *folder = with_llama();
    for (gsize i = 0; i < G_N_ELEMENTS(formats); i++) {
        g_autofree char *framework = g_strconcat("execution.framework=", formats[i], NULL);
        CliRun search =
            cli_run(folder, CLI_WORDS("search", "a.json", "--set", framework, "--set",
                                      "training.recompute=auto", "--set", "parallel.tensor=auto", "--set",
                                      "parallel.data=auto", "--set", "parallel.pipeline=auto", "--set",
                                      "parallel.zero=auto", "--save", "best.json", "--quiet"));
        CliRun given = cli_run(folder, CLI_WORDS("export", "best.json", "--to", formats[i], "--quiet"));
        cli_assert_done(&search, formats[i]);
        cli_assert_done(&given, formats[i]);
        cli_run_clear(&search);
        cli_run_clear(&given);
    }
    CliRun every = cli_run(folder, CLI_WORDS("search", "a.json", "--set", "training.recompute=auto", "--set",
                                             "search.recompute=[\"selective-layer\"]", "--set",
                                             "cluster.preset=dgx-b200", "--save", "every.json", "--quiet"));
    assert_says(&every, "every n-th layer", "recompute selective-layer/");
    g_autofree char *saved = cli_contents(folder, "every.json");
    g_assert_nonnull(strstr(saved, "\"every_n_layers\": "));
    CliRun again = cli_run(folder, CLI_WORDS("run", "every.json"));
    assert_says(&again, "saved", "recompute selective-layer");
    cli_run_clear(&every);
    cli_run_clear(&again);
    cli_scratch_free(folder);
}

/* --- imports --- */

/* A cluster that --set names tells what a step is where the file leaves it to the number of ranks. */
static void test_import_knows_the_cluster(void)
{
    static const struct {
        const char *file, *text, *batch;
    } rows[] = {
        {"t.toml",
         "[model]\nname = \"llama3\"\nflavor = \"70B\"\n[training]\nlocal_batch_size = 2\nseq_len = 8192\n"
         "steps = 10_000\n[parallelism]\ndata_parallel_shard_degree = -1\ntensor_parallel_degree = 8\n",
         "\"global_batch\": 128"},
        {"m.sh", "--micro-batch-size 2 --tensor-model-parallel-size 8 --seq-length 8192 --train-iters 10000",
         "\"global_batch\": 128"},
        {"d.json",
         "{\"train_micro_batch_size_per_gpu\":2,\"gradient_accumulation_steps\":3,\"zero_optimization\":"
         "{\"stage\":3}}",
         "\"global_batch\": 3072"},
        {"n.yaml",
         "parallelism:\n  tp: 8\n  pp: 1\ntokens:\n  micro_batch_size: 2\n  batch_accumulation_per_replica: "
         "1\n  sequence_length: 8192\n",
         "\"global_batch\": 128"},
    };
    char *folder = with_llama();
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        put(folder, rows[i].file, rows[i].text);
        CliRun run = cli_run(folder, CLI_WORDS("import", rows[i].file, "--quiet", "--set",
                                               "cluster.preset=dgx-h100", "--set", "cluster.nodes=64"));
        assert_says(&run, rows[i].file, rows[i].batch);
        if (i < 2)
            assert_says(&run, rows[i].file, "\"tokens\": 10485760000");
        g_autofree char *marked =
            g_strconcat("\xef\xbb\xbf", rows[i].text, NULL); /* as Windows' editors save it */
        put(folder, rows[i].file, marked);
        CliRun same = cli_run(folder, CLI_WORDS("import", rows[i].file, "--quiet", "--set",
                                                "cluster.preset=dgx-h100", "--set", "cluster.nodes=64"));
        cli_assert_done(&same, rows[i].file);
        g_assert_cmpstr(same.out, ==, run.out);
        cli_run_clear(&same);
        cli_run_clear(&run);
    }
    static const char *const compiled[][2] = {{"[\"model\", \"loss\"]", "\"compiled\": true"},
                                              {"[\"loss\"]", "\"compiled\": false"}};
    for (gsize i = 0; i < G_N_ELEMENTS(compiled); i++) {
        g_autofree char *text =
            g_strdup_printf("[parallelism]\ntensor_parallel_degree = 1\n[model]\nname = \"llama3\"\nflavor = "
                            "\"8B\"\n[compile]\nenable = true\ncomponents = %s\n",
                            compiled[i][0]);
        put(folder, "c.toml", text);
        CliRun run = cli_run(folder, CLI_WORDS("import", "c.toml"));
        assert_says(&run, compiled[i][0], compiled[i][1]);
        g_assert_null(strstr(run.err, "compile.components"));
        cli_run_clear(&run);
    }
    CliRun unknown = cli_run(folder, CLI_WORDS("import", "t.toml"));
    g_assert_nonnull(strstr(unknown.err, "cluster.preset"));
    g_assert_null(strstr(unknown.out, "global_batch"));
    cli_run_clear(&unknown);
    cli_scratch_free(folder);
}

/* What a trainer fills in is no statement of the file, and software that is not the file's is named. */
static void test_import_auto_precision(void)
{
    static const char *const values[][2] = {{"\"auto\"", NULL}, {"true", "\"precision\": \"bf16\""}};
    char *folder = with_llama();
    for (gsize i = 0; i < G_N_ELEMENTS(values); i++) {
        g_autofree char *text = g_strdup_printf("{\"train_batch_size\":512,\"bf16\":{\"enabled\":%s},"
                                                "\"fp16\":{\"enabled\":false}}",
                                                values[i][0]);
        put(folder, "d.json", text);
        CliRun run = cli_run(folder, CLI_WORDS("import", "d.json", "--base", "a.json"));
        g_assert_cmpint(run.status, ==, 0);
        g_assert_null(strstr(run.out, "fp32"));
        if (values[i][1] != NULL)
            g_assert_nonnull(strstr(run.out, values[i][1]));
        g_assert_nonnull(strstr(run.err, "torchtitan is the base's, the file is for deepspeed"));
        cli_run_clear(&run);
    }
    cli_scratch_free(folder);
}

/* What `import` prints of a model alone is a model's file. */
static void test_model_alone_is_a_model(void)
{
    char *folder = with_llama();
    put(folder, "config.json",
        "{\"model_type\":\"qwen3\",\"hidden_size\":5120,\"intermediate_size\":25600,\"num_attention_heads\":"
        "64,\"head_dim\":128,\"num_hidden_layers\":64,\"num_key_value_heads\":8,\"vocab_size\":151936,"
        "\"max_position_embeddings\":40960,\"tie_word_embeddings\":false,\"hidden_act\":\"silu\"}");
    CliRun imported = cli_run(folder, CLI_WORDS("import", "config.json", "--output", "model.json"));
    g_assert_cmpint(imported.status, ==, 0);
    CliRun placed =
        cli_run(folder, CLI_WORDS("import", "config.json", "--cluster", "dgx-h100", "--output", "placed.json",
                                  "--set", "training.sequence_length=4096", "--set",
                                  "training.global_batch=64", "--set", "cluster.nodes=4"));
    CliRun runs = cli_run(folder, CLI_WORDS("run", "placed.json")),
           nowhere = cli_run(folder, CLI_WORDS("import", "config.json", "--cluster", "dgxh100"));
    cli_assert_done(&runs, "placed.json");
    g_assert_null(strstr(placed.err, "Still to be given"));
    assert_says(&runs, "placed.json", "32 GPUs: 4 x 8 h100-sxm5-80gb");
    cli_assert_refused(&nowhere, "no such cluster", "did you mean \"dgx-h100\"?");
    cli_run_clear(&placed);
    cli_run_clear(&runs);
    cli_run_clear(&nowhere);
    CliRun wrapped = cli_run(folder, CLI_WORDS("run", "a.json", "--set", "model=model.json"));
    CliRun direct = cli_run(folder, CLI_WORDS("run", "a.json", "--set", "model=config.json"));
    assert_says(&wrapped, "model.json", "32.76 B parameters, 64 layers");
    assert_says(&direct, "config.json", "32.76 B parameters, 64 layers");
    cli_run_clear(&imported);
    cli_run_clear(&wrapped);
    cli_run_clear(&direct);
    cli_scratch_free(folder);
}

/* A launch says the release of Megatron-Core that its options came with. */
static void test_export_says_its_release(void)
{
    static const char *const rows[][2] = {
        {"parallel.loss_as_layer=true",
         "needs Megatron-Core 0.11 or later (--account-for-loss-in-pipeline-split"},
        {"training.recompute=selective", "needs Megatron-Core 0.12 or later (--recompute-modules)"},
        {"parallel.zero=3", "needs Megatron-Core 0.14 or later (--use-megatron-fsdp)"}};
    char *folder = with_llama();
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        CliRun run =
            cli_run(folder, CLI_WORDS("export", "a.json", "--to", "megatron", "--quiet", "--set",
                                      "execution.framework=megatron-core", "--set", "parallel.tensor=8",
                                      "--set", i < 1 ? "parallel.pipeline=3" : "parallel.pipeline=1", "--set",
                                      "cluster.nodes=63", "--set", "training.global_batch=504", "--set",
                                      "execution.overlap=[]", "--set", "parallel.sequence_parallel=true",
                                      "--set", rows[i][0]));
        assert_says(&run, rows[i][0], rows[i][1]);
        cli_run_clear(&run);
    }
    cli_scratch_free(folder);
}

/* --- answers --- */

/* Fewer GPUs that keep the deadline and only lack sure memory are told beside the answer. */
static void test_plan_tells_tight_counts(void)
{
    char *folder = with_llama();
    CliRun run =
        cli_run(folder, CLI_WORDS("plan", "a.json", "--deadline", "30 days", "--set",
                                  "training.global_batch=1024", "--set",
                                  "execution={\"framework\":\"megatron-core\",\"attention\":\"flash2\","
                                  "\"overlap\":[\"pipeline\",\"grad_reduce\",\"param_gather\"]}",
                                  "--set", "training.gradient_dtype=fp32", "--set",
                                  "parallel={\"tensor\":4,\"pipeline\":4,\"virtual_stages\":4,\"schedule\":"
                                  "\"interleaved\",\"sequence_parallel\":true,\"zero\":1}",
                                  "--set", "training.recompute=selective", "--quiet"));
    assert_says(&run, "plan", "GPUs would keep");
    assert_says(&run, "plan", "training.recompute=auto");
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

/* What does not fit is told with what does. */
static void test_explain_tells_what_fits(void)
{
    char *folder = with_llama();
    CliRun full = cli_run(folder, CLI_WORDS("explain", "a.json", "--set", "parallel.zero=3")),
           none = cli_run(folder, CLI_WORDS("explain", "a.json", "--set", "parallel.zero=0"));
    assert_says(&full, "full", "training.recompute=full fits, in");
    assert_says(&none, "none", "no single change makes it fit");
    g_assert_null(strstr(full.out, "rules out"));
    cli_run_clear(&full);
    cli_run_clear(&none);
    cli_scratch_free(folder);
}

/* JSON of every command says its schema. */
static void test_json_says_its_schema(void)
{
    static const char *const words[] = {"run",
                                        "explain",
                                        "plan",
                                        "search --set parallel.tensor=auto",
                                        "compare",
                                        "sweep --vary training.micro_batch=1",
                                        "campaign --replicas 2"};
    char *folder = with_llama();
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autofree char *line =
            g_strdup_printf("%s a.json %s --format json --quiet --set training.recompute=full", words[i],
                            strcmp(words[i], "compare") == 0 ? "a.json" : "");
        g_auto(GStrv) list = g_strsplit(line, " ", -1);
        g_autoptr(GPtrArray) said = g_ptr_array_new();
        for (char **word = list; *word != NULL; word++)
            if ((*word)[0] != '\0')
                g_ptr_array_add(said, *word);
        g_ptr_array_add(said, NULL);
        CliRun run = cli_run(folder, (const char *const *)said->pdata);
        assert_says(&run, words[i], "{\n  \"schema\": 1,");
        cli_run_clear(&run);
    }
    cli_scratch_free(folder);
}

static int count_of(const char *text, const char *word)
{
    int count = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        count++;
    return count;
}

/* Neighbours by a layer of recomputation do not fill the page. */
static void test_search_page_has_no_clones(void)
{
    char *folder = with_llama();
    CliRun run =
        cli_run(folder, CLI_WORDS("search", "a.json", "--set", "execution.framework=megatron-core", "--set",
                                  "training.recompute=auto", "--set", "parallel.zero=3", "--quiet"));
    assert_says(&run, "search", "Pareto");
    const char *pareto = strstr(run.out, "Pareto"), *misses = strstr(run.out, "Nearest");
    g_assert_true(pareto != NULL && misses != NULL && pareto < misses);
    g_autofree char *front = g_strndup(pareto, (gsize)(misses - pareto));
    g_assert_cmpint(count_of(front, "dp512"), >=, 2);
    g_assert_cmpint(count_of(front, "dp512"), <=, 6);
    g_assert_cmpint(count_of(misses, "dp512"), ==, 1);
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

/* A campaign of a scenario without faults says what it assumes, as run and plan do. */
static void test_campaign_names_what_is_assumed(void)
{
    char *folder = with_llama();
    CliRun run = cli_run(
        folder, CLI_WORDS("campaign", "a.json", "--replicas", "2", "--set", "training.recompute=full"));
    assert_says(&run, "campaign", "faults llama3-2024 (assumed)");
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/walk/zero", test_zero_is_the_softwares);
    g_test_add_func("/walk/recompute", test_recompute_is_the_softwares);
    g_test_add_func("/walk/winner", test_winner_launches);
    g_test_add_func("/walk/import-cluster", test_import_knows_the_cluster);
    g_test_add_func("/walk/import-auto", test_import_auto_precision);
    g_test_add_func("/walk/model-alone", test_model_alone_is_a_model);
    g_test_add_func("/walk/release", test_export_says_its_release);
    g_test_add_func("/walk/plan-tight", test_plan_tells_tight_counts);
    g_test_add_func("/walk/explain", test_explain_tells_what_fits);
    g_test_add_func("/walk/schema", test_json_says_its_schema);
    g_test_add_func("/walk/clones", test_search_page_has_no_clones);
    g_test_add_func("/walk/campaign", test_campaign_names_what_is_assumed);
    return g_test_run();
}
