/* kernels/device.cuh - what the kernel files share on the device: launching, reductions, random numbers. */
#ifndef ORR_KERNELS_DEVICE_CUH
#define ORR_KERNELS_DEVICE_CUH

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "kernels/internal.h"

/* The emulation that the tests build with a host compiler brings its own. */
#ifndef KRN_LAUNCH
#define KRN_LAUNCH(kernel, grid, block, stream, ...)                                                         \
    kernel<<<dim3(grid), dim3(block), 0, (cudaStream_t)(stream)>>>(__VA_ARGS__)
#endif

#define KRN_BLOCK 256

typedef __nv_bfloat16 Bf16;

/* One load or store of 16 bytes. */
struct alignas(16) Pack {
    Bf16 v[8];
};

__device__ inline Pack load_pack(const Bf16 *address)
{
    return *reinterpret_cast<const Pack *>(address);
}

__device__ inline void store_pack(Bf16 *address, const Pack &pack)
{
    *reinterpret_cast<Pack *>(address) = pack;
}

__device__ inline float warp_sum(float x)
{
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

__device__ inline float warp_max(float x)
{
    for (int step = 16; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

/* Over a block of KRN_BLOCK threads; every thread gets the result. */
__device__ inline float block_sum(float x)
{
    __shared__ float part[KRN_BLOCK / 32];
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
    for (int i = 0; i < KRN_BLOCK / 32; i++)
        x += part[i];
    __syncthreads();
    return x;
}

__device__ inline float block_max(float x)
{
    __shared__ float part[KRN_BLOCK / 32];
    x = warp_max(x);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    x = part[0];
    for (int i = 1; i < KRN_BLOCK / 32; i++)
        x = fmaxf(x, part[i]);
    __syncthreads();
    return x;
}

/* Enough blocks to fill the GPU; kernels loop with a stride of the grid. */
static inline unsigned krn_grid(int64_t items)
{
    const int64_t blocks = (items + KRN_BLOCK - 1) / KRN_BLOCK;
    return (unsigned)(blocks < 1 ? 1 : blocks > 16384 ? 16384 : blocks);
}

static inline KrnStatus krn_launched(KrnContext *context, const char *name)
{
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? KRN_OK : krn_fail(context, KRN_FAILED, name, cudaGetErrorString(error));
}

#endif
