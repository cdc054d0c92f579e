/* base/json.c - documents and reading their nodes. */
#include "base/json.h"

#include <string.h>

#include "base/json_internal.h"

OrrJsonDoc *json_doc_new(const char *name)
{
    OrrJsonDoc *doc = g_new0(OrrJsonDoc, 1);
    doc->arena = orr_arena_new();
    doc->name = g_strdup(name);
    return doc;
}

void orr_json_free(OrrJsonDoc *doc)
{
    if (doc == NULL)
        return;
    orr_arena_free(doc->arena);
    g_slist_free_full(doc->read, g_free);
    g_free(doc->name);
    g_free(doc);
}

void json_append(OrrJson *container, OrrJson *item)
{
    if (container->count++ == 0)
        container->first = item;
    else
        container->last->next = item;
    container->last = item;
}

const OrrJson *orr_json_root(const OrrJsonDoc *doc)
{
    return doc->root;
}

const char *orr_json_name(const OrrJsonDoc *doc)
{
    return doc->name;
}

OrrJsonType orr_json_type(const OrrJson *node)
{
    return node != NULL ? node->type : ORR_JSON_NULL;
}

const char *orr_json_type_name(const OrrJson *node)
{
    static const char *const names[] = {"null", "a boolean", "a number", "text", "a list", "an object"};
    return names[orr_json_type(node)];
}

bool orr_json_bool(const OrrJson *node)
{
    g_assert(orr_json_type(node) == ORR_JSON_BOOL);
    return node->truth;
}

double orr_json_number(const OrrJson *node)
{
    g_assert(orr_json_type(node) == ORR_JSON_NUMBER);
    return node->number;
}

const char *orr_json_text(const OrrJson *node)
{
    g_assert(orr_json_type(node) == ORR_JSON_TEXT);
    return node->text;
}

const char *orr_json_key(const OrrJson *node)
{
    return node->key;
}

const OrrJson *orr_json_first(const OrrJson *node)
{
    return json_has_children(node) ? node->first : NULL;
}

const OrrJson *orr_json_next(const OrrJson *node)
{
    return node->next;
}

int orr_json_count(const OrrJson *node)
{
    return node->count;
}

const OrrJson *orr_json_member(const OrrJson *object, const char *key)
{
    if (orr_json_type(object) != ORR_JSON_OBJECT)
        return NULL;
    const OrrJson *member = object->first;
    while (member != NULL && (member->key[0] != key[0] || strcmp(member->key, key) != 0))
        member = member->next;
    return member;
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
