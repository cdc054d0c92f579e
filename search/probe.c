/* search/probe.c - see probe.h. */
#include "search/probe.h"

#include "search/hardware.h"

typedef struct Probe {
    const Spec *spec; /* with the group's degrees, on one kind of GPUs */
    bool alike, accumulates;
    SearchCosts *costs;
    SearchLayer *rows; /* [layers] */
    OrrArena *scratch;
} Probe;

static SearchLayerRecompute recompute_of(const StepPiece *piece)
{
    return (SearchLayerRecompute){.ps = piece->again_ps,
                                  .side = piece->again,
                                  .kept_bytes = piece->kept_bytes,
                                  .input_only_bytes = piece->input_only_bytes,
                                  .forward_temp_bytes = piece->forward_temp_bytes,
                                  .backward_temp_bytes = piece->backward_temp_bytes};
}

/* Without recomputation: what all choices of it share. */
static void take_first(Probe *probe, const StepPieces *pieces)
{
    SearchCosts *costs = probe->costs;
    for (int layer = 0; layer < probe->spec->model.layers; layer++)
        probe->rows[layer].piece = pieces->layer[layer];
    costs->first = pieces->first;
    costs->last = pieces->last;
    costs->mtp_weights = pieces->mtp;
    costs->tied_last_weights = pieces->tied_last;
    costs->overhead_ps = pieces->overhead_ps;
    costs->hop_inside_ps = pieces->hop_inside_ps;
    costs->hop_across_ps = pieces->hop_across_ps;
    costs->head_left_out_ps = pieces->head_left_out_ps;
    costs->workspace_bytes = pieces->workspace_bytes;
    costs->last_workspace_bytes = pieces->last_workspace_bytes;
    costs->layer_workspace_bytes = pieces->layer_workspace_bytes;
}

/* Of passes that recomputation changes the least counts; multi-token prediction follows it too: the least of all. */
static void lower_to(Probe *probe, const StepPieces *pieces)
{
    StepPiece *last = &probe->costs->last;
    for (int layer = 0; layer < probe->spec->model.layers; layer++)
        step_piece_lower(&probe->rows[layer].piece, &pieces->layer[layer]);
    last->kept_bytes = MIN(last->kept_bytes, pieces->last.kept_bytes);
    last->input_only_bytes = MAX(last->input_only_bytes, pieces->last.input_only_bytes);
    step_piece_lower(last, &pieces->last);
}

static void probe_once(Probe *probe, SearchRecomputed again, SpecRecompute recompute)
{
    g_autofree Spec *spec = g_memdup2(probe->spec, sizeof *probe->spec);
    StepPieces pieces;
    spec->training.recompute = recompute;
    step_pieces(spec, probe->alike, probe->accumulates, probe->scratch, &pieces);
    if (probe->costs->known == 0)
        take_first(probe, &pieces);
    else
        lower_to(probe, &pieces);
    for (int layer = 0; layer < spec->model.layers; layer++)
        probe->rows[layer].again[again] = recompute_of(&pieces.layer[layer]);
    probe->costs->leaves_sms |= pieces.leaves_sms;
    probe->costs->known |= 1u << again;
}

/* Spans hold for every data and pipeline degree where both are outside of the others, and groups divide a domain or are
 * divided by it. */
bool search_placed_alike(const SearchSpace *space, const SearchGroup *group)
{
    const int64_t strides[] = {group->tensor, (int64_t)group->tensor * group->context, group->expert_tensor,
                               (int64_t)group->expert_tensor * group->expert};
    for (int kind = 0; kind < search_hardware_count(space->spec); kind++) {
        const int domain = search_hardware_domain_gpus(space->spec, kind);
        for (gsize i = 0; i < G_N_ELEMENTS(strides); i++)
            if (domain % strides[i] != 0 && strides[i] % domain != 0)
                return false;
    }
    return step_order_is_alike(space->rank_orders[group->order]);
}

static void probe_spec(const SearchSpace *space, const SearchGroup *group, int kind, Spec *ret_spec)
{
    g_autofree Spec *all = g_memdup2(space->spec, sizeof *space->spec);
    const bool varies = (space->spec->execution.overlap & SPEC_OVERLAP_AUTO) != 0;
    const SearchPolicy given = {.overlap = varies ? 0 : search_widest_policy(space).overlap};
    search_apply_group(space, group, all); /* attention follows the kind: known before */
    search_hardware_spec(all, kind, ret_spec);
    search_apply_policy(group, &given, ret_spec);
}

/* The choices of recomputation that the space may try. */
static void probe_recomputed(const SearchSpace *space, Probe *probe)
{
    const SpecRecompute *own = &space->spec->training.recompute;
    SpecRecompute choices[SEARCH_RECOMPUTED_COUNT] = {
        [SEARCH_RECOMPUTED_ALL] = {.mode = SPEC_RECOMPUTE_FULL, .every_n_layers = 1},
        [SEARCH_RECOMPUTED_SOME] = {.mode = SPEC_RECOMPUTE_SELECTIVE, .every_n_layers = 1},
        [SEARCH_RECOMPUTED_OP] = {.mode = SPEC_RECOMPUTE_SELECTIVE_OP, .every_n_layers = 1},
    };
    unsigned modes = space->recompute != 0 ? space->recompute : 1u << own->mode;
    if (space->recompute == 0 && own->mode == SPEC_RECOMPUTE_MODULES) {
        choices[SEARCH_RECOMPUTED_SOME] = *own;
        modes = 1u << SPEC_RECOMPUTE_SELECTIVE;
    }
    if (modes & 1u << SPEC_RECOMPUTE_SELECTIVE_LAYER)
        modes |= 1u << SPEC_RECOMPUTE_FULL;
    if (modes & 1u << SPEC_RECOMPUTE_FULL)
        probe_once(probe, SEARCH_RECOMPUTED_ALL, choices[SEARCH_RECOMPUTED_ALL]);
    if (modes & 1u << SPEC_RECOMPUTE_SELECTIVE)
        probe_once(probe, SEARCH_RECOMPUTED_SOME, choices[SEARCH_RECOMPUTED_SOME]);
    if (modes & 1u << SPEC_RECOMPUTE_SELECTIVE_OP)
        probe_once(probe, SEARCH_RECOMPUTED_OP, choices[SEARCH_RECOMPUTED_OP]);
}

void search_probe(const SearchSpace *space, const SearchGroup *group, int kind, bool whole, OrrArena *scratch,
                  SearchCosts *ret_costs, SearchLayer *ret_rows)
{
    const SpecRecompute none = {.mode = SPEC_RECOMPUTE_NONE, .every_n_layers = 1};
    g_autofree Spec *spec = g_new(Spec, 1);
    *ret_costs = (SearchCosts){0};
    Probe probe = {.spec = spec,
                   .alike = search_placed_alike(space, group),
                   .accumulates = group->microbatches > 1,
                   .costs = ret_costs,
                   .rows = ret_rows,
                   .scratch = scratch};
    probe_spec(space, group, kind, spec);
    probe_once(&probe, SEARCH_RECOMPUTED_NONE, none);
    if (whole || step_pieces_follow_recompute(spec))
        probe_recomputed(space, &probe);
}
