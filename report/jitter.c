/* report/jitter.c - see jitter.h: the paces and what follows from them. */
#include "report/jitter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/draws.h"
#include "base/stats.h"
#include "step/paced.h"
#include "traffic/traffic.h"

#define PI           3.14159265358979323846
#define LEAST_SPEED  0.05
#define MOST_RANKS   262144 /* that are simulated one by one where they share resources */
#define RANKS_A_STEP 2048
#define RANKS_A_DRAW 256 /* of each of many steps */
#define MOST_ALONE   64  /* replicas that are simulated alone to know what they do without waiting */

enum { DRAW_SPREAD, DRAW_NODES, DRAW_STEP }; /* streams of draws: a step is DRAW_STEP and its number */

typedef struct Paces {
    const Report *report;
    OrrArena *arena;
    int ranks;
    int *gpu_of_rank;          /* [ranks] number of the GPU that a rank of the engine is, by parallel.order */
    SimPace *fixed;            /* [ranks] for good */
    int most_ranks;            /* to simulate in a step of folded replicas */
    const SimFurnish *furnish; /* links of a fabric; NULL: none */
} Paces;

/* --- which GPU a rank is --- */

/* The engine numbers pipeline rank, data, context, tensor, the last fastest; GPUs are dealt out in parallel.order, whose
 * first word is fastest. Expert groups are within data, context and tensor. */
static void number_gpus(const SimPlan *plan, const char *order, int *gpu_of_rank, int ranks)
{
    g_auto(GStrv) words = g_strsplit(order, "-", -1);
    for (int r = 0; r < ranks; r++) {
        int rest = r, gpu = 0, stride = 1;
        const int tensor = rest % plan->tensor;
        rest /= plan->tensor;
        const int context = rest % plan->context;
        rest /= plan->context;
        const int data = rest % plan->data, pipeline = rest / plan->data;
        const struct {
            const char *word;
            int at, count;
        } dims[] = {{"tp", tensor, plan->tensor},
                    {"cp", context, plan->context},
                    {"dp", data, plan->data},
                    {"pp", pipeline, plan->shape.ranks}};
        for (char **word = words; *word != NULL; word++)
            for (gsize i = 0; i < G_N_ELEMENTS(dims); i++)
                if (strcmp(*word, dims[i].word) == 0) {
                    gpu += dims[i].at * stride;
                    stride *= dims[i].count;
                }
        gpu_of_rank[r] = gpu;
    }
}

/* --- paces --- */

static void slow_down(SimPace *pace, double frac)
{
    pace->speed = (int32_t)MAX(1, llround(pace->speed * fmax(LEAST_SPEED, 1 - frac)));
}

static void draw_slow_nodes(const SpecJitter *jitter, int nodes, bool *slow)
{
    const int wanted =
        jitter->slow_nodes_frac > 0 ? CLAMP((int)lround(jitter->slow_nodes_frac * nodes), 1, nodes) : 0;
    OrrDraws draws = orr_draws((uint64_t)jitter->seed, DRAW_NODES);
    for (int count = 0; count < wanted;) {
        const int node = (int)(orr_draw(&draws) * nodes); /* a draw is below 1 */
        count += !slow[node];
        slow[node] = true;
    }
}

/* Exchanges inside passes keep their pace: a slow scale-up port needs its rank beside it that says what passes lack. */
static bool link_counts(const SpecSlow *slow, const Spec *spec, GError **error)
{
    bool passes = spec->parallel.tensor == 1 && spec->parallel.context == 1 && spec->parallel.expert == 1;
    for (int i = 0; i < spec->jitter.slow_count; i++) {
        const SpecSlow *beside = &spec->jitter.slow[i];
        passes = passes || (beside->part == SPEC_SLOW_RANK && beside->index == slow->index);
    }
    return slow->part != SPEC_SLOW_LINK || passes ||
           orr_fail(
               error, ORR_ERROR_INPUT,
               "jitter.slow: link %d does not slow what tensor, context and expert ranks exchange in their "
               "passes; give {\"rank\": %d, \"frac\": ...} beside it, the speed that its passes lack, or "
               "cluster.network.failed_links on flows",
               slow->index, slow->index);
}

