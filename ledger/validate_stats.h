/* ledger/validate_stats.h - a ledger's rows summed up; between the files of validate only. */
#ifndef ORR_LEDGER_VALIDATE_STATS_H
#define ORR_LEDGER_VALIDATE_STATS_H

#include "ledger/validate.h"

/* Fills the statistics of the sources and of all. */
void ledger_sum_up(Ledger *ledger);

void ledger_set_interval(LedgerRow *row, double low_s, double high_s);

#endif
