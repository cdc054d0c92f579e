/* Bytes as a scenario, a Hugging Face configuration and a measurement row: whatever they hold, a load either gives a
 * whole Spec or one sentence. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "spec/load.h"
#include "spec/measurement.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_error(GError *error)
{
    require(error != NULL && error->domain == ORR_ERROR && error->code != ORR_ERROR_INTERNAL);
    require(strchr(error->message, '\n') == NULL && g_utf8_validate(error->message, -1, NULL));
    g_error_free(error);
}

/* What was loaded says the same when it is loaded again. */
static void check_again(const Spec *spec, const SpecSource *source, bool allow_auto)
{
    GError *error = NULL;
    SpecSource again = {0};
    Spec *second = g_new0(Spec, 1);
    OrrJsonDoc *doc = orr_json_parse(source->resolved, strlen(source->resolved), "fuzz.json", &error);
    require(doc != NULL);
    require(spec_load_json(orr_json_root(doc), "fuzz.json", NULL, allow_auto, second, &again, &error));
    require(strcmp(source->scenario_hash, again.scenario_hash) == 0);
    require(spec_gpus(spec) == spec_gpus(second) && spec->parallel.data == second->parallel.data);
    spec_source_clear(&again);
    orr_json_free(doc);
    g_free(second);
}

static void load(const OrrJson *root, bool allow_auto)
{
    GError *error = NULL;
    SpecSource source = {0};
    Spec *spec = g_new0(Spec, 1);
    if (spec_load_json(root, "fuzz.json", NULL, allow_auto, spec, &source, &error)) {
        int counts[SPEC_MAX_STAGES];
        if (spec->parallel.pipeline > 0 && spec->parallel.virtual_stages > 0)
            require(spec_stage_layers(spec, counts, &error));
        if (!allow_auto)
            require(spec_microbatches(spec) >= 1);
        check_again(spec, &source, allow_auto);
        spec_source_clear(&source);
    } else {
        check_error(error);
    }
    g_free(spec);
}

static void load_model(const char *text)
{
    /* The model's door takes names and objects; an imported configuration comes as a scenario's "model". */
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse("{}", 2, "fuzz.json", &error);
    if (orr_json_set(doc, "model", text, &error))
        load(orr_json_root(doc), true);
    else
        check_error(error);
    orr_json_free(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse((const char *)data, size, "fuzz.json", &error);
    if (doc == NULL) {
        check_error(error);
        return 0;
    }
    load(orr_json_root(doc), true);
    load(orr_json_root(doc), false);
    SpecMeasurement row;
    if (orr_json_type(orr_json_root(doc)) == ORR_JSON_OBJECT &&
        !spec_read_measurement(orr_json_root(doc), "fuzz.json", &row, &error))
        check_error(error);
    g_autofree char *text = orr_json_dump(orr_json_root(doc));
    load_model(text);
    orr_json_free(doc);
    return 0;
}
