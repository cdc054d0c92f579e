/* search/costs.c - see costs.h. */
#include "search/costs.h"

#include <math.h>
#include <string.h>

#include "costmodel/params.h"
#include "search/parallel.h"
#include "sim/step.h"
#include "spec/placement.h"

typedef struct Build {
    SearchSpace *space;
    SearchTables *tables;
    const SearchGroup **example; /* a group that uses each table */
    int share, shares;
} Build;

typedef struct Probe {
    const Spec *spec;
    SearchCosts *costs;
    OrrArena *arena, *scratch;
    SearchAgain again;
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

/* An overlapped pair lasts as long as its compute, or as its exchange where that is longer. */
static int64_t pair_saves_ps(const SimSegment *segment)
{
    const SimWork *works[] = {&segment->forward, &segment->recompute, &segment->backward_input,
                              &segment->backward_weight};
    int64_t exchange_ps = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(works); i++)
        exchange_ps += works[i]->part_ps[SIM_PART_EXPERT_COMM];
    return exchange_ps;
}

static void add_edge(SearchEdge *edge, const SimSegment *segment)
{
    edge->forward_ps += duration_ps(&segment->forward);
    edge->input_ps += duration_ps(&segment->backward_input);
    edge->weight_ps += duration_ps(&segment->backward_weight);
    edge->pair_saves_ps += pair_saves_ps(segment);
    edge->kept_bytes += segment->activation_bytes;
    edge->input_only_bytes += segment->activation_input_only_bytes;
    edge->forward_temp_bytes = segment->forward_temp_bytes;
    edge->backward_temp_bytes = segment->backward_temp_bytes;
    edge->segments++;
}

static void take_layer(Probe *probe, int layer, const SimSegment *segment)
{
    SearchCosts *costs = probe->costs;
    SearchMemory *memory = &costs->memory[probe->again];
    const int64_t own_ps = duration_ps(&segment->forward);
    if (probe->first) {
        const CostParams params = cost_piece_params(&probe->spec->model, COST_PIECE_LAYER, layer);
        costs->forward_ps[layer + 1] = costs->forward_ps[layer] + own_ps;
        costs->input_ps[layer + 1] = costs->input_ps[layer] + duration_ps(&segment->backward_input);
        costs->weight_ps[layer + 1] = costs->weight_ps[layer] + duration_ps(&segment->backward_weight);
        costs->dense[layer + 1] =
            costs->dense[layer] + cost_rank_dense_params(&params, &probe->spec->parallel);
        costs->expert[layer + 1] =
            costs->expert[layer] + cost_rank_expert_params(&params, &probe->spec->parallel);
        costs->matrices[layer + 1] = costs->matrices[layer] + params.matrices;
    }
    costs->pair_saves_ps[layer + 1] =
        MAX(costs->pair_saves_ps[layer + 1], costs->pair_saves_ps[layer] + pair_saves_ps(segment));
    costs->again_ps[probe->again][layer + 1] =
        costs->again_ps[probe->again][layer] + duration_ps(&segment->recompute);
    memory->kept_bytes[layer + 1] = memory->kept_bytes[layer] + segment->activation_bytes;
    memory->input_only_bytes[layer + 1] =
        memory->input_only_bytes[layer] + segment->activation_input_only_bytes;
    memory->forward_temp_bytes[layer] = segment->forward_temp_bytes;
    memory->backward_temp_bytes[layer] = segment->backward_temp_bytes;
}

static int64_t *numbers(Probe *probe)
{
    return ORR_ARENA_NEW(probe->arena, int64_t, probe->layers + 1);
}

static void make_room(Probe *probe)
{
    SearchCosts *costs = probe->costs;
    SearchMemory *memory = &costs->memory[probe->again];
    if (probe->first) {
        costs->forward_ps = numbers(probe);
        costs->input_ps = numbers(probe);
        costs->weight_ps = numbers(probe);
        costs->pair_saves_ps = numbers(probe);
        costs->dense = ORR_ARENA_NEW(probe->arena, double, probe->layers + 1);
        costs->expert = ORR_ARENA_NEW(probe->arena, double, probe->layers + 1);
        costs->matrices = ORR_ARENA_NEW(probe->arena, int, probe->layers + 1);
    }
    costs->again_ps[probe->again] = numbers(probe);
    memory->kept_bytes = numbers(probe);
    memory->input_only_bytes = numbers(probe);
    memory->forward_temp_bytes = numbers(probe);
    memory->backward_temp_bytes = numbers(probe);
}

