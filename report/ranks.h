/* report/ranks.h - what a GPU does: its index along each way in which ranks are dealt out. */
#ifndef ORR_REPORT_RANKS_H
#define ORR_REPORT_RANKS_H

#include "spec/placement.h"

typedef struct ReportRank {
    int tensor, context, data, pipeline, expert, expert_data; /* from 0 */
} ReportRank;

ReportRank report_rank(const SpecPlacement *placement, int gpu);

#endif
