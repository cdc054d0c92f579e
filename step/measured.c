/* step/measured.c - see measured.h. Tested: unit/step/test_measured.c */
#include "step/measured.h"

#include <math.h>
#include <string.h>

#include "program/measured.h"
#include "program/shares.h"
#include "sim/picoseconds.h"
#include "step/step.h"

static bool replicas_alike(const SpecMeasured *measured, int a, int b)
{
    for (int key = 0; key < SPEC_MEASURED_COUNT; key++) {
        const int each = key < SPEC_MEASURED_PASSES ? measured->microbatches : 1;
        for (int s = 0; s < measured->stages; s++)
            if (memcmp(spec_measured_at(measured, (SpecMeasuredKey)key, s, a, 0),
                       spec_measured_at(measured, (SpecMeasuredKey)key, s, b, 0),
                       sizeof(double) * (size_t)each) != 0)
                return false;
    }
    return true;
}

static const int64_t *table_of(const SpecMeasured *measured, SpecMeasuredKey key, int replica,
                               OrrArena *arena)
{
    int64_t *table = ORR_ARENA_NEW(arena, int64_t, (int64_t)measured->stages * measured->microbatches);
    bool any = false;
    for (int s = 0; s < measured->stages; s++)
        for (int m = 0; m < measured->microbatches; m++) {
            const double seconds = *spec_measured_at(measured, key, s, replica, m);
            table[(int64_t)s * measured->microbatches + m] = isnan(seconds) ? -1 : sim_ps(seconds);
            any |= !isnan(seconds);
        }
    return any ? table : NULL;
}

static void set_work(SimWork *work, SimPart part, double seconds)
{
    const int64_t before_ps = sim_work_duration_ps(work);
    if (isnan(seconds))
        return;
    if (before_ps > 0)
        sim_work_stretch(work, 0, before_ps, sim_ps(seconds));
    else
        sim_work_spend(work, part, sim_ps(seconds));
}

/* All segments' reductions in proportion; without any, the one that comes last. */
static void set_reduce(SimStage *stage, double seconds, OrrArena *arena)
{
    if (isnan(seconds))
        return;
    SimSegment *segments = ORR_ARENA_NEW(arena, SimSegment, stage->segment_count);
    memcpy(segments, stage->segments, sizeof *segments * (size_t)stage->segment_count);
    stage->segments = segments;
    int64_t whole_ps = 0, before_ps = 0;
    for (int i = 0; i < stage->segment_count; i++)
        whole_ps += sim_work_duration_ps(&segments[i].grad_reduce);
    if (whole_ps == 0)
        sim_work_spend(&segments[0].grad_reduce, SIM_PART_DATA_COMM, sim_ps(seconds));
    for (int i = 0; whole_ps > 0 && i < stage->segment_count; i++) {
        const int64_t own_ps = sim_work_duration_ps(&segments[i].grad_reduce);
        sim_work_stretch(&segments[i].grad_reduce, before_ps, whole_ps, sim_ps(seconds));
        before_ps += own_ps;
    }
}

/* Ends of a stage, and of its rank by the first stage that it holds. */
static void set_ends(const SpecMeasured *measured, int replica, int stage, OrrArena *arena, SimPlan *plan)
{
    int rank = 0, chunk = 0;
    sim_place_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks, stage, &rank, &chunk);
    SimRankPlan *own = &plan->ranks[rank];
    set_reduce(&plan->stages[stage], *spec_measured_at(measured, SPEC_MEASURED_REDUCE, stage, replica, 0),
               arena);
    set_work(&own->begin, SIM_PART_OTHER,
             *spec_measured_at(measured, SPEC_MEASURED_BEGIN, stage, replica, 0));
    set_work(&own->end, SIM_PART_OTHER, *spec_measured_at(measured, SPEC_MEASURED_END, stage, replica, 0));
    set_work(&own->embedding_reduce, SIM_PART_DATA_COMM,
             *spec_measured_at(measured, SPEC_MEASURED_EMBEDDING, stage, replica, 0));
    set_work(&own->optimizer, SIM_PART_OPTIMIZER,
             *spec_measured_at(measured, SPEC_MEASURED_OPTIMIZER, stage, replica, 0));
}

