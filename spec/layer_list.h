/* spec/layer_list.h - a network that is no transformer, as a list of layers with the costs of one sample.
 *
 * { "name", "flops" (of the forward), "parameters", "activation_bytes" (kept for the backward), "output_bytes" (what the
 * next layer reads), "groups" (of channels that read their own alone), "kernels" (of the forward), "seconds" (measured,
 * forward and backward; 0: from the others), "repeat" } in forward order.
 */
#ifndef ORR_SPEC_LAYER_LIST_H
#define ORR_SPEC_LAYER_LIST_H

#include "spec/spec.h"

typedef struct SpecLayer {
    char name[48];
    double flops, parameters, activation_bytes, output_bytes, seconds;
    int kernels, groups, repeat;
} SpecLayer;

/* Layer `*at` of the text and moves on to the next; false behind the last. `*at` starts as the text. */
bool spec_layer_list_next(const char **at, SpecLayer *ret_layer);

#endif
