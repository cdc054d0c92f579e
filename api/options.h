/* api/options.h - a JSON object of options, read by a table: unknown keys, wrong types and ranges are errors. */
#ifndef ORR_API_OPTIONS_H
#define ORR_API_OPTIONS_H

#include <stddef.h>

#include "base/json.h"

typedef enum {
    API_OPTION_TEXT,    /* char *, g_free */
    API_OPTION_NUMBER,  /* double */
    API_OPTION_SWITCH,  /* bool */
    API_OPTION_NUMBERS, /* GArray * of double */
    API_OPTION_TEXTS,   /* GPtrArray * of char * */
    API_OPTION_VARY,    /* GArray * of ApiVary: {"key": [value, ...]}, in the order given */
} ApiOptionKind;

typedef struct ApiOption {
    const char *key;
    ApiOptionKind kind;
    size_t offset;
    double low, high; /* of numbers, both included */
    bool whole;
} ApiOption;

/* `text` NULL: nothing given; members keep their values. `what` names the call in errors. */
bool api_options_read(const char *text, const char *what, const ApiOption *options, int count,
                      void *ret_members, GError **error);
void api_options_clear(const ApiOption *options, int count, void *members);

#endif
