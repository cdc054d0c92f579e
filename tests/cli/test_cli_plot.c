/* tests/cli/test_cli_plot.c - `orrery plot`: pictures drawn, refused, and missing without gnuplot. */
#include <string.h>

#include "base/json.h"
#include "tests/cli/runner.h"

#define EXAMPLE "scenarios/examples/gpt3-175b.json"

/* Those of a campaign, and what a scenario lacks for one. */
static void test_plot_campaign(void)
{
    static const char *const pictures[] = {"goodput", "interval", "interruptions", "spares", "stragglers"};
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (gnuplot == NULL) {
        g_test_skip("gnuplot is not installed");
        return;
    }
    g_autofree char *example = cli_source(EXAMPLE),
                    *pair = cli_source("scenarios/examples/campaign-2x2.json");
    char *folder = cli_scratch_new();
    CliRun run = cli_run(folder, CLI_WORDS("plot", example, "--output", "p", "--set", "jitter=slow-machines",
                                           "--what", "goodput,interval,interruptions,spares,stragglers"));
    cli_assert_done(&run, "plot of a campaign");
    for (gsize i = 0; i < G_N_ELEMENTS(pictures); i++) {
        g_autofree char *name = g_strdup_printf("p/%s.png", pictures[i]);
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_autofree char *bytes = NULL;
        gsize length = 0;
        g_assert_true(g_file_get_contents(path, &bytes, &length, NULL));
        g_assert_cmpuint(length, >, 5000);
    }
    cli_run_clear(&run);
    run = cli_run(folder, CLI_WORDS("plot", example, "--output", "q", "--what", "stragglers"));
    cli_assert_refused(&run, "GPUs all alike", "jitter");
    cli_run_clear(&run);
    run = cli_run(folder, CLI_WORDS("plot", pair, "--output", "q", "--what", "interval"));
    cli_assert_refused(&run, "nothing fails at random", "--what interval");
    cli_run_clear(&run);
    run = cli_run(folder, CLI_WORDS("plot", pair, "--output", "q", "--what", "goodput"));
    cli_assert_refused(&run, "the same on any number of GPUs", "--what goodput");
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

/* Width and height in a PNG's head. */
static guint32 png_size(const char *folder, const char *name, int which)
{
    g_autofree char *path = g_build_filename(folder, name, NULL), *bytes = NULL;
    guint32 size = 0;
    g_assert_true(g_file_get_contents(path, &bytes, NULL, NULL));
    memcpy(&size, bytes + 16 + 4 * which, 4);
    return GUINT32_FROM_BE(size);
}

/* Each picture that --what names beside the usual ones is drawn, and its CSV has these columns. */
static void test_plot_named(void)
{
    static const struct {
        const char *what, *scenario, *columns;
    } rows[] = {
        {"tornado", "gpt3-175b", "row,key,value,step_percent,fits\n"},
        {"roofline", "moe-by-layer",
         "kernel,kind,flops_per_byte,tflop_per_s,share_percent,bound_percent,number\n"},
        {"ranks", "moe-by-layer", "gpu,node,place,pipeline,data,context,tensor,expert,replica,group\n"},
        {"errors", "gpt3-175b", "row,source,run,step,alike\n"}};
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (gnuplot == NULL) {
        g_test_skip("gnuplot is not installed");
        return;
    }
    char *folder = cli_scratch_new();
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        CliRun run =
            cli_run(folder, CLI_WORDS("plot", rows[i].scenario, "--what", rows[i].what, "--output", "p"));
        cli_assert_done(&run, rows[i].what);
        g_autofree char *name = g_strdup_printf("p/%s.csv", rows[i].what),
                        *picture = g_strdup_printf("p/%s.png", rows[i].what),
                        *csv = cli_contents(folder, name);
        g_assert_true(g_str_has_prefix(csv, rows[i].columns));
        g_assert_cmpuint(png_size(folder, picture, 0), ==, 1200);
        cli_run_clear(&run);
    }
    cli_scratch_free(folder);
}

