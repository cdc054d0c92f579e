/* report/validate_stats.h - a ledger's rows summed up; between the files of validate only. */
#ifndef ORR_REPORT_VALIDATE_STATS_H
#define ORR_REPORT_VALIDATE_STATS_H

#include "report/validate.h"

/* Fills the statistics of the sources and of all. */
void validate_sum_up(ValidateLedger *ledger);

void validate_set_interval(ValidateRow *row, double low_s, double high_s);

#endif
