/* spec/placement.h - which GPU does what: rank numbers from parallel.order, and the scale-up domain of a rank. */
#ifndef ORR_SPEC_PLACEMENT_H
#define ORR_SPEC_PLACEMENT_H

#include <glib.h>

#include "spec/spec.h"

/* One way to split the ranks: `size` ranks, `stride` apart in rank order. */
typedef struct SpecDimension {
    int size;
    int64_t stride;
} SpecDimension;

/* A rank's number is the sum of index x stride over the dimensions of dense layers, and as well over those of
 * expert layers, which deal the same ranks out anew; the pipeline is common to both. */
typedef struct SpecPlacement {
    SpecDimension tensor, context, data, pipeline;
    SpecDimension expert_tensor, expert, expert_data, expert_pipeline;
} SpecPlacement;

/* Strides of a Spec whose degrees are known and whose order spec_check_order() has passed. */
void spec_placement(const Spec *spec, SpecPlacement *ret_placement);

/* GPUs of one scale-up domain that the job takes. A job is spread evenly over domains, as schedulers with segments do:
 * the largest number of whole nodes that a domain holds and that divides the job (64 of an NVL72's 72 for a
 * power of two); where that would leave more than half of a domain free, domains are filled one after the other. */
int spec_domain_gpus(const Spec *spec);

/* parallel.order is "auto": a search chooses it. */
bool spec_order_is_auto(const Spec *spec);

/* `order` names tp, cp, dp and pp once each, and ep where `needs_ep`. The message begins with `key`, where there is one. */
bool spec_check_order_names(const char *key, const char *order, bool needs_ep, GError **error);

/* parallel.order names tp, cp, dp and pp once each, and ep where there are expert ranks; dense and expert layers
 * agree on the pipeline. True of "auto". The message begins with the key. */
bool spec_check_order(const Spec *spec, GError **error);

#endif
