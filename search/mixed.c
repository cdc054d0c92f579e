/* search/mixed.c - see mixed.h. */
#include "search/mixed.h"

#include <string.h>

#include "report/report.h"
#include "step/policy.h"
#include "step/step.h"
#include "spec/load.h"

enum { ROUNDS = 2, MOST_MOVES = 64 };

typedef struct Outcome {
    bool fits;
    double short_bytes;
    int64_t step_ps;
    double room_bytes[SPEC_MAX_STAGES]; /* [pipeline ranks] of the GPU that has least; below 0: lacks */
} Outcome;

bool search_mixed_asked(const Spec *spec)
{
    return spec->parallel.stage_layers_count == SPEC_AUTO ||
           spec->parallel.replica_microbatches_count == SPEC_AUTO;
}

static bool better(const Outcome *a, const Outcome *b)
{
    if (a->fits != b->fits)
        return a->fits;
    return a->fits ? a->step_ps < b->step_ps : a->short_bytes < b->short_bytes;
}

static bool try_spec(const Spec *spec, Outcome *ret_outcome, GError **error)
{
    static const ReportOptions ideal = {.ideal = true};
    OrrArena *arena = orr_arena_new();
    Report report;
    const bool ok = report_run(spec, NULL, &ideal, arena, &report, error);
    if (ok) {
        const double context = step_policy(spec).context_bytes;
        *ret_outcome =
            (Outcome){.fits = report.fits, .short_bytes = report.short_bytes, .step_ps = report.step_ps};
        for (int p = 0; p < report.stage_count; p++)
            ret_outcome->room_bytes[p] =
                report.stages[p].capacity_bytes - report.stages[p].peak_bytes - context;
    }
    orr_arena_free(arena);
    return ok;
}

/* --- what a micro-batch costs --- */

static double segment_ps(const SimSegment *segment)
{
    return (double)sim_work_duration_ps(&segment->forward) +
           (double)sim_work_duration_ps(&segment->recompute) +
           (double)sim_work_duration_ps(&segment->backward_input) +
           (double)sim_work_duration_ps(&segment->backward_weight);
}

/* A layer of a stage, and what the stage does besides layers. */
static void stage_costs(const SimStage *stage, double *ret_layer_ps, double *ret_rest_ps)
{
    double layers_ps = 0, rest_ps = 0;
    for (int i = 0; i < stage->segment_count; i++) {
        const bool layer = i >= stage->first_layer && i < stage->first_layer + stage->layers;
        *(layer ? &layers_ps : &rest_ps) += segment_ps(&stage->segments[i]);
    }
    *ret_layer_ps = stage->layers > 0 ? layers_ps / stage->layers : 0;
    *ret_rest_ps = rest_ps;
}

static int stage_at(const SimPlan *plan, int rank, int chunk)
{
    return sim_stage_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks, rank, chunk);
}

/* Of each pipeline rank a layer and the rest, of the kind of replicas where it is slowest, [ranks]. */
static void rank_costs(const SimKinds *kinds, double *layer_ps, double *rest_ps)
{
    for (int p = 0; p < kinds->ranks; p++)
        for (int k = 0; k < kinds->count; k++) {
            const SimPlan *plan = &kinds->kinds[k].plan;
            double rest_sum_ps = 0;
            for (int c = 0; c < plan->shape.chunks; c++) {
                double layer = 0, rest = 0;
                stage_costs(&plan->stages[stage_at(plan, p, c)], &layer, &rest);
                layer_ps[p] = MAX(layer_ps[p], layer);
                rest_sum_ps += rest;
            }
            rest_ps[p] = MAX(rest_ps[p], rest_sum_ps);
        }
}

/* --- layers --- */

/* Layers one by one to the rank that is done with one more first, at most most[p] there; false: they do not go in. */
static bool deal_layers(const SimKinds *kinds, int layers, const int *most, const double *layer_ps,
                        const double *rest_ps, int *ret_layers)
{
    memset(ret_layers, 0, sizeof *ret_layers * (gsize)kinds->ranks);
    for (int i = 0; i < layers; i++) {
        int least = -1;
        double least_ps = 0;
        for (int p = 0; p < kinds->ranks; p++) {
            const double ps = rest_ps[p] + (ret_layers[p] + 1) * layer_ps[p];
            if (ret_layers[p] < most[p] && (least < 0 || ps < least_ps)) {
                least = p;
                least_ps = ps;
            }
        }
        if (least < 0)
            return false;
        ret_layers[least]++;
    }
    return true;
}

