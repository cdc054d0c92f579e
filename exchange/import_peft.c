/* exchange/import_peft.c - see import_peft.h. Source: [PEFT] tuners/lora/config.py. Tested: unit/exchange/test_import_peft.c */
#include "exchange/import_peft.h"

#include <string.h>

#include "base/error.h"
#include "spec/adapter.h"
#include "spec/fields.h"

bool exchange_is_peft(const OrrJson *root)
{
    return orr_json_type(root) == ORR_JSON_OBJECT && orr_json_member(root, "peft_type") != NULL;
}

/* Keys that change what a step costs in ways that are not modelled, and the value that means they are off. */
static void warn(const OrrJson *root, ExchangeLoss *loss)
{
    static const char *const off[] = {"use_dora", "modules_to_save", "rank_pattern", "layers_to_transform",
                                      "lora_bias"};
    for (gsize i = 0; i < G_N_ELEMENTS(off); i++) {
        const OrrJson *node = orr_json_member(root, off[i]);
        const bool empty =
            node == NULL || orr_json_type(node) == ORR_JSON_NULL ||
            (orr_json_type(node) == ORR_JSON_BOOL && !orr_json_bool(node)) ||
            ((orr_json_type(node) == ORR_JSON_OBJECT || orr_json_type(node) == ORR_JSON_LIST) &&
             orr_json_first(node) == NULL);
        if (empty)
            continue;
        g_autofree char *value = orr_json_show(node),
                        *clause = g_strdup_printf("%s: %s is not modelled; passed over", off[i], value);
        exchange_loss_change(loss, clause);
    }
}

/* "q_proj" of "model.layers.0.self_attn.q_proj"; others are told of. */
static void write_targets(const OrrJson *targets, OrrJsonWriter *w, ExchangeLoss *loss)
{
    if (targets != NULL && orr_json_type(targets) == ORR_JSON_TEXT) {
        orr_jw_text(w, "targets", orr_json_text(targets));
        return;
    }
    if (targets == NULL || orr_json_type(targets) != ORR_JSON_LIST) {
        exchange_loss_change(
            loss, "target_modules: PEFT chooses them by the model's kind; q_proj and v_proj are taken");
        orr_jw_begin(w, "targets", '[');
        orr_jw_text(w, NULL, "q_proj");
        orr_jw_text(w, NULL, "v_proj");
        orr_jw_end(w, ']');
        return;
    }
    orr_jw_begin(w, "targets", '[');
    for (const OrrJson *item = orr_json_first(targets); item != NULL; item = orr_json_next(item)) {
        const char *name = orr_json_type(item) == ORR_JSON_TEXT ? orr_json_text(item) : "";
        const char *dot = strrchr(name, '.');
        name = dot != NULL ? dot + 1 : name;
        if (spec_knows_target(name)) {
            orr_jw_text(w, NULL, name);
            continue;
        }
        g_autofree char *clause =
            g_strdup_printf("target_modules: \"%.60s\" is none of the linear layers that "
                            "training.adapter.targets knows; passed over",
                            name);
        exchange_loss_change(loss, clause);
    }
    orr_jw_end(w, ']');
}

OrrJsonDoc *exchange_import_peft(const OrrJson *root, const char *path, const OrrJson *base,
                                 ExchangeLoss *loss, GError **error)
{
    const OrrJson *kind = orr_json_member(root, "peft_type");
    const bool lora = orr_json_type(kind) == ORR_JSON_TEXT && strcmp(orr_json_text(kind), "LORA") == 0;
    if (!lora) {
        g_autofree char *shown = orr_json_show(kind);
        orr_fail(error, ORR_ERROR_INPUT, "%s: peft_type: %s is an adapter that is not modelled; LORA is",
                 path, shown);
        return NULL;
    }
    g_autoptr(GString) text = g_string_new(NULL);
    OrrJsonWriter writer, *w = &writer;
    orr_jw_init(w, text, false);
    orr_jw_begin(w, NULL, '{');
    orr_jw_begin(w, "training", '{');
    orr_jw_text(w, "task", "lora");
    orr_jw_begin(w, "adapter", '{');
    orr_jw_number(w, "rank", orr_json_number_of(root, "r", 8));
    orr_jw_number(w, "alpha", orr_json_number_of(root, "lora_alpha", 8));
    orr_jw_number(w, "dropout_frac", orr_json_number_of(root, "lora_dropout", 0));
    write_targets(orr_json_member(root, "target_modules"), w, loss);
    orr_jw_end(w, '}');
    orr_jw_end(w, '}');
    orr_jw_end(w, '}');
    warn(root, loss);
    OrrJsonDoc *adapter = orr_json_parse(text->str, text->len, path, error);
    OrrJsonDoc *doc = base != NULL ? orr_json_copy(base, path) : orr_json_parse("{}", 2, path, NULL);
    orr_json_merge_into(doc, orr_json_root(adapter));
    orr_json_free(adapter);
    return doc;
}
