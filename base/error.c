/* base/error.c - the quark of ORR_ERROR and the one-line rule. */
#include "base/error.h"

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
    g_autofree char *message = g_utf8_make_valid(raw, -1);
    for (char *at = message; *at != '\0'; at++)
        if (g_ascii_iscntrl(*at))
            *at = ' ';
    g_set_error_literal(error, ORR_ERROR, (int)code, message);
    return false;
}
