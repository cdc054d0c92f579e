/* costmodel/norms.c - time of a norm's kernels: bytes, and what blocks wait for that no bandwidth shortens; docs/MODEL-kernels.md.
 *
 * Source: [cudnn-frontend] norms, [TransformerEngine], [PyTorchNorms], [FlashAttentionNorm]
 * Ignores: rows that a few warps share (heads of 128), tensors that stay in the L2 cache
 * Tested: unit/costmodel/test_memory_bound.c
 */
#include "costmodel/norms.h"

#include <glib.h>
#include <math.h>

#include "costmodel/kernels.h"
#include "costmodel/memory_bound.h"

#define SM_REGISTERS     65536.0
#define SM_THREADS       2048.0
#define SM_BLOCKS_OF_128 16
#define WARP_THREADS     32.0
/* A row of a kernel whose blocks stay has a warp up to `warp_columns`, a block of 128 threads up to `block_columns`, else one of
 * 256. A thread holds `registers` and `element_registers` for each element of its own, `most_registers` at most.
 * Transformer Engine's by ptxas: 80 and 89 for 16 elements a thread (sm_100, sm_90), 161 and 168 for 32, 255 and spills for 64.
 * Flash-attention's as DeepSeek's trace prints them: forward 72, 152 and 168 for 16, 48 and 56 elements, backward 94, 116 and
 * 200 for 12, 16 and 28.   Source: [DeepSeekProfile] */
typedef struct StayingBlock {
    double warp_columns, block_columns, registers, element_registers, most_registers;
} StayingBlock;

static const StayingBlock staying_block[] = {
    [COST_NORM_STAYING] = {1024, 8192, 8, 5, 256},
    [COST_NORM_SUMMING] = {1536, 8192, 32, 2.4, 255},
    [COST_NORM_SUMMED] = {1024, 5120, 28, 6, 255},
};
#define NORM_BLOCK_COLUMNS 8192.0
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

/* How the rows of a kernel whose blocks stay lie on an SM. */
typedef struct Staying {
    double parts;       /* blocks that share a row */
    double row_threads; /* of a part */
    double at_once;     /* parts on an SM */
    double blocks;      /* on an SM */
} Staying;

static Staying staying(CostNormBlocks kind, double cols)
{
    const StayingBlock *block = &staying_block[kind];
    const double parts = ceil(cols / NORM_BLOCK_COLUMNS), held = cols / parts,
                 threads = held <= block->block_columns ? 128 : 256,
                 row_threads = held <= block->warp_columns ? WARP_THREADS : threads,
                 registers = fmin(block->most_registers,
                                  block->registers + block->element_registers * held / row_threads),
                 blocks = fmin(SM_THREADS / threads, floor(SM_REGISTERS / (threads * registers)));
    return (Staying){parts, row_threads, blocks * threads / row_threads, blocks};
}

double cost_norm_sums(const SpecAccelerator *accelerator, const CostNormRows *norm)
{
    const double held = fmin(norm->cols, NORM_BLOCK_COLUMNS);
    return sms(accelerator) *
           fmin(staying(norm->blocks, held).blocks * held, ceil(norm->rows / sms(accelerator)) * norm->cols);
}

/* What a row waits for beside its bytes, and the rows of a block. */
static double row_waits_s(const CostNormRows *norm, const Staying *on)
{
    return MEMORY_TRIP_S + norm->cols / on->parts / on->row_threads * ELEMENT_S +
           (on->parts > 1 ? SHARED_ROW_S : 0);
}

static double row_waves(const SpecAccelerator *accelerator, const CostNormRows *norm, const Staying *on)
{
    return ceil(norm->rows * on->parts / (sms(accelerator) * on->at_once));
}

/* Blocks of an SM alternate: while one waits and computes, the others load. So a row takes its block what it moves at the SM's
 * share of the bandwidth, and what it waits for; the kernel the rows of a block, or all bytes. */
static double staying_s(const SpecAccelerator *accelerator, const CostNormRows *norm, double bytes_s)
{
    const Staying on = staying(norm->blocks, norm->cols);
    const double moved_s = bytes_s * sms(accelerator) / (norm->rows * on.parts);
    return fmax(bytes_s, row_waves(accelerator, norm, &on) * (moved_s + row_waits_s(norm, &on)));
}

/* Forward nothing of a row is written before its sums are known: blocks that read together wait together. */
static double summing_s(const SpecAccelerator *accelerator, const CostNormRows *norm, double bytes_s)
{
    const Staying on = staying(norm->blocks, norm->cols);
    return bytes_s + row_waves(accelerator, norm, &on) * row_waits_s(norm, &on);
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
    if (norm->blocks == COST_NORM_SUMMAND)
        return bytes_s;
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
    case COST_NORM_SUMMING:
        return model->latency_s + summing_s(accelerator, norm, bytes_s);
    default:
        return model->latency_s + staying_s(accelerator, norm, bytes_s);
    }
}

CostNormRows cost_norm_left(const SpecAccelerator *accelerator, const CostNormRows *norm)
{
    return (CostNormRows){COST_NORM_LEFT, cost_norm_sums(accelerator, norm) / fmax(1, norm->cols), norm->cols,
                          COST_NORM_SUM_BYTES};
}

double cost_norm_backward_s(const SpecAccelerator *accelerator, double rows, double cols,
                            double element_bytes)
{
    if (rows <= 0 || cols <= 0)
        return 0;
    const CostNormRows norm = {COST_NORM_STAYING, rows, cols, 2 * element_bytes},
                       left = cost_norm_left(accelerator, &norm);
    return cost_norm_rows_s(accelerator, &norm, 3 * element_bytes * rows * cols) +
           cost_norm_rows_s(accelerator, &left, COST_NORM_SUM_BYTES * cost_norm_sums(accelerator, &norm));
}
