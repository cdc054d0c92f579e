/* cli/cmd_export.c - orrery export: a scenario as a training framework's configuration, its schedule as op orders. */
#include <string.h>

#include "api/chosen.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "report/orders.h"
#include "exchange/exchange.h"
#include "spec/load.h"
#include "spec/resolve.h"

typedef struct ExportArgs {
    CliArgs common;
    char *to, *launch;
} ExportArgs;

static bool format_of(const char *word, ExchangeFormat *ret_format, GError **error)
{
    for (int i = 0; word != NULL && i < exchange_words_format.count; i++)
        if (g_str_equal(word, orr_word(&exchange_words_format, i))) {
            *ret_format = (ExchangeFormat)i;
            return true;
        }
    return orr_fail(error, ORR_ERROR_INPUT,
                    "--to: %s; give megatron, megatron-bridge, deepspeed, torchtitan, nanotron, axolotl, "
                    "llama-factory, torchtune, trl, peft, verl, nemo-rl, schedule or schedule-csv",
                    word != NULL ? word : "missing");
}

/* A copy in which files that the scenario names from its own folder are named from everywhere: an export lies elsewhere. */
static void write_anchored(const OrrJson *node, const char *key, const char *folder, OrrJsonWriter *w)
{
    const OrrJsonType type = orr_json_type(node);
    if (type == ORR_JSON_OBJECT || type == ORR_JSON_LIST) {
        orr_jw_begin(w, key, type == ORR_JSON_OBJECT ? '{' : '[');
        for (const OrrJson *child = orr_json_first(node); child != NULL; child = orr_json_next(child))
            write_anchored(child, orr_json_key(child), folder, w);
        orr_jw_end(w, type == ORR_JSON_OBJECT ? '}' : ']');
        return;
    }
    g_autofree char *path =
        type == ORR_JSON_TEXT && orr_json_text(node)[0] != '\0' && !g_path_is_absolute(orr_json_text(node))
            ? g_build_filename(folder != NULL ? folder : ".", orr_json_text(node), NULL)
            : NULL;
    if (path != NULL && g_file_test(path, G_FILE_TEST_IS_REGULAR)) {
        g_autofree char *whole = g_canonicalize_filename(path, NULL);
        orr_jw_text(w, key, whole);
    } else {
        orr_jw_node(w, key, node);
    }
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
    if (doc == NULL)
        return NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, text, true);
    write_anchored(orr_json_root(doc), NULL, source->folder, &w);
    orr_json_free(doc);
    return orr_json_parse(text->str, text->len, "scenario", error);
}

static bool launch_of(const char *word, ExchangeFormat format, int *ret_launch, GError **error)
{
    *ret_launch = -1;
    for (int i = 0; word != NULL && i < exchange_words_launch.count; i++)
        if (g_str_equal(word, orr_word(&exchange_words_launch, i)))
            *ret_launch = i;
    if (word != NULL && *ret_launch < 0)
        return orr_fail(error, ORR_ERROR_INPUT, "--launch: %s; give sbatch or torchrun", word);
    return word == NULL || format != EXCHANGE_FORMAT_COUNT ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "--launch: with --to schedule there is nothing to launch; give a framework");
}

/* "gpt3.sh" is launched by "gpt3.launch.sh" (torchrun) or "gpt3.sbatch". */
static char *launch_path(const char *output, int launch)
{
    const char *base = strrchr(output, '/') != NULL ? strrchr(output, '/') + 1 : output;
    const char *dot = strrchr(base, '.');
    g_autofree char *stem =
        dot != NULL && dot != base ? g_strndup(output, (gsize)(dot - output)) : g_strdup(output);
    return g_strconcat(stem, launch == EXCHANGE_LAUNCH_SBATCH ? ".sbatch" : ".launch.sh", NULL);
}

/* What `loss` holds for the framework's file, and where its launch lies. */
static void say_loss(const CliArgs *common, const ExchangeLoss *loss, const char *launched)
{
    g_autoptr(GString) report = g_string_new(NULL);
    exchange_loss_write(loss, report);
    if (launched != NULL)
        g_string_append_printf(report, "Launch: %s\n", launched);
    g_strchomp(report->str);
    cli_note(common->quiet, "%s", report->str);
}

/* With --output the launch goes into a file beside it; without, it is what is printed: it is nothing without a
 * configuration that has a name. */
