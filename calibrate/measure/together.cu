/* calibrate/measure/together.cu - what every rank does for itself, all of them at the same time: copies between host and GPU, a rank's
 * share of an offloaded Adam, and a layer again and again until the chips are as warm as in training.
 *
 * A sample holds one entry a rank: the mean time of one pass between the begin that rank 0 gives and the end of the window.
 * Copies come from memory of the GPU's own socket. Of the layer the first half of the window only warms.
 */
#include "calibrate/measure/host_bench.h"
#include "calibrate/measure/meter.cuh"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUSTAINED_TIMES 100  /* a layer's window, of a point's seconds: 20 s */
#define LOOK_S          0.25 /* between two looks at clocks and power */

/* What one rank found. */
struct Found {
    double pass_s, first_s, clock_hz, power_w, temperature_c;
    unsigned limits;
};

/* --- copies --- */

struct Copies {
    void *host[2] = {nullptr, nullptr}, *device[2] = {nullptr, nullptr};
    ~Copies()
    {
        for (int i = 0; i < 2; i++) {
            cudaFreeHost(host[i]);
            cudaFree(device[i]);
        }
    }
};

static CalOutcome open_copies(Copies *copies, size_t bytes, char *reason, size_t reason_size)
{
    for (int i = 0; i < 2; i++) {
        cudaError_t error = cudaMalloc(&copies->device[i], bytes);
        if (error == cudaSuccess)
            error = cudaMallocHost(&copies->host[i], bytes);
        if (error != cudaSuccess)
            return meter_failed(CAL_SKIPPED, "buffers", error, reason, reason_size);
        memset(copies->host[i], 1, bytes);
    }
    return CAL_MEASURED;
}

static bool copy_for(Meter *meter, const Copies *copies, const char *op, size_t bytes, double seconds,
                     Found *found)
{
    const bool up = strcmp(op, "together_d2h") != 0, down = strcmp(op, "together_h2d") != 0;
    const double start_s = meter_now_s();
    cudaError_t error = cudaSuccess;
    int passes = 0;
    for (; error == cudaSuccess && (passes == 0 || meter_now_s() - start_s < seconds); passes++) {
        if (up)
            error = cudaMemcpyAsync(copies->device[0], copies->host[0], bytes, cudaMemcpyHostToDevice,
                                    meter->stream);
        if (down && error == cudaSuccess)
            error = cudaMemcpyAsync(copies->host[1], copies->device[1], bytes, cudaMemcpyDeviceToHost,
                                    meter->side);
        if (error == cudaSuccess)
            error = cudaStreamSynchronize(meter->stream);
        if (error == cudaSuccess)
            error = cudaStreamSynchronize(meter->side);
    }
    found->pass_s = (meter_now_s() - start_s) / passes;
    return error == cudaSuccess;
}

/* --- a layer until it is warm --- */

static KrnShape layer_shape(bool library)
{
    KrnShape s = {};
    s.batch = 1;
    s.seq = 4096;
    s.heads = 32;
    s.kv_heads = 8;
    s.head_dim = 128;
    s.causal = true;
    s.library = library;
    s.cols = 4096;
    s.n = 14336;
    return s;
}

/* A layer as large as training has it; one that fits anywhere where that does not. */
static CalOutcome open_layer(Meter *meter, KrnRun *run, char *reason, size_t reason_size)
{
    char version[32];
    const KrnShape whole = layer_shape(krn_dnn_version(meter->context, version, sizeof version));
    KrnShape small = whole;
    small.seq = small.head_dim = 64;
    small.heads = small.kv_heads = 1;
    small.cols = small.n = 64;
    const KrnKernel *kernel = krn_find("transformer_layer");
    KrnStatus status = krn_run_open(meter->context, kernel, &whole, 1, run);
    if (status == KRN_NO_MEMORY)
        status = krn_run_open(meter->context, kernel, &small, 1, run);
    if (status == KRN_OK)
        status = krn_run_launch(meter->context, run, meter->stream);
    if (status != KRN_OK) {
        snprintf(reason, reason_size, "%s", krn_context_message(meter->context));
        return CAL_SKIPPED;
    }
    return CAL_MEASURED;
}

/* Passes that take about LOOK_S, the state read once half of them have run; seconds of one. */
static double layer_pass_s(Meter *meter, const KrnRun *run, int inner, CalGpuState *state, bool *ok)
{
    cudaEvent_t marks[2];
    const double start_s = meter_now_s();
    for (cudaEvent_t &mark : marks)
        cudaEventCreate(&mark);
    for (int i = 0; *ok && i < inner; i++) {
        *ok = krn_run_launch(meter->context, run, meter->stream) == KRN_OK;
        if (i == inner / 2)
            cudaEventRecord(marks[0], meter->stream);
    }
    cudaEventRecord(marks[1], meter->stream);
    *ok = *ok && cudaEventSynchronize(marks[0]) == cudaSuccess;
    cal_nvml_read(&meter->nvml, state);
    *ok = *ok && cudaEventSynchronize(marks[1]) == cudaSuccess;
    for (cudaEvent_t mark : marks)
        cudaEventDestroy(mark);
    return (meter_now_s() - start_s) / inner;
}

