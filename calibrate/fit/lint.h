/* calibrate/fit/lint.h - what a table must have to be sent in: `orrery calibrate check TABLE --strict`, and CI over scenarios/tables.
 */
#ifndef ORR_CALIBRATE_LINT_H
#define ORR_CALIBRATE_LINT_H

#include "base/json.h"

/* Sections and columns that are known, a GPU that is a preset (or the stamp's device) and a source in every row, numbers above 0
 * where a size or a time is meant, no row twice, and for rows of orrery-calibrate the stamp of their sweep. False: the
 * first thing that is not so, with section, row and column. `name` stands in the message. */
bool cal_lint_table(const OrrJson *root, const char *name, GError **error);

/* The same of a file: a JSON table as it is, other formats as rows that were read from them. */
bool cal_lint_file(const char *path, const char *accelerator, GError **error);

#endif
