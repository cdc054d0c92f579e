/* exchange/import_torchtitan.c - a torchtitan job configuration into a scenario. */
#include <string.h>

#include "exchange/torchtitan.h"
#include "spec/load.h"

/* A preset of that name and flavor, where the document has no model. */
static void take_model(ExchangeImport *import)
{
    const char *name = exchange_import_text(import, "model.name"),
               *flavor = exchange_import_text(import, "model.flavor");
    if (exchange_import_at(import, "model") != NULL || name == NULL || flavor == NULL)
        return;
    g_autofree char *joined = g_strconcat(name, "-", flavor, NULL);
    g_autofree char *preset = g_ascii_strdown(joined, -1);
    SpecModel model;
    for (int i = 0; i < TORCHTITAN_MODELS; i++)
        if (strcmp(torchtitan_models[i].name, name) == 0 &&
            g_ascii_strcasecmp(torchtitan_models[i].flavor, flavor) == 0) {
            exchange_import_implied(import, "model", torchtitan_models[i].preset);
            return;
        }
    if (strpbrk(preset, "/.") == NULL && spec_load_model(preset, &model, NULL))
        exchange_import_implied(import, "model", preset);
    else
        exchange_import_warn(
            import, "model: no preset is called %.60s; give one with --set model=NAME or --base", preset);
}

static void take_batch(ExchangeImport *import)
{
    int local = 0, global = 0, micro = 0, replicate = 1, shard = 0;
    const bool pipelined = exchange_import_doc_int(import, "parallel.pipeline", 1) > 1;
    exchange_import_int(import, "parallelism.data_parallel_replicate_degree", &replicate);
    exchange_import_int(import, "parallelism.data_parallel_shard_degree", &shard);
    const bool has_local = exchange_import_int(import, "training.local_batch_size", &local) ||
                           exchange_import_int(import, "training.batch_size", &local);
    const bool has_global = exchange_import_int(import, "training.global_batch_size", &global) && global > 0;
    const bool has_micro =
        exchange_import_int(import, "parallelism.pipeline_parallel_microbatch_size", &micro);
    const int data = shard > 0 ? replicate * shard : exchange_import_data(import);
    if (has_global)
        exchange_import_native_int(import, "training.global_batch", global);
    else if (has_local && data > 0 && (double)local * data <= 1e9)
        exchange_import_native_int(import, "training.global_batch", local * data);
    else if (has_local)
        exchange_import_warn(
            import, "training.global_batch_size: missing, and the data-parallel degree is not known; "
                    "give --set cluster.preset=NAME and cluster.nodes=N, or training.global_batch=N");
    if (pipelined)
        exchange_import_native_int(import, "training.micro_batch", has_micro ? micro : 1);
    else if (has_local)
        exchange_import_native_int(import, "training.micro_batch", local);
}

static void take_data(ExchangeImport *import)
{
    int replicate = 1, shard = -1, tensor = 1;
    const bool told = exchange_import_int(import, "parallelism.data_parallel_shard_degree", &shard);
    const char *reshard = exchange_import_text(import, "parallelism.fsdp_reshard_after_forward");
    const bool never = reshard != NULL && strcmp(reshard, "never") == 0;
    exchange_import_int(import, "parallelism.data_parallel_replicate_degree", &replicate);
    exchange_import_move(import, "parallelism.context_parallel_degree", "parallel.context");
    exchange_import_move(import, "parallelism.tensor_parallel_degree", "parallel.tensor");
    exchange_import_move(import, "parallelism.expert_parallel_degree", "parallel.expert");
    exchange_import_move(import, "parallelism.expert_tensor_parallel_degree", "parallel.expert_tensor");
    if (told && shard > 0 && replicate > 0 && (double)shard * replicate <= 1e9)
        exchange_import_native_int(import, "parallel.data", shard * replicate);
    if (told && (shard < 0 || shard > 1))
        exchange_import_native_int(import, "parallel.zero", never ? 2 : 3);
    else if (told && replicate > 1)
        exchange_import_native_int(import, "parallel.zero", 0);
    else if (!told)
        exchange_import_implied(import, "parallel.zero", never ? "2" : "3");
    if (told && shard > 1 && replicate > 1)
        exchange_import_native_int(import, "parallel.zero_group_gpus", shard);
    if (exchange_import_int(import, "parallelism.tensor_parallel_degree", &tensor) && tensor > 1)
        exchange_import_implied(import, "parallel.sequence_parallel", "true");
}

