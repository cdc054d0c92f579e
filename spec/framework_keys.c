/* spec/framework_keys.c - keys of a framework as recipes had them once: without groups, or where a word says it today. */
#include "spec/framework_keys.h"

#include <string.h>

#include "spec/fields.h"
#include "spec/read.h"

/* Keys that have another name in their group. */
static const struct {
    const char *flat, *grouped;
} renamed[] = {
    {"loss", "loss.kernel"},
    {"own_part_products", "tensor.local_chunk_gemms"},
    {"list_passes", "data_parallel.tensor_list_copies"},
    {"list_rank_host_s", "data_parallel.tensor_list_rank_host_s"},
    {"logs_reserved", "allocator.log_reports_reserved"},
};

/* Keys that recipes had once, and why they have them no more. Read, noted and left out. */
static const struct {
    const char *group, *key, *why;
} deleted[] = {
    {"kernels", "compiled_kernel_frac", "compiled layers list the kernels that are left"},
    {"kernels", "qkv_copies", "copies are entries of the list ops"},
    {"kernels", "qkv_backward_copies", "copies are entries of the list ops"},
    {"context", "context_merge_bytes", "context_merge names the kernels"},
    {"context", "context_merge_backward_bytes", "context_merge names the kernels"},
    {"context", "context_merge_kernels", "context_merge names the kernels"},
};

/* Keys whose facts are words of another key today, in the order in which they are read: `from` is what that key must say
 * for the row to count, any of the words between bars; NULL: whatever it says. */
