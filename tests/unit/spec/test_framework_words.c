/* tests/unit/spec/test_framework_words.c - what a recipe's old keys say is words of today: a framework that has the old ones
 * is the same, member by member, as one that has the words. */
#include <string.h>

#include "spec/load.h"

/* The framework of a scenario that starts from `preset`, with `members` (one object's, without braces) over it. */
static bool load(const char *preset, const char *members, SpecFramework *ret_framework, GError **error)
{
    g_autofree char *text =
        g_strdup_printf("{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},"
                        "\"training\":{\"sequence_length\":4096,\"global_batch\":8},"
                        "\"execution\":{\"framework\":{\"preset\":\"%s\"%s%s}}}",
                        preset, members[0] != '\0' ? "," : "", members);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", error);
    g_assert_nonnull(doc);
    Spec spec;
    const bool ok = spec_load_json(orr_json_root(doc), "test", NULL, true, &spec, NULL, error);
    orr_json_free(doc);
    if (ok)
        *ret_framework = spec.execution.framework;
    return ok;
}

static void same(const char *preset, const char *old, const char *today)
{
    SpecFramework before, now;
    GError *error = NULL;
    g_test_message("%s: %s is %s", preset, old, today);
    load(preset, old, &before, &error);
    g_assert_no_error(error);
    load(preset, today, &now, &error);
    g_assert_no_error(error);
    g_assert_true(memcmp(&before, &now, sizeof now) == 0);
}

#define DATA(members)      "\"data_parallel\":{" members "}"
#define PIPELINE(members)  "\"pipeline\":{" members "}"
#define ALLOCATOR(members) "\"allocator\":{" members "}"
#define KERNELS(members)   "\"kernels\":{" members "}"
#define HOST(members)      "\"host\":{" members "}"
#define TENSOR(members)    "\"tensor\":{" members "}"
#define EXPERTS(members)   "\"experts\":{" members "}"
#define OPTIMIZER(members) "\"optimizer\":{" members "}"

