/* tests/unit/spec/test_import_families.c - families of Hugging Face's config.json: parameters as published.
 *
 * Configurations: config.json of the repositories named, shortened to what is read. Totals: the parameter counts that the
 * same repositories (safetensors metadata) or their model cards give; cards round, so those rows have a tolerance.
 */
#include <math.h>
#include <string.h>

#include "costmodel/params.h"
#include "spec/complete.h"
#include "spec/import_hf.h"
#include "spec/load.h"
#include "spec/read.h"

typedef struct Family {
    const char *repository;
    double parameters, tolerance_frac;
    const char *config;
} Family;

static const Family families[] = {
    {"google/gemma-2-2b", 2614341888, 1e-3,
     "{\"model_type\":\"gemma2\",\"hidden_size\":2304,\"intermediate_size\":9216,\"num_hidden_layers\":26,"
     "\"num_attention_heads\":8,\"num_key_value_heads\":4,\"head_dim\":256,\"vocab_size\":256000,\"sliding_"
     "window\":4096,"
     "\"attn_logit_softcapping\":50.0,\"final_logit_softcapping\":30.0,\"hidden_activation\":\"gelu_pytorch_"
     "tanh\"}"},
    {"google/gemma-2-9b", 9241705984, 1e-3,
     "{\"model_type\":\"gemma2\",\"hidden_size\":3584,\"intermediate_size\":14336,\"num_hidden_layers\":42,"
     "\"num_attention_heads\":16,\"num_key_value_heads\":8,\"head_dim\":256,\"vocab_size\":256000,\"sliding_"
     "window\":4096}"},
    {"google/gemma-3-1b-pt", 999885952, 1e-3,
     "{\"model_type\":\"gemma3_text\",\"hidden_size\":1152,\"intermediate_size\":6912,\"num_hidden_layers\":"
     "26,"
     "\"num_attention_heads\":4,\"num_key_value_heads\":1,\"head_dim\":256,\"vocab_size\":262144,\"sliding_"
     "window\":512,"
     "\"sliding_window_pattern\":6}"},
    {"google/gemma-3-4b-pt", 3.88e9,
     5e-3, /* 4.30e9 with the vision tower of 0.42e9; the class gives heads and vocabulary */
     "{\"model_type\":\"gemma3\",\"vision_config\":{},\"text_config\":{\"model_type\":\"gemma3_text\","
     "\"hidden_size\":2560,"
     "\"intermediate_size\":10240,\"num_hidden_layers\":34,\"sliding_window\":1024}}"},
    {"THUDM/GLM-4-9B-0414", 9400279040, 1e-3,
     "{\"model_type\":\"glm4\",\"hidden_size\":4096,\"intermediate_size\":13696,\"num_hidden_layers\":40,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":2,\"head_dim\":128,\"vocab_size\":151552,"
     "\"attention_bias\":true,"
     "\"partial_rotary_factor\":0.5,\"tie_word_embeddings\":false}"},
    {"zai-org/GLM-4.5", 358e9, 1e-2, /* the card says 355B without the prediction module */
     "{\"model_type\":\"glm4_moe\",\"hidden_size\":5120,\"intermediate_size\":12288,\"moe_intermediate_"
     "size\":1536,"
     "\"num_hidden_layers\":92,\"num_attention_heads\":96,\"num_key_value_heads\":8,\"head_dim\":128,\"vocab_"
     "size\":151552,"
     "\"n_routed_experts\":160,\"n_shared_experts\":1,\"num_experts_per_tok\":8,\"first_k_dense_replace\":3,"
     "\"n_group\":1,"
     "\"topk_group\":1,\"num_nextn_predict_layers\":1,\"attention_bias\":true,\"use_qk_norm\":true}"},
    {"zai-org/GLM-4.5-Air", 110e9, 1e-2, /* the card says 106B without the prediction module */
     "{\"model_type\":\"glm4_moe\",\"hidden_size\":4096,\"intermediate_size\":10944,\"moe_intermediate_"
     "size\":1408,"
     "\"num_hidden_layers\":46,\"num_attention_heads\":96,\"num_key_value_heads\":8,\"head_dim\":128,\"vocab_"
     "size\":151552,"
     "\"n_routed_experts\":128,\"n_shared_experts\":1,\"num_experts_per_tok\":8,\"first_k_dense_replace\":1,"
     "\"n_group\":1,"
     "\"topk_group\":1,\"num_nextn_predict_layers\":1,\"attention_bias\":true,\"use_qk_norm\":false}"},
    {"meta-llama/Llama-4-Scout-17B-16E", 109e9, 1.5e-2, /* with the vision tower of 0.9B */
     "{\"model_type\":\"llama4\",\"vision_config\":{},\"text_config\":{\"model_type\":\"llama4_text\","
     "\"hidden_size\":5120,"
     "\"intermediate_size\":8192,\"intermediate_size_mlp\":16384,\"num_hidden_layers\":48,\"num_attention_"
     "heads\":40,"
     "\"num_key_value_heads\":8,\"head_dim\":128,\"vocab_size\":202048,\"num_local_experts\":16,\"num_"
     "experts_per_tok\":1,"
     "\"interleave_moe_layer_step\":1,\"attention_chunk_size\":8192}}"},
    {"meta-llama/Llama-4-Maverick-17B-128E", 400e9, 1e-2,
     "{\"model_type\":\"llama4_text\",\"hidden_size\":5120,\"intermediate_size\":8192,\"intermediate_size_"
     "mlp\":16384,"
     "\"num_hidden_layers\":48,\"num_attention_heads\":40,\"num_key_value_heads\":8,\"head_dim\":128,\"vocab_"
     "size\":202048,"
     "\"num_local_experts\":128,\"num_experts_per_tok\":1,\"interleave_moe_layer_step\":2}"},
    {"microsoft/phi-2", 2779683840, 1e-3,
     "{\"model_type\":\"phi\",\"hidden_size\":2560,\"intermediate_size\":10240,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":32,\"vocab_size\":51200,\"partial_rotary_factor\":0.4,\"resid_pdrop\":0.1}"},
    {"microsoft/Phi-3-mini-4k-instruct", 3821079552, 1e-4,
     "{\"model_type\":\"phi3\",\"hidden_size\":3072,\"intermediate_size\":8192,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":32,\"vocab_size\":32064,\"sliding_window\":2047}"},
    {"microsoft/phi-4", 14659507200, 1e-4,
     "{\"model_type\":\"phi3\",\"hidden_size\":5120,\"intermediate_size\":17920,\"num_hidden_layers\":40,"
     "\"num_attention_heads\":40,\"num_key_value_heads\":10,\"vocab_size\":100352}"},
    {"allenai/OLMo-2-1124-7B", 7298617344, 1e-3,
     "{\"model_type\":\"olmo2\",\"hidden_size\":4096,\"intermediate_size\":11008,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":32,\"vocab_size\":100352}"},
    {"allenai/OLMoE-1B-7B-0924", 6919161856, 1e-3,
     "{\"model_type\":\"olmoe\",\"hidden_size\":2048,\"intermediate_size\":1024,\"num_hidden_layers\":16,"
     "\"num_attention_heads\":16,\"vocab_size\":50304,\"num_experts\":64,\"num_experts_per_tok\":8}"},
    {"EleutherAI/gpt-neox-20b", 20554567680, 1e-3,
     "{\"model_type\":\"gpt_neox\",\"hidden_size\":6144,\"intermediate_size\":24576,\"num_hidden_layers\":44,"
     "\"num_attention_heads\":64,\"vocab_size\":50432,\"rotary_pct\":0.25,\"use_parallel_residual\":true}"},
    {"tiiuae/falcon-7b", 6921720704, 1e-3,
     "{\"model_type\":\"falcon\",\"hidden_size\":4544,\"num_hidden_layers\":32,\"num_attention_heads\":71,"
     "\"vocab_size\":65024,\"multi_query\":true,\"parallel_attn\":true,\"bias\":false,\"new_decoder_"
     "architecture\":false}"},
    {"tiiuae/falcon-40b", 41303293952, 1e-3,
     "{\"model_type\":\"falcon\",\"hidden_size\":8192,\"num_hidden_layers\":60,\"num_attention_heads\":128,"
     "\"num_kv_heads\":8,\"vocab_size\":65024,\"multi_query\":true,\"parallel_attn\":true,\"bias\":false,"
     "\"new_decoder_architecture\":true}"},
    {"nvidia/Minitron-4B-Base", 4.19e9, 2e-3,
     "{\"model_type\":\"nemotron\",\"hidden_size\":3072,\"intermediate_size\":9216,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":24,\"num_key_value_heads\":8,\"head_dim\":128,\"vocab_size\":256000,\"hidden_"
     "act\":\"relu2\","
     "\"norm_eps\":1e-05,\"partial_rotary_factor\":0.5}"},
    {"ibm-granite/granite-3.1-8b-base", 8170848256, 1e-3,
     "{\"model_type\":\"granite\",\"hidden_size\":4096,\"num_hidden_layers\":40,\"num_attention_heads\":32,"
     "\"num_key_value_heads\":8,\"intermediate_size\":12800,\"vocab_size\":49155,\"tie_word_embeddings\":"
     "true,"
     "\"embedding_multiplier\":12.0,\"residual_multiplier\":0.22,\"logits_scaling\":16.0}"},
    {"ByteDance-Seed/Seed-OSS-36B-Base", 36151104512, 1e-3,
     "{\"model_type\":\"seed_oss\",\"hidden_size\":5120,\"num_hidden_layers\":64,\"num_attention_heads\":80,"
     "\"num_key_value_heads\":8,\"head_dim\":128,\"intermediate_size\":27648,\"vocab_size\":155136,"
     "\"attention_bias\":true,\"attention_out_bias\":false}"},
    {"HuggingFaceTB/SmolLM3-3B", 3075098624, 1e-3,
     "{\"model_type\":\"smollm3\",\"hidden_size\":2048,\"num_hidden_layers\":36,\"num_attention_heads\":16,"
     "\"num_key_value_heads\":4,\"intermediate_size\":11008,\"vocab_size\":128256,\"no_rope_layer_interval\":"
     "4}"},
    {"internlm/internlm2-7b", 7737708544, 1e-3,
     "{\"model_type\":\"internlm2\",\"hidden_size\":4096,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
     "\"num_key_value_heads\":8,\"intermediate_size\":14336,\"vocab_size\":92544,\"bias\":false}"},
    {"LGAI-EXAONE/EXAONE-4.0-32B", 32.0e9, 2e-3,
     "{\"model_type\":\"exaone4\",\"hidden_size\":5120,\"num_hidden_layers\":64,\"num_attention_heads\":40,"
     "\"num_key_value_heads\":8,\"head_dim\":128,\"intermediate_size\":27392,\"vocab_size\":102400,"
     "\"sliding_window\":4096,\"sliding_window_pattern\":\"LLLG\"}"},
    {"bigcode/starcoder2-15b", 15957889024, 1e-3,
     "{\"model_type\":\"starcoder2\",\"hidden_size\":6144,\"num_hidden_layers\":40,\"num_attention_heads\":"
     "48,"
     "\"num_key_value_heads\":4,\"intermediate_size\":24576,\"vocab_size\":49152,\"use_bias\":true,"
     "\"sliding_window\":4096,\"norm_type\":\"layer_norm\",\"tie_word_embeddings\":false}"},
    {"bigcode/starcoder2-3b", 3030371328, 1e-3,
     "{\"model_type\":\"starcoder2\",\"hidden_size\":3072,\"num_hidden_layers\":30,\"num_attention_heads\":"
     "24,"
     "\"num_key_value_heads\":2,\"intermediate_size\":12288,\"vocab_size\":49152,\"use_bias\":true,"
     "\"sliding_window\":4096}"},
    {"CohereForAI/c4ai-command-r-v01", 34980831232, 1e-3,
     "{\"model_type\":\"cohere\",\"hidden_size\":8192,\"num_hidden_layers\":40,\"num_attention_heads\":64,"
     "\"num_key_value_heads\":64,\"intermediate_size\":22528,\"vocab_size\":256000,\"logit_scale\":0.0625,"
     "\"use_qk_norm\":false}"},
    {"bigscience/bloom-7b1", 7069016064, 1e-3,
     "{\"model_type\":\"bloom\",\"n_embed\":4096,\"n_layer\":30,\"num_attention_heads\":32,\"vocab_size\":"
     "250880,"
     "\"hidden_dropout\":0.0,\"apply_residual_connection_post_layernorm\":false}"},
    {"facebook/opt-1.3b", 1315758080, 1e-3,
     "{\"model_type\":\"opt\",\"hidden_size\":2048,\"num_hidden_layers\":24,\"num_attention_heads\":32,"
     "\"ffn_dim\":8192,\"vocab_size\":50272,\"word_embed_proj_dim\":2048,\"do_layer_norm_before\":true,"
     "\"max_position_embeddings\":2048}"},
    {"baidu/ERNIE-4.5-21B-A3B-Base-PT", 21.83e9, 2e-3,
     "{\"model_type\":\"ernie4_5_moe\",\"hidden_size\":2560,\"num_hidden_layers\":28,\"num_attention_heads\":"
     "20,"
     "\"num_key_value_heads\":4,\"intermediate_size\":12288,\"moe_intermediate_size\":1536,\"moe_num_"
     "experts\":64,"
     "\"moe_k\":6,\"moe_layer_start_index\":1,\"moe_layer_interval\":1,\"moe_num_shared_experts\":2,"
     "\"vocab_size\":103424,\"use_bias\":false}"},
    {"MiniMaxAI/MiniMax-M2", 228.7e9, 2e-3,
     "{\"model_type\":\"minimax_m2\",\"hidden_size\":3072,\"num_hidden_layers\":62,\"num_attention_heads\":"
     "48,"
     "\"num_key_value_heads\":8,\"head_dim\":128,\"intermediate_size\":1536,\"num_local_experts\":256,"
     "\"num_experts_per_tok\":8,\"vocab_size\":200064,\"use_qk_norm\":true,\"use_mtp\":true,"
     "\"num_mtp_modules\":3,\"mtp_transformer_layers\":1,\"rotary_dim\":64}"},
    {"Qwen/Qwen2.5-VL-72B-Instruct, text alone", 72.7e9, 2e-3,
     "{\"model_type\":\"qwen2_5_vl\",\"hidden_size\":8192,\"num_hidden_layers\":80,\"num_attention_heads\":"
     "64,"
     "\"num_key_value_heads\":8,\"intermediate_size\":29568,\"vocab_size\":152064,\"vision_config\":{"
     "\"depth\":32}}"},
};

