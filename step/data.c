/* step/data.c - data parallelism of a stage: gradient reductions and parameter gathers of its segments. */
#include <math.h>

#include "costmodel/ops_tiles.h"
#include "costmodel/states.h"
#include "step/fill.h"

/* A collective of `bytes` over `group`; cut in `pieces` of equal size when each tensor goes by itself. */
static SimWork in_pieces(const Spec *spec, CostCollectiveOp op, double bytes, CostGroup group, int pieces)
{
    SimWork work = step_collective(spec, &(CostCollective){.op = op, .bytes = bytes / pieces, .group = group},
                                   SIM_PART_DATA_COMM);
    sim_work_repeat(&work, pieces);
    return work;
}

/* One kind of parameters: dense ones are replicated over data x context, those of experts over what expert parallelism
 * leaves of data x context x tensor. ZeRO shards within neighbours of either; hybrid sharding all-reduces each
 * shard over the replicas of the shard group behind its reduce-scatter. Where ranks own tensors whole, n owners of 1/n
 * of the bytes broadcast in turn: the bytes of an all-gather, n times its latency; below ZeRO-3 no more owners than
 * `tensors`, matrices with the vectors beside them. Source: [Rajbhandari2020], [InternEvo] */
static SimWork over_replicas(const Spec *spec, CostCollectiveOp op, CostRanks ranks, double bytes,
                             int tensors, int pieces)
{
    const int replicas = cost_group_ranks(spec, ranks);
    const int shard = op == COST_ALL_REDUCE ? replicas : cost_shard_degree(spec, replicas);
    const bool by_owner =
        op == COST_ALL_GATHER && spec->execution.framework.data_parallel.gathers == SPEC_GATHERS_BROADCASTS;
    const int owners = spec->parallel.zero >= 3 ? shard : MAX(1, MIN(shard, tensors));
    SimWork work = in_pieces(spec, by_owner ? COST_BROADCAST : op, bytes,
                             cost_group_part(spec, ranks, 1, shard), by_owner ? pieces * owners : pieces);
    if (op == COST_REDUCE_SCATTER && shard < replicas) {
        const SimWork again = in_pieces(spec, COST_ALL_REDUCE, bytes / shard,
                                        cost_group_part(spec, ranks, shard, replicas / shard), pieces);
        step_add_work(&work, &again);
    }
    return work;
}

/* Tensors of a piece that a framework which gathers tensor by tensor sends: all of them when gradients are reduced;
 * norms and biases stay whole (below DeepSpeed's persistence threshold of 1e5 elements) and are not gathered. */
static int tensors_sent(const Spec *spec, CostCollectiveOp op, const StepParams *params)
{
    if (spec->parallel.zero < 3 || !spec_gathers_each_tensor(&spec->execution.framework) ||
        params->weights.tensors < 2) {
        return 1;
    }
    return MAX(1, params->weights.tensors - (op == COST_ALL_GATHER ? params->weights.vectors : 0));
}

static double list_host_s(const Spec *spec, int tensors, int ranks)
{
    return tensors * (double)ranks * spec->execution.framework.data_parallel.tensor_list_rank_host_s;
}

/* Collectives on lists of tensors: for every rank's part of each the host makes a view and launches a copy, which the GPU
 * waits for; the tensors pass through memory besides. An all-reduce takes them in place. Source: [DeepSpeedZero3], [NanotronCode] */
