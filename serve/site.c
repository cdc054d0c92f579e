/* serve/site.c - see site.h. Tested: cli/test_serve.py, fuzz/fuzz_http.c */
#include "serve/site.h"

#include <string.h>

#include "base/file.h"
#include "base/shown.h"
#include "serve/facts.h"
#include "serve/safe.h"
#include "spec/help.h"
#include "spec/schema.h"

extern const char serve_page[], serve_style[], serve_script[], serve_jobs[], serve_tasks[], serve_tabs[];

#define JSON     "application/json; charset=utf-8"
#define NO_STORE "Cache-Control: no-store\r\n"

static void refuse(int status, const char *why, bool close, GString *out)
{
    g_autofree char *line = orr_shown(why, ' ', "");
    g_autoptr(GString) body = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, body, true);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_text(&w, "error", line);
    orr_jw_end(&w, '}');
    serve_http_write(out, status, JSON, NO_STORE, body->str, body->len, close);
}

void serve_site_refuse(int status, const char *why, GString *out)
{
    refuse(status, why, true, out);
}

static void give(const ServeRequest *r, const char *type, const char *body, gsize length, GString *out)
{
    serve_http_write(out, 200, type, NO_STORE, body, length, r->close);
}

/* What never changes while the server runs has a tag. */
static void give_file(const ServeRequest *r, const char *type, const char *text, GString *out)
{
    g_autofree char *hash = orr_hash_text(text, strlen(text));
    g_autofree char *tag = g_strdup_printf("\"%s\"", hash);
    g_autofree char *extra = g_strdup_printf("Cache-Control: no-cache\r\nETag: %s\r\n", tag);
    if (r->tag != NULL && strcmp(r->tag, tag) == 0)
        serve_http_write(out, 304, type, extra, "", 0, r->close);
    else
        serve_http_write(out, 200, type, extra, text, strlen(text), r->close);
}

/* Every field with its help, for the page's search. */
static void give_fields(const ServeRequest *r, GString *out)
{
    GPtrArray *keys = spec_help_keys();
    g_autoptr(GString) body = g_string_new(NULL), help = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, body, true);
    orr_jw_begin(&w, NULL, '[');
    for (guint i = 0; i < keys->len; i++) {
        const char *key = g_ptr_array_index(keys, i);
        g_string_truncate(help, 0);
        if (!spec_help(key, help, NULL))
            continue;
        orr_jw_begin(&w, NULL, '{');
        orr_jw_text(&w, "key", key);
        orr_jw_text(&w, "help", help->str);
        orr_jw_end(&w, '}');
    }
    orr_jw_end(&w, ']');
    g_ptr_array_free(keys, TRUE);
    give(r, JSON, body->str, body->len, out);
}

static void give_history(const ServeSite *site, const ServeRequest *r, GString *out)
{
    enum { MOST = 100 };
    g_autoptr(GString) body = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, body, true);
    orr_jw_begin(&w, NULL, '[');
    if (site->store != NULL)
        serve_store_history(site->store, MOST, &w);
    orr_jw_end(&w, ']');
    give(r, JSON, body->str, body->len, out);
}

static void give_schema(const ServeRequest *r, const char *kind, GString *out)
{
    g_autoptr(GString) body = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    if (spec_schema_write(kind, body, &error))
        give(r, "application/schema+json", body->str, body->len, out);
    else
        refuse(404, error->message, r->close, out);
}

/* --- who may ask --- */

static bool same(const char *a, const char *b)
{
    gsize length = strlen(a), differs = length ^ strlen(b);
    for (gsize i = 0; i < length && i < strlen(b); i++)
        differs |= (gsize)((unsigned char)a[i] ^ (unsigned char)b[i]);
    return differs == 0;
}

/* A name that a stranger's page could point to this machine is no name of this server. */
static bool is_own_name(const ServeSite *site, const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    if (host == NULL || site->host == NULL)
        return host != NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *whole = g_strdup_printf("%s:%d", names[i], site->port);
        if (strcmp(host, whole) == 0 || (site->port == 80 && strcmp(host, names[i]) == 0))
            return true;
    }
    return false;
}

