/* costmodel/decode_memory.h - what an inference engine keeps on a GPU: weights as they are stored, work, caches. */
#ifndef ORR_COSTMODEL_DECODE_MEMORY_H
#define ORR_COSTMODEL_DECODE_MEMORY_H

#include "costmodel/decode.h"

/* Bytes of an element of a layer's matrices, which are multiplied in `multiplied`. */
double cost_decode_stored_bytes(const Spec *spec, SpecDtype multiplied);

/* Bytes and caches of `decode`, whose shape is filled. Fails where the weights leave no room for a token. */
bool cost_decode_fill_memory(const Spec *spec, CostDecode *decode, GError **error);

#endif