/* A rank's layers over its chunks as evenly as they go, the first ones the more. */
static void put_layers(const SimPlan *plan, const int *layers, SpecParallel *parallel)
{
    const int chunks = plan->shape.chunks;
    parallel->stage_layers_count = plan->shape.ranks * chunks;
    for (int p = 0; p < plan->shape.ranks; p++)
        for (int c = 0; c < chunks; c++)
            parallel->stage_layers[stage_at(plan, p, c)] = layers[p] / chunks + (c < layers[p] % chunks);
}

/* One layer from one rank to another, as long as that helps. */
static void improve(const SimPlan *plan, Spec *spec, Outcome *best)
{
    const int ranks = plan->shape.ranks;
    g_autofree int *own = g_new0(int, (gsize)ranks);
    g_autofree Outcome *outcome = g_new(Outcome, 1);
    g_autofree Spec *trial = g_memdup2(spec, sizeof *spec);
    if (spec->parallel.stage_layers_count == 0) /* the even split was better than that by speed */
        return;
    for (int p = 0; p < ranks; p++)
        for (int c = 0; c < plan->shape.chunks; c++)
            own[p] += spec->parallel.stage_layers[stage_at(plan, p, c)];
    int tries = 0;
    for (int move = 0, idle = 0; idle < ranks * ranks && tries < MOST_MOVES;
         move = (move + 1) % (ranks * ranks), idle++) {
        const int from = move / ranks, to = move % ranks;
        if (from == to || own[from] == 0)
            continue;
        tries++;
        own[from]--;
        own[to]++;
        put_layers(plan, own, &trial->parallel);
        if (spec_check(trial, "parallel.stage_layers", NULL) && try_spec(trial, outcome, NULL) &&
            better(outcome, best)) {
            *best = *outcome;
            spec->parallel = trial->parallel;
            idle = 0;
            continue;
        }
        own[from]++;
        own[to]--;
    }
}

/* Layers by speed, fewer where memory lacks, against the even split. */
static bool choose_layers(const Spec *even, Spec *spec, const SimKinds *kinds, GError **error)
{
    const int ranks = kinds->ranks, layers = spec->model.layers;
    g_autofree int *most = g_new(int, (gsize)ranks), *own = g_new(int, (gsize)ranks);
    g_autofree double *layer_ps = g_new0(double, (gsize)ranks), *rest_ps = g_new0(double, (gsize)ranks);
    g_autofree Outcome *best = g_new(Outcome, 1), *outcome = g_new(Outcome, 1);
    g_autofree Spec *trial = g_memdup2(even, sizeof *even);
    rank_costs(kinds, layer_ps, rest_ps);
    for (int p = 0; p < ranks; p++)
        most[p] = layers;
    if (!try_spec(even, best, error))
        return false;
    for (int tries = 0; tries < layers; tries++) {
        bool fuller = false;
        if (!deal_layers(kinds, layers, most, layer_ps, rest_ps, own))
            break;
        put_layers(&kinds->kinds[0].plan, own, &trial->parallel);
        if (!spec_check(trial, "parallel.stage_layers", NULL) || !try_spec(trial, outcome, NULL))
            break;
        if (better(outcome, best)) {
            *best = *outcome;
            spec->parallel = trial->parallel;
        }
        for (int p = 0; p < ranks; p++)
            if (outcome->room_bytes[p] < 0 && own[p] > 0) {
                most[p] = own[p] - 1;
                fuller = true;
            }
        if (!fuller)
            break;
    }
    improve(&kinds->kinds[0].plan, spec, best);
    return true;
}

/* --- micro-batches --- */

/* Of a replica of this kind: a micro-batch at its slowest stage, and what the others add once. */
static void replica_costs(const SimPlan *plan, double *ret_each_ps, double *ret_once_ps)
{
    double sum_ps = 0, slowest_ps = 0;
    for (int p = 0; p < plan->shape.ranks; p++) {
        double rank_ps = 0;
        for (int c = 0; c < plan->shape.chunks; c++) {
            const SimStage *stage = &plan->stages[stage_at(plan, p, c)];
            double layer = 0, rest = 0;
            stage_costs(stage, &layer, &rest);
            rank_ps += rest + layer * stage->layers;
        }
        sum_ps += rank_ps / plan->shape.chunks;
        slowest_ps = MAX(slowest_ps, rank_ps);
    }
    *ret_each_ps = slowest_ps;
    *ret_once_ps = sum_ps - slowest_ps / plan->shape.chunks;
}

