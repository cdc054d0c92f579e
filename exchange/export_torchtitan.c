/* exchange/export_torchtitan.c - a scenario as a torchtitan job configuration in TOML. */
#include <math.h>
#include <string.h>

#include "exchange/torchtitan.h"

const TorchtitanSchedule torchtitan_schedules[6] = {
    {"1f1b", "1F1B"},
    {"gpipe", "GPipe"},
    {"interleaved", "Interleaved1F1B"},
    {"breadth-first", "LoopedBFS"},
    {"zb-v", "ZBVZeroBubble"},
    {"dualpipev", "DualPipeV"},
};

/* torchtitan's word for a schedule; NULL: it has none. */
static const char *word_of(const char *schedule)
{
    for (gsize i = 0; i < G_N_ELEMENTS(torchtitan_schedules); i++)
        if (strcmp(torchtitan_schedules[i].schedule, schedule) == 0)
            return torchtitan_schedules[i].word;
    return NULL;
}

static bool refuse(GError **error, const char *key, const char *value, const char *hint)
{
    return exchange_export_refuse(error, EXCHANGE_FORMAT_TORCHTITAN, key, value, hint);
}

/* "llama3-405b" is model "llama3", flavor "405B". */
static void put_model(const Spec *spec, Settings *out)
{
    const char *dash = strrchr(spec->model.name, '-');
    g_autofree char *name = dash != NULL ? g_strndup(spec->model.name, (gsize)(dash - spec->model.name))
                                         : g_strdup(spec->model.name);
    g_autofree char *flavor = g_ascii_strup(dash != NULL ? dash + 1 : "", -1);
    settings_text(out, "model.name", name);
    settings_text(out, "model.flavor", flavor);
    if (spec_gemm_dtype(spec->training.precision) == SPEC_FP8)
        settings_raw(out, "model.converters",
                     spec->training.precision == SPEC_PRECISION_MXFP8 ? "[\"quantize.linear.mx\"]"
                                                                      : "[\"quantize.linear.float8\"]");
}

static void put_training(const Spec *spec, Settings *out)
{
    const SpecTraining *training = &spec->training;
    const bool pipelined = spec->parallel.pipeline > 1;
    const double step_tokens = (double)training->global_batch * training->sequence_length;
    settings_int(out, "training.local_batch_size",
                 pipelined ? training->global_batch / spec->parallel.data : training->micro_batch);
    settings_int(out, "training.global_batch_size", training->global_batch);
    settings_int(out, "training.seq_len", training->sequence_length);
    settings_int(out, "training.steps",
                 training->tokens > 0 ? (int64_t)ceil(training->tokens / step_tokens) : 100);
    settings_text(out, "training.dataset", "c4");
    settings_text(out, "training.mixed_precision_param",
                  training->precision == SPEC_PRECISION_FP32 ? "float32" : "bfloat16");
    settings_text(out, "training.mixed_precision_reduce", "float32");
}

static bool put_precision(const Spec *spec, Settings *out, GError **error)
{
    switch (spec->training.precision) {
    case SPEC_PRECISION_FP32:
    case SPEC_PRECISION_BF16:
        return true;
    case SPEC_PRECISION_FP8_TENSORWISE:
        settings_text(out, "quantize.linear.float8.recipe_name", "tensorwise");
        settings_bool(out, "quantize.linear.float8.enable_fsdp_float8_all_gather", true);
        return true;
    case SPEC_PRECISION_FP8_ROWWISE:
        settings_text(out, "quantize.linear.float8.recipe_name", "rowwise");
        return true;
    case SPEC_PRECISION_MXFP8:
        settings_text(out, "quantize.linear.mx.recipe_name", "mxfp8_cublas");
        return true;
    default:
        return refuse(error, "training.precision",
                      spec_word(&spec_words_precision, (int)spec->training.precision),
                      "give bf16, fp32, fp8-tensorwise, fp8-rowwise or mxfp8");
    }
}

static void put_data(const Spec *spec, Settings *out)
{
    const SpecParallel *parallel = &spec->parallel;
    const int shard = parallel->zero == 0             ? 1
                      : parallel->zero_group_gpus > 0 ? parallel->zero_group_gpus
                                                      : parallel->data;
    settings_int(out, "parallelism.data_parallel_replicate_degree", parallel->data / shard);
    settings_int(out, "parallelism.data_parallel_shard_degree", shard);
    settings_text(out, "parallelism.fsdp_reshard_after_forward", parallel->zero == 2 ? "never" : "default");
    settings_int(out, "parallelism.tensor_parallel_degree", parallel->tensor);
    settings_bool(out, "parallelism.enable_async_tensor_parallel",
                  (spec->execution.overlap & SPEC_OVERLAP_TENSOR) != 0);
    settings_int(out, "parallelism.context_parallel_degree", parallel->context);
    if (spec->model.moe.experts > 0) {
        settings_int(out, "parallelism.expert_parallel_degree", parallel->expert);
        settings_int(out, "parallelism.expert_tensor_parallel_degree", parallel->expert_tensor);
    }
}

