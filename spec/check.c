/* spec/check.c - contradictions between fields, each refused in one sentence: file, key, value, what would work.
 *
 * Degrees that are still SPEC_AUTO are passed over. What only a schedule knows (how many micro-batches it needs)
 * is checked by sim/schedule.
 */
#include <string.h>

#include "spec/check_data.h"
#include "spec/load.h"
#include "spec/placement.h"

typedef struct Check {
    const Spec *spec;
    const char *where;
    GError **error;
} Check;

static bool fail(const Check *check, const char *format, ...) G_GNUC_PRINTF(2, 3);

static bool fail(const Check *check, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *message = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    orr_fail(check->error, ORR_ERROR_INPUT, "%s: %s", check->where, message);
    return false;
}

/* Chosen, not "auto". */
static bool known(int degree)
{
    return degree > 0;
}

/* "1, 2, 4, 8": divisors of `number`, the first ten. */
static char *divisors(int64_t number)
{
    GString *out = g_string_new(NULL);
    int shown = 0;
    for (int64_t d = 1; d <= number && shown < 10 && d <= 65536; d++)
        if (number % d == 0)
            g_string_append_printf(out, "%s%" G_GINT64_FORMAT, shown++ > 0 ? ", " : "", (gint64)d);
    return g_string_free(out, FALSE);
}

/* `degree` must divide `value`. */
static bool divides(const Check *check, const char *key, int degree, const char *what, int value)
{
    if (value % degree == 0)
        return true;
    g_autofree char *list = divisors(value);
    return fail(check, "%s: %d does not divide %s %d; give one of its divisors (%s)", key, degree, what,
                value, list);
}

/* --- model --- */

static bool check_moe(const Check *check)
{
    const SpecModel *model = &check->spec->model;
    const SpecMoe *moe = &model->moe;
    if (moe->experts == 0)
        return true;
    if (moe->top_k > moe->experts)
        return fail(check, "model.moe.top_k: %d is more than the %d experts; give at most %d", moe->top_k,
                    moe->experts, moe->experts);
    if (moe->router_groups > 0 &&
        !divides(check, "model.moe.router_groups", moe->router_groups, "experts", moe->experts))
        return false;
    if ((moe->late_layers > 0) != (moe->late_experts > 0) || moe->late_layers > model->layers)
        return fail(
            check,
            "model.moe.late_layers: %d of %d layers with late_experts %d; give both, or leave both out",
            moe->late_layers, model->layers, moe->late_experts);
    if (moe->late_layers > 0 && (moe->router_groups > 0 || moe->top_k > moe->late_experts))
        return fail(check,
                    "model.moe.late_experts: %d with top_k %d and router_groups %d; give at least top_k, and "
                    "no groups",
                    moe->late_experts, moe->top_k, moe->router_groups);
    if (moe->router_top_groups > moe->router_groups)
        return fail(check,
                    "model.moe.router_top_groups: %d is more than the %d router_groups; give at most %d",
                    moe->router_top_groups, moe->router_groups, moe->router_groups);
    if (moe->router_top_groups > 0 && moe->top_k > moe->experts / moe->router_groups * moe->router_top_groups)
        return fail(check, "model.moe.top_k: %d is more than the experts of %d of %d groups; give at most %d",
                    moe->top_k, moe->router_top_groups, moe->router_groups,
                    moe->experts / moe->router_groups * moe->router_top_groups);
    if (moe->dense_layers > model->layers)
        return fail(check, "model.moe.dense_layers: %d is more than the %d layers; give at most %d",
                    moe->dense_layers, model->layers, model->layers);
    return true;
}

static bool check_model(const Check *check)
{
    const SpecModel *model = &check->spec->model;
    const SpecMla *mla = &model->mla;
    if (!divides(check, "model.kv_heads", model->kv_heads, "heads", model->heads) || !check_moe(check))
        return false;
    if (mla->kv_lora_rank > 0 && (mla->qk_nope_head_dim + mla->qk_rope_head_dim < 1 || mla->v_head_dim < 1))
        return fail(check,
                    "model.mla.%s: 0 with kv_lora_rank %d; give the head dimensions of latent attention",
                    mla->v_head_dim < 1 ? "v_head_dim" : "qk_nope_head_dim", mla->kv_lora_rank);
    if (mla->kv_lora_rank == 0 && (mla->q_lora_rank > 0 || mla->v_head_dim > 0))
        return fail(check,
                    "model.mla.kv_lora_rank: 0 with other keys of mla set; give the rank, or leave mla out");
    if (model->position == SPEC_POSITION_LEARNED &&
        model->max_positions < check->spec->training.sequence_length)
        return fail(check,
                    "training.sequence_length: %d is longer than model.max_positions %d of learned "
                    "positions; give at most "
                    "%d",
                    check->spec->training.sequence_length, model->max_positions, model->max_positions);
    return true;
}

