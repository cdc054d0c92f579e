/* cli/call.c - one command by its words: the program, the library and the page without a server call it. */
#include <string.h>

#include "cli/args.h"
#include "cli/help.h"
#include "cli/input.h"
#include "cli/output.h"

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

bool cli_call(const CliCommand *command, int argc, char **argv, GError **error)
{
    CliArgs *args = g_malloc0(command->args_size);
    bool ok = cli_args_parse(command, argc, argv, args, error);
    if (ok && args->help) {
        g_autoptr(GString) help = g_string_new(NULL);
        cli_help_command(command, help);
        ok = cli_output_write(NULL, help, error);
    } else if (ok) {
        ok = spares_inputs(command, args, error) && cli_input_hold(args->words, error) &&
             command->run(args, error);
    }
    cli_args_clear(command, args);
    g_free(args);
    return ok;
}
