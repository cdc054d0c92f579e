/* cli/cmd_import.c - orrery import: a training framework's configuration as a scenario. */
#include <string.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "exchange/exchange.h"
#include "spec/load.h"
#include "spec/resolve.h"
#include "spec/set_times.h"

typedef struct ImportArgs {
    CliArgs common;
    char *from, *base, *cluster, *args;
} ImportArgs;

static bool format_of(const char *word, int *ret_format, GError **error)
{
    *ret_format = -1;
    for (int i = 0; word != NULL && i < exchange_words_format.count; i++)
        if (g_str_equal(word, orr_word(&exchange_words_format, i)))
            *ret_format = i;
    return word == NULL || *ret_format >= 0 ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "--from: %s; give megatron, megatron-bridge, deepspeed, torchtitan, nanotron, axolotl, "
                    "llama-factory, torchtune, trl, peft, verl, nemo-rl, openrlhf, slime or hf",
                    word);
}

/* What is known before the file is read: --cluster, then --set. NULL with an error where no cluster is called so. */
static GPtrArray *known_before(const ImportArgs *args, GError **error)
{
    g_autofree SpecCluster *cluster = g_new0(SpecCluster, 1);
    if (args->cluster != NULL && !spec_load_cluster(args->cluster, cluster, error))
        return NULL;
    GPtrArray *sets = g_ptr_array_new_with_free_func(g_free);
    if (args->cluster != NULL) {
        g_autoptr(GString) set = g_string_new("cluster=");
        OrrJsonWriter w;
        orr_jw_init(&w, set, true);
        orr_jw_begin(&w, NULL, '{');
        orr_jw_text(&w, "preset", args->cluster);
        orr_jw_end(&w, '}');
        g_ptr_array_add(sets, g_string_free(g_steal_pointer(&set), FALSE));
    }
    for (char **set = args->common.sets; set != NULL && *set != NULL; set++)
        g_ptr_array_add(sets, g_strdup(*set));
    g_ptr_array_add(sets, NULL);
    return sets;
}

/* "x2" is times what a scenario has, and there is none yet. */
static bool plain_set(const char *set, GError **error)
{
    return !spec_set_is_times(set) || g_str_has_prefix(set, "model.name=") ||
           g_str_has_prefix(set, "name=") ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "--set %s: the imported file has no figure yet to take times; give the number itself",
                    set);
}

/* The document with --cluster and --set applied, or NULL. */
static OrrJsonDoc *import(const ImportArgs *args, const GString *text, ExchangeLoss *loss, GError **error)
{
    int format = -1;
    OrrJsonDoc *base = NULL, *doc = NULL;
    g_autoptr(GPtrArray) sets = known_before(args, error);
    if (sets == NULL || !format_of(args->from, &format, error))
        return NULL;
    g_autofree char *base_path = args->base != NULL ? spec_scenario_path(args->base, error) : NULL;
    if (args->base != NULL && (base_path == NULL || (base = orr_json_read_file(base_path, error)) == NULL))
        return NULL;
    const char *path = strcmp(args->common.words[0], "-") == 0 ? "standard input" : args->common.words[0];
    doc =
        exchange_import_knowing(text->str, text->len, path, format, base != NULL ? orr_json_root(base) : NULL,
                                (const char *const *)sets->pdata, loss, error);
    for (char **set = args->common.sets; doc != NULL && set != NULL && *set != NULL; set++)
        if (!plain_set(*set, error) || !spec_resolve_set(doc, *set, error)) {
            orr_json_free(doc);
            doc = NULL;
        }
    orr_json_free(base);
    return doc;
}

