/* base/json_edit.c - documents changed before loading: --set, presets below overrides. */
#include <string.h>

#include "base/json_internal.h"

static OrrJson *member_of(OrrJson *object, const char *key)
{
    return (OrrJson *)orr_json_member(object, key);
}

/* What `item` holds, in the place of `old`. */
static void replace(OrrJson *old, const OrrJson *item)
{
    OrrJson *next = old->next;
    const char *key = old->key;
    *old = *item;
    old->next = next;
    old->key = key;
}

/* Takes over `item`. An existing member keeps its place. */
static void put_member(OrrArena *arena, OrrJson *object, const char *key, OrrJson *item)
{
    OrrJson *old = member_of(object, key);
    if (old != NULL) {
        replace(old, item);
        return;
    }
    item->key = orr_arena_strdup(arena, key);
    json_append(object, item);
}

/* JSON when it parses, else the text itself; a broken list or object is an error, not text. */
static OrrJson *value_of(OrrArena *arena, const char *path, const char *text, GError **error)
{
    GError *problem = NULL;
    OrrJson *item =
        json_parse_strict(arena, orr_arena_strdup(arena, text), strlen(text), path, NULL, &problem);
    if (item != NULL)
        return item;
    const char *first = text;
    while (g_ascii_isspace(*first))
        first++;
    if (*first != '{' && *first != '[' && g_utf8_validate(text, -1, NULL)) {
        g_clear_error(&problem);
        item = ORR_ARENA_NEW(arena, OrrJson, 1);
        item->type = ORR_JSON_TEXT;
        item->text = orr_arena_strdup(arena, text);
        return item;
    }
    g_propagate_error(error, problem);
    return NULL;
}

/* An entry of a list, which are "0", "1", or a member; NULL: there is none. */
static OrrJson *child_of(OrrJson *inside, const char *key)
{
    guint64 index = 0;
    if (inside->type != ORR_JSON_LIST)
        return member_of(inside, key);
    if (!g_ascii_string_to_unsigned(key, 10, 0, G_MAXINT, &index, NULL))
        return NULL;
    OrrJson *item = inside->first;
    while (item != NULL && index-- > 0)
        item = item->next;
    return item;
}

/* Whether `key` can be set in there: a member of an object, or an entry that a list has. */
static bool check_place(const OrrJsonDoc *doc, const char *path, OrrJson *inside, const char *key,
                        GError **error)
{
    if (inside->type == ORR_JSON_OBJECT || (inside->type == ORR_JSON_LIST && child_of(inside, key) != NULL))
        return true;
    if (inside->type == ORR_JSON_LIST && inside->count > 0)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: %s: \"%s\" is no entry of the list; give a number from 0 to %d, or a whole list",
                        doc->name, path, key, inside->count - 1);
    g_autofree char *shown = orr_json_show(inside);
    return orr_fail(error, ORR_ERROR_INPUT, "%s: %s: %s is %s, and \"%s\" can only be set in an object",
                    doc->name, path, shown, orr_json_type_name(inside), key);
}

bool orr_json_set(OrrJsonDoc *doc, const char *path, const char *value_text, GError **error)
{
    g_auto(GStrv) keys = g_strsplit(path, ".", JSON_MAX_DEPTH);
    const guint count = g_strv_length(keys);
    for (guint i = 0; i < count; i++) {
        if (keys[i][0] != '\0' && g_utf8_validate(keys[i], -1, NULL))
            continue;
        orr_fail(error, ORR_ERROR_INPUT, "%s: \"%s\" is no key path; write it like training.micro_batch",
                 doc->name, path);
        return false;
    }
    if (count == 0 || count >= JSON_MAX_DEPTH) {
        orr_fail(error, ORR_ERROR_INPUT, "%s: empty or endless key path; write it like training.micro_batch",
                 doc->name);
        return false;
    }
    g_autofree char *where = g_strconcat(doc->name, ": ", path, NULL);
    OrrJson *value = value_of(doc->arena, where, value_text, error), *inside = doc->root;
    if (value == NULL)
        return false;
    for (guint i = 0; i < count; i++) {
        if (!check_place(doc, path, inside, keys[i], error))
            return false;
        if (i + 1 == count)
            break;
        OrrJson *next = child_of(inside, keys[i]);
        if (next == NULL) {
            next = ORR_ARENA_NEW(doc->arena, OrrJson, 1);
            next->type = ORR_JSON_OBJECT;
            put_member(doc->arena, inside, keys[i], next);
        }
        inside = next;
    }
    if (inside->type == ORR_JSON_LIST)
        replace(child_of(inside, keys[count - 1]), value);
    else
        put_member(doc->arena, inside, keys[count - 1], value);
    return true;
}

