/* spec/fields_execution.c - field tables of software, offload and the scenario as a whole. */
#include <string.h>

#include "spec/fields_internal.h"

#define FUSED(member, text)  SPEC_F_BOOL(SpecFramework, member, "false", 0, text)
#define HOST_S(member, text) SPEC_F_DOUBLE(SpecFramework, member, ORR_UNIT_SECONDS, 0, 3600, "0", 0, text)
#define SIZE(member, text)   SPEC_F_DOUBLE(SpecFramework, member, ORR_UNIT_BYTES, 0, 1e14, "0", 0, text)

static const SpecField framework_fields[] = {
    SPEC_F_FILE_KEYS("frameworks"),
    SPEC_F_NAME(SpecFramework, name, "\"\"", "What reports call the framework."),
    SPEC_F_NAME(
        SpecFramework, until, "\"\"",
        "NAME-YEAR.json, an earlier generation of NAME: its last month; validate gives it to older rows."),
    FUSED(fused_softmax, "Scale, mask and softmax of unfused attention are one kernel."),
    SPEC_F_INT(SpecFramework, fused_softmax_rows, 1, 1024, "1", 0,
               "That kernel works on so many heads at once: other counts of heads a rank run unfused."),
    FUSED(fused_bias_gelu, "Bias and activation are one kernel."),
    FUSED(fused_swiglu, "The gated activation is one kernel."),
    FUSED(fused_dropout_add, "Bias, dropout and residual are one kernel."),
    FUSED(fused_rope, "Rotary position is one kernel."),
    SPEC_F_BOOL(
        SpecFramework, fused_mla_rope, "true", 0,
        "Rotary position of latent attention, whose queries and keys are rotated in part, is one kernel."),
    FUSED(norm_upcasts_fp32, "RMSNorm runs eagerly with fp32 passes."),
    SPEC_F_DOUBLE(
        SpecFramework, qkv_copies, ORR_UNIT_NONE, 0, 20, "0", 0,
        "Times queries, keys and values are copied between their product and a fused attention kernel."),
    SPEC_F_DOUBLE(SpecFramework, qkv_backward_copies, ORR_UNIT_NONE, 0, 20, "0", 0,
                  "Times their gradients are."),
    SPEC_F_DOUBLE(SpecFramework, gate_backward_copies, ORR_UNIT_NONE, 0, 10, "0", 0,
                  "Unfused SwiGLU: times the gradients of gate and up are copied into one tensor."),
    FUSED(gradient_cast,
          "ZeRO-3: a gradient reduced in a wider type is cast in a pass of its own before it is scaled."),
    SPEC_F_DOUBLE(SpecFramework, gradient_copies, ORR_UNIT_NONE, 0, 10, "0", 0,
                  "ZeRO-3: times an unsharded gradient is read and written between product and wire."),
    SPEC_F_DOUBLE(SpecFramework, gathered_copies, ORR_UNIT_NONE, 0, 10, "0", 0,
                  "ZeRO-3: times gathered weights are read and written before their use."),
    SPEC_F_BOOL(SpecFramework, fused_grad_accumulation, "true", 0,
                "The weight-gradient product adds to the gradient; else a pass of its own does."),
    FUSED(gradient_upcast,
          "Without that, a 16-bit gradient is copied to fp32 before it is added to an fp32 sum."),
    SPEC_F_DOUBLE(SpecFramework, rowwise_gemm_frac, ORR_UNIT_FRAC, 0.05, 2, "1", 0,
                  "Speed of its row-wise scaled fp8 products over tensor-wise scaled ones."),
    SPEC_F_DOUBLE(SpecFramework, rowwise_long_gemm_frac, ORR_UNIT_FRAC, 0.05, 2, "1", 0,
                  "The same of products that sum over 16,384 and more: weight gradients."),
    SPEC_F_DOUBLE(SpecFramework, attention_speed_frac, ORR_UNIT_FRAC, 0.05, 2, "1", 0,
                  "Speed of its attention kernel over the generation that execution.attention names."),
    SPEC_F_DOUBLE(SpecFramework, dropout_frac, ORR_UNIT_FRAC, 0, 0.999, "0", 0,
                  "Dropout of models that do not say."),
    SPEC_F_WORD(SpecFramework, attention, &spec_words_attention, "\"flash2\"", 0,
                "Kernels of the attention core of scenarios that do not say."),
    SPEC_F_WORD(SpecFramework, attention_since_hopper, &spec_words_attention, NULL, SPEC_FIELD_DERIVED,
                "The same on Hopper and Blackwell; default: as elsewhere."),
    SPEC_F_BOOL(
        SpecFramework, latent_heads_blackwell, "true", 0,
        "The framework's cuDNN (9.11 and later) trains latent attention's heads of 192 and 128 dimensions on "
        "Blackwell; without it they run unfused there."),
    FUSED(masked_softmax, "Unfused attention builds a mask anew each time; its softmax, a warp a row, waits "
                          "for each piece of the row that it loads."),
    SPEC_F_WORD(SpecFramework, moe_dispatcher, &spec_words_dispatcher, "\"alltoall\"", 0,
                "What carries tokens to experts, of scenarios that do not say."),
    SPEC_F_WORD(SpecFramework, context_mode, &spec_words_context, "\"ring\"", 0,
                "How context ranks exchange keys and values, of scenarios that do not say."),
    FUSED(repeats_kv,
          "Keys and values are copied to every query head before attention, and so before context "
          "ranks exchange them."),
    FUSED(transposes_after_cast,
          "Before Blackwell, 8-bit operands that a product wants transposed are copied after "
          "their cast, weights too; else the cast writes both."),
    FUSED(reduces_maximum,
          "Tensor ranks all-reduce the maximum of each tensor that an 8-bit recipe scales as a whole."),
    FUSED(separate_projections,
          "Queries, keys and values, and the two inputs of a gated MLP, are a linear layer each."),
    FUSED(
        traced_exchange_waits,
        "A compiled model waits for each exchange of context ranks where it starts; else compute hides it."),
    SPEC_F_DOUBLE(SpecFramework, context_merge_bytes, ORR_UNIT_BYTES, 0, 1000, "8", 0,
                  "Bytes moved an output element to add one context step's part to the rest, in fp32."),
    SPEC_F_DOUBLE(SpecFramework, context_merge_backward_bytes, ORR_UNIT_BYTES, 0, 1000, "6", 0,
                  "The same for an element of the gradients of queries, keys and values."),
    SPEC_F_INT(SpecFramework, context_merge_kernels, 0, 100, "1", 0, "Kernel launches of that."),
    FUSED(grouped_experts, "One kernel works on all experts of a rank; else one each."),
    FUSED(fused_grouped_mlp,
          "mxfp8 experts on Blackwell: activation and casts run inside the products, which are one "
          "kernel for all experts of a rank."),
    FUSED(pads_expert_rows,
          "8- and 4-bit experts: rows are copied to pad each expert's to what the products want, and "
          "back, unless HybridEP lands them padded."),
    HOST_S(host_sync_s, "Dropless experts: the GPU waits while the host reads token counts, once a layer."),
    HOST_S(collective_gap_s, "Streams and ranks wait for each other around a tensor, context or expert "
                             "collective that nothing hides."),
    HOST_S(kernel_host_s, "Host time of one kernel launch."),
    SPEC_F_DOUBLE(SpecFramework, host_spread_frac, ORR_UNIT_FRAC, 0, 1, "0", 0,
                  "Standard deviation of launch times between hosts that wait for each other: tensor ranks."),
    SPEC_F_DOUBLE(SpecFramework, backward_host_frac, ORR_UNIT_FRAC, 0.01, 10, "1", 0,
                  "Host time of a backward's launch over a forward's: autograd launches from C++."),
    FUSED(launch_blocking,
          "The host launches a kernel only when the one before has ended (CUDA_LAUNCH_BLOCKING)."),
    FUSED(microbatch_sync, "The host waits for the GPU before the forward of every micro-batch."),
    HOST_S(
        collective_check_hop_s,
        "Before each collective its n ranks' hosts compare what they are about to do "
        "(TORCH_DISTRIBUTED_DEBUG=DETAIL): each of the 2 n messages, one after the other; 0: they do not."),
    FUSED(collective_checks_pipelines_only,
          "Hosts compare collectives (collective_check_hop_s) in runs with several pipeline ranks alone."),
    HOST_S(kernel_gap_s, "Idle time of the GPU between two dependent kernels."),
    SPEC_F_DOUBLE(
        SpecFramework, sm_elements_per_s, ORR_UNIT_NONE, 0, 1e13, "2.5e9", 0,
        "Elements a second that one SM takes in PyTorch's kernels on views, broadcasts and mixed types, "
        "which address each by itself; 0: as fast as streams."),
    SPEC_F_DOUBLE(SpecFramework, compiled_kernel_frac, ORR_UNIT_FRAC, 0.01, 1, "1", 0,
                  "Kernels left of eager ones when execution.compiled."),
    HOST_S(step_overhead_s, "Data loading, logging and checks, once a step."),
    HOST_S(microbatch_overhead_s, "Bookkeeping of the schedule, once per micro-batch and pass."),
    SPEC_F_WORD(SpecFramework, gradient_dtype, &spec_words_dtype, "\"fp32\"", 0,
                "Storage of accumulated gradients."),
    SPEC_F_WORD(SpecFramework, gradient_reduce_dtype, &spec_words_dtype, "\"fp32\"", 0,
                "Gradients on the wire."),
    SIZE(bucket_bytes, "Gradient and parameter bucket; 0: one bucket."),
    FUSED(reduces_at_end,
          "Gradients are reduced when the last backward has ended, whatever execution.overlap asks for."),
    SPEC_F_BOOL(SpecFramework, reduce_scatter, "true", 0,
                "ZeRO-1 reduces with reduce-scatter; else all-reduce and all-gather."),
    FUSED(zero1_all_reduces, "ZeRO-1 all-reduces whole gradients, reduce_scatter or not."),
    FUSED(hooks_reduce_unsharded,
          "ZeRO-0: hooks reduce gradients beside the last backward whatever execution.overlap says."),
    SPEC_F_BOOL(SpecFramework, optimizer_fused, "true", 0,
                "The optimizer works on many tensors in one kernel."),
    SPEC_F_BOOL(SpecFramework, grad_norm_clip, "true", 0,
                "A global gradient norm comes before the optimizer."),
    SPEC_F_BOOL(SpecFramework, optimizer_post_validation, "false", 0,
                "Schedules with weight gradients apart: each pipeline rank steps on the norm of the ranks "
                "before it and "
                "checks the whole in its next step, so that none waits for all [Qi2024]."),
    SPEC_F_WORD(SpecFramework, states, &spec_words_states, "\"megatron-fp32-grads\"", 0,
                "Bytes a parameter of each model state."),
    SPEC_F_INT(SpecFramework, prefetch_units, 0, 1000, "1", 0, "ZeRO-3: units gathered ahead."),
    FUSED(pipeline_keeps_params,
          "ZeRO-3 under a pipeline: weights are gathered and gradients reduced once a step."),
    FUSED(gathers_each_tensor, "ZeRO-3: one collective for each tensor, not one for each unit."),
    HOST_S(
        list_rank_host_s,
        "Collectives of weights and gradients on lists of tensors: host time for each rank's part of each."),
    SPEC_F_DOUBLE(SpecFramework, list_passes, ORR_UNIT_NONE, 0, 20, "0", 0,
                  "Times that such a tensor is read or written besides the wire: cleared, copied."),
    FUSED(regathers_recompute,
          "ZeRO-3: weights that recomputation used are gathered again for the gradients."),
    SPEC_F_BOOL(SpecFramework, reshard_after_forward, "true", 0,
                "ZeRO-3: weights are dropped after the forward."),
    FUSED(reduce_each_microbatch, "ZeRO-2 and 3: gradients are reduced on every micro-batch."),
    SPEC_F_BOOL(SpecFramework, chunked_tensor_overlap, "true", 0,
                "Overlap \"tensor\" cuts products in pieces; else only the rank's own part hides a gather."),
    FUSED(own_part_products,
          "Such a part is a product of its own, in the backward as well; the rows before and behind "
          "it are two more."),
    FUSED(keeps_gathered_input, "Sequence parallelism: the gathered input of a linear is kept for its "
                                "backward; else gathered again."),
    SPEC_F_DOUBLE(
        SpecFramework, tensor_layout_copies, ORR_UNIT_NONE, 0, 10, "0", 0,
        "Times an activation is read and written around a gather or reduce-scatter along the sequence."),
    FUSED(tensor_gather_8bit, "8- and 4-bit recipes cast activations before tensor ranks gather them."),
    FUSED(recompute_stops_early, "Full recomputation ends with the last tensor that the backward needs."),
    FUSED(overlap_tensor_backward, "Tensor-parallel collectives run beside the backward matrix products."),
    {.key = "schedules",
     .type = SPEC_TYPE_WORD_SET,
     .offset = offsetof(SpecFramework, schedules),
     .words = &spec_words_schedule,
     .default_text = "[]",
     .help = "Pipeline schedules that the software has: what parallel.schedule \"auto\" chooses from unless "
             "search.schedule says otherwise; empty: any."},
    SPEC_F_INT(SpecFramework, most_zero, 0, 3, "3", 0,
               "Largest ZeRO stage that the software has: what parallel.zero \"auto\" goes up to unless "
               "search.zero says otherwise."),
    SPEC_F_INT(SpecFramework, most_zero_in_pipeline, 0, 3, "3", 0,
               "The same where there are several pipeline ranks."),
    FUSED(balances_head, "Each pipeline stage takes layers until its share of the compute, the LM head's "
                         "included, is exceeded."),
    FUSED(p2p_blocking, "The compute stream waits for its own sends."),
    FUSED(p2p_overlap_needs_chunks,
          "Messages of 1F1B are never overlapped, whatever execution.overlap asks for: only those of ranks "
          "with several chunks."),
    {.key = "recipe_overlap",
     .type = SPEC_TYPE_WORD_SET,
     .offset = offsetof(SpecFramework, recipe_overlap),
     .words = &spec_words_overlap,
     .default_text = "[]",
     .help = "What its recipes overlap besides in runs that overlap grad_reduce and param_gather: pipeline, "
             "where stages are interleaved; tensor, of models without experts and a sequence split over "
             "tensor ranks "
             "of one node with NVLink inside alone."},
    HOST_S(p2p_host_s,
           "Of a message between stages: sending its shape ahead and reading it back on the host."),
    SPEC_F_INT(SpecFramework, p2p_forward_messages, 1, 10, "1", 0,
               "Messages of a forward between stages: the activation, and masks that go with it."),
    FUSED(p2p_scatter_gather, "Each tensor rank sends 1/t of the activation and the receivers gather."),
    FUSED(p2p_partitioned_tensors,
          "Each tensor rank sends 1/t of the activation inside a node too, with DeepSpeed's copies, and the "
          "receivers gather; the sender gathers its own output again for the backward."),
    FUSED(p2p_one_at_a_time,
          "Two stages exchange an activation and a gradient one after the other, not both at once."),
    SPEC_F_INT(
        SpecFramework, deferred_head_gradients, 0, 100000, "0", 0,
        "In runs that overlap grad_reduce and param_gather, of models without experts, 1F1B or "
        "interleaved: of so many micro-batches a step the LM head's weight gradient is computed when the "
        "last stage's passes are over."),
    SPEC_F_WORD(SpecFramework, loss, &spec_words_loss, "\"unfused\"", 0,
                "How logits and loss are computed and kept."),
    SPEC_F_INT(SpecFramework, logit_metrics, 0, 100, "0", 0,
               "Cross-entropies that training metrics run on every micro-batch's logits besides the loss."),
    SIZE(context_bytes, "Device memory outside the allocator: context, communication buffers."),
    SIZE(workspace_bytes, "Workspaces inside the allocator."),
    FUSED(weight_placeholders, "Fused accumulation caches an unused tensor of each distinct weight's shape."),
    FUSED(pipeline_keeps_boundaries,
          "A pipeline stage keeps buffers for the inputs and gradients of all micro-batches of a step."),
    FUSED(pipeline_keeps_outputs, "It keeps the outputs of all of them too; else of those in flight."),
    FUSED(saves_unquantized_inputs, "8-bit linear layers keep their input in 16 bits; else as they cast it."),
    SPEC_F_DOUBLE(SpecFramework, bucket_copy_elements, ORR_UNIT_NONE, 0, 1e12, "0", 0,
                  "Gradients that are copied into one flat buffer before their reduction."),
    SPEC_F_DOUBLE(
        SpecFramework, optimizer_flat_bytes, ORR_UNIT_BYTES, 0, 1000, "0", 0,
        "Bytes a parameter of the shard of the flat copy that the optimizer makes of 16-bit gradients."),
    SPEC_F_DOUBLE(SpecFramework, gather_buffers, ORR_UNIT_NONE, 0, 100, "0", 0,
                  "ZeRO-3: flat buffers of the largest unit that the gathering stream holds reserved."),
    FUSED(gradients_within_backward, "16-bit gradients beside fp32 sums are dropped behind the backward that "
                                     "made them: they take the room "
                                     "of activations that it has freed."),
    SPEC_F_DOUBLE(SpecFramework, launch_lead_layers, ORR_UNIT_NONE, 0, 10000, "0", 0,
                  "Layers of a forward that the host launches ahead of the GPU at most: outputs that another "
                  "stream reduces stay reserved until the GPU has passed them; 0: none do."),
    FUSED(logs_reserved, "What its log calls allocated is what the allocator has reserved."),
    SPEC_F_DOUBLE(SpecFramework, fragmentation_frac, ORR_UNIT_FRAC, 0, 10, "0", 0,
                  "Reserved beyond allocated, as a share of dynamic memory."),
};
SPEC_TABLE(spec_table_framework, "framework", "What the training software does, in physical terms.",
           framework_fields);

