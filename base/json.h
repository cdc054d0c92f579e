/* base/json.h - strict JSON in, deterministic JSON out. The only room that sees cJSON.
 *
 * In: a document is a tree of borrowed nodes owned by OrrJsonDoc. Strict means UTF-8 text, no trailing
 * bytes, no duplicate keys, depth at most 64, files at most 256 MiB, numbers finite. Out: a writer that
 * appends to a GString, keys in the order written, doubles in the shortest form that reads back
 * the same, picoseconds as seconds with 12 decimals.
 */
#ifndef ORR_BASE_JSON_H
#define ORR_BASE_JSON_H

#include <stdint.h>

#include "base/error.h"

typedef struct OrrJsonDoc OrrJsonDoc;
typedef struct OrrJson OrrJson; /* a node; borrowed from its document */

typedef enum {
    ORR_JSON_NULL,
    ORR_JSON_BOOL,
    ORR_JSON_NUMBER,
    ORR_JSON_TEXT,
    ORR_JSON_LIST,
    ORR_JSON_OBJECT,
} OrrJsonType;

/* `name` is what messages call the document (usually its path). Parse errors name line and column. */
OrrJsonDoc *orr_json_parse(const char *text, size_t length, const char *name, GError **error);
/* "-": standard input. */
OrrJsonDoc *orr_json_read_file(const char *path, GError **error);
void orr_json_free(OrrJsonDoc *doc);
const OrrJson *orr_json_root(const OrrJsonDoc *doc);
const char *orr_json_name(const OrrJsonDoc *doc);

OrrJsonType orr_json_type(const OrrJson *node);
const char *orr_json_type_name(const OrrJson *node); /* "a number", "a list" ... for messages */
bool orr_json_bool(const OrrJson *node);
double orr_json_number(const OrrJson *node);
const char *orr_json_text(const OrrJson *node);
const char *orr_json_key(const OrrJson *node); /* NULL at the root and in lists */

/* Children of a list or object, in file order. */
const OrrJson *orr_json_first(const OrrJson *node);
const OrrJson *orr_json_next(const OrrJson *node);
int orr_json_count(const OrrJson *node);
const OrrJson *orr_json_member(const OrrJson *object, const char *key); /* NULL: absent */
/* A member's value; `absent` where there is none of that type. */
double orr_json_number_of(const OrrJson *object, const char *key, double absent);
const char *orr_json_text_of(const OrrJson *object, const char *key, const char *absent);

/* The node as compact text, for messages: `"8 GB"`, `[1,2]`, cut after 60 characters. */
char *orr_json_show(const OrrJson *node); /* g_free */
/* The node as compact text, whole and canonical (keys as in the file); for hashes. */
char *orr_json_dump(const OrrJson *node); /* g_free */

/* Editing, before loading: sets root member "a.b.c" to `value_text` (JSON when it parses as JSON, else
 * text), creating objects on the way. Fails when the path crosses a non-object. */
bool orr_json_set(OrrJsonDoc *doc, const char *path, const char *value_text, GError **error);
/* The same with a document, which is freed. The objects above "a.b.c" have to be there. */
void orr_json_take(OrrJsonDoc *doc, const char *path, OrrJsonDoc *value);
/* Members of `over` replace or extend those of `base`, objects recursively; the result is a new document. */
OrrJsonDoc *orr_json_merge(const OrrJson *base, const OrrJson *over, const char *name);
/* The same into `base` itself. */
void orr_json_merge_into(OrrJsonDoc *base, const OrrJson *over);
/* A document holding a copy of one node. */
OrrJsonDoc *orr_json_copy(const OrrJson *node, const char *name);
/* Member `key` of the root object removed, if there. */
void orr_json_remove(OrrJsonDoc *doc, const char *key);

/* --- writing --- */
typedef struct OrrJsonWriter {
    GString *text; /* owned by the caller */
    int depth;
    bool first; /* nothing yet in the open object or list */
    bool compact;
} OrrJsonWriter;

void orr_jw_init(OrrJsonWriter *w, GString *text, bool compact);
void orr_jw_begin(OrrJsonWriter *w, const char *key,
                  char bracket);                 /* '{' or '['; key NULL in lists and at the root */
void orr_jw_end(OrrJsonWriter *w, char bracket); /* '}' or ']' */
void orr_jw_text(OrrJsonWriter *w, const char *key, const char *value); /* NULL writes null */
void orr_jw_number(OrrJsonWriter *w, const char *key, double value);    /* not finite: null */
void orr_jw_int(OrrJsonWriter *w, const char *key, int64_t value);
void orr_jw_bool(OrrJsonWriter *w, const char *key, bool value);
void orr_jw_ps(OrrJsonWriter *w, const char *key, int64_t ps); /* seconds, 12 decimals */
void orr_jw_null(OrrJsonWriter *w, const char *key);
void orr_jw_node(OrrJsonWriter *w, const char *key, const OrrJson *node); /* a copy, with all below */

#endif
