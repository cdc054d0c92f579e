/* costmodel/memory_bound.c - time of kernels that only move bytes; docs/MODEL-kernels.md.
 *
 *   t = latency_s + bytes / (memory_bytes_per_s x frac of the kind)
 * The latency is the ramp: half the bandwidth is reached where the bytes take as long as it.
 * Source: [AzureBench], [SimuMax], [aiconfigurator]      Ignores: tensors that stay in the L2 cache
 * Tested: unit/test_memory_bound.c
 */
#include "costmodel/memory_bound.h"

#include <glib.h>

#include "costmodel/kernels.h"

double cost_memory_bound_s(const SpecAccelerator *accelerator, CostMove move, double bytes)
{
    g_assert(bytes >= 0 && move >= 0 && move < COST_MOVE_COUNT);
    const SpecMemoryBoundModel *model = cost_memory_bound_model(accelerator);
    const double fracs[COST_MOVE_COUNT] = {
        [COST_MOVE_ELEMENTWISE] = model->elementwise_frac,
        [COST_MOVE_NORM] = model->norm_frac,
        [COST_MOVE_SOFTMAX] = model->softmax_frac,
        [COST_MOVE_CROSS_ENTROPY] = model->cross_entropy_frac,
        [COST_MOVE_PERMUTE] = model->permute_frac,
        [COST_MOVE_CAST] = model->cast_frac,
        [COST_MOVE_OPTIMIZER] = model->optimizer_frac,
    };
    return model->latency_s + bytes / (accelerator->memory_bytes_per_s * fracs[move]);
}
