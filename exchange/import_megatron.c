/* exchange/import_megatron.c - Megatron-LM flags and Megatron-Bridge overrides into a scenario. */
#include <stdio.h>
#include <string.h>

#include "exchange/import_megatron.h"

/* --- model --- */

static void take_biases(const MegatronNames *names)
{
    bool linear = true, qkv = false;
    if (names->bridge ? !megatron_switch(names, NULL, "model.add_bias_linear", &linear)
                      : !megatron_switch(names, "disable-bias-linear", NULL, &linear))
        return;
    if (!names->bridge)
        linear = !linear;
    megatron_switch(names, "add-qkv-bias", "model.add_qkv_bias", &qkv);
    exchange_import_native(names->import, "model.biases", linear ? "all" : qkv ? "qkv" : "none");
}

/* "([0]*3+[1]*58)", "[1]*48" or "[0,1,1]": how many layers at the beginning are dense, where all others have experts; else -1. */
static int dense_at_first(const char *text)
{
    enum { MOST = 100000 };
    int dense = 0, count = 0;
    bool sparse = false;
    for (const char *at = text + (text[0] == '('); *at != '\0' && strcmp(at, ")") != 0;) {
        const char *open = at;
        gint64 times = 1;
        char *end = NULL;
        const gsize inside = strcspn(open, "]");
        if (*open != '[' || open[inside] == '\0')
            return -1;
        at = open + inside + 1;
        if (*at == '*') {
            times = g_ascii_strtoll(at + 1, &end, 10);
            at = end;
        }
        for (gint64 i = 0; i < times && times <= MOST; i++)
            for (gsize c = 1; c < inside; c++) {
                if (strchr("01, ", open[c]) == NULL || (open[c] == '0' && sparse) || count > MOST)
                    return -1;
                sparse = sparse || open[c] == '1';
                dense += open[c] == '0';
                count += open[c] == '0' || open[c] == '1';
            }
        at += *at == '+';
    }
    return count > 0 ? dense : -1;
}

static void take_layer_freq(const MegatronNames *names)
{
    const char *text = megatron_text(names, "moe-layer-freq", "model.moe_layer_freq");
    int step = 0, end = 0;
    if (text == NULL)
        return;
    const int dense = dense_at_first(text);
    if (dense >= 0) {
        exchange_import_native_int(names->import, "model.moe.dense_layers", dense);
        exchange_import_native_int(names->import, "model.moe.layer_step", 1);
    } else if (sscanf(text, "%5d%n", &step, &end) == 1 && text[end] == '\0' && step > 0) {
        exchange_import_native_int(names->import, "model.moe.dense_layers", 0);
        exchange_import_native_int(names->import, "model.moe.layer_step", step);
    } else {
        exchange_import_warn(
            names->import, "moe-layer-freq: \"%.60s\" is neither a number nor ([0]*A+[1]*B); ignored", text);
    }
}

static void take_number(const MegatronNames *names, const char *flag, const char *bridge, const char *key)
{
    const char *text = megatron_text(names, flag, bridge);
    char *end = NULL;
    if (text == NULL || strcmp(text, "null") == 0)
        return;
    g_ascii_strtod(text, &end);
    if (end != text && *end == '\0')
        exchange_import_native(names->import, key, text);
    else
        exchange_import_warn(names->import, "%s: \"%s\" is not a number; ignored", flag, text);
}

