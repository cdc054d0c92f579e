/* base/json_internal.h - what the files of the JSON reader share; nobody else includes it.
 *
 * An OrrJson is a cJSON item under another name. cJSON keeps the tree; its parser is not used, because
 * it accepts what a strict reader refuses and cannot say on which line.
 */
#ifndef ORR_BASE_JSON_INTERNAL_H
#define ORR_BASE_JSON_INTERNAL_H

#include <cjson/cJSON.h>

#include "base/json.h"

#define JSON_MAX_DEPTH 64
#define JSON_MAX_BYTES ((size_t)256 * 1024 * 1024)

struct OrrJsonDoc {
    cJSON *root; /* owned */
    char *name;
};

static inline const cJSON *json_item(const OrrJson *node)
{
    return (const cJSON *)(const void *)node;
}

static inline const OrrJson *json_node(const cJSON *item)
{
    return (const OrrJson *)(const void *)item;
}

/* Takes over `root`. */
OrrJsonDoc *json_doc_new(cJSON *root, const char *name);

/* The tree of a strict JSON text, owned by the caller, or NULL with an error that names line and column. */
cJSON *json_parse_strict(const char *text, size_t length, const char *name, GError **error);

#endif
