/* tests/gpu/emulate/cuda_runtime.h - the part of CUDA that kernels/ uses, played by a host compiler.
 *
 * Threads of a block are fibers that take turns at barriers and shuffles; blocks run one after another; device
 * memory is the heap, filled with NaN. It tells whether a kernel computes what its reference does, in any order of
 * threads; it tells nothing about speed, and nothing that a real GPU would do differently.
 */
#ifndef EMULATE_CUDA_RUNTIME_H
#define EMULATE_CUDA_RUNTIME_H

#include <functional>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define KRN_EMULATED 1
#define __global__
#define __device__
#define __host__
#define __shared__   static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(n)

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct float4 {
    float x, y, z, w;
};
static inline float4 make_float4(float x, float y, float z, float w)
{
    return float4{x, y, z, w};
}

extern dim3 threadIdx, blockIdx, blockDim, gridDim;

/* Runs `body` once for each thread of the grid. */
void emulate_launch(dim3 grid, dim3 block, const std::function<void()> &body);
/* Threads take turns from the last to the first. */
extern bool emulate_reversed;

#define KRN_LAUNCH(kernel, grid, block, stream, ...)                                                         \
    ((void)(stream), emulate_launch(dim3(grid), dim3(block), [=]() { kernel(__VA_ARGS__); }))

void __syncthreads();
float __shfl_xor_sync(unsigned mask, float value, int lanes);
void mma_16816(float c[4], const uint32_t a[4], const uint32_t b[2]);

static inline float atomicAdd(float *address, float value)
{
    const float before = *address;
    *address += value;
    return before;
}
#define __expf(x) expf(x) /* the C library has one of its own */
static inline float rsqrtf(float x)
{
    return 1 / sqrtf(x);
}

enum cudaError_t {
    cudaSuccess,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNotReady = 600,
    cudaErrorLaunchFailure = 719
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };
typedef struct EmulatedStream *cudaStream_t;
#define cudaStreamPerThread ((cudaStream_t) nullptr)
typedef struct EmulatedEvent *cudaEvent_t;
struct cudaDeviceProp {
    char name[256];
    struct {
        char bytes[16];
    } uuid;
    int multiProcessorCount, major, minor, l2CacheSize;
    size_t totalGlobalMem;
};

/* Allocations above the limit fail. */
extern size_t emulate_memory_bytes;
extern bool emulate_stuck; /* the GPU does not answer any more */
cudaError_t cudaMalloc(void *ret_pointer, size_t bytes);
cudaError_t cudaFree(void *pointer);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemset(void *to, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaGetLastError();
cudaError_t cudaDeviceSynchronize();
const char *cudaGetErrorString(cudaError_t error);

/* Graphs: what is launched between begin and end is kept and runs when the graph is launched. */
typedef struct EmulatedGraph *cudaGraph_t;
typedef struct EmulatedGraph *cudaGraphExec_t;
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *ret_graph);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *ret_ready, cudaGraph_t graph,
                                          unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t ready, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t ready);
/* True: `work` was kept for the graph that is being captured. */
bool emulate_defer(const std::function<void()> &work);

/* Devices, streams and events: everything happens at once, in the order of the calls. */
cudaError_t cudaGetDeviceCount(int *ret_count);
cudaError_t cudaRuntimeGetVersion(int *ret_version);
cudaError_t cudaDriverGetVersion(int *ret_version);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *ret_properties, int device);
cudaError_t cudaDeviceGetPCIBusId(char *ret_id, int size, int device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaMemGetInfo(size_t *ret_free, size_t *ret_total);
cudaError_t cudaDeviceCanAccessPeer(int *ret_can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaMallocHost(void *ret_pointer, size_t bytes);
cudaError_t cudaFreeHost(void *pointer);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret_stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreate(cudaEvent_t *ret_event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret_event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ret_ms, cudaEvent_t start, cudaEvent_t end);

#endif
