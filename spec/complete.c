/* spec/complete.c - what a scenario leaves out and other fields decide: heads, degrees, schedule, number formats. */
#include "spec/complete.h"

#include <math.h>

#include "spec/checks.h"
#include "spec/load.h"
#include "spec/moe.h"
#include "spec/read.h"
#include "spec/run_length.h"

typedef struct Completion {
    const char *where;
    GPtrArray *notes; /* char* "parallel.data=16"; NULL: not collected */
    GError **error;
} Completion;

static bool fail(const Completion *completion, const char *format, ...) G_GNUC_PRINTF(2, 3);

static bool fail(const Completion *completion, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *message = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    orr_fail(completion->error, ORR_ERROR_INPUT, "%s: %s", completion->where, message);
    return false;
}

static void note(const Completion *completion, const char *key, const char *value)
{
    if (completion->notes != NULL)
        g_ptr_array_add(completion->notes, g_strconcat(key, "=", value, NULL));
}

static void set_int(const Completion *completion, const char *key, int *field, int value)
{
    if (*field != SPEC_UNSET)
        return;
    char text[16];
    g_snprintf(text, sizeof text, "%d", value);
    *field = value;
    note(completion, key, text);
}

static void set_double(const Completion *completion, const char *key, double *field, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    if (*field >= 0)
        return;
    *field = value;
    note(completion, key, g_ascii_formatd(text, sizeof text, "%.15g", value));
}

/* --- model --- */

static bool complete_ffn(const Completion *completion, SpecModel *model)
{
    const SpecMoe *moe = &model->moe;
    if (model->ffn_hidden != SPEC_UNSET)
        return true;
    if (moe->experts > 0 && moe->dense_layers == 0 && moe->layer_step <= 1 && moe->expert_ffn_hidden > 0) {
        set_int(completion, "model.ffn_hidden", &model->ffn_hidden, moe->expert_ffn_hidden);
        return true;
    }
    if (model->gated_mlp)
        return fail(completion,
                    "model.ffn_hidden: missing; a gated MLP has no usual size, so give it (Llama: about %d)",
                    (int)(8.0 / 3.0 * model->hidden));
    if (model->hidden > G_MAXINT / 4)
        return fail(completion, "model.ffn_hidden: missing; give it");
    set_int(completion, "model.ffn_hidden", &model->ffn_hidden, 4 * model->hidden);
    return true;
}

static bool complete_moe(const Completion *completion, SpecModel *model)
{
    SpecMoe *moe = &model->moe;
    for (int i = 0; moe->experts == 0 && i < moe->run_count; i++)
        moe->experts = MAX(0, moe->run[i].experts);
    if (moe->experts == 0) {
        *moe = (SpecMoe){.layer_step = 1};
        return true;
    }
    set_int(completion, "model.moe.expert_ffn_hidden", &moe->expert_ffn_hidden, model->ffn_hidden);
    const double shared = (double)moe->shared_experts * moe->expert_ffn_hidden;
    if (shared > 1e7)
        return fail(completion,
                    "model.moe.shared_experts: %d x expert_ffn_hidden %d is more than 10000000; give fewer",
                    moe->shared_experts, moe->expert_ffn_hidden);
    set_int(completion, "model.moe.shared_expert_ffn_hidden", &moe->shared_expert_ffn_hidden, (int)shared);
    return spec_moe_complete(moe, completion->where, completion->error);
}

/* What no software of a transformer has a default for. */
static bool has_shape(const Completion *completion, SpecModel *model)
{
    const struct {
        const char *key;
        int value, most;
    } needed[] = {{"hidden", model->hidden, 10000000},
                  {"heads", model->heads, 100000},
                  {"vocab", model->vocab, 1000000000}};
    for (gsize i = 0; i < G_N_ELEMENTS(needed); i++)
        if (needed[i].value == SPEC_UNSET)
            return fail(completion, "model.%s: missing; give a whole number from 1 to %d", needed[i].key,
                        needed[i].most);
    if (model->time_frac > 0 && (model->time_frac < 1 || model->time_frac > 1))
        return fail(completion,
                    "model.time_frac: given with a transformer; leave it out, or give layers as a list");
    if (model->sample_spread_frac > 0)
        return fail(completion,
                    "model.sample_spread_frac: given with a transformer; leave it out, or give layers "
                    "as a list");
    model->time_frac = 1;
    model->sample_spread_frac = 0;
    return true;
}