static bool apply_slow(const SpecSlow *slow, Paces *paces, GError **error)
{
    const SpecCluster *cluster = &paces->report->spec->cluster;
    const int most = slow->part == SPEC_SLOW_NODE ? cluster->nodes : paces->ranks;
    if (slow->index >= most)
        return orr_fail(error, ORR_ERROR_INPUT, "jitter.slow: %s %d is not there; give 0 to %d",
                        spec_word(&spec_words_slow_part, (int)slow->part), slow->index, most - 1);
    if (!link_counts(slow, paces->report->spec, error))
        return false;
    for (int r = 0; r < paces->ranks; r++) {
        SimPace *pace = &paces->fixed[r];
        const int gpu = paces->gpu_of_rank[r];
        const int32_t left = (int32_t)MAX(1, lround(SIM_WHOLE_RESOURCE * (1 - slow->frac)));
        if (slow->part == SPEC_SLOW_NODE ? gpu / cluster->gpus_per_node != slow->index : gpu != slow->index)
            continue;
        if (slow->part == SPEC_SLOW_NIC)
            pace->scale_out = MIN(pace->scale_out, left);
        else if (slow->part == SPEC_SLOW_LINK)
            pace->scale_up = MIN(pace->scale_up, left);
        else
            slow_down(pace, slow->frac);
    }
    return true;
}

static bool fix_paces(Paces *paces, GError **error)
{
    const Spec *spec = paces->report->spec;
    const SpecJitter *jitter = &spec->jitter;
    g_autofree bool *slow = g_new0(bool, (gsize)spec->cluster.nodes);
    draw_slow_nodes(jitter, spec->cluster.nodes, slow);
    g_autofree double *spread = g_new0(double, (gsize)paces->ranks);
    OrrDraws draws = orr_draws((uint64_t)jitter->seed, DRAW_SPREAD);
    for (int gpu = 0; jitter->rank_spread_frac > 0 && gpu < paces->ranks; gpu++)
        spread[gpu] = jitter->rank_spread_frac * fabs(orr_draw_normal(&draws));
    for (int r = 0; r < paces->ranks; r++) {
        const int gpu = paces->gpu_of_rank[r];
        paces->fixed[r] = SIM_FULL_PACE;
        if (slow[gpu / spec->cluster.gpus_per_node])
            slow_down(&paces->fixed[r], jitter->slow_nodes_by_frac);
        slow_down(&paces->fixed[r], spread[gpu]);
    }
    for (int i = 0; i < jitter->slow_count; i++)
        if (!apply_slow(&jitter->slow[i], paces, error))
            return false;
    return true;
}

/* Those of step `step`: noise of each GPU, and one time of the day for all. */
static void step_paces(const Paces *paces, int step, SimPace *out)
{
    const SpecJitter *jitter = &paces->report->spec->jitter;
    OrrDraws draws = orr_draws((uint64_t)jitter->seed, (uint64_t)(DRAW_STEP + step));
    const double heat = jitter->thermal_swing_frac * (1 - cos(2 * PI * orr_draw(&draws))) / 2;
    memcpy(out, paces->fixed, sizeof *out * (gsize)paces->ranks);
    for (int r = 0; r < paces->ranks; r++) {
        if (jitter->step_noise_frac > 0)
            slow_down(&out[r], jitter->step_noise_frac * fabs(orr_draw_normal(&draws)));
        if (heat > 0)
            slow_down(&out[r], heat);
    }
}

/* --- steps --- */

/* A micro-batch's passes through one stage at a pace. */
static double stage_ps(const SimStage *stage, int32_t speed)
{
    double sum_ps = 0;
    for (int i = 0; i < stage->segment_count; i++) {
        const SimSegment *segment = &stage->segments[i];
        const SimWork *works[] = {&segment->forward, &segment->recompute, &segment->backward_input,
                                  &segment->backward_weight};
        for (gsize w = 0; w < G_N_ELEMENTS(works); w++)
            sum_ps += (double)sim_duration_at_speed_ps(sim_work_duration_ps(works[w]),
                                                       sim_work_compute_ps(works[w]), speed);
    }
    return sum_ps;
}

/* [ranks] of a micro-batch on a pipeline rank at full speed and at half of it: linear between in 1 / speed. */
static void rank_costs(const SimPlan *plan, double *full_ps, double *half_ps)
{
    for (int p = 0; p < plan->shape.ranks; p++)
        for (int chunk = 0; chunk < plan->shape.chunks; chunk++) {
            const SimStage *stage = &plan->stages[sim_stage_of(plan->schedule->placement, plan->shape.ranks,
                                                               plan->shape.chunks, p, chunk)];
            full_ps[p] += stage_ps(stage, SIM_FULL_RATE);
            half_ps[p] += stage_ps(stage, SIM_FULL_RATE / 2);
        }
}

