/* api/journal.h - what a sweep has done, in a folder, so that it goes on where it stopped.
 *
 * Each process appends rows to a file of its own, a line of JSON each, written at once. A line that a kill cut short is no
 * row. Processes that share the folder, at a time or one after the other, need no locks, and the order of rows says nothing.
 */
#ifndef ORR_API_JOURNAL_H
#define ORR_API_JOURNAL_H

#include "api/sweep.h"

typedef struct ApiJournal ApiJournal;

/* Opens `folder`, which is made where it is missing, for the question of this hash with rows->len runs, and gives the rows
 * that are there (values NULL: it is not). Fails where another question has left its rows, or a file is none of ours. */
ApiJournal *api_journal_open(const char *folder, const char *question, GArray *rows, GError **error);
/* One thread at a time. */
bool api_journal_add(ApiJournal *journal, guint index, const ApiSweepRow *row, GError **error);
/* What was added is on the disk then. */
bool api_journal_close(ApiJournal *journal, GError **error);

/* A row as its line, and back; `length` bytes without the newline. False where it is none of `count` runs. */
void api_row_line(guint index, const ApiSweepRow *row, GString *out);
bool api_row_of_line(const char *line, gsize length, guint count, guint *ret_index, ApiSweepRow *ret_row);

#endif
