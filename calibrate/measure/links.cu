/* calibrate/measure/links.cu - latencies of launches and events; copies between host and device and between GPUs. */
#include "calibrate/measure/host_bench.h"
#include "calibrate/measure/meter.cuh"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAUNCHES 200 /* in a row, for the time of one */

/* --- latency --- */

/* One repeat of an op, in seconds on the host's clock. */
static double launch_once_s(Meter *meter)
{
    const double start_s = meter_now_s();
    for (int i = 0; i < LAUNCHES; i++)
        krn_launch_nothing(meter->context, meter->stream);
    cudaStreamSynchronize(meter->stream);
    return (meter_now_s() - start_s) / LAUNCHES;
}

static double launch_and_wait_once_s(Meter *meter)
{
    const double start_s = meter_now_s();
    krn_launch_nothing(meter->context, meter->stream);
    cudaStreamSynchronize(meter->stream);
    return meter_now_s() - start_s;
}

/* Two events with nothing between them. */
static double event_once_s(Meter *meter, cudaEvent_t first, cudaEvent_t second)
{
    float ms = 0;
    cudaEventRecord(first, meter->stream);
    cudaEventRecord(second, meter->stream);
    cudaEventSynchronize(second);
    cudaEventElapsedTime(&ms, first, second);
    return 1e-3 * ms;
}

/* Two streams that wait for each other in turn: one wait and the kernel behind it. */
static double stream_wait_once_s(Meter *meter, cudaEvent_t first, cudaEvent_t second)
{
    const double start_s = meter_now_s();
    for (int i = 0; i < LAUNCHES / 2; i++) {
        krn_launch_nothing(meter->context, meter->stream);
        cudaEventRecord(first, meter->stream);
        cudaStreamWaitEvent(meter->side, first, 0);
        krn_launch_nothing(meter->context, meter->side);
        cudaEventRecord(second, meter->side);
        cudaStreamWaitEvent(meter->stream, second, 0);
    }
    cudaStreamSynchronize(meter->stream);
    return (meter_now_s() - start_s) / LAUNCHES;
}

CalOutcome meter_latency(Meter *meter, const CalPoint *point, double seconds, CalSample *ret_sample,
                         char *reason, size_t reason_size)
{
    cudaEvent_t first, second;
    cudaEventCreate(&first);
    cudaEventCreate(&second);
    const double start_s = meter_now_s();
    const char *name = point->name;
    for (int i = -3; i < CAL_MAX_SAMPLES && (i < 10 || meter_now_s() - start_s < seconds); i++) {
        const double s = strcmp(name, "launch") == 0            ? launch_once_s(meter)
                         : strcmp(name, "launch_and_wait") == 0 ? launch_and_wait_once_s(meter)
                         : strcmp(name, "event") == 0           ? event_once_s(meter, first, second)
                                                                : stream_wait_once_s(meter, first, second);
        if (i >= 0) {
            ret_sample->seconds[i] = s;
            ret_sample->count = i + 1;
        }
    }
    cudaEventDestroy(first);
    cudaEventDestroy(second);
    const cudaError_t error = cudaDeviceSynchronize();
    return error == cudaSuccess ? CAL_MEASURED
                                : meter_failed(CAL_BROKEN, "the GPU stopped", error, reason, reason_size);
}

/* --- which GPUs --- */

int meter_like_gpus(int count, char *other, size_t other_size)
{
    cudaDeviceProp first, next;
    cudaGetDeviceProperties(&first, 0);
    for (int i = 1; i < count; i++) {
        cudaGetDeviceProperties(&next, i);
        if (strcmp(first.name, next.name) == 0 && first.multiProcessorCount == next.multiProcessorCount)
            continue;
        snprintf(other, other_size, "%.200s", next.name);
        return i;
    }
    return count;
}

/* --- copies --- */

struct Buffers {
    void *host[2] = {nullptr, nullptr}, *device[2] = {nullptr, nullptr};
    bool pinned = false;
    ~Buffers()
    {
        for (int i = 0; i < 2; i++) {
            if (pinned)
                cudaFreeHost(host[i]);
            else
                free(host[i]);
            cudaFree(device[i]);
        }
    }
};

