/* cli/stack.c - see stack.h. Tested: cli/test_cli_habits.c */
#define _GNU_SOURCE
#include "cli/stack.h"

#include <pthread.h>
#include <sys/resource.h>

enum { LEAST = 1 << 20, OWN = 8 << 20 }; /* bytes */

typedef struct Call {
    int (*run)(int, char **);
    int argc;
    char **argv;
    int status;
} Call;

static void *enter(void *data)
{
    Call *call = data;
    call->status = call->run(call->argc, call->argv);
    return NULL;
}

int cli_with_stack(int (*run)(int, char **), int argc, char **argv)
{
    Call call = {run, argc, argv, 0};
    struct rlimit limit;
    pthread_attr_t attr;
    pthread_t thread;
    const bool enough =
        getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= LEAST;
    if (enough || pthread_attr_init(&attr) != 0)
        return run(argc, argv);
    (void)pthread_attr_setstacksize(&attr, OWN);
#ifdef __GLIBC__
    (void)pthread_setattr_default_np(&attr); /* of the threads that a search makes */
#endif
    const bool made = pthread_create(&thread, &attr, enter, &call) == 0;
    pthread_attr_destroy(&attr);
    if (!made)
        return run(argc, argv);
    pthread_join(thread, NULL);
    return call.status;
}
