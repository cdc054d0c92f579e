/* tests/cli/test_cli_planning.c - compare, sweep, export and import as users and scripts meet them. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "tests/cli/runner.h"

#define EXAMPLE "scenarios/examples/gpt3-175b.json"

static OrrJsonDoc *parse(const char *text)
{
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "output", &error);
    g_assert_no_error(error);
    return doc;
}

static const OrrJson *member(const OrrJson *object, const char *key)
{
    const OrrJson *found = orr_json_member(object, key);
    g_assert_nonnull(found);
    return found;
}

static int lines(const char *text)
{
    int count = 0;
    for (const char *c = text; *c != '\0'; c++)
        count += *c == '\n';
    return count;
}

/* --- sweep --- */

static void test_sweep(void)
{
    g_autofree char *path = cli_source(EXAMPLE);
    CliRun json = cli_run(NULL, CLI_WORDS("sweep", path, "--vary", "training.micro_batch=1,2,7", "--vary",
                                          "parallel.virtual_stages=1", "--format", "json"));
    CliRun csv =
        cli_run(NULL, CLI_WORDS("sweep", path, "--vary", "training.micro_batch=1,2,7", "--format", "csv"));
    cli_assert_done(&json, "json");
    cli_assert_done(&csv, "csv");
    OrrJsonDoc *doc = parse(json.out);
    const OrrJson *rows = member(orr_json_root(doc), "rows"), *row = orr_json_first(rows);
    g_assert_cmpint(orr_json_count(rows), ==, 3);
    g_assert_cmpint(lines(csv.out), ==, 4);
    g_assert_cmpfloat(orr_json_number(member(row, "training.micro_batch")), ==, 1);
    g_assert_true(orr_json_type(member(row, "reason")) == ORR_JSON_NULL);
    CliRun alone = cli_run(NULL, CLI_WORDS("run", path, "--format", "json"));
    OrrJsonDoc *report = parse(alone.out);                                      /* a row is what run says */
    g_assert_cmpint(llround(1e12 * orr_json_number(member(row, "step_s"))), ==, /* the same picosecond */
                    llround(1e12 * orr_json_number(member(orr_json_root(report), "step_s"))));
    row = orr_json_next(orr_json_next(row));
    g_assert_nonnull(strstr(orr_json_text(member(row, "reason")), "training.micro_batch"));
    g_assert_true(orr_json_type(member(row, "step_s")) == ORR_JSON_NULL);
    orr_json_free(report);
    orr_json_free(doc);
    cli_run_clear(&alone);
    cli_run_clear(&json);
    cli_run_clear(&csv);
}

static void test_sweep_refused(void)
{
    g_autofree char *path = cli_source(EXAMPLE);
    CliRun nothing = cli_run(NULL, CLI_WORDS("sweep", path));
    CliRun typo = cli_run(NULL, CLI_WORDS("sweep", path, "--vary", "training.micro_bath=1,2"));
    CliRun twice =
        cli_run(NULL, CLI_WORDS("sweep", path, "--vary", "parallel.zero=0", "--vary", "parallel.zero=1"));
    cli_assert_refused(&nothing, "nothing", "--vary");
    cli_assert_refused(&typo, "typo", "micro_batch");
    cli_assert_refused(&twice, "twice", "twice");
    cli_run_clear(&nothing);
    cli_run_clear(&typo);
    cli_run_clear(&twice);
}

/* --- compare --- */

static void test_compare(void)
{
    g_autofree char *a = cli_source(EXAMPLE),
                    *b = cli_source("scenarios/examples/gpt3-175b-interleaved.json");
    CliRun text = cli_run(NULL, CLI_WORDS("compare", a, b));
    CliRun json = cli_run(NULL, CLI_WORDS("compare", a, b, "--format", "json"));
    CliRun same = cli_run(NULL, CLI_WORDS("compare", a, a));
    cli_assert_done(&text, "text");
    cli_assert_done(&json, "json");
    cli_assert_done(&same, "same");
    g_assert_nonnull(strstr(same.out, "No field differs"));
    g_assert_nonnull(strstr(text.out, "parallel.virtual_stages"));
    OrrJsonDoc *doc = parse(json.out);
    const OrrJson *bubble = member(member(orr_json_root(doc), "time"), "bubble_s");
    g_assert_cmpfloat(orr_json_number(member(bubble, "difference")), <, 0); /* what interleaving is for */
    orr_json_free(doc);
    cli_run_clear(&text);
    cli_run_clear(&json);
    cli_run_clear(&same);
}

/* --- export and import --- */

