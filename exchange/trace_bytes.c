/* exchange/trace_bytes.c - see trace_bytes.h. */
#include "exchange/trace_bytes.h"

#include "base/file.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#ifdef ORRERY_ZLIB
#include <zlib.h>
#endif

enum { FIRST_BYTES = 1 << 20, MOST_BYTES = 1 << 26, PACKED_BYTES = 1 << 18, GZIP_WINDOW = 15 + 16 };

typedef struct TraceFile {
    TraceBytes window; /* first */
    char *path, *buffer;
    gsize capacity; /* of the buffer, without the byte of 0 */
    FILE *file;     /* NULL: a text in memory */
    bool packed;
#ifdef ORRERY_ZLIB
    z_stream stream;
    unsigned char *input;
    bool member_open;
#endif
} TraceFile;

static void unpacker_close(TraceFile *in)
{
#ifdef ORRERY_ZLIB
    if (in->packed)
        inflateEnd(&in->stream);
    g_free(in->input);
#else
    (void)in;
#endif
}

void trace_bytes_close(TraceBytes *bytes)
{
    TraceFile *in = (TraceFile *)(gpointer)bytes;
    if (in == NULL)
        return;
    unpacker_close(in);
    if (in->file != NULL)
        fclose(in->file);
    g_free(in->buffer);
    g_free(in->path);
    g_free(in);
}

static TraceFile *file_new(const char *path, gsize capacity)
{
    TraceFile *in = g_new0(TraceFile, 1);
    in->path = g_strdup(path);
    in->capacity = capacity;
    in->buffer = g_malloc(capacity + 1);
    in->window.at = in->buffer;
    in->buffer[0] = '\0';
    return in;
}

static bool unpacker_open(TraceFile *in, GError **error)
{
#ifdef ORRERY_ZLIB
    in->input = g_malloc(PACKED_BYTES);
    if (inflateInit2(&in->stream, GZIP_WINDOW) != Z_OK)
        return orr_fail(error, ORR_ERROR_INTERNAL, "%s: zlib does not start", in->path);
    in->packed = true;
    return true;
#else
    return orr_fail(error, ORR_ERROR_INPUT, "%s: this build has no zlib; unpack it with gunzip first",
                    in->path);
#endif
}

TraceBytes *trace_bytes_open(const char *path, GError **error)
{
    GStatBuf about;
    if (!orr_file_may_read(path, error))
        return NULL;
    if (g_stat(path, &about) != 0) {
        orr_fail(error, ORR_ERROR_IO, "%s: cannot read it: %s", path, g_strerror(errno));
        return NULL;
    }
    if (!S_ISREG(about.st_mode)) {
        orr_fail(error, ORR_ERROR_INPUT, "%s: is not a file; give a profiler's trace, or a folder of them",
                 path);
        return NULL;
    }
    FILE *file = g_fopen(path, "rb");
    if (file == NULL) {
        orr_fail(error, ORR_ERROR_IO, "%s: cannot read it: %s", path, g_strerror(errno));
        return NULL;
    }
    TraceFile *in = file_new(path, FIRST_BYTES);
    in->file = file;
    const int first = fgetc(file), second = fgetc(file);
    rewind(file);
    if (first == 0x1f && second == 0x8b && !unpacker_open(in, error)) {
        trace_bytes_close(&in->window);
        return NULL;
    }
    return &in->window;
}

TraceBytes *trace_bytes_of(const char *text, gsize length, const char *name)
{
    TraceFile *in = file_new(name, length);
    if (length > 0)
        memcpy(in->buffer, text, length);
    in->buffer[length] = '\0';
    in->window.left = length;
    in->window.ended = true;
    return &in->window;
}

static bool read_error(const TraceFile *in, GError **error)
{
    return orr_fail(error, ORR_ERROR_IO, "%s: cannot read it: %s", in->path, g_strerror(errno));
}

#ifdef ORRERY_ZLIB
/* At least a byte into `to`, or the end. */
static bool unpack(TraceFile *in, char *to, gsize room, gsize *ret_got, GError **error)
{
    z_stream *stream = &in->stream;
    stream->next_out = (unsigned char *)to;
    stream->avail_out = (unsigned)room;
    while (stream->avail_out == room) {
        if (stream->avail_in == 0) {
            stream->next_in = in->input;
            stream->avail_in = (unsigned)fread(in->input, 1, PACKED_BYTES, in->file);
            if (stream->avail_in == 0 && ferror(in->file))
                return read_error(in, error);
        }
        if (stream->avail_in == 0) {
            if (in->member_open)
                return orr_fail(error, ORR_ERROR_INPUT,
                                "%s: the packed file is cut off; let the profiler finish writing, or copy it "
                                "again",
                                in->path);
            break;
        }
        in->member_open = true;
        const int state = inflate(stream, Z_NO_FLUSH);
        if (state == Z_STREAM_END) {
            in->member_open = false;
            inflateReset(stream);
        } else if (state != Z_OK && state != Z_BUF_ERROR) {
            return orr_fail(error, ORR_ERROR_INPUT, "%s: is damaged: it does not unpack as gzip", in->path);
        }
    }
    *ret_got = room - stream->avail_out;
    return true;
}
#endif

static bool fill(TraceFile *in, char *to, gsize room, gsize *ret_got, GError **error)
{
#ifdef ORRERY_ZLIB
    if (in->packed)
        return unpack(in, to, room, ret_got, error);
#endif
    *ret_got = fread(to, 1, room, in->file);
    return *ret_got > 0 || !ferror(in->file) || read_error(in, error);
}

bool trace_bytes_more(TraceBytes *bytes, GError **error)
{
    TraceFile *in = (TraceFile *)(gpointer)bytes;
    gsize got = 0;
    if (bytes->ended)
        return true;
    if (bytes->left > in->capacity / 2) {
        if (in->capacity >= MOST_BYTES)
            return orr_fail(error, ORR_ERROR_INPUT,
                            "%s: one value takes more than %d MiB; that is not a profiler's trace of a step",
                            in->path, MOST_BYTES >> 20);
        char *larger = g_malloc(2 * in->capacity + 1);
        memcpy(larger, bytes->at, bytes->left);
        g_free(in->buffer);
        in->buffer = larger;
        in->capacity *= 2;
    } else {
        memmove(in->buffer, bytes->at, bytes->left);
    }
    bytes->at = in->buffer;
    if (!fill(in, in->buffer + bytes->left, in->capacity - bytes->left, &got, error))
        return false;
    bytes->left += got;
    in->buffer[bytes->left] = '\0';
    bytes->ended = got == 0;
    return true;
}
