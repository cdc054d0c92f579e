/* calibrate/collectives.cu - NCCL over the GPUs of this process, and what a product loses beside a copy or collective.
 *
 * One thread enqueues every rank's call inside a group, as nccl-tests does with -g: at small sizes the time is that of
 * the launches. Sizes are nccl-tests': the whole buffer for all-gather and reduce-scatter.
 */
#include "calibrate/meter.cuh"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- communicators --- */

void meter_close_ranks(Meter *meter)
{
    for (int i = 0; i < meter->ranks; i++) {
        meter->nccl.comm_destroy(meter->comms[i]);
        cudaSetDevice(i % meter->gpus);
        cudaStreamDestroy(meter->streams[i]);
    }
    cudaSetDevice(0);
    meter->ranks = 0;
}

/* More ranks than GPUs: several on each, where NCCL allows it. */
static CalOutcome open_ranks(Meter *meter, int ranks, char *reason, size_t reason_size)
{
    int devices[METER_MAX_GPUS];
    if (meter->nccl.library == nullptr) {
        snprintf(reason, reason_size, "no collectives: %s", meter->nccl_reason);
        return CAL_SKIPPED;
    }
    if (meter->ranks == ranks)
        return CAL_MEASURED;
    if (ranks > METER_MAX_GPUS ||
        (ranks > meter->gpus && (meter->nccl.version < CAL_NCCL_SHARED_GPU_VERSION ||
                                 getenv("NCCL_MULTI_RANK_GPU_ENABLE") == nullptr))) {
        snprintf(reason, reason_size,
                 "%d ranks on %d GPUs need NCCL 2.30.3 or later and NCCL_MULTI_RANK_GPU_ENABLE=1", ranks,
                 meter->gpus);
        return CAL_SKIPPED;
    }
    meter_close_ranks(meter);
    for (int i = 0; i < ranks; i++)
        devices[i] = i % meter->gpus;
    const int status = meter->nccl.comm_init_all(meter->comms, ranks, devices);
    if (status != 0) {
        snprintf(reason, reason_size, "NCCL cannot join %d GPUs: %s", ranks, meter->nccl.error_text(status));
        return CAL_SKIPPED;
    }
    for (int i = 0; i < ranks; i++) {
        cudaSetDevice(devices[i]);
        cudaStreamCreateWithFlags(&meter->streams[i], cudaStreamNonBlocking);
    }
    cudaSetDevice(0);
    meter->ranks = ranks;
    return CAL_MEASURED;
}

/* --- one collective --- */

Collective::Collective(Meter *meter_, const char *op_, double bytes, int ranks_)
    : meter(meter_), op(op_), count((size_t)(bytes / 4)), ranks(ranks_)
{
    count = (count + (size_t)ranks - 1) / (size_t)ranks * (size_t)ranks;
    memset(from, 0, sizeof from);
    memset(to, 0, sizeof to);
}

Collective::~Collective()
{
    for (int i = 0; i < ranks; i++) {
        cudaSetDevice(i % meter->gpus);
        cudaFree(from[i]);
        cudaFree(to[i]);
    }
    cudaSetDevice(0);
}

CalOutcome Collective::open(char *reason, size_t reason_size)
{
    const CalOutcome outcome = open_ranks(meter, ranks, reason, reason_size);
    cudaError_t error = cudaSuccess;
    for (int i = 0; outcome == CAL_MEASURED && error == cudaSuccess && i < ranks; i++) {
        cudaSetDevice(i % meter->gpus);
        error = cudaMalloc(&from[i], 4 * count);
        if (error == cudaSuccess)
            error = cudaMalloc(&to[i], 4 * count);
        if (error == cudaSuccess)
            error = cudaMemset(from[i], 0, 4 * count);
        if (error == cudaSuccess)
            error = cudaDeviceSynchronize(); /* the ranks' streams do not wait for the one that clears */
    }
    cudaSetDevice(0);
    if (error != cudaSuccess)
        return meter_failed(CAL_SKIPPED, "buffers", error, reason, reason_size);
    return outcome;
}