static void take_experts(const MegatronNames *names, bool had_model)
{
    const char *type = megatron_text(names, "moe-token-dispatcher-type", "model.moe_token_dispatcher_type");
    const char *backend =
        megatron_text(names, "moe-flex-dispatcher-backend", "model.moe_flex_dispatcher_backend");
    int shared = 0;
    if (!names->bridge) /* before --moe-flex-dispatcher-backend; without "flex" it is nothing */
        exchange_import_bool(names->import, "moe-enable-deepep", false);
    take_layer_freq(names);
    take_number(names, "moe-expert-capacity-factor", "model.moe_expert_capacity_factor",
                "model.moe.capacity_factor");
    if (exchange_import_int(names->import,
                            names->bridge ? "model.moe_shared_expert_intermediate_size"
                                          : "moe-shared-expert-intermediate-size",
                            &shared)) {
        exchange_import_native_int(names->import, "model.moe.shared_expert_ffn_hidden", shared);
        if (!had_model)
            exchange_import_implied(names->import, "model.moe.shared_experts", shared > 0 ? "1" : "0");
    }
    if (type == NULL)
        return;
    if (strcmp(type, "flex") == 0)
        exchange_import_native(names->import, "parallel.moe_dispatcher",
                               backend != NULL ? backend : "deepep");
    else if (exchange_import_at(names->import, "parallel.moe_dispatcher") == NULL)
        exchange_import_native(names->import, "parallel.moe_dispatcher", "alltoall");
}

/* A position limit of just the sequence is Megatron's demand; a model that is already there knows its own. */
static bool at_least_sequence(const MegatronNames *names, const MegatronInt *row)
{
    int limit = 0, sequence = 0;
    return strcmp(row->key, "model.max_positions") == 0 && !names->bridge &&
           exchange_import_int(names->import, row->flag, &limit) &&
           exchange_import_int(names->import, "seq-length", &sequence) && limit == sequence;
}

/* What Megatron-DeepSpeed has besides, and names that older launches use. */
static void take_older_model(const MegatronNames *names)
{
    const char *position = exchange_import_text(names->import, "position-embedding-type");
    if (names->bridge)
        return;
    if (position != NULL && strcmp(position, "alibi") == 0)
        exchange_import_native(names->import, "model.position", "alibi");
    else if (exchange_import_bool(names->import, "use-rotary-position-embeddings", false) && position == NULL)
        exchange_import_native(names->import, "model.position", "rope");
    exchange_import_bool(names->import, "no-position-embedding", false); /* what rope means */
    if (exchange_import_bool(names->import, "embed-layernorm", false))
        exchange_import_native(names->import, "model.embedding_norm", "true");
    exchange_import_move(names->import, "model-parallel-size", "parallel.tensor");
    exchange_import_move(names->import, "pad-vocab-size-to", "model.vocab");
    exchange_import_move(names->import, "padded-vocab-size", "model.vocab");
}

/* Other names of Pai-Megatron-Patch, and what Megatron takes where a launch says nothing.
 * Source: megatron/core/transformer/transformer_config.py, MLATransformerConfig */
static void take_latent_attention(const MegatronNames *names)
{
    static const struct {
        const char *flag, *key, *fallback;
    } rows[] = {{NULL, "model.mla.kv_lora_rank", "512"},
                {"qk-nope-head-dim", "model.mla.qk_nope_head_dim", "128"},
                {"qk-rope-head-dim", "model.mla.qk_rope_head_dim", "64"},
                {NULL, "model.mla.v_head_dim", "128"}};
    bool latent = false;
    if (!megatron_switch(names, "multi-latent-attention", "model.multi_latent_attention", &latent) || !latent)
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(rows) && !names->bridge; i++) {
        if (rows[i].flag != NULL)
            exchange_import_move(names->import, rows[i].flag, rows[i].key);
        if (exchange_import_at(names->import, rows[i].key) == NULL)
            exchange_import_implied(names->import, rows[i].key, rows[i].fallback);
    }
}

/* A model that is there as a whole, not fields that --set gave it. */
static bool has_model(const MegatronNames *names)
{
    static const char *const marks[] = {"model.preset", "model.layers", "model.hidden", "model.name"};
    const OrrJson *model = exchange_import_at(names->import, "model");
    bool has = model != NULL && orr_json_type(model) != ORR_JSON_OBJECT;
    for (gsize i = 0; i < G_N_ELEMENTS(marks); i++)
        has = has || exchange_import_at(names->import, marks[i]) != NULL;
    return has;
}

