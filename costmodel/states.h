/* costmodel/states.h - bytes of weights, gradients and optimizer state on one rank, by recipe and ZeRO stage.
 *
 * The recipes are domain knowledge of each framework: which copies of a parameter exist and in which width.
 * ZeRO stage 1 shards master copy and moments over the data-parallel ranks, 2 also the gradients, 3 also the
 * weights. [Rajbhandari2020]
 */
#ifndef ORR_COSTMODEL_STATES_H
#define ORR_COSTMODEL_STATES_H

#include "costmodel/params.h"
#include "spec/spec.h"

/* Bytes a parameter. */
typedef struct CostRecipe {
    double weights, gradients;
    double master;  /* fp32 copy of the weights, and fp32 copies of gradients kept with it */
    double moments; /* for Adam; other optimizers scale it */
} CostRecipe;

CostRecipe cost_recipe(const Spec *spec);

/* Moments of the optimizer over those of Adam: 1, momentum .5, SGD 0 ... */
double cost_optimizer_moments_ratio(SpecOptimizer optimizer);

typedef struct CostStates {
    double weights_bytes, gradients_bytes, optimizer_bytes;
    double moments_bytes; /* of the optimizer's: made in its first step */
} CostStates;

/* Bytes a parameter of 16-bit gradients that die with the backward that made them (allocator.gradients "dropped-in-backward"); states
 * leave them out. 0 where gradients are sharded. */
double cost_passing_gradient_bytes(const Spec *spec);

/* States of a rank that holds these weights (before ZeRO). */
CostStates cost_states(const Spec *spec, const CostWeights *weights);

/* Of them, what a rank owns: its shard of what ZeRO shards. */
double cost_shard_count(const Spec *spec, const CostWeights *weights);

/* Ranks that share dense (data x context) and expert parameters, and over how many ZeRO shards them. */
int cost_dense_replicas(const Spec *spec);
int cost_expert_replicas(const Spec *spec);
int cost_shard_degree(const Spec *spec, int replicas);

/* Bytes an element of a gradient that lies whole on a rank until it is reduced, beside the rank's shard. 0 where nobody has
 * another shard: one replica under ZeRO 1 and 2, or under a stage that the software does not have. What leaves with every
 * micro-batch is in the wire's type, and so are all of software that has ZeRO-3 under it (FSDP2 widens what it sums); other
 * sums that wait for the last micro-batch are in their own type where it is narrower. */
double cost_unsharded_gradient_bytes(const Spec *spec);

/* Flat copies of gradients that live only between the last backward and the end of the optimizer step, on a rank that
 * holds these weights: one bucket on its way to the wire, and the shard's 16-bit sums in fp32. No
 * cached block of an activation is as large, so the allocator reserves them besides. */
double cost_flat_gradient_bytes(const Spec *spec, const CostWeights *weights);

/* ZeRO-3 under a pipeline: frameworks that keep weights gathered and gradients unreduced until the last
 * micro-batch, so that no micro-batch waits for the network. */
bool cost_keeps_gathered(const Spec *spec);

/* ZeRO-3: gathered weights are dropped behind each pass, and those that recomputation used gathered again. */
bool cost_reshards(const Spec *spec);
bool cost_regathers(const Spec *spec);
/* ZeRO-2 and 3 on a schedule on which all micro-batches pass a chunk before another: weights are gathered and gradients
 * reduced once a chunk and pass. Source: [LamyPoirier2022] */
bool cost_shards_by_chunk(const Spec *spec);
/* Sharded gradients are reduced on every micro-batch, else once a step. */
bool cost_reduces_each_microbatch(const Spec *spec);
/* Gradients are reduced beside the last backward: execution.overlap says so, or at ZeRO-0 the framework's own hooks. */
bool cost_overlaps_grad_reduce(const Spec *spec);
/* Whether a rank keeps its shard of reduced gradients alone: ZeRO-2 and 3, and an overlapped ZeRO-1 that does so. */
bool cost_shards_gradients(const Spec *spec);

/* Seconds of the optimizer step on a rank that holds these weights. */
double cost_optimizer_s(const Spec *spec, const CostWeights *weights);

/* Weights and residual stream in fp32 around 16-bit products (`autocast`). Never in fp32 training, nor beside adapters whose
 * frozen weights are loaded in 16 bits; bitsandbytes' models have all that is not quantised cast to fp32.
 * Source: [PEFT] utils/other.py, prepare_model_for_kbit_training */
bool cost_autocasts(const Spec *spec);

/* Bytes an element on the wire of gradient reduction and parameter gathers. */
double cost_gradient_wire_bytes(const Spec *spec);
double cost_weight_wire_bytes(const Spec *spec);

#endif
