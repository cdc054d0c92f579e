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
#define __shared__ static
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

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation };
enum cudaMemcpyKind { cudaMemcpyDeviceToHost };
typedef struct EmulatedStream *cudaStream_t;

/* Allocations above the limit fail. */
extern size_t emulate_memory_bytes;
cudaError_t cudaMalloc(void *ret_pointer, size_t bytes);
cudaError_t cudaFree(void *pointer);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaGetLastError();
cudaError_t cudaDeviceSynchronize();
const char *cudaGetErrorString(cudaError_t error);

#endif
