/* exchange/export_megatron_rules.c - what Megatron's own checks of arguments refuse, said before a launch does.
 * Sources: Megatron-LM training/arguments.py (validate_args), core/transformer/transformer_config.py,
 * core/model_parallel_config.py, core/pipeline_parallel/schedules.py; Megatron-Bridge training/config.py. */
#include "exchange/megatron.h"

typedef struct Rule {
    bool broken;
    const char *key, *value, *hint;
} Rule;

static bool recomputes(const SpecRecompute *recompute, unsigned modules)
{
    return recompute->mode == SPEC_RECOMPUTE_MODULES && (recompute->modules & modules) != 0;
}

bool megatron_tensor_overlaps(const Spec *spec)
{
    return (spec_overlap(spec) & SPEC_OVERLAP_TENSOR) != 0 && spec->parallel.tensor > 1;
}

bool megatron_expert_overlaps(const Spec *spec)
{
    return (spec_overlap(spec) & SPEC_OVERLAP_EXPERT) != 0 && spec->model.moe.experts > 0 &&
           spec->parallel.expert > 1;
}

static bool none_broken(const Rule *rules, gsize count, bool bridge, GError **error)
{
    bool ok = true;
    for (gsize i = 0; i < count; i++)
        if (rules[i].broken)
            ok = exchange_export_refuse(error,
                                        bridge ? EXCHANGE_FORMAT_MEGATRON_BRIDGE : EXCHANGE_FORMAT_MEGATRON,
                                        rules[i].key, rules[i].value, rules[i].hint);
    return ok;
}

/* Degrees, messages and stages. */
static bool check_split(const Spec *spec, bool bridge, GError **error)
{
    const SpecParallel *parallel = &spec->parallel;
    const SpecTraining *training = &spec->training;
    const SpecModel *model = &spec->model;
    const unsigned overlap = spec_overlap(spec);
    const bool moe = model->moe.experts > 0, chunks = parallel->virtual_stages > 1;
    const bool sequence = parallel->sequence_parallel == 1;
    const bool gathers = (overlap & SPEC_OVERLAP_PARAM_GATHER) != 0 && parallel->zero > 0;
    const Rule rules[] = {
        {megatron_tensor_overlaps(spec) && !sequence, "execution.overlap",
         "tensor without sequence parallelism",
         "give parallel.sequence_parallel true: --tp-comm-overlap needs it"},
        {gathers && (overlap & SPEC_OVERLAP_GRAD_REDUCE) == 0, "execution.overlap",
         "param_gather without grad_reduce", "give both: --overlap-param-gather needs --overlap-grad-reduce"},
        {moe && parallel->tensor > 1 && !sequence, "parallel.sequence_parallel",
         "false for experts under tensor ranks", "give true: its expert layers refuse to train without"},
        {chunks && parallel->pipeline == 2 && (overlap & SPEC_OVERLAP_PIPELINE) == 0, "execution.overlap",
         "interleaved stages of 2 pipeline ranks without pipeline",
         "add pipeline: without overlapped messages it interleaves over more than 2 ranks only"},
        {chunks && parallel->microbatch_group > spec_microbatches(spec), "parallel.microbatch_group",
         "more than the micro-batches of a step", "give at most those"},
        {chunks && sim_schedule_has(sim_schedule_at((int)parallel->schedule), SIM_TRAIT_USUAL) &&
             spec_microbatches(spec) % parallel->pipeline != 0,
         "training.global_batch", "not a whole number of rounds of interleaved stages",
         "give micro-batches that the pipeline ranks divide"},
        {parallel->context > 1 && training->sequence_length % (2 * parallel->context) != 0,
         "training.sequence_length", "no multiple of twice the context ranks", "give one that is"},
        {model->heads % parallel->tensor != 0, "parallel.tensor", "does not divide the heads",
         "give one that does"},
        {model->mla.kv_lora_rank == 0 && model->kv_heads % parallel->tensor != 0 &&
             parallel->tensor % model->kv_heads != 0,
         "parallel.tensor", "neither divides the groups of queries nor is divided by them", "give another"},
    };
    return none_broken(rules, G_N_ELEMENTS(rules), bridge, error);
}

/* --offload-modules.   Source: [MegatronOffload] */
#define MEGATRON_OFFLOADS                                                                                    \
    ((unsigned)(SPEC_MODULE_ATTN_NORM | SPEC_MODULE_QKV_LINEAR | SPEC_MODULE_CORE_ATTN |                     \
                SPEC_MODULE_ATTN_PROJ | SPEC_MODULE_MLP_NORM | SPEC_MODULE_EXPERT_FC1 |                      \
                SPEC_MODULE_MOE_ACT))

