/* cli/sweep_page.h - what a calibration got, as one page: rows of a table into the figures of html/sweep.h. */
#ifndef ORR_CLI_SWEEP_PAGE_H
#define ORR_CLI_SWEEP_PAGE_H

#include "base/error.h"

/* Writes the page of `table` to `path`. accelerator NULL: that of the table's first row. log: what the fit said. */
bool cli_sweep_page(const char *table, const char *accelerator, const char *log, const char *path,
                    GError **error);

#endif
