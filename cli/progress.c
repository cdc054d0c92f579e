/* cli/progress.c - see progress.h. Tested: cli/test_serve.py, cli/test_cli_anytime.c */
#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "base/units.h"

CliProgress cli_progress_begin(const char *doing, const CliArgs *args)
{
    const bool terminal = !args->quiet && isatty(STDERR_FILENO) != 0;
    return (CliProgress){.doing = doing,
                         .mode = args->progress ? CLI_PROGRESS_LINES
                                 : terminal     ? CLI_PROGRESS_TERMINAL
                                                : CLI_PROGRESS_NONE,
                         .begun_us = g_get_monotonic_time()};
}

static void tell_line(double done_frac, double elapsed_s, CliBest best)
{
    g_autoptr(GString) line = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, line, true);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_number(&w, "done_frac", done_frac);
    orr_jw_number(&w, "elapsed_s", elapsed_s);
    if (best.what != NULL) {
        orr_jw_begin(&w, "best", '{');
        orr_jw_text(&w, "what", best.what);
        orr_jw_number(&w, "step_s", best.step_s);
        orr_jw_end(&w, '}');
    }
    orr_jw_end(&w, '}');
    fprintf(stderr, "%s\n", line->str);
}

/* Nothing on the terminal for what is done within a second. */
static void tell_terminal(const CliProgress *progress, double done_frac, double elapsed_s, CliBest best)
{
    char left[ORR_TEXT_SIZE], step[ORR_TEXT_SIZE];
    if (done_frac >= 1 && progress->told_us > 0)
        fprintf(stderr, "\r\033[K");
    if (done_frac >= 1 || done_frac <= 0 || elapsed_s < 1)
        return;
    fprintf(stderr, "\r\033[K%s: %.0f %%, about %s left", progress->doing, 100 * done_frac,
            orr_text_seconds(left, elapsed_s * (1 - done_frac) / done_frac));
    if (best.what != NULL)
        fprintf(stderr, ", best so far %s", orr_text_seconds(step, best.step_s));
}

void cli_progress_tell(CliProgress *progress, double done_frac, CliBest best)
{
    enum { SELDOM_US = 200000 };
    const gint64 now_us = g_get_monotonic_time();
    const double best_s = best.what != NULL ? best.step_s : 0,
                 elapsed_s = (double)(now_us - progress->begun_us) / 1e6;
    if (progress->done_permille != NULL)
        g_atomic_int_set(progress->done_permille, (gint)(1000 * CLAMP(done_frac, 0, 1)));
    const bool better = best_s < progress->best_s || best_s > progress->best_s;
    if (progress->mode == CLI_PROGRESS_NONE ||
        (!better && done_frac < 1 && progress->told_us > 0 && now_us - progress->told_us < SELDOM_US))
        return;
    if (progress->mode == CLI_PROGRESS_LINES)
        tell_line(done_frac, elapsed_s, best);
    else
        tell_terminal(progress, done_frac, elapsed_s, best);
    if (progress->mode == CLI_PROGRESS_LINES || elapsed_s >= 1)
        progress->told_us = now_us;
    progress->best_s = best_s;
}