/* A list of layers has no width: nothing reads it, and 1 divides everything. */
static bool complete_list(const Completion *completion, SpecModel *model)
{
    if (MAX(MAX(model->hidden, model->heads), model->vocab) > 1)
        return fail(completion,
                    "model.layers: a list with hidden, heads or vocab, which are a transformer's; "
                    "give layers as a number, or leave them out");
    if (model->moe.experts > 0 || model->mla.kv_lora_rank > 0 || model->mtp_layers > 0 ||
        model->encoder_layers > 0)
        return fail(
            completion,
            "model.layers: a list with moe, mla, mtp_layers or encoder_layers, which are a transformer's; "
            "leave them out");
    model->hidden = model->heads = model->kv_heads = model->head_dim = model->ffn_hidden = model->vocab = 1;
    model->max_positions = 1;
    model->dropout_frac = 0;
    model->norm = SPEC_NORM_NONE;
    model->biases = SPEC_BIASES_NONE;
    model->position = SPEC_POSITION_NONE;
    model->moe = (SpecMoe){.layer_step = 1};
    model->time_frac = model->time_frac > 0 ? model->time_frac : 1;
    model->sample_spread_frac = fmax(0, model->sample_spread_frac);
    return true;
}

/* Decoders are counted by `layers` of the file; the model's are both stacks. */
static bool complete_encoder(const Completion *completion, SpecModel *model)
{
    if (model->encoder_layers == 0)
        return true;
    if (model->moe.experts > 0 || model->mla.kv_lora_rank > 0 || model->mtp_layers > 0 ||
        model->attention_window_tokens > 0)
        return fail(
            completion,
            "model.encoder_layers: %d with moe, mla, mtp_layers or attention_window_tokens, which are "
            "not simulated together with an encoder; remove these",
            model->encoder_layers);
    model->layers = model->decoder_layers + model->encoder_layers;
    return true;
}

bool spec_complete_model(SpecModel *model, int sequence_length, double dropout_frac, const char *where,
                         GPtrArray *notes, GError **error)
{
    const Completion completion = {where, notes, error};
    if (model->list.text != NULL)
        return complete_list(&completion, model);
    if (!has_shape(&completion, model) || !complete_encoder(&completion, model))
        return false;
    set_int(&completion, "model.kv_heads", &model->kv_heads, model->heads);
    if (model->head_dim == SPEC_UNSET && model->hidden % model->heads != 0)
        return fail(&completion,
                    "model.heads: %d does not divide hidden %d; give head_dim, or heads that divide it",
                    model->heads, model->hidden);
    set_int(&completion, "model.head_dim", &model->head_dim, model->hidden / model->heads);
    if (!complete_ffn(&completion, model) || !complete_moe(&completion, model))
        return false;
    if (model->position == SPEC_POSITION_LEARNED && sequence_length > 0)
        set_int(&completion, "model.max_positions", &model->max_positions, sequence_length);
    else if (model->max_positions == SPEC_UNSET)
        model->max_positions = sequence_length;
    set_double(&completion, "model.dropout_frac", &model->dropout_frac, dropout_frac);
    return true;
}

/* --- cluster --- */

/* A board without a switch is known by its number of GPUs: HGX boards have four without NVSwitch and eight with. One node
 * of four may be half of a larger one. It may have a power limit of its own. Source: [HgxBoards], [Jupiter] */
