/* tests/unit/run_fixture.h - a shipped example, simulated, and what a writer makes of its report. */
#ifndef ORR_TESTS_RUN_FIXTURE_H
#define ORR_TESTS_RUN_FIXTURE_H

#include "base/file.h"
#include "base/json.h"
#include "report/report.h"

typedef struct Run {
    Spec *spec;
    SpecSource source;
    OrrArena *arena;
    Report report;
} Run;

typedef void (*RunWriter)(const Report *report, const ReportTraceAsk *ask);

/* scenarios/examples/<name>.json with one setting "key=value" (NULL: none). Free with run_free. */
static inline Run *run_example(const char *name, const char *set, const ReportOptions *options)
{
    g_autofree char *folder = orr_scenarios_dir(NULL), *file = g_strconcat(name, ".json", NULL);
    g_autofree char *path = g_build_filename(folder, "examples", file, NULL);
    const char *const sets[] = {set, NULL};
    GError *error = NULL;
    Run *run = g_new0(Run, 1);
    run->spec = g_new0(Spec, 1);
    run->arena = orr_arena_new();
    spec_load_file(path, sets, false, run->spec, &run->source, &error);
    g_assert_no_error(error);
    report_run(run->spec, &run->source, options, run->arena, &run->report, &error);
    g_assert_no_error(error);
    return run;
}

static inline void run_free(Run *run)
{
    orr_arena_free(run->arena);
    spec_source_clear(&run->source);
    g_free(run->spec);
    g_free(run);
}

static inline bool run_put(const char *text, gsize length, void *data)
{
    g_string_append_len(data, text, (gssize)length);
    return true;
}

/* What the writer writes of what is asked for (its `put` and `data` are filled in here), parsed. Free with orr_json_free. */
static inline OrrJsonDoc *run_written(const Run *run, RunWriter write, ReportTraceAsk ask)
{
    g_autoptr(GString) out = g_string_new(NULL);
    GError *error = NULL;
    ask.put = run_put;
    ask.data = out;
    write(&run->report, &ask);
    OrrJsonDoc *doc = orr_json_parse(out->str, out->len, "what was written", &error);
    g_assert_no_error(error);
    return doc;
}

#endif
