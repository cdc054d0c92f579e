/* exchange/import_deepspeed.c - DeepSpeed's ds_config.json into a scenario. */
#include <string.h>

#include "exchange/import.h"

/* "auto" is filled in by the trainer that reads the file, from arguments of its own. */
static void warn_auto(const ExchangeImport *import)
{
    static const char *const keys[][2] = {
        {"train_batch_size", "training.global_batch"},
        {"train_micro_batch_size_per_gpu", "training.micro_batch"},
        {"fp16.enabled", "training.precision"},
        {"bf16.enabled", "training.precision"},
    };
    g_autoptr(GString) sets = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        const Setting *setting = settings_find(import->in, keys[i][0]);
        if (setting != NULL && g_strcmp0(setting->value, "auto") == 0 &&
            strstr(sets->str, keys[i][1]) == NULL)
            g_string_append_printf(sets, " --set %s=...", keys[i][1]);
    }
    if (sets->len > 0)
        exchange_import_warn(import,
                             "\"auto\" is filled in by the trainer; what it takes is not said here, give%s",
                             sets->str);
}

/* "auto" is for the Trainer of Hugging Face to fill in, so the model is one of theirs. */
static bool filled_by_trainer(const Settings *settings)
{
    for (guint i = 0; i < settings->list->len; i++)
        if (g_strcmp0(g_array_index(settings->list, Setting, i).value, "auto") == 0)
            return true;
    return false;
}

static const char *tier_of(const ExchangeImport *import, const char *part)
{
    g_autofree char *key = g_strconcat("zero_optimization.", part, ".device", NULL);
    const char *device = exchange_import_text(import, key);
    if (device == NULL || strcmp(device, "none") == 0)
        return NULL;
    if (strcmp(device, "cpu") == 0)
        return "host";
    if (strcmp(device, "nvme") == 0)
        return "nvme";
    exchange_import_warn(import, "%s: \"%s\" is not one of cpu, nvme and none; states stay on the GPU", key,
                         device);
    return NULL;
}

/* How its buffers are cut and its disks are read has no field: the rates of cluster.host stand for that. */
static void read_tuning(const ExchangeImport *import)
{
    static const char *const keys[] = {"zero_optimization.offload_optimizer.buffer_count",
                                       "zero_optimization.offload_optimizer.fast_init",
                                       "zero_optimization.offload_optimizer.nvme_path",
                                       "zero_optimization.offload_param.buffer_count",
                                       "zero_optimization.offload_param.buffer_size",
                                       "zero_optimization.offload_param.max_in_cpu",
                                       "zero_optimization.offload_param.nvme_path",
                                       "zero_optimization.offload_param.pin_memory",
                                       "aio.single_submit",
                                       "aio.use_gds"};
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++)
        exchange_import_text(import, keys[i]);
}

static void take_number(ExchangeImport *import, const char *from, const char *key)
{
    const char *text = exchange_import_text(import, from);
    char *end = NULL;
    const double value = text != NULL ? g_ascii_strtod(text, &end) : 0;
    if (text != NULL && end != text && *end == '\0' && value > 0)
        exchange_import_native(import, key, text);
}

/* A block that names some of the keys has DeepSpeed's defaults of the others; without disks nothing of it counts.
 * Source: [DeepSpeedAio] */
static void take_aio(ExchangeImport *import, bool disks)
{
    static const char *const keys[] = {"aio.block_size", "aio.queue_depth", "aio.intra_op_parallelism",
                                       "aio.thread_count", "aio.overlap_events"};
    bool any = false;
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++)
        any = exchange_import_text(import, keys[i]) != NULL || any;
    if (!any)
        return;
    if (!disks) {
        exchange_import_harmless(import, keys, G_N_ELEMENTS(keys));
        return;
    }
    exchange_import_native(import, "offload.aio.block_bytes", "1048576");
    take_number(import, "aio.block_size", "offload.aio.block_bytes");
    take_number(import, "aio.queue_depth", "offload.aio.queue_depth");
    take_number(import, "aio.thread_count", "offload.aio.threads");
    take_number(import, "aio.intra_op_parallelism", "offload.aio.threads");
    exchange_import_native_bool(import, "offload.aio.overlap_events",
                                exchange_import_bool(import, "aio.overlap_events", true));
}

