/* exchange/import.c - what importers share: settings taken, keys of the scenario written. */
#include <math.h>
#include <string.h>

#include "exchange/import.h"
#include "spec/load.h"
#include "spec/resolve.h"

void exchange_import_warn(const ExchangeImport *import, const char *format, ...)
{
    if (import->loss == NULL)
        return;
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *message = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    exchange_loss_change(import->loss, message);
}

void exchange_import_refuse(ExchangeImport *import, const char *format, ...)
{
    va_list arguments;
    if (import->refused != NULL)
        return;
    va_start(arguments, format);
    import->refused = g_strdup_vprintf(format, arguments);
    va_end(arguments);
}

void exchange_import_harmless(const ExchangeImport *import, const char *const *keys, gsize count)
{
    for (gsize i = 0; i < count; i++)
        if (settings_find(import->in, keys[i]) != NULL && import->loss != NULL)
            exchange_loss_harmless(import->loss, keys[i]);
}

bool exchange_import_is_placeholder(const ExchangeImport *import, const char *key)
{
    const Setting *setting = settings_find(import->in, key);
    return setting != NULL && setting->placeholder;
}

void exchange_import_tokens(ExchangeImport *import, double tokens)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    if (exchange_import_at(import, "training.epochs") == NULL) /* which say them to the token */
        exchange_import_implied(import, "training.tokens", g_ascii_dtostr(text, sizeof text, tokens));
}

void exchange_import_steps(ExchangeImport *import, const char *key)
{
    int steps = 0;
    const double batch = exchange_import_doc_int(import, "training.global_batch", 0),
                 sequence = exchange_import_doc_int(import, "training.sequence_length", 0);
    if (exchange_import_is_placeholder(import, key) || !exchange_import_int(import, key, &steps) ||
        steps <= 0)
        return;
    if (batch > 0 && sequence > 0) {
        exchange_import_tokens(import, steps * batch * sequence);
    } else if (import->loss != NULL) {
        exchange_loss_harmless(import->loss, key);
    }
}

char *exchange_json_text(const char *value)
{
    g_autofree char *valid = g_utf8_make_valid(value, -1);
    GString *quoted = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, quoted, true);
    orr_jw_text(&w, NULL, valid);
    return g_string_free(quoted, FALSE);
}

const char *exchange_import_text(const ExchangeImport *import, const char *key)
{
    const Setting *setting = settings_find(import->in, key);
    if (setting == NULL)
        return NULL;
    if (setting->value != NULL && strcmp(setting->value, "auto") == 0) /* left to a launcher: not said */
        return NULL;
    return setting->value != NULL ? setting->value : "true";
}

bool exchange_import_int(const ExchangeImport *import, const char *key, int *ret_value)
{
    const char *text = exchange_import_text(import, key);
    char *end = NULL;
    if (text == NULL || strcmp(text, "null") == 0 || strcmp(text, "None") == 0)
        return false;
    const double value = g_ascii_strtod(text, &end);
    if (text[0] == '$') {
        exchange_import_warn(import, "%s: %s is not set in the file; give the value itself", key, text);
        return false;
    }
    if (end == text || *end != '\0' || !(fabs(value) <= 1e9) || floor(value) < value) {
        exchange_import_warn(import, "%s: \"%s\" is not a whole number; ignored", key, text);
        return false;
    }
    *ret_value = (int)value;
    return true;
}

bool exchange_import_bool(const ExchangeImport *import, const char *key, bool fallback)
{
    const char *text = exchange_import_text(import, key);
    if (text == NULL)
        return fallback;
    if (g_ascii_strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0)
        return true;
    if (text[0] == '$') /* a bare switch before a variable that may hold more options */
        return true;
    if (g_ascii_strcasecmp(text, "false") != 0 && strcmp(text, "0") != 0)
        exchange_import_warn(import, "%s: \"%s\" is neither true nor false; taken as false", key, text);
    return false;
}

static void set(ExchangeImport *import, const char *key, const char *value)
{
    g_autofree char *pair = g_strconcat(key, "=", value, NULL);
    GError *error = NULL;
    if (spec_resolve_set(import->doc, pair, &error))
        return;
    exchange_import_warn(import, "%s; ignored", error->message);
    g_error_free(error);
}

