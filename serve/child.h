/* serve/child.h - one question to the program itself: a process of its own, with limits of time and memory.
 *
 * Whatever a question does, only its process ends: the one who asked goes on, and says what happened.
 */
#ifndef ORR_SERVE_CHILD_H
#define ORR_SERVE_CHILD_H

#include <stdint.h>

#include "base/error.h"

typedef struct ServeLimits {
    double seconds;       /* of the wall's clock */
    int64_t memory_bytes; /* of address space; 0: none */
    int64_t output_bytes; /* of standard output; more is a failure */
    int nice;             /* added to the niceness of whoever asks */
} ServeLimits;

typedef struct ServeChild {
    int status;    /* exit status; -1: it was ended */
    GString *out;  /* standard output; g_string_free */
    GString *said; /* standard error; g_string_free */
} ServeChild;

/* Whether the work is to go on; asked about 20 times a second. What standard error has said so far may be taken out of `said`. */
typedef bool (*ServeGoOn)(GString *said, void *data);

/* Runs `words` (the first is the program's path, NULL-terminated) with nothing on standard input. False with one sentence when it
 * could not be started, went over a limit, or `go_on` (may be NULL) wanted no more. */
bool serve_child_run(char **words, const ServeLimits *limits, ServeGoOn go_on, void *data,
                     ServeChild *ret_child, GError **error);
void serve_child_clear(ServeChild *child);

/* Limits the address space of the calling process (0: not; nor of a sanitized build) and keeps it from writing core files. */
void serve_child_limit(int64_t memory_bytes);

/* Takes the lines of --progress out of what standard error said; the last of them (g_free), NULL: none. */
char *serve_child_news(GString *said);

#endif
