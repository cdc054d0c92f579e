/* spec/import_torchtitan.c - a torchtitan job configuration into a scenario. */
#include <string.h>

#include "spec/exchange_torchtitan.h"
#include "spec/load.h"

/* A preset of that name and flavor, where the document has no model. */
static void take_model(SpecImport *import)
{
    const char *name = spec_import_text(import, "model.name"),
               *flavor = spec_import_text(import, "model.flavor");
    if (spec_import_at(import, "model") != NULL || name == NULL || flavor == NULL)
        return;
    g_autofree char *joined = g_strconcat(name, "-", flavor, NULL);
    g_autofree char *preset = g_ascii_strdown(joined, -1);
    SpecModel model;
    if (strpbrk(preset, "/.") == NULL && spec_load_model(preset, &model, NULL))
        spec_import_implied(import, "model", preset);
    else
        spec_import_warn(import, "model: no preset is called %.60s; give one with --set model=NAME or --base",
                         preset);
}

static void take_batch(SpecImport *import)
{
    int local = 0, global = 0, micro = 0, replicate = 1, shard = 0;
    const bool pipelined = spec_import_doc_int(import, "parallel.pipeline", 1) > 1;
    spec_import_int(import, "parallelism.data_parallel_replicate_degree", &replicate);
    spec_import_int(import, "parallelism.data_parallel_shard_degree", &shard);
    const bool has_local = spec_import_int(import, "training.local_batch_size", &local) ||
                           spec_import_int(import, "training.batch_size", &local);
    const bool has_global = spec_import_int(import, "training.global_batch_size", &global) && global > 0;
    const bool has_micro = spec_import_int(import, "parallelism.pipeline_parallel_microbatch_size", &micro);
    const int data = shard > 0 ? replicate * shard : spec_import_doc_int(import, "parallel.data", 0);
    if (has_global)
        spec_import_native_int(import, "training.global_batch", global);
    else if (has_local && data > 0 && (double)local * data <= 1e9)
        spec_import_native_int(import, "training.global_batch", local * data);
    else if (has_local)
        spec_import_warn(import,
                         "training.global_batch_size: missing, and the data-parallel degree is not known; "
                         "give --set training.global_batch=N");
    if (pipelined)
        spec_import_native_int(import, "training.micro_batch", has_micro ? micro : 1);
    else if (has_local)
        spec_import_native_int(import, "training.micro_batch", local);
}

static void take_data(SpecImport *import)
{
    int replicate = 1, shard = -1, tensor = 1;
    const bool told = spec_import_int(import, "parallelism.data_parallel_shard_degree", &shard);
    const char *reshard = spec_import_text(import, "parallelism.fsdp_reshard_after_forward");
    const bool never = reshard != NULL && strcmp(reshard, "never") == 0;
    spec_import_int(import, "parallelism.data_parallel_replicate_degree", &replicate);
    spec_import_move(import, "parallelism.context_parallel_degree", "parallel.context");
    spec_import_move(import, "parallelism.tensor_parallel_degree", "parallel.tensor");
    spec_import_move(import, "parallelism.expert_parallel_degree", "parallel.expert");
    spec_import_move(import, "parallelism.expert_tensor_parallel_degree", "parallel.expert_tensor");
    if (told && shard > 0 && replicate > 0 && (double)shard * replicate <= 1e9)
        spec_import_native_int(import, "parallel.data", shard * replicate);
    if (told && (shard < 0 || shard > 1))
        spec_import_native_int(import, "parallel.zero", never ? 2 : 3);
    else if (told && replicate > 1)
        spec_import_native_int(import, "parallel.zero", 0);
    if (told && shard > 1 && replicate > 1)
        spec_import_native_int(import, "parallel.zero_group_gpus", shard);
    if (spec_import_int(import, "parallelism.tensor_parallel_degree", &tensor) && tensor > 1)
        spec_import_implied(import, "parallel.sequence_parallel", "true");
    if (spec_import_text(import, "parallelism.enable_async_tensor_parallel") != NULL)
        spec_import_overlap(import, "tensor",
                            spec_import_bool(import, "parallelism.enable_async_tensor_parallel", false));
}

