/* api/input.c - loads a scenario from wherever it is. */
#include "api/input.h"

#include "base/error.h"

/* False, with one sentence, where the scenario has a workload. */
static bool api_refuse_loop(const Spec *spec, const char *where, GError **error)
{
    return !spec->workload.given ||
           orr_fail(
               error, ORR_ERROR_INPUT,
               "%s: workload: a loop over several models is answered by run, "
               "search, plan, explain, report, sweep, campaign, compare, plot --what loop; remove it to ask "
               "its training step alone",
               where);
}

bool api_input_load(const ApiInput *input, char **sets, Spec *ret_spec, SpecSource *ret_source,
                    GError **error)
{
    const char *const *overrides = (const char *const *)sets;
    const bool ok =
        input->json == NULL
            ? spec_load_file(input->path, overrides, true, ret_spec, ret_source, error)
            : spec_load_json(input->json, input->path, overrides, true, ret_spec, ret_source, error);
    if (!ok || input->loops || api_refuse_loop(ret_spec, input->path, error))
        return ok;
    if (ret_source != NULL)
        spec_source_clear(ret_source);
    return false;
}
