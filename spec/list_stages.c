/* spec/list_stages.c - see list_stages.h. */
#include "spec/list_stages.h"

#include <glib.h>

#include "spec/layer_list.h"

#define HALVINGS 60 /* a double's precision and some */

/* [layers]; free with g_free. Layers of no cost share a little, so that a list of parameters alone is dealt evenly. */
static double *costs_of(const SpecModel *model)
{
    double *costs = g_new(double, model->layers), seconds = 0, flops = 0;
    SpecLayer layer;
    for (const char *at = model->list.text; spec_layer_list_next(&at, &layer);) {
        seconds += layer.seconds;
        flops += layer.flops;
    }
    const double sum = seconds > 0 ? seconds : flops, least = (sum > 0 ? sum : 1) / model->layers * 1e-6;
    const char *at = model->list.text;
    for (int i = 0; spec_layer_list_next(&at, &layer); i++)
        costs[i] = (seconds > 0 ? layer.seconds : layer.flops) + least;
    return costs;
}

/* Stages take layers until the next one would exceed `most`, and leave one for each stage behind. True when the last stage
 * does not exceed it either. */
static bool deal_within(const double *costs, int layers, int stages, double most, int *counts)
{
    int next = 0;
    double sum = 0;
    for (int stage = 0; stage < stages; stage++) {
        const int end = layers - (stages - 1 - stage);
        const bool last = stage + 1 == stages;
        sum = costs[next];
        counts[stage] = 1;
        next++;
        while (next < end && (last || sum + costs[next] <= most)) {
            sum += costs[next++];
            counts[stage]++;
        }
    }
    return sum <= most;
}

void spec_deal_list(const SpecModel *model, int stages, int *counts)
{
    double *costs = costs_of(model), low = 0, high = 0;
    for (int i = 0; i < model->layers; i++) {
        low = MAX(low, costs[i]);
        high += costs[i];
    }
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = low + (high - low) / 2;
        if (deal_within(costs, model->layers, stages, middle, counts))
            high = middle;
        else
            low = middle;
    }
    deal_within(costs, model->layers, stages, high, counts);
    g_free(costs);
}
