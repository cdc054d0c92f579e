/* calibrate/measure/meter.cu - times kernels: warm-up, cold caches, repeats between events, the answer checked on the CPU. */
#include "calibrate/measure/meter.cuh"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define WARM_UP_SECONDS 0.02
#define MIN_REPEATS     10
#define REPLAY_BELOW_S  50e-6 /* what a pair of events adds is then 4 % and more */
#define REPLAY_COPIES   16
#define REPLAY_LAUNCHES 48 /* in a graph */

double meter_now_s()
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

CalOutcome meter_failed(CalOutcome outcome, const char *what, cudaError_t error, char *reason,
                        size_t reason_size)
{
    (void)cudaGetLastError();
    if (error == cudaErrorMemoryAllocation) {
        snprintf(reason, reason_size, "%s: out of memory at this size", what);
        return CAL_SKIPPED;
    }
    snprintf(reason, reason_size, "%s: %s", what, cudaGetErrorString(error));
    return outcome;
}

static CalOutcome work_failed(const Work *work, char *reason, size_t reason_size)
{
    snprintf(reason, reason_size, "%s", work->why);
    return CAL_SKIPPED;
}

/* Launches until the clocks have had time to rise; returns the seconds of the last one, negative on failure. */
static double warm_up(Meter *meter, Work *work, cudaStream_t stream, cudaEvent_t start, cudaEvent_t end)
{
    (void)meter;
    const double begin_s = meter_now_s();
    float ms = 0;
    for (int i = 0; i < 3 || (i < 1000 && meter_now_s() - begin_s < WARM_UP_SECONDS); i++) {
        cudaEventRecord(start, stream);
        if (!work->enqueue(stream))
            return -1;
        cudaEventRecord(end, stream);
        if (cudaEventSynchronize(end) != cudaSuccess)
            return -1;
        cudaEventElapsedTime(&ms, start, end);
    }
    return 1e-3 * ms;
}

CalOutcome meter_time(Meter *meter, Work *work, cudaStream_t stream, bool cold, double seconds,
                      CalSample *ret_sample, char *reason, size_t reason_size)
{
    cudaEvent_t events[2 * CAL_MAX_SAMPLES] = {nullptr};
    for (int i = 0; i < 2 * CAL_MAX_SAMPLES; i++)
        cudaEventCreate(&events[i]);
    const double once_s = warm_up(meter, work, stream, events[0], events[1]);
    bool ok = once_s >= 0;
    const double each_s = once_s + (cold && meter->flush != nullptr ? 60e-6 : 0);
    int count = ok && each_s > 0 ? (int)(seconds / each_s) : MIN_REPEATS;
    count = count < MIN_REPEATS ? MIN_REPEATS : count > CAL_MAX_SAMPLES ? CAL_MAX_SAMPLES : count;
    for (int i = 0; ok && i < count; i++) {
        if (cold && meter->flush != nullptr)
            krn_flush(meter->context, meter->flush, meter->flush_bytes, stream);
        cudaEventRecord(events[2 * i], stream);
        ok = work->enqueue(stream);
        cudaEventRecord(events[2 * i + 1], stream);
    }
    /* The host is far ahead of the GPU here: half of the repeats must have run before clocks and power say something. */
    if (ok && cudaEventSynchronize(events[count]) == cudaSuccess)
        cal_nvml_read(&meter->nvml, &ret_sample->state);
    const cudaError_t error = cudaStreamSynchronize(stream);
    for (int i = 0; ok && error == cudaSuccess && i < count; i++) {
        float ms = 0;
        cudaEventElapsedTime(&ms, events[2 * i], events[2 * i + 1]);
        ret_sample->seconds[i] = 1e-3 * ms;
    }
    ret_sample->count = count;
    for (cudaEvent_t event : events)
        cudaEventDestroy(event);
    if (error != cudaSuccess)
        return meter_failed(CAL_BROKEN, "the GPU stopped", error, reason, reason_size);
    return ok ? CAL_MEASURED : work_failed(work, reason, reason_size);
}

/* --- kernels --- */

struct KernelWork : Work {
    Meter *meter;
    const KrnRun *run;
    const KrnStep *step = nullptr;
    KernelWork(Meter *meter_, const KrnRun *run_) : meter(meter_), run(run_) {}
    bool enqueue(cudaStream_t stream) override
    {
        const KrnStatus status = step != nullptr ? krn_run_launch_step(meter->context, run, step, stream)
                                                 : krn_run_launch(meter->context, run, stream);
        if (status != KRN_OK)
            snprintf(why, sizeof why, "%s", krn_context_message(meter->context));
        return status == KRN_OK;
    }
};

/* Sum of the medians of a layer's steps, each timed alone. */
static CalOutcome time_parts(Meter *meter, const KrnRun *run, double seconds, CalSample *sample, char *reason,
                             size_t reason_size)
{
    KrnStep steps[KRN_MAX_STEPS];
    const int count = krn_layer_steps(&run->shape, steps);
    for (int i = 0; i < count; i++) {
        KernelWork work(meter, run);
        CalSample *part = (CalSample *)g_malloc0(sizeof *part);
        work.step = &steps[i];
        const CalOutcome outcome =
            meter_time(meter, &work, meter->stream, true, seconds / count, part, reason, reason_size);
        sample->parts_s += outcome == CAL_MEASURED ? cal_summarise(part->seconds, part->count).median_s : 0;
        g_free(part);
        if (outcome != CAL_MEASURED)
            return outcome;
    }
    return CAL_MEASURED;
}

/* A kernel that could not be launched spoils its point; a GPU that no longer answers, the sweep. */
static CalOutcome still_answers(void)
{
    (void)cudaGetLastError();
    return cudaDeviceSynchronize() == cudaSuccess ? CAL_SKIPPED : CAL_BROKEN;
}

