/* tests/cli/test_cli_collective.c - orrery collective as users meet it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "tests/cli/runner.h"

static OrrJsonDoc *json(const CliRun *run)
{
    cli_assert_done(run, "collective");
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(run->out, run->out_length, "collective", &error);
    g_assert_no_error(error);
    return doc;
}

static double number(const OrrJsonDoc *doc, const char *key)
{
    return orr_json_number_of(orr_json_root(doc), key, -1);
}

static void test_vectors(void)
{
    CliRun run = cli_run(NULL, CLI_WORDS("collective", "--ranks", "8", "--rate", "50GB/s", "--latency", "5us",
                                         "--bytes", "100MB", "--algorithm", "ring", "--format", "json",
                                         "--show-data"));
    OrrJsonDoc *doc = json(&run);
    g_assert_cmpfloat_with_epsilon(number(doc, "seconds"), 3.57e-3, 1e-9);
    g_assert_cmpfloat_with_epsilon(number(doc, "busbw_bytes_per_s"), 100e6 / 3.57e-3 * 1.75, 1e3);
    g_assert_cmpfloat(number(doc, "step_count"), ==, 14);
    g_assert_true(orr_json_bool(orr_json_member(orr_json_root(doc), "proved")));
    orr_json_free(doc);
    cli_run_clear(&run);
    run = cli_run(NULL, CLI_WORDS("collective", "--ranks", "32", "--cluster", "dgx-h100", "--latency", "0 s",
                                  "--bytes", "1GB", "--algorithm", "mesh-2d", "--format", "json"));
    doc = json(&run);
    g_assert_cmpfloat_with_epsilon(number(doc, "seconds"), 33.889e-3, 1e-6);
    orr_json_free(doc);
    cli_run_clear(&run);
}

static void test_library(void)
{
    CliRun run = cli_run(NULL, CLI_WORDS("collective", "--ranks", "8", "--cluster", "dgx-h200", "--bytes",
                                         "1MiB..4MiB", "--format", "csv"));
    cli_assert_done(&run, "csv");
    g_auto(GStrv) lines = g_strsplit(run.out, "\n", -1);
    g_assert_cmpint((int)g_strv_length(lines), ==, 5);
    g_assert_nonnull(strstr(lines[1], ",ring,ll,")); /* the switch-over lies between 1 and 2 MiB */
    g_assert_nonnull(strstr(lines[2], ",nvls,simple,"));
    cli_run_clear(&run);
}

/* What a library takes turns at its sizes; one that weighs without a tuner says so. */
static void test_library_choice(void)
{
    CliRun run =
        cli_run(NULL, CLI_WORDS("collective", "--ranks", "8", "--cluster", "dgx-h100", "--bytes",
                                "32KiB,33KiB,260KiB,64MiB", "--library", "msccl", "--format", "csv"));
    cli_assert_done(&run, "msccl");
    g_auto(GStrv) lines = g_strsplit(run.out, "\n", -1);
    static const char *const expected[] = {",one-shot,", ",direct,", ",ring,", ",nvls,"};
    for (gsize i = 0; i < G_N_ELEMENTS(expected); i++)
        g_assert_nonnull(strstr(lines[i + 1], expected[i]));
    cli_run_clear(&run);
    run = cli_run(NULL, CLI_WORDS("collective", "--ranks", "48", "--cluster", "dgx-h100", "--bytes", "1MiB",
                                  "--library", "hccl"));
    cli_assert_done(&run, "hccl");
    g_assert_nonnull(strstr(run.out, "hccl takes it: on 2 to 7 nodes [HCCL]"));
    cli_run_clear(&run);
    run = cli_run(NULL, CLI_WORDS("collective", "--ranks", "16", "--rate", "1GB/s", "--library", "rccl",
                                  "--format", "json"));
    OrrJsonDoc *doc = json(&run);
    const OrrJson *library = orr_json_member(orr_json_root(doc), "library");
    g_assert_cmpstr(orr_json_text_of(library, "name", ""), ==, "rccl");
    g_assert_false(orr_json_bool(orr_json_member(library, "chosen")));
    orr_json_free(doc);
    cli_run_clear(&run);
}

static void test_flows(void)
{
    CliRun run = cli_run(NULL, CLI_WORDS("collective", "--ranks", "6", "--topology", "two-boards", "--rate",
                                         "1GB/s", "--op", "all-to-all", "--algorithm", "direct", "--bytes",
                                         "6GB", "--fidelity", "flow", "--format", "json"));
    OrrJsonDoc *doc = json(&run);
    /* Nine messages of 1 GB cross 12.5 GB/s each way; a port's five would take 0.2 s alone. */
    g_assert_cmpfloat_with_epsilon(number(doc, "seconds"), 9 / 12.5 + 5e-6, 1e-6);
    g_assert_cmpfloat_with_epsilon(number(doc, "contention_s"), 9 / 12.5 - 5 / 25.0, 1e-3);
    orr_json_free(doc);
    cli_run_clear(&run);
}

