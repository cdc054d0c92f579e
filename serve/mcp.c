/* serve/mcp.c - see mcp.h. Tested: cli/test_mcp.py, fuzz/fuzz_mcp.c */
#include "serve/mcp.h"

#include <string.h>

#include "base/shown.h"
#include "serve/facts.h"

/* Codes of JSON-RPC 2.0. */
enum { PARSE = -32700, REQUEST = -32600, METHOD = -32601, PARAMS = -32602, INTERNAL = -32603 };

static const char *const versions[] = {"2025-06-18", "2025-03-26", "2024-11-05"}; /* the newest first */

static const char instructions[] =
    "Orrery predicts the time, memory and cost of training runs on GPU clusters before they run. Begin with "
    "list "
    "(kind examples, models or clusters), then run a scenario. Every number is labelled measured, predicted, "
    "assumed or "
    "given; pass on the interval of a prediction with it. Never present a prediction as a measurement.";

static void begin(OrrJsonWriter *w, GString *out, const OrrJson *id)
{
    orr_jw_init(w, out, true);
    orr_jw_begin(w, NULL, '{');
    orr_jw_text(w, "jsonrpc", "2.0");
    if (id != NULL)
        orr_jw_node(w, "id", id);
    else
        orr_jw_null(w, "id");
}

static void end(OrrJsonWriter *w, GString *out)
{
    orr_jw_end(w, '}');
    g_string_append_c(out, '\n');
}

static void fail(GString *out, const OrrJson *id, int code, const char *message)
{
    enum { MOST = 2000 };
    OrrJsonWriter w;
    g_autofree char *line = orr_shown(message, ' ', "");
    if (strlen(line) > MOST)
        *g_utf8_find_prev_char(line, line + MOST) = '\0';
    begin(&w, out, id);
    orr_jw_begin(&w, "error", '{');
    orr_jw_int(&w, "code", code);
    orr_jw_text(&w, "message", line);
    orr_jw_end(&w, '}');
    end(&w, out);
}

void serve_mcp_too_long(GString *out)
{
    g_autofree char *message = g_strdup_printf(
        "the message is longer than %d MiB; give the path of a file instead", SERVE_MCP_MOST_LINE >> 20);
    fail(out, NULL, REQUEST, message);
}

static void initialize(const OrrJson *params, const OrrJson *id, GString *out)
{
    const char *asked =
        params != NULL ? orr_json_text_of(params, "protocolVersion", versions[0]) : versions[0];
    const char *version = versions[0];
    for (gsize i = 0; i < G_N_ELEMENTS(versions); i++)
        if (strcmp(asked, versions[i]) == 0)
            version = versions[i];
    OrrJsonWriter w;
    begin(&w, out, id);
    orr_jw_begin(&w, "result", '{');
    orr_jw_text(&w, "protocolVersion", version);
    orr_jw_begin(&w, "capabilities", '{');
    orr_jw_begin(&w, "tools", '{');
    orr_jw_end(&w, '}');
    orr_jw_end(&w, '}');
    orr_jw_begin(&w, "serverInfo", '{');
    orr_jw_text(&w, "name", "orrery");
    orr_jw_text(&w, "title", "Orrery");
    orr_jw_text(&w, "version", ORRERY_VERSION);
    orr_jw_end(&w, '}');
    orr_jw_text(&w, "instructions", instructions);
    orr_jw_end(&w, '}');
    end(&w, out);
}

static void list_tools(const OrrJson *id, GString *out)
{
    int count = 0;
    const ServeTool *tools = serve_tools(&count);
    OrrJsonWriter w;
    begin(&w, out, id);
    orr_jw_begin(&w, "result", '{');
    orr_jw_begin(&w, "tools", '[');
    for (int i = 0; i < count; i++) {
        orr_jw_begin(&w, NULL, '{');
        orr_jw_text(&w, "name", tools[i].name);
        orr_jw_text(&w, "title", tools[i].title);
        orr_jw_text(&w, "description", tools[i].help);
        serve_tool_schema(&tools[i], "inputSchema", &w);
        orr_jw_begin(&w, "annotations", '{');
        orr_jw_bool(&w, "readOnlyHint", true);
        orr_jw_bool(&w, "openWorldHint", false);
        orr_jw_end(&w, '}');
        orr_jw_end(&w, '}');
    }
    orr_jw_end(&w, ']');
    orr_jw_end(&w, '}');
    end(&w, out);
}

