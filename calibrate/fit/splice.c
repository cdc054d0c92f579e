/* calibrate/fit/splice.c - finding a member's bytes in a valid JSON text. */
#include "calibrate/fit/splice.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* Behind the text that starts at `at` (a quote). */
static const char *skip_text(const char *at)
{
    for (at++; *at != '"' && *at != '\0'; at++)
        if (*at == '\\' && at[1] != '\0')
            at++;
    return *at == '"' ? at + 1 : at;
}

/* Behind the value that starts at `at`. */
static const char *skip_value(const char *at)
{
    int depth = 0;
    do {
        if (*at == '"') {
            at = skip_text(at);
            continue;
        }
        if (*at == '{' || *at == '[')
            depth++;
        if (*at == '}' || *at == ']')
            depth--;
        at++;
    } while (*at != '\0' && (depth > 0 || strchr(",}] \t\r\n", *at) == NULL));
    return at;
}

typedef struct Member {
    const char *value, *end; /* NULL: absent */
    const char *last;        /* behind the object's last value, or its opening brace */
    bool empty;
} Member;

/* Member `key` of the object that starts at `at`. */
static Member find(const char *at, const char *key)
{
    Member member = {.last = at + 1, .empty = true};
    const size_t length = strlen(key);
    at = skip_space(at + 1);
    while (*at == '"') {
        const char *name = at;
        at = skip_text(at);
        bool found = (size_t)(at - name) == length + 2 && strncmp(name + 1, key, length) == 0;
        at = skip_space(skip_space(at) + 1);
        const char *end = skip_value(at);
        if (found)
            member.value = at, member.end = end;
        member.last = end;
        member.empty = false;
        at = skip_space(end);
        if (*at == ',')
            at = skip_space(at + 1);
    }
    return member;
}

static char *replaced(const char *json, const char *from, const char *to, const char *text)
{
    GString *out = g_string_new_len(json, from - json);
    g_string_append(out, text);
    g_string_append(out, to);
    return g_string_free(out, FALSE);
}

static char *added(const char *json, const Member *member, int depth, const char *key, const char *value)
{
    g_autofree char *space = g_strnfill((gsize)depth * 2, ' ');
    g_autofree char *text = g_strdup_printf("%s\n%s\"%s\": %s%s", member->empty ? "" : ",", space, key, value,
                                            member->empty ? "\n" : "");
    return replaced(json, member->last, member->last, text);
}

char *cal_splice(const char *json, const char *outer, const char *inner, const char *value)
{
    Member member = find(skip_space(json), outer);
    if (member.value == NULL) {
        g_autofree char *object = g_strdup_printf("{\n    \"%s\": %s\n  }", inner, value);
        return added(json, &member, 1, outer, object);
    }
    Member deeper = find(member.value, inner);
    if (deeper.value == NULL)
        return added(json, &deeper, 2, inner, value);
    return replaced(json, deeper.value, deeper.end, value);
}
