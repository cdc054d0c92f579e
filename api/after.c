/* api/after.c - see after.h. Tested: unit/api/test_after.c */
#include "api/after.h"

#include <string.h>

#include "api/vary.h"
#include "spec/read.h"
#include "spec/resolve.h"
#include "spec/set_times.h"

enum { MOST_BYTES = 8 }; /* of a member */

typedef struct Member {
    gsize offset, size; /* in a Spec; size 0: none */
} Member;

/* What the reader makes of one value. */
typedef struct Value {
    bool good;
    unsigned char bytes[MOST_BYTES];
} Value;

typedef struct Axis {
    guint count;
    Member member;  /* size 0: the step reads it */
    GArray *values; /* Value; NULL likewise */
    guint first;    /* of the good ones */
} Axis;

struct ApiAfter {
    Axis *axes;
    guint axis_count, steps, each;
    bool epochs, data; /* tokens vary; storage varies */
};

/* --- which keys --- */

/* All keys of a block, or those that `keys` names. */
typedef struct Block {
    const char *prefix;
    const SpecTable *table;
    gsize offset;
    const char *keys[5];
} Block;

static const Block blocks[] = {
    {"cluster.",
     &spec_table_cluster,
     offsetof(Spec, cluster),
     {"usd_per_gpu_hour", "usd_per_kwh", "co2_g_per_kwh", "pue"}},
    {"training.", &spec_table_training, offsetof(Spec, training), {"tokens"}},
    {"storage.", &spec_table_storage, offsetof(Spec, storage), {NULL}},
    {"faults.", &spec_table_faults, offsetof(Spec, faults), {NULL}},
};

#define CHECKPOINT "checkpoint."

static gsize size_of(const SpecField *field)
{
    switch (field->type) {
    case SPEC_TYPE_INT:
    case SPEC_TYPE_WORD:
        return sizeof(int);
    case SPEC_TYPE_DOUBLE:
        return sizeof(double);
    case SPEC_TYPE_BOOL:
        return sizeof(bool);
    default: /* a preset or a list brings more than one member */
        return g_str_equal(field->key, "interval_s") ? sizeof(double) : 0;
    }
}

static Member member_in(const Block *block, const char *key)
{
    const SpecTable *table = block->table;
    gsize offset = block->offset;
    bool listed = block->keys[0] == NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(block->keys) && block->keys[i] != NULL; i++)
        listed = listed || g_str_equal(block->keys[i], key);
    if (table == &spec_table_faults && g_str_has_prefix(key, CHECKPOINT)) {
        const SpecField *checkpoint = spec_table_find(table, "checkpoint");
        table = checkpoint->table;
        offset += checkpoint->offset;
        key += strlen(CHECKPOINT);
    }
    const SpecField *field = listed ? spec_table_find(table, key) : NULL;
    return field != NULL ? (Member){offset + field->offset, size_of(field)} : (Member){0, 0};
}

static Member member_of(const char *key)
{
    for (gsize i = 0; i < G_N_ELEMENTS(blocks); i++)
        if (g_str_has_prefix(key, blocks[i].prefix))
            return member_in(&blocks[i], key + strlen(blocks[i].prefix));
    return (Member){0, 0};
}

/* --- what the reader makes of a value --- */

/* The value as the scenario's document has it; NULL where it is none, or another member's figure counts in it. */
static OrrJsonDoc *document_of(const char *key, const char *value)
{
    g_autofree char *set = g_strdup_printf("%s=%s", key, value);
    OrrJsonDoc *doc = spec_set_is_times(set) ? NULL : orr_json_parse("{}", 2, "scenario", NULL);
    if (doc == NULL || spec_resolve_set(doc, set, NULL))
        return doc;
    orr_json_free(doc);
    return NULL;
}

static bool is_null(const OrrJsonDoc *doc, const char *key)
{
    g_auto(GStrv) parts = g_strsplit(key, ".", -1);
    const OrrJson *node = orr_json_root(doc);
    for (char **part = parts; *part != NULL && node != NULL; part++)
        node = orr_json_member(node, *part);
    return node == NULL || orr_json_type(node) == ORR_JSON_NULL;
}

static Value read_value(const char *key, const char *value, const Member *member, Spec *scratch)
{
    Value read = {.good = false};
    OrrJsonDoc *doc = document_of(key, value);
    if (doc == NULL)
        return read;
    SpecReadContext context;
    spec_read_context_init(&context, "scenario", &spec_table_scenario, false, NULL);
    context.partial = true;
    memset(scratch, 0, sizeof *scratch);
    read.good = !is_null(doc, key) &&
                spec_read_table(&context, &spec_table_scenario, orr_json_root(doc), scratch, NULL);
    spec_read_context_clear(&context);
    memcpy(read.bytes, (const char *)scratch + member->offset, member->size);
    orr_json_free(doc);
    return read;
}

/* False where none is good. */
static bool read_values(const ApiVary *field, Axis *axis)
{
    g_autofree Spec *scratch = g_new(Spec, 1);
    axis->values = g_array_sized_new(FALSE, FALSE, sizeof(Value), axis->count);
    axis->first = axis->count;
    for (guint v = 0; v < axis->count; v++) {
        const Value value =
            read_value(field->key, g_ptr_array_index(field->values, v), &axis->member, scratch);
        if (value.good)
            axis->first = MIN(axis->first, v);
        g_array_append_val(axis->values, value);
    }
    return axis->first < axis->count;
}

/* --- whether a whole scenario agrees --- */

static void drop(Axis *axis)
{
    axis->member = (Member){0, 0};
    axis->first = 0;
    g_clear_pointer(&axis->values, g_array_unref);
}

