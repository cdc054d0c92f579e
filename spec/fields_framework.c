/* spec/fields_framework.c - field tables of a framework's recipe, one a group. */
#include <string.h>

#include "spec/fields_internal.h"
#include "spec/read.h"
#include "spec/recipes.h"

#define FLAG(st, member, text)   SPEC_F_BOOL(st, member, "false", 0, text)
#define TIME_S(st, member, text) SPEC_F_DOUBLE(st, member, ORR_UNIT_SECONDS, 0, 3600, "0", 0, text)
#define SIZE(st, member, text)   SPEC_F_DOUBLE(st, member, ORR_UNIT_BYTES, 0, 1e14, "0", 0, text)

static const SpecField kernels_fields[] = {
    SPEC_F_WORD(SpecRecipeKernels, softmax, &spec_words_softmax, "\"eager-fp32\"", 0,
                "Scale, mask and softmax of unfused attention. eager-fp32 casts scores to fp32 and back. "
                "eager-16bit multiplies the mask and subtracts; eager-16bit-added-mask adds it once. fused "
                "is one kernel. fused-masked builds a mask anew each time; its softmax, a warp a row, waits "
                "for each piece of the row."),
    SPEC_F_INT(SpecRecipeKernels, fused_softmax_rows, 1, 1024, "1", 0,
               "Heads that the fused softmax kernel takes at once. Ranks with another multiple of heads run "
               "unfused."),
    SPEC_F_WORD(SpecRecipeKernels, gelu, &spec_words_gelu, "\"kernel\"", 0,
                "An ungated GELU. kernel: one of its own. erf, tanh: one for each operation of its formula. "
                "fused-bias: one with the bias."),
    FLAG(SpecRecipeKernels, fused_swiglu, "The gated activation is one kernel."),
    FLAG(SpecRecipeKernels, fused_dropout_add, "Bias, dropout and residual are one kernel."),
    SPEC_F_WORD(
        SpecRecipeKernels, rope, &spec_words_rope, "\"complex\"", 0,
        "Rotary position. complex: eager kernels on complex numbers, at streaming speed. halves: eager "
        "kernels join negated halves, element by element. halves-joined also copies dimensions to those that "
        "do not turn. fused: one kernel; fused-not-latent: except latent attention's (MLA)."),
    SPEC_F_WORD(SpecRecipeKernels, bias, &spec_words_bias, "\"added\"", 0,
                "Biases of linear layers. added: with the next kernel or in one of their own. in-product: by "
                "the product (PyTorch's F.linear since 1.12), with a sum apart for the gradient. qkv-apart: "
                "as added; queries, keys and values have their own kernels, compiled or not."),
    SPEC_F_WORD(
        SpecRecipeKernels, norm, &spec_words_norm_kernel, "\"fused\"", 0,
        "Norms. fused: one kernel. eager-fp32: RMSNorm as eager kernels with fp32 passes. fp32-copy: "
        "fused, on an fp32 copy of its input that the backward makes again. dropout-add: flash-attention's "
        "kernel, which adds to the residual stream too."),
    FLAG(SpecRecipeKernels, batches_heads,
         "Unfused attention copies queries, keys and values into one batch (torch.matmul of 4 dimensions)."),
    SPEC_F_DOUBLE(SpecRecipeKernels, gate_backward_copies, ORR_UNIT_NONE, 0, 10, "0", 0,
                  "Unfused SwiGLU: times the gradients of gate and up are copied into one tensor."),
    SPEC_F_WORD(SpecRecipeKernels, projections, &spec_words_projections, "\"joined\"", 0,
                "Queries, keys and values, and the two inputs of a gated MLP. joined: one linear layer for "
                "each group. separate: a linear layer each. separate-exchanged: so, and tensor ranks "
                "exchange the common input for each. Sequence parallelism then gathers it and scatters its "
                "gradient for each; without it, each reduces the gradient."),
    SPEC_F_DOUBLE(SpecRecipeKernels, attention_speed_frac, ORR_UNIT_FRAC, 0.05, 2, "1", 0,
                  "Speed of its attention kernel over the generation that execution.attention names."),
    SPEC_F_WORD(SpecRecipeKernels, transformer_engine, &spec_words_transformer_engine, "\"before-2.12\"", 0,
                "Which Transformer Engine it runs. before-2.6: the fused permutation looks at every expert "
                "for each token and piece of the hidden size. since 2.12: mxfp8 casts order the scales of "
                "activations that no tensor rank gathers; before, kernels do. since 2.14: nvfp4 casts rows "
                "and, after their Hadamard transform, columns in one kernel; before, in one each. since "
                "2.16: 8-bit attention under mxfp8 has a scale for 32 elements; before, one a tensor."),
    SPEC_F_WORD(SpecRecipeKernels, cudnn, &spec_words_cudnn, "\"since-9.17\"", 0,
                "Which cuDNN it runs. before-9.17: its attention has the speed of "
                "accelerator.model.attention.cudnn.early_frac. before-9.11: so, and on Blackwell latent "
                "attention's heads of 192 and 128 dimensions run unfused."),
    SPEC_F_DOUBLE(SpecRecipeKernels, rowwise_gemm_frac, ORR_UNIT_FRAC, 0.05, 2, "1", 0,
                  "Speed of its row-wise scaled fp8 products over tensor-wise scaled ones."),
    SPEC_F_DOUBLE(SpecRecipeKernels, rowwise_long_gemm_frac, ORR_UNIT_FRAC, 0.05, 2, "1", 0,
                  "Speed of row-wise fp8 over tensor-wise fp8 for products with an inner dimension of at "
                  "least 16,384 (weight gradients)."),
    SPEC_F_WORD(SpecRecipeKernels, casts, &spec_words_casts, "\"transformer-engine\"", 0,
                "Names the library of the casts to 8 bits. transformer-engine: a cast writes what products "
                "want transposed, "
                "and a linear layer keeps its input as cast. torchao: before Blackwell copies after the cast "
                "transpose, weights too; a linear layer keeps its input in 16 bits. There tensor ranks "
                "all-reduce the maximum of each tensor that is scaled as a whole."),
    SPEC_F_WORD(SpecRecipeKernels, gradient_sum, &spec_words_gradient_sum, "\"in-product\"", 0,
                "What adds a weight's gradient to earlier micro-batches'. in-product: its product. pass: a "
                "pass of its own. widened-pass: a pass behind a cast of 16-bit gradients to fp32."),
    FLAG(SpecRecipeKernels, recompute_stops_early,
         "Full recomputation ends with the last tensor that the backward needs."),
    FLAG(
        SpecRecipeKernels, pageable_checkpoints,
        "Inputs of recomputed layers wait in ordinary memory of the host, and passes wait for their copies."),
    {.key = "recompute_modes",
     .type = SPEC_TYPE_WORD_SET,
     .offset = offsetof(SpecRecipeKernels, recompute_modes),
     .words = &spec_words_recompute,
     .default_text = "[]",
     .help = "What training.recompute \"auto\" takes unless search.recompute says otherwise; empty: any."},
    {.key = "attention_cores",
     .type = SPEC_TYPE_WORD_SET,
     .offset = offsetof(SpecRecipeKernels, attention_cores),
     .words = &spec_words_attention,
     .default_text = "[]",
     .help = "What execution.attention \"auto\" takes unless search.attention says otherwise; empty: any."},
    {.key = "overlaps",
     .type = SPEC_TYPE_WORD_SET,
     .offset = offsetof(SpecRecipeKernels, overlaps),
     .words = &spec_words_overlap,
     .default_text = "[]",
     .help = "What execution.overlap \"auto\" takes unless search.overlap says otherwise; empty: any."},
    {.key = "chips",
     .type = SPEC_TYPE_WORD_SET,
     .offset = offsetof(SpecRecipeKernels, chips),
     .words = &spec_words_chip,
     .default_text = "[]",
     .help = "Kinds of chips that the software runs on; empty: any."},
    SPEC_F_BOOL(SpecRecipeKernels, recompute_partial, "true", 0,
                "\"full\" may be of some of a stage's layers (Megatron's block method); else of all."),
    SPEC_F_DOUBLE(SpecRecipeKernels, sm_elements_per_s, ORR_UNIT_NONE, 0, 1e13, "2.5e9", 0,
                  "Elements per second of one SM in PyTorch's kernels on views, broadcasts and mixed types. "
                  "These kernels compute an address for each element. 0: streaming speed."),
    SPEC_F_DOUBLE(SpecRecipeKernels, norm_weight_elements_per_s, ORR_UNIT_NONE, 0, 1e13, "0", 0,
                  "Elements per second of one SM in the gradient of a norm's weight, a sum over all tokens. "
                  "0: streaming speed."),
    FLAG(SpecRecipeKernels, one_pass_norm_backward,
         "A norm's backward reads its input and gradient once; a second kernel adds the partial sums (cuDNN, "
         "Transformer Engine). False: one pass for each gradient."),
    FLAG(SpecRecipeKernels, autocast,
         "Weights and the residual stream are fp32 (torch.autocast). Linear layers cast inputs and weights "
         "to 16 bits. Collectives carry fp32 weights."),
    SPEC_F_WORD(SpecRecipeKernels, embedding, &spec_words_embedding, "\"rows\"", 0,
                "Token lookup. rows: gradients of the rows in use are added in place. table: each "
                "micro-batch adds a gradient of the whole table to the sum (Megatron). one-hot: a product of "
                "one-hot rows with the table (Mesh-TensorFlow, T5X, Pax)."),
    FLAG(SpecRecipeKernels, stacks_layers,
         "Layers are one compiled loop (lax.scan). Activations kept for the backward are copied into one "
         "buffer for all layers, and out of it again."),
    SPEC_F_WORD(SpecRecipeKernels, vocab_rows, &spec_words_vocab_rows, "\"padded\"", 0,
                "A tensor rank's part of the vocabulary. padded: a multiple of 8. odd: the head's backward "
                "products run on slower kernels. compiler-pads: odd, but compiled products are padded "
                "(Inductor since PyTorch 2.2)."),
    FLAG(SpecRecipeKernels, reductions_apart,
         "The compiler (XLA) does not fuse a reduction with what follows it. Norms and unfused softmax then "
         "read a row two or three times."),
    FLAG(SpecRecipeKernels, selective_keeps_products,
         "Selective recomputation keeps what linear layers return and runs all else again, not the attention "
         "core alone (JAX: dots without batch dimensions)."),
    FLAG(SpecRecipeKernels, compiler,
         "The software can hand the model to a compiler: what execution.compiled \"auto\" becomes."),
};
static const SpecTable kernels_table = {.name = "kernels",
                                        .help = "Which kernels run, fused, split, copied or cast.",
                                        .fields = kernels_fields,
                                        .count = (int)G_N_ELEMENTS(kernels_fields)};

