/* tests/unit/serve/test_safe.c - which texts are taken for paths, and how requests are read. */
#include <string.h>

#include "serve/http.h"
#include "serve/safe.h"

static bool is_safe(const char *tool, const char *json)
{
    g_autoptr(GError) error = NULL;
    OrrJsonDoc *doc = orr_json_parse(json, strlen(json), "test", NULL);
    g_assert_nonnull(doc);
    const bool safe = serve_safe(serve_tool_find(tool, NULL), orr_json_root(doc), &error);
    g_assert_true(safe == (error == NULL));
    orr_json_free(doc);
    return safe;
}

static void test_texts(void)
{
    static const struct {
        const char *json;
        bool safe;
    } cases[] = {
        {"{\"scenario\": \"gpt3-175b\"}", true},
        {"{\"scenario\": \"/etc/passwd\"}", false},
        {"{\"scenario\": \"gpt3-175b.json\"}", false},
        {"{\"scenario\": \"-\"}", false},
        {"{\"scenario\": \"..\"}", false},
        {"{\"scenario\": {\"model\": \"llama3.1\"}}", true},
        {"{\"scenario\": {\"name\": \"A/B\"}}", true},
        {"{\"scenario\": {\"model\": \"Qwen/Qwen2.5-7B-Instruct\"}}", true},
        {"{\"scenario\": {\"model\": \"/Qwen2.5-7B\"}}", false},
        {"{\"scenario\": {\"model\": \"etc/a/Qwen2.5-7B\"}}", false},
        {"{\"scenario\": {\"model\": \"../Qwen2.5-7B\"}}", false},
        {"{\"scenario\": {\"cluster\": \"Qwen/Qwen2.5-7B\"}}", false},
        {"{\"scenario\": {\"$schema\": \"/x/scenario.schema.json\"}}", true},
        {"{\"scenario\": {\"model\": {\"name\": \"A/B\"}}}", false},
        {"{\"scenario\": {\"cluster\": {\"rate\": \"50 GB/s\"}}}", true},
        {"{\"scenario\": {\"cluster\": {\"rate\": \"1.5e9 B/s\"}}}", true},
        {"{\"scenario\": {\"cluster\": {\"rate\": \"50 GB/s/x\"}}}", false},
        {"{\"scenario\": {\"cluster\": {\"rate\": \"1/../x\"}}}", false},
        {"{\"scenario\": {\"a\": [[\"x/y\"]]}}", false},
        {"{\"scenario\": \"x\", \"set\": {\"model\": \"{\\\"preset\\\": \\\"\\\\u002fetc\\\"}\"}}", false},
        {"{\"scenario\": {\"training\": {\"lengths\": {\"file\": \"x\"}}}}", false},
        {"{\"scenario\": \"x\", \"set\": {\"training.lengths.file\": \"x\"}}", false},
        {"{\"scenario\": \"x\", \"set\": {\"training.lengths\": \"{\\\"file\\\": 1}\"}}", false},
        {"{\"scenario\": \"x\", \"set\": {\"model=/etc/passwd\": 1}}", false},
        {"{\"scenario\": \"x\", \"set\": {\"training.lengths={\\\"fil\\\": 1}\": 1}}", false},
        {"{\"scenario\": \"x\", \"vary\": {\"model\": [\"gpt3-175b\", \"/etc/passwd\"]}}", false},
        {"{\"scenario\": \"x\", \"vary\": {\"parallel.tensor\": \"1..8\", \"model\": [\"a\", \"b\"]}}", true},
        {"{\"scenario\": \"x\", \"own_runs\": \"runs\"}", false},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        if (is_safe("run", cases[i].json) != cases[i].safe)
            g_error("%s should be %s", cases[i].json, cases[i].safe ? "safe" : "refused");
    g_assert_true(is_safe("import", "{\"text\": \"torchrun /srv/train.py --x\"}"));
    g_assert_true(is_safe("trace", "{\"text\": \"{\\\"name\\\": \\\"aten/mm\\\"}\"}"));
    g_assert_false(is_safe("trace", "{\"text\": \"{}\", \"scenario\": \"/etc/passwd\"}"));
    g_assert_false(is_safe("import", "{\"file\": \"x\"}"));
    g_assert_true(is_safe("collective", "{\"bytes\": \"8..8GiB\"}"));
}

static int read_request(const char *bytes, ServeRequest *request, gsize *used)
{
    const char *why = NULL;
    return serve_http_read(bytes, strlen(bytes), request, used, &why);
}

/* Every prefix of a request wants more bytes, and the whole is read to its last byte and no further. */
static void test_request(void)
{
    static const char whole[] =
        "POST /api/run?x=1 HTTP/1.1\r\nhost: a\r\nContent-Length: 4\r\nConnection: CLOSE\r\n\r\nbody";
    ServeRequest request = {0};
    gsize used = 0;
    const char *why = NULL;
    for (gsize length = 0; length < strlen(whole); length++)
        g_assert_cmpint(serve_http_read(whole, length, &request, &used, &why), ==, 0);
    g_autofree char *more = g_strconcat(whole, "GET", NULL);
    g_assert_cmpint(read_request(more, &request, &used), ==, 200);
    g_assert_cmpuint(used, ==, strlen(whole));
    g_assert_cmpstr(request.path, ==, "/api/run");
    g_assert_cmpstr(request.host, ==, "a");
    g_assert_true(request.close);
    g_assert_true(request.body_length == 4 && memcmp(request.body, "body", 4) == 0);
    serve_request_clear(&request);
    g_assert_cmpint(read_request("\r\n\r\n", &request, &used), ==, 400);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/serve/safe/texts", test_texts);
    g_test_add_func("/serve/http/request", test_request);
    return g_test_run();
}
