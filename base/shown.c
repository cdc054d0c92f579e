/* base/shown.c - characters that are obeyed and not shown. Source: Unicode Standard Annex 9, "Directional Formatting" */
#include "base/shown.h"

#include <string.h>

bool orr_is_obeyed(gunichar point)
{
    return g_unichar_iscntrl(point) || point == 0x61c || point == 0x200e || point == 0x200f ||
           (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

char *orr_shown(const char *text, char instead, const char *kept)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    GString *out = g_string_sized_new(strlen(valid));
    for (const char *c = valid; *c != '\0'; c = g_utf8_next_char(c)) {
        const gunichar point = g_utf8_get_char(c);
        const bool keep = point < 0x80 && strchr(kept, (int)point) != NULL;
        g_string_append_unichar(out, orr_is_obeyed(point) && !keep ? (gunichar)instead : point);
    }
    return g_string_free(out, FALSE);
}