static void test_compare(void)
{
    g_autofree char *folder = cli_scratch_new();
    g_autofree char *path = g_build_filename(folder, "all_reduce_perf.txt", NULL);
    g_autoptr(GString) log = g_string_new("# Collective test starting: all_reduce_perf\n"
                                          "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 2097152\n"
                                          "#  size count type redop root time algbw busbw wrong\n");
    for (int r = 0; r < 8; r++)
        g_string_append_printf(log, "#  Rank  %d Group  0 Pid  1 on  node device  %d [0] NVIDIA H200\n", r,
                               r);
    g_string_append(log, "  1048576 262144 float sum -1 27.26 38.47 67.31 0\n"
                         "  2097152 524288 float sum -1 40.00 52.43 91.75 0\n");
    g_assert_true(g_file_set_contents(path, log->str, -1, NULL));
    CliRun run = cli_run(
        NULL, CLI_WORDS("collective", "--cluster", "dgx-h200", "--compare", path, "--format", "json"));
    OrrJsonDoc *doc = json(&run);
    const OrrJson *rows = orr_json_member(orr_json_root(doc), "rows"), *row = orr_json_first(rows);
    g_assert_cmpint(orr_json_count(rows), ==, 2);
    g_assert_cmpstr(orr_json_text_of(row, "op", NULL), ==, "all-reduce");
    g_assert_cmpfloat_with_epsilon(orr_json_number_of(row, "measured_s", 0), 27.26e-6, 1e-12);
    g_assert_cmpfloat(number(doc, "median_error_frac"), <, 0.15);
    orr_json_free(doc);
    cli_run_clear(&run);
    cli_scratch_free(g_steal_pointer(&folder));
}

/* Of two errors the 90th percentile lies nine tenths of the way to the larger: it is not the larger. */
static void test_compare_percentile(void)
{
    g_autofree char *folder = cli_scratch_new();
    g_autofree char *path = g_build_filename(folder, "all_reduce_perf.txt", NULL);
    double errors[2], printed = 0;
    g_assert_true(g_file_set_contents(path,
                                      "# nThread 1 nGpus 8 minBytes 1048576\n"
                                      "#  size count type redop root time algbw busbw wrong\n"
                                      "  1048576 262144 float sum -1 60.00 17.48 30.58 0\n"
                                      "  2097152 524288 float sum -1 200.0 10.49 18.35 0\n",
                                      -1, NULL));
    CliRun run = cli_run(
        NULL, CLI_WORDS("collective", "--cluster", "dgx-h200", "--compare", path, "--format", "json"));
    OrrJsonDoc *doc = json(&run);
    const OrrJson *row = orr_json_first(orr_json_member(orr_json_root(doc), "rows"));
    for (int i = 0; i < 2; i++, row = orr_json_next(row))
        errors[i] =
            100 *
            fabs(orr_json_number_of(row, "predicted_s", 0) / orr_json_number_of(row, "measured_s", 0) - 1);
    orr_json_free(doc);
    cli_run_clear(&run);
    run = cli_run(NULL, CLI_WORDS("collective", "--cluster", "dgx-h200", "--compare", path));
    const char *at = strstr(run.out, "90th percentile ");
    g_assert_nonnull(at);
    printed = g_ascii_strtod(at + strlen("90th percentile "), NULL);
    const double low = fmin(errors[0], errors[1]), high = fmax(errors[0], errors[1]);
    g_assert_cmpfloat(high - low, >, 5); /* else a tenth of it would not be seen */
    g_assert_cmpfloat_with_epsilon(printed, low + .9 * (high - low), 0.051);
    cli_run_clear(&run);
    cli_scratch_free(g_steal_pointer(&folder));
}