struct CopyWork : Work {
    void *to, *from;
    size_t bytes;
    cudaMemcpyKind kind;
    /* Both ways at once: the second copy runs on another stream that the first one's waits for. */
    void *back_to = nullptr, *back_from = nullptr;
    cudaStream_t side = nullptr;
    cudaEvent_t go = nullptr, done = nullptr;
    int peers[2] = {-1, -1};

    bool report(cudaError_t error)
    {
        if (error != cudaSuccess)
            snprintf(why, sizeof why, "copy: %s", cudaGetErrorString(error));
        return error == cudaSuccess;
    }
    bool enqueue(cudaStream_t stream) override
    {
        if (back_to != nullptr) {
            cudaEventRecord(go, stream);
            cudaStreamWaitEvent(side, go, 0);
        }
        bool ok = report(peers[0] >= 0 ? cudaMemcpyPeerAsync(to, peers[1], from, peers[0], bytes, stream)
                                       : cudaMemcpyAsync(to, from, bytes, kind, stream));
        if (ok && back_to != nullptr) {
            ok = report(peers[0] >= 0
                            ? cudaMemcpyPeerAsync(back_to, peers[0], back_from, peers[1], bytes, side)
                            : cudaMemcpyAsync(back_to, back_from, bytes, cudaMemcpyDeviceToHost, side));
            cudaEventRecord(done, side);
            cudaStreamWaitEvent(stream, done, 0);
        }
        return ok;
    }
};

static CalOutcome open_host(Buffers *buffers, const char *name, size_t bytes, char *reason,
                            size_t reason_size)
{
    buffers->pinned = strstr(name, "pageable") == nullptr;
    for (int i = 0; i < (strstr(name, "both") != nullptr ? 2 : 1); i++) {
        cudaError_t error = cudaMalloc(&buffers->device[i], bytes);
        if (error == cudaSuccess && buffers->pinned)
            error = cudaMallocHost(&buffers->host[i], bytes);
        else if (error == cudaSuccess && (buffers->host[i] = malloc(bytes)) == nullptr)
            error = cudaErrorMemoryAllocation;
        if (error != cudaSuccess)
            return meter_failed(CAL_SKIPPED, "buffers", error, reason, reason_size);
        memset(buffers->host[i], 1, bytes); /* pages that were never touched are not there */
    }
    return CAL_MEASURED;
}

/* Both on GPU 0, or the second on GPU 1. */
static CalOutcome open_devices(Meter *meter, Buffers *buffers, size_t bytes, bool peers, char *reason,
                               size_t reason_size)
{
    if (peers) {
        int can = 0;
        cudaDeviceCanAccessPeer(&can, 0, 1);
        if (meter->gpus < 2 || can == 0) {
            snprintf(reason, reason_size, "GPU 0 and 1 cannot reach each other's memory");
            return CAL_SKIPPED;
        }
        cudaDeviceEnablePeerAccess(1, 0);
        (void)cudaGetLastError(); /* enabled already */
    }
    cudaError_t error = cudaMalloc(&buffers->device[0], bytes);
    if (peers)
        cudaSetDevice(1);
    if (error == cudaSuccess)
        error = cudaMalloc(&buffers->device[1], bytes);
    cudaSetDevice(0);
    return error == cudaSuccess ? CAL_MEASURED
                                : meter_failed(CAL_SKIPPED, "buffers", error, reason, reason_size);
}

static void describe_copy(CopyWork *work, const Buffers *buffers, const char *name, Meter *meter)
{
    const bool peers = strncmp(name, "peer", 4) == 0,
               devices = peers || strcmp(name, "device_to_device") == 0;
    const bool down = strncmp(name, "d2h", 3) == 0, both = strstr(name, "both") != nullptr;
    work->kind = devices ? cudaMemcpyDeviceToDevice : down ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
    work->from = down || devices ? buffers->device[0] : buffers->host[0];
    work->to = devices ? buffers->device[1] : down ? buffers->host[0] : buffers->device[0];
    if (peers) {
        work->peers[0] = 0;
        work->peers[1] = 1;
    }
    if (both) {
        work->back_from = buffers->device[1];
        work->back_to = peers ? buffers->device[0] : buffers->host[1];
        work->side = meter->side;
        cudaEventCreateWithFlags(&work->go, cudaEventDisableTiming);
        cudaEventCreateWithFlags(&work->done, cudaEventDisableTiming);
    }
}

