/* study/compare.c - the fields in which two Specs differ, by their field tables, and what each does alone. */
#include "study/compare.h"

#include <string.h>

#include "spec/fields.h"
#include "spec/read.h"

static void field_clear(void *data)
{
    CompareField *field = data;
    g_free(field->key);
    g_free(field->a);
    g_free(field->b);
    g_free(field->reason);
}

static char *number_text(double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    return g_strdup(g_ascii_formatd(text, sizeof text, "%.10g", value));
}

static char *word_set_text(const SpecWords *words, unsigned bits)
{
    GString *text = g_string_new(NULL);
    for (int i = 0; i < words->count; i++)
        if ((bits & (1u << i)) != 0)
            g_string_append_printf(text, "%s%s", text->len > 0 ? "+" : "", orr_word(words, i));
    if (text->len == 0)
        g_string_append(text, "none");
    return g_string_free(text, FALSE);
}

/* Bytes that a field has in its struct; 0: a custom field that does not say. */
static size_t field_size(const SpecField *field)
{
    switch (field->type) {
    case SPEC_TYPE_DOUBLE:
        return sizeof(double);
    case SPEC_TYPE_BOOL:
        return sizeof(bool);
    case SPEC_TYPE_NAME:
    case SPEC_TYPE_OBJECT:
    case SPEC_TYPE_CUSTOM:
        return field->size != 0 ? field->size : field->words != NULL ? sizeof(int) : 0;
    case SPEC_TYPE_INT:
    case SPEC_TYPE_TRISTATE:
    case SPEC_TYPE_WORD:
    case SPEC_TYPE_WORD_SET:
        return sizeof(int);
    }
    g_assert_not_reached();
}

static char *int_text(const SpecField *field, const void *value)
{
    int number;
    memcpy(&number, value, sizeof number);
    if (number == SPEC_AUTO)
        return g_strdup("framework's");
    if (number == SPEC_UNSET)
        return g_strdup("not given");
    if (field->type == SPEC_TYPE_TRISTATE)
        return g_strdup(number != 0 ? "true" : "false");
    return field->words != NULL ? g_strdup(spec_word(field->words, number)) : g_strdup_printf("%d", number);
}

/* Custom fields that begin with a word, whose table does not name the list. */
static char *custom_text(const SpecField *field, const void *value)
{
    const struct {
        const char *key;
        const SpecWords *words;
    } lists[] = {{"gradient_dtype", &spec_words_dtype},
                 {"gradient_reduce_dtype", &spec_words_dtype},
                 {"states", &spec_words_states},
                 {"biases", &spec_words_biases}};
    for (gsize i = 0; i < G_N_ELEMENTS(lists); i++) {
        const SpecField words = {.words = lists[i].words};
        if (strcmp(lists[i].key, field->key) == 0)
            return int_text(&words, value);
    }
    return g_strdup("\u2026"); /* the key says what differs */
}

static char *value_text(const SpecField *field, const void *value)
{
    double number;
    bool truth;
    unsigned bits;
    switch (field->type) {
    case SPEC_TYPE_DOUBLE:
        memcpy(&number, value, sizeof number);
        return number_text(number);
    case SPEC_TYPE_BOOL:
        memcpy(&truth, value, sizeof truth);
        return g_strdup(truth ? "true" : "false");
    case SPEC_TYPE_WORD_SET:
        memcpy(&bits, value, sizeof bits);
        return word_set_text(field->words, bits);
    case SPEC_TYPE_NAME:
        return g_strdup(value);
    case SPEC_TYPE_INT:
    case SPEC_TYPE_TRISTATE:
    case SPEC_TYPE_WORD:
        return int_text(field, value);
    case SPEC_TYPE_CUSTOM:
    case SPEC_TYPE_OBJECT:
        break;
    }
    const bool word = field->words != NULL && field_size(field) == sizeof(int);
    return word ? int_text(field, value) : custom_text(field, value);
}

typedef struct Walk {
    const char *a, *b; /* the two Specs */
    GArray *fields;
} Walk;

static void add_field(const Walk *walk, char *key, char *a, char *b, size_t offset, size_t size)
{
    const CompareField found = {.key = key, .a = a, .b = b, .offset = offset, .size = size};
    g_array_append_val(walk->fields, found);
}

/* An object compared as a whole: named by the name that its struct begins with, if any. */
static void add_whole(const Walk *walk, const SpecField *field, const char *key, size_t offset)
{
    const SpecField *first = field->table->fields;
    const SpecField *name = NULL;
    for (int i = 0; i < field->table->count; i++)
        if (first[i].type == SPEC_TYPE_NAME && strcmp(first[i].key, "name") == 0)
            name = &first[i];
    add_field(walk, g_strdup(key),
              name != NULL ? g_strdup(walk->a + offset + name->offset) : g_strdup("fitted"),
              name != NULL ? g_strdup(walk->b + offset + name->offset) : g_strdup("fitted otherwise"), offset,
              field->size);
}