/* A log that names neither its program nor, in the file's name, the collective: --op says it. */
static void test_compare_op(void)
{
    g_autofree char *folder = cli_scratch_new();
    g_autofree char *path = g_build_filename(folder, "log.txt", NULL);
    g_assert_true(g_file_set_contents(path,
                                      "# nThread 1 nGpus 8 minBytes 1048576\n"
                                      "#  size count type redop root time algbw busbw wrong\n"
                                      "  1048576 32768 float none -1 27.26 38.47 33.66 0\n",
                                      -1, NULL));
    static const struct {
        const char *op, *says;
    } cases[] = {{"all-gather", "all-gather"}, {"all-to-all", "all-to-all"}, {"send-recv", "send-recv"}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        CliRun run = cli_run(NULL, CLI_WORDS("collective", "--cluster", "dgx-h200", "--compare", path, "--op",
                                             cases[i].op, "--format", "csv"));
        g_assert_cmpint(run.status, ==, 0);
        g_assert_nonnull(strstr(run.out, cases[i].says));
        cli_run_clear(&run);
    }
    static const char *const wrong[][2] = {{NULL, "does not say which collective"},
                                           {"gossip", "no collective is called"}};
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        CliRun run = cli_run(NULL, CLI_WORDS("collective", "--cluster", "dgx-h200", "--compare", path,
                                             wrong[i][0] != NULL ? "--op" : NULL, wrong[i][0]));
        g_assert_cmpint(run.status, ==, 2);
        g_assert_nonnull(strstr(run.err, wrong[i][1]));
        cli_run_clear(&run);
    }
    cli_scratch_free(g_steal_pointer(&folder));
}

/* Every operation on a preset and by flows: page, proof and CSV. */
static void test_every_op(void)
{
    static const char *const ops[] = {"send-recv",  "broadcast",      "reduce",     "scatter",    "gather",
                                      "all-gather", "reduce-scatter", "all-reduce", "all-to-all", "barrier",
                                      "copy",       "signal",         "wait",       "send",       "recv"};
    for (gsize i = 0; i < G_N_ELEMENTS(ops); i++)
        for (int csv = 0; csv < 2; csv++) {
            const char *words[] = {
                "collective",       "--op",     ops[i],       "--ranks", "16",
                "--cluster",        "dgx-h100", "--fidelity", "flow",    csv ? "--format" : "--show-data",
                csv ? "csv" : NULL, NULL};
            CliRun run = cli_run(NULL, words);
            g_assert_cmpint(run.status, ==, 0);
            g_assert_nonnull(strstr(run.out, csv ? "bytes,algorithm" : "proved:"));
            cli_run_clear(&run);
        }
}

static void test_refused(void)
{
    static const struct {
        const char *words[10], *expect;
    } cases[] = {
        {{"--op", "allsum", "--ranks", "8", "--rate", "1GB/s"}, "allsum"},
        {{"--ranks", "8", "--rate", "1GB/s", "--bytes", "0"}, "--bytes"},
        {{"--ranks", "8", "--rate", "1GB/s", "--bytes", "8GiB..8"}, "goes down"},
        {{"--ranks", "1", "--rate", "1GB/s"}, "--ranks"},
        {{"--ranks", "8"}, "--cluster"},
        {{"--rate", "1GB/s"}, "--ranks"},
        {{"--ranks", "9", "--topology", "cube-mesh", "--rate", "1GB/s"}, "more than the 8 GPUs"},
        {{"--ranks", "8", "--rate", "1GB/s", "--topology", "hypercube"}, "hypercube"},
        {{"--ranks", "8", "--rate", "1GB/s", "--algorithm", "butter"}, "butterfly"},
        {{"--ranks", "8", "--rate", "1GB/s", "--algorithm", "torus-2d"}, "two dimensions"},
        {{"--ranks", "8", "--rate", "1GB/s", "--dims", "3x3"}, "--dims"},
        {{"--ranks", "8", "--rate", "1GB/s", "--routing", "psychic"}, "psychic"},
        {{"--ranks", "8", "--rate", "1GB/s", "--fidelity", "packets"}, "packets"},
        {{"--ranks", "8", "--rate", "1GB/s", "--order", "0,1"}, "--order"},
        {{"--ranks", "2", "--rate", "1GB/s", "--order", "1,1"}, "two ranks"},
        {{"--ranks", "8", "--rate", "1GB/s", "--fail", "gpu0-nvswitch0"}, "cannot reach"},
        {{"--ranks", "8", "--rate", "1GB/s", "--fail", "gpu0"}, "--fail"},
        {{"--ranks", "8", "--cluster", "dgx-h100", "--set", "cluster.nonsense=3"}, "nonsense"},
        {{"--ranks", "8", "--rate", "1GB/s", "--reduce", "avg"}, "not one of sum, min, max"},
        {{"--ranks", "8", "--rate", "1GB/s", "--op", "signal", "--reduce", "min"}, "combines nothing"},
        {{"--ranks", "8", "--rate", "1GB/s", "--root", "8"}, "--root"},
        {{"--ranks", "8", "--rate", "1GB/s", "--seed", "x"}, "--seed"},
        {{"--ranks", "8", "--rate", "1GB/s", "--segments", "0"}, "--segments"},
        {{"--ranks", "8", "--rate", "1GB/s", "--library", "mpi"}, "mpi"},
        {{"--ranks", "8", "--rate", "1GB/s", "--fail", "gpu0-nvswitch0=2"}, "--fail"},
        {{"--ranks", "8", "--rate", "1GB/s", "--fail", "gpu0-nvswitch0=2"}, "is not a fraction from 0 to 1"},
        {{"--ranks", "8", "--rate", "0"}, "--rate"},
        {{"--ranks", "8", "--rate", "nan"}, "--rate"},
        {{"--ranks", "8", "--rate", "1GB/s", "--latency", "-1us"}, "--latency: -1us is not from 0 to 1 s"},
        {{"--ranks", "8", "--rate", "1GB/s", "--latency", "2s"}, "--latency"},
        {{"--ranks", "8", "--cluster", "dgx-h1000"}, "dgx-h1000"},
        {{"--compare", "x.txt"}, "--cluster"},
        {{"--ranks", "1048576", "--rate", "1GB/s"}, "to simulate"},
        {{"--ranks", "1048576", "--rate", "1GB/s", "--algorithm", "ring"}, "to simulate"},
        {{"--ranks", "60000", "--rate", "1GB/s", "--algorithm", "direct", "--show-data"}, "to simulate"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *words[12] = {"collective"};
        for (int w = 0; w < 10; w++)
            words[w + 1] = cases[i].words[w];
        CliRun run = cli_run(NULL, words);
        cli_assert_refused(&run, cases[i].expect, cases[i].expect);
        cli_run_clear(&run);
    }
}

/* Every file of nodes and links by its name alone: all its GPUs take part. */
static void test_shipped_names(void)
{
    static const struct {
        const char *name;
        int ranks;
    } rows[] = {
        {"ccix-pairs", 4}, {"cube-mesh", 8}, {"cxl-2-switch", 8}, {"cxl-3-switch", 8}, {"two-boards", 6}};
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        CliRun run = cli_run(NULL, CLI_WORDS("collective", "--topology", rows[i].name, "--bytes", "1MiB",
                                             "--algorithm", "ring"));
        g_autofree char *over = g_strdup_printf("over %d ranks", rows[i].ranks);
        g_assert_cmpint(run.status, ==, 0);
        g_assert_nonnull(strstr(run.out, over));
        cli_run_clear(&run);
    }
}

