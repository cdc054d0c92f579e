/* api/loops.c - see loops.h. Tested: python/tests, cli/test_cli_one_answer */
#include "api/loops.h"

#include "base/error.h"
#include "campaign/effective.h"
#include "workload/lived.h"

bool api_simulation_lived(const ApiSimulation *simulation, const char *where, double ideal_days, bool ideal,
                          Spec *whole, Report *ret_report, GError **error)
{
    const Workload *workload = simulation->workload;
    *ret_report = simulation->report;
    if (workload == NULL)
        return ideal || campaign_assume_shipped(whole, ret_report, error);
    if (!(workload->days > 0) && !(ideal_days > 0))
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: workload.steps: is not given, so that the campaign has no end; give it, or --days", where);
    if (workload_lived(workload, &simulation->report, ideal_days, whole, ret_report, error))
        return true;
    g_prefix_error(error, "%s: ", where);
    return false;
}

bool api_loop_alone(const char *where, const char *names, bool given, GError **error)
{
    return !given ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "%s: %s are for one training; leave them out for a workload, whose roles say what "
                    "each runs on",
                    where, names);
}