static const SpecField host_fields[] = {
    TIME_S(SpecRecipeHost, kernel_host_s, "Host time of one kernel launch."),
    SPEC_F_DOUBLE(SpecRecipeHost, host_spread_frac, ORR_UNIT_FRAC, 0, 1, "0", 0,
                  "Standard deviation of launch times between hosts that wait for each other: tensor ranks."),
    SPEC_F_DOUBLE(SpecRecipeHost, backward_host_frac, ORR_UNIT_FRAC, 0.01, 10, "1", 0,
                  "Host time of a backward's launch over a forward's: autograd launches from C++."),
    SPEC_F_WORD(
        SpecRecipeHost, waits, &spec_words_host_waits, "\"none\"", 0,
        "What the host waits for. each-micro-batch: the GPU, before the forward of every micro-batch. "
        "each-kernel: a kernel's end, before it launches the next (CUDA_LAUNCH_BLOCKING)."),
    TIME_S(SpecRecipeHost, collective_check_hop_s,
           "Time of one of the 2 n messages with which n hosts compare a collective before it starts "
           "(TORCH_DISTRIBUTED_DEBUG=DETAIL). 0: they do not."),
    FLAG(SpecRecipeHost, collective_checks_pipelines_only,
         "Hosts compare collectives (collective_check_hop_s) in runs with several pipeline ranks alone."),
    TIME_S(SpecRecipeHost, kernel_gap_s, "Idle time of the GPU between two dependent kernels."),
    TIME_S(SpecRecipeHost, collective_gap_s,
           "Streams and ranks wait for each other around a tensor, context or expert collective."),
    TIME_S(SpecRecipeHost, step_overhead_s, "Data loading, logging and checks, once a step."),
    TIME_S(SpecRecipeHost, microbatch_overhead_s,
           "Bookkeeping of the schedule, once per micro-batch and pass."),
    FLAG(SpecRecipeHost, reads_masks,
         "Samples carry an attention mask (create_attention_mask) and no process reads ahead. A CUDA graph "
         "of the whole iteration then waits for all its micro-batches."),
};
static const SpecTable host_table = {.name = "host",
                                     .help = "What the host costs: launches, waits, bookkeeping.",
                                     .fields = host_fields,
                                     .count = (int)G_N_ELEMENTS(host_fields)};