/* --- cluster and precision --- */

static bool check_cluster(const Check *check)
{
    const SpecCluster *cluster = &check->spec->cluster;
    const int node = cluster->gpus_per_node, domain = cluster->scale_up_domain_gpus;
    if ((double)node * cluster->nodes > G_MAXINT)
        return fail(check, "cluster.nodes: %d x gpus_per_node %d are too many GPUs; give at most %d",
                    cluster->nodes, node, G_MAXINT);
    if (domain % node != 0 && node % domain != 0)
        return fail(check,
                    "cluster.scale_up_domain_gpus: %d neither divides gpus_per_node %d nor is a multiple of "
                    "it; give %d or a "
                    "multiple",
                    domain, node, node);
    if (cluster->nodes > 1 && (int64_t)node * cluster->nodes > domain &&
        !(cluster->scale_out_bytes_per_s_per_gpu > 0))
        return fail(
            check,
            "cluster.scale_out_bytes_per_s_per_gpu: 0 with %d nodes; give the network rate of a GPU, such as "
            "\"50 GB/s\"",
            cluster->nodes);
    return true;
}

static bool check_precision(const Check *check)
{
    const SpecAccelerator *accelerator = &check->spec->cluster.accelerator;
    const SpecPrecision precision = check->spec->training.precision;
    const SpecDtype dtype = spec_gemm_dtype(precision);
    if (accelerator->peak_flops_per_s[dtype] > 0)
        return true;
    GString *works = g_string_new(NULL);
    for (int i = 0; i < SPEC_PRECISION_COUNT; i++)
        if (accelerator->peak_flops_per_s[spec_gemm_dtype((SpecPrecision)i)] > 0)
            g_string_append_printf(works, "%s%s", works->len > 0 ? ", " : "",
                                   spec_word(&spec_words_precision, i));
    fail(check,
         "training.precision: \"%s\" needs a dense %s peak, which accelerator \"%s\" has not; give %s%s",
         spec_word(&spec_words_precision, (int)precision), spec_word(&spec_words_dtype, (int)dtype),
         accelerator->name, works->len > 0 ? "one of " : "peak_flops_per_s", works->str);
    g_string_free(works, TRUE);
    return false;
}

/* --- batch and sequence --- */

static bool check_batch(const Check *check)
{
    const SpecTraining *training = &check->spec->training;
    const int data = check->spec->parallel.data, micro = training->micro_batch,
              global = training->global_batch;
    if (known(data) && global % data != 0) {
        g_autofree char *list = divisors(global);
        return fail(check,
                    "training.global_batch: %d cannot be dealt to %d data-parallel ranks; give a multiple of "
                    "%d, or a "
                    "parallel.data that divides it (%s)",
                    global, data, data, list);
    }
    if (!known(micro) || global % micro == 0) {
        const int share = known(data) ? global / data : 0;
        if (!known(micro) || !known(data) || share % micro == 0)
            return true;
        g_autofree char *list = divisors(share);
        return fail(check,
                    "training.micro_batch: %d does not divide the %d sequences of a data-parallel rank "
                    "(global_batch %d / "
                    "data %d); give one of %s",
                    micro, share, global, data, list);
    }
    g_autofree char *list = divisors(global);
    return fail(check,
                "training.micro_batch: %d does not divide global_batch %d; give one of its divisors (%s)",
                micro, global, list);
}

