/* program/measured.h - passes and messages that take what was measured of each micro-batch. */
#ifndef ORR_PROGRAM_MEASURED_H
#define ORR_PROGRAM_MEASURED_H

#include "program/builder.h"

/* Multiplies the parts of a work so that a sum of such works, of which `before_ps` come before this one, grows from
 * `whole_ps` to `target_ps`: each boundary moves in proportion and is rounded once, so that the pieces add up. With equal
 * sums nothing changes; a whole of 0 becomes compute. */
void sim_work_stretch(SimWork *work, int64_t before_ps, int64_t whole_ps, int64_t target_ps);

/* `work`, which begins `before_ps` after the pass does, as the plan's measured seconds have it. */
void sim_measured_pass(const Builder *builder, const Chunk *chunk, const Pass *pass, int64_t before_ps,
                       SimWork *work);
/* What of the pass lies before segment i, in the order in which it runs them. */
int64_t sim_measured_before(const Chunk *chunk, const Pass *pass, int i);
/* The op of a message: `op`, or one that takes what was measured. */
int32_t sim_measured_send(RankBuilder *rb, const Chunk *chunk, Direction direction, int32_t microbatch);

#endif
