/* exchange/export_deepspeed.c - a scenario as DeepSpeed's ds_config.json. Source of the names: DeepSpeed configuration
 * reference. The pipeline, the sequence split and the model are the training script's: they stay in "orrery". */
#include <math.h>

#include "exchange/export.h"

static void put_optimizer(const Spec *spec, Settings *out)
{
    static const ExchangeWordPair names[] = {{SPEC_OPTIMIZER_ADAM, "AdamW"},
                                             {SPEC_OPTIMIZER_SGD, "SGD"},
                                             {SPEC_OPTIMIZER_LION, "Lion"},
                                             {SPEC_OPTIMIZER_MUON, "Muon"}};
    const char *name = exchange_pair_word(names, (int)G_N_ELEMENTS(names), (int)spec->training.optimizer);
    if (name == NULL) /* the script's own */
        return;
    settings_text(out, "optimizer.type", name);
    settings_raw(out, "optimizer.params.lr", "1e-4");
    settings_mark_placeholder(out);
}

/* Elements that gradients and gathered weights of a bucket have. */
static void put_buckets(const Spec *spec, Settings *out)
{
    const SpecPrecision precision = spec->training.precision;
    const bool whole = precision == SPEC_PRECISION_FP32 || precision == SPEC_PRECISION_TF32;
    const double elements = floor(spec->execution.framework.data_parallel.bucket_bytes / (whole ? 4 : 2));
    if (spec->parallel.zero == 0 || elements < 1 || elements > 1e9)
        return;
    settings_int(out, "zero_optimization.reduce_bucket_size", (int64_t)elements);
    settings_int(out, "zero_optimization.allgather_bucket_size", (int64_t)elements);
}

static void put_zero(const Spec *spec, Settings *out)
{
    const SpecParallel *parallel = &spec->parallel;
    settings_int(out, "zero_optimization.stage", parallel->zero);
    if (parallel->zero == 0)
        return;
    settings_bool(out, "zero_optimization.overlap_comm",
                  (spec->execution.overlap & SPEC_OVERLAP_GRAD_REDUCE) != 0);
    settings_bool(out, "zero_optimization.contiguous_gradients", true);
    put_buckets(spec, out);
    if (parallel->zero < 3)
        return;
    if (parallel->zero_group_gpus > 0)
        settings_int(out, "zero_optimization.mics_shard_size", parallel->zero_group_gpus);
    if (parallel->secondary_weight_shard)
        settings_int(out, "zero_optimization.zero_hpz_partition_size", spec->cluster.gpus_per_node);
    settings_bool(out, "zero_optimization.zero_quantized_weights", parallel->quantized_weight_gather);
    settings_bool(out, "zero_optimization.zero_quantized_gradients", parallel->quantized_gradient_reduce);
}

static void put_tier(const Spec *spec, const char *part, SpecTier tier, Settings *out)
{
    g_autofree char *device = g_strconcat("zero_optimization.", part, ".device", NULL);
    g_autofree char *pinned = g_strconcat("zero_optimization.", part, ".pin_memory", NULL);
    if (tier == SPEC_TIER_GPU)
        return;
    settings_text(out, device, tier == SPEC_TIER_HOST ? "cpu" : "nvme");
    settings_bool(out, pinned, spec->offload.pinned);
}

static void put_offload(const Spec *spec, Settings *out)
{
    const SpecOffload *offload = &spec->offload;
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    if (!spec_offloads_states(offload))
        return;
    put_tier(spec, "offload_optimizer", offload->optimizer.tier, out);
    if (offload->optimizer.tier == SPEC_TIER_NVME) {
        settings_bool(out, "zero_optimization.offload_optimizer.pipeline_read", offload->aio.pipeline_read);
        settings_bool(out, "zero_optimization.offload_optimizer.pipeline_write", offload->aio.pipeline_write);
    }
    if (offload->ratio < 1 && offload->optimizer.tier != SPEC_TIER_GPU)
        settings_raw(out, "zero_optimization.offload_optimizer.ratio",
                     g_ascii_formatd(text, sizeof text, "%.15g", offload->ratio));
    if (spec->parallel.zero < 3)
        return;
    put_tier(spec, "offload_param", offload->weights.tier, out);
    settings_raw(out, "zero_optimization.sub_group_size",
                 g_ascii_formatd(text, sizeof text, "%.15g", offload->subgroup_parameters));
}