static void add_lists(const Spec *spec, CostCollectiveOp op, const StepParams *params, double wire_bytes,
                      int ranks, int sent, SimWork *work)
{
    const SpecFramework *framework = &spec->execution.framework;
    const bool lists = framework->data_parallel.tensor_list_rank_host_s > 0 ||
                       framework->data_parallel.tensor_list_copies > 0;
    if (!lists || op == COST_ALL_REDUCE || ranks < 2 ||
        spec->parallel.zero < (spec_gathers_each_tensor(framework) ? 3 : 1)) {
        return;
    }
    const int tensors = spec_gathers_each_tensor(framework) ? sent : params->weights.tensors;
    const double bytes =
        cost_weights_count(&params->weights) * wire_bytes * framework->data_parallel.tensor_list_copies;
    double seconds = list_host_s(spec, tensors, ranks);
    if (bytes > 0) {
        seconds += cost_memory_bound_s(&spec->cluster.accelerator, COST_MEMORY_ELEMENTWISE, bytes);
    }
    sim_work_spend(work, SIM_PART_DATA_COMM, sim_ps(seconds));
}

/* Buckets that hold the gradients of what completed one: several where a layer is larger and is cut. */
static int buckets_of(const Spec *spec, const StepParams *params, double wire_bytes)
{
    const SpecRecipeDataParallel *recipe = &spec->execution.framework.data_parallel;
    const double bytes = cost_weights_count(&params->weights) * wire_bytes;
    if (params->buckets > 0)
        return params->buckets;
    const bool cuts =
        recipe->bucket_fill == SPEC_FILL_CUT_LAYERS && recipe->bucket_bytes > 0 && spec->parallel.zero < 3;
    return cuts ? (int)fmax(1, fmin(1e6, floor(bytes / recipe->bucket_bytes))) : 1;
}

/* One collective over dense and one over expert parameters, one after the other. */
static SimWork both(const Spec *spec, CostCollectiveOp op, const StepParams *params, double wire_bytes)
{
    const int whole = MAX(tensors_sent(spec, op, params), buckets_of(spec, params, wire_bytes));
    const int pieces = whole * MAX(1, params->tiles),
              tensors = params->weights.tensors - params->weights.vectors;
    const bool sharded =
        op == COST_ALL_GATHER && spec->parallel.zero >= 3; /* frozen weights too, as they are stored */
    const double dense = params->weights.dense * wire_bytes + (sharded ? params->frozen.dense_bytes : 0),
                 experts = params->weights.expert * wire_bytes + (sharded ? params->frozen.expert_bytes : 0);
    SimWork work = over_replicas(spec, op, COST_RANKS_REPLICAS, dense, tensors, pieces);
    SimWork expert = over_replicas(spec, op, COST_RANKS_EXPERT_REPLICAS, experts, tensors, whole);
    expert.second_bytes = sim_sum(expert.scale_up_bytes, expert.scale_out_bytes);
    step_add_work(&work, &expert);
    add_lists(spec, op, params, wire_bytes,
              cost_shard_degree(spec, cost_group_ranks(spec, COST_RANKS_REPLICAS)), pieces, &work);
    return work;
}

/* Hosts compare each bucket's reduction before it starts. */
static int64_t bucket_checks_ps(const Spec *spec, const StepParams *params)
{
    const double limit = spec->execution.framework.data_parallel.bucket_bytes;
    const double bytes = cost_weights_count(&params->weights) * cost_gradient_wire_bytes(spec);
    const int ranks = cost_group_ranks(spec, COST_RANKS_REPLICAS);
    return sim_ps((limit > 0 ? bytes / limit : 1) * cost_collective_check_s(spec, ranks));
}

bool step_compresses(const Spec *spec)
{
    return spec->parallel.compression.kind != SPEC_COMPRESSION_NONE;
}

static void set_communication(const Spec *spec, SimSegment *segment, const StepParams *params)
{
    const int zero = spec->parallel.zero;
    const SpecFramework *framework = &spec->execution.framework;
    const bool scatter = spec_scatters_gradients(spec);
    segment->grad_reduce = step_compresses(spec)
                               ? step_compressed_reduce(spec, scatter, params->weights.dense)
                               : both(spec, scatter ? COST_REDUCE_SCATTER : COST_ALL_REDUCE, params,
                                      cost_gradient_wire_bytes(spec));
    sim_work_spend(&segment->grad_reduce, SIM_PART_DATA_COMM, zero == 0 ? bucket_checks_ps(spec, params) : 0);
    const bool outside = zero < 3 && framework->data_parallel.gathers_begin == SPEC_GATHERS_VALIDATION;
    if (zero >= 1 && !outside) {
        segment->param_gather = both(spec, COST_ALL_GATHER, params, cost_weight_wire_bytes(spec));
    }
}

