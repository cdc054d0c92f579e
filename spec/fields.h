/* spec/fields.h - one field table a struct: reading, ranges, defaults, did-you-mean, the reference manual
 * (`orrery help KEY`) and the JSON Schema all come from it.
 */
#ifndef ORR_SPEC_FIELDS_H
#define ORR_SPEC_FIELDS_H

#include "base/json.h"
#include "base/units.h"
#include "spec/spec.h"

typedef enum {
    SPEC_TYPE_INT,      /* int; whole numbers only */
    SPEC_TYPE_DOUBLE,   /* double; a number, or text with a unit when the field has one */
    SPEC_TYPE_BOOL,     /* bool */
    SPEC_TYPE_TRISTATE, /* int: 0, 1 or SPEC_AUTO; true/false in JSON */
    SPEC_TYPE_WORD,     /* enum stored as int: one of `words` */
    SPEC_TYPE_WORD_SET, /* unsigned bits: a list of words; word i is bit i */
    SPEC_TYPE_NAME,     /* char[]: text of at most size-1 bytes */
    SPEC_TYPE_OBJECT,   /* struct with its own table */
    SPEC_TYPE_CUSTOM,   /* `read` does it (precision maps, layouts, presets by name) */
} SpecType;

typedef enum {
    SPEC_FIELD_REQUIRED = 1,
    SPEC_FIELD_AUTO = 2,    /* "auto" is allowed and stored as SPEC_AUTO */
    SPEC_FIELD_DERIVED = 4, /* absent: SPEC_UNSET (numbers, words) or left alone; filled in after reading */
    SPEC_FIELD_PRESET = 8,  /* an object that may also be the name of a preset (resolved before reading) */
    SPEC_FIELD_FITTED = 16, /* an object of hardware figures: its defaults are not noted one by one */
} SpecFieldFlags;

typedef struct SpecTable SpecTable;
typedef struct SpecReadContext SpecReadContext; /* file name, notes of defaulted fields: spec/read.h */

typedef struct SpecField {
    const char *key;
    SpecType type;
    OrrUnit unit;
    size_t offset, size;      /* in the struct; size matters for SPEC_TYPE_NAME */
    double min, max;          /* inclusive; numbers only */
    const char *default_text; /* as in JSON ("1", "\"adam\"", "false"); NULL: see flags */
    const char *absent_text;  /* help says this of a derived value's default; NULL: `help` does, or none */
    unsigned flags;
    const SpecWords *words;
    const SpecTable *table;
    /* SPEC_TYPE_CUSTOM: `target` is the struct at `offset`; file and key are put before its messages. */
    bool (*read)(SpecReadContext *context, const OrrJson *node, void *target, GError **error);
    const char *help;   /* one sentence: meaning, unit, source when it is a formula's symbol */
    const char *form;   /* SPEC_TYPE_CUSTOM: what may be written, for messages and the manual; NULL: text */
    const char *schema; /* SPEC_TYPE_CUSTOM: its JSON Schema; NULL: anything */
} SpecField;

struct SpecTable {
    const char *name; /* "parallel" */
    const char *help;
    const SpecField *fields;
    int count;
    bool in_groups; /* keys stand in groups whose names people leave out */
};

/* Writing tables by hand, a line a field. */
#define SPEC_F_INT(st, member, lo, hi, def, fl, text)                                                        \
    {                                                                                                        \
        .key = #member, .type = SPEC_TYPE_INT, .offset = offsetof(st, member), .min = (lo), .max = (hi),     \
        .default_text = (def), .flags = (fl), .help = (text)                                                 \
    }
#define SPEC_F_DOUBLE(st, member, u, lo, hi, def, fl, text)                                                  \
    {                                                                                                        \
        .key = #member, .type = SPEC_TYPE_DOUBLE, .unit = (u), .offset = offsetof(st, member), .min = (lo),  \
        .max = (hi), .default_text = (def), .flags = (fl), .help = (text)                                    \
    }
#define SPEC_F_BOOL(st, member, def, fl, text)                                                               \
    {                                                                                                        \
        .key = #member, .type = SPEC_TYPE_BOOL, .offset = offsetof(st, member), .default_text = (def),       \
        .flags = (fl), .help = (text)                                                                        \
    }
#define SPEC_F_WORD(st, member, w, def, fl, text)                                                            \
    {                                                                                                        \
        .key = #member, .type = SPEC_TYPE_WORD, .offset = offsetof(st, member), .words = (w),                \
        .default_text = (def), .flags = (fl), .help = (text)                                                 \
    }

extern const SpecTable spec_table_scenario, spec_table_model, spec_table_accelerator, spec_table_cluster,
    spec_table_training, spec_table_parallel, spec_table_execution, spec_table_framework, spec_table_offload,
    spec_table_host, spec_table_faults, spec_table_storage, spec_table_jitter, spec_table_data,
    spec_table_search, spec_table_measurement, spec_table_network, spec_table_workload;
/* spec/fields_kernel.c: the "model" block of accelerators and "collectives" block of clusters. */
extern const SpecTable spec_table_kernel_model, spec_table_collective_model;

/* Reads `object` into the struct at `target` by `table`. Used by every table above and by calibrate/. */
bool spec_read_table(SpecReadContext *context, const SpecTable *table, const OrrJson *object, void *target,
                     GError **error);

#endif
