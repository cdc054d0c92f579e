/* tests/cli/test_cli_hostile.c - every command against files that are none, flags that say nothing and places that take
 * nothing: exit 2 and one sentence, nothing written. */
#include <string.h>

#include "tests/cli/runner.h"

/* Commands with "@" for the bad file. */
static const char *const commands[][7] = {
    {"run", "@"},
    {"search", "@", "--max-seconds", "1"},
    {"plan", "@"},
    {"explain", "@"},
    {"compare", "@", "good.json"},
    {"compare", "good.json", "@"},
    {"sweep", "@", "--vary", "training.global_batch=8,16"},
    {"validate", "@"},
    {"report", "@", "--output", "page.html"},
    {"plot", "@", "--output", "plots"},
    {"campaign", "@"},
    {"jobs", "@"},
    {"collective", "--cluster", "dgx-h100", "--compare", "@"},
    {"import", "@"},
    {"import", "@", "--from", "megatron-bridge"},
    {"export", "@", "--to", "megatron"},
    {"calibrate", "fit", "@", "--accelerator", "h100-sxm5-80gb"},
    {"calibrate", "check", "@"},
};

typedef struct BadFile {
    const char *name, *text;
    gssize length; /* -1: to its end */
} BadFile;

static const BadFile files[] = {
    {"empty", "", 0},
    {"spaces", " \n\t ", -1},
    {"zero", "{\"model\":\"gpt2-xl\0\"}", 19},
    {"mark", "\xef\xbb\xbf{\"model\":\"gpt2-xl\"}", -1},
    {"utf16", "\xff\xfe{\0}\0", 6},
    {"utf16-big", "\xfe\xff\0{\0}", 6},
    {"latin", "{\"name\":\"caf\xe9\",\"model\":\"gpt2-xl\"}", -1},
    {"list", "[]", -1},
    {"null", "null", -1},
    {"text", "\"x\"", -1},
    {"large", "1e999", -1},
    {"nan", "{\"model\":NaN}", -1},
    {"cut", "{\"model\":\"gpt2", -1},
    {"twice", "{\"model\":\"gpt2-xl\",\"model\":\"gpt2-xl\"}", -1},
    {"behind", "{\"model\":\"gpt2-xl\"}x", -1},
    {"comma", "{\"model\":\"gpt2-xl\",}", -1},
    {"nothing", "{}", -1},
    {"escape", "{\"model\":\"\x1b[31mred\"}", -1},
    {"number", "{\"model\":3,\"cluster\":[],\"training\":\"\"}", -1},
    {"packed", "\x1f\x8b\x08\0abc", 7},
};

/* A line for people, one more for each further mistake, and nothing else. */
static void assert_sentence(const CliRun *run, const char *name)
{
    const char *end = strchr(run->err, '\n');
    while (end != NULL && g_str_has_prefix(end, "\n  and "))
        end = strchr(end + 1, '\n');
    if (run->status != 2 || run->out[0] != '\0' || !g_str_has_prefix(run->err, "orrery: ") || end == NULL ||
        end[1] != '\0' || strchr(run->err, '\x1b') != NULL)
        g_test_message("%s: exit %d: %s%s", name, run->status, run->out, run->err);
    g_assert_cmpint(run->status, ==, 2);
    g_assert_cmpstr(run->out, ==, "");
    g_assert_true(g_str_has_prefix(run->err, "orrery: "));
    g_assert_nonnull(end);
    g_assert_cmpint(end[1], ==, '\0');
    g_assert_null(strchr(run->err, '\x1b'));
}

static char *good_folder(void)
{
    char *folder = cli_scratch_new();
    g_autofree char *source = cli_source("scenarios/examples/gpt2-xl-1gpu.json"),
                    *path = g_build_filename(folder, "good.json", NULL), *text = NULL;
    gsize length = 0;
    g_assert_true(g_file_get_contents(source, &text, &length, NULL));
    g_assert_true(g_file_set_contents(path, text, (gssize)length, NULL));
    return folder;
}

static void run_command(const char *folder, const char *const *command, const char *file)
{
    const char *words[8] = {NULL};
    for (int i = 0; i < 7 && command[i] != NULL; i++)
        words[i] = strcmp(command[i], "@") == 0 ? file : command[i];
    CliRun run = cli_run(folder, words);
    g_autofree char *name = g_strdup_printf("%s %s", command[0], file);
    assert_sentence(&run, name);
    cli_run_clear(&run);
}

static void test_files(void)
{
    char *folder = good_folder();
    g_autofree char *deep = g_strnfill(100000, '['), *inside = g_build_filename(folder, "inside", NULL);
    int runs = 0;
    for (gsize c = 0; c < G_N_ELEMENTS(commands); c++) {
        for (gsize f = 0; f <= G_N_ELEMENTS(files); f++, runs++) {
            const bool last = f == G_N_ELEMENTS(files);
            g_autofree char *path = g_build_filename(folder, "bad.json", NULL);
            g_assert_true(
                g_file_set_contents(path, last ? deep : files[f].text, last ? -1 : files[f].length, NULL));
            if (!last)
                g_test_message("%s", files[f].name);
            run_command(folder, commands[c], "bad.json");
        }
        run_command(folder, commands[c], "no-such.json");
        run_command(folder, commands[c], ".");
        run_command(folder, commands[c], "/dev/null");
        g_assert_cmpint(cli_count_files(folder), ==, 2);
    }
    g_test_message("%d runs", runs);
    cli_scratch_free(folder);
}

