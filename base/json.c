/* base/json.c - documents and reading their nodes. */
#include "base/json.h"

#include <string.h>

#include "base/file.h"
#include "base/json_internal.h"

OrrJsonDoc *json_doc_new(cJSON *root, const char *name)
{
    OrrJsonDoc *doc = g_new0(OrrJsonDoc, 1);
    doc->root = root;
    doc->name = g_strdup(name);
    return doc;
}

OrrJsonDoc *orr_json_parse(const char *text, size_t length, const char *name, GError **error)
{
    cJSON *root = json_parse_strict(text, length, name, error);
    return root != NULL ? json_doc_new(root, name) : NULL;
}

OrrJsonDoc *orr_json_read_file(const char *path, GError **error)
{
    GString *text = orr_file_read(path, JSON_MAX_BYTES, error);
    if (text == NULL)
        return NULL;
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    OrrJsonDoc *doc = orr_json_parse(text->str, text->len, name, error);
    g_string_free(text, TRUE);
    return doc;
}

void orr_json_free(OrrJsonDoc *doc)
{
    if (doc == NULL)
        return;
    cJSON_Delete(doc->root);
    g_free(doc->name);
    g_free(doc);
}

const OrrJson *orr_json_root(const OrrJsonDoc *doc)
{
    return json_node(doc->root);
}

const char *orr_json_name(const OrrJsonDoc *doc)
{
    return doc->name;
}

OrrJsonType orr_json_type(const OrrJson *node)
{
    const cJSON *item = json_item(node);
    switch (item != NULL ? item->type & 0xff : cJSON_Invalid) {
    case cJSON_True:
    case cJSON_False:
        return ORR_JSON_BOOL;
    case cJSON_Number:
        return ORR_JSON_NUMBER;
    case cJSON_String:
        return ORR_JSON_TEXT;
    case cJSON_Array:
        return ORR_JSON_LIST;
    case cJSON_Object:
        return ORR_JSON_OBJECT;
    default:
        return ORR_JSON_NULL;
    }
}

const char *orr_json_type_name(const OrrJson *node)
{
    static const char *const names[] = {"null", "a boolean", "a number", "text", "a list", "an object"};
    return names[orr_json_type(node)];
}

bool orr_json_bool(const OrrJson *node)
{
    g_assert(orr_json_type(node) == ORR_JSON_BOOL);
    return cJSON_IsTrue(json_item(node)) != 0;
}

double orr_json_number(const OrrJson *node)
{
    g_assert(orr_json_type(node) == ORR_JSON_NUMBER);
    return json_item(node)->valuedouble;
}

const char *orr_json_text(const OrrJson *node)
{
    g_assert(orr_json_type(node) == ORR_JSON_TEXT);
    return json_item(node)->valuestring;
}

const char *orr_json_key(const OrrJson *node)
{
    return json_item(node)->string;
}

const OrrJson *orr_json_first(const OrrJson *node)
{
    return json_node(json_item(node)->child);
}

const OrrJson *orr_json_next(const OrrJson *node)
{
    return json_node(json_item(node)->next);
}

int orr_json_count(const OrrJson *node)
{
    return cJSON_GetArraySize(json_item(node));
}

const OrrJson *orr_json_member(const OrrJson *object, const char *key)
{
    if (orr_json_type(object) != ORR_JSON_OBJECT)
        return NULL;
    return json_node(cJSON_GetObjectItemCaseSensitive(json_item(object), key));
}

double orr_json_number_of(const OrrJson *object, const char *key, double absent)
{
    const OrrJson *node = orr_json_member(object, key);
    return orr_json_type(node) == ORR_JSON_NUMBER ? orr_json_number(node) : absent;
}

const char *orr_json_text_of(const OrrJson *object, const char *key, const char *absent)
{
    const OrrJson *node = orr_json_member(object, key);
    return orr_json_type(node) == ORR_JSON_TEXT ? orr_json_text(node) : absent;
}
