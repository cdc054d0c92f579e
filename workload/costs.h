/* workload/costs.h - seconds of what phases do: forwards of a model, weights on their way. */
#ifndef ORR_WORKLOAD_COSTS_H
#define ORR_WORKLOAD_COSTS_H

#include "program/plan.h"
#include "spec/spec.h"
#include "workload/sequences.h"

/* All micro-batches forward through the pipeline, with nothing behind them. Equal micro-batches on p stages of f_i take
 *   sum_i (f_i + c_i) + (m - 1) max_i f_i
 * with c_i the message to the next; where compute waits for its messages, f_i has them in it. ZeRO-3 gathers each unit
 * beside the one before it. Stages of one rank count together. */
int64_t workload_forward_ps(const SimPlan *plan);

/* FLOPs of products alone that a phase cannot do without; attention and recomputation come on top. The input's embedding is no
 * product; frozen weights have no gradient of their own. 0 for phases of other kinds. `model`: of the phase's role. */
double workload_least_flops(const Spec *spec, const SpecModel *model, const SpecPhase *phase,
                            const Sequences *sequences);

/* Of all weights, as a receiver stores them. */
double workload_weight_bytes(const Spec *spec);

/* Weights on a GPU, of a model that only scores. */
double workload_held_bytes(const Spec *spec);

/* Of a GPU, for so many tokens of a replica: logits in 16 bits, 0 of a head of one number; keys and values of all layers.
 * Source: [DSChatTrace] ppo_trainer.py, generate_experience; use_cache of Transformers' models is true unless said otherwise */
double workload_logits_bytes(const Spec *spec, double tokens);
double workload_cache_bytes(const Spec *spec, double tokens);
/* Activations of the largest layer of a micro-batch, as a backward would find them: no less than a forward alone holds. */
double workload_layer_bytes(const Spec *spec);

/* Weights of `from`, spread over its GPUs, to the GPUs of `to`. `same`: both are on the same GPUs.
 * Colocated: every tensor is gathered whole from all that hold a part, and each GPU keeps its shard of it. Apart by
 * broadcast: gathered likewise, then sent from one GPU through all that receive. Peer to peer: every GPU that holds a part
 * sends it once by its own NIC, and receivers of one shard pass it on. *ret_bytes: of all weights as the receiver stores them.
 * Source: [verl] workers/sharding_manager (full tensors), workers/rollout (broadcast by NCCL)
 * The receiver's host takes engine.load_host_s for each tensor of a checkpoint: an expert's matrices are tensors of their own.
 * Ignores: buckets; requantisation. */
double workload_sync_s(const Spec *from, const Spec *to, bool same, SpecSyncWay way, double *ret_bytes);

/* Bytes of a role's weights (and, of one that trains, of what its optimizer keeps) on a GPU, to the host's memory and back.
 * Buffers that are kept are copied at the link's rate. Into fresh ones 1.8 to 2.8 GB/s were measured, whose pages come one by
 * one; back 10.8 GB/s.
 * Source: [NemoRlPageable] 1.8 GB/s, [VllmSleep] 22 GiB in 10.6 s and back in 2.2 s, [SglangPinned] 2.8 GB/s */
double workload_leave_s(const Spec *spec, SpecHostMemory memory, double bytes_per_gpu);
double workload_return_s(const Spec *spec, SpecHostMemory memory, double bytes_per_gpu);

#endif
