/* tests/cli/runner.h - runs the real program and looks at what came of it. */
#ifndef ORR_TESTS_CLI_RUNNER_H
#define ORR_TESTS_CLI_RUNNER_H

#include <glib.h>

#include "base/json.h"

typedef struct CliRun {
    int status; /* exit status; -1: killed by a signal */
    char *out, *err;
    gsize out_length;
} CliRun;

/* The program ($ORRERY_BINARY) with `words` (NULL-terminated) in `folder` (NULL: here). */
CliRun cli_run(const char *folder, const char *const *words);
void cli_run_clear(CliRun *run);

/* Exit 2, nothing on standard output, one line on standard error that begins with "orrery: " and holds `expect`. */
void cli_assert_refused(const CliRun *run, const char *name, const char *expect);
/* Exit 0 and nothing on standard error. */
void cli_assert_done(const CliRun *run, const char *name);

/* A new empty folder; removed, with the files in it, by cli_scratch_free. */
char *cli_scratch_new(void);
void cli_scratch_free(char *folder);
/* Files in a folder. */
int cli_count_files(const char *folder);

/* Path of a file in the source tree ($ORRERY_SOURCE); g_free. */
char *cli_source(const char *path);

/* A JSON document that is whole. */
OrrJsonDoc *cli_parse(const char *text, const char *name);
/* A file of a folder; g_free. */
char *cli_contents(const char *folder, const char *name);
/* What `script` prints in sh, with the program as $1, the example of GPT-3 as $2 and `path` (may be NULL) as PATH; g_free. */
char *cli_shell(const char *script, const char *path);

#define CLI_WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