static const SpecField data_parallel_fields[] = {
    SPEC_F_WORD(SpecRecipeDataParallel, gradient_dtype, &spec_words_dtype, "\"fp32\"", 0,
                "Number format in which gradients are summed and kept."),
    SPEC_F_WORD(SpecRecipeDataParallel, gradient_reduce_dtype, &spec_words_dtype, "\"fp32\"", 0,
                "Number format in which gradients travel between GPUs."),
    SIZE(SpecRecipeDataParallel, bucket_bytes, "Gradient and parameter bucket; 0: one bucket."),
    SIZE(SpecRecipeDataParallel, bucket_rank_bytes,
         "A bucket is at least this times the replicas that reduce it (Megatron-LM since April 2024)."),
    SIZE(SpecRecipeDataParallel, first_bucket_bytes,
         "The bucket that fills first, with the last layers' gradients (PyTorch: 1 MiB); 0: as the others."),
    SPEC_F_WORD(SpecRecipeDataParallel, bucket_fill, &spec_words_bucket_fill, "\"layers\"", 0,
                "What a bucket holds. layers: whole layers. cut-layers: so, but gradients of a layer larger "
                "than a bucket go in several reductions. from-first: tensors from the first layer on; a "
                "tensor that would overflow a bucket opens the next. from-last: tensors from the last on; "
                "the tensor that fills a bucket closes it (Megatron-Core). Both ignore first_bucket_bytes. "
                "Neither holds under ZeRO-3 or with states off the GPU, from-last not with experts."),
    FLAG(SpecRecipeDataParallel, initial_broadcast,
         "Before the first step rank 0 broadcasts its weights to all replicas (DistributedDataParallel); the "
         "report says how long that takes, no step does."),
    SPEC_F_WORD(
        SpecRecipeDataParallel, reductions, &spec_words_reductions, "\"as-asked\"", 0,
        "When gradients are reduced. as-asked: as execution.overlap says. hooks: during the last "
        "backward pass under ZeRO-0, even without overlap. at-end: after the last backward pass, even with "
        "overlap. hold-queue: as asked, but kernels launched after a reduction wait for it "
        "(CUDA_DEVICE_MAX_CONNECTIONS=1; a TPU's computing core reduces). Below ZeRO-3 no gather "
        "overlaps then."),
    SPEC_F_WORD(SpecRecipeDataParallel, zero1_reduces, &spec_words_zero1_reduces, "\"scatter\"", 0,
                "How ZeRO-1 reduces gradients. scatter: reduce-scatter. scatter-early: so, and with "
                "overlapped reductions only shards stay, as in ZeRO-2; reduce_each_microbatch then applies. "
                "all-reduce: whole gradients."),
    FLAG(SpecRecipeDataParallel, reduce_each_microbatch,
         "ZeRO-2 and 3 (and scatter-early): gradients are reduced on every micro-batch."),
    SPEC_F_INT(SpecRecipeDataParallel, prefetch_units, 0, 1000, "1", 0, "ZeRO-3: units gathered ahead."),
    FLAG(SpecRecipeDataParallel, prefetches_by_trace,
         "ZeRO-3: gathers ahead follow the modules of the pass before. A loop whose model scores and trains "
         "in "
         "turn gathers nothing ahead."),
    SPEC_F_WORD(
        SpecRecipeDataParallel, resharding, &spec_words_resharding, "\"after-forward\"", 0,
        "ZeRO-3: when gathered weights are dropped. after-forward: after each pass. "
        "after-recompute: so, and weights that recomputation used are gathered again for the "
        "gradients. unless-pipeline: after each pass where there is one stage; several stages gather weights "
        "and reduce gradients once a step. never: only after the backward pass."),
    FLAG(
        SpecRecipeDataParallel, root_unit,
        "ZeRO-3, one stage: embedding and head are one unit, gathered once for both and reduced after them."),
    FLAG(SpecRecipeDataParallel, gradient_cast,
         "ZeRO-3: a gradient reduced in a wider type is cast in a pass of its own before it is scaled."),
    SPEC_F_DOUBLE(
        SpecRecipeDataParallel, gradient_copies, ORR_UNIT_NONE, 0, 10, "0", 0,
        "How often a gradient that every micro-batch reduces is copied between its product and the network."),
    SPEC_F_DOUBLE(
        SpecRecipeDataParallel, bucket_copies, ORR_UNIT_NONE, 0, 10, "0", 0,
        "ZeRO-0 to 2: times all gradients are copied around their reduction, once a step, to join or scale."),
    SPEC_F_DOUBLE(SpecRecipeDataParallel, gathered_copies, ORR_UNIT_NONE, 0, 10, "0", 0,
                  "ZeRO-3: times gathered weights are read and written before their use."),
    SPEC_F_WORD(SpecRecipeDataParallel, gathers, &spec_words_gathered, "\"units\"", 0,
                "Collectives that put sharded weights together. units: under ZeRO-3 an all-gather for each "
                "unit. tensors: one for each tensor. tensors-drained: so, and the host waits for all of the "
                "GPU's work before each; reductions are not overlapped. broadcasts: owners of whole tensors "
                "broadcast them in turn (InternEvo's ZeRO-1). ZeRO++ has other gathers."),
    FLAG(SpecRecipeDataParallel, gathers_within_layer,
         "ZeRO-3: a layer's gathers begin with the layer, as in a compiled loop. The layer waits for its "
         "first weights; later gathers overlap with its earlier products."),
    TIME_S(
        SpecRecipeDataParallel, tensor_list_rank_host_s,
        "Collectives of weights and gradients on lists of tensors: host time for each rank's part of each."),
    SPEC_F_DOUBLE(
        SpecRecipeDataParallel, tensor_list_copies, ORR_UNIT_NONE, 0, 20, "0", 0,
        "How often a tensor of a list is read or written beyond the network transfer: cleared, copied."),
    SPEC_F_WORD(SpecRecipeDataParallel, gathers_begin, &spec_words_gathers, "\"step\"", 0,
                "ZeRO-1/2: when overlapped parameter gathers begin. All with the step; with the step only "
                "where stages are interleaved; with a chunk's first use; or outside the step. The last has a "
                "validation after each."),
    SPEC_F_INT(SpecRecipeDataParallel, least_zero, 1, 3, "1", 0,
               "Smallest ZeRO stage above 0 that the software has: FSDP shards gradients with the "
               "optimizer's states."),
    SPEC_F_INT(SpecRecipeDataParallel, most_zero, 0, 3, "3", 0,
               "Largest ZeRO stage that the software has: what parallel.zero \"auto\" goes up to unless "
               "search.zero says otherwise."),
    SPEC_F_INT(SpecRecipeDataParallel, most_zero_in_pipeline, 0, 3, "3", 0,
               "Largest ZeRO stage that the software runs with several pipeline ranks."),
    SPEC_F_INT(SpecRecipeDataParallel, plain_zero, 0, 3, "3", 0,
               "Largest ZeRO stage that the software runs without a second engine. A search recommends it "
               "where that costs less than 1 %."),
};
static const SpecTable data_parallel_table = {.name = "data_parallel",
                                              .help =
                                                  "How gradients are reduced and sharded weights gathered.",
                                              .fields = data_parallel_fields,
                                              .count = (int)G_N_ELEMENTS(data_parallel_fields)};

