/* spec/fields_recipe_learned.c - the list "learned" of a framework's recipe, which `orrery learn` writes.
 * Tested: unit/spec/test_framework_words.c, unit/study/test_trace_learn.c
 */
#include "spec/fields_internal.h"
#include "spec/framework.h"

typedef struct Entry {
    int kind;
    double excess_frac;
} Entry;

/* Twenty times as fast or slow is another kernel. */
#define LEAST_EXCESS (-0.95)
#define MOST_EXCESS  19

static const SpecField entry_fields[] = {
    {.key = "class",
     .type = SPEC_TYPE_WORD,
     .offset = offsetof(Entry, kind),
     .words = &spec_words_learned,
     .flags = SPEC_FIELD_REQUIRED,
     .help =
         "Names what was timed: a class of kernels, a collective, or messages between stages (send-receive). "
         "elementwise: kernels of a layer that only move bytes."},
    SPEC_F_DOUBLE(Entry, excess_frac, ORR_UNIT_FRAC, LEAST_EXCESS, MOST_EXCESS, NULL, SPEC_FIELD_REQUIRED,
                  "Time beyond what the model predicts, as a share of it. 0.05 is 5 % longer."),
};
SPEC_TABLE(spec_table_recipe_learned, "framework.learned",
           "What a class of kernels takes beyond what the model of the GPU says.", entry_fields);

/* What the list was once: an object with a key a class. */
#define CLASS(name, kind)                                                                                    \
    {                                                                                                        \
        .key = name "_excess_frac", .type = SPEC_TYPE_DOUBLE, .unit = ORR_UNIT_FRAC, .min = LEAST_EXCESS,    \
        .max = MOST_EXCESS, .default_text = "0",                                                             \
        .offset = offsetof(SpecRecipeLearned, excess_frac) + sizeof(double) * (kind)                         \
    }
static const SpecField object_fields[] = {
    CLASS("products", SPEC_LEARNED_PRODUCTS),     CLASS("attention", SPEC_LEARNED_ATTENTION),
    CLASS("norms", SPEC_LEARNED_NORMS),           CLASS("elementwise", SPEC_LEARNED_ELEMENTWISE),
    CLASS("optimizer", SPEC_LEARNED_OPTIMIZER),   CLASS("all_reduce", SPEC_LEARNED_ALL_REDUCE),
    CLASS("all_gather", SPEC_LEARNED_ALL_GATHER), CLASS("reduce_scatter", SPEC_LEARNED_REDUCE_SCATTER),
    CLASS("all_to_all", SPEC_LEARNED_ALL_TO_ALL), CLASS("send_receive", SPEC_LEARNED_SEND_RECEIVE),
};
static SPEC_TABLE(object_table, "learned", "", object_fields);

static bool read_list(SpecReadContext *context, const OrrJson *list, SpecRecipeLearned *learned,
                      GError **error)
{
    bool given[SPEC_LEARNED_CLASSES] = {false};
    for (const OrrJson *item = orr_json_first(list); item != NULL; item = orr_json_next(item)) {
        Entry entry = {0};
        if (!spec_read_table(context, &spec_table_recipe_learned, item, &entry, error))
            return false;
        if (given[entry.kind])
            return spec_read_fail(context, NULL, error, "has class %s twice; give one",
                                  spec_word(&spec_words_learned, entry.kind));
        given[entry.kind] = true;
        learned->excess_frac[entry.kind] = entry.excess_frac;
    }
    return true;
}

bool spec_read_recipe_learned(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecRecipeLearned taken = {{0}};
    const bool list = orr_json_type(node) == ORR_JSON_LIST;
    if (!list && orr_json_type(node) != ORR_JSON_OBJECT)
        return spec_read_fail(context, node, error, "is not a list; give a list of objects");
    context->quiet++;
    const bool ok = list ? read_list(context, node, &taken, error)
                         : spec_read_table(context, &object_table, node, &taken, error);
    context->quiet--;
    if (ok)
        *(SpecRecipeLearned *)target = taken;
    return ok;
}
