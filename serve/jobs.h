/* serve/jobs.h - long questions: each a process of its own that can be watched and cancelled, a few at once, the others in a queue. */
#ifndef ORR_SERVE_JOBS_H
#define ORR_SERVE_JOBS_H

#include "serve/tools.h"

typedef struct ServeJobs ServeJobs;

enum { SERVE_JOBS_AT_ONCE = 2, SERVE_JOBS_MOST = 64 };

/* `store`: where answers are kept (ServeWatch), borrowed. NULL: nowhere. */
ServeJobs *serve_jobs_new(const char *program, ServeStore *store);
void serve_jobs_free(ServeJobs *jobs); /* cancels all and waits for them */

/* Takes the question over; 0 with an error where too many wait. */
guint serve_jobs_add(ServeJobs *jobs, ServeQuestion *question, GError **error);
/* False: there is no such job. */
bool serve_jobs_cancel(ServeJobs *jobs, guint id);

/* {"id", "tool", "state", "elapsed_s", "limit_s", "progress", "error", and, with `answer`, "result"}. progress: {"done_frac", "elapsed_s",
 * "best": {"what", "step_s"}} as far as they are known. States: queued, running, done, failed,
 * cancelled. `ret_over`: it will not change any more. False: there is no such job. */
bool serve_jobs_show(ServeJobs *jobs, guint id, bool answer, GString *out, bool *ret_over);
/* Waits until something has changed, half a second at most. */
void serve_jobs_wait(ServeJobs *jobs);

#endif
