/* spec/fields_measurement.c - field tables of measurement rows. */
#include "spec/fields_internal.h"
#include "spec/measurement.h"

static const char *const memory_kind_list[] = {"allocated", "reserved", "device"};
const SpecWords spec_words_memory_kind = {"a kind of memory figure", memory_kind_list, 3, 0};

#define MEASURED(member, unit_, hi, text) SPEC_F_DOUBLE(SpecMeasured, member, unit_, 0, hi, "0", 0, text)

static const SpecField measured_fields[] = {
    MEASURED(step_s, ORR_UNIT_SECONDS, 1e9, "One optimizer step; 0: not published."),
    SPEC_F_BOOL(SpecMeasured, step_published, "false", 0,
                "False: step_s was computed from another published figure."),
    MEASURED(tokens_per_s_per_gpu, ORR_UNIT_NONE, 1e12, "Tokens a second and GPU."),
    MEASURED(flops_per_s_per_gpu, ORR_UNIT_FLOPS_PER_S, 1e20, "FLOP rate by the source's own convention."),
    MEASURED(mfu, ORR_UNIT_FRAC, 1, "Model FLOPs utilisation by the source's own convention."),
    MEASURED(peak_memory_bytes, ORR_UNIT_BYTES, 1e15, "Peak memory of the fullest GPU, of kind memory_kind."),
    MEASURED(peak_reserved_bytes, ORR_UNIT_BYTES, 1e15, "Peak memory that the allocator reserved."),
    SPEC_F_WORD(SpecMeasured, memory_kind, &spec_words_memory_kind, "\"allocated\"", 0,
                "allocated: by tensors; reserved: by the allocator; device: as nvidia-smi shows."),
    MEASURED(memory_uncertainty_frac, ORR_UNIT_FRAC, 1, "0.074 where GB or GiB is unclear."),
    SPEC_F_BOOL(
        SpecMeasured, memory_assumed, "false", 0,
        "True: what decides the peak, such as the attention kernel, is not published but assumed; the "
        "memory reserve leaves the row out."),
};
static SPEC_TABLE(table_measured, "measured", "What was measured.", measured_fields);

static bool read_confidence(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    static const char *const words[] = {"full", "partial"};
    static const SpecWords confidence = {"a confidence", words, 2, 0};
    int value = 0;
    if (!spec_read_word(context, &confidence, node, &value, error))
        return false;
    *(bool *)target = value == 1;
    return true;
}

static bool read_scenario(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    if (orr_json_type(node) != ORR_JSON_OBJECT)
        return spec_read_fail(context, node, error, "is %s; give a scenario object",
                              orr_json_type_name(node));
    *(const OrrJson **)target = node;
    return true;
}

static const SpecField row_fields[] = {
    {.key = "id",
     .type = SPEC_TYPE_NAME,
     .offset = offsetof(SpecMeasurement, id),
     .size = sizeof(((SpecMeasurement *)0)->id),
     .flags = SPEC_FIELD_REQUIRED,
     .help = "Unique name of the row."},
    SPEC_F_NOTE("source", "Where the figures are published."),
    SPEC_F_NAME(SpecMeasurement, date, "\"\"", "Year and month."),
    {.key = "confidence",
     .type = SPEC_TYPE_CUSTOM,
     .offset = offsetof(SpecMeasurement, partial),
     .default_text = "\"full\"",
     .read = read_confidence,
     .form = "full or partial",
     .schema = "{\"enum\":[\"full\",\"partial\"]}",
     .help = "partial: something that matters had to be assumed."},
    {.key = "scenario",
     .type = SPEC_TYPE_CUSTOM,
     .offset = offsetof(SpecMeasurement, scenario),
     .flags = SPEC_FIELD_REQUIRED,
     .read = read_scenario,
     .form = "a scenario object",
     .table = &spec_table_scenario,
     .help = "What was run; \"auto\" where the source does not say."},
    SPEC_F_OBJECT(SpecMeasurement, measured, table_measured, SPEC_FIELD_REQUIRED, "What was measured."),
    SPEC_F_NOTE("flops_convention", "What the source counts as FLOPs, for people."),
    SPEC_F_NOTE("assumed", "What the source does not say and was filled in, for people."),
    SPEC_F_NOTE("note", "Anything else, for people."),
};
SPEC_TABLE(spec_table_measurement, "measurement", "One row of a measurement file: a published run.",
           row_fields);

bool spec_read_measurement(const OrrJson *row, const char *where, SpecMeasurement *ret_measurement,
                           GError **error)
{
    SpecMeasurement measurement = {0};
    SpecReadContext context;
    spec_read_context_init(&context, where, &spec_table_scenario, true, NULL);
    const bool ok = spec_read_table(&context, &spec_table_measurement, row, &measurement, error);
    spec_read_context_clear(&context);
    if (ok)
        *ret_measurement = measurement;
    return ok;
}
