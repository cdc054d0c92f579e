/* Bytes as a trace of jobs: either one sentence, or a trace that every policy runs to its end with all work done. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "jobs/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void run(const JobsTrace *trace)
{
    if (trace->jobs->len > 200)
        return;
    for (int policy = 0; policy < JOBS_POLICIES; policy++) {
        const JobsResult result = jobs_run(trace, (JobsPolicy)policy, 3600, NULL);
        require(fabs(result.done_gpu_s / result.work_gpu_s - 1) < 1e-6);
        require(result.wait_s.mean >= -1e-6 * result.completion_s.most);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    GError *error = NULL;
    JobsTrace trace;
    OrrJsonDoc *doc = orr_json_parse((const char *)data, size, "fuzz.json", &error);
    if (doc != NULL && jobs_trace_read(orr_json_root(doc), "fuzz.json", &trace, &error)) {
        run(&trace);
        jobs_trace_clear(&trace);
    } else {
        require(error != NULL && error->domain == ORR_ERROR && strchr(error->message, '\n') == NULL);
        g_error_free(error);
    }
    orr_json_free(doc);
    return 0;
}
