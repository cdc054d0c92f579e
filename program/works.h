/* program/works.h - durations and memory of passes, each kept once. */
#ifndef ORR_PROGRAM_WORKS_H
#define ORR_PROGRAM_WORKS_H

#include "program/builder.h"

/* As an op of `stream`: on the compute stream work that is on no network is kernels, which want all SMs. */
int32_t sim_intern_work(Builder *builder, SimStream stream, const SimWork *work);
int32_t sim_intern_mem(Builder *builder, const SimMemDelta *mem); /* SIM_NONE when nothing moves */
SimWork sim_segment_work(const SimSegment *segment, SimPass pass);
int32_t sim_make_stage_work(Builder *builder, int stage, SimPass pass);
static inline int32_t sim_stage_work(Builder *builder, int stage, SimPass pass)
{
    int32_t *work = &builder->caches[stage].work[pass];
    if (*work == SIM_NONE)
        *work = sim_make_stage_work(builder, stage, pass);
    return *work;
}
/* Memory of a pass over one segment, or over a whole stage in one op with the same peak. */
SimMemDelta sim_segment_mem(const SimSegment *segment, SimPass pass);
SimMemDelta sim_stage_mem(const SimStage *stage, SimPass pass);

#endif