static bool is_accelerator(const SpecField *field)
{
    return field->table == &spec_table_accelerator;
}

static void walk_table(const Walk *walk, const SpecTable *table, const char *prefix, size_t base);

static void walk_field(const Walk *walk, const SpecField *field, const char *prefix, size_t base)
{
    const size_t offset = base + field->offset, size = field_size(field);
    g_autofree char *key =
        prefix[0] != '\0' ? g_strconcat(prefix, ".", field->key, NULL) : g_strdup(field->key);
    if (size == 0 || (field->type == SPEC_TYPE_NAME
                          ? strcmp(walk->a + offset, walk->b + offset) == 0
                          : memcmp(walk->a + offset, walk->b + offset, size) == 0 && field->table == NULL))
        return;
    const bool same = memcmp(walk->a + offset, walk->b + offset, size) == 0;
    const guint before = walk->fields->len;
    if (field->table != NULL && (is_accelerator(field) || (field->flags & SPEC_FIELD_FITTED) != 0)) {
        if (!same)
            add_whole(walk, field, key, offset);
        return;
    }
    if (field->table != NULL) {
        walk_table(walk, field->table, key, offset);
        if (walk->fields->len > before || field->type != SPEC_TYPE_CUSTOM || same)
            return;
    }
    add_field(walk, g_strdup(key), value_text(field, walk->a + offset), value_text(field, walk->b + offset),
              offset, size);
}

static void walk_table(const Walk *walk, const SpecTable *table, const char *prefix, size_t base)
{
    for (int i = 0; i < table->count; i++)
        walk_field(walk, &table->fields[i], prefix, base);
}

/* "4,4,3", "auto", or "even" where there is no list. */
static char *list_text(int count, const int *numbers)
{
    GString *text = g_string_new(count == SPEC_AUTO ? "auto" : "");
    for (int i = 0; i < count; i++)
        g_string_append_printf(text, "%s%d", i > 0 ? "," : "", numbers[i]);
    if (text->len == 0)
        g_string_append(text, "even");
    return g_string_free(text, FALSE);
}

static char *replicas_text(const SpecParallel *parallel)
{
    const int count = MAX(0, parallel->replica_microbatches_count);
    g_autofree int *numbers = g_new0(int, (gsize)count + 1);
    for (int i = 0; i < count; i++)
        numbers[i] = parallel->replica_microbatches[i];
    return list_text(parallel->replica_microbatches_count, numbers);
}

/* Lists that no field table compares; their texts tell them apart. */
static void walk_lists(const Walk *walk, const SpecParallel *left, const SpecParallel *right)
{
    char *layers[] = {list_text(left->stage_layers_count, left->stage_layers),
                      list_text(right->stage_layers_count, right->stage_layers)};
    char *replicas[] = {replicas_text(left), replicas_text(right)};
    if (strcmp(layers[0], layers[1]) != 0)
        add_field(walk, g_strdup("parallel.stage_layers"), g_strdup(layers[0]), g_strdup(layers[1]),
                  offsetof(Spec, parallel.stage_layers_count),
                  offsetof(SpecParallel, stage_layers) - offsetof(SpecParallel, stage_layers_count) +
                      sizeof left->stage_layers);
    if (strcmp(replicas[0], replicas[1]) != 0)
        add_field(walk, g_strdup("parallel.replica_microbatches"), g_strdup(replicas[0]),
                  g_strdup(replicas[1]), offsetof(Spec, parallel.replica_microbatches_count),
                  offsetof(SpecParallel, replica_microbatches) -
                      offsetof(SpecParallel, replica_microbatches_count) + sizeof left->replica_microbatches);
    for (int i = 0; i < 2; i++) {
        g_free(layers[i]);
        g_free(replicas[i]);
    }
}

/* What runs beside compute is compared, named in the scenario or switched on by its framework's recipes. */
static Spec *with_whole_overlap(const Spec *spec)
{
    Spec *whole = g_memdup2(spec, sizeof *spec);
    if ((spec->execution.overlap & SPEC_OVERLAP_AUTO) == 0)
        whole->execution.overlap = spec_overlap(spec);
    return whole;
}

GArray *report_compare_specs(const Spec *first, const Spec *second)
{
    GArray *fields = g_array_new(FALSE, TRUE, sizeof(CompareField));
    g_array_set_clear_func(fields, field_clear);
    g_autofree Spec *a = with_whole_overlap(first), *b = with_whole_overlap(second);
    const Walk walk = {(const char *)a, (const char *)b, fields};
    walk_table(&walk, &spec_table_scenario, "", 0);
    const SpecParallel *left = &a->parallel, *right = &b->parallel;
    if (left->schedule == SPEC_SCHEDULE_FILE && right->schedule == SPEC_SCHEDULE_FILE &&
        left->orders.text != right->orders.text) /* interned */
        add_field(&walk, g_strdup("parallel.schedule"), g_strdup(left->schedule_file),
                  g_strdup(right->schedule_file), offsetof(Spec, parallel.schedule), sizeof left->schedule);
    walk_lists(&walk, left, right);
    return fields;
}

