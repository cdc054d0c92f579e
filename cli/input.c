/* cli/input.c - see input.h. */
#define _XOPEN_SOURCE 700
#include "cli/input.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MOST_BYTES (INT64_C(256) << 20)

static bool copy(FILE *kept, GError **error)
{
    char chunk[65536];
    int64_t total = 0;
    for (ssize_t got = 1; got != 0;) {
        got = read(STDIN_FILENO, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return orr_fail(error, ORR_ERROR_IO, "standard input: cannot read: %s", g_strerror(errno));
        total += got;
        if (total > MOST_BYTES)
            return orr_fail(error, ORR_ERROR_INPUT, "standard input: larger than 256 MiB; split it");
        if (got > 0 && fwrite(chunk, 1, (size_t)got, kept) != (size_t)got)
            return orr_fail(error, ORR_ERROR_IO, "standard input: cannot keep it: %s", g_strerror(errno));
    }
    return fflush(kept) == 0 && dup2(fileno(kept), STDIN_FILENO) >= 0
               ? true
               : orr_fail(error, ORR_ERROR_IO, "standard input: cannot keep it: %s", g_strerror(errno));
}

bool cli_input_hold(char **words, GError **error)
{
    bool asked = false;
    for (char **word = words; word != NULL && *word != NULL; word++)
        asked |= strcmp(*word, "-") == 0;
    if (!asked || lseek(STDIN_FILENO, 0, SEEK_CUR) >= 0) /* a file: can be read again as it is */
        return true;
    if (isatty(STDIN_FILENO) != 0)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "-: standard input is a terminal; give a file, or send one as in 'orrery run - < FILE'");
    FILE *kept = tmpfile();
    if (kept == NULL)
        return orr_fail(error, ORR_ERROR_IO, "standard input: cannot keep it: %s", g_strerror(errno));
    const bool ok = copy(kept, error);
    (void)fclose(kept);
    return ok;
}