void Collective::wait()
{
    for (int i = 0; i < ranks; i++) {
        cudaSetDevice(i % meter->gpus);
        cudaStreamSynchronize(meter->streams[i]);
    }
    cudaSetDevice(0);
}

static int send_and_receive(const Collective *c, int rank)
{
    const CalNccl *nccl = &c->meter->nccl;
    const CalNcclComm comm = c->meter->comms[rank];
    const cudaStream_t stream = c->meter->streams[rank];
    int status = nccl->send(c->from[rank], c->count, CAL_NCCL_FLOAT, (rank + 1) % c->ranks, comm, stream);
    if (status == 0)
        status = nccl->receive(c->to[rank], c->count, CAL_NCCL_FLOAT, (rank + c->ranks - 1) % c->ranks, comm,
                               stream);
    return status;
}

static int all_to_all(const Collective *c, int rank)
{
    const CalNccl *nccl = &c->meter->nccl;
    const CalNcclComm comm = c->meter->comms[rank];
    const cudaStream_t stream = c->meter->streams[rank];
    const size_t each = c->count / (size_t)c->ranks;
    int status = 0;
    for (int peer = 0; status == 0 && peer < c->ranks; peer++) {
        status = nccl->send((float *)c->from[rank] + (size_t)peer * each, each, CAL_NCCL_FLOAT, peer, comm,
                            stream);
        if (status == 0)
            status = nccl->receive((float *)c->to[rank] + (size_t)peer * each, each, CAL_NCCL_FLOAT, peer,
                                   comm, stream);
    }
    return status;
}

static int call(const Collective *c, int rank)
{
    const CalNccl *nccl = &c->meter->nccl;
    const CalNcclComm comm = c->meter->comms[rank];
    const cudaStream_t stream = c->meter->streams[rank];
    const void *from = c->from[rank];
    void *to = c->to[rank];
    const size_t each = c->count / (size_t)c->ranks;
    if (strcmp(c->op, "all_reduce") == 0)
        return nccl->all_reduce(from, to, c->count, CAL_NCCL_FLOAT, CAL_NCCL_SUM, comm, stream);
    if (strcmp(c->op, "all_gather") == 0)
        return nccl->all_gather(from, to, each, CAL_NCCL_FLOAT, comm, stream);
    if (strcmp(c->op, "reduce_scatter") == 0)
        return nccl->reduce_scatter(from, to, each, CAL_NCCL_FLOAT, CAL_NCCL_SUM, comm, stream);
    if (strcmp(c->op, "broadcast") == 0)
        return nccl->broadcast(from, to, c->count, CAL_NCCL_FLOAT, 0, comm, stream);
    if (strcmp(c->op, "reduce") == 0)
        return nccl->reduce(from, to, c->count, CAL_NCCL_FLOAT, CAL_NCCL_SUM, 0, comm, stream);
    return strcmp(c->op, "alltoall") == 0 ? all_to_all(c, rank) : send_and_receive(c, rank);
}

bool Collective::enqueue(char *why, size_t why_size)
{
    int status = meter->nccl.group_start();
    for (int i = 0; status == 0 && i < ranks; i++)
        status = call(this, i);
    const int ended = meter->nccl.group_end();
    status = status != 0 ? status : ended;
    if (status != 0)
        snprintf(why, why_size, "NCCL %s: %s", op, meter->nccl.error_text(status));
    return status == 0;
}

/* --- is the answer right? --- */

/* Rank r sends r + i mod 7 in element i: what element i of rank r's answer must be; NaN: nothing is said of it. */
static double wanted(const char *op, int ranks, size_t count, int rank, size_t i)
{
    const size_t each = count / (size_t)ranks;
    const double sum = 0.5 * ranks * (ranks - 1);
    if (strcmp(op, "all_reduce") == 0)
        return sum + ranks * (double)(i % 7);
    if (strcmp(op, "reduce") == 0)
        return rank == 0 ? sum + ranks * (double)(i % 7) : NAN;
    if (strcmp(op, "broadcast") == 0)
        return (double)(i % 7);
    if (strcmp(op, "all_gather") == 0)
        return (double)(i / each) + (double)(i % each % 7);
    if (strcmp(op, "reduce_scatter") == 0)
        return i < each ? sum + ranks * (double)(((size_t)rank * each + i) % 7) : NAN;
    if (strcmp(op, "alltoall") == 0)
        return (double)(i / each) + (double)(((size_t)rank * each + i % each) % 7);
    return (double)((rank + ranks - 1) % ranks) + (double)(i % 7);
}

