/* cli/input.h - pipes as files that a command may read more than once. */
#ifndef ORR_CLI_INPUT_H
#define ORR_CLI_INPUT_H

#include "base/error.h"

/* Where one of `words` is "-" or /dev/fd/N, which shells write for <(...), what comes in there is read to its end and kept,
 * so that it can be read from the beginning again. Fails where it is a terminal, cannot be read, or is larger than any file
 * may be. */
bool cli_input_hold(char **words, GError **error);

#endif