static bool check_sequence(const Check *check)
{
    const SpecParallel *parallel = &check->spec->parallel;
    const int sequence = check->spec->training.sequence_length;
    const int context = parallel->context, tensor = parallel->tensor;
    if (known(context) && context > 1) {
        const int64_t parts = check->spec->model.causal ? 2 * (int64_t)context : context;
        if (sequence % parts != 0)
            return fail(check,
                        "parallel.context: %d needs a sequence_length that divides by %" G_GINT64_FORMAT
                        "%s, not %d; give %" G_GINT64_FORMAT " or another multiple",
                        context, (gint64)parts,
                        check->spec->model.causal ? " (two chunks a rank, to balance the causal mask)" : "",
                        sequence, (gint64)((sequence / parts + 1) * parts));
    }
    if (parallel->sequence_parallel == 1 && known(tensor) && tensor > 1 && known(context) &&
        (sequence / context) % tensor != 0)
        return fail(check,
                    "parallel.sequence_parallel: true needs the %d tokens of a context rank to divide by "
                    "tensor %d; give "
                    "false, or a sequence_length that is a multiple of %" G_GINT64_FORMAT,
                    sequence / context, tensor, (gint64)tensor * context);
    return true;
}

static bool check_recompute(const Check *check)
{
    const SpecRecompute *recompute = &check->spec->training.recompute;
    const int layers = check->spec->model.layers;
    if ((int)recompute->mode == SPEC_AUTO)
        return true;
    if (recompute->layers > layers)
        return fail(check, "training.recompute.layers: %d is more than the %d layers; give at most %d",
                    recompute->layers, layers, layers);
    if (recompute->mode == SPEC_RECOMPUTE_SELECTIVE_LAYER && recompute->every_n_layers > layers)
        return fail(check,
                    "training.recompute.every_n_layers: %d is more than the %d layers; give at most %d",
                    recompute->every_n_layers, layers, layers);
    if (recompute->mode == SPEC_RECOMPUTE_MODULES && recompute->modules == 0)
        return fail(check,
                    "training.recompute.modules: [] recomputes nothing; list modules, or give mode \"none\"");
    if (recompute->mode != SPEC_RECOMPUTE_MODULES && recompute->modules != 0)
        return fail(
            check,
            "training.recompute.modules: given with mode \"%s\"; give mode \"modules\", or leave them out",
            spec_word(&spec_words_recompute, (int)recompute->mode));
    if (check->spec->offload.activation_layers > layers)
        return fail(check, "offload.activation_layers: %d is more than the %d layers; give at most %d",
                    check->spec->offload.activation_layers, layers, layers);
    return true;
}

/* --- degrees --- */

static bool check_product(const Check *check)
{
    const SpecParallel *parallel = &check->spec->parallel;
    const int gpus = spec_gpus(check->spec);
    if (!known(parallel->tensor) || !known(parallel->context) || !known(parallel->pipeline))
        return true;
    const double split = (double)parallel->tensor * parallel->context * parallel->pipeline;
    if (split > gpus || gpus % (int)split != 0) {
        g_autofree char *list = divisors(gpus);
        return fail(check,
                    "parallel.tensor: %d x context %d x pipeline %d = %.0f does not divide the cluster's %d "
                    "GPUs; give degrees "
                    "whose product is one of %s",
                    parallel->tensor, parallel->context, parallel->pipeline, split, gpus, list);
    }
    const int data = gpus / (int)split;
    if (known(parallel->data) && parallel->data != data)
        return fail(check,
                    "parallel.data: %d makes tensor %d x context %d x pipeline %d x data %d = %.0f GPUs, but "
                    "the cluster has "
                    "%d; give data %d, or %.8g GPUs",
                    parallel->data, parallel->tensor, parallel->context, parallel->pipeline, parallel->data,
                    split * parallel->data, gpus, data, split * parallel->data);
    return true;
}

/* Ranks of a grid: a square, a square times its depth, a cube. */
static bool check_tensor_grid(const Check *check)
{
    const SpecParallel *parallel = &check->spec->parallel;
    const SpecModel *model = &check->spec->model;
    const int scheme = (int)parallel->tensor_scheme, depth = parallel->tensor_depth,
              tensor = parallel->tensor;
    if (scheme == SPEC_TENSOR_1D)
        return true;
    if (model->moe.experts > 0 || model->mla.kv_lora_rank > 0)
        return fail(check,
                    "parallel.tensor_scheme: %s with experts or latent attention; give 1d, or a dense model",
                    spec_word(&spec_words_tensor, scheme));
    for (int q = 1; q <= tensor; q++) {
        const int64_t square = (int64_t)q * q;
        if ((scheme == SPEC_TENSOR_2D   ? square
             : scheme == SPEC_TENSOR_3D ? square * q
                                        : square * depth) == tensor)
            return true;
    }
    return fail(check, "parallel.tensor: %d ranks make no %s grid; give %s", tensor,
                spec_word(&spec_words_tensor, scheme),
                scheme == SPEC_TENSOR_2D   ? "a square such as 4 or 16"
                : scheme == SPEC_TENSOR_3D ? "a cube such as 8 or 64"
                                           : "a square times tensor_depth, such as 8 with depth 2");
}

