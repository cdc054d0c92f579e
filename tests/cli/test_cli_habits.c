/* tests/cli/test_cli_habits.c - what people and scripts expect of a program: standard input, widths, words, compressed
 * files; and what hostile or careless input meets. */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cli/runner.h"

#define EXAMPLE "scenarios/examples/gpt3-175b.json"

/* A shell line with $B (the program) and $F (an example). */
static CliRun shell(const char *folder, const char *line)
{
    g_autofree char *path = cli_source(EXAMPLE);
    g_autofree char *whole = g_strdup_printf("B='%s'; F='%s'; %s", g_getenv("ORRERY_BINARY"), path, line);
    const char *argv[] = {"/bin/sh", "-c", whole, NULL};
    CliRun run = {.status = -1};
    int status = 0;
    GError *error = NULL;
    g_spawn_sync(folder, (char **)(gpointer)argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &run.out, &run.err,
                 &status, &error);
    g_assert_no_error(error);
    run.out_length = strlen(run.out);
    run.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return run;
}

/* --- standard input --- */

static void test_standard_input(void)
{
    static const char *const lines[] = {
        "cat $F | $B run - --format csv",
        "$B run - --format csv < $F",
        "cat $F | $B run - --format csv --output -",
    };
    char *folder = cli_scratch_new();
    CliRun plain = shell(folder, "$B run $F --format csv");
    for (gsize i = 0; i < G_N_ELEMENTS(lines); i++) {
        CliRun run = shell(folder, lines[i]);
        cli_assert_done(&run, lines[i]);
        g_assert_cmpstr(run.out, ==, plain.out);
        cli_run_clear(&run);
    }
    static const char *const others[] = {
        "cat $F | $B sweep - --vary training.micro_batch=1,2 --format csv", /* reads it again for each row */
        "cat $F | $B compare - $F",
        "cat $F | $B sweep /dev/fd/0 --vary training.micro_batch=1,2 --format csv", /* as <(...) has it */
        "cat $F | $B explain -",
        "cat $F | $B plan - --gpus 1024",
        "cat $F | $B search - --set training.recompute=auto --save - --output table | $B run -",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++) {
        CliRun run = shell(folder, others[i]);
        cli_assert_done(&run, others[i]);
        g_assert_cmpuint(run.out_length, >, 100);
        cli_run_clear(&run);
    }
    CliRun wrong = shell(folder, "echo '{' | $B run -");
    cli_assert_refused(&wrong, "not JSON", "standard input");
    cli_run_clear(&wrong);
    cli_run_clear(&plain);
    cli_scratch_free(folder);
}

/* Threads of some C libraries have 128 KiB of stack, and containers may limit it. */
static void test_little_stack(void)
{
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__)
    g_test_skip("frames are larger in this build");
#else
    static const char *const words[] = {"run $F", "explain $F", "plan $F --gpus 1024",
                                        "search $F --set training.micro_batch=auto"};
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autofree char *line = g_strconcat("ulimit -s 64; $B ", words[i], NULL);
        CliRun run = shell(NULL, line);
        cli_assert_done(&run, line);
        cli_run_clear(&run);
    }
#endif
}

/* --- pipes --- */

