/* costmodel/textbook.h - the estimates that lecture notes and papers do on the back of an envelope, kept
 * beside the simulator so that people can check what they were taught. None of them simulates.
 */
#ifndef ORR_COSTMODEL_TEXTBOOK_H
#define ORR_COSTMODEL_TEXTBOOK_H

#include "spec/spec.h"

/* GPUs = 6 P T / (X t): P parameters, T tokens, X FLOP/s that one GPU achieves, t seconds; not rounded.
 * Source: [Kaplan2020] (6 FLOPs a parameter and token)    Tested: golden/test_vectors.c */
double cost_textbook_gpus(double parameters, double tokens, double flops_per_s_per_gpu, double seconds);

/* Seconds = 8 P T / (n X): full recomputation adds a fourth pass. Source: [Narayanan2021], section 5.1 */
double cost_textbook_seconds(double parameters, double tokens, int gpus, double flops_per_s_per_gpu);

/* Lecture accounting of GPT-2 in fp32: 4 B weights, 4 B gradients, 12 B Adam a parameter; activations 6 b s h a
 * layer, b s h token and s h position embeddings, 4 B each. */
typedef struct CostNotesMemory {
    double states_bytes, layer_bytes, token_embedding_bytes, position_embedding_bytes, activations_bytes;
} CostNotesMemory;
CostNotesMemory cost_textbook_gpt2_memory(double parameters, int layers, int hidden, double batch,
                                          double sequence);

#endif
