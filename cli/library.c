/* cli/library.c - orr_command(): a command of the program inside another one. Tested: python/tests, tests/api_calls.c */
#include <string.h>

#include "api/handle.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/output.h"

/* These go on until they are ended, or take the process's Ctrl-C for theirs. */
static const char *const refused[] = {"campaign", "mcp", "plan", "search", "serve", "sweep"};

static const CliCommand *find(const char *name, GError **error)
{
    int count = 0;
    (void)cli_commands(&count);
    const CliCommand *command = cli_command_find(name);
    g_autofree const char **names = cli_command_names();
    const char *nearest = command == NULL ? orr_nearest(name, names, count) : NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(refused); i++)
        if (strcmp(name, refused[i]) == 0) {
            orr_fail(error, ORR_ERROR_INPUT,
                     "command: \"%s\" needs a process of its own, orrery %s; the functions of orrery.h "
                     "search, plan and live through failures in this one",
                     name, name);
            return NULL;
        }
    if (command == NULL)
        orr_fail(error, ORR_ERROR_INPUT, "command: \"%.100s\" is none%s%s", name,
                 nearest != NULL ? "; did you mean " : "; `orrery help` lists them",
                 nearest != NULL ? nearest : "");
    return command;
}

/* Borrowed from `list`; NULL where it is no list of texts. */
static GPtrArray *read_words(const OrrJson *list, GError **error)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    bool ok = orr_json_type(list) == ORR_JSON_LIST && orr_json_count(list) > 0;
    for (const OrrJson *word = ok ? orr_json_first(list) : NULL; word != NULL; word = orr_json_next(word)) {
        ok = ok && orr_json_type(word) == ORR_JSON_TEXT;
        g_ptr_array_add(words, ok ? (char *)orr_json_text(word) : NULL);
    }
    if (!ok) {
        orr_fail(error, ORR_ERROR_INPUT, "command: give its words, as [\"list\", \"models\"]");
        return NULL;
    }
    g_ptr_array_add(words, NULL);
    return g_steal_pointer(&words);
}

const char *orr_command(OrrHandle *handle, const char *text)
{
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "command", &error);
    g_autoptr(GPtrArray) words = doc != NULL ? read_words(orr_json_root(doc), &error) : NULL;
    const CliCommand *command = words != NULL ? find(words->pdata[0], &error) : NULL;
    CliEar ear = {handle->answer, handle->notes};
    g_string_truncate(handle->answer, 0);
    g_string_truncate(handle->notes, 0);
    cli_output_hear(&ear);
    const bool ok = command != NULL && cli_call(command, (int)words->len - 1, (char **)words->pdata, &error);
    cli_output_hear(NULL);
    orr_json_free(doc);
    return api_answer(handle, ok, error);
}

const char *orr_notes(const OrrHandle *handle)
{
    return handle->notes->str;
}