static const SpecField tensor_fields[] = {
    SPEC_F_WORD(SpecRecipeTensor, tensor_overlap, &spec_words_tensor_overlap, "\"pieces\"", 0,
                "How overlap \"tensor\" hides collectives. pieces: products are cut in pieces. "
                "summed-pieces: so, and a kernel adds the pieces that a scatter leaves side by side. "
                "own-part: only the rank's own part of the rows hides a gather. own-products: so, as a "
                "separate product, in the backward too; the rows before and after it are two more."),
    FLAG(SpecRecipeTensor, overlap_tensor_backward,
         "Tensor-parallel collectives overlap with the matrix products of the backward pass."),
    FLAG(SpecRecipeTensor, cuts_latents, "Latent attention's down-projections are cut over tensor ranks."),
    FLAG(SpecRecipeTensor, keeps_gathered_input,
         "Sequence parallelism: the gathered input of a linear is kept for its "
         "backward; else gathered again."),
    SPEC_F_DOUBLE(
        SpecRecipeTensor, tensor_layout_copies, ORR_UNIT_NONE, 0, 10, "0", 0,
        "How often an activation is read and written around a gather or reduce-scatter along the sequence."),
    FLAG(SpecRecipeTensor, tensor_gather_8bit,
         "8- and 4-bit recipes cast activations before tensor ranks gather them."),
    SPEC_F_WORD(SpecRecipeTensor, shares_maxima, &spec_words_maxima, "\"none\"", 0,
                "Precision fp8 with delayed scales: which ranks exchange the maxima after a pass. Nobody, "
                "tensor and context ranks (Megatron's tp_only_amax_red), or all ranks of the stage "
                "(Transformer Engine's reduce_amax)."),
};
static const SpecTable tensor_table = {.name = "tensor",
                                       .help = "How tensor-parallel ranks exchange activations.",
                                       .fields = tensor_fields,
                                       .count = (int)G_N_ELEMENTS(tensor_fields)};

