/* exchange/shell_expand.h - values of a script's variables; what no run is needed for. */
#ifndef ORR_EXCHANGE_SHELL_EXPAND_H
#define ORR_EXCHANGE_SHELL_EXPAND_H

#include <glib.h>
#include <stdbool.h>

/* text[at] is '$' or '`': appends what the expansion gives, or itself where only a run could tell, and returns the
 * place behind it. `variables`: char* to char*. */
gsize shell_expand(GHashTable *variables, const char *text, gsize length, gsize at, GString *out);

#endif
