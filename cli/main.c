/* cli/main.c - finds the command, runs it, prints its error and picks the exit status.
 *
 * 0: done. 2: wrong use, or an input or output that does not work; one line on standard error. 1: Orrery
 * itself is wrong.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/shown.h"
#include "cli/args.h"
#include "cli/help.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/stack.h"

enum { EXIT_DONE = 0 };

static bool print(const char *text, GError **error)
{
    g_autoptr(GString) out = g_string_new(text);
    return cli_output_write(NULL, out, error);
}

/* No output may take the place of an input of the same command. */
static bool spares_inputs(const CliCommand *command, const CliArgs *args, GError **error)
{
    int count = 0;
    g_autofree CliFlag *flags = cli_all_flags(command, &count);
    for (int i = 0; i < count; i++) {
        const char *path = NULL;
        if (cli_flag_is_file(&flags[i]))
            memcpy(&path, (const char *)args + flags[i].offset, sizeof path);
        for (char **word = args->words; path != NULL && word != NULL && *word != NULL; word++)
            if (cli_same_file(path, *word))
                return orr_fail(error, ORR_ERROR_INPUT, "--%s %s: is the input; give another file",
                                flags[i].name, path);
    }
    return true;
}

static bool run_command(const CliCommand *command, int argc, char **argv, GError **error)
{
    CliArgs *args = g_malloc0(command->args_size);
    bool ok = cli_args_parse(command, argc, argv, args, error);
    if (ok && args->help) {
        g_autoptr(GString) help = g_string_new(NULL);
        cli_help_command(command, help);
        ok = print(help->str, error);
    } else if (ok) {
        ok = spares_inputs(command, args, error) && cli_input_hold(args->words, error) &&
             command->run(args, error);
    }
    cli_args_clear(command, args);
    g_free(args);
    return ok;
}

/* What other programs call it. */
static const char *called_elsewhere(const char *word)
{
    static const char *const names[][2] = {
        {"simulate", "run"},    {"predict", "run"},   {"estimate", "run"},        {"optimize", "search"},
        {"optimise", "search"}, {"tune", "search"},   {"diff", "compare"},        {"convert", "import"},
        {"scale", "plan"},      {"fit", "calibrate"}, {"benchmark", "calibrate"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        if (strcmp(word, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

static bool unknown_command(const char *word, GError **error)
{
    int count = 0;
    (void)cli_commands(&count);
    g_autofree const char **names = cli_command_names();
    const char *elsewhere = called_elsewhere(word);
    const char *nearest = elsewhere != NULL ? elsewhere : orr_nearest(word, names, count);
    if (word[0] == '-')
        g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT,
                    "%s comes before the command; say 'orrery COMMAND %s', or 'orrery help'", word, word);
    else if (nearest != NULL)
        g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT, "unknown command \"%s\"; did you mean %s?", word,
                    nearest);
    else
        g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT, "unknown command \"%s\"; 'orrery help' lists them",
                    word);
    return false;
}

static bool run_line(int argc, char **argv, GError **error)
{
    const char *word = argc > 1 ? argv[1] : "help";
    if (strcmp(word, "--version") == 0)
        return print("orrery " ORRERY_VERSION "\n", error);
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        word = "help";
    const CliCommand *command = cli_command_find(word);
    if (command == NULL)
        return unknown_command(word, error);
    char *only[] = {(char *)"help", NULL};
    return argc > 1 ? run_command(command, argc - 1, argv + 1, error) : run_command(command, 1, only, error);
}

static int run_all(int argc, char **argv)
{
    signal(SIGXFSZ, SIG_IGN); /* so is a file larger than allowed */
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of write(), met in cli/output.c */
    g_autoptr(GError) error = NULL;
    if (run_line(argc, argv, &error))
        return EXIT_DONE;
    g_assert(error != NULL);
    if (g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_PIPE))
        return EXIT_DONE;
    return cli_error_tell(error);
}

int main(int argc, char **argv)
{
    return cli_with_stack(run_all, argc, argv);
}
