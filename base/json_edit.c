/* base/json_edit.c - documents changed before loading: --set, presets below overrides. */
#include <stdlib.h>
#include <string.h>

#include "base/json_internal.h"

/* Takes over `item`. An existing member keeps its place. */
static void put_member(cJSON *object, const char *key, cJSON *item)
{
    cJSON *old = cJSON_GetObjectItemCaseSensitive(object, key);
    if (old == NULL)
        cJSON_AddItemToObject(object, key, item);
    else
        cJSON_ReplaceItemInObjectCaseSensitive(object, key, item);
}

/* JSON when it parses, else the text itself; a broken list or object is an error, not text. */
static cJSON *value_of(const char *path, const char *text, GError **error)
{
    GError *problem = NULL;
    cJSON *item = json_parse_strict(text, strlen(text), path, &problem);
    if (item != NULL)
        return item;
    const char *first = text;
    while (g_ascii_isspace(*first))
        first++;
    if (*first != '{' && *first != '[' && g_utf8_validate(text, -1, NULL)) {
        g_clear_error(&problem);
        return cJSON_CreateString(text);
    }
    g_propagate_error(error, problem);
    return NULL;
}

/* Entries of a list are "0", "1"; -1: none of these. */
static int index_of(const cJSON *list, const char *key)
{
    guint64 index = 0;
    return g_ascii_string_to_unsigned(key, 10, 0, G_MAXINT, &index, NULL) &&
                   (int)index < cJSON_GetArraySize(list)
               ? (int)index
               : -1;
}

static cJSON *child_of(const cJSON *inside, const char *key)
{
    return cJSON_IsArray(inside) ? cJSON_GetArrayItem(inside, index_of(inside, key))
                                 : cJSON_GetObjectItemCaseSensitive(inside, key);
}

/* Whether `key` can be set in there: a member of an object, or an entry that a list has. */
static bool check_place(const OrrJsonDoc *doc, const char *path, const cJSON *inside, const char *key,
                        GError **error)
{
    if (cJSON_IsObject(inside) || (cJSON_IsArray(inside) && index_of(inside, key) >= 0))
        return true;
    if (cJSON_IsArray(inside) && cJSON_GetArraySize(inside) > 0)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: %s: \"%s\" is not an entry of the list; give a number from 0 to %d, or a whole list",
            doc->name, path, key, cJSON_GetArraySize(inside) - 1);
    g_autofree char *shown = orr_json_show(json_node(inside));
    return orr_fail(error, ORR_ERROR_INPUT, "%s: %s: %s is %s, and \"%s\" can only be set in an object",
                    doc->name, path, shown, orr_json_type_name(json_node(inside)), key);
}

bool orr_json_set(OrrJsonDoc *doc, const char *path, const char *value_text, GError **error)
{
    g_auto(GStrv) keys = g_strsplit(path, ".", JSON_MAX_DEPTH);
    const guint count = g_strv_length(keys);
    for (guint i = 0; i < count; i++) {
        if (keys[i][0] != '\0' && g_utf8_validate(keys[i], -1, NULL))
            continue;
        orr_fail(error, ORR_ERROR_INPUT, "%s: \"%s\" is not a key path; write it like training.micro_batch",
                 doc->name, path);
        return false;
    }
    if (count == 0 || count >= JSON_MAX_DEPTH) {
        orr_fail(error, ORR_ERROR_INPUT, "%s: empty or endless key path; write it like training.micro_batch",
                 doc->name);
        return false;
    }
    g_autofree char *where = g_strconcat(doc->name, ": ", path, NULL);
    cJSON *value = value_of(where, value_text, error);
    if (value == NULL)
        return false;
    cJSON *inside = doc->root;
    for (guint i = 0; i < count; i++) {
        if (!check_place(doc, path, inside, keys[i], error)) {
            cJSON_Delete(value);
            return false;
        }
        if (i + 1 == count)
            break;
        cJSON *next = child_of(inside, keys[i]);
        if (next == NULL) {
            next = cJSON_CreateObject();
            cJSON_AddItemToObject(inside, keys[i], next);
        }
        inside = next;
    }
    if (cJSON_IsArray(inside))
        cJSON_ReplaceItemInArray(inside, atoi(keys[count - 1]), value);
    else
        put_member(inside, keys[count - 1], value);
    return true;
}

void orr_json_take(OrrJsonDoc *doc, const char *path, OrrJsonDoc *value)
{
    g_auto(GStrv) keys = g_strsplit(path, ".", JSON_MAX_DEPTH);
    cJSON *object = doc->root;
    guint last = 0;
    for (; keys[last + 1] != NULL; last++)
        object = cJSON_GetObjectItemCaseSensitive(object, keys[last]);
    g_assert(cJSON_IsObject(object));
    put_member(object, keys[last], g_steal_pointer(&value->root));
    orr_json_free(value);
}

static void merge_into(cJSON *object, const cJSON *over)
{
    for (const cJSON *member = over->child; member != NULL; member = member->next) {
        cJSON *old = cJSON_GetObjectItemCaseSensitive(object, member->string);
        if (cJSON_IsObject(old) && cJSON_IsObject(member))
            merge_into(old, member);
        else
            put_member(object, member->string, cJSON_Duplicate(member, 1));
    }
}

OrrJsonDoc *orr_json_merge(const OrrJson *base, const OrrJson *over, const char *name)
{
    g_assert(orr_json_type(base) == ORR_JSON_OBJECT && orr_json_type(over) == ORR_JSON_OBJECT);
    OrrJsonDoc *doc = orr_json_copy(base, name);
    merge_into(doc->root, json_item(over));
    return doc;
}

void orr_json_merge_into(OrrJsonDoc *base, const OrrJson *over)
{
    g_assert(cJSON_IsObject(base->root) && orr_json_type(over) == ORR_JSON_OBJECT);
    merge_into(base->root, json_item(over));
}

OrrJsonDoc *orr_json_copy(const OrrJson *node, const char *name)
{
    return json_doc_new(cJSON_Duplicate(json_item(node), 1), name);
}

void orr_json_remove(OrrJsonDoc *doc, const char *key)
{
    if (cJSON_IsObject(doc->root))
        cJSON_DeleteItemFromObjectCaseSensitive(doc->root, key);
}