/* States that do not go to the disks have no way there to be beside an update. */
static void take_pipelines(ExchangeImport *import, bool disks)
{
    static const char *const keys[][2] = {
        {"zero_optimization.offload_optimizer.pipeline_read", "offload.aio.pipeline_read"},
        {"zero_optimization.offload_optimizer.pipeline_write", "offload.aio.pipeline_write"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++)
        if (exchange_import_bool(import, keys[i][0], false) && disks)
            exchange_import_native_bool(import, keys[i][1], true);
}

static void take_offload(ExchangeImport *import)
{
    const char *states = tier_of(import, "offload_optimizer"), *weights = tier_of(import, "offload_param");
    const bool sharded = exchange_import_doc_int(import, "parallel.zero", 0) == 3;
    const bool disks = g_strcmp0(states, "nvme") == 0 || g_strcmp0(weights, "nvme") == 0;
    const char *ratio = exchange_import_text(import, "zero_optimization.offload_optimizer.ratio");
    const bool pinned = exchange_import_bool(import, "zero_optimization.offload_optimizer.pin_memory", false);
    read_tuning(import);
    if (states == NULL && weights == NULL) {
        take_aio(import, false);
        return;
    }
    exchange_import_native(import, "offload.scheme",
                           disks                              ? "zero-infinity"
                           : weights == NULL && ratio != NULL ? "twin-flow"
                           : sharded                          ? "zero3-offload"
                                                              : "zero-offload");
    exchange_import_native(import, "offload.optimizer.tier", states != NULL ? states : "gpu");
    exchange_import_native(import, "offload.weights.tier", weights != NULL ? weights : "gpu");
    exchange_import_native_bool(import, "offload.pinned", pinned);
    take_number(import, "zero_optimization.offload_optimizer.ratio", "offload.ratio");
    take_number(import, "zero_optimization.sub_group_size", "offload.subgroup_parameters");
    take_pipelines(import, g_strcmp0(states, "nvme") == 0);
    take_aio(import, disks);
}

/* The script calls checkpoint(): a block that divides inputs or sends them to the host says that it does.
 * Source: [DeepSpeedCheckpoints] */
static void take_checkpoints(ExchangeImport *import)
{
    static const char *const run_only[] = {"activation_checkpointing.contiguous_memory_optimization",
                                           "activation_checkpointing.number_checkpoints",
                                           "activation_checkpointing.synchronize_checkpoint_boundary",
                                           "activation_checkpointing.profile"};
    const bool parts = exchange_import_bool(import, "activation_checkpointing.partition_activations", false);
    const bool host = exchange_import_bool(import, "activation_checkpointing.cpu_checkpointing", false);
    exchange_import_harmless(import, run_only, G_N_ELEMENTS(run_only));
    if (parts)
        exchange_import_native(import, "training.recompute", "{\"mode\":\"full\",\"partitioned\":true}");
    else if (host)
        exchange_import_native(import, "training.recompute", "full");
    if (host)
        exchange_import_native(import, "offload.activations.tier", "host");
}

/* train_batch_size = train_micro_batch_size_per_gpu x gradient_accumulation_steps x data: two of the first three
 * give the third where the data-parallel degree is known. */
static void check_steps(const ExchangeImport *import, int batch, int micro, int steps, int data)
{
    const int64_t rank = (int64_t)micro * steps;
    if (rank <= 0 || batch <= 0 || (data <= 0 && batch % rank == 0) || (data > 0 && batch == rank * data))
        return;
    g_autofree char *ranks = data > 0 ? g_strdup_printf("%d", data) : g_strdup("any number of");
    exchange_import_warn(import,
                         "gradient_accumulation_steps: %d x %d sequences x %s data-parallel ranks are not "
                         "train_batch_size %d: DeepSpeed refuses that; the batch is taken",
                         steps, micro, ranks, batch);
}

static void take_batch(ExchangeImport *import)
{
    int batch = 0, micro = 0, steps = 1;
    const int data = exchange_import_data(import);
    warn_auto(import);
    const bool has_batch = exchange_import_int(import, "train_batch_size", &batch);
    const bool has_micro = exchange_import_int(import, "train_micro_batch_size_per_gpu", &micro);
    const bool has_steps = exchange_import_int(import, "gradient_accumulation_steps", &steps);
    if (has_micro)
        exchange_import_native_int(import, "training.micro_batch", micro);
    if (has_batch) {
        exchange_import_native_int(import, "training.global_batch", batch);
        if (has_micro && has_steps)
            check_steps(import, batch, micro, steps, data);
        if (!has_micro && has_steps && data > 0 && steps > 0 && batch % ((int64_t)steps * data) == 0)
            exchange_import_native_int(import, "training.micro_batch",
                                       (int)(batch / ((int64_t)steps * data)));
    } else if (has_micro && data > 0 && (double)micro * steps * data <= 1e9) {
        exchange_import_native_int(import, "training.global_batch", micro * steps * data);
    } else if (has_micro) {
        exchange_import_warn(import, "train_batch_size: missing, and parallel.data is not known; give "
                                     "--set cluster.preset=NAME and cluster.nodes=N, or "
                                     "training.global_batch=N");
    }
}

static void take_optimizer(ExchangeImport *import)
{
    static const char *const names[][2] = {
        {"Adam", "adam"}, {"AdamW", "adam"}, {"FusedAdam", "adam"}, {"DeepSpeedCPUAdam", "adam"},
        {"SGD", "sgd"},   {"Lion", "lion"},  {"Muon", "muon"}};
    const char *type = exchange_import_text(import, "optimizer.type");
    if (type == NULL)
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        if (g_ascii_strcasecmp(type, names[i][0]) == 0) {
            exchange_import_native(import, "training.optimizer", names[i][1]);
            return;
        }
    exchange_import_warn(import, "optimizer.type: \"%s\" has no equivalent in a scenario; ignored", type);
}

/* Whether the trainer fills in what decides: 16 bits are then no statement of the file, and neither are 32. */
static bool fills_precision(const ExchangeImport *import)
{
    static const char *const keys[] = {"fp16.enabled", "bf16.enabled"};
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        const Setting *setting = settings_find(import->in, keys[i]);
        if (setting != NULL && g_strcmp0(setting->value, "auto") == 0)
            return true;
    }
    return false;
}

