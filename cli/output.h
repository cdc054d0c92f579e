/* cli/output.h - what a command says, to files and to standard output.
 *
 * Files appear whole or not at all. A reader that closes the pipe early has what it wanted: the error is
 * G_FILE_ERROR_PIPE, and main ends quietly.
 */
#ifndef ORR_CLI_OUTPUT_H
#define ORR_CLI_OUTPUT_H

#include "base/error.h"

typedef struct CliOutput {
    const char *what;    /* "the report", "--trace" */
    const char *path;    /* NULL or "-": standard output */
    const GString *text; /* filled in before writing */
} CliOutput;

/* What this thread's commands say goes there, and not to standard output and standard error; NULL: to those again. */
typedef struct CliEar {
    GString *out, *said;
} CliEar;
void cli_output_hear(CliEar *ear);

/* No two outputs may go to one place. Called before the work begins. */
bool cli_outputs_check(const CliOutput *outputs, int count, GError **error);

/* Writes all in order. A failure names the output, and those that were already written. */
bool cli_outputs_write(const CliOutput *outputs, int count, GError **error);

/* The same where the first `done` are written already: messages name them. */
bool cli_outputs_write_after(const CliOutput *outputs, int count, int done, GError **error);

/* Whether two paths are one file, by whatever name; "-" is none. */
bool cli_same_file(const char *a, const char *b);

/* One output. */
bool cli_output_write(const char *path, const GString *text, GError **error);

/* The same piece by piece, packed where `path` ends in .gz; the file appears when all went well. */
typedef struct CliStream CliStream;
CliStream *cli_stream_open(const char *path, GError **error);
/* `data` is the stream; false once something failed, which closing tells. */
bool cli_stream_put(const char *text, gsize length, void *data);
bool cli_stream_close(CliStream *stream, GError **error);

/* A line on standard error, for people; nothing when `quiet`. */
void cli_note(bool quiet, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* An error on standard error: one line, whatever its message was made of, and indented ones where it is a list. Returns the exit
 * status: 1 for a mistake of the program's own, else 2. */
int cli_error_tell(const GError *error);

#endif