static void test_export_import(void)
{
    static const char interleaved[] = "scenarios/examples/gpt3-175b-interleaved.json",
                      plain[] = "scenarios/examples/gpt2-xl-1gpu.json";
    static const char *const formats[][3] = {{"megatron", "x.sh", interleaved},
                                             {"megatron-bridge", "x.txt", interleaved},
                                             {"deepspeed", "x.json", plain}};
    g_autofree char *folder = cli_scratch_new();
    for (gsize i = 0; i < G_N_ELEMENTS(formats); i++) {
        g_autofree char *path = cli_source(formats[i][2]);
        g_autofree char *file = g_build_filename(folder, formats[i][1], NULL);
        g_autofree char *back = g_build_filename(folder, "back.json", NULL);
        CliRun out = cli_run(NULL, CLI_WORDS("export", path, "--to", formats[i][0], "--output", file));
        CliRun in = cli_run(NULL, CLI_WORDS("import", file, "--output", back));
        CliRun same = cli_run(NULL, CLI_WORDS("compare", path, back, "--quick"));
        g_assert_cmpint(out.status, ==, 0);
        g_assert_nonnull(strstr(out.err, "and changes the prediction:"));
        g_assert_cmpint(in.status, ==, 0);
        g_assert_nonnull(strstr(in.err, "and does not change it:"));
        cli_assert_done(&same, formats[i][0]);
        g_assert_nonnull(strstr(same.out, "No field differs"));
        cli_run_clear(&out);
        cli_run_clear(&in);
        cli_run_clear(&same);
    }
    cli_scratch_free(g_steal_pointer(&folder));
}

/* A script is read as it is called, and all that is still missing is told at once. */
static void test_import_called(void)
{
    static const char script[] = "#!/bin/bash\nif [ $1 = small ]; then\nN=12\nelse\nN=96\nfi\n"
                                 "torchrun --nnodes $NODES pretrain_gpt.py --num-layers $N --hidden-size 768 "
                                 "--num-attention-heads 12 --micro-batch-size $2\n";
    g_autofree char *folder = cli_scratch_new(), *file = g_build_filename(folder, "train.sh", NULL),
                    *scenario = cli_source(EXAMPLE);
    g_assert_true(g_file_set_contents(file, script, -1, NULL));
    CliRun small = cli_run(NULL, CLI_WORDS("import", file, "--args", "NODES=3 small 4")),
           large = cli_run(NULL, CLI_WORDS("import", file, "--args", "'large one' 4")),
           open = cli_run(NULL, CLI_WORDS("import", file, "--args", "'small")),
           none = cli_run(NULL, CLI_WORDS("import", scenario, "--args", "x"));
    g_assert_cmpint(small.status, ==, 0);
    g_assert_nonnull(strstr(small.out, "\"layers\": 12"));
    g_assert_nonnull(strstr(small.out, "\"nodes\": 3"));
    g_assert_nonnull(strstr(small.out, "\"micro_batch\": 4"));
    g_assert_nonnull(
        strstr(small.err, "cluster.accelerator, training.sequence_length, training.global_batch"));
    g_assert_nonnull(strstr(large.out, "\"layers\": 96"));
    cli_assert_refused(&open, "an open quote", "--args: ");
    cli_assert_refused(&none, "not a script", "is not a script; only a script takes words");
    cli_run_clear(&small);
    cli_run_clear(&large);
    cli_run_clear(&open);
    cli_run_clear(&none);
    cli_scratch_free(g_steal_pointer(&folder));
}

/* "auto" is chosen before it is written. */
static void test_export_auto(void)
{
    g_autofree char *path = cli_source(EXAMPLE);
    CliRun run =
        cli_run(NULL, CLI_WORDS("export", path, "--to", "megatron", "--set", "training.micro_batch=auto"));
    g_assert_cmpint(run.status, ==, 0);
    g_assert_nonnull(strstr(run.err, "Placeholders without a value: "));
    g_assert_nonnull(strstr(run.out, "--micro-batch-size "));
    g_assert_null(strstr(run.out, "auto"));
    cli_run_clear(&run);
}

