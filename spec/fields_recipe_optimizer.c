/* spec/fields_recipe_optimizer.c - field table of a framework's recipe: model states, the optimizer's step, and what of it the
 * host does. */
#include "spec/fields_internal.h"
#include "spec/recipes.h"

static const SpecField optimizer_fields[] = {
    SPEC_F_WORD(SpecRecipeOptimizer, states, &spec_words_states, "\"megatron-fp32-grads\"", 0,
                "Bytes a parameter of each model state."),
    SPEC_F_BOOL(SpecRecipeOptimizer, optimizer_fused, "true", 0,
                "The optimizer works on many tensors in one kernel."),
    SPEC_F_WORD(SpecRecipeOptimizer, grad_norm, &spec_words_grad_norm, "\"before-step\"", 0,
                "The global gradient norm. before-step: the optimizer waits for it. validated-later: "
                "schedules with separate weight gradients update with the norm of the ranks before. The next "
                "step checks the full norm, so no rank waits for all [Qi2024]."),
    SPEC_F_DOUBLE(
        SpecRecipeOptimizer, optimizer_flat_bytes, ORR_UNIT_BYTES, 0, 1000, "0", 0,
        "Bytes a parameter of the shard of the flat copy that the optimizer makes of 16-bit gradients."),
    SPEC_F_DOUBLE(
        SpecRecipeOptimizer, optimizer_temp_bytes, ORR_UNIT_BYTES, 0, 16, "0", 0,
        "Temporary memory of the optimizer's kernels, in bytes per trained parameter, on top of its states."),
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
    SPEC_F_WORD(SpecRecipeOptimizer, host_gradients, &spec_words_host_gradients, "\"as-made\"", 0,
                "How gradients get to the host. as-made: when they are made. at-step: when the optimizer's "
                "step fetches them. returned: as DeepSpeed sends them. ZeRO-3 then copies 16-bit gradients "
                "to the host and back first. ZeRO-1 and 2 copy on the compute stream; with overlapped "
                "reductions the host waits for each copy but a bucket's last. With several micro-batches "
                "16-bit sums return to the GPU, which adds gradients and sends them back."),
    SPEC_F_DOUBLE(SpecRecipeOptimizer, host_gradient_check_bytes, ORR_UNIT_BYTES, 0, 100, "0", 0,
                  "ZeRO-1 and 2: bytes of a parameter that the GPU reads and writes, for norm, overflow and "
                  "cast, before its gradient leaves."),
    SPEC_F_DOUBLE(SpecRecipeOptimizer, host_weight_bytes, ORR_UNIT_BYTES, 0, 4, "0", 0,
                  "ZeRO-1 and 2: bytes of an updated weight on its way back; 0: as wide as weights."),
    SPEC_F_DOUBLE(SpecRecipeOptimizer, host_shard_bytes, ORR_UNIT_BYTES, 0, 4, "0", 0,
                  "ZeRO-3: bytes of a weight on its way from the host to its gather; 0: as it is gathered."),
    SPEC_F_DOUBLE(SpecRecipeOptimizer, host_scaling_bytes, ORR_UNIT_BYTES, 0, 100, "0", 0,
                  "Bytes of a parameter that the host moves to scale its gradient (8), for a norm (4)."),
    SPEC_F_BOOL(SpecRecipeOptimizer, host_casts_weights, "false", 0,
                "The host casts updated weights into ordinary memory and waits for each tile's copy."),
};
SPEC_TABLE(spec_table_recipe_optimizer, "optimizer", "Model states and the optimizer's step.",
           optimizer_fields);