static void take_stages(SpecImport *import, SpecSchedule schedule)
{
    int per_stage = 0, first = 1, last = 1;
    const int pipeline = spec_import_doc_int(import, "parallel.pipeline", 1);
    const bool has_first =
        spec_import_int(import, "parallelism.pipeline_parallel_first_stage_less_layers", &first);
    const bool has_last =
        spec_import_int(import, "parallelism.pipeline_parallel_last_stage_less_layers", &last);
    if (has_first)
        spec_import_native_bool(import, "parallel.embedding_as_layer", first > 0);
    if (has_last)
        spec_import_native_bool(import, "parallel.loss_as_layer", last > 0);
    if (schedule == SPEC_SCHEDULE_1F1B || schedule == SPEC_SCHEDULE_GPIPE) {
        spec_import_native_int(import, "parallel.virtual_stages", 1);
        return;
    }
    const bool told = spec_import_int(import, "parallelism.pipeline_parallel_layers_per_stage", &per_stage);
    const int layers = spec_import_layers(import);
    if (!told || per_stage <= 0)
        spec_import_native_int(import, "parallel.virtual_stages", 2);
    else if (layers > 0 && pipeline > 0)
        spec_import_native_int(import, "parallel.virtual_stages",
                               MAX(1, torchtitan_stages(layers + first + last, per_stage) / pipeline));
    else
        spec_import_warn(import, "pipeline_parallel_layers_per_stage: the model's layers are not known; give "
                                 "--base or --set parallel.virtual_stages=N");
}

static void take_pipeline(SpecImport *import)
{
    const char *word = spec_import_text(import, "parallelism.pipeline_parallel_schedule");
    spec_import_move(import, "parallelism.pipeline_parallel_degree", "parallel.pipeline");
    if (spec_import_doc_int(import, "parallel.pipeline", 1) <= 1)
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(torchtitan_schedules); i++) {
        const SpecWordPair *pair = &torchtitan_schedules[i];
        if (g_ascii_strcasecmp(word != NULL ? word : "1F1B", pair->word) != 0)
            continue;
        spec_import_native(import, "parallel.schedule", spec_word(&spec_words_schedule, pair->value));
        take_stages(import, (SpecSchedule)pair->value);
        return;
    }
    spec_import_warn(import, "pipeline_parallel_schedule: \"%.60s\" is none that a scenario has; passed over",
                     word);
}

static void take_recompute(SpecImport *import)
{
    const char *mode = spec_import_text(import, "activation_checkpoint.mode");
    const char *option = spec_import_text(import, "activation_checkpoint.selective_ac_option");
    int every = 2;
    if (mode == NULL)
        return;
    if (strcmp(mode, "selective") != 0) {
        spec_import_native(import, "training.recompute", strcmp(mode, "full") == 0 ? "full" : "none");
    } else if (option != NULL && strcmp(option, "op") == 0) {
        spec_import_native(import, "training.recompute", "selective-op");
    } else {
        spec_import_int(import, "activation_checkpoint.selective_ac_option", &every);
        g_autofree char *value =
            g_strdup_printf("{\"mode\":\"selective-layer\",\"every_n_layers\":%d}", every);
        spec_import_native(import, "training.recompute", value);
    }
}

static void take_precision(SpecImport *import)
{
    const char *converters = spec_import_text(import, "model.converters");
    const char *param = spec_import_text(import, "training.mixed_precision_param");
    const char *recipe = spec_import_text(import, "quantize.linear.float8.recipe_name");
    if (recipe == NULL)
        recipe = spec_import_text(import, "float8.recipe_name");
    spec_import_text(import, "quantize.linear.mx.recipe_name");
    if (converters != NULL && strstr(converters, "mx") != NULL)
        spec_import_native(import, "training.precision", "mxfp8");
    else if (converters != NULL && strstr(converters, "float8") != NULL)
        spec_import_native(import, "training.precision",
                           recipe != NULL && g_str_has_prefix(recipe, "rowwise") ? "fp8-rowwise"
                                                                                 : "fp8-tensorwise");
    else if (param != NULL)
        spec_import_native(import, "training.precision", strcmp(param, "float32") == 0 ? "fp32" : "bf16");
}

void spec_import_torchtitan(SpecImport *import)
{
    static const char *const run_only[] = {"job.description", "training.dataset", "training.steps",
                                           "training.mixed_precision_reduce",
                                           "quantize.linear.float8.enable_fsdp_float8_all_gather"};
    const char *optimizer = spec_import_text(import, "optimizer.name");
    const bool compiled = spec_import_text(import, "compile.enable") != NULL ||
                          spec_import_text(import, "training.compile") != NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(run_only); i++)
        spec_import_text(import, run_only[i]);
    take_model(import);
    spec_import_move(import, "training.seq_len", "training.sequence_length");
    take_pipeline(import);
    take_data(import);
    take_batch(import);
    take_recompute(import);
    take_precision(import);
    if (optimizer != NULL && g_ascii_strncasecmp(optimizer, "adam", 4) == 0)
        spec_import_native(import, "training.optimizer", "adam");
    if (compiled)
        spec_import_native_bool(import, "execution.compiled",
                                spec_import_bool(import, "compile.enable", false) ||
                                    spec_import_bool(import, "training.compile", false));
    spec_import_implied(import, "execution.framework", "torchtitan");
}
