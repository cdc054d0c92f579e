/* exchange/export_nanotron.c - a scenario as a nanotron configuration in YAML: its Llama family, dense.
 * Source of the names: nanotron/config/{config,parallelism_config,models_config}.py;
 * of what is refused: config.py (__post_init__), trainer.py (context ranks). */
#include <string.h>

#include <math.h>

#include "exchange/export.h"

static bool refuse(GError **error, const char *key, const char *value, const char *hint)
{
    return exchange_export_refuse(error, EXCHANGE_FORMAT_NANOTRON, key, value, hint);
}

static bool has_model(const Spec *spec, GError **error)
{
    const SpecModel *model = &spec->model;
    bool ok = true;
    if (model->moe.experts > 0)
        ok = refuse(error, "model.moe", "experts", "give a dense model");
    if (!model->gated_mlp || model->norm != SPEC_NORM_RMSNORM || model->position != SPEC_POSITION_ROPE ||
        model->biases == SPEC_BIASES_ALL || model->biases == SPEC_BIASES_MLP || model->mla.kv_lora_rank > 0)
        ok = refuse(error, "model", model->name,
                    "give one like Llama: gated_mlp, rmsnorm, rope, no biases but qkv's");
    if (model->head_dim * model->heads != model->hidden)
        ok = refuse(error, "model.head_dim", "not hidden / heads", "give a model where it is");
    return ok;
}

static bool has_execution(const Spec *spec, GError **error)
{
    const SpecParallel *parallel = &spec->parallel;
    const SpecTraining *training = &spec->training;
    const SpecRecomputeMode mode = training->recompute.mode;
    const char *precision = spec_word(&spec_words_precision, (int)training->precision);
    const char *schedule = spec_word(&spec_words_schedule, (int)parallel->schedule);
    bool ok = true;
    if (parallel->zero > 1)
        ok = refuse(error, "parallel.zero", parallel->zero == 2 ? "2" : "3", "give 0 or 1");
    if (parallel->pipeline > 1 &&
        (parallel->virtual_stages > 1 || (strcmp(schedule, "1f1b") != 0 && strcmp(schedule, "gpipe") != 0)))
        ok = refuse(error, "parallel.schedule", schedule, "give 1f1b or gpipe, without virtual stages");
    if (mode != SPEC_RECOMPUTE_NONE &&
        (mode != SPEC_RECOMPUTE_FULL || training->recompute.layers > 0 || training->recompute.partitioned))
        ok = refuse(error, "training.recompute", export_recompute_shown(spec),
                    "give none or full on all layers");
    if (training->precision != SPEC_PRECISION_BF16 && training->precision != SPEC_PRECISION_FP16 &&
        training->precision != SPEC_PRECISION_FP32)
        ok = refuse(error, "training.precision", precision, "give bf16, fp16 or fp32");
    if (parallel->context > 1)
        ok = refuse(error, "parallel.context", "above 1",
                    "give 1: it does not initialise a model over context ranks");
    if (spec->model.heads % parallel->tensor != 0 || spec->model.kv_heads < parallel->tensor)
        ok =
            refuse(error, "parallel.tensor", "does not divide the heads, or is above the key and value heads",
                   "give one that the heads allow");
    if ((spec->execution.overlap & SPEC_OVERLAP_TENSOR) != 0 && parallel->tensor > 1 &&
        parallel->sequence_parallel != 1)
        ok = refuse(error, "execution.overlap", "tensor without sequence parallelism",
                    "give parallel.sequence_parallel true (tp_mode REDUCE_SCATTER)");
    if (spec_offloads_states(&spec->offload))
        ok = refuse(error, "offload.scheme", spec_word(&spec_words_offload, (int)spec->offload.scheme),
                    "give none: it keeps all states on the GPU");
    if (spec->offload.activation_layers > 0)
        ok = refuse(error, "offload.activation_layers", "above 0", "give none");
    if (training->optimizer != SPEC_OPTIMIZER_ADAM && training->optimizer != SPEC_OPTIMIZER_SGD)
        ok = refuse(error, "training.optimizer", spec_word(&spec_words_optimizer, (int)training->optimizer),
                    "give adam or sgd");
    return ok;
}

static void put_parallelism(const Spec *spec, Settings *out)
{
    const SpecParallel *parallel = &spec->parallel;
    settings_int(out, "parallelism.dp", parallel->data);
    settings_int(out, "parallelism.pp", parallel->pipeline);
    settings_int(out, "parallelism.tp", parallel->tensor);
    settings_int(out, "parallelism.context_parallel_size", parallel->context);
    settings_int(out, "parallelism.expert_parallel_size", 1);
    settings_text(out, "parallelism.pp_engine",
                  strcmp(spec_word(&spec_words_schedule, (int)parallel->schedule), "gpipe") == 0 ? "afab"
                                                                                                 : "1f1b");
    settings_text(out, "parallelism.tp_mode",
                  parallel->sequence_parallel == 1 ? "REDUCE_SCATTER" : "ALL_REDUCE");
    settings_bool(out, "parallelism.tp_linear_async_communication",
                  (spec->execution.overlap & SPEC_OVERLAP_TENSOR) != 0 && parallel->tensor > 1);
    settings_bool(out, "parallelism.recompute_layer", spec->training.recompute.mode == SPEC_RECOMPUTE_FULL);
}

