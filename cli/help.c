/* cli/help.c - help for people, from the table of commands. */
#include "cli/help.h"

#include "cli/args.h"
#include "report/page.h"

/* Paragraphs wrap at the page width; lines that begin with a space stand as they are. */
static void append_paragraphs(GString *out, const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        if ((*line)[0] == ' ')
            g_string_append_printf(out, "%s\n", *line);
        else if ((*line)[0] != '\0' || line[1] != NULL)
            report_page_entry(out, "", 0, *line);
    }
}

void cli_help_overview(GString *out)
{
    enum { COLUMN = 14 };
    int count = 0;
    const CliCommand *const *commands = cli_commands(&count);
    g_string_append(out, "orrery " ORRERY_VERSION ": a clockwork model of a training cluster\n\n"
                         "usage: orrery COMMAND [FLAGS]\n\n");
    for (int i = 0; i < count; i++) {
        g_autofree char *label = g_strdup_printf("  %s", commands[i]->name);
        report_page_entry(out, label, COLUMN, commands[i]->summary);
    }
    g_string_append(out, "\n");
    report_page_entry(out, "  try", COLUMN, "orrery run scenarios/examples/gpt3-175b.json");
    report_page_entry(out, "  more", COLUMN,
                      "'orrery help COMMAND' for a command, 'orrery help KEY' for a field of a scenario "
                      "(orrery help parallel.zero), 'orrery --version'");
}

void cli_help_command(const CliCommand *command, GString *out)
{
    enum { COLUMN = 22 };
    g_string_append_printf(out, "usage: orrery %s%s%s [FLAGS]\n\n", command->name,
                           command->usage[0] != '\0' ? " " : "", command->usage);
    append_paragraphs(out, command->help);
    g_string_append(out, "\nFlags\n");
    int count = 0;
    g_autofree CliFlag *flags = cli_all_flags(command, &count);
    for (int i = 0; i < count; i++) {
        g_autofree char *value = cli_flag_value(command, &flags[i]);
        g_autofree char *label = g_strdup_printf("  --%s%s%s", flags[i].name, value != NULL ? " " : "",
                                                 value != NULL ? value : "");
        report_page_entry(out, label, COLUMN, flags[i].help);
    }
}
