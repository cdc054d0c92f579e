/* tests/fuzz/fuzz_command.c - a command line of any command: a word a line, an empty line, and the text of a file.
 *
 * The word "@" is that file and a digit one of a few scenarios. Whatever is said, the command does it or refuses in one
 * sentence; what it writes has no control characters, and what it calls JSON is. Outputs go to a scratch folder, long work
 * (replicas, jobs drawn, seconds of search) is cut short, and scenarios larger than a fuzzer has patience for are let go.
 */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/args.h"
#include "spec/load.h"
#include "tests/fuzz/door.h"

enum { MOST_WORDS = 32, MOST_WORD = 300, MOST_OUTPUT = 64 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Flags whose files are written. */
static const char *const outputs[] = {"output",   "trace", "memory",    "kernels",
                                      "save-all", "plot",  "residuals", "save"};

/* What a flag may ask for at most, and what it is where nothing is said. */
static const struct {
    const char *flag, *limit;
    double most;
} limits[] = {
    {"replicas", "3", 20}, {"count", "20", 200},    {"max-seconds", "0.3", 0.3},
    {"jobs", "1", 4},      {"steps", NULL, 8},      {"days", NULL, 3000},
    {"ranks", NULL, 4096}, {"gpus", "8,16,32", 64}, {"folds", NULL, 8},
};

/* Files of a folder and of its folders. */
static void empty(const char *folder)
{
    GDir *files = g_dir_open(folder, 0, NULL);
    for (const char *name; files != NULL && (name = g_dir_read_name(files)) != NULL;) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_DIR))
            empty(path);
        (void)g_remove(path);
    }
    if (files != NULL)
        g_dir_close(files);
}

static void leave(void)
{
    g_autofree char *folder = g_get_current_dir();
    if (strstr(folder, "orrery-fuzz-") != NULL) {
        empty(folder);
        (void)g_rmdir(folder);
    }
}

static void enter_scratch(void)
{
    static gsize ready = 0;
    if (g_once_init_enter(&ready)) {
        g_autofree char *made = g_dir_make_tmp("orrery-fuzz-XXXXXX", NULL);
        require(made != NULL && chdir(made) == 0);
        require(freopen("/dev/null", "r", stdin) != NULL && freopen("stdout", "w+", stdout) != NULL);
        g_setenv("PATH", made, TRUE); /* nothing to start */
        for (gsize i = 0; i < G_N_ELEMENTS(fuzz_scenarios); i++) {
            g_autofree char *name = g_strdup_printf("%zu.json", i);
            require(g_file_set_contents(name, fuzz_scenarios[i], -1, NULL));
        }
        atexit(leave);
        g_once_init_leave(&ready, 1);
    }
}

static void replace(char **text, const char *with)
{
    g_free(*text);
    *text = g_strdup(with);
}

static void place(char **word)
{
    if (strcmp(*word, "@") == 0)
        replace(word, "input.json");
    else if (g_ascii_isdigit(**word) && (*word)[1] == '\0' &&
             **word - '0' < (int)G_N_ELEMENTS(fuzz_scenarios)) {
        char *name = g_strconcat(*word, ".json", NULL);
        g_free(*word);
        *word = name;
    }
}

static void bound(const CliFlag *flag, char **value)
{
    for (gsize i = 0; i < G_N_ELEMENTS(limits); i++) {
        if (strcmp(flag->name, limits[i].flag) != 0)
            continue;
        double most = 0;
        for (const char *c = *value; c != NULL && *c != '\0';) { /* the largest of a list or a range */
            char *end = NULL;
            const double number = g_ascii_isdigit(*c) ? g_ascii_strtod(c, &end) : 0;
            most = MAX(most, number);
            c = end != NULL && end > c ? end : c + 1;
        }
        if (*value == NULL || most > limits[i].most)
            replace(value, limits[i].limit);
    }
}

