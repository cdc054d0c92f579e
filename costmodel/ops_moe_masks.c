/* costmodel/ops_moe_masks.c - tokens put into their experts' rows, and taken out, by products with one-hot masks.
 *
 * A sequence of s tokens has C = ceil(s k / E) f slots for each of E experts, f the capacity factor. Masks say which
 * token is in which slot, and products over tokens or slots move rows:
 *   dispatch  (E C) x s times s x h        combine  s x (E C) times (E C) x h, weighed
 * 2 s E C h FLOPs each, a k f s / (3 f_h k f) part of the experts' own: more than these for long sequences. Backward:
 * tokens' gradient; rows' gradient and the weighed mask's. Nothing is sorted, and all experts get as many rows.
 *
 * Masks move memory: the weighed one is written in 16 bits, the other as bytes, read and cast; the gradient of the weighed
 * one is summed over slots.
 * Ignored: cumulative sums of the choices (s k E elements), tokens that find no slot.
 * Source: [Lepikhin2020] algorithm 2; [MaxTextMoe] dense_matmul, generate_masks
 */
#include <math.h>

#include "costmodel/ops.h"
#include "costmodel/ops_moe.h"

#define MASK_BYTES          6 /* of a slot of a token: 2 + 1 written, 1 read, 2 written */
#define MASK_BACKWARD_BYTES 2
#define MASK_KERNELS        4

/* A product a sequence; what it does is nobody's model. */
static int push_product(const CostShape *shape, CostOps *ops, const char *name, CostPass pass,
                        const double shape_of[3])
{
    const double sequences = fmax(1, cost_moe_own_tokens(shape) / cost_masked_tokens(shape));
    CostOp *op = cost_push_gemm(ops, name, COST_MODULE_MOE, pass, shape_of[0], shape_of[1], shape_of[2],
                                sequences, shape->activation_dtype);
    op->model_flops = 0;
    return ops->count - 1;
}

double cost_masked_tokens(const CostShape *shape)
{
    return fmin(cost_moe_own_tokens(shape), shape->sequence / shape->context);
}

double cost_mask_slots(const SpecMoe *moe, double tokens)
{
    return moe->experts * ceil(ceil(tokens * moe->top_k / fmax(1, moe->experts)) * moe->capacity_factor);
}

bool cost_push_masked(const CostShape *shape, CostOps *ops, CostPass pass, bool spreads)
{
    const Spec *spec = shape->spec;
    const double s = cost_masked_tokens(shape), slots = cost_mask_slots(&spec->model.moe, s),
                 h = shape->hidden;
    const double mask = cost_moe_own_tokens(shape) * slots;
    if (spec->parallel.moe_dispatcher != SPEC_DISPATCHER_ONE_HOT)
        return false;
    if (pass == COST_FORWARD && spreads) {
        cost_push_memory(ops, "masks", COST_MODULE_MOE, COST_MEMORY_ELEMENTWISE, mask,
                         (CostMoved){.undivided = MASK_BYTES}, MASK_KERNELS);
        const int masks = ops->count - 1;
        const int product = push_product(shape, ops, "dispatch mask", pass, (const double[]){slots, h, s});
        cost_keep(ops, (CostTensor){"masks", 3 * mask, masks, .kept_by = product});
    } else if (pass == COST_FORWARD) {
        const int rows = ops->count - 1;
        const int product = push_product(shape, ops, "combine mask", pass, (const double[]){s, h, slots});
        cost_keep(ops, (CostTensor){"combined rows", shape->element_bytes * mask / s * h, rows,
                                    .kept_by = product});
    } else if (spreads) { /* the pass runs in the forward's order: combine's gradients */
        push_product(shape, ops, "dispatch mask", pass, (const double[]){s, h, slots});
    } else {
        push_product(shape, ops, "combine mask", pass, (const double[]){slots, h, s});
        push_product(shape, ops, "mask grad", pass, (const double[]){s, slots, h});
        cost_push_memory(ops, "masks", COST_MODULE_MOE, COST_MEMORY_ELEMENTWISE, mask,
                         (CostMoved){.undivided = MASK_BACKWARD_BYTES}, 1);
    }
    return true;
}