static const SpecField context_fields[] = {
    FLAG(SpecRecipeContext, repeats_kv,
         "Keys and values are copied to every query head before attention and what context ranks exchange."),
    SPEC_F_WORD(SpecRecipeContext, context_merge, &spec_words_context_merge, "\"fused\"", 0,
                "What adds one context step's part to the rest, in fp32. fused: one kernel (Transformer "
                "Engine). eager: PyTorch's kernels, one for each operation (torch's ring attention). "
                "Compiled, that waits for each exchange of context ranks where it starts."),
};
static const SpecTable context_table = {.name = "context",
                                        .help = "How context-parallel ranks exchange keys and values.",
                                        .fields = context_fields,
                                        .count = (int)G_N_ELEMENTS(context_fields)};

static const SpecField experts_fields[] = {
    {.key = "dispatchers",
     .type = SPEC_TYPE_WORD_SET,
     .offset = offsetof(SpecRecipeExperts, dispatchers),
     .words = &spec_words_dispatcher,
     .default_text = "[]",
     .help = "What can carry tokens to experts: what parallel.moe_dispatcher \"auto\" chooses from unless "
             "search.moe_dispatcher says otherwise; empty: any."},
    SPEC_F_WORD(SpecRecipeExperts, expert_products, &spec_words_expert_products, "\"each\"", 0,
                "Products of a rank's experts. each: one kernel for each expert. grouped: one kernel for "
                "all. fused: mxfp8 experts on Blackwell are one kernel, with activation and casts inside; "
                "others are one kernel each."),
    FLAG(SpecRecipeExperts, router_tf32,
         "A router in fp32 multiplies 16-bit operands forward and TF32 backward; else its input is cast and "
         "all products are fp32."),
    FLAG(SpecRecipeExperts, paged_stash,
         "Under a CUDA graph of the whole iteration, activations of dropless fused experts are copied into "
         "pages and back. The copies overlap with other layers."),
    FLAG(SpecRecipeExperts, pads_expert_rows,
         "8- and 4-bit experts: rows are copied to pad each expert's to what the products want, and "
         "back, unless HybridEP lands them padded."),
    SPEC_F_INT(SpecRecipeExperts, hybridep_sms, 1, 1024, "16", 0,
               "SMs that HybridEP's kernels hold while they run (moe_hybridep_num_sms)."),
    SPEC_F_INT(SpecRecipeExperts, fused_mlp_free_sms, 0, 1024, "0", 0,
               "SMs that the fused products of experts leave to the exchange "
               "(CUDNNFE_CLUSTER_OVERLAP_MARGIN, clusters of two)."),
    TIME_S(SpecRecipeExperts, host_sync_s,
           "Dropless experts: the GPU waits while the host reads token counts, once a layer."),
};
static const SpecTable experts_table = {.name = "experts",
                                        .help = "How a rank runs its experts.",
                                        .fields = experts_fields,
                                        .count = (int)G_N_ELEMENTS(experts_fields)};

