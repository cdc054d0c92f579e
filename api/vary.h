/* api/vary.h - "--vary key=a,b,c", "--vary key=a..b" (doubling) or "--vary key=a..b:step": a field and the values it takes,
 * at most 100,000. */
#ifndef ORR_API_VARY_H
#define ORR_API_VARY_H

#include "base/error.h"

typedef struct ApiVary {
    char *key;
    GPtrArray *values; /* char*, in order; at least one */
} ApiVary;

bool api_vary_parse(const char *text, ApiVary *ret_vary, GError **error);
void api_vary_clear(ApiVary *vary);

/* An empty array of them, which clears its own. */
GArray *api_vary_fields(void);

/* `sets` (may be NULL) and one more, "key=value"; g_strfreev. */
char **api_vary_sets(char **sets, const char *key, const char *value);

#endif
