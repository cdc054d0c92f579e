/* search/parallel.h - the same work for 0 .. count-1 on all cores. Results must go to places of their own. */
#ifndef ORR_SEARCH_PARALLEL_H
#define ORR_SEARCH_PARALLEL_H

typedef void (*SearchWork)(int index, void *data);

/* Runs work(i, data) for every i, on `jobs` threads (at least 1); returns when all are done. */
void search_parallel(int count, int jobs, SearchWork work, void *data);

/* Cores of this machine. */
int search_cores(void);

#endif