static SimBucketWork bucket_work(const SimWork *work)
{
    const int64_t ps = sim_work_duration_ps(work);
    const SimShare *network = step_network_share(work), *share;
    int64_t sms_ps = 0;
    for (int i = 0; (share = sim_work_share(work, i)) != NULL; i++)
        if (share->resource == SIM_RESOURCE_SM && share->mode == SIM_SHARE_RESERVED)
            sms_ps += ps / SIM_WHOLE_RESOURCE * share->amount;
    return (SimBucketWork){.ps = ps,
                           .load_ps = network == NULL ? 0 : ps / SIM_WHOLE_RESOURCE * network->amount,
                           .network = network == NULL ? -1 : network->resource,
                           .sms_ps = sms_ps};
}

void sim_step_bucket(const Spec *spec, const CostWeights *weights, SimBucketWork *ret_reduce,
                     SimBucketWork *ret_gather)
{
    SimSegment segment = {0};
    const StepParams params = {.weights = *weights};
    set_communication(spec, &segment, &params);
    if (spec->parallel.zero >= 3)
        step_apply_zeropp(spec, &params, &segment);
    const bool shorter = segment.backward_gathers_apart && sim_work_duration_ps(&segment.backward_gather) <
                                                               sim_work_duration_ps(&segment.param_gather);
    *ret_reduce = bucket_work(&segment.grad_reduce);
    *ret_gather = bucket_work(shorter ? &segment.backward_gather : &segment.param_gather);
}

void step_add_params(StepParams *sum, const StepParams *term)
{
    cost_weights_add(&sum->weights, &term->weights);
    sum->frozen.dense_bytes += term->frozen.dense_bytes;
    sum->frozen.expert_bytes += term->frozen.expert_bytes;
    sum->reference.dense_bytes += term->reference.dense_bytes;
    sum->reference.expert_bytes += term->reference.expert_bytes;
}

/* Whole weights or gradients read and written `copies` times: gathered weights from the buffer of the collective to their
 * tensors, gradients into that of theirs (one and a half times where it is wider: PyTorch's FSDP2 reduces in fp32). */
static int64_t copies_ps(const Spec *spec, double copies, double params)
{
    const double bytes = 2 * copies * params * cost_weight_wire_bytes(spec);
    return bytes > 0 ? sim_ps(cost_memory_bound_s(&spec->cluster.accelerator, COST_MEMORY_ELEMENTWISE, bytes))
                     : 0;
}

/* Weights that recomputation has used are dropped and gathered once more for the gradients. */
static void gather_again(const Spec *spec, SimSegment *segment)
{
    if (!cost_regathers(spec)) {
        return;
    }
    segment->backward_gather = segment->param_gather;
    step_add_work(&segment->backward_gather, &segment->param_gather);
    segment->backward_gathers_apart = true;
}

/* Passes over a gradient between its product and the wire, in reads and writes of the weights' type. A wider wire adds a
 * cast (w read, r written) and scales r instead of w bytes. */
static double gradient_passes(const Spec *spec)
{
    const SpecFramework *framework = &spec->execution.framework;
    const double w = cost_weight_wire_bytes(spec), r = cost_gradient_wire_bytes(spec);
    const double wider =
        framework->data_parallel.gradient_cast && r > w ? (w + r + 2 * (r - w)) / (2 * w) : 0;
    return framework->data_parallel.gradient_copies + wider;
}

/* The GPU was drained when the host began the list of what is gathered beside this segment: compute waits for it too.
 * Source: [DeepSpeedZero3], torch.cuda.synchronize() in _allgather_param and fetch_sub_module until October 2021 */
