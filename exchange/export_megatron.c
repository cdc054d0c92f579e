/* exchange/export_megatron.c - a scenario as Megatron-LM flags and as Megatron-Bridge overrides.
 * Source of the names: exchange_megatron.h; recipes of Megatron-Bridge for train.*, ddp.*, comm_overlap.*. */
#include <math.h>
#include <string.h>

#include "exchange/megatron.h"
#include "spec/load.h"

typedef struct Export {
    const Spec *spec;
    Settings *out;
    bool bridge;
    GError **error;
} Export;

static bool refuse(const Export *export, const char *key, const char *value, const char *hint)
{
    return exchange_export_refuse(export->error,
                                  export->bridge ? EXCHANGE_FORMAT_MEGATRON_BRIDGE : EXCHANGE_FORMAT_MEGATRON,
                                  key, value, hint);
}

static const char *name_of(const Export *export, const char *flag, const char *bridge)
{
    return export->bridge ? bridge : flag;
}

static void put_text(const Export *export, const char *flag, const char *bridge, const char *value)
{
    if (name_of(export, flag, bridge) != NULL)
        settings_text(export->out, name_of(export, flag, bridge), value);
}

static void put_int(const Export *export, const char *flag, const char *bridge, int value)
{
    if (name_of(export, flag, bridge) != NULL)
        settings_int(export->out, name_of(export, flag, bridge), value);
}

/* A flag is there or not; an override says which. */
static void put_switch(const Export *export, const char *flag, const char *bridge, bool value)
{
    if (export->bridge && bridge != NULL)
        settings_bool(export->out, bridge, value);
    else if (!export->bridge && flag != NULL && value)
        settings_text(export->out, flag, NULL);
}

static bool wanted(const Spec *spec, MegatronWhen when, int value)
{
    switch (when) {
    case MEGATRON_ALWAYS:
        return true;
    case MEGATRON_POSITIVE:
        return value > 0;
    case MEGATRON_MOE:
        return spec->model.moe.experts > 0;
    case MEGATRON_MLA:
        return spec->model.mla.kv_lora_rank > 0 && value > 0;
    case MEGATRON_WHOLE_LAYERS:
        return value > 0 && spec->offload.activations.modules == 0;
    }
    g_assert_not_reached();
}

/* --- model --- */

static bool put_words(const Export *export)
{
    const SpecModel *model = &export->spec->model;
    const char *norm =
        exchange_pair_word(megatron_norms, (int)G_N_ELEMENTS(megatron_norms), (int)model->norm);
    const char *position =
        exchange_pair_word(megatron_positions, (int)G_N_ELEMENTS(megatron_positions), (int)model->position);
    if (norm == NULL)
        return refuse(export, "model.norm", spec_word(&spec_words_norm, (int)model->norm),
                      "give layernorm or rmsnorm");
    if (position == NULL)
        return refuse(export, "model.position", spec_word(&spec_words_position, (int)model->position),
                      "give learned, rope or none");
    if (model->biases == SPEC_BIASES_MLP)
        return refuse(export, "model.biases", "mlp", "give all, none or qkv");
    put_text(export, "normalization", "model.normalization", norm);
    put_text(export, "position-embedding-type", "model.position_embedding_type", position);
    put_switch(export, "disable-bias-linear", NULL, model->biases != SPEC_BIASES_ALL);
    put_switch(export, NULL, "model.add_bias_linear", model->biases == SPEC_BIASES_ALL);
    put_switch(export, "add-qkv-bias", "model.add_qkv_bias", model->biases == SPEC_BIASES_QKV);
    return true;
}

static void put_decimal(const Export *export, const char *flag, const char *bridge, double value)
{
    g_autoptr(GString) text = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, text, true);
    orr_jw_number(&w, NULL, value);
    settings_raw(export->out, name_of(export, flag, bridge), text->str);
}

