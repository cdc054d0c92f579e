/* spec/read.h - reading JSON by field tables: strict, with one-sentence errors.
 *
 * A context says where the JSON came from and collects what was defaulted. It is used for one reading
 * and owned by its caller.
 */
#ifndef ORR_SPEC_READ_H
#define ORR_SPEC_READ_H

#include "spec/fields.h"

/* In a SPEC_FIELD_DERIVED field that was left out: spec_complete() chooses it from other fields. */
#define SPEC_UNSET (-2)

struct SpecReadContext {
    const char *where;    /* file, for messages */
    const SpecTable *all; /* where a key that its table lacks may belong */
    GString *path;        /* key path being read */
    bool allow_auto;      /* else "auto" is an error that names the key */
    bool partial;         /* absent fields are left alone, presets may be names: checks one preset's file */
    GPtrArray *defaulted; /* char* "training.optimizer=adam"; NULL: not collected */
    GPtrArray
        *texts; /* holds what the target points to (spec/texts.h); NULL: that stays until the process ends */
    GPtrArray
        *mistakes; /* char*: what is wrong is kept here and reading goes on; NULL: the first one fails */
    int quiet;     /* above 0: inside fitted blocks, whose defaults are not collected */
};

void spec_read_context_init(SpecReadContext *context, const char *where, const SpecTable *all,
                            bool allow_auto, GPtrArray *defaulted);
void spec_read_context_clear(SpecReadContext *context);

/* Sets "<where>: <path>: <message>" and returns false. `node` may be NULL; with a node the message starts with its
 * value: "<where>: <path>: <value> <message>". */
bool spec_read_fail(const SpecReadContext *context, const OrrJson *node, GError **error, const char *format,
                    ...) G_GNUC_PRINTF(4, 5);

/* For SPEC_TYPE_CUSTOM readers. A word of `words`, as its index. */
bool spec_read_word(const SpecReadContext *context, const SpecWords *words, const OrrJson *node,
                    int *ret_value, GError **error);
bool spec_read_int(const SpecReadContext *context, const OrrJson *node, double min, double max,
                   int *ret_value, GError **error);
/* A number, or text with a unit, in the range of `field`. */
bool spec_read_number(const SpecReadContext *context, const SpecField *field, const OrrJson *node,
                      double *ret_value, GError **error);
bool spec_is_auto(const OrrJson *node);
/* For keys that people and tools read and Orrery does not: text, or an object or list of texts. */
bool spec_read_note(SpecReadContext *context, const OrrJson *node, void *target, GError **error);

/* "a whole number from 1 to 64", "true or false": what a field takes, for messages and the manual; g_free. */
char *spec_field_form(const SpecField *field);
const SpecField *spec_table_find(const SpecTable *table, const char *key);
/* What an unknown key of `table` was meant to be ("kernels.fused_rope"), there or elsewhere in `all`, or NULL; g_free. */
char *spec_table_suggestion(const SpecTable *table, const char *key, const SpecTable *all);

#endif
