/* spec/check.c - contradictions between fields, each refused in one sentence: file, key, value, what would work.
 *
 * Degrees that are still SPEC_AUTO are passed over. What only a schedule knows (how many micro-batches it needs)
 * is checked by sim/schedule.
 */
#include <math.h>
#include <string.h>

#include "spec/check_data.h"
#include "spec/checks.h"
#include "spec/load.h"
#include "spec/placement.h"

/* --- model --- */

static bool check_encoder(const Check *check)
{
    const Spec *spec = check->spec;
    const SpecParallel *parallel = &spec->parallel;
    const int encoder = spec->training.encoder_sequence_length, most = spec->model.max_positions;
    if (parallel->context != 1)
        return spec_check_fail(check,
                               "parallel.context: an encoder's sequences are not split; give 1 with "
                               "model.encoder_layers %d",
                               spec->model.encoder_layers);
    if (parallel->tensor_scheme != SPEC_TENSOR_1D)
        return spec_check_fail(
            check, "parallel.tensor_scheme: \"%s\" with model.encoder_layers %d; give \"1d\"",
            spec_word(&spec_words_tensor, (int)parallel->tensor_scheme), spec->model.encoder_layers);
    if (spec->training.document_tokens > 0)
        return spec_check_fail(
            check,
            "training.document_tokens: given with model.encoder_layers %d, whose sequences "
            "are not packed; leave it out",
            spec->model.encoder_layers);
    if (parallel->sequence_parallel == 1 && spec_check_known(parallel->tensor) &&
        encoder % parallel->tensor != 0)
        return spec_check_fail(
            check,
            "parallel.sequence_parallel: true needs training.encoder_sequence_length %d to "
            "divide by tensor %d; give false, or a multiple",
            encoder, parallel->tensor);
    if (spec->model.position == SPEC_POSITION_LEARNED && most < encoder)
        return spec_check_fail(
            check,
            "training.encoder_sequence_length: %d is longer than model.max_positions %d of "
            "learned positions; give at most %d",
            encoder, most, most);
    return true;
}

static bool check_model(const Check *check)
{
    const SpecModel *model = &check->spec->model;
    const SpecMla *mla = &model->mla;
    if (!spec_check_divides(check, "model.kv_heads", model->kv_heads, "heads", model->heads) ||
        !spec_check_moe(check))
        return false;
    if (mla->kv_lora_rank > 0 && (mla->qk_nope_head_dim + mla->qk_rope_head_dim < 1 || mla->v_head_dim < 1))
        return spec_check_fail(
            check, "model.mla.%s: 0 with kv_lora_rank %d; give the head dimensions of latent attention",
            mla->v_head_dim < 1 ? "v_head_dim" : "qk_nope_head_dim", mla->kv_lora_rank);
    if (mla->kv_lora_rank == 0 && (mla->q_lora_rank > 0 || mla->v_head_dim > 0))
        return spec_check_fail(
            check, "model.mla.kv_lora_rank: 0 with other keys of mla set; give the rank, or leave mla out");
    if (model->encoder_layers > 0 && !check_encoder(check))
        return false;
    if (model->position == SPEC_POSITION_LEARNED &&
        model->max_positions < check->spec->training.sequence_length)
        return spec_check_fail(
            check,
            "training.sequence_length: %d is longer than model.max_positions %d of learned "
            "positions; give at most "
            "%d",
            check->spec->training.sequence_length, model->max_positions, model->max_positions);
    return true;
}

/* --- cluster and precision --- */

/* Timed alone, a collective meets no link and nobody on it. */
static bool check_network(const Check *check)
{
    const SpecNetwork *network = &check->spec->cluster.network;
    const struct {
        const char *key;
        int count;
    } on_links[] = {{"failed_links", network->failed_link_count},
                    {"traffic", network->traffic_count},
                    {"jobs", network->job_count}};
    for (gsize i = 0; i < G_N_ELEMENTS(on_links); i++)
        if (network->fidelity != SPEC_FIDELITY_FLOW && on_links[i].count > 0)
            return spec_check_fail(
                check,
                "cluster.network.%s: fidelity \"analytic\" times every collective as if "
                "alone, on no link; give cluster.network.fidelity \"flow\", or leave %s out",
                on_links[i].key, on_links[i].key);
    return true;
}

