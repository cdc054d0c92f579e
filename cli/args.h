/* cli/args.h - from a command line to a command's struct, by its flags. */
#ifndef ORR_CLI_ARGS_H
#define ORR_CLI_ARGS_H

#include "cli/commands.h"

/* All flags of a command, the common ones first; g_free. */
CliFlag *cli_all_flags(const CliCommand *command, int *ret_count);

/* Reads argv (argv[0] is the command's name) into `args`, which has command->args_size zeroed bytes. With
 * --help the number of words is not checked. Free with cli_args_clear, also after a failure. */
bool cli_args_parse(const CliCommand *command, int argc, char **argv, CliArgs *args, GError **error);
void cli_args_clear(const CliCommand *command, CliArgs *args);

#endif