static void edge_params(const Probe *probe, CostPiece piece, bool tied, SearchEdge *edge)
{
    SpecModel model = probe->spec->model;
    model.tied_embeddings = tied;
    const CostParams params = cost_piece_params(&model, piece, 0);
    edge->dense += cost_rank_dense_params(&params, &probe->spec->parallel);
    edge->expert += cost_rank_expert_params(&params, &probe->spec->parallel);
    edge->matrices += params.matrices;
}

/* Segments of a probe: embedding, layers (on one or two stages), multi-token prediction, head. */
static void take_plan(Probe *probe, const SimPlan *plan)
{
    SearchCosts *costs = probe->costs;
    const int ranks = plan->shape.ranks;
    SearchEdge again = {0};
    int next = -1; /* layer; the embedding is before layer 0 */
    make_room(probe);
    for (int stage = 0; stage < ranks; stage++) {
        for (int i = 0; i < plan->stages[stage].segment_count; i++, next++) {
            SimSegment segment = plan->stages[stage].segments[i];
            if (i == 0) { /* its stage's bookkeeping is counted apart */
                segment.forward.part_ps[SIM_PART_OTHER] -= costs->overhead_ps;
                segment.backward_input.part_ps[SIM_PART_OTHER] -= costs->overhead_ps;
            }
            if (next >= 0 && next < probe->layers)
                take_layer(probe, next, &segment);
            else if (probe->first)
                add_edge(next < 0 ? &costs->first : &costs->last, &segment);
            else if (next > 0)
                add_edge(&again, &segment);
        }
    }
    if (again.segments > 0) { /* multi-token prediction follows recomputation too: the least of all extents */
        costs->last.kept_bytes = MIN(costs->last.kept_bytes, again.kept_bytes);
        costs->last.input_only_bytes = MAX(costs->last.input_only_bytes, again.input_only_bytes);
    }
    if (!probe->first)
        return;
    edge_params(probe, COST_PIECE_EMBEDDING, probe->spec->model.tied_embeddings, &costs->first);
    edge_params(probe, COST_PIECE_HEAD, false, &costs->last);
    edge_params(probe, COST_PIECE_HEAD, probe->spec->model.tied_embeddings, &costs->tied_last);
    if (probe->spec->model.mtp_layers > 0)
        edge_params(probe, COST_PIECE_MTP, false, &costs->mtp);
    costs->workspace_bytes = plan->ranks[0].static_bytes[SIM_MEM_WORKSPACE];
    costs->last_workspace_bytes = plan->ranks[ranks - 1].static_bytes[SIM_MEM_WORKSPACE];
}

static void probe_once(Probe *probe, Spec *spec, SpecRecompute recompute)
{
    SimPlan plan;
    spec->training.recompute = recompute;
    const bool ok = sim_step_plan(spec, probe->scratch, &plan, NULL);
    g_assert(ok);
    take_plan(probe, &plan);
    probe->first = false;
}

/* Spans that hold for every data and pipeline degree: the default order, and groups that divide a domain or are
 * divided by it. */
static bool placed_alike(const SearchSpace *space, const SearchGroup *group)
{
    const int domain = spec_domain_gpus(space->spec);
    const int64_t strides[] = {group->tensor, (int64_t)group->tensor * group->context, group->expert_tensor,
                               (int64_t)group->expert_tensor * group->expert};
    for (gsize i = 0; i < G_N_ELEMENTS(strides); i++)
        if (domain % strides[i] != 0 && strides[i] % domain != 0)
            return false;
    return strcmp(space->spec->parallel.order, "tp-cp-ep-dp-pp") == 0;
}

/* The group's own degrees; each stage has a segment, the first and last their edge. */
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

