/* costmodel/memory_bound.c - time of kernels that only move bytes; docs/MODEL-kernels.md.
 *
 *   t = latency_s + bytes / (memory_bytes_per_s x frac of the kind)
 * The latency is the ramp: half the bandwidth is reached where the bytes take as long as it.
 * Source: [AzureBench], [SimuMax], [aiconfigurator]      Ignores: tensors that stay in the L2 cache
 * Tested: unit/costmodel/test_memory_bound.c
 */
#include "costmodel/memory_bound.h"

#include <glib.h>
#include <math.h>

#include "costmodel/kernels.h"

/* Registers of a thread: what the kernel needs besides, and 4 bytes for each of the row's elements that it holds. From
 * ptxas: 85 of 2,048 and 149 of 4,096 elements. */
#define ROW_WARP_REGISTERS 21.0
#define SM_REGISTERS       65536.0
#define ROW_BLOCK_THREADS  128.0
#define ROW_LOAD_ELEMENTS  128.0 /* 32 lanes x 4 */
/* A load that misses the L2 cache: 479 cycles on H100 [Luo2024], more on the two dies of Blackwell (estimate). */
#define MEMORY_TRIP_S 0.4e-6
/* A load that hits it: 262 cycles on H100 [Luo2024]; the same on Blackwell (estimate). */
#define CACHE_TRIP_S     0.15e-6
#define SM_BLOCKS_OF_128 16 /* 2,048 threads */
/* Registers of a thread of the backward of a norm, a block of 128 threads a row of 8,192 elements at most. From ptxas: 80 and
 * 89 for 16 elements a thread (sm_100, sm_90), 161 and 168 for 32, 255 and spills for 64. */
#define NORM_REGISTERS         8.0
#define NORM_ELEMENT_REGISTERS 5.0
#define NORM_BLOCK_COLUMNS     8192.0
#define MOST_REGISTERS         256.0

double cost_row_warps_s(const SpecAccelerator *accelerator, double rows, double row_elements)
{
    if (rows <= 0 || row_elements <= 0)
        return 0;
    const double registers = ROW_WARP_REGISTERS + row_elements / 32;
    const double blocks = fmax(1, floor(SM_REGISTERS / (ROW_BLOCK_THREADS * registers)));
    const double warps = fmax(1, accelerator->sm_count) * fmin(16, blocks) * ROW_BLOCK_THREADS / 32;
    return rows / warps * ceil(row_elements / ROW_LOAD_ELEMENTS) * MEMORY_TRIP_S;
}

double cost_walk_s(const SpecAccelerator *accelerator, double blocks, double loads)
{
    const double at_once = SM_BLOCKS_OF_128 * fmax(1, accelerator->sm_count);
    return blocks <= 0 ? 0 : fmax(1, blocks / at_once) * loads * CACHE_TRIP_S;
}

double cost_memory_bound_s(const SpecAccelerator *accelerator, CostMemoryKernel move, double bytes)
{
    g_assert(bytes >= 0 && move >= 0 && move < COST_MEMORY_COUNT);
    const SpecMemoryBoundModel *model = cost_memory_bound_model(accelerator);
    const double fracs[COST_MEMORY_COUNT] = {
        [COST_MEMORY_ELEMENTWISE] = model->elementwise_frac,
        [COST_MEMORY_NORM] = model->norm_frac,
        [COST_MEMORY_SOFTMAX] = model->softmax_frac,
        [COST_MEMORY_CROSS_ENTROPY] = model->cross_entropy_frac,
        [COST_MEMORY_PERMUTE] = model->permute_frac,
        [COST_MEMORY_CAST] = model->cast_frac,
        [COST_MEMORY_OPTIMIZER] = model->optimizer_frac,
    };
    return model->latency_s + bytes / (accelerator->memory_bytes_per_s * fracs[move]);
}

double cost_norm_sums(const SpecAccelerator *accelerator, double rows, double cols)
{
    const double sms = fmax(1, accelerator->sm_count), held = fmin(cols, NORM_BLOCK_COLUMNS),
                 registers =
                     fmin(MOST_REGISTERS, NORM_REGISTERS + NORM_ELEMENT_REGISTERS * held / ROW_BLOCK_THREADS),
                 blocks = fmin(SM_BLOCKS_OF_128, floor(SM_REGISTERS / (ROW_BLOCK_THREADS * registers)));
    return sms * fmin(blocks * held, ceil(rows / sms) * cols);
}

double cost_norm_backward_s(const SpecAccelerator *accelerator, double rows, double cols,
                            double element_bytes)
{
    if (rows <= 0 || cols <= 0)
        return 0;
    return cost_memory_bound_s(accelerator, COST_MEMORY_NORM, 3 * element_bytes * rows * cols) +
           cost_memory_bound_s(accelerator, COST_MEMORY_NORM,
                               COST_NORM_SUM_BYTES * cost_norm_sums(accelerator, rows, cols));
}
