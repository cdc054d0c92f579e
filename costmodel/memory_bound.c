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

bool cost_has_sms(const SpecAccelerator *accelerator)
{
    return !accelerator->generation.without_sms;
}

double cost_row_warps_s(const SpecAccelerator *accelerator, double rows, double row_elements)
{
    if (rows <= 0 || row_elements <= 0 || !cost_has_sms(accelerator))
        return 0;
    const double registers = ROW_WARP_REGISTERS + row_elements / 32;
    const double blocks = fmax(1, floor(SM_REGISTERS / (ROW_BLOCK_THREADS * registers)));
    const double warps = fmax(1, accelerator->sm_count) * fmin(16, blocks) * ROW_BLOCK_THREADS / 32;
    return rows / warps * ceil(row_elements / ROW_LOAD_ELEMENTS) * MEMORY_TRIP_S;
}

double cost_walk_s(const SpecAccelerator *accelerator, double blocks, double loads)
{
    const double at_once = SM_BLOCKS_OF_128 * fmax(1, accelerator->sm_count);
    return blocks <= 0 || !cost_has_sms(accelerator) ? 0 : fmax(1, blocks / at_once) * loads * CACHE_TRIP_S;
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