static void add_list_waits(const Spec *spec, const StepParams *params, bool again, SimSegment *segment)
{
    const int ranks = cost_shard_degree(spec, cost_group_ranks(spec, COST_RANKS_REPLICAS));
    const int64_t host_ps = sim_ps(list_host_s(spec, tensors_sent(spec, COST_ALL_GATHER, params), ranks));
    if (spec->execution.framework.data_parallel.gathers != SPEC_GATHERS_TENSORS_DRAINED ||
        spec_prefetch_units(spec) == 0 || ranks < 2)
        return;
    sim_work_spend(&segment->forward, SIM_PART_DATA_COMM, host_ps);
    sim_work_spend(&segment->backward_input, SIM_PART_DATA_COMM, again ? host_ps : 0);
    sim_work_spend(&segment->recompute, SIM_PART_DATA_COMM, segment->backward_gathers_apart ? host_ps : 0);
}

/* Weights of a layer's first product on a rank: queries, keys and values, or what latent attention begins with. */
static double first_product_params(const Spec *spec)
{
    const SpecModel *model = &spec->model;
    const SpecMla *mla = &model->mla;
    double columns = (model->heads + 2.0 * model->kv_heads) * model->head_dim;
    if (mla->kv_lora_rank > 0)
        columns = (mla->q_lora_rank > 0 ? mla->q_lora_rank : model->heads * cost_qk_dim(model)) +
                  mla->kv_lora_rank + mla->qk_rope_head_dim;
    return columns * model->hidden / spec->parallel.tensor;
}

/* Those of its last one, with which a backward without recomputation begins: out of the MLP, or of experts. */
static double last_product_params(const Spec *spec, const StepParams *params)
{
    const SpecModel *model = &spec->model;
    return params->weights.expert > 0 ? params->weights.expert / (model->gated_mlp ? 3 : 2)
                                      : (double)model->ffn_hidden * model->hidden / spec->parallel.tensor;
}

/* Sharded weights that more forwards want are gathered for each as well: those of what is trained for mismatched completions,
 * for the reference a second model's, or the same once more. */
static void gather_reference(const Spec *spec, const StepParams *params, SimSegment *segment)
{
    const int mismatched = cost_mismatched_forwards(spec), refers = cost_reference_forwards(spec);
    if (mismatched + refers == 0)
        return;
    const bool second = spec->training.reference == SPEC_REFERENCE_MODEL;
    const StepParams wanted = {.frozen = second ? params->reference : params->frozen,
                               .weights = {.tensors = params->weights.tensors}};
    const SimWork own = segment->param_gather, more = both(spec, COST_ALL_GATHER, &wanted, 0);
    if (!segment->backward_gathers_apart)
        segment->backward_gather = segment->param_gather;
    segment->backward_gathers_apart = true;
    if (mismatched > 0)
        step_add_work(&segment->param_gather, &own);
    for (int i = 0; i < refers; i++)
        step_add_work(&segment->param_gather, &more);
}

/* What is gathered of a unit, in weights of the wire's type. */
static double gathered_params(const Spec *spec, const StepParams *params)
{
    return cost_weights_count(&params->weights) +
           (params->frozen.dense_bytes + params->frozen.expert_bytes) / cost_weight_wire_bytes(spec);
}

/* What a layer waits for where its gathers begin with it: the share of the gather that its first product of each pass wants.
 * The rest is beside what runs meanwhile. */
