/* tests/unit/checked_run_fixture.h - a scenario in a string, loaded and run under every check. */
#ifndef ORR_TEST_CHECKED_RUN_FIXTURE_H
#define ORR_TEST_CHECKED_RUN_FIXTURE_H

#include <string.h>

#include "base/json.h"
#include "report/report.h"

static inline bool run_text(const char *text, const char *const *sets, bool unfold, Report *ret_report,
                            OrrArena *arena, GError **error)
{
    const ReportOptions options = {.check = true, .unfold = unfold};
    Spec *spec = ORR_ARENA_NEW(arena, Spec, 1);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "here", error);
    const bool ok = spec_load_json(orr_json_root(doc), "here", sets, false, spec, NULL, error) &&
                    report_run(spec, NULL, &options, arena, ret_report, error);
    orr_json_free(doc);
    return ok;
}

static inline Report report_of(const char *text, const char *const *sets, OrrArena *arena)
{
    GError *error = NULL;
    Report report;
    run_text(text, sets, false, &report, arena, &error);
    g_assert_no_error(error);
    return report;
}

#define SETS(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
