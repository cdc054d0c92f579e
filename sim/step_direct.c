/* sim/step_direct.c - which pieces of a stage a first forward reads where they lie, in the host's memory, while the others are
 * copied: the mix whose forward is shortest.
 *
 * A list schedule on two resources. A copied piece takes the link for w / B, in the order of the forward, and the SMs for f
 * behind it; one that is read directly takes both for max(f, q w / (n B)), with q how often its weights are read and n what
 * such reads reach of a copy's rate. All pairs (SMs free, link free) that no other beats are carried from piece to piece, so
 * the mix is the best of all.
 *   q = max(1, tokens / (128 sqrt(SMs))): a wave of 128 x 128 tiles covers that many rows, and each wave reads the weights
 * Source: [MemFerry]: the abstract; the rest is derived     Tested: unit/test_offload_order.c
 */
#include <math.h>

#include "costmodel/states.h"
#include "sim/step_internal.h"

typedef struct {
    int64_t sm_ps, link_ps;
    int before;  /* state of the piece before */
    bool direct; /* this piece */
} Mix;

enum { STATES = 512 };

static int64_t ps_of(const SimWork *work)
{
    int64_t ps = 0;
    for (int part = 0; part < SIM_PART_COUNT; part++)
        ps += work->part_ps[part];
    return ps;
}

static void add_state(Mix *states, int *count, Mix state)
{
    int kept = 0;
    for (int i = 0; i < *count; i++) {
        if (states[i].sm_ps <= state.sm_ps && states[i].link_ps <= state.link_ps)
            return;
    }
    for (int i = 0; i < *count; i++) {
        if (states[i].sm_ps < state.sm_ps || states[i].link_ps < state.link_ps)
            states[kept++] = states[i];
    }
    if (kept < STATES)
        states[kept++] = state;
    *count = kept;
}

/* A table of vocab rows of which a micro-batch touches some; of a layer all, once a wave. */
static double read_bytes(const Step *step, int stage, int piece)
{
    const CostShape *shape = &step->shape;
    const double width = cost_weight_wire_bytes(step->spec);
    const StepParams *params = &step->params[stage][piece];
    const double rows = 128 * sqrt((double)step->spec->cluster.accelerator.sm_count);
    if (stage == 0 && piece == 0)
        return fmin(shape->tokens, (double)step->spec->model.vocab) * shape->hidden * width;
    return (params->dense + params->expert) * width * fmax(1, shape->tokens / rows);
}

void step_choose_direct(Step *step, int stage, double copy_bytes_per_s, SimOffload *offloads)
{
    const SimStage *out = &step->plan->stages[stage];
    const int count = out->segment_count;
    const double direct_rate = copy_bytes_per_s * step->spec->cluster.host.direct_frac;
    Mix *states = ORR_ARENA_NEW(step->arena, Mix, (size_t)(count + 1) * STATES);
    int *counts = ORR_ARENA_NEW(step->arena, int, count + 1);
    int64_t updated_ps = 0;
    states[0] = (Mix){0};
    counts[0] = 1;
    for (int i = 0; i < count; i++) {
        const int64_t forward_ps = ps_of(&out->segments[i].forward), copy_ps = ps_of(&offloads[i].weight_in);
        const int64_t read_ps = step_ps(read_bytes(step, stage, i) / direct_rate);
        updated_ps += ps_of(&offloads[i].update);
        for (int s = 0; s < counts[i]; s++) {
            const Mix *mix = &states[i * STATES + s];
            Mix copied = {.before = s, .link_ps = MAX(mix->link_ps, updated_ps) + copy_ps};
            copied.sm_ps = MAX(mix->sm_ps, copied.link_ps) + forward_ps;
            Mix direct = {.before = s, .direct = true};
            direct.sm_ps = MAX(MAX(mix->sm_ps, mix->link_ps), updated_ps) + MAX(forward_ps, read_ps);
            direct.link_ps = direct.sm_ps;
            add_state(&states[(i + 1) * STATES], &counts[i + 1], copied);
            add_state(&states[(i + 1) * STATES], &counts[i + 1], direct);
        }
    }
    int best = 0;
    for (int s = 0; s < counts[count]; s++)
        best = states[count * STATES + s].sm_ps < states[count * STATES + best].sm_ps ? s : best;
    for (int i = count; i > 0; i--) {
        const Mix *mix = &states[i * STATES + best];
        SimOffload *offload = &offloads[i - 1];
        if (mix->direct) {
            const int64_t read_ps = step_ps(read_bytes(step, stage, i - 1) / direct_rate);
            offload->direct = out->segments[i - 1].forward;
            offload->direct.part_ps[SIM_PART_OFFLOAD] +=
                MAX(0, read_ps - ps_of(&out->segments[i - 1].forward));
        }
        best = mix->before;
    }
}
