/* spec/moe.h - layers whose experts differ: model.moe.by_layer.
 *
 * A list of { "layers", "experts", "top_k", "expert_ffn_hidden" } in the order of the layers that have experts; what a part
 * leaves out is as model.moe says. A list that describes fewer layers than have experts repeats.
 */
#ifndef ORR_SPEC_MOE_H
#define ORR_SPEC_MOE_H

#include "spec/spec.h"

/* The part that describes the `index`-th layer with experts (0-based); NULL: model.moe's own figures do. */
const SpecMoeRun *spec_moe_run(const SpecMoe *moe, int index);

/* True when `expert` ranks share the experts of every layer evenly, and `slices` ranks the width of each. */
bool spec_moe_divides(const SpecMoe *moe, int expert, int slices);

/* Layers with experts of a model of `layers`. */
int spec_moe_layers(const SpecMoe *moe, int layers);

/* After reading: fills in what parts leave out, and which of them are alike; also `experts`, where parts alone say how many
 * there are. False, with a message that begins with `where`, for more than SPEC_MOE_KINDS different ones. */
bool spec_moe_complete(SpecMoe *moe, const char *where, GError **error);

#endif