static void take_model(const MegatronNames *names)
{
    const bool had_model = has_model(names);
    const bool shape = megatron_text(names, "num-layers", "model.num_layers") != NULL;
    if (!had_model && shape) {
        g_autofree char *name = g_path_get_basename(names->import->path);
        g_autofree char *quoted = exchange_json_text(name);
        exchange_import_implied(names->import, "model.name", quoted);
    }
    for (int i = 0; i < megatron_int_count; i++) {
        const MegatronInt *row = &megatron_ints[i];
        const char *key = names->bridge ? row->bridge : row->flag;
        if (key != NULL && !(had_model && at_least_sequence(names, row)))
            exchange_import_move(names->import, key, row->key);
    }
    for (int i = 0; shape && i < megatron_switch_count; i++) {
        const MegatronSwitch *row = &megatron_switches[i];
        bool value = false;
        if (g_str_has_prefix(row->key, "model.") && megatron_switch(names, row->flag, row->bridge, &value))
            exchange_import_native_bool(names->import, row->key,
                                        value != (names->bridge ? row->bridge_inverse : row->flag_inverse));
    }
    const bool given = megatron_text(names, "ffn-hidden-size", NULL) != NULL;
    const int hidden = exchange_import_doc_int(names->import, "model.hidden", 0);
    if (shape && !names->bridge && !given && !had_model && hidden > 0 &&
        exchange_import_bool(names->import, "swiglu", false)) {
        g_autofree char *width = g_strdup_printf("%d", (int)(hidden * 8.0 / 3.0 / 64.0) * 64);
        exchange_import_implied(names->import, "model.ffn_hidden", width); /* Megatron-LM's own default */
    }
    megatron_text(names, "group-query-attention", NULL);
    take_latent_attention(names);
    megatron_text(names, "moe-grouped-gemm", "model.moe_grouped_gemm");
    megatron_text(names, "attention-dropout", "model.attention_dropout");
    take_number(names, "hidden-dropout", "model.hidden_dropout", "model.dropout_frac");
    megatron_word(names, "normalization", "model.normalization", megatron_norms,
                  (int)G_N_ELEMENTS(megatron_norms), &spec_words_norm, "model.norm");
    if (g_strcmp0(megatron_text(names, "position-embedding-type", NULL), "alibi") != 0)
        megatron_word(names, "position-embedding-type", "model.position_embedding_type", megatron_positions,
                      (int)G_N_ELEMENTS(megatron_positions), &spec_words_position, "model.position");
    take_older_model(names);
    if (shape)
        take_biases(names);
    take_experts(names, had_model);
}

/* --- machines --- */

/* Nodes and GPUs that torchrun is told. A preset's node stays as it is. */
static void take_launcher(const MegatronNames *names)
{
    static const char *const node_names[] = {"nnodes", "num-nodes", "num_nodes"};
    static const char *const gpu_names[] = {"nproc_per_node", "nproc-per-node", "num_gpus"};
    const OrrJson *cluster = exchange_import_at(names->import, "cluster");
    const bool preset = cluster != NULL && (orr_json_type(cluster) == ORR_JSON_TEXT ||
                                            exchange_import_at(names->import, "cluster.preset") != NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(node_names); i++) {
        const char *nodes = exchange_import_text(names->import, node_names[i]);
        const char *gpus = exchange_import_text(names->import, gpu_names[i]);
        if (nodes != NULL && nodes[0] != '$' && strchr(nodes, ':') == NULL)
            exchange_import_move(names->import, node_names[i], "cluster.nodes");
        if (gpus != NULL && gpus[0] != '$' && !preset && strcmp(gpus, "gpu") != 0 &&
            strcmp(gpus, "auto") != 0)
            exchange_import_move(names->import, gpu_names[i], "cluster.gpus_per_node");
    }
}

/* --- split --- */

