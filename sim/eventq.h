/* sim/eventq.h - events waiting to happen, earliest first.
 *
 * An event is a number from 0 to capacity - 1 that is in the queue at most once. Events at the same instant
 * leave in the order they were pushed, so a run depends on its scenario and on nothing else. Distinct
 * instants sit in a heap, each with a list of its events found by hashing the time: thousands of
 * ranks that finish together cost one heap operation. Nothing is allocated after sim_eventq_new(); the
 * arena owns the queue.
 */
#ifndef ORR_SIM_EVENTQ_H
#define ORR_SIM_EVENTQ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct SimEventq SimEventq;

SimEventq *sim_eventq_new(OrrArena *arena, int32_t capacity);

/* `event` must not be in the queue. */
void sim_eventq_push(SimEventq *queue, int32_t event, int64_t time_ps);

/* Takes `event` out wherever it waits; nothing happens when it is not in the queue. */
void sim_eventq_remove(SimEventq *queue, int32_t event);

/* The earliest event; false when the queue is empty. */
bool sim_eventq_pop(SimEventq *queue, int64_t *ret_time_ps, int32_t *ret_event);

/* The next event if it happens at `time_ps`, which must not be later than any event in the queue. */
bool sim_eventq_pop_at(SimEventq *queue, int64_t time_ps, int32_t *ret_event);

#endif
