/* spec/check_say.c - what the checks of a scenario say. */
#include <stdarg.h>

#include "spec/checks.h"

bool spec_check_fail(const Check *check, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *message = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    orr_fail(check->error, ORR_ERROR_INPUT, "%s%s%s", check->where, check->where[0] != '\0' ? ": " : "",
             message);
    return false;
}

/* "1, 2, 4, 8": divisors of `number`, the first ten. */
char *spec_check_divisors(int64_t number)
{
    GString *out = g_string_new(NULL);
    int shown = 0;
    for (int64_t d = 1; d <= number && shown < 10 && d <= 65536; d++)
        if (number % d == 0)
            g_string_append_printf(out, "%s%" G_GINT64_FORMAT, shown++ > 0 ? ", " : "", (gint64)d);
    return g_string_free(out, FALSE);
}

/* `degree` must divide `value`. */
bool spec_check_divides(const Check *check, const char *key, int degree, const char *what, int value)
{
    if (value % degree == 0)
        return true;
    g_autofree char *list = spec_check_divisors(value);
    return spec_check_fail(check, "%s: %d does not divide %s %d; give one of its divisors (%s)", key, degree,
                           what, value, list);
}