static const SpecField execution_fields[] = {
    SPEC_F_OBJECT(SpecExecution, framework, spec_table_framework, SPEC_FIELD_PRESET,
                  "The training software: a profile's name, a path, or an object; default megatron-core."),
    SPEC_F_NAME(SpecExecution, framework_text, "\"\"", "The software in words, for people."),
    SPEC_F_WORD(SpecExecution, attention, &spec_words_attention, NULL, SPEC_FIELD_AUTO | SPEC_FIELD_DERIVED,
                "Kernels of the attention core; default: the framework's."),
    SPEC_F_BOOL(SpecExecution, compiled, "false", 0, "A compiler fuses element-wise kernels."),
    SPEC_F_NAME(SpecExecution, cuda_graph, "\"\"",
                "What is captured in a graph, in the framework's words; empty: nothing."),
    {.key = "overlap",
     .type = SPEC_TYPE_WORD_SET,
     .offset = offsetof(SpecExecution, overlap),
     .words = &spec_words_overlap,
     .flags = SPEC_FIELD_AUTO,
     .default_text = "[]",
     .help = "Communication that runs beside compute."},
};
SPEC_TABLE(spec_table_execution, "execution", "The software and how it is run.", execution_fields);

static const SpecField offload_fields[] = {
    SPEC_F_INT(
        SpecOffload, activation_layers, 0, SPEC_OFFLOAD_ALL - 1, "0", SPEC_FIELD_AUTO,
        "Layers of each model stage, the first ones, whose activations wait in the host's memory; 0: none."),
};
SPEC_TABLE(spec_table_offload, "offload", "What leaves the GPU's memory.", offload_fields);

