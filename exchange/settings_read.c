/* exchange/settings_read.c - settings from shell words, TOML, YAML and JSON. */
#include <string.h>

#include "exchange/settings_flow.h"
#include "exchange/shell.h"

#define COMPANION_MARK "# orrery-scenario: "

static void problem(GPtrArray *problems, guint line, const char *what)
{
    enum { MOST = 20 };
    if (problems->len < MOST)
        g_ptr_array_add(problems, g_strdup_printf("line %u: %s; ignored", line, what));
}

/* --- shell words --- */

static bool is_flag(const char *word)
{
    return g_str_has_prefix(word, "--") && g_ascii_isalpha(word[2]);
}

static const char *word_at(const GPtrArray *words, guint i)
{
    return i < words->len ? g_ptr_array_index(words, i) : SHELL_END;
}

/* "--num-layers" and "32" on lines of their own: words[at] ends the line of a flag that has no value yet. */
static bool value_on_next_line(const GPtrArray *words, guint flag, guint at)
{
    return (flag == 0 || shell_is_end(word_at(words, flag - 1))) && !shell_is_end(word_at(words, at + 1)) &&
           !is_flag(word_at(words, at + 1)) && shell_is_end(word_at(words, at + 2));
}

/* 220_000_000 is a whole number to Python and to YAML 1.1: without its strokes. */
static void close_digits(char *text)
{
    if (!g_ascii_isdigit(text[0]) || strspn(text, "0123456789_") != strlen(text))
        return;
    char *to = text;
    for (const char *from = text; *from != '\0'; from++)
        if (*from != '_')
            *to++ = *from;
    *to = '\0';
}

static void add_flag(Settings *settings, const char *key, const char *value)
{
    g_autofree char *plain = g_strdup(value);
    if (plain != NULL)
        close_digits(plain);
    settings_text(settings, key, plain);
}

static void read_flags(const char *text, size_t length, Settings *settings)
{
    g_autoptr(GPtrArray) words = shell_words(text, length);
    for (guint i = 0; i < words->len; i++) {
        const char *word = g_ptr_array_index(words, i);
        const guint flag = i;
        if (!is_flag(word))
            continue;
        const char *equals = strchr(word, '=');
        g_autofree char *key =
            equals != NULL ? g_strndup(word + 2, (gsize)(equals - word - 2)) : g_strdup(word + 2);
        g_autoptr(GString) value = g_string_new(equals != NULL ? equals + 1 : NULL);
        bool bare = equals == NULL;
        for (; i + 1 < words->len && !is_flag(word_at(words, i + 1)); i++) {
            const char *next = word_at(words, i + 1);
            if (shell_is_end(next) && next[0] == '\n' && bare && value_on_next_line(words, flag, i + 1))
                continue;
            if (shell_is_end(next) || g_str_has_suffix(next, ".py")) /* the launcher's options end there */
                break;
            if (!bare && next[0] == '$') /* a variable of the environment that may hold more options */
                continue;
            g_string_append_printf(value, "%s%s", bare ? "" : " ", next);
            bare = false;
        }
        add_flag(settings, key, bare ? NULL : value->str);
    }
}

/* "model.tensor_model_parallel_size=8" and "mixed_precision=bf16_mixed", but no TP=8 of the shell's. */
static bool is_override(const char *key, const char *equals)
{
    for (const char *c = key; c < equals; c++)
        if (!g_ascii_islower(*c) && !g_ascii_isdigit(*c) && *c != '_' && *c != '.')
            return false;
    return key < equals;
}

static void read_dotlist(const char *text, size_t length, Settings *settings)
{
    g_autoptr(GPtrArray) words = shell_words(text, length);
    for (guint i = 0; i < words->len; i++) {
        const char *word = g_ptr_array_index(words, i);
        const char *equals = strchr(word, '='), *start = word + strspn(word, "+~");
        if (equals == NULL || !is_override(start, equals))
            continue;
        g_autofree char *key = g_strndup(start, (gsize)(equals - start));
        settings_text(settings, key, equals + 1);
    }
}

/* --- TOML and YAML --- */

