/* search/costs.c - see costs.h. */
#include "search/costs.h"

#include <string.h>

#include "base/crew.h"
#include "costmodel/pass.h"
#include "search/axes.h"
#include "search/hardware.h"
#include "search/probe.h"
#include "search/space_parts.h"

int search_recomputed_run(const SpecRecompute *recompute, int from, int layers, SearchRecomputed *ret_again)
{
    CostRecomputeExtent extent;
    const int until = cost_recompute_run(recompute, from, layers, &extent);
    *ret_again = extent == COST_RECOMPUTE_OP_NONE                 ? SEARCH_RECOMPUTED_NONE
                 : extent == COST_RECOMPUTE_OP_ALL                ? SEARCH_RECOMPUTED_ALL
                 : recompute->mode == SPEC_RECOMPUTE_SELECTIVE_OP ? SEARCH_RECOMPUTED_OP
                                                                  : SEARCH_RECOMPUTED_SOME;
    return until;
}

/* A table as it is kept: layers that cost the same share a row. */
struct SearchTable {
    SearchCosts costs; /* without its sums */
    int rows;
    uint16_t *row_of; /* [layers] */
    SearchLayer row[];
};

typedef struct Build {
    SearchTables *tables;
    int from, share, shares;
} Build;

/* --- totals --- */

typedef struct Piece { /* a layer or an end, of one kind of GPUs or the least of all */
    int64_t chain_ps, weight_ps;
    StepSplit side;
} Piece;

static Piece piece_of(const StepPiece *of)
{
    Piece piece = {of->forward_ps + of->input_ps, of->weight_ps, of->ahead};
    step_split_add(&piece.side, &of->back);
    return piece;
}

/* What the pieces [layers + 2] take of a micro-batch without recomputation. */
static int64_t probe_pieces(const SearchTables *tables, int index, int kind, OrrArena *scratch,
                            Piece *ret_pieces)
{
    const int layers = tables->space->spec->model.layers;
    SearchLayer *rows = ORR_ARENA_NEW(scratch, SearchLayer, layers);
    SearchCosts costs;
    search_probe(tables->space, tables->example[index], kind, false, scratch, &costs, rows);
    for (int i = 0; i < layers; i++) {
        ret_pieces[i] = piece_of(&rows[i].piece);
    }
    ret_pieces[layers] = piece_of(&costs.first);
    ret_pieces[layers + 1] = piece_of(&costs.last);
    return MIN(costs.hop_inside_ps, costs.hop_across_ps);
}

static void lower(Piece *least, const Piece *own)
{
    least->chain_ps = MIN(least->chain_ps, own->chain_ps);
    least->weight_ps = MIN(least->weight_ps, own->weight_ps);
    least->side.exchange_ps = MIN(least->side.exchange_ps, own->side.exchange_ps);
    least->side.kernels_ps = MIN(least->side.kernels_ps, own->side.kernels_ps);
}

static double piece_ps(const Piece *piece)
{
    return (double)(piece->chain_ps + piece->weight_ps);
}

/* What the kinds take for all pieces [kinds x count] over the best of them, and the pieces' shared time by these. */
static double compare_kinds(const Piece *pieces, int kinds, int count, double *ret_slowness)
{
    double best_ps = G_MAXDOUBLE, shared_ps = 0;
    for (int kind = 0; kind < kinds; kind++) {
        ret_slowness[kind] = 0;
        for (int i = 0; i < count; i++)
            ret_slowness[kind] += piece_ps(&pieces[kind * count + i]);
        best_ps = MIN(best_ps, ret_slowness[kind]);
    }
    for (int kind = 0; kind < kinds; kind++)
        ret_slowness[kind] = best_ps > 0 ? ret_slowness[kind] / best_ps : 1;
    for (int i = 0; i < count; i++) {
        double least_ps = G_MAXDOUBLE;
        for (int kind = 0; kind < kinds; kind++)
            least_ps = MIN(least_ps, piece_ps(&pieces[kind * count + i]) / ret_slowness[kind]);
        shared_ps += least_ps;
    }
    return shared_ps;
}

static void fill_totals(int offset, void *data)
{
    const Build *build = data;
    SearchTables *tables = build->tables;
    const int index = build->from + offset, kinds = tables->kinds;
    if (index % build->shares != build->share)
        return;
    const int count = tables->space->spec->model.layers + 2;
    OrrArena *scratch = orr_arena_new();
    Piece *pieces = ORR_ARENA_NEW(scratch, Piece, (int64_t)kinds * count),
          *least = ORR_ARENA_NEW(scratch, Piece, count);
    SearchTotals totals = {.hop_ps = INT64_MAX};
    for (int kind = 0; kind < kinds; kind++) {
        Piece *own = &pieces[kind * count];
        totals.hop_ps = MIN(totals.hop_ps, probe_pieces(tables, index, kind, scratch, own));
        for (int i = 0; kind == 0 && i < count; i++)
            least[i] = own[i];
        for (int i = 0; i < count; i++)
            lower(&least[i], &own[i]);
    }
    for (int i = 0; i < count; i++) {
        totals.chain_ps += least[i].chain_ps;
        totals.weight_ps += least[i].weight_ps;
        step_split_add(&totals.side, &least[i].side);
    }
    totals.shared_ps = compare_kinds(pieces, kinds, count, &tables->slowness[index * kinds]);
    tables->totals[index] = totals;
    orr_arena_free(scratch);
}

