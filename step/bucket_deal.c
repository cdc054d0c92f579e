/* step/bucket_deal.c - buckets that hold tensors: which segment completes which of them.
 *
 * Backwards run from the last segment to the first, so a bucket is whole once the segment of its first tensor has been through
 * its own. Dealt from the stage's first tensor on, the last layers' bucket holds what is left and may be small; the first
 * bucket is full and comes last. Filled from the last tensor on, the first layers' bucket holds what is left.
 * Source: [Picotron] data_parallel/bucket.py, data_parallel.py; [MegatronCore] param_and_grad_buffer.py
 * Tested: unit/step/test_buckets.c
 */
#include "costmodel/states.h"
#include "step/buckets.h"
#include "step/fill.h"

/* Tensors of a stage in forward order. */
typedef struct Tensors {
    double *elements;
    int *segment;
    int count;
} Tensors;

static bool is_weight(const CostOp *op)
{
    return op->kind == COST_OP_GEMM && op->module != COST_MODULE_ROUTER && op->module != COST_MODULE_MOE;
}

static void push(Tensors *tensors, int segment, double elements)
{
    tensors->elements[tensors->count] = elements;
    tensors->segment[tensors->count++] = segment;
}

/* Matrices of a layer, whose norms and biases go with the first; other segments are one tensor. */
static void push_segment(const Step *step, int stage, int i, int layer, Tensors *tensors)
{
    const SimStage *of = &step->plan->stages[stage];
    const double dense = step->params[stage][i].weights.dense;
    const int before = tensors->count;
    double left = dense;
    CostGraph graph;
    if (step->spec->model.list.text == NULL && i >= of->first_layer && i < of->first_layer + of->layers) {
        cost_graph_layer(&step->shape, layer, &graph);
        const CostOps *weights = &graph.pass[COST_BACKWARD_WEIGHT];
        for (int k = 0; k < weights->count; k++) {
            const CostOp *op = &weights->op[k];
            const double size = is_weight(op) ? op->u.gemm.m * op->u.gemm.n : 0;
            if (size > 0 && size <= left) {
                push(tensors, i, size);
                left -= size;
            }
        }
    }
    if (tensors->count == before)
        push(tensors, i, left);
    else
        tensors->elements[before] += left;
}

static Tensors tensors_of(const Step *step, int stage)
{
    const SimStage *of = &step->plan->stages[stage];
    const int most = of->segment_count * COST_MAX_OPS;
    Tensors tensors = {.elements = ORR_ARENA_NEW(step->arena, double, most),
                       .segment = ORR_ARENA_NEW(step->arena, int, most)};
    int layer = -of->first_layer;
    for (int s = 0; s < stage % step->stages; s++)
        layer += step->layers[s];
    for (int i = 0; i < of->segment_count; i++)
        push_segment(step, stage, i, layer + i, &tensors);
    return tensors;
}

void step_deal_buckets(const Step *step, int stage, const StepPolicy *policy, StepParams *ret_complete)
{
    const double size = policy->bucket_bytes / policy->gradient_wire_bytes;
    const Tensors tensors = tensors_of(step, stage);
    int *bucket = ORR_ARENA_NEW(step->arena, int, tensors.count);
    int *begins = ORR_ARENA_NEW(step->arena, int, tensors.count); /* [buckets] segment of the first tensor */
    double *offset = ORR_ARENA_NEW(step->arena, double, tensors.count);
    if (policy->fill == STEP_FILL_TENSORS_FIRST)
        sim_deal_buckets(tensors.elements, tensors.count, size, bucket, offset);
    else
        sim_fill_buckets(tensors.elements, tensors.count, size, bucket);
    int seen = -1; /* the last segment whose tensors have been met */
    for (int k = 0; k < tensors.count; k++) {
        const int segment = tensors.segment[k];
        const bool opens = k == 0 || bucket[k] != bucket[k - 1];
        if (opens)
            begins[bucket[k]] = segment;
        StepParams *complete = &ret_complete[begins[bucket[k]]];
        complete->buckets += opens;
        complete->weights.dense += tensors.elements[k];
        if (segment != seen) { /* what is counted by segments goes with its first tensor */
            complete->weights.expert += step->params[stage][segment].weights.expert;
            complete->weights.tensors += step->params[stage][segment].weights.tensors;
            complete->weights.vectors += step->params[stage][segment].weights.vectors;
        }
        seen = segment;
    }
}
