/* costmodel/tensor_grid.c - see tensor_grid.h. */
#include "costmodel/tensor_grid.h"

#include <math.h>

/* Side q of the grid of `tensor` ranks; 0 where they make no such grid. `depth` counts for 2.5D only. */
static int cost_tensor_side(SpecTensorScheme scheme, int tensor, int depth)
{
    const bool layers = scheme == SPEC_TENSOR_2_5D;
    const int ranks = layers ? tensor / MAX(depth, 1) : tensor;
    if (layers && tensor % MAX(depth, 1) != 0) {
        return 0;
    }
    for (int q = 1; q <= ranks; q++) {
        if ((scheme == SPEC_TENSOR_3D ? q * q * q : q * q) == ranks) {
            return q;
        }
    }
    return 0;
}

typedef struct Grid {
    CostOps *ops;
    CostModule module;
    CostGroup row, column, depth;
    double q, d;       /* side; layers of 2.5D */
    double mk, kn, mn; /* bytes of the whole operands */
} Grid;

static void move(const Grid *grid, const char *name, CostCollectiveOp op, double bytes, CostGroup group)
{
    cost_push_collective(grid->ops, name, grid->module, op, bytes, group, COST_COMM_TENSOR, -1);
}

/* One gather or reduction along each side. */
static void push_cube(const Grid *grid, CostPass pass)
{
    const double q2 = grid->q * grid->q;
    const CostCollectiveOp gather = COST_ALL_GATHER, reduce = COST_REDUCE_SCATTER;
    move(grid, "grid x", pass == COST_BACKWARD_INPUT ? reduce : gather, grid->mk / q2, grid->row);
    move(grid, "grid weight", pass == COST_BACKWARD_WEIGHT ? reduce : gather, grid->kn / q2, grid->column);
    move(grid, "grid y", pass == COST_FORWARD ? reduce : gather, grid->mn / q2, grid->depth);
}

static void push_square(const Grid *grid, CostPass pass)
{
    const CostCollectiveOp x = pass == COST_BACKWARD_INPUT ? COST_REDUCE_SCATTER : COST_ALL_GATHER,
                           weight = pass == COST_BACKWARD_WEIGHT ? COST_REDUCE_SCATTER : COST_ALL_GATHER;
    move(grid, "grid x", x, grid->mk / grid->d / grid->q, grid->row);
    move(grid, "grid weight", weight, grid->kn / grid->q, grid->column);
    if (pass == COST_BACKWARD_WEIGHT) {
        move(grid, "grid layers", COST_ALL_REDUCE, grid->kn / (grid->q * grid->q), grid->depth);
    }
}

void cost_push_tensor_grid(const CostShape *shape, CostOps *ops, CostPass pass, CostModule module, int gemm,
                           bool column)
{
    const Spec *spec = shape->spec;
    const SpecTensorScheme scheme = spec->parallel.tensor_scheme;
    const int side = cost_tensor_side(scheme, spec->parallel.tensor, spec->parallel.tensor_depth);
    const bool cube = scheme == SPEC_TENSOR_3D;
    CostGemm *block = &ops->op[gemm].u.gemm;
    /* rows, inputs and outputs of the whole linear, out of the one-dimensional slice that the list holds */
    const double sizes[COST_PASS_COUNT][3] = {
        {block->m, block->k, block->n}, {block->m, block->n, block->k}, {block->k, block->n, block->m}};
    const double m = sizes[pass][0], k = sizes[pass][1] * (column ? 1 : shape->tensor),
                 n = sizes[pass][2] * (column ? shape->tensor : 1), e = shape->element_bytes;
    Grid grid = {.ops = ops, .module = module, .q = side, .d = 1};
    if (scheme == SPEC_TENSOR_2_5D) {
        grid.d = spec->parallel.tensor_depth;
    }
    grid.mk = m * k * e, grid.kn = k * n * e, grid.mn = m * n * e;
    grid.row = cost_group_part(spec, COST_RANKS_TENSOR, 1, side);
    grid.column = cost_group_part(spec, COST_RANKS_TENSOR, side, side);
    grid.depth = cost_group_part(spec, COST_RANKS_TENSOR, side * side, cube ? side : (int)grid.d);
    const double rows = m / grid.q / grid.d, ins = cube ? k / grid.q : k, outs = n / grid.q;
    const double blocks[COST_PASS_COUNT][3] = {
        {rows, outs, ins}, {rows, k / grid.q, cube ? outs : n}, {outs, k / grid.q, cube ? rows : m / grid.d}};
    block->m = blocks[pass][0], block->n = blocks[pass][1], block->k = blocks[pass][2];
    if (cube) {
        push_cube(&grid, pass);
    } else {
        push_square(&grid, pass);
    }
}
