/* exchange/import_nanotron.c - a nanotron configuration into a scenario. */
#include <string.h>

#include "exchange/import.h"

static void take_model(ExchangeImport *import)
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
    const char *run = exchange_import_text(import, "general.run");
    if (exchange_import_text(import, "model.model_config.num_hidden_layers") == NULL)
        return;
    if (exchange_import_at(import, "model") == NULL) {
        exchange_import_implied(import, "model.name", "\"nanotron model\"");
    }
    for (gsize i = 0; i < G_N_ELEMENTS(ints); i++)
        exchange_import_move(import, ints[i][0], ints[i][1]);
    exchange_import_native_bool(import, "model.gated_mlp", true);
    exchange_import_native(import, "model.norm", "rmsnorm");
    exchange_import_native(import, "model.position", "rope");
    exchange_import_native_bool(
        import, "model.tied_embeddings",
        exchange_import_bool(import, "model.model_config.tie_word_embeddings", false));
    exchange_import_native(import, "model.biases",
                           exchange_import_bool(import, "model.model_config.attention_bias", false) ? "qkv"
                                                                                                    : "none");
    if (run != NULL && run[0] != '\0') {
        g_autofree char *quoted = exchange_json_text(run);
        exchange_import_implied(import, "name", quoted);
    }
}

static void take_parallelism(ExchangeImport *import)
{
    static const char *const ints[][2] = {{"parallelism.dp", "parallel.data"},
                                          {"parallelism.pp", "parallel.pipeline"},
                                          {"parallelism.tp", "parallel.tensor"},
                                          {"parallelism.context_parallel_size", "parallel.context"},
                                          {"parallelism.expert_parallel_size", "parallel.expert"},
                                          {"optimizer.zero_stage", "parallel.zero"}};
    const char *engine = exchange_import_text(import, "parallelism.pp_engine");
    const char *mode = exchange_import_text(import, "parallelism.tp_mode");
    for (gsize i = 0; i < G_N_ELEMENTS(ints); i++)
        exchange_import_move(import, ints[i][0], ints[i][1]);
    if (exchange_import_doc_int(import, "parallel.pipeline", 1) > 1) {
        exchange_import_native(import, "parallel.schedule",
                               engine != NULL && strcmp(engine, "1f1b") == 0 ? "1f1b" : "gpipe");
        exchange_import_native_int(import, "parallel.virtual_stages", 1);
    }
    if (mode != NULL)
        exchange_import_native_bool(import, "parallel.sequence_parallel",
                                    g_ascii_strcasecmp(mode, "REDUCE_SCATTER") == 0);
    else if (exchange_import_doc_int(import, "parallel.tensor", 1) > 1) /* ALL_REDUCE */
        exchange_import_implied(import, "parallel.sequence_parallel", "false");
    if (exchange_import_text(import, "parallelism.tp_linear_async_communication") != NULL &&
        exchange_import_doc_int(import, "parallel.tensor", 1) > 1)
        exchange_import_overlap(
            import, "tensor",
            exchange_import_bool(import, "parallelism.tp_linear_async_communication", false));
    if (exchange_import_text(import, "parallelism.recompute_layer") != NULL)
        exchange_import_native(import, "training.recompute",
                               exchange_import_bool(import, "parallelism.recompute_layer", false) ? "full"
                                                                                                  : "none");
}

static void take_training(ExchangeImport *import)
{
    int micro = 0, steps = 0;
    const int data = exchange_import_data(import);
    const char *type = exchange_import_text(import, "model.dtype");
    const char *optimizer = exchange_import_text(import, "optimizer.optimizer_factory.name");
    exchange_import_move(import, "tokens.sequence_length", "training.sequence_length");
    exchange_import_move(import, "tokens.micro_batch_size", "training.micro_batch");
    if (exchange_import_int(import, "tokens.micro_batch_size", &micro) &&
        exchange_import_int(import, "tokens.batch_accumulation_per_replica", &steps) && data > 0 &&
        (double)micro * steps * data <= 1e9)
        exchange_import_native_int(import, "training.global_batch", micro * steps * data);
    if (type != NULL)
        exchange_import_native(import, "training.precision",
                               strcmp(type, "float32") == 0   ? "fp32"
                               : strcmp(type, "float16") == 0 ? "fp16"
                                                              : "bf16");
    if (exchange_import_text(import, "optimizer.accumulate_grad_in_fp32") != NULL &&
        g_strcmp0(type, "bfloat16") == 0)
        exchange_import_native(
            import, "training.gradient_dtype",
            exchange_import_bool(import, "optimizer.accumulate_grad_in_fp32", false) ? "fp32" : "bf16");
    if (optimizer != NULL)
        exchange_import_native(import, "training.optimizer",
                               g_ascii_strncasecmp(optimizer, "adam", 4) == 0 ? "adam" : "sgd");
}

void exchange_import_nanotron(ExchangeImport *import)
{
    static const char *const same[] = {"model.model_config.is_llama_config", "model.model_config.hidden_act",
                                       "optimizer.optimizer_factory.torch_adam_is_fused",
                                       "model.make_vocab_size_divisible_by"};
    for (gsize i = 0; i < G_N_ELEMENTS(same); i++) /* as the profile has them */
        exchange_import_text(import, same[i]);
    take_parallelism(import);
    take_model(import);
    take_training(import);
    exchange_import_steps(import, "tokens.train_steps");
    exchange_import_implied(import, "execution.framework", "nanotron");
}