static void put_aio(const SpecOffload *offload, Settings *out)
{
    const SpecAio *aio = &offload->aio;
    if ((offload->optimizer.tier != SPEC_TIER_NVME && offload->weights.tier != SPEC_TIER_NVME) ||
        aio->block_bytes <= 0)
        return;
    settings_int(out, "aio.block_size", (int64_t)aio->block_bytes);
    settings_int(out, "aio.queue_depth", aio->queue_depth);
    settings_int(out, "aio.intra_op_parallelism", aio->threads);
    settings_bool(out, "aio.single_submit", false);
    settings_bool(out, "aio.overlap_events", aio->overlap_events);
}

/* Orders that its own code has not: the file could not say them. */
static bool says_scheme(const Spec *spec, GError **error)
{
    const SpecOffload *offload = &spec->offload;
    const char *word = spec_word(&spec_words_offload, (int)offload->scheme);
    const bool own = offload->update == SPEC_UPDATE_BARRIER && !offload->direct && !offload->fp32_transfer;
    if (!spec_offloads_states(offload) || own)
        return true;
    return exchange_export_refuse(error, EXCHANGE_FORMAT_DEEPSPEED, "offload.scheme", word,
                                  "give zero-offload, twin-flow, zero3-offload or zero-infinity");
}

static bool refuse(GError **error, const char *key, const char *value, const char *hint)
{
    return exchange_export_refuse(error, EXCHANGE_FORMAT_DEEPSPEED, key, value, hint);
}

/* What cpu_checkpointing sends away: the inputs of all layers, each whole, to the host. */
static bool check_checkpoints(const Spec *spec, GError **error)
{
    const SpecOffload *offload = &spec->offload;
    const SpecOffloadPart *part = &offload->activations;
    if (offload->activation_layers == 0)
        return true;
    if (spec->training.recompute.mode == SPEC_RECOMPUTE_FULL && part->tier == SPEC_TIER_HOST &&
        offload->activation_layers >= spec->model.layers && part->fraction >= 1 && part->modules == 0 &&
        !part->evicts)
        return true;
    return refuse(error, "offload.activations", "of other than checkpoints of all layers",
                  "give training.recompute \"full\" and offload.activations {\"tier\": \"host\"}, or none");
}

/* A ds_config.json says precision, batch, optimizer, ZeRO and tensor ranks. Anything else that a scenario splits or
 * casts would be another run. */
