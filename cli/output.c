/* cli/output.c - what a command says, to files and to standard output. */
#include "cli/output.h"

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

static bool write_stdout(const GString *text, GError **error)
{
    errno = 0;
    if (fwrite(text->str, 1, text->len, stdout) == text->len && fflush(stdout) == 0)
        return true;
    if (errno == EPIPE)
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_PIPE, "standard output is closed");
    else
        g_set_error(error, ORR_ERROR, ORR_ERROR_IO, "standard output: cannot write: %s", g_strerror(errno));
    return false;
}

bool cli_output_write(const char *path, const GString *text, GError **error)
{
    if (is_stdout(path))
        return write_stdout(text, error);
    if (!g_str_has_suffix(path, ".gz"))
        return orr_file_write(path, text->str, text->len, error);
    GByteArray *packed = cli_gzip(text->str, text->len, path, error);
    const bool ok = packed != NULL && orr_file_write(path, (const char *)packed->data, packed->len, error);
    if (packed != NULL)
        g_byte_array_unref(packed);
    return ok;
}

bool cli_outputs_write(const CliOutput *outputs, int count, GError **error)
{
    g_autoptr(GString) written = g_string_new(NULL);
    for (int i = 0; i < count; i++) {
        GError *cause = NULL;
        if (!cli_output_write(outputs[i].path, outputs[i].text, &cause)) {
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
    g_autofree char *message = g_strdup_vprintf(format, values);
    va_end(values);
    fprintf(stderr, "%s\n", message);
}