static const struct {
    const char *old, *value, *from, *today, *to;
} translated[] = {
    {"kernels.fused_rope", "false", "fused|fused-not-latent", "kernels.rope", "complex"},
    {"kernels.rope_by_halves", "false", "halves|halves-joined", "kernels.rope", "complex"},
    {"kernels.rope_by_halves", "true", "complex", "kernels.rope", "halves"},
    {"kernels.rope_joins", "false", "halves-joined", "kernels.rope", "halves"},
    {"kernels.rope_joins", "true", "halves", "kernels.rope", "halves-joined"},
    {"kernels.fused_rope", "true", "complex|halves|halves-joined", "kernels.rope", "fused"},
    {"kernels.fused_mla_rope", "true", "fused-not-latent", "kernels.rope", "fused"},
    {"kernels.fused_mla_rope", "false", "fused", "kernels.rope", "fused-not-latent"},
    {"kernels.norm_upcasts_fp32", "false", "eager-fp32", "kernels.norm", "fused"},
    {"kernels.norm_upcasts_fp32", "true", "fused", "kernels.norm", "eager-fp32"},
    {"kernels.norm_on_fp32_copy", "false", "fp32-copy", "kernels.norm", "fused"},
    {"kernels.norm_on_fp32_copy", "true", NULL, "kernels.norm", "fp32-copy"},
    {"kernels.fused_softmax", "false", "fused|fused-masked", "kernels.softmax", "eager-fp32"},
    {"kernels.softmax_upcasts_fp32", "true", "eager-16bit|eager-16bit-added-mask", "kernels.softmax",
     "eager-fp32"},
    {"kernels.softmax_upcasts_fp32", "false", "eager-fp32", "kernels.softmax", "eager-16bit"},
    {"kernels.additive_mask", "false", "eager-16bit-added-mask", "kernels.softmax", "eager-16bit"},
    {"kernels.additive_mask", "true", "eager-16bit", "kernels.softmax", "eager-16bit-added-mask"},
    {"kernels.fused_softmax", "true", "eager-fp32|eager-16bit|eager-16bit-added-mask", "kernels.softmax",
     "fused"},
    {"kernels.masked_softmax", "false", "fused-masked", "kernels.softmax", "fused"},
    {"kernels.masked_softmax", "true", "fused", "kernels.softmax", "fused-masked"},
    {"kernels.fused_bias_gelu", "false", "fused-bias", "kernels.gelu", "kernel"},
    {"kernels.fused_bias_gelu", "true", NULL, "kernels.gelu", "fused-bias"},
    {"kernels.qkv_bias_apart", "false", "qkv-apart", "kernels.bias", "added"},
    {"kernels.bias_in_product", "false", "in-product", "kernels.bias", "added"},
    {"kernels.bias_in_product", "true", NULL, "kernels.bias", "in-product"},
    {"kernels.qkv_bias_apart", "true", "added", "kernels.bias", "qkv-apart"},
    {"kernels.table_gradient", "false", "table", "kernels.embedding", "rows"},
    {"kernels.table_gradient", "true", "rows", "kernels.embedding", "table"},
    {"kernels.onehot_embedding", "false", "one-hot", "kernels.embedding", "rows"},
    {"kernels.onehot_embedding", "true", NULL, "kernels.embedding", "one-hot"},
    {"kernels.fused_grad_accumulation", "false", "in-product", "kernels.gradient_sum", "pass"},
    {"kernels.gradient_upcast", "false", "widened-pass", "kernels.gradient_sum", "pass"},
    {"kernels.gradient_upcast", "true", "pass", "kernels.gradient_sum", "widened-pass"},
    {"kernels.fused_grad_accumulation", "true", NULL, "kernels.gradient_sum", "in-product"},
    {"kernels.odd_vocab", "false", NULL, "kernels.vocab_rows", "padded"},
    {"kernels.odd_vocab", "true", "padded", "kernels.vocab_rows", "odd"},
    {"data_parallel.cuts_layers", "false", "cut-layers", "data_parallel.bucket_fill", "layers"},
    {"data_parallel.cuts_layers", "true", "layers", "data_parallel.bucket_fill", "cut-layers"},
    {"data_parallel.buckets_of_tensors", "false", "from-last", "data_parallel.bucket_fill", "layers"},
    {"data_parallel.buckets_of_tensors", "true", NULL, "data_parallel.bucket_fill", "from-last"},
    {"data_parallel.buckets_from_first", "false", "from-first", "data_parallel.bucket_fill", "layers"},
    {"data_parallel.buckets_from_first", "true", NULL, "data_parallel.bucket_fill", "from-first"},
    {"data_parallel.zero1_overlap_shards", "false", "scatter-early", "data_parallel.zero1_reduces",
     "scatter"},
    {"data_parallel.zero1_overlap_shards", "true", "scatter", "data_parallel.zero1_reduces", "scatter-early"},
    {"data_parallel.reduce_scatter", "true", "all-reduce", "data_parallel.zero1_reduces", "scatter"},
    {"data_parallel.reduce_scatter", "false", NULL, "data_parallel.zero1_reduces", "all-reduce"},
    {"data_parallel.zero1_all_reduces", "false", "all-reduce", "data_parallel.zero1_reduces", "scatter"},
    {"data_parallel.zero1_all_reduces", "true", NULL, "data_parallel.zero1_reduces", "all-reduce"},
    {"data_parallel.hooks_reduce_unsharded", "false", "hooks", "data_parallel.reductions", "as-asked"},
    {"data_parallel.hooks_reduce_unsharded", "true", "as-asked", "data_parallel.reductions", "hooks"},
    {"data_parallel.reduces_at_end", "false", "at-end", "data_parallel.reductions", "as-asked"},
    {"data_parallel.reduces_at_end", "true", NULL, "data_parallel.reductions", "at-end"},
    {"data_parallel.reduction_holds_queue", "false", "hold-queue", "data_parallel.reductions", "as-asked"},
    {"data_parallel.reduction_holds_queue", "true", NULL, "data_parallel.reductions", "hold-queue"},
    {"data_parallel.gathers_each_tensor", "false", "tensors|tensors-drained", "data_parallel.gathers",
     "units"},
    {"data_parallel.gathers_each_tensor", "true", "units", "data_parallel.gathers", "tensors"},
    {"data_parallel.gather_waits_for_gpu", "false", "tensors-drained", "data_parallel.gathers", "tensors"},
    {"data_parallel.gather_waits_for_gpu", "true", NULL, "data_parallel.gathers", "tensors-drained"},
    {"data_parallel.gathers_by_broadcast", "false", "broadcasts", "data_parallel.gathers", "units"},
    {"data_parallel.gathers_by_broadcast", "true", NULL, "data_parallel.gathers", "broadcasts"},
    {"pipeline.p2p_scatter_gather", "false", NULL, "pipeline.p2p_tensors", "whole"},
    {"pipeline.p2p_scatter_gather", "true", "whole", "pipeline.p2p_tensors", "scatter-gather"},
    {"pipeline.p2p_partitioned_tensors", "false", "partitioned", "pipeline.p2p_tensors", "scatter-gather"},
    {"pipeline.p2p_partitioned_tensors", "true", NULL, "pipeline.p2p_tensors", "partitioned"},
    {"allocator.pipeline_keeps_boundaries", "false", NULL, "allocator.pipeline_keeps", "in-flight"},
    {"allocator.pipeline_keeps_boundaries", "true", "in-flight", "allocator.pipeline_keeps", "boundaries"},
    {"allocator.pipeline_keeps_outputs", "false", "outputs", "allocator.pipeline_keeps", "boundaries"},
    {"allocator.pipeline_keeps_outputs", "true", "boundaries", "allocator.pipeline_keeps", "outputs"},
    {"kernels.early_cudnn", "false", "before-9.17|before-9.11", "kernels.cudnn", "since-9.17"},
    {"kernels.early_cudnn", "true", "since-9.17", "kernels.cudnn", "before-9.17"},
    {"kernels.latent_heads_blackwell", "true", "before-9.11", "kernels.cudnn", "before-9.17"},
    {"kernels.latent_heads_blackwell", "false", NULL, "kernels.cudnn", "before-9.11"},
    {"kernels.compiler_pads", "false", "compiler-pads", "kernels.vocab_rows", "odd"},
    {"kernels.compiler_pads", "true", "odd", "kernels.vocab_rows", "compiler-pads"},
    {"host.microbatch_sync", "false", "each-micro-batch", "host.waits", "none"},
    {"host.microbatch_sync", "true", "none", "host.waits", "each-micro-batch"},
    {"host.launch_blocking", "false", "each-kernel", "host.waits", "each-micro-batch"},
    {"host.launch_blocking", "true", NULL, "host.waits", "each-kernel"},
    {"pipeline.p2p_blocking", "false", NULL, "pipeline.p2p_waits", "never"},
    {"pipeline.p2p_blocking", "true", "never", "pipeline.p2p_waits", "as-asked"},
    {"pipeline.p2p_overlap_needs_chunks", "false", "always-in-1f1b", "pipeline.p2p_waits", "as-asked"},
    {"pipeline.p2p_overlap_needs_chunks", "true", "as-asked", "pipeline.p2p_waits", "always-in-1f1b"},
    {"tensor.sums_pieces", "false", "summed-pieces", "tensor.tensor_overlap", "pieces"},
    {"tensor.sums_pieces", "true", "pieces", "tensor.tensor_overlap", "summed-pieces"},
    {"tensor.chunked_tensor_overlap", "false", "pieces|summed-pieces", "tensor.tensor_overlap", "own-part"},
    {"tensor.chunked_tensor_overlap", "true", "own-part|own-products", "tensor.tensor_overlap", "pieces"},
    {"tensor.local_chunk_gemms", "false", "own-products", "tensor.tensor_overlap", "own-part"},
    {"tensor.local_chunk_gemms", "true", "own-part", "tensor.tensor_overlap", "own-products"},
    {"kernels.transposes_after_cast", "false", NULL, "kernels.casts", "transformer-engine"},
    {"kernels.transposes_after_cast", "true", NULL, "kernels.casts", "torchao"},
    {"kernels.saves_unquantized_inputs", "false", NULL, "kernels.casts", "transformer-engine"},
    {"kernels.saves_unquantized_inputs", "true", NULL, "kernels.casts", "torchao"},
    {"tensor.reduces_maximum", "false", NULL, "kernels.casts", "transformer-engine"},
    {"tensor.reduces_maximum", "true", NULL, "kernels.casts", "torchao"},
    {"kernels.fused_hadamard_cast", "false", "before-2.16|since-2.16", "kernels.transformer_engine",
     "before-2.14"},
    {"kernels.fused_hadamard_cast", "true", "before-2.6|before-2.12|before-2.14",
     "kernels.transformer_engine", "before-2.16"},
    {"kernels.mxfp8_attention", "false", "since-2.16", "kernels.transformer_engine", "before-2.16"},
    {"kernels.mxfp8_attention", "true", NULL, "kernels.transformer_engine", "since-2.16"},
    {"kernels.casts_order_scales", "false", "before-2.14|before-2.16|since-2.16",
     "kernels.transformer_engine", "before-2.12"},
    {"kernels.casts_order_scales", "true", "before-2.6|before-2.12", "kernels.transformer_engine",
     "before-2.14"},
    {"experts.permute_walks_experts", "false", "before-2.6", "kernels.transformer_engine", "before-2.12"},
    {"experts.permute_walks_experts", "true", NULL, "kernels.transformer_engine", "before-2.6"},
    {"context.traced_exchange_waits", "false", "fused", "context.context_merge", "fused"},
    {"context.traced_exchange_waits", "true", NULL, "context.context_merge", "eager"},
    {"kernels.separate_projections", "false", NULL, "kernels.projections", "joined"},
    {"kernels.separate_projections", "true", "joined", "kernels.projections", "separate"},
    {"tensor.gathers_each_projection", "false", "separate-exchanged", "kernels.projections", "separate"},
    {"tensor.gathers_each_projection", "true", "separate", "kernels.projections", "separate-exchanged"},
    {"optimizer.host_gradients_at_step", "false", "at-step", "optimizer.host_gradients", "as-made"},
    {"optimizer.host_gradients_at_step", "true", NULL, "optimizer.host_gradients", "at-step"},
    {"optimizer.host_gradient_returns", "false", "returned", "optimizer.host_gradients", "as-made"},
    {"optimizer.host_gradient_returns", "true", NULL, "optimizer.host_gradients", "returned"},
    {"optimizer.host_gradient_waits", "false", "returned", "optimizer.host_gradients", "as-made"},
    {"optimizer.host_gradient_waits", "true", NULL, "optimizer.host_gradients", "returned"},
    {"optimizer.host_sums_return", "false", "returned", "optimizer.host_gradients", "as-made"},
    {"optimizer.host_sums_return", "true", NULL, "optimizer.host_gradients", "returned"},
    {"data_parallel.pipeline_keeps_params", "false", "unless-pipeline", "data_parallel.resharding",
     "after-forward"},
    {"data_parallel.pipeline_keeps_params", "true", NULL, "data_parallel.resharding", "unless-pipeline"},
    {"data_parallel.regathers_recompute", "false", "after-recompute", "data_parallel.resharding",
     "after-forward"},
    {"data_parallel.regathers_recompute", "true", NULL, "data_parallel.resharding", "after-recompute"},
    {"data_parallel.reshard_after_forward", "false", NULL, "data_parallel.resharding", "never"},
    {"data_parallel.reshard_after_forward", "true", "never", "data_parallel.resharding", "after-forward"},
    {"optimizer.optimizer_post_validation", "false", "validated-later", "optimizer.grad_norm", "before-step"},
    {"optimizer.optimizer_post_validation", "true", "before-step", "optimizer.grad_norm", "validated-later"},
    {"optimizer.grad_norm_clip", "false", NULL, "optimizer.grad_norm", "none"},
    {"optimizer.grad_norm_clip", "true", "none", "optimizer.grad_norm", "before-step"},
    {"experts.grouped_experts", "false", "grouped", "experts.expert_products", "each"},
    {"experts.grouped_experts", "true", "each", "experts.expert_products", "grouped"},
    {"experts.fused_grouped_mlp", "false", "fused", "experts.expert_products", "each"},
    {"experts.fused_grouped_mlp", "true", NULL, "experts.expert_products", "fused"},
    {"allocator.gradients_within_backward", "false", "dropped-in-backward", "allocator.gradients", "kept"},
    {"allocator.gradients_within_backward", "true", NULL, "allocator.gradients", "dropped-in-backward"},
    {"allocator.clears_gradients", "false", "cleared", "allocator.gradients", "kept"},
    {"allocator.clears_gradients", "true", NULL, "allocator.gradients", "cleared"},
};

