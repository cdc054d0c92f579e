/* cli/self.c - see self.h */
#include "cli/self.h"

char *cli_self(GError **error)
{
    char *path = g_file_read_link("/proc/self/exe", NULL);
    if (path == NULL)
        path = g_find_program_in_path("orrery");
    if (path == NULL)
        orr_fail(error, ORR_ERROR_IO, "the program does not find itself; put orrery into a folder of PATH");
    return path;
}
