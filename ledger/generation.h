/* ledger/generation.h - which generation of a framework's profile describes software of a given month. */
#ifndef ORR_LEDGER_GENERATION_H
#define ORR_LEDGER_GENERATION_H

#include <glib.h>

/* Profiles named `framework`-... that say "until" describe what the software was up to and with that month. Returns
 * the one that covers `date` ("2024-12"; compared as text), the earliest of several; NULL: `framework` itself. The
 * caller frees it. A profile that cannot be read is none: loading the scenario names its fault. */
char *ledger_framework_of_date(const char *framework, const char *date);

/* The profile by whose defaults a run went whose row names `framework` and whose words are `text`: "megatron-core" was
 * launched by NVIDIA's recipes unless the words begin with "Megatron-LM", whose own script overlaps what its flags name.
 * Either may be NULL. */
const char *ledger_framework_launched(const char *framework, const char *text);

/* The month of the software of a row: of the NeMo release that its words name ("NeMo 25.04.01": 2025-04; the first of
 * several), which can be older than the row, else `date`. `text` may be NULL; NULL where neither says. Caller frees. */
char *ledger_software_month(const char *text, const char *date);

/* The profile one of whose `software` entries has all its words in `text` (any case), the longest entry of all; NULL: none
 * has, or `text` is NULL. The caller frees it. */
char *ledger_framework_of_text(const char *text);

#endif