static void add_first_gathers(const Spec *spec, const StepParams *params, bool again, SimSegment *segment)
{
    const double count = gathered_params(spec, params);
    if (!spec->execution.framework.data_parallel.gathers_within_layer || spec_prefetch_units(spec) == 0 ||
        count <= 0)
        return;
    const int64_t forward_ps = sim_work_duration_ps(&segment->param_gather);
    const int64_t backward_ps =
        segment->backward_gathers_apart ? sim_work_duration_ps(&segment->backward_gather) : forward_ps;
    const bool repeats = sim_work_duration_ps(&segment->recompute) > 0;
    const double first = fmin(1, first_product_params(spec) / count),
                 last = fmin(1, last_product_params(spec, params) / count);
    sim_work_spend(&segment->forward, SIM_PART_DATA_COMM, (int64_t)(first * (double)forward_ps));
    sim_work_spend(repeats ? &segment->recompute : &segment->backward_input, SIM_PART_DATA_COMM,
                   again ? (int64_t)((repeats ? first : last) * (double)backward_ps) : 0);
}

/* Parameters of a unit that are gathered at once: one tile of each matrix, but experts, whose products are grouped. */
static double parameters_at_once(const StepParams *params)
{
    return params->weights.dense / MAX(1, params->tiles) + params->weights.expert;
}

static double frozen_bytes(const StepParams *params)
{
    return params->frozen.dense_bytes / MAX(1, params->tiles) + params->frozen.expert_bytes;
}

/* ZeRO-3: every segment is a unit, gathered and reduced by itself. */
static void fill_units(const Step *step, int stage, const StepPolicy *policy)
{
    SimStage *out = &step->plan->stages[stage];
    for (int i = 0; i < out->segment_count; i++) {
        SimSegment *segment = &out->segments[i];
        StepParams *params = &step->params[stage][i];
        const bool layer = i >= out->first_layer && i < out->first_layer + out->layers;
        const double count = cost_weights_count(&params->weights);
        params->tiles = layer ? cost_weight_tiles(step->spec) : 1;
        const double at_once = parameters_at_once(params);
        set_communication(step->spec, segment, params);
        const SpecFramework *framework = &step->spec->execution.framework;
        const int64_t gathered_ps = copies_ps(step->spec, framework->data_parallel.gathered_copies,
                                              gathered_params(step->spec, params));
        const bool again = policy->reshards_after_forward && !policy->keeps_gathered;
        sim_work_spend(&segment->forward, SIM_PART_COMPUTE, gathered_ps);
        sim_work_spend(&segment->backward_input, SIM_PART_COMPUTE, again ? gathered_ps : 0);
        sim_work_spend(&segment->backward_weight, SIM_PART_COMPUTE,
                       copies_ps(step->spec, gradient_passes(step->spec), count));
        if (policy->keeps_gathered ||
            policy->by_chunk) { /* the product's own gradient, before it is added to the sum */
            segment->backward_temp_bytes += step_bytes(at_once * cost_weight_wire_bytes(step->spec));
        }
        segment->gathered_param_bytes =
            step_bytes(at_once * cost_weight_wire_bytes(step->spec) + frozen_bytes(params));
        segment->unsharded_grad_bytes = /* whole ones wait for the last micro-batch */
            step_bytes((step_reduces_each(policy) ? at_once : count) *
                       cost_unsharded_gradient_bytes(step->spec));
        gather_again(step->spec, segment);
        gather_reference(step->spec, params, segment);
        add_list_waits(step->spec, params, again, segment);
        step_apply_zeropp(step->spec, params, segment);
        if (layer)
            add_first_gathers(step->spec, params, again, segment);
    }
}

/* Embedding and head are one unit: gathered before the first segment, there until its backward, and reduced behind that. */
static void join_root(const Step *step, int stage, const StepPolicy *policy)
{
    SimStage *out = &step->plan->stages[stage];
    SimSegment *first = &out->segments[0], *last = &out->segments[out->segment_count - 1];
    StepParams root = step->params[stage][0];
    if (out->segment_count < 2)
        return;
    step_add_params(&root, &step->params[stage][out->segment_count - 1]);
    set_communication(step->spec, first, &root);
    first->root = true;
    last->param_gather = last->grad_reduce = (SimWork){0};
    if (step_reduces_each(policy)) /* widened on its way out alone */
        last->unsharded_grad_bytes = MIN(last->unsharded_grad_bytes, last->gathered_param_bytes);
}