static void put(const Axis *axis, guint v, Spec *spec)
{
    memcpy((char *)spec + axis->member.offset, g_array_index(axis->values, Value, v).bytes,
           axis->member.size);
}

/* With the first good value of every axis, but value `v` of axis `moved`. */
static bool load_with(const ApiInput *input, char **sets, const GArray *fields, const ApiAfter *after,
                      guint moved, guint v, Spec *ret_spec, SpecSource *ret_source)
{
    g_auto(GStrv) all = g_strdupv(sets);
    for (guint i = 0; i < fields->len; i++) {
        const ApiVary *field = &g_array_index(fields, ApiVary, i);
        char **more = api_vary_sets(all, field->key,
                                    g_ptr_array_index(field->values, i == moved ? v : after->axes[i].first));
        g_strfreev(all);
        all = more;
    }
    memset(ret_spec, 0, sizeof *ret_spec);
    return api_input_load(input, all, ret_spec, ret_source, NULL);
}

/* The last good value changes its member, and nothing else. */
static bool agrees(const ApiInput *input, char **sets, const GArray *fields, const ApiAfter *after, guint i,
                   const Spec *base)
{
    const Axis *axis = &after->axes[i];
    guint last = axis->count - 1;
    while (!g_array_index(axis->values, Value, last).good)
        last--;
    g_autofree Spec *whole = g_new(Spec, 1), *mended = g_memdup2(base, sizeof *base);
    SpecSource source = {0};
    const bool ok = load_with(input, sets, fields, after, i, last, whole, &source);
    put(axis, last, mended);
    const bool same = ok && memcmp(whole, mended, sizeof *whole) == 0;
    spec_source_clear(&source);
    return same;
}

static void check_axes(const ApiInput *input, char **sets, const GArray *fields, ApiAfter *after)
{
    g_autofree Spec *base = g_new(Spec, 1), *own = g_new(Spec, 1);
    SpecSource source = {0};
    const bool ok = load_with(input, sets, fields, after, 0, after->axes[0].first, base, &source);
    memcpy(own, base, sizeof *own);
    for (guint i = 0; ok && i < after->axis_count; i++)
        if (after->axes[i].values != NULL)
            put(&after->axes[i], after->axes[i].first, own);
    const bool same = ok && memcmp(own, base, sizeof *own) == 0;
    g_autofree bool *keeps = g_new0(bool, after->axis_count);
    for (guint i = 0; i < after->axis_count; i++)
        keeps[i] = same && after->axes[i].values != NULL && agrees(input, sets, fields, after, i, base);
    for (guint i = 0; i < after->axis_count; i++)
        if (!keeps[i])
            drop(&after->axes[i]);
    spec_source_clear(&source);
}

ApiAfter *api_after_new(const ApiInput *input, char **sets, const GArray *fields, bool alone)
{
    ApiAfter *after = g_new0(ApiAfter, 1);
    bool any = false;
    after->axis_count = fields->len;
    after->axes = g_new0(Axis, fields->len);
    for (guint i = 0; i < fields->len; i++) {
        const ApiVary *field = &g_array_index(fields, ApiVary, i);
        Axis *axis = &after->axes[i];
        axis->count = field->values->len;
        axis->member = alone || axis->count < 2 ? (Member){0, 0} : member_of(field->key);
        if (axis->member.size > 0 && read_values(field, axis))
            any = true;
        else
            drop(axis);
    }
    if (any)
        check_axes(input, sets, fields, after);
    after->steps = after->each = 1;
    for (guint i = 0; i < fields->len; i++) {
        const Axis *axis = &after->axes[i];
        *(axis->values != NULL ? &after->each : &after->steps) *= axis->count;
        after->epochs |= axis->values != NULL && axis->member.offset == offsetof(Spec, training.tokens);
        after->data |= axis->values != NULL && axis->member.offset >= offsetof(Spec, storage) &&
                       axis->member.offset < offsetof(Spec, storage) + sizeof(SpecStorage);
    }
    return after;
}

void api_after_free(ApiAfter *after)
{
    for (guint i = 0; i < after->axis_count; i++)
        drop(&after->axes[i]);
    g_free(after->axes);
    g_free(after);
}

guint api_after_steps(const ApiAfter *after)
{
    return after->steps;
}

guint api_after_each(const ApiAfter *after)
{
    return after->each;
}

/* `base`: the first good value of every axis that comes after the step. */
static guint index_of(const ApiAfter *after, guint step, guint each, bool base)
{
    guint index = 0, place = 1;
    for (guint i = after->axis_count; i-- > 0;) {
        const Axis *axis = &after->axes[i];
        guint *left = axis->values != NULL ? &each : &step;
        index += place * (base && axis->values != NULL ? axis->first : *left % axis->count);
        *left /= axis->count;
        place *= axis->count;
    }
    return index;
}

guint api_after_index(const ApiAfter *after, guint step, guint each)
{
    return index_of(after, step, each, false);
}

guint api_after_base(const ApiAfter *after, guint step)
{
    return index_of(after, step, 0, true);
}

bool api_after_shares(const ApiAfter *after, const ApiSimulation *base)
{
    const Spec *spec = &base->spec;
    return base->workload == NULL && spec->cluster.group_count == 0 && base->report.own.runs == 0 &&
           spec->training.batches_count == 0 && !(after->epochs && spec->training.epochs > 0) &&
           !(after->data && spec->data.given);
}

bool api_after_put(const ApiAfter *after, guint each, Spec *spec)
{
    for (guint i = after->axis_count; i-- > 0;) {
        const Axis *axis = &after->axes[i];
        if (axis->values == NULL)
            continue;
        if (!g_array_index(axis->values, Value, each % axis->count).good)
            return false;
        put(axis, each % axis->count, spec);
        each /= axis->count;
    }
    return true;
}
