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

#endif