/* Values of flags that take another. */
static void test_flags(void)
{
    static const char *const asked[][5] = {
        {"run", "good.json", "--memory-reserve"},
        {"run", "good.json", "--set"},
        {"run", "good.json", "--format"},
        {"run", "good.json", "--own-runs"},
        {"search", "good.json", "--max-seconds"},
        {"search", "good.json", "--top"},
        {"search", "good.json", "--jobs"},
        {"sweep", "good.json", "--vary"},
        {"compare", "good.json", "good.json", "--set"},
        {"explain", "good.json", "--set"},
        {"export", "good.json", "--to"},
        {"import", "good.json", "--from"},
        {"campaign", "good.json", "--replicas"},
        {"list", "models", "--format"},
    };
    static const char *const values[] = {"",    "-1",      "nan",   "inf",     "1e400",
                                         "abc", "..",      "1:2:3", "{\"a\":", "%s%s%n",
                                         "--x", "\x1b[1m", "a,,b",  "5 moon",  "9999999999999999999999999"};
    char *folder = good_folder();
    for (gsize a = 0; a < G_N_ELEMENTS(asked); a++) {
        for (gsize v = 0; v < G_N_ELEMENTS(values); v++) {
            const char *words[7] = {NULL};
            int count = 0;
            while (count < 5 && asked[a][count] != NULL) {
                words[count] = asked[a][count];
                count++;
            }
            words[count] = values[v];
            CliRun run = cli_run(folder, words);
            g_autofree char *name = g_strdup_printf("%s %s %s", words[0], words[count - 1], values[v]);
            assert_sentence(&run, name);
            cli_run_clear(&run);
        }
    }
    g_assert_cmpint(cli_count_files(folder), ==, 1);
    cli_scratch_free(folder);
}

/* What takes nothing: full devices, folders, folders that are not there, the input itself. */
static void test_places(void)
{
    static const char *const places[] = {"/dev/full", ".", "/no/such/folder/file", "good.json"};
    static const char *const asked[][4] = {{"run", "good.json"},
                                           {"explain", "good.json"},
                                           {"export", "good.json", "--to", "megatron"},
                                           {"report", "good.json"},
                                           {"compare", "good.json", "good.json"},
                                           {"campaign", "good.json"}};
    char *folder = good_folder();
    for (gsize a = 0; a < G_N_ELEMENTS(asked); a++) {
        for (gsize p = 0; p < G_N_ELEMENTS(places); p++) {
            const char *words[7] = {NULL};
            int count = 0;
            while (count < 4 && asked[a][count] != NULL) {
                words[count] = asked[a][count];
                count++;
            }
            words[count] = "--output";
            words[count + 1] = places[p];
            CliRun run = cli_run(folder, words);
            g_assert_cmpint(run.status, ==, 2);
            g_assert_nonnull(strstr(run.err, "orrery: "));
            cli_run_clear(&run);
        }
    }
    g_assert_cmpint(cli_count_files(folder), ==, 1);
    cli_scratch_free(folder);
}

/* Keys that fit no row are said, not skipped row by row; files of another kind are called by what they are. */
static void test_said(void)
{
    g_autofree char *rows = cli_source("scenarios/measurements/nanotron_playbook.json");
    char *folder = good_folder();
    g_autofree char *path = g_build_filename(folder, "bad.json", NULL);
    CliRun misspelt = cli_run(folder, CLI_WORDS("validate", rows, "--set", "parallel.tensr=1"));
    cli_assert_refused(&misspelt, "misspelt", "no row can be replayed with it");
    cli_run_clear(&misspelt);
    g_assert_true(g_file_set_contents(path, "\xff\xfe{\0}\0", 6, NULL));
    CliRun wide = cli_run(folder, CLI_WORDS("import", "bad.json"));
    cli_assert_refused(&wide, "UTF-16", "UTF-16 text; save the file as UTF-8");
    cli_run_clear(&wide);
    CliRun number = cli_run(folder, CLI_WORDS("run", "good.json", "--set", "cluster.accelerator=3"));
    cli_assert_refused(&number, "accelerator", "cluster.accelerator: 3 is a number");
    cli_run_clear(&number);
    CliRun page = cli_run(folder, CLI_WORDS("report", "good.json", "--output", "\x1b[1m.html"));
    g_assert_cmpint(page.status, ==, 0);
    g_assert_null(strchr(page.err, '\x1b'));
    cli_run_clear(&page);
    cli_scratch_free(folder);
}

/* A space of billions of points is not listed before it is begun. */
static void test_exhaustive(void)
{
    g_autofree char *scenario = cli_source("scenarios/examples/search-deepseek-v3.json");
    g_autofree char *script =
        g_strdup_printf("ulimit -v 4000000; \"$1\" search %s --exhaustive --max-seconds 0.1 "
                        "--jobs 1 --format json --memory-reserve 0 2>&1 | head -c 100",
                        scenario);
#if defined(__SANITIZE_ADDRESS__)
    g_test_skip("the sanitizer needs the address space");
#else
    g_autofree char *out = cli_shell(script, NULL);
    g_assert_true(g_str_has_prefix(out, "{"));
#endif
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/hostile/files", test_files);
    g_test_add_func("/cli/hostile/flags", test_flags);
    g_test_add_func("/cli/hostile/places", test_places);
    g_test_add_func("/cli/hostile/said", test_said);
    g_test_add_func("/cli/hostile/exhaustive", test_exhaustive);
    return g_test_run();
}
