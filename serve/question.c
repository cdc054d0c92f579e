/* serve/question.c - the arguments of a question as a command line, and its answer from the program. Tested:
 * cli/test_mcp.py, fuzz/fuzz_mcp.c */
#include <glib/gstdio.h>
#include <string.h>

#include "base/file.h"
#include "base/shown.h"
#include "base/text.h"
#include "serve/tools.h"

enum { MOST_TEXT = 16 << 20, MOST_SETS = 1000 };

static const int64_t most_output = 256 << 20, most_memory = (int64_t)6 << 30;

static bool refuse(GError **error, const ServeTool *tool, const OrrJson *node, const char *wants)
{
    g_autofree char *shown = orr_json_show(node);
    return orr_fail(error, ORR_ERROR_INPUT, "%s: %s is %s; give %s", tool->name, orr_json_key(node), shown,
                    wants);
}

/* A word, or the value of a flag. "--flag=value" is never taken for another flag, and a word that begins with "-" is refused. */
static bool add_word(ServeQuestion *q, const ServeArgument *a, const OrrJson *node, const char *value,
                     GError **error)
{
    if (a->flag == NULL && (value[0] == '-' || value[0] == '\0'))
        return refuse(error, q->tool, node, "a name, which does not begin with \"-\"");
    if (a->flag != NULL && value[0] == '\0')
        return refuse(error, q->tool, node, "a text that is not empty, or leave it out");
    if (a->flag == NULL)
        g_ptr_array_add(q->words, g_strdup(value));
    else if (a->flag[0] != '\0')
        g_ptr_array_add(q->words, g_strdup_printf("%s=%s", a->flag, value));
    return true;
}

/* A file of the question's folder: its path. */
static char *keep_file(ServeQuestion *q, const char *name, const char *text, GError **error)
{
    g_autoptr(GError) cause = NULL;
    if (q->folder == NULL)
        q->folder = g_dir_make_tmp("orrery-ask-XXXXXX", &cause);
    char *path = q->folder != NULL ? g_build_filename(q->folder, name, NULL) : NULL;
    if (path != NULL && g_file_set_contents(path, text, -1, &cause))
        return path;
    g_free(path);
    orr_fail(error, ORR_ERROR_IO, "a question cannot be written to the folder of temporary files: %s",
             cause->message);
    return NULL;
}

static bool add_scenario(ServeQuestion *q, const ServeArgument *a, const OrrJson *node, GError **error)
{
    g_autofree char *name = g_strconcat(a->name, ".json", NULL), *path = NULL;
    if (orr_json_type(node) == ORR_JSON_OBJECT) {
        g_autofree char *text = orr_json_dump(node);
        path = keep_file(q, name, text, error);
    } else if (orr_json_type(node) != ORR_JSON_TEXT || strlen(orr_json_text(node)) > MOST_TEXT) {
        return refuse(error, q->tool, node, "a scenario as an object, the name of an example or a path");
    } else if (orr_json_text(node)[0] == '{') {
        path = keep_file(q, name, orr_json_text(node), error);
    } else {
        path = g_strdup(orr_json_text(node));
    }
    return path != NULL && add_word(q, a, node, path, error);
}

static char *plain(const OrrJson *node)
{
    return orr_json_type(node) == ORR_JSON_TEXT ? g_strdup(orr_json_text(node)) : orr_json_dump(node);
}

static bool add_sets(ServeQuestion *q, const ServeArgument *a, const OrrJson *node, GError **error)
{
    if (orr_json_type(node) != ORR_JSON_OBJECT || orr_json_count(node) > MOST_SETS)
        return refuse(error, q->tool, node, "an object such as {\"parallel.tensor\": 4}");
    for (const OrrJson *set = orr_json_first(node); set != NULL; set = orr_json_next(set)) {
        g_autofree char *value = plain(set);
        g_ptr_array_add(q->words, g_strdup_printf("%s=%s=%s", a->flag, orr_json_key(set), value));
    }
    return true;
}

/* Appends a list's items, or a text as it is. */
static bool join(const ServeQuestion *q, const OrrJson *node, GString *list, GError **error)
{
    if (orr_json_type(node) == ORR_JSON_TEXT) {
        g_string_append(list, orr_json_text(node));
        return true;
    }
    if (orr_json_type(node) != ORR_JSON_LIST || orr_json_count(node) > MOST_SETS)
        return refuse(error, q->tool, node, "a list");
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item)) {
        if (orr_json_type(item) != ORR_JSON_TEXT && orr_json_type(item) != ORR_JSON_NUMBER)
            return refuse(error, q->tool, node, "a list of names or numbers");
        g_autofree char *value = plain(item);
        g_string_append_printf(list, "%s%s", item != orr_json_first(node) ? "," : "", value);
    }
    return true;
}

static bool add_list(ServeQuestion *q, const ServeArgument *a, const OrrJson *node, GError **error)
{
    g_autoptr(GString) list = g_string_new(NULL);
    return join(q, node, list, error) && add_word(q, a, node, list->str, error);
}

