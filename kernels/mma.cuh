/* kernels/mma.cuh - one warp's 16 x 8 x 16 bf16 product with fp32 sums, and how its operands are loaded.
 *
 * Lane l of a warp, with g = l / 4 and t = l mod 4, holds
 *   A (16 x 16, row-major)    a[0] (g, 2t..2t+1)  a[1] (g+8, 2t..)  a[2] (g, 2t+8..)  a[3] (g+8, 2t+8..)
 *   B (16 x 8)                b[0] (2t..2t+1, g)  b[1] (2t+8.., g)
 *   C (16 x 8)                c[0..1] (g, 2t..2t+1)   c[2..3] (g+8, 2t..2t+1)
 * so that the sums of two products beside each other are the A operand of the next one: a tile of
 * probabilities never leaves the registers. Source: PTX ISA, mma.m16n8k16
 */
#ifndef ORR_KERNELS_MMA_CUH
#define ORR_KERNELS_MMA_CUH

#include "kernels/device.cuh"

#include <string.h>

#ifndef KRN_EMULATED
__device__ inline void mma_16816(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

__device__ inline uint32_t pack_two(float low, float high)
{
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    uint32_t bits;
    memcpy(&bits, &pair, sizeof bits);
    return bits;
}

__device__ inline uint32_t load_two(const Bf16 *address)
{
    return *reinterpret_cast<const uint32_t *>(address);
}

/* A from rows in memory: `tile` points at element (0, 0), `stride` elements between rows. */
__device__ inline void load_a(uint32_t a[4], const Bf16 *tile, int64_t stride, int lane)
{
    const Bf16 *at = tile + (lane / 4) * stride + 2 * (lane % 4);
    a[0] = load_two(at);
    a[1] = load_two(at + 8 * stride);
    a[2] = load_two(at + 8);
    a[3] = load_two(at + 8 * stride + 8);
}

/* B stored as n rows of k values (a transposed operand): pairs lie beside each other. */
__device__ inline void load_b_rows(uint32_t b[2], const Bf16 *tile, int stride, int lane)
{
    const Bf16 *at = tile + (lane / 4) * stride + 2 * (lane % 4);
    b[0] = load_two(at);
    b[1] = load_two(at + 8);
}

/* B stored as k rows of n values: pairs lie one row apart. */
__device__ inline void load_b_cols(uint32_t b[2], const Bf16 *tile, int stride, int lane)
{
    const unsigned short *at =
        reinterpret_cast<const unsigned short *>(tile) + 2 * (lane % 4) * stride + lane / 4;
    b[0] = (uint32_t)at[0] | (uint32_t)at[stride] << 16;
    b[1] = (uint32_t)at[8 * stride] | (uint32_t)at[9 * stride] << 16;
}

/* The sums of products 2i and 2i+1 as the A operand of step i. */
__device__ inline void pack_a(uint32_t a[4], const float left[4], const float right[4])
{
    a[0] = pack_two(left[0], left[1]);
    a[1] = pack_two(left[2], left[3]);
    a[2] = pack_two(right[0], right[1]);
    a[3] = pack_two(right[2], right[3]);
}

/* Copies `rows` rows of `dim` values into shared memory with a stride of dim + 8 (no bank conflicts); rows from
 * `valid` on are zeroed. All threads of the block take part. */
template <int rows, int dim>
__device__ inline void load_tile(Bf16 *shared, const Bf16 *memory, int64_t stride, int64_t valid)
{
    for (int i = (int)threadIdx.x; i < rows * dim / 8; i += (int)blockDim.x) {
        const int row = i / (dim / 8), col = 8 * (i % (dim / 8));
        Pack pack;
        if (row < valid) {
            pack = load_pack(memory + row * stride + col);
        } else {
            for (int j = 0; j < 8; j++)
                pack.v[j] = __float2bfloat16(0);
        }
        store_pack(shared + row * (dim + 8) + col, pack);
    }
}

#endif