/* Layers of each stage from which torchtitan makes as many stages as the scenario has; 0: none. */
static int layers_per_stage(const Spec *spec)
{
    const SpecParallel *parallel = &spec->parallel;
    const int stages = parallel->pipeline * parallel->virtual_stages;
    const int layers =
        spec->model.layers + (parallel->embedding_as_layer ? 1 : 0) + (parallel->loss_as_layer ? 1 : 0);
    for (int per_stage = 1; per_stage <= layers; per_stage++)
        if (torchtitan_stages(layers, per_stage) == stages)
            return per_stage;
    return 0;
}

static bool put_pipeline(const Spec *spec, Settings *out, GError **error)
{
    const SpecParallel *parallel = &spec->parallel;
    const char *schedule = word_of(spec_word(&spec_words_schedule, (int)parallel->schedule));
    const SimSchedule *row = sim_schedule_at((int)parallel->schedule);
    const bool looped = row != NULL && row->fixed_chunks == 0;
    settings_int(out, "parallelism.pipeline_parallel_degree", parallel->pipeline);
    if (parallel->pipeline == 1)
        return true;
    if (schedule == NULL)
        return refuse(error, "parallel.schedule", spec_word(&spec_words_schedule, (int)parallel->schedule),
                      "give 1f1b, gpipe, interleaved, breadth-first, zb-v or dualpipev");
    if (parallel->stage_layers_count > 0 || parallel->first_stage_layers > 0 ||
        parallel->last_stage_layers > 0)
        return refuse(error, "parallel.stage_layers", "given stage by stage",
                      "let torchtitan deal the layers out: embedding_as_layer and loss_as_layer");
    settings_text(out, "parallelism.pipeline_parallel_schedule", schedule);
    settings_int(out, "parallelism.pipeline_parallel_microbatch_size", spec->training.micro_batch);
    settings_int(out, "parallelism.pipeline_parallel_first_stage_less_layers",
                 parallel->embedding_as_layer ? 1 : 0);
    settings_int(out, "parallelism.pipeline_parallel_last_stage_less_layers",
                 parallel->loss_as_layer ? 1 : 0);
    if (!looped)
        return true;
    if (layers_per_stage(spec) == 0)
        return refuse(error, "parallel.virtual_stages", "not reached by whole layers a stage",
                      "give another number of stages");
    settings_int(out, "parallelism.pipeline_parallel_layers_per_stage", layers_per_stage(spec));
    return true;
}

static bool put_recompute(const Spec *spec, Settings *out, GError **error)
{
    const SpecRecompute *recompute = &spec->training.recompute;
    const char *mode =
        recompute->mode == SPEC_RECOMPUTE_NONE                             ? "none"
        : recompute->mode == SPEC_RECOMPUTE_FULL && recompute->layers == 0 ? "full"
        : recompute->mode == SPEC_RECOMPUTE_SELECTIVE_OP || recompute->mode == SPEC_RECOMPUTE_SELECTIVE_LAYER
            ? "selective"
            : NULL;
    if (mode == NULL)
        return refuse(error, "training.recompute", spec_word(&spec_words_recompute, (int)recompute->mode),
                      "give none, full, selective-op or selective-layer");
    settings_text(out, "activation_checkpoint.mode", mode);
    if (recompute->mode == SPEC_RECOMPUTE_SELECTIVE_OP)
        settings_text(out, "activation_checkpoint.selective_ac_option", "op");
    if (recompute->mode == SPEC_RECOMPUTE_SELECTIVE_LAYER) {
        g_autofree char *every = g_strdup_printf("%d", recompute->every_n_layers);
        settings_text(out, "activation_checkpoint.selective_ac_option", every);
    }
    return true;
}

bool exchange_export_torchtitan(const Spec *spec, Settings *out, GError **error)
{
    const SpecParallel *parallel = &spec->parallel;
    if (parallel->zero == 1)
        return refuse(error, "parallel.zero", "1", "give 0 (DDP), 2 or 3 (FSDP2)");
    if (parallel->tensor > 1 && parallel->sequence_parallel != 1)
        return refuse(error, "parallel.sequence_parallel", "false with tensor parallelism",
                      "give true: torchtitan always splits the sequence too");
    if (spec->training.optimizer != SPEC_OPTIMIZER_ADAM)
        return refuse(error, "training.optimizer",
                      spec_word(&spec_words_optimizer, (int)spec->training.optimizer), "give adam");
    settings_text(out, "job.description", spec->name);
    put_model(spec, out);
    settings_text(out, "optimizer.name", "AdamW");
    put_training(spec, out);
    put_data(spec, out);
    if (!put_pipeline(spec, out, error) || !put_recompute(spec, out, error))
        return false;
    settings_bool(out, "compile.enable", spec->execution.compiled);
    return put_precision(spec, out, error);
}
