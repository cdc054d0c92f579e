/* serve/store.h - answers that outlive the server: a folder with a file each, or one SQLite database, which also knows what was asked
 * when. From any thread. */
#ifndef ORR_SERVE_STORE_H
#define ORR_SERVE_STORE_H

#include "base/json.h"

typedef struct ServeStore ServeStore;

/* A path that ends in .db or .sqlite is a database, for which libsqlite3 has to be on this machine; others are folders. Made where
 * there is none. */
ServeStore *serve_store_open(const char *path, GError **error);
void serve_store_close(ServeStore *store); /* NULL: nothing */

typedef struct ServeKept {
    const char *key, *tool, *asked; /* asked: the arguments, JSON */
} ServeKept;

/* Appends the answer to a question that was kept. */
bool serve_store_take(ServeStore *store, const char *key, GString *out);
/* It is there when this returns, however the process ends then. What cannot be kept is said on standard error. */
void serve_store_keep(ServeStore *store, const ServeKept *question, const GString *answer);
/* What was asked, the latest first: a list of {"tool", "at_s", "arguments"}, empty for a folder. */
void serve_store_history(ServeStore *store, int most, OrrJsonWriter *w);

#endif
