/* base/shown.h - text of files made fit to be shown: names may hold what a terminal or browser obeys. */
#ifndef ORR_BASE_SHOWN_H
#define ORR_BASE_SHOWN_H

#include <stdbool.h>

#include <glib.h>

/* Controls (C0, DEL, C1) and marks that turn the direction of writing: obeyed, never shown. */
bool orr_is_obeyed(gunichar point);

/* `text` as valid UTF-8 with `instead` for each such character, those of `kept` (ASCII) left as they are; g_free. */
char *orr_shown(const char *text, char instead, const char *kept);

#endif
