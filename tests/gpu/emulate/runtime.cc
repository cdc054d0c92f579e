/* tests/gpu/emulate/runtime.cc - four GPUs of 64 MiB whose streams run at once and whose clock is the host's.
 *
 * EMULATED_AT_WORK is set while the host has waited for a part of what it enqueued: the emulated NVML tells the clock under
 * load only then. EMULATE_GPUS sets how many there are, EMULATE_UNLIKE from which on they are of another kind, EMULATE_ERROR the number that cudaGetDeviceCount answers.
 */
#include "cuda_runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MEMORY_BYTES (64ull << 20)

struct EmulatedStream {
    int device;
};
struct EmulatedEvent {
    double s;
    bool timed;
    int number; /* of the records */
};
static int events_recorded;

static int device_now;

static int number_of(const char *variable, int absent)
{
    const char *text = getenv(variable);
    return text != nullptr ? atoi(text) : absent;
}

cudaError_t cudaGetDeviceCount(int *ret_count)
{
    emulate_memory_bytes = MEMORY_BYTES;
    *ret_count = number_of("EMULATE_GPUS", 4);
    return (cudaError_t)number_of("EMULATE_ERROR", cudaSuccess);
}
cudaError_t cudaRuntimeGetVersion(int *ret_version)
{
    *ret_version = 13000;
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *ret_version)
{
    *ret_version = number_of("EMULATE_DRIVER", 13000);
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *ret_properties, int device)
{
    memset(ret_properties, 0, sizeof *ret_properties);
    const bool unlike = device >= number_of("EMULATE_UNLIKE", 99); /* from this one on: another kind */
    snprintf(ret_properties->name, sizeof ret_properties->name, unlike ? "Emulated display" : "Emulated GPU");
    ret_properties->uuid.bytes[0] = (char)(1 + device);
    ret_properties->multiProcessorCount = 4;
    ret_properties->major = number_of("EMULATE_CHIP", 90) / 10;
    ret_properties->l2CacheSize = 1 << 16;
    ret_properties->totalGlobalMem = MEMORY_BYTES;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char *ret_id, int size, int device)
{
    snprintf(ret_id, (size_t)size, "0000:%02x:00.0", device);
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= number_of("EMULATE_GPUS", 4))
        return cudaErrorInvalidDevice;
    device_now = device;
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *ret_free, size_t *ret_total)
{
    *ret_free = *ret_total = MEMORY_BYTES;
    return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int *ret_can, int device, int peer)
{
    *ret_can = device != peer;
    return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    return flags == 0 && peer != device_now ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaMallocHost(void *ret_pointer, size_t bytes)
{
    return cudaMalloc(ret_pointer, bytes);
}
cudaError_t cudaFreeHost(void *pointer)
{
    return cudaFree(pointer);
}
cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    memset(to, value, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void)stream;
    return cudaMemcpy(to, from, bytes, kind);
}
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream)
{
    return to_device != from_device ? cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream)
                                    : cudaErrorInvalidDevice;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret_stream, unsigned flags)
{
    (void)flags;
    *ret_stream = new EmulatedStream{device_now};
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    delete stream;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    unsetenv("EMULATED_AT_WORK");
    while (getenv("EMULATED_HUNG") != nullptr)
        sleep(1);
    return stream == nullptr || stream->device == device_now ? cudaSuccess : cudaErrorInvalidDevice;
}
/* The emulated NCCL sets EMULATED_HUNG when a peer did not come, and takes it away when communicators are aborted. */
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return getenv("EMULATED_HUNG") != nullptr ? cudaErrorNotReady
           : stream->device == device_now     ? cudaSuccess
                                              : cudaErrorInvalidDevice;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)flags;
    (void)stream; /* null is the default stream */
    return event != nullptr ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaEventCreate(cudaEvent_t *ret_event)
{
    *ret_event = new EmulatedEvent{0, true, 0};
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret_event, unsigned flags)
{
    *ret_event = new EmulatedEvent{0, flags != cudaEventDisableTiming, 0};
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    (void)stream;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    event->number = ++events_recorded;
    event->s = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    const bool middle = event->number < events_recorded; /* others were recorded behind it: the GPU has work left */
    if (middle)
        setenv("EMULATED_AT_WORK", "1", 1);
    return event->s > 0 ? cudaSuccess : cudaErrorInvalidDevice;
}
/* An event that was never recorded, or keeps no time, gives an error as CUDA does. */
cudaError_t cudaEventElapsedTime(float *ret_ms, cudaEvent_t start, cudaEvent_t end)
{
    if (!(start->s > 0) || !(end->s > 0) || !start->timed || !end->timed) {
        *ret_ms = -1;
        return cudaErrorInvalidDevice;
    }
    /* A GPU that is EMULATE_FASTER than the host, with EMULATE_EVENT_US between two events that follow each other. */
    *ret_ms = (float)(1e3 * (end->s - start->s) / number_of("EMULATE_FASTER", 1) +
                      1e-3 * number_of("EMULATE_EVENT_US", 0));
    return cudaSuccess;
}