static void take_stages(ExchangeImport *import, const SimSchedule *schedule)
{
    int per_stage = 0, first = 1, last = 1;
    const int pipeline = exchange_import_doc_int(import, "parallel.pipeline", 1);
    const bool has_first =
        exchange_import_int(import, "parallelism.pipeline_parallel_first_stage_less_layers", &first);
    const bool has_last =
        exchange_import_int(import, "parallelism.pipeline_parallel_last_stage_less_layers", &last);
    if (has_first)
        exchange_import_native_bool(import, "parallel.embedding_as_layer", first > 0);
    else
        exchange_import_implied(import, "parallel.embedding_as_layer", "true");
    if (has_last)
        exchange_import_native_bool(import, "parallel.loss_as_layer", last > 0);
    else
        exchange_import_implied(import, "parallel.loss_as_layer", "true");
    if (schedule->fixed_chunks == 1) {
        exchange_import_native_int(import, "parallel.virtual_stages", 1);
        return;
    }
    const bool told =
        exchange_import_int(import, "parallelism.pipeline_parallel_layers_per_stage", &per_stage);
    const int layers = exchange_import_layers(import);
    if (!told || per_stage <= 0)
        exchange_import_native_int(import, "parallel.virtual_stages", 2);
    else if (layers > 0 && pipeline > 0)
        exchange_import_native_int(import, "parallel.virtual_stages",
                                   MAX(1, torchtitan_stages(layers + first + last, per_stage) / pipeline));
    else
        exchange_import_warn(import,
                             "pipeline_parallel_layers_per_stage: the model's layers are not known; give "
                             "--base or --set parallel.virtual_stages=N");
}

static void take_pipeline(ExchangeImport *import)
{
    const char *word = exchange_import_text(import, "parallelism.pipeline_parallel_schedule");
    exchange_import_move(import, "parallelism.pipeline_parallel_degree", "parallel.pipeline");
    if (exchange_import_doc_int(import, "parallel.pipeline", 1) <= 1)
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(torchtitan_schedules); i++) {
        const TorchtitanSchedule *pair = &torchtitan_schedules[i];
        if (g_ascii_strcasecmp(word != NULL ? word : "1F1B", pair->word) != 0)
            continue;
        exchange_import_native(import, "parallel.schedule", pair->schedule);
        take_stages(import, sim_schedule_find(pair->schedule));
        return;
    }
    exchange_import_warn(
        import, "pipeline_parallel_schedule: \"%.60s\" has no equivalent in a scenario; ignored", word);
}

static void take_recompute(ExchangeImport *import)
{
    const char *mode = exchange_import_text(import, "activation_checkpoint.mode");
    const char *option = exchange_import_text(import, "activation_checkpoint.selective_ac_option");
    int every = 2;
    if (mode == NULL) {
        exchange_import_implied(import, "training.recompute",
                                "{\"mode\":\"selective-layer\",\"every_n_layers\":2}");
        return;
    }
    if (strcmp(mode, "memory_budget") == 0)
        exchange_import_warn(
            import, "activation_checkpoint.mode: memory_budget: a scenario has no field for what the "
                    "compiler drops; taken as none");
    if (strcmp(mode, "selective") != 0) {
        exchange_import_native(import, "training.recompute", strcmp(mode, "full") == 0 ? "full" : "none");
    } else if (option != NULL && strcmp(option, "op") == 0) {
        exchange_import_native(import, "training.recompute", "selective-op");
    } else {
        exchange_import_int(import, "activation_checkpoint.selective_ac_option", &every);
        g_autofree char *value =
            g_strdup_printf("{\"mode\":\"selective-layer\",\"every_n_layers\":%d}", every);
        exchange_import_native(import, "training.recompute", value);
    }
}

static void take_precision(ExchangeImport *import)
{
    const char *converters = exchange_import_text(import, "model.converters");
    const char *param = exchange_import_text(import, "training.mixed_precision_param");
    const char *recipe = exchange_import_text(import, "quantize.linear.float8.recipe_name");
    if (recipe == NULL)
        recipe = exchange_import_text(import, "float8.recipe_name");
    exchange_import_text(import, "quantize.linear.mx.recipe_name");
    if (converters != NULL && strstr(converters, "mx") != NULL)
        exchange_import_native(import, "training.precision", "mxfp8");
    else if (converters != NULL && strstr(converters, "float8") != NULL)
        exchange_import_native(import, "training.precision",
                               recipe != NULL && g_str_has_prefix(recipe, "rowwise") ? "fp8-rowwise"
                                                                                     : "fp8-tensorwise");
    else if (param != NULL)
        exchange_import_native(import, "training.precision", strcmp(param, "float32") == 0 ? "fp32" : "bf16");
}