static void put_experts(const Export *export)
{
    const SpecMoe *moe = &export->spec->model.moe;
    if (moe->experts == 0)
        return;
    if (moe->shared_expert_ffn_hidden > 0)
        put_int(export, "moe-shared-expert-intermediate-size", "model.moe_shared_expert_intermediate_size",
                moe->shared_expert_ffn_hidden);
    g_autofree char *freq = moe->dense_layers > 0
                                ? g_strdup_printf("([0]*%d+[1]*%d)", moe->dense_layers,
                                                  export->spec->model.layers - moe->dense_layers)
                                : g_strdup_printf("%d", moe->layer_step);
    put_text(export, "moe-layer-freq", "model.moe_layer_freq", freq);
    put_switch(export, "moe-grouped-gemm", "model.moe_grouped_gemm", true);
    if (moe->capacity_factor > 0)
        put_decimal(export, "moe-expert-capacity-factor", "model.moe_expert_capacity_factor",
                    moe->capacity_factor);
    const SpecMoeDispatcher dispatcher = export->spec->parallel.moe_dispatcher;
    const bool flex = dispatcher == SPEC_DISPATCHER_DEEPEP || dispatcher == SPEC_DISPATCHER_HYBRIDEP;
    put_text(export, "moe-token-dispatcher-type", "model.moe_token_dispatcher_type",
             flex ? "flex" : "alltoall");
    if (flex)
        put_text(export, "moe-flex-dispatcher-backend", "model.moe_flex_dispatcher_backend",
                 spec_word(&spec_words_dispatcher, (int)dispatcher));
}

static bool put_model(const Export *export)
{
    const SpecModel *model = &export->spec->model;
    if (model->moe.dense_layers > 0 && model->moe.layer_step > 1)
        return refuse(export, "model.moe.layer_step", "above 1 with dense_layers", "give one of them");
    for (int i = 0; i < megatron_switch_count; i++) {
        const MegatronSwitch *row = &megatron_switches[i];
        bool value;
        if (!g_str_has_prefix(row->key, "model."))
            continue;
        memcpy(&value, (const char *)export->spec + row->offset, sizeof value);
        put_switch(export, row->flag, NULL, value != row->flag_inverse);
        put_switch(export, NULL, row->bridge, value != row->bridge_inverse);
    }
    put_switch(export, "group-query-attention", NULL,
               model->kv_heads < model->heads && model->mla.kv_lora_rank == 0);
    put_switch(export, "multi-latent-attention", "model.multi_latent_attention", model->mla.kv_lora_rank > 0);
    put_decimal(export, "hidden-dropout", "model.hidden_dropout", model->dropout_frac);
    put_decimal(export, "attention-dropout", "model.attention_dropout", model->dropout_frac);
    put_experts(export);
    return put_words(export);
}

/* --- split --- */

/* Whether Megatron deals the layers out as the scenario does, without being told stage by stage. */
static bool deals_alike(const Spec *spec)
{
    const SpecParallel *parallel = &spec->parallel;
    const int p = parallel->pipeline, v = parallel->virtual_stages;
    const int first = parallel->first_stage_layers, last = parallel->last_stage_layers;
    const int extra = (parallel->embedding_as_layer ? 1 : 0) + (parallel->loss_as_layer ? 1 : 0);
    const int others = p - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0);
    if (parallel->stage_layers_count > 0 || parallel->mtp_as_layer ||
        (spec->execution.framework.pipeline.balances_head && !parallel->loss_as_layer))
        return false;
    if (first > 0 || last > 0)
        return extra == 0 && others > 0 && first % v == 0 && last % v == 0 &&
               (spec->model.layers - first - last) % (others * v) == 0;
    return (spec->model.layers + extra) % (p * v) == 0;
}