static bool check(const Spec *spec, GError **error)
{
    const SpecParallel *parallel = &spec->parallel;
    const SpecPrecision precision = spec->training.precision;
    const SpecRecompute *recompute = &spec->training.recompute;
    bool ok = true;
    if (precision != SPEC_PRECISION_BF16 && precision != SPEC_PRECISION_FP16 &&
        precision != SPEC_PRECISION_FP32 && precision != SPEC_PRECISION_TF32)
        ok = refuse(error, "training.precision", spec_word(&spec_words_precision, (int)precision),
                    "give bf16, fp16, fp32 or tf32: ds_config.json has no 8- or 4-bit products");
    if (parallel->pipeline > 1)
        ok = refuse(
            error, "parallel.pipeline", "above 1",
            "give 1: a pipeline is the training script's (PipelineModule), ds_config.json cannot ask for it");
    if (parallel->context > 1)
        ok = refuse(
            error, "parallel.context", "above 1",
            "give 1: a split of the sequence is the training script's, ds_config.json cannot ask for it");
    if (parallel->expert > 1)
        ok = refuse(
            error, "parallel.expert", "above 1",
            "give 1: expert ranks are the training script's (ep_size), ds_config.json cannot ask for them");
    if (recompute->mode != SPEC_RECOMPUTE_NONE &&
        (recompute->mode != SPEC_RECOMPUTE_FULL || recompute->layers > 0))
        ok = refuse(error, "training.recompute", export_recompute_shown(spec),
                    "give none or full on all layers: the training script switches checkpointing on, for "
                    "all or none");
    if (parallel->tensor > 1 && parallel->sequence_parallel == 1)
        ok = refuse(error, "parallel.sequence_parallel", "true",
                    "give false: AutoTP reduces whole activations");
    if (parallel->zero_group_gpus > 0 && parallel->zero < 3)
        ok = refuse(error, "parallel.zero_group_gpus", "below ZeRO 3", "give zero 3 (MiCS), or leave it out");
    if (parallel->zero_group_gpus > 0 && parallel->secondary_weight_shard)
        ok = refuse(error, "parallel.secondary_weight_shard", "with zero_group_gpus",
                    "give one: MiCS has no hpZ");
    if (parallel->secondary_weight_shard && spec->cluster.gpus_per_node == 1)
        ok = refuse(error, "parallel.secondary_weight_shard", "true with 1 GPU a node",
                    "give false: a partition of one rank switches it off in DeepSpeed");
    if (parallel->tensor > 1 && parallel->zero == 3)
        ok = refuse(error, "parallel.tensor", "above 1 with ZeRO 3", "give zero 0, 1 or 2 (AutoTP)");
    if (parallel->tensor > spec->model.kv_heads)
        ok = refuse(error, "parallel.tensor", "above the key and value heads",
                    "give at most as many (AutoTP)");
    if (spec->offload.overlap_update)
        ok = refuse(error, "offload.overlap_update", "true",
                    "give false: its gradients are sent during the backward pass");
    return check_checkpoints(spec, error) && ok;
}

/* What the script has to build and switch on for this to be the scenario's run. */
static void leave_to_script(const Spec *spec, Settings *out)
{
    settings_leave(
        out, "model, training.sequence_length: %s at %d tokens is what the training script has to build",
        spec->model.name, spec->training.sequence_length);
    if (spec->training.recompute.mode == SPEC_RECOMPUTE_FULL)
        settings_leave(out, "training.recompute: full: the training script switches it on "
                            "(model.gradient_checkpointing_enable() of transformers)");
    if (spec->model.moe.experts > 0)
        settings_leave(out, "model.moe: expert layers are the training script's");
}

static void put_checkpoints(const Spec *spec, Settings *out)
{
    const bool parts = spec->training.recompute.partitioned, host = spec->offload.activation_layers > 0;
    if (parts || host)
        settings_bool(out, "activation_checkpointing.partition_activations", parts);
    if (host)
        settings_bool(out, "activation_checkpointing.cpu_checkpointing", true);
}

bool exchange_export_deepspeed(const Spec *spec, Settings *out, GError **error)
{
    const SpecTraining *training = &spec->training;
    const SpecPrecision precision = training->precision;
    const bool fits = check(spec, error);
    if (!says_scheme(spec, error) || !fits)
        return false;
    settings_int(out, "train_batch_size", training->global_batch);
    settings_int(out, "train_micro_batch_size_per_gpu", training->micro_batch);
    settings_int(out, "gradient_accumulation_steps", spec_microbatches(spec));
    settings_raw(out, "gradient_clipping", "1");
    put_optimizer(spec, out);
    settings_bool(out, "fp16.enabled", precision == SPEC_PRECISION_FP16);
    settings_bool(out, "bf16.enabled", precision == SPEC_PRECISION_BF16);
    put_zero(spec, out);
    put_offload(spec, out);
    put_aio(&spec->offload, out);
    put_checkpoints(spec, out);
    if (spec->parallel.tensor > 1)
        settings_int(out, "tensor_parallel.autotp_size", spec->parallel.tensor);
    leave_to_script(spec, out);
    return true;
}
