/* spec/resolve_workload.c - a loop's batch as the batch of the training step that it runs. */
#include "spec/resolve_workload.h"

#include <math.h>

static double number_at(const OrrJson *object, const char *key, double absent)
{
    return object != NULL && orr_json_type(object) == ORR_JSON_OBJECT
               ? orr_json_number_of(object, key, absent)
               : absent;
}

static void set_absent(OrrJsonDoc *doc, const char *key, const char *path, double value)
{
    const OrrJson *training = orr_json_member(orr_json_root(doc), "training");
    if (training != NULL && (orr_json_type(training) != ORR_JSON_OBJECT || orr_json_member(training, key)))
        return;
    g_autofree char *text = g_strdup_printf("%.0f", value);
    const bool set = orr_json_set(doc, path, text, NULL);
    g_assert(set);
}

void spec_resolve_workload(OrrJsonDoc *doc)
{
    const OrrJson *workload = orr_json_member(orr_json_root(doc), "workload");
    if (workload == NULL || orr_json_type(workload) != ORR_JSON_OBJECT)
        return;
    const OrrJson *generation = orr_json_member(workload, "generation");
    const OrrJson *answer = generation != NULL && orr_json_type(generation) == ORR_JSON_OBJECT
                                ? orr_json_member(generation, "answer_tokens")
                                : NULL;
    const double sequences =
        number_at(generation, "prompts", 64) * number_at(generation, "samples_per_prompt", 1) *
        number_at(generation, "kept_frac", 1) / fmax(1, number_at(workload, "mini_batches", 1));
    const double tokens =
        fmax(1, number_at(generation, "prompt_tokens", 256)) + number_at(answer, "mean", 1024);
    set_absent(doc, "sequence_length", "training.sequence_length", 128 * ceil(tokens / 128));
    set_absent(doc, "global_batch", "training.global_batch", fmax(1, floor(sequences)));
}
