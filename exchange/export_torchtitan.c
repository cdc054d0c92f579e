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

const TorchtitanModel torchtitan_models[TORCHTITAN_MODELS] = {
    {"llama3-8b", "llama3", "8B"},
    {"llama3-70b", "llama3", "70B"},
    {"llama3-405b", "llama3", "405B"},
    {"deepseek-v2-lite", "deepseek_v3", "16B"},
    {"deepseek-v2", "deepseek_v3", "236B"},
    {"deepseek-v3", "deepseek_v3", "671B"},
    {"llama4-scout-109b", "llama4", "17bx16e"},
    {"llama4-maverick-400b", "llama4", "17bx128e"},
    {"qwen3-30b-a3b", "qwen3", "30B-A3B"},
    {"qwen3-235b-a22b", "qwen3", "235B-A22B"},
};

static void put_model(const Spec *spec, Settings *out)
{
    const TorchtitanModel *known = NULL;
    const bool experts = spec->model.moe.experts > 0;
    for (int i = 0; i < TORCHTITAN_MODELS; i++)
        if (strcmp(torchtitan_models[i].preset, spec->model.name) == 0)
            known = &torchtitan_models[i];
    settings_text(out, "model.name", known != NULL ? known->name : spec->model.name);
    if (known != NULL)
        settings_text(out, "model.flavor", known->flavor);
    else
        settings_mark_placeholder(out);
    if (known == NULL)
        settings_leave(
            out, "model: %s is not one of torchtitan's own; it has to be added there with these dimensions",
            spec->model.name);
    if (spec_gemm_dtype(spec->training.precision) != SPEC_FP8)
        return;
    const bool mx = spec->training.precision == SPEC_PRECISION_MXFP8;
    g_autofree char *list = g_strdup_printf(experts ? "[\"quantize.linear.%s\", \"quantize.grouped_mm.%s\"]"
                                                    : "[\"quantize.linear.%s\"]",
                                            mx ? "mx" : "float8", mx ? "mx" : "float8");
    settings_raw(out, "model.converters", list);
    if (experts)
        settings_raw(out, mx ? "quantize.grouped_mm.mx.fqns" : "quantize.grouped_mm.float8.fqns",
                     "[\"experts\"]");
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
    if (!(training->tokens > 0))
        settings_mark_placeholder(out);
    settings_text(out, "training.dataset", "c4");
    settings_mark_placeholder(out);
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
        settings_bool(out, "quantize.linear.float8.enable_fsdp_float8_all_gather",
                      true); /* and no recipe_name */
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
                  (spec->execution.overlap & SPEC_OVERLAP_TENSOR) != 0 && parallel->tensor > 1);
    settings_int(out, "parallelism.context_parallel_degree", parallel->context);
    if (spec->model.moe.experts > 0) {
        settings_int(out, "parallelism.expert_parallel_degree", parallel->expert);
        settings_int(out, "parallelism.expert_tensor_parallel_degree", parallel->expert_tensor);
        settings_text(out, "parallelism.expert_parallel_comm_backend",
                      parallel->moe_dispatcher == SPEC_DISPATCHER_DEEPEP ? "deepep" : "standard");
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
    if (mode == NULL || recompute->partitioned)
        return refuse(error, "training.recompute", export_recompute_shown(spec),
                      "give none, full on all layers, selective-op or selective-layer");
    settings_text(out, "activation_checkpoint.mode", mode);
    if (recompute->mode == SPEC_RECOMPUTE_SELECTIVE_OP)
        settings_text(out, "activation_checkpoint.selective_ac_option", "op");
    if (recompute->mode == SPEC_RECOMPUTE_SELECTIVE_LAYER) {
        g_autofree char *every = g_strdup_printf("%d", recompute->every_n_layers);
        settings_text(out, "activation_checkpoint.selective_ac_option", every);
    }
    return true;
}

/* Sources: torchtitan/distributed/{parallel_dims,pipeline_parallel}.py, components/quantization/{float8,mx}.py,
 * models/llama3/infra/parallelize.py, train.py. */