static bool check_cluster(const Check *check)
{
    const SpecCluster *cluster = &check->spec->cluster;
    const int node = cluster->gpus_per_node, domain = cluster->scale_up_domain_gpus;
    if ((double)node * cluster->nodes > G_MAXINT)
        return spec_check_fail(check,
                               "cluster.nodes: %d x gpus_per_node %d are too many GPUs; give at most %d",
                               cluster->nodes, node, G_MAXINT);
    if (domain % node != 0 && node % domain != 0)
        return spec_check_fail(
            check,
            "cluster.scale_up_domain_gpus: %d neither divides gpus_per_node %d nor is a multiple of "
            "it; give %d or a multiple (a preset's value stands where the scenario gives none)",
            domain, node, node);
    if (cluster->nodes > 1 && (int64_t)node * cluster->nodes > domain &&
        !(cluster->scale_out_bytes_per_s_per_gpu > 0))
        return spec_check_fail(
            check,
            "cluster.scale_out_bytes_per_s_per_gpu: 0 with %d nodes; give the network rate of a GPU, such as "
            "\"50 GB/s\"",
            cluster->nodes);
    return true;
}

/* A cap below the share of the limit that goes whatever the clock would stop the GPU. */
static bool check_power(const Check *check, const SpecAccelerator *accelerator)
{
    const SpecGemmShared *shared = &accelerator->model.gemm_shared;
    const double fixed = shared->memory_frac > 0 ? shared->static_frac : spec_gemm_shared_default.static_frac;
    const double cap = accelerator->power_cap_w, least = (fixed + 0.05) * accelerator->power_w;
    if (cap > 0 && (cap > accelerator->power_w || cap < least))
        return spec_check_fail(check,
                               "cluster.accelerator.power_cap_w: %g for \"%s\", whose power_w is %g, of "
                               "which %g do not depend on "
                               "the clock; give %.0f to %g, or 0 for none",
                               cap, accelerator->name, accelerator->power_w, fixed * accelerator->power_w,
                               ceil(least), accelerator->power_w);
    if (accelerator->idle_power_w > accelerator->power_w && accelerator->power_w > 0)
        return spec_check_fail(
            check,
            "cluster.accelerator.idle_power_w: %g for \"%s\" is more than its power_w, %g; "
            "give at most that, or 0 where it is not known",
            accelerator->idle_power_w, accelerator->name, accelerator->power_w);
    return true;
}

static bool check_powers(const Check *check)
{
    const SpecCluster *cluster = &check->spec->cluster;
    for (int i = 0; i < cluster->group_count; i++)
        if (!check_power(check, &cluster->groups[i].accelerator))
            return false;
    return check_power(check, &cluster->accelerator);
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
    spec_check_fail(
        check,
        "training.precision: \"%s\" needs a dense %s peak, which accelerator \"%s\" has not; give %s%s",
        spec_word(&spec_words_precision, (int)precision), spec_word(&spec_words_dtype, (int)dtype),
        accelerator->name, works->len > 0 ? "one of " : "peak_flops_per_s", works->str);
    g_string_free(works, TRUE);
    return false;
}

static bool check_8bit(const Check *check)
{
    const SpecTraining *training = &check->spec->training;
    const SpecDtype dtype = spec_gemm_dtype(training->precision);
    if (training->activation_input_8bit &&
        !(check->spec->model.gated_mlp && check->spec->execution.framework.kernels.fused_swiglu))
        return spec_check_fail(
            check, "training.activation_input_8bit: true, and only the fused kernel of gated MLPs "
                   "stores its input in 8 bits; leave it out, or give a model with gated_mlp and "
                   "a framework with kernels.fused_swiglu");
    if (!(training->attention_8bit || training->head_8bit) || dtype == SPEC_FP8 ||
        (dtype == SPEC_FP4 && check->spec->cluster.accelerator.peak_flops_per_s[SPEC_FP8] > 0))
        return true;
    return spec_check_fail(check,
                           "training.%s: true with precision \"%s\"; leave it out, or give an 8-bit float "
                           "precision, such as mxfp8",
                           training->attention_8bit ? "attention_8bit" : "head_8bit",
                           spec_word(&spec_words_precision, (int)training->precision));
}

/* --- batch and sequence --- */