static bool check_tensor(const Check *check)
{
    const SpecModel *model = &check->spec->model;
    const int tensor = check->spec->parallel.tensor;
    const bool dense = model->moe.experts == 0 || model->moe.dense_layers > 0 || model->moe.layer_step > 1;
    if (!known(tensor))
        return true;
    if (!divides(check, "parallel.tensor", tensor, "model.heads", model->heads))
        return false;
    if (model->mla.kv_lora_rank == 0 && model->kv_heads % tensor != 0 && tensor % model->kv_heads != 0)
        return fail(check,
                    "parallel.tensor: %d neither divides model.kv_heads %d nor is a multiple of it; give one "
                    "that does",
                    tensor, model->kv_heads);
    return (!dense || divides(check, "parallel.tensor", tensor, "model.ffn_hidden", model->ffn_hidden)) &&
           check_tensor_grid(check);
}

static bool check_expert(const Check *check)
{
    const SpecParallel *parallel = &check->spec->parallel;
    const SpecMoe *moe = &check->spec->model.moe;
    const int expert = parallel->expert, slices = parallel->expert_tensor;
    if (!known(expert))
        return true;
    if (moe->experts == 0)
        return expert == 1 ||
               fail(check, "parallel.expert: %d with a dense model; give 1, or a model with moe.experts",
                    expert);
    if (!divides(check, "parallel.expert", expert, "model.moe.experts", moe->experts))
        return false;
    if (moe->late_experts > 0 &&
        !divides(check, "parallel.expert", expert, "model.moe.late_experts", moe->late_experts))
        return false;
    if (known(slices) && !divides(check, "parallel.expert_tensor", slices, "model.moe.expert_ffn_hidden",
                                  moe->expert_ffn_hidden))
        return false;
    if (!known(slices) || !known(parallel->data) || !known(parallel->context) || !known(parallel->tensor))
        return true;
    const int64_t ranks = (int64_t)parallel->data * parallel->context * parallel->tensor;
    if (ranks % ((int64_t)expert * slices) == 0)
        return true;
    g_autofree char *list = divisors(ranks);
    return fail(check,
                "parallel.expert: %d x expert_tensor %d does not divide the %" G_GINT64_FORMAT
                " ranks of data %d x context %d x tensor %d; give degrees whose product is one of %s",
                expert, slices, (gint64)ranks, parallel->data, parallel->context, parallel->tensor, list);
}

static bool check_router(const Check *check)
{
    const SpecRouter *router = &check->spec->training.router;
    const SpecParallel *parallel = &check->spec->parallel;
    const int experts = check->spec->model.moe.experts;
    if (router->distribution == SPEC_ROUTER_HISTOGRAM && check->spec->model.moe.late_layers > 0)
        return fail(check,
                    "training.router.histogram: model.moe.late_layers %d have other experts; give a "
                    "distribution such as zipf",
                    check->spec->model.moe.late_layers);
    if (router->distribution == SPEC_ROUTER_HISTOGRAM && router->histogram_count != experts)
        return fail(check, "training.router.histogram: %d shares for %d experts; give one an expert",
                    router->histogram_count, experts);
    if (experts == 0 && (parallel->expert_replicas > 0 || parallel->expert_rebalance))
        return fail(check,
                    "parallel.expert_replicas: the model has no experts; leave it and expert_rebalance out");
    if (known(parallel->expert) && parallel->expert > 0 && parallel->expert_replicas % parallel->expert != 0)
        return fail(check,
                    "parallel.expert_replicas: %d do not spread over %d expert ranks; give a multiple of %d",
                    parallel->expert_replicas, parallel->expert, parallel->expert);
    return true;
}

