/* base/crew.h - the same work for 0 .. count-1 on several threads. Results must go to places of their own. */
#ifndef ORR_BASE_CREW_H
#define ORR_BASE_CREW_H

#include "base/stop.h"

typedef void (*OrrCrewWork)(int index, void *data);

/* Runs work(i, data) on `threads` threads, 0: one a core. The calling thread is one of them, so that all is done even
 * where no thread can be made. Indices are taken in rising order. Once `stop` (may be NULL) is asked for, nothing more
 * is begun but the first of each thread. Returns how many were begun, all of which have ended: those below. */
int orr_crew(int count, int threads, const OrrStop *stop, OrrCrewWork work, void *data);

/* Cores of this machine. */
int orr_crew_cores(void);

#endif
