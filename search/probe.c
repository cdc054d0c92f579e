/* search/probe.c - see probe.h. */
#include "search/probe.h"

#include <math.h>
#include <string.h>

#include "costmodel/adapter.h"
#include "costmodel/params.h"
#include "search/hardware.h"
#include "step/step.h"
#include "spec/placement.h"

typedef struct Probe {
    const Spec *spec;
    SearchCosts *costs;
    SearchLayer *rows; /* [layers] */
    OrrArena *scratch;
    SearchRecomputed again;
    int layers;
    bool first; /* fills what recomputation does not change */
} Probe;

static int64_t duration_ps(const SimWork *work)
{
    int64_t ps = 0;
    for (int part = 0; part < SIM_PART_COUNT; part++)
        ps += work->part_ps[part];
    return ps;
}

static void add_split(SearchTimeSplit *side, const SimWork *work)
{
    side->exchange_ps += work->part_ps[SIM_PART_EXPERT_COMM];
    side->kernels_ps += duration_ps(work) - work->part_ps[SIM_PART_EXPERT_COMM];
}

static void add_end(SearchModelEnd *end, const SimSegment *segment)
{
    end->forward_ps += duration_ps(&segment->forward);
    end->input_ps += duration_ps(&segment->backward_input);
    end->weight_ps += duration_ps(&segment->backward_weight);
    add_split(&end->ahead, &segment->forward);
    add_split(&end->back, &segment->backward_input);
    add_split(&end->back, &segment->backward_weight);
    end->kept_bytes += segment->activation_bytes;
    end->input_only_bytes += segment->activation_input_only_bytes;
    end->forward_temp_bytes = segment->forward_temp_bytes;
    end->backward_temp_bytes = segment->backward_temp_bytes;
    end->segments++;
}

static void less_of_split(SearchTimeSplit *side, const SearchTimeSplit *other)
{
    side->exchange_ps = MIN(side->exchange_ps, other->exchange_ps);
    side->kernels_ps = MIN(side->kernels_ps, other->kernels_ps);
}

static void less_of_passes(SearchLayer *row, const SearchLayer *other)
{
    row->forward_ps = MIN(row->forward_ps, other->forward_ps);
    row->input_ps = MIN(row->input_ps, other->input_ps);
    row->weight_ps = MIN(row->weight_ps, other->weight_ps);
    less_of_split(&row->ahead, &other->ahead);
    less_of_split(&row->back, &other->back);
}

static void less_of_end(SearchModelEnd *end, const SearchModelEnd *other)
{
    end->forward_ps = MIN(end->forward_ps, other->forward_ps);
    end->input_ps = MIN(end->input_ps, other->input_ps);
    end->weight_ps = MIN(end->weight_ps, other->weight_ps);
    less_of_split(&end->ahead, &other->ahead);
    less_of_split(&end->back, &other->back);
}

static SearchLayer passes_of(const SimSegment *segment)
{
    SearchLayer row = {.forward_ps = duration_ps(&segment->forward),
                       .input_ps = duration_ps(&segment->backward_input),
                       .weight_ps = duration_ps(&segment->backward_weight)};
    add_split(&row.ahead, &segment->forward);
    add_split(&row.back, &segment->backward_input);
    add_split(&row.back, &segment->backward_weight);
    return row;
}

/* Of passes that recomputation changes the least counts. */
static void take_layer(Probe *probe, int layer, const SimSegment *segment)
{
    SearchLayer *row = &probe->rows[layer];
    const SearchLayer passes = passes_of(segment);
    if (probe->first) {
        const CostParams params = cost_trained_params(probe->spec, COST_PART_LAYER, layer);
        *row = passes;
        row->weights = cost_rank_weights(&params, &probe->spec->parallel);
    }
    less_of_passes(row, &passes);
    SearchLayerRecompute *again = &row->again[probe->again];
    again->ps = duration_ps(&segment->recompute);
    add_split(&again->side, &segment->recompute);
    again->kept_bytes = segment->activation_bytes;
    again->input_only_bytes = segment->activation_input_only_bytes;
    again->forward_temp_bytes = segment->forward_temp_bytes;
    again->backward_temp_bytes = segment->backward_temp_bytes;
}