static bool add_vary(ServeQuestion *q, const ServeArgument *a, const OrrJson *node, GError **error)
{
    if (orr_json_type(node) != ORR_JSON_OBJECT || orr_json_count(node) > MOST_SETS)
        return refuse(error, q->tool, node, "an object such as {\"parallel.tensor\": [1, 2, 4]}");
    for (const OrrJson *field = orr_json_first(node); field != NULL; field = orr_json_next(field)) {
        g_autoptr(GString) word = g_string_new(NULL);
        g_string_printf(word, "%s=%s=", a->flag, orr_json_key(field));
        if (!join(q, field, word, error))
            return false;
        g_ptr_array_add(q->words, g_strdup(word->str));
    }
    return true;
}

static bool add_number(ServeQuestion *q, const ServeArgument *a, const OrrJson *node, GError **error)
{
    g_autofree char *value = orr_json_dump(node);
    g_autofree char *wants = g_strdup_printf("a number from %g to %g", a->low, a->high);
    if (orr_json_type(node) != ORR_JSON_NUMBER || orr_json_number(node) < a->low ||
        orr_json_number(node) > a->high)
        return refuse(error, q->tool, node, wants);
    if (strcmp(a->name, "max_seconds") == 0)
        q->seconds += orr_json_number(node);
    return add_word(q, a, node, value, error);
}

static bool add_argument(ServeQuestion *q, const ServeArgument *a, const OrrJson *node, GError **error)
{
    g_autofree char *path = NULL;
    switch (a->takes) {
    case SERVE_TAKES_SCENARIO:
        return add_scenario(q, a, node, error);
    case SERVE_TAKES_SETS:
        return add_sets(q, a, node, error);
    case SERVE_TAKES_LIST:
        return add_list(q, a, node, error);
    case SERVE_TAKES_VARY:
        return add_vary(q, a, node, error);
    case SERVE_TAKES_NUMBER:
        return add_number(q, a, node, error);
    case SERVE_TAKES_SWITCH:
        if (orr_json_type(node) != ORR_JSON_BOOL)
            return refuse(error, q->tool, node, "true or false");
        if (orr_json_bool(node))
            g_ptr_array_add(q->words, g_strdup(a->flag));
        return true;
    case SERVE_TAKES_BODY:
        if (orr_json_type(node) != ORR_JSON_TEXT || strlen(orr_json_text(node)) > MOST_TEXT)
            return refuse(error, q->tool, node, "the text of a file, of at most 16 MiB");
        path = keep_file(q, "configuration", orr_json_text(node), error);
        return path != NULL && add_word(q, a, node, path, error);
    case SERVE_TAKES_TEXT:
        if (orr_json_type(node) != ORR_JSON_TEXT)
            return refuse(error, q->tool, node, "a text");
        return add_word(q, a, node, orr_json_text(node), error);
    }
    g_assert_not_reached();
}

/* Arguments that the tool does not know, before anything is done. */
static bool check_names(const ServeTool *tool, const OrrJson *arguments, GError **error)
{
    const char *names[SERVE_MOST_ARGUMENTS];
    int count = 0;
    while (count < SERVE_MOST_ARGUMENTS && tool->arguments[count].name != NULL) {
        names[count] = tool->arguments[count].name;
        count++;
    }
    for (const OrrJson *node = arguments != NULL ? orr_json_first(arguments) : NULL; node != NULL;
         node = orr_json_next(node)) {
        bool known = false;
        for (int i = 0; i < count; i++)
            known = known || strcmp(names[i], orr_json_key(node)) == 0;
        const char *nearest = known ? NULL : orr_nearest(orr_json_key(node), names, count);
        if (!known)
            return orr_fail(error, ORR_ERROR_INPUT, "%s: \"%.100s\" is not an argument; %s%s", tool->name,
                            orr_json_key(node),
                            nearest != NULL ? "did you mean " : "tools/list gives those it takes",
                            nearest != NULL ? nearest : "");
    }
    return true;
}

bool serve_question_read(const ServeTool *tool, const OrrJson *arguments, ServeQuestion *ret_question,
                         GError **error)
{
    ServeQuestion q = {
        .tool = tool, .words = g_ptr_array_new_with_free_func(g_free), .seconds = tool->seconds};
    q.asked = arguments != NULL ? orr_json_dump(arguments) : g_strdup("{}");
    g_autofree char *whole = g_strconcat(tool->name, " ", q.asked, NULL);
    q.key = g_compute_checksum_for_string(G_CHECKSUM_SHA256, whole, -1);
    bool ok = arguments == NULL || orr_json_type(arguments) == ORR_JSON_OBJECT ||
              orr_fail(error, ORR_ERROR_INPUT, "%s: arguments are %s; give an object", tool->name,
                       orr_json_type_name(arguments));
    ok = ok && check_names(tool, arguments, error);
    for (const char *const *word = tool->words; *word != NULL; word++)
        g_ptr_array_add(q.words, g_strdup(*word));
    for (int i = 0; ok && i < SERVE_MOST_ARGUMENTS && tool->arguments[i].name != NULL; i++) {
        const ServeArgument *a = &tool->arguments[i];
        const OrrJson *node = arguments != NULL ? orr_json_member(arguments, a->name) : NULL;
        if (node != NULL && orr_json_type(node) != ORR_JSON_NULL)
            ok = add_argument(&q, a, node, error);
        else if (a->required)
            ok = orr_fail(error, ORR_ERROR_INPUT, "%s: %s is missing; %s", tool->name, a->name, a->help);
        else if (strcmp(a->name, "max_seconds") == 0)
            g_ptr_array_add(q.words, g_strdup("--max-seconds=20"));
    }
    g_ptr_array_add(q.words, NULL);
    if (!ok) {
        serve_question_clear(&q);
        return false;
    }
    *ret_question = q;
    return true;
}

