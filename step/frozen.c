/* step/frozen.c - see frozen.h.
 *
 * A reduction of S bytes over n replicas sends 2 (n - 1) / n S of each rank, or half of that where it scatters, and then
 * 2 (r - 1) / r of each shard over r shard groups; quantised ones send less.  Source: [Rajbhandari2020], [Wang2023]
 */
#include "step/frozen.h"

#include <inttypes.h>
#include <math.h>

#include "costmodel/adapter.h"
#include "costmodel/offload.h"
#include "costmodel/states.h"

/* What a rank has of some pieces. */
typedef struct Share {
    CostWeights trained;
    double frozen_bytes, reference_bytes; /* as it holds them */
} Share;

typedef struct Frozen {
    const Spec *spec;
    const SimPlan *plan;
    const SimProgram *program;
    const SimResult *result;
    int ranks_a_stage; /* simulated ones of each pipeline rank */
    Share *stage;      /* [stages] */
    Share *rank;       /* [pipeline ranks] */
} Frozen;

/* Rounding of sums of picked bytes, and of each piece that is sent. */
static bool exceeds(double bytes, double most)
{
    return bytes > most * (1 + 1e-6) + 4096;
}

G_GNUC_PRINTF(2, 3)
static bool fail(GError **error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    return orr_fail(error, ORR_ERROR_INTERNAL, "the run breaks an invariant of frozen weights: %s", text);
}

/* --- what is trained --- */

static void add_piece(const Spec *spec, CostModelPart piece, int layer, Share *share)
{
    const CostParams params = cost_trained_params(spec, piece, layer);
    const CostFrozen frozen = cost_frozen_bytes(spec, piece, layer),
                     reference = cost_reference_bytes(spec, piece, layer);
    CostWeights weights = cost_rank_weights(&params, &spec->parallel);
    const int like = piece == COST_PART_MTP ? spec->model.layers - 1 : layer,
              experts = cost_layer_moe(&spec->model, like).experts;
    weights.expert *= experts > 0 ? 1 + (double)spec->parallel.expert_replicas / experts : 1;
    cost_weights_add(&share->trained, &weights);
    share->frozen_bytes += cost_held_bytes(spec, &frozen);
    share->reference_bytes += cost_held_bytes(spec, &reference);
}

/* Of stage `stage` of one copy of the model, whose first layer is `layer`. A tied head on a rank of its own has a table. */
static void add_stage(const Frozen *frozen, int stage, int layer, Share *share)
{
    const int last = sim_plan_model_stages(frozen->plan) - 1;
    if (stage == 0)
        add_piece(frozen->spec, COST_PART_EMBEDDING, 0, share);
    for (int i = 0; i < frozen->plan->stages[stage].layers; i++)
        add_piece(frozen->spec, COST_PART_LAYER, layer + i, share);
    if (stage < last)
        return;
    g_autofree Spec *own = g_memdup2(frozen->spec, sizeof *own);
    own->model.tied_embeddings = own->model.tied_embeddings && own->parallel.pipeline == 1;
    add_piece(own, COST_PART_HEAD, 0, share);
    for (int i = 0; i < own->model.mtp_layers; i++)
        add_piece(own, COST_PART_MTP, 0, share);
    if (own->model.mtp_layers > 0 && !own->training.freeze.embedding) /* a copy of the table */
        share->trained.dense += (double)own->model.vocab * own->model.hidden / own->parallel.tensor;
}

static void count_shares(const Frozen *frozen)
{
    const SimPlan *plan = frozen->plan;
    const int stages = sim_plan_model_stages(plan), all = plan->shape.ranks * plan->shape.chunks;
    for (int stage = 0, layer = 0; stage < stages; layer += plan->stages[stage++].layers)
        add_stage(frozen, stage, layer, &frozen->stage[stage]);
    for (int stage = 0; stage < all; stage++) {
        int rank, chunk;
        frozen->stage[stage] = frozen->stage[stage % stages];
        sim_place_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks, stage, &rank, &chunk);
        cost_weights_add(&frozen->rank[rank].trained, &frozen->stage[stage].trained);
        frozen->rank[rank].frozen_bytes += frozen->stage[stage].frozen_bytes;
        frozen->rank[rank].reference_bytes += frozen->stage[stage].reference_bytes;
    }
}

/* --- reductions --- */

