/* exchange/import_finetune_layers.c - which layers a fine-tuning file adapts, and which tables it trains whole.
 *
 * Source: [PEFT] LoraConfig.target_modules and modules_to_save. Tested: unit/exchange/test_import_finetune.c
 */
#include <string.h>

#include "exchange/finetune.h"
#include "spec/adapter.h"

const char *exchange_import_said(const ExchangeImport *import, const char *key)
{
    const char *text = key != NULL ? exchange_import_text(import, key) : NULL;
    return text != NULL && text[0] != '\0' && strcmp(text, "null") != 0 && strcmp(text, "None") != 0 ? text
                                                                                                     : NULL;
}

static void add_target(GString *list, const char *name)
{
    g_autofree char *quoted = exchange_json_text(name);
    if (strstr(list->str, quoted) == NULL)
        g_string_append_printf(list, "%s%s", list->len > 1 ? "," : "", quoted);
}

/* Where modelling code of the Llama kind keeps a linear layer: what a pattern of PEFT's is matched against. */
static const char *const module_of[][2] = {
    {"q_proj", "self_attn"}, {"k_proj", "self_attn"}, {"v_proj", "self_attn"}, {"o_proj", "self_attn"},
    {"gate_proj", "mlp"},    {"up_proj", "mlp"},      {"down_proj", "mlp"},
};

/* Targets by a regular expression, which has to match the whole name of a module. False: `given` is none. */
static bool take_pattern(ExchangeImport *import, const ExchangeDialect *names, const char *given,
                         GString *list)
{
    static const char *const roots[] = {"model.layers.0", "model.language_model.layers.0",
                                        "language_model.model.layers.0"};
    if (given == NULL || given[0] == '[' || strpbrk(given, "\\(*+|") == NULL)
        return false;
    g_autofree char *whole = g_strdup_printf("^(?:%s)$", given);
    g_autoptr(GRegex) pattern = strlen(given) < 1000 ? g_regex_new(whole, 0, 0, NULL) : NULL;
    for (gsize i = 0; pattern != NULL && i < G_N_ELEMENTS(module_of); i++) {
        bool met = false;
        for (gsize root = 0; root < G_N_ELEMENTS(roots); root++) {
            g_autofree char *name = g_strjoin(".", roots[root], module_of[i][1], module_of[i][0], NULL);
            met = met || g_regex_match(pattern, name, 0, NULL);
        }
        if (met)
            add_target(list, module_of[i][0]);
    }
    if (list->len == 1)
        exchange_import_warn(import, "%s: the pattern %.60s matches no linear layer", names->targets, given);
    return true;
}

/* A list as the file writes it, [q_proj, v_proj] or "q_proj,v_proj"; "all" and "all-linear" stand alone. */
static void take_targets(ExchangeImport *import, const ExchangeDialect *names)
{
    const char *given = exchange_import_said(import, names->targets);
    const bool all = exchange_import_bool(import, "lora_target_linear", false) ||
                     g_strcmp0(given, "all") == 0 || g_strcmp0(given, "all-linear") == 0;
    const bool mlp = exchange_import_bool(import, "model.apply_lora_to_mlp", false);
    if (all) {
        exchange_import_native(import, "training.adapter.targets", "\"all-linear\"");
        return;
    }
    if (given == NULL && names->targets_default != NULL) {
        exchange_import_native(import, "training.adapter.targets", names->targets_default);
        return;
    }
    g_autoptr(GString) list = g_string_new("[");
    const bool pattern = take_pattern(import, names, given, list);
    bool one_layer = false, told = false;
    g_auto(GStrv) parts = g_strsplit_set(given != NULL && !pattern ? given : "", "[],'\" \t\n", -1);
    for (char **part = parts; *part != NULL; part++) {
        const char *dot = strrchr(*part, '.'),
                   *own = dot != NULL ? dot + 1 : *part; /* of a module's whole name */
        const char *name = strcmp(own, "output_proj") == 0 ? "o_proj" : own;
        one_layer = one_layer || g_regex_match_simple("layers\\.[0-9]", *part, 0, 0);
        told = told || name[0] != '\0';
        if (spec_knows_target(name))
            add_target(list, name);
        else if (name[0] != '\0')
            exchange_import_warn(
                import, "%s: %.60s is not one of the linear layers that training.adapter.targets knows",
                names->targets, name);
    }
    static const char *const of_mlp[] = {"gate_proj", "up_proj", "down_proj"};
    for (gsize i = 0; mlp && i < G_N_ELEMENTS(of_mlp); i++)
        add_target(list, of_mlp[i]);
    if (one_layer)
        exchange_import_warn(import, "%s: names single layers; adapters are taken on all of them",
                             names->targets);
    if (list->len == 1) {
        exchange_import_warn(import, "%s: %s; q_proj and v_proj are taken", names->targets,
                             told ? "no linear layer that orrery knows"
                                  : "PEFT chooses them by the model's kind");
        g_string_append(list, "\"q_proj\",\"v_proj\"");
    }
    g_string_append_c(list, ']');
    exchange_import_native(import, "training.adapter.targets", list->str);
}

/* Tables that are trained whole, under the program's own key. */
static void take_saved(ExchangeImport *import, const ExchangeDialect *names)
{
    g_autoptr(GString) list = g_string_new("[");
    const char *given = names->saved != NULL ? exchange_import_said(import, names->saved) : NULL;
    g_auto(GStrv) parts = g_strsplit_set(given != NULL ? given : "", "[],'\" \t\n", -1);
    for (char **part = parts; *part != NULL; part++) {
        const char *dot = strrchr(*part, '.'), *name = dot != NULL ? dot + 1 : *part;
        if (spec_saved_of(name) != 0)
            add_target(list, name);
        else if (name[0] != '\0')
            exchange_import_warn(import, "%s: %.60s is not a table that can be trained whole; ignored",
                                 names->saved, name);
    }
    g_string_append_c(list, ']');
    if (list->len > 2)
        exchange_import_native(import, "training.adapter.modules_to_save", list->str);
}

void exchange_import_adapter_layers(ExchangeImport *import, const ExchangeDialect *names)
{
    take_targets(import, names);
    take_saved(import, names);
}
