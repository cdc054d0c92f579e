/* costmodel/norms.c - time of a norm's kernels: bytes, and what blocks wait for that no bandwidth shortens; docs/MODEL-kernels.md.
 *
 * Source: [cudnn-frontend] norms, [TransformerEngine], [PyTorchNorms]
 * Ignores: rows that a few warps share (heads of 128), tensors that stay in the L2 cache
 * Tested: unit/costmodel/test_memory_bound.c
 */
#include "costmodel/norms.h"

#include <glib.h>
#include <math.h>

#include "costmodel/kernels.h"
#include "costmodel/memory_bound.h"

#define SM_REGISTERS     65536.0
#define BLOCK_THREADS    128.0
#define BLOCK_WARPS      4
#define ROW_WARP_COLUMNS 1024
#define SM_BLOCKS_OF_128 16 /* 2,048 threads */
/* Registers of a thread of the backward of a norm, a block of 128 threads a row of 8,192 elements at most. From ptxas: 80 and
 * 89 for 16 elements a thread (sm_100, sm_90), 161 and 168 for 32, 255 and spills for 64. */
#define NORM_REGISTERS         8.0
#define NORM_ELEMENT_REGISTERS 5.0
#define NORM_BLOCK_COLUMNS     8192.0
#define MOST_REGISTERS         256.0
/* What a block that stays waits for between one row and the next: a trip to memory (479 cycles on H100 [Luo2024], more on
 * the two dies of Blackwell: an estimate), and the elements of its threads one after the other (28 cycles each at 1.9 GHz:
 * fitted to cuDNN's rows on H200, GB200 and GB300; 31 and 27 to either half of the shapes). Blocks that share a row tell each
 * other their sums by way of the L2 cache: written and read, 262 cycles each [Luo2024]. */
#define MEMORY_TRIP_S 0.4e-6
#define ELEMENT_S     (28 / 1.9e9)
#define SHARED_ROW_S  0.3e-6
/* What is read again after the sums comes from the L1 cache while the rows of an SM's blocks fit beside what they write: half
 * of 256 KB. The rest moves at 0.7 of the bandwidth. Fitted alike: 144 and 128 KiB, 0.6 and 0.9. */
#define ROW_CACHE_BYTES 131072.0
#define AGAIN_FRAC      0.7

/* A tile of the weight's gradient: 256 rows of 32 columns, eight a thread, waited for before the next is asked for. Fitted: 0.68
 * and 0.74 us. Many rows of few columns are split and added up by another kernel. */
#define TILE_S            0.7e-6
#define TILE_COLUMNS      32.0
#define TILE_ROWS         256.0
#define MOST_UNSPLIT_ROWS 65536.0
/* Of what blocks that stay leave: 32 rows at a time, four loads of the L2 cache (262 cycles on H100 [Luo2024]) on their way. */
#define LEFT_ROWS    128.0
#define CACHE_TRIP_S 0.15e-6

static double sms(const SpecAccelerator *accelerator)
{
    return fmax(1, accelerator->sm_count);
}

/* PyTorch's forward is CUDA's source translated for others' compute units: blocks of as many threads, waves of twice the lanes. */
static bool runs_these_blocks(const SpecAccelerator *accelerator, CostNormBlocks blocks)
{
    return cost_has_sms(accelerator) && (!accelerator->generation.foreign_kernels || blocks == COST_NORM_ROW);
}

/* Threads of a row: a warp up to 1,024 elements, a block of four above. */
static double row_threads(double cols)
{
    return cols <= ROW_WARP_COLUMNS ? BLOCK_THREADS / BLOCK_WARPS : BLOCK_THREADS;
}

static double staying_blocks(double cols)
{
    const double registers =
        fmin(MOST_REGISTERS, NORM_REGISTERS + NORM_ELEMENT_REGISTERS * cols / row_threads(cols));
    return fmin(SM_BLOCKS_OF_128, floor(SM_REGISTERS / (BLOCK_THREADS * registers)));
}

double cost_norm_sums(const SpecAccelerator *accelerator, double rows, double cols)
{
    const double held = fmin(cols, NORM_BLOCK_COLUMNS);
    return sms(accelerator) * fmin(staying_blocks(held) * held, ceil(rows / sms(accelerator)) * cols);
}

/* Blocks of an SM alternate: while one waits and computes, the others load. So a row takes its block what it moves at the SM's
 * share of the bandwidth, and what it waits for; the kernel the rows of a block, or all bytes. */
