/* cli/help.h - help for people, the manual page and the shell completion, from the tables. */
#ifndef ORR_CLI_HELP_H
#define ORR_CLI_HELP_H

#include "cli/commands.h"

/* Columns of help: a terminal's own; 80, which every terminal has, where it goes to a file or a pager. */
int cli_help_width(void);
void cli_help_overview(GString *out);
void cli_help_command(const CliCommand *command, GString *out);
/* man(7) source of orrery.1. */
void cli_help_man(GString *out);
/* A bash completion script. */
void cli_help_bash(GString *out);
void cli_help_zsh(GString *out);
void cli_help_fish(GString *out);

#endif