static void test_pipes(void)
{
    char *folder = cli_scratch_new();
    CliRun plain = shell(folder, "$B run $F --format csv");
    static const char *const done[] = {
        "mkfifo a && { cat $F > a & } ; timeout 60 $B run a --format csv",
        "mkfifo b && { sleep 1; cat $F > b; } & sleep .2; timeout 60 $B run b --format csv",
        "exec 3<&1; cat $F | timeout 60 $B run /dev/fd/0 --format csv",
        "{ head -c 100 $F; sleep 6; tail -c +101 $F; } | timeout 60 $B run /dev/fd/0 --format csv",
        "mkfifo c && { cat c & } ; timeout 60 $B run $F --format csv --output c; wait",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(done); i++) {
        CliRun run = shell(folder, done[i]);
        cli_assert_done(&run, done[i]);
        g_assert_cmpstr(run.out, ==, plain.out);
        cli_run_clear(&run);
    }
    static const char *const refused[][2] = {
        {"mkfifo d; timeout 60 $B run d", "no program opened for writing within 5 s"},
        {"mkfifo e; timeout 60 $B import e", "no program opened for writing within 5 s"},
        {"mkfifo f; timeout 60 $B run $F --output f", "no program opened for reading within 5 s"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(refused); i++) {
        CliRun run = shell(folder, refused[i][0]);
        cli_assert_refused(&run, refused[i][0], refused[i][1]);
        cli_run_clear(&run);
    }
    cli_run_clear(&plain);
    cli_scratch_free(folder);
}

/* --- width --- */

/* Longest line that the program, called with `words` (the first is its name), writes to a terminal of so many columns. */
static int longest_on_terminal(unsigned short columns, const char *const *words)
{
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    const struct winsize size = {.ws_row = 40, .ws_col = columns};
    g_assert_cmpint(master, >=, 0);
    g_assert_cmpint(grantpt(master) | unlockpt(master), ==, 0);
    const int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    g_assert_cmpint(slave, >=, 0);
    g_assert_cmpint(ioctl(slave, TIOCSWINSZ, &size), ==, 0);
    const pid_t child = fork();
    if (child == 0) {
        unsetenv("COLUMNS");
        dup2(slave, STDOUT_FILENO);
        execv(g_getenv("ORRERY_BINARY"), (char *const *)words);
        _exit(127);
    }
    close(slave);
    g_autoptr(GString) out = g_string_new(NULL);
    char chunk[4096];
    for (ssize_t got = read(master, chunk, sizeof chunk); got > 0; got = read(master, chunk, sizeof chunk))
        g_string_append_len(out, chunk, got);
    int status = 0;
    waitpid(child, &status, 0);
    g_assert_cmpint(status, ==, 0);
    close(master);
    g_auto(GStrv) lines = g_strsplit(out->str, "\n", -1);
    int longest = 0;
    for (char **line = lines; *line != NULL; line++)
        longest = MAX(longest, (int)g_utf8_strlen(g_strchomp(*line), -1));
    return longest;
}

static void test_width(void)
{
    char *folder = cli_scratch_new();
    g_autofree char *path = cli_source(EXAMPLE),
                    *data = cli_source("scenarios/measurements/llama3_table4.json"),
                    *servers = cli_source("scenarios/examples/ps_naive.json"),
                    *network = cli_source("scenarios/examples/network-neighbour.json"),
                    *mixed = cli_source("scenarios/examples/mixed-llama3-8b.json");
    const char *const *pages[] = {
        CLI_WORDS("orrery", "run", path, "--verbose"),
        CLI_WORDS("orrery", "explain", path),
        CLI_WORDS("orrery", "plan", path, "--gpus", "512,1024", "--set", "cluster.usd_per_gpu_hour=2",
                  "--quiet"),
        CLI_WORDS("orrery", "compare", path, path),
        CLI_WORDS("orrery", "sweep", path, "--vary", "training.micro_batch=1,7", "--quiet"),
        CLI_WORDS("orrery", "search", path, "--set", "training.recompute=auto", "--quiet"),
        CLI_WORDS("orrery", "collective", "--ranks", "64", "--bytes", "1MiB,1GiB", "--cluster", "dgx-h100"),
        CLI_WORDS("orrery", "collective", "--ranks", "64", "--cluster", "dgx-h100"),
        CLI_WORDS("orrery", "collective", "--ranks", "4", "--rate", "50GB/s", "--latency", "5us",
                  "--show-data", "--algorithm", "ring"),
        CLI_WORDS("orrery", "run", servers, "--quiet"),
        CLI_WORDS("orrery", "run", network, "--quiet"),
        CLI_WORDS("orrery", "run", mixed, "--quiet"),
        CLI_WORDS("orrery", "list", "models"),
        CLI_WORDS("orrery", "list", "schedules"),
        CLI_WORDS("orrery", "validate", data, "--rows", "--quiet"),
        CLI_WORDS("orrery", "jobs", "--seed", "2", "--count", "30"),
    };
    static const unsigned short widths[] = {40, 50, 60, 80, 88};
    for (gsize i = 0; i < G_N_ELEMENTS(pages); i++)
        for (gsize w = 0; w < G_N_ELEMENTS(widths); w++) {
            const int longest = longest_on_terminal(widths[w], pages[i]);
            if (longest > widths[w])
                g_error("%s on %d columns: a line of %d", pages[i][1], widths[w], longest);
        }
    const int wide = longest_on_terminal(130, pages[0]);
    g_assert_cmpint(wide, >, 100);
    g_assert_cmpint(wide, <=, 130);
    CliRun pipe = shell(folder, "COLUMNS=60 $B run $F --verbose");
    int longest = 0;
    g_auto(GStrv) lines = g_strsplit(pipe.out, "\n", -1);
    for (char **line = lines; *line != NULL; line++)
        longest = MAX(longest, (int)g_utf8_strlen(*line, -1));
    g_assert_cmpint(longest, >, 90); /* a pipe has no width: 100, whatever the terminal around it */
    g_assert_cmpint(longest, <=, 100);
    cli_run_clear(&pipe);
    cli_scratch_free(folder);
}

/* --- words --- */

static void test_defaulted_is_a_count(void)
{
    g_autofree char *path = cli_source(EXAMPLE);
    CliRun brief = cli_run(NULL, CLI_WORDS("run", path)),
           whole = cli_run(NULL, CLI_WORDS("run", path, "--verbose"));
    g_assert_nonnull(strstr(brief.out, " fields (--verbose lists them)"));
    g_assert_null(strstr(brief.out, "tensor_scheme=1d"));
    g_assert_nonnull(strstr(whole.out, "tensor_scheme=1d"));
    cli_run_clear(&brief);
    cli_run_clear(&whole);
}

static void test_glossary(void)
{
    static const struct {
        const char *word, *expect;
    } rows[] = {{"mfu", "FLOPs that the model needs"},
                {"MFU", "dense peak"},
                {"zero bubble", "weights' gradients"},
                {"vpp", "chunks"},
                {"reduce-scatter", "the sum"},
                {"parallel.zero", "ZeRO stage"},
                {"zero", "Data-parallel ranks share"},
                {"lora", "low-rank"},
                {"sft", "all of them"},
                {"finetune", "low-rank"},
                {"cite", "CITATION.cff"},
                {"power", "kWh"},
                {"energy", "kWh"},
                {"MW", "PUE"},
                {"trace", "perfetto"},
                {"textbook", "--textbook"},
                {"gavel", "of Gavel, Lucid"},
                {"sia", "Pollux"},
                {"gandiva-fair", "Gandiva_fair"},
                {"deepspeed-autotuning", "autotuning tries"},
                {"torchdynamo", "Triton"},
                {"spot", "faults.spot_mtbf_s"}};
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        CliRun run = cli_run(NULL, CLI_WORDS("help", rows[i].word));
        cli_assert_done(&run, rows[i].word);
        g_assert_nonnull(strstr(run.out, rows[i].expect));
        cli_run_clear(&run);
    }
    CliRun page = cli_run(NULL, CLI_WORDS("help", "--glossary")),
           wrong = cli_run(NULL, CLI_WORDS("help", "bubbel"));
    int words = 0;
    for (const char *at = strstr(page.out, "\n**"); at != NULL; at = strstr(at + 1, "\n**"))
        words++;
    g_assert_cmpint(words, >=, 50);
    cli_assert_refused(&wrong, "bubbel", "did you mean bubble?");
    /* Every field that a word points at is one. */
    g_auto(GStrv) parts = g_strsplit(page.out, "Set by\n", -1);
    g_assert_nonnull(parts);
    for (const char *at = strstr(page.out, "Set by `"); at != NULL; at = strstr(at + 1, "Set by `")) {
        const char *key = at + strlen("Set by `");
        g_autofree char *name = g_strndup(key, strcspn(key, "`"));
        CliRun run = cli_run(NULL, CLI_WORDS("help", name));
        cli_assert_done(&run, name);
        cli_run_clear(&run);
    }
    cli_run_clear(&page);
    cli_run_clear(&wrong);
}

