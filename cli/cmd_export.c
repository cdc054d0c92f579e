/* cli/cmd_export.c - orrery export: a scenario as a training framework's configuration, its schedule as op orders. */
#include <string.h>

#include "cli/chosen.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "report/orders.h"
#include "exchange/exchange.h"
#include "spec/load.h"
#include "spec/resolve.h"

typedef struct ExportArgs {
    CliArgs common;
    char *to;
} ExportArgs;

static bool format_of(const char *word, ExchangeFormat *ret_format, GError **error)
{
    for (int i = 0; word != NULL && i < exchange_words_format.count; i++)
        if (g_str_equal(word, exchange_words_format.words[i])) {
            *ret_format = (ExchangeFormat)i;
            return true;
        }
    return orr_fail(error, ORR_ERROR_INPUT,
                    "--to: %s; give megatron, megatron-bridge, deepspeed, torchtitan, nanotron, schedule or "
                    "schedule-csv",
                    word != NULL ? word : "missing");
}

/* The scenario as written, with --set applied and every "auto" replaced by what was chosen. */
static OrrJsonDoc *document(const SpecSource *source, const GPtrArray *chosen, GError **error)
{
    OrrJsonDoc *doc = orr_json_parse(source->resolved, strlen(source->resolved), "scenario", error);
    for (guint i = 0; doc != NULL && i < chosen->len; i++)
        if (!spec_resolve_set(doc, g_ptr_array_index(chosen, i), error)) {
            orr_json_free(doc);
            doc = NULL;
        }
    return doc;
}

/* The framework's file, or with format EXCHANGE_FORMAT_COUNT the schedule's op orders. */
static bool write_file(const Spec *spec, const OrrJson *scenario, ExchangeFormat format, bool csv,
                       GString *out, GError **error)
{
    return format == EXCHANGE_FORMAT_COUNT ? report_write_orders(spec, csv, out, error)
                                           : exchange_export(spec, scenario, format, out, error);
}

static bool run(const CliArgs *common, GError **error)
{
    const ExportArgs *args = (const ExportArgs *)common;
    const bool csv = g_strcmp0(args->to, "schedule-csv") == 0;
    const bool orders = csv || g_strcmp0(args->to, "schedule") == 0;
    ExchangeFormat format = EXCHANGE_FORMAT_COUNT;
    SpecSource source = {NULL, NULL, NULL, NULL};
    g_autofree Spec *asked = g_new0(Spec, 1);
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autoptr(GPtrArray) chosen = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GString) out = g_string_new(NULL);
    if ((!orders && !format_of(args->to, &format, error)) ||
        !spec_load_file(common->words[0], (const char *const *)common->sets, true, asked, &source, error))
        return false;
    bool ok = cli_choose(asked, spec, chosen, error);
    OrrJsonDoc *doc = ok ? document(&source, chosen, error) : NULL;
    ok = doc != NULL && write_file(spec, orr_json_root(doc), format, csv, out, error) &&
         cli_output_write(common->output, out, error);
    orr_json_free(doc);
    spec_source_clear(&source);
    return ok;
}

static const CliFlag flags[] = {
    {"to", CLI_FLAG_TEXT, offsetof(ExportArgs, to), "FORMAT",
     "megatron (flags), megatron-bridge (overrides), deepspeed (JSON), torchtitan (TOML), nanotron (YAML), "
     "schedule (op orders as JSON) or schedule-csv (as PyTorch's CSV)"},
};

const CliCommand cli_command_export = {
    .name = "export",
    .usage = "SCENARIO.json --to FORMAT",
    .summary = "a scenario as a training framework's configuration, or its schedule as op orders",
    .help =
        "Writes the scenario in a framework's own names; what is \"auto\" is chosen first. What the "
        "framework's "
        "file has no name for (the cluster, fields of the simulator) goes into one comment line, so that "
        "'orrery import' gives the same scenario back. A field that the framework cannot do is an error that "
        "names it. Megatron-LM flags and Megatron-Bridge overrides come as a shell array to source.\n"
        "\n"
        "'--to schedule' writes the order in which every pipeline rank works, for parallel.schedule to read "
        "back: a "
        "start for a schedule of your own. '--to schedule-csv' writes the same as a compute-only schedule "
        "file of "
        "PyTorch (torchtitan: pipeline_parallel_schedule_csv).\n"
        "\n"
        "  orrery export scenarios/examples/gpt3-175b.json --to megatron --output gpt3.sh\n"
        "  orrery export llama.json --to torchtitan --output llama.toml\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(ExportArgs),
    .run = run,
};
