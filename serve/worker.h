/* serve/worker.h - processes that stay: each answers run and explain, one question after the other, with presets in memory.
 *
 * A question is a line, a JSON list of a command line's words. An answer is "ok LENGTH" or "no LENGTH", a line feed, and so
 * many bytes: the answer, or the sentence of the refusal. A worker that is too slow is ended and another one started.
 */
#ifndef ORR_SERVE_WORKER_H
#define ORR_SERVE_WORKER_H

#include "serve/tools.h"

/* What a worker does until its standard input ends. */
bool serve_worker_loop(GError **error);

typedef struct ServePool ServePool;

/* `store`: where answers are kept (ServeWatch), borrowed; NULL: nowhere. `count` workers, each `program` with the words `how` (NULL-terminated) behind it. */
ServePool *serve_pool_new(const char *program, const char *const *how, int count, ServeStore *store,
                          GError **error);
void serve_pool_free(ServePool *pool); /* ends them; nobody may be asking */

/* An answerer (serve/tools.h), `data` the pool, from any thread: run and explain by a worker, all others by a process of their own. */
bool serve_ask_pool(const ServeQuestion *question, GString *out, GString *said, void *pool, GError **error);

#endif
