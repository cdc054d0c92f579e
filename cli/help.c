/* cli/help.c - help for people, from the table of commands. */
#include "cli/help.h"

#include <string.h>

#include "cli/args.h"
#include "report/page.h"

int cli_help_width(void)
{
    enum { PIPED = 80 };
    return report_page_columns() > 0 ? report_page_width() : PIPED;
}

/* An example: as it stands, or in lines that a shell takes for one. */
static void append_example(GString *out, const char *line)
{
    enum { HANG = 6 };
    const int width = cli_help_width(), indent = (int)strspn(line, " ");
    g_auto(GStrv) words = g_strsplit(line + indent, " ", -1);
    const bool fits = (int)g_utf8_strlen(line, -1) <= width;
    int at = indent;
    g_string_append_printf(out, "%*s", indent, "");
    for (char **word = words; *word != NULL; word++) {
        const bool flag = word[1] != NULL && g_str_has_prefix(*word, "--"); /* its value stays beside it */
        const int with = (int)g_utf8_strlen(*word, -1) + (flag ? 1 + (int)g_utf8_strlen(word[1], -1) : 0);
        const bool value = word > words && g_str_has_prefix(word[-1], "--");
        if (!fits && word > words && !value && at + 1 + with + 2 > width) { /* 2: " \\" */
            g_string_append_printf(out, " \\\n%*s", HANG, "");
            at = HANG;
        } else if (word > words) {
            g_string_append_c(out, ' ');
            at++;
        }
        g_string_append(out, *word);
        at += (int)g_utf8_strlen(*word, -1);
    }
    g_string_append_c(out, '\n');
}

/* Paragraphs wrap; lines that begin with a space are examples. */
static void append_paragraphs(GString *out, const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        if ((*line)[0] == ' ')
            append_example(out, *line);
        else if ((*line)[0] != '\0' || line[1] != NULL)
            report_page_entry_within(out, "", 0, *line, cli_help_width());
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
        report_page_entry_within(out, label, COLUMN, commands[i]->summary, cli_help_width());
    }
    g_string_append(out, "\n");
    report_page_entry_within(out, "  try", COLUMN, "orrery run gpt3-175b", cli_help_width());
    report_page_entry_within(out, "  more", COLUMN,
                             "'orrery help COMMAND' for a command, 'orrery help KEY' for a field of a "
                             "scenario (orrery help parallel.zero), 'orrery --version'",
                             cli_help_width());
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
        report_page_entry_within(out, label, COLUMN, flags[i].help, cli_help_width());
    }
}