/* Puts something in place of the key that `message` calls missing; NULL: it says something else. */
static const char *stand_in(const char *message, OrrJsonDoc *doc)
{
    static const char *const keys[][2] = {{"model", "\"llama3-8b\""},
                                          {"model.layers", "1"},
                                          {"model.hidden", "128"},
                                          {"model.heads", "1"},
                                          {"model.vocab", "128"},
                                          {"cluster", "\"dgx-h100\""},
                                          {"cluster.accelerator", "\"h100-sxm5-80gb\""},
                                          {"training", "{\"sequence_length\": 128}"},
                                          {"training.sequence_length", "128"},
                                          {"training.global_batch", "1024"}};
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_autofree char *said = g_strdup_printf(": %s: missing;", keys[i][0]);
        if (strstr(message, said) != NULL && orr_json_set(doc, keys[i][0], keys[i][1], NULL))
            return strcmp(keys[i][0], "training") == 0 ? "training.sequence_length" : keys[i][0];
    }
    return NULL;
}

/* What is still missing for a run. A model alone is no scenario yet and does not want to be one. */
static char *lacks(const OrrJson *scenario)
{
    const bool alone = orr_json_count(scenario) == 1 && orr_json_member(scenario, "model") != NULL;
    if (alone)
        return g_strdup(
            "A model alone: --base SCENARIO.json puts it into a scenario, or --cluster NAME and --set "
            "training.sequence_length=..., training.global_batch=... do.\n");
    enum { MOST = 12 };
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autoptr(GString) missing = g_string_new(NULL);
    OrrJsonDoc *doc = orr_json_copy(scenario, "the imported scenario");
    bool ok = false;
    for (int i = 0; i < MOST && !ok; i++) {
        g_autoptr(GError) error = NULL;
        ok = spec_load_json(orr_json_root(doc), "the imported scenario", NULL, true, spec, NULL, &error);
        const char *key = !ok ? stand_in(error->message, doc) : NULL;
        if (key != NULL) {
            g_string_append_printf(missing, "%s%s", missing->len > 0 ? ", " : "", key);
        } else if (!ok && missing->len == 0) {
            g_autofree char *line = g_strndup(error->message, 1000);
            g_autofree char *valid = g_utf8_make_valid(line, -1);
            g_string_append(missing, valid);
        }
        if (key == NULL)
            break;
    }
    orr_json_free(doc);
    return missing->len == 0
               ? NULL
               : g_strdup_printf("Still to be given (--base SCENARIO.json, --cluster NAME, --set): %s\n",
                                 missing->str);
}

static bool is_script(const char *path, const GString *text)
{
    static const char *const endings[] = {".sh", ".bash", ".slurm", ".sbatch"};
    bool is = g_str_has_prefix(text->str, "#!");
    for (gsize i = 0; i < G_N_ELEMENTS(endings); i++)
        is = is || g_str_has_suffix(path, endings[i]);
    return is;
}

/* The script as it is called with --args: "NODES=2 A3B 4" sets NODES and makes A3B its $1. */
static bool call(const ImportArgs *args, GString *text, GError **error)
{
    g_auto(GStrv) words = NULL;
    int count = 0;
    if (args->args == NULL)
        return true;
    if (!is_script(args->common.words[0], text))
        return orr_fail(error, ORR_ERROR_INPUT, "--args: %s is not a script; only a script takes words",
                        args->common.words[0]);
    g_autoptr(GError) wrong = NULL;
    if (!g_shell_parse_argv(args->args, &count, &words, &wrong) &&
        !g_error_matches(wrong, G_SHELL_ERROR, G_SHELL_ERROR_EMPTY_STRING))
        return orr_fail(error, ORR_ERROR_INPUT, "--args: %s", wrong->message);
    g_autoptr(GString) line = g_string_new(NULL);
    int first = 0;
    for (; first < count && (g_ascii_isalpha(words[first][0]) || words[first][0] == '_'); first++) {
        const char *equals = strchr(words[first], '=');
        if (equals == NULL)
            break;
        g_autofree char *quoted = g_shell_quote(equals + 1);
        g_string_append_printf(line, "%.*s=%s\n", (int)(equals - words[first]), words[first], quoted);
    }
    g_string_append(line, "set --");
    for (int i = first; i < count; i++) {
        g_autofree char *quoted = g_shell_quote(words[i]);
        g_string_append_printf(line, " %s", quoted);
    }
    g_string_append_c(line, '\n');
    const char *behind = g_str_has_prefix(text->str, "#!") ? strchr(text->str, '\n') : NULL;
    g_string_insert_len(text, behind != NULL ? behind - text->str + 1 : 0, line->str, (gssize)line->len);
    return true;
}