static void complete_bucket(const Spec *spec, const StepParams *bucket, SimSegment *segment)
{
    set_communication(spec, segment, bucket);
    sim_work_spend(&segment->backward_weight, SIM_PART_COMPUTE,
                   sim_ps(step_select_s(spec, bucket->weights.dense)));
    if (spec->parallel.zero < 3 && cost_shards_gradients(spec)) /* whole until it is reduced */
        segment->unsharded_grad_bytes =
            step_bytes(cost_weights_count(&bucket->weights) * cost_unsharded_gradient_bytes(spec));
}

/* What leaves with every micro-batch is copied on its way in every one, as under ZeRO-3. */
static void copy_gradients(const Step *step, int stage, const StepPolicy *policy)
{
    SimStage *out = &step->plan->stages[stage];
    for (int i = 0; i < out->segment_count && step_reduces_each(policy); i++) {
        const StepParams *params = &step->params[stage][i];
        sim_work_spend(
            &out->segments[i].backward_weight, SIM_PART_COMPUTE,
            copies_ps(step->spec, gradient_passes(step->spec), cost_weights_count(&params->weights)));
    }
}

/* Buckets fill in the order in which gradients become ready: from the last segment to the first. The
 * segment that completes a bucket carries its reduction and, being its first in forward order, its gather. */
static void fill_buckets(const Step *step, int stage, const StepPolicy *policy)
{
    SimStage *out = &step->plan->stages[stage];
    StepFilling filling = step_filling(policy);
    StepParams bucket = {0};
    for (int i = out->segment_count - 1; i >= 0; i--) {
        step_add_params(&bucket, &step->params[stage][i]);
        if (step_completes_bucket(&filling, cost_weights_count(&bucket.weights)) || i == 0) {
            complete_bucket(step->spec, &bucket, &out->segments[i]);
            bucket = (StepParams){0};
        }
    }
}

static void deal_buckets(const Step *step, int stage, const StepPolicy *policy)
{
    SimStage *out = &step->plan->stages[stage];
    StepParams *complete = ORR_ARENA_NEW(step->arena, StepParams, out->segment_count);
    step_deal_buckets(step, stage, policy, complete);
    for (int i = 0; i < out->segment_count; i++)
        if (complete[i].buckets > 0)
            complete_bucket(step->spec, &complete[i], &out->segments[i]);
}

/* Groups of the stage's pipeline rank meet their likes of that rank on a fabric, not the worst of all. */
static void of_rank(const Step *step, int stage, Spec *ret_spec)
{
    const SimPlan *plan = step->plan;
    int chunk = 0;
    *ret_spec = *step->spec;
    sim_place_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks, stage,
                 &ret_spec->cluster.network.fabric_rank, &chunk);
}

void step_fill_data(Step *step, int stage)
{
    const Spec *spec = step->spec;
    if (spec->parallel.data_scheme != SPEC_DATA_ALLREDUCE) {
        return;
    }
    if (spec->cluster.network.fabric != NULL && spec->cluster.network.fabric_rank < 0) {
        g_autofree Spec *own = g_new(Spec, 1);
        of_rank(step, stage, own);
        step->spec = own;
        step_fill_data(step, stage);
        step->spec = spec;
        return;
    }
    const StepPolicy policy = step_policy(spec);
    if (spec->parallel.zero >= 3) {
        fill_units(step, stage, &policy);
        if (policy.root_unit)
            join_root(step, stage, &policy);
        return;
    }
    if (policy.fill == STEP_FILL_TENSORS_FIRST || policy.fill == STEP_FILL_TENSORS_LAST)
        deal_buckets(step, stage, &policy);
    else
        fill_buckets(step, stage, &policy);
    copy_gradients(step, stage, &policy);
}
