/* cli/help_export.c - the manual page and the shell completion, from the table of commands. */
#include "cli/help.h"

#include <string.h>

#include "cli/args.h"

/* --- man(7) --- */

/* Text of a paragraph: hyphens and backslashes escaped, no line begins with a control character. */
static void append_roff(GString *out, const char *text)
{
    bool line_start = true;
    for (const char *c = text; *c != '\0'; c++) {
        if (line_start && (*c == '.' || *c == '\''))
            g_string_append(out, "\\&");
        if (*c == '\\')
            g_string_append(out, "\\e");
        else if (*c == '-')
            g_string_append(out, "\\-");
        else
            g_string_append_c(out, *c);
        line_start = *c == '\n';
    }
}

static void append_man_flag(GString *out, const CliCommand *command, const CliFlag *flag)
{
    g_autofree char *value = cli_flag_value(command, flag);
    g_string_append(out, ".TP\n.B ");
    g_autofree char *name = g_strdup_printf("--%s", flag->name);
    append_roff(out, name);
    if (value != NULL)
        g_string_append_printf(out, " \\fI%s\\fR", value);
    g_string_append_c(out, '\n');
    append_roff(out, flag->help);
    g_string_append_c(out, '\n');
}

/* Paragraphs as they are; runs of lines that begin with a space without filling. */
static void append_man_help(GString *out, const char *help)
{
    g_auto(GStrv) lines = g_strsplit(help, "\n", -1);
    bool verbatim = false;
    for (char **line = lines; *line != NULL; line++) {
        const bool example = (*line)[0] == ' ';
        if (example != verbatim)
            g_string_append(out, example ? ".PP\n.nf\n" : ".fi\n");
        verbatim = example;
        if ((*line)[0] == '\0')
            continue;
        append_roff(out, *line);
        g_string_append_c(out, '\n');
    }
    if (verbatim)
        g_string_append(out, ".fi\n");
}

void cli_help_man(GString *out)
{
    int count = 0;
    const CliCommand *const *commands = cli_commands(&count);
    g_string_append(
        out, ".TH ORRERY 1 \"\" \"orrery " ORRERY_VERSION "\" \"User Commands\"\n"
             ".SH NAME\norrery \\- a clockwork model of a training cluster\n"
             ".SH SYNOPSIS\n.B orrery\n.I COMMAND\n[\\fIFLAGS\\fR]\n"
             ".SH DESCRIPTION\n"
             "Orrery simulates one training step of a large model on a GPU cluster. A scenario (a JSON "
             "file) names the model, the cluster, the training and how it is split; a report tells the "
             "step time and where it goes, MFU, pipeline bubbles and the memory of every stage.\n"
             ".SH COMMANDS\n");
    for (int i = 0; i < count; i++) {
        const CliCommand *command = commands[i];
        g_string_append_printf(out, ".SS orrery %s ", command->name);
        append_roff(out, command->usage);
        g_string_append_c(out, '\n');
        append_man_help(out, command->help);
        int flag_count = 0;
        g_autofree CliFlag *flags = cli_all_flags(command, &flag_count);
        for (int j = 0; j < flag_count; j++)
            append_man_flag(out, command, &flags[j]);
    }
    g_string_append(
        out, ".SH EXIT STATUS\n.TP\n.B 0\ndone; a configuration that does not fit in memory is a result\n"
             ".TP\n.B 2\nwrong use, or an input or output that does not work; one line on standard error\n"
             ".TP\n.B 1\nOrrery itself is wrong\n"
             ".SH ENVIRONMENT\n.TP\n.B ORRERY_SCENARIOS\nthe folder with models/, accelerators/, clusters/ "
             "and frameworks/; otherwise ../share/orrery/scenarios next to the program, or the tree that it "
             "was built from\n");
}

/* --- bash --- */

static void append_bash_flags(GString *out, const CliFlag *flags, int count)
{
    for (int i = 0; i < count; i++)
        g_string_append_printf(out, "%s--%s", i > 0 ? " " : "", flags[i].name);
}

/* Flags whose value is no path, as a case pattern. */
static void append_plain_values(GString *out)
{
    int count = 0;
    const CliCommand *const *commands = cli_commands(&count);
    static const char apart[] = "|--format|--set|"; /* they have cases of their own */
    g_autoptr(GString) seen = g_string_new(apart);
    for (int i = 0; i < count; i++) {
        int flag_count = 0;
        g_autofree CliFlag *flags = cli_all_flags(commands[i], &flag_count);
        for (int j = 0; j < flag_count; j++) {
            g_autofree char *pattern = g_strdup_printf("|--%s|", flags[j].name);
            const bool plain = flags[j].kind == CLI_FLAG_TEXT || flags[j].kind == CLI_FLAG_TEXTS;
            if (plain && strstr(seen->str, pattern) == NULL)
                g_string_append(seen, pattern + 1);
        }
    }
    g_string_append_len(out, seen->str + strlen(apart), (gssize)(seen->len - strlen(apart) - 1));
}

/* Those of all commands, each once. */
static void append_formats(GString *out)
{
    int count = 0;
    const CliCommand *const *commands = cli_commands(&count);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (int i = 0; i < count; i++) {
        const OrrWords *words = cli_formats(commands[i]);
        for (int w = 0; w < words->count; w++)
            if (g_hash_table_add(seen, (gpointer)orr_word(words, w)))
                g_string_append_printf(out, "%s%s", g_hash_table_size(seen) > 1 ? " " : "",
                                       orr_word(words, w));
    }
}

void cli_help_bash(GString *out)
{
    int count = 0;
    const CliCommand *const *commands = cli_commands(&count);
    g_string_append(out,
                    "# bash completion of orrery; written by 'orrery help --bash'\n"
                    "_orrery() {\n"
                    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=\n"
                    "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words='");
    for (int i = 0; i < count; i++)
        g_string_append_printf(out, "%s ", commands[i]->name);
    g_string_append(out, "--version'\n"
                         "    else\n"
                         "        case $before in\n"
                         "        --format) words='");
    append_formats(out);
    g_string_append(out, "' ;;\n"
                         "        --set) words=$(orrery help --keys 2>/dev/null) ;;\n        ");
    append_plain_values(out);
    g_string_append(out, ") return ;;\n"
                         "        *)\n"
                         "            case ${COMP_WORDS[1]}:$word in\n");
    for (int i = 0; i < count; i++) {
        int flag_count = 0;
        g_autofree CliFlag *flags = cli_all_flags(commands[i], &flag_count);
        g_string_append_printf(out, "            %s:-*) words='", commands[i]->name);
        append_bash_flags(out, flags, flag_count);
        g_string_append(out, "' ;;\n");
    }
    g_autofree char *kinds = cli_list_kinds(" ");
    g_string_append_printf(out,
                           "            list:*) words='%s' ;;\n"
                           "            help:*) words='",
                           kinds);
    for (int i = 0; i < count; i++)
        g_string_append_printf(out, "%s%s", i > 0 ? " " : "", commands[i]->name);
    g_string_append(out, " '$(orrery help --keys 2>/dev/null) ;;\n"
                         "            esac ;;\n"
                         "        esac\n"
                         "    fi\n"
                         "    if [ -n \"$words\" ]; then\n"
                         "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                         "    else\n"
                         "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
                         "    fi\n"
                         "}\n"
                         "complete -o filenames -F _orrery orrery\n");
}
