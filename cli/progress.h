/* cli/progress.h - how far a command is that takes long: a line that is written over on a terminal, lines of JSON with --progress,
 * nothing elsewhere. */
#ifndef ORR_CLI_PROGRESS_H
#define ORR_CLI_PROGRESS_H

#include "cli/commands.h"

typedef struct CliBest {
    const char *what; /* "tp8 pp35 dp8"; NULL: nothing is looked for, or nothing found yet */
    double step_s;
} CliBest;

typedef struct CliProgress {
    const char *doing; /* "searching" */
    enum { CLI_PROGRESS_NONE, CLI_PROGRESS_TERMINAL, CLI_PROGRESS_LINES } mode;
    gint64 begun_us, told_us;
    double best_s;       /* told last; 0: none */
    gint *done_permille; /* also told; may be NULL (cli/team.h) */
} CliProgress;

/* Of a command that takes --progress; counts its time from now on. */
CliProgress cli_progress_begin(const char *doing, const CliArgs *args);
/* By one thread at a time; seldom more than five times a second. */
void cli_progress_tell(CliProgress *progress, double done_frac, CliBest best);

#endif
