/* report/memory_parts.c - what the memory of each pipeline rank is made of, by layer or by tensor, as CSV: at its peak, or
 * over the first steps, where a line is what changed.
 *
 * States go by the parameters of each piece; kept tensors are those of the graph, for every micro-batch that lies between
 * its forward and its backward at that moment. What else is alive then (parts of a pass that is under way, buffers of what
 * crosses stages, gathered weights, workspace) is the rank's own line of its kind, so that the lines of a rank add up to
 * what it holds. Activations that wait on the host are not in it.
 */
#include <math.h>
#include <string.h>

#include "costmodel/freeze.h"
#include "costmodel/activations.h"
#include "costmodel/layers.h"
#include "costmodel/states.h"
#include "report/memory_walk.h"
#include "report/parts.h"

/* Micro-batches of a stage on a rank whose forward has begun: with all that is kept, and with what weight gradients need. */
typedef struct Alive {
    int all, for_weights;
} Alive;

/* A forward begins or a backward ends. */
typedef struct Turn {
    int64_t ps;
    int stage, microbatch;
    gint8 state; /* of the micro-batch on the stage: 1 forward begun, 2 input gradient done, 3 gone */
} Turn;

/* Where the walk along one pipeline rank's step has come to. */
typedef struct RankParts {
    GArray *turns;  /* Turn, by time */
    GArray *passes; /* const SimSpan *, by time */
    guint next, next_pass;
    gint8 *state;  /* [stages][microbatches] */
    Alive *alive;  /* [stages] */
    GArray *shown; /* int64_t: bytes of each line as it was written last */
    int step;
} RankParts;

typedef struct Parts {
    const Report *report;
    CostShape shape;
    ReportMemoryBy by;
    GString *out;
    bool over_time;
    RankParts *ranks; /* [pipeline ranks] */
    int rank, stage;
    int64_t time_ps;
    bool lacks_moments;
    guint line;                  /* of the rank */
    int64_t rest[SIM_MEM_COUNT]; /* of what the rank holds, not in a line yet */
} Parts;

static void write_line(Parts *parts, int stage, const char *layer, const char *tensor, SimMem kind, int alive,
                       int64_t bytes)
{
    GArray *shown = parts->ranks[parts->rank].shown;
    if (parts->line == shown->len)
        g_array_set_size(shown, shown->len + 1);
    int64_t *before = &g_array_index(shown, int64_t, parts->line++);
    parts->rest[kind] -= bytes;
    if (*before == bytes)
        return;
    *before = bytes;
    if (parts->over_time)
        g_string_append_printf(parts->out, "%" G_GINT64_FORMAT ".%012" G_GINT64_FORMAT ",",
                               parts->time_ps / 1000000000000, parts->time_ps % 1000000000000);
    g_string_append_printf(parts->out, "%d,", parts->rank);
    if (stage >= 0)
        g_string_append_printf(parts->out, "%d", stage);
    g_string_append_printf(parts->out, ",%s,%s,%s,", layer, report_mem_name(kind), tensor);
    if (alive > 0)
        g_string_append_printf(parts->out, "%d", alive);
    g_string_append_printf(parts->out, ",%" G_GINT64_FORMAT "\n", bytes);
}

static int by_time(const void *a, const void *b)
{
    const Turn *x = a, *y = b;
    return (x->ps > y->ps) - (x->ps < y->ps);
}

static int by_start(const void *a, const void *b)
{
    const SimSpan *x = *(const SimSpan *const *)a, *y = *(const SimSpan *const *)b;
    return (x->start_ps > y->start_ps) - (x->start_ps < y->start_ps);
}

static RankParts rank_parts(const Report *report, int rank)
{
    const int simulated = rank * report_ranks_a_stage(report), count = report->plan.shape.microbatches,
              stages = report->plan.shape.ranks * report->plan.shape.chunks;
    const RankParts parts = {.turns = g_array_new(FALSE, FALSE, sizeof(Turn)),
                             .passes = g_array_new(FALSE, FALSE, sizeof(SimSpan *)),
                             .state = g_new0(gint8, (gsize)stages * (gsize)MAX(1, count)),
                             .alive = g_new0(Alive, stages),
                             .shown = g_array_new(FALSE, TRUE, sizeof(int64_t))};
    for (int64_t i = 0; i < report->result.span_count; i++) {
        const SimSpan *span = &report->result.spans[i];
        const bool forward = span->tag == SIM_TAG_FORWARD, input = span->tag == SIM_TAG_BACKWARD_INPUT,
                   backward = span->tag == SIM_TAG_BACKWARD || span->tag == SIM_TAG_BACKWARD_WEIGHT;
        if (span->rank != simulated || span->stage < 0 || span->microbatch < 0 || span->microbatch >= count ||
            !(forward || input || backward))
            continue;
        const Turn turn = {.ps = forward ? span->start_ps : span->end_ps,
                           .stage = span->stage,
                           .microbatch = span->microbatch,
                           .state = forward ? 1
                                    : input ? 2
                                            : 3};
        g_array_append_val(parts.turns, turn);
        g_array_append_val(parts.passes, span);
    }
    g_array_sort(parts.turns, by_time);
    g_array_sort(parts.passes, by_start);
    return parts;
}

