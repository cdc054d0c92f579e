/* study/chakra_pass.c - see chakra_pass.h. */
#include "study/chakra_pass.h"

#include <math.h>

#include "costmodel/collective.h"
#include "costmodel/ops.h"

struct ChakraPasses {
    const Report *report;
    TraceRank *names; /* that items need */
    TraceItems *items;
    GHashTable *kept; /* "tag stage segment" -> GArray of ChakraPiece */
};

static void free_pieces(gpointer pieces)
{
    g_array_free(pieces, TRUE);
}

ChakraPasses *chakra_passes_new(const Report *report)
{
    ChakraPasses *passes = g_new0(ChakraPasses, 1);
    passes->report = report;
    passes->names = trace_rank_new("the prediction");
    passes->items = trace_items_new(report, passes->names);
    passes->kept = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, free_pieces);
    return passes;
}

void chakra_passes_free(ChakraPasses *passes)
{
    g_hash_table_destroy(passes->kept);
    trace_items_free(passes->items);
    trace_rank_free(passes->names);
    g_free(passes);
}

static ChakraGroup group_of(const ChakraRanks *ranks, const TraceItem *item)
{
    if (item->comm == COST_COMM_TENSOR)
        return CHAKRA_GROUP_TENSOR;
    if (item->comm == COST_COMM_CONTEXT)
        return CHAKRA_GROUP_CONTEXT;
    if (item->ranks == chakra_ranks_size(ranks, CHAKRA_GROUP_EXPERT))
        return CHAKRA_GROUP_EXPERT;
    return item->ranks == chakra_ranks_size(ranks, CHAKRA_GROUP_EXPERT_TENSOR) ? CHAKRA_GROUP_EXPERT_TENSOR
                                                                               : CHAKRA_GROUP_EXPERTS;
}

static bool list_segments(ChakraPasses *passes, SimTag tag, int stage, int segment, GArray *items)
{
    const SimPlan *plan = &passes->report->plan;
    const int segments = plan->stages[stage % sim_plan_model_stages(plan)].segment_count;
    for (int i = 0; i < segments; i++) {
        const int at = tag == SIM_TAG_FORWARD ? i : segments - 1 - i;
        if ((segment < 0 || i == segment) && !trace_items_add(passes->items, stage, at, tag, items))
            return false;
    }
    return true;
}

static void add_piece(GArray *pieces, const ChakraRanks *ranks, const TraceItem *item, double until_frac)
{
    const ChakraPiece piece = {.until_frac = until_frac,
                               .collective = true,
                               .beside = item->under >= 0,
                               .kind = item->kind,
                               .group = group_of(ranks, item),
                               .bytes = item->kind == TRACE_ALL_GATHER ? item->bytes / MAX(item->ranks, 1)
                                                                       : item->bytes};
    g_array_append_val(pieces, piece);
}

/* Collectives beside an item begin with it, the others where they stand. */
static void cut(const GArray *items, const ChakraRanks *ranks, GArray *pieces)
{
    double whole_s = 0, done_s = 0;
    for (guint i = 0; i < items->len; i++) {
        const TraceItem *item = &g_array_index(items, TraceItem, i);
        whole_s += trace_is_communication(item->kind) ? 0 : item->seconds + item->gap_s;
    }
    for (guint i = 0; i < items->len; i++) {
        const TraceItem *item = &g_array_index(items, TraceItem, i);
        const double done_frac = whole_s > 0 ? done_s / whole_s : 0;
        if (trace_is_communication(item->kind)) {
            if (item->under < 0 && item->ranks > 1)
                add_piece(pieces, ranks, item, done_frac);
            continue;
        }
        for (guint k = 0; k < items->len; k++) {
            const TraceItem *other = &g_array_index(items, TraceItem, k);
            if (trace_is_communication(other->kind) && other->under == (int)i && other->ranks > 1)
                add_piece(pieces, ranks, other, done_frac);
        }
        done_s += item->seconds + item->gap_s;
    }
}

const GArray *chakra_passes_pieces(ChakraPasses *passes, const ChakraRanks *ranks, SimTag tag, int stage,
                                   int segment)
{
    const gint64 key = ((gint64)tag << 48) + ((gint64)stage << 24) + segment + 1;
    GArray *pieces = g_hash_table_lookup(passes->kept, &key);
    if (pieces != NULL)
        return pieces;
    pieces = g_array_new(FALSE, FALSE, sizeof(ChakraPiece));
    g_autoptr(GArray) items = g_array_new(FALSE, FALSE, sizeof(TraceItem));
    const bool pair = tag == SIM_TAG_FORWARD_BACKWARD;
    if (list_segments(passes, pair ? SIM_TAG_FORWARD : tag, stage, segment, items) &&
        (!pair || list_segments(passes, SIM_TAG_BACKWARD, stage, segment, items)))
        cut(items, ranks, pieces);
    const ChakraPiece rest = {.until_frac = 1};
    g_array_append_val(pieces, rest);
    g_hash_table_insert(passes->kept, g_memdup2(&key, sizeof key), pieces);
    return pieces;
}

/* --- what files of a step have in common --- */

double chakra_computing_ps(const SimWork *work)
{
    return (double)(sim_work_duration_ps(work) - work->part_ps[SIM_PART_TENSOR_COMM] -
                    work->part_ps[SIM_PART_CONTEXT_COMM] - work->part_ps[SIM_PART_EXPERT_COMM] -
                    work->part_ps[SIM_PART_PIPELINE_COMM] - work->part_ps[SIM_PART_DATA_COMM]);
}

double chakra_put_in(TraceClass kind, int ranks, double sent)
{
    static const CostCollectiveOp ops[TRACE_CLASSES] = {[TRACE_ALL_REDUCE] = COST_ALL_REDUCE,
                                                        [TRACE_ALL_GATHER] = COST_ALL_GATHER,
                                                        [TRACE_REDUCE_SCATTER] = COST_REDUCE_SCATTER};
    const CostCollective one = {.op = ops[kind], .bytes = 1, .group = {.ranks = ranks, .per_domain = ranks}};
    const double each = cost_collective_traffic(&one).scale_up_bytes;
    return each > 0 ? fmax(1, sent / each / (kind == TRACE_ALL_GATHER ? ranks : 1)) : 1;
}

TraceClass chakra_reduce_class(const Report *report)
{
    return spec_scatters_gradients(report->spec) ? TRACE_REDUCE_SCATTER : TRACE_ALL_REDUCE;
}

const char *chakra_lacks(const Report *report)
{
    return report->kinds.count > 0                      ? "replicas of several kinds"
           : spec_offloads(&report->spec->offload)      ? "offload"
           : report->spec->parallel.servers.servers > 0 ? "parameter servers"
           : report->spec->model.list.text != NULL      ? "a model that is a list of layers"
                                                        : NULL;
}
