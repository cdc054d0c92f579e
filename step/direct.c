/* step/direct.c - pieces of a stage that a first forward reads where they lie, in the host's memory.
 *
 *   read = q w / (n B),  q = max(1, tokens / (128 sqrt(SMs)))
 * w bytes of a piece's weights, B rate of copies, n what kernels reach of it (cluster.host.direct_frac), q how often weights
 * are read: a wave of 128 x 128 tiles covers so many rows, and each wave reads them. Of an embedding table a micro-batch
 * touches its tokens' rows.     Source: [MemFerry]: the abstract; the rest is derived
 */
#include <math.h>

#include "costmodel/states.h"
#include "step/direct_mix.h"
#include "step/fill.h"

static double read_bytes(const Step *step, int stage, int piece)
{
    const CostShape *shape = &step->shape;
    const double width = cost_weight_wire_bytes(step->spec);
    const StepParams *params = &step->params[stage][piece];
    const double rows = 128 * sqrt((double)step->spec->cluster.accelerator.sm_count);
    if (stage == 0 && piece == 0)
        return fmin(shape->tokens, (double)step->spec->model.vocab) * shape->hidden * width;
    return cost_weights_count(&params->weights) * width * fmax(1, shape->tokens / rows);
}

void step_choose_direct(Step *step, int stage, double copy_bytes_per_s, SimOffload *offloads)
{
    const SimStage *out = &step->plan->stages[stage];
    const double rate = copy_bytes_per_s * step->spec->cluster.host.direct_frac;
    SimDirectPiece *pieces = ORR_ARENA_NEW(step->arena, SimDirectPiece, out->segment_count);
    bool *direct = ORR_ARENA_NEW(step->arena, bool, out->segment_count);
    int64_t there_ps = 0;
    for (int i = 0; i < out->segment_count; i++) {
        there_ps = sim_sum(there_ps, sim_work_duration_ps(&offloads[i].update));
        pieces[i] = (SimDirectPiece){.forward_ps = sim_work_duration_ps(&out->segments[i].forward),
                                     .copy_ps = sim_work_duration_ps(&offloads[i].weight_in),
                                     .read_ps = sim_ps(read_bytes(step, stage, i) / rate),
                                     .there_ps = there_ps};
    }
    sim_direct_mix(pieces, out->segment_count, step->arena, direct);
    for (int i = 0; i < out->segment_count; i++) {
        if (!direct[i])
            continue;
        offloads[i].direct = out->segments[i].forward;
        sim_work_spend(&offloads[i].direct, SIM_PART_OFFLOAD,
                       MAX(0, pieces[i].read_ps - pieces[i].forward_ps));
    }
}
