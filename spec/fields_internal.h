/* spec/fields_internal.h - macros and readers that the spec/fields_*.c files share. */
#ifndef ORR_SPEC_FIELDS_INTERNAL_H
#define ORR_SPEC_FIELDS_INTERNAL_H

#include <stddef.h>

#include "spec/read.h"

#define SPEC_F_NAME(st, member, def, text)                                                                   \
    {                                                                                                        \
        .key = #member, .type = SPEC_TYPE_NAME, .offset = offsetof(st, member),                              \
        .size = sizeof(((st *)0)->member), .default_text = (def), .help = (text)                             \
    }
#define SPEC_F_OBJECT(st, member, tab, fl, text)                                                             \
    {                                                                                                        \
        .key = #member, .type = SPEC_TYPE_OBJECT, .offset = offsetof(st, member),                            \
        .size = sizeof(((st *)0)->member), .flags = (fl), .table = &(tab), .help = (text)                    \
    }
/* A group of keys that lie in the outer struct itself. */
#define SPEC_F_GROUP(name, st, tab, fl, text)                                                                \
    {                                                                                                        \
        .key = (name), .type = SPEC_TYPE_OBJECT, .size = sizeof(st), .flags = (fl), .table = &(tab),         \
        .help = (text)                                                                                       \
    }
/* `tab`: the keys where an object may be written, or NULL. */
#define SPEC_F_CUSTOM(st, member, reader, def, fl, form_, schema_, tab, text)                                \
    {                                                                                                        \
        .key = #member, .type = SPEC_TYPE_CUSTOM, .offset = offsetof(st, member),                            \
        .size = sizeof(((st *)0)->member), .default_text = (def), .flags = (fl), .read = (reader),           \
        .form = (form_), .schema = (schema_), .table = (tab), .help = (text)                                 \
    }
#define SPEC_F_NOTE(name, text)                                                                              \
    {                                                                                                        \
        .key = (name), .type = SPEC_TYPE_CUSTOM, .read = spec_read_note,                                     \
        .form = "text, or an object or list of texts",                                                       \
        .schema = "{\"type\":[\"string\",\"object\",\"array\"]}", .help = (text)                             \
    }
#define SPEC_F_SCHEMA                                                                                        \
    {                                                                                                        \
        .key = "schema", .type = SPEC_TYPE_CUSTOM, .read = spec_read_schema_version, .form = "1",            \
        .schema = "{\"const\":1}", .help = "Version of the file format: 1."                                  \
    }
/* What editors complete by. */
#define SPEC_F_EDITOR                                                                                        \
    {                                                                                                        \
        .key = "$schema", .type = SPEC_TYPE_CUSTOM, .read = spec_read_note, .form = "text",                  \
        .schema = "{\"type\":\"string\"}",                                                                   \
        .help = "Address of a JSON Schema, by which editors complete and check the file; not read here."     \
    }
#define SPEC_F_PRESET(kind)                                                                                  \
    {                                                                                                        \
        .key = "preset", .type = SPEC_TYPE_CUSTOM, .read = spec_read_note, .form = "text",                   \
        .schema = "{\"type\":\"string\"}",                                                                   \
        .help = "Name (or path) of one of the " kind                                                         \
                " that this object starts from; its other keys override it."                                 \
    }
/* What every preset file may hold beside its fields. */
#define SPEC_F_FILE_KEYS(kind)                                                                               \
    SPEC_F_SCHEMA, SPEC_F_EDITOR, SPEC_F_PRESET(kind),                                                       \
        SPEC_F_NOTE("source", "Where the numbers come from, whole or key by key.")

#define SPEC_TABLE(variable, title, text, list)                                                              \
    const SpecTable variable = {.name = title, .help = text, .fields = list, .count = (int)G_N_ELEMENTS(list)}

extern const SpecTable spec_table_recipe_optimizer;

/* spec/fields_recipe_learned.c: the list "learned" of a recipe; `target` is a SpecRecipeLearned. */
extern const SpecTable spec_table_recipe_learned;
bool spec_read_recipe_learned(SpecReadContext *context, const OrrJson *node, void *target, GError **error);

/* spec/fields_engine.c: the group "engine" of a recipe. */
extern const SpecTable spec_table_engine;

/* A text that has to be there and says something. */
#define SPEC_F_CUSTOM_SOURCE(text)                                                                           \
    {                                                                                                        \
        .key = "source", .type = SPEC_TYPE_CUSTOM, .flags = SPEC_FIELD_REQUIRED, .read = spec_read_source,   \
        .form = "text: the code, paper or benchmark", .schema = "{\"type\":\"string\",\"minLength\":1}",     \
        .help = text                                                                                         \
    }
bool spec_read_source(SpecReadContext *context, const OrrJson *node, void *target, GError **error);

/* spec/fields_batches.c: training.batch_schedule; `target` is a SpecTraining. */
bool spec_read_batches(SpecReadContext *context, const OrrJson *node, void *target, GError **error);

/* spec/fields_recipe_ops.c: the list "ops" of a recipe; `target` is a SpecRecipeOps. */
extern const SpecTable spec_table_recipe_op;
bool spec_read_recipe_ops(SpecReadContext *context, const OrrJson *node, void *target, GError **error);

/* spec/moe.c: reads a list of layers with experts into the SpecMoe at `target`. */
extern const SpecTable spec_table_moe_run;
/* spec/fields_framework_defaults.c: the group "defaults" of a recipe. */
extern const SpecTable spec_table_recipe_defaults;
bool spec_moe_read_runs(SpecReadContext *context, const OrrJson *node, void *target, GError **error);

/* spec/layer_list.c: reads a list of layers into `model`, whose `layers` becomes their number. */
extern const SpecTable spec_table_layer;
bool spec_layer_list_take(SpecReadContext *context, const OrrJson *list, SpecModel *model, GError **error);

/* spec/generation.c: a generation's name, or its traits; `target` is a SpecGeneration. */
extern const SpecTable spec_table_generation;
bool spec_read_generation(SpecReadContext *context, const OrrJson *node, void *target, GError **error);

/* spec/measured.c: rows of seconds, as a text; `target` is a const char *. */
extern const SpecTable spec_table_measured;
bool spec_read_measured(SpecReadContext *context, const OrrJson *node, void *target, GError **error);

/* spec/fields_offload.c */
bool spec_read_offload(SpecReadContext *context, const OrrJson *node, void *target, GError **error);
bool spec_read_schema_version(SpecReadContext *context, const OrrJson *node, void *target, GError **error);

/* spec/fields_data.c: `target` is a SpecData. */
bool spec_read_data(SpecReadContext *context, const OrrJson *node, void *target, GError **error);

/* spec/fields_jitter.c: `target` is a SpecJitter. */
extern const SpecTable spec_table_adapter, spec_table_lengths, spec_table_freeze;
bool spec_read_freeze(SpecReadContext *context, const OrrJson *node, void *target, GError **error);
bool spec_read_adapter(SpecReadContext *context, const OrrJson *node, void *target, GError **error);
bool spec_read_lengths(SpecReadContext *context, const OrrJson *node, void *target, GError **error);
bool spec_read_jitter(SpecReadContext *context, const OrrJson *node, void *target, GError **error);

/* spec/fields_workload.c: `target` is a SpecWorkload. */
bool spec_read_workload(SpecReadContext *context, const OrrJson *node, void *target, GError **error);

/* spec/fields_faults.c: `target` is a SpecFaults. */
bool spec_read_faults(SpecReadContext *context, const OrrJson *node, void *target, GError **error);

#endif
