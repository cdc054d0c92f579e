/* api/input.c - loads a scenario from wherever it is. */
#include "api/input.h"

bool api_input_load(const ApiInput *input, char **sets, Spec *ret_spec, SpecSource *ret_source,
                    GError **error)
{
    const char *const *overrides = (const char *const *)sets;
    if (input->json == NULL)
        return spec_load_file(input->path, overrides, true, ret_spec, ret_source, error);
    return spec_load_json(input->json, input->path, overrides, true, ret_spec, ret_source, error);
}
