/* api/kinds.h - machines side by side: kinds of GPU ("NAME" or "NAME@USD"), each under each training program. */
#ifndef ORR_API_KINDS_H
#define ORR_API_KINDS_H

#include "base/error.h"
#include "plan/plan.h"
#include "spec/spec.h"

enum { API_KINDS_MOST = 64 }; /* machines of one question: a page of more is read by nobody */

/* What is named; each may be NULL. */
typedef struct ApiKindsAsk {
    const char *where; /* the scenario's name, for messages */
    char *const *accelerators, *const *clusters, *const *frameworks;
    const char *machines; /* a file of them with their terms (machines.c) */
} ApiKindsAsk;

typedef struct ApiKind {
    const char *framework; /* that was named; NULL: the scenario's own */
    Spec *spec;
    const SpecSource *source; /* that its rows' scenarios begin from */
    char *cluster_json;       /* what stands for the scenario's cluster there; NULL: that itself */
    char *reason;             /* why the program does not take the scenario; NULL: it does */
    char *name;               /* that a file gives it, with its terms; NULL: none */
    const char *machine;      /* the same without its terms */
    PlanTerms terms;
} ApiKind;

typedef struct ApiKinds {
    GPtrArray *bases; /* of each program */
    GArray *list;     /* ApiKind: program by program its accelerators, its clusters, then the file's */
} ApiKinds;

/* `base` (loaded as `source`) on each accelerator's reference node and each cluster, with as many GPUs as it has and the
 * price of a GPU-hour behind the "@"; on its own cluster where none is named. Layers and micro-batches that were to be
 * dealt out by kinds of GPUs are even where all are alike. A program has its own defaults. Fails where a word names
 * nothing, or there are too many; what a program makes of the scenario is its reason. */
bool api_kinds_load(const ApiKindsAsk *ask, const Spec *base, const SpecSource *source, ApiKinds *ret_kinds,
                    GError **error);
void api_kinds_clear(ApiKinds *kinds);

/* Plans one of them. One that cannot be planned on keeps its place with its reason (plan_drop()). */
void api_kind_plan(const ApiKind *kind, const PlanOptions *options, Plan *ret_plan);

#endif
