/* report/kernels.h - the kernels and collectives of every kind of layer, the embedding and the head, one by one. */
#ifndef ORR_REPORT_KERNELS_H
#define ORR_REPORT_KERNELS_H

#include "costmodel/pass.h"
#include "report/report.h"

/* `seconds`: of the op alone, for one micro-batch on one rank, without recomputation; `count`: such pieces in the whole
 * model. */
typedef void (*ReportKernelVisitor)(const CostOp *op, double seconds, int count, void *data);

void report_visit_kernels(const Report *report, ReportKernelVisitor visit, void *data);

#endif