static bool has_key(const SpecTable *table, const char *key)
{
    for (int i = 0; i < table->count; i++)
        if (strcmp(table->fields[i].key, key) == 0)
            return true;
    return false;
}

char *spec_framework_grouped_key(const char *flat)
{
    for (guint i = 0; i < G_N_ELEMENTS(renamed); i++)
        if (strcmp(renamed[i].flat, flat) == 0)
            return g_strdup(renamed[i].grouped);
    for (guint i = 0; i < G_N_ELEMENTS(deleted); i++)
        if (strcmp(deleted[i].key, flat) == 0)
            return g_strconcat(deleted[i].group, ".", flat, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(translated); i++)
        if (strcmp(strchr(translated[i].old, '.') + 1, flat) == 0)
            return g_strdup(translated[i].old);
    const SpecTable *framework = &spec_table_framework;
    for (int i = 0; i < framework->count; i++) {
        const SpecField *group = &framework->fields[i];
        if (group->type == SPEC_TYPE_OBJECT && has_key(group->table, flat))
            return g_strconcat(group->key, ".", flat, NULL);
    }
    return NULL;
}

/* Member of `object` at "group.key", or NULL. */
static const OrrJson *grouped_member(const OrrJson *object, const char *path)
{
    char name[64]; /* asked of every old key at every load: nothing is allocated for it */
    const char *dot = strchr(path, '.');
    g_assert(dot != NULL && (gsize)(dot - path) < sizeof name);
    memcpy(name, path, (gsize)(dot - path));
    name[dot - path] = '\0';
    const OrrJson *group = orr_json_member(object, name);
    return group != NULL && orr_json_type(group) == ORR_JSON_OBJECT ? orr_json_member(group, dot + 1) : NULL;
}

