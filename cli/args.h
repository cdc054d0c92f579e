/* cli/args.h - from a command line to a command's struct, by its flags. */
#ifndef ORR_CLI_ARGS_H
#define ORR_CLI_ARGS_H

#include "cli/commands.h"

/* The words of the command's --format, and the same with `between` between them; g_free. */
const OrrWords *cli_formats(const CliCommand *command);
char *cli_format_list(const CliCommand *command, const char *between);
/* What stands behind a flag in its command's help, "FILE" or "text|json|csv"; NULL for a switch; g_free. */
char *cli_flag_value(const CliCommand *command, const CliFlag *flag);

/* All flags of a command, the common ones first; g_free. */
CliFlag *cli_all_flags(const CliCommand *command, int *ret_count);

/* "a, b" as its words; NULL of NULL. g_strfreev. */
char **cli_words(const char *list);

/* Reads argv (argv[0] is the command's name) into `args`, which has command->args_size zeroed bytes. With
 * --help the number of words is not checked. Free with cli_args_clear, also after a failure. */
bool cli_args_parse(const CliCommand *command, int argc, char **argv, CliArgs *args, GError **error);
void cli_args_clear(const CliCommand *command, CliArgs *args);

/* Reads the words of a command (argv[0] is its name) and does it. */
bool cli_call(const CliCommand *command, int argc, char **argv, GError **error);

#endif
