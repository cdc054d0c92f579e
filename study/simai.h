/* study/simai.h - a simulated step as the workload text that SimAI runs and its generator AICB writes.
 *
 * A first line of degrees, a number of lines, and then one line for each stretch of computing of one pipeline rank:
 *
 *   name -1  forward_ns collective bytes  input_gradient_ns collective bytes  weight_gradient_ns collective bytes  100
 *
 * SimAI runs all lines' forwards from the first to the last, then their gradients from the last to the first. What follows waits
 * for collectives of forwards (of the tensor group, or _EP: experts) and input gradients. Those of weight gradients
 * run beside what follows, in the data group or _DP_EP, that of experts. Bytes are of the whole message.
 * Source: aliyun/SimAI astra-sim-alibabacloud/astra-sim/workload/Workload.cc (initialize_workload,
 * iterate_hybrid_parallel_Transformer_fwd_in_bckwd); aliyun/aicb workload_generator/SimAI_training_workload_generator.py
 */
#ifndef ORR_STUDY_SIMAI_H
#define ORR_STUDY_SIMAI_H

#include "report/report.h"

/* The first pipeline rank, appended to `out`. Fails where the step has parts that the text has no words for. */
bool simai_write(const Report *report, GString *out, GError **error);

#endif