/* What a replica of a kind does; all do the same where nodes are alike (kind 0 of 1). */
static const SimPlan *plan_of_kind(const Report *report, int kind)
{
    return report->kinds.count > 0 ? &report->kinds.kinds[kind].plan : &report->plan;
}

static int kind_of(const Report *report, int replica)
{
    return report->kinds.count > 0 ? report->kinds.kind_of_replica[replica] : 0;
}

/* About how long the pipelines of one kind of replicas take, in their places of [data]: the slowest rank for all micro-batches,
 * the others for one chunk. */
static void kind_costs(const Report *report, int kind, const SimPace *columns, double *ret_ps)
{
    const SimPlan *plan = plan_of_kind(report, kind);
    const int ranks = plan->shape.ranks;
    g_autofree double *full_ps = g_new0(double, (gsize)ranks), *half_ps = g_new0(double, (gsize)ranks);
    rank_costs(plan, full_ps, half_ps);
    for (int d = 0; d < plan->data; d++) {
        double sum_ps = 0, slowest_ps = 0;
        for (int p = 0; p < ranks && kind_of(report, d) == kind; p++) {
            const double lost = (double)SIM_FULL_RATE / columns[p * plan->data + d].speed - 1;
            const double rank_ps = full_ps[p] + lost * (half_ps[p] - full_ps[p]);
            sum_ps += rank_ps / plan->shape.chunks;
            slowest_ps = fmax(slowest_ps, rank_ps);
        }
        if (kind_of(report, d) == kind)
            ret_ps[d] = sum_ps + plan->shape.microbatches * slowest_ps;
    }
}

static void pipeline_costs(const Report *report, const SimPace *columns, double *ret_ps)
{
    for (int kind = 0; kind < MAX(1, report->kinds.count); kind++)
        kind_costs(report, kind, columns, ret_ps);
}

/* A replica's share of the micro-batches, over the mean one. */
static double share_of(const Report *report, int replica)
{
    const int data = report->plan.data,
              own = plan_of_kind(report, kind_of(report, replica))->shape.microbatches;
    int64_t sum = 0;
    for (int d = 0; report->kinds.count > 0 && d < data; d++)
        sum += plan_of_kind(report, kind_of(report, d))->shape.microbatches;
    return sum > 0 ? (double)own * data / (double)sum : 1;
}

static bool has_slow_link(const SimPlan *plan, const SimPace *columns, int d)
{
    for (int p = 0; p < plan->shape.ranks; p++) {
        const SimPace *pace = &columns[p * plan->data + d];
        if (pace->scale_up < SIM_WHOLE_RESOURCE || pace->scale_out < SIM_WHOLE_RESOURCE)
            return true;
    }
    return false;
}

/* The slowest replicas, and those with slow links. */
static void keep_slowest(const Report *report, const SimPace *columns, int most, bool *kept)
{
    const SimPlan *plan = &report->plan;
    g_autofree double *costs = g_new(double, (gsize)plan->data);
    pipeline_costs(report, columns, costs);
    for (int d = 0; d < plan->data; d++)
        kept[d] = has_slow_link(plan, columns, d);
    for (int count = 0; count < MIN(most, plan->data); count++) {
        int worst = -1;
        for (int d = 0; d < plan->data; d++)
            if (costs[d] >= 0 && (worst < 0 || costs[d] > costs[worst]))
                worst = d;
        kept[worst] = true;
        costs[worst] = -1;
    }
}

/* `dropped` (NULL: none): data indices whose gradients are not waited for. */
static bool run_step(const Paces *paces, const SimPace *of_ranks, const bool *dropped, SimPacedStep *ret_step,
                     GError **error)
{
    const SimPlan *plan = &paces->report->plan;
    OrrArena *scratch = orr_arena_new();
    bool ok = false;
    if (sim_paces_fold(plan)) {
        SimPace *columns = ORR_ARENA_NEW(scratch, SimPace, (int64_t)plan->shape.ranks * plan->data);
        bool *kept = ORR_ARENA_NEW(scratch, bool, plan->data);
        sim_paces_of_columns(plan, of_ranks, columns);
        for (int d = 0; dropped != NULL && d < plan->data; d++)
            for (int p = 0; dropped[d] && p < plan->shape.ranks; p++)
                columns[p * plan->data + d] = SIM_FULL_PACE;
        keep_slowest(paces->report, columns, MAX(REPORT_JITTER_KEPT, paces->most_ranks / plan->shape.ranks),
                     kept);
        ok = sim_run_columns(plan, &paces->report->kinds, columns, kept, paces->furnish, scratch, ret_step,
                             error);
    } else {
        ok = sim_run_paces(plan, of_ranks, paces->furnish, scratch, ret_step, error);
    }
    orr_arena_free(scratch);
    return ok;
}

