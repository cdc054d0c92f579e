/* serve/site.h - requests to answers: the page, its files, the questions, the jobs, the description of all that. */
#ifndef ORR_SERVE_SITE_H
#define ORR_SERVE_SITE_H

#include "serve/http.h"
#include "serve/jobs.h"

typedef struct ServeSite {
    ServeAnswerer answerer;
    ServeJobs *jobs;   /* NULL: there are none */
    ServeStore *store; /* NULL: nothing is kept */
    const char *token; /* NULL: whoever reaches the port may ask */
    const char *
        host; /* what requests have to call the server, "127.0.0.1:8080" and "localhost:8080"; NULL: any name */
    int port;
} ServeSite;

/* Appends the answer to a request. Returns the job whose events are to follow, 0: none. */
guint serve_site_answer(const ServeSite *site, const ServeRequest *request, GString *out);
/* What a request gets that could not be read. */
void serve_site_refuse(int status, const char *why, GString *out);

/* Appends the API as OpenAPI 3.1. */
void serve_openapi(GString *out);

#endif