bool spec_framework_group_keys(OrrJsonDoc *doc, const char *where, const char *key, GError **error)
{
    g_autoptr(GPtrArray) flat = g_ptr_array_new_with_free_func(g_free);
    for (const OrrJson *member = orr_json_first(orr_json_root(doc)); member != NULL;
         member = orr_json_next(member)) {
        g_autofree char *grouped = spec_framework_grouped_key(orr_json_key(member));
        if (grouped != NULL && orr_json_type(member) != ORR_JSON_OBJECT)
            g_ptr_array_add(flat, g_strdup(orr_json_key(member)));
    }
    for (guint i = 0; i < flat->len; i++) {
        const char *old = g_ptr_array_index(flat, i);
        g_autofree char *grouped = spec_framework_grouped_key(old);
        g_autofree char *value = orr_json_dump(orr_json_member(orr_json_root(doc), old));
        if (grouped_member(orr_json_root(doc), grouped) != NULL)
            return orr_fail(error, ORR_ERROR_INPUT,
                            "%s: %s: \"%s\" is \"%s\" today, and both are given; keep the latter", where, key,
                            old, grouped);
        orr_json_remove(doc, old);
        if (!orr_json_set(doc, grouped, value, error))
            return false;
    }
    return true;
}

static void remove_member(OrrJsonDoc *doc, const char *path)
{
    g_auto(GStrv) keys = g_strsplit(path, ".", 2);
    OrrJsonDoc *rest = orr_json_copy(orr_json_member(orr_json_root(doc), keys[0]), orr_json_name(doc));
    orr_json_remove(rest, keys[1]);
    orr_json_take(doc, keys[0], rest);
}

