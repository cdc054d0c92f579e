/* api/presets.h - the folder of presets, by kind and name. */
#ifndef ORR_API_PRESETS_H
#define ORR_API_PRESETS_H

#include "base/error.h"

/* Appends a JSON list of the names of scenarios/KIND/NAME.json, in order. */
bool api_presets_list(const char *kind, GString *out, GError **error);
/* Appends the file's text. */
bool api_presets_read(const char *kind, const char *name, GString *out, GError **error);

#endif
