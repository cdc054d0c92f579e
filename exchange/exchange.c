/* exchange/exchange.c - export to a format and import from it, around what its row does. */
#include "exchange/exchange.h"

#include <math.h>
#include <string.h>

#include "exchange/detect.h"
#include "exchange/export.h"
#include "exchange/formats.h"
#include "exchange/import_dump.h"
#include "exchange/import_rl.h"
#include "exchange/megatron.h"
#include "spec/import_hf.h"
#include "spec/load.h"
#include "spec/notes.h"
#include "spec/resolve.h"

/* --- export --- */

static bool listed(const GPtrArray *keys, const char *section, const char *key)
{
    g_autofree char *path = g_strconcat(section, ".", key, NULL);
    return g_ptr_array_find_with_equal_func((GPtrArray *)keys, path, g_str_equal, NULL);
}

static void copy_section(OrrJsonWriter *w, const OrrJson *section, const GPtrArray *native)
{
    orr_jw_begin(w, orr_json_key(section), '{');
    for (const OrrJson *member = orr_json_first(section); member != NULL; member = orr_json_next(member))
        if (!listed(native, orr_json_key(section), orr_json_key(member)))
            orr_jw_node(w, orr_json_key(member), member);
    orr_jw_end(w, '}');
}

/* The scenario without what the format says itself, on one line. */
static char *companion_of(const OrrJson *scenario, const GPtrArray *native)
{
    GString *text = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, text, true);
    orr_jw_begin(&w, NULL, '{');
    for (const OrrJson *member = orr_json_first(scenario); member != NULL; member = orr_json_next(member)) {
        const char *key = orr_json_key(member);
        const bool split =
            strcmp(key, "training") == 0 || strcmp(key, "parallel") == 0 || strcmp(key, "execution") == 0;
        if (split && orr_json_type(member) == ORR_JSON_OBJECT)
            copy_section(&w, member, native);
        else
            orr_jw_node(&w, key, member);
    }
    orr_jw_end(&w, '}');
    return g_string_free(text, FALSE);
}

/* What none of the formats can say. */
static bool exports_data(const Spec *spec, ExchangeFormat format, GError **error)
{
    const SpecParallel *parallel = &spec->parallel;
    if (spec->model.list.text != NULL)
        return exchange_export_refuse(error, format, "model.layers", "a list", "give a transformer");
    if (spec->model.encoder_layers > 0)
        return exchange_export_refuse(error, format, "model.encoder_layers", "an encoder",
                                      "give a model without one");
    if (spec->model.vision.layers > 0)
        return exchange_export_refuse(error, format, "model.vision", "a vision tower",
                                      "give the language model alone");
    if (spec->model.moe.run_count > 0 || spec->model.moe.late_layers > 0)
        return exchange_export_refuse(
            error, format, spec->model.moe.run_count > 0 ? "model.moe.by_layer" : "model.moe.late_layers",
            "layers whose experts differ", "give all layers the same experts");
    if (parallel->data_scheme != SPEC_DATA_ALLREDUCE)
        return exchange_export_refuse(error, format, "parallel.data_scheme",
                                      spec_word(&spec_words_data_scheme, (int)parallel->data_scheme),
                                      "give allreduce");
    if (parallel->compression.kind != SPEC_COMPRESSION_NONE)
        return exchange_export_refuse(error, format, "parallel.compression",
                                      spec_word(&spec_words_compression, (int)parallel->compression.kind),
                                      "leave it out");
    return true;
}

bool exchange_export_settings(const Spec *spec, ExchangeFormat format, Settings *out, GError **error)
{
    const ExchangeFormatRow *row = exchange_format_row(format);
    if (row == NULL || row->export == NULL)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "export: %s is read and not written; give one of megatron, "
            "megatron-bridge, deepspeed, torchtitan, nanotron, axolotl, llama-factory, torchtune, "
            "trl, peft, verl, nemo-rl",
            spec_word(&exchange_words_format, (int)format));
    const SpecFramework *framework = &spec->execution.framework;
    const SpecSchedule schedule = spec->parallel.schedule;
    bool own = false; /* the profile is of this very software */
    for (gsize i = 0; row->frameworks[i] != NULL; i++)
        own = own || g_str_has_prefix(framework->name, row->frameworks[i]);
    if (own && spec->parallel.pipeline > 1 && !spec_framework_has_schedule(framework, schedule)) {
        g_autofree char *names = spec_framework_schedules(framework);
        g_autofree char *hint = g_strdup_printf("%s has %s", framework->name, names);
        return exchange_export_refuse(error, format, "parallel.schedule",
                                      spec_word(&spec_words_schedule, (int)schedule), hint);
    }
    return exports_data(spec, format, error) && row->export(spec, out, error);
}