static bool write_framework(const CliArgs *common, const Spec *spec, const OrrJson *scenario,
                            ExchangeFormat format, int launch, GError **error)
{
    static const char *const names[EXCHANGE_FORMAT_COUNT] = {[EXCHANGE_FORMAT_MEGATRON] = "megatron.sh",
                                                             [EXCHANGE_FORMAT_MEGATRON_BRIDGE] = "bridge.sh",
                                                             [EXCHANGE_FORMAT_DEEPSPEED] = "ds_config.json",
                                                             [EXCHANGE_FORMAT_TORCHTITAN] = "torchtitan.toml",
                                                             [EXCHANGE_FORMAT_NANOTRON] = "nanotron.yaml",
                                                             [EXCHANGE_FORMAT_AXOLOTL] = "axolotl.yaml",
                                                             [EXCHANGE_FORMAT_LLAMA_FACTORY] =
                                                                 "finetune.yaml",
                                                             [EXCHANGE_FORMAT_TORCHTUNE] = "torchtune.yaml",
                                                             [EXCHANGE_FORMAT_TRL] = "trl.sh",
                                                             [EXCHANGE_FORMAT_PEFT] = "adapter_config.json",
                                                             [EXCHANGE_FORMAT_VERL] = "verl.sh",
                                                             [EXCHANGE_FORMAT_NEMO_RL] = "nemo_rl.yaml"};
    const bool to_file = common->output != NULL && strcmp(common->output, "-") != 0;
    const char *config = to_file ? common->output : names[format] != NULL ? names[format] : "config";
    g_autoptr(GString) out = g_string_new(NULL), script = g_string_new(NULL);
    g_autofree char *path = launch >= 0 && to_file ? launch_path(common->output, launch) : NULL;
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    if (!exchange_export(spec, scenario, format, out, &loss, error) ||
        (launch >= 0 && !exchange_export_launch(spec, format, (ExchangeLaunch)launch, config, script, error)))
        return false;
    const CliOutput outputs[] = {{"the configuration", common->output, out}, {"--launch", path, script}};
    const bool ok = launch < 0 ? cli_output_write(common->output, out, error)
                    : to_file  ? cli_outputs_check(outputs, 2, error) && cli_outputs_write(outputs, 2, error)
                               : cli_output_write(NULL, script, error);
    if (ok)
        say_loss(common, &loss, path);
    return ok;
}

/* Orders are CSV where the format or the file's name says so: parallel.schedule reads a file by its name. */
static bool csv_of(const ExportArgs *args, bool *ret_csv, GError **error)
{
    const char *output = args->common.output != NULL ? args->common.output : "";
    const bool asked = g_strcmp0(args->to, "schedule-csv") == 0;
    *ret_csv = asked || (g_strcmp0(args->to, "schedule") == 0 && g_str_has_suffix(output, ".csv"));
    return !asked || !g_str_has_suffix(output, ".json") ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "--output: \"%s\" would be read back as JSON; give a name that ends in .csv, or --to "
                    "schedule",
                    output);
}

static bool run(const CliArgs *common, GError **error)
{
    const ExportArgs *args = (const ExportArgs *)common;
    bool csv = false;
    const bool orders = g_strcmp0(args->to, "schedule") == 0 || g_strcmp0(args->to, "schedule-csv") == 0;
    ExchangeFormat format = EXCHANGE_FORMAT_COUNT;
    int launch = -1;
    SpecSource source = {0};
    g_autofree Spec *asked = g_new0(Spec, 1);
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autoptr(GPtrArray) chosen = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GString) out = g_string_new(NULL);
    if (!csv_of(args, &csv, error) || (!orders && !format_of(args->to, &format, error)) ||
        !launch_of(args->launch, format, &launch, error) ||
        !spec_load_file(common->words[0], (const char *const *)common->sets, true, asked, &source, error))
        return false;
    bool ok = api_choose(asked, spec, chosen, error);
    OrrJsonDoc *doc = ok ? document(&source, chosen, error) : NULL;
    ok = doc != NULL &&
         (orders ? report_write_orders(spec, csv, out, error) && cli_output_write(common->output, out, error)
                 : write_framework(common, spec, orr_json_root(doc), format, launch, error));
    orr_json_free(doc);
    spec_source_clear(&source);
    return ok;
}

static const CliFlag flags[] = {
    {"to", CLI_FLAG_TEXT, offsetof(ExportArgs, to), "FORMAT",
     "megatron (flags), megatron-bridge (overrides), deepspeed (JSON), torchtitan (TOML), nanotron, "
     "axolotl, llama-factory, torchtune (YAML), trl (flags), peft (adapter_config.json, the adapter "
     "alone); of a loop verl (overrides) and nemo-rl (YAML); schedule "
     "(op orders as JSON, or as CSV where --output ends in .csv) or schedule-csv (as PyTorch's CSV)"},
    {"launch", CLI_FLAG_TEXT, offsetof(ExportArgs, launch), "sbatch|torchrun",
     "also a script that launches it: beside --output, or without that alone on standard output"},
};

const CliCommand cli_command_export = {
    .name = "export",
    .usage = "SCENARIO.json --to FORMAT",
    .summary = "a scenario as a training framework's configuration, or its schedule as op orders",
    .help = "Writes the scenario in a framework's own names; what is \"auto\" is chosen first. One "
            "comment line holds what the framework's file has no name for: the cluster, fields of the "
            "simulator. From it 'orrery import' gives the same scenario back. A field that the framework "
            "cannot do is an error that names it. Flags of Megatron-LM and TRL and overrides of "
            "Megatron-Bridge and verl come as a shell array to source.\n\n"
            "'--to schedule' writes the order in which every pipeline rank works, for parallel.schedule "
            "to read back: a start for a schedule of your own. '--to schedule-csv' writes the same as a "
            "compute-only schedule file of PyTorch (torchtitan: pipeline_parallel_schedule_csv).\n\n"
            "A loss report on standard error says what the file leaves out, and whether that changes the "
            "prediction. It also names placeholders (data, learning rate, iterations), which are marked "
            "in the file too. Exports keep to the checks that each framework makes of its arguments.\n\n"
            "  orrery export scenarios/examples/gpt3-175b.json --to megatron --output gpt3.sh\n"
            "  orrery export llama.json --to torchtitan --output llama.toml --launch sbatch\n"
            "  orrery export scenarios/examples/rl-grpo-qwen2.5-7b-h20.json --to verl --output grpo.sh\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(ExportArgs),
    .run = run,
};