/* Stages of "Et*3|t*4|(tt|)*2,t*2L" as a JSON list of layers; returns how many, 0 when it cannot be read. */
static int read_layout(const char *layout, GString *list)
{
    g_autoptr(GString) flat = g_string_new(NULL);
    for (const char *c = layout; *c != '\0'; c++) {
        const char *unit = c;
        gsize length = 1;
        if (*c == ',' || *c == '\\' || g_ascii_isspace(*c)) /* often escaped for a shell */
            continue;
        if (*c == '(') {
            const char *close = strchr(c, ')');
            if (close == NULL)
                return 0;
            unit = c + 1;
            length = (gsize)(close - unit);
            c = close;
        }
        long times = 1;
        if (c[1] == '\\' && c[2] == '*')
            c++;
        if (c[1] == '*') {
            char *end = NULL;
            times = strtol(c + 2, &end, 10);
            if (end == c + 2 || times < 0 || times > SPEC_MAX_STAGES)
                return 0;
            c = end - 1;
        }
        for (long i = 0; i < times; i++)
            g_string_append_len(flat, unit, (gssize)length);
        if (flat->len > 1 << 16)
            return 0;
    }
    int stages = 1, layers = 0;
    g_string_assign(list, "[");
    for (const char *c = flat->str; *c != '\0'; c++) {
        if (*c == 't')
            layers++;
        if (*c == '|') {
            g_string_append_printf(list, "%d,", layers);
            layers = 0;
            stages++;
        }
    }
    g_string_append_printf(list, "%d]", layers);
    return stages;
}

/* Virtual stages that the file names in one of three ways; 1: none. */
static int virtual_stages(const MegatronNames *names, int pipeline)
{
    const char *layout =
        megatron_text(names, "pipeline-model-parallel-layout", "model.pipeline_model_parallel_layout");
    int chunks = 1, layers = 0;
    exchange_import_int(names->import,
                        names->bridge ? "model.virtual_pipeline_model_parallel_size"
                                      : "num-virtual-stages-per-pipeline-rank",
                        &chunks);
    if (!names->bridge &&
        exchange_import_int(names->import, "num-layers-per-virtual-pipeline-stage", &layers) && layers > 0 &&
        pipeline > 0)
        chunks = exchange_import_layers(names->import) / pipeline / layers;
    if (layout != NULL && strcmp(layout, "null") != 0) {
        g_autoptr(GString) list = g_string_new(NULL);
        const int stages = read_layout(layout, list);
        if (stages > 0 && pipeline > 0 && stages % pipeline == 0) {
            exchange_import_native(names->import, "parallel.stage_layers", list->str);
            chunks = stages / pipeline;
        } else {
            exchange_import_warn(names->import,
                                 "pipeline-model-parallel-layout: \"%.60s\" does not make stages for %d "
                                 "pipeline ranks; ignored",
                                 layout, pipeline);
        }
    }
    return MAX(1, chunks);
}

/* Megatron-LM takes no notice of it where stages are not interleaved. */
static void take_group(const MegatronNames *names, bool interleaved)
{
    int group = 0;
    if (exchange_import_int(names->import,
                            names->bridge ? "model.microbatch_group_size_per_vp_stage"
                                          : "microbatch-group-size-per-virtual-pipeline-stage",
                            &group) &&
        group > 0 && interleaved)
        exchange_import_native_int(names->import, "parallel.microbatch_group", group);
}

static void take_pipeline(const MegatronNames *names)
{
    const bool given =
        megatron_text(names, "pipeline-model-parallel-size", "model.pipeline_model_parallel_size") != NULL;
    const int pipeline = exchange_import_doc_int(names->import, "parallel.pipeline", 1);
    bool value = false;
    const int chunks = virtual_stages(names, pipeline);
    if (given && pipeline > 1) {
        exchange_import_native_int(names->import, "parallel.virtual_stages", chunks);
        exchange_import_native(names->import, "parallel.schedule", chunks > 1 ? "interleaved" : "1f1b");
        take_group(names, chunks > 1);
    }
    for (int i = 0; pipeline > 1 && i < megatron_switch_count; i++) {
        const MegatronSwitch *row = &megatron_switches[i];
        if (g_str_has_prefix(row->key, "parallel.") &&
            megatron_text(names, "pipeline-model-parallel-layout", "model.pipeline_model_parallel_layout") ==
                NULL &&
            megatron_switch(names, row->flag, row->bridge, &value))
            exchange_import_native_bool(names->import, row->key, value);
    }
    const bool told = megatron_text(names, "no-overlap-p2p-communication", "model.overlap_p2p_comm") != NULL;
    if (chunks > 1 && (told || !names->bridge)) {
        megatron_switch(names, "no-overlap-p2p-communication", "model.overlap_p2p_comm", &value);
        exchange_import_overlap(names->import, "pipeline", names->bridge ? value : !value);
    }
}