/* The comment: what the file does not say itself, found by reading it back. */
static void add_companion(const Spec *spec, const OrrJson *scenario, ExchangeFormat format,
                          Settings *settings, ExchangeLoss *loss)
{
    g_autoptr(GPtrArray) native = g_ptr_array_new_with_free_func(g_free);
    orr_json_free(exchange_read_back(settings, format, scenario, native));
    if (format == EXCHANGE_FORMAT_MEGATRON || format == EXCHANGE_FORMAT_MEGATRON_BRIDGE)
        g_ptr_array_add(native,
                        g_strdup("parallel.data")); /* Megatron's is what the others leave of the GPUs */
    settings->companion = companion_of(scenario, native);
    if (loss != NULL)
        exchange_export_loss(spec, scenario, format, settings, native, loss);
}

/* Of a loop the comment keeps the whole workload: what the file says is read over it. */
static void add_loop(const OrrJson *scenario, ExchangeFormat format, Settings *settings, ExchangeLoss *loss)
{
    g_autoptr(GPtrArray) native = g_ptr_array_new_with_free_func(g_free);
    orr_json_free(exchange_read_back(settings, format, scenario, native));
    settings->companion = companion_of(scenario, native);
    for (guint i = 0; loss != NULL && i < settings->left->len; i++)
        exchange_loss_change(loss, g_ptr_array_index(settings->left, i));
    for (guint i = 0; loss != NULL && i < settings->list->len; i++) {
        const Setting *setting = &g_array_index(settings->list, Setting, i);
        if (setting->placeholder)
            g_ptr_array_add(loss->placeholders, g_strdup(setting->key));
    }
}

bool exchange_export(const Spec *spec, const OrrJson *scenario, ExchangeFormat format, GString *out,
                     ExchangeLoss *loss, GError **error)
{
    Settings settings;
    const ExchangeFormatRow *of = exchange_format_row(format);
    if (spec->training.adapter.given && (of == NULL || !of->adapters))
        return exchange_export_refuse(
            error, format, "training.adapter", "this format has no adapters",
            "give megatron-bridge, axolotl, llama-factory, torchtune, trl or peft, or "
            "leave it out");
    if (spec_freezes(&spec->training.freeze) && (of == NULL || !of->freezes))
        return exchange_export_refuse(error, format, "training.freeze", "this format freezes no weights",
                                      "give llama-factory, or leave it out");
    const bool is_loop = of != NULL && of->export_loop != NULL;
    if (spec->workload.given && !is_loop)
        return exchange_export_refuse(error, format, "workload", "this format has one model and no loop",
                                      "leave it out to export the training of the scenario's own model, or "
                                      "give --to verl or nemo-rl");
    if (!spec->workload.given && is_loop)
        return exchange_export_refuse(error, format, "workload",
                                      "not given, and this format holds loops alone",
                                      "give a scenario with a workload");
    settings_init(&settings);
    const bool ok = is_loop ? of->export_loop(spec, scenario, &settings, error)
                            : exchange_export_settings(spec, format, &settings, error);
    if (ok && is_loop)
        add_loop(scenario, format, &settings, loss);
    else if (ok && of->adapter_only && loss != NULL)
        exchange_loss_change(loss,
                             "the file is an adapter alone: model, stored weights, batch and layout stay "
                             "in the scenario (orrery import FILE --base SCENARIO.json)");
    else if (ok && !of->adapter_only && scenario != NULL)
        add_companion(spec, scenario, format, &settings, loss);
    if (ok) {
        const ExchangeFormatRow *row = exchange_format_row(format);
        g_autofree char *needs = format == EXCHANGE_FORMAT_MEGATRON ? megatron_needs(&settings) : NULL;
        g_autofree char *title = g_strdup_printf("%s; written by orrery " ORRERY_VERSION "%s%s", row->title,
                                                 needs != NULL ? "; " : "", needs != NULL ? needs : "");
        settings_write(&settings, row->syntax, title, row->array, out);
    }
    settings_clear(&settings);
    return ok;
}

/* --- import --- */

/* A word of the text that only one kind of file has. */
static bool holds(const char *text, size_t length, const char *needle)
{
    return g_strstr_len(text, (gssize)length, needle) != NULL;
}

