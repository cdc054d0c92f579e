/* api/kinds_internal.h - what kinds.c, kinds_base.c and machines.c share. */
#ifndef ORR_API_KINDS_INTERNAL_H
#define ORR_API_KINDS_INTERNAL_H

#include "api/kinds.h"

/* A scenario as one program, or one term of one machine, has it. */
typedef struct ApiBase {
    const char *framework; /* that was named; NULL: its own */
    Spec spec;
    SpecSource own;
    const SpecSource *source;
    char *reason; /* why the scenario is refused so; NULL: it is not */
} ApiBase;

/* Read anew with `sets`, so that what is derived follows; what is refused then is its reason. Owned by `kinds`. */
ApiBase *api_base_add(const ApiBase *from, const char *where, const char *const *sets, ApiKinds *kinds);

/* The scenario's own machine, into the list. */
ApiKind *api_kind_own(const ApiBase *base, ApiKinds *kinds);

/* The machine of `cluster` (a scenario's "cluster", without nodes) with as many GPUs as `base` has, into the list. `where`
 * names the cluster in errors. */
bool api_kind_add(const ApiBase *base, const OrrJson *cluster, const char *where, ApiKinds *kinds,
                  GError **error);

/* Machines that the file names, for each of the first `programs` bases. */
bool api_machines_add(const char *file, const char *where, guint programs, ApiKinds *kinds, GError **error);

#endif
