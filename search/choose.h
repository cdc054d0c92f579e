/* search/choose.h - what "auto" becomes: the fastest value that fits in memory.
 *
 * search/search.h with one answer: the fastest that fits (when none fits, the one that lacks the fewest bytes). A
 * schedule is one that the framework has; the naive one, which nobody runs to save memory, is never chosen.
 * Deterministic: ties go to the first in the order of the space, smaller and simpler values first.
 */
#ifndef ORR_SEARCH_CHOOSE_H
#define ORR_SEARCH_CHOOSE_H

#include "base/error.h"
#include "base/stop.h"
#include "base/team.h"
#include "search/goal.h"
#include "spec/spec.h"

/* True when some field of the spec is SPEC_AUTO. */
bool search_has_auto(const Spec *spec);

/* Copies `spec` with every auto field chosen. Fails when no assignment is valid. */
bool search_choose(const Spec *spec, Spec *ret_spec, GError **error);

/* The same with `reserve_bytes` of the GPU's memory kept free; where nothing fits then, as if none were. Ends early, with
 * what it has or a failure, when `stop` (may be NULL) says so. */
bool search_choose_reserved(const Spec *spec, double reserve_bytes, const OrrStop *stop, Spec *ret_spec,
                            GError **error);

typedef struct SearchChoosing {
    double reserve_bytes;
    const OrrStop *stop;            /* may be NULL */
    const OrrTeam *team;            /* that chooses together; NULL: this process alone */
    int jobs;                       /* threads; 0: all cores */
    SearchFor by;                   /* what is best */
    const CampaignAssumed *assumed; /* as in SearchOptions; unread where the step decides */
} SearchChoosing;

/* The same by days, cost or energy. */
bool search_choose_by(const Spec *spec, const SearchChoosing *how, Spec *ret_spec, GError **error);

#endif