/* Settings of a number format that nothing turns on: float8 would be expected and bf16 is what runs. */
static void warn_idle_format(const ExchangeImport *import)
{
    static const char *const formats[][2] = {
        {"float8", "quantize.linear.float8.recipe_name"},
        {"float8", "quantize.linear.float8.enable_fsdp_float8_all_gather"},
        {"mx", "quantize.linear.mx.recipe_name"}};
    const char *converters = exchange_import_text(import, "model.converters");
    for (gsize i = 0; i < G_N_ELEMENTS(formats); i++)
        if (exchange_import_text(import, formats[i][1]) != NULL &&
            (converters == NULL || strstr(converters, formats[i][0]) == NULL)) {
            exchange_import_warn(import,
                                 "%s: model.converters does not name quantize.linear.%s, so that it is off",
                                 formats[i][1], formats[i][0]);
            return;
        }
}

/* Whether the file shards parameters: FSDP2 overlaps its collectives by itself, and has no switch for it. */
static void take_overlap(ExchangeImport *import)
{
    const bool sharded = exchange_import_doc_int(import, "parallel.zero", 3) > 0;
    const OrrJson *overlap = exchange_import_at(import, "execution.overlap");
    const bool silent = overlap == NULL;
    if (silent) {
        exchange_import_overlap(import, "grad_reduce", true);
        if (sharded)
            exchange_import_overlap(import, "param_gather", true);
    }
    if (exchange_import_text(import, "parallelism.enable_async_tensor_parallel") != NULL &&
        exchange_import_doc_int(import, "parallel.tensor", 1) > 1)
        exchange_import_overlap(
            import, "tensor",
            exchange_import_bool(import, "parallelism.enable_async_tensor_parallel", false));
}

/* Settings that change a step and that no field answers to, where they are not at their default. */
static void warn_changes(const ExchangeImport *import)
{
    static const char *const keys[][2] = {{"training.enable_cpu_offload", "false"},
                                          {"training.dtype", "float32"},
                                          {"optimizer.implementation", "fused"},
                                          {"optimizer.early_step_in_backward", "false"},
                                          {"parallelism.disable_loss_parallel", "false"},
                                          {"parallelism.context_parallel_rotate_method", "allgather"},
                                          {"parallelism.pipeline_parallel_schedule_csv", ""},
                                          {"activation_checkpoint.early_stop", "false"}};
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        const char *value = exchange_import_text(import, keys[i][0]);
        if (value != NULL && strcmp(value, keys[i][1]) != 0)
            exchange_import_warn(import, "%s: %.60s: a scenario has no field for it", keys[i][0], value);
    }
}

static void take_dispatcher(ExchangeImport *import)
{
    const char *backend = exchange_import_text(import, "parallelism.expert_parallel_comm_backend");
    if (backend != NULL)
        exchange_import_native(import, "parallel.moe_dispatcher",
                               strcmp(backend, "deepep") == 0 ? "deepep" : "alltoall");
}

void exchange_import_torchtitan(ExchangeImport *import)
{
    static const char *const same[] = {"training.mixed_precision_reduce", "quantize.grouped_mm.float8.fqns",
                                       "quantize.grouped_mm.mx.fqns",
                                       "quantize.linear.float8.enable_fsdp_float8_all_gather"};
    const char *optimizer = exchange_import_text(import, "optimizer.name");
    const char *components = exchange_import_text(import, "compile.components"); /* default: model and loss */
    const bool compiled = exchange_import_text(import, "compile.enable") != NULL ||
                          exchange_import_text(import, "training.compile") != NULL;
    const bool layers = components == NULL || strstr(components, "model") != NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(same); i++) /* what the recipe does with them is the profile's */
        exchange_import_text(import, same[i]);
    take_model(import);
    exchange_import_move(import, "training.seq_len", "training.sequence_length");
    take_pipeline(import);
    take_data(import);
    take_batch(import);
    exchange_import_steps(import, "training.steps");
    take_recompute(import);
    take_precision(import);
    take_dispatcher(import);
    if (optimizer != NULL && g_ascii_strncasecmp(optimizer, "adam", 4) == 0)
        exchange_import_native(import, "training.optimizer", "adam");
    else if (optimizer != NULL)
        exchange_import_warn(import, "optimizer.name: \"%.60s\" has no equivalent in a scenario; ignored",
                             optimizer);
    if (compiled)
        exchange_import_native_bool(import, "execution.compiled",
                                    (exchange_import_bool(import, "compile.enable", false) && layers) ||
                                        exchange_import_bool(import, "training.compile", false));
    else
        exchange_import_implied(import, "execution.compiled", "false");
    exchange_import_implied(import, "execution.framework", "torchtitan");
    take_overlap(import);
    warn_idle_format(import);
    warn_changes(import);
}
