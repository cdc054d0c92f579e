/* cli/gzip.h - outputs whose name ends in .gz. */
#ifndef ORR_CLI_GZIP_H
#define ORR_CLI_GZIP_H

#include "base/file.h"

/* What is put in comes out as a gzip file without name and time, so that the same data give the same bytes. */
typedef struct CliGzip CliGzip;

/* `path` names the output in errors; a build without zlib refuses. `sink` stays the caller's. */
CliGzip *cli_gzip_open(OrrSink *sink, const char *path, GError **error);
/* `last`: nothing follows. */
bool cli_gzip_write(CliGzip *gzip, const char *data, gsize length, bool last, GError **error);
void cli_gzip_free(CliGzip *gzip); /* NULL: nothing */

#endif