/* Cuts a comment that begins outside quotes. */
static void cut_comment(char *line)
{
    char quote = '\0';
    for (char *c = line; *c != '\0'; c++) {
        if (quote != '\0' && *c == '\\' && quote == '"' && c[1] != '\0')
            c++;
        else if (quote != '\0' ? *c == quote : *c == '"' || *c == '\'')
            quote = quote != '\0' ? '\0' : *c;
        else if (quote == '\0' && *c == '#' && (c == line || g_ascii_isspace(c[-1]))) {
            *c = '\0';
            return;
        }
    }
}

/* TOML's 8_192, 0x2000, 0o20000, 0b1 and 1_000.5 as decimals; NULL: not a number of that kind. */
static char *toml_number(const char *text)
{
    const bool prefixed = text[0] == '0' && text[1] != '\0' && strchr("xob", text[1]) != NULL;
    if (!prefixed &&
        !(g_ascii_isdigit(text[0]) || ((text[0] == '-' || text[0] == '+') && g_ascii_isdigit(text[1]))))
        return NULL;
    GString *plain = g_string_new(NULL);
    for (const char *c = text + (prefixed ? 2 : text[0] == '+' ? 1 : 0); *c != '\0'; c++)
        if (*c != '_')
            g_string_append_c(plain, *c);
    if (prefixed) {
        char *end = NULL;
        const guint64 value = g_ascii_strtoull(plain->str, &end,
                                               text[1] == 'x'   ? 16
                                               : text[1] == 'o' ? 8
                                                                : 2);
        if (plain->len > 0 && *end == '\0')
            g_string_printf(plain, "%" G_GUINT64_FORMAT, value);
        else
            g_string_assign(plain, text);
    }
    return g_string_free(plain, FALSE);
}

/* The value that begins at line *at, with the lines that belong to it; *at becomes the last of them. g_free. */
static char *whole_value(char **lines, guint *at, const char *first)
{
    enum { MOST = 1 << 16 };
    g_autoptr(GString) value = g_string_new(first);
    const bool text = value->str[0] != '[' && value->str[0] != '{';
    while (settings_goes_on(value->str) && lines[*at + 1] != NULL && value->len < MOST) {
        char *line = lines[++*at];
        if (!text)
            cut_comment(line);
        g_string_append_printf(value, "%s%s", text ? "\n" : " ", text ? line : g_strstrip(line));
        while (value->len > 0 && g_ascii_isspace(value->str[value->len - 1]))
            g_string_truncate(value, value->len - 1);
    }
    return g_strdup(value->str);
}

static void read_toml(char **lines, Settings *settings, GPtrArray *problems)
{
    g_autofree char *section = g_strdup("");
    for (guint i = 0; lines[i] != NULL; i++) {
        cut_comment(lines[i]);
        char *line = g_strstrip(lines[i]);
        char *equals = strchr(line, '=');
        if (line[0] == '\0')
            continue;
        if (line[0] == '[' && g_str_has_suffix(line, "]")) {
            g_free(section);
            section = g_strstrip(g_strndup(line + 1, strlen(line) - 2));
        } else if (equals != NULL && equals != line) {
            *equals = '\0';
            const char *key = g_strstrip(line);
            g_autofree char *value = whole_value(lines, &i, g_strstrip(equals + 1));
            g_autofree char *number = toml_number(value);
            g_autofree char *name = settings_unquote(key);
            g_autofree char *path =
                section[0] != '\0' ? g_strconcat(section, ".", name, NULL) : g_strdup(name);
            if (!settings_flow(settings, path, value, '='))
                settings_add(settings, section, key, number != NULL ? number : value);
        } else {
            problem(problems, i + 1, "neither a [section] nor a key = value");
        }
    }
}

/* YAML 1.1 as PyYAML reads it: yes, no, on, off are booleans, ~ is nothing; "&name" before a value names it. */
static const char *yaml_value(const char *text)
{
    static const char *const yes[] = {"yes", "Yes", "YES", "on", "On", "ON"}, *const no[] = {"no",  "No",
                                                                                             "NO",  "off",
                                                                                             "Off", "OFF"};
    if (text[0] == '&') {
        text += strcspn(text, " ");
        text += strspn(text, " ");
    }
    for (gsize i = 0; i < G_N_ELEMENTS(yes); i++)
        if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0)
            return strcmp(text, yes[i]) == 0 ? "true" : "false";
    return strcmp(text, "~") == 0 ? "null" : text;
}

