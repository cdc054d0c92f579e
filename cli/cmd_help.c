/* cli/cmd_help.c - orrery help: the overview, a command, a field of a scenario; schemas and the manual page. */
#include <string.h>

#include "base/text.h"
#include "cli/help.h"
#include "cli/output.h"

typedef struct HelpArgs {
    CliArgs common;
    char *schema;
    gboolean man, bash;
} HelpArgs;

static bool unknown_topic(const char *word, GError **error)
{
    int count = 0;
    (void)cli_commands(&count);
    g_autofree const char **names = cli_command_names();
    const char *nearest = orr_nearest(word, names, count);
    g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT, "help: \"%s\" is neither a command nor a field; %s%s%s", word,
                nearest != NULL ? "did you mean " : "'orrery help' lists the commands", nearest != NULL ? nearest : "",
                nearest != NULL ? "?" : "");
    return false;
}

static bool run(const CliArgs *common, GError **error)
{
    const HelpArgs *args = (const HelpArgs *)common;
    g_autoptr(GString) out = g_string_new(NULL);
    const char *topic = common->words != NULL ? common->words[0] : NULL;
    const CliCommand *command = topic != NULL ? cli_command_find(topic) : NULL;
    if (args->man)
        cli_help_man(out);
    else if (args->bash)
        cli_help_bash(out);
    else if (topic == NULL)
        cli_help_overview(out);
    else if (command != NULL)
        cli_help_command(command, out);
    else
        return unknown_topic(topic, error);
    return cli_output_write(common->output, out, error);
}

static const CliFlag flags[] = {
    {"schema", CLI_FLAG_TEXT, offsetof(HelpArgs, schema), "KIND",
     "print the JSON Schema of a file kind: scenario, model, accelerator, cluster, framework"},
    {"man", CLI_FLAG_SWITCH, offsetof(HelpArgs, man), NULL, "print the manual page (roff)"},
    {"bash", CLI_FLAG_SWITCH, offsetof(HelpArgs, bash), NULL, "print the completion script for bash"},
};

const CliCommand cli_command_help = {
    .name = "help",
    .usage = "[COMMAND | KEY]",
    .summary = "a command, or a field of a scenario such as parallel.zero",
    .help = "Explains a command, or a field of a scenario or profile: meaning, type, unit, range, default.\n"
            "\n"
            "  orrery help run\n"
            "  orrery help parallel.zero\n"
            "  orrery help --schema scenario > scenario.schema.json\n",
    .takes = CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .max_words = 1,
    .args_size = sizeof(HelpArgs),
    .run = run,
};
