/* costmodel/ops_tiles.c - ops that run tile by tile, so that a part of what they need is there at once.
 *
 * MLPs over tiles of the sequence: nothing of a tile stays but the MLP's input, and the backward of each runs its forward
 * again. Matrices over tiles of their output: ZeRO-3 gathers one tile, uses it and drops it before the next.
 * Source: [ALST] TiledMLP; [Rajbhandari2021] section 5.1.3, memory-centric tiling     Tested: unit/costmodel/test_tiles.c
 */
#include "costmodel/ops_tiles.h"

#include "costmodel/states.h"

int cost_weight_tiles(const Spec *spec)
{
    const bool drops = spec->parallel.zero == 3 && !cost_keeps_gathered(spec) && cost_reshards(spec);
    return drops ? MAX(1, spec->parallel.weight_tiles) : 1;
}

static void repeat(CostOp *op, double times)
{
    op->repeat = MAX(1, op->repeat) * times;
    op->kernels *= (int)times;
    op->host_kernels *= (int)times;
}

/* The input's gradient is a sum over tiles: two read, one written for each but the first. */
void cost_tile_linear(const CostShape *shape, CostOps *ops, CostPass pass, int gemm)
{
    const int tiles = cost_weight_tiles(shape->spec);
    CostOp *op = &ops->op[gemm];
    double *const out[COST_PASS_COUNT] = {&op->u.gemm.n, &op->u.gemm.k, &op->u.gemm.m};
    if (tiles == 1 || op->module == COST_MODULE_HEAD)
        return;
    *out[pass] /= tiles;
    repeat(op, tiles);
    if (pass == COST_BACKWARD_INPUT) {
        const double e = shape->element_bytes, sums = tiles - 1;
        cost_push_memory(ops, "add tiles' input grads", op->module, COST_MEMORY_ELEMENTWISE,
                         sums * op->u.gemm.m * op->u.gemm.n, cost_both_ways(2 * e, e), (int)sums);
    }
}

/* What the ops from `first` on are for one tile they are now for all of them. */
static void repeat_from(CostOps *ops, int first, int tiles)
{
    for (int i = first; i < ops->count; i++) {
        CostOp *op = &ops->op[i];
        repeat(op, tiles);
        op->model_flops *= tiles;
        op->full_flops *= tiles;
        op->idle_s *= tiles;
    }
}

/* Takes what one tile keeps off the list but for its input, the first, which stays whole. Returns the bytes of the others. */
static double drop_inner(CostOps *ops, int kept, int tiles)
{
    double inner = 0;
    for (int i = kept + 1; i < ops->kept_count; i++)
        inner += ops->kept[i].bytes;
    ops->kept_count = MIN(ops->kept_count, kept + 1);
    if (ops->kept_count > kept)
        ops->kept[kept].bytes *= tiles;
    return inner;
}

static void work_beside(CostOps *ops, int first, double bytes)
{
    for (int i = first; i < ops->count; i++)
        ops->op[i].temp_bytes += bytes;
}

void cost_tile_mlp(const CostShape *shape, CostPass pass, int input, CostMlpOps list, CostOps *ops)
{
    const int tiles = shape->spec->training.mlp_tiles, first = ops->count, kept = ops->kept_count;
    CostShape tile = *shape;
    double inner = 0;
    tile.tokens /= tiles;
    tile.part_tokens /= tiles;
    tile.accumulates = true; /* weight gradients of one tile are added to those before */
    if (pass == COST_BACKWARD_INPUT) {
        list(&tile, COST_FORWARD, input, ops);
        inner = drop_inner(ops, kept, tiles);
        ops->kept_count = kept;
        for (int i = first; i < ops->count; i++)
            ops->op[i].again = true;
    }
    list(&tile, pass, input, ops);
    if (pass == COST_FORWARD)
        inner = drop_inner(ops, kept, tiles);
    repeat_from(ops, first, tiles);
    work_beside(ops, first, inner);
}
