/* spec/fields_data.c - field table of a run's input. */
#include "spec/fields_internal.h"

static const SpecField data_fields[] = {
    SPEC_F_DOUBLE(SpecData, bytes_per_token, ORR_UNIT_NONE, 1e-3, 1e9, "2", 0,
                  "Bytes in storage that a token of input takes: 2 of text that is tokenised."),
    SPEC_F_DOUBLE(SpecData, tokens, ORR_UNIT_TOKENS, 0, 1e18, "0", 0,
                  "Tokens of the data set. A set smaller than training.tokens is read again. 0: as many as "
                  "training.tokens."),
    SPEC_F_DOUBLE(SpecData, front_end_bytes_per_s, ORR_UNIT_BYTES_PER_S, 0, 1e15, "0", 0,
                  "Bandwidth of one node to storage; 0: no limit."),
    SPEC_F_DOUBLE(
        SpecData, cache_bytes, ORR_UNIT_BYTES, 0, 1e18, "0", 0,
        "Memory or disks of a node that hold input. The share of the data set that fits is fetched once."),
    SPEC_F_INT(SpecData, workers, 1, 1e4, "1", 0, "Processes of a node that prepare input."),
    SPEC_F_DOUBLE(SpecData, tokens_per_s, ORR_UNIT_NONE, 0, 1e15, "0", 0,
                  "Tokens a second that one worker prepares; 0: no limit."),
    SPEC_F_INT(SpecData, prefetch, 0, 1e6, "2", 0,
               "Steps ahead for which input is fetched; 0: each step waits for its own."),
    SPEC_F_INT(SpecData, eval_every_steps, 0, 1e9, "0", 0, "Steps between two evaluations; 0: none."),
    SPEC_F_DOUBLE(SpecData, eval_tokens, ORR_UNIT_TOKENS, 0, 1e15, "0", 0,
                  "Tokens of one evaluation, forward only."),
};
SPEC_TABLE(spec_table_data, "data",
           "Where a step's input comes from and how fast, and passes that only evaluate.", data_fields);

bool spec_read_data(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecData *data = target;
    if (orr_json_type(node) != ORR_JSON_OBJECT)
        return spec_read_fail(context, node, error, "is %s; give an object", orr_json_type_name(node));
    SpecReadContext inside = *context;
    inside.quiet++;
    data->given = true;
    return spec_read_table(&inside, &spec_table_data, node, data, error);
}