/* Names and notes, and what changes no step, are not worth a simulation. */
static bool worth_trying(const CompareField *field)
{
    return strcmp(field->key, "name") != 0 && !g_str_has_suffix(field->key, ".name") &&
           strcmp(field->key, "training.tokens") != 0 && !g_str_has_suffix(field->key, "framework_text") &&
           strcmp(field->key, "cluster.calibration") != 0 && !g_str_has_prefix(field->key, "search");
}

/* A model with experts or latent attention has all that describes them, one without has nothing of it: `whole` stands for
 * the others, which alone describe no model. False and a reason for those. */
static bool take_together(const Comparison *comparison, CompareField *field, Spec *spec)
{
    const SpecModel *a = &comparison->a->spec->model, *b = &comparison->b->spec->model;
    const struct {
        const char *prefix, *whole;
        bool only_one;
        void *into;
        const void *from;
        size_t size;
    } parts[] = {
        {"model.moe.", "model.moe.experts", (a->moe.experts == 0) != (b->moe.experts == 0), &spec->model.moe,
         &b->moe, sizeof b->moe},
        {"model.mla.", "model.mla.kv_lora_rank", (a->mla.kv_lora_rank == 0) != (b->mla.kv_lora_rank == 0),
         &spec->model.mla, &b->mla, sizeof b->mla},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++) {
        if (!parts[i].only_one || !g_str_has_prefix(field->key, parts[i].prefix))
            continue;
        memcpy(parts[i].into, parts[i].from, parts[i].size);
        if (strcmp(field->key, parts[i].whole) != 0) {
            field->reason = g_strdup_printf("goes with %s", parts[i].whole);
            return false;
        }
    }
    return true;
}

/* A with this field of B. Where the GPUs or the model's degrees change, data parallelism follows. */
static void try_alone(const Comparison *comparison, CompareField *field)
{
    const Spec *a = comparison->a->spec, *b = comparison->b->spec;
    g_autofree Spec *spec = g_new(Spec, 1);
    GError *error = NULL;
    Report report;
    *spec = *a;
    memcpy((char *)spec + field->offset, (const char *)b + field->offset, field->size);
    if (!take_together(comparison, field, spec))
        return;
    if (strcmp(field->key, "parallel.schedule") == 0 || strcmp(field->key, "parallel.virtual_stages") == 0) {
        spec->parallel.schedule = b->parallel.schedule; /* one goes with the other */
        spec->parallel.virtual_stages = b->parallel.virtual_stages;
        spec->parallel.live_microbatches = b->parallel.live_microbatches;
        spec->parallel.orders = b->parallel.orders;
        g_strlcpy(spec->parallel.schedule_file, b->parallel.schedule_file,
                  sizeof spec->parallel.schedule_file);
    }
    if (strcmp(field->key, "execution.overlap") == 0 && (b->execution.overlap & SPEC_OVERLAP_AUTO) == 0) {
        spec->execution.overlap = spec_overlap(b); /* with what B's recipes switch on, and no more */
        spec->execution.framework.defaults.recipe_overlap = 0;
    }
    const int64_t split = (int64_t)spec->parallel.tensor * spec->parallel.context * spec->parallel.pipeline;
    if (strcmp(field->key, "parallel.data") != 0 && split > 0 && spec_gpus(spec) % split == 0)
        spec->parallel.data = (int)(spec_gpus(spec) / split);
    const bool same = memcmp(&spec->jitter, &a->jitter, sizeof a->jitter) == 0;
    const ReportOptions options = {.like = same ? comparison->a : NULL};
    OrrArena *arena = orr_arena_new();
    if (spec_check(spec, "alone", &error) && report_run(spec, NULL, &options, arena, &report, &error)) {
        field->tried = true;
        field->step_s = (double)report.step_ps * 1e-12;
        field->fits = report.fits;
    } else {
        field->reason =
            g_strdup(g_str_has_prefix(error->message, "alone: ") ? error->message + strlen("alone: ")
                                                                 : error->message);
    }
    g_clear_error(&error);
    orr_arena_free(arena);
}

Comparison report_compare(const Report *a, const Report *b, const char *const names[2], bool alone)
{
    Comparison comparison = {.a = a, .b = b, .names = {names[0], names[1]}};
    comparison.fields = report_compare_specs(a->spec, b->spec);
    for (guint i = 0; alone && i < comparison.fields->len; i++) {
        CompareField *field = &g_array_index(comparison.fields, CompareField, i);
        if (worth_trying(field))
            try_alone(&comparison, field);
    }
    return comparison;
}

void report_compare_clear(Comparison *comparison)
{
    if (comparison->fields != NULL)
        g_array_free(g_steal_pointer(&comparison->fields), TRUE);
}
