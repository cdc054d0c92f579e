/* cli/commands.c - the table of commands. */
#include "cli/commands.h"

#include <string.h>

static const CliCommand *const commands[] = {
    &cli_command_run,       &cli_command_explain,    &cli_command_search, &cli_command_plan,
    &cli_command_campaign,  &cli_command_jobs,       &cli_command_sweep,  &cli_command_compare,
#ifndef __EMSCRIPTEN__ /* a browser has no gnuplot */
    &cli_command_plot,
#endif
    &cli_command_validate,  &cli_command_collective,
#ifndef __EMSCRIPTEN__ /* no GPU to measure */
    &cli_command_calibrate,
#endif
    &cli_command_list,      &cli_command_report,     &cli_command_export, &cli_command_import,
    &cli_command_generate,  &cli_command_trace,      &cli_command_replay, &cli_command_learn,
#ifndef __EMSCRIPTEN__ /* and nobody to serve */
    &cli_command_mcp,       &cli_command_serve,
#endif
    &cli_command_help,
};

const CliCommand *const *cli_commands(int *ret_count)
{
    *ret_count = (int)G_N_ELEMENTS(commands);
    return commands;
}

const CliCommand *cli_command_find(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

const char **cli_command_names(void)
{
    const char **names = g_new0(const char *, G_N_ELEMENTS(commands) + 1);
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++)
        names[i] = commands[i]->name;
    return names;
}