static void write_result(const ServeTool *tool, const OrrJson *arguments, const OrrJson *answer,
                         const GString *text, const GString *said, const OrrJson *id, GString *out)
{
    const char *name = arguments != NULL && strcmp(tool->name, "list") == 0
                           ? orr_json_text_of(arguments, "name", NULL)
                           : NULL;
    g_autofree char *notes = orr_shown(said->str, ' ', "\n");
    g_strstrip(notes);
    g_autoptr(GString) words = g_string_new(NULL), whole = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, whole, true);
    serve_whole_write(tool, answer, name, text->str, notes, &w, NULL);
    serve_facts_text(tool, answer, words);
    begin(&w, out, id);
    orr_jw_begin(&w, "result", '{');
    orr_jw_begin(&w, "content", '[');
    if (words->len > 0) {
        orr_jw_begin(&w, NULL, '{');
        orr_jw_text(&w, "type", "text");
        orr_jw_text(&w, "text", words->str);
        orr_jw_end(&w, '}');
    }
    orr_jw_begin(&w, NULL, '{');
    orr_jw_text(&w, "type", "text");
    orr_jw_text(&w, "text", answer != NULL ? whole->str : text->str);
    orr_jw_end(&w, '}');
    orr_jw_end(&w, ']');
    serve_whole_write(tool, answer, name, text->str, notes, &w, "structuredContent");
    orr_jw_bool(&w, "isError", false);
    orr_jw_end(&w, '}');
    end(&w, out);
}

static void call_tool(const ServeAnswerer *answerer, const OrrJson *params, const OrrJson *id, GString *out)
{
    g_autoptr(GError) error = NULL;
    const char *name = params != NULL ? orr_json_text_of(params, "name", NULL) : NULL;
    const OrrJson *arguments = params != NULL ? orr_json_member(params, "arguments") : NULL;
    if (name == NULL) {
        fail(out, id, PARAMS, "tools/call: params.name is missing; tools/list gives the names");
        return;
    }
    if (arguments != NULL && orr_json_type(arguments) == ORR_JSON_NULL)
        arguments = NULL;
    const ServeTool *tool = serve_tool_find(name, &error);
    ServeQuestion question = {0};
    g_autoptr(GString) text = g_string_new(NULL), said = g_string_new(NULL);
    bool ok = tool != NULL && serve_question_read(tool, arguments, &question, &error) &&
              answerer->ask(&question, text, said, answerer->data, &error);
    OrrJsonDoc *doc = ok && tool->is_json ? orr_json_parse(text->str, text->len, "the answer", &error) : NULL;
    ok = ok && (doc != NULL || !tool->is_json);
    if (ok)
        write_result(tool, arguments, doc != NULL ? orr_json_root(doc) : NULL, text, said, id, out);
    else
        fail(out, id, g_error_matches(error, ORR_ERROR, ORR_ERROR_INPUT) ? PARAMS : INTERNAL, error->message);
    orr_json_free(doc);
    serve_question_clear(&question);
}

static void request(const ServeAnswerer *answerer, const char *method, const OrrJson *params,
                    const OrrJson *id, GString *out)
{
    if (strcmp(method, "initialize") == 0) {
        initialize(params, id, out);
    } else if (strcmp(method, "ping") == 0) {
        OrrJsonWriter w;
        begin(&w, out, id);
        orr_jw_begin(&w, "result", '{');
        orr_jw_end(&w, '}');
        end(&w, out);
    } else if (strcmp(method, "tools/list") == 0) {
        list_tools(id, out);
    } else if (strcmp(method, "tools/call") == 0) {
        call_tool(answerer, params, id, out);
    } else {
        g_autofree char *message = g_strdup_printf("\"%.100s\" is not a method of this server; there are "
                                                   "initialize, ping, tools/list and tools/call",
                                                   method);
        fail(out, id, METHOD, message);
    }
}

/* A request has an id, which is a text or a number; what has none is a notification. */
static void message(const ServeAnswerer *answerer, const OrrJson *root, GString *out)
{
    const bool object = orr_json_type(root) == ORR_JSON_OBJECT;
    const OrrJson *id = object ? orr_json_member(root, "id") : NULL;
    const OrrJson *params = object ? orr_json_member(root, "params") : NULL;
    const char *method = object ? orr_json_text_of(root, "method", NULL) : NULL;
    const bool valid_id =
        id == NULL || orr_json_type(id) == ORR_JSON_TEXT || orr_json_type(id) == ORR_JSON_NUMBER;
    if (!object || strcmp(orr_json_text_of(root, "jsonrpc", ""), "2.0") != 0)
        fail(out, NULL, REQUEST, "a message is one object with \"jsonrpc\": \"2.0\"");
    else if (!valid_id)
        fail(out, NULL, REQUEST, "the id of a request is a text or a number");
    else if (method == NULL && id != NULL &&
             (orr_json_member(root, "result") != NULL || orr_json_member(root, "error") != NULL))
        return; /* an answer: nothing was asked */
    else if (method == NULL)
        fail(out, id, REQUEST, "the method is missing");
    else if (id == NULL)
        return;
    else if (params != NULL && orr_json_type(params) != ORR_JSON_OBJECT)
        fail(out, id, PARAMS, "params is an object");
    else
        request(answerer, method, params, id, out);
}

void serve_mcp_line(const ServeAnswerer *answerer, const char *line, gsize length, GString *out)
{
    g_autoptr(GError) error = NULL;
    while (length > 0 && g_ascii_isspace(line[length - 1]))
        length--;
    if (length == 0)
        return;
    OrrJsonDoc *doc = orr_json_parse(line, length, "the message", &error);
    if (doc != NULL)
        message(answerer, orr_json_root(doc), out);
    else
        fail(out, NULL, PARSE, error->message);
    orr_json_free(doc);
}