typedef struct Said {
    GPtrArray *changes, *harmless;
} Said;

static SpecModel imported(const char *text, Said *said)
{
    GError *error = NULL;
    SpecModel model = {0};
    SpecReadContext context;
    said->changes = g_ptr_array_new_with_free_func(g_free);
    said->harmless = g_ptr_array_new_with_free_func(g_free);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "config.json", &error);
    g_assert_no_error(error);
    OrrJsonDoc *object =
        spec_import_hf_said(orr_json_root(doc), "m/config.json", said->changes, said->harmless, &error);
    g_assert_no_error(error);
    spec_read_context_init(&context, "config.json", &spec_table_scenario, false, NULL);
    spec_read_table(&context, &spec_table_model, orr_json_root(object), &model, &error);
    g_assert_no_error(error);
    spec_complete_model(&model, 0, 0, "config.json", NULL, &error);
    g_assert_no_error(error);
    spec_read_context_clear(&context);
    orr_json_free(object);
    orr_json_free(doc);
    return model;
}

static void said_clear(Said *said)
{
    g_ptr_array_unref(said->changes);
    g_ptr_array_unref(said->harmless);
}

static char *joined(const GPtrArray *list)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < list->len; i++)
        g_string_append_printf(text, "%s\n", (const char *)g_ptr_array_index(list, i));
    return g_string_free(text, FALSE);
}

