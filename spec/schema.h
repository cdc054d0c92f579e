/* spec/schema.h - JSON Schemas (draft 2020-12) of every file kind, generated from the field tables. */
#ifndef ORR_SPEC_SCHEMA_H
#define ORR_SPEC_SCHEMA_H

#include "base/error.h"

/* Kinds: scenario, model, accelerator, cluster, framework, measurement; NULL-terminated. */
extern const char *const spec_schema_kinds[];

/* Appends the schema of one kind, or fails with the nearest kind. */
bool spec_schema_write(const char *kind, GString *out, GError **error);

#endif