static CalOutcome check_collective(Meter *meter, const char *op, int ranks, CalSample *sample, char *reason,
                                   size_t reason_size)
{
    Collective small(meter, op, 4096.0 * ranks, ranks);
    const CalOutcome outcome = small.open(reason, reason_size);
    if (outcome != CAL_MEASURED)
        return outcome;
    float *host = (float *)g_malloc(4 * small.count);
    for (int r = 0; r < ranks; r++) {
        for (size_t i = 0; i < small.count; i++)
            host[i] = (float)r + (float)(i % 7);
        cudaSetDevice(r % meter->gpus);
        cudaMemcpy(small.from[r], host, 4 * small.count, cudaMemcpyHostToDevice);
        cudaDeviceSynchronize(); /* a copy from pageable memory may return before it has arrived */
    }
    cudaSetDevice(0);
    const bool ok = small.enqueue(reason, reason_size);
    small.wait();
    for (int r = 0; ok && r < ranks; r++) {
        cudaSetDevice(r % meter->gpus);
        cudaMemcpy(host, small.to[r], 4 * small.count, cudaMemcpyDeviceToHost);
        for (size_t i = 0; i < small.count; i++) {
            const double off = fabs(host[i] - wanted(op, ranks, small.count, r, i));
            sample->error_frac = off > sample->error_frac ? off : sample->error_frac; /* not so for NaN */
        }
    }
    cudaSetDevice(0);
    g_free(host);
    sample->tolerance_frac = 1e-3;
    return ok ? CAL_MEASURED : CAL_SKIPPED;
}

/* --- timing --- */

/* `inner` calls between two looks at the host's clock, so that the wait at the end is small beside them. */
static double time_calls_s(Collective *c, int inner, char *why, size_t why_size)
{
    const double start_s = meter_now_s();
    for (int i = 0; i < inner; i++)
        if (!c->enqueue(why, why_size))
            return -1;
    c->wait();
    return (meter_now_s() - start_s) / inner;
}

CalOutcome meter_collective(Meter *meter, const CalPoint *point, double seconds, CalSample *ret_sample,
                            char *reason, size_t reason_size)
{
    CalOutcome outcome = check_collective(meter, point->name, point->gpus, ret_sample, reason, reason_size);
    if (outcome != CAL_MEASURED)
        return outcome;
    Collective collective(meter, point->name, point->bytes, point->gpus);
    outcome = collective.open(reason, reason_size);
    if (outcome != CAL_MEASURED)
        return outcome;
    const double once_s = time_calls_s(&collective, 5, reason, reason_size);
    const int inner = once_s < 1e-3 ? 20 : once_s < 1e-2 ? 5 : 1;
    const double start_s = meter_now_s();
    for (int i = 0; once_s > 0 && i < CAL_MAX_SAMPLES && (i < 5 || meter_now_s() - start_s < seconds); i++) {
        ret_sample->seconds[i] = time_calls_s(&collective, inner, reason, reason_size);
        if (ret_sample->seconds[i] < 0)
            return CAL_SKIPPED;
        ret_sample->count = i + 1;
    }
    cal_nvml_read(&meter->nvml, &ret_sample->power_w, &ret_sample->sm_clock_hz, &ret_sample->temperature_c);
    ret_sample->bytes = point->bytes;
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess)
        return meter_failed(CAL_BROKEN, "the GPU stopped", error, reason, reason_size);
    return ret_sample->count > 0 ? CAL_MEASURED : CAL_SKIPPED;
}