/* The same names everywhere. */
static void test_same_keys(void)
{
    static const char *const keys[] = {"\"days\": ", "\"gpu_hours\": ", "\"usd\": ", "\"kwh\": "};
    static const char *const lines[] = {
        "$B run $F --set training.tokens=1e11 --set cluster.usd_per_gpu_hour=2 --format json",
        "$B plan $F --set training.tokens=1e11 --set cluster.usd_per_gpu_hour=2 --gpus 1024 --format json",
        "$B search $F --set training.tokens=1e11 --set cluster.usd_per_gpu_hour=2 --set "
        "training.recompute=auto "
        "--format json"};
    for (gsize i = 0; i < G_N_ELEMENTS(lines); i++) {
        CliRun run = shell(NULL, lines[i]);
        cli_assert_done(&run, lines[i]);
        for (gsize k = 0; k < G_N_ELEMENTS(keys); k++) {
            g_autofree char *at_top = g_strdup_printf("\n%*s%s", i == 0 ? 2 : 6, "", keys[k]);
            g_assert_nonnull(strstr(run.out, at_top));
        }
        cli_run_clear(&run);
    }
}

/* Parts that cancel out are told in factors. */
static void test_compare_factors(void)
{
    CliRun run = shell(NULL, "$B compare $F $F --set parallel.zero=1 --quick");
    cli_assert_done(&run, "same");
    cli_run_clear(&run);
    g_autofree char *a = cli_source(EXAMPLE),
                    *b = cli_source("scenarios/examples/gpt3-175b-interleaved.json");
    run = cli_run(NULL, CLI_WORDS("compare", a, b, "--quick"));
    cli_assert_done(&run, "two");
    for (const char *at = strstr(run.out, " %"); at != NULL; at = strstr(at + 1, " %")) {
        const char *start = at;
        while (start > run.out && (g_ascii_isdigit(start[-1]) || start[-1] == '.'))
            start--;
        g_assert_cmpfloat(g_ascii_strtod(start, NULL), <, 200);
    }
    cli_run_clear(&run);
}