static bool put_layout(const Export *export)
{
    const SpecParallel *parallel = &export->spec->parallel;
    const int stages = parallel->pipeline * parallel->virtual_stages;
    int counts[SPEC_MAX_STAGES];
    g_autoptr(GString) layout = g_string_new(NULL);
    g_autoptr(GError) problem = NULL;
    if (!spec_stage_layers(export->spec, counts, &problem))
        return refuse(export, "parallel.stage_layers", problem->message, "give layers for every stage");
    for (int i = 0; i < stages; i++) {
        g_string_append(layout, i == 0 ? "E" : "|");
        if (counts[i] > 0)
            g_string_append_printf(layout, counts[i] > 1 ? "t*%d" : "t", counts[i]);
    }
    for (int i = 0; i < export->spec->model.mtp_layers; i++)
        g_string_append_c(layout, 'm');
    g_string_append_c(layout, 'L');
    put_text(export, "pipeline-model-parallel-layout", "model.pipeline_model_parallel_layout", layout->str);
    return true;
}

static bool put_pipeline(const Export *export)
{
    const SpecParallel *parallel = &export->spec->parallel;
    if (parallel->pipeline == 1)
        return true;
    const SimSchedule *schedule = sim_schedule_at((int)parallel->schedule);
    if (!sim_schedule_has(schedule, SIM_TRAIT_USUAL))
        return refuse(export, "parallel.schedule", spec_word(&spec_words_schedule, (int)parallel->schedule),
                      "give 1f1b or interleaved");
    const bool chunks = parallel->virtual_stages > 1;
    if (chunks && schedule->fixed_chunks == 1)
        return refuse(export, "parallel.virtual_stages", "above 1 with 1f1b", "give schedule interleaved");
    if (spec_deferred_heads(export->spec) > 0) {
        put_switch(export, "defer-embedding-wgrad-compute", "comm_overlap.defer_embedding_wgrad_compute",
                   true);
        put_int(export, "wgrad-deferral-limit", "comm_overlap.wgrad_deferral_limit",
                export->spec->execution.framework.pipeline.deferred_head_gradients);
    }
    if (chunks) {
        const bool overlaps = (spec_overlap(export->spec) & SPEC_OVERLAP_PIPELINE) != 0;
        put_switch(export, "no-overlap-p2p-communication", NULL, !overlaps);
        put_switch(export, NULL, "model.overlap_p2p_comm", overlaps);
    }
    if (chunks && parallel->microbatch_group > 0)
        put_int(export, "microbatch-group-size-per-virtual-pipeline-stage",
                "model.microbatch_group_size_per_vp_stage", parallel->microbatch_group);
    if (!deals_alike(export->spec)) {
        if (chunks && export->bridge)
            put_int(export, NULL, "model.virtual_pipeline_model_parallel_size", parallel->virtual_stages);
        return put_layout(export);
    }
    if (chunks)
        put_int(export, "num-virtual-stages-per-pipeline-rank", "model.virtual_pipeline_model_parallel_size",
                parallel->virtual_stages);
    for (int i = 0; i < megatron_switch_count; i++) {
        const MegatronSwitch *row = &megatron_switches[i];
        bool value;
        memcpy(&value, (const char *)export->spec + row->offset, sizeof value);
        if (g_str_has_prefix(row->key, "parallel."))
            put_switch(export, row->flag, row->bridge, value);
    }
    return true;
}

/* Megatron knows two orders. */
static bool put_order(const Export *export)
{
    const char *order = export->spec->parallel.order;
    const bool pipeline_inside = strcmp(order, "tp-cp-ep-pp-dp") == 0;
    if (!pipeline_inside && strcmp(order, "tp-cp-ep-dp-pp") != 0)
        return refuse(export, "parallel.order", order, "give tp-cp-ep-dp-pp or tp-cp-ep-pp-dp");
    if (pipeline_inside)
        put_switch(export, "use-tp-pp-dp-mapping", "dist.use_tp_pp_dp_mapping", true);
    return true;
}

/* Sums and wire of gradients: fp32 unless a flag says bf16; fp16 models have a rule of their own. */
static void put_gradients(const Export *export)
{
    const SpecTraining *training = &export->spec->training;
    const bool half =
        training->precision == SPEC_PRECISION_FP16 || training->precision == SPEC_PRECISION_FP32;
    if (export->bridge && !half)
        settings_bool(export->out, "ddp.grad_reduce_in_fp32", training->gradient_dtype == SPEC_FP32);
    else if (!half && training->gradient_dtype != SPEC_FP32)
        settings_text(export->out, "grad-reduce-in-bf16", NULL);
}

