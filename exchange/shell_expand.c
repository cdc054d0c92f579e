/* exchange/shell_expand.c - $NAME, ${NAME:-default}, $((a * b)); see shell_expand.h. */
#include "exchange/shell_expand.h"

#include <string.h>

enum { DEEPEST = 8, LONGEST = 1 << 16 };

static gsize name_length(const char *text, gsize length)
{
    gsize n = 0;
    while (n < length && (g_ascii_isalnum(text[n]) || text[n] == '_'))
        n++;
    return n > 0 && g_ascii_isdigit(text[0]) ? 1 : n;
}

static const char *value_of(GHashTable *variables, const char *name, gsize length)
{
    g_autofree char *key = g_strndup(name, length);
    return g_hash_table_lookup(variables, key);
}

/* Index of the closing bracket of the one that text[at] opens, or `length`. */
static gsize closing(const char *text, gsize length, gsize at)
{
    const char open = text[at], close = open == '(' ? ')' : '}';
    int depth = 0;
    for (gsize i = at; i < length; i++) {
        depth += text[i] == open ? 1 : text[i] == close ? -1 : 0;
        if (depth == 0)
            return i;
    }
    return length;
}

static gsize expand(GHashTable *variables, const char *text, gsize length, gsize at, int depth, GString *out);

/* A default, without its quotes. */
static void expand_all(GHashTable *variables, const char *text, gsize length, int depth, GString *out)
{
    for (gsize i = 0; i < length && out->len < LONGEST;)
        if (text[i] == '$')
            i = expand(variables, text, length, i, depth + 1, out);
        else if (text[i] == '"' || text[i] == '\'')
            i++;
        else
            g_string_append_c(out, text[i++]);
}

/* --- arithmetic --- */

typedef struct Sum {
    GHashTable *variables;
    const char *at;
    int depth;
    bool ok;
} Sum;

static double sum_terms(Sum *sum);

static void skip_space(Sum *sum)
{
    while (g_ascii_isspace(*sum->at))
        sum->at++;
}

static double sum_value(Sum *sum)
{
    skip_space(sum);
    if (*sum->at == '$')
        sum->at++;
    const bool braced = *sum->at == '{';
    sum->at += braced;
    double value = 0;
    if (*sum->at == '(' && sum->depth < DEEPEST) {
        sum->at++;
        sum->depth++;
        value = sum_terms(sum);
        sum->depth--;
        skip_space(sum);
        sum->ok = sum->ok && *sum->at == ')';
        sum->at += *sum->at == ')';
        return value;
    }
    const gsize length = name_length(sum->at, strlen(sum->at));
    const char *text = sum->at;
    char *end = NULL;
    if (length > 0 && !g_ascii_isdigit(text[0])) {
        text = value_of(sum->variables, text, length);
        sum->at += length;
        value = text != NULL ? g_ascii_strtod(text, &end) : 0;
        sum->ok = sum->ok && text != NULL && end != text && *end == '\0';
    } else {
        value = (double)g_ascii_strtoll(text, &end, 10);
        sum->ok = sum->ok && end != text;
        sum->at = end;
    }
    sum->ok = sum->ok && (!braced || *sum->at == '}');
    sum->at += braced && *sum->at == '}';
    return value;
}

static double sum_products(Sum *sum)
{
    double value = sum_value(sum);
    for (skip_space(sum); sum->ok && (*sum->at == '*' || *sum->at == '/'); skip_space(sum)) {
        const char op = *sum->at++;
        const double next = sum_value(sum);
        if (op == '/' && next > -1 && next < 1)
            sum->ok = false;
        else
            value = op == '*' ? value * next : (double)(gint64)(value / next);
        sum->ok = sum->ok && value < 1e15 && value > -1e15;
    }
    return value;
}

static double sum_terms(Sum *sum)
{
    double value = sum_products(sum);
    for (skip_space(sum); sum->ok && (*sum->at == '+' || *sum->at == '-'); skip_space(sum)) {
        const char op = *sum->at++;
        const double next = sum_products(sum);
        value += op == '+' ? next : -next;
    }
    return value;
}

static bool arithmetic(GHashTable *variables, const char *text, gsize length, GString *out)
{
    g_autofree char *copy = g_strndup(text, length);
    Sum sum = {.variables = variables, .at = copy, .ok = true};
    const double value = sum_terms(&sum);
    skip_space(&sum);
    if (!sum.ok || *sum.at != '\0')
        return false;
    g_string_append_printf(out, "%.0f", value);
    return true;
}

/* --- expansions --- */

/* ${...}: text[at] is '{'. ${NAME:=value} sets the variable. False: only a run could tell. */
static bool braces(GHashTable *variables, const char *text, gsize at, gsize end, int depth, GString *out)
{
    const char *inside = text + at + 1;
    const gsize length = end - at - 1, digits = strspn(inside, "0123456789"),
                name = digits > 0 ? MIN(digits, length) : name_length(inside, length);
    const char *value = value_of(variables, inside, name), *rest = inside + name;
    gsize left = length - name;
    if (name == 0)
        return left > 0 && (inside[0] == '@' || inside[0] == '*'); /* the script's own arguments: none */
    if (left >= 3 && rest[0] == '[' && (rest[1] == '@' || rest[1] == '*'))
        return true; /* an array: its words were read where it was made */
    if (left == 0) {
        if (value != NULL)
            g_string_append(out, value);
        return value != NULL;
    }
    const bool colon = rest[0] == ':';
    rest += colon;
    left -= colon;
    if (left == 0 || strchr("-=?+", rest[0]) == NULL)
        return false;
    const bool set = value != NULL && (value[0] != '\0' || !colon), other = rest[0] == '+';
    const gsize before = out->len;
    if (set && !other)
        g_string_append(out, value);
    else if (!set && rest[0] == '?')
        return false; /* the script would end there */
    else if (set == other)
        expand_all(variables, rest + 1, left - 1, depth, out);
    if (!set && rest[0] == '=')
        g_hash_table_insert(variables, g_strndup(inside, name), g_strdup(out->str + before));
    return true;
}

static gsize expand(GHashTable *variables, const char *text, gsize length, gsize at, int depth, GString *out)
{
    const gsize start = at++;
    gsize end = at;
    bool told = false;
    if (text[start] == '`') {
        while (end < length && text[end] != '`')
            end++;
        end = MIN(end + 1, length);
    } else if (at < length && (text[at] == '{' || text[at] == '(')) {
        const gsize close = closing(text, length, at);
        end = MIN(close + 1, length);
        if (close < length && text[at] == '{' && depth < DEEPEST)
            told = braces(variables, text, at, close, depth, out);
        else if (close < length && text[at] == '(' && text[at + 1] == '(' && close > at + 2 &&
                 text[close - 1] == ')')
            told = arithmetic(variables, text + at + 2, close - at - 3, out);
    } else if (at < length && (text[at] == '@' || text[at] == '*')) {
        end = at + 1;
        told = true;
    } else {
        const gsize name = name_length(text + at, length - at);
        const char *value = value_of(variables, text + at, name);
        end = at + name;
        told = name > 0 && value != NULL;
        if (told)
            g_string_append(out, value);
    }
    if (!told)
        g_string_append_len(out, text + start, (gssize)(end - start));
    return end;
}

gsize shell_expand(GHashTable *variables, const char *text, gsize length, gsize at, GString *out)
{
    return expand(variables, text, length, at, 0, out);
}