static bool is_same_origin(const ServeRequest *r)
{
    g_autofree char *http = g_strconcat("http://", r->host, NULL);
    g_autofree char *https = g_strconcat("https://", r->host, NULL);
    return r->origin == NULL || strcmp(r->origin, http) == 0 || strcmp(r->origin, https) == 0;
}

/* 200, or the status of a refusal. */
static int admit(const ServeSite *site, const ServeRequest *r, bool api, const char **ret_why)
{
    static const char bearer[] = "Bearer ";
    if (!is_own_name(site, r->host)) {
        *ret_why = "this server answers to 127.0.0.1 and localhost with its port";
        return 403;
    }
    if (!is_same_origin(r)) {
        *ret_why = "requests from the pages of other servers are refused";
        return 403;
    }
    if (api && site->token != NULL &&
        (r->authorization == NULL || !g_str_has_prefix(r->authorization, bearer) ||
         !same(r->authorization + strlen(bearer), site->token))) {
        *ret_why = "the token is missing or wrong; send Authorization: Bearer TOKEN";
        return 401;
    }
    return 200;
}

/* --- questions --- */

/* The arguments of a request, a JSON object; NULL with the refusal written. */
static OrrJsonDoc *read_body(const ServeRequest *r, GString *out)
{
    g_autoptr(GError) error = NULL;
    if (r->type == NULL || !g_str_has_prefix(r->type, "application/json")) {
        refuse(415, "the body of a question is JSON (Content-Type: application/json)", r->close, out);
        return NULL;
    }
    OrrJsonDoc *doc = orr_json_parse(r->body, r->body_length, "the request", &error);
    if (doc == NULL)
        refuse(400, error->message, r->close, out);
    return doc;
}

static int status_of(const GError *error)
{
    return g_error_matches(error, ORR_ERROR, ORR_ERROR_INPUT) ? 400 : 503;
}

static bool read_question(const ServeTool *tool, const OrrJson *arguments, ServeQuestion *ret_question,
                          GError **error)
{
    return serve_safe(tool, arguments, error) && serve_question_read(tool, arguments, ret_question, error);
}

static void answer_tool(const ServeSite *site, const ServeRequest *r, const ServeTool *tool, GString *out)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new(NULL), said = g_string_new(NULL), body = g_string_new(NULL);
    OrrJsonDoc *asked = read_body(r, out), *doc = NULL;
    ServeQuestion question = {0};
    if (asked == NULL)
        return;
    const OrrJson *arguments = orr_json_root(asked);
    bool ok = read_question(tool, arguments, &question, &error) &&
              site->answerer.ask(&question, text, said, site->answerer.data, &error);
    if (ok && tool->is_json)
        ok = (doc = orr_json_parse(text->str, text->len, "the answer", &error)) != NULL;
    if (ok) {
        OrrJsonWriter w;
        g_autofree char *notes = orr_shown(said->str, ' ', "\n");
        const char *name = strcmp(tool->name, "list") == 0 ? orr_json_text_of(arguments, "name", NULL) : NULL;
        orr_jw_init(&w, body, true);
        serve_whole_write(tool, doc != NULL ? orr_json_root(doc) : NULL, name, text->str, notes, &w, NULL);
        give(r, JSON, body->str, body->len, out);
    } else {
        refuse(status_of(error), error->message, r->close, out);
    }
    serve_question_clear(&question);
    orr_json_free(doc);
    orr_json_free(asked);
}

/* {"tool": "search", "arguments": {...}} */
static void add_job(const ServeSite *site, const ServeRequest *r, GString *out)
{
    g_autoptr(GError) error = NULL;
    OrrJsonDoc *asked = read_body(r, out);
    if (asked == NULL)
        return;
    const OrrJson *root = orr_json_root(asked);
    const bool object = orr_json_type(root) == ORR_JSON_OBJECT;
    const char *name = object ? orr_json_text_of(root, "tool", "") : "";
    const ServeTool *tool = serve_tool_find(name, &error);
    ServeQuestion question = {0};
    guint id = 0;
    if (tool != NULL && read_question(tool, orr_json_member(root, "arguments"), &question, &error))
        id = serve_jobs_add(site->jobs, &question, &error);
    if (id > 0) {
        g_autofree char *body = g_strdup_printf("{\"id\":%u}", id);
        serve_http_write(out, 202, JSON, NO_STORE, body, strlen(body), r->close);
    } else {
        refuse(status_of(error), error->message, r->close, out);
    }
    serve_question_clear(&question);
    orr_json_free(asked);
}

