/* spec/help.c - fields and tables as text for a terminal. */
#include "spec/help.h"

#include <string.h>

#include "base/text.h"
#include "spec/read.h"

enum { WIDTH = 80 };

/* Names under which a table is asked for directly. */
typedef struct Root {
    const char *name;
    const SpecTable *table;
} Root;

static const Root roots[] = {
    {"scenario", &spec_table_scenario},
    {"accelerator", &spec_table_accelerator},
    {"framework", &spec_table_framework},
    {"measurement", &spec_table_measurement},
};

static void append_wrapped(GString *out, const char *text, int indent)
{
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    int column = 0;
    for (int i = 0; words[i] != NULL; i++) {
        const int length = (int)g_utf8_strlen(words[i], -1);
        if (column > indent && column + 1 + length > WIDTH) {
            g_string_append_c(out, '\n');
            column = 0;
        }
        if (column == 0) {
            g_string_append_printf(out, "%*s", indent, "");
            column = indent;
        } else {
            g_string_append_c(out, ' ');
            column++;
        }
        g_string_append(out, words[i]);
        column += length;
    }
    g_string_append_c(out, '\n');
}

/* What holds where the key is absent; NULL: nothing to say, or `help` says it. */
static const char *default_of(const SpecField *field)
{
    if (field->flags & SPEC_FIELD_REQUIRED)
        return NULL;
    if (g_strcmp0(field->default_text, "\"\"") == 0)
        return "none";
    if (field->default_text != NULL)
        return field->default_text;
    if ((field->flags & SPEC_FIELD_DERIVED) == 0)
        return NULL;
    if (field->absent_text != NULL)
        return field->absent_text;
    return field->table == NULL && strstr(field->help, "default") != NULL ? NULL : "none";
}

static const char *unit_examples(const SpecField *field)
{
    if (field->type != SPEC_TYPE_DOUBLE)
        return NULL;
    switch (field->unit) {
    case ORR_UNIT_BYTES:
        return "bytes; also text such as \"80 GiB\" or \"80 GB\"";
    case ORR_UNIT_BYTES_PER_S:
        return "bytes/s; also text such as \"25 GB/s\" or \"400 Gb/s\"";
    case ORR_UNIT_SECONDS:
        return "seconds; also text such as \"2.5 us\" or \"30 days\"";
    case ORR_UNIT_FLOPS_PER_S:
        return "FLOP/s; also text such as \"312 TFLOP/s\"";
    case ORR_UNIT_TOKENS:
        return "tokens; also text such as \"300B\"";
    case ORR_UNIT_WATTS:
        return "W; also text such as \"1.2 kW\"";
    case ORR_UNIT_FRAC:
        return "a fraction; also text such as \"5 %\"";
    case ORR_UNIT_USD:
        return "US dollars";
    case ORR_UNIT_NONE:
        break;
    }
    return NULL;
}

static void append_table(GString *out, const SpecTable *table)
{
    for (int i = 0; i < table->count; i++) {
        const SpecField *field = &table->fields[i];
        g_autofree char *form = spec_field_form(field);
        const char *fallback = default_of(field);
        g_string_append_printf(out, "\n  %s\n", field->key);
        append_wrapped(out, field->help, 6);
        const char *must = field->flags & SPEC_FIELD_REQUIRED ? "; must be given" : "";
        g_autofree char *line = fallback != NULL ? g_strdup_printf("%s; default: %s", form, fallback)
                                                 : g_strconcat(form, must, NULL);
        append_wrapped(out, line, 6);
    }
}

static void append_field(GString *out, const char *path, const SpecField *field)
{
    g_autofree char *form = spec_field_form(field);
    const char *fallback = default_of(field), *unit = unit_examples(field);
    g_string_append_printf(out, "%s\n", path);
    append_wrapped(out, field->help, 2);
    g_string_append(out, "\n");
    g_autofree char *takes = g_strdup_printf("Takes:   %s", form);
    append_wrapped(out, takes, 2);
    if (unit != NULL)
        g_string_append_printf(out, "  Unit:    %s\n", unit);
    if (field->flags & SPEC_FIELD_REQUIRED)
        g_string_append(out, "  Must be given.\n");
    if (fallback != NULL)
        g_string_append_printf(out, "  Default: %s\n", fallback);
    if (field->table != NULL) {
        g_string_append_printf(out, "\n  Keys of %s:\n", path);
        append_table(out, field->table);
    }
}