/* Full fine-tuning, LoRA and QLoRA of one scenario: a bar each, weights narrower from one to the next. */
static void test_plot_finetune(void)
{
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (gnuplot == NULL) {
        g_test_skip("gnuplot is not installed");
        return;
    }
    char *folder = cli_scratch_new();
    CliRun run = cli_run(folder, CLI_WORDS("plot", "llama2-70b-qlora", "--set", "model=llama2-7b", "--what",
                                           "finetune", "--output", "p"));
    cli_assert_done(&run, "plot of fine-tuning");
    cli_run_clear(&run);
    g_autofree char *csv = cli_contents(folder, "p/finetune.csv");
    g_auto(GStrv) rows = g_strsplit(csv, "\n", -1);
    static const char *const names[] = {"\"all weights\",", "\"LoRA\",", "\"QLoRA\","};
    double weights = 1e9;
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_assert_true(g_str_has_prefix(rows[i + 1], names[i]));
        const double own = g_ascii_strtod(rows[i + 1] + strlen(names[i]), NULL);
        g_assert_cmpfloat(own, <, weights);
        weights = own;
    }
    cli_scratch_free(folder);
}

/* A loop: a box for every phase that takes time on some GPUs. */
static void test_plot_loop(void)
{
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (gnuplot == NULL) {
        g_test_skip("gnuplot is not installed");
        return;
    }
    char *folder = cli_scratch_new();
    g_autofree char *file = cli_source("scenarios/examples/rl-ppo-llama3-8b-a800.json"),
                    *step = cli_source("scenarios/examples/gpt3-175b.json");
    CliRun drawn = cli_run(folder, CLI_WORDS("plot", file, "--quiet", "--output", "p")),
           run = cli_run(folder, CLI_WORDS("run", file, "--format", "csv"));
    cli_assert_done(&drawn, "plot of a loop");
    g_autofree char *csv = cli_contents(folder, "p/loop.csv");
    g_auto(GStrv) phases = g_strsplit(run.out, "\n", -1);
    int found = 0;
    for (int i = 1; phases[i] != NULL && phases[i][0] != '\0'; i++) {
        g_auto(GStrv) cells = g_strsplit(phases[i], ",", -1); /* name,kind,role,begin_s,seconds,gpus */
        g_autofree char *quoted = g_strdup_printf("\"%s\"", cells[0]);
        if (g_ascii_strtod(cells[4], NULL) <= 0 || g_ascii_strtod(cells[5], NULL) <= 0)
            continue;
        g_assert_nonnull(strstr(csv, quoted));
        found++;
    }
    g_assert_cmpint(found, >=, 4);
    cli_run_clear(&drawn);
    cli_run_clear(&run);
    CliRun none = cli_run(folder, CLI_WORDS("plot", step, "--what", "loop"));
    g_assert_cmpint(none.status, ==, 2);
    g_assert_nonnull(strstr(none.err, "the picture of a workload"));
    cli_run_clear(&none);
    cli_scratch_free(folder);
}

