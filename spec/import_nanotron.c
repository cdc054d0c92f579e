/* spec/import_nanotron.c - a nanotron configuration into a scenario. */
#include <string.h>

#include "spec/exchange_internal.h"

static void take_model(SpecImport *import)
{
    static const char *const ints[][2] = {
        {"model.model_config.num_hidden_layers", "model.layers"},
        {"model.model_config.hidden_size", "model.hidden"},
        {"model.model_config.intermediate_size", "model.ffn_hidden"},
        {"model.model_config.num_attention_heads", "model.heads"},
        {"model.model_config.num_key_value_heads", "model.kv_heads"},
        {"model.model_config.vocab_size", "model.vocab"},
        {"model.model_config.max_position_embeddings", "model.max_positions"},
    };
    const char *run = spec_import_text(import, "general.run");
    if (spec_import_text(import, "model.model_config.num_hidden_layers") == NULL)
        return;
    if (spec_import_at(import, "model") == NULL) {
        g_autofree char *quoted = g_strdup_printf("\"%s\"", "nanotron model");
        spec_import_implied(import, "model.name", quoted);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(ints); i++)
        spec_import_move(import, ints[i][0], ints[i][1]);
    spec_import_native_bool(import, "model.gated_mlp", true);
    spec_import_native(import, "model.norm", "rmsnorm");
    spec_import_native(import, "model.position", "rope");
    spec_import_native_bool(import, "model.tied_embeddings",
                            spec_import_bool(import, "model.model_config.tie_word_embeddings", false));
    spec_import_native(import, "model.biases",
                       spec_import_bool(import, "model.model_config.attention_bias", false) ? "qkv" : "none");
    if (run != NULL && run[0] != '\0' && g_utf8_validate(run, -1, NULL)) {
        g_autoptr(GString) quoted = g_string_new(NULL);
        OrrJsonWriter w;
        orr_jw_init(&w, quoted, true);
        orr_jw_text(&w, NULL, run);
        spec_import_implied(import, "name", quoted->str);
    }
}

static void take_parallelism(SpecImport *import)
{
    static const char *const ints[][2] = {{"parallelism.dp", "parallel.data"},
                                          {"parallelism.pp", "parallel.pipeline"},
                                          {"parallelism.tp", "parallel.tensor"},
                                          {"parallelism.context_parallel_size", "parallel.context"},
                                          {"parallelism.expert_parallel_size", "parallel.expert"},
                                          {"optimizer.zero_stage", "parallel.zero"}};
    const char *engine = spec_import_text(import, "parallelism.pp_engine");
    const char *mode = spec_import_text(import, "parallelism.tp_mode");
    for (gsize i = 0; i < G_N_ELEMENTS(ints); i++)
        spec_import_move(import, ints[i][0], ints[i][1]);
    if (spec_import_doc_int(import, "parallel.pipeline", 1) > 1) {
        spec_import_native(import, "parallel.schedule",
                           engine != NULL && strcmp(engine, "1f1b") == 0 ? "1f1b" : "gpipe");
        spec_import_native_int(import, "parallel.virtual_stages", 1);
    }
    if (mode != NULL)
        spec_import_native_bool(import, "parallel.sequence_parallel",
                                g_ascii_strcasecmp(mode, "REDUCE_SCATTER") == 0);
    if (spec_import_text(import, "parallelism.tp_linear_async_communication") != NULL)
        spec_import_overlap(import, "tensor",
                            spec_import_bool(import, "parallelism.tp_linear_async_communication", false));
    if (spec_import_text(import, "parallelism.recompute_layer") != NULL)
        spec_import_native(import, "training.recompute",
                           spec_import_bool(import, "parallelism.recompute_layer", false) ? "full" : "none");
}

static void take_training(SpecImport *import)
{
    int micro = 0, steps = 0, data = 0;
    const char *type = spec_import_text(import, "model.dtype");
    const char *optimizer = spec_import_text(import, "optimizer.optimizer_factory.name");
    spec_import_move(import, "tokens.sequence_length", "training.sequence_length");
    spec_import_move(import, "tokens.micro_batch_size", "training.micro_batch");
    if (spec_import_int(import, "tokens.micro_batch_size", &micro) &&
        spec_import_int(import, "tokens.batch_accumulation_per_replica", &steps) &&
        spec_import_int(import, "parallelism.dp", &data) && (double)micro * steps * data <= 1e9)
        spec_import_native_int(import, "training.global_batch", micro * steps * data);
    if (type != NULL)
        spec_import_native(import, "training.precision",
                           strcmp(type, "float32") == 0   ? "fp32"
                           : strcmp(type, "float16") == 0 ? "fp16"
                                                          : "bf16");
    if (optimizer != NULL)
        spec_import_native(import, "training.optimizer",
                           g_ascii_strncasecmp(optimizer, "adam", 4) == 0 ? "adam" : "sgd");
}

void spec_import_nanotron(SpecImport *import)
{
    static const char *const run_only[] = {"general.project",
                                           "model.make_vocab_size_divisible_by",
                                           "model.init_method.std",
                                           "model.model_config.is_llama_config",
                                           "model.model_config.hidden_act",
                                           "tokens.train_steps",
                                           "optimizer.accumulate_grad_in_fp32",
                                           "optimizer.weight_decay",
                                           "optimizer.clip_grad",
                                           "optimizer.optimizer_factory.adam_beta1",
                                           "optimizer.optimizer_factory.adam_beta2",
                                           "optimizer.optimizer_factory.adam_eps",
                                           "optimizer.optimizer_factory.torch_adam_is_fused",
                                           "optimizer.learning_rate_scheduler.learning_rate",
                                           "optimizer.learning_rate_scheduler.lr_warmup_style",
                                           "optimizer.learning_rate_scheduler.lr_decay_style",
                                           "tokenizer.tokenizer_name_or_path",
                                           "checkpoints.checkpoints_path",
                                           "checkpoints.checkpoint_interval",
                                           "data_stages"};
    for (gsize i = 0; i < G_N_ELEMENTS(run_only); i++)
        spec_import_text(import, run_only[i]);
    take_parallelism(import);
    take_model(import);
    take_training(import);
    spec_import_implied(import, "execution.framework", "nanotron");
}
