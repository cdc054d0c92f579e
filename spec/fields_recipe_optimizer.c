/* spec/fields_recipe_optimizer.c - field table of a framework's recipe: model states, the optimizer's step, and what of it the
 * host does. */
#include "spec/fields_internal.h"
#include "spec/recipes.h"

static const SpecField optimizer_fields[] = {
    SPEC_F_WORD(SpecRecipeOptimizer, states, &spec_words_states, "\"megatron-fp32-grads\"", 0,
                "Bytes a parameter of each model state."),
    SPEC_F_BOOL(SpecRecipeOptimizer, optimizer_fused, "true", 0,
                "The optimizer works on many tensors in one kernel."),
    SPEC_F_BOOL(SpecRecipeOptimizer, grad_norm_clip, "true", 0,
                "A global gradient norm comes before the optimizer."),
    SPEC_F_BOOL(
        SpecRecipeOptimizer, optimizer_post_validation, "false", 0,
        "Schedules with separate weight gradients: a pipeline rank updates with the norm of the ranks before "
        "it. It checks the full norm in the next step, so no rank waits for all [Qi2024]."),
    SPEC_F_DOUBLE(
        SpecRecipeOptimizer, optimizer_flat_bytes, ORR_UNIT_BYTES, 0, 1000, "0", 0,
        "Bytes a parameter of the shard of the flat copy that the optimizer makes of 16-bit gradients."),
    SPEC_F_DOUBLE(
        SpecRecipeOptimizer, optimizer_temp_bytes, ORR_UNIT_BYTES, 0, 16, "0", 0,
        "Bytes a parameter that the optimizer's kernels hold beside its states while they run; counted where "
        "gradients are cleared (allocator.clears_gradients)."),
    SPEC_F_DOUBLE(SpecRecipeOptimizer, optimizer_streams, ORR_UNIT_NONE, 1, 100, "1", 0,
                  "Bytes that the optimizer moves, over the bytes of a fully fused kernel. PyTorch's foreach "
                  "kernels, one for each operation, move 2.9 times as many."),
    {.key = "offload_schemes",
     .type = SPEC_TYPE_WORD_SET,
     .offset = offsetof(SpecRecipeOptimizer, offload_schemes),
     .words = &spec_words_offload,
     .default_text = "[]",
     .help = "Schemes by which it keeps weights, gradients and optimizer states off the GPU; empty: none."},
    SPEC_F_DOUBLE(SpecRecipeOptimizer, host_optimizer_passes, ORR_UNIT_NONE, 1, 100, "1", 0,
                  "How often the host's optimizer streams gradients and states, compared to one fused loop. "
                  "PyTorch's takes 5.7 [Ren2021]."),
    SPEC_F_DOUBLE(SpecRecipeOptimizer, host_gradient_bytes, ORR_UNIT_BYTES, 0, 8, "0", 0,
                  "Bytes of a parameter's gradient on its way to the host; 0: as wide as weights."),
    SPEC_F_BOOL(SpecRecipeOptimizer, host_gradient_returns, "false", 0,
                "ZeRO-3: a 16-bit copy of the gradient goes to the host and back before that."),
    SPEC_F_BOOL(SpecRecipeOptimizer, host_gradient_waits, "false", 0,
                "ZeRO-1 and 2: gradients are copied to the host on the compute stream. With overlapped "
                "reductions, the host instead waits for each copy but a bucket's last."),
    SPEC_F_BOOL(SpecRecipeOptimizer, host_sums_return, "false", 0,
                "ZeRO-1 and 2 with several micro-batches: 16-bit sums return to the GPU, which adds "
                "gradients and sends them back. False: the host adds."),
    SPEC_F_DOUBLE(SpecRecipeOptimizer, host_gradient_check_bytes, ORR_UNIT_BYTES, 0, 100, "0", 0,
                  "ZeRO-1 and 2: bytes of a parameter that the GPU reads and writes, for norm, overflow and "
                  "cast, before its gradient leaves."),
    SPEC_F_DOUBLE(SpecRecipeOptimizer, host_weight_bytes, ORR_UNIT_BYTES, 0, 4, "0", 0,
                  "ZeRO-1 and 2: bytes of an updated weight on its way back; 0: as wide as weights."),
    SPEC_F_DOUBLE(SpecRecipeOptimizer, host_shard_bytes, ORR_UNIT_BYTES, 0, 4, "0", 0,
                  "ZeRO-3: bytes of a weight on its way from the host to its gather; 0: as it is gathered."),
    SPEC_F_DOUBLE(SpecRecipeOptimizer, host_scaling_bytes, ORR_UNIT_BYTES, 0, 100, "0", 0,
                  "Bytes of a parameter that the host moves to scale its gradient (8), for a norm (4)."),
    SPEC_F_BOOL(SpecRecipeOptimizer, host_gradients_at_step, "false", 0,
                "Gradients stay on the GPU until the optimizer's step; false: they leave as made."),
    SPEC_F_BOOL(SpecRecipeOptimizer, host_casts_weights, "false", 0,
                "The host casts updated weights into ordinary memory and waits for each tile's copy."),
};
SPEC_TABLE(spec_table_recipe_optimizer, "optimizer", "Model states and the optimizer's step.",
           optimizer_fields);