static OrrJsonDoc *starting_doc(const Settings *settings, const OrrJson *base, const char *path,
                                ExchangeLoss *loss)
{
    if (base != NULL)
        return orr_json_copy(base, path);
    GError *error = NULL;
    OrrJsonDoc *doc = settings->companion != NULL
                          ? orr_json_parse(settings->companion, strlen(settings->companion), path, &error)
                          : NULL;
    if (doc != NULL && orr_json_type(orr_json_root(doc)) == ORR_JSON_OBJECT)
        return doc;
    if (settings->companion != NULL)
        exchange_loss_change(loss, "the orrery-scenario comment is not a JSON object; ignored");
    orr_json_free(doc);
    g_clear_error(&error);
    return orr_json_parse("{}", 2, path, NULL);
}

static OrrJsonDoc *import_hf(const char *text, size_t length, const char *path, const OrrJson *base,
                             ExchangeLoss *loss, GError **error)
{
    g_autoptr(GPtrArray) changes = g_ptr_array_new_with_free_func(g_free),
                         harmless = g_ptr_array_new_with_free_func(g_free);
    OrrJsonDoc *doc = NULL, *model = NULL, *config = orr_json_parse(text, length, path, error);
    if (config != NULL)
        model = spec_import_hf_said(orr_json_root(config), path, changes, harmless, error);
    if (model != NULL) {
        g_autofree char *model_text = orr_json_dump(orr_json_root(model));
        doc = base != NULL ? orr_json_copy(base, path) : orr_json_parse("{}", 2, path, NULL);
        if (!orr_json_set(doc, "model", model_text, error)) {
            orr_json_free(doc);
            doc = NULL;
        }
    }
    for (guint i = 0; i < changes->len; i++)
        exchange_loss_change(loss, g_ptr_array_index(changes, i));
    for (guint i = 0; i < harmless->len; i++)
        exchange_loss_harmless(loss, g_ptr_array_index(harmless, i));
    orr_json_free(model);
    orr_json_free(config);
    return doc;
}

/* Settings that no importer looked at: those known to change no step, and all others. */
static void sort_unused(const ExchangeImport *import)
{
    enum { MOST = 100 };
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GString) names = g_string_new(NULL);
    int said = 0;
    for (guint i = 0; i < import->in->list->len; i++) {
        const Setting *setting = &g_array_index(import->in->list, Setting, i);
        if (setting->used || !g_hash_table_add(seen, setting->key))
            continue;
        g_autofree char *name = g_strndup(setting->key, 80);
        if (exchange_changes_no_step(name))
            exchange_loss_harmless(import->loss, name);
        else if (said++ < MOST)
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", name);
    }
    if (said > MOST)
        g_string_append_printf(names, " and %d more", said - MOST);
    if (said > 0)
        exchange_import_warn(import, "no field of a scenario answers to, and may change it: %s", names->str);
}

static bool any_used(const Settings *settings)
{
    for (guint i = 0; i < settings->list->len; i++)
        if (g_array_index(settings->list, Setting, i).used)
            return true;
    return false;
}

/* The software of `base` where it is another than the file's, which would not run it. */
static void warn_software(const ExchangeImport *import, const OrrJson *base, ExchangeFormat format)
{
    const OrrJson *named = exchange_import_at(import, "execution.framework");
    const OrrJson *preset = exchange_import_at(import, "execution.framework.preset");
    const char *const *own = exchange_format_row(format)->frameworks;
    named = preset != NULL ? preset : named;
    if (base == NULL || named == NULL || orr_json_type(named) != ORR_JSON_TEXT || own[0] == NULL)
        return;
    for (const char *const *word = own; *word != NULL; word++)
        if (g_str_has_prefix(orr_json_text(named), *word))
            return;
    exchange_import_warn(import,
                         "execution.framework: %.60s is the base's, the file is for %s; give --set "
                         "execution.framework=NAME of what runs it (orrery list frameworks)",
                         orr_json_text(named), spec_word(&exchange_words_format, (int)format));
}

/* Who gave a set says what is wrong with it. */
static OrrJsonDoc *with_sets(OrrJsonDoc *doc, const char *const *sets)
{
    for (const char *const *pair = sets; doc != NULL && pair != NULL && *pair != NULL; pair++)
        (void)spec_resolve_set(doc, *pair, NULL);
    return doc;
}

