/* spec/fields_batches.c - training.batch_schedule: its table, reader and contradictions. Tested: unit/answer/test_batches.c */
#include "spec/checks.h"
#include "spec/fields_internal.h"

static const SpecField batches_fields[] = {
    SPEC_F_INT(SpecBatches, global_batch, 1, 1e9, NULL, SPEC_FIELD_REQUIRED, "Sequences of a step."),
    SPEC_F_INT(SpecBatches, by, 0, 1e9, "0", 0,
               "Sequences by which the batch grows until the next entry's size, or the run's own. Each size "
               "lasts equally many sequences (Megatron-LM's --rampup-batch-size). 0: it stays."),
    SPEC_F_INT(SpecBatches, sequence_length, 0, 1e9, "0", 0, "Tokens of a sequence; 0: the run's own."),
    SPEC_F_DOUBLE(SpecBatches, tokens, ORR_UNIT_TOKENS, 0, 1e18, "0", 0, "Tokens that it lasts."),
    SPEC_F_DOUBLE(SpecBatches, samples, ORR_UNIT_NONE, 0, 1e15, "0", 0, "Or sequences that it lasts."),
};
static SPEC_TABLE(spec_table_batches, "an entry of training.batch_schedule", "", batches_fields);

bool spec_read_batches(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecTraining *training = target;
    const gsize length = context->path->len;
    const int count = orr_json_type(node) == ORR_JSON_LIST ? orr_json_count(node) : -1;
    if (count < 0 || count > SPEC_MOST_BATCHES)
        return spec_read_fail(
            context, NULL, error,
            "is not a list of at most %d entries; write [{\"global_batch\": 512, \"tokens\": 10e9}]",
            SPEC_MOST_BATCHES);
    training->batches_count = 0;
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item)) {
        SpecBatches *entry = &training->batches[training->batches_count];
        *entry = (SpecBatches){0};
        g_string_append_printf(context->path, "[%d]", training->batches_count++);
        if (!spec_read_table(context, &spec_table_batches, item, entry, error))
            return false;
        if ((entry->tokens > 0) == (entry->samples > 0))
            return spec_read_fail(context, NULL, error,
                                  "does not say how long it lasts; give tokens or samples, above 0");
        g_string_truncate(context->path, length);
    }
    return true;
}

int spec_batches_next(const SpecTraining *training, int index)
{
    return index + 1 < training->batches_count ? training->batches[index + 1].global_batch
                                               : training->global_batch;
}

double spec_batches_tokens(const SpecTraining *training, int index)
{
    const SpecBatches *entry = &training->batches[index];
    return entry->tokens > 0 ? entry->tokens
                             : entry->samples * (entry->sequence_length > 0 ? entry->sequence_length
                                                                            : training->sequence_length);
}

static bool check_entry(const Check *check, int index)
{
    const SpecTraining *training = &check->spec->training;
    const SpecBatches *entry = &training->batches[index];
    const int next = spec_batches_next(training, index), data = check->spec->parallel.data,
              micro = training->micro_batch;
    const int64_t whole = (int64_t)MAX(1, data) * MAX(1, micro);
    if (entry->by > 0 && (next <= entry->global_batch || (next - entry->global_batch) % entry->by != 0))
        return spec_check_fail(
            check,
            "training.batch_schedule[%d].by: %d does not lead from %d sequences to the next "
            "entry's %d; give a divisor of what lies between",
            index, entry->by, entry->global_batch, next);
    if (spec_check_known(data) && spec_check_known(micro) &&
        (entry->global_batch % whole != 0 || entry->by % whole != 0))
        return spec_check_fail(
            check,
            "training.batch_schedule[%d].%s: %d is not a multiple of micro_batch %d x data %d, so "
            "that the replicas could not share each batch; give one",
            index, entry->global_batch % whole != 0 ? "global_batch" : "by",
            entry->global_batch % whole != 0 ? entry->global_batch : entry->by, micro, data);
    return true;
}

bool spec_check_batches(const Check *check)
{
    const SpecTraining *training = &check->spec->training;
    double tokens = 0;
    if (training->batches_count == 0)
        return true;
    if (check->spec->parallel.replica_microbatches_count != 0 || check->spec->workload.given)
        return spec_check_fail(
            check, "training.batch_schedule: nothing deals its batches out to %s; leave it out",
            check->spec->workload.given ? "the roles of a workload" : "parallel.replica_microbatches");
    for (int i = 0; i < training->batches_count; i++) {
        tokens += spec_batches_tokens(training, i);
        if (!check_entry(check, i))
            return false;
    }
    return (training->tokens > tokens) ||
           spec_check_fail(
               check,
               "training.batch_schedule: its entries last %.6g tokens, and training.tokens is %.6g; give "
               "the whole run more than that",
               tokens, training->tokens);
}
