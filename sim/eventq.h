/* sim/eventq.h - events waiting to happen, earliest first.
 *
 * An event is a number from 0 to capacity - 1 that is in the queue at most once. Events at the same instant
 * leave in the order they were pushed, so a run depends on its scenario and on nothing else. Events of one instant that
 * are pushed together stay together: thousands of ranks that finish at once move as one. Instants wait on a wheel in
 * eleven levels of 64 slots, one level for six bits of the time (sim/eventq_wheel.h). The earliest slot is divided until
 * it holds few of them, which are sorted: so what comes next is known some instants ahead, and what it will need can be
 * fetched.
 * Nothing is allocated after sim_eventq_new(); the arena owns the queue.
 */
#ifndef ORR_SIM_EVENTQ_H
#define ORR_SIM_EVENTQ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct SimEventq SimEventq;

SimEventq *sim_eventq_new(OrrArena *arena, int32_t capacity);

/* So few events stay in the cache with all that belongs to them: nothing has to be fetched ahead. */
static inline bool sim_eventq_is_small(int32_t capacity)
{
    return capacity <= 2048;
}

/* `items` holds something of `item_bytes` for each of the first `count` events: fetched into the cache shortly before
 * the event is popped. */
void sim_eventq_announce(SimEventq *queue, const void *items, size_t item_bytes, int32_t count);

/* `event` must not be in the queue, `time_ps` not be earlier than the last event popped. */
void sim_eventq_push(SimEventq *queue, int32_t event, int64_t time_ps);

/* Takes `event` out wherever it waits; nothing happens when it is not in the queue. */
void sim_eventq_remove(SimEventq *queue, int32_t event);

/* The earliest event; false when the queue is empty. */
bool sim_eventq_pop(SimEventq *queue, int64_t *ret_time_ps, int32_t *ret_event);

/* An event of the instant that is likely to come `instants` behind the next one, without popping it; -1: it is not known
 * yet. For fetching into the cache what it will need. */
int32_t sim_eventq_ahead(const SimEventq *queue, int32_t instants);

/* The next event if it happens at `time_ps`, the time of the last one popped. */
bool sim_eventq_pop_at(SimEventq *queue, int64_t time_ps, int32_t *ret_event);

#endif
