/* base/stop.h - whether work that takes long is to end with what it has: a user's Ctrl-C, a limit of time. */
#ifndef ORR_BASE_STOP_H
#define ORR_BASE_STOP_H

#include <stdbool.h>
#include <stddef.h>

typedef struct OrrStop {
    bool (*asked)(void *data); /* from any thread; NULL: never */
    void *data;
} OrrStop;

/* `stop` may be NULL: never. */
static inline bool orr_stop_asked(const OrrStop *stop)
{
    return stop != NULL && stop->asked != NULL && stop->asked(stop->data);
}

#endif
