/* serve/store.c - see store.h. Tested: cli/test_serve.py
 *
 * libsqlite3 is loaded when a database is asked for and no sooner: no other command waits for it, and a build needs none of it. Of
 * its interface, which is stable since 2004 (https://www.sqlite.org/c3ref/intro.html), a dozen functions are taken.
 */
#include "serve/store.h"

#include <dlfcn.h>
#include <string.h>

#include "base/file.h"

enum {
    SQLITE_OK = 0,
    SQLITE_ROW = 100,
    SQLITE_DONE = 101,
    OPEN_FLAGS = 0x2 | 0x4 | 0x10000,
    MOST_ANSWERS = 10000,
    PATIENCE_MS = 5000
};

typedef struct Sqlite {
    int (*open)(const char *, void **, int, const char *);
    int (*close)(void *);
    int (*exec)(void *, const char *, void *, void *, void *);
    int (*prepare)(void *, const char *, int, void **, void *);
    int (*bind_text)(void *, int, const char *, int, void (*)(void *));
    int (*bind_int64)(void *, int, gint64);
    int (*step)(void *);
    const unsigned char *(*column_text)(void *, int);
    int (*column_bytes)(void *, int);
    gint64 (*column_int64)(void *, int);
    int (*finalize)(void *);
    int (*busy_timeout)(void *, int);
    const char *(*errmsg)(void *);
} Sqlite;

struct ServeStore {
    char *folder; /* NULL: a database */
    Sqlite sqlite;
    void *module, *database;
    GMutex lock;
};

static const char *const schema[] = {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL",
                                     "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, tool TEXT, "
                                     "asked TEXT, at INTEGER, answer TEXT)",
                                     "CREATE INDEX IF NOT EXISTS answers_at ON answers (at)"};

/* POSIX: an object pointer that becomes a function's. */
static bool find_all(ServeStore *store)
{
    Sqlite *s = &store->sqlite;
    const struct {
        const char *name;
        void *place;
    } wanted[] = {{"sqlite3_open_v2", &s->open},
                  {"sqlite3_close_v2", &s->close},
                  {"sqlite3_exec", &s->exec},
                  {"sqlite3_prepare_v2", &s->prepare},
                  {"sqlite3_bind_text", &s->bind_text},
                  {"sqlite3_bind_int64", &s->bind_int64},
                  {"sqlite3_step", &s->step},
                  {"sqlite3_column_text", &s->column_text},
                  {"sqlite3_column_bytes", &s->column_bytes},
                  {"sqlite3_column_int64", &s->column_int64},
                  {"sqlite3_finalize", &s->finalize},
                  {"sqlite3_busy_timeout", &s->busy_timeout},
                  {"sqlite3_errmsg", &s->errmsg}};
    static const char *const names[] = {"libsqlite3.so.0", "libsqlite3.dylib", "libsqlite3.so"};
    for (gsize i = 0; store->module == NULL && i < G_N_ELEMENTS(names); i++)
        store->module = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    bool ok = store->module != NULL;
    for (gsize i = 0; ok && i < G_N_ELEMENTS(wanted); i++)
        ok = (*(void **)wanted[i].place = dlsym(store->module, wanted[i].name)) != NULL;
    return ok;
}

static bool open_database(ServeStore *store, const char *path, GError **error)
{
    if (!find_all(store))
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "serve: --store %s: a database needs libsqlite3, which is not on this machine; install it, or "
            "give a folder",
            path);
    const Sqlite *s = &store->sqlite;
    bool ok = s->open(path, &store->database, OPEN_FLAGS, NULL) == SQLITE_OK;
    if (ok)
        (void)s->busy_timeout(store->database, PATIENCE_MS);
    for (gsize i = 0; ok && i < G_N_ELEMENTS(schema); i++)
        ok = s->exec(store->database, schema[i], NULL, NULL, NULL) == SQLITE_OK;
    return ok || orr_fail(error, ORR_ERROR_INPUT,
                          "serve: --store %s: cannot be used as a database: %s; give another file", path,
                          store->database != NULL ? s->errmsg(store->database) : "out of memory");
}

ServeStore *serve_store_open(const char *path, GError **error)
{
    ServeStore *store = g_new0(ServeStore, 1);
    g_mutex_init(&store->lock);
    bool ok = true;
    if (g_str_has_suffix(path, ".db") || g_str_has_suffix(path, ".sqlite")) {
        ok = open_database(store, path, error);
    } else {
        store->folder = g_strdup(path);
        ok = g_mkdir_with_parents(path, 0700) == 0 ||
             orr_fail(error, ORR_ERROR_INPUT, "serve: --store %s: the folder cannot be made", path);
    }
    if (ok)
        return store;
    serve_store_close(store);
    return NULL;
}

void serve_store_close(ServeStore *store)
{
    if (store == NULL)
        return;
    if (store->database != NULL)
        (void)store->sqlite.close(store->database);
    if (store->module != NULL)
        (void)dlclose(store->module);
    g_mutex_clear(&store->lock);
    g_free(store->folder);
    g_free(store);
}