/* A launch that is silent about it slices experts as everything else. */
static void take_expert_tensor(const MegatronNames *names)
{
    g_autofree char *tensor =
        g_strdup_printf("%d", exchange_import_doc_int(names->import, "parallel.tensor", 1));
    if (exchange_import_doc_int(names->import, "parallel.expert", 1) > 1)
        exchange_import_implied(names->import, "parallel.expert_tensor", tensor);
}

/* Copies of the sharded state: the group is what the data-parallel ranks leave of each. */
static void take_instances(const MegatronNames *names)
{
    const char *key =
        names->bridge ? "ddp.num_distributed_optimizer_instances" : "num-distributed-optimizer-instances";
    int instances = 1;
    if (!exchange_import_int(names->import, key, &instances) || instances <= 1 ||
        exchange_import_at(names->import, "parallel.zero_group_gpus") != NULL)
        return;
    const int data = exchange_import_data(names->import);
    if (data > 0 && data % instances == 0)
        exchange_import_native_int(names->import, "parallel.zero_group_gpus", data / instances);
    else
        exchange_import_warn(
            names->import,
            "%s: %d: the data-parallel degree is not known; give --set parallel.zero_group_gpus=N", key,
            instances);
}

/* The optimizer on the host; that its copies overlap says nothing where there are none. */
static void take_host_optimizer(const MegatronNames *names)
{
    bool value = false;
    const bool overlaps = megatron_switch(names, "overlap-cpu-optimizer-d2h-h2d",
                                          "optimizer.overlap_cpu_optimizer_d2h_h2d", &value) &&
                          value;
    if (!megatron_switch(names, "optimizer-cpu-offload", "optimizer.optimizer_cpu_offload", &value) || !value)
        return;
    const char *fraction =
        megatron_text(names, "optimizer-offload-fraction", "optimizer.optimizer_offload_fraction");
    char *end = NULL;
    const double ratio = fraction != NULL ? g_ascii_strtod(fraction, &end) : 1;
    exchange_import_native(names->import, "offload.scheme", ratio < 1 ? "twin-flow" : "zero-offload");
    if (fraction != NULL && end != fraction && *end == '\0')
        exchange_import_native(names->import, "offload.ratio", fraction);
    if (overlaps)
        exchange_import_native_bool(names->import, "offload.overlap_update", true);
}