/* What Megatron-FSDP asks for besides; its weight gradients are not added inside the GEMM. */
static void put_fsdp(const Export *export, const char *strategy)
{
    put_text(export, "data-parallel-sharding-strategy", "ddp.data_parallel_sharding_strategy", strategy);
    put_text(export, "ckpt-format", "checkpoint.ckpt_format", "fsdp_dtensor");
    put_switch(export, "no-gradient-accumulation-fusion", NULL, true);
    put_switch(export, NULL, "model.gradient_accumulation_fusion", false);
    if (export->spec->execution.framework.kernels.gradient_sum == SPEC_SUM_IN_PRODUCT)
        settings_leave(export->out,
                       "execution.framework.kernels.gradient_sum: Megatron-FSDP is launched without it, "
                       "the prediction has it");
}

static void put_list(const Export *export, const char *name, const OrrWords *words, unsigned bits)
{
    g_autoptr(GString) text = g_string_new(export->bridge ? "[" : NULL);
    const char *between = "";
    for (int i = 0; i < words->count; i++)
        if ((bits & (1u << i)) != 0) {
            g_string_append_printf(text, "%s%s", between, orr_word(words, i));
            between = export->bridge ? "," : " ";
        }
    if (export->bridge)
        g_string_append_c(text, ']');
    settings_raw(export->out, name, text->str);
}

/* Whole layers, or what some modules of all layers read. */
static void put_activations(const Export *export)
{
    const SpecOffload *offload = &export->spec->offload;
    const unsigned modules = offload->activations.modules;
    if (offload->activation_layers > 0 && modules == 0)
        put_switch(export, NULL, "model.cpu_offloading", true);
    if (offload->activation_layers > 0 && modules != 0) {
        put_switch(export, "fine-grained-activation-offloading", "model.fine_grained_activation_offloading",
                   true);
        put_list(export, name_of(export, "offload-modules", "model.offload_modules"),
                 &spec_words_offload_module, modules);
    }
}

static bool put_data(const Export *export)
{
    static const char *const strategies[4] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
    const SpecParallel *parallel = &export->spec->parallel;
    const unsigned overlap = spec_overlap(export->spec);
    put_switch(export, "sequence-parallel", "model.sequence_parallel",
               parallel->sequence_parallel == 1 && parallel->tensor > 1);
    put_activations(export);
    if (spec_offloads_states(&export->spec->offload)) {
        const SpecOffload *offload = &export->spec->offload;
        char text[G_ASCII_DTOSTR_BUF_SIZE];
        put_switch(export, "optimizer-cpu-offload", "optimizer.optimizer_cpu_offload", true);
        g_ascii_formatd(text, sizeof text, "%.15g", offload->ratio);
        if (export->bridge)
            settings_raw(export->out, "optimizer.optimizer_offload_fraction", text);
        else
            settings_text(export->out, "optimizer-offload-fraction", text);
        put_switch(export, "overlap-cpu-optimizer-d2h-h2d", "optimizer.overlap_cpu_optimizer_d2h_h2d",
                   offload->overlap_update);
    }
    put_switch(export, "use-distributed-optimizer", "ddp.use_distributed_optimizer", parallel->zero > 0);
    put_switch(export, "use-megatron-fsdp", "ddp.use_megatron_fsdp", parallel->zero > 1);
    if (parallel->zero > 1)
        put_fsdp(export, strategies[parallel->zero]);
    if (parallel->zero_group_gpus > 0 && parallel->zero > 0)
        put_int(export, "num-distributed-optimizer-instances", "ddp.num_distributed_optimizer_instances",
                parallel->data / parallel->zero_group_gpus);
    put_switch(export, "overlap-grad-reduce", "ddp.overlap_grad_reduce",
               (overlap & SPEC_OVERLAP_GRAD_REDUCE) != 0);
    if (parallel->zero > 0) /* without ZeRO nothing is gathered, and Megatron refuses the flag */
        put_switch(export, "overlap-param-gather", "ddp.overlap_param_gather",
                   (overlap & SPEC_OVERLAP_PARAM_GATHER) != 0);
    put_gradients(export);
    put_switch(export, "tp-comm-overlap", "comm_overlap.tp_comm_overlap",
               megatron_tensor_overlaps(export->spec));
    put_switch(export, "overlap-moe-expert-parallel-comm", "comm_overlap.overlap_moe_expert_parallel_comm",
               megatron_expert_overlaps(export->spec));
    return true;
}