static void complete_board(const Completion *completion, SpecCluster *cluster)
{
    SpecAccelerator *accelerator = &cluster->accelerator;
    const int board = accelerator->reference_mesh_gpus;
    const bool whole = cluster->nodes > 1 || accelerator->reference_gpus_per_node <= board;
    const bool known =
        board > 0 && whole && cluster->gpus_per_node == board && cluster->scale_up_domain_gpus == board;
    if ((int)cluster->topology == SPEC_UNSET) {
        cluster->topology = known ? SPEC_TOPOLOGY_MESH : accelerator->reference_topology;
        note(completion, "cluster.topology", spec_word(&spec_words_topology, (int)cluster->topology));
    }
    double cap = accelerator->power_cap_w > 0 ? accelerator->power_cap_w : SPEC_UNSET;
    if (known && cluster->topology == SPEC_TOPOLOGY_MESH && accelerator->reference_mesh_power_w > 0)
        set_double(completion, "cluster.accelerator.power_cap_w", &cap, accelerator->reference_mesh_power_w);
    accelerator->power_cap_w = MAX(cap, 0);
}

static bool complete_cluster(const Completion *completion, SpecCluster *cluster)
{
    const SpecAccelerator *accelerator = &cluster->accelerator;
    if (cluster->gpus_per_node == SPEC_UNSET && accelerator->reference_gpus_per_node <= 0)
        return fail(completion, "cluster.gpus_per_node: missing; give the GPUs of a node, such as 8");
    set_int(completion, "cluster.gpus_per_node", &cluster->gpus_per_node,
            accelerator->reference_gpus_per_node);
    if ((double)cluster->gpus_per_node * cluster->nodes > G_MAXINT)
        return fail(completion,
                    "cluster.nodes: %d x gpus_per_node %d are too many GPUs; give at most %d in all",
                    cluster->nodes, cluster->gpus_per_node, G_MAXINT);
    const bool reference = accelerator->reference_scale_up_domain_gpus > 0 &&
                           cluster->gpus_per_node == accelerator->reference_gpus_per_node;
    set_int(completion, "cluster.scale_up_domain_gpus", &cluster->scale_up_domain_gpus,
            reference ? accelerator->reference_scale_up_domain_gpus : cluster->gpus_per_node);
    complete_board(completion, cluster);
    set_double(completion, "cluster.scale_up_bytes_per_s", &cluster->scale_up_bytes_per_s,
               accelerator->scale_up_bytes_per_s);
    set_double(completion, "cluster.scale_out_bytes_per_s_per_gpu", &cluster->scale_out_bytes_per_s_per_gpu,
               accelerator->reference_scale_out_bytes_per_s_per_gpu);
    return true;
}

bool spec_complete_cluster(SpecCluster *cluster, const char *where, GPtrArray *notes, GError **error)
{
    const Completion completion = {where, notes, error};
    return complete_cluster(&completion, cluster);
}

/* --- parallel --- */

static int usual_chunks(const SpecParallel *parallel)
{
    if (parallel->schedule == SPEC_SCHEDULE_FILE)
        return parallel->orders.placement == SIM_PLACE_BIDIRECTIONAL ? 1 : parallel->orders.chunks;
    return spec_stage_placement(parallel) == SIM_PLACE_V ? 2 : 1;
}

static void complete_schedule(const Completion *completion, SpecParallel *parallel)
{
    const int schedule = (int)parallel->schedule;
    if (schedule == SPEC_AUTO && parallel->virtual_stages == SPEC_UNSET) { /* most schedules need several */
        parallel->virtual_stages = SPEC_AUTO;
        note(completion, "parallel.virtual_stages", "auto");
    }
    set_int(completion, "parallel.virtual_stages", &parallel->virtual_stages, usual_chunks(parallel));
    if (schedule != SPEC_UNSET)
        return;
    if (parallel->virtual_stages == SPEC_AUTO)
        parallel->schedule = (SpecSchedule)SPEC_AUTO;
    else
        parallel->schedule = sim_schedule_usual(parallel->virtual_stages);
    note(completion, "parallel.schedule", spec_word(&spec_words_schedule, (int)parallel->schedule));
}

