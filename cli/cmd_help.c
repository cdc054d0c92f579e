/* cli/cmd_help.c - orrery help: the overview, a command, a field of a scenario; schemas and the manual page. */
#include <string.h>

#include "base/text.h"
#include "cli/glossary.h"
#include "cli/help.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "spec/help.h"
#include "spec/schema.h"

typedef struct HelpArgs {
    CliArgs common;
    char *schema;
    gboolean keys, man, bash, zsh, fish, glossary;
} HelpArgs;

/* A field, or the nearest of commands and fields. */
static bool help_topic(const char *word, GString *out, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autoptr(GString) field = g_string_new(NULL);
    const bool known = cli_glossary_help(word, out);
    if (spec_help(word, field, &cause)) {
        g_string_append_printf(out, "%s%s", known ? "\n" : "", field->str);
        return true;
    }
    if (known)
        return true;
    int count = 0;
    (void)cli_commands(&count);
    g_autofree const char **names = cli_command_names();
    g_autofree const char **terms = cli_glossary_words();
    const char *nearest = strchr(word, '.') == NULL ? orr_nearest(word, names, count) : NULL;
    const char *term = orr_nearest(word, terms, (int)g_strv_length((char **)terms));
    if (nearest == NULL && term != NULL)
        g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT,
                    "help: \"%s\" is not a command, field or word of the glossary; did you mean %s?", word,
                    term);
    else if (nearest != NULL)
        g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT, "help: \"%s\" is not a command; did you mean %s?",
                    word, nearest);
    else
        g_propagate_error(error, g_steal_pointer(&cause));
    return false;
}

/* A command, and the field of a scenario that has its name ("search"). */
static void help_command(const CliCommand *command, GString *out)
{
    g_autofree char *field = g_strconcat("scenario.", command->name, NULL);
    g_autoptr(GString) help = g_string_new(NULL);
    cli_help_command(command, out);
    if (spec_help(field, help, NULL))
        g_string_append_printf(out, "\n%s", help->str);
}

static void write_keys(GString *out)
{
    GPtrArray *keys = spec_help_keys();
    for (guint i = 0; i < keys->len; i++)
        g_string_append_printf(out, "%s\n", (const char *)g_ptr_array_index(keys, i));
    g_ptr_array_free(keys, TRUE);
}

static bool run(const CliArgs *common, GError **error)
{
    const HelpArgs *args = (const HelpArgs *)common;
    g_autoptr(GString) out = g_string_new(NULL);
    const char *topic = common->words != NULL ? common->words[0] : NULL;
    const CliCommand *command = topic != NULL ? cli_command_find(topic) : NULL;
    bool ok = true;
    if (args->schema != NULL)
        ok = spec_schema_write(args->schema, out, error);
    else if (args->keys)
        write_keys(out);
    else if (args->man)
        cli_help_man(out);
    else if (args->bash)
        cli_help_bash(out);
    else if (args->zsh)
        cli_help_zsh(out);
    else if (args->fish)
        cli_help_fish(out);
    else if (args->glossary)
        cli_glossary_markdown(out);
    else if (topic == NULL)
        cli_help_overview(out);
    else if (command != NULL)
        help_command(command, out);
    else
        ok = help_topic(topic, out, error);
    return ok && cli_output_write(common->output, out, error);
}

static const CliFlag flags[] = {
    {"schema", CLI_FLAG_TEXT, offsetof(HelpArgs, schema), "KIND",
     "print the JSON Schema of a kind of file: scenario, model, accelerator, cluster, framework, "
     "measurement"},
    {"keys", CLI_FLAG_SWITCH, offsetof(HelpArgs, keys), NULL, "print the path of every field, a line each"},
    {"man", CLI_FLAG_SWITCH, offsetof(HelpArgs, man), NULL, "print the manual page (roff)"},
    {"bash", CLI_FLAG_SWITCH, offsetof(HelpArgs, bash), NULL, "print the completion script for bash"},
    {"zsh", CLI_FLAG_SWITCH, offsetof(HelpArgs, zsh), NULL, "print the completion script for zsh"},
    {"fish", CLI_FLAG_SWITCH, offsetof(HelpArgs, fish), NULL, "print the completion script for fish"},
    {"glossary", CLI_FLAG_SWITCH, offsetof(HelpArgs, glossary), NULL,
     "print the words of the field, as docs/GLOSSARY.md has them"},
};

const CliCommand cli_command_help = {
    .name = "help",
    .usage = "[COMMAND | KEY | WORD]",
    .summary = "a command, a field such as parallel.zero, or a word of the field such as mfu",
    .help = "Explains a command, a field of a scenario or profile (meaning, type, unit, range, default), or "
            "a word of the "
            "glossary.\n"
            "\n"
            "  orrery help run\n"
            "  orrery help parallel.zero\n"
            "  orrery help mfu\n"
            "  orrery help --schema scenario > scenario.schema.json\n",
    .takes = CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .max_words = 1,
    .args_size = sizeof(HelpArgs),
    .run = run,
};