static void put_model(const Spec *spec, Settings *out)
{
    const SpecModel *model = &spec->model;
    const SpecPrecision precision = spec->training.precision;
    settings_text(out, "model.dtype",
                  precision == SPEC_PRECISION_FP16   ? "float16"
                  : precision == SPEC_PRECISION_FP32 ? "float32"
                                                     : "bfloat16");
    settings_int(out, "model.make_vocab_size_divisible_by", 1);
    settings_raw(out, "model.init_method.std", "0.02");
    settings_bool(out, "model.model_config.is_llama_config", true);
    settings_text(out, "model.model_config.hidden_act", "silu");
    settings_int(out, "model.model_config.num_hidden_layers", model->layers);
    settings_int(out, "model.model_config.hidden_size", model->hidden);
    settings_int(out, "model.model_config.intermediate_size", model->ffn_hidden);
    settings_int(out, "model.model_config.num_attention_heads", model->heads);
    settings_int(out, "model.model_config.num_key_value_heads", model->kv_heads);
    settings_int(out, "model.model_config.vocab_size", model->vocab);
    if (model->max_positions > 0)
        settings_int(out, "model.model_config.max_position_embeddings", model->max_positions);
    settings_bool(out, "model.model_config.tie_word_embeddings", model->tied_embeddings);
    settings_bool(out, "model.model_config.attention_bias", model->biases == SPEC_BIASES_QKV);
}

static void put_optimizer(const Spec *spec, Settings *out)
{
    settings_int(out, "optimizer.zero_stage", spec->parallel.zero);
    settings_bool(out, "optimizer.accumulate_grad_in_fp32", spec->training.gradient_dtype == SPEC_FP32);
    settings_raw(out, "optimizer.weight_decay", "0.01");
    settings_raw(out, "optimizer.clip_grad", "1.0");
    if (spec->training.optimizer == SPEC_OPTIMIZER_ADAM) {
        settings_text(out, "optimizer.optimizer_factory.name", "adamW");
        settings_raw(out, "optimizer.optimizer_factory.adam_beta1", "0.9");
        settings_raw(out, "optimizer.optimizer_factory.adam_beta2", "0.95");
        settings_raw(out, "optimizer.optimizer_factory.adam_eps", "1.0e-8");
        settings_bool(out, "optimizer.optimizer_factory.torch_adam_is_fused",
                      spec->execution.framework.optimizer.optimizer_fused);
    } else {
        settings_text(out, "optimizer.optimizer_factory.name", "sgd");
    }
    settings_raw(out, "optimizer.learning_rate_scheduler.learning_rate", "1.0e-4");
    settings_mark_placeholder(out);
    settings_text(out, "optimizer.learning_rate_scheduler.lr_warmup_style", "linear");
    settings_text(out, "optimizer.learning_rate_scheduler.lr_decay_style", "cosine");
}

bool exchange_export_nanotron(const Spec *spec, Settings *out, GError **error)
{
    const SpecTraining *training = &spec->training;
    const double step_tokens = (double)training->global_batch * training->sequence_length;
    const bool fits = has_model(spec, error);
    if (!has_execution(spec, error) || !fits)
        return false;
    settings_text(out, "general.project", "orrery");
    settings_text(out, "general.run", spec->name);
    put_parallelism(spec, out);
    put_model(spec, out);
    settings_int(out, "tokens.sequence_length", training->sequence_length);
    settings_int(out, "tokens.micro_batch_size", training->micro_batch);
    settings_int(out, "tokens.batch_accumulation_per_replica", spec_microbatches(spec));
    settings_int(out, "tokens.train_steps",
                 training->tokens > 0 ? (int64_t)ceil(training->tokens / step_tokens) : 100);
    if (!(training->tokens > 0))
        settings_mark_placeholder(out);
    put_optimizer(spec, out);
    settings_text(out, "tokenizer.tokenizer_name_or_path", "robot-test/dummy-tokenizer-wordlevel");
    settings_mark_placeholder(out);
    settings_text(out, "checkpoints.checkpoints_path", "checkpoints");
    settings_mark_placeholder(out);
    settings_int(out, "checkpoints.checkpoint_interval", 1000);
    settings_raw(
        out, "data_stages",
        "[{name: all, start_training_step: 1, data: {dataset: null, num_loading_workers: 1, seed: 42}}]");
    settings_mark_placeholder(out);
    settings_environment(out, "CUDA_DEVICE_MAX_CONNECTIONS", "1");
    return true;
}