/* Experts that are spread over ranks stay whole: the default of torchtitan and DeepSpeed, and what NVIDIA's recipes
 * set where Megatron's own default is the tensor degree [dgxc]. It does not depend on how many ranks there are:
 * twice the replicas do not cut the experts. */
static void complete_expert_tensor(Spec *spec)
{
    SpecParallel *parallel = &spec->parallel;
    const bool whole = parallel->expert > 1 && !spec->execution.framework.defaults.slices_experts;
    if (parallel->expert_tensor == SPEC_UNSET)
        parallel->expert_tensor = 0; /* follows the others once they are known */
    if (parallel->expert_tensor == 0 && parallel->tensor > 0 && parallel->expert > 0)
        parallel->expert_tensor = whole ? 1 : parallel->tensor;
}

static bool complete_data(const Completion *completion, Spec *spec)
{
    SpecParallel *parallel = &spec->parallel;
    if (parallel->data > 0)
        return true;
    const bool derivable = parallel->tensor > 0 && parallel->context > 0 && parallel->pipeline > 0;
    const bool absent = parallel->data == SPEC_UNSET;
    if (!derivable) {
        parallel->data = SPEC_AUTO;
        return true;
    }
    const double split = (double)parallel->tensor * parallel->context * parallel->pipeline;
    const int gpus = spec_gpus(spec);
    const double data = gpus / split;
    if (data < 1 || data > floor(data))
        return fail(completion,
                    "parallel.tensor: %d x context %d x pipeline %d = %.0f does not divide the cluster's %d "
                    "GPUs; give "
                    "degrees whose product does",
                    parallel->tensor, parallel->context, parallel->pipeline, split, gpus);
    parallel->data = (int)data;
    char text[16];
    g_snprintf(text, sizeof text, "%d", parallel->data);
    if (absent)
        note(completion, "parallel.data", text);
    return true;
}

static void complete_servers(const Completion *completion, Spec *spec)
{
    SpecServers *servers = &spec->parallel.servers;
    const bool drifts = servers->spread != SPEC_SPREAD_NONE || servers->mode != SPEC_SERVERS_SYNC;
    if ((int)spec->parallel.data_scheme == SPEC_UNSET)
        spec->parallel.data_scheme = servers->servers > 0 ? SPEC_DATA_PARAMETER_SERVER : SPEC_DATA_ALLREDUCE;
    if (servers->servers == 0)
        return;
    set_double(completion, "parallel.parameter_server.partition_bytes", &servers->partition_bytes,
               servers->scheme == SPEC_SERVERS_BYTESCHEDULER ? 4096000 : 0);
    set_double(completion, "parallel.parameter_server.startup_s", &servers->startup_s,
               spec->cluster.scale_out_latency_s);
    set_int(completion, "parallel.parameter_server.iterations", &servers->iterations, drifts ? 200 : 4);
}

/* Whether tensor ranks could share the tokens of each sequence evenly; so far as degrees are known. */
static bool shares_sequences(const Spec *spec)
{
    const SpecParallel *parallel = &spec->parallel;
    const int context = MAX(1, parallel->context), tensor = MAX(1, parallel->tensor);
    return parallel->tensor_scheme == SPEC_TENSOR_1D && spec->model.list.text == NULL &&
           spec->training.sequence_length / context % tensor == 0 &&
           spec->training.encoder_sequence_length % tensor == 0;
}

static void complete_sequence_parallel(const Completion *completion, Spec *spec)
{
    SpecParallel *parallel = &spec->parallel;
    if (parallel->sequence_parallel != SPEC_UNSET)
        return;
    parallel->sequence_parallel = parallel->tensor != 1 && shares_sequences(spec) &&
                                          spec->execution.framework.defaults.sequence_parallel
                                      ? 1
                                      : 0;
    note(completion, "parallel.sequence_parallel", parallel->sequence_parallel == 1 ? "true" : "false");
}