static void test_gzip(void)
{
    char *folder = cli_scratch_new();
    CliRun run = shell(
        folder, "$B run $F --trace t.json --quiet > /dev/null && $B run $F --trace t.json.gz > /dev/null; "
                "gzip -dc t.json.gz | cmp - t.json && wc -c < t.json.gz");
    if (strstr(run.err, "no zlib") != NULL) {
        g_test_skip("built without zlib");
    } else {
        cli_assert_done(&run, "gzip");
        g_assert_cmpint(atoi(run.out), >, 100);
    }
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

/* --- hostile and careless --- */

#define TINY                                                                                                 \
    "\"training\":{\"sequence_length\":1024,\"global_batch\":64},\"cluster\":{\"preset\":\"dgx-h100\","      \
    "\"nodes\":1}"

static void test_refused(void)
{
    static const struct {
        const char *line, *expect;
    } rows[] = {
        {"$B run $F --set cluster.accelerator.peak_flops_per_s.bf16=312", "did you mean 312 TFLOP/s?"},
        {"$B run $F --set cluster.accelerator.memory_bytes_per_s=2039", "did you mean 2039 GB/s?"},
        {"$B run $F --set cluster.scale_out_bytes_per_s_per_gpu=25", "did you mean 25 GB/s?"},
        {"$B run $F --set cluster.scale_up_bytes_per_s=900", "did you mean 900 GB/s?"},
        {"$B run $F --set cluster.accelerator.memory_bytes=80", "did you mean 80 GB?"},
        {"$B run $F --set cluster.accelerator.host_link_bytes_per_s=64", "did you mean 64 GB/s?"},
        {"$B run $F --set cluster.collectives.offset_s=1e-6", "cluster.collectives.fitted is 0"},
        {"$B run $F --set cluster.nodes=8 --set parallel.data=1 --set training.global_batch=1000000000",
         "passes"},
        {"$B search $F --set training.recompute=auto --set cluster.nodes=8 --set parallel.data=1 --set "
         "training.global_batch=1000000000 --top 1",
         "training.global_batch"},
        {"$B sweep $F --vary parallel.tensor=1,2 --vary parallel.tensor=4,8", "overlaps"},
        {"$B sweep $F --vary parallel.tensor=1,2 --vary 'parallel={\"tensor\":4}'", "overlaps"},
        {"cp $F own.json && $B run own.json --output own.json", "is the input"},
        {"cp $F own.json && ln -s own.json other.json && $B run own.json --trace other.json", "is the input"},
        {"$B plan $F --gpus 64 --batch-range 5..2", "--batch-range"},
        {"$B plan $F --gpus 64 --memory-reserve much", "--memory-reserve"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        char *folder = cli_scratch_new();
        CliRun run = shell(folder, rows[i].line);
        cli_assert_refused(&run, rows[i].line, rows[i].expect);
        cli_run_clear(&run);
        cli_scratch_free(folder);
    }
}

/* A peak that the kernels do not know makes no report with more than the peak. */
static void test_mfu_over_one(void)
{
    char *folder = cli_scratch_new();
    CliRun run =
        shell(folder, "echo '{\"model\":{\"layers\":8,\"hidden\":4096,\"heads\":32,\"vocab\":32000}," TINY
                      "}' > s.json; "
                      "$B run s.json --check --set cluster.accelerator.peak_flops_per_s.fp32=1e9 --set "
                      "cluster.accelerator.peak_flops_per_s.bf16=1e9");
    g_assert_true(run.status == 2 || strstr(run.out, "MFU") != NULL);
    for (const char *at = strstr(run.out, "MFU "); at != NULL; at = strstr(at + 1, "MFU "))
        g_assert_cmpfloat(g_ascii_strtod(at + 4, NULL), <=, 100);
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

static void test_names(void)
{
    char *folder = cli_scratch_new();
    CliRun run =
        shell(folder, "printf '{\"name\":\"a\\\\u001b[31mred\\\\u009b1m\",\"model\":\"gpt2-xl\"," TINY
                      "}' > e.json; $B compare e.json $F --quick; $B sweep e.json --vary "
                      "'training.micro_batch=1,2'; $B search e.json --set training.recompute=auto");
    g_assert_null(strchr(run.out, '\033'));
    g_assert_null(strstr(run.out, "\xc2\x9b"));
    g_assert_null(strchr(run.err, '\033'));
    cli_run_clear(&run);
    run = shell(folder, "printf '{\"name\":\"'\"'\"'quoted'\"'\"' title\",\"model\":\"gpt2-xl\"," TINY
                        "}' > q.json; $B plot q.json --output pictures --quiet");
    if (strstr(run.err, "gnuplot is not installed") == NULL)
        g_assert_cmpint(run.status, ==, 0);
    cli_run_clear(&run);
    run = shell(folder, "rm -rf pictures");
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

/* A signal while gnuplot draws ends both and leaves no temporary folder, also where the command holds Ctrl-C back. */
static void test_signal_while_plotting(void)
{
    static const struct {
        const char *signal, *command;
        int status;
    } rows[] = {{"TERM", "plot $F --output p", 143},          {"ALRM", "plot $F --output p", 142},
                {"USR1", "plot $F --output p", 138},          {"USR2", "plot $F --output p", 140},
                {"XCPU", "plot $F --output p", 152},          {"INT", "plan $F --gpus 1024 --plot p", 130},
                {"XCPU", "plan $F --gpus 1024 --plot p", 152}};
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        char *folder = cli_scratch_new();
        g_autofree char *ended = g_strdup_printf("ended %d\n0\ndrawing 0\n", rows[i].status);
        g_autofree char *line = g_strdup_printf(
            "ulimit -c 0; mkdir bin tmp; printf '#!/bin/sh\\necho $$ > number; mv number started\\nexec "
            "sleep "
            "60\\n' > bin/gnuplot; chmod +x bin/gnuplot; PATH=$PWD/bin:$PATH TMPDIR=$PWD/tmp "
            "env --default-signal=INT $B %s --quiet & child=$!; i=0; "
            "while [ ! -e started ] && [ $i -lt 400 ]; do sleep 0.05; i=$((i+1)); done; kill -%s $child; "
            "wait $child; echo ended $?; ls tmp | wc -l; kill -0 $(cat started) 2>/dev/null; "
            "echo drawing $((1 - $?)); rm -rf bin tmp p started",
            rows[i].command, rows[i].signal);
        CliRun run = shell(folder, line);
        g_assert_nonnull(strstr(run.out, ended));
        cli_run_clear(&run);
        cli_scratch_free(folder);
    }
}

/* What a killed process left goes at the next plot: old, its process gone. All else stays. */
static void test_stale_scratches(void)
{
    char *folder = cli_scratch_new();
    CliRun run = shell(
        folder,
        "mkdir tmp tmp/orrery-plot-2000000000-gone tmp/orrery-plot-2000000000-new tmp/orrery-plot-$$-lives "
        "tmp/orrery-plot-words; touch tmp/orrery-plot-2000000000-gone/data.csv; "
        "touch -d '2 hours ago' tmp/orrery-plot-2000000000-gone tmp/orrery-plot-$$-lives "
        "tmp/orrery-plot-words; "
        "TMPDIR=$PWD/tmp $B plot $F --output p --quiet > list; ls tmp | sed s/$$/NUMBER/ | sort; rm -r tmp p "
        "list");
    g_assert_cmpstr(run.out, ==, "orrery-plot-2000000000-new\norrery-plot-NUMBER-lives\norrery-plot-words\n");
    cli_run_clear(&run);
    cli_scratch_free(folder);
}

/* CITATION.cff names the version that the program has. */
static void test_citation(void)
{
    g_autofree char *path = cli_source("CITATION.cff"), *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    CliRun run = cli_run(NULL, CLI_WORDS("--version"));
    const char *version = strrchr(g_strstrip(run.out), ' ');
    g_assert_nonnull(version);
    g_autofree char *line = g_strconcat("\nversion:", version, "\n", NULL);
    g_assert_nonnull(strstr(text, line));
    cli_run_clear(&run);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/habits/standard-input", test_standard_input);
    g_test_add_func("/habits/pipes", test_pipes);
    g_test_add_func("/habits/little-stack", test_little_stack);
    g_test_add_func("/habits/width", test_width);
    g_test_add_func("/habits/defaulted-is-a-count", test_defaulted_is_a_count);
    g_test_add_func("/habits/glossary", test_glossary);
    g_test_add_func("/habits/citation", test_citation);
    g_test_add_func("/habits/same-keys", test_same_keys);
    g_test_add_func("/habits/compare-factors", test_compare_factors);
    g_test_add_func("/habits/gzip", test_gzip);
    g_test_add_func("/hostile/refused", test_refused);
    g_test_add_func("/hostile/mfu-over-one", test_mfu_over_one);
    g_test_add_func("/hostile/names", test_names);
    g_test_add_func("/hostile/signal-while-plotting", test_signal_while_plotting);
    g_test_add_func("/hostile/stale-scratches", test_stale_scratches);
    return g_test_run();
}
