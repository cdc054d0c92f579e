/* cli/cmd_import.c - orrery import: a training framework's configuration as a scenario. */
#include <string.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "exchange/exchange.h"
#include "spec/load.h"
#include "spec/resolve.h"

typedef struct ImportArgs {
    CliArgs common;
    char *from, *base;
} ImportArgs;

static bool format_of(const char *word, int *ret_format, GError **error)
{
    *ret_format = -1;
    for (int i = 0; word != NULL && i < exchange_words_format.count; i++)
        if (g_str_equal(word, exchange_words_format.words[i]))
            *ret_format = i;
    return word == NULL || *ret_format >= 0 ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "--from: %s; give megatron, megatron-bridge, deepspeed, torchtitan, nanotron or hf",
                    word);
}

/* The document with --set applied, or NULL. */
static OrrJsonDoc *import(const ImportArgs *args, const char *text, gsize length, GPtrArray *warnings,
                          GError **error)
{
    int format = -1;
    OrrJsonDoc *base = NULL, *doc = NULL;
    if (!format_of(args->from, &format, error))
        return NULL;
    if (args->base != NULL && (base = orr_json_read_file(args->base, error)) == NULL)
        return NULL;
    doc = exchange_import(text, length, args->common.words[0], format,
                          base != NULL ? orr_json_root(base) : NULL, warnings, error);
    for (char **set = args->common.sets; doc != NULL && set != NULL && *set != NULL; set++)
        if (!spec_resolve_set(doc, *set, error)) {
            orr_json_free(doc);
            doc = NULL;
        }
    orr_json_free(base);
    return doc;
}

/* A scenario that would not load is still what the file says: say what it lacks. */
static void check(const OrrJson *scenario, GPtrArray *warnings)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autoptr(GError) error = NULL;
    if (!spec_load_json(scenario, "the imported scenario", NULL, true, spec, NULL, &error))
        g_ptr_array_add(warnings,
                        g_strdup_printf("%s (--base SCENARIO.json and --set fill in what the file does "
                                        "not say)",
                                        error->message));
}

static bool run(const CliArgs *common, GError **error)
{
    const ImportArgs *args = (const ImportArgs *)common;
    g_autoptr(GPtrArray) warnings = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GString) out = g_string_new(NULL);
    g_autoptr(GError) cause = NULL;
    g_autofree char *text = NULL;
    gsize length = 0;
    if (!g_file_get_contents(common->words[0], &text, &length, &cause))
        return orr_fail(error, ORR_ERROR_IO, "%s: %s", common->words[0], cause->message);
    OrrJsonDoc *doc = import(args, text, length, warnings, error);
    if (doc == NULL)
        return false;
    check(orr_json_root(doc), warnings);
    for (guint i = 0; i < warnings->len; i++)
        cli_note(common->quiet, "orrery: %s", (const char *)g_ptr_array_index(warnings, i));
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_node(&w, NULL, orr_json_root(doc));
    g_string_append_c(out, '\n');
    orr_json_free(doc);
    return cli_output_write(common->output, out, error);
}

static const CliFlag flags[] = {
    {"from", CLI_FLAG_TEXT, offsetof(ImportArgs, from), "FORMAT",
     "megatron, megatron-bridge, deepspeed, torchtitan, nanotron or hf (default: told from the file)"},
    {"base", CLI_FLAG_FILE, offsetof(ImportArgs, base), "SCENARIO.json",
     "a scenario that says what the file does not: the cluster, the model, the software"},
};

const CliCommand cli_command_import = {
    .name = "import",
    .usage = "FILE",
    .summary = "a training framework's configuration as a scenario",
    .help =
        "Reads Megatron-LM flags (a script or a list of arguments), Megatron-Bridge overrides, DeepSpeed "
        "JSON, "
        "torchtitan TOML, nanotron YAML or a Hugging Face config.json and prints a scenario. Settings that a "
        "scenario has no field for are named on standard error and passed over. What the file does not say "
        "comes from --base, or from the comment that 'orrery export' left.\n"
        "\n"
        "  orrery import train.sh --base scenarios/examples/gpt3-175b.json --output mine.json\n"
        "  orrery import ds_config.json --base mine.json --set cluster.nodes=16\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(ImportArgs),
    .run = run,
};