static void take_precision(ExchangeImport *import)
{
    const OrrJson *now = exchange_import_at(import, "training.precision");
    const char *word = now != NULL && orr_json_type(now) == ORR_JSON_TEXT ? orr_json_text(now) : "";
    const bool narrow = g_str_has_prefix(word, "fp8") || strcmp(word, "mxfp8") == 0 ||
                        strcmp(word, "nvfp4") == 0; /* the script's, above bf16 */
    const bool told = exchange_import_text(import, "fp16.enabled") != NULL ||
                      exchange_import_text(import, "bf16.enabled") != NULL;
    const bool fp16 = exchange_import_bool(import, "fp16.enabled", false);
    const bool bf16 = exchange_import_bool(import, "bf16.enabled", false);
    if (!told || (!bf16 && !fp16 && fills_precision(import)) || (bf16 && narrow) ||
        (!bf16 && !fp16 && strcmp(word, "tf32") == 0))
        return;
    exchange_import_native(import, "training.precision", bf16 ? "bf16" : fp16 ? "fp16" : "fp32");
}

/* DeepSpeed counts elements; the profile has one size, in bytes, for both ways. */
static void take_buckets(ExchangeImport *import)
{
    int reduce = 0, gather = 0;
    const OrrJson *precision = exchange_import_at(import, "training.precision");
    const bool whole =
        precision != NULL && orr_json_type(precision) == ORR_JSON_TEXT &&
        (strcmp(orr_json_text(precision), "fp32") == 0 || strcmp(orr_json_text(precision), "tf32") == 0);
    const bool reduces = exchange_import_int(import, "zero_optimization.reduce_bucket_size", &reduce);
    const bool gathers = exchange_import_int(import, "zero_optimization.allgather_bucket_size", &gather);
    if (!reduces && !gathers)
        return;
    if (reduces && gathers && reduce != gather)
        exchange_import_warn(import,
                             "zero_optimization.allgather_bucket_size: %d: a scenario has one bucket size; "
                             "reduce_bucket_size's is taken",
                             gather);
    const double bytes = (double)(reduces ? reduce : gather) * (whole ? 4 : 2);
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_dtostr(text, sizeof text, bytes);
    exchange_import_native(import, "execution.framework.data_parallel.bucket_bytes", text);
}

static void take_zero(ExchangeImport *import)
{
    const struct {
        const char *name, *key;
    } switches[] = {{"zero_optimization.zero_quantized_weights", "parallel.quantized_weight_gather"},
                    {"zero_optimization.zero_quantized_gradients", "parallel.quantized_gradient_reduce"}};
    int partition = 0;
    exchange_import_move(import, "zero_optimization.stage", "parallel.zero");
    exchange_import_move(import, "zero_optimization.mics_shard_size", "parallel.zero_group_gpus");
    if (exchange_import_int(import, "zero_optimization.zero_hpz_partition_size", &partition)) {
        const int node = exchange_import_doc_int(import, "cluster.gpus_per_node", partition);
        exchange_import_native_bool(import, "parallel.secondary_weight_shard", partition > 1);
        if (partition > 1 && partition != node)
            exchange_import_warn(
                import,
                "zero_optimization.zero_hpz_partition_size: %d: a scenario's second shard is a "
                "node of %d GPUs",
                partition, node);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(switches); i++)
        if (exchange_import_text(import, switches[i].name) != NULL)
            exchange_import_native_bool(import, switches[i].key,
                                        exchange_import_bool(import, switches[i].name, false));
    take_buckets(import);
    if (exchange_import_text(import, "zero_optimization.overlap_comm") == NULL)
        return;
    const bool silent = exchange_import_at(import, "execution.overlap") == NULL;
    exchange_import_overlap(import, "grad_reduce",
                            exchange_import_bool(import, "zero_optimization.overlap_comm", false));
    if (silent &&
        exchange_import_doc_int(import, "parallel.zero", 0) == 3) /* it prefetches whatever is set */
        exchange_import_overlap(import, "param_gather", true);
}

void exchange_import_deepspeed(ExchangeImport *import)
{
    static const char *const run_only[] = {"zero_optimization.contiguous_gradients"};
    exchange_import_harmless(import, run_only, G_N_ELEMENTS(run_only));
    exchange_import_implied(import, "execution.framework",
                            filled_by_trainer(import->in) ? "transformers-deepspeed" : "deepspeed");
    exchange_import_move(import, "tensor_parallel.autotp_size", "parallel.tensor");
    take_batch(import);
    take_optimizer(import);
    take_precision(import);
    take_zero(import);
    take_offload(import);
    take_checkpoints(import);
}
