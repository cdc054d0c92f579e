/* costmodel/lengths_memory.h - what PyTorch's allocator keeps beyond the tensors of a step where texts differ in length. */
#ifndef ORR_COSTMODEL_LENGTHS_MEMORY_H
#define ORR_COSTMODEL_LENGTHS_MEMORY_H

#include "costmodel/ops.h"

/* Bytes that are reserved at the most over those in use at the most, of a rank with so many layers, and the head if
 * `head`; the median of several orders of texts. 0 where texts are packed or of one length, for compiled models, whose
 * shapes are few, and where segments expand. `room_bytes`: of the GPU beside what lies there for the whole run.
 * Each micro-batch makes and drops every op's result, what is kept, and the loss's logits, in the caching allocator
 * (caching.h). Ignored: requests up to 1 MiB; several micro-batches in flight; layers in at most 8 groups; that scores of unfused attention grow with
 * the square; streams besides. */
double cost_lengths_stranded_bytes(const CostShape *shape, int layers, bool head, double room_bytes);

#endif
