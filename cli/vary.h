/* cli/vary.h - "--vary key=a,b,c" or "--vary key=a..b" (doubling): a field and the values it takes. */
#ifndef ORR_CLI_VARY_H
#define ORR_CLI_VARY_H

#include "base/error.h"

typedef struct CliVary {
    char *key;
    GPtrArray *values; /* char*, in order; at least one */
} CliVary;

bool cli_vary_parse(const char *text, CliVary *ret_vary, GError **error);
void cli_vary_clear(CliVary *vary);

/* `sets` (may be NULL) and one more, "key=value"; g_strfreev. */
char **cli_vary_sets(char **sets, const char *key, const char *value);

#endif
