/* step/pieces.c - see pieces.h. */
#include "step/pieces.h"

#include "costmodel/adapter.h"
#include "sim/picoseconds.h"
#include "step/step.h"

static const char *const ALIKE_ORDERS[] = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"};

bool step_order_is_alike(const char *order)
{
    return strcmp(order, ALIKE_ORDERS[0]) == 0 || strcmp(order, ALIKE_ORDERS[1]) == 0;
}

bool step_pieces_follow_pipeline(const Spec *spec)
{
    const SpecFramework *framework = &spec->execution.framework;
    return framework->pipeline.p2p_host_s > 0 || framework->host.collective_checks_pipelines_only ||
           spec->model.tied_embeddings;
}

/* What stays is stacked in both passes, norms of a copy run theirs again in the backward: less where layers run again. */
bool step_pieces_follow_recompute(const Spec *spec)
{
    const SpecRecipeKernels *kernels = &spec->execution.framework.kernels;
    return kernels->stacks_layers || kernels->norm == SPEC_NORM_KERNEL_COPY;
}

static void lower(int64_t *least, int64_t other)
{
    *least = MIN(*least, other);
}

static void lower_split(StepSplit *least, const StepSplit *other)
{
    lower(&least->exchange_ps, other->exchange_ps);
    lower(&least->kernels_ps, other->kernels_ps);
}

void step_piece_lower(StepPiece *least, const StepPiece *other)
{
    lower(&least->forward_ps, other->forward_ps);
    lower(&least->input_ps, other->input_ps);
    lower(&least->weight_ps, other->weight_ps);
    lower(&least->again_ps, other->again_ps);
    lower_split(&least->ahead, &other->ahead);
    lower_split(&least->back, &other->back);
    lower_split(&least->again, &other->again);
}

/* --- from a plan --- */

static void add_split(StepSplit *side, const SimWork *work)
{
    side->exchange_ps += work->part_ps[SIM_PART_EXPERT_COMM];
    side->kernels_ps += sim_work_duration_ps(work) - work->part_ps[SIM_PART_EXPERT_COMM];
}

/* Times and bytes together; of temporaries those of the last segment. */
static void add_segment(const SimSegment *segment, StepPiece *piece)
{
    piece->forward_ps += sim_work_duration_ps(&segment->forward);
    piece->input_ps += sim_work_duration_ps(&segment->backward_input);
    piece->weight_ps += sim_work_duration_ps(&segment->backward_weight);
    piece->again_ps += sim_work_duration_ps(&segment->recompute);
    add_split(&piece->ahead, &segment->forward);
    add_split(&piece->back, &segment->backward_input);
    add_split(&piece->back, &segment->backward_weight);
    add_split(&piece->again, &segment->recompute);
    piece->kept_bytes += segment->activation_bytes;
    piece->input_only_bytes += segment->activation_input_only_bytes;
    piece->forward_temp_bytes = segment->forward_temp_bytes;
    piece->backward_temp_bytes = segment->backward_temp_bytes;
    piece->segments++;
}

static bool leaves_sms(const SimSegment *segment)
{
    const SimWork *works[] = {&segment->forward, &segment->backward_input, &segment->backward_weight,
                              &segment->recompute};
    bool leaves = false;
    for (gsize k = 0; k < G_N_ELEMENTS(works); k++)
        leaves |= sim_work_share(works[k], 0) != NULL;
    return leaves;
}

/* Segment `i` of a stage without what is the stage's: its bookkeeping, what it passes on, checks behind messages. */
static SimSegment own_segment(const SimStage *stage, int i, int64_t overhead_ps)
{
    SimSegment segment = stage->segments[i];
    if (i == 0) {
        segment.forward.part_ps[SIM_PART_OTHER] -= overhead_ps + stage->forward_check_ps;
        segment.backward_input.part_ps[SIM_PART_OTHER] -= overhead_ps;
        segment.activation_bytes -= stage->passed_bytes;
    }
    if (i == stage->segment_count - 1)
        segment.backward_input.part_ps[SIM_PART_OTHER] -= stage->backward_check_ps;
    return segment;
}

