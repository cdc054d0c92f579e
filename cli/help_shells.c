/* cli/help_shells.c - completion for zsh and fish, from the table of commands. */
#include <string.h>

#include "cli/args.h"
#include "cli/help.h"

/* In single quotes; `also` (may be NULL) are characters that need a backslash besides. */
static void append_quoted(GString *out, const char *text, const char *also)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\'')
            g_string_append(out, "'\\''");
        else if (also != NULL && strchr(also, *c) != NULL)
            g_string_append_printf(out, "\\%c", *c);
        else
            g_string_append_c(out, *c);
    }
}

/* --- zsh --- */

static const char *zsh_values(const CliFlag *flag)
{
    if (strcmp(flag->name, "set") == 0)
        return ":key=value:_orrery_keys";
    if (cli_flag_is_file(flag))
        return ":file:_files";
    return flag->kind == CLI_FLAG_SWITCH ? "" : ":value: ";
}

static void append_zsh_command(GString *out, const CliCommand *command)
{
    int count = 0;
    g_autofree CliFlag *flags = cli_all_flags(command, &count);
    g_string_append_printf(out, "    (%s)\n        _arguments \\\n", command->name);
    for (int i = 0; i < count; i++) {
        g_string_append_printf(out, "            '%s--%s[", flags[i].kind == CLI_FLAG_TEXTS ? "*" : "",
                               flags[i].name);
        append_quoted(out, flags[i].help, "[]:");
        if (strcmp(flags[i].name, "format") == 0) {
            g_autofree char *list = cli_format_list(command, " ");
            g_string_append_printf(out, "]:format:(%s)' \\\n", list);
        } else {
            g_string_append_printf(out, "]%s' \\\n", zsh_values(&flags[i]));
        }
    }
    const bool lists = strcmp(command->name, "list") == 0, helps = strcmp(command->name, "help") == 0;
    g_autofree char *kinds = cli_list_kinds(" ");
    g_string_append_printf(out, "            '*:word:%s%s%s' ;;\n", lists ? "(" : "",
                           lists   ? kinds
                           : helps ? "_orrery_keys"
                                   : "_files",
                           lists ? ")" : "");
}

void cli_help_zsh(GString *out)
{
    int count = 0;
    const CliCommand *const *commands = cli_commands(&count);
    g_string_append(out, "#compdef orrery\n# zsh completion of orrery; written by 'orrery help --zsh'\n"
                         "_orrery_keys() {\n"
                         "    local -a keys\n"
                         "    keys=(${(f)\"$(orrery help --keys 2>/dev/null)\"})\n"
                         "    compadd -S '' -- $keys\n"
                         "}\n"
                         "_orrery() {\n"
                         "    local -a commands\n"
                         "    commands=(\n");
    for (int i = 0; i < count; i++) {
        g_string_append_printf(out, "        '%s:", commands[i]->name);
        append_quoted(out, commands[i]->summary, ":");
        g_string_append(out, "'\n");
    }
    g_string_append(out, "    )\n"
                         "    if (( CURRENT == 2 )); then\n"
                         "        _describe command commands\n"
                         "        return\n"
                         "    fi\n"
                         "    local command=$words[2]\n"
                         "    shift words\n"
                         "    (( CURRENT-- ))\n"
                         "    case $command in\n");
    for (int i = 0; i < count; i++)
        append_zsh_command(out, commands[i]);
    g_string_append(out, "    esac\n}\n_orrery \"$@\"\n");
}

/* --- fish --- */

/* As the text of -d, inside single quotes. */
static void append_fish_text(const char *text, GString *out)
{
    g_string_append(out, " -d '");
    for (const char *c = text; *c != '\0'; c++)
        g_string_append_printf(out, *c == '\'' || *c == '\\' ? "\\%c" : "%c", *c);
    g_string_append(out, "'\n");
}

static void append_fish_flag(GString *out, const CliCommand *command, const CliFlag *flag)
{
    g_string_append_printf(out, "complete -c orrery -n '__fish_seen_subcommand_from %s' -l %s", command->name,
                           flag->name);
    g_autofree char *list = cli_format_list(command, " ");
    if (strcmp(flag->name, "format") == 0)
        g_string_append_printf(out, " -xa '%s'", list);
    else if (strcmp(flag->name, "set") == 0)
        g_string_append(out, " -xa '(orrery help --keys 2>/dev/null)='");
    else if (flag->kind != CLI_FLAG_SWITCH)
        g_string_append(out, cli_flag_is_file(flag) ? " -r" : " -x");
    append_fish_text(flag->help, out);
}

void cli_help_fish(GString *out)
{
    int count = 0;
    const CliCommand *const *commands = cli_commands(&count);
    g_string_append(out, "# fish completion of orrery; written by 'orrery help --fish'\n");
    for (int i = 0; i < count; i++) {
        g_string_append_printf(out, "complete -c orrery -n __fish_use_subcommand -fa %s", commands[i]->name);
        append_fish_text(commands[i]->summary, out);
    }
    for (int i = 0; i < count; i++) {
        int flag_count = 0;
        g_autofree CliFlag *flags = cli_all_flags(commands[i], &flag_count);
        for (int j = 0; j < flag_count; j++)
            append_fish_flag(out, commands[i], &flags[j]);
    }
    g_autofree char *kinds = cli_list_kinds(" ");
    g_string_append_printf(
        out,
        "complete -c orrery -n '__fish_seen_subcommand_from list' -fa '%s'\n"
        "complete -c orrery -n '__fish_seen_subcommand_from help' -fa '(orrery help --keys 2>/dev/null)'\n",
        kinds);
}
