/* exchange/megatron.c - tables of names; see exchange_megatron.h. */
#include "exchange/megatron.h"

#include <stddef.h>

#define AT(member) offsetof(Spec, member)

const MegatronInt megatron_ints[] = {
    {"num-layers", "model.num_layers", "model.layers", AT(model.layers), MEGATRON_ALWAYS},
    {"hidden-size", "model.hidden_size", "model.hidden", AT(model.hidden), MEGATRON_ALWAYS},
    {"ffn-hidden-size", "model.ffn_hidden_size", "model.ffn_hidden", AT(model.ffn_hidden), MEGATRON_ALWAYS},
    {"num-attention-heads", "model.num_attention_heads", "model.heads", AT(model.heads), MEGATRON_ALWAYS},
    {"num-query-groups", "model.num_query_groups", "model.kv_heads", AT(model.kv_heads), MEGATRON_ALWAYS},
    {"kv-channels", "model.kv_channels", "model.head_dim", AT(model.head_dim), MEGATRON_ALWAYS},
    {"max-position-embeddings", NULL, "model.max_positions", AT(model.max_positions), MEGATRON_POSITIVE},
    {"vocab-size", "model.vocab_size", "model.vocab", AT(model.vocab), MEGATRON_ALWAYS},
    {"mtp-num-layers", "model.mtp_num_layers", "model.mtp_layers", AT(model.mtp_layers), MEGATRON_POSITIVE},
    {"num-experts", "model.num_moe_experts", "model.moe.experts", AT(model.moe.experts), MEGATRON_MOE},
    {"moe-router-topk", "model.moe_router_topk", "model.moe.top_k", AT(model.moe.top_k), MEGATRON_MOE},
    {"moe-ffn-hidden-size", "model.moe_ffn_hidden_size", "model.moe.expert_ffn_hidden",
     AT(model.moe.expert_ffn_hidden), MEGATRON_MOE},
    {"moe-router-num-groups", "model.moe_router_num_groups", "model.moe.router_groups",
     AT(model.moe.router_groups), MEGATRON_POSITIVE},
    {"moe-router-group-topk", "model.moe_router_group_topk", "model.moe.router_top_groups",
     AT(model.moe.router_top_groups), MEGATRON_POSITIVE},
    {"q-lora-rank", "model.q_lora_rank", "model.mla.q_lora_rank", AT(model.mla.q_lora_rank), MEGATRON_MLA},
    {"kv-lora-rank", "model.kv_lora_rank", "model.mla.kv_lora_rank", AT(model.mla.kv_lora_rank),
     MEGATRON_MLA},
    {"qk-head-dim", "model.qk_head_dim", "model.mla.qk_nope_head_dim", AT(model.mla.qk_nope_head_dim),
     MEGATRON_MLA},
    {"qk-pos-emb-head-dim", "model.qk_pos_emb_head_dim", "model.mla.qk_rope_head_dim",
     AT(model.mla.qk_rope_head_dim), MEGATRON_MLA},
    {"v-head-dim", "model.v_head_dim", "model.mla.v_head_dim", AT(model.mla.v_head_dim), MEGATRON_MLA},
    {"seq-length", "model.seq_length", "training.sequence_length", AT(training.sequence_length),
     MEGATRON_ALWAYS},
    {"micro-batch-size", "train.micro_batch_size", "training.micro_batch", AT(training.micro_batch),
     MEGATRON_ALWAYS},
    {"global-batch-size", "train.global_batch_size", "training.global_batch", AT(training.global_batch),
     MEGATRON_ALWAYS},
    {"tensor-model-parallel-size", "model.tensor_model_parallel_size", "parallel.tensor", AT(parallel.tensor),
     MEGATRON_ALWAYS},
    {"pipeline-model-parallel-size", "model.pipeline_model_parallel_size", "parallel.pipeline",
     AT(parallel.pipeline), MEGATRON_ALWAYS},
    {"context-parallel-size", "model.context_parallel_size", "parallel.context", AT(parallel.context),
     MEGATRON_ALWAYS},
    {"expert-model-parallel-size", "model.expert_model_parallel_size", "parallel.expert", AT(parallel.expert),
     MEGATRON_MOE},
    {"expert-tensor-parallel-size", "model.expert_tensor_parallel_size", "parallel.expert_tensor",
     AT(parallel.expert_tensor), MEGATRON_MOE},
    {"decoder-first-pipeline-num-layers", "model.num_layers_in_first_pipeline_stage",
     "parallel.first_stage_layers", AT(parallel.first_stage_layers), MEGATRON_POSITIVE},
    {"decoder-last-pipeline-num-layers", "model.num_layers_in_last_pipeline_stage",
     "parallel.last_stage_layers", AT(parallel.last_stage_layers), MEGATRON_POSITIVE},
    {"cpu-offloading-num-layers", "model.cpu_offloading_num_layers", "offload.activation_layers",
     AT(offload.activation_layers), MEGATRON_WHOLE_LAYERS},
};
const int megatron_int_count = (int)G_N_ELEMENTS(megatron_ints);

const MegatronSwitch megatron_switches[] = {
    {"swiglu", "model.gated_linear_unit", "model.gated_mlp", AT(model.gated_mlp), false, false},
    {"untie-embeddings-and-output-weights", "model.share_embeddings_and_output_weights",
     "model.tied_embeddings", AT(model.tied_embeddings), true, false},
    {"qk-layernorm", "model.qk_layernorm", "model.qk_norm", AT(model.qk_norm), false, false},
    {"account-for-embedding-in-pipeline-split", "model.account_for_embedding_in_pipeline_split",
     "parallel.embedding_as_layer", AT(parallel.embedding_as_layer), false, false},
    {"account-for-loss-in-pipeline-split", "model.account_for_loss_in_pipeline_split",
     "parallel.loss_as_layer", AT(parallel.loss_as_layer), false, false},
};
const int megatron_switch_count = (int)G_N_ELEMENTS(megatron_switches);

const ExchangeWordPair megatron_norms[2] = {{SPEC_NORM_LAYERNORM, "LayerNorm"},
                                            {SPEC_NORM_RMSNORM, "RMSNorm"}};
const ExchangeWordPair megatron_positions[3] = {
    {SPEC_POSITION_LEARNED, "learned_absolute"}, {SPEC_POSITION_ROPE, "rope"}, {SPEC_POSITION_NONE, "none"}};
const ExchangeWordPair megatron_optimizers[3] = {
    {SPEC_OPTIMIZER_ADAM, "adam"}, {SPEC_OPTIMIZER_SGD, "sgd"}, {SPEC_OPTIMIZER_MUON, "muon"}};