/* What the software does as it stands, as far as it has it; with nobody to share with, or servers, nothing is sharded. */
static void complete_zero(const Completion *completion, Spec *spec)
{
    SpecParallel *parallel = &spec->parallel;
    const SpecFramework *framework = &spec->execution.framework;
    if (parallel->zero != SPEC_UNSET)
        return;
    const bool alone =
        (parallel->data == 1 && parallel->context == 1) || parallel->data_scheme != SPEC_DATA_ALLREDUCE;
    const int most = spec_most_zero(framework, parallel->pipeline == 1 ? 1 : 2);
    parallel->zero = alone ? 0 : MIN(framework->defaults.zero, most);
    char text[16];
    g_snprintf(text, sizeof text, "%d", parallel->zero);
    note(completion, "parallel.zero", text);
}

/* A framework that keeps half-precision gradients in the model's type sums them in fp32 when the model is not
 * fp16: bf16 sums lose small terms, and Megatron refuses them. */
static SpecDtype gradient_dtype(SpecPrecision precision, SpecDtype framework)
{
    return framework == SPEC_FP16 && precision != SPEC_PRECISION_FP16 ? SPEC_FP32 : framework;
}

/* --- training --- */

/* A Dirichlet's concentration whose loads have the Gini coefficient that was measured on text: 0.24 of latent
 * attention, 0.15 else (0.105 and 0.150 of two models).   G = Gamma(a + 1/2) / (sqrt(pi) Gamma(a + 1)) [Ma2026] */
#define LEARNED_LATENT 5.27
#define LEARNED        13.9

static void complete_router(const Completion *completion, Spec *spec)
{
    SpecRouter *router = &spec->training.router;
    if ((int)router->distribution == SPEC_AUTO) {
        const bool learned = spec->model.moe.experts > 0 && spec->execution.framework.defaults.learned_router;
        router->distribution = learned ? SPEC_ROUTER_LEARNED : SPEC_ROUTER_EVEN;
        if (spec->model.moe.experts > 0)
            note(completion, "training.router", spec_word(&spec_words_router, (int)router->distribution));
    }
    if (router->distribution == SPEC_ROUTER_LEARNED)
        router->concentration = spec->model.mla.kv_lora_rank > 0 ? LEARNED_LATENT : LEARNED;
}

static void complete_training(const Completion *completion, Spec *spec)
{
    SpecTraining *training = &spec->training;
    const SpecFramework *framework = &spec->execution.framework;
    complete_router(completion, spec);
    /* a scenario's own sums in fp32 are reduced in fp32: one flag in the frameworks that have it */
    const bool own_sums = training->gradient_dtype == SPEC_FP32;
    if ((int)training->gradient_dtype == SPEC_AUTO)
        training->gradient_dtype =
            gradient_dtype(training->precision, framework->data_parallel.gradient_dtype);
    if ((int)training->gradient_reduce_dtype == SPEC_AUTO)
        training->gradient_reduce_dtype =
            own_sums ? SPEC_FP32
                     : gradient_dtype(training->precision, framework->data_parallel.gradient_reduce_dtype);
    if ((int)training->states.recipe == SPEC_AUTO)
        training->states.recipe = framework->optimizer.states;
}

/* --- execution: what the software does unless told otherwise --- */

SpecAttention spec_default_attention(const Spec *spec)
{
    const SpecRecipeDefaults *defaults = &spec->execution.framework.defaults;
    const SpecAttentionDefault since = spec->cluster.accelerator.generation.attention_default;
    if (since >= SPEC_ATTENTION_SINCE_BLACKWELL && (int)defaults->attention_since_blackwell != SPEC_UNSET)
        return defaults->attention_since_blackwell;
    if (spec->cluster.accelerator.generation.assembly_attention &&
        defaults->attention_since_hopper == SPEC_ATTENTION_CUDNN)
        return SPEC_ATTENTION_FLASH3;
    return since >= SPEC_ATTENTION_SINCE_HOPPER && (int)defaults->attention_since_hopper != SPEC_UNSET
               ? defaults->attention_since_hopper
               : defaults->attention;
}