static void drop_deleted(OrrJsonDoc *doc, const char *where, GPtrArray *notes)
{
    for (guint i = 0; i < G_N_ELEMENTS(deleted); i++) {
        g_autofree char *path = g_strconcat(deleted[i].group, ".", deleted[i].key, NULL);
        if (grouped_member(orr_json_root(doc), path) == NULL)
            continue;
        remove_member(doc, path);
        if (notes != NULL)
            g_ptr_array_add(notes,
                            g_strdup_printf("%s: %s is not a key of frameworks any more and does nothing: %s",
                                            where, path, deleted[i].why));
    }
}

static bool is_among(const char *word, const char *words)
{
    g_auto(GStrv) list = g_strsplit(words, "|", -1);
    return g_strv_contains((const char *const *)list, word);
}

/* What the framework says at `path`, or the default of its field; g_free. */
static char *word_at(const OrrJson *framework, const char *path)
{
    g_auto(GStrv) keys = g_strsplit(path, ".", 2);
    const OrrJson *node = grouped_member(framework, path);
    const SpecField *group = spec_table_find(&spec_table_framework, keys[0]);
    const SpecField *field = group != NULL ? spec_table_find(group->table, keys[1]) : NULL;
    char *text = node != NULL ? orr_json_dump(node) : g_strdup(field != NULL ? field->default_text : "");
    const gsize length = strlen(text);
    if (length < 2 || text[0] != '"')
        return text;
    char *word = g_strndup(text + 1, length - 2);
    g_free(text);
    return word;
}