/* A model alone is a result; endless inputs are not read to their end; a launch file lies beside its configuration. */
static void test_import_limits(void)
{
    g_autofree char *base = cli_source("scenarios/examples/llama3-70b-h100.json");
    g_autofree char *folder = cli_scratch_new();
    g_autofree char *config = g_build_filename(folder, "config.json", NULL);
    g_autofree char *output = g_build_filename(folder, "run.sh", NULL);
    g_autofree char *batch = g_build_filename(folder, "run.sbatch", NULL);
    g_autofree char *written = NULL;
    g_assert_true(
        g_file_set_contents(config,
                            "{\"model_type\":\"llama\",\"hidden_size\":64,\"num_attention_heads\":1,"
                            "\"intermediate_size\":64,\"num_hidden_layers\":1,\"vocab_size\":64,"
                            "\"mystery\":7}",
                            -1, NULL));
    CliRun model = cli_run(NULL, CLI_WORDS("import", config));
    g_assert_cmpint(model.status, ==, 0);
    g_assert_nonnull(strstr(model.err, "mystery"));
    CliRun endless = cli_run(NULL, CLI_WORDS("import", "/dev/zero"));
    cli_assert_refused(&endless, "endless", "holds more than the 16 MiB");
    CliRun both = cli_run(
        NULL, CLI_WORDS("export", base, "--to", "megatron", "--launch", "sbatch", "--output", output));
    g_assert_cmpint(both.status, ==, 0);
    g_assert_true(g_file_get_contents(batch, &written, NULL, NULL));
    g_assert_nonnull(strstr(written, "#SBATCH --nodes=8"));
    g_assert_nonnull(strstr(written, output));
    CliRun script = cli_run(NULL, CLI_WORDS("export", base, "--to", "megatron", "--launch", "torchrun"));
    g_assert_nonnull(strstr(script.out, "torchrun --nnodes 8 --nproc-per-node 8"));
    CliRun wrong = cli_run(NULL, CLI_WORDS("export", base, "--to", "megatron", "--launch", "mpirun"));
    cli_assert_refused(&wrong, "launch", "give sbatch or torchrun");
    CliRun orders = cli_run(NULL, CLI_WORDS("export", base, "--to", "schedule", "--launch", "sbatch"));
    cli_assert_refused(&orders, "orders", "nothing to launch");
    CliRun *const runs[] = {&model, &endless, &both, &script, &wrong, &orders};
    for (gsize i = 0; i < G_N_ELEMENTS(runs); i++)
        cli_run_clear(runs[i]);
    cli_scratch_free(g_steal_pointer(&folder));
}

/* What a framework does not have is said by runs, in words and under a key. */
static void test_notes(void)
{
    g_autofree char *path = cli_source("scenarios/examples/llama3-70b-h100.json");
    CliRun text = cli_run(NULL, CLI_WORDS("run", path, "--set", "parallel.schedule=zb-h1", "--set",
                                          "parallel.virtual_stages=1"));
    CliRun json = cli_run(NULL, CLI_WORDS("run", path, "--format", "json", "--set", "parallel.schedule=zb-h1",
                                          "--set", "parallel.virtual_stages=1"));
    CliRun plain = cli_run(NULL, CLI_WORDS("run", path, "--format", "json"));
    cli_assert_done(&text, "text");
    g_assert_nonnull(strstr(text.out, "has no schedule zb-h1"));
    OrrJsonDoc *doc = parse(json.out), *without = parse(plain.out);
    const OrrJson *note = orr_json_first(member(orr_json_root(doc), "notes"));
    g_assert_nonnull(
        strstr(orr_json_text(note), "megatron-core has no schedule zb-h1 (it has 1f1b, interleaved)"));
    g_assert_cmpint(orr_json_count(member(orr_json_root(without), "notes")), ==, 0);
    orr_json_free(doc);
    orr_json_free(without);
    cli_run_clear(&text);
    cli_run_clear(&json);
    cli_run_clear(&plain);
}

#define FLAT                                                                                                 \
    "--set", "parallel={\"tensor\":8}", "--set", "training.recompute=full", "--set", "training.micro_batch=1"

/* FSDP shards gradients with the optimizer's states: no search finds a stage that its software cannot be told. */
static void test_stages(void)
{
    static const char *const frameworks[] = {"torchtitan", "pytorch-fsdp1", "pytorch-fsdp2",
                                             "transformers-fsdp"};
    g_autofree char *path = cli_source("scenarios/examples/llama3-70b-h100.json");
    for (gsize i = 0; i < G_N_ELEMENTS(frameworks); i++) {
        g_autofree char *framework = g_strconcat("execution.framework=", frameworks[i], NULL);
        CliRun run =
            cli_run(NULL, CLI_WORDS("run", path, FLAT, "--set", framework, "--set", "parallel.zero=1"));
        cli_assert_done(&run, frameworks[i]);
        g_assert_nonnull(strstr(run.out, "has no ZeRO 1 (0, or 2 and above)"));
        cli_run_clear(&run);
        CliRun found = cli_run(NULL, CLI_WORDS("search", path, FLAT, "--set", framework, "--set",
                                               "parallel.zero=auto", "--format", "json", "--top", "9"));
        cli_assert_done(&found, frameworks[i]);
        OrrJsonDoc *doc = parse(found.out);
        const OrrJson *best = member(orr_json_root(doc), "best");
        g_assert_cmpint(orr_json_count(best), >, 0);
        for (const OrrJson *row = orr_json_first(best); row != NULL; row = orr_json_next(row))
            g_assert_cmpfloat(fabs(orr_json_number(member(member(row, "parallel"), "zero")) - 1), >, 0.5);
        orr_json_free(doc);
        cli_run_clear(&found);
    }
}

