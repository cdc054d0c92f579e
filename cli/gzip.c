/* cli/gzip.c - see gzip.h. */
#include "cli/gzip.h"

#ifdef ORRERY_ZLIB

#include <zlib.h>

enum { GZIP_WINDOW = 15 + 16, LEVEL = 6, MEMORY_LEVEL = 8, CHUNK = 1 << 16, MOST_AT_ONCE = 1 << 30 };

struct CliGzip {
    OrrSink *sink;
    z_stream stream;
};

CliGzip *cli_gzip_open(OrrSink *sink, const char *path, GError **error)
{
    CliGzip *gzip = g_new0(CliGzip, 1);
    gzip->sink = sink;
    if (deflateInit2(&gzip->stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK)
        return gzip;
    g_free(gzip);
    orr_fail(error, ORR_ERROR_INTERNAL, "%s: zlib does not start", path);
    return NULL;
}

bool cli_gzip_write(CliGzip *gzip, const char *data, gsize length, bool last, GError **error)
{
    unsigned char chunk[CHUNK];
    z_stream *stream = &gzip->stream;
    do {
        const gsize next = MIN(length, (gsize)MOST_AT_ONCE);
        const bool end = last && next == length;
        stream->next_in = (unsigned char *)(gpointer)data; /* zlib does not write there */
        stream->avail_in = (unsigned)next;
        data += next;
        length -= next;
        do {
            stream->next_out = chunk;
            stream->avail_out = sizeof chunk;
            deflate(stream, end ? Z_FINISH : Z_NO_FLUSH);
            if (!orr_sink_write(gzip->sink, (const char *)chunk, sizeof chunk - stream->avail_out, error))
                return false;
        } while (stream->avail_out == 0);
    } while (length > 0);
    return true;
}

void cli_gzip_free(CliGzip *gzip)
{
    if (gzip == NULL)
        return;
    deflateEnd(&gzip->stream);
    g_free(gzip);
}

#else

CliGzip *cli_gzip_open(OrrSink *sink, const char *path, GError **error)
{
    (void)sink;
    orr_fail(error, ORR_ERROR_INPUT,
             "%s: this build has no zlib; write it without .gz and compress it with gzip", path);
    return NULL;
}

bool cli_gzip_write(CliGzip *gzip, const char *data, gsize length, bool last, GError **error)
{
    (void)gzip, (void)data, (void)length, (void)last, (void)error;
    g_assert_not_reached();
}

void cli_gzip_free(CliGzip *gzip)
{
    g_assert(gzip == NULL);
}

#endif
