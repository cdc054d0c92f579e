/* study/trace_predict.h - the kernels of one rank of a simulated step, as a profiler would have recorded them.
 *
 * The simulation knows passes over stages or layers; each is taken apart into the kernels and collectives that its time was made
 * of, in their order. What a pass lasts longer than its kernels alone (shared SMs, the reference's forward) stretches them, and
 * the host's waits lie between them, so that every pass begins and ends as it was simulated. Of DualPipe's
 * overlapped pairs both are taken to have the layers of the first. Models given as a list of layers are not taken apart: a
 * kernel a pass.
 */
#ifndef ORR_STUDY_TRACE_PREDICT_H
#define ORR_STUDY_TRACE_PREDICT_H

#include "exchange/trace.h"
#include "report/report.h"

/* The step of the first replica of pipeline rank `pipeline_rank`; needs spans recorded. Kernels are launched at the begin of
 * their pass, or, where the host is late, as they begin. */
TraceRank *trace_predict(const Report *report, int pipeline_rank);

/* Of that rank's first pass with `tag` alone, and of what runs beside it. NULL: it has none. */
TraceRank *trace_predict_pass(const Report *report, int pipeline_rank, SimTag tag);

/* The pipeline rank of GPU `rank` of a job, stages apart as Megatron lays them out; 0 where that is not known. */
int trace_pipeline_rank(const Report *report, int rank, int world);

#endif
