/* cli/gzip.c - see gzip.h. */
#include "cli/gzip.h"

#ifdef ORRERY_ZLIB

#include <zlib.h>

enum { GZIP_WINDOW = 15 + 16, LEVEL = 6, MEMORY_LEVEL = 8, CHUNK = 1 << 16, MOST_AT_ONCE = 1 << 30 };

GByteArray *cli_gzip(const char *data, gsize length, const char *path, GError **error)
{
    z_stream stream = {0};
    if (deflateInit2(&stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
        orr_fail(error, ORR_ERROR_INTERNAL, "%s: zlib does not start", path);
        return NULL;
    }
    GByteArray *out = g_byte_array_new();
    unsigned char chunk[CHUNK];
    gsize given = 0;
    for (int status = Z_OK; status != Z_STREAM_END;) {
        if (stream.avail_in == 0) {
            const gsize next = MIN(length - given, (gsize)MOST_AT_ONCE);
            stream.next_in = (unsigned char *)(gpointer)(data + given); /* zlib does not write there */
            stream.avail_in = (unsigned)next;
            given += next;
        }
        stream.next_out = chunk;
        stream.avail_out = sizeof chunk;
        status = deflate(&stream, given == length ? Z_FINISH : Z_NO_FLUSH);
        g_byte_array_append(out, chunk, (guint)(sizeof chunk - stream.avail_out));
    }
    deflateEnd(&stream);
    return out;
}

#else

GByteArray *cli_gzip(const char *data, gsize length, const char *path, GError **error)
{
    (void)data;
    (void)length;
    orr_fail(error, ORR_ERROR_INPUT,
             "%s: this build has no zlib; write it without .gz and compress it with gzip", path);
    return NULL;
}

#endif