/* Bytes that a rank sends of a reduction of one byte over so many replicas. */
static double sent_frac(const Spec *spec, double replicas)
{
    const double shard = cost_shard_degree(spec, (int)replicas);
    if (!spec_scatters_gradients(spec))
        return 2 * (replicas - 1) / replicas;
    return (shard - 1) / shard + 2 * (replicas / shard - 1) / (replicas / shard) / shard;
}

static double most_reduced_bytes(const Spec *spec, const CostWeights *trained)
{
    return cost_gradient_wire_bytes(spec) * (trained->dense * sent_frac(spec, cost_dense_replicas(spec)) +
                                             trained->expert * sent_frac(spec, cost_expert_replicas(spec)));
}

/* What a rank has sent of a stage's gradients, behind one micro-batch or at the end of the step (-1). */
typedef struct Reduced {
    int rank, stage, microbatch;
} Reduced;

static guint reduced_hash(gconstpointer key)
{
    const Reduced *reduced = key;
    return (guint)reduced->rank * 1000003u + (guint)reduced->stage * 8191u + (guint)reduced->microbatch;
}

static gboolean reduced_equal(gconstpointer a, gconstpointer b)
{
    const Reduced *x = a, *y = b;
    return x->rank == y->rank && x->stage == y->stage && x->microbatch == y->microbatch;
}

static bool check_reductions(const Frozen *frozen, GError **error)
{
    const Spec *spec = frozen->spec;
    g_autoptr(GHashTable) sums = g_hash_table_new_full(reduced_hash, reduced_equal, g_free, g_free);
    const bool table = !spec->training.adapter.given && !spec->training.freeze.head;
    for (int64_t i = 0; i < frozen->result->span_count; i++) {
        const SimSpan *span = &frozen->result->spans[i];
        const SimWork *work = &frozen->program->works[span->work];
        if (span->rank >= frozen->result->ranks) /* of another job on the fabric */
            continue;
        if (span->tag == SIM_TAG_EMBEDDING_REDUCE && !table)
            return fail(error, "rank %d reduces the gradient of a table that is frozen", span->rank);
        if (span->tag != SIM_TAG_GRAD_REDUCE)
            continue;
        const Reduced key = {span->rank, span->stage, span->microbatch};
        double *sum = g_hash_table_lookup(sums, &key);
        if (sum == NULL) {
            sum = g_new0(double, 1);
            g_hash_table_insert(sums, g_memdup2(&key, sizeof key), sum);
        }
        *sum += (double)work->scale_up_bytes + (double)work->scale_out_bytes;
        const double most = most_reduced_bytes(spec, &frozen->stage[span->stage].trained);
        if (exceeds(*sum, most))
            return fail(error,
                        "rank %d sends %.0f bytes of gradients of stage %d, its trained weights have %.0f",
                        span->rank, *sum, span->stage, most);
    }
    return true;
}

/* --- memory --- */

/* What stands beside a rank's own weights and gradients at most: those of a micro-batch and of the next one. */
static void most_beside(const Frozen *frozen, int index, double *ret_weights, double *ret_gradients)
{
    const Spec *spec = frozen->spec;
    const SimPlan *plan = frozen->plan;
    const CostWeights *trained = &frozen->rank[index].trained;
    const double whole = cost_weights_count(trained);
    *ret_weights = 0;
    *ret_gradients = 2 * whole * cost_unsharded_gradient_bytes(spec) +
                     (plan->offload.on ? whole * (cost_recipe(spec).gradients + 4) : 0);
    for (int chunk = 0; chunk < plan->shape.chunks; chunk++) {
        const SimStage *stage = &plan->stages[sim_stage_of(plan->schedule->placement, plan->shape.ranks,
                                                           plan->shape.chunks, index, chunk)];
        for (int i = 0; i < stage->segment_count; i++) {
            const SimSegment *segment = &stage->segments[i];
            *ret_weights += 2 * (double)segment->gathered_param_bytes +
                            (segment->offload != NULL ? (double)segment->offload->weight_bytes : 0);
        }
    }
}