static void test_import_others(void)
{
    g_autofree char *base = cli_source(EXAMPLE);
    g_autofree char *folder = cli_scratch_new();
    g_autofree char *file = g_build_filename(folder, "train.sh", NULL);
    const char *const script =
        "torchrun pretrain_gpt.py --micro-batch-size 2 --global-batch-size 1536 --bf16 "
        "--use-distributed-optimizer --sequence-parallel --no-such-flag 3\n";
    g_assert_true(g_file_set_contents(file, script, -1, NULL));
    CliRun run = cli_run(NULL, CLI_WORDS("import", file, "--base", base));
    g_assert_cmpint(run.status, ==, 0);
    g_assert_nonnull(strstr(run.err, "no-such-flag"));
    OrrJsonDoc *doc = parse(run.out);
    g_assert_cmpfloat(orr_json_number(member(member(orr_json_root(doc), "training"), "micro_batch")), ==, 2);
    orr_json_free(doc);
    CliRun quiet = cli_run(NULL, CLI_WORDS("import", file, "--base", base, "--quiet"));
    cli_assert_done(&quiet, "quiet");
    CliRun alone = cli_run(NULL, CLI_WORDS("import", file)); /* no model, no cluster: said, not fatal */
    g_assert_cmpint(alone.status, ==, 0);
    g_assert_nonnull(strstr(alone.err, "--base"));
    CliRun wrong = cli_run(NULL, CLI_WORDS("import", file, "--from", "yaml"));
    cli_assert_refused(&wrong, "format", "--from");
    CliRun missing = cli_run(NULL, CLI_WORDS("import", "no/such/file"));
    cli_assert_refused(&missing, "missing", "no/such/file");
    CliRun to = cli_run(NULL, CLI_WORDS("export", base));
    cli_assert_refused(&to, "no --to", "--to");
    cli_run_clear(&run);
    cli_run_clear(&quiet);
    cli_run_clear(&alone);
    cli_run_clear(&wrong);
    cli_run_clear(&missing);
    cli_run_clear(&to);
    cli_scratch_free(g_steal_pointer(&folder));
}

/* The same bytes on any number of threads; what the contract names is there; a table is refused. */
static void test_campaign(void)
{
    static const char *const keys[] = {"replicas",      "seed", "ideal_days", "days",   "goodput",
                                       "interruptions", "lost", "checkpoint", "mtbf_s", "spare_nodes"};
    g_autofree char *path = cli_source("scenarios/examples/campaign-llama3-405b.json");
    CliRun one = cli_run(NULL,
                         CLI_WORDS("campaign", path, "--replicas", "200", "--jobs", "1", "--format", "json")),
           many = cli_run(
               NULL, CLI_WORDS("campaign", path, "--replicas", "200", "--jobs", "3", "--format", "json")),
           text = cli_run(NULL, CLI_WORDS("campaign", path, "--replicas", "200")),
           csv = cli_run(NULL, CLI_WORDS("campaign", path, "--format", "csv")),
           none = cli_run(NULL, CLI_WORDS("campaign", path, "--replicas", "0")),
           ages = cli_run(NULL, CLI_WORDS("campaign", path, "--set", "training.tokens=1e18"));
    cli_assert_done(&one, "campaign");
    cli_assert_refused(&ages, "ages", "interruptions in each of 1000 replicas take a core");
    cli_assert_done(&text, "campaign");
    g_assert_cmpstr(one.out, ==, many.out);
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_autofree char *quoted = g_strdup_printf("\n  \"%s\": ", keys[i]);
        g_assert_nonnull(strstr(one.out, quoted));
    }
    g_assert_nonnull(strstr(text.out, "Lost time"));
    cli_assert_refused(&csv, "csv", "not a table");
    cli_assert_refused(&none, "replicas", "--replicas: \"0\"");
    cli_run_clear(&one);
    cli_run_clear(&many);
    cli_run_clear(&text);
    cli_run_clear(&csv);
    cli_run_clear(&none);
}

/* A run of 64 GPUs and more tells effective days by itself, of parts that add up, and costs go by them; --ideal takes the
 * step's own days, as the step itself is either way. */