/* /api/jobs, /api/jobs/ID, /api/jobs/ID/events */
static guint answer_jobs(const ServeSite *site, const ServeRequest *r, const char *rest, GString *out)
{
    char *end = NULL;
    if (rest[0] == '\0' && strcmp(r->method, "POST") == 0) {
        add_job(site, r, out);
        return 0;
    }
    const guint id = rest[0] == '/' ? (guint)g_ascii_strtoull(rest + 1, &end, 10) : 0;
    const bool events = end != NULL && strcmp(end, "/events") == 0;
    g_autoptr(GString) body = g_string_new(NULL);
    bool over = false;
    if (id == 0 || !(events || *end == '\0') || !serve_jobs_show(site->jobs, id, !events, body, &over)) {
        refuse(404, "there is no such job; POST to /api/jobs makes one", r->close, out);
    } else if (events && strcmp(r->method, "GET") == 0) {
        serve_http_write_stream(out);
        return id;
    } else if (strcmp(r->method, "DELETE") == 0) {
        (void)serve_jobs_cancel(site->jobs, id);
        give(r, JSON, "{}", 2, out);
    } else if (strcmp(r->method, "GET") == 0) {
        give(r, JSON, body->str, body->len, out);
    } else {
        refuse(405, "a job is asked with GET and cancelled with DELETE", r->close, out);
    }
    return 0;
}

static guint answer_api(const ServeSite *site, const ServeRequest *r, GString *out)
{
    static const char prefix[] = "/api/", schema[] = "schema/", jobs[] = "jobs";
    const char *rest = r->path + strlen(prefix);
    const bool get = strcmp(r->method, "GET") == 0;
    if (site->jobs != NULL && g_str_has_prefix(rest, jobs))
        return answer_jobs(site, r, rest + strlen(jobs), out);
    if (get && strcmp(rest, "fields") == 0) {
        give_fields(r, out);
    } else if (get && strcmp(rest, "history") == 0) {
        give_history(site, r, out);
    } else if (get && strcmp(rest, "openapi.json") == 0) {
        g_autoptr(GString) body = g_string_new(NULL);
        serve_openapi(body);
        give(r, JSON, body->str, body->len, out);
    } else if (get && g_str_has_prefix(rest, schema)) {
        give_schema(r, rest + strlen(schema), out);
    } else {
        g_autoptr(GError) error = NULL;
        const ServeTool *tool = serve_tool_find(rest, &error);
        if (tool == NULL)
            refuse(404, error->message, r->close, out);
        else if (strcmp(r->method, "POST") != 0)
            refuse(405, "questions are asked with POST", r->close, out);
        else
            answer_tool(site, r, tool, out);
    }
    return 0;
}

guint serve_site_answer(const ServeSite *site, const ServeRequest *request, GString *out)
{
    static const char script[] = "text/javascript; charset=utf-8";
    const struct {
        const char *path, *type, *text;
    } files[] = {{"/", "text/html; charset=utf-8", serve_page},
                 {"/page.css", "text/css; charset=utf-8", serve_style},
                 {"/page.js", script, serve_script},
                 {"/jobs.js", script, serve_jobs},
                 {"/tasks.js", script, serve_tasks},
                 {"/tabs.js", script, serve_tabs}};
    const bool api = g_str_has_prefix(request->path, "/api/");
    const char *why = NULL;
    const int status = admit(site, request, api, &why);
    if (status != 200) {
        refuse(status, why, request->close, out);
        return 0;
    }
    if (api)
        return answer_api(site, request, out);
    for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
        if (strcmp(request->path, files[i].path) != 0)
            continue;
        if (strcmp(request->method, "GET") == 0)
            give_file(request, files[i].type, files[i].text, out);
        else
            refuse(405, "the page is read with GET", request->close, out);
        return 0;
    }
    refuse(404, "there is no such page; / is the planner and /api/openapi.json describes the API",
           request->close, out);
    return 0;
}
