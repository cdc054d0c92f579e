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

static void words(void)
{
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
        {"torchtitan", ALLOCATOR("\"pipeline_keeps_outputs\":true"),
         ALLOCATOR("\"pipeline_keeps\":\"outputs\"")},
        {"torchtitan", ALLOCATOR("\"pipeline_keeps_boundaries\":false"),
         ALLOCATOR("\"pipeline_keeps\":\"in-flight\"")},
        {"megatron-core", KERNELS("\"early_cudnn\":true"), KERNELS("\"cudnn\":\"before-9.17\"")},
        {"megatron-core-2025", KERNELS("\"latent_heads_blackwell\":true"),
         KERNELS("\"cudnn\":\"before-9.17\"")},
        {"megatron-core", "\"fused_rope\":false",
         KERNELS("\"rope\":\"complex\"")}, /* before there were groups */
    };
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
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/framework-words/words", words);
    g_test_add_func("/framework-words/refusals", refusals);
    return g_test_run();
}
