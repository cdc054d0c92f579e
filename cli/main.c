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
#include "cli/output.h"
#include "cli/stack.h"

enum { EXIT_DONE = 0 };

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
    if (strcmp(word, "--version") == 0) {
        g_autoptr(GString) version = g_string_new("orrery " ORRERY_VERSION "\n");
        return cli_output_write(NULL, version, error);
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        word = "help";
    const CliCommand *command = cli_command_find(word);
    if (command == NULL)
        return unknown_command(word, error);
    char *only[] = {(char *)"help", NULL};
    return argc > 1 ? cli_call(command, argc - 1, argv + 1, error) : cli_call(command, 1, only, error);
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
