/* costmodel/tensor_grid.h - linear layers on a square or a cube of tensor ranks: 2D (SUMMA), 2.5D and 3D.
 *
 * Y [m,n] = X [m,k] A [k,n]. Every operand lies in blocks over all ranks; what moves is counted as gathers and
 * reductions along one side of the grid, (q-1)/q of S a rank:
 *   2D    q^2      X over rows (S = mk/q), A over columns (S = kn/q); dX and dA one gather and one reduction each
 *   2.5D  q^2 d    the same with m/d rows in each of d layers, which share A: dA summed over them, 2 (d-1)/d kn/q^2
 *   3D    q^3      X, A and Y along one side each: S = mk/q^2, kn/q^2, mn/q^2
 * Source: [Xu2021], [Wang2021], [Bian2021]    Ignores: the steps of SUMMA's broadcasts inside a gather, attention's
 * own layout    Tested: golden/test_volumes.c
 */
#ifndef ORR_COSTMODEL_TENSOR_GRID_H
#define ORR_COSTMODEL_TENSOR_GRID_H

#include "costmodel/ops.h"

/* Reshapes the GEMM of a linear that is split over its outputs (`column`) or inputs to its block on the grid, and
 * appends what the pass moves. */
void cost_push_tensor_grid(const CostShape *shape, CostOps *ops, CostPass pass, CostModule module, int gemm,
                           bool column);

#endif
