/* costmodel/adapter.h - low-rank adapters beside frozen weights, and layers frozen whole: what is trained, what frozen weights take, and the ops.
 *
 * y = W x + (alpha / r) B A x.  A linear layer of n inputs and m outputs has r (n + m) weights more, two thin products in
 * every pass, and no weight gradient of its own. Of a layer cut along its outputs every tensor rank has all of A and its
 * part of B; of one cut along its inputs its part of A and all of B: the r columns between them are reduced.
 * Frozen weights have no gradient, no optimizer state and no reduction; inputs that only a frozen layer's weight gradient
 * would read are not kept. Weights stored in fewer bits are widened before each product, forward and backward.
 * Source: Hu et al., LoRA, ICLR 2022; Dettmers et al., QLoRA, NeurIPS 2023; [PEFT] tuners/lora/layer.py; [Bitsandbytes]
 * autograd/_functions.py MatMul4Bit; [MegatronBridge] peft/lora_layers.py
 * Ignores: that the first layer's input needs no gradient; gradients of frozen norms that fused kernels compute with their
 * input's.
 * Tested: unit/costmodel/test_adapter.c, test_adapter_base.c
 */
#ifndef ORR_COSTMODEL_ADAPTER_H
#define ORR_COSTMODEL_ADAPTER_H

#include "costmodel/freeze.h"
#include "costmodel/ops.h"
#include "costmodel/params.h"

/* Parameters that are trained: all of a piece, or its adapters'. */
CostParams cost_trained_params(const Spec *spec, CostModelPart piece, int layer);
/* Of the whole model, over all ranks. */
double cost_trained_parameters(const Spec *spec);

/* Frozen parameters of a piece on one rank, in bytes as they are stored; 0 where all are trained. */
typedef struct CostFrozen {
    double dense_bytes, expert_bytes;
} CostFrozen;
CostFrozen cost_frozen_bytes(const Spec *spec, CostModelPart piece, int layer);
/* What a rank holds of them: all, or its shard. */
double cost_held_bytes(const Spec *spec, const CostFrozen *frozen);
/* Bytes of a frozen weight of a linear layer. nf4: half a byte and a scale for 64 weights, of 4 bytes, or of one with 4 bytes
 * for 256 scales. int4: half a byte, and for 128 weights a scale of 2 bytes and a zero of half a byte. int8, fp8: a byte.
 * Source: QLoRA section 3; [AutoGPTQ] */
double cost_base_bytes(const SpecAdapter *adapter);

/* Behind the product of a linear layer of this name, of [tokens, in] on this rank: its adapters in this pass. */
void cost_push_adapter(const CostShape *shape, CostOps *ops, const char *name, CostModule module,
                       CostPass pass, double tokens, double in);
/* Behind the product at this index, of a rank's experts with `even` rows each on average: one adapter an expert, as PEFT has
 * them, or one for all of a rank's (share_expert_adapters).   Source: [MegatronBridge] peft/lora_layers.py */
void cost_push_expert_adapter(const CostShape *shape, CostOps *ops, int product, CostPass pass, double even,
                              double in);
/* Before it: weights stored in fewer bits are widened. */
void cost_push_widening(const CostShape *shape, CostOps *ops, CostModule module, CostPass pass,
                        double weights);

/* Forwards that every micro-batch runs beside its own, of which nothing is kept (preference training): of the reference, and
 * of what is trained. kto runs mismatched completions through both, for its KL term; a cached reference has seen them.
 * Source: [TRL] trainer/kto_trainer.py */
int cost_reference_forwards(const Spec *spec);
int cost_mismatched_forwards(const Spec *spec);
/* Weights of a second model that is the reference, without modules of multi-token prediction; zeros where it is none. In 16
 * bits. */
CostFrozen cost_reference_bytes(const Spec *spec, CostModelPart piece, int layer);
/* The ops of a forward that the reference runs: those of `forward` without adapters. */
void cost_reference_ops(const CostOps *forward, CostOps *ret_ops);

/* Takes out of a piece's ops and tensors what only gradients of frozen weights want; nothing where all are trained. */
void cost_freeze(const CostShape *shape, CostModelPart piece, int layer, int layer_in_stage,
                 CostGraph *graph);

#endif
