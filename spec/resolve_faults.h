/* spec/resolve_faults.h - presets of faults and storage become their objects. */
#ifndef ORR_SPEC_RESOLVE_FAULTS_H
#define ORR_SPEC_RESOLVE_FAULTS_H

#include "base/json.h"

/* In a scenario: `storage`, `faults` and `faults.checkpoint.storage`, each a name, a path or an object that may start from
 * a preset. Arguments as of spec_resolve_scenario(). */
bool spec_resolve_faults(OrrJsonDoc *doc, const char *where, const char *base_dir, GPtrArray *profiles,
                         GError **error);

#endif
