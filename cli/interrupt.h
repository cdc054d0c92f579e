/* cli/interrupt.h - Ctrl-C that asks a long command for what it has by now; the second one ends the program. */
#ifndef ORR_CLI_INTERRUPT_H
#define ORR_CLI_INTERRUPT_H

#include <stdbool.h>

#include <glib.h>

#include "base/stop.h"

#define CLI_EXIT_INTERRUPTED 130 /* 128 + SIGINT, as shells say */

typedef struct CliInterrupt {
    gint seen;
} CliInterrupt;

/* From here on SIGINT waits until it is asked for; before other threads are made. */
void cli_interrupt_hold(CliInterrupt *interrupt);
/* Asks whether it came. */
OrrStop cli_interrupt_stop(CliInterrupt *interrupt);

#endif