/* Links of CXL and CCIX, shipped as files: rings over a switch take 14 (a + S/8B), two shots over pairs 2 (a + S/4B). */
static void test_shipped_links(void)
{
    static const struct {
        const char *file, *ranks, *algorithm;
        double steps, hops, latency_s, part_bytes, bytes_per_s;
    } rows[] = {{"cxl-2-switch", "8", "ring", 14, 2, 70e-9, 8 << 20, 63e9},
                {"cxl-3-switch", "8", "ring", 14, 2, 70e-9, 8 << 20, 121e9},
                {"ccix-pairs", "4", "direct", 2, 1, 150e-9, 16 << 20, 49.2e9}};
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *name = g_strdup_printf("scenarios/topologies/%s.json", rows[i].file),
                        *path = cli_source(name);
        CliRun run = cli_run(NULL, CLI_WORDS("collective", "--ranks", rows[i].ranks, "--bytes", "64MiB",
                                             "--topology", path, "--fidelity", "flow", "--algorithm",
                                             rows[i].algorithm, "--format", "csv"));
        cli_assert_done(&run, rows[i].file);
        g_auto(GStrv) lines = g_strsplit(run.out, "\n", 3);
        g_auto(GStrv) keys = g_strsplit(lines[0], ",", -1), cells = g_strsplit(lines[1], ",", -1);
        int column = 0;
        while (strcmp(keys[column], "seconds") != 0)
            column++;
        const double step_s = rows[i].hops * rows[i].latency_s + rows[i].part_bytes / rows[i].bytes_per_s;
        g_assert_cmpfloat_with_epsilon(g_ascii_strtod(cells[column], NULL), rows[i].steps * step_s, 1e-9);
        cli_run_clear(&run);
    }
}

