/* spec/resolve.h - from what a person writes to one self-contained JSON document: names of presets become
 * their objects, overrides are merged on top, calibrations go in between.
 *
 * Precedence, first wins: scenario field, calibration, preset or profile, default.
 */
#ifndef ORR_SPEC_RESOLVE_H
#define ORR_SPEC_RESOLVE_H

#include "base/json.h"

/* A path, not a preset's name: it has a "/" or ends in .json. */
bool spec_is_path(const char *name);

/* Applies "key.path=value" to the root object. Where the path goes through a preset's name, the name becomes
 * {"preset": name} first (model, cluster, accelerator, framework; likewise recompute and states). */
bool spec_resolve_set(OrrJsonDoc *doc, const char *set, GError **error);

/* The scenario with every preset merged in; a new document. `base_dir`: what relative paths start from.
 * `profiles` (char*, may be NULL) collects "kind/name hash", `notes` likewise what a Hugging Face
 * configuration says that a model has no field for. */
OrrJsonDoc *spec_resolve_scenario(const OrrJson *scenario, const char *where, const char *base_dir,
                                  GPtrArray *profiles, GPtrArray *notes, GError **error);

/* One preset by name or path, as one object without "preset". Kinds: models, accelerators, clusters, frameworks,
 * calibrations, faults, storage. `where` and `key` name who asks, for messages. */
OrrJsonDoc *spec_resolve_preset(const char *kind, const char *name_or_path, const char *where,
                                const char *key, const char *base_dir, GPtrArray *profiles, GError **error);

/* A cluster (name, path or object) with its calibration and accelerator merged in. */
OrrJsonDoc *spec_resolve_cluster(const OrrJson *cluster, const char *where, const char *base_dir,
                                 GPtrArray *profiles, GError **error);

/* Names of the presets of one kind, sorted; char*, owned by the array. NULL with an error without a folder. */
GPtrArray *spec_preset_names(const char *kind, GError **error);
/* The file of a scenario as a command line names it: a path, "-", or an example's name. g_free; NULL with an error that
 * names the nearest. */
char *spec_scenario_path(const char *word, GError **error);
/* What was meant by a name that is none of `names`: "\"dgx-1\" or \"dgx-1-p100\"", or NULL. g_free. */
char *spec_preset_suggestion(const GPtrArray *names, const char *name);

#endif