/* The words that stand for an old key's value; none: it has no equal today. */
static bool translate_key(OrrJsonDoc *doc, guint at, const char *where, GError **error)
{
    const OrrJson *node = grouped_member(orr_json_root(doc), translated[at].old);
    if (node == NULL)
        return true;
    g_autofree char *value = orr_json_dump(node);
    bool known = false;
    for (guint i = 0; i < G_N_ELEMENTS(translated); i++)
        known = known || (strcmp(translated[i].old, translated[at].old) == 0 &&
                          strcmp(translated[i].value, value) == 0);
    if (!known)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: framework: %s is %s; that key is a word of \"%s\" today, and this value has none; "
            "give the word",
            where, translated[at].old, value, translated[at].today);
    if (strcmp(translated[at].value, value) != 0)
        return true;
    g_autofree char *now = word_at(orr_json_root(doc), translated[at].today);
    if (translated[at].from != NULL && !is_among(now, translated[at].from))
        return true;
    g_autofree char *word = g_strdup_printf("\"%s\"", translated[at].to);
    return orr_json_set(doc, translated[at].today, word, error);
}

bool spec_framework_translate(OrrJsonDoc *doc, const char *where, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(translated); i++)
        if (!translate_key(doc, i, where, error))
            return false;
    for (guint i = 0; i < G_N_ELEMENTS(translated); i++)
        if (grouped_member(orr_json_root(doc), translated[i].old) != NULL)
            remove_member(doc, translated[i].old);
    return true;
}

void spec_framework_say_as(OrrJsonDoc *said, const OrrJson *resolved)
{
    for (guint i = 0; i < G_N_ELEMENTS(translated); i++) {
        const OrrJson *word = grouped_member(resolved, translated[i].today);
        if (grouped_member(orr_json_root(said), translated[i].old) == NULL)
            continue;
        remove_member(said, translated[i].old);
        if (word != NULL) {
            g_autofree char *value = orr_json_dump(word);
            orr_json_set(said, translated[i].today, value, NULL);
        }
    }
}

/* One object that says a thing in old words and in today's. */
static bool check_said_once(const OrrJson *framework, const char *where, const char *key, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(translated); i++)
        if (grouped_member(framework, translated[i].old) != NULL &&
            grouped_member(framework, translated[i].today) != NULL)
            return orr_fail(error, ORR_ERROR_INPUT,
                            "%s: %s: \"%s\" is \"%s\" today, and both are given; keep the latter", where, key,
                            translated[i].old, translated[i].today);
    return true;
}

bool spec_framework_todays_keys(OrrJsonDoc *doc, const char *where, const char *key, GPtrArray *notes,
                                GError **error)
{
    if (!spec_framework_group_keys(doc, where, key, error) ||
        !check_said_once(orr_json_root(doc), where, key, error))
        return false;
    drop_deleted(doc, where, notes);
    return true;
}