static const SpecField pipeline_fields[] = {
    {.key = "schedules",
     .type = SPEC_TYPE_WORD_SET,
     .offset = offsetof(SpecRecipePipeline, schedules),
     .words = &spec_words_schedule,
     .default_text = "[]",
     .help = "Pipeline schedules that the software has: what parallel.schedule \"auto\" chooses from unless "
             "search.schedule says otherwise; empty: any."},
    FLAG(SpecRecipePipeline, balances_head,
         "Each pipeline stage takes layers until its share of the compute, the LM head's "
         "included, is exceeded."),
    SPEC_F_WORD(SpecRecipePipeline, p2p_waits, &spec_words_p2p_waits, "\"never\"", 0,
                "When the compute stream waits for its own sends. as-asked: unless execution.overlap has "
                "\"pipeline\". always-in-1f1b: so, but ranks with one chunk always wait."),
    TIME_S(SpecRecipePipeline, p2p_host_s,
           "Host time of a message between stages: sending its shape ahead and reading the shape back."),
    SPEC_F_INT(SpecRecipePipeline, p2p_forward_messages, 1, 10, "1", 0,
               "Messages of a forward between stages: the activation, and masks that go with it."),
    SPEC_F_WORD(SpecRecipePipeline, p2p_tensors, &spec_words_p2p_tensors, "\"whole\"", 0,
                "What each tensor rank sends of an activation. whole: all of it. scatter-gather: 1/t between "
                "nodes, and the receivers gather. partitioned: 1/t inside a node too, and the sender gathers "
                "its own output again for the backward (DeepSpeed)."),
    FLAG(SpecRecipePipeline, p2p_one_at_a_time,
         "Two stages exchange an activation and a gradient one after the other, not both at once."),
    SPEC_F_INT(
        SpecRecipePipeline, deferred_head_gradients, 0, 100000, "0", 0,
        "Micro-batches whose LM-head weight gradient is computed after the last stage's passes. It applies "
        "to 1F1B and interleaved runs without experts that overlap grad_reduce and param_gather."),
};
static const SpecTable pipeline_table = {.name = "pipeline",
                                         .help = "How stages are laid out and exchange messages.",
                                         .fields = pipeline_fields,
                                         .count = (int)G_N_ELEMENTS(pipeline_fields)};

