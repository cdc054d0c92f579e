/* exchange/settings_flow.c - maps, texts and lists inside a line; see settings_flow.h. */
#include "exchange/settings_flow.h"

#include <string.h>

static bool is_triple(const char *text)
{
    return strncmp(text, "\"\"\"", 3) == 0 || strncmp(text, "'''", 3) == 0;
}

char *settings_unquote(const char *text)
{
    const size_t length = strlen(text);
    if (length >= 6 && is_triple(text) && strncmp(text + length - 3, text, 3) == 0) {
        const size_t lead = text[3] == '\n' ? 4 : 3; /* a first line end is none of the text */
        return g_strndup(text + lead, length > lead + 3 ? length - lead - 3 : 0);
    }
    if (length >= 2 && text[0] == '\'' && text[length - 1] == '\'')
        return g_strndup(text + 1, length - 2);
    if (length < 2 || text[0] != '"' || text[length - 1] != '"')
        return g_strdup(text);
    OrrJsonDoc *doc = orr_json_parse(text, length, "text", NULL);
    char *plain = doc != NULL && orr_json_type(orr_json_root(doc)) == ORR_JSON_TEXT
                      ? g_strdup(orr_json_text(orr_json_root(doc)))
                      : g_strndup(text + 1, length - 2);
    orr_json_free(doc);
    return plain;
}

void settings_add(Settings *settings, const char *prefix, const char *key, const char *value)
{
    g_autofree char *plain = settings_unquote(value), *name = settings_unquote(key);
    g_autofree char *path = prefix[0] != '\0' ? g_strconcat(prefix, ".", name, NULL) : g_strdup(name);
    settings_text(settings, path, plain);
}

/* The place of the first of `signs` outside quotes and brackets, or the end. */
static gsize next_sign(const char *text, const char *signs)
{
    int depth = 0;
    char quote = '\0';
    gsize i = 0;
    for (; text[i] != '\0'; i++) {
        const char c = text[i];
        if (quote != '\0') {
            quote = c == quote ? '\0' : quote;
            continue;
        }
        if (depth == 0 && strchr(signs, c) != NULL)
            return i;
        if (c == '"' || c == '\'')
            quote = c;
        depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
    }
    return i;
}

static bool read_map(Settings *settings, const char *prefix, char *text, char sign, int depth)
{
    enum { DEEPEST = 16 };
    const gsize length = strlen(text);
    const char signs[] = {sign, '\0'};
    if (length < 2 || text[0] != '{' || text[length - 1] != '}' || depth > DEEPEST)
        return false;
    text[length - 1] = '\0';
    for (char *rest = text + 1; *rest != '\0';) {
        const gsize end = next_sign(rest, ",");
        const bool last = rest[end] == '\0';
        rest[end] = '\0';
        char *item = g_strstrip(rest);
        const gsize colon = next_sign(item, signs);
        if (item[0] != '\0' && item[colon] != '\0') {
            item[colon] = '\0';
            char *value = g_strstrip(item + colon + 1);
            g_autofree char *name = settings_unquote(g_strstrip(item));
            g_autofree char *path = prefix[0] != '\0' ? g_strconcat(prefix, ".", name, NULL) : g_strdup(name);
            g_autofree char *inner = g_strdup(value);
            if (!read_map(settings, path, inner, sign, depth + 1))
                settings_add(settings, prefix, item, value);
        } else if (item[0] != '\0') {
            settings_add(settings, prefix, item, "true");
        }
        rest = last ? rest + strlen(rest) : rest + end + 1;
    }
    return true;
}

bool settings_flow(Settings *settings, const char *prefix, const char *text, char sign)
{
    g_autofree char *copy = g_strdup(text);
    return read_map(settings, prefix, copy, sign, 0);
}

bool settings_goes_on(const char *text)
{
    if (is_triple(text)) {
        const char *close = strlen(text) >= 6 ? text + strlen(text) - 3 : NULL;
        return close == NULL || strncmp(close, text, 3) != 0;
    }
    if (text[0] != '[' && text[0] != '{')
        return false;
    int depth = 0;
    char quote = '\0';
    for (const char *c = text; *c != '\0'; c++) {
        if (quote != '\0')
            quote = *c == quote ? '\0' : quote;
        else if (*c == '"' || *c == '\'')
            quote = *c;
        else
            depth += *c == '{' || *c == '[' ? 1 : *c == '}' || *c == ']' ? -1 : 0;
    }
    return depth > 0;
}