/* --- training --- */

typedef struct PrecisionRow {
    SpecPrecision precision;
    const char *type, *format, *recipe, *bridge;
} PrecisionRow;

static bool put_precision(const Export *export)
{
    static const PrecisionRow rows[] = {
        {SPEC_PRECISION_FP32, NULL, NULL, NULL, NULL},
        {SPEC_PRECISION_FP16, "fp16", NULL, NULL, "fp16_mixed"},
        {SPEC_PRECISION_BF16, "bf16", NULL, NULL, "bf16_mixed"},
        {SPEC_PRECISION_FP8, "bf16", "fp8", "delayed", "bf16_with_fp8_delayed_scaling_mixed"},
        {SPEC_PRECISION_FP8_CS, "bf16", "fp8", "tensorwise", "bf16_with_fp8_current_scaling_mixed"},
        {SPEC_PRECISION_FP8_BLOCKWISE, "bf16", "fp8", "blockwise", "bf16_with_fp8_subchannel_scaling_mixed"},
        {SPEC_PRECISION_MXFP8, "bf16", "fp8", "mxfp8", "bf16_with_mxfp8_mixed"},
        {SPEC_PRECISION_NVFP4, "bf16", "fp4", "nvfp4", "bf16_with_nvfp4_mixed"},
    };
    const SpecPrecision precision = export->spec->training.precision;
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i].precision != precision || (export->bridge && rows[i].bridge == NULL))
            continue;
        if (export->bridge) {
            settings_text(export->out, "mixed_precision", rows[i].bridge);
            return true;
        }
        if (rows[i].type != NULL)
            settings_text(export->out, rows[i].type, NULL);
        if (rows[i].format != NULL) {
            g_autofree char *format = g_strconcat(rows[i].format, "-format", NULL);
            g_autofree char *recipe = g_strconcat(rows[i].format, "-recipe", NULL);
            settings_text(export->out, format, g_str_equal(rows[i].format, "fp4") ? "e2m1" : "hybrid");
            settings_text(export->out, recipe, rows[i].recipe);
        }
        return true;
    }
    return refuse(export, "training.precision", spec_word(&spec_words_precision, (int)precision),
                  "give bf16, fp16, fp8, fp8-cs, fp8-blockwise, mxfp8 or nvfp4");
}

static bool put_recompute(const Export *export)
{
    const SpecRecompute *recompute = &export->spec->training.recompute;
    const char *granularity = name_of(export, "recompute-granularity", "model.recompute_granularity"),
               *modules = name_of(export, "recompute-modules", "model.recompute_modules");
    switch (recompute->mode) {
    case SPEC_RECOMPUTE_NONE:
        if (export->bridge)
            settings_raw(export->out, granularity, "null");
        return true;
    case SPEC_RECOMPUTE_SELECTIVE:
        settings_text(export->out, granularity, "selective");
        put_list(export, modules, &spec_words_module, SPEC_MODULE_CORE_ATTN);
        return true;
    case SPEC_RECOMPUTE_MODULES:
        settings_text(export->out, granularity, "selective");
        put_list(export, modules, &spec_words_module, recompute->modules);
        return true;
    case SPEC_RECOMPUTE_FULL:
        settings_text(export->out, granularity, "full");
        put_text(export, "recompute-method", "model.recompute_method",
                 recompute->layers > 0 ? "block" : "uniform");
        put_int(export, "recompute-num-layers", "model.recompute_num_layers",
                recompute->layers > 0 ? recompute->layers : 1);
        if (recompute->partitioned)
            put_switch(export, "distribute-saved-activations", "model.distribute_saved_activations", true);
        return true;
    case SPEC_RECOMPUTE_SELECTIVE_OP:
    case SPEC_RECOMPUTE_SELECTIVE_LAYER:
        break;
    }
    return refuse(export, "training.recompute", spec_word(&spec_words_recompute, (int)recompute->mode),
                  "give none, selective, full or modules");
}

