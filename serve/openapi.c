/* serve/openapi.c - the API as OpenAPI 3.1, from the table of questions and the tables of fields. Tested: cli/test_serve.py */
#include "serve/site.h"
#include "spec/schema.h"

static void write_answers(OrrJsonWriter *w)
{
    static const char *const answers[][2] = {
        {"200", "The answer: tool, version, numbers, labels, assumed, notes, answer."},
        {"400", "The question is refused; the member `error` is one sentence."},
        {"401", "The token is missing or wrong."},
        {"503", "The server is busy, or the question went over a limit."}};
    orr_jw_begin(w, "responses", '{');
    for (gsize i = 0; i < G_N_ELEMENTS(answers); i++) {
        orr_jw_begin(w, answers[i][0], '{');
        orr_jw_text(w, "description", answers[i][1]);
        orr_jw_begin(w, "content", '{');
        orr_jw_begin(w, "application/json", '{');
        orr_jw_begin(w, "schema", '{');
        orr_jw_text(w, "$ref", i == 0 ? "#/components/schemas/Answer" : "#/components/schemas/Refusal");
        orr_jw_end(w, '}');
        orr_jw_end(w, '}');
        orr_jw_end(w, '}');
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, '}');
}

static void write_tool(const ServeTool *tool, OrrJsonWriter *w)
{
    g_autofree char *path = g_strconcat("/api/", tool->name, NULL);
    orr_jw_begin(w, path, '{');
    orr_jw_begin(w, "post", '{');
    orr_jw_text(w, "operationId", tool->name);
    orr_jw_text(w, "summary", tool->title);
    orr_jw_text(w, "description", tool->help);
    orr_jw_begin(w, "requestBody", '{');
    orr_jw_bool(w, "required", true);
    orr_jw_begin(w, "content", '{');
    orr_jw_begin(w, "application/json", '{');
    serve_tool_schema(tool, "schema", w);
    orr_jw_end(w, '}');
    orr_jw_end(w, '}');
    orr_jw_end(w, '}');
    write_answers(w);
    orr_jw_end(w, '}');
    orr_jw_end(w, '}');
}

/* Requests that are no questions. */
static void write_others(OrrJsonWriter *w)
{
    static const struct {
        const char *path, *method, *id, *summary;
        bool has_id;
    } others[] = {
        {"/api/jobs", "post", "job", "A long question as a job: {\"tool\", \"arguments\"} gives its {\"id\"}",
         false},
        {"/api/jobs/{id}", "get", "jobState", "The state of a job, and its result when it is done", true},
        {"/api/jobs/{id}", "delete", "jobCancel", "Cancels a job", true},
        {"/api/jobs/{id}/events", "get", "jobEvents",
         "The states of a job as server-sent events, until it is over", true},
        {"/api/fields", "get", "fields", "Every field of a scenario with its help", false},
        {"/api/history", "get", "history",
         "What was asked and is kept: tool, at_s, arguments, the latest first", false},
        {"/api/schema/scenario", "get", "schema", "The JSON Schema of a scenario", false},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++) {
        const bool again = i > 0 && g_str_equal(others[i].path, others[i - 1].path);
        const bool last = i + 1 == G_N_ELEMENTS(others) || !g_str_equal(others[i].path, others[i + 1].path);
        if (!again)
            orr_jw_begin(w, others[i].path, '{');
        orr_jw_begin(w, others[i].method, '{');
        orr_jw_text(w, "operationId", others[i].id);
        orr_jw_text(w, "summary", others[i].summary);
        if (others[i].has_id) {
            orr_jw_begin(w, "parameters", '[');
            orr_jw_begin(w, NULL, '{');
            orr_jw_text(w, "name", "id");
            orr_jw_text(w, "in", "path");
            orr_jw_bool(w, "required", true);
            orr_jw_begin(w, "schema", '{');
            orr_jw_text(w, "type", "integer");
            orr_jw_end(w, '}');
            orr_jw_end(w, '}');
            orr_jw_end(w, ']');
        }
        orr_jw_begin(w, "responses", '{');
        orr_jw_begin(w, g_str_equal(others[i].id, "job") ? "202" : "200", '{');
        orr_jw_text(w, "description", others[i].summary);
        orr_jw_end(w, '}');
        orr_jw_end(w, '}');
        orr_jw_end(w, '}');
        if (last)
            orr_jw_end(w, '}');
    }
}

static void write_components(OrrJsonWriter *w)
{
    g_autoptr(GString) scenario = g_string_new(NULL);
    const bool ok = spec_schema_write("scenario", scenario, NULL);
    OrrJsonDoc *doc = ok ? orr_json_parse(scenario->str, scenario->len, "schema", NULL) : NULL;
    orr_jw_begin(w, "components", '{');
    orr_jw_begin(w, "securitySchemes", '{');
    orr_jw_begin(w, "token", '{');
    orr_jw_text(w, "type", "http");
    orr_jw_text(w, "scheme", "bearer");
    orr_jw_end(w, '}');
    orr_jw_end(w, '}');
    orr_jw_begin(w, "schemas", '{');
    if (doc != NULL)
        orr_jw_node(w, "Scenario", orr_json_root(doc));
    orr_json_free(doc);
    static const char *const texts[] = {"tool", "version"}, *const lists[] = {"numbers", "labels", "assumed"};
    orr_jw_begin(w, "Answer", '{');
    orr_jw_text(w, "type", "object");
    orr_jw_begin(w, "properties", '{');
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        orr_jw_begin(w, texts[i], '{');
        orr_jw_text(w, "type", "string");
        orr_jw_end(w, '}');
    }
    for (gsize i = 0; i < G_N_ELEMENTS(lists); i++) {
        orr_jw_begin(w, lists[i], '{');
        orr_jw_text(w, "type", "array");
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, '}');
    orr_jw_end(w, '}');
    orr_jw_begin(w, "Refusal", '{');
    orr_jw_text(w, "type", "object");
    orr_jw_begin(w, "properties", '{');
    orr_jw_begin(w, "error", '{');
    orr_jw_text(w, "type", "string");
    orr_jw_end(w, '}');
    orr_jw_end(w, '}');
    orr_jw_end(w, '}');
    orr_jw_end(w, '}');
    orr_jw_end(w, '}');
}

void serve_openapi(GString *out)
{
    int count = 0;
    const ServeTool *tools = serve_tools(&count);
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_text(&w, "openapi", "3.1.0");
    orr_jw_begin(&w, "info", '{');
    orr_jw_text(&w, "title", "Orrery");
    orr_jw_text(&w, "version", ORRERY_VERSION);
    orr_jw_text(&w, "description", "Time, memory and cost of training runs on GPU clusters, predicted.");
    orr_jw_end(&w, '}');
    orr_jw_begin(&w, "paths", '{');
    for (int i = 0; i < count; i++)
        write_tool(&tools[i], &w);
    write_others(&w);
    orr_jw_end(&w, '}');
    write_components(&w);
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}
