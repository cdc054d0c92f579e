/* search/orders.h - orders of schedules and the facts read off them, made once for all threads and groups of a search. */
#ifndef ORR_SEARCH_ORDERS_H
#define ORR_SEARCH_ORDERS_H

#include "schedule/facts.h"
#include "search/space.h"

/* Orders of all ranks of one shape; all zero: none yet. */
typedef struct SearchOrders {
    const SimSchedule *schedule;
    SimScheduleShape shape;
    SimOrder *ranks;
    OrrArena *own; /* where the shelf had no room for them */
} SearchOrders;

/* Replaces what `orders` holds by those of a shape; nothing happens when they are. */
void search_orders_borrow(SearchSpace *space, const SimSchedule *schedule, const SimScheduleShape *shape,
                          SearchOrders *orders);
void search_orders_return(SearchOrders *orders);

/* NULL: the order follows the times at hand, and nothing is known of it before them. The space owns them. */
const SimOrderFacts *search_facts(SearchSpace *space, const SimSchedule *schedule,
                                  const SimScheduleShape *shape);

/* The shelf of a space. */
GHashTable *search_shelf_new(void);

#endif