/* --- whole tables --- */

/* Gives every layer the first row that says the same. */
static SearchTable *pack(const SearchCosts *costs, const SearchLayer *rows, int layers)
{
    g_autofree uint16_t *row_of = g_new(uint16_t, (gsize)layers);
    g_autofree int *kept = g_new(int, (gsize)layers);
    int count = 0;
    for (int layer = 0; layer < layers; layer++) {
        int at = count;
        for (int i = 0; i < count && at == count; i++)
            if (memcmp(&rows[kept[i]], &rows[layer], sizeof *rows) == 0)
                at = i;
        if (at == count)
            kept[count++] = layer;
        row_of[layer] = (uint16_t)at;
    }
    SearchTable *table =
        g_malloc0(sizeof *table + sizeof *rows * (gsize)count + sizeof *row_of * (gsize)layers);
    table->costs = *costs;
    table->rows = count;
    for (int i = 0; i < count; i++)
        table->row[i] = rows[kept[i]];
    table->row_of = (uint16_t *)&table->row[count];
    memcpy(table->row_of, row_of, sizeof *row_of * (gsize)layers);
    return table;
}

/* Made when it is first asked for; two threads may make the same, and one of them is kept. */
static const SearchTable *table_of(SearchTables *tables, int index, int kind)
{
    SearchTable **place = &tables->table[index * tables->kinds + kind];
    g_mutex_lock(&tables->mutex);
    SearchTable *table = *place;
    g_mutex_unlock(&tables->mutex);
    if (table != NULL)
        return table;
    const int layers = tables->space->spec->model.layers;
    OrrArena *scratch = orr_arena_new();
    SearchLayer *rows = ORR_ARENA_NEW(scratch, SearchLayer, layers);
    SearchCosts costs;
    search_probe(tables->space, tables->example[index], kind, true, scratch, &costs, rows);
    SearchTable *fresh = pack(&costs, rows, layers);
    orr_arena_free(scratch);
    g_mutex_lock(&tables->mutex);
    if (*place == NULL)
        *place = fresh;
    table = *place;
    g_mutex_unlock(&tables->mutex);
    if (table != fresh)
        g_free(fresh);
    return table;
}

static int64_t *numbers(OrrArena *arena, int layers)
{
    return ORR_ARENA_NEW(arena, int64_t, layers + 1);
}

static SearchTimeSplits splits_new(OrrArena *arena, int layers)
{
    return (SearchTimeSplits){.exchange_ps = numbers(arena, layers), .kernels_ps = numbers(arena, layers)};
}

void search_costs_init(SearchCosts *costs, OrrArena *arena, int layers)
{
    *costs = (SearchCosts){.forward_ps = numbers(arena, layers),
                           .input_ps = numbers(arena, layers),
                           .weight_ps = numbers(arena, layers),
                           .ahead = splits_new(arena, layers),
                           .back = splits_new(arena, layers),
                           .weights = ORR_ARENA_NEW(arena, CostWeights, layers + 1)};
    for (int kind = 0; kind < SEARCH_RECOMPUTED_COUNT; kind++) {
        costs->recompute_ps[kind] = numbers(arena, layers);
        costs->again[kind] = splits_new(arena, layers);
        costs->memory[kind] = (SearchMemory){.kept_bytes = numbers(arena, layers),
                                             .input_only_bytes = numbers(arena, layers),
                                             .forward_temp_bytes = numbers(arena, layers),
                                             .backward_temp_bytes = numbers(arena, layers)};
    }
}

static void sum(int64_t *sums, int layer, int64_t value)
{
    sums[layer + 1] = sums[layer] + value;
}

static void sum_split(const SearchTimeSplits *sums, int layer, const StepSplit *side)
{
    sum(sums->exchange_ps, layer, side->exchange_ps);
    sum(sums->kernels_ps, layer, side->kernels_ps);
}

