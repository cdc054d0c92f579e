/* cli/input.c - see input.h. */
#define _XOPEN_SOURCE 700
#include "cli/input.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MOST_BYTES (INT64_C(256) << 20)

/* What an open file says to its end, kept in its place. */
static bool hold(int file, const char *shown, GError **error)
{
    char chunk[65536];
    int64_t total = 0;
    FILE *kept = tmpfile();
    bool ok = kept != NULL;
    for (ssize_t got = 1; ok && got != 0;) {
        got = read(file, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR)
            continue;
        total += got;
        if (total > MOST_BYTES) {
            (void)fclose(kept);
            return orr_fail(error, ORR_ERROR_INPUT, "%s: larger than 256 MiB; split it", shown);
        }
        ok = got >= 0 && fwrite(chunk, 1, (size_t)got, kept) == (size_t)got;
    }
    ok = ok && fflush(kept) == 0 && dup2(fileno(kept), file) >= 0;
    if (!ok)
        orr_fail(error, ORR_ERROR_IO, "%s: cannot read and keep it: %s", shown, g_strerror(errno));
    if (kept != NULL)
        (void)fclose(kept);
    return ok;
}

/* "/dev/fd/63", as shells write <(...), is open file 63; "-" is 0; -1: a name like any other. */
static int open_file_of(const char *word)
{
    static const char folder[] = "/dev/fd/";
    guint64 file = 0;
    if (strcmp(word, "-") == 0)
        return STDIN_FILENO;
    if (!g_str_has_prefix(word, folder) ||
        !g_ascii_string_to_unsigned(word + strlen(folder), 10, 0, INT_MAX, &file, NULL))
        return -1;
    return (int)file;
}

bool cli_input_hold(char **words, GError **error)
{
    for (char **word = words; word != NULL && *word != NULL; word++) {
        const int file = open_file_of(*word);
        const char *shown = file == STDIN_FILENO ? "standard input" : *word;
        if (file < 0 || lseek(file, 0, SEEK_CUR) >= 0 || errno != ESPIPE) /* a file, or none: as it is */
            continue;
        if (isatty(file) != 0)
            return orr_fail(
                error, ORR_ERROR_INPUT,
                "-: standard input is a terminal; give a file, or send one as in 'orrery run - < FILE'");
        if (!hold(file, shown, error))
            return false;
    }
    return true;
}