/* Everything to its place before the command sees it. */
static void settle(const CliCommand *command, CliArgs *args)
{
    int count = 0;
    g_autofree CliFlag *flags = cli_all_flags(command, &count);
    for (char **word = args->words; word != NULL && *word != NULL; word++)
        place(word);
    for (int i = 0; i < count; i++) {
        char **value = (char **)((char *)args + flags[i].offset);
        bool writes = false;
        for (gsize o = 0; o < G_N_ELEMENTS(outputs); o++)
            writes = writes || strcmp(flags[i].name, outputs[o]) == 0;
        if (flags[i].kind == CLI_FLAG_TEXT)
            bound(&flags[i], value);
        else if (flags[i].kind == CLI_FLAG_FILE && *value != NULL && !writes)
            place(value);
        else if (flags[i].kind == CLI_FLAG_FILE && *value != NULL && strcmp(*value, "-") != 0) {
            g_autofree char *path =
                g_strconcat("out-", flags[i].name, g_str_has_suffix(*value, ".gz") ? ".gz" : "", NULL);
            replace(value, path);
        }
    }
    args->quiet = TRUE;
}

static bool has_patience(const CliArgs *args)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    bool small = true;
    for (char **word = args->words; small && word != NULL && *word != NULL; word++) {
        SpecSource source = {0};
        if (!g_str_has_suffix(*word, ".json"))
            continue;
        if (!spec_load_file(*word, (const char *const *)args->sets, true, spec, &source, NULL))
            continue;
        small = fuzz_is_small(spec) && spec_gpus(spec) <= 4096 && spec->training.global_batch <= 4096;
        spec_source_clear(&source);
    }
    return small;
}

/* What the command printed. */
static void check_output(const CliArgs *args, bool done)
{
    char *text = NULL;
    gsize length = 0;
    GError *error = NULL;
    require(fflush(stdout) == 0 && g_file_get_contents("stdout", &text, &length, NULL));
    require(length <= MOST_OUTPUT && g_utf8_validate(text, (gssize)length, NULL));
    for (gsize i = 0; i < length; i++)
        require(!g_ascii_iscntrl(text[i]) || text[i] == '\n' || text[i] == '\t' || text[i] == '\r');
    if (done && !args->help && args->format == CLI_FORMAT_JSON && length > 0 && args->output == NULL) {
        OrrJsonDoc *doc = orr_json_parse(text, length, "output", &error);
        require(doc != NULL);
        orr_json_free(doc);
    }
    g_free(text);
    rewind(stdout);
    require(ftruncate(fileno(stdout), 0) == 0);
}

static void command_line(const CliCommand *command, char **words)
{
    GError *error = NULL;
    CliArgs *args = g_malloc0(command->args_size);
    bool done = cli_args_parse(command, (int)g_strv_length(words), words, args, &error);
    if (done && !args->help) {
        settle(command, args);
        if (has_patience(args)) {
            done = command->run(args, &error);
            check_output(args, done);
        }
    }
    if (!done) {
        require(error != NULL && !g_error_matches(error, ORR_ERROR, ORR_ERROR_INTERNAL));
        require(error->message[0] != '\0');
        if (g_getenv("FUZZ_SAY") != NULL) /* for who writes a seed */
            g_printerr("%s\n", error->message);
        g_error_free(error);
    }
    cli_args_clear(command, args);
    g_free(args);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enter_scratch();
    g_autofree char *text = g_strndup((const char *)data, size);
    char *rest = strstr(text, "\n\n");
    if (rest != NULL) {
        *rest = '\0';
        rest += 2;
    }
    if (g_str_has_suffix(text, "\n"))
        text[strlen(text) - 1] = '\0';
    g_auto(GStrv) words = g_strsplit(text, "\n", MOST_WORDS);
    for (char **word = words; *word != NULL; word++)
        if (strlen(*word) > MOST_WORD)
            (*word)[MOST_WORD] = '\0';
    const CliCommand *command = words[0] != NULL ? cli_command_find(words[0]) : NULL;
    if (command == NULL || strcmp(command->name, "serve") == 0) /* which does not end by itself */
        return 0;
    require(g_file_set_contents("input.json", rest != NULL ? rest : "", -1, NULL));
    command_line(command, words);
    return 0;
}