static void sum_layer(SearchCosts *costs, int layer, const SearchLayer *row)
{
    sum(costs->forward_ps, layer, row->piece.forward_ps);
    sum(costs->input_ps, layer, row->piece.input_ps);
    sum(costs->weight_ps, layer, row->piece.weight_ps);
    sum_split(&costs->ahead, layer, &row->piece.ahead);
    sum_split(&costs->back, layer, &row->piece.back);
    costs->weights[layer + 1] = costs->weights[layer];
    cost_weights_add(&costs->weights[layer + 1], &row->piece.weights);
    for (int kind = 0; kind < SEARCH_RECOMPUTED_COUNT; kind++) {
        const SearchLayerRecompute *again = &row->again[kind];
        const SearchMemory *memory = &costs->memory[kind];
        if ((costs->known & 1u << kind) == 0)
            continue;
        sum(costs->recompute_ps[kind], layer, again->ps);
        sum_split(&costs->again[kind], layer, &again->side);
        sum(memory->kept_bytes, layer, again->kept_bytes);
        sum(memory->input_only_bytes, layer, again->input_only_bytes);
        memory->forward_temp_bytes[layer] = again->forward_temp_bytes;
        memory->backward_temp_bytes[layer] = again->backward_temp_bytes;
    }
}

void search_tables_unpack(SearchTables *tables, int index, int kind, SearchCosts *costs)
{
    const SearchTable *table = table_of(tables, index, kind);
    const SearchCosts room = *costs;
    *costs = table->costs;
    costs->forward_ps = room.forward_ps;
    costs->input_ps = room.input_ps;
    costs->weight_ps = room.weight_ps;
    costs->ahead = room.ahead;
    costs->back = room.back;
    costs->weights = room.weights;
    memcpy(costs->recompute_ps, room.recompute_ps, sizeof costs->recompute_ps);
    memcpy(costs->again, room.again, sizeof costs->again);
    memcpy(costs->memory, room.memory, sizeof costs->memory);
    for (int layer = 0; layer < tables->space->spec->model.layers; layer++)
        sum_layer(costs, layer, &table->row[table->row_of[layer]]);
}

/* --- all of them --- */

/* Everything that a layer's cost depends on. */
typedef struct TableKey {
    int count, of[SEARCH_AXES_MOST + 2];
} TableKey;

static TableKey key_of(const SearchSpace *space, const SearchGroup *group)
{
    TableKey key = {0};
    const unsigned keys =
        SEARCH_KEY_COST | (search_placed_alike(space, group) ? 0 : (unsigned)SEARCH_KEY_PLACED);
    key.count = search_axes_key(group, keys, key.of);
    key.of[key.count++] = group->microbatches > 1;
    key.of[key.count++] = group->pipeline > 1 && step_pieces_follow_pipeline(space->spec);
    return key;
}

static guint key_hash(gconstpointer key)
{
    const TableKey *table = key;
    return search_ints_hash(table->of, (gsize)table->count);
}

static gboolean key_equal(gconstpointer a, gconstpointer b)
{
    const TableKey *one = a, *other = b;
    return one->count == other->count &&
           memcmp(one->of, other->of, sizeof one->of[0] * (gsize)one->count) == 0;
}

void search_tables_fill(SearchTables *tables, int from, int count, int jobs, int share, int shares)
{
    Build build = {.tables = tables, .from = from, .share = share, .shares = shares};
    orr_crew(MIN(count, tables->count - from), jobs, NULL, fill_totals, &build);
}

SearchTables *search_tables_new(SearchSpace *space)
{
    SearchTables *tables = g_new0(SearchTables, 1);
    GHashTable *index_of = g_hash_table_new_full(key_hash, key_equal, g_free, NULL);
    GPtrArray *examples = g_ptr_array_new();
    tables->space = space;
    g_mutex_init(&tables->mutex);
    for (int i = 0; i < space->group_count; i++) {
        SearchGroup *group = &space->groups[i];
        const TableKey key = key_of(space, group);
        gpointer found = NULL;
        if (g_hash_table_lookup_extended(index_of, &key, NULL, &found)) {
            group->costs = GPOINTER_TO_INT(found);
            continue;
        }
        group->costs = (int)examples->len;
        g_hash_table_insert(index_of, g_memdup2(&key, sizeof key), GINT_TO_POINTER(group->costs));
        g_ptr_array_add(examples, group);
    }
    tables->count = (int)examples->len;
    tables->totals = g_new0(SearchTotals, (gsize)tables->count);
    tables->kinds = search_hardware_count(space->spec);
    tables->slowness = g_new0(double, (gsize)tables->count *(gsize)tables->kinds);
    tables->table = g_new0(SearchTable *, (gsize)tables->count * (gsize)tables->kinds);
    tables->example = (const SearchGroup **)(void *)g_ptr_array_free(examples, FALSE);
    g_hash_table_destroy(index_of);
    return tables;
}

void search_tables_free(SearchTables *tables)
{
    if (tables == NULL)
        return;
    for (int i = 0; i < tables->count * tables->kinds; i++)
        g_free(tables->table[i]);
    g_free(tables->table);
    g_free(tables->slowness);
    g_free(tables->totals);
    g_free((void *)tables->example);
    g_mutex_clear(&tables->mutex);
    g_free(tables);
}
