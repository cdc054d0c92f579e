/* spec/import_hf_values.c - values of a Hugging Face config.json, whatever the model. */
#include "spec/import_hf_internal.h"

#include <math.h>

void spec_hf_fail(SpecHf *import, const char *key, const OrrJson *node, const char *expected)
{
    if (import->failed)
        return;
    import->failed = true;
    g_autofree char *shown = node != NULL ? orr_json_show(node) : g_strdup("missing");
    orr_fail(import->error, ORR_ERROR_INPUT, "%s: %s: %s; give %s", import->path, key, shown, expected);
}

const OrrJson *spec_hf_find(const SpecHf *import, const char *key)
{
    const OrrJson *node = orr_json_member(import->config, key);
    g_hash_table_add(import->used, g_strdup(key));
    return node != NULL && orr_json_type(node) != ORR_JSON_NULL ? node : NULL;
}

void spec_hf_change(SpecHf *import, const char *format, ...)
{
    if (import->changes == NULL)
        return;
    va_list arguments;
    va_start(arguments, format);
    g_ptr_array_add(import->changes, g_strdup_vprintf(format, arguments));
    va_end(arguments);
}

int64_t spec_hf_whole(SpecHf *import, const char *keys, int64_t fallback)
{
    g_auto(GStrv) names = g_strsplit(keys, "|", -1);
    for (int i = 0; names[i] != NULL; i++) {
        const OrrJson *node = spec_hf_find(import, names[i]);
        if (node == NULL)
            continue;
        const double value = orr_json_type(node) == ORR_JSON_NUMBER ? orr_json_number(node) : -1;
        if (value >= 0 && value <= 1e12 && !(floor(value) < value))
            return (int64_t)value;
        spec_hf_fail(import, names[i], node, "a whole number");
        return -1;
    }
    if (fallback < 0)
        spec_hf_fail(import, names[0], NULL, "a whole number");
    return fallback;
}

bool spec_hf_flag(SpecHf *import, const char *key, bool fallback)
{
    const OrrJson *node = spec_hf_find(import, key);
    if (node == NULL)
        return fallback;
    if (orr_json_type(node) == ORR_JSON_BOOL)
        return orr_json_bool(node);
    spec_hf_fail(import, key, node, "true or false");
    return fallback;
}

void spec_hf_put(SpecHf *import, const char *key, int64_t value)
{
    orr_jw_int(&import->out, key, value);
}

void spec_hf_put_required(SpecHf *import, const char *key, const char *from)
{
    spec_hf_put(import, key, spec_hf_whole(import, from, -1));
}

double spec_hf_real(const OrrJson *object, const char *key, double fallback)
{
    const OrrJson *node = orr_json_member(object, key);
    return node != NULL && orr_json_type(node) == ORR_JSON_NUMBER ? orr_json_number(node) : fallback;
}
