/* tests/unit/random_scenario.h - scenarios of drawn parts, read from text, and the step of one. */
#ifndef ORR_TESTS_RANDOM_SCENARIO_H
#define ORR_TESTS_RANDOM_SCENARIO_H

#include <string.h>

#include "report/report.h"
#include "spec/load.h"

#define ANY(random, list)        (list)[g_rand_int_range((random), 0, (int)G_N_ELEMENTS(list))]
#define POWER(random, most_bits) (1 << g_rand_int_range((random), 0, (most_bits) + 1))

/* Reads a scenario's JSON text, then applies `sets` ("key=value", NULL-terminated; NULL: none). False: it is refused, as most
 * random combinations of degrees are. Text that is not JSON fails the test. */
static inline bool scenario_load(const char *text, const char *const *sets, Spec *ret_spec)
{
    g_autoptr(GError) error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "scenario", &error);
    g_assert_no_error(error);
    const bool ok = spec_load_json(orr_json_root(doc), "scenario", sets, false, ret_spec, NULL, &error);
    orr_json_free(doc);
    return ok;
}

/* The step in ps; 0: refused, as a step that is longer than the clock is. `ret_fits` (may be NULL): it fits in memory. */
static inline int64_t scenario_step_ps(const Spec *spec, bool *ret_fits)
{
    const ReportOptions options = {0};
    OrrArena *arena = orr_arena_new();
    Report report;
    const bool ok = report_run(spec, NULL, &options, arena, &report, NULL);
    const int64_t ps = ok ? report.step_ps : 0;
    if (ret_fits != NULL)
        *ret_fits = ok && report.fits;
    orr_arena_free(arena);
    return ps;
}

#endif