static void rank_parts_clear(RankParts *parts)
{
    g_array_free(parts->turns, TRUE);
    g_array_free(parts->passes, TRUE);
    g_array_free(parts->shown, TRUE);
    g_free(parts->state);
    g_free(parts->alive);
}

/* From the beginning of a step. */
static void restart(const Report *report, RankParts *parts, int step)
{
    const gsize stages = (gsize)report->plan.shape.ranks * (gsize)report->plan.shape.chunks;
    parts->next = parts->next_pass = 0;
    parts->step = step;
    memset(parts->state, 0, stages * (gsize)MAX(1, report->plan.shape.microbatches));
    memset(parts->alive, 0, stages * sizeof *parts->alive);
}

static void advance(const Report *report, RankParts *parts, int64_t in_step_ps)
{
    for (; parts->next < parts->turns->len; parts->next++) {
        const Turn *turn = &g_array_index(parts->turns, Turn, parts->next);
        if (turn->ps > in_step_ps)
            return;
        Alive *alive = &parts->alive[turn->stage];
        gint8 *state = &parts->state[(gsize)turn->stage * (gsize)report->plan.shape.microbatches +
                                     (gsize)turn->microbatch];
        alive->all -= *state == 1;
        alive->for_weights -= *state == 2;
        *state = MAX(*state, turn->state);
        alive->all += *state == 1;
        alive->for_weights += *state == 2;
    }
}

/* The pass that runs at a moment, which comes behind those asked for before; NULL: none. */
static const SimSpan *pass_at(RankParts *parts, int64_t in_step_ps)
{
    for (; parts->next_pass < parts->passes->len; parts->next_pass++) {
        const SimSpan *span = g_array_index(parts->passes, const SimSpan *, parts->next_pass);
        if (span->end_ps > in_step_ps)
            return span->start_ps <= in_step_ps ? span : NULL;
    }
    return NULL;
}

/* `buffered`: what comes in lies in a buffer of what crosses stages, and is no tensor of its own. */
static void write_tensors(Parts *parts, const char *layer, const CostGraph *graph, CostRecomputeExtent extent,
                          bool buffered, Alive alive)
{
    const CostOps *forward = &graph->pass[COST_FORWARD];
    for (int i = 0; i < forward->kept_count; i++) {
        const CostTensor *tensor = &forward->kept[i];
        const int count = alive.all + (tensor->weight_grad ? alive.for_weights : 0);
        const bool elsewhere = buffered && tensor->written_by == COST_OUTSIDE;
        if (!elsewhere && !cost_drops_tensor(parts->shape.spec, forward, tensor, extent))
            write_line(parts, parts->stage, layer, tensor->name, SIM_MEM_ACTIVATIONS, count,
                       llround(count * cost_kept_bytes(&parts->shape, tensor, extent)));
    }
}

static void write_activations(Parts *parts, const char *layer, const SimSegment *segment, Alive alive)
{
    const int64_t left = segment->activation_bytes - segment->activation_input_only_bytes;
    write_line(parts, parts->stage, layer, "", SIM_MEM_ACTIVATIONS, alive.all + alive.for_weights,
               alive.all * segment->activation_bytes + alive.for_weights * left);
}

/* Adapters and the frozen weights beside them are tensors of their own, and so is a second model's part. What is off the GPU
 * is in no line, and what of it is on its way in the rank's own. */
