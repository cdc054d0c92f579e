/* serve/worker.c - what a worker does. Tested: cli/test_serve.py */
#include <stdio.h>
#include <string.h>

#include "api/orrery.h"
#include "serve/worker.h"

/* --memory-reserve=8GiB as {"memory_reserve":"8GiB"}; g_free. */
static char *options_of(const OrrJson *words)
{
    static const char flag[] = "--memory-reserve=";
    GString *text = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, text, true);
    orr_jw_begin(&w, NULL, '{');
    for (const OrrJson *word = orr_json_first(words); word != NULL; word = orr_json_next(word))
        if (g_str_has_prefix(orr_json_text(word), flag))
            orr_jw_text(&w, "memory_reserve", orr_json_text(word) + strlen(flag));
    orr_jw_end(&w, '}');
    return g_string_free(text, FALSE);
}

static const char *ask(OrrHandle *handle, const OrrJson *words)
{
    static const char set[] = "--set=";
    const OrrJson *first = orr_json_first(words);
    bool ok = true;
    for (const OrrJson *word = first; ok && word != NULL; word = orr_json_next(word)) {
        const char *text = orr_json_text(word);
        if (word != first && text[0] != '-')
            ok = orr_load(handle, text) == 0;
    }
    for (const OrrJson *word = first; ok && word != NULL; word = orr_json_next(word))
        if (g_str_has_prefix(orr_json_text(word), set))
            ok = orr_set(handle, orr_json_text(word) + strlen(set)) == 0;
    g_autofree char *options = options_of(words);
    if (!ok)
        return NULL;
    return strcmp(orr_json_text(first), "explain") == 0 ? orr_explain(handle, options)
                                                        : orr_run(handle, options);
}

static bool is_question(const OrrJson *root)
{
    if (orr_json_type(root) != ORR_JSON_LIST || orr_json_first(root) == NULL)
        return false;
    for (const OrrJson *word = orr_json_first(root); word != NULL; word = orr_json_next(word))
        if (orr_json_type(word) != ORR_JSON_TEXT)
            return false;
    return true;
}

static void answer(OrrHandle *handle, const GString *line)
{
    g_autoptr(GError) error = NULL;
    OrrJsonDoc *doc = orr_json_parse(line->str, line->len, "the question", &error);
    const char *text = NULL;
    if (doc != NULL && is_question(orr_json_root(doc)))
        text = ask(handle, orr_json_root(doc));
    const char *said = text != NULL ? text : error != NULL ? error->message : orr_error(handle);
    if (said[0] == '\0')
        said = "a question is a list of words";
    printf("%s %zu\n%s", text != NULL ? "ok" : "no", strlen(said), said);
    (void)fflush(stdout);
    orr_json_free(doc);
}

bool serve_worker_loop(GError **error)
{
    enum { MOST = 1 << 20 };
    OrrHandle *handle = orr_new();
    g_autoptr(GString) line = g_string_new(NULL);
    char piece[4096];
    while (fgets(piece, sizeof piece, stdin) != NULL && line->len < MOST) {
        g_string_append(line, piece);
        if (!g_str_has_suffix(piece, "\n"))
            continue;
        answer(handle, line);
        g_string_truncate(line, 0);
    }
    orr_free(handle);
    return line->len < MOST || orr_fail(error, ORR_ERROR_INPUT, "a question is longer than %d bytes", MOST);
}
