/* Hugging Face config.json as models: the figures that the published configurations give. */
#include <string.h>

#include "spec/complete.h"
#include "spec/import_hf.h"
#include "spec/read.h"

/* Imports and reads by the model's table. */
static bool import(const char *text, SpecModel *ret_model, GError **error)
{
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "x/Model-7B/config.json", NULL);
    g_assert_nonnull(doc);
    g_assert_true(spec_is_hf_config(orr_json_root(doc)));
    OrrJsonDoc *imported = spec_import_hf(orr_json_root(doc), "x/Model-7B/config.json", error);
    orr_json_free(doc);
    if (imported == NULL)
        return false;
    SpecReadContext context;
    *ret_model = (SpecModel){0};
    spec_read_context_init(&context, "config.json", &spec_table_scenario, false, NULL);
    bool ok = spec_read_table(&context, &spec_table_model, orr_json_root(imported), ret_model, error);
    ok = ok && spec_complete_model(ret_model, 0, 0, "config.json", NULL, error);
    spec_read_context_clear(&context);
    orr_json_free(imported);
    return ok;
}

static SpecModel imported(const char *text)
{
    SpecModel model;
    GError *error = NULL;
    import(text, &model, &error);
    g_assert_no_error(error);
    return model;
}

static void test_dense(void)
{
    const SpecModel gpt2 =
        imported("{\"model_type\":\"gpt2\",\"n_embd\":1600,\"n_layer\":48,\"n_head\":25,"
                 "\"n_positions\":1024,\"vocab_size\":50257,\"resid_pdrop\":0.1,\"n_inner\":null}");
    g_assert_cmpstr(gpt2.name, ==, "Model-7B");
    g_assert_cmpint(gpt2.layers, ==, 48);
    g_assert_cmpint(gpt2.ffn_hidden, ==, 6400);
    g_assert_cmpint(gpt2.head_dim, ==, 64);
    g_assert_true(gpt2.tied_embeddings && gpt2.position == SPEC_POSITION_LEARNED && !gpt2.gated_mlp);
    g_assert_cmpfloat(gpt2.dropout_frac, ==, 0.1);
    const SpecModel llama =
        imported("{\"model_type\":\"llama\",\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":4096,"
                 "\"intermediate_size\":14336,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
                 "\"num_key_value_heads\":8,\"vocab_size\":128256,\"tie_word_embeddings\":false,"
                 "\"max_position_embeddings\":8192,\"attention_bias\":false,\"mlp_bias\":false}");
    g_assert_cmpint(llama.kv_heads, ==, 8);
    g_assert_cmpint(llama.biases, ==, SPEC_BIASES_NONE);
    g_assert_true(llama.gated_mlp && !llama.tied_embeddings && llama.norm == SPEC_NORM_RMSNORM);
    g_assert_cmpint(llama.moe.experts, ==, 0);
    const SpecModel mistral =
        imported("{\"model_type\":\"mistral\",\"hidden_size\":4096,\"intermediate_size\":14336,"
                 "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"num_key_value_heads\":8,"
                 "\"vocab_size\":32000,\"sliding_window\":4096}");
    g_assert_cmpint(mistral.attention_window_tokens, ==, 4096);
    g_assert_cmpint(mistral.attention_window_every, ==, 1);
    const SpecModel qwen2 =
        imported("{\"model_type\":\"qwen2\",\"hidden_size\":3584,\"intermediate_size\":18944,"
                 "\"num_hidden_layers\":28,\"num_attention_heads\":28,\"num_key_value_heads\":4,"
                 "\"vocab_size\":152064,\"sliding_window\":131072,\"use_sliding_window\":false}");
    g_assert_cmpint(qwen2.attention_window_tokens, ==, 0);
    g_assert_cmpint(qwen2.biases, ==, SPEC_BIASES_QKV);
    const SpecModel qwen3 =
        imported("{\"model_type\":\"qwen3\",\"hidden_size\":2560,\"intermediate_size\":9728,"
                 "\"num_hidden_layers\":36,\"num_attention_heads\":32,\"head_dim\":128,"
                 "\"num_key_value_heads\":8,\"vocab_size\":151936,\"tie_word_embeddings\":true}");
    g_assert_cmpint(qwen3.head_dim, ==, 128);
    g_assert_true(qwen3.qk_norm && qwen3.tied_embeddings);
}

