/* exchange/export_loss.c - what an exported file does not say: the settings are read back, and each field of the scenario
 * that does not return, and that the scenario is another without, is named. */
#include <math.h>
#include <string.h>

#include "exchange/formats.h"
#include "spec/load.h"

/* Whether the scenario means the same without the field. */
static bool says_nothing(const OrrJson *scenario, const char *path, const Spec *whole)
{
    OrrJsonDoc *doc = orr_json_copy(scenario, "scenario");
    g_autofree Spec *without = g_new0(Spec, 1);
    const bool alike = orr_json_set(doc, path, "null", NULL) &&
                       spec_load_json(orr_json_root(doc), "scenario", NULL, false, without, NULL, NULL) &&
                       memcmp(without, whole, sizeof *whole) == 0;
    orr_json_free(doc);
    return alike;
}

static const OrrJson *at(const OrrJson *root, const char *section, const char *key)
{
    const OrrJson *object = root != NULL ? orr_json_member(root, section) : NULL;
    return object != NULL && orr_json_type(object) == ORR_JSON_OBJECT ? orr_json_member(object, key) : NULL;
}

static bool same_value(const OrrJson *a, const OrrJson *b)
{
    g_autofree char *text_a = a != NULL ? orr_json_dump(a) : NULL,
                    *text_b = b != NULL ? orr_json_dump(b) : NULL;
    return text_a != NULL && g_strcmp0(text_a, text_b) == 0;
}

/* Files count steps: tokens come back rounded up to whole ones. */
static bool same_steps(const Spec *spec, const OrrJson *back)
{
    const double step = (double)spec->training.global_batch * spec->training.sequence_length;
    const double tokens = back != NULL && orr_json_type(back) == ORR_JSON_NUMBER ? orr_json_number(back) : 0;
    return step > 0 && fabs(ceil(spec->training.tokens / step) - ceil(tokens / step)) < 1;
}

static bool lists(const OrrJson *list, const char *word)
{
    if (list == NULL || orr_json_type(list) != ORR_JSON_LIST)
        return false;
    for (const OrrJson *item = orr_json_first(list); item != NULL; item = orr_json_next(item))
        if (orr_json_type(item) == ORR_JSON_TEXT && strcmp(orr_json_text(item), word) == 0)
            return true;
    return false;
}

