/* network/work.h - what simulating a collective would take, estimated before it is begun.
 *
 * The messages of a few ranks in a few steps stand for all of them. Steps that are known to be alike are worked out twice.
 */
#ifndef ORR_NETWORK_WORK_H
#define ORR_NETWORK_WORK_H

#include "network/replay.h"

typedef struct NetWork {
    double messages, seconds, bytes;
} NetWork;

/* Estimates; seconds are those of one core of today. */
NetWork net_work(const NetRun *run, bool flows);

#define NET_WORK_MOST_SECONDS 120.0
#define NET_WORK_MOST_BYTES   8589934592.0
/* Worked out one by one in that time: where steps do not go as the ones before though they send the same. */
#define NET_WORK_MOST_FLOWS ((int64_t)200000000)

static inline bool net_work_too_much(const NetWork *work)
{
    return work->seconds > NET_WORK_MOST_SECONDS || work->bytes > NET_WORK_MOST_BYTES;
}

/* Sets the error that says the estimate and what would work. */
bool net_work_refuse(const NetRun *run, const NetWork *work, GError **error);

#endif
