/* report/memory_parts.c - what the memory of each pipeline rank is made of at its peak, by layer or by tensor, as CSV.
 *
 * States go by the parameters of each piece; kept tensors are those of the graph, for every micro-batch that lies between
 * its forward and its backward at that moment. What else is alive then (parts of a pass that is under way, buffers of what
 * crosses stages, gathered weights, workspace) is the rank's own line of its kind, so that the lines of a rank add up to its
 * peak. Activations that wait on the host are not in it.
 */
#include <math.h>

#include "costmodel/activations.h"
#include "costmodel/layers.h"
#include "costmodel/states.h"
#include "report/parts.h"

/* Micro-batches of a stage on a rank whose forward has begun: with all that is kept, and with what weight gradients need. */
typedef struct Alive {
    int all, for_weights;
} Alive;

typedef struct Parts {
    const Report *report;
    CostShape shape;
    ReportMemoryBy by;
    GString *out;
    int rank, stage;
    int64_t rest[SIM_MEM_COUNT]; /* of the rank's peak, not in a line yet */
} Parts;

static void write_line(Parts *parts, int stage, const char *layer, const char *tensor, SimMem kind, int alive,
                       int64_t bytes)
{
    if (bytes == 0)
        return;
    g_string_append_printf(parts->out, "%d,", parts->rank);
    if (stage >= 0)
        g_string_append_printf(parts->out, "%d", stage);
    g_string_append_printf(parts->out, ",%s,%s,%s,", layer, report_mem_name(kind), tensor);
    if (alive > 0)
        g_string_append_printf(parts->out, "%d", alive);
    g_string_append_printf(parts->out, ",%" G_GINT64_FORMAT "\n", bytes);
    parts->rest[kind] -= bytes;
}

static Alive alive_at(const Report *report, int rank, int stage, int64_t time_ps)
{
    const int simulated = rank * report_ranks_a_stage(report), count = report->plan.shape.microbatches;
    g_autofree gint8 *state =
        g_new0(gint8, MAX(1, count)); /* 1 forward begun, 2 input gradient done, 3 gone */
    for (int64_t i = 0; i < report->result.span_count; i++) {
        const SimSpan *span = &report->result.spans[i];
        if (span->rank != simulated || span->stage != stage || span->microbatch < 0 ||
            span->microbatch >= count)
            continue;
        gint8 *of = &state[span->microbatch];
        if (span->tag == SIM_TAG_FORWARD && span->start_ps <= time_ps)
            *of = MAX(*of, 1);
        else if (span->tag == SIM_TAG_BACKWARD_INPUT && span->end_ps <= time_ps)
            *of = MAX(*of, 2);
        else if ((span->tag == SIM_TAG_BACKWARD || span->tag == SIM_TAG_BACKWARD_WEIGHT) &&
                 span->end_ps <= time_ps)
            *of = 3;
    }
    Alive alive = {0, 0};
    for (int i = 0; i < count; i++) {
        alive.all += state[i] == 1;
        alive.for_weights += state[i] == 2;
    }
    return alive;
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
                       llround(count * tensor->bytes));
    }
}

static void write_activations(Parts *parts, const char *layer, const SimSegment *segment, Alive alive)
{
    const int64_t left = segment->activation_bytes - segment->activation_input_only_bytes;
    write_line(parts, parts->stage, layer, "", SIM_MEM_ACTIVATIONS, alive.all + alive.for_weights,
               alive.all * segment->activation_bytes + alive.for_weights * left);
}

static void write_states(Parts *parts, const char *layer, const SimSegment *segment)
{
    const CostStates states = cost_states(parts->report->spec, segment->dense_params, segment->expert_params);
    write_line(parts, parts->stage, layer, "", SIM_MEM_WEIGHTS, 0, llround(states.weights_bytes));
    write_line(parts, parts->stage, layer, "", SIM_MEM_GRADIENTS, 0, llround(states.gradients_bytes));
    write_line(parts, parts->stage, layer, "", SIM_MEM_OPTIMIZER, 0, llround(states.optimizer_bytes));
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
        extent = cost_recompute_extent(spec, in_stage);
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
        cost_graph_layer(&parts->shape, first_layer + in_stage, &graph);
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

static void write_rank(Parts *parts)
{
    const SimPlan *plan = &parts->report->plan;
    const SimRankResult *result = &parts->report->result.rank[parts->rank * parts->report->program.replicas];
    const int model_stages = sim_plan_model_stages(plan);
    for (int kind = 0; kind < SIM_MEM_COUNT; kind++)
        parts->rest[kind] = kind == SIM_MEM_HOST ? 0 : result->at_peak_bytes[kind];
    for (int chunk = 0; chunk < plan->shape.chunks; chunk++) {
        const int stage = sim_stage_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks,
                                       parts->rank, chunk);
        const Alive alive = alive_at(parts->report, parts->rank, stage, result->peak_time_ps);
        int first_layer = 0;
        for (int i = 0; i < stage % model_stages; i++)
            first_layer += plan->stages[i].layers;
        parts->stage = stage;
        for (int i = 0; i < plan->stages[stage].segment_count; i++)
            write_segment(parts, &plan->stages[stage], i, first_layer, alive);
    }
    for (int kind = 0; kind < SIM_MEM_GPU_COUNT; kind++)
        write_line(parts, -1, "", "", (SimMem)kind, 0, parts->rest[kind]);
}

void report_write_memory_parts(const Report *report, ReportMemoryBy by, GString *out)
{
    Parts parts = {.report = report, .by = by, .out = out};
    cost_shape_init(&parts.shape, report->spec);
    g_string_append(out, "rank,stage,layer,kind,tensor,microbatches,bytes\n");
    for (int rank = 0; rank < report->plan.shape.ranks; rank++) {
        parts.rank = rank;
        write_rank(&parts);
    }
}
