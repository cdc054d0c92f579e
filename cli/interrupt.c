/* cli/interrupt.c - see interrupt.h. Tested: cli/test_cli_anytime.c */
#include "cli/interrupt.h"

#include <signal.h>

static sigset_t interrupts(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    return set;
}

void cli_interrupt_hold(CliInterrupt *interrupt)
{
    const sigset_t set = interrupts();
    interrupt->seen = 0;
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* One thread takes it off the queue and lets the next one through. */
static bool seen(void *data)
{
    CliInterrupt *interrupt = data;
    sigset_t pending;
    if (g_atomic_int_get(&interrupt->seen) != 0)
        return true;
    if (sigpending(&pending) != 0 || sigismember(&pending, SIGINT) != 1)
        return false;
    if (g_atomic_int_compare_and_exchange(&interrupt->seen, 0, 1)) {
        const sigset_t set = interrupts();
        int signal = 0;
        sigwait(&set, &signal);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    }
    return true;
}

OrrStop cli_interrupt_stop(CliInterrupt *interrupt)
{
    return (OrrStop){seen, interrupt};
}