static void test_run_effective(void)
{
    static const char *const keys[] = {"compute_days",  "checkpoint_days", "failures_days",
                                       "restarts_days", "loading_days",    "waiting_days"};
    g_autofree char *path = cli_source("scenarios/examples/plan-sc21-175b.json");
    CliRun lived = cli_run(NULL, CLI_WORDS("run", path, "--format", "json")),
           ideal = cli_run(NULL, CLI_WORDS("run", path, "--format", "json", "--ideal")),
           wrong = cli_run(NULL, CLI_WORDS("run", path, "--set", "faults=rsc-1", "--set",
                                           "faults.checkpoint.interval_s=1e8"));
    cli_assert_done(&lived, "run");
    cli_assert_done(&ideal, "run --ideal");
    cli_assert_refused(&wrong, "interval", "faults.checkpoint.interval_s: 1e+08 is longer than the campaign");
    OrrJsonDoc *with = parse(lived.out), *without = parse(ideal.out);
    const OrrJson *training = member(orr_json_root(with), "training"),
                  *alone = member(orr_json_root(without), "training"),
                  *effective = member(training, "effective");
    const double days = orr_json_number(member(training, "days"));
    const double told = orr_json_number(member(training, "effective_days"));
    double sum = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++)
        sum += orr_json_number(member(effective, keys[i]));
    g_assert_cmpfloat(fabs(sum - told), <, 1e-9);
    g_assert_cmpfloat(told, >, days);
    g_assert_cmpfloat(days, ==, orr_json_number(member(alone, "days")));
    g_assert_cmpint(orr_json_type(member(alone, "effective_days")), ==, ORR_JSON_NULL);
    g_assert_cmpfloat(fabs(orr_json_number(member(training, "gpu_hours")) /
                               orr_json_number(member(alone, "gpu_hours")) / (told / days) -
                           1),
                      <, 1e-9);
    orr_json_free(with);
    orr_json_free(without);
    cli_run_clear(&lived);
    cli_run_clear(&ideal);
    cli_run_clear(&wrong);
}

/* A trace and a drawn one; what is neither is refused. */
static void test_jobs(void)
{
    g_autofree char *path = cli_source("scenarios/traces/four-jobs.json");
    CliRun file = cli_run(NULL, CLI_WORDS("jobs", path, "--format", "json")),
           drawn = cli_run(NULL, CLI_WORDS("jobs", "--seed", "3", "--count", "300", "--format", "json")),
           again = cli_run(NULL, CLI_WORDS("jobs", "--seed", "3", "--count", "300", "--format", "json")),
           none = cli_run(NULL, CLI_WORDS("jobs")),
           both = cli_run(NULL, CLI_WORDS("jobs", path, "--seed", "1"));
    cli_assert_done(&file, "jobs");
    cli_assert_done(&drawn, "jobs --seed");
    OrrJsonDoc *doc = parse(file.out);
    const OrrJson *policies = member(orr_json_root(doc), "policies");
    g_assert_cmpint(orr_json_count(policies), ==, 12);
    const OrrJson *first_fit = orr_json_next(orr_json_first(policies));
    g_assert_cmpstr(orr_json_text(member(first_fit, "policy")), ==, "first-fit");
    g_assert_cmpfloat(orr_json_number(member(first_fit, "makespan_s")), ==, 200);
    g_assert_cmpfloat(orr_json_number(member(member(first_fit, "wait_s"), "mean")), ==, 40);
    orr_json_free(doc);
    g_assert_cmpstr(drawn.out, ==, again.out);
    cli_assert_refused(&none, "nothing", "--seed");
    cli_assert_refused(&both, "both", "not both");
    cli_run_clear(&file);
    cli_run_clear(&drawn);
    cli_run_clear(&again);
    cli_run_clear(&none);
    cli_run_clear(&both);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/sweep/rows", test_sweep);
    g_test_add_func("/cli/sweep/refused", test_sweep_refused);
    g_test_add_func("/cli/compare", test_compare);
    g_test_add_func("/cli/export/import", test_export_import);
    g_test_add_func("/cli/export/import-called", test_import_called);
    g_test_add_func("/cli/export/auto", test_export_auto);
    g_test_add_func("/cli/import/others", test_import_others);
    g_test_add_func("/cli/import/limits", test_import_limits);
    g_test_add_func("/cli/run/notes", test_notes);
    g_test_add_func("/cli/search/stages", test_stages);
    g_test_add_func("/planning/campaign", test_campaign);
    g_test_add_func("/planning/run-effective", test_run_effective);
    g_test_add_func("/planning/jobs", test_jobs);
    return g_test_run();
}