/* Heads that one all-to-all of the context dimension splits: all of this tensor rank, or those of its inner part. */
static bool check_context_mode(const Check *check)
{
    const SpecParallel *parallel = &check->spec->parallel;
    const int mode = (int)parallel->context_mode, heads = check->spec->model.heads;
    if (!known(parallel->context) || !known(parallel->tensor) || parallel->context < 2)
        return true;
    if (mode == SPEC_CONTEXT_ULYSSES && heads / parallel->tensor % parallel->context != 0)
        return fail(
            check,
            "parallel.context_mode: ulysses splits the %d heads of a tensor rank over context %d, which does "
            "not divide them; give a context degree that does, or ring or hierarchical",
            heads / parallel->tensor, parallel->context);
    if (mode == SPEC_CONTEXT_HIERARCHICAL && parallel->context_inner > 0)
        return divides(check, "parallel.context_inner", parallel->context_inner, "parallel.context",
                       parallel->context) &&
               divides(check, "parallel.context_inner", parallel->context_inner,
                       "the heads of a tensor rank,", heads / parallel->tensor);
    return true;
}

static bool check_zero(const Check *check)
{
    const SpecParallel *parallel = &check->spec->parallel;
    const int group = parallel->zero_group_gpus;
    const bool plus = parallel->quantized_weight_gather || parallel->secondary_weight_shard ||
                      parallel->quantized_gradient_reduce;
    if (plus && known(parallel->zero) && parallel->zero != 3)
        return fail(check,
                    "parallel.zero: %d with quantized_weight_gather, secondary_weight_shard or "
                    "quantized_gradient_reduce; give zero 3, or leave them out",
                    parallel->zero);
    if (plus && group > 0)
        return fail(check,
                    "parallel.zero_group_gpus: %d with ZeRO++, which shards over all data-parallel ranks; "
                    "give one of "
                    "the two",
                    group);
    if (!known(group))
        return true;
    if (parallel->zero == 0)
        return fail(check,
                    "parallel.zero_group_gpus: %d with zero 0, which shards nothing; give zero 1, 2 or 3, or "
                    "leave it out",
                    group);
    return !known(parallel->data) ||
           divides(check, "parallel.zero_group_gpus", group, "parallel.data", parallel->data);
}

static bool check_order(const Check *check)
{
    GError *problem = NULL;
    if (spec_check_order(check->spec, &problem))
        return true;
    fail(check, "%s", problem->message);
    g_error_free(problem);
    return false;
}

/* --- pipeline --- */

static bool check_norm(const Check *check)
{
    const SpecFramework *framework = &check->spec->execution.framework;
    return !framework->optimizer.optimizer_post_validation || framework->optimizer.grad_norm_clip ||
           fail(check, "execution.framework.optimizer.optimizer_post_validation: true with grad_norm_clip "
                       "false, which "
                       "leaves no norm to "
                       "validate; give grad_norm_clip true, or leave it out");
}

/* A file of op orders replays one shape of pipeline. */
static bool check_orders(const Check *check)
{
    const SpecParallel *parallel = &check->spec->parallel;
    const SpecTraining *training = &check->spec->training;
    const SpecOrders *orders = &parallel->orders;
    const char *file = parallel->schedule_file;
    const int copies = orders->placement == SIM_PLACE_BIDIRECTIONAL ? 2 : 1;
    if (!known(parallel->pipeline) || !known(parallel->virtual_stages) || !known(parallel->data) ||
        !known(training->micro_batch))
        return fail(
            check,
            "parallel.schedule: \"%s\" is written for one shape of pipeline, but pipeline, virtual_stages, "
            "data or micro_batch is \"auto\"; give numbers there",
            file);
    if (parallel->pipeline != orders->ranks)
        return fail(check, "parallel.pipeline: %d, but \"%s\" gives orders for %d pipeline ranks; give %d",
                    parallel->pipeline, file, orders->ranks, orders->ranks);
    if (parallel->virtual_stages != orders->chunks / copies && parallel->virtual_stages != orders->chunks)
        return fail(check,
                    "parallel.virtual_stages: %d, but \"%s\" gives every rank %d model stages; give %d",
                    parallel->virtual_stages, file, orders->chunks, orders->chunks / copies);
    const int microbatches = spec_microbatches(check->spec);
    if (microbatches != orders->microbatches)
        return fail(check,
                    "parallel.schedule: \"%s\" gives orders for %d micro-batches, but global_batch %d / "
                    "(micro_batch %d x data %d) = %d; give orders for %d, or global_batch %" G_GINT64_FORMAT,
                    file, orders->microbatches, training->global_batch, training->micro_batch, parallel->data,
                    microbatches, microbatches,
                    (gint64)orders->microbatches * training->micro_batch * parallel->data);
    return true;
}