static void end_params(const Probe *probe, CostModelPart piece, bool tied, SearchModelEnd *end)
{
    g_autofree Spec *own = g_memdup2(probe->spec, sizeof *probe->spec);
    own->model.tied_embeddings = tied;
    const CostParams params = cost_trained_params(own, piece, 0);
    const CostWeights weights = cost_rank_weights(&params, &probe->spec->parallel);
    cost_weights_add(&end->weights, &weights);
}

/* Segments of a probe: embedding, layers (on one or two stages), multi-token prediction, head. */
static void take_plan(Probe *probe, const SimPlan *plan)
{
    SearchCosts *costs = probe->costs;
    const int ranks = plan->shape.ranks;
    SearchModelEnd again = {0};
    int next = -1; /* layer; the embedding is before layer 0 */
    for (int stage = 0; stage < ranks; stage++) {
        for (int i = 0; i < plan->stages[stage].segment_count; i++, next++) {
            SimSegment segment = plan->stages[stage].segments[i];
            if (i ==
                0) { /* its stage's bookkeeping is counted apart; checks behind messages are at others' */
                segment.forward.part_ps[SIM_PART_OTHER] -=
                    costs->overhead_ps + plan->stages[stage].forward_check_ps;
                segment.backward_input.part_ps[SIM_PART_OTHER] -= costs->overhead_ps;
                segment.activation_bytes -= plan->stages[stage].passed_bytes;
            }
            if (i == plan->stages[stage].segment_count - 1)
                segment.backward_input.part_ps[SIM_PART_OTHER] -= plan->stages[stage].backward_check_ps;
            const SimWork *works[] = {&segment.forward, &segment.backward_input, &segment.backward_weight,
                                      &segment.recompute};
            for (gsize k = 0; k < G_N_ELEMENTS(works); k++)
                costs->leaves_sms |= sim_work_share(works[k], 0) != NULL;
            if (next >= 0 && next < probe->layers)
                take_layer(probe, next, &segment);
            else if (probe->first)
                add_end(next < 0 ? &costs->first : &costs->last, &segment);
            else if (next > 0)
                add_end(&again, &segment);
        }
    }
    if (again.segments >
        0) { /* multi-token prediction follows recomputation too: the least of all recomputes */
        costs->last.kept_bytes = MIN(costs->last.kept_bytes, again.kept_bytes);
        costs->last.input_only_bytes = MAX(costs->last.input_only_bytes, again.input_only_bytes);
        less_of_end(&costs->last, &again);
    }
    if (!probe->first)
        return;
    end_params(probe, COST_PART_EMBEDDING, probe->spec->model.tied_embeddings, &costs->first);
    end_params(probe, COST_PART_HEAD, false, &costs->last);
    end_params(probe, COST_PART_HEAD, probe->spec->model.tied_embeddings, &costs->tied_last);
    if (probe->spec->model.mtp_layers > 0)
        end_params(probe, COST_PART_MTP, false, &costs->mtp);
    costs->head_left_out_ps = duration_ps(&plan->head_left_out);
    costs->workspace_bytes = plan->ranks[0].end_workspace_bytes;
    costs->last_workspace_bytes = plan->ranks[ranks - 1].end_workspace_bytes;
    costs->layer_workspace_bytes = plan->ranks[0].least_layer_workspace_bytes;
}

static void probe_once(Probe *probe, Spec *spec, SpecRecompute recompute)
{
    SimPlan plan;
    spec->training.recompute = recompute;
    const bool ok = sim_step_plan(spec, probe->scratch, &plan, NULL);
    g_assert(ok);
    take_plan(probe, &plan);
    probe->costs->known |= 1u << probe->again;
    probe->first = false;
}

static const char *const ALIKE_ORDERS[] = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"};

/* Spans hold for every data and pipeline degree where both are outside of the others, and groups divide a domain or are
 * divided by it. */
bool search_placed_alike(const SearchSpace *space, const SearchGroup *group)
{
    const int64_t strides[] = {group->tensor, (int64_t)group->tensor * group->context, group->expert_tensor,
                               (int64_t)group->expert_tensor * group->expert};
    for (int kind = 0; kind < search_hardware_count(space->spec); kind++) {
        const int domain = search_hardware_domain_gpus(space->spec, kind);
        for (gsize i = 0; i < G_N_ELEMENTS(strides); i++)
            if (domain % strides[i] != 0 && strides[i] % domain != 0)
                return false;
    }
    const char *order = space->rank_orders[group->order];
    return strcmp(order, ALIKE_ORDERS[0]) == 0 || strcmp(order, ALIKE_ORDERS[1]) == 0;
}