/* Experts, sharding, offloading, recomputation. */
static bool check_training(const Spec *spec, bool bridge, GError **error)
{
    const SpecParallel *parallel = &spec->parallel;
    const SpecTraining *training = &spec->training;
    const SpecRecompute *recompute = &training->recompute;
    const SpecModel *model = &spec->model;
    const bool fsdp = parallel->zero > 1, moe = model->moe.experts > 0, chunks = parallel->virtual_stages > 1;
    const bool expert = megatron_expert_overlaps(spec);
    const bool floats =
        training->precision == SPEC_PRECISION_FP32 || training->precision == SPEC_PRECISION_TF32;
    const Rule rules[] = {
        {moe && model->biases == SPEC_BIASES_ALL && parallel->expert_tensor > 1, "parallel.expert_tensor",
         "above 1 for experts with biases", "give 1"},
        {fsdp && training->optimizer != SPEC_OPTIMIZER_ADAM && training->optimizer != SPEC_OPTIMIZER_SGD,
         "training.optimizer", spec_word(&spec_words_optimizer, (int)training->optimizer),
         "give adam or sgd: Megatron-FSDP (ZeRO 2 and 3) has no other"},
        {fsdp && bridge && g_str_equal(parallel->order, "tp-cp-ep-pp-dp"), "parallel.order", parallel->order,
         "give tp-cp-ep-dp-pp: Megatron-FSDP (ZeRO 2 and 3) has no other"},
        {(spec->offload.activations.modules & ~MEGATRON_OFFLOADS) != 0, "offload.activations.modules",
         "that Megatron-Core does not offload",
         "give attn_norm, qkv_linear, core_attn, attn_proj, mlp_norm, expert_fc1 or moe_act"},
        {spec->offload.activation_layers > 0 && spec->offload.activations.modules == 0 &&
             (parallel->pipeline > 1 || recompute->mode != SPEC_RECOMPUTE_NONE ||
              spec->offload.activation_layers >= model->layers),
         "offload.activation_layers", "with a pipeline, recomputation or all layers",
         "give parallel.pipeline 1, recompute none and fewer layers: CPU offloading needs that"},
        {expert && chunks == false && parallel->pipeline > 1, "execution.overlap",
         "expert in a pipeline of 1f1b",
         "give interleaved stages: --overlap-moe-expert-parallel-comm needs them"},
        {expert && (recompute->mode == SPEC_RECOMPUTE_FULL || recomputes(recompute, SPEC_MODULE_MOE)),
         "training.recompute", "of whole layers or expert layers with expert overlap",
         "give none, selective or other modules"},
        {expert && floats, "training.precision", "fp32 with expert overlap", "give bf16 or fp16"},
        {expert && model->mtp_layers > 1, "model.mtp_layers", "above 1 with expert overlap",
         "give at most 1"},
        {recomputes(recompute, SPEC_MODULE_MLA_UP_PROJ) && model->mla.kv_lora_rank == 0, "training.recompute",
         "mla_up_proj without latent attention", "leave that module out"},
        {recomputes(recompute, SPEC_MODULE_MOE_ACT) && !moe, "training.recompute", "moe_act without experts",
         "leave that module out"},
        {recomputes(recompute, SPEC_MODULE_MOE_ACT | SPEC_MODULE_LAYERNORM) &&
             training->precision == SPEC_PRECISION_FP8,
         "training.recompute", "moe_act or layernorm with fp8's delayed scaling",
         "give another precision or other modules"},
    };
    return none_broken(rules, G_N_ELEMENTS(rules), bridge, error);
}

/* Its hybrid optimizer keeps a share of the states on the host; weights and other orders it has not. */
static bool check_offload(const Spec *spec, bool bridge, GError **error)
{
    const SpecOffload *offload = &spec->offload;
    const bool own = offload->optimizer.tier == SPEC_TIER_HOST && offload->weights.tier == SPEC_TIER_GPU &&
                     offload->update == SPEC_UPDATE_BARRIER && !offload->direct;
    const Rule rule = {spec_offloads_states(offload) && !own, "offload.scheme",
                       spec_word(&spec_words_offload, (int)offload->scheme),
                       "give zero-offload or twin-flow"};
    return none_broken(&rule, 1, bridge, error);
}

bool megatron_check(const Spec *spec, bool bridge, GError **error)
{
    const bool split = check_split(spec, bridge, error), offload = check_offload(spec, bridge, error);
    return check_training(spec, bridge, error) && split && offload;
}

void megatron_environment(const Spec *spec, Settings *out)
{
    const SpecParallel *parallel = &spec->parallel;
    const bool split = parallel->tensor > 1 || parallel->context > 1;
    if (parallel->zero > 1 || megatron_expert_overlaps(spec))
        settings_environment(out, "CUDA_DEVICE_MAX_CONNECTIONS", "32"); /* FSDP: anything but 1 */
    else if (split && !spec->cluster.accelerator.generation.free_queues)
        settings_environment(out, "CUDA_DEVICE_MAX_CONNECTIONS", "1");
}

void megatron_put_ramp(const Spec *spec, bool bridge, Settings *out)
{
    const SpecTraining *training = &spec->training;
    const SpecBatches *entry = &training->batches[0];
    if (training->batches_count != 1 || entry->by == 0 || entry->sequence_length > 0 || bridge)
        return;
    g_autofree char *ramp = g_strdup_printf("%d %d %.0f", entry->global_batch, entry->by,
                                            spec_batches_tokens(training, 0) / training->sequence_length);
    settings_raw(out, "rampup-batch-size", ramp);
}
