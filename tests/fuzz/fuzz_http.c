/* tests/fuzz/fuzz_http.c - bytes of a browser, or of whoever found the port: each request gets one whole answer. Nothing is started:
 * questions are answered with a constant. */
#include <stdint.h>
#include <string.h>

#include "serve/site.h"
#include "tests/fuzz/door.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Nothing that could be the path of a file has come this far. */
static bool answer(const ServeQuestion *question, GString *out, GString *said, void *data, GError **error)
{
    (void)data;
    (void)said;
    for (guint i = 0; i + 1 < question->words->len; i++) {
        const char *word = g_ptr_array_index(question->words, i);
        const bool own = question->folder != NULL && strstr(word, question->folder) != NULL;
        require(own || strcmp(question->tool->name, "help") == 0 || strstr(word, "/etc/") == NULL);
    }
    if (question->words->len % 5 == 0)
        return orr_fail(error, ORR_ERROR_INPUT, "%s: refused", question->tool->name);
    g_string_append(out, "{\"step_s\": 2, \"stamp\": {}}");
    return true;
}

static void check_answer(const GString *out)
{
    const char *end = strstr(out->str, "\r\n\r\n"), *length = strstr(out->str, "Content-Length: ");
    require(g_str_has_prefix(out->str, "HTTP/1.1 ") && end != NULL && length != NULL && length < end);
    const guint64 told = g_ascii_strtoull(length + strlen("Content-Length: "), NULL, 10);
    require(told == out->len - (gsize)(end - out->str) - strlen("\r\n\r\n"));
    require(strstr(out->str, "Content-Security-Policy") < end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ServeSite site = {.answerer = {answer, NULL}, .port = 80};
    g_autofree char *bytes = g_strndup("", size);
    memcpy(bytes, data, size);
    for (gsize at = 0; at < size;) {
        ServeRequest request = {0};
        gsize used = 0;
        const char *why = NULL;
        g_autoptr(GString) out = g_string_new(NULL);
        const int status = serve_http_read(bytes + at, size - at, &request, &used, &why);
        if (status == 0)
            break;
        if (status != 200) {
            serve_site_refuse(status, why, out);
            check_answer(out);
            break;
        }
        require(used > 0 && used <= size - at && request.body_length <= used);
        require(serve_site_answer(&site, &request, out) == 0);
        check_answer(out);
        serve_request_clear(&request);
        at += used;
    }
    return 0;
}