static bool layer_for(Meter *meter, const KrnRun *run, double seconds, Found *found)
{
    bool ok = cudaStreamSynchronize(meter->stream) == cudaSuccess;
    CalGpuState state;
    const double begin_s = meter_now_s();
    found->first_s = layer_pass_s(meter, run, 1, &state, &ok);
    const double batches = LOOK_S / fmax(found->first_s, 1e-6);
    const int inner = batches < 1 ? 1 : batches > 1000 ? 1000 : (int)batches;
    double sum_s = 0, clock_hz = 0, power_w = 0;
    int looks = 0;
    while (ok && (looks == 0 || meter_now_s() - begin_s < seconds)) {
        const double pass_s = layer_pass_s(meter, run, inner, &state, &ok);
        if (meter_now_s() - begin_s < seconds / 2)
            continue;
        sum_s += pass_s;
        clock_hz += state.sm_clock_hz;
        power_w += state.power_w;
        found->limits |= state.limits;
        found->temperature_c = fmax(found->temperature_c, state.temperature_c);
        looks++;
    }
    found->pass_s = sum_s / looks;
    found->clock_hz = clock_hz / looks;
    found->power_w = power_w / looks;
    return ok;
}

/* --- all ranks --- */

/* Adam over this rank's share of the processors. */
static bool adam_for(const Meter *meter, int ranks, double bytes, double seconds, Found *found,
                     CalSample *sample, char *reason, size_t reason_size)
{
    CalPoint point = {};
    const int threads = cal_host_processors() / (ranks > 1 ? ranks : 1);
    point.kind = CAL_POINT_HOST;
    point.name = "cpu_adam";
    point.bytes = bytes;
    point.threads = threads > 0 ? threads : 1;
    (void)meter;
    if (cal_host_measure(&point, ".", seconds, sample, reason, reason_size) != CAL_MEASURED)
        return false;
    found->pass_s = cal_summarise(sample->seconds, sample->count).median_s;
    return true;
}

/* Everybody's findings into rank 0's sample, one entry a rank that took part. */
static bool collect(Meter *meter, int ranks, const Found *own, CalSample *sample)
{
    Found *all = (Found *)g_malloc0(sizeof *all * (size_t)meter->team.ranks);
    bool ok = true;
    all[0] = *own;
    if (meter->team.ranks > 1)
        ok = cal_team_gather(&meter->team, own, sizeof *own, all);
    sample->count = ranks < CAL_MAX_SAMPLES ? ranks : CAL_MAX_SAMPLES;
    for (int i = 0; ok && meter->team.rank == 0 && i < sample->count; i++) {
        sample->seconds[i] = all[i].pass_s;
        sample->first_s += all[i].first_s / sample->count;
        sample->state.power_w += all[i].power_w / sample->count;
        sample->state.sm_clock_hz += all[i].clock_hz / sample->count;
        sample->state.temperature_c = fmax(sample->state.temperature_c, all[i].temperature_c);
        sample->state.limits |= all[i].limits;
    }
    g_free(all);
    return ok;
}

CalOutcome meter_together(Meter *meter, const char *op, double bytes, int ranks, double seconds,
                          CalSample *sample, char *reason, size_t reason_size)
{
    const bool takes_part = meter->team.rank < ranks, layer = strcmp(op, "together_layer") == 0,
               adam = strcmp(op, "together_cpu_adam") == 0;
    const char *sys = getenv("ORRERY_SYS");
    Copies copies;
    KrnRun run;
    Found own = {};
    CalOutcome outcome = CAL_MEASURED;
    memset(&run, 0, sizeof run);
    if (takes_part && !layer)
        cal_host_bind(sys != nullptr ? sys : "/sys", meter->bus_id);
    if (takes_part && layer)
        outcome = open_layer(meter, &run, reason, reason_size);
    else if (takes_part && !adam)
        outcome = open_copies(&copies, (size_t)bytes, reason, reason_size);
    if (adam) /* ranks share the node's processors, not one socket's a rank */
        cal_host_bind(nullptr, nullptr);
    outcome = meter_agree(meter, outcome, reason, reason_size);
    char go = 1;
    if (outcome == CAL_MEASURED && !cal_team_share(&meter->team, &go, 1))
        outcome = CAL_BROKEN;
    bool ok = true;
    if (outcome == CAL_MEASURED && takes_part)
        ok = layer  ? layer_for(meter, &run, SUSTAINED_TIMES * seconds, &own)
             : adam ? adam_for(meter, ranks, bytes, seconds, &own, sample, reason, reason_size)
                    : copy_for(meter, &copies, op, (size_t)bytes, seconds, &own);
    cal_host_bind(nullptr, nullptr);
    krn_run_close(&run);
    if (outcome == CAL_MEASURED)
        outcome = meter_agree(meter, ok ? CAL_MEASURED : CAL_SKIPPED, reason, reason_size);
    if (outcome == CAL_MEASURED && !collect(meter, ranks, &own, sample))
        outcome = CAL_BROKEN;
    sample->bytes = bytes;
    sample->flops = layer && outcome == CAL_MEASURED && takes_part ? run.kernel->flops(&run.shape) : 0;
    return outcome;
}
