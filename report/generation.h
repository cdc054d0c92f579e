/* report/generation.h - which generation of a framework's profile describes software of a given month. */
#ifndef ORR_REPORT_GENERATION_H
#define ORR_REPORT_GENERATION_H

#include <glib.h>

/* Profiles named `framework`-... that say "until" describe what the software was up to and with that month. Returns
 * the one that covers `date` ("2024-12"; compared as text), the earliest of several; NULL: `framework` itself. The
 * caller frees it. A profile that cannot be read is none: loading the scenario names its fault. */
char *report_framework_of_date(const char *framework, const char *date);

#endif
