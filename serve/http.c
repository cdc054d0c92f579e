/* serve/http.c - see http.h. Tested: cli/test_serve.py, fuzz/fuzz_http.c */
#include "serve/http.h"

#include <string.h>

static int refuse(int status, const char *why, const char **ret_why)
{
    *ret_why = why;
    return status;
}

/* Header names and methods: letters, digits and a few signs. */
static bool is_token(const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if (!g_ascii_isalnum(*c) && strchr("!#$%&'*+-.^_`|~", *c) == NULL)
            return false;
    return text[0] != '\0';
}

static bool is_printed(const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if (g_ascii_iscntrl(*c) && *c != '\t')
            return false;
    return true;
}

/* "GET /path?query HTTP/1.1" */
static int read_first_line(const char *line, ServeRequest *r, const char **ret_why)
{
    g_auto(GStrv) words = g_strsplit(line, " ", 4);
    if (g_strv_length(words) != 3 || !is_token(words[0]) || words[1][0] != '/' || !is_printed(words[1]))
        return refuse(400, "the first line of the request is not METHOD /PATH HTTP/1.1", ret_why);
    if (strcmp(words[2], "HTTP/1.1") != 0 && strcmp(words[2], "HTTP/1.0") != 0)
        return refuse(505, "only HTTP/1.1 is spoken here", ret_why);
    r->method = g_strdup(words[0]);
    r->path = g_strndup(words[1], strcspn(words[1], "?#"));
    r->close = strcmp(words[2], "HTTP/1.0") == 0;
    return 200;
}

/* A second header of one name that decides something is an attack or a mistake. */
static bool keep_header(ServeRequest *r, const char *name, const char *value)
{
    const struct {
        const char *name;
        char **place;
    } kept[] = {{"host", &r->host},
                {"origin", &r->origin},
                {"content-type", &r->type},
                {"authorization", &r->authorization},
                {"if-none-match", &r->tag}};
    for (gsize i = 0; i < G_N_ELEMENTS(kept); i++) {
        if (g_ascii_strcasecmp(name, kept[i].name) != 0)
            continue;
        if (*kept[i].place != NULL)
            return false;
        *kept[i].place = g_strdup(value);
    }
    return true;
}

static int read_header(char *line, ServeRequest *r, gint64 *length, const char **ret_why)
{
    char *colon = strchr(line, ':');
    if (colon == NULL)
        return refuse(400, "a header has no colon", ret_why);
    *colon = '\0';
    char *value = g_strstrip(colon + 1);
    if (!is_token(line) || !is_printed(value) || !keep_header(r, line, value))
        return refuse(400, "a header is broken or given twice", ret_why);
    if (g_ascii_strcasecmp(line, "transfer-encoding") == 0)
        return refuse(411, "a body has to tell its length (Content-Length)", ret_why);
    if (g_ascii_strcasecmp(line, "connection") == 0 && g_ascii_strcasecmp(value, "close") == 0)
        r->close = true;
    if (g_ascii_strcasecmp(line, "content-length") == 0) {
        guint64 number = 0;
        if (*length >= 0 || !g_ascii_string_to_unsigned(value, 10, 0, G_MAXINT64, &number, NULL))
            return refuse(400, "Content-Length is not a number, or given twice", ret_why);
        *length = (gint64)number;
    }
    return 200;
}

static int read_head(const char *bytes, gsize length, ServeRequest *r, gint64 *ret_length,
                     const char **ret_why)
{
    if (memchr(bytes, '\0', length) != NULL)
        return refuse(400, "the head of the request has a byte of zero", ret_why);
    g_autofree char *head = g_strndup(bytes, length);
    g_auto(GStrv) lines = g_strsplit(head, "\r\n", SERVE_HTTP_MOST_HEADERS + 2);
    if (g_strv_length(lines) > SERVE_HTTP_MOST_HEADERS)
        return refuse(431, "the request has too many headers", ret_why);
    int status = read_first_line(lines[0] != NULL ? lines[0] : "", r, ret_why);
    *ret_length = -1;
    for (char **line = lines + 1; status == 200 && *line != NULL; line++)
        status = read_header(*line, r, ret_length, ret_why);
    return status;
}

int serve_http_read(const char *bytes, gsize length, ServeRequest *ret_request, gsize *ret_used,
                    const char **ret_why)
{
    const char *end = g_strstr_len(bytes, (gssize)MIN(length, SERVE_HTTP_MOST_HEAD), "\r\n\r\n");
    if (end == NULL && length >= SERVE_HTTP_MOST_HEAD)
        return refuse(431, "the head of the request is too long", ret_why);
    if (end == NULL)
        return 0;
    ServeRequest r = {0};
    gint64 told = -1;
    int status = read_head(bytes, (gsize)(end - bytes), &r, &told, ret_why);
    const gsize head = (gsize)(end - bytes) + strlen("\r\n\r\n");
    const gsize body = told > 0 ? (gsize)told : 0;
    if (status == 200 && told > SERVE_HTTP_MOST_BODY)
        status = refuse(413, "the body is larger than 16 MiB", ret_why);
    if (status == 200 && length - head < body)
        status = 0;
    if (status != 200) {
        serve_request_clear(&r);
        return status;
    }
    r.body = bytes + head;
    r.body_length = body;
    *ret_used = head + body;
    *ret_request = r;
    return 200;
}

void serve_request_clear(ServeRequest *request)
{
    g_free(request->method);
    g_free(request->path);
    g_free(request->host);
    g_free(request->origin);
    g_free(request->type);
    g_free(request->authorization);
    g_free(request->tag);
    *request = (ServeRequest){0};
}

static const char *reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {{200, "OK"},
                   {202, "Accepted"},
                   {304, "Not Modified"},
                   {400, "Bad Request"},
                   {401, "Unauthorized"},
                   {403, "Forbidden"},
                   {404, "Not Found"},
                   {405, "Method Not Allowed"},
                   {408, "Request Timeout"},
                   {411, "Length Required"},
                   {413, "Content Too Large"},
                   {415, "Unsupported Media Type"},
                   {431, "Request Header Fields Too Large"},
                   {503, "Service Unavailable"},
                   {505, "HTTP Version Not Supported"}};
    for (gsize i = 0; i < G_N_ELEMENTS(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Error";
}

/* Of every answer: nothing from elsewhere, nothing framed, nothing guessed. */
static const char guards[] =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n";

void serve_http_write(GString *out, int status, const char *type, const char *extra, const char *body,
                      gsize length, bool close)
{
    g_string_append_printf(
        out, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %" G_GSIZE_FORMAT "\r\n%s%s%s\r\n",
        status, reason(status), type, length, guards, extra, close ? "Connection: close\r\n" : "");
    g_string_append_len(out, body, (gssize)length);
}

void serve_http_write_stream(GString *out)
{
    g_string_append_printf(out,
                           "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
                           "%sConnection: close\r\n\r\n",
                           guards);
}