static bool check(const Spec *spec, GError **error)
{
    const SpecParallel *parallel = &spec->parallel;
    const SpecTraining *training = &spec->training;
    const bool moe = spec->model.moe.experts > 0;
    const int divisor = parallel->tensor * (parallel->context > 1 ? 2 * parallel->context : 1);
    const bool eight = training->precision == SPEC_PRECISION_FP8_TENSORWISE ||
                       training->precision == SPEC_PRECISION_FP8_ROWWISE;
    bool ok = true;
    if (training->sequence_length % divisor != 0)
        ok = refuse(error, "training.sequence_length",
                    "no multiple of tensor ranks and twice the context ranks", "give one that is");
    if (parallel->zero == 0 && parallel->data > 1 &&
        parallel->tensor * parallel->pipeline * parallel->context > 1)
        ok = refuse(error, "parallel.zero", "0 together with other kinds of parallelism",
                    "give 2 or 3: its DDP stands alone, without tensor, pipeline or context ranks");
    if (parallel->zero == 0 && parallel->context > 1)
        ok = refuse(error, "parallel.zero", "0 with context ranks",
                    "give 2 or 3: FSDP shards over context ranks too");
    if (parallel->zero > 0 && parallel->zero_group_gpus == 1 && parallel->data > 1)
        ok = refuse(error, "parallel.zero_group_gpus", "1",
                    "give zero 0 (DDP): a group of one rank shards nothing");
    if (moe && parallel->expert > 1 && parallel->expert_tensor != 1 &&
        parallel->expert_tensor != parallel->tensor)
        ok = refuse(error, "parallel.expert_tensor", "neither 1 nor tensor", "give one of them");
    if (moe && parallel->moe_dispatcher != SPEC_DISPATCHER_ALLTOALL &&
        parallel->moe_dispatcher != SPEC_DISPATCHER_DEEPEP)
        ok = refuse(error, "parallel.moe_dispatcher",
                    spec_word(&spec_words_dispatcher, (int)parallel->moe_dispatcher),
                    "give alltoall or deepep");
    if (moe && eight && (parallel->pipeline > 1 || parallel->context > 1))
        ok = refuse(error, "training.precision", "fp8 experts with a pipeline or context ranks",
                    "give bf16, or parallel.pipeline 1 and parallel.context 1");
    if (training->precision == SPEC_PRECISION_MXFP8 && spec->execution.compiled && parallel->tensor > 1)
        ok = refuse(error, "execution.compiled", "true with mxfp8 and tensor ranks",
                    "give false, or parallel.tensor 1");
    if ((spec->execution.overlap & SPEC_OVERLAP_TENSOR) != 0 && parallel->tensor > 1 &&
        !spec->execution.compiled)
        ok = refuse(error, "execution.overlap", "tensor without compiled",
                    "give execution.compiled true: asynchronous tensor parallelism is the compiler's");
    return ok;
}

/* What no torchtitan configuration has. */
static bool check_kind(const Spec *spec, GError **error)
{
    const SpecParallel *parallel = &spec->parallel;
    bool ok = true;
    if (spec_offloads_states(&spec->offload))
        ok = refuse(error, "offload.scheme", spec_word(&spec_words_offload, (int)spec->offload.scheme),
                    "give none: training.enable_cpu_offload is set by hand");
    if (parallel->zero == 1)
        ok = refuse(error, "parallel.zero", "1", "give 0 (DDP), 2 or 3 (FSDP2)");
    if (parallel->tensor > 1 && parallel->sequence_parallel != 1)
        ok = refuse(error, "parallel.sequence_parallel", "false with tensor parallelism",
                    "give true: torchtitan always splits the sequence too");
    if (spec->training.optimizer != SPEC_OPTIMIZER_ADAM)
        ok = refuse(error, "training.optimizer",
                    spec_word(&spec_words_optimizer, (int)spec->training.optimizer), "give adam");
    return ok;
}

bool exchange_export_torchtitan(const Spec *spec, Settings *out, GError **error)
{
    bool ok = check_kind(spec, error);
    settings_text(out, "job.description", spec->name);
    put_model(spec, out);
    ok = check(spec, error) && ok;
    settings_text(out, "optimizer.name", "AdamW");
    put_training(spec, out);
    put_data(spec, out);
    ok = put_pipeline(spec, out, error) && ok;
    ok = put_recompute(spec, out, error) && ok;
    settings_bool(out, "compile.enable", spec->execution.compiled);
    return put_precision(spec, out, error) && ok;
}