/* "- q_proj" lines that follow line *at under a key of their own: "[q_proj, v_proj]"; *at becomes the last of them. NULL: the
 * next line begins no list of plain words. g_free. */
static char *yaml_list(char **lines, guint *at, int indent)
{
    enum { MOST = 1 << 16 };
    GString *list = g_string_new("[");
    for (guint next = *at + 1; lines[next] != NULL && list->len < MOST; next++) {
        const char *text = lines[next] + strspn(lines[next], " ");
        if (text[0] == '\0' || text[0] == '#' || text[0] == '\r')
            continue;
        if (text[0] != '-' || text[1] != ' ' || (int)(text - lines[next]) < indent)
            break;
        cut_comment(lines[next]);
        char *item = g_strstrip(lines[next] + (text - lines[next]) + 1);
        if (strstr(item, ": ") != NULL ||
            g_str_has_suffix(item, ":")) /* objects: nothing that a scenario has */
            break;
        g_autofree char *plain = settings_unquote(item);
        g_string_append_printf(list, "%s%s", list->len > 1 ? ", " : "", plain);
        *at = next;
    }
    const bool empty = list->len == 1;
    g_string_append_c(list, ']');
    return g_string_free(list, empty);
}

typedef struct YamlLevel {
    int indent;
    size_t path_length; /* of the keys above this level */
} YamlLevel;

static void read_yaml(char **lines, Settings *settings, GPtrArray *problems)
{
    enum { DEEPEST = 32 };
    YamlLevel levels[DEEPEST] = {{0, 0}};
    int depth = 0;
    g_autoptr(GString) prefix = g_string_new(NULL);
    for (guint i = 0; lines[i] != NULL; i++) {
        cut_comment(lines[i]);
        const int indent = (int)strspn(lines[i], " ");
        char *line = g_strstrip(lines[i]);
        char *colon = strstr(line, ": ");
        if (line[0] == '\0' || g_str_equal(line, "---"))
            continue;
        if (colon == NULL && g_str_has_suffix(line, ":"))
            colon = line + strlen(line) - 1;
        if (line[0] == '-' || colon == NULL) { /* lists of objects: nothing that a scenario has */
            if (line[0] != '-')
                problem(problems, i + 1, "no key: value");
            continue;
        }
        *colon = '\0';
        g_autofree char *whole = whole_value(lines, &i, yaml_value(g_strstrip(colon + 1)));
        const char *value = whole;
        close_digits(whole);
        while (depth > 0 && indent < levels[depth].indent)
            depth--;
        if (indent > levels[depth].indent && prefix->len > levels[depth].path_length && depth + 1 < DEEPEST)
            levels[++depth] = (YamlLevel){indent, prefix->len};
        g_string_truncate(prefix, levels[depth].path_length);
        g_autofree char *name = settings_unquote(line);
        g_autofree char *path = prefix->len > 0 ? g_strconcat(prefix->str, ".", name, NULL) : g_strdup(name);
        g_autofree char *list = value[0] == '\0' ? yaml_list(lines, &i, indent) : NULL;
        if (list != NULL)
            settings_add(settings, prefix->str, line, list);
        else if (value[0] == '\0')
            g_string_assign(prefix, path);
        else if (strcmp(value, "null") != 0 && !settings_flow(settings, path, value, ':'))
            settings_add(settings, prefix->str, line, value);
    }
}

/* --- JSON --- */

static void flatten(const OrrJson *node, const char *path, Settings *settings)
{
    for (const OrrJson *member = orr_json_first(node); member != NULL; member = orr_json_next(member)) {
        const char *key = orr_json_key(member);
        g_autofree char *full = path[0] != '\0' ? g_strconcat(path, ".", key, NULL) : g_strdup(key);
        if (path[0] == '\0' && strcmp(key, SETTINGS_PLACEHOLDERS_KEY) == 0)
            continue; /* names of settings, below */
        if (path[0] == '\0' && strcmp(key, "orrery") == 0 && orr_json_type(member) == ORR_JSON_OBJECT) {
            g_free(settings->companion);
            settings->companion = orr_json_dump(member);
        } else if (orr_json_type(member) == ORR_JSON_OBJECT) {
            flatten(member, full, settings);
        } else if (orr_json_type(member) == ORR_JSON_TEXT) {
            settings_text(settings, full, orr_json_text(member));
        } else {
            g_autofree char *text = orr_json_dump(member);
            settings_raw(settings, full, text);
        }
    }
}

