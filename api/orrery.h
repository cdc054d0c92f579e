/* orrery.h - liborrery: Orrery inside another program. JSON in, JSON out; the keys are those of the command line.
 *
 * A handle holds one scenario and its last answer. Handles are independent: use as many threads as you like, each with
 * handles of its own. No function prints, exits or changes the process; a failure is NULL or -1 and one sentence in
 * orr_error(). Texts belong to the handle and live until its next call. Presets are found in $ORRERY_SCENARIOS, beside
 * the library, or where it was installed.
 *
 *   OrrHandle *orrery = orr_new();
 *   if (orr_load(orrery, "scenarios/examples/gpt3-175b.json") != 0 || orr_set(orrery, "parallel.tensor=4") != 0)
 *       fprintf(stderr, "%s\n", orr_error(orrery));
 *   const char *report = orr_run(orrery, NULL);
 *   orr_free(orrery);
 *
 * Options are a JSON object or NULL; unknown keys are errors. Link with -lorrery (pkg-config orrery).
 */
#ifndef ORRERY_H
#define ORRERY_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ORR_API __attribute__((visibility("default")))
#else
#define ORR_API
#endif

typedef struct OrrHandle OrrHandle;

/* "0.1.0" */
ORR_API const char *orr_version(void);

/* Never NULL: memory that runs out ends the process, as in GLib. */
ORR_API OrrHandle *orr_new(void);
/* NULL: nothing. */
ORR_API void orr_free(OrrHandle *handle);
/* Of the last call that failed; "" when it did not. */
ORR_API const char *orr_error(const OrrHandle *handle);

/* Takes a scenario: a path, or the JSON text itself when its first character is "{". 0, or -1 with an error. Forgets what
 * orr_set() said. */
ORR_API int orr_load(OrrHandle *handle, const char *path_or_json);
/* Overrides a field, "parallel.tensor=8", as --set does; it is checked when the scenario is used. */
ORR_API int orr_set(OrrHandle *handle, const char *key_value);

/* Called now and then by long work with the share that is done; returning other than 0 stops it with what is known (search)
 * or ends it. From the calling thread or another. NULL: nobody is told. */
ORR_API void orr_on_progress(OrrHandle *handle, int (*progress)(double done_frac, void *data), void *data);

/* One step. Options: memory_reserve ("8 GiB", "10 %"), unfold, check, ideal, textbook. The report of `orrery run --format json`. */
ORR_API const char *orr_run(OrrHandle *handle, const char *options);
/* The best of every field that is "auto". Options: top, jobs, max_seconds, exhaustive, for ("step", "days",
 * "cost" or "energy"), memory_reserve. */
ORR_API const char *orr_search(OrrHandle *handle, const char *options);
/* How many GPUs. Options: deadline ("30 days"), budget_usd, power_mw, for (as in a search), gpus (a list), batch_range
 * ([low, high]), accelerators and clusters (lists of "NAME" or "NAME@USD"), memory_reserve. */
ORR_API const char *orr_plan(OrrHandle *handle, const char *options);
/* A run for every combination of some fields' values, on all cores. Options: vary ({"parallel.tensor": [4, 8]}, at most
 * 100,000 combinations), jobs (threads), ideal. The table of `orrery sweep --format json`. */
ORR_API const char *orr_sweep(OrrHandle *handle, const char *options);
/* What binds and what would help. Options: memory_reserve. */
ORR_API const char *orr_explain(OrrHandle *handle, const char *options);
/* Another scenario beside it: fields that differ, times, memory, what each field does alone. Options: with (a path, or JSON text that
 * begins with "{"; it has to be given), quick, ideal. orr_set() changes both. */
ORR_API const char *orr_compare(OrrHandle *handle, const char *options);
/* A profiler's trace (a file, or a folder of ranks) by class of kernel; beside the loaded scenario's prediction where there is one. */
ORR_API const char *orr_trace(OrrHandle *handle, const char *path);
/* Weeks with failures. Options: replicas, seed, days, jobs, ideal. */
ORR_API const char *orr_campaign(OrrHandle *handle, const char *options);
/* Replays measurement files: a JSON list of paths. Needs no scenario. */
ORR_API const char *orr_validate(OrrHandle *handle, const char *paths);

/* Any other command of the program, which needs no scenario here: `words` is a JSON list, as ["collective", "--ranks=64",
 * "--cluster=dgx-h100", "--format=json"]. The answer is what the program would print. */
ORR_API const char *orr_command(OrrHandle *handle, const char *words);
/* What the last orr_command() said besides, a line each, as an import's list of settings that it could not take over. */
ORR_API const char *orr_notes(const OrrHandle *handle);

/* The HTML page. Options: search (true), max_seconds, compare (a path), memory_reserve. */
ORR_API const char *orr_page(OrrHandle *handle, const char *options);
/* The pipeline of one step as text for a terminal, `width` columns. */
ORR_API const char *orr_timeline(OrrHandle *handle, int width);
/* The CSV of a figure: "pipeline", "memory", "stages", "waterfall". */
ORR_API const char *orr_csv(OrrHandle *handle, const char *figure);

/* Names of the presets of a kind ("models", "accelerators", "clusters", "frameworks", "faults", "storage", "examples"): a JSON list. */
ORR_API const char *orr_list(OrrHandle *handle, const char *kind);
/* What a field of a scenario is, as text: "parallel.zero". */
ORR_API const char *orr_help(OrrHandle *handle, const char *key);
/* A preset's file: JSON. */
ORR_API const char *orr_preset(OrrHandle *handle, const char *kind, const char *name);

#ifdef __cplusplus
}
#endif

#endif
