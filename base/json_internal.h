/* base/json_internal.h - what the files of the JSON reader share; nobody else includes it. */
#ifndef ORR_BASE_JSON_INTERNAL_H
#define ORR_BASE_JSON_INTERNAL_H

#include "base/arena.h"
#include "base/json.h"

#define JSON_MAX_DEPTH 64
#define JSON_MAX_BYTES ((size_t)256 * 1024 * 1024)

struct OrrJson {
    OrrJson *next;
    const char *key; /* NULL at the root and in lists */
    union {
        bool truth;
        double number;
        const char *text;
        OrrJson *first; /* of a list or object */
    };
    OrrJson *last; /* likewise */
    OrrJsonType type;
    int count; /* of children */
};

/* Nodes lie in the arena, texts there or where they were read: in a buffer of `read`. */
struct OrrJsonDoc {
    OrrArena *arena;
    GSList *read; /* char* */
    OrrJson *root;
    char *name;
};

/* Who takes the rows of a document as they are read; `each` NULL: nobody, they stay in the tree. */
typedef struct JsonRows {
    OrrJsonEach each;
    void *data;
} JsonRows;

/* An empty document. */
OrrJsonDoc *json_doc_new(const char *name);

static inline bool json_has_children(const OrrJson *node)
{
    return node->type >= ORR_JSON_LIST;
}

/* `item` becomes the last child. */
void json_append(OrrJson *container, OrrJson *item);

/* The root of a strict JSON text, in `arena`, or NULL with an error that names line and column. The text is written over:
 * its nodes point there. */
OrrJson *json_parse_strict(OrrArena *arena, char *text, size_t length, const char *name, const JsonRows *rows,
                           GError **error);

#endif
