/* spec/load.h - from JSON to a checked Spec.
 *
 * A scenario is read strictly (unknown keys, wrong types and ranges are errors with a suggestion),
 * presets and profiles are looked up, `--set` overrides are applied to the JSON before loading,
 * defaults are filled in and noted, and contradictions are refused. On failure nothing is returned and
 * the error is one sentence: file, key, value, what would work.
 */
#ifndef ORR_SPEC_LOAD_H
#define ORR_SPEC_LOAD_H

#include "base/json.h"
#include "spec/spec.h"

typedef struct SpecSource {
    char *resolved;       /* the scenario after --set, canonical JSON text */
    char *scenario_hash;  /* hash of the whole resolved scenario, presets included */
    GPtrArray *profiles;  /* char*: "accelerators/a100-sxm4-80gb 1f2e..." every profile used and its hash */
    GPtrArray *defaulted; /* char*: "training.optimizer=adam" every field that was defaulted */
    GPtrArray *notes;     /* char*: what a Hugging Face configuration says and a model has no field for */
    char *folder;         /* that paths in it start from; NULL: from where the user stands */
    GPtrArray
        *texts; /* interned: what the Spec and copies of it point to: lists of layers, fabrics, orders */
} SpecSource;

/* Before this the Specs that were loaded with it are done with. */
void spec_source_clear(SpecSource *source);

/* Loads scenario file `path` with `sets` ("key.path=value", may be NULL, NULL-terminated).
 * `ret_source` may be NULL: texts that the Spec points to then stay until the process ends. With `allow_auto` false a field that is "auto" is an error that names it. */
bool spec_load_file(const char *path, const char *const *sets, bool allow_auto, Spec *ret_spec,
                    SpecSource *ret_source, GError **error);

/* The same from a JSON node (a measurement's "scenario"); `where` names it in messages. */
bool spec_load_json(const OrrJson *scenario, const char *where, const char *const *sets, bool allow_auto,
                    Spec *ret_spec, SpecSource *ret_source, GError **error);

/* The scenario that `source` was loaded with once more, with further `sets`; fields may be "auto". */
bool spec_load_again(const SpecSource *source, const char *where, const char *const *sets, Spec *ret_spec,
                     SpecSource *ret_source, GError **error);

/* A role of the scenario's loop, as a scenario: the one that `source` was loaded with, without its `workload`, and with what
 * the role says in place of it, and `ranks`. Its batch is one sequence for each GPU. */
bool spec_load_role(const Spec *spec, const SpecSource *source, int role, SpecRanks ranks, const char *where,
                    Spec *ret_spec, SpecSource *ret_source, GError **error);

/* The scenario at another of search.precision: false where `run` would refuse it; *ret_spec is `spec` where that precision
 * is its own. */
bool spec_load_at_precision(const Spec *spec, SpecPrecision precision, Spec *ret_spec);

/* Contradictions: products, divisibility, ranges that depend on each other. Called by the loaders; the
 * search calls it on every point. `where` as above; "": none before the message. Fields still SPEC_AUTO are passed over. */
bool spec_check(const Spec *spec, const char *where, GError **error);

/* The batch is as many sequences for each data-parallel rank. spec_check() asks it of all but a loop's scenario with fields
 * that may be "auto": a search deals its GPUs anew, and what runs is asked before its step. */
bool spec_check_dealt(const Spec *spec, const char *where, GError **error);

/* Derived defaults after "auto" fields were chosen: data from the GPU count and so on. */
bool spec_complete(Spec *spec, const char *where, GError **error);

/* One preset. Kinds: "models", "accelerators", "clusters", "frameworks". */
bool spec_load_model(const char *name_or_path, SpecModel *ret_model, GError **error);
bool spec_load_accelerator(const char *name_or_path, SpecAccelerator *ret_accelerator, GError **error);
bool spec_load_framework(const char *name_or_path, SpecFramework *ret_framework, GError **error);
/* "faults", "storage" */
bool spec_load_faults(const char *name_or_path, SpecFaults *ret_faults, GError **error);
bool spec_load_storage(const char *name_or_path, SpecStorage *ret_storage, GError **error);
/* With its accelerator, calibration and defaults. */
bool spec_load_cluster(const char *name_or_path, SpecCluster *ret_cluster, GError **error);
/* The same from a scenario's "cluster" object; `where` names it in messages. */
bool spec_load_cluster_json(const OrrJson *cluster, const char *where, SpecCluster *ret_cluster,
                            GError **error);

/* Layers on each of pipeline x virtual_stages model stages (stage s holds counts[s] layers), by
 * stage_layers, first/last, embedding/loss as layers, or spread evenly (first and last get the fewer); lists of layers by
 * cost (spec/list_stages.h).
 * `counts` has room for pipeline x virtual_stages. */
bool spec_stage_layers(const Spec *spec, int *counts, GError **error);

#endif