/* Two stages and enough micro-batches that gradients accumulate as they do at the group. */
static void probe_spec(const SearchSpace *space, const SearchGroup *group, Spec *ret_spec)
{
    const SpecFramework *framework = &space->spec->execution.framework;
    *ret_spec = *space->spec;
    SpecParallel *parallel = &ret_spec->parallel;
    const int many = group->microbatches > 1 ? 2 : 1;
    parallel->tensor = group->tensor;
    parallel->sequence_parallel = group->sequence_parallel;
    parallel->context = group->context;
    parallel->virtual_stages = 1;
    parallel->schedule = SPEC_SCHEDULE_1F1B;
    parallel->stage_layers_count = parallel->first_stage_layers = parallel->last_stage_layers = 0;
    parallel->embedding_as_layer = parallel->loss_as_layer = parallel->mtp_as_layer = false;
    parallel->pipeline = ret_spec->model.layers > 1 ? 2 : 1;
    parallel->data = MAX(1, ret_spec->cluster.scale_up_domain_gpus);
    if (!placed_alike(space, group))
        own_degrees(group, ret_spec);
    parallel->expert = group->expert;
    parallel->expert_tensor = group->expert_tensor;
    parallel->zero = framework->reduce_each_microbatch ? 2 : 0;
    parallel->zero_group_gpus = 0;
    ret_spec->training.micro_batch = group->micro_batch;
    ret_spec->training.precision = (SpecPrecision)group->precision;
    ret_spec->training.global_batch = group->micro_batch * parallel->data * many;
    ret_spec->execution.attention = (SpecAttention)group->attention;
    ret_spec->execution.overlap = group->overlap;
    ret_spec->offload.activation_layers = 0; /* what leaves is search_kept()'s affair */
    ret_spec->execution.framework.balances_head = false;
    ret_spec->execution.framework.bucket_bytes = 0; /* data parallelism is counted elsewhere */
}

static void probe_again(const SearchSpace *space, Probe *probe, Spec *spec)
{
    const SpecRecompute none = {.mode = SPEC_RECOMPUTE_NONE, .every_n_layers = 1};
    const SpecRecompute all = {.mode = SPEC_RECOMPUTE_FULL, .every_n_layers = 1};
    SpecRecompute some = {.mode = SPEC_RECOMPUTE_SELECTIVE, .every_n_layers = 1};
    SpecRecompute op = {.mode = SPEC_RECOMPUTE_SELECTIVE_OP, .every_n_layers = 1};
    unsigned modes = space->recompute;
    const SpecRecompute *own = &space->spec->training.recompute;
    if (modes == 0) {
        modes = 1u << own->mode;
        if (own->mode == SPEC_RECOMPUTE_SELECTIVE_LAYER)
            modes = 1u << SPEC_RECOMPUTE_FULL;
        if (own->mode == SPEC_RECOMPUTE_MODULES) {
            some = *own;
            modes = 1u << SPEC_RECOMPUTE_SELECTIVE;
        }
    }
    probe->again = SEARCH_AGAIN_NONE;
    probe_once(probe, spec, none);
    probe->again = SEARCH_AGAIN_ALL;
    if (modes & 1u << SPEC_RECOMPUTE_FULL)
        probe_once(probe, spec, all);
    probe->again = SEARCH_AGAIN_SOME;
    if (modes & 1u << SPEC_RECOMPUTE_SELECTIVE)
        probe_once(probe, spec, some);
    probe->again = SEARCH_AGAIN_OP;
    if (modes & 1u << SPEC_RECOMPUTE_SELECTIVE_OP)
        probe_once(probe, spec, op);
}

/* The less of each layer, as prefix sums. */
static void less_of(int64_t *sums, const int64_t *other, int layers)
{
    int64_t before = 0, sum = 0;
    for (int layer = 0; sums != NULL && layer < layers; layer++) {
        const int64_t own = sums[layer + 1] - before;
        before = sums[layer + 1];
        sum += MIN(own, other[layer + 1] - other[layer]);
        sums[layer + 1] = sum;
    }
}

static void less_of_edge(SearchEdge *edge, const SearchEdge *other)
{
    edge->forward_ps = MIN(edge->forward_ps, other->forward_ps);
    edge->input_ps = MIN(edge->input_ps, other->input_ps);
    edge->weight_ps = MIN(edge->weight_ps, other->weight_ps);
}

/* Where ZeRO-2 and 3 reduce after every micro-batch, the other stages add to a gradient. That is another weight gradient,
 * and behind a longer one the host hides more of its own time: each pass counts with the less of both. */
