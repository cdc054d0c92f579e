/* api/handle.h - what the functions of orrery.h share. */
#ifndef ORR_API_HANDLE_H
#define ORR_API_HANDLE_H

#include "api/input.h"
#include "api/options.h"
#include "api/orrery.h"

struct OrrHandle {
    char *path;      /* NULL: nothing loaded */
    OrrJsonDoc *doc; /* a scenario given as text */
    GPtrArray *sets; /* char*, and a NULL at the end */
    GString *answer, *error, *notes;
    int (*progress)(double done_frac, void *data);
    void *progress_data;
};

/* What every call returns: its answer, or NULL and the error, which it takes. */
const char *api_answer(OrrHandle *handle, bool ok, GError *error);
char **api_sets(const OrrHandle *handle);
/* Begins a call that needs a scenario. */
bool api_begin(OrrHandle *handle, ApiInput *ret_input, GError **error);
/* Tells the handle's owner how far the work is; false: he wants no more of it. */
bool api_go_on(double done_frac, void *handle);

/* A file of one's own measured runs: a member `own_runs`. */
#define API_OWN_RUNS(type)                                                                                   \
    {                                                                                                        \
        "own_runs", API_OPTION_TEXT, offsetof(type, own_runs), 0, 0, false                                   \
    }
#define API_RESERVE(type)                                                                                    \
    {                                                                                                        \
        "memory_reserve", API_OPTION_TEXT, offsetof(type, reserve), 0, 0, false                              \
    }

#endif