/* Files of others that are known by a key: adapters of another kind, and a profiler's trace. */
static bool takes_by_key(const char *text, size_t length, const char *path, GError **error)
{
    OrrJsonDoc *file = holds(text, length, "\"peft_type\"") ? orr_json_parse(text, length, path, NULL) : NULL;
    const bool object = file != NULL && orr_json_type(orr_json_root(file)) == ORR_JSON_OBJECT;
    const OrrJson *kind = object ? orr_json_member(orr_json_root(file), "peft_type") : NULL;
    bool ok = true;
    if (kind != NULL && !(orr_json_type(kind) == ORR_JSON_TEXT && strcmp(orr_json_text(kind), "LORA") == 0)) {
        g_autofree char *shown = orr_json_show(kind);
        ok = orr_fail(error, ORR_ERROR_INPUT, "%s: peft_type: %s is an adapter that is not modelled; LORA is",
                      path, shown);
    } else if (kind == NULL && holds(text, MIN(length, 65536), "\"traceEvents\"")) {
        ok = orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: is a profiler's trace (Kineto or Chrome), which says what ran and no configuration; "
            "import a launch script or a config.json, or give it to orrery trace",
            path);
    }
    orr_json_free(file);
    return ok;
}

OrrJsonDoc *exchange_import(const char *text, size_t length, const char *path, int format,
                            const OrrJson *base, ExchangeLoss *loss, GError **error)
{
    return exchange_import_knowing(text, length, path, format, base, NULL, loss, error);
}

OrrJsonDoc *exchange_import_knowing(const char *text, size_t length, const char *path, int format,
                                    const OrrJson *base, const char *const *sets, ExchangeLoss *loss,
                                    GError **error)
{
    if (base != NULL && orr_json_type(base) != ORR_JSON_OBJECT) {
        orr_fail(error, ORR_ERROR_INPUT, "--base: is %s; give a scenario", orr_json_type_name(base));
        return NULL;
    }
    if ((format < 0 || format == EXCHANGE_FORMAT_PEFT) && !takes_by_key(text, length, path, error))
        return NULL;
    if ((format < 0 || format == EXCHANGE_FORMAT_MEGATRON_BRIDGE) && exchange_is_python(text, path)) {
        exchange_refuse_python(path, text, length, error);
        return NULL;
    }
    if ((format < 0 && exchange_is_another(text, length, path, error)) ||
        exchange_trains_nothing(text, length, path, error))
        return NULL;
    const int kind = format >= 0 ? format : exchange_detect(text, length);
    if (kind < 0) {
        orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: no known configuration; say which with --from megatron, megatron-bridge, deepspeed, "
            "torchtitan, nanotron, axolotl, llama-factory, torchtune, trl, peft, verl, nemo-rl, openrlhf, "
            "slime or hf",
            path);
        return NULL;
    }
    if (kind == EXCHANGE_FORMAT_HF)
        return with_sets(import_hf(text, length, path, base, loss, error), sets);
    const ExchangeFormatRow *row = exchange_format_row((ExchangeFormat)kind);
    Settings settings;
    settings_init(&settings);
    ExchangeImport import = {.in = &settings, .path = path, .loss = loss};
    const bool dump = kind == EXCHANGE_FORMAT_MEGATRON_BRIDGE && exchange_is_dump(text, length);
    if (settings_read(text, length, path, dump ? SETTINGS_YAML : row->syntax, &settings, loss->changes,
                      error)) {
        if (dump)
            exchange_dump_settle(&settings);
        if (kind == EXCHANGE_FORMAT_TRL)
            exchange_settle_trl(text, length, &settings);
        if (kind == EXCHANGE_FORMAT_TORCHTUNE)
            exchange_settle_torchtune(text, &settings);
        if (kind == EXCHANGE_FORMAT_NEMO_RL)
            exchange_nemo_rl_settle(&settings, path, loss->changes);
        g_autoptr(GPtrArray) native = g_ptr_array_new_with_free_func(g_free);
        import.native = native;
        import.doc = starting_doc(&settings, base, path, loss);
        import.doc = with_sets(import.doc, sets);
        row->import(&import);
        warn_software(&import, base, (ExchangeFormat)kind);
        sort_unused(&import);
        if (import.refused != NULL) {
            orr_fail(error, ORR_ERROR_INPUT, "%s: %s", path, import.refused);
            orr_json_free(import.doc);
            import.doc = NULL;
        } else if (!any_used(&settings)) {
            const bool scenario = kind == EXCHANGE_FORMAT_DEEPSPEED && holds(text, length, "\"model\"") &&
                                  holds(text, length, "\"training\"");
            orr_fail(error, ORR_ERROR_INPUT, "%s: holds nothing that a %s configuration says; %s", path,
                     spec_word(&exchange_words_format, kind),
                     scenario ? "a scenario needs no import" : "is it one?");
            orr_json_free(import.doc);
            import.doc = NULL;
        }
    }
    g_free(import.refused);
    settings_clear(&settings);
    return import.doc;
}
