/* cli/output.c - what a command says, to files and to standard output. */
#include "cli/output.h"
#include "base/shown.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cli/gzip.h"

static bool is_stdout(const char *path)
{
    return path == NULL || strcmp(path, "-") == 0;
}

static bool same_place(const char *a, const char *b)
{
    if (is_stdout(a) || is_stdout(b))
        return is_stdout(a) && is_stdout(b);
    g_autofree char *full_a = g_canonicalize_filename(a, NULL), *full_b = g_canonicalize_filename(b, NULL);
    return strcmp(full_a, full_b) == 0;
}

bool cli_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    if (is_stdout(a) || is_stdout(b))
        return false;
    return same_place(a, b) || (stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
                                of_a.st_ino == of_b.st_ino && S_ISREG(of_a.st_mode));
}

bool cli_outputs_check(const CliOutput *outputs, int count, GError **error)
{
    for (int i = 0; i < count; i++) {
        for (int j = i + 1; j < count; j++) {
            if (!same_place(outputs[i].path, outputs[j].path))
                continue;
            g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT,
                        "%s and %s would both go to %s; give each its own file", outputs[i].what,
                        outputs[j].what, is_stdout(outputs[i].path) ? "standard output" : outputs[i].path);
            return false;
        }
    }
    return true;
}

static GPrivate ear_of_thread = G_PRIVATE_INIT(NULL);

void cli_output_hear(CliEar *ear)
{
    g_private_set(&ear_of_thread, ear);
}

/* A file, plain or packed, or standard output. */
struct CliStream {
    GString *heard; /* in the place of standard output; NULL: nobody hears it */
    OrrSink *sink;
    CliGzip *gzip; /* NULL: plain */
    GError *error; /* the first; what follows is dropped */
};

CliStream *cli_stream_open(const char *path, GError **error)
{
    CliStream *stream = g_new0(CliStream, 1);
    const CliEar *ear = is_stdout(path) ? g_private_get(&ear_of_thread) : NULL;
    if (ear != NULL) {
        stream->heard = ear->out;
        return stream;
    }
    stream->sink = orr_sink_open(is_stdout(path) ? "-" : path, error);
    if (stream->sink != NULL && !is_stdout(path) && g_str_has_suffix(path, ".gz") &&
        (stream->gzip = cli_gzip_open(stream->sink, path, error)) == NULL) {
        orr_sink_close(stream->sink, false, NULL);
        stream->sink = NULL;
    }
    if (stream->sink != NULL)
        return stream;
    g_free(stream);
    return NULL;
}

bool cli_stream_put(const char *text, gsize length, void *data)
{
    CliStream *stream = data;
    if (stream->error != NULL)
        return false;
    if (stream->heard != NULL) {
        g_string_append_len(stream->heard, text, (gssize)length);
        return true;
    }
    if (stream->gzip != NULL)
        return cli_gzip_write(stream->gzip, text, length, false, &stream->error);
    return orr_sink_write(stream->sink, text, length, &stream->error);
}

bool cli_stream_close(CliStream *stream, GError **error)
{
    bool ok = stream->error == NULL;
    if (!ok)
        g_propagate_error(error, stream->error);
    else if (stream->gzip != NULL)
        ok = cli_gzip_write(stream->gzip, "", 0, true, error);
    const bool closed = stream->sink == NULL || orr_sink_close(stream->sink, ok, ok ? error : NULL);
    cli_gzip_free(stream->gzip);
    g_free(stream);
    return ok && closed;
}

bool cli_output_write(const char *path, const GString *text, GError **error)
{
    CliStream *stream = cli_stream_open(path, error);
    if (stream == NULL)
        return false;
    cli_stream_put(text->str, text->len, stream);
    return cli_stream_close(stream, error);
}

bool cli_outputs_write(const CliOutput *outputs, int count, GError **error)
{
    return cli_outputs_write_after(outputs, count, 0, error);
}

bool cli_outputs_write_after(const CliOutput *outputs, int count, int done, GError **error)
{
    g_autoptr(GString) written = g_string_new(NULL);
    for (int i = 0; i < count; i++) {
        GError *cause = NULL;
        if (i >= done && !cli_output_write(outputs[i].path, outputs[i].text, &cause)) {
            if (g_error_matches(cause, G_FILE_ERROR, G_FILE_ERROR_PIPE))
                g_propagate_error(error, cause);
            else
                g_propagate_prefixed_error(error, cause, "%s%s%s: ", outputs[i].what, written->str,
                                           written->len > 0 ? ")" : "");
            return false;
        }
        g_string_append_printf(written, "%s%s",
                               written->len > 0 ? " and " : " (already written: ", outputs[i].what);
    }
    return true;
}

void cli_note(bool quiet, const char *format, ...)
{
    if (quiet)
        return;
    va_list values;
    va_start(values, format);
    g_autofree char *raw = g_strdup_vprintf(format, values);
    g_autofree char *message = orr_shown(raw, ' ', "\n");
    va_end(values);
    const CliEar *ear = g_private_get(&ear_of_thread);
    if (ear != NULL)
        g_string_append_printf(ear->said, "%s\n", message);
    else
        fprintf(stderr, "%s\n", message);
}

int cli_error_tell(const GError *error)
{
    enum { MOST = 2000 }; /* a key of megabytes is no message */
    g_autofree char *message = orr_shown(error->message, ' ', "");
    if (strlen(message) > MOST) {
        *g_utf8_find_prev_char(message, message + MOST) = '\0';
        char *cut = g_strconcat(message, " ...", NULL);
        g_free(message);
        message = cut;
    }
    g_auto(GStrv) parts = g_strsplit(message, ORR_ALSO, -1);
    g_autofree char *lines = g_strjoinv("\n  and ", parts);
    fprintf(stderr, "orrery: %s\n", lines);
    return g_error_matches(error, ORR_ERROR, ORR_ERROR_INTERNAL) ? 1 : 2;
}