/* Of the schedules, the one that makes its order from times and memory. */
static const char *name_of_timed(void)
{
    int row = 0;
    while (!sim_schedule_needs_times(sim_schedule_at(row)))
        row++;
    return sim_schedule_at(row)->name;
}

static bool check_schedule(const Check *check)
{
    const SpecParallel *parallel = &check->spec->parallel;
    const int schedule = (int)parallel->schedule, chunks = parallel->virtual_stages,
              pipeline = parallel->pipeline;
    const SimSchedule *row = sim_schedule_at(schedule);
    if (parallel->live_microbatches > 0 && !sim_schedule_needs_times(row))
        return fail(check,
                    "parallel.live_microbatches: %d, which only schedule \"%s\" keeps; give that "
                    "schedule, or leave it out",
                    parallel->live_microbatches, name_of_timed());
    if (schedule == SPEC_SCHEDULE_FILE)
        return check_orders(check);
    if (row == NULL || !known(chunks))
        return true;
    if (sim_schedule_has(row, SIM_TRAIT_NEEDS_CHUNKS) && chunks < 2)
        return fail(check,
                    "parallel.schedule: \"%s\" needs virtual_stages above 1; give 2 or more, or schedule "
                    "\"%s\"",
                    row->name, row->one_chunk);
    const bool one_copy = row->placement != SIM_PLACE_BIDIRECTIONAL;
    if (one_copy && row->fixed_chunks > 1 && chunks != row->fixed_chunks)
        return fail(
            check,
            "parallel.virtual_stages: %d with schedule \"%s\", whose ranks hold %d model chunks; give %d",
            chunks, row->name, row->fixed_chunks, row->fixed_chunks);
    if (one_copy && row->fixed_chunks == 1 && chunks > 1)
        return fail(check,
                    "parallel.virtual_stages: %d with schedule \"%s\", which has none; give 1, or "
                    "schedule \"%s\"",
                    chunks, row->name, sim_schedule_at(sim_schedule_usual(chunks))->name);
    if (chunks > 1 && pipeline == 1)
        return fail(check, "parallel.virtual_stages: %d without a pipeline; give 1, or a pipeline above 1",
                    chunks);
    return true;
}

static bool check_layout(const Check *check)
{
    const SpecParallel *parallel = &check->spec->parallel;
    GError *problem = NULL;
    int counts[SPEC_MAX_STAGES];
    if (!known(parallel->pipeline) || !known(parallel->virtual_stages))
        return true;
    if (spec_stage_layers(check->spec, counts, &problem))
        return true;
    fail(check, "%s", problem->message);
    g_error_free(problem);
    return false;
}

static bool check_offload(const Check *check)
{
    GError *problem = NULL;
    if (spec_offload_check(check->spec, &problem))
        return true;
    fail(check, "%s", problem->message);
    g_error_free(problem);
    return false;
}

static bool check_search(const Check *check)
{
    const double all = check->spec->cluster.accelerator.memory_bytes;
    if (check->spec->search.reserve_memory_bytes >= all)
        return fail(check,
                    "search.reserve_memory_bytes: %.0f leaves nothing of the %.0f bytes of %s; give less",
                    check->spec->search.reserve_memory_bytes, all, check->spec->cluster.accelerator.name);
    const SpecChoices *nodes = &check->spec->search.nodes;
    for (int i = 0; i < nodes->count; i++)
        if (nodes->value[i] < 1)
            return fail(check, "search.nodes: %d is no number of nodes; give 1 or more", nodes->value[i]);
    if (nodes->count == 0 && nodes->min > nodes->max)
        return fail(check, "search.nodes: min %d is above max %d; give both, or a list", nodes->min,
                    nodes->max);
    return true;
}

bool spec_check(const Spec *spec, const char *where, GError **error)
{
    const Check check = {spec, where, error};
    return spec_check_data(spec, where, error) && check_model(&check) && check_cluster(&check) &&
           check_precision(&check) && check_product(&check) && check_tensor(&check) && check_expert(&check) &&
           check_router(&check) && check_context_mode(&check) && check_batch(&check) &&
           check_sequence(&check) && check_recompute(&check) && check_zero(&check) && check_order(&check) &&
           check_norm(&check) && check_schedule(&check) && check_layout(&check) && check_offload(&check) &&
           check_search(&check);
}