/* Segments in their order: embedding, layers (on one or more stages), multi-token prediction, head. */
static void read_segments(const SimPlan *plan, int layers, StepPieces *pieces)
{
    int next = -1; /* layer; the embedding is before layer 0 */
    for (int stage = 0; stage < plan->shape.ranks; stage++) {
        for (int i = 0; i < plan->stages[stage].segment_count; i++, next++) {
            const SimSegment segment = own_segment(&plan->stages[stage], i, pieces->overhead_ps);
            StepPiece *piece = next < 0        ? &pieces->first
                               : next < layers ? &pieces->layer[next]
                                               : &pieces->last;
            add_segment(&segment, piece);
            pieces->leaves_sms |= leaves_sms(&segment);
        }
    }
}

/* Of a layer that a first stage runs forward alone and any other one in both directions (cost_part_stops()): the less. */
static void lower_to_forward(const Spec *spec, int layer, StepPiece *piece)
{
    if (!cost_part_stops(spec, COST_PART_LAYER, layer, layer))
        return;
    piece->input_ps = piece->weight_ps = piece->again_ps = 0;
    piece->back = piece->again = (StepSplit){0};
    piece->kept_bytes = piece->input_only_bytes = piece->backward_temp_bytes = 0;
}

static CostWeights part_weights(const Spec *spec, CostModelPart part, int layer, bool tied)
{
    g_autofree Spec *own = g_memdup2(spec, sizeof *spec);
    own->model.tied_embeddings = tied;
    const CostParams params = cost_trained_params(own, part, layer);
    return cost_rank_weights(&params, &spec->parallel);
}

static void read_weights(const Spec *spec, StepPieces *pieces)
{
    const bool tied = spec->model.tied_embeddings;
    for (int layer = 0; layer < spec->model.layers; layer++) {
        const CostParams params = cost_trained_params(spec, COST_PART_LAYER, layer);
        pieces->layer[layer].weights = cost_rank_weights(&params, &spec->parallel);
    }
    pieces->first.weights = part_weights(spec, COST_PART_EMBEDDING, 0, tied);
    pieces->last.weights = part_weights(spec, COST_PART_HEAD, 0, false);
    pieces->tied_last = part_weights(spec, COST_PART_HEAD, 0, tied);
    if (spec->model.mtp_layers > 0)
        pieces->mtp = part_weights(spec, COST_PART_MTP, 0, false);
}

static void read_plan(const Spec *spec, OrrArena *arena, StepPieces *pieces)
{
    SimPlan plan;
    const bool ok = sim_step_plan(spec, arena, &plan, NULL);
    g_assert(ok);
    pieces->overhead_ps = sim_ps(spec->execution.framework.host.microbatch_overhead_s);
    pieces->layer = ORR_ARENA_NEW(arena, StepPiece, spec->model.layers);
    read_segments(&plan, spec->model.layers, pieces);
    for (int layer = 0; layer < spec->model.layers; layer++)
        lower_to_forward(spec, layer, &pieces->layer[layer]);
    read_weights(spec, pieces);
    pieces->head_left_out_ps = sim_work_duration_ps(&plan.head_left_out);
    pieces->workspace_bytes = plan.ranks[0].end_workspace_bytes;
    pieces->last_workspace_bytes = plan.ranks[plan.shape.ranks - 1].end_workspace_bytes;
    pieces->layer_workspace_bytes = plan.ranks[0].least_layer_workspace_bytes;
    pieces->hop_inside_ps = sim_step_hop_ps(spec, true);
    pieces->hop_across_ps = sim_step_hop_ps(spec, false);
}

/* --- the plan that is read --- */

/* The degrees of `spec`; each stage has a segment, the first and last their end. */
static void keep_degrees(const SpecParallel *own, int layers, SpecParallel *parallel)
{
    const int ranks = own->pipeline;
    int left = layers;
    parallel->pipeline = parallel->stage_layers_count = ranks;
    parallel->data = own->data;
    g_strlcpy(parallel->order, own->order, sizeof parallel->order);
    for (int r = ranks - 1; r > 0; r--) {
        parallel->stage_layers[r] = left > 0 && (r < ranks - 1 || layers >= ranks) ? 1 : 0;
        left -= parallel->stage_layers[r];
    }
    parallel->stage_layers[0] = left;
}

/* Where exchanges of experts hide, so many micro-batches that next to all of them have a partner, as no order has more;
 * else two accumulate like any number. */
static int microbatches_of(const Spec *spec, bool accumulates)
{
    const bool hides = (spec_overlap(spec) & SPEC_OVERLAP_EXPERT) != 0;
    if (!accumulates)
        return 1;
    return hides ? CLAMP(G_MAXINT / (spec->training.micro_batch * spec->parallel.data), 2, 1 << 16) : 2;
}