/* Experts and their number a token by layer; a shared expert in each. */
static void test_experts_by_layer(void)
{
    static const char HUNYUAN[] =
        "{\"model_type\":\"hunyuan_v1_moe\",\"hidden_size\":4096,\"intermediate_size\":3072,"
        "\"num_hidden_layers\":%d,\"num_attention_heads\":32,\"num_key_value_heads\":8,\"head_dim\":128,"
        "\"vocab_size\":128167,\"tie_word_embeddings\":true,\"num_experts\":%s,\"moe_topk\":%s}";
    g_autofree char *alike = g_strdup_printf(HUNYUAN, 4, "64", "[8,8,8,8]"),
                    *apart = g_strdup_printf(HUNYUAN, 4, "[16,16,64,16]", "[2,2,8,2]"),
                    *few = g_strdup_printf(HUNYUAN, 4, "[16,16,64]", "2"),
                    *text = g_strdup_printf(HUNYUAN, 4, "\"many\"", "2");
    const SpecModel one = imported(alike), some = imported(apart);
    g_assert_cmpint(one.moe.experts, ==, 64);
    g_assert_cmpint(one.moe.run[0].kind, ==, 0);
    g_assert_cmpint(one.moe.shared_expert_ffn_hidden, ==, 3072);
    g_assert_true(one.qk_norm && one.tied_embeddings);
    g_assert_cmpint(some.moe.run_count, ==, 3);
    g_assert_cmpint(some.moe.run[1].layers, ==, 1);
    g_assert_cmpint(some.moe.run[1].experts, ==, 64);
    g_assert_cmpint(some.moe.run[1].top_k, ==, 8);
    g_assert_cmpint(some.moe.run[2].kind, ==, some.moe.run[0].kind);
    g_assert_cmpint(some.moe.run[1].kind, !=, some.moe.run[0].kind);
    SpecModel model;
    for (int i = 0; i < 2; i++) {
        GError *error = NULL;
        g_assert_false(import(i == 0 ? few : text, &model, &error));
        g_assert_nonnull(strstr(error->message, "num_experts"));
        g_assert_nonnull(strstr(error->message, "a whole number, or a list of one a layer"));
        g_clear_error(&error);
    }
}

static void test_experts(void)
{
    const SpecModel mixtral = imported(
        "{\"model_type\":\"mixtral\",\"hidden_size\":4096,\"intermediate_size\":14336,"
        "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"num_key_value_heads\":8,"
        "\"vocab_size\":32000,\"num_local_experts\":8,\"num_experts_per_tok\":2,\"sliding_window\":null}");
    g_assert_cmpint(mixtral.moe.experts, ==, 8);
    g_assert_cmpint(mixtral.moe.top_k, ==, 2);
    g_assert_cmpint(mixtral.moe.expert_ffn_hidden, ==, 14336);
    const SpecModel qwen =
        imported("{\"model_type\":\"qwen3_moe\",\"hidden_size\":2048,\"intermediate_size\":6144,"
                 "\"moe_intermediate_size\":768,\"num_hidden_layers\":48,\"num_attention_heads\":32,"
                 "\"num_key_value_heads\":4,\"head_dim\":128,\"vocab_size\":151936,\"num_experts\":128,"
                 "\"num_experts_per_tok\":8,\"decoder_sparse_step\":1,\"mlp_only_layers\":[]}");
    g_assert_cmpint(qwen.moe.expert_ffn_hidden, ==, 768);
    g_assert_cmpint(qwen.ffn_hidden, ==, 6144);
    const SpecModel deepseek =
        imported("{\"model_type\":\"deepseek_v3\",\"hidden_size\":7168,\"intermediate_size\":18432,"
                 "\"moe_intermediate_size\":2048,\"num_hidden_layers\":61,\"num_attention_heads\":128,"
                 "\"num_key_value_heads\":128,\"vocab_size\":129280,\"n_routed_experts\":256,"
                 "\"n_shared_experts\":1,\"num_experts_per_tok\":8,\"first_k_dense_replace\":3,"
                 "\"moe_layer_freq\":1,\"q_lora_rank\":1536,\"kv_lora_rank\":512,\"qk_nope_head_dim\":128,"
                 "\"qk_rope_head_dim\":64,\"v_head_dim\":128,\"num_nextn_predict_layers\":1}");
    g_assert_cmpint(deepseek.moe.experts, ==, 256);
    g_assert_cmpint(deepseek.moe.dense_layers, ==, 3);
    g_assert_cmpint(deepseek.moe.shared_expert_ffn_hidden, ==, 2048);
    g_assert_cmpint(deepseek.mla.kv_lora_rank, ==, 512);
    g_assert_cmpint(deepseek.mla.qk_rope_head_dim, ==, 64);
    g_assert_cmpint(deepseek.mtp_layers, ==, 1);
    const SpecModel lite =
        imported("{\"model_type\":\"deepseek_v2\",\"hidden_size\":2048,\"intermediate_size\":10944,"
                 "\"moe_intermediate_size\":1408,\"num_hidden_layers\":27,"
                 "\"num_attention_heads\":16,\"vocab_size\":102400,\"n_routed_experts\":64,"
                 "\"n_shared_experts\":2,\"num_experts_per_tok\":6,\"first_k_dense_replace\":1,"
                 "\"q_lora_rank\":null,\"kv_lora_rank\":512,\"qk_nope_head_dim\":128,"
                 "\"qk_rope_head_dim\":64,\"v_head_dim\":128,\"rope_scaling\":{\"type\":\"yarn\","
                 "\"factor\":40,\"mscale\":0.707,\"mscale_all_dim\":0.707}}");
    g_assert_cmpint(lite.mla.q_lora_rank, ==, 0);
    g_assert_cmpint(lite.moe.shared_expert_ffn_hidden, ==, 2816);
    const SpecModel oss = imported(
        "{\"model_type\":\"gpt_oss\",\"hidden_size\":2880,\"intermediate_size\":2880,"
        "\"num_hidden_layers\":4,\"num_attention_heads\":64,\"num_key_value_heads\":8,\"head_dim\":64,"
        "\"vocab_size\":201088,\"num_local_experts\":32,\"num_experts_per_tok\":4,\"sliding_window\":128,"
        "\"layer_types\":[\"sliding_attention\",\"full_attention\",\"sliding_attention\",\"full_attention\"],"
        "\"attention_bias\":true,\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":32.0}}");
    g_assert_true(oss.rope_scaled && !lite.rope_scaled);
    g_assert_cmpint(oss.attention_window_tokens, ==, 128);
    g_assert_cmpint(oss.attention_window_every, ==, 2);
    g_assert_cmpint(oss.biases, ==, SPEC_BIASES_ALL);
    g_assert_cmpint(oss.head_dim, ==, 64);
}