static void probe_other_zero(const SearchSpace *space, Probe *probe, Spec *spec)
{
    SearchCosts other = {.overhead_ps = probe->costs->overhead_ps};
    Probe again = {.spec = spec,
                   .costs = &other,
                   .arena = probe->arena,
                   .scratch = probe->scratch,
                   .layers = probe->layers,
                   .first = true};
    SearchCosts *costs = probe->costs;
    spec->parallel.zero = 0;
    probe_again(space, &again, spec);
    less_of(costs->forward_ps, other.forward_ps, probe->layers);
    less_of(costs->input_ps, other.input_ps, probe->layers);
    less_of(costs->weight_ps, other.weight_ps, probe->layers);
    for (int kind = 0; kind < SEARCH_AGAIN_COUNT; kind++)
        less_of(costs->again_ps[kind], other.again_ps[kind], probe->layers);
    less_of_edge(&costs->first, &other.first);
    less_of_edge(&costs->last, &other.last);
}

static void fill_table(int index, void *data)
{
    const Build *build = data;
    SearchTables *tables = build->tables;
    if (index % build->shares != build->share)
        return;
    Spec *spec = g_new(Spec, 1);
    tables->arenas[index] = orr_arena_new();
    Probe probe = {.spec = spec,
                   .costs = &tables->costs[index],
                   .arena = tables->arenas[index],
                   .scratch = orr_arena_new(),
                   .layers = build->space->spec->model.layers,
                   .first = true};
    probe_spec(build->space, build->example[index], spec);
    probe.costs->overhead_ps = llround(spec->execution.framework.microbatch_overhead_s * 1e12);
    probe_again(build->space, &probe, spec);
    if (spec->execution.framework.reduce_each_microbatch && spec_microbatches(spec) > 1)
        probe_other_zero(build->space, &probe, spec);
    probe.costs->hop_inside_ps = sim_step_hop_ps(spec, true);
    probe.costs->hop_across_ps = sim_step_hop_ps(spec, false);
    orr_arena_free(probe.scratch);
    g_free(spec);
}

/* Everything that a layer's cost depends on. */
static char *key_of(const SearchSpace *space, const SearchGroup *group)
{
    const bool alike = placed_alike(space, group);
    return g_strdup_printf("%d %d %d %d %d %d %d %d %u %d %d %d", group->precision, group->tensor,
                           group->sequence_parallel, group->context, group->expert, group->expert_tensor,
                           group->micro_batch, group->attention, group->overlap, group->microbatches > 1,
                           alike ? 0 : group->data, alike ? 0 : group->pipeline);
}

SearchTables *search_tables_new(SearchSpace *space, int jobs, int share, int shares)
{
    SearchTables *tables = g_new0(SearchTables, 1);
    GHashTable *index_of = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GPtrArray *examples = g_ptr_array_new();
    for (int i = 0; i < space->group_count; i++) {
        SearchGroup *group = &space->groups[i];
        char *key = key_of(space, group);
        gpointer found = NULL;
        if (g_hash_table_lookup_extended(index_of, key, NULL, &found)) {
            group->costs = GPOINTER_TO_INT(found);
            g_free(key);
            continue;
        }
        group->costs = (int)examples->len;
        g_hash_table_insert(index_of, key, GINT_TO_POINTER(group->costs));
        g_ptr_array_add(examples, group);
    }
    tables->count = (int)examples->len;
    tables->costs = g_new0(SearchCosts, (gsize)tables->count);
    tables->arenas = g_new0(OrrArena *, (gsize)tables->count);
    Build build = {space, tables, (const SearchGroup **)(void *)examples->pdata, share, shares};
    search_parallel(tables->count, jobs, fill_table, &build);
    g_ptr_array_free(examples, TRUE);
    g_hash_table_destroy(index_of);
    return tables;
}

void search_tables_free(SearchTables *tables)
{
    if (tables == NULL)
        return;
    for (int i = 0; i < tables->count; i++)
        if (tables->arenas[i] != NULL)
            orr_arena_free(tables->arenas[i]);
    g_free(tables->arenas);
    g_free(tables->costs);
    g_free(tables);
}