static bool read_offload(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    if (orr_json_type(node) == ORR_JSON_TEXT && strcmp(orr_json_text(node), "none") == 0) {
        *(SpecOffload *)target = (SpecOffload){0};
        return true;
    }
    if (orr_json_type(node) == ORR_JSON_TEXT && strcmp(orr_json_text(node), "activations") == 0) {
        *(SpecOffload *)target = (SpecOffload){.activation_layers = SPEC_OFFLOAD_ALL};
        return true;
    }
    if (orr_json_type(node) != ORR_JSON_OBJECT)
        return spec_read_fail(
            context, node, error,
            "is not supported: weights and optimizer states stay on the GPU; give \"none\", "
            "\"activations\" or {\"activation_layers\": N} (N layers, or \"auto\" for a search)");
    SpecReadContext inside = *context;
    inside.quiet++;
    return spec_read_table(&inside, &spec_table_offload, node, target, error);
}

/* Read without notes: its defaults say nothing about a run. */
static bool read_search(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    if (orr_json_type(node) != ORR_JSON_OBJECT)
        return spec_read_fail(context, node, error, "is %s; give an object", orr_json_type_name(node));
    SpecReadContext inside = *context;
    inside.quiet++;
    return spec_read_table(&inside, &spec_table_search, node, target, error);
}