static void test_refused(void)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"model_type\":\"bert\",\"hidden_size\":8}",
         "config.json: model_type: \"bert\"; give one of gpt2, bloom, opt, llama"},
        {"{\"model_type\":\"mamba\",\"hidden_size\":8}",
         "config.json: mamba: has layers of state-space or linear attention"},
        {"{\"model_type\":\"qwen3_next\",\"hidden_size\":8}",
         "qwen3_next: has layers of state-space or linear"},
        {"{\"model_type\":\"nemotron_h\",\"hidden_size\":8}",
         "nemotron_h: has layers of state-space or linear"},
        {"{\"model_type\":\"llama\",\"hidden_size\":8,\"mamba_d_state\":16}", "mamba_d_state: has layers of"},
        {"{\"hidden_size\":8}", "model_type: missing"},
        {"{\"model_type\":\"llama\",\"hidden_size\":8}", "num_attention_heads: missing; give a whole number"},
        {"{\"model_type\":\"llama\",\"hidden_size\":8.5,\"num_attention_heads\":1}",
         "hidden_size: 8.5; give"},
        {"{\"model_type\":\"llama\",\"hidden_size\":\"8\",\"num_attention_heads\":1}",
         "hidden_size: \"8\"; give"},
        {"{\"model_type\":\"gpt2\",\"n_embd\":-8}", "n_embd: -8; give"},
        {"{\"model_type\":\"qwen3_moe\",\"hidden_size\":64,\"intermediate_size\":64,\"num_hidden_layers\":4,"
         "\"num_attention_heads\":4,\"vocab_size\":64,\"num_experts\":4,\"num_experts_per_tok\":2,"
         "\"mlp_only_layers\":[3]}",
         "mlp_only_layers: [3]; give leading layers only"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        GError *error = NULL;
        SpecModel model;
        g_assert_false(import(cases[i].text, &model, &error));
        g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, cases[i].message));
        g_error_free(error);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/spec/import/dense", test_dense);
    g_test_add_func("/spec/import/experts", test_experts);
    g_test_add_func("/spec/import/experts-by-layer", test_experts_by_layer);
    g_test_add_func("/spec/import/refused", test_refused);
    return g_test_run();
}
