/* costmodel/graph.c - the op lists of one piece in all passes: what is frozen taken out, and what is seen put in. See ops.h. */
#include "costmodel/adapter.h"
#include "costmodel/ops.h"
#include "costmodel/vision.h"

void cost_graph_layer(const CostShape *shape, int layer, CostGraph *graph)
{
    cost_graph_layer_in(shape, layer, layer, graph);
}

void cost_graph_layer_in(const CostShape *shape, int layer, int layer_in_stage, CostGraph *graph)
{
    for (int pass = 0; pass < COST_PASS_COUNT; pass++) {
        graph->pass[pass].count = graph->pass[pass].kept_count = 0;
        cost_ops_layer(shape, layer, (CostPass)pass, &graph->pass[pass]);
    }
    cost_freeze(shape, COST_PART_LAYER, layer, layer_in_stage, graph);
}

void cost_graph(const CostShape *shape, CostListOps list, CostGraph *graph)
{
    for (int pass = 0; pass < COST_PASS_COUNT; pass++) {
        graph->pass[pass].count = graph->pass[pass].kept_count = 0;
        list(shape, (CostPass)pass, &graph->pass[pass]);
    }
    cost_freeze(shape,
                list == cost_ops_embedding ? COST_PART_EMBEDDING
                : list == cost_ops_head    ? COST_PART_HEAD
                                           : COST_PART_MTP,
                0, 0, graph);
    if (list == cost_ops_embedding)
        cost_push_vision(shape, graph);
}
