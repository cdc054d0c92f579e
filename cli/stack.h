/* cli/stack.h - room for the program's frames where the stack that it was started with is small. */
#ifndef ORR_CLI_STACK_H
#define ORR_CLI_STACK_H

#include <stdbool.h>

/* What `run` returns, called on a thread with a stack of its own where the process has less than 1 MiB; without threads,
 * as it is. */
int cli_with_stack(int (*run)(int argc, char **argv), int argc, char **argv);

#endif
