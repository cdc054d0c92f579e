/* report/balance.h - who waits for whom inside a layer: work of the context ranks, rows of the busiest expert rank. */
#ifndef ORR_REPORT_BALANCE_H
#define ORR_REPORT_BALANCE_H

#include "report/report.h"

/* Lists live in `arena`. */
void report_balance_fill(OrrArena *arena, Report *report);

#endif