void exchange_import_native(ExchangeImport *import, const char *key, const char *value)
{
    set(import, key, value);
    g_ptr_array_add(import->native, g_strdup(key));
}

void exchange_import_native_int(ExchangeImport *import, const char *key, int value)
{
    char text[16];
    g_snprintf(text, sizeof text, "%d", value);
    exchange_import_native(import, key, text);
}

void exchange_import_native_bool(ExchangeImport *import, const char *key, bool value)
{
    exchange_import_native(import, key, value ? "true" : "false");
}

const OrrJson *exchange_import_at(const ExchangeImport *import, const char *key)
{
    g_auto(GStrv) parts = g_strsplit(key, ".", -1);
    const OrrJson *node = orr_json_root(import->doc);
    for (char **part = parts; *part != NULL && node != NULL; part++)
        node = orr_json_type(node) == ORR_JSON_OBJECT ? orr_json_member(node, *part) : NULL;
    return node;
}

void exchange_import_implied(ExchangeImport *import, const char *key, const char *value)
{
    if (exchange_import_at(import, key) == NULL)
        set(import, key, value);
}

int exchange_import_doc_int(const ExchangeImport *import, const char *key, int fallback)
{
    const OrrJson *node = exchange_import_at(import, key);
    const double value =
        node != NULL && orr_json_type(node) == ORR_JSON_NUMBER ? orr_json_number(node) : fallback;
    return fabs(value) <= 1e9 ? (int)value : fallback;
}

int exchange_import_data(const ExchangeImport *import)
{
    const int data = exchange_import_doc_int(import, "parallel.data", 0);
    const OrrJson *node = exchange_import_at(import, "cluster");
    g_autofree SpecCluster *cluster = g_new0(SpecCluster, 1);
    if (data > 0 || node == NULL || orr_json_type(node) != ORR_JSON_OBJECT ||
        !spec_load_cluster_json(node, import->path, cluster, NULL))
        return data;
    const int64_t gpus = (int64_t)cluster->nodes * cluster->gpus_per_node;
    const int64_t split = (int64_t)exchange_import_doc_int(import, "parallel.tensor", 1) *
                          exchange_import_doc_int(import, "parallel.context", 1) *
                          exchange_import_doc_int(import, "parallel.pipeline", 1);
    return cluster->group_count == 0 && split > 0 && gpus % split == 0 ? (int)(gpus / split) : 0;
}

void exchange_import_move(ExchangeImport *import, const char *from, const char *key)
{
    int value = 0;
    if (exchange_import_int(import, from, &value))
        exchange_import_native_int(import, key, value);
}

int exchange_import_layers(const ExchangeImport *import)
{
    const int layers = exchange_import_doc_int(import, "model.layers", 0);
    const OrrJson *model = exchange_import_at(import, "model");
    const OrrJson *preset = exchange_import_at(import, "model.preset");
    const OrrJson *name = preset != NULL ? preset : model;
    SpecModel loaded;
    if (layers > 0)
        return layers;
    if (name == NULL || orr_json_type(name) != ORR_JSON_TEXT ||
        !spec_load_model(orr_json_text(name), &loaded, NULL))
        return 0;
    return loaded.layers;
}

void exchange_import_overlap(ExchangeImport *import, const char *word, bool on)
{
    const OrrJson *list = exchange_import_at(import, "execution.overlap");
    g_autoptr(GString) text = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, text, true);
    orr_jw_begin(&w, NULL, '[');
    if (list != NULL && orr_json_type(list) == ORR_JSON_LIST)
        for (const OrrJson *item = orr_json_first(list); item != NULL; item = orr_json_next(item))
            if (orr_json_type(item) == ORR_JSON_TEXT && strcmp(orr_json_text(item), word) != 0)
                orr_jw_text(&w, NULL, orr_json_text(item));
    if (on)
        orr_jw_text(&w, NULL, word);
    orr_jw_end(&w, ']');
    set(import, "execution.overlap", text->str);
}