void serve_question_clear(ServeQuestion *question)
{
    static const char *const files[] = {"scenario.json", "a.json", "b.json", "base.json", "configuration"};
    for (gsize i = 0; question->folder != NULL && i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(question->folder, files[i], NULL);
        (void)g_remove(path);
    }
    if (question->folder != NULL)
        (void)g_rmdir(question->folder);
    g_clear_pointer(&question->folder, g_free);
    g_clear_pointer(&question->key, g_free);
    g_clear_pointer(&question->asked, g_free);
    g_clear_pointer(&question->words, g_ptr_array_unref);
}

void serve_question_forget(const ServeQuestion *question, GString *text)
{
    if (question->folder == NULL)
        return;
    g_autofree char *prefix = g_strconcat(question->folder, "/", NULL);
    (void)g_string_replace(text, prefix, "", 0);
}

bool serve_ask_program(const ServeQuestion *question, GString *out, GString *said, void *program,
                       GError **error)
{
    const ServeWatch watch = {0};
    return serve_ask_watched(question, out, said, program, &watch, error);
}

/* Under which the answer of this program to this question is kept; g_free. Another build has other answers. */
static char *kept_key(const ServeQuestion *question, const char *program)
{
    const OrrFileStamp stamp = orr_file_stamp(program);
    g_autofree char *whole = g_strdup_printf("%s %s %" G_GINT64_FORMAT " %" G_GINT64_FORMAT, question->key,
                                             ORRERY_VERSION, stamp.size_bytes, stamp.modified_ns);
    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, whole, -1);
}

static bool ask_child(const ServeQuestion *question, GString *out, GString *said, const char *program,
                      const ServeWatch *watch, GError **error);

bool serve_ask_watched(const ServeQuestion *question, GString *out, GString *said, const char *program,
                       const ServeWatch *watch, GError **error)
{
    const bool keeps = watch->store != NULL && question->tool->is_json && question->tool->keeps;
    g_autofree char *key = keeps ? kept_key(question, program) : NULL;
    if (keeps && serve_store_take(watch->store, key, out))
        return true;
    if (!ask_child(question, out, said, program, watch, error))
        return false;
    if (keeps)
        serve_store_keep(watch->store, &(ServeKept){key, question->tool->name, question->asked}, out);
    return true;
}

static bool ask_child(const ServeQuestion *question, GString *out, GString *said, const char *program,
                      const ServeWatch *watch, GError **error)
{
    const ServeLimits limits = {.seconds = question->seconds,
                                .memory_bytes = most_memory,
                                .output_bytes = most_output,
                                .nice = watch->nice};
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    g_ptr_array_add(words, (char *)program);
    for (guint i = 0; i < question->words->len; i++)
        g_ptr_array_add(words, g_ptr_array_index(question->words, i));
    if (watch->go_on != NULL && question->tool->tells)
        g_ptr_array_insert(words, (gint)words->len - 1, (char *)"--progress");
    ServeChild child;
    if (!serve_child_run((char **)words->pdata, &limits, watch->go_on, watch->data, &child, error))
        return false;
    g_free(serve_child_news(child.said)); /* of its last moment */
    serve_question_forget(question, child.out);
    serve_question_forget(question, child.said);
    const bool ok = child.status == 0;
    if (ok) {
        g_string_append_len(out, child.out->str, (gssize)child.out->len);
        g_string_append_len(said, child.said->str, (gssize)child.said->len);
    } else {
        static const char prefix[] = "orrery: ";
        const char *text = child.said->str;
        text += g_str_has_prefix(text, prefix) ? strlen(prefix) : 0;
        g_autofree char *line = orr_shown(text, ' ', "");
        g_strstrip(line);
        orr_fail(error, child.status == 2 ? ORR_ERROR_INPUT : ORR_ERROR_INTERNAL, "%s",
                 child.status >= 0 && line[0] != '\0'
                     ? line
                     : "the process of this question ended without an "
                       "answer; it may have needed more memory than allowed");
    }
    serve_child_clear(&child);
    return ok;
}