static int compare_ps(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool run_steps(const Paces *paces, ReportJitter *out, GError **error)
{
    const SpecJitter *jitter = &paces->report->spec->jitter;
    const bool alike = !(jitter->step_noise_frac > 0) && !(jitter->thermal_swing_frac > 0);
    const int steps = alike ? 1 : jitter->steps;
    Paces sampled = *paces;
    sampled.most_ranks = alike ? paces->most_ranks : RANKS_A_DRAW;
    g_autofree SimPace *of_ranks = g_new(SimPace, (gsize)paces->ranks);
    g_autofree int64_t *lasted = g_new(int64_t, (gsize)steps);
    SimPacedStep step = {0};
    double sum = 0;
    for (int i = 0; i < steps; i++) {
        step_paces(paces, i, of_ranks);
        if (!run_step(&sampled, of_ranks, NULL, &step, error))
            return false;
        lasted[i] = step.step_ps;
        sum += (double)step.step_ps;
    }
    qsort(lasted, (size_t)steps, sizeof *lasted, compare_ps);
    out->steps = steps;
    out->mean_s = sum * 1e-12 / steps;
    out->p50_ps = lasted[orr_stats_rank((size_t)steps, .5)];
    out->p99_ps = lasted[orr_stats_rank((size_t)steps, .99)];
    out->worst_ps = lasted[steps - 1];
    out->simulated_ranks = step.ranks;
    return true;
}

/* --- who is waited for, and what would help --- */

static double pace_of(const SimPace *pace)
{
    return fmin((double)pace->speed / SIM_FULL_RATE,
                (double)MIN(pace->scale_up, pace->scale_out) / SIM_WHOLE_RESOURCE);
}

/* Of the slowest replica that has a slow GPU or link: its slowest. */
static int slowest_rank(const Paces *paces)
{
    const SimPlan *plan = &paces->report->plan;
    const int group = plan->tensor * plan->context;
    g_autofree SimPace *columns = g_new(SimPace, (gsize)(plan->shape.ranks * plan->data));
    g_autofree double *costs = g_new(double, (gsize)plan->data);
    int slowest = 0;
    sim_paces_of_columns(plan, paces->fixed, columns);
    pipeline_costs(paces->report, columns, costs);
    for (int r = 1; r < paces->ranks; r++) {
        const double own = pace_of(&paces->fixed[r]), least = pace_of(&paces->fixed[slowest]);
        const double cost = costs[r / group % plan->data], most = costs[slowest / group % plan->data];
        if (own < 1 && (least >= 1 || cost > most || (cost >= most && own < least)))
            slowest = r;
    }
    return slowest;
}

/* What the groups lack for good, [pipeline rank x data + data rank]. */
static const double *lacking(const Paces *paces)
{
    const SimPlan *plan = &paces->report->plan;
    const int count = plan->shape.ranks * plan->data;
    g_autofree SimPace *columns = g_new(SimPace, (gsize)count);
    double *lacks = ORR_ARENA_NEW(paces->arena, double, count);
    sim_paces_of_columns(plan, paces->fixed, columns);
    for (int i = 0; i < count; i++)
        lacks[i] = 1 - pace_of(&columns[i]);
    return lacks;
}

/* Mean rate of replicas that wait for nobody, over the one at which all wait for the slowest. */
static bool run_alone(const Paces *paces, int64_t together_ps, double *ret_gain, GError **error)
{
    const SimPlan *plan = &paces->report->plan;
    OrrArena *scratch = orr_arena_new();
    SimPace *columns = ORR_ARENA_NEW(scratch, SimPace, (int64_t)plan->shape.ranks * plan->data);
    sim_paces_of_columns(plan, paces->fixed, columns);
    const int stride = (plan->data + MOST_ALONE - 1) / MOST_ALONE;
    double rates = 0;
    int count = 0;
    bool ok = true;
    for (int d = 0; ok && d < plan->data; d += stride, count++) {
        SimPacedStep step;
        bool *kept = ORR_ARENA_NEW(scratch, bool, plan->data);
        memset(kept, 0, sizeof *kept * (gsize)plan->data);
        kept[d] = true;
        ok = sim_run_columns(plan, &paces->report->kinds, columns, kept, paces->furnish, scratch, &step,
                             error);
        rates += ok ? share_of(paces->report, d) * (double)together_ps / (double)step.step_ps : 0;
    }
    orr_arena_free(scratch);
    *ret_gain = ok ? rates / count - 1 : 0;
    return ok;
}

static bool run_remedies(const Paces *paces, ReportJitter *out, GError **error)
{
    const SimPlan *plan = &paces->report->plan;
    const int per_node = paces->report->spec->cluster.gpus_per_node, slowest = slowest_rank(paces);
    const int group = plan->tensor * plan->context;
    SimPacedStep with, step;
    out->slowest_gpu = paces->gpu_of_rank[slowest];
    out->slowest_node = out->slowest_gpu / per_node;
    out->slowest_frac = 1 - pace_of(&paces->fixed[slowest]);
    out->slowest_pipeline_rank = slowest / (group * plan->data);
    out->slowest_data_rank = slowest / group % plan->data;
    out->evict_gain_frac = out->backup_gain_frac = out->async_gain_frac = NAN;
    if (!(out->slowest_frac > 0))
        return true;
    g_autofree SimPace *healthy = g_memdup2(paces->fixed, sizeof(SimPace) * (gsize)paces->ranks);
    for (int r = 0; r < paces->ranks; r++)
        if (paces->gpu_of_rank[r] / per_node == out->slowest_node)
            healthy[r] = SIM_FULL_PACE;
    if (!run_step(paces, paces->fixed, NULL, &with, error) || !run_step(paces, healthy, NULL, &step, error))
        return false;
    out->evict_gain_frac = (double)with.step_ps / (double)step.step_ps - 1;
    if (plan->data == 1 || !sim_paces_fold(plan))
        return true;
    g_autofree bool *dropped = g_new0(bool, (gsize)plan->data);
    dropped[out->slowest_data_rank] = true;
    if (!run_step(paces, paces->fixed, dropped, &step, error))
        return false;
    const double left = plan->data - share_of(paces->report, out->slowest_data_rank);
    out->backup_gain_frac = (double)with.step_ps / (double)step.step_ps * left / plan->data - 1;
    return run_alone(paces, with.step_ps, &out->async_gain_frac, error);
}

/* --- on a fabric --- */

typedef struct Fabric {
    Traffic *traffic;
    const SimPlan *plan;
} Fabric;

static bool add_links(void *user, SimProgram *program, OrrArena *arena, GError **error)
{
    const Fabric *fabric = user;
    return traffic_furnish(fabric->traffic, fabric->plan, program, arena, error);
}

static bool run_all(Paces *paces, ReportJitter *out, GError **error)
{
    const Report *report = paces->report;
    Fabric fabric = {.plan = &report->plan};
    const SimFurnish furnish = {add_links, &fabric};
    if (report->network.on) {
        fabric.traffic = traffic_new(report->spec, NULL, error);
        if (fabric.traffic == NULL)
            return false;
        paces->furnish = &furnish;
    }
    const bool ok =
        fix_paces(paces, error) && run_steps(paces, out, error) && run_remedies(paces, out, error);
    traffic_free(fabric.traffic);
    paces->furnish = NULL;
    return ok;
}

static bool supported(const Report *report, int ranks, GError **error)
{
    const SpecNetwork *network = &report->spec->cluster.network;
    if (report->plan.servers != NULL)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "jitter: parameter servers draw their own (parallel.parameter_server.spread); leave one out");
    if (report->network.on && network->job_count + network->traffic_count > 0)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "jitter: cluster.network.%s is simulated only with ranks that are all alike; "
                        "leave one of the two out",
                        network->job_count > 0 ? "jobs" : "traffic");
    if (!sim_paces_fold(&report->plan) && ranks > MOST_RANKS)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "jitter: with offloading every rank is simulated, and %d are too many; give at most %d GPUs",
            ranks, MOST_RANKS);
    return true;
}

bool report_jitter_fill(Report *report, OrrArena *arena, GError **error)
{
    const Spec *spec = report->spec;
    const SimPlan *plan = &report->plan;
    if (!spec->jitter.given)
        return true;
    Paces paces = {.report = report, .arena = arena, .most_ranks = RANKS_A_STEP};
    paces.ranks = plan->shape.ranks * plan->tensor * plan->context * plan->data;
    if (!supported(report, paces.ranks, error))
        return false;
    paces.gpu_of_rank = ORR_ARENA_NEW(arena, int, paces.ranks);
    paces.fixed = ORR_ARENA_NEW(arena, SimPace, paces.ranks);
    number_gpus(plan, spec->parallel.order, paces.gpu_of_rank, paces.ranks);
    if (!run_all(&paces, &report->jitter, error))
        return false;
    report->jitter.lacks_frac = lacking(&paces);
    report->jitter.told = true;
    return true;
}