/* Every link of a step as CSV, and its tiers in the report; a step without a fabric has none. */
static void test_links(void)
{
    g_autofree char *example = cli_source("scenarios/examples/network-two-jobs.json"),
                    *path = g_build_filename(g_get_tmp_dir(), "orrery-links.csv", NULL), *csv = NULL;
    CliRun run = cli_run(NULL, CLI_WORDS("run", example, "--links", path));
    cli_assert_done(&run, "links");
    g_assert_nonnull(strstr(run.out, "leaf-spine     32    32"));
    cli_run_clear(&run);
    g_assert_true(g_file_get_contents(path, &csv, NULL, NULL));
    g_assert_true(g_str_has_prefix(csv, "from,to,bytes_per_s,bytes,busy_frac,tensor_bytes,"));
    g_assert_nonnull(strstr(csv, "\nleaf0,spine"));
    remove(path);
    run = cli_run(NULL, CLI_WORDS("run", example, "--links", path, "--set",
                                  "cluster.network.fidelity=analytic", "--set", "cluster.network.jobs=[]"));
    cli_assert_refused(&run, "links", "cluster.network.fidelity=flow");
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    cli_run_clear(&run);
}

static void test_lists(void)
{
    CliRun run = cli_run(NULL, CLI_WORDS("list", "topologies", "--format", "csv"));
    cli_assert_done(&run, "topologies");
    g_assert_nonnull(strstr(run.out, "dragonfly") != NULL ? strstr(run.out, "cube-mesh") : NULL);
    cli_run_clear(&run);
    run = cli_run(NULL, CLI_WORDS("list", "collectives", "--format", "csv"));
    cli_assert_done(&run, "collectives");
    g_assert_nonnull(strstr(run.out, "double-binary-tree"));
    cli_run_clear(&run);
}

/* Tokens a second and GPU, with a micro-batch that fits. */
static double tensor_rate(const char *tensor, const char *batch, const char *nodes, const char *gpus)
{
    g_autofree char *example = cli_source("scenarios/examples/tensor-over-nodes.json");
    g_autofree char *t = g_strconcat("parallel.tensor=", tensor, NULL);
    g_autofree char *m = g_strconcat("training.micro_batch=", batch, NULL);
    g_autofree char *b = g_strconcat("training.global_batch=", batch, NULL);
    g_autofree char *n = g_strconcat("cluster.nodes=", nodes, NULL);
    g_autofree char *g = g_strconcat("cluster.gpus_per_node=", gpus, NULL);
    CliRun run = cli_run(NULL, CLI_WORDS("run", example, "--set", t, "--set", m, "--set", b, "--set", n,
                                         "--set", g, "--format", "json"));
    OrrJsonDoc *doc = json(&run);
    const double rate = number(doc, "tokens_per_s_per_gpu");
    g_assert_true(orr_json_bool(orr_json_member(orr_json_root(doc), "fits")));
    orr_json_free(doc);
    cli_run_clear(&run);
    return rate;
}

/* What a doubling of tensor ranks loses, beside what [Nanotron] publishes: 5.0, 19.1, 43.4 and 41.4 %. The third, from one
 * node to two, comes out too small (docs/NETWORK.md says by how much); it must at least be the jump that it is. */
static void test_tensor_over_nodes(void)
{
    const double rates[] = {tensor_rate("2", "5", "1", "2"), tensor_rate("4", "14", "1", "4"),
                            tensor_rate("8", "32", "1", "8"), tensor_rate("16", "68", "2", "8"),
                            tensor_rate("32", "140", "4", "8")};
    double loss[4];
    for (int i = 0; i < 4; i++)
        loss[i] = 1 - rates[i + 1] / rates[i];
    g_assert_cmpfloat_with_epsilon(loss[0], 0.050, 0.05);
    g_assert_cmpfloat_with_epsilon(loss[1], 0.191, 0.05);
    g_assert_cmpfloat(loss[2], >, 1.5 * loss[1]);
    g_assert_cmpfloat_with_epsilon(loss[3], 0.414, 0.05);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/collective/vectors", test_vectors);
    g_test_add_func("/cli/collective/library", test_library);
    g_test_add_func("/cli/collective/links", test_links);
    g_test_add_func("/cli/collective/library-choice", test_library_choice);
    g_test_add_func("/cli/collective/flows", test_flows);
    g_test_add_func("/cli/collective/compare", test_compare);
    g_test_add_func("/cli/collective/compare-percentile", test_compare_percentile);
    g_test_add_func("/cli/collective/compare-op", test_compare_op);
    g_test_add_func("/cli/collective/every-op", test_every_op);
    g_test_add_func("/cli/collective/refused", test_refused);
    g_test_add_func("/cli/collective/lists", test_lists);
    g_test_add_func("/cli/collective/shipped-links", test_shipped_links);
    g_test_add_func("/cli/collective/shipped-names", test_shipped_names);
    g_test_add_func("/cli/collective/tensor-over-nodes", test_tensor_over_nodes);
    return g_test_run();
}
