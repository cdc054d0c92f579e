/* base/file.h - files appear whole or not at all; presets are found. */
#ifndef ORR_BASE_FILE_H
#define ORR_BASE_FILE_H

#include <stdint.h>

#include "base/error.h"

/* Where $ORRERY_READS lists folders (":" between them), a process that answers strangers reads no files of others. */
bool orr_file_may_read(const char *path, GError **error);

/* That is asked first; standard input is then no file. The whole of a file, "-" standard input, of at most `most_bytes`; endless ones end there too, with an error; so does
 * a pipe with a name that nobody opens at its other end for some seconds, also when written to. Free with g_string_free. */
GString *orr_file_read(const char *path, size_t most_bytes, GError **error);

#define ORR_BYTE_ORDER_MARK                                                                                  \
    "\xef\xbb\xbf" /* of UTF-8: editors put it before a text, of which it is no part */

/* The same of what should be text, without a byte order mark: what is none (UTF-16, bytes of zero) fails. */
GString *orr_text_read(const char *path, size_t most_bytes, GError **error);

/* Writes beside `path`, syncs, renames over it. `path` "-" writes to stdout. */
bool orr_file_write(const char *path, const char *data, size_t length, GError **error);

/* The same bit by bit: what is written appears under `path` when it is closed with `keep`, and not at all otherwise (but for
 * devices, pipes and standard output). A reader that closed standard output early is G_FILE_ERROR_PIPE. */
typedef struct OrrSink OrrSink;
OrrSink *orr_sink_open(const char *path, GError **error);
bool orr_sink_write(OrrSink *sink, const char *data, size_t length, GError **error);
bool orr_sink_close(OrrSink *sink, bool keep, GError **error); /* frees it */

/* Which version of a file there is; all zero: none. */
typedef struct OrrFileStamp {
    uint64_t device, inode;
    int64_t size_bytes, modified_ns, changed_ns;
} OrrFileStamp;
OrrFileStamp orr_file_stamp(const char *path);
bool orr_file_stamp_same(const OrrFileStamp *a, const OrrFileStamp *b);
/* True of a file that is there and was last written long enough ago for its next version to have another stamp. */
bool orr_file_stamp_settled(const OrrFileStamp *stamp);

/* SHA-256 of `data` in hex, first 16 digits; g_free. */
char *orr_hash_text(const char *data, size_t length);

/* The folder with models/, accelerators/ ...: $ORRERY_SCENARIOS, else beside the installed binary
 * (../share/orrery/scenarios), else in the tree it was built from. NULL with an error when none. */
char *orr_scenarios_dir(GError **error);

#endif
