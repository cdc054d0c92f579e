/* search/mixed.h - a mixed cluster: how many layers each stage and how many micro-batches each replica should take. */
#ifndef ORR_SEARCH_MIXED_H
#define ORR_SEARCH_MIXED_H

#include "base/error.h"
#include "spec/spec.h"

/* parallel.stage_layers or parallel.replica_microbatches is "auto". */
bool search_mixed_asked(const Spec *spec);

/* Into `spec` what these become; everything else is known. Layers and micro-batches go one by one to whoever would be done
 * with them first, by the times of a pass on each type of GPU, as long as its memory holds them; the answer is the better
 * of that and the even split, by simulation (fits before faster), with up to 64 moves of one layer tried on it. Where
 * nothing fits, the one that lacks least. */
bool search_mixed_choose(Spec *spec, GError **error);

/* Numbers of a choice, where `asked` left it to the dealing: layers of each stage [stages], micro-batches of each replica
 * [data]; 0 numbers where it did not. g_free. */
int *search_mixed_layers(const Spec *asked, const Spec *chosen, int *ret_count);
int *search_mixed_microbatches(const Spec *asked, const Spec *chosen, int *ret_count);

#endif
