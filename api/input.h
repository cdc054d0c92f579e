/* api/input.h - where a scenario comes from: a file, or JSON that is already read. */
#ifndef ORR_API_INPUT_H
#define ORR_API_INPUT_H

#include "spec/load.h"

typedef struct ApiInput {
    const char *path;     /* of the file; with `json` the name that messages call it by */
    const OrrJson *json;  /* NULL: read `path` */
    const char *own_runs; /* a file of one's own measured runs, which correct what is predicted; NULL: none */
    bool loops;           /* who asks answers scenarios with a workload too; else they are refused */
} ApiInput;

/* Fields may be "auto". `ret_source` may be NULL. */
bool api_input_load(const ApiInput *input, char **sets, Spec *ret_spec, SpecSource *ret_source,
                    GError **error);

#endif