/* A copy of memory that is not pinned holds its thread until it is done: both ways at once take two, and the host's
 * clock. */
struct HeldCopy {
    void *to;
    const void *from;
    size_t bytes;
    cudaMemcpyKind kind;
    cudaError_t error;
};

static void *copy_and_wait(void *data)
{
    HeldCopy *copy = (HeldCopy *)data;
    cudaSetDevice(0);
    copy->error = cudaMemcpyAsync(copy->to, copy->from, copy->bytes, copy->kind, cudaStreamPerThread);
    const cudaError_t error = cudaStreamSynchronize(cudaStreamPerThread);
    copy->error = copy->error != cudaSuccess ? copy->error : error;
    return nullptr;
}

static CalOutcome both_pageable(const Buffers *buffers, size_t bytes, double seconds, CalSample *sample,
                                char *reason, size_t reason_size)
{
    HeldCopy down = {buffers->host[1], buffers->device[1], bytes, cudaMemcpyDeviceToHost, cudaSuccess};
    HeldCopy up = {buffers->device[0], buffers->host[0], bytes, cudaMemcpyHostToDevice, cudaSuccess};
    const double start_s = meter_now_s();
    for (int i = -2; i < CAL_MAX_SAMPLES && (i < 5 || meter_now_s() - start_s < seconds); i++) {
        pthread_t other;
        const double before_s = meter_now_s();
        if (pthread_create(&other, nullptr, copy_and_wait, &down) != 0) {
            snprintf(reason, reason_size, "no thread can be started");
            return CAL_SKIPPED;
        }
        copy_and_wait(&up);
        pthread_join(other, nullptr);
        const cudaError_t error = up.error != cudaSuccess ? up.error : down.error;
        if (error != cudaSuccess)
            return meter_failed(CAL_BROKEN, "copy", error, reason, reason_size);
        if (i >= 0) {
            sample->seconds[i] = meter_now_s() - before_s;
            sample->count = i + 1;
        }
    }
    return CAL_MEASURED;
}

CalOutcome meter_copy(Meter *meter, const CalPoint *point, double seconds, CalSample *ret_sample,
                      char *reason, size_t reason_size)
{
    const bool peers = strncmp(point->name, "peer", 4) == 0;
    const bool devices = peers || strcmp(point->name, "device_to_device") == 0;
    const size_t bytes = (size_t)point->bytes;
    Buffers buffers;
    const char *sys = getenv("ORRERY_SYS");
    if (!devices) /* the host's memory is taken from the GPU's own socket, as a launcher binds a rank */
        cal_host_bind(sys != nullptr ? sys : "/sys", meter->bus_id);
    CalOutcome outcome = devices ? open_devices(meter, &buffers, bytes, peers, reason, reason_size)
                                 : open_host(&buffers, point->name, bytes, reason, reason_size);
    if (outcome != CAL_MEASURED) {
        cal_host_bind(nullptr, nullptr);
        return outcome;
    }
    ret_sample->bytes = point->bytes;
    if (strcmp(point->name, "both_pageable") == 0) {
        outcome = both_pageable(&buffers, bytes, seconds, ret_sample, reason, reason_size);
        cal_host_bind(nullptr, nullptr);
        return outcome;
    }
    CopyWork work;
    work.bytes = bytes;
    describe_copy(&work, &buffers, point->name, meter);
    outcome = meter_time(meter, &work, meter->stream, false, seconds, ret_sample, reason, reason_size);
    if (work.go != nullptr) {
        cudaEventDestroy(work.go);
        cudaEventDestroy(work.done);
    }
    cal_host_bind(nullptr, nullptr);
    return outcome;
}