bool search_pipelines_apart(const Spec *spec)
{
    const SpecFramework *framework = &spec->execution.framework;
    return framework->pipeline.p2p_host_s > 0 || framework->host.collective_checks_pipelines_only ||
           spec->model.tied_embeddings;
}

/* The group's own degrees; each stage has a segment, the first and last their end. */
static void own_degrees(const SearchGroup *group, Spec *spec)
{
    SpecParallel *parallel = &spec->parallel;
    const int layers = spec->model.layers, ranks = group->pipeline;
    int left = layers;
    parallel->pipeline = parallel->stage_layers_count = ranks;
    parallel->data = group->data;
    for (int r = ranks - 1; r > 0; r--) {
        parallel->stage_layers[r] = left > 0 && (r < ranks - 1 || layers >= ranks) ? 1 : 0;
        left -= parallel->stage_layers[r];
    }
    parallel->stage_layers[0] = left;
}

/* Micro-batches of a probe: two accumulate like any number; where exchanges of experts hide, so many that next to all of
 * them have a partner, as no order has more. */
static int probe_microbatches(const SearchGroup *group, const Spec *spec)
{
    const bool hides = (spec_overlap(spec) & SPEC_OVERLAP_EXPERT) != 0;
    if (group->microbatches <= 1)
        return 1;
    return hides ? CLAMP(G_MAXINT / (group->micro_batch * spec->parallel.data), 2, 1 << 16) : 2;
}

/* Two stages, unless the group is no pipeline and pipelines are apart, and enough micro-batches that gradients accumulate as
 * they do at the group. */
static void probe_spec(const SearchSpace *space, const SearchGroup *group, int kind, Spec *ret_spec)
{
    const SpecFramework *framework = &space->spec->execution.framework;
    g_autofree Spec *all = g_memdup2(space->spec, sizeof *space->spec);
    search_apply_group(space, group, all); /* attention follows the kind: known before */
    search_hardware_spec(all, kind, ret_spec);
    SpecParallel *parallel = &ret_spec->parallel;
    const SearchPolicy given = {.zero = framework->data_parallel.reduce_each_microbatch ? 2 : 0,
                                .overlap = (space->spec->execution.overlap & SPEC_OVERLAP_AUTO) != 0
                                               ? 0
                                               : search_widest_policy(space).overlap};
    search_apply_policy(group, &given, ret_spec);
    parallel->virtual_stages = 1;
    parallel->schedule = sim_schedule_usual(1);
    parallel->stage_layers_count = parallel->first_stage_layers = parallel->last_stage_layers = 0;
    parallel->replica_microbatches_count = 0;
    parallel->embedding_as_layer = parallel->loss_as_layer = parallel->mtp_as_layer = false;
    const bool one = group->pipeline == 1 && search_pipelines_apart(space->spec);
    parallel->pipeline = ret_spec->model.layers > 1 && !one ? 2 : 1;
    parallel->data = MAX(1, ret_spec->cluster.scale_up_domain_gpus);
    if (search_placed_alike(space, group))
        g_strlcpy(parallel->order, ALIKE_ORDERS[0], sizeof parallel->order);
    else
        own_degrees(group, ret_spec);
    ret_spec->training.global_batch =
        group->micro_batch * parallel->data * probe_microbatches(group, ret_spec);
    /* passes of states on the GPU: no scheme makes them shorter */
    ret_spec->offload =
        spec_offload_with(&space->spec->offload, SPEC_OFFLOAD_NONE, -1, ret_spec->model.layers);
    ret_spec->offload.activation_layers = 0; /* what leaves is search_activations()'s affair */
    ret_spec->execution.framework.pipeline.balances_head = false;
    ret_spec->execution.framework.data_parallel.bucket_bytes = 0; /* data parallelism is counted elsewhere */
    ret_spec->execution.framework.tensor.shares_maxima =
        SPEC_MAXIMA_NONE; /* over ranks that a probe has not */
}

/* What stays is stacked in both passes, norms of a copy run theirs again in the backward: less where layers run again. */
static bool passes_follow_recompute(const Spec *spec)
{
    const SpecRecipeKernels *kernels = &spec->execution.framework.kernels;
    return kernels->stacks_layers || kernels->norm == SPEC_NORM_KERNEL_COPY;
}