void orr_json_take(OrrJsonDoc *doc, const char *path, OrrJsonDoc *value)
{
    g_auto(GStrv) keys = g_strsplit(path, ".", JSON_MAX_DEPTH);
    OrrJson *object = doc->root;
    guint last = 0;
    for (; keys[last + 1] != NULL; last++)
        object = member_of(object, keys[last]);
    g_assert(orr_json_type(object) == ORR_JSON_OBJECT);
    put_member(doc->arena, object, keys[last], value->root);
    orr_arena_adopt(doc->arena, g_steal_pointer(&value->arena));
    doc->read = g_slist_concat(g_steal_pointer(&value->read), doc->read);
    orr_json_free(value);
}

/* With all below and without a key. */
static OrrJson *copy_of(OrrArena *arena, const OrrJson *node)
{
    OrrJson *copy = ORR_ARENA_NEW(arena, OrrJson, 1);
    copy->type = node->type;
    if (!json_has_children(node)) {
        *copy = *node;
        copy->next = NULL;
        copy->key = NULL;
        if (node->type == ORR_JSON_TEXT)
            copy->text = orr_arena_strdup(arena, node->text);
        return copy;
    }
    for (const OrrJson *child = node->first; child != NULL; child = child->next) {
        OrrJson *item = copy_of(arena, child);
        item->key = child->key != NULL ? orr_arena_strdup(arena, child->key) : NULL;
        json_append(copy, item);
    }
    return copy;
}

static void merge_into(OrrArena *arena, OrrJson *object, const OrrJson *over)
{
    for (const OrrJson *member = over->first; member != NULL; member = member->next) {
        OrrJson *old = member_of(object, member->key);
        if (orr_json_type(old) == ORR_JSON_OBJECT && member->type == ORR_JSON_OBJECT)
            merge_into(arena, old, member);
        else
            put_member(arena, object, member->key, copy_of(arena, member));
    }
}

OrrJsonDoc *orr_json_merge(const OrrJson *base, const OrrJson *over, const char *name)
{
    OrrJsonDoc *doc = orr_json_copy(base, name);
    orr_json_merge_into(doc, over);
    return doc;
}

void orr_json_merge_into(OrrJsonDoc *base, const OrrJson *over)
{
    g_assert(base->root->type == ORR_JSON_OBJECT && orr_json_type(over) == ORR_JSON_OBJECT);
    merge_into(base->arena, base->root, over);
}

OrrJsonDoc *orr_json_copy(const OrrJson *node, const char *name)
{
    OrrJsonDoc *doc = json_doc_new(name);
    doc->root = copy_of(doc->arena, node);
    return doc;
}

void orr_json_remove(OrrJsonDoc *doc, const char *key)
{
    OrrJson *object = doc->root, *before = NULL, *member = member_of(object, key);
    if (member == NULL)
        return;
    for (OrrJson *at = object->first; at != member; at = at->next)
        before = at;
    *(before != NULL ? &before->next : &object->first) = member->next;
    if (object->last == member)
        object->last = before;
    object->count--;
}