static double staying_s(const SpecAccelerator *accelerator, const CostNormRows *norm, double bytes_s)
{
    const double parts = ceil(norm->cols / NORM_BLOCK_COLUMNS), held = norm->cols / parts,
                 threads = row_threads(held), at_once = staying_blocks(held) * BLOCK_THREADS / threads,
                 waves = ceil(norm->rows * parts / (sms(accelerator) * at_once)),
                 moved_s = bytes_s * sms(accelerator) / (norm->rows * parts),
                 waited_s = MEMORY_TRIP_S + held / threads * ELEMENT_S + (parts > 1 ? SHARED_ROW_S : 0);
    return fmax(bytes_s, waves * (moved_s + waited_s));
}

/* All blocks of an SM begin together, wait together and read their rows again. */
static double row_s(const SpecAccelerator *accelerator, const CostNormRows *norm, double bytes_s,
                    double bytes_per_s)
{
    const double row_block_s = cost_memory_bound_model(accelerator)->row_block_s;
    const double input = norm->rows * norm->cols * norm->input_bytes,
                 held = SM_BLOCKS_OF_128 * norm->cols * norm->input_bytes,
                 again = input * fmax(0, 1 - ROW_CACHE_BYTES / held);
    return bytes_s + norm->rows / (SM_BLOCKS_OF_128 * sms(accelerator)) * row_block_s +
           again / (AGAIN_FRAC * bytes_per_s);
}

/* Rows of 1,024 elements and less share a block; two of 2,048; wider ones have 512 threads, 1,024 above 8,192. */
static double compiled_s(const SpecAccelerator *accelerator, const CostNormRows *norm, double bytes_s)
{
    const double at_once = norm->cols <= 2048 ? 8 : norm->cols <= 8192 ? 4 : 2;
    const double waited_s = norm->cols <= 1024 ? 0
                                               : norm->rows / (at_once * sms(accelerator)) *
                                                     cost_memory_bound_model(accelerator)->row_block_s;
    return hypot(bytes_s, waited_s);
}

/* A block an SM goes down its columns tile after tile. */
static double columns_s(const SpecAccelerator *accelerator, const CostNormRows *norm, double bytes_s)
{
    const double blocks = norm->cols / TILE_COLUMNS, waves = ceil(blocks / sms(accelerator));
    if (norm->blocks == COST_NORM_LEFT)
        return fmax(bytes_s, waves * ceil(norm->rows / LEFT_ROWS) * CACHE_TRIP_S);
    if (norm->rows > MOST_UNSPLIT_ROWS && blocks < sms(accelerator) / 2)
        return bytes_s;
    return fmax(bytes_s, waves * ceil(norm->rows / TILE_ROWS) * TILE_S);
}

double cost_norm_rows_s(const SpecAccelerator *accelerator, const CostNormRows *norm, double bytes)
{
    const SpecMemoryBoundModel *model = cost_memory_bound_model(accelerator);
    const double bytes_per_s = accelerator->memory_bytes_per_s * model->norm_frac,
                 bytes_s = bytes / bytes_per_s,
                 streamed_s = bytes / (accelerator->memory_bytes_per_s * model->elementwise_frac);
    if (norm->blocks == COST_NORM_STREAMED || !runs_these_blocks(accelerator, norm->blocks) ||
        norm->rows <= 0 || norm->cols <= 0)
        return cost_memory_bound_s(accelerator, COST_MEMORY_NORM, bytes);
    switch (norm->blocks) {
    case COST_NORM_ROW:
        return model->latency_s + row_s(accelerator, norm, bytes_s, bytes_per_s);
    case COST_NORM_COMPILED:
        return model->latency_s + compiled_s(accelerator, norm, streamed_s);
    case COST_NORM_COLUMNS:
    case COST_NORM_LEFT:
        return model->latency_s + columns_s(accelerator, norm, bytes_s);
    default:
        return model->latency_s + staying_s(accelerator, norm, bytes_s);
    }
}

CostNormRows cost_norm_left(const SpecAccelerator *accelerator, double rows, double cols)
{
    return (CostNormRows){COST_NORM_LEFT, cost_norm_sums(accelerator, rows, cols) / fmax(1, cols), cols,
                          COST_NORM_SUM_BYTES};
}

double cost_norm_backward_s(const SpecAccelerator *accelerator, double rows, double cols,
                            double element_bytes)
{
    if (rows <= 0 || cols <= 0)
        return 0;
    const CostNormRows norm = {COST_NORM_STAYING, rows, cols, 2 * element_bytes},
                       left = cost_norm_left(accelerator, rows, cols);
    return cost_norm_rows_s(accelerator, &norm, 3 * element_bytes * rows * cols) +
           cost_norm_rows_s(accelerator, &left,
                            COST_NORM_SUM_BYTES * cost_norm_sums(accelerator, rows, cols));
}