static const SpecField loss_fields[] = {
    SPEC_F_WORD(SpecRecipeLoss, kernel, &spec_words_loss, "\"unfused\"", 0,
                "How logits and loss are computed and kept."),
    FLAG(SpecRecipeLoss, gathers_logits, "Every tensor rank gathers all logits and computes the whole loss."),
    SPEC_F_INT(SpecRecipeLoss, logit_metrics, 0, 100, "0", 0,
               "Cross-entropies that training metrics run on every micro-batch's logits besides the loss."),
};
static const SpecTable loss_table = {.name = "loss",
                                     .help = "How logits and loss are computed.",
                                     .fields = loss_fields,
                                     .count = (int)G_N_ELEMENTS(loss_fields)};

static const SpecField allocator_fields[] = {
    SIZE(SpecRecipeAllocator, context_bytes,
         "Device memory outside the allocator: context, communication buffers."),
    SIZE(SpecRecipeAllocator, workspace_bytes, "Workspaces inside the allocator."),
    FLAG(SpecRecipeAllocator, weight_placeholders,
         "Fused accumulation caches an unused tensor of each distinct weight's shape."),
    SPEC_F_WORD(
        SpecRecipeAllocator, gradients, &spec_words_gradients_life, "\"kept\"", 0,
        "How long gradients take memory. kept: always. dropped-in-backward: 16-bit gradients with fp32 "
        "sums only until the backward that made them ends; they take the room of activations that it has "
        "freed. cleared: sharded gradients, and gradients of a single replica, until the optimizer's end. A "
        "step of one micro-batch then allocates them where the backward has freed activations."),
    SPEC_F_WORD(SpecRecipeAllocator, pipeline_keeps, &spec_words_pipeline_keeps, "\"in-flight\"", 0,
                "Buffers that a pipeline stage keeps for a whole step. in-flight: none. boundaries: inputs "
                "and gradients of all micro-batches. outputs: their outputs too."),
    SPEC_F_DOUBLE(SpecRecipeAllocator, bucket_copy_elements, ORR_UNIT_NONE, 0, 1e12, "0", 0,
                  "Gradients that are copied into one flat buffer before their reduction."),
    SPEC_F_DOUBLE(SpecRecipeAllocator, gather_buffers, ORR_UNIT_NONE, 0, 100, "0", 0,
                  "ZeRO-3: flat buffers of the largest unit that the gathering stream holds reserved."),
    SPEC_F_DOUBLE(SpecRecipeAllocator, launch_lead_layers, ORR_UNIT_NONE, 0, 10000, "0", 0,
                  "Most layers that the host launches ahead of the GPU. Outputs that another stream reduces "
                  "stay reserved until the GPU has passed them. 0: none stay."),
    FLAG(SpecRecipeAllocator, log_reports_reserved,
         "What its log calls allocated is what the allocator has reserved."),
    FLAG(SpecRecipeAllocator, expandable_segments,
         "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: segments grow, so that texts of many lengths "
         "leave no "
         "blocks that fit no other text."),
    SPEC_F_DOUBLE(SpecRecipeAllocator, fragmentation_frac, ORR_UNIT_FRAC, 0, 10, "0", 0,
                  "Reserved beyond allocated, as a share of dynamic memory."),
};
static const SpecTable allocator_table = {
    .name = "allocator",
    .help = "Memory reserved or allocated that holds no tensor of the model.",
    .fields = allocator_fields,
    .count = (int)G_N_ELEMENTS(allocator_fields)};

