/* step/evict.c - dynamic evicting: which of a stage's activations leave so that the rest stays within a budget.
 *
 * Of all tensors that the layers of a stage keep for a micro-batch, the one with the most bytes x seconds to bring it back
 * leaves first, of equal ones that of the earliest layer, whose backward is the last; until what stays is within
 * offload.activations.resident_bytes. The choice is made once, for the sizes at hand: a run whose sizes change would choose
 * anew. Ignored: tensors that are cheaper to compute again than to bring back.   Tested: unit/step/test_evict.c
 */
#include <stdlib.h>

#include "costmodel/offload.h"
#include "step/fill.h"

typedef struct Victim {
    double cost; /* bytes x seconds */
    double bytes;
    int group; /* of layers that are alike */
} Victim;

/* Largest first. */
static int compare_victims(const void *a, const void *b)
{
    const Victim *x = a, *y = b;
    if (x->cost < y->cost || y->cost < x->cost) {
        return x->cost > y->cost ? -1 : 1;
    }
    return (x->group > y->group) - (x->group < y->group);
}

/* Tensors of each kind of layer that the stage has; returns their number. */
static int list_victims(const Step *step, int first_layer, int layers, double bytes_per_s, int *of_layer,
                        Victim *victims)
{
    int groups[COST_LAYER_GROUPS], count = 0, known = 0;
    for (int i = 0; i < layers; i++) {
        const int group = cost_layer_group(step->spec, first_layer + i, i);
        double bytes[COST_MAX_TENSORS];
        of_layer[i] = group;
        bool seen = false;
        for (int k = 0; k < known; k++) {
            seen |= groups[k] == group;
        }
        if (seen) {
            continue;
        }
        groups[known++] = group;
        const int tensors = cost_offload_tensors(&step->shape, first_layer + i, i, bytes);
        for (int k = 0; k < tensors; k++) {
            victims[count++] = (Victim){bytes[k] * (bytes[k] / bytes_per_s), bytes[k], group};
        }
    }
    qsort(victims, (size_t)count, sizeof *victims, compare_victims);
    return count;
}

int step_evict(const Step *step, int first_layer, double bytes_per_s, SimStage *stage)
{
    const int layers = stage->layers;
    int *of_layer = ORR_ARENA_NEW(step->arena, int, layers + 1);
    Victim *victims = ORR_ARENA_NEW(step->arena, Victim, COST_LAYER_GROUPS * COST_MAX_TENSORS);
    const int count = list_victims(step, first_layer, layers, bytes_per_s, of_layer, victims);
    double left = 0;
    int last = 0;
    for (int i = 0; i < layers; i++) {
        left += (double)stage->segments[stage->first_layer + i].activation_bytes;
    }
    for (int k = 0; k < count; k++) {
        for (int i = 0; i < layers && left > step->spec->offload.activations.resident_bytes; i++) {
            SimSegment *segment = &stage->segments[stage->first_layer + i];
            if (of_layer[i] != victims[k].group) {
                continue;
            }
            const int64_t leaving = segment->leaving_bytes + step_bytes(victims[k].bytes);
            left -= (double)(MIN(leaving, segment->activation_bytes) - segment->leaving_bytes);
            segment->leaving_bytes = MIN(leaving, segment->activation_bytes);
            last = MAX(last, i + 1);
        }
    }
    return last;
}
