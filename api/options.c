/* api/options.c - options by table. */
#include "api/options.h"

#include <math.h>
#include <string.h>

#include "api/vary.h"
#include "base/error.h"
#include "base/text.h"

static bool refuse(const char *what, const ApiOption *option, const OrrJson *node, const char *wanted,
                   GError **error)
{
    g_autofree char *shown = orr_json_show(node);
    return orr_fail(error, ORR_ERROR_INPUT, "%s: %s: %s is not %s", what, option->key, shown, wanted);
}

static bool read_number(const char *what, const ApiOption *option, const OrrJson *node, double *ret_value,
                        GError **error)
{
    const double value = orr_json_type(node) == ORR_JSON_NUMBER ? orr_json_number(node) : NAN;
    g_autofree char *wanted = g_strdup_printf(
        "a %s from %.15g to %.15g", option->whole ? "whole number" : "number", option->low, option->high);
    if (!(value >= option->low && value <= option->high) || (option->whole && value > floor(value)))
        return refuse(what, option, node, wanted, error);
    *ret_value = value;
    return true;
}

static bool read_list(const char *what, const ApiOption *option, const OrrJson *node, void *member,
                      GError **error)
{
    const bool numbers = option->kind == API_OPTION_NUMBERS;
    GArray *values = g_array_new(FALSE, FALSE, sizeof(double));
    GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);
    bool ok = orr_json_type(node) == ORR_JSON_LIST || refuse(what, option, node, "a list", error);
    for (const OrrJson *item = ok ? orr_json_first(node) : NULL; ok && item != NULL;
         item = orr_json_next(item)) {
        double value = 0;
        if (numbers) {
            ok = read_number(what, option, item, &value, error);
            g_array_append_val(values, value);
        } else {
            ok = orr_json_type(item) == ORR_JSON_TEXT || refuse(what, option, item, "a text", error);
            g_ptr_array_add(texts, ok ? g_strdup(orr_json_text(item)) : NULL);
        }
    }
    if (ok && numbers)
        *(GArray **)member = g_array_ref(values);
    else if (ok)
        *(GPtrArray **)member = g_ptr_array_ref(texts);
    g_array_unref(values);
    g_ptr_array_unref(texts);
    return ok;
}

/* Values as --set has them: JSON, but texts without their quotes. */
static bool read_vary(const char *what, const ApiOption *option, const OrrJson *node, GArray **ret_fields,
                      GError **error)
{
    GArray *fields = api_vary_fields();
    bool ok = orr_json_type(node) == ORR_JSON_OBJECT ||
              refuse(what, option, node, "an object of lists, as in {\"parallel.tensor\": [4, 8]}", error);
    for (const OrrJson *key = ok ? orr_json_first(node) : NULL; ok && key != NULL; key = orr_json_next(key)) {
        if (orr_json_type(key) != ORR_JSON_LIST || orr_json_first(key) == NULL) {
            ok = refuse(what, option, key, "a list of one value or more", error);
            break;
        }
        const ApiVary vary = {g_strdup(orr_json_key(key)), g_ptr_array_new_with_free_func(g_free)};
        for (const OrrJson *item = orr_json_first(key); item != NULL; item = orr_json_next(item))
            g_ptr_array_add(vary.values, orr_json_type(item) == ORR_JSON_TEXT ? g_strdup(orr_json_text(item))
                                                                              : orr_json_dump(item));
        g_array_append_val(fields, vary);
    }
    if (ok)
        *ret_fields = g_array_ref(fields);
    g_array_unref(fields);
    return ok;
}

static bool read_member(const char *what, const ApiOption *option, const OrrJson *node, void *member,
                        GError **error)
{
    switch (option->kind) {
    case API_OPTION_TEXT:
        if (orr_json_type(node) != ORR_JSON_TEXT)
            return refuse(what, option, node, "a text", error);
        *(char **)member = g_strdup(orr_json_text(node));
        return true;
    case API_OPTION_NUMBER:
        return read_number(what, option, node, member, error);
    case API_OPTION_SWITCH:
        if (orr_json_type(node) != ORR_JSON_BOOL)
            return refuse(what, option, node, "true or false", error);
        *(bool *)member = orr_json_bool(node);
        return true;
    case API_OPTION_NUMBERS:
    case API_OPTION_TEXTS:
        return read_list(what, option, node, member, error);
    case API_OPTION_VARY:
        return read_vary(what, option, node, member, error);
    }
    g_assert_not_reached();
}

static bool read_key(const char *what, const ApiOption *options, int count, const OrrJson *node,
                     void *ret_members, GError **error)
{
    const char *key = orr_json_key(node);
    g_autofree const char **keys = g_new(const char *, (gsize)count + 1);
    for (int i = 0; i < count; i++) {
        keys[i] = options[i].key;
        if (strcmp(options[i].key, key) == 0)
            return read_member(what, &options[i], node, (char *)ret_members + options[i].offset, error);
    }
    const char *near = orr_nearest(key, keys, count);
    return orr_fail(error, ORR_ERROR_INPUT, "%s: no option \"%s\"; did you mean \"%s\"?", what, key,
                    near != NULL ? near : keys[0]);
}

bool api_options_read(const char *text, const char *what, const ApiOption *options, int count,
                      void *ret_members, GError **error)
{
    if (text == NULL)
        return true;
    g_autofree char *name = g_strconcat(what, " options", NULL);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), name, error);
    if (doc == NULL)
        return false;
    const OrrJson *root = orr_json_root(doc);
    bool ok = orr_json_type(root) == ORR_JSON_OBJECT ||
              orr_fail(error, ORR_ERROR_INPUT, "%s: options are a JSON object", what);
    for (const OrrJson *node = ok ? orr_json_first(root) : NULL; ok && node != NULL;
         node = orr_json_next(node))
        ok = read_key(what, options, count, node, ret_members, error);
    orr_json_free(doc);
    if (!ok)
        api_options_clear(options, count, ret_members);
    return ok;
}

void api_options_clear(const ApiOption *options, int count, void *members)
{
    for (int i = 0; i < count; i++) {
        void *member = (char *)members + options[i].offset;
        if (options[i].kind == API_OPTION_TEXT)
            g_clear_pointer((char **)member, g_free);
        else if (options[i].kind == API_OPTION_NUMBERS || options[i].kind == API_OPTION_VARY)
            g_clear_pointer((GArray **)member, g_array_unref);
        else if (options[i].kind == API_OPTION_TEXTS)
            g_clear_pointer((GPtrArray **)member, g_ptr_array_unref);
    }
}