static void take_data(const MegatronNames *names)
{
    const struct {
        const char *flag, *bridge, *word;
    } overlaps[] = {
        {"overlap-grad-reduce", "ddp.overlap_grad_reduce", "grad_reduce"},
        {"overlap-param-gather", "ddp.overlap_param_gather", "param_gather"},
        {"tp-comm-overlap", "comm_overlap.tp_comm_overlap", "tensor"},
        {"overlap-moe-expert-parallel-comm", "comm_overlap.overlap_moe_expert_parallel_comm", "expert"},
    };
    const char *strategy =
        megatron_text(names, "data-parallel-sharding-strategy", "ddp.data_parallel_sharding_strategy");
    bool value = false, fsdp = false, distributed = false;
    /* One flag for kinds of which some cannot: the recipe gives it to those that can. */
    const bool mixed = exchange_import_at(names->import, "cluster.groups") != NULL;
    const int tensor = exchange_import_doc_int(names->import, "parallel.tensor", 1),
              experts = exchange_import_doc_int(names->import, "parallel.expert", 1);
    if (megatron_switch(names, "sequence-parallel", "model.sequence_parallel", &value) && tensor > 1)
        exchange_import_native_bool(names->import, "parallel.sequence_parallel", value);
    megatron_switch(names, "use-megatron-fsdp", "ddp.use_megatron_fsdp", &fsdp);
    if (megatron_switch(names, "use-distributed-optimizer", "ddp.use_distributed_optimizer", &distributed)) {
        const int zero = fsdp && strategy != NULL && strcmp(strategy, "optim_grads_params") == 0 ? 3
                         : fsdp && strategy != NULL && strcmp(strategy, "optim_grads") == 0      ? 2
                         : distributed                                                           ? 1
                                                                                                 : 0;
        exchange_import_native_int(names->import, "parallel.zero", zero);
        for (gsize i = 0; i < G_N_ELEMENTS(overlaps); i++) {
            const bool idle = (zero == 0 && strcmp(overlaps[i].word, "param_gather") == 0) ||
                              ((tensor <= 1 || mixed) && strcmp(overlaps[i].word, "tensor") == 0) ||
                              (experts <= 1 && strcmp(overlaps[i].word, "expert") == 0);
            if (megatron_switch(names, overlaps[i].flag, overlaps[i].bridge, &value) && !idle)
                exchange_import_overlap(names->import, overlaps[i].word, value);
        }
    }
    if (!names->bridge && exchange_import_bool(names->import, "deepspeed", false)) {
        int stage = 0;
        if (exchange_import_int(names->import, "zero-stage",
                                &stage)) /* its bf16 optimizer shards by itself */
            exchange_import_native_int(names->import, "parallel.zero",
                                       exchange_import_bool(names->import, "bf16", false) ? MAX(1, stage)
                                                                                          : stage);
        exchange_import_implied(names->import, "execution.framework", "megatron-deepspeed");
    }
    if (megatron_switch(names, "use-tp-pp-dp-mapping", "dist.use_tp_pp_dp_mapping", &value) && value)
        exchange_import_native(names->import, "parallel.order", "tp-cp-ep-pp-dp");
    megatron_text(names, "cpu-offloading", "model.cpu_offloading"); /* the number of layers says it too */
    take_host_optimizer(names);
    megatron_text(names, "ckpt-format", "checkpoint.ckpt_format");
    megatron_text(names, "no-gradient-accumulation-fusion",
                  "model.gradient_accumulation_fusion"); /* take_framework */
    take_instances(names);
}

/* A tenth of the hidden states and of the attention's weights are dropped where a launch says nothing: a script that wants none
 * says 0. Source: megatron/training/arguments.py, transformer_config.py */
static void take_silent_dropout(const MegatronNames *names)
{
    if (names->bridge || megatron_text(names, "num-layers", NULL) == NULL ||
        exchange_import_at(names->import, "model.dropout_frac") != NULL)
        return;
    exchange_import_native(names->import, "model.dropout_frac", "0.1");
    if (names->import->loss != NULL)
        exchange_loss_default(names->import->loss, "dropout 0.1, as --hidden-dropout is not given; for none "
                                                   "--hidden-dropout 0 --attention-dropout 0");
}

static void import_named(ExchangeImport *import, bool bridge)
{
    const MegatronNames names = {import, bridge};
    take_launcher(&names);
    take_model(&names);
    take_pipeline(&names);
    take_expert_tensor(&names);
    take_silent_dropout(&names);
    megatron_take_vocabulary(&names);
    take_data(&names);
    megatron_take_training(&names);
}

void exchange_import_megatron(ExchangeImport *import)
{
    import_named(import, false);
}

void exchange_import_megatron_bridge(ExchangeImport *import)
{
    const char *preset =
        exchange_import_text(import, "orrery.preset"); /* of a class: exchange/import_dump.h */
    if (preset != NULL && exchange_import_at(import, "model") == NULL) {
        g_autofree char *quoted = exchange_json_text(preset);
        exchange_import_native(import, "model.preset", quoted);
    }
    import_named(import, true);
    megatron_take_adapter(import);
}