static const char *const CASES[][3] = {
    {"megatron-core", KERNELS("\"fused_rope\":false"), KERNELS("\"rope\":\"complex\"")},
    {"megatron-core", KERNELS("\"rope_by_halves\":true"), ""}, /* its own is one kernel */
    {"megatron-core", KERNELS("\"rope_joins\":true,\"fused_rope\":false,\"rope_by_halves\":true"),
     KERNELS("\"rope\":\"halves-joined\"")},
    {"litgpt", KERNELS("\"fused_rope\":false"), ""},
    {"litgpt", KERNELS("\"rope_joins\":false"), KERNELS("\"rope\":\"halves\"")},
    {"megatron-core-2025", KERNELS("\"fused_mla_rope\":true"), KERNELS("\"rope\":\"fused\"")},
    {"megatron-core", KERNELS("\"norm_upcasts_fp32\":true"), KERNELS("\"norm\":\"eager-fp32\"")},
    {"internevo", KERNELS("\"norm_upcasts_fp32\":false"), ""},
    {"internevo", KERNELS("\"norm_on_fp32_copy\":false"), KERNELS("\"norm\":\"fused\"")},
    {"megatron-core", KERNELS("\"masked_softmax\":false"), KERNELS("\"softmax\":\"fused\"")},
    {"megatron-core", KERNELS("\"fused_softmax\":false"), KERNELS("\"softmax\":\"eager-fp32\"")},
    {"llm-foundry", KERNELS("\"fused_softmax\":false,\"softmax_upcasts_fp32\":false"),
     KERNELS("\"softmax\":\"eager-16bit\"")},
    {"nvidia-bert", KERNELS("\"additive_mask\":false"), KERNELS("\"softmax\":\"eager-16bit\"")},
    {"nvidia-bert", KERNELS("\"fused_softmax\":true"), KERNELS("\"softmax\":\"fused\"")},
    {"nvidia-bert-2019", KERNELS("\"fused_bias_gelu\":false"), ""}, /* its formula stays spelled out */
    {"nvidia-bert-2019", KERNELS("\"fused_bias_gelu\":true"), KERNELS("\"gelu\":\"fused-bias\"")},
    {"llm-foundry", KERNELS("\"bias_in_product\":true"), KERNELS("\"bias\":\"in-product\"")},
    {"nvidia-bert", KERNELS("\"qkv_bias_apart\":false"), KERNELS("\"bias\":\"added\"")},
    {"paxml", KERNELS("\"onehot_embedding\":false"), KERNELS("\"embedding\":\"rows\"")},
    {"llm-foundry", KERNELS("\"table_gradient\":true"), KERNELS("\"embedding\":\"table\"")},
    {"megatron-core", KERNELS("\"fused_grad_accumulation\":false,\"gradient_upcast\":true"),
     KERNELS("\"gradient_sum\":\"widened-pass\"")},
    {"megatron-deepspeed", KERNELS("\"gradient_upcast\":false"), KERNELS("\"gradient_sum\":\"pass\"")},
    {"llm-foundry", KERNELS("\"odd_vocab\":true,\"compiler_pads\":true"),
     KERNELS("\"vocab_rows\":\"compiler-pads\"")},
    {"megatron-core", DATA("\"buckets_of_tensors\":false"), DATA("\"bucket_fill\":\"layers\"")},
    {"pytorch-ddp", DATA("\"cuts_layers\":false"), DATA("\"bucket_fill\":\"layers\"")},
    {"pytorch-ddp", DATA("\"buckets_from_first\":true"), DATA("\"bucket_fill\":\"from-first\"")},
    {"megatron-llama", DATA("\"zero1_overlap_shards\":false"), DATA("\"zero1_reduces\":\"scatter\"")},
    {"megatron-core", DATA("\"reduce_scatter\":false"), DATA("\"zero1_reduces\":\"all-reduce\"")},
    {"deepspeed", DATA("\"zero1_all_reduces\":false"), DATA("\"zero1_reduces\":\"scatter\"")},
    {"megatron-core", DATA("\"reduce_scatter\":true"), ""},
    {"nanotron", DATA("\"hooks_reduce_unsharded\":false"), DATA("\"reductions\":\"as-asked\"")},
    {"nanotron", DATA("\"reduces_at_end\":true"), DATA("\"reductions\":\"at-end\"")},
    {"megatron-llama", DATA("\"reduction_holds_queue\":true"), DATA("\"reductions\":\"hold-queue\"")},
    {"megatron-deepspeed", DATA("\"hooks_reduce_unsharded\":true"), ""}, /* it waits for the end */
    {"deepspeed-2021", DATA("\"gather_waits_for_gpu\":false"), DATA("\"gathers\":\"tensors\"")},
    {"deepspeed-2021", DATA("\"gathers_each_tensor\":false"), DATA("\"gathers\":\"units\"")},
    {"internevo", DATA("\"gathers_by_broadcast\":false"), DATA("\"gathers\":\"units\"")},
    {"deepspeed", PIPELINE("\"p2p_partitioned_tensors\":false"),
     PIPELINE("\"p2p_tensors\":\"scatter-gather\"")},
    {"megatron-core", PIPELINE("\"p2p_scatter_gather\":true"),
     PIPELINE("\"p2p_tensors\":\"scatter-gather\"")},
    {"torchtitan", ALLOCATOR("\"pipeline_keeps_outputs\":true"), ALLOCATOR("\"pipeline_keeps\":\"outputs\"")},
    {"torchtitan", ALLOCATOR("\"pipeline_keeps_boundaries\":false"),
     ALLOCATOR("\"pipeline_keeps\":\"in-flight\"")},
    {"megatron-core", KERNELS("\"early_cudnn\":true"), KERNELS("\"cudnn\":\"before-9.17\"")},
    {"megatron-core-2025", KERNELS("\"latent_heads_blackwell\":true"), KERNELS("\"cudnn\":\"before-9.17\"")},
    {"megatron-core", HOST("\"microbatch_sync\":true"), HOST("\"waits\":\"each-micro-batch\"")},
    {"megatron-deepspeed-2022", HOST("\"launch_blocking\":false"), HOST("\"waits\":\"each-micro-batch\"")},
    {"megatron-core", HOST("\"launch_blocking\":true"), HOST("\"waits\":\"each-kernel\"")},
    {"megatron-core", PIPELINE("\"p2p_overlap_needs_chunks\":false"), PIPELINE("\"p2p_waits\":\"as-asked\"")},
    {"torchtitan", PIPELINE("\"p2p_blocking\":true,\"p2p_overlap_needs_chunks\":true"),
     PIPELINE("\"p2p_waits\":\"always-in-1f1b\"")},
    {"megatron-core", PIPELINE("\"p2p_blocking\":false"), PIPELINE("\"p2p_waits\":\"never\"")},
    {"megatron-core", TENSOR("\"chunked_tensor_overlap\":false,\"local_chunk_gemms\":true"),
     TENSOR("\"tensor_overlap\":\"own-products\"")},
    {"nanotron", TENSOR("\"chunked_tensor_overlap\":true"), TENSOR("\"tensor_overlap\":\"pieces\"")},
    {"torchtitan", TENSOR("\"sums_pieces\":false"), TENSOR("\"tensor_overlap\":\"pieces\"")},
    {"megatron-core", KERNELS("\"transposes_after_cast\":true,\"saves_unquantized_inputs\":true"),
     KERNELS("\"casts\":\"torchao\"")},
    {"torchtitan", TENSOR("\"reduces_maximum\":false"), KERNELS("\"casts\":\"transformer-engine\"")},
    {"megatron-core", KERNELS("\"fused_hadamard_cast\":false,\"mxfp8_attention\":false"),
     KERNELS("\"transformer_engine\":\"before-2.14\"")},
    {"megatron-core-2026", KERNELS("\"fused_hadamard_cast\":true"),
     KERNELS("\"transformer_engine\":\"before-2.16\"")},
    {"megatron-core-2026", KERNELS("\"mxfp8_attention\":true"),
     KERNELS("\"transformer_engine\":\"since-2.16\"")},
    {"megatron-core", KERNELS("\"casts_order_scales\":false"),
     KERNELS("\"transformer_engine\":\"before-2.12\"")},
    {"megatron-core-2026", EXPERTS("\"permute_walks_experts\":true"),
     KERNELS("\"transformer_engine\":\"before-2.6\"")},
    {"megatron-core", KERNELS("\"separate_projections\":true"), KERNELS("\"projections\":\"separate\"")},
    {"torchtitan", TENSOR("\"gathers_each_projection\":true"),
     KERNELS("\"projections\":\"separate-exchanged\"")},
    {"torchtitan", KERNELS("\"separate_projections\":false"), KERNELS("\"projections\":\"joined\"")},
    {"megatron-core", OPTIMIZER("\"host_gradients_at_step\":false"),
     OPTIMIZER("\"host_gradients\":\"as-made\"")},
    {"megatron-core",
     OPTIMIZER("\"host_gradient_waits\":true,\"host_sums_return\":true,\"host_gradient_returns\":true"),
     OPTIMIZER("\"host_gradients\":\"returned\"")},
    {"deepspeed", OPTIMIZER("\"host_gradient_returns\":false"), OPTIMIZER("\"host_gradients\":\"as-made\"")},
    {"torchtitan", DATA("\"pipeline_keeps_params\":false"), DATA("\"resharding\":\"after-forward\"")},
    {"deepspeed", DATA("\"regathers_recompute\":false"), DATA("\"resharding\":\"after-forward\"")},
    {"meta-llama3", DATA("\"reshard_after_forward\":true"), DATA("\"resharding\":\"after-forward\"")},
    {"torchtitan", DATA("\"reshard_after_forward\":false"), DATA("\"resharding\":\"never\"")},
    {"megatron-lm-2023", OPTIMIZER("\"optimizer_post_validation\":false"),
     OPTIMIZER("\"grad_norm\":\"before-step\"")},
    {"torchtune", OPTIMIZER("\"grad_norm_clip\":true"), OPTIMIZER("\"grad_norm\":\"before-step\"")},
    {"megatron-core", OPTIMIZER("\"grad_norm_clip\":false"), OPTIMIZER("\"grad_norm\":\"none\"")},
    {"megatron-core", EXPERTS("\"grouped_experts\":true"), EXPERTS("\"expert_products\":\"grouped\"")},
    {"nvidia-mlperf", EXPERTS("\"fused_grouped_mlp\":false"), EXPERTS("\"expert_products\":\"each\"")},
    {"nanotron", ALLOCATOR("\"gradients_within_backward\":false"), ALLOCATOR("\"gradients\":\"kept\"")},
    {"torchtitan", ALLOCATOR("\"clears_gradients\":true"), ALLOCATOR("\"gradients\":\"cleared\"")},
    {"megatron-core", "\"fused_rope\":false", KERNELS("\"rope\":\"complex\"")}, /* before there were groups */
    {"megatron-core", "\"learned\":{\"norms_excess_frac\":0.5,\"all_reduce_excess_frac\":-0.1}",
     "\"learned\":[{\"class\":\"all-reduce\",\"excess_frac\":-0.1},"
     "{\"class\":\"norms\",\"excess_frac\":0.5}]"},
};

