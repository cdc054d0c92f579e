/* ledger/family.h - what a prediction is worth where nobody has read the software: every family of software in turn is taken
 * out of the profiles and of what intervals are made from.
 */
#ifndef ORR_LEDGER_FAMILY_H
#define ORR_LEDGER_FAMILY_H

#include "ledger/validate.h"

/* The family of a profile: "Megatron" of megatron-core-2025 and nemo-megatron, "XLA" of maxtext, else its name without a
 * generation. Caller frees. */
char *ledger_family(const char *framework);

typedef struct LedgerFamily {
    char *name;
    int rows;
    double mape, bias, stated_mape; /* by the general profile; with its sign; by its own */
    double coverage,
        half_width; /* of intervals from the other families, as `run` prints for unknown software */
} LedgerFamily;

/* What makes a row's software unknown: for a second replay. */
extern const char *const ledger_family_sets[];

/* `stated` beside the replay of the same files with those: a family a row, most rows first, the last one of all. NULL and an error
 * where there are too few families. LedgerFamily, its names freed with it. */
GArray *ledger_leave_family_out(const Ledger *stated, const Ledger *unknown, GError **error);

void ledger_write_families_text(const GArray *families, GString *out);
void ledger_write_families_json(const GArray *families, GString *out);

#endif
