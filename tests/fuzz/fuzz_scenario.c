/* tests/fuzz/fuzz_scenario.c - bytes as a scenario: refused with a message that names the file, or loaded, and then
 * simulated with its invariants checked when it is small enough to be quick.
 */
#include <stdint.h>
#include <string.h>

#include "report/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_quick(const Spec *spec)
{
    const int64_t stages = (int64_t)spec->parallel.pipeline * spec->parallel.virtual_stages;
    return stages * spec_microbatches(spec) <= 2048 && spec->model.layers <= 256;
}

static void simulate(const Spec *spec, const SpecSource *source)
{
    const ReportOptions options = {.check = true};
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    Report report;
    if (report_run(spec, source, &options, arena, &report, &error)) {
        g_assert_cmpint(report.step_ps, >, 0);
    } else {
        g_assert(error != NULL);
        g_assert(!g_error_matches(error, ORR_ERROR, ORR_ERROR_INTERNAL));
        g_error_free(error);
    }
    orr_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse((const char *)data, size, "fuzz.json", &error);
    if (doc == NULL) {
        g_error_free(error);
        return 0;
    }
    Spec *spec = g_new0(Spec, 1);
    SpecSource source = {0};
    if (spec_load_json(orr_json_root(doc), "fuzz.json", NULL, false, spec, &source, &error)) {
        if (is_quick(spec))
            simulate(spec, &source);
        spec_source_clear(&source);
    } else {
        g_assert(strstr(error->message, "fuzz.json") != NULL || strstr(error->message, ".json") != NULL);
        g_error_free(error);
    }
    g_free(spec);
    orr_json_free(doc);
    return 0;
}
