/* exchange/settings.c - the list, and writing it. */
#include "exchange/settings.h"

#include <string.h>

static void setting_clear(void *data)
{
    g_free(((Setting *)data)->key);
    g_free(((Setting *)data)->value);
}

void settings_init(Settings *settings)
{
    *settings = (Settings){.list = g_array_new(FALSE, TRUE, sizeof(Setting)),
                           .environment = g_ptr_array_new_with_free_func(g_free),
                           .left = g_ptr_array_new_with_free_func(g_free)};
    g_array_set_clear_func(settings->list, setting_clear);
}

void settings_clear(Settings *settings)
{
    if (settings->list != NULL)
        g_array_free(g_steal_pointer(&settings->list), TRUE);
    g_clear_pointer(&settings->environment, g_ptr_array_unref);
    g_clear_pointer(&settings->left, g_ptr_array_unref);
    g_clear_pointer(&settings->companion, g_free);
}

static void add(Settings *settings, const char *key, char *value, bool is_text)
{
    const Setting setting = {.key = g_strdup(key), .value = value, .is_text = is_text};
    g_array_append_val(settings->list, setting);
}

void settings_text(Settings *settings, const char *key, const char *value)
{
    add(settings, key, g_strdup(value), true);
}

void settings_raw(Settings *settings, const char *key, const char *value)
{
    add(settings, key, g_strdup(value), false);
}

void settings_int(Settings *settings, const char *key, int64_t value)
{
    add(settings, key, g_strdup_printf("%" G_GINT64_FORMAT, (gint64)value), false);
}

void settings_bool(Settings *settings, const char *key, bool value)
{
    add(settings, key, g_strdup(value ? "true" : "false"), false);
}

void settings_mark_placeholder(Settings *settings)
{
    g_assert(settings->list->len > 0);
    g_array_index(settings->list, Setting, settings->list->len - 1).placeholder = true;
}

void settings_environment(Settings *settings, const char *name, const char *value)
{
    g_ptr_array_add(settings->environment, g_strconcat(name, "=", value, NULL));
}

void settings_leave(Settings *settings, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_ptr_array_add(settings->left, g_strdup_vprintf(format, arguments));
    va_end(arguments);
}

Setting *settings_find(const Settings *settings, const char *key)
{
    Setting *found = NULL;
    for (guint i = 0; i < settings->list->len; i++) {
        Setting *setting = &g_array_index(settings->list, Setting, i);
        if (strcmp(setting->key, key) != 0)
            continue;
        setting->used = true;
        found = setting;
    }
    return found;
}

/* --- writing --- */

static bool shell_safe(const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if (!g_ascii_isalnum(*c) && strchr("_-.,:/=+@%", *c) == NULL)
            return false;
    return text[0] != '\0';
}

static void append_shell(GString *out, const char *text)
{
    if (shell_safe(text)) {
        g_string_append(out, text);
        return;
    }
    g_autofree char *quoted = g_shell_quote(text);
    g_string_append(out, quoted);
}

static void append_quoted(GString *out, const Setting *setting)
{
    OrrJsonWriter w;
    if (setting->is_text) {
        orr_jw_init(&w, out, true);
        orr_jw_text(&w, NULL, setting->value); /* TOML and YAML read a JSON string as one of theirs */
    } else {
        g_string_append(out, setting->value != NULL ? setting->value : "true");
    }
}

static void end_line(const Setting *setting, GString *out)
{
    g_string_append(out, setting->placeholder ? "  " SETTINGS_PLACEHOLDER "\n" : "\n");
}

static void write_shell(const Settings *settings, bool flags, const char *name, GString *out)
{
    for (guint i = 0; i < settings->environment->len; i++)
        g_string_append_printf(out, "export %s\n", (const char *)g_ptr_array_index(settings->environment, i));
    g_string_append_printf(out, "%s=(\n", name);
    for (guint i = 0; i < settings->list->len; i++) {
        const Setting *setting = &g_array_index(settings->list, Setting, i);
        g_string_append_printf(out, "    %s%s", flags ? "--" : "", setting->key);
        if (setting->value != NULL) {
            g_string_append_c(out, flags ? ' ' : '=');
            if (flags && !setting->is_text)
                g_string_append(out, setting->value); /* several words */
            else
                append_shell(out, setting->value);
        }
        end_line(setting, out);
    }
    g_string_append(out, ")\n");
}

static void write_toml(const Settings *settings, GString *out)
{
    g_autofree char *section = g_strdup("");
    for (guint i = 0; i < settings->list->len; i++) {
        const Setting *setting = &g_array_index(settings->list, Setting, i);
        const char *dot = strrchr(setting->key, '.');
        g_autofree char *prefix =
            dot != NULL ? g_strndup(setting->key, (gsize)(dot - setting->key)) : g_strdup("");
        if (strcmp(prefix, section) != 0) {
            g_string_append_printf(out, "\n[%s]\n", prefix);
            g_free(section);
            section = g_strdup(prefix);
        }
        g_string_append_printf(out, "%s = ", dot != NULL ? dot + 1 : setting->key);
        append_quoted(out, setting);
        end_line(setting, out);
    }
}

