/* serve/http.h - HTTP/1.1 as the page and its API need it: GET, POST and DELETE, bodies of a told length, nothing else.
 *
 * Reading is a function of bytes, which a fuzzer feeds. Source: RFC 9110 and 9112.
 */
#ifndef ORR_SERVE_HTTP_H
#define ORR_SERVE_HTTP_H

#include <stdbool.h>

#include <glib.h>

enum { SERVE_HTTP_MOST_HEAD = 16 << 10, SERVE_HTTP_MOST_BODY = 16 << 20, SERVE_HTTP_MOST_HEADERS = 64 };

typedef struct ServeRequest {
    char *method, *path;                              /* the path without what follows "?" */
    char *host, *origin, *type, *authorization, *tag; /* headers; NULL: not given */
    bool close;                                       /* the connection ends after it */
    const char *body;                                 /* borrowed from the bytes */
    gsize body_length;
} ServeRequest;

/* 0: more bytes are needed; 200: there is a request, and *ret_used bytes of it; else the status to refuse it with, and `ret_why`
 * a sentence. */
int serve_http_read(const char *bytes, gsize length, ServeRequest *ret_request, gsize *ret_used,
                    const char **ret_why);
void serve_request_clear(ServeRequest *request);

/* Appends an answer with its body; `extra` are further header lines, each ending in CR LF ("" for none). */
void serve_http_write(GString *out, int status, const char *type, const char *extra, const char *body,
                      gsize length, bool close);
/* The head of an answer whose body is a stream of events until the connection ends. */
void serve_http_write_stream(GString *out);

#endif