static void mark_listed(const OrrJson *names, Settings *settings)
{
    if (names == NULL || orr_json_type(names) != ORR_JSON_LIST)
        return;
    for (const OrrJson *name = orr_json_first(names); name != NULL; name = orr_json_next(name))
        for (guint i = 0; orr_json_type(name) == ORR_JSON_TEXT && i < settings->list->len; i++) {
            Setting *setting = &g_array_index(settings->list, Setting, i);
            setting->placeholder = setting->placeholder || strcmp(setting->key, orr_json_text(name)) == 0;
        }
}

/* "    --train-iters 100  # placeholder ...", "steps = 100  # placeholder ...": marks that setting. */
static void mark_line(const char *line, Settings *settings)
{
    const char *start = line + strspn(line, " \t-");
    g_autofree char *name = g_strndup(start, strcspn(start, " \t=:"));
    for (guint i = 0; i < settings->list->len; i++) {
        Setting *setting = &g_array_index(settings->list, Setting, i);
        const char *dot = strrchr(setting->key, '.');
        if (strcmp(setting->key, name) == 0 || (dot != NULL && strcmp(dot + 1, name) == 0))
            setting->placeholder = true;
    }
}

static bool read_json(const char *text, size_t length, const char *path, Settings *settings, GError **error)
{
    OrrJsonDoc *doc = orr_json_parse(text, length, path, error);
    if (doc == NULL)
        return false;
    const bool object = orr_json_type(orr_json_root(doc)) == ORR_JSON_OBJECT;
    if (object)
        flatten(orr_json_root(doc), "", settings);
    if (object)
        mark_listed(orr_json_member(orr_json_root(doc), SETTINGS_PLACEHOLDERS_KEY), settings);
    else
        orr_fail(error, ORR_ERROR_INPUT, "%s: is %s; give an object", path,
                 orr_json_type_name(orr_json_root(doc)));
    orr_json_free(doc);
    return object;
}

bool settings_read(const char *text, size_t length, const char *path, SettingsSyntax syntax,
                   Settings *settings, GPtrArray *problems, GError **error)
{
    if (syntax == SETTINGS_JSON)
        return read_json(text, length, path, settings, error);
    if (!g_utf8_validate_len(text, length, NULL))
        return orr_fail(error, ORR_ERROR_INPUT, "%s: is not UTF-8 text", path);
    g_autofree char *copy = g_strndup(text, length);
    g_auto(GStrv) lines = g_strsplit(copy, "\n", -1);
    for (char **line = lines; *line != NULL; line++)
        if (g_str_has_prefix(*line, COMPANION_MARK)) {
            g_free(settings->companion);
            settings->companion = g_strdup(g_strstrip(*line + strlen(COMPANION_MARK)));
            (*line)[0] = '\0';
        }
    g_autoptr(GPtrArray) marked =
        g_ptr_array_new_with_free_func(g_free); /* reading cuts comments off the lines */
    for (char **line = lines; *line != NULL; line++)
        if (strstr(*line, SETTINGS_PLACEHOLDER) != NULL)
            g_ptr_array_add(marked, g_strdup(*line));
    switch (syntax) {
    case SETTINGS_FLAGS:
        read_flags(text, length, settings);
        break;
    case SETTINGS_DOTLIST:
        read_dotlist(text, length, settings);
        break;
    case SETTINGS_TOML:
        read_toml(lines, settings, problems);
        break;
    case SETTINGS_YAML:
        read_yaml(lines, settings, problems);
        break;
    case SETTINGS_JSON:
        g_assert_not_reached();
    }
    for (guint i = 0; i < marked->len; i++)
        mark_line(g_ptr_array_index(marked, i), settings);
    return true;
}
