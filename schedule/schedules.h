/* schedule/schedules.h - the generators behind the table, and how they write an order. */
#ifndef ORR_SCHEDULE_SCHEDULES_H
#define ORR_SCHEDULE_SCHEDULES_H

#include "schedule/schedule.h"

/* An order with room for `capacity` ops. */
SimOrder sim_order_new(OrrArena *arena, int64_t capacity);
static inline void sim_order_add(SimOrder *order, SimPass pass, int chunk, int microbatch)
{
    order->ops[order->count++] = (SimPassOp){.pass = (uint8_t)pass,
                                             .chunk = (int16_t)chunk,
                                             .microbatch = microbatch,
                                             .chunk2 = -1,
                                             .microbatch2 = -1};
}
/* Forward of (chunk, microbatch) overlapped with the whole backward of (chunk2, microbatch2). */
void sim_order_add_pair(SimOrder *order, int chunk, int microbatch, int chunk2, int microbatch2);

void sim_schedule_naive(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order);
void sim_schedule_gpipe(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order);
void sim_schedule_1f1b(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order);
bool sim_schedule_interleaved_check(const SimScheduleShape *shape, GError **error);
void sim_schedule_interleaved(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order);
void sim_schedule_breadth_first(const SimScheduleShape *shape, int rank, OrrArena *arena,
                                SimOrder *ret_order);
void sim_schedule_zb_h1(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order);
void sim_schedule_zb_h2(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order);
void sim_schedule_zb_auto(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order);
int sim_schedule_zb_auto_all(const SimScheduleShape *shape, const SimScheduleCosts *given, int most,
                             OrrArena *arena, SimOrder **ret_orders);
void sim_schedule_zb_v(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order);
void sim_schedule_v_half(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order);
void sim_schedule_v_half_ranks(const SimScheduleShape *shape, OrrArena *arena, SimOrder *ret_orders);
void sim_schedule_v_min(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order);
void sim_schedule_v_min_ranks(const SimScheduleShape *shape, OrrArena *arena, SimOrder *ret_orders);
bool sim_schedule_dualpipe_check(const SimScheduleShape *shape, GError **error);
void sim_schedule_dualpipe(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order);
bool sim_schedule_dualpipev_check(const SimScheduleShape *shape, GError **error);
void sim_schedule_dualpipev(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order);

#endif
