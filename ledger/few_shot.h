/* ledger/few_shot.h - what a few runs of one's own are worth: the rows of each place corrected by some of its others.
 *
 * A place is one source's runs on one accelerator (a blind file's sources are told by the first word of their ids). For
 * n own runs, each row of each place with n + 2 rows or more is predicted twice: from n rows drawn at random
 * (LEDGER_FEW_SHOT_DRAWS times, a fixed seed), and from the n that are most like it, as somebody who asks for a change
 * of a run that he measured. A row never corrects itself; likeness does not know measured times.
 * Tested: published/test_few_shot.c
 */
#ifndef ORR_LEDGER_FEW_SHOT_H
#define ORR_LEDGER_FEW_SHOT_H

#include "ledger/validate.h"

#define LEDGER_FEW_SHOT_DRAWS 20

/* Mean |error| of the rows, and of the places' means. */
typedef struct LedgerFewShot {
    int own, places, rows;
    double plain, plain_places; /* uncorrected */
    double drawn, drawn_places;
    double nearest, nearest_places;
} LedgerFewShot;

/* NAN where no place has rows enough. */
LedgerFewShot ledger_few_shot(const Ledger *ledger, int own);

/* Own runs 0, 1, 2, 3, 5 and 10. */
void ledger_write_few_shot_text(const Ledger *ledger, GString *out);
void ledger_write_few_shot_json(const Ledger *ledger, GString *out);

#endif
