/* cli/self.h - the path of this program, for those who start it again. */
#ifndef ORR_CLI_SELF_H
#define ORR_CLI_SELF_H

#include "base/error.h"

/* g_free; NULL with an error where the system does not say. */
char *cli_self(GError **error);

#endif
