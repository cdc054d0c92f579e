/* tests/fuzz/fuzz_mcp.c - lines of an assistant: each gets at most one line, which is JSON-RPC. Nothing is started: questions are
 * answered with the command line that they became. */
#include <stdint.h>
#include <string.h>

#include "serve/mcp.h"
#include "tests/fuzz/door.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* No word of a question is a flag of its asker's making. */
static bool answer(const ServeQuestion *question, GString *out, GString *said, void *data, GError **error)
{
    (void)data;
    const gsize fixed = g_strv_length((char **)question->tool->words);
    for (guint i = 0; i + 1 < question->words->len; i++) {
        const char *word = g_ptr_array_index(question->words, i);
        bool known = i < fixed || word[0] != '-' || strcmp(word, "--max-seconds=20") == 0;
        for (int a = 0; !known && a < SERVE_MOST_ARGUMENTS && question->tool->arguments[a].name != NULL;
             a++) {
            const char *flag = question->tool->arguments[a].flag;
            known = flag != NULL && flag[0] != '\0' && g_str_has_prefix(word, flag) &&
                    (word[strlen(flag)] == '=' || word[strlen(flag)] == '\0');
        }
        require(known);
    }
    if (question->words->len % 7 == 0)
        return orr_fail(error, ORR_ERROR_INPUT, "%s: refused", question->tool->name);
    g_string_append(
        out,
        "{\"step_s\": 2, \"interval\": {\"low_s\": 1, \"high_s\": 3, \"coverage\": 0.9}, "
        "\"stamp\": {\"defaulted\": [\"a=1\", 3]}, \"rows\": [{\"gpus\": 8}, 5, []], "
        "\"best\": [{\"report\": {\"step_s\": 1}}, {}], \"summary\": {\"mfu\": {\"a\": 1, \"b\": null}}}");
    g_string_append(said, "noted");
    return true;
}

static void check_line(const GString *out)
{
    if (out->len == 0)
        return;
    require(memchr(out->str, '\n', out->len) == out->str + out->len - 1);
    require(g_utf8_validate(out->str, (gssize)out->len, NULL));
    OrrJsonDoc *doc = orr_json_parse(out->str, out->len, "answer", NULL);
    require(doc != NULL);
    const OrrJson *root = orr_json_root(doc);
    require((orr_json_member(root, "result") != NULL) != (orr_json_member(root, "error") != NULL));
    require(orr_json_member(root, "id") != NULL);
    orr_json_free(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ServeAnswerer answerer = {answer, NULL};
    const char *text = (const char *)data;
    while (size > 0) {
        const char *end = memchr(text, '\n', size);
        const size_t length = end != NULL ? (size_t)(end - text) : size;
        g_autoptr(GString) out = g_string_new(NULL);
        serve_mcp_line(&answerer, text, length, out);
        check_line(out);
        text += MIN(length + 1, size);
        size -= MIN(length + 1, size);
    }
    return 0;
}
