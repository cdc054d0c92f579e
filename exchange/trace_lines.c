/* exchange/trace_lines.c - see trace_lines.h. */
#include "exchange/trace_lines.h"

#include <string.h>

bool trace_line(TraceBytes *bytes, TraceSlice *ret_line, GError **error)
{
    const char *end = memchr(bytes->at, '\n', bytes->left);
    while (end == NULL && !bytes->ended) {
        if (!trace_bytes_more(bytes, error))
            return false;
        end = memchr(bytes->at, '\n', bytes->left);
    }
    gsize length = end != NULL ? (gsize)(end - bytes->at) : bytes->left;
    *ret_line = (TraceSlice){bytes->left > 0 ? bytes->at : NULL, length};
    bytes->at += length + (end != NULL);
    bytes->left -= length + (end != NULL);
    while (ret_line->length > 0 && ret_line->text[ret_line->length - 1] == '\r')
        ret_line->length--;
    if (ret_line->text != NULL)
        ((char *)ret_line->text)[ret_line->length] = '\0'; /* its end, or a byte of 0 already */
    return true;
}

bool trace_whole(TraceBytes *bytes, GError **error)
{
    while (!bytes->ended)
        if (!trace_bytes_more(bytes, error))
            return false;
    return true;
}

int trace_cells(const TraceSlice *line, TraceSlice *ret_cells, int most)
{
    const char *at = line->text, *end = line->text + line->length;
    int count = 0;
    while (at <= end) {
        const bool quoted = at < end && *at == '"';
        const char *begin = at + quoted;
        const char *stop = memchr(begin, quoted ? '"' : ',', (gsize)(end - begin));
        while (quoted && stop != NULL && stop + 1 < end && stop[1] == '"') /* "" stands for a quote */
            stop = stop + 2 < end ? memchr(stop + 2, '"', (gsize)(end - stop - 2)) : NULL;
        if (stop == NULL)
            stop = end;
        if (count < most)
            ret_cells[count] = (TraceSlice){begin, (gsize)(stop - begin)};
        count++;
        const char *comma = quoted && stop < end ? memchr(stop, ',', (gsize)(end - stop))
                            : stop < end         ? stop
                                                 : NULL;
        if (comma == NULL)
            break;
        at = comma + 1;
    }
    return count;
}