/* Two stages, unless there is no pipeline and that makes a difference, and nothing of data parallelism but the sums of
 * gradients: what it does is counted by buckets (sim_step_bucket()). */
static void small_pipeline(const Spec *spec, bool alike, bool accumulates, Spec *ret_spec)
{
    *ret_spec = *spec;
    SpecParallel *parallel = &ret_spec->parallel;
    SpecFramework *framework = &ret_spec->execution.framework;
    parallel->virtual_stages = 1;
    parallel->schedule = sim_schedule_usual(1);
    parallel->stage_layers_count = parallel->first_stage_layers = parallel->last_stage_layers = 0;
    parallel->replica_microbatches_count = 0;
    parallel->embedding_as_layer = parallel->loss_as_layer = parallel->mtp_as_layer = false;
    const bool one = spec->parallel.pipeline == 1 && step_pieces_follow_pipeline(spec);
    parallel->pipeline = spec->model.layers > 1 && !one ? 2 : 1;
    parallel->data = MAX(1, ret_spec->cluster.scale_up_domain_gpus);
    parallel->zero_group_gpus = 0;
    if (alike)
        g_strlcpy(parallel->order, ALIKE_ORDERS[0], sizeof parallel->order);
    else
        keep_degrees(&spec->parallel, spec->model.layers, parallel);
    ret_spec->training.global_batch =
        ret_spec->training.micro_batch * parallel->data * microbatches_of(ret_spec, accumulates);
    /* passes of states on the GPU: no scheme makes them shorter */
    ret_spec->offload = spec_offload_with(&spec->offload, SPEC_OFFLOAD_NONE, -1, spec->model.layers);
    ret_spec->offload.activation_layers = 0;
    framework->pipeline.balances_head = false;
    framework->data_parallel.bucket_bytes = 0;
    framework->tensor.shares_maxima = SPEC_MAXIMA_NONE; /* over ranks that a small pipeline lacks */
}

/* To the less of two plans that candidates of one table may get. */
static void lower_to(const Spec *spec, OrrArena *arena, StepPieces *pieces)
{
    StepPieces other = {0};
    read_plan(spec, arena, &other);
    for (int layer = 0; layer < spec->model.layers; layer++)
        step_piece_lower(&pieces->layer[layer], &other.layer[layer]);
    step_piece_lower(&pieces->first, &other.first);
    step_piece_lower(&pieces->last, &other.last);
}

/* Where ZeRO-2 and 3 reduce after every micro-batch, the other stages add to a gradient and copy none on its way. That is
 * longer or shorter. */
static void lower_to_zero(Spec *spec, int zero, OrrArena *arena, StepPieces *pieces)
{
    spec->parallel.zero = zero;
    lower_to(spec, arena, pieces);
}

/* The first schedule of one stage a rank that splits the backward: how far hosts are ahead is alike in all of them. */
static SpecSchedule split_schedule(void)
{
    int row = 0;
    while (!sim_schedule_has(sim_schedule_at(row), SIM_TRAIT_SPLITS_BACKWARD) ||
           sim_schedule_at(row)->fixed_chunks != 1 || !sim_schedule_is_candidate(sim_schedule_at(row)))
        row++;
    return (SpecSchedule)row;
}

/* How far the host is ahead in a step of one micro-batch depends on whether its backward is split, and on whether there is a
 * pipeline at all. */
static void lower_to_hosts(Spec *spec, OrrArena *arena, StepPieces *pieces)
{
    const bool follows = step_pieces_follow_pipeline(spec);
    spec->parallel.schedule = split_schedule();
    lower_to(spec, arena, pieces);
    spec->parallel.schedule = sim_schedule_usual(1);
    if (follows)
        return;
    spec->parallel.pipeline = 1;
    spec->parallel.stage_layers_count = 0;
    lower_to(spec, arena, pieces);
}

void step_pieces(const Spec *spec, bool alike, bool accumulates, OrrArena *arena, StepPieces *ret_pieces)
{
    g_autofree Spec *small = g_new(Spec, 1);
    const bool each = spec->execution.framework.data_parallel.reduce_each_microbatch;
    *ret_pieces = (StepPieces){0};
    small_pipeline(spec, alike, accumulates, small);
    small->parallel.zero = each ? 2 : 0;
    read_plan(small, arena, ret_pieces);
    if (each)
        lower_to_zero(small, 0, arena, ret_pieces);
    if (!accumulates && small->parallel.pipeline > 1)
        lower_to_hosts(small, arena, ret_pieces);
}