/* Replicas take different numbers of micro-batches: at least one each. */
static bool check_uneven_batch(const Check *check)
{
    const SpecTraining *training = &check->spec->training;
    const int data = check->spec->parallel.data, micro = training->micro_batch;
    if (!spec_check_known(data) || !spec_check_known(micro) ||
        (training->global_batch % micro == 0 && training->global_batch / micro >= data))
        return true;
    return spec_check_fail(check,
                           "training.global_batch: %d sequences make no whole micro-batches of %d, at least "
                           "one for each of %d replicas; give a multiple of %d, at least %d",
                           training->global_batch, micro, data, micro, micro * data);
}

bool spec_check_dealt(const Spec *spec, const char *where, GError **error)
{
    const Check check = {spec, where, error};
    const int data = spec->parallel.data, global = spec->training.global_batch;
    if (!spec_check_known(data) || global % data == 0)
        return true;
    g_autofree char *list = spec_check_divisors(global);
    return spec_check_fail(
        &check,
        "training.global_batch: %d%s cannot be split evenly over %d data-parallel ranks; give a multiple of "
        "%d, or a "
        "parallel.data that divides it (%s)",
        global,
        spec->workload.given
            ? " (prompts x samples_per_prompt of workload.generation / workload.mini_batches)"
            : "",
        data, data, list);
}

static bool check_batch(const Check *check)
{
    const SpecTraining *training = &check->spec->training;
    const int data = check->spec->parallel.data, micro = training->micro_batch,
              global = training->global_batch;
    if (check->spec->cluster.group_count > 0 && check->spec->parallel.replica_microbatches_count != 0)
        return check_uneven_batch(check);
    if (spec_check_known(data) && global % data != 0) /* of a loop the split of its GPUs decides */
        return check->spec->workload.given || spec_check_dealt(check->spec, check->where, check->error);
    if (!spec_check_known(micro) || global % micro == 0) {
        const int share = spec_check_known(data) ? global / data : 0;
        if (!spec_check_known(micro) || !spec_check_known(data) || share % micro == 0)
            return true;
        g_autofree char *list = spec_check_divisors(share);
        return spec_check_fail(
            check,
            "training.micro_batch: %d does not divide the %d sequences of a data-parallel rank "
            "(global_batch %d / "
            "data %d); give %s%s",
            micro, share, global, data, share > 1 ? "one of " : "", list);
    }
    g_autofree char *list = spec_check_divisors(global);
    return spec_check_fail(
        check, "training.micro_batch: %d does not divide global_batch %d; give one of its divisors (%s)",
        micro, global, list);
}