/* States of trained weights: on the GPU, and below it, where the host sums gradients and works on a few subgroups. */
static bool check_states(const Frozen *frozen, int rank, const int64_t *held_bytes, GError **error)
{
    const Spec *spec = frozen->spec;
    const Share *share = &frozen->rank[rank / frozen->ranks_a_stage];
    const CostStates states = cost_states(spec, &share->trained);
    const double own = cost_shard_count(spec, &share->trained),
                 frozen_bytes = share->frozen_bytes + share->reference_bytes;
    const double gradients = states.gradients_bytes + cost_passing_gradient_bytes(spec) * own,
                 below = frozen_bytes +
                         own * (cost_weight_wire_bytes(spec) + 6 + 4 * (cost_offload_state_bytes(spec) + 4));
    const double lower = (double)held_bytes[SIM_MEM_HOST] + (double)held_bytes[SIM_MEM_NVME];
    if (exceeds((double)held_bytes[SIM_MEM_OPTIMIZER], states.optimizer_bytes))
        return fail(error, "rank %d has %" PRId64 " bytes of optimizer states, its trained weights have %.0f",
                    rank, held_bytes[SIM_MEM_OPTIMIZER], states.optimizer_bytes);
    if (exceeds((double)held_bytes[SIM_MEM_GRADIENTS], gradients))
        return fail(error, "rank %d has %" PRId64 " bytes of gradients, its trained weights have %.0f", rank,
                    held_bytes[SIM_MEM_GRADIENTS], gradients);
    if (exceeds(lower, below))
        return fail(error, "rank %d has %.0f bytes below the GPU, its weights and states have %.0f", rank,
                    lower, below);
    if (exceeds(frozen_bytes, (double)held_bytes[SIM_MEM_WEIGHTS] + lower))
        return fail(error, "rank %d holds %" PRId64 " bytes of weights, the frozen ones alone have %.0f",
                    rank, held_bytes[SIM_MEM_WEIGHTS], frozen_bytes);
    return true;
}

static bool check_level(const Frozen *frozen, const SimLevel *level, double weights, double gradients,
                        GError **error)
{
    const int64_t *held_bytes =
        frozen->program->class_list[level->rank / frozen->program->replicas].static_bytes;
    const int64_t more = level->bytes[SIM_MEM_WEIGHTS] - held_bytes[SIM_MEM_WEIGHTS];
    if (more < 0 || exceeds((double)more, weights) || (weights <= 0 && more != 0))
        return fail(error,
                    "rank %d holds %+" PRId64 " bytes of weights at %" PRId64
                    " ps beside its own, where at most %.0f are "
                    "gathered or fetched",
                    level->rank, more, level->time_ps, weights);
    if (exceeds((double)(level->bytes[SIM_MEM_GRADIENTS] - held_bytes[SIM_MEM_GRADIENTS]), gradients))
        return fail(error,
                    "rank %d holds %" PRId64 " bytes of gradients at %" PRId64
                    " ps, more than its trained weights have",
                    level->rank, level->bytes[SIM_MEM_GRADIENTS], level->time_ps);
    if (level->bytes[SIM_MEM_OPTIMIZER] > held_bytes[SIM_MEM_OPTIMIZER])
        return fail(error, "rank %d gets optimizer states at %" PRId64 " ps", level->rank, level->time_ps);
    return true;
}

static bool check_memory(const Frozen *frozen, GError **error)
{
    const SimResult *result = frozen->result;
    const SimProgram *program = frozen->program;
    for (int rank = 0; rank < result->ranks; rank++)
        if (!check_states(frozen, rank, program->class_list[rank / program->replicas].static_bytes, error))
            return false;
    const int ranks = frozen->plan->shape.ranks;
    g_autofree double *weights = g_new(double, ranks), *gradients = g_new(double, ranks);
    for (int index = 0; index < ranks; index++)
        most_beside(frozen, index, &weights[index], &gradients[index]);
    for (int64_t i = 0; i < result->level_count; i++) {
        const SimLevel *level = &result->levels[i];
        const int index = level->rank / frozen->ranks_a_stage;
        if (level->rank < result->ranks &&
            !check_level(frozen, level, weights[index], gradients[index], error))
            return false;
    }
    return true;
}

bool step_check_frozen(const Spec *spec, const SimPlan *plan, const SimProgram *program,
                       const SimResult *result, GError **error)
{
    if (!spec->training.adapter.given && !spec_freezes(&spec->training.freeze))
        return true;
    const int ranks = plan->shape.ranks;
    g_autofree Share *stage = g_new0(Share, ranks * plan->shape.chunks), *rank = g_new0(Share, ranks);
    const Frozen frozen = {.spec = spec,
                           .plan = plan,
                           .program = program,
                           .result = result,
                           .ranks_a_stage = result->ranks / ranks,
                           .stage = stage,
                           .rank = rank};
    count_shares(&frozen);
    return check_reductions(&frozen, error) && check_memory(&frozen, error);
}