/* A PNG as wide as asked for; an SVG below 1 MB that says what it shows, however deep the pipeline and long the name. */
static void test_plot_sizes(void)
{
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (gnuplot == NULL) {
        g_test_skip("gnuplot is not installed");
        return;
    }
    g_autofree char *long_name = g_strnfill(240, 'x');
    g_autofree char *name = g_strdup_printf("name=A & <B> %s", long_name);
    char *folder = cli_scratch_new();
    CliRun run =
        cli_run(folder, CLI_WORDS("plot", "gpt3-175b", "--output", "p", "--width", "900", "--set", name));
    cli_assert_done(&run, "plot --width");
    for (int i = 0; i < 2; i++) {
        const char *const files[] = {"p/pipeline.png", "p/memory.png"};
        g_assert_cmpuint(png_size(folder, files[i], 0), ==, 900);
        g_assert_cmpuint(png_size(folder, files[i], 1), ==, i == 0 ? 426 : 705); /* 568 and 940 of 1200 */
    }
    cli_run_clear(&run);
    run = cli_run(folder, CLI_WORDS("plot", "gpt3-175b", "--output", "p", "--width", "299"));
    cli_assert_refused(&run, "--width 299", "from 300 to 6000");
    cli_run_clear(&run);
    run = cli_run(folder, CLI_WORDS("plot", "gpt3-175b", "--output", "p", "--width", "900", "--svg"));
    cli_assert_refused(&run, "--width with --svg", "fits any width");
    cli_run_clear(&run);
    run = cli_run(folder,
                  CLI_WORDS("plot", "gpt3-175b", "--output", "d", "--svg", "--set", name, "--set",
                            "model.layers=128", "--set", "parallel.pipeline=64", "--set", "cluster.nodes=64",
                            "--set", "parallel.data=1", "--set", "training.global_batch=512"));
    cli_assert_done(&run, "a deep pipeline");
    for (int i = 0; i < 3; i++) {
        const char *const files[] = {"d/pipeline.svg", "d/memory.svg", "d/waterfall.svg"};
        g_autofree char *svg = cli_contents(folder, files[i]);
        g_assert_cmpuint(strlen(svg), <, 1000000);
        g_assert_nonnull(strstr(svg, "<title>A &amp; &lt;B&gt; xxx"));
        g_assert_null(strstr(svg, "Produced by"));
    }
    g_autofree char *csv = cli_contents(folder, "d/pipeline.csv");
    g_assert_true(g_str_has_prefix(csv, "rank,time,forward,backward,")); /* shares */
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

static void test_plot(void)
{
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (gnuplot == NULL) {
        g_test_skip("gnuplot is not installed");
        return;
    }
    static const char *const pictures[] = {"pipeline.png", "memory.png", "waterfall.png", "sweep.png"};
    g_autofree char *example = cli_source(EXAMPLE);
    char *folder = cli_scratch_new();
    CliRun run =
        cli_run(folder, CLI_WORDS("plot", example, "--output", "p", "--vary", "training.micro_batch=1,2"));
    cli_assert_done(&run, "plot");
    g_autofree char *plots = g_build_filename(folder, "p", NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(pictures); i++) {
        g_assert_nonnull(strstr(run.out, pictures[i]));
        g_autofree char *path = g_build_filename(plots, pictures[i], NULL);
        g_autofree char *bytes = NULL;
        gsize length = 0;
        g_assert_true(g_file_get_contents(path, &bytes, &length, NULL));
        g_assert_cmpuint(length, >, 5000);
        g_assert_true(memcmp(bytes, "\x89PNG", 4) == 0);
    }
    g_assert_cmpint(cli_count_files(plots), ==, 9);
    cli_run_clear(&run);
    run = cli_run(folder, CLI_WORDS("plot", example, "--output", "q", "--vary", "training.micro_batch=1,7"));
    cli_assert_refused(&run, "a value that does not work", "micro_batch");
    cli_run_clear(&run);
    g_assert_cmpint(cli_count_files(folder), ==, 1); /* no folder q */
    run = cli_run(folder, CLI_WORDS("plot", example, "--svg", "--format", "json"));
    cli_assert_done(&run, "plot --svg");
    OrrJsonDoc *doc = cli_parse(run.out, "files");
    g_assert_cmpint(orr_json_count(orr_json_root(doc)), ==, 7);
    orr_json_free(doc);
    g_autofree char *svg = cli_contents(folder, "gpt3-175b-plots/pipeline.svg");
    g_assert_nonnull(strstr(svg, "</svg>"));
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

/* Every fabric is drawn: each of its vertices stands somewhere of its own, and every link joins two of them. */
static void test_plot_fabric(void)
{
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (gnuplot == NULL) {
        g_test_skip("gnuplot is not installed");
        return;
    }
    static const char *const fabrics[][2] = {
        {"nvswitch", NULL}, {"pairs", NULL},    {"pcie-tree", NULL},    {"leaf-spine", NULL},
        {"fat-tree", NULL}, {"rail", NULL},     {"llama3-pods", NULL},  {"dragonfly", NULL},
        {"bcube", "8x8"},   {"torus", "4x4x4"}, {"tpu-cubes", "4x4x4"}, {"mesh-2d", "8x8"},
        {"boards", NULL},
    };
    char *folder = cli_scratch_new();
    for (gsize i = 0; i < G_N_ELEMENTS(fabrics); i++) {
        const char *dims = fabrics[i][1] != NULL ? fabrics[i][1] : "8x8";
        CliRun run =
            cli_run(folder, CLI_WORDS("plot", "--what", "topology", "--cluster", "dgx-h100", "--ranks", "64",
                                      "--topology", fabrics[i][0], "--dims", dims, "--output", "p"));
        cli_assert_done(&run, fabrics[i][0]);
        g_autofree char *vertices = cli_contents(folder, "p/topology-vertices.csv");
        g_auto(GStrv) lines = g_strsplit(g_strchomp(vertices), "\n", -1);
        g_assert_cmpuint(g_strv_length(lines), >=, 65);
        g_autoptr(GHashTable) places = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        for (char **line = lines + 1; *line != NULL; line++) {
            g_auto(GStrv) cells = g_strsplit(*line, ",", -1);
            g_assert_true(g_hash_table_add(places, g_strconcat(cells[1], ",", cells[2], NULL)));
        }
        cli_run_clear(&run);
    }
    CliRun run = cli_run(folder, CLI_WORDS("plot", "--what", "busbw", "--cluster", "aws-p5", "--ranks", "32",
                                           "--bytes", "1MiB..4MiB", "--output", "p"));
    cli_assert_done(&run, "busbw");
    g_autofree char *rates = cli_contents(folder, "p/busbw.csv");
    g_auto(GStrv) lines = g_strsplit(g_strchomp(rates), "\n", -1);
    g_assert_cmpuint(g_strv_length(lines), ==, 1 + 3 * 3); /* 1, 2 and 4 nodes, three sizes */
    cli_run_clear(&run);
    run = cli_run(folder, CLI_WORDS("plot", "--what", "busbw", "--ranks", "8", "--cluster", "dgx-h100",
                                    "--op", "gather"));
    cli_assert_refused(&run, "no collective of NCCL's", "--op gather");
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

static void test_plot_without_gnuplot(void)
{
    char *folder = cli_scratch_new();
    g_autofree char *script =
        g_strdup_printf("\"$1\" plot \"$2\" --output %s/p 2>&1; echo status $?", folder);
    g_autofree char *said = cli_shell(script, folder); /* a PATH with nothing in it */
    g_assert_nonnull(strstr(said, "orrery: gnuplot is not installed"));
    g_assert_true(g_str_has_suffix(said, "status 2\n"));
    g_autofree char *plots = g_build_filename(folder, "p", NULL);
    g_assert_cmpint(cli_count_files(plots), ==, 0);
    cli_scratch_free(folder);
}

/* Days against money where the GPUs have a price, and no such picture where they have none. */
static void test_plan_cost(void)
{
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (gnuplot == NULL) {
        g_test_skip("gnuplot is not installed");
        return;
    }
    char *folder = cli_scratch_new();
    CliRun run = cli_run(folder, CLI_WORDS("plan", "plan-sc21-175b", "--gpus", "512,1024", "--plot", "p",
                                           "--quiet", "--set", "cluster.usd_per_gpu_hour=2"));
    cli_assert_done(&run, "plan --plot");
    g_autofree char *csv = cli_contents(folder, "p/cost.csv");
    g_auto(GStrv) rows = g_strsplit(csv, "\n", -1);
    g_assert_cmpstr(rows[0], ==, "series,name,gpus,money,days,days_low,days_high,answer");
    g_auto(GStrv) cells = g_strsplit(rows[1], ",", -1);
    const double money = g_ascii_strtod(cells[3], NULL) * 1e6, days = g_ascii_strtod(cells[4], NULL);
    g_assert_cmpfloat_with_epsilon(money / (days * 24 * 512 * 2), 1, 1e-4);
    g_assert_cmpfloat(g_ascii_strtod(cells[5], NULL), <, days);
    g_assert_cmpfloat(g_ascii_strtod(cells[6], NULL), >, days);
    g_assert_cmpuint(png_size(folder, "p/cost.png", 0), ==, 1200);
    cli_run_clear(&run);
    run = cli_run(folder, CLI_WORDS("plan", "plan-sc21-175b", "--gpus", "512", "--plot", "q", "--quiet"));
    cli_assert_done(&run, "plan --plot without a price");
    g_autofree char *none = g_build_filename(folder, "q", "cost.png", NULL);
    g_assert_false(g_file_test(none, G_FILE_TEST_EXISTS));
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

/* From A to B: the changes lead from one step to the other. Of jobs: what is held over time is the utilisation that is printed. */
static void test_differences_and_jobs(void)
{
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot"),
                    *four = cli_source("scenarios/traces/four-jobs.json");
    if (gnuplot == NULL) {
        g_test_skip("gnuplot is not installed");
        return;
    }
    char *folder = cli_scratch_new();
    CliRun compare =
        cli_run(folder, CLI_WORDS("compare", "gpt3-175b", "gpt3-175b-interleaved", "--quick", "--plot", "p"));
    cli_assert_done(&compare, "compare --plot");
    g_autofree char *changes = cli_contents(folder, "p/difference.csv");
    g_auto(GStrv) rows = g_strsplit(changes, "\n", -1);
    double level = 0, last = 0;
    for (int i = 1; rows[i] != NULL && rows[i][0] != '\0'; i++) {
        g_auto(GStrv) cells = g_strsplit(rows[i], ",", -1);
        const double low = g_ascii_strtod(cells[1], NULL), high = g_ascii_strtod(cells[2], NULL);
        const bool more = strcmp(cells[3], "more") == 0, less = strcmp(cells[3], "less") == 0;
        if (more || less)
            g_assert_cmpfloat_with_epsilon(more ? low : high, level, 1e-3);
        level = more || i == 1 ? high : less ? low : level;
        last = high;
    }
    g_assert_cmpfloat_with_epsilon(level, last, 0.01 * last);
    g_assert_cmpuint(png_size(folder, "p/difference.png", 0), ==, 1200);
    CliRun jobs = cli_run(folder, CLI_WORDS("jobs", four, "--plot", "p"));
    cli_assert_done(&jobs, "jobs --plot");
    g_autofree char *held = cli_contents(folder, "p/occupation.csv");
    g_assert_true(g_str_has_prefix(held, "policy,hours,busy_percent,waiting\n0,"));
    g_assert_cmpuint(png_size(folder, "p/occupation.png", 0), ==, 1200);
    CliRun none = cli_run(folder, CLI_WORDS("plot", "gpt3-175b", "--what", "traffic")),
           links =
               cli_run(folder, CLI_WORDS("plot", "network-half-link", "--what", "traffic", "--output", "p"));
    cli_assert_refused(&none, "traffic without a fabric", "cluster.network.fidelity=flow");
    CliRun svg = cli_run(folder, CLI_WORDS("jobs", four, "--svg")),
           bare = cli_run(folder, CLI_WORDS("compare", "gpt3-175b", "gpt3-175b-interleaved", "--svg"));
    cli_assert_refused(&svg, "jobs --svg without --plot", "goes with --plot");
    cli_assert_refused(&bare, "compare --svg without --plot", "goes with --plot");
    cli_run_clear(&svg);
    cli_run_clear(&bare);
    CliRun plan = cli_run(folder, CLI_WORDS("plan", "gpt3-175b", "--gpus", "512", "--svg"));
    cli_assert_refused(&plan, "plan --svg without --plot", "goes with --plot");
    cli_run_clear(&plan);
    cli_assert_done(&links, "plot --what traffic");
    g_autofree char *carried = cli_contents(folder, "p/traffic.csv"),
                    *tiers = cli_contents(folder, "p/traffic-tiers.csv");
    g_assert_true(g_str_has_prefix(carried, "row,tier,dimension,colour,from,to\n0,"));
    g_assert_true(g_str_has_prefix(tiers, "row,tier,links,used,busy_percent,busiest_percent\n0,"));
    cli_run_clear(&none);
    cli_run_clear(&links);
    cli_run_clear(&compare);
    cli_run_clear(&jobs);
    cli_scratch_free(folder);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/plot/finetune", test_plot_finetune);
    g_test_add_func("/cli/plot/loop", test_plot_loop);
    g_test_add_func("/cli/plot", test_plot);
    g_test_add_func("/cli/plot-differences-and-jobs", test_differences_and_jobs);
    g_test_add_func("/cli/plot-sizes", test_plot_sizes);
    g_test_add_func("/cli/plot-named", test_plot_named);
    g_test_add_func("/cli/plan-cost", test_plan_cost);
    g_test_add_func("/cli/plot-campaign", test_plot_campaign);
    g_test_add_func("/cli/plot-fabric", test_plot_fabric);
    g_test_add_func("/cli/plot-without-gnuplot", test_plot_without_gnuplot);
    return g_test_run();
}