static void test_parameters(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(families); i++) {
        Said said;
        const SpecModel model = imported(families[i].config, &said);
        const double parameters = cost_parameters(&model, 0, false);
        const double off = parameters / families[i].parameters - 1;
        g_test_message("%s: %.0f parameters, published %.0f (%+.4f %%)", families[i].repository, parameters,
                       families[i].parameters, off * 100);
        g_assert_cmpfloat(fabs(off), <, families[i].tolerance_frac);
        g_autofree char *changes = joined(said.changes);
        g_assert_null(
            strstr(changes, "no field of a model answers to")); /* every key of a known family is known */
        said_clear(&said);
    }
}

static void test_said(void)
{
    static const struct {
        const char *config, *changes, *harmless;
    } cases[] = {
        {"{\"model_type\":\"llama\",\"hidden_size\":64,\"num_attention_heads\":1,\"intermediate_size\":64,"
         "\"num_hidden_layers\":1,\"vocab_size\":64,\"frobnicate\":3,\"rms_norm_eps\":1e-5,\"pretraining_"
         "tp\":1}",
         "frobnicate", "rms_norm_eps"},
        {"{\"model_type\":\"gemma2\",\"hidden_size\":64,\"num_attention_heads\":1,\"intermediate_size\":64,"
         "\"num_hidden_layers\":2,\"vocab_size\":64,\"attn_logit_softcapping\":50.0,\"bos_token_id\":2}",
         "attn_logit_softcapping", "bos_token_id"},
        {"{\"model_type\":\"gemma3_text\",\"hidden_size\":64,\"num_attention_heads\":1,\"intermediate_size\":"
         "64,"
         "\"num_hidden_layers\":6,\"vocab_size\":64,\"sliding_window\":32,\"torch_dtype\":\"bfloat16\"}",
         "one layer in so many sees everything", "torch_dtype"},
        {"{\"model_type\":\"deepseek_v32\",\"hidden_size\":64,\"num_attention_heads\":1,\"intermediate_"
         "size\":64,"
         "\"num_hidden_layers\":6,\"vocab_size\":64,\"kv_lora_rank\":8,\"qk_nope_head_dim\":8,\"qk_rope_head_"
         "dim\":8,"
         "\"v_head_dim\":8,\"index_topk\":2048,\"index_n_heads\":64,\"ep_size\":1}",
         "without the indexer", "ep_size"},
        {"{\"model_type\":\"qwen2_5_vl\",\"hidden_size\":64,\"num_attention_heads\":1,\"intermediate_size\":"
         "64,"
         "\"num_hidden_layers\":6,\"vocab_size\":64,\"vision_config\":{\"depth\":3},\"quantization_config\":{"
         "}}",
         "vision_config: the text model alone", "vision_config"},
        {"{\"model_type\":\"opt\",\"hidden_size\":64,\"num_attention_heads\":1,\"num_hidden_layers\":6,"
         "\"vocab_size\":64,"
         "\"word_embed_proj_dim\":32,\"do_layer_norm_before\":false,\"torch_dtype\":\"float16\"}",
         "word_embed_proj_dim: 32", "torch_dtype"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Said said;
        imported(cases[i].config, &said);
        g_autofree char *changes = joined(said.changes), *harmless = joined(said.harmless);
        g_assert_nonnull(strstr(changes, cases[i].changes));
        g_assert_nonnull(strstr(harmless, cases[i].harmless));
        said_clear(&said);
    }
}

/* DeepSeek's groups of experts; those of greedy routers mean nothing. */
static void test_groups(void)
{
    static const char text[] =
        "{\"model_type\":\"deepseek_v3\",\"hidden_size\":7168,\"intermediate_size\":18432,\"moe_intermediate_"
        "size\":2048,"
        "\"num_hidden_layers\":61,\"num_attention_heads\":128,\"vocab_size\":129280,\"n_routed_experts\":256,"
        "\"n_shared_experts\":1,\"num_experts_per_tok\":8,\"first_k_dense_replace\":3,\"q_lora_rank\":1536,"
        "\"kv_lora_rank\":512,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,\"v_head_dim\":128,\"n_"
        "group\":8,"
        "\"topk_group\":4,\"topk_method\":\"%s\"}";
    for (int greedy = 0; greedy < 2; greedy++) {
        Said said;
        g_auto(GStrv) parts = g_strsplit(text, "%s", 2);
        g_autofree char *config = g_strconcat(parts[0], greedy ? "greedy" : "noaux_tc", parts[1], NULL);
        const SpecModel model = imported(config, &said);
        g_assert_cmpint(model.moe.router_groups, ==, greedy ? 0 : 8);
        g_assert_cmpint(model.moe.router_top_groups, ==, greedy ? 0 : 4);
        said_clear(&said);
    }
}

/* Shipped shapes: to the last parameter the published count without what the preset's source says is left out. */
static void test_presets(void)
{
    static const struct {
        const char *name;
        int64_t published, left_out;
        int window_tokens, full_every;
    } cases[] = {
        {"gemma-2-2b", 2614341888, INT64_C(2) * 2304 * 26, 4096, 2}, /* two more norms a layer */
        {"gemma-2-9b", 9241705984, INT64_C(2) * 3584 * 42, 4096, 2},
        {"gemma-2-27b", 27227128320, INT64_C(2) * 4608 * 46, 4096, 2},
        {"gemma-3-1b", 999885952, INT64_C(2) * 1152 * 26, 512, 6},
        {"gemma-3-4b", 3880099328, INT64_C(2) * 2560 * 34, 1024, 6},
        {"gemma-3-12b", 11765788416, INT64_C(2) * 3840 * 48, 1024, 6},
        {"gemma-3-27b", 27009002240, INT64_C(2) * 5376 * 62, 1024, 6},
        {"glm-4-9b", 9399951360, 0, 0, 0},
        /* embedding and head of the prediction layer are stored twice, and routers have a bias of each expert */
        {"glm-4.5", 358337791296, INT64_C(2) * 151552 * 5120 + 160 * 90, 0, 0},
        {"glm-4.5-air", 110468824832, INT64_C(2) * 151552 * 4096 + 128 * 46, 0, 0},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text =
            g_strdup_printf("{\"model\":\"%s\",\"cluster\":{\"preset\":\"dgx-h100\"},\"training\":"
                            "{\"sequence_length\":4096,\"global_batch\":8}}",
                            cases[i].name);
        g_autofree Spec *spec = g_new(Spec, 1);
        g_autoptr(GError) error = NULL;
        OrrJsonDoc *doc = orr_json_parse(text, strlen(text), cases[i].name, &error);
        g_assert_no_error(error);
        spec_load_json(orr_json_root(doc), cases[i].name, NULL, false, spec, NULL, &error);
        g_assert_no_error(error);
        orr_json_free(doc);
        g_assert_cmpint(llround(cost_parameters(&spec->model, 0, false)), ==,
                        cases[i].published - cases[i].left_out);
        g_assert_cmpint(spec->model.attention_window_tokens, ==, cases[i].window_tokens);
        g_assert_cmpint(spec->model.attention_full_every, ==, cases[i].full_every);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/import/families/parameters", test_parameters);
    g_test_add_func("/import/families/said", test_said);
    g_test_add_func("/import/families/groups", test_groups);
    g_test_add_func("/import/families/presets", test_presets);
    return g_test_run();
}