static void write_states(Parts *parts, const char *layer, const SimSegment *segment)
{
    const Spec *spec = parts->report->spec;
    const SpecOffload *offload = &spec->offload;
    const CostWeights weights = {.dense = segment->dense_params, .expert = segment->expert_params};
    const CostStates states = cost_states(spec, &weights);
    const bool apart = parts->by == REPORT_MEMORY_BY_TENSOR, adapts = apart && spec->training.adapter.given;
    const struct {
        const char *tensor;
        SimMem kind;
        SpecTier tier;
        double bytes;
    } lines[] = {
        {adapts ? "adapter" : "", SIM_MEM_WEIGHTS, offload->weights.tier,
         states.weights_bytes + (apart ? 0 : segment->frozen_bytes + segment->reference_bytes)},
        {"frozen weights", SIM_MEM_WEIGHTS, offload->weights.tier, apart ? segment->frozen_bytes : 0},
        {"reference", SIM_MEM_WEIGHTS, offload->weights.tier, apart ? segment->reference_bytes : 0},
        {adapts ? "adapter" : "", SIM_MEM_GRADIENTS, offload->gradients.tier, states.gradients_bytes},
        {adapts ? "adapter" : "", SIM_MEM_OPTIMIZER, offload->optimizer.tier,
         states.optimizer_bytes - (parts->lacks_moments ? states.moments_bytes : 0)},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(lines); i++)
        if (lines[i].tier == SPEC_TIER_GPU)
            write_line(parts, parts->stage, layer, lines[i].tensor, lines[i].kind, 0,
                       llround(lines[i].bytes));
}

/* One segment of a stage: the embedding, a layer, a multi-token module with its head, or the head. */
static void write_segment(Parts *parts, const SimStage *stage, int index, int first_layer, Alive alive)
{
    const SimSegment *segment = &stage->segments[index];
    const Spec *spec = parts->report->spec;
    const int in_stage = index - stage->first_layer;
    const bool before = in_stage < 0, layer = !before && in_stage < stage->layers,
               last = index == stage->segment_count - 1, offloaded = layer && in_stage < stage->offloaded;
    CostGraph graph;
    char name[32];
    CostRecomputeExtent extent = COST_RECOMPUTE_OP_NONE;
    if (layer) {
        g_snprintf(name, sizeof name, "%d", first_layer + in_stage);
        extent = cost_layer_extent(spec, first_layer + in_stage, in_stage);
    } else {
        g_strlcpy(name, before ? "embedding" : last ? "head" : "multi-token", sizeof name);
    }
    write_states(parts, name, segment);
    if (offloaded)
        return;
    if (parts->by == REPORT_MEMORY_BY_LAYER) {
        write_activations(parts, name, segment, alive);
        return;
    }
    if (layer) {
        cost_graph_layer_in(&parts->shape, first_layer + in_stage, in_stage, &graph);
    } else {
        cost_graph(&parts->shape, before ? cost_ops_embedding : last ? cost_ops_head : cost_ops_mtp, &graph);
        extent = before || last ? COST_RECOMPUTE_OP_NONE : cost_recompute_extent(spec, stage->layers);
    }
    const double kept = cost_activations(&parts->shape, &graph, extent).kept_bytes;
    const bool buffered = index == 0 && parts->stage > 0 && llround(kept) > segment->activation_bytes;
    write_tensors(parts, name, &graph, extent, buffered, alive);
    if (!before && !layer && !last) { /* a module has logits of its own */
        cost_graph(&parts->shape, cost_ops_head, &graph);
        write_tensors(parts, name, &graph, COST_RECOMPUTE_OP_NONE, false, alive);
    }
}

static int first_layer_of(const SimPlan *plan, int stage)
{
    int layer = 0;
    for (int i = 0; i < stage % sim_plan_model_stages(plan); i++)
        layer += plan->stages[i].layers;
    return layer;
}

/* The segment at the highest moment of a pass over a stage (sim_stage_mem()); -1: none asks for workspace. */
static int highest_segment(const SimStage *stage, bool backward)
{
    int64_t most = 0, missing = 0;
    int highest = -1;
    for (int i = stage->segment_count - 1; i >= 0; i--) {
        const SimSegment *segment = &stage->segments[i];
        const int64_t above =
            (backward ? segment->backward_temp_bytes : segment->forward_temp_bytes) - missing;
        highest = above > most ? i : highest;
        most = MAX(most, above);
        missing += segment->activation_bytes;
    }
    return highest;
}

