/* spec/help.h - the reference manual of scenario files and profiles, from the field tables. */
#ifndef ORR_SPEC_HELP_H
#define ORR_SPEC_HELP_H

#include "base/error.h"

/* Appends what `key` means: a field ("parallel.zero", "accelerator.power_w"), a table ("parallel"), or a key's last
 * part ("zero"), in which case every field of that name is shown. Fails with "did you mean". */
bool spec_help(const char *key, GString *out, GError **error);

/* Every field's full path, in the tables' order; char*, owned by the array. For completion and near words. */
GPtrArray *spec_help_keys(void);

#endif