/* A collective of all ranks lasts as long as the longest of them needs. */
static double longest_norm(const SpecMeasured *measured, int replica)
{
    double most = NAN;
    for (int s = 0; s < measured->stages; s++)
        most = fmax(most, *spec_measured_at(measured, SPEC_MEASURED_NORM, s, replica, 0));
    return most;
}

static void plan_replica(const SpecMeasured *measured, const SimPlan *base, int replica, OrrArena *arena,
                         SimPlan *plan)
{
    SimMeasured *own = ORR_ARENA_NEW(arena, SimMeasured, 1);
    *own = (SimMeasured){.forward_ps = table_of(measured, SPEC_MEASURED_FORWARD, replica, arena),
                         .backward_ps = table_of(measured, SPEC_MEASURED_BACKWARD, replica, arena),
                         .send_next_ps = table_of(measured, SPEC_MEASURED_SEND_FORWARD, replica, arena),
                         .send_prev_ps = table_of(measured, SPEC_MEASURED_SEND_BACKWARD, replica, arena)};
    *plan = *base;
    plan->measured = own;
    plan->stages = ORR_ARENA_NEW(arena, SimStage, measured->stages);
    memcpy(plan->stages, base->stages, sizeof *plan->stages * (size_t)measured->stages);
    plan->ranks = ORR_ARENA_NEW(arena, SimRankPlan, plan->shape.ranks);
    memcpy(plan->ranks, base->ranks, sizeof *plan->ranks * (size_t)plan->shape.ranks);
    if (own->backward_ps != NULL)
        plan->deferred_heads = 0; /* the passes are as they were */
    for (int s = 0; s < measured->stages; s++)
        set_ends(measured, replica, s, arena, plan);
    set_work(&plan->grad_norm, SIM_PART_DATA_COMM, longest_norm(measured, replica));
}

static bool takes(const SimPlan *plan, const SpecMeasured *measured, GError **error)
{
    bool norm = false;
    for (int s = 0; s < measured->stages; s++)
        if (sim_work_duration_ps(&plan->stages[s].overlapped_pair) > 0)
            return orr_fail(
                error, ORR_ERROR_INPUT,
                "execution.measured_passes: parallel.schedule runs a forward and a backward at once; give "
                "1f1b or interleaved");
    for (int r = 0; r < measured->replicas; r++)
        norm |= !isnan(longest_norm(measured, r));
    return !(norm && plan->post_validation) ||
           orr_fail(
               error, ORR_ERROR_INPUT,
               "execution.measured_passes: norm_s with a schedule that checks the norm later; leave it out");
}

bool sim_measured_kinds(const Spec *spec, const SpecMeasured *measured, bool apart, OrrArena *arena,
                        SimKinds *ret_kinds, GError **error)
{
    SimPlan base;
    if (!sim_step_plan(spec, arena, &base, error) || !sim_step_fits_clock(spec, &base, error) ||
        !takes(&base, measured, error))
        return false;
    sim_plan_own_shares(&base, arena);
    const int data = measured->replicas;
    SimKind *kinds = ORR_ARENA_NEW(arena, SimKind, data);
    int *kind_of = ORR_ARENA_NEW(arena, int, data), *first = ORR_ARENA_NEW(arena, int, data), count = 0;
    int *groups = ORR_ARENA_NEW(arena, int, base.shape.ranks); /* all of one */
    memset(groups, 0, sizeof *groups * (size_t)base.shape.ranks);
    for (int d = 0; d < data; d++) {
        int kind = apart ? count : 0;
        while (kind < count && !replicas_alike(measured, first[kind], d))
            kind++;
        if (kind == count) {
            kinds[count] = (SimKind){.group_of_rank = groups};
            plan_replica(measured, &base, d, arena, &kinds[count].plan);
            first[count++] = d;
        }
        kinds[kind].replicas++;
        kind_of[d] = kind;
    }
    *ret_kinds =
        (SimKinds){.count = count, .ranks = base.shape.ranks, .kinds = kinds, .kind_of_replica = kind_of};
    return true;
}