static void collect_keys(const SpecTable *table, const char *prefix, GPtrArray *keys)
{
    for (int i = 0; i < table->count; i++) {
        const SpecField *field = &table->fields[i];
        char *path = prefix[0] != '\0' ? g_strconcat(prefix, ".", field->key, NULL) : g_strdup(field->key);
        g_ptr_array_add(keys, path);
        if (field->table != NULL)
            collect_keys(field->table, path, keys);
    }
}

GPtrArray *spec_help_keys(void)
{
    GPtrArray *keys = g_ptr_array_new_with_free_func(g_free);
    collect_keys(&spec_table_scenario, "", keys);
    return keys;
}

/* The field at a full path below `table`, or NULL. */
static const SpecField *find_field(const SpecTable *table, const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, ".", -1);
    const SpecField *field = NULL;
    for (int i = 0; parts[i] != NULL; i++) {
        if (table == NULL)
            return NULL;
        field = spec_table_find(table, parts[i]);
        if (field == NULL)
            return NULL;
        table = field->table;
    }
    return field;
}

static const char *last_part(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot != NULL ? dot + 1 : path;
}

/* Every field whose path ends in `key`. */
static int append_matches(GString *out, const char *key, const GPtrArray *keys)
{
    g_autofree char *suffix = g_strconcat(".", key, NULL);
    int found = 0;
    for (guint i = 0; i < keys->len; i++) {
        const char *path = g_ptr_array_index(keys, i);
        if (!g_str_has_suffix(path, suffix))
            continue;
        if (found++ > 0)
            g_string_append_c(out, '\n');
        append_field(out, path, find_field(&spec_table_scenario, path));
    }
    return found;
}

static bool fail_unknown(const char *key, const GPtrArray *keys, GError **error)
{
    const char *near = orr_nearest(key, (const char *const *)keys->pdata, (int)keys->len);
    g_autofree const char **parts = g_new(const char *, keys->len);
    for (guint i = 0; i < keys->len; i++)
        parts[i] = last_part(g_ptr_array_index(keys, i));
    const char *near_part = orr_nearest(last_part(key), parts, (int)keys->len);
    for (guint i = 0; near == NULL && near_part != NULL && i < keys->len; i++)
        if (parts[i] == near_part)
            near = g_ptr_array_index(keys, i);
    if (near != NULL)
        orr_fail(error, ORR_ERROR_INPUT, "help: no field \"%s\"; did you mean %s?", key, near);
    else
        orr_fail(error, ORR_ERROR_INPUT,
                 "help: no field \"%s\"; ask for model, cluster, training, parallel, execution or offload",
                 key);
    return false;
}

bool spec_help(const char *key, GString *out, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(roots); i++) {
        const size_t length = strlen(roots[i].name);
        if (strncmp(key, roots[i].name, length) != 0 || (key[length] != '\0' && key[length] != '.'))
            continue;
        const SpecField *field = key[length] == '.' ? find_field(roots[i].table, key + length + 1) : NULL;
        if (field != NULL) {
            append_field(out, key, field);
            return true;
        }
        if (key[length] == '\0') {
            g_string_append_printf(out, "%s\n", key);
            append_wrapped(out, roots[i].table->help, 2);
            append_table(out, roots[i].table);
            return true;
        }
    }
    const SpecField *field = find_field(&spec_table_scenario, key);
    if (field != NULL) {
        append_field(out, key, field);
        return true;
    }
    g_autoptr(GPtrArray) keys = spec_help_keys();
    return append_matches(out, key, keys) > 0 || fail_unknown(key, keys, error);
}
