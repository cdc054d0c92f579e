/* base/error.c - the quark of ORR_ERROR and the one-line rule. */
#include "base/error.h"

#include <string.h>

#include "base/shown.h"

GQuark orr_error_quark(void)
{
    return g_quark_from_static_string("orr-error-quark");
}

bool orr_fail(GError **error, OrrErrorCode code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *raw = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_autofree char *message = orr_shown(raw, ' ', "");
    enum { MOST_BYTES = 4096, KEPT_BYTES = 1536 }; /* keys of a file may be any length */
    const size_t length = strlen(message);
    if (length > MOST_BYTES) {
        const char *end = g_utf8_find_prev_char(message, message + KEPT_BYTES),
                   *tail = g_utf8_find_next_char(message + length - KEPT_BYTES, NULL);
        g_autofree char *head = g_strndup(message, (gsize)(end - message));
        g_autofree char *cut = g_strconcat(head, " ... ", tail, NULL);
        g_set_error_literal(error, ORR_ERROR, (int)code, cut);
        return false;
    }
    g_set_error_literal(error, ORR_ERROR, (int)code, message);
    return false;
}