/* How many leading parts of a key lie in the open path. */
static guint shared_parts(char **open, char **parts)
{
    guint shared = 0;
    while (open != NULL && open[shared] != NULL && parts[shared + 1] != NULL &&
           strcmp(open[shared], parts[shared]) == 0)
        shared++;
    return shared;
}

static void write_yaml(const Settings *settings, GString *out)
{
    g_auto(GStrv) open = NULL;
    for (guint i = 0; i < settings->list->len; i++) {
        const Setting *setting = &g_array_index(settings->list, Setting, i);
        char **parts = g_strsplit(setting->key, ".", -1);
        const guint count = g_strv_length(parts);
        for (guint level = shared_parts(open, parts); level + 1 < count; level++)
            g_string_append_printf(out, "%*s%s:\n", (int)(2 * level), "", parts[level]);
        g_string_append_printf(out, "%*s%s: ", (int)(2 * (count - 1)), "", parts[count - 1]);
        append_quoted(out, setting);
        end_line(setting, out);
        g_strfreev(open);
        open = parts;
        g_free(g_steal_pointer(&open[count - 1]));
    }
}

static void write_json_value(OrrJsonWriter *w, const char *key, const Setting *setting)
{
    char *end = NULL;
    const double number = setting->is_text ? 0 : g_ascii_strtod(setting->value, &end);
    const bool whole = !setting->is_text && (setting->value[0] == '[' || strcmp(setting->value, "null") == 0);
    OrrJsonDoc *node = whole ? orr_json_parse(setting->value, strlen(setting->value), key, NULL) : NULL;
    if (node != NULL)
        orr_jw_node(w, key, orr_json_root(node));
    else if (!setting->is_text && end != setting->value && *end == '\0')
        orr_jw_number(w, key, number);
    else if (!setting->is_text &&
             (g_str_equal(setting->value, "true") || g_str_equal(setting->value, "false")))
        orr_jw_bool(w, key, setting->value[0] == 't');
    else
        orr_jw_text(w, key, setting->value);
    orr_json_free(node);
}

static void write_json(const Settings *settings, GString *out)
{
    OrrJsonWriter w;
    g_auto(GStrv) open = NULL;
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    for (guint i = 0; i < settings->list->len; i++) {
        const Setting *setting = &g_array_index(settings->list, Setting, i);
        char **parts = g_strsplit(setting->key, ".", -1);
        const guint count = g_strv_length(parts), shared = shared_parts(open, parts);
        for (guint level = open != NULL ? g_strv_length(open) : 0; level > shared; level--)
            orr_jw_end(&w, '}');
        for (guint level = shared; level + 1 < count; level++)
            orr_jw_begin(&w, parts[level], '{');
        write_json_value(&w, parts[count - 1], setting);
        g_strfreev(open);
        open = parts;
        g_free(g_steal_pointer(&open[count - 1]));
    }
    for (guint level = open != NULL ? g_strv_length(open) : 0; level > 0; level--)
        orr_jw_end(&w, '}');
    bool marked = false;
    for (guint i = 0; i < settings->list->len; i++) {
        const Setting *setting = &g_array_index(settings->list, Setting, i);
        if (!setting->placeholder)
            continue;
        if (!marked)
            orr_jw_begin(&w, SETTINGS_PLACEHOLDERS_KEY, '[');
        orr_jw_text(&w, NULL, setting->key);
        marked = true;
    }
    if (marked)
        orr_jw_end(&w, ']');
    if (settings->companion != NULL) {
        OrrJsonDoc *doc = orr_json_parse(settings->companion, strlen(settings->companion), "companion", NULL);
        g_assert(doc != NULL);
        orr_jw_node(&w, "orrery", orr_json_root(doc));
        orr_json_free(doc);
    }
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}

void settings_write(const Settings *settings, SettingsSyntax syntax, const char *title, const char *name,
                    GString *out)
{
    if (syntax == SETTINGS_JSON) {
        write_json(settings, out);
        return;
    }
    g_string_append_printf(out, "# %s\n", title);
    if (settings->companion != NULL)
        g_string_append_printf(out, "# orrery-scenario: %s\n", settings->companion);
    switch (syntax) {
    case SETTINGS_FLAGS:
    case SETTINGS_DOTLIST:
        write_shell(settings, syntax == SETTINGS_FLAGS, name, out);
        return;
    case SETTINGS_TOML:
        write_toml(settings, out);
        return;
    case SETTINGS_YAML:
        write_yaml(settings, out);
        return;
    case SETTINGS_JSON:
        break;
    }
    g_assert_not_reached();
}
