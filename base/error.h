/* base/error.h - the one error domain of Orrery.
 *
 * Outside input can fail: such functions are `bool f(..., T *ret_x, GError **error)`, leave their
 * outputs untouched on failure, and say in one sentence which file and key held which value and what
 * would work. Misuse of an interface by our own code is a g_assert. Only cli/main.c prints errors and
 * picks the exit status from the code.
 */
#ifndef ORR_BASE_ERROR_H
#define ORR_BASE_ERROR_H

#include <glib.h>
#include <stdbool.h>

#define ORR_ERROR orr_error_quark()
GQuark orr_error_quark(void);

typedef enum {
    ORR_ERROR_INPUT,    /* a scenario, preset, measurement, log or command line is wrong: exit 2 */
    ORR_ERROR_IO,       /* a file cannot be read or written: exit 2 */
    ORR_ERROR_INTERNAL, /* Orrery itself is wrong: exit 1 */
} OrrErrorCode;

/* Sets an error whose text may hold what a person or a file said: control characters become spaces and broken
 * UTF-8 is replaced, so that a message is always one line. Returns false. */
bool orr_fail(GError **error, OrrErrorCode code, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* Between what a message lists; lines of their own on a terminal. */
#define ORR_ALSO "; also "

#endif
