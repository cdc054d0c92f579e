/* search/scenario.h - a chosen configuration as a scenario file that can be run again.
 *
 * The scenario as it was written, with every degree, the micro-batch and what "auto" became in place, `search` taken out,
 * and paths made absolute. Running it gives the same picosecond.
 */
#ifndef ORR_SEARCH_SCENARIO_H
#define ORR_SEARCH_SCENARIO_H

#include "spec/load.h"

/* `asked` is what `source` was loaded as; `cluster` (JSON text, may be NULL) stands instead of the scenario's own cluster
 * where `chosen` has another. Free with orr_json_free. */
OrrJsonDoc *search_scenario(const SpecSource *source, const Spec *asked, const Spec *chosen,
                            const char *cluster, GError **error);
/* The same as text, indented, with a last newline; `out` is appended to. */
bool search_scenario_write(const SpecSource *source, const Spec *asked, const Spec *chosen,
                           const char *cluster, GString *out, GError **error);

#endif