unsigned spec_default_overlap(const Spec *spec)
{
    const SpecRecipeDefaults *defaults = &spec->execution.framework.defaults;
    return spec->parallel.zero == 3 && (int)defaults->overlap_zero3 != SPEC_UNSET ? defaults->overlap_zero3
                                                                                  : defaults->overlap;
}

static void note_overlap(const Completion *completion, unsigned overlap)
{
    g_autoptr(GString) words = g_string_new("[");
    for (int i = 0; i < spec_words_overlap.count; i++)
        if (overlap & 1u << i)
            g_string_append_printf(words, "%s\"%s\"", words->len > 1 ? "," : "",
                                   orr_word(&spec_words_overlap, i));
    g_string_append_c(words, ']');
    note(completion, "execution.overlap", words->str);
}

static void complete_execution(const Completion *completion, Spec *spec)
{
    SpecExecution *execution = &spec->execution;
    const SpecFramework *framework = &execution->framework;
    if ((int)execution->attention == SPEC_UNSET) {
        execution->attention = spec_default_attention(spec);
        note(completion, "execution.attention", spec_word(&spec_words_attention, (int)execution->attention));
    }
    if ((int)execution->overlap == SPEC_UNSET) {
        execution->overlap = spec_default_overlap(spec);
        note_overlap(completion, execution->overlap);
    }
    if (execution->compiled == SPEC_AUTO)
        execution->compiled = framework->kernels.compiler || framework->defaults.compiled;
    if (execution->compiled == SPEC_UNSET) {
        execution->compiled = framework->defaults.compiled;
        note(completion, "execution.compiled", execution->compiled ? "true" : "false");
    }
    if (framework->data_parallel.reductions == SPEC_REDUCTIONS_AT_END)
        execution->overlap &= ~(unsigned)SPEC_OVERLAP_GRAD_REDUCE;
}

bool spec_complete_noted(Spec *spec, const char *where, GPtrArray *notes, GError **error)
{
    const Completion completion = {where, notes, error};
    int *encoder = &spec->training.encoder_sequence_length;
    if (spec->model.encoder_layers > 0)
        set_int(&completion, "training.encoder_sequence_length", encoder, spec->training.sequence_length);
    else if (*encoder > 0)
        return fail(
            &completion,
            "training.encoder_sequence_length: %d, but the model has no encoder; leave it out, or give "
            "model.encoder_layers",
            *encoder);
    else
        *encoder = 0;
    spec_complete_task(spec);
    if (!spec_complete_model(&spec->model, MAX(spec->training.sequence_length, *encoder),
                             spec->execution.framework.defaults.dropout_frac, where, notes, error))
        return false;
    if (!complete_cluster(&completion, &spec->cluster))
        return false;
    complete_schedule(&completion, &spec->parallel);
    if (!complete_data(&completion, spec))
        return false;
    complete_expert_tensor(spec);
    complete_servers(&completion, spec);
    complete_zero(&completion, spec);
    complete_sequence_parallel(&completion, spec);
    if ((int)spec->parallel.moe_dispatcher == SPEC_UNSET) {
        spec->parallel.moe_dispatcher = spec->execution.framework.defaults.moe_dispatcher;
        if (spec->model.moe.experts > 0)
            note(&completion, "parallel.moe_dispatcher",
                 spec_word(&spec_words_dispatcher, (int)spec->parallel.moe_dispatcher));
    }
    if ((int)spec->parallel.context_mode == SPEC_UNSET)
        spec->parallel.context_mode = spec->execution.framework.defaults.context_mode;
    complete_execution(&completion, spec);
    complete_training(&completion, spec);
    spec_offload_complete(&spec->offload, spec->model.layers);
    return spec_complete_run_length(&spec->training, where, error);
}

bool spec_complete(Spec *spec, const char *where, GError **error)
{
    return spec_complete_noted(spec, where, NULL, error);
}
