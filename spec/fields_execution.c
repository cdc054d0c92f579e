/* spec/fields_execution.c - field tables of execution, offload and the scenario as a whole. */
#include <string.h>

#include "spec/fields_internal.h"

static const SpecField execution_fields[] = {
    SPEC_F_OBJECT(SpecExecution, framework, spec_table_framework, SPEC_FIELD_PRESET,
                  "The training software: a profile's name, a path, or an object; default megatron-core."),
    SPEC_F_NAME(SpecExecution, framework_text, "\"\"", "The software in words, for people."),
    SPEC_F_WORD(SpecExecution, attention, &spec_words_attention, NULL, SPEC_FIELD_AUTO | SPEC_FIELD_DERIVED,
                "Kernels of the attention core; default: the framework's."),
    {.key = "compiled",
     .type = SPEC_TYPE_TRISTATE,
     .offset = offsetof(SpecExecution, compiled),
     .flags = SPEC_FIELD_AUTO | SPEC_FIELD_DERIVED,
     .help = "A compiler fuses element-wise kernels; default: as the framework's recipes have it; \"auto\": "
             "wherever the framework can."},
    SPEC_F_NAME(SpecExecution, cuda_graph, "\"\"",
                "What is captured in a graph, in the framework's words; empty: nothing."),
    {.key = "overlap",
     .type = SPEC_TYPE_WORD_SET,
     .offset = offsetof(SpecExecution, overlap),
     .words = &spec_words_overlap,
     .flags = SPEC_FIELD_AUTO | SPEC_FIELD_DERIVED,
     .help = "Communication that overlaps with compute; default: the framework's."},
    SPEC_F_CUSTOM(
        SpecExecution, measured_passes, spec_read_measured, "\"\"", 0,
        "the path of a file, or an object with passes", "{\"type\":[\"string\",\"object\"]}",
        &spec_table_measured,
        "Seconds that each pass took in a trace, by stage, replica and micro-batch; empty: passes are "
        "predicted."),
    {.key = "overlap_besides",
     .type = SPEC_TYPE_WORD_SET,
     .offset = offsetof(SpecExecution, overlap_besides),
     .words = &spec_words_overlap,
     .default_text = "[]",
     .help =
         "What runs that overlap grad_reduce and param_gather overlap besides; the framework's recipes for a "
         "model and GPU set it."},
};
SPEC_TABLE(spec_table_execution, "execution", "The software and how it is run.", execution_fields);

/* Read without notes: its defaults say nothing about a run. */
static bool read_search(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    if (orr_json_type(node) != ORR_JSON_OBJECT)
        return spec_read_fail(context, node, error, "is %s; give an object", orr_json_type_name(node));
    SpecReadContext inside = *context;
    inside.quiet++;
    return spec_read_table(&inside, &spec_table_search, node, target, error);
}

static const SpecField scenario_fields[] = {
    SPEC_F_SCHEMA,
    SPEC_F_EDITOR,
    SPEC_F_NAME(Spec, name, "\"\"", "What reports call the scenario."),
    SPEC_F_NOTE("comment", "What the scenario shows, for people."),
    SPEC_F_OBJECT(Spec, model, spec_table_model, SPEC_FIELD_REQUIRED | SPEC_FIELD_PRESET,
                  "The model: a preset's name or Hugging Face's (Qwen/Qwen2.5-7B), the path of a config.json "
                  "or model file, or an object."),
    SPEC_F_OBJECT(Spec, cluster, spec_table_cluster, SPEC_FIELD_REQUIRED | SPEC_FIELD_PRESET,
                  "The machine: a preset's name, a path, or an object."),
    SPEC_F_OBJECT(Spec, training, spec_table_training, SPEC_FIELD_REQUIRED,
                  "What is trained with: batch, sequence, precision, optimizer."),
    SPEC_F_OBJECT(Spec, parallel, spec_table_parallel, 0, "How the work is split over GPUs."),
    SPEC_F_OBJECT(Spec, execution, spec_table_execution, 0, "The software and how it is run."),
    SPEC_F_CUSTOM(Spec, offload, spec_read_offload, NULL, SPEC_FIELD_DERIVED,
                  "\"none\", \"activations\" (of all layers), \"optimizer\", \"params\" or an object", NULL,
                  &spec_table_offload, "What leaves the GPU's memory."),
    SPEC_F_CUSTOM(Spec, faults, spec_read_faults, NULL, SPEC_FIELD_DERIVED,
                  "a preset's name, a path or an object", NULL, &spec_table_faults,
                  "What fails in a run of weeks: read by 'orrery campaign', 'run' and 'plan'."),
    SPEC_F_OBJECT(Spec, storage, spec_table_storage, SPEC_FIELD_DERIVED | SPEC_FIELD_PRESET,
                  "Where checkpoints go: read by 'orrery campaign', 'run' and 'plan'."),
    SPEC_F_CUSTOM(Spec, jitter, spec_read_jitter, NULL, SPEC_FIELD_DERIVED,
                  "a preset's name, a path or an object", NULL, &spec_table_jitter,
                  "GPUs and links that are slower than others, always or from step to step."),
    SPEC_F_CUSTOM(Spec, data, spec_read_data, NULL, SPEC_FIELD_DERIVED, "an object", NULL, &spec_table_data,
                  "Where a step's input comes from and how fast, and passes that only evaluate."),
    SPEC_F_CUSTOM(Spec, workload, spec_read_workload, NULL, SPEC_FIELD_DERIVED,
                  "the name of a preset (grpo, ppo ...), a path or an object", NULL, &spec_table_workload,
                  "A loop of phases over several models, as reinforcement learning runs it."),
    SPEC_F_CUSTOM(Spec, search, read_search, NULL, SPEC_FIELD_DERIVED, "an object", NULL, &spec_table_search,
                  "Limits and ranges of the fields that are \"auto\"."),
};
SPEC_TABLE(spec_table_scenario, "scenario", "One training step to simulate.", scenario_fields);
