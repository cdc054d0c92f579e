/* spec/resolve_workload.h - a loop's batch as the batch of the training step that it runs. */
#ifndef ORR_SPEC_RESOLVE_WORKLOAD_H
#define ORR_SPEC_RESOLVE_WORKLOAD_H

#include "base/json.h"

/* Where `workload` is given, what training leaves out: sequence_length from the mean prompt and answer, global_batch from the
 * answers of a mini-batch. */
void spec_resolve_workload(OrrJsonDoc *doc);

#endif