/* `by` micro-batches at a time, those that are left over first to the first replicas; false: they do not go in. */
static bool deal_microbatches(const SimKinds *kinds, int all, int by, SpecParallel *parallel)
{
    const int data = parallel->data;
    g_autofree double *each_ps = g_new(double, (gsize)kinds->count),
                      *once_ps = g_new(double, (gsize)kinds->count);
    if (all / by < data || all % by != 0 || all / data > UINT16_MAX / 16)
        return false;
    for (int k = 0; k < kinds->count; k++)
        replica_costs(&kinds->kinds[k].plan, &each_ps[k], &once_ps[k]);
    for (int d = 0; d < data; d++)
        parallel->replica_microbatches[d] = (uint16_t)by;
    for (int left = all - by * data; left > 0; left -= by) {
        int least = 0;
        double least_ps = 0;
        for (int d = 0; d < data; d++) {
            const int kind = kinds->kind_of_replica[d];
            const double ps = once_ps[kind] + (parallel->replica_microbatches[d] + by) * each_ps[kind];
            if (d == 0 || ps < least_ps) {
                least = d;
                least_ps = ps;
            }
        }
        if (parallel->replica_microbatches[least] > UINT16_MAX - by)
            return false;
        parallel->replica_microbatches[least] = (uint16_t)(parallel->replica_microbatches[least] + by);
    }
    parallel->replica_microbatches_count = data;
    return true;
}

/* One at a time where the schedule takes any number, else as many as there are pipeline ranks. */
static bool choose_microbatches(const Spec *even, Spec *spec, const SimKinds *kinds, GError **error)
{
    const int all = spec->training.global_batch / spec->training.micro_batch;
    const int steps[] = {1, spec->parallel.pipeline};
    g_autofree Outcome *best = g_new(Outcome, 1), *outcome = g_new(Outcome, 1);
    g_autofree Spec *trial = g_memdup2(even, sizeof *even);
    if (!try_spec(even, best, error))
        return false;
    for (gsize i = 0; i < G_N_ELEMENTS(steps); i++) {
        if (!deal_microbatches(kinds, all, steps[i], &trial->parallel) || !try_spec(trial, outcome, NULL))
            continue;
        if (better(outcome, best))
            spec->parallel = trial->parallel;
        break;
    }
    return true;
}

/* As many for each replica, one more for the first ones where that leaves some over. */
static void put_even(const Spec *spec, SpecParallel *parallel)
{
    const int all = spec->training.global_batch / spec->training.micro_batch, data = parallel->data;
    parallel->replica_microbatches_count = all % data != 0 ? data : 0;
    for (int d = 0; all % data != 0 && d < data; d++)
        parallel->replica_microbatches[d] = (uint16_t)MIN(all / data + (d < all % data), UINT16_MAX);
}

bool search_mixed_choose(Spec *spec, GError **error)
{
    const bool layers = spec->parallel.stage_layers_count == SPEC_AUTO;
    const bool microbatches = spec->parallel.replica_microbatches_count == SPEC_AUTO;
    g_autofree Spec *even = g_new(Spec, 1);
    if (layers)
        spec->parallel.stage_layers_count = 0;
    if (microbatches)
        put_even(spec, &spec->parallel);
    bool ok = true;
    for (int round = 0; ok && round < ROUNDS; round++) {
        OrrArena *arena = orr_arena_new();
        SimKinds kinds;
        *even = *spec;
        ok = sim_kinds_plan(spec, false, arena, &kinds, error);
        if (ok && layers)
            ok = choose_layers(even, spec, &kinds, error);
        orr_arena_free(arena);
        if (!ok || !microbatches)
            continue;
        arena = orr_arena_new();
        *even = *spec;
        ok = sim_kinds_plan(spec, false, arena, &kinds, error) &&
             choose_microbatches(even, spec, &kinds, error);
        orr_arena_free(arena);
    }
    return ok;
}

int *search_mixed_layers(const Spec *asked, const Spec *chosen, int *ret_count)
{
    int *counts = g_new0(int, SPEC_MAX_STAGES);
    const bool dealt = asked->parallel.stage_layers_count == SPEC_AUTO &&
                       chosen->parallel.stage_layers_count != SPEC_AUTO &&
                       spec_stage_layers(chosen, counts, NULL);
    *ret_count = dealt ? chosen->parallel.pipeline * chosen->parallel.virtual_stages : 0;
    return counts;
}

int *search_mixed_microbatches(const Spec *asked, const Spec *chosen, int *ret_count)
{
    const SpecParallel *parallel = &chosen->parallel;
    const bool dealt = asked->parallel.replica_microbatches_count == SPEC_AUTO &&
                       parallel->replica_microbatches_count != SPEC_AUTO;
    int *counts = g_new0(int, (gsize)MAX(1, parallel->data));
    *ret_count = dealt ? parallel->data : 0;
    for (int d = 0; d < *ret_count; d++)
        counts[d] = parallel->replica_microbatches_count > 0 ? parallel->replica_microbatches[d]
                                                             : spec_microbatches(chosen);
    return counts;
}
