/* exchange/trace_table.c - what kernels do, by their names: the table of patterns. See trace.h. */
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "exchange/trace.h"

enum { MOST_NAME_BYTES = 16384 };

typedef struct TracePattern {
    char *text; /* in small letters */
    TraceClass kind;
    bool waits;
} TracePattern;

struct TraceTable {
    GArray *patterns; /* TracePattern */
};

static const char *const words[TRACE_CLASSES + 1] = {
    [TRACE_PRODUCTS] = "products",
    [TRACE_ATTENTION] = "attention",
    [TRACE_NORMS] = "norms",
    [TRACE_ELEMENTWISE] = "elementwise",
    [TRACE_OPTIMIZER] = "optimizer",
    [TRACE_ALL_REDUCE] = "all-reduce",
    [TRACE_ALL_GATHER] = "all-gather",
    [TRACE_REDUCE_SCATTER] = "reduce-scatter",
    [TRACE_ALL_TO_ALL] = "all-to-all",
    [TRACE_SEND_RECEIVE] = "send-receive",
    [TRACE_OTHER_COLLECTIVE] = "other-collective",
    [TRACE_COPIES] = "copies",
    [TRACE_OTHER] = "other",
};

const char *trace_class_word(TraceClass kind)
{
    return words[kind];
}

/* False: there is no class of that word. */
static bool trace_class_read(const char *word, TraceClass *ret_class)
{
    for (int kind = 0; kind < TRACE_CLASSES; kind++)
        if (g_str_equal(words[kind], word)) {
            *ret_class = (TraceClass)kind;
            return true;
        }
    return false;
}

void trace_table_free(TraceTable *table)
{
    if (table == NULL)
        return;
    for (guint i = 0; i < table->patterns->len; i++)
        g_free(g_array_index(table->patterns, TracePattern, i).text);
    g_array_free(table->patterns, TRUE);
    g_free(table);
}

/* The last of a row. */
static bool is_waits(const OrrJson *word)
{
    return orr_json_next(word) == NULL && orr_json_type(word) == ORR_JSON_TEXT &&
           g_str_equal(orr_json_text(word), "waits");
}

static bool add_pattern(TraceTable *table, const OrrJson *row, const char *name, GError **error)
{
    const OrrJson *pattern = orr_json_type(row) == ORR_JSON_LIST ? orr_json_first(row) : NULL;
    const OrrJson *word = pattern != NULL ? orr_json_next(pattern) : NULL;
    const OrrJson *third = word != NULL ? orr_json_next(word) : NULL;
    TracePattern added = {.waits = third != NULL};
    if (word == NULL || (third != NULL && !is_waits(third)) || orr_json_type(pattern) != ORR_JSON_TEXT ||
        orr_json_type(word) != ORR_JSON_TEXT || !trace_class_read(orr_json_text(word), &added.kind)) {
        g_autofree char *shown = orr_json_show(row);
        g_autofree char *classes = g_strjoinv(", ", (char **)(gpointer)words);
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: patterns: %s is not a pair of a pattern and a class, with \"waits\" behind it or "
            "not; classes are %s",
            name, shown, classes);
    }
    added.text = g_ascii_strdown(orr_json_text(pattern), -1);
    g_array_append_val(table->patterns, added);
    return true;
}

TraceTable *trace_table_read(const char *text, gsize length, const char *name, GError **error)
{
    OrrJsonDoc *doc = orr_json_parse(text, length, name, error);
    if (doc == NULL)
        return NULL;
    const OrrJson *patterns = orr_json_type(orr_json_root(doc)) == ORR_JSON_OBJECT
                                  ? orr_json_member(orr_json_root(doc), "patterns")
                                  : NULL;
    TraceTable *table = g_new0(TraceTable, 1);
    table->patterns = g_array_new(FALSE, FALSE, sizeof(TracePattern));
    bool ok = patterns != NULL && orr_json_type(patterns) == ORR_JSON_LIST;
    if (!ok)
        orr_fail(error, ORR_ERROR_INPUT, "%s: has no list \"patterns\" of pairs: pattern, class", name);
    for (const OrrJson *row = ok ? orr_json_first(patterns) : NULL; ok && row != NULL;
         row = orr_json_next(row))
        ok = add_pattern(table, row, name, error);
    orr_json_free(doc);
    if (ok)
        return table;
    trace_table_free(table);
    return NULL;
}

TraceTable *trace_table_load(GError **error)
{
    g_autofree char *scenarios = orr_scenarios_dir(error);
    if (scenarios == NULL)
        return NULL;
    g_autofree char *path = g_build_filename(scenarios, "profilers", "kernel-names.json", NULL);
    GString *text = orr_text_read(path, (size_t)1 << 20, error);
    if (text == NULL)
        return NULL;
    TraceTable *table = trace_table_read(text->str, text->len, path, error);
    g_string_free(text, TRUE);
    return table;
}

/* `*` stands for any text. */
static bool fits(const char *pattern, const char *text)
{
    const char *star = NULL, *from = NULL;
    while (*text != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            from = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star + 1;
            text = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

TraceClass trace_table_class(const TraceTable *table, const char *kernel, bool *ret_waits)
{
    bool waits = false;
    ret_waits = ret_waits != NULL ? ret_waits : &waits;
    *ret_waits = false;
    g_autofree char *lower = g_ascii_strdown(kernel, (gssize)strnlen(kernel, MOST_NAME_BYTES));
    for (guint i = 0; i < table->patterns->len; i++) {
        const TracePattern *pattern = &g_array_index(table->patterns, TracePattern, i);
        if (fits(pattern->text, lower)) {
            *ret_waits = pattern->waits;
            return pattern->kind;
        }
    }
    return TRACE_OTHER;
}