static bool run(const CliArgs *common, GError **error)
{
    enum { MOST_BYTES = 16 << 20 }; /* of a configuration or a script */
    const ImportArgs *args = (const ImportArgs *)common;
    g_autoptr(GString) text = orr_text_read(common->words[0], MOST_BYTES, error), out = g_string_new(NULL),
                       report = g_string_new(NULL);
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    OrrJsonDoc *doc = text != NULL && call(args, text, error) ? import(args, text, &loss, error) : NULL;
    if (doc == NULL)
        return false;
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_node(&w, NULL, orr_json_root(doc));
    g_string_append_c(out, '\n');
    exchange_loss_write(&loss, report);
    g_autofree char *missing = lacks(orr_json_root(doc));
    orr_json_free(doc);
    if (!cli_output_write(common->output, out, error))
        return false;
    g_string_append(report, missing != NULL ? missing : "");
    g_strchomp(report->str);
    cli_note(common->quiet, "%s", report->str);
    return true;
}

static const CliFlag flags[] = {
    {"from", CLI_FLAG_TEXT, offsetof(ImportArgs, from), "FORMAT",
     "megatron, megatron-bridge, deepspeed, torchtitan, nanotron, axolotl, llama-factory, torchtune, trl, "
     "peft, verl, nemo-rl, openrlhf, slime or hf (default: found from the file)"},
    {"base", CLI_FLAG_FILE, offsetof(ImportArgs, base), "SCENARIO.json",
     "a scenario that says what the file does not: the cluster, the model, the software"},
    {"cluster", CLI_FLAG_TEXT, offsetof(ImportArgs, cluster), "NAME",
     "the cluster it is to run on, a preset or a path; --set cluster.nodes=N says how large"},
    {"args", CLI_FLAG_TEXT, offsetof(ImportArgs, args), "WORDS",
     "what a script is called with: its words, and variables before them, as \"NNODES=2 7B 4096\""},
};

const CliCommand cli_command_import = {
    .name = "import",
    .usage = "FILE",
    .summary = "a training framework's configuration as a scenario",
    .help =
        "Prints a scenario from another tool's configuration. Of pre-training it reads Megatron-LM flags (a "
        "script or arguments), Megatron-Bridge overrides, DeepSpeed JSON, torchtitan TOML and nanotron YAML. "
        "Of "
        "fine-tuning it reads axolotl, LLaMA-Factory and torchtune YAML, arguments of TRL, and PEFT's "
        "adapter_config.json, which is an adapter alone. Of "
        "reinforcement learning it reads launches of verl, OpenRLHF and slime, and NeMo-RL YAML with the "
        "files "
        "that it extends. A Hugging Face config.json is a model alone. \"-\" reads standard input. What the "
        "file does not say comes from "
        "--base, or from the comment that 'orrery export' left.\n\n"
        "A loss report on standard error lists the settings that no field of a scenario answers "
        "to. Settings that change the prediction come apart from those that do not (logging, "
        "data, learning rates).\n\n"
        "  orrery import train.sh --base scenarios/examples/gpt3-175b.json --output mine.json\n"
        "  orrery import run_qwen3.sh --cluster dgx-h100 --args \"NNODES=2 dlc A3B 1 8\"\n"
        "  orrery import ds_config.json --base mine.json --set cluster.nodes=16\n"
        "  orrery import config.json --cluster dgx-h100 --set training.sequence_length=8192 "
        "--set training.global_batch=64 | orrery run -\n"
        "  orrery import qlora.yml --cluster dgx-h100 --set training.samples=52000\n"
        "  orrery import grpo-qwen3-32b-4n8g.yaml --cluster dgx-h100\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(ImportArgs),
    .run = run,
};