/* They act on scenarios before these are read (spec/recipes.h). */
static bool read_recipes(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    (void)target;
    return spec_recipes_check(node, context->where, error);
}

static const SpecField framework_fields[] = {
    SPEC_F_FILE_KEYS("frameworks"),
    SPEC_F_NAME(SpecFramework, name, "\"\"", "What reports call the framework."),
    SPEC_F_NAME(
        SpecFramework, until, "\"\"",
        "NAME-YEAR.json, an earlier generation of NAME: its last month; validate gives it to older rows."),
    SPEC_F_NAME(SpecFramework, software, "\"\"",
                "Words by which execution.framework_text names this software, as in \"DeepSpeed + Hugging "
                "Face; Accelerate\". Entries are separated by ;, and all words of an entry joined by + must "
                "occur. `validate` gives the profile to such rows."),
    {.key = "recipes",
     .type = SPEC_TYPE_CUSTOM,
     .flags = SPEC_FIELD_DERIVED,
     .read = read_recipes,
     .form = "a list of recipes",
     .schema = "{\"type\":\"array\",\"items\":{\"type\":\"object\"}}",
     .help = "What its recipes set for a model on a GPU: a list of {models, layers, accelerators, "
             "precisions, stages, facts, scenario}. A field that the scenario omits comes from the first "
             "matching "
             "recipe "
             "that sets it."},
    SPEC_F_OBJECT(SpecFramework, kernels, kernels_table, 0,
                  "Which kernels run, fused, split, copied or cast."),
    SPEC_F_OBJECT(SpecFramework, host, host_table, 0, "What the host costs: launches, waits, bookkeeping."),
    SPEC_F_OBJECT(SpecFramework, data_parallel, data_parallel_table, 0,
                  "How gradients are reduced and sharded weights gathered."),
    SPEC_F_OBJECT(SpecFramework, tensor, tensor_table, 0, "How tensor-parallel ranks exchange activations."),
    SPEC_F_OBJECT(SpecFramework, context, context_table, 0,
                  "How context-parallel ranks exchange keys and values."),
    SPEC_F_OBJECT(SpecFramework, experts, experts_table, 0, "How a rank runs its experts."),
    SPEC_F_OBJECT(SpecFramework, pipeline, pipeline_table, 0,
                  "How stages are laid out and exchange messages."),
    SPEC_F_OBJECT(SpecFramework, optimizer, spec_table_recipe_optimizer, 0,
                  "Model states and the optimizer's step."),
    SPEC_F_OBJECT(SpecFramework, loss, loss_table, 0, "How logits and loss are computed."),
    SPEC_F_OBJECT(SpecFramework, allocator, allocator_table, 0,
                  "Memory reserved or allocated that holds no tensor of the model."),
    {.key = "learned",
     .type = SPEC_TYPE_CUSTOM,
     .offset = offsetof(SpecFramework, learned),
     .read = spec_read_recipe_learned,
     .form = "a list of objects",
     .schema = "{\"type\":\"array\",\"items\":{\"type\":\"object\"}}",
     .table = &spec_table_recipe_learned,
     .help = "What kernels take beyond what the model of the GPU says, as a trace of a step showed. 'orrery "
             "learn' writes it. A class that is not listed takes what the model says."},
    SPEC_F_OBJECT(SpecFramework, defaults, spec_table_recipe_defaults, 0,
                  "What a scenario that does not say gets from this software."),
    SPEC_F_OBJECT(SpecFramework, engine, spec_table_engine, 0,
                  "How it generates: batches, caches, what a step costs."),
    {.key = "ops",
     .type = SPEC_TYPE_CUSTOM,
     .offset = offsetof(SpecFramework, ops),
     .read = spec_read_recipe_ops,
     .form = "a list of at most 8 objects",
     .schema = "{\"type\":\"array\",\"items\":{\"type\":\"object\"},\"maxItems\":8}",
     .table = &spec_table_recipe_op,
     .help = "Kernels that the software runs behind an op of a layer: a tensor copied or read once more. "
             "A recipe's list replaces the list of its preset."},
};
const SpecTable spec_table_framework = {.name = "framework",
                                        .help = "What the training software does, in physical terms.",
                                        .fields = framework_fields,
                                        .count = (int)G_N_ELEMENTS(framework_fields),
                                        .in_groups = true};
