/* report/describe.h - a configuration in a line of words, as tables and lists show it. */
#ifndef ORR_REPORT_DESCRIBE_H
#define ORR_REPORT_DESCRIBE_H

#include "spec/spec.h"

/* "tp8 sp cp2 pp8 vpp3 ep8 zero1 interleaved recompute full/3 flash3 compiled overlap grad_reduce+param_gather": all but
 * the data-parallel degree, the micro-batch and the batch; g_free. */
char *report_configuration(const Spec *spec);

#endif
