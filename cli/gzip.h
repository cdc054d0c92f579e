/* cli/gzip.h - outputs whose name ends in .gz. */
#ifndef ORR_CLI_GZIP_H
#define ORR_CLI_GZIP_H

#include "base/error.h"

/* `data` as a gzip file without name and time, so that the same data give the same bytes. `path` names the output in
 * errors; a build without zlib refuses. g_byte_array_unref. */
GByteArray *cli_gzip(const char *data, gsize length, const char *path, GError **error);

#endif