static void probe_recomputed(const SearchSpace *space, Probe *probe, Spec *spec, bool whole)
{
    const SpecRecompute none = {.mode = SPEC_RECOMPUTE_NONE, .every_n_layers = 1};
    const SpecRecompute all = {.mode = SPEC_RECOMPUTE_FULL, .every_n_layers = 1};
    SpecRecompute some = {.mode = SPEC_RECOMPUTE_SELECTIVE, .every_n_layers = 1};
    SpecRecompute op = {.mode = SPEC_RECOMPUTE_SELECTIVE_OP, .every_n_layers = 1};
    unsigned modes = space->recompute;
    const SpecRecompute *own = &space->spec->training.recompute;
    if (modes == 0) {
        modes = 1u << own->mode;
        if (own->mode == SPEC_RECOMPUTE_MODULES) {
            some = *own;
            modes = 1u << SPEC_RECOMPUTE_SELECTIVE;
        }
    }
    if (modes & 1u << SPEC_RECOMPUTE_SELECTIVE_LAYER)
        modes |= 1u << SPEC_RECOMPUTE_FULL;
    probe->again = SEARCH_RECOMPUTED_NONE;
    probe_once(probe, spec, none);
    if (!whole && !passes_follow_recompute(spec))
        return;
    probe->again = SEARCH_RECOMPUTED_ALL;
    if (modes & 1u << SPEC_RECOMPUTE_FULL)
        probe_once(probe, spec, all);
    probe->again = SEARCH_RECOMPUTED_SOME;
    if (modes & 1u << SPEC_RECOMPUTE_SELECTIVE)
        probe_once(probe, spec, some);
    probe->again = SEARCH_RECOMPUTED_OP;
    if (modes & 1u << SPEC_RECOMPUTE_SELECTIVE_OP)
        probe_once(probe, spec, op);
}

static void less_of_layer(SearchLayer *row, const SearchLayer *other)
{
    less_of_passes(row, other);
    for (int kind = 0; kind < SEARCH_RECOMPUTED_COUNT; kind++) {
        row->again[kind].ps = MIN(row->again[kind].ps, other->again[kind].ps);
        less_of_split(&row->again[kind].side, &other->again[kind].side);
    }
}

/* Where ZeRO-2 and 3 reduce after every micro-batch, the other stages add to a gradient and copy none on its way. That is
 * another weight gradient, and behind a longer one the host hides more of its own time: each pass counts with the less of both. */
static void probe_other_zero(const SearchSpace *space, Probe *probe, Spec *spec, bool whole)
{
    SearchCosts other = {.overhead_ps = probe->costs->overhead_ps};
    Probe again = {.spec = spec,
                   .costs = &other,
                   .rows = ORR_ARENA_NEW(probe->scratch, SearchLayer, probe->layers),
                   .scratch = probe->scratch,
                   .layers = probe->layers,
                   .first = true};
    spec->parallel.zero = 0;
    probe_recomputed(space, &again, spec, whole);
    for (int layer = 0; layer < probe->layers; layer++)
        less_of_layer(&probe->rows[layer], &again.rows[layer]);
    less_of_end(&probe->costs->first, &other.first);
    less_of_end(&probe->costs->last, &other.last);
}

void search_probe(const SearchSpace *space, const SearchGroup *group, int kind, bool whole, OrrArena *scratch,
                  SearchCosts *ret_costs, SearchLayer *ret_rows)
{
    g_autofree Spec *spec = g_new(Spec, 1);
    SearchCosts costs = {0};
    Probe probe = {.spec = spec,
                   .costs = &costs,
                   .rows = ret_rows,
                   .scratch = scratch,
                   .layers = space->spec->model.layers,
                   .first = true};
    probe_spec(space, group, kind, spec);
    costs.overhead_ps = sim_ps(spec->execution.framework.host.microbatch_overhead_s);
    probe_recomputed(space, &probe, spec, whole);
    if (spec->execution.framework.data_parallel.reduce_each_microbatch)
        probe_other_zero(space, &probe, spec, whole);
    costs.hop_inside_ps = sim_step_hop_ps(spec, true);
    costs.hop_across_ps = sim_step_hop_ps(spec, false);
    *ret_costs = costs;
}
