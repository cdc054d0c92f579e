/* spec/names.c - the words of every closed list, in enum order. */
#include "spec/names.h"

#include <glib.h>

#include "spec/spec.h"

#define WORDS(name, description, ...)                                                                        \
    static const char *const name##_list[] = {__VA_ARGS__};                                                  \
    const SpecWords spec_words_##name = {description, name##_list, (int)G_N_ELEMENTS(name##_list), 0}

WORDS(tuner, "a tuner of NCCL", "nccl", "aws-p5", "aws-p5en", "aws-p6");
WORDS(norm, "a normalisation", "layernorm", "rmsnorm", "none");
WORDS(op, "an op of a layer", "qkv", "q down", "q up", "kv down", "kv up", "attention", "attention out",
      "mlp in", "activation", "mlp out", "residual");
WORDS(op_pass, "a pass of a layer", "forward", "backward-input", "backward-weight");
WORDS(expert_format, "a format of experts", "16bit", "fp8", "fp8-block", "fp4-16bit", "fp4-8bit", "fp4");
WORDS(cache_format, "a format of caches", "16bit", "8bit", "latent-16bit", "latent-8bit");
WORDS(biases, "a choice of biases", "none", "all", "mlp", "qkv");
WORDS(position, "a position encoding", "learned", "rope", "alibi", "relative", "none");
WORDS(dtype, "a number format", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8", "int4");
WORDS(precision, "a precision", "fp32", "tf32", "fp16", "bf16", "fp8", "fp8-cs", "fp8-tensorwise",
      "fp8-rowwise", "fp8-blockwise", "mxfp8", "nvfp4", "int8", "int4");
WORDS(optimizer, "an optimizer", "adam", "sgd", "momentum", "adafactor", "lion", "muon", "adam8bit");
WORDS(recompute, "a recomputation mode", "none", "selective", "full", "selective-op", "selective-layer",
      "modules");
WORDS(module, "a module to recompute", "layernorm", "mla_up_proj", "moe_act", "mlp", "core_attn", "moe",
      "shared_experts");
WORDS(offload_module, "a module whose tensors can leave", "layernorm", "mla_up_proj", "moe_act", "mlp",
      "core_attn", "moe", "shared_experts", "attn_norm", "qkv_linear", "attn_proj", "mlp_norm", "expert_fc1");
WORDS(states, "a recipe of model states", "megatron-fp32-grads", "megatron-fp16-grads", "megatron-fp32",
      "zero-fp16", "bf16-fp32-acc", "fsdp-bf16", "fsdp-mixed", "deepspeed", "fp32-adam", "fp32-adam-notes",
      "mixed-12", "deepseek-v3", "fp8-primary", "megatron-bf16-grads", "custom");
WORDS(dispatcher, "a token dispatcher", "alltoall", "deepep", "hybridep", "hierarchical", "one-hot",
      "ragged");
WORDS(router, "a distribution of tokens over experts", "even", "uniform", "zipf", "dirichlet", "histogram",
      "learned");
WORDS(tensor, "a way to split a linear layer", "1d", "2d", "2.5d", "3d");
WORDS(data_scheme, "a way to put gradients together", "allreduce", "parameter_server", "single_process");
WORDS(server_placement, "a place for parameter servers", "dedicated", "colocated", "byteps");
WORDS(server_scheme, "an order of pushes and pulls", "naive", "wfbp", "bytescheduler");
WORDS(server_mode, "a way to keep workers together", "sync", "async", "bounded");
WORDS(spread, "a distribution of a worker's times", "none", "normal", "exponential");
WORDS(compression, "a compression of gradients", "none", "topk", "int8", "fp16", "onebit");
WORDS(context, "a way to split a sequence", "ring", "ring-naive", "ring-striped", "allgather",
      "allgather-ring", "ulysses", "hierarchical");
WORDS(attention, "an attention kernel", "unfused", "flash2", "flash3", "cudnn");
WORDS(overlap, "something to overlap", "grad_reduce", "param_gather", "tensor", "pipeline", "expert");
WORDS(topology, "a topology", "switch", "cube-mesh", "pcie", "torus3d", "mesh", "torus2d");
WORDS(fidelity, "a fidelity", "analytic", "flow");
WORDS(routing, "a routing", "shortest", "ecmp", "e-ecmp", "adaptive", "rail");
WORDS(network_algorithm, "an algorithm between domains", "ring", "double-binary-tree",
      "recursive-halving-doubling");
WORDS(traffic_links, "whose links traffic takes", "fabric", "front-end");
WORDS(tier, "a tier of memory", "gpu", "host", "nvme");
WORDS(offload, "an offloading scheme", "none", "zero-offload", "zero-offload-dpu", "twin-flow",
      "superoffload", "stronghold", "memferry", "zero3-offload", "zero-infinity");
WORDS(gathers, "a time when gathers begin", "step", "step-if-interleaved", "use", "validation");
WORDS(bucket_fill, "a way to fill buckets", "layers", "cut-layers", "from-first", "from-last");
WORDS(reductions, "a time when gradients are reduced", "as-asked", "hooks", "at-end", "hold-queue");
WORDS(zero1_reduces, "a way to reduce gradients under ZeRO-1", "scatter", "scatter-early", "all-reduce");
WORDS(gathered, "a way to gather weights", "units", "tensors", "tensors-drained", "broadcasts");
WORDS(p2p_tensors, "a way to send an activation", "whole", "scatter-gather", "partitioned");
WORDS(pipeline_keeps, "buffers between stages", "in-flight", "boundaries", "outputs");
WORDS(cudnn, "a range of cuDNN's versions", "before-9.11", "before-9.17", "since-9.17");
WORDS(context_merge, "a way to merge parts of attention", "fused", "eager");
WORDS(learned, "a class of kernels", "products", "attention", "norms", "elementwise", "optimizer",
      "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send-receive");
WORDS(host_waits, "what the host waits for", "none", "each-micro-batch", "each-kernel");
WORDS(p2p_waits, "a time when compute waits for messages", "never", "as-asked", "always-in-1f1b");
WORDS(tensor_overlap, "a way to hide tensor collectives", "own-part", "own-products", "pieces",
      "summed-pieces");
WORDS(casts, "a library of casts", "transformer-engine", "torchao");
WORDS(transformer_engine, "a range of Transformer Engine's versions", "before-2.6", "before-2.12",
      "before-2.14", "before-2.16", "since-2.16");
WORDS(projections, "a way to project an input", "joined", "separate", "separate-exchanged");
WORDS(host_gradients, "a way of gradients to the host", "as-made", "at-step", "returned");
WORDS(resharding, "a time when gathered weights go", "after-forward", "after-recompute", "unless-pipeline",
      "never");
WORDS(grad_norm, "a gradient norm", "none", "before-step", "validated-later");
WORDS(expert_products, "a way to multiply experts", "each", "grouped", "fused");
WORDS(gradients_life, "a life of gradients", "kept", "dropped-in-backward", "cleared");
WORDS(maxima, "ranks that share maxima", "none", "tensor", "all");
WORDS(shared_by, "whose a rate is", "all", "node");
WORDS(slow_part, "a part that is slow", "rank", "node", "nic", "link");
WORDS(checkpoint, "a way to save checkpoints", "none", "sync", "async", "peers");
WORDS(loss, "a loss kernel", "unfused", "vocab-parallel", "fused", "chunked", "vocab-parallel-compiled",
      "compiled", "xentropy", "unfused-shifted", "unfused-16bit", "unfused-autocast", "chunked-output",
      "unfused-shifted-16bit", "unfused-shifted-autocast");
WORDS(gelu, "a way to run GELU", "kernel", "erf", "tanh", "fused-bias");
WORDS(rope, "a way to rotate queries and keys", "complex", "halves", "halves-joined", "fused",
      "fused-not-latent");
WORDS(norm_kernel, "a way to run norms", "fused", "eager-fp32", "fp32-copy", "dropout-add");
WORDS(softmax, "a way to run the softmax of unfused attention", "eager-16bit", "eager-16bit-added-mask",
      "eager-fp32", "fused", "fused-masked");
WORDS(bias, "a way to add biases", "added", "in-product", "qkv-apart");
WORDS(embedding, "a way to look tokens up", "rows", "table", "one-hot");
WORDS(gradient_sum, "a way to accumulate gradients", "pass", "in-product", "widened-pass");
WORDS(vocab_rows, "a padding of the vocabulary", "padded", "odd", "compiler-pads");

G_STATIC_ASSERT(G_N_ELEMENTS(dtype_list) == SPEC_DTYPE_COUNT);
G_STATIC_ASSERT(G_N_ELEMENTS(precision_list) == SPEC_PRECISION_COUNT);
G_STATIC_ASSERT(G_N_ELEMENTS(optimizer_list) == SPEC_OPTIMIZER_COUNT);
G_STATIC_ASSERT(G_N_ELEMENTS(states_list) == SPEC_STATES_COUNT);
G_STATIC_ASSERT(G_N_ELEMENTS(attention_list) == SPEC_ATTENTION_COUNT);
G_STATIC_ASSERT(G_N_ELEMENTS(learned_list) == SPEC_LEARNED_CLASSES);
G_STATIC_ASSERT(G_N_ELEMENTS(tier_list) == SPEC_TIER_COUNT);
G_STATIC_ASSERT(G_N_ELEMENTS(offload_list) == SPEC_OFFLOAD_SCHEME_COUNT);

const char *spec_word(const SpecWords *words, int value)
{
    if (value == SPEC_AUTO)
        return "auto";
    if (words == &spec_words_schedule && value == SPEC_SCHEDULE_FILE)
        return "file";
    return orr_word(words, value);
}

SpecDtype spec_gemm_dtype(SpecPrecision precision)
{
    switch (precision) {
    case SPEC_PRECISION_FP32:
        return SPEC_FP32;
    case SPEC_PRECISION_TF32:
        return SPEC_TF32;
    case SPEC_PRECISION_FP16:
        return SPEC_FP16;
    case SPEC_PRECISION_BF16:
        return SPEC_BF16;
    case SPEC_PRECISION_NVFP4:
        return SPEC_FP4;
    case SPEC_PRECISION_INT8:
        return SPEC_INT8;
    case SPEC_PRECISION_INT4:
        return SPEC_INT4;
    case SPEC_PRECISION_FP8:
    case SPEC_PRECISION_FP8_CS:
    case SPEC_PRECISION_FP8_TENSORWISE:
    case SPEC_PRECISION_FP8_ROWWISE:
    case SPEC_PRECISION_FP8_BLOCKWISE:
    case SPEC_PRECISION_MXFP8:
        return SPEC_FP8;
    case SPEC_PRECISION_COUNT:
        break;
    }
    g_assert_not_reached();
}

double spec_dtype_bytes(SpecDtype dtype)
{
    static const double bytes[SPEC_DTYPE_COUNT] = {
        [SPEC_FP32] = 4, [SPEC_TF32] = 4,  [SPEC_FP16] = 2, [SPEC_BF16] = 2,
        [SPEC_FP8] = 1,  [SPEC_FP4] = 0.5, [SPEC_INT8] = 1, [SPEC_INT4] = 0.5};
    g_assert((int)dtype >= 0 && (int)dtype < SPEC_DTYPE_COUNT);
    return bytes[dtype];
}