bool spec_read_schema_version(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    int version = 0;
    (void)target;
    return spec_read_int(context, node, 1, 1, &version, error);
}

static const SpecField scenario_fields[] = {
    SPEC_F_SCHEMA,
    SPEC_F_NAME(Spec, name, "\"\"", "What reports call the scenario."),
    SPEC_F_OBJECT(Spec, model, spec_table_model, SPEC_FIELD_REQUIRED | SPEC_FIELD_PRESET,
                  "The model: a preset's name, the path of a Hugging Face config.json or of a model file, or "
                  "an object."),
    SPEC_F_OBJECT(Spec, cluster, spec_table_cluster, SPEC_FIELD_REQUIRED | SPEC_FIELD_PRESET,
                  "The machine: a preset's name, a path, or an object."),
    SPEC_F_OBJECT(Spec, training, spec_table_training, SPEC_FIELD_REQUIRED,
                  "What is trained with: batch, sequence, precision, optimizer."),
    SPEC_F_OBJECT(Spec, parallel, spec_table_parallel, 0, "How the work is split over GPUs."),
    SPEC_F_OBJECT(Spec, execution, spec_table_execution, 0, "The software and how it is run."),
    SPEC_F_CUSTOM(Spec, offload, read_offload, NULL, SPEC_FIELD_DERIVED,
                  "\"none\", \"activations\" (of all layers) or an object with activation_layers", NULL,
                  &spec_table_offload, "What leaves the GPU's memory."),
    SPEC_F_CUSTOM(Spec, search, read_search, NULL, SPEC_FIELD_DERIVED, "an object", NULL, &spec_table_search,
                  "Limits and ranges of the fields that are \"auto\"."),
};
SPEC_TABLE(spec_table_scenario, "scenario", "One training step to simulate.", scenario_fields);