static void words(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++)
        same(CASES[i][0], CASES[i][1], CASES[i][2]);
}

/* A value that no word stands for, and the old key beside the one of today. */
static void refusals(void)
{
    SpecFramework framework;
    GError *error = NULL;
    g_assert_false(load("megatron-core", KERNELS("\"fused_rope\":3"), &framework, &error));
    g_assert_nonnull(strstr(error->message, "kernels.fused_rope is 3"));
    g_assert_nonnull(strstr(error->message, "kernels.rope"));
    g_clear_error(&error);
    g_assert_false(
        load("megatron-core", KERNELS("\"fused_rope\":true,\"rope\":\"halves\""), &framework, &error));
    g_assert_nonnull(strstr(error->message, "kernels.rope"));
    g_clear_error(&error);
    static const char *const lists[][2] = {{"[{\"class\":\"norms\"}]", "excess_frac"},
                                           {"[{\"class\":\"norm\",\"excess_frac\":1}]", "norms"},
                                           {"[{\"class\":\"norms\",\"excess_frac\":1},{\"class\":\"norms\","
                                            "\"excess_frac\":2}]",
                                            "norms twice"},
                                           {"[{\"class\":\"norms\",\"excess_frac\":-1}]", "-0.95"},
                                           {"{\"norms_excess_frac\":20}", "19"},
                                           {"1", "list"}};
    for (gsize i = 0; i < G_N_ELEMENTS(lists); i++) {
        g_autofree char *member = g_strconcat("\"learned\":", lists[i][0], NULL);
        g_assert_false(load("megatron-core", member, &framework, &error));
        g_assert_nonnull(strstr(error->message, "framework.learned"));
        g_assert_nonnull(strstr(error->message, lists[i][1]));
        g_clear_error(&error);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/framework-words/words", words);
    g_test_add_func("/framework-words/refusals", refusals);
    return g_test_run();
}