static void change(ExchangeLoss *loss, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void change(ExchangeLoss *loss, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    exchange_loss_change(loss, text);
}

static void compare_overlap(const Spec *spec, const OrrJson *back, ExchangeLoss *loss)
{
    const OrrJson *list = at(back, "execution", "overlap");
    for (int i = 0; i < spec_words_overlap.count; i++) {
        const char *word = orr_word(&spec_words_overlap, i);
        const bool asked = (spec->execution.overlap & 1u << i) != 0;
        const bool on = asked || (spec_overlap(spec) & 1u << i) != 0;
        const bool gathers = spec->parallel.zero > 0 || strcmp(word, "param_gather") != 0;
        const bool pipelined = spec->parallel.virtual_stages > 1 || strcmp(word, "pipeline") != 0;
        const bool waits = spec->execution.framework.data_parallel.reductions == SPEC_REDUCTIONS_AT_END &&
                           strcmp(word, "grad_reduce") == 0;
        if (asked && !lists(list, word) && gathers && pipelined && !waits)
            change(
                loss,
                "execution.overlap: %s: the file has no name for it; the software does it or not by itself",
                word);
        else if (!on && lists(list, word))
            change(loss, "execution.overlap: without %s: the software does it by itself", word);
    }
}

/* Figures of the software that a scenario gives itself; switches that exporters say by flags apart. */
static void say_figures(const OrrJson *object, const char *prefix, ExchangeLoss *loss)
{
    static const char *const said[] = {
        "preset", "name", "source", "schema", "recipe_overlap", "deferred_head_gradients", "bucket_bytes"};
    for (const OrrJson *member = orr_json_first(object); member != NULL; member = orr_json_next(member)) {
        g_autofree char *path = g_strdup_printf("%s.%.80s", prefix, orr_json_key(member));
        bool known = false;
        for (gsize i = 0; i < G_N_ELEMENTS(said); i++)
            known = known || strcmp(said[i], orr_json_key(member)) == 0;
        if (orr_json_type(member) == ORR_JSON_OBJECT)
            say_figures(member, path, loss);
        else if (!known)
            change(loss, "%s: figures of the software are in the comment alone", path);
    }
}

/* The profile is that of another software, or has figures of its own. */
static void compare_framework(const Spec *spec, const OrrJson *scenario, ExchangeFormat format,
                              ExchangeLoss *loss)
{
    const char *const *names = exchange_format_row(format)->frameworks;
    const OrrJson *given = at(scenario, "execution", "framework");
    bool known = false;
    for (gsize i = 0; names[i] != NULL; i++)
        known = known || g_str_has_prefix(spec->execution.framework.name, names[i]);
    if (!known)
        change(loss, "execution.framework: %s is what the scenario describes, and %s would run it",
               spec->execution.framework.name, names[0]);
    if (given != NULL && orr_json_type(given) == ORR_JSON_OBJECT)
        say_figures(given, "execution.framework", loss);
}

static bool is_native(const GPtrArray *native, const char *path)
{
    return g_ptr_array_find_with_equal_func((GPtrArray *)native, path, g_str_equal, NULL);
}

typedef struct Comparison {
    const Spec *spec, *whole; /* as exported, and loaded from `scenario` */
    const OrrJson *scenario, *back;
    const GPtrArray *native;
    ExchangeLoss *loss;
} Comparison;

/* How layers are dealt out, where the file says the layers of every stage. */
static bool said_by_stages(const OrrJson *back, const char *path)
{
    static const char *const ways[] = {"parallel.embedding_as_layer", "parallel.loss_as_layer",
                                       "parallel.mtp_as_layer",       "parallel.first_stage_layers",
                                       "parallel.last_stage_layers",  NULL};
    return at(back, "parallel", "stage_layers") != NULL && g_strv_contains(ways, path);
}

/* An object whose members the file says one by one: those that it does not say are told of. */
static bool said_by_members(const Comparison *comparison, const char *path, const OrrJson *object)
{
    g_autoptr(GPtrArray) silent = g_ptr_array_new_with_free_func(g_free);
    bool any = false;
    for (const OrrJson *at = orr_json_type(object) == ORR_JSON_OBJECT ? orr_json_first(object) : NULL;
         at != NULL; at = orr_json_next(at)) {
        g_autofree char *key = g_strconcat(path, ".", orr_json_key(at), NULL);
        const bool native = is_native(comparison->native, key);
        any = any || native;
        if (!native && !says_nothing(comparison->scenario, key, comparison->whole))
            g_ptr_array_add(silent, g_steal_pointer(&key));
    }
    for (guint i = 0; any && i < silent->len; i++)
        change(comparison->loss, "%s: the file has no name for it; in the comment alone",
               (const char *)g_ptr_array_index(silent, i));
    return any;
}

static void compare_field(const Comparison *comparison, const char *section, const OrrJson *member)
{
    const char *key = orr_json_key(member);
    g_autofree char *path = g_strconcat(section, ".", key, NULL);
    const OrrJson *back = at(comparison->back, section, key);
    if (is_native(comparison->native, path) || strcmp(path, "execution.framework") == 0 ||
        strcmp(path, "execution.overlap") == 0 || strcmp(path, "parallel.data") == 0 ||
        strcmp(path, "execution.framework_text") == 0 || same_value(member, back))
        return;
    if (said_by_stages(comparison->back, path) || said_by_members(comparison, path, member))
        return;
    if (strcmp(path, "parallel.sequence_parallel") == 0 && comparison->spec->parallel.tensor == 1)
        return;
    if (strcmp(path, "parallel.zero") == 0 && comparison->spec->parallel.data == 1)
        return;
    if (strcmp(path, "training.tokens") == 0 && same_steps(comparison->spec, back))
        return;
    if (strcmp(path, "training.batch_schedule") == 0 &&
        back != NULL) /* only what a ramp says is written as one */
        return;
    if (comparison->whole != NULL && says_nothing(comparison->scenario, path, comparison->whole))
        return;
    g_autofree char *shown = orr_json_show(member);
    if (strcmp(path, "training.tokens") == 0)
        exchange_loss_harmless(comparison->loss, path);
    else
        change(comparison->loss, "%s: %s: the file has no name for it; in the comment alone", path, shown);
}

/* What surrounds a job: jitter, failures, storage, input. No framework's file says any of it. */
static void name_surroundings(const OrrJson *scenario, ExchangeLoss *loss)
{
    static const char *const said[] = {"schema",   "comment",   "name",    "model",  "cluster", "training",
                                       "parallel", "execution", "offload", "search", NULL};
    for (const OrrJson *member = orr_json_first(scenario); member != NULL; member = orr_json_next(member)) {
        const char *key = orr_json_key(member);
        if (!g_strv_contains(said, key))
            change(loss, "%s: the file has no name for it; in the comment alone", key);
    }
}

void exchange_export_loss(const Spec *spec, const OrrJson *scenario, ExchangeFormat format,
                          const Settings *settings, const GPtrArray *native, ExchangeLoss *loss)
{
    static const char *const sections[] = {"training", "parallel", "execution", "offload"};
    g_autofree Spec *whole = g_new0(Spec, 1);
    const bool loads = spec_load_json(scenario, "scenario", NULL, false, whole, NULL, NULL);
    OrrJsonDoc *start = orr_json_copy(scenario, "scenario");
    for (gsize i = 0; i < G_N_ELEMENTS(sections); i++)
        orr_json_remove(start, sections[i]);
    g_autofree char *data = g_strdup_printf("%d", spec->parallel.data); /* the GPUs' number says it */
    const bool set = orr_json_set(start, "parallel.data", data, NULL);
    g_assert(set);
    OrrJsonDoc *back = exchange_read_back(settings, format, orr_json_root(start), NULL);
    const Comparison comparison = {spec, loads ? whole : NULL, scenario, orr_json_root(back), native, loss};
    for (guint i = 0; i < settings->left->len; i++)
        exchange_loss_change(loss, g_ptr_array_index(settings->left, i));
    compare_framework(spec, scenario, format, loss);
    compare_overlap(spec, comparison.back, loss);
    for (gsize i = 0; i < G_N_ELEMENTS(sections); i++) {
        const OrrJson *section = orr_json_member(scenario, sections[i]);
        if (section == NULL || orr_json_type(section) != ORR_JSON_OBJECT)
            continue;
        for (const OrrJson *member = orr_json_first(section); member != NULL; member = orr_json_next(member))
            compare_field(&comparison, sections[i], member);
    }
    name_surroundings(scenario, loss);
    exchange_loss_harmless(loss, "cluster (its nodes and GPUs are the launch's)");
    if (orr_json_member(scenario, "search") != NULL)
        exchange_loss_harmless(loss, "search");
    for (guint i = 0; i < settings->list->len; i++) {
        const Setting *setting = &g_array_index(settings->list, Setting, i);
        if (setting->placeholder)
            g_ptr_array_add(loss->placeholders, g_strdup(setting->key));
    }
    orr_json_free(back);
    orr_json_free(start);
}