static bool check_sequence(const Check *check)
{
    const SpecParallel *parallel = &check->spec->parallel;
    const int sequence = check->spec->training.sequence_length;
    const int context = parallel->context, tensor = parallel->tensor;
    if (spec_check_known(context) && context > 1) {
        const int64_t parts = check->spec->model.causal ? 2 * (int64_t)context : context;
        if (sequence % parts != 0)
            return spec_check_fail(
                check,
                "parallel.context: %d needs a sequence_length that divides by %" G_GINT64_FORMAT
                "%s, not %d; give %" G_GINT64_FORMAT " or another multiple",
                context, (gint64)parts,
                check->spec->model.causal ? " (two chunks a rank, to balance the causal mask)" : "", sequence,
                (gint64)((sequence / parts + 1) * parts));
    }
    if (parallel->sequence_parallel == 1 && spec_check_known(tensor) && tensor > 1 &&
        spec_check_known(context) && (sequence / context) % tensor != 0)
        return spec_check_fail(
            check,
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
        return spec_check_fail(check,
                               "training.recompute.layers: %d is more than the %d layers; give at most %d",
                               recompute->layers, layers, layers);
    if (recompute->mode == SPEC_RECOMPUTE_SELECTIVE_LAYER && recompute->every_n_layers > layers)
        return spec_check_fail(
            check, "training.recompute.every_n_layers: %d is more than the %d layers; give at most %d",
            recompute->every_n_layers, layers, layers);
    if (recompute->mode == SPEC_RECOMPUTE_MODULES && recompute->modules == 0)
        return spec_check_fail(
            check, "training.recompute.modules: [] recomputes nothing; list modules, or give mode \"none\"");
    if (recompute->mode != SPEC_RECOMPUTE_MODULES && recompute->modules != 0)
        return spec_check_fail(
            check,
            "training.recompute.modules: given with mode \"%s\"; give mode \"modules\", or leave them out",
            spec_word(&spec_words_recompute, (int)recompute->mode));
    if ((recompute->partitioned || recompute->halves) && recompute->mode != SPEC_RECOMPUTE_FULL &&
        recompute->mode != SPEC_RECOMPUTE_SELECTIVE_LAYER)
        return spec_check_fail(check,
                               "training.recompute.%s: given with mode \"%s\"; give mode \"full\" or "
                               "\"selective-layer\", which keep the inputs of layers, or leave it out",
                               recompute->partitioned ? "partitioned" : "halves",
                               spec_word(&spec_words_recompute, (int)recompute->mode));
    if (check->spec->offload.activation_layers > layers)
        return spec_check_fail(check,
                               "offload.activation_layers: %d is more than the %d layers; give at most %d",
                               check->spec->offload.activation_layers, layers, layers);
    return true;
}

/* --- degrees --- */

static bool check_product(const Check *check)
{
    const SpecParallel *parallel = &check->spec->parallel;
    const int gpus = spec_gpus(check->spec);
    if (!spec_check_known(parallel->tensor) || !spec_check_known(parallel->context) ||
        !spec_check_known(parallel->pipeline))
        return true;
    const double split = (double)parallel->tensor * parallel->context * parallel->pipeline;
    if (split > gpus || gpus % (int)split != 0) {
        g_autofree char *list = spec_check_divisors(gpus);
        return spec_check_fail(
            check,
            "parallel.tensor: %d x context %d x pipeline %d = %.0f does not divide the cluster's %d "
            "GPUs; give degrees "
            "whose product is one of %s",
            parallel->tensor, parallel->context, parallel->pipeline, split, gpus, list);
    }
    const int data = gpus / (int)split;
    if (spec_check_known(parallel->data) && parallel->data != data)
        return spec_check_fail(
            check,
            "parallel.data: %d makes tensor %d x context %d x pipeline %d x data %d = %.0f GPUs, but "
            "the cluster has "
            "%d; give data %d, or %.8g GPUs",
            parallel->data, parallel->tensor, parallel->context, parallel->pipeline, parallel->data,
            split * parallel->data, gpus, data, split * parallel->data);
    return true;
}

bool spec_makes_grid(const SpecParallel *parallel, int tensor)
{
    const SpecTensorScheme scheme = parallel->tensor_scheme;
    for (int64_t q = 1; q <= tensor; q++)
        if ((scheme == SPEC_TENSOR_2D   ? q * q
             : scheme == SPEC_TENSOR_3D ? q * q * q
                                        : q * q * parallel->tensor_depth) == tensor)
            return true;
    return scheme == SPEC_TENSOR_1D;
}

static bool check_tensor_grid(const Check *check)
{
    const SpecParallel *parallel = &check->spec->parallel;
    const SpecModel *model = &check->spec->model;
    const int scheme = (int)parallel->tensor_scheme, tensor = parallel->tensor;
    if (scheme == SPEC_TENSOR_1D)
        return true;
    if (model->moe.experts > 0 || model->mla.kv_lora_rank > 0)
        return spec_check_fail(
            check, "parallel.tensor_scheme: %s with experts or latent attention; give 1d, or a dense model",
            spec_word(&spec_words_tensor, scheme));
    if (!spec_check_known(tensor) || spec_makes_grid(parallel, tensor))
        return true;
    return spec_check_fail(check, "parallel.tensor: %d ranks make no %s grid; give %s", tensor,
                           spec_word(&spec_words_tensor, scheme),
                           scheme == SPEC_TENSOR_2D ? "a square such as 4 or 16"
                           : scheme == SPEC_TENSOR_3D
                               ? "a cube such as 8 or 64"
                               : "a square times tensor_depth, such as 8 with depth 2");
}

static bool check_tensor(const Check *check)
{
    const SpecModel *model = &check->spec->model;
    const int tensor = check->spec->parallel.tensor;
    if (model->list.text != NULL) /* columns of any matrix; spec/check_data.c */
        return true;
    const bool dense = model->moe.experts == 0 || model->moe.dense_layers > 0 || model->moe.layer_step > 1;
    if (!spec_check_known(tensor))
        return check_tensor_grid(check);
    if (!spec_check_divides(check, "parallel.tensor", tensor, "model.heads", model->heads))
        return false;
    if (model->mla.kv_lora_rank == 0 && model->kv_heads % tensor != 0 && tensor % model->kv_heads != 0)
        return spec_check_fail(
            check,
            "parallel.tensor: %d neither divides model.kv_heads %d nor is a multiple of it; give one "
            "that does",
            tensor, model->kv_heads);
    return (!dense ||
            spec_check_divides(check, "parallel.tensor", tensor, "model.ffn_hidden", model->ffn_hidden)) &&
           check_tensor_grid(check);
}

/* Heads that one all-to-all of the context dimension splits: all of this tensor rank, or those of its inner part. */
static bool check_context_mode(const Check *check)
{
    const SpecParallel *parallel = &check->spec->parallel;
    const int mode = (int)parallel->context_mode, heads = check->spec->model.heads;
    if (!spec_check_known(parallel->context) || !spec_check_known(parallel->tensor) || parallel->context < 2)
        return true;
    if (mode == SPEC_CONTEXT_ULYSSES && heads / parallel->tensor % parallel->context != 0)
        return spec_check_fail(
            check,
            "parallel.context_mode: ulysses splits the %d heads of a tensor rank over context %d, which does "
            "not divide them; give a context degree that does, or ring or hierarchical",
            heads / parallel->tensor, parallel->context);
    if (mode == SPEC_CONTEXT_HIERARCHICAL && parallel->context_inner > 0)
        return spec_check_divides(check, "parallel.context_inner", parallel->context_inner,
                                  "parallel.context", parallel->context) &&
               spec_check_divides(check, "parallel.context_inner", parallel->context_inner,
                                  "the heads of a tensor rank,", heads / parallel->tensor);
    return true;
}

static bool check_zero(const Check *check)
{
    const SpecParallel *parallel = &check->spec->parallel;
    const int group = parallel->zero_group_gpus;
    const bool plus = spec_is_zero_plus(parallel);
    if (plus && spec_check_known(parallel->zero) && parallel->zero != 3)
        return spec_check_fail(check,
                               "parallel.zero: %d with quantized_weight_gather, secondary_weight_shard or "
                               "quantized_gradient_reduce; give zero 3, or leave them out",
                               parallel->zero);
    if (plus && group > 0)
        return spec_check_fail(
            check,
            "parallel.zero_group_gpus: %d with ZeRO++, which no software has together (DeepSpeed's MiCS "
            "optimizer takes none of its switches); give 0, or leave quantized_weight_gather, "
            "secondary_weight_shard and quantized_gradient_reduce out",
            group);
    if (!spec_check_known(group))
        return true;
    if (parallel->zero == 0)
        return spec_check_fail(
            check,
            "parallel.zero_group_gpus: %d with zero 0, which shards nothing; give zero 1, 2 or 3, or "
            "leave it out",
            group);
    return !spec_check_known(parallel->data) ||
           spec_check_divides(check, "parallel.zero_group_gpus", group, "parallel.data", parallel->data);
}

static bool check_order(const Check *check)
{
    GError *problem = NULL;
    if (spec_check_order(check->spec, &problem))
        return true;
    spec_check_fail(check, "%s", problem->message);
    g_error_free(problem);
    return false;
}

bool spec_check(const Spec *spec, const char *where, GError **error)
{
    const Check check = {spec, where, error};
    return spec_check_data(spec, where, error) && spec_check_workload(&check) && check_model(&check) &&
           check_cluster(&check) && check_network(&check) && spec_check_groups(&check) &&
           check_precision(&check) && check_8bit(&check) && check_powers(&check) && check_product(&check) &&
           check_tensor(&check) && spec_check_expert(&check) && spec_check_router(&check) &&
           check_context_mode(&check) && check_batch(&check) && check_sequence(&check) &&
           check_recompute(&check) && check_zero(&check) && spec_check_tiles(&check) &&
           spec_check_batches(&check) && spec_check_adapter(&check) && spec_check_vision(&check) &&
           spec_check_freeze(&check) && spec_check_lengths(&check) && check_order(&check) &&
           spec_check_pipeline(&check) && spec_check_measured(&check);
}