static void put_placeholder(const Export *export, const char *name, const char *value)
{
    settings_raw(export->out, name, value);
    settings_mark_placeholder(export->out);
}

static bool put_optimizer(const Export *export)
{
    const SpecOptimizer own = export->spec->training.optimizer;
    const char *optimizer =
        exchange_pair_word(megatron_optimizers, (int)G_N_ELEMENTS(megatron_optimizers), (int)own);
    if (optimizer == NULL)
        return refuse(export, "training.optimizer", spec_word(&spec_words_optimizer, (int)own),
                      "give adam, sgd or muon");
    put_text(export, "optimizer", "optimizer.optimizer", optimizer);
    return true;
}

static bool put_training(const Export *export)
{
    const SpecTraining *training = &export->spec->training;
    static const char *const backends[SPEC_ATTENTION_COUNT] = {"unfused", "flash", "flash", "fused"};
    put_text(export, "attention-backend", "model.attention_backend",
             backends[export->spec->execution.attention]);
    const double samples = ceil(training->tokens / training->sequence_length);
    if (export->bridge) {
        settings_int(export->out, "dataset.sequence_length", training->sequence_length);
        if (samples > 0)
            settings_int(export->out, "train.train_iters", (int64_t)ceil(samples / training->global_batch));
        else
            put_placeholder(export, "train.train_iters", "100");
    } else {
        if (samples > 0)
            settings_int(export->out, "train-samples", (int64_t)samples);
        else
            put_placeholder(export, "train-iters", "100");
        put_placeholder(export, "tokenizer-type", "NullTokenizer");
        put_placeholder(export, "mock-data", NULL);
        put_placeholder(export, "lr", "1.0e-4");
    }
    megatron_put_ramp(export->spec, export->bridge, export->out);
    return true;
}

static bool export_named(const Spec *spec, bool bridge, Settings *out, GError **error)
{
    const Export export = {spec, out, bridge, error};
    const bool alike = spec->parallel.pipeline == 1 || deals_alike(spec);
    bool ok = megatron_check(spec, bridge, error);
    megatron_environment(spec, out);
    for (int i = 0; i < megatron_int_count; i++) {
        const MegatronInt *row = &megatron_ints[i];
        int value;
        memcpy(&value, (const char *)spec + row->offset, sizeof value);
        if (strcmp(row->key, "model.max_positions") == 0) /* Megatron wants room for the whole sequence */
            value = MAX(value, spec->training.sequence_length);
        const bool ends = g_str_has_suffix(row->key, "_stage_layers");
        if (wanted(spec, row->when, value) && (!ends || alike))
            put_int(&export, row->flag, row->bridge, value);
    }
    bool (*const parts[])(const Export *) = {put_model,     put_order,    put_pipeline,  put_data,
                                             put_optimizer, put_training, put_precision, put_recompute};
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++)
        ok = parts[i](&export) && ok;
    return (!bridge || megatron_put_adapter(spec, out, error)) && ok;
}

bool exchange_export_megatron(const Spec *spec, Settings *out, GError **error)
{
    return export_named(spec, false, out, error);
}

bool exchange_export_megatron_bridge(const Spec *spec, Settings *out, GError **error)
{
    return export_named(spec, true, out, error);
}