static CalOutcome status_failed(Meter *meter, KrnStatus status, char *reason, size_t reason_size)
{
    snprintf(reason, reason_size, "%s", krn_context_message(meter->context));
    return status == KRN_FAILED ? still_answers() : CAL_SKIPPED;
}

static CalOutcome check_kernel(Meter *meter, const KrnKernel *kernel, const KrnShape *shape,
                               CalSample *sample, char *reason, size_t reason_size)
{
    const KrnShape small = krn_small_shape(shape);
    const KrnStatus status = krn_check(meter->context, kernel, &small, 1, &sample->error_frac);
    sample->tolerance_frac = kernel->tolerance_frac;
    return status == KRN_OK ? CAL_MEASURED : status_failed(meter, status, reason, reason_size);
}

/* --- short kernels --- */

/* Several copies of a kernel's buffers, launched in turn by one graph: between two launches lies what lies between two
 * kernels of a training step, not a pair of events (2 to 4 us), and no copy's data are still in the L2 cache. */
struct Replay : Work {
    Meter *meter;
    KrnRun runs[REPLAY_COPIES];
    int copies = 0;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    explicit Replay(Meter *meter_) : meter(meter_) {}
    ~Replay() override
    {
        if (ready != nullptr)
            cudaGraphExecDestroy(ready);
        if (graph != nullptr)
            cudaGraphDestroy(graph);
        for (int i = 0; i < copies; i++)
            krn_run_close(&runs[i]);
    }
    /* False: not all buffers fit, or the kernel cannot be captured; the events' times stay. */
    bool open(const KrnKernel *kernel, const KrnShape *shape)
    {
        const double bytes = krn_device_bytes(kernel, shape);
        const double wanted = bytes > 0 ? (double)meter->flush_bytes / bytes + 1 : 2;
        const int most = wanted < 2 ? 2 : wanted > REPLAY_COPIES ? REPLAY_COPIES : (int)wanted;
        for (; copies < most; copies++)
            if (krn_run_open(meter->context, kernel, shape, 1, &runs[copies]) != KRN_OK)
                return false;
        if (cudaStreamBeginCapture(meter->stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess)
            return false;
        bool ok = true;
        for (int i = 0; ok && i < REPLAY_LAUNCHES; i++)
            ok = krn_run_launch(meter->context, &runs[i % copies], meter->stream) == KRN_OK;
        ok = cudaStreamEndCapture(meter->stream, &graph) == cudaSuccess && graph != nullptr && ok;
        return ok && cudaGraphInstantiateWithFlags(&ready, graph, 0) == cudaSuccess;
    }
    bool enqueue(cudaStream_t stream) override
    {
        const cudaError_t error = cudaGraphLaunch(ready, stream);
        if (error != cudaSuccess)
            snprintf(why, sizeof why, "graph: %s", cudaGetErrorString(error));
        return error == cudaSuccess;
    }
};

static void replay_short(Meter *meter, const KrnKernel *kernel, const KrnShape *shape, double seconds,
                         CalSample *sample)
{
    char reason[256];
    if (cal_summarise(sample->seconds, sample->count).median_s > REPLAY_BELOW_S)
        return;
    Replay replay(meter);
    CalSample *again = (CalSample *)g_malloc0(sizeof *again);
    if (replay.open(kernel, shape) && meter_time(meter, &replay, meter->stream, false, seconds, again, reason,
                                                 sizeof reason) == CAL_MEASURED) {
        for (int i = 0; i < again->count; i++)
            sample->seconds[i] = again->seconds[i] / REPLAY_LAUNCHES;
        sample->count = again->count;
        sample->state = again->state;
        sample->replayed = true;
    }
    (void)cudaGetLastError();
    g_free(again);
}

CalOutcome meter_kernel(Meter *meter, const CalPoint *point, double seconds, CalSample *ret_sample,
                        char *reason, size_t reason_size)
{
    const KrnKernel *kernel = krn_find(point->name);
    if (kernel == nullptr) {
        snprintf(reason, reason_size, "there is no such kernel");
        return CAL_SKIPPED;
    }
    size_t free_bytes = 0, total_bytes = 0;
    cudaMemGetInfo(&free_bytes, &total_bytes);
    const double needed = krn_device_bytes(kernel, &point->shape);
    if (needed > 0.95 * (double)free_bytes) {
        snprintf(reason, reason_size, "needs %.1f GiB of GPU memory, %.1f GiB are free",
                 needed / 1073741824.0, (double)free_bytes / 1073741824.0);
        return CAL_SKIPPED;
    }
    CalOutcome outcome = check_kernel(meter, kernel, &point->shape, ret_sample, reason, reason_size);
    if (outcome != CAL_MEASURED)
        return outcome;
    KrnRun run;
    const KrnStatus status = krn_run_open(meter->context, kernel, &point->shape, 1, &run);
    if (status != KRN_OK)
        return status_failed(meter, status, reason, reason_size);
    KernelWork work(meter, &run);
    const bool is_layer = strcmp(kernel->name, "transformer_layer") == 0;
    outcome = meter_time(meter, &work, meter->stream, true, seconds, ret_sample, reason, reason_size);
    if (outcome == CAL_MEASURED && is_layer)
        outcome = time_parts(meter, &run, seconds, ret_sample, reason, reason_size);
    else if (outcome == CAL_MEASURED && point->kind == CAL_POINT_KERNEL)
        replay_short(meter, kernel, &point->shape, seconds, ret_sample);
    ret_sample->flops = kernel->flops(&point->shape);
    ret_sample->bytes = kernel->bytes(&point->shape);
    krn_run_close(&run);
    return outcome;
}