/* --- a folder --- */

static char *path_of(const ServeStore *store, const char *key)
{
    g_autofree char *name = g_strconcat(key, ".json", NULL);
    return g_build_filename(store->folder, name, NULL);
}

static bool take_file(const ServeStore *store, const char *key, GString *out)
{
    g_autofree char *path = path_of(store, key), *text = NULL;
    gsize length = 0;
    if (!g_file_get_contents(path, &text, &length, NULL))
        return false;
    g_string_append_len(out, text, (gssize)length);
    return true;
}

static void keep_file(const ServeStore *store, const char *key, const GString *answer)
{
    g_autofree char *path = path_of(store, key);
    g_autoptr(GError) error = NULL;
    if (!orr_file_write(path, answer->str, answer->len, &error))
        g_printerr("orrery: an answer is not kept: %s\n", error->message);
}

/* --- a database --- */

/* Texts are copied by the library where the last argument is -1. */
static void bind_text(const Sqlite *s, void *statement, int at, const char *text, gsize length)
{
    (void)s->bind_text(statement, at, text, (int)length, (void (*)(void *))(gintptr)-1);
}

static bool take_row(ServeStore *store, const char *key, GString *out)
{
    const Sqlite *s = &store->sqlite;
    void *statement = NULL;
    bool there = false;
    if (s->prepare(store->database, "SELECT answer FROM answers WHERE key = ?", -1, &statement, NULL) ==
        SQLITE_OK) {
        bind_text(s, statement, 1, key, strlen(key));
        there = s->step(statement) == SQLITE_ROW;
        if (there)
            g_string_append_len(out, (const char *)s->column_text(statement, 0),
                                s->column_bytes(statement, 0));
    }
    (void)s->finalize(statement);
    return there;
}

static bool keep_row(ServeStore *store, const ServeKept *q, const GString *answer)
{
    static const char insert[] = "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)";
    static const char prune[] =
        "DELETE FROM answers WHERE at < (SELECT at FROM answers ORDER BY at DESC LIMIT 1 OFFSET ?)";
    const Sqlite *s = &store->sqlite;
    void *statement = NULL;
    bool ok = s->prepare(store->database, insert, -1, &statement, NULL) == SQLITE_OK;
    if (ok) {
        bind_text(s, statement, 1, q->key, strlen(q->key));
        bind_text(s, statement, 2, q->tool, strlen(q->tool));
        bind_text(s, statement, 3, q->asked, strlen(q->asked));
        (void)s->bind_int64(statement, 4, g_get_real_time());
        bind_text(s, statement, 5, answer->str, answer->len);
        ok = s->step(statement) == SQLITE_DONE;
    }
    (void)s->finalize(statement);
    statement = NULL;
    if (ok && s->prepare(store->database, prune, -1, &statement, NULL) == SQLITE_OK) {
        (void)s->bind_int64(statement, 1, MOST_ANSWERS - 1);
        (void)s->step(statement);
    }
    (void)s->finalize(statement);
    return ok;
}

/* --- both --- */

bool serve_store_take(ServeStore *store, const char *key, GString *out)
{
    if (store->folder != NULL)
        return take_file(store, key, out);
    g_mutex_lock(&store->lock);
    const bool there = take_row(store, key, out);
    g_mutex_unlock(&store->lock);
    return there;
}

void serve_store_keep(ServeStore *store, const ServeKept *question, const GString *answer)
{
    if (store->folder != NULL) {
        keep_file(store, question->key, answer);
        return;
    }
    g_mutex_lock(&store->lock);
    if (!keep_row(store, question, answer))
        g_printerr("orrery: an answer is not kept: %s\n", store->sqlite.errmsg(store->database));
    g_mutex_unlock(&store->lock);
}

void serve_store_history(ServeStore *store, int most, OrrJsonWriter *w)
{
    static const char select[] = "SELECT tool, at, asked FROM answers ORDER BY at DESC LIMIT ?";
    const Sqlite *s = &store->sqlite;
    void *statement = NULL;
    if (store->folder != NULL)
        return;
    g_mutex_lock(&store->lock);
    if (s->prepare(store->database, select, -1, &statement, NULL) == SQLITE_OK) {
        (void)s->bind_int64(statement, 1, most);
        while (s->step(statement) == SQLITE_ROW) {
            const char *asked = (const char *)s->column_text(statement, 2);
            OrrJsonDoc *doc = orr_json_parse(asked, strlen(asked), "history", NULL);
            if (doc == NULL)
                continue;
            orr_jw_begin(w, NULL, '{');
            orr_jw_text(w, "tool", (const char *)s->column_text(statement, 0));
            orr_jw_number(w, "at_s", (double)s->column_int64(statement, 1) / 1e6);
            orr_jw_node(w, "arguments", orr_json_root(doc));
            orr_jw_end(w, '}');
            orr_json_free(doc);
        }
    }
    (void)s->finalize(statement);
    g_mutex_unlock(&store->lock);
}