/* Frozen weights that the running pass has widened, where it is a layer that asks for most of the workspace. */
static int64_t widened_bytes(const Parts *parts, const SimSpan *pass)
{
    const Spec *spec = parts->report->spec;
    const SimPlan *plan = &parts->report->plan;
    if (pass == NULL || !spec->training.adapter.given)
        return 0;
    const bool backward = pass->tag != SIM_TAG_FORWARD;
    const SimStage *stage = &plan->stages[pass->stage];
    const int in_stage = highest_segment(stage, backward) - stage->first_layer;
    if (in_stage < 0 || in_stage >= stage->layers)
        return 0;
    const int layer = first_layer_of(plan, pass->stage) + in_stage;
    g_autofree CostGraph *graph = g_new(CostGraph, 1);
    cost_graph_layer_in(&parts->shape, layer, in_stage, graph);
    return llround(
        cost_widened_bytes(&parts->shape, graph, cost_layer_extent(spec, layer, in_stage), backward));
}

/* What pipeline rank `parts->rank` holds of each kind of memory, `bytes` in all, in a moment of a step. */
static void write_rank(Parts *parts, const int64_t *bytes, int64_t in_step_ps)
{
    const SimPlan *plan = &parts->report->plan;
    parts->line = 0;
    for (int kind = 0; kind < SIM_MEM_COUNT; kind++)
        parts->rest[kind] = kind == SIM_MEM_HOST ? 0 : bytes[kind];
    for (int chunk = 0; chunk < plan->shape.chunks; chunk++) {
        const int stage = sim_stage_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks,
                                       parts->rank, chunk);
        const int first_layer = first_layer_of(plan, stage);
        parts->stage = stage;
        for (int i = 0; i < plan->stages[stage].segment_count; i++)
            write_segment(parts, &plan->stages[stage], i, first_layer,
                          parts->ranks[parts->rank].alive[stage]);
    }
    if (parts->by == REPORT_MEMORY_BY_TENSOR) {
        const int64_t widened = widened_bytes(parts, pass_at(&parts->ranks[parts->rank], in_step_ps));
        write_line(parts, -1, "", "widened weights", SIM_MEM_WORKSPACE, 0,
                   MIN(widened, parts->rest[SIM_MEM_WORKSPACE]));
    }
    for (int kind = 0; kind < SIM_MEM_GPU_COUNT; kind++)
        write_line(parts, -1, "", "", (SimMem)kind, 0, parts->rest[kind]);
}

static void write_moment(const Report *report, const ReportMoment *moment, void *data)
{
    Parts *parts = data;
    const int each = report_ranks_a_stage(report);
    if (moment->level->rank % each != 0)
        return;
    RankParts *rank = &parts->ranks[moment->level->rank / each];
    int64_t bytes[SIM_MAX_MEMS];
    memcpy(bytes, moment->level->bytes, sizeof bytes);
    bytes[SIM_MEM_OPTIMIZER] -= moment->missing_bytes;
    if (rank->step != moment->step)
        restart(report, rank, moment->step);
    advance(report, rank, moment->in_step_ps);
    parts->rank = moment->level->rank / each;
    parts->time_ps = moment->in_step_ps + moment->step * report->result.step_ps;
    parts->lacks_moments = moment->lacks_moments;
    write_rank(parts, bytes, moment->in_step_ps);
}

static void write_peak(Parts *parts, int rank)
{
    const Report *report = parts->report;
    const SimRankResult *result = &report->result.rank[rank * report_ranks_a_stage(report)];
    advance(report, &parts->ranks[rank], result->peak_time_ps);
    parts->rank = rank;
    write_rank(parts, result->at_peak_bytes, result->peak_time_ps);
}

void report_write_memory_parts(const Report *report, ReportMemoryBy by, int steps, GString *out)
{
    const int ranks = report->plan.shape.ranks;
    Parts parts = {
        .report = report, .by = by, .out = out, .over_time = steps > 0, .ranks = g_new0(RankParts, ranks)};
    cost_shape_init(&parts.shape, report->spec);
    for (int rank = 0; rank < ranks; rank++)
        parts.ranks[rank] = rank_parts(report, rank);
    g_string_append_printf(out, "%srank,stage,layer,kind,tensor,microbatches,bytes\n",
                           parts.over_time ? "time_s," : "");
    if (parts.over_time)
        report_walk_memory(report, steps, write_moment, &parts);
    for (int rank = 0; rank < ranks; rank++) {
        if (!parts.over_time)
            write_peak(&parts, rank);
        rank_parts_clear(&parts.ranks[rank]);
    }
    g_free(parts.ranks);
}
