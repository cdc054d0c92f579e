/* costmodel/gemm.c - time of matrix products; docs/MODEL-kernels.md derives it.
 *
 * Each call tries the tiles and split-k factors that a GEMM library ships and keeps the fastest, as the library's heuristic
 * would; what was asked before is not tried again.
 */
#include "costmodel/gemm.h"

#include <math.h>

#include <glib.h>
#include <string.h>

#include "base/memo.h"
#include "costmodel/kernels.h"

/* Output tiles of cuBLAS and CUTLASS kernels. Source: [CutlassProfiler]. Blackwell adds tiles that a pair of
 * SMs computes together; each SM holds half of the tile. */
typedef struct Tile {
    double m, n, sms;
} Tile;

static const Tile tiles[] = {
    {256, 128, 1}, {128, 256, 1}, {128, 128, 1}, {256, 64, 1},  {64, 256, 1},  {128, 64, 1},
    {64, 128, 1},  {64, 64, 1},   {256, 256, 2}, {256, 192, 2}, {256, 128, 2},
};
enum { TILES = sizeof tiles / sizeof *tiles, TILES_ONE_SM = 8 };

static const double splits[] = {1, 2, 3, 4, 6, 8, 12, 16};
enum { SPLITS = sizeof splits / sizeof *splits };

#define K_STEP        64.0    /* main loops advance by blocks of k */
#define EPILOGUE_TILE 32768.0 /* 256 x 128 outputs: the tile of SpecGemmShared.epilogue_s */
#define L2_REUSE_FRAC 0.7     /* of the L2 cache holds operands between waves */
#define SPLIT_BYTES   8.0     /* fp32 partial sums, written once and read once */

typedef struct Machine {
    SpecGemmShared shared;
    double sm_flops_per_s; /* dense peak of one SM x peak_frac x layout */
    double tile_half;
    double sms, bytes_per_s, l2_bytes;
    double overlap_power; /* p of together_s() */
} Machine;

/* What a tile costs whatever the split factor. */
typedef struct Tiled {
    const Tile *tile;
    double blocks, slots; /* tiles of the output; that run at once */
    double flops_per_s, epilogue_s;
    double bytes; /* negative: nobody has asked yet */
} Tiled;

/* What a split factor costs whatever the tile. */
typedef struct Split {
    double parts, k, reduce_s;
} Split;

/* Bytes of the output: written in the wide 16-bit type (fp32 and TF32 products keep fp32), read and written when
 * accumulating, as fp32 or in that type. */
static double output_bytes(const CostGemm *gemm)
{
    if (gemm->accumulate_fp32)
        return 8;
    return fmax(spec_dtype_bytes(gemm->dtype), 2) * (gemm->accumulate ? 2 : 1);
}

/* Pieces of `step` that cover `size`, the last one partly. Where the size is drawn, its mean says nothing about how full
 * the last piece is: half on average, unless the draws keep away from a multiple of the step.
 *   E ceil(X / step), X normal: j - 1 + sum of P(X > i step) for i = j - 1, j, j + 1, with j the nearest multiple */
static double pieces(double size, double step, double deviation)
{
    if (deviation <= 0)
        return ceil(size / step);
    if (deviation > step / 2)
        return size / step + 0.5;
    const double nearest = rint(size / step);
    double expected = nearest - 1;
    for (int i = -1; i <= 1; i++)
        expected += 0.5 * erfc(((nearest + i) * step - size) / (deviation * sqrt(2)));
    return expected;
}

/* Tiles of one group down its rows. */
static double row_tiles(const CostGemm *gemm, double tile)
{
    return pieces(gemm->m, tile, gemm->layout == COST_LAYOUT_BACKWARD_WEIGHT ? 0 : gemm->row_deviation);
}

/* The inner dimension as the main loop runs it, `split` parts at once. */
static double padded_k(const CostGemm *gemm, double split)
{
    const double deviation = gemm->layout == COST_LAYOUT_BACKWARD_WEIGHT ? gemm->row_deviation : 0;
    return pieces(gemm->k / split, K_STEP, deviation / split) * K_STEP;
}

/* DRAM traffic of the operands. A wave of tiles covers an area of about rows x columns outputs and shares
 * operands through the L2 cache; what does not fit there is read again by the next wave.
 *   bytes = f once + (1-f) k (rows + columns) e waves     f = share of the operands that the L2 cache keeps */
static double operand_bytes(const Machine *machine, const CostGemm *gemm, double area, double element_bytes)
{
    double once = (gemm->m + gemm->n) * gemm->k * element_bytes;
    double kept = L2_REUSE_FRAC * machine->l2_bytes;
    if (once <= kept)
        return once * gemm->groups;
    double rows = fmin(gemm->m, sqrt(area));
    double columns = fmin(gemm->n, area / rows);
    rows = fmin(gemm->m, area / columns);
    double waves = gemm->m / rows * (gemm->n / columns);
    double again = waves * gemm->k * (rows + columns) * element_bytes;
    double frac = kept / once;
    return fmax(once, frac * once + (1 - frac) * again) * gemm->groups;
}

/* The p at which x + x = (1 + loss) x, or none where nothing is lost. */
static double overlap_power(double loss_frac)
{
    return loss_frac > 0 ? G_LN2 / log1p(loss_frac) : INFINITY;
}

/* Loading operands and multiplying at the same time: (c^p + d^p)^(1/p). */
static double together_s(const Machine *machine, double compute_s, double memory_s)
{
    const double longer_s = fmax(compute_s, memory_s), shorter_s = fmin(compute_s, memory_s);
    if (!isfinite(machine->overlap_power) || longer_s <= 0)
        return longer_s;
    return longer_s * pow(1 + pow(shorter_s / longer_s, machine->overlap_power), 1 / machine->overlap_power);
}

/* No time of together_s() is shorter: of two numbers the mean of order p is not below that of order 1, for p >= 1. A
 * rounding's worth less, so that what it rules out is not the fastest.
 *   (c^p + d^p)^(1/p) >= 2^(1/p) (c + d) / 2 = (1 + loss) (c + d) / 2 */
static double together_least_s(const Machine *machine, double compute_s, double memory_s)
{
    const double loss_frac = machine->shared.overlap_loss_frac;
    return loss_frac > 0 && loss_frac <= 1 ? (1 - 1e-12) * (1 + loss_frac) * (compute_s + memory_s) / 2 : 0;
}

static Tiled tiled_of(const Machine *machine, const CostGemm *gemm, const Tile *tile)
{
    const double reuse = tile->m * tile->n / (tile->m + tile->n);
    return (Tiled){
        .tile = tile,
        .blocks = row_tiles(gemm, tile->m) * ceil(gemm->n / tile->n) * gemm->groups,
        .slots = fmax(1, floor(machine->sms / tile->sms)),
        .flops_per_s = machine->sm_flops_per_s * tile->sms * reuse / (reuse + machine->tile_half),
        .epilogue_s = machine->shared.epilogue_s * tile->m * tile->n / (EPILOGUE_TILE * tile->sms),
        .bytes = -1,
    };
}

static Split split_of(const Machine *machine, const CostGemm *gemm, double parts)
{
    const SpecGemmShared *shared = &machine->shared;
    Split split = {.parts = parts, .k = padded_k(gemm, parts)};
    if (parts > 1)
        split.reduce_s = shared->split_s + parts * SPLIT_BYTES * gemm->m * gemm->n * gemm->groups /
                                               (machine->bytes_per_s * shared->split_speedup);
    return split;
}

/* Seconds with one tile and one split factor; INFINITY when it cannot beat `best_s`. */
static double tile_s(const Machine *machine, const CostGemm *gemm, Tiled *tiled, const Split *split,
                     double best_s)
{
    const SpecGemmShared *shared = &machine->shared;
    const Tile *tile = tiled->tile;
    const double blocks = tiled->blocks * split->parts, slots = tiled->slots;
    double waves = blocks / slots;
    waves = waves <= 1 ? 1 : (1 - shared->wave_quantum) * waves + shared->wave_quantum * ceil(waves);
    const double compute_s =
        waves * (2 * tile->m * tile->n * split->k / tiled->flops_per_s + shared->tile_s + tiled->epilogue_s);
    if (compute_s + split->reduce_s >= best_s)
        return INFINITY;
    if (tiled->bytes < 0)
        tiled->bytes =
            operand_bytes(machine, gemm, slots * tile->m * tile->n, spec_dtype_bytes(gemm->dtype)) +
            gemm->m * gemm->n * gemm->groups * output_bytes(gemm) + gemm->fused_bytes;
    const double busy = fmin(1, fmin(slots, blocks) * tile->sms / (machine->sms * COST_MEMORY_SM_FRAC));
    const double memory_s = tiled->bytes / (machine->bytes_per_s * busy);
    if (memory_s + split->reduce_s >= best_s ||
        together_least_s(machine, compute_s, memory_s) + split->reduce_s >= best_s)
        return INFINITY;
    return together_s(machine, compute_s, memory_s) + split->reduce_s;
}

/* Of the on-chip memory of a chip with matrix units: fp32 sums of one tile, half of what XLA gives to a product there.
 * Source: [TpuMicrobench], xla_tpu_scoped_vmem_limit_kib */
#define TILE_SUMS_FRAC 0.25

/* What the tiles of a grouped product compute over what it asks for, where groups have as many rows as come: their rows lie
 * one behind the other, and a tile of 512 is computed for each group that has rows in it, G - 1 tiles more. The other
 * dimensions, unless they are smaller, fill tiles of 1,024.
 * Source: [MaxTextMoe] kernels/megablox/backend.py (make_group_metadata), configs/base.yml */
static double grouped_tiles_frac(const CostGemm *gemm)
{
    const double rows_tile = 512, tile = 1024;
    const bool weight = gemm->layout == COST_LAYOUT_BACKWARD_WEIGHT;
    const double rows = weight ? gemm->k : gemm->m, inner = weight ? gemm->m : gemm->k;
    if (gemm->groups <= 1 || gemm->row_deviation <= 0)
        return 1;
    const double filled = (inner < tile ? 1 : ceil(inner / tile) * tile / inner) *
                          (gemm->n < tile ? 1 : ceil(gemm->n / tile) * tile / gemm->n);
    return filled * (1 + rows_tile * (1 - 1 / gemm->groups) / rows);
}

/* Matrix units fed from memory that the compiler fills: a square tile of outputs as large as its sums find room, for which
 * operands stream by while it multiplies.
 *   t = (c^p + d^p)^(1/p)      c = 2 m n k / (peak f), d = bytes / bandwidth, operands once for each row or column of tiles */
static double array_s(const Machine *machine, const CostGemm *gemm)
{
    Machine streamed = *machine;
    streamed.l2_bytes = 0;
    const double area = TILE_SUMS_FRAC * machine->l2_bytes / 4;
    const double bytes = operand_bytes(&streamed, gemm, area, spec_dtype_bytes(gemm->dtype)) +
                         gemm->groups * gemm->m * gemm->n * output_bytes(gemm);
    const double flops = 2 * gemm->m * gemm->n * gemm->k * gemm->groups * grouped_tiles_frac(gemm);
    return together_s(machine, flops / (machine->sm_flops_per_s * machine->sms),
                      bytes / machine->bytes_per_s);
}

/* Accelerators that are not made of SMs with tiles: a roofline.
 *   t = max(2 m n k / (peak f), bytes / bandwidth)      f = peak_frac r / (r + tile_half), r = 128: a large tile */
static double roofline_s(const Machine *machine, const CostGemm *gemm)
{
    const double reuse = 128;
    double flops_per_s = machine->sm_flops_per_s * machine->sms * reuse / (reuse + machine->tile_half);
    double bytes = (gemm->m + gemm->n) * gemm->k * spec_dtype_bytes(gemm->dtype) +
                   gemm->m * gemm->n * output_bytes(gemm);
    return gemm->groups * fmax(2 * gemm->m * gemm->n * gemm->k / flops_per_s, bytes / machine->bytes_per_s);
}

/* PyTorch's row-wise kernel has tiles of 128 x 128, of 64 x 128 where pairs of these find room on the SMs at once, and sums
 * each output in one block. Source: [PyTorchRowwise] dispatch_fp8_rowwise_kernel_on_tile_size */
static double rowwise_s(const Machine *machine, const CostGemm *gemm)
{
    static const Tile large = {128, 128, 1}, small = {64, 128, 1};
    const double pairs = ceil(gemm->m / (2 * small.m)) * ceil(gemm->n / small.n);
    Tiled tiled = tiled_of(machine, gemm, pairs <= floor(machine->sms / 2) ? &small : &large);
    const Split whole = split_of(machine, gemm, 1);
    return tile_s(machine, gemm, &tiled, &whole, INFINITY);
}

/* Tiles of 128 rows and as many columns, by 8, as take the fewest waves; sums leave the tensor cores every 128 to be scaled,
 * and are never split. The store of a tile is beside nothing, and neither are the fp32 sums that a weight gradient reads and
 * writes: BLOCKWISE_*_TILE_S, the one number that each of the two published tables fixes.
 * Source: [DeepGemm] get_best_configs, README of February 2025; [DeepGemmWeights] */
#define BLOCKWISE_TILE_S        2.2e-6
#define BLOCKWISE_WEIGHT_TILE_S 4.7e-6

static double blockwise_s(const Machine *machine, const CostGemm *gemm)
{
    const bool weights = gemm->layout == COST_LAYOUT_BACKWARD_WEIGHT;
    Machine whole_waves = *machine;
    double best_s = INFINITY;
    whole_waves.shared.wave_quantum = 1;
    whole_waves.shared.epilogue_s = 0;
    whole_waves.shared.tile_s = weights ? BLOCKWISE_WEIGHT_TILE_S : BLOCKWISE_TILE_S;
    for (double columns = 64; columns <= (weights ? 152 : 128); columns += 8) {
        const Tile tile = {128, columns, 1};
        Tiled tiled = tiled_of(&whole_waves, gemm, &tile);
        const Split whole = split_of(&whole_waves, gemm, 1);
        best_s = fmin(best_s, tile_s(&whole_waves, gemm, &tiled, &whole, INFINITY));
    }
    return best_s;
}

/* The fastest of the library's kernels. */
static double tried_s(const Machine *machine, const CostGemm *gemm, int tile_count)
{
    double best_s = INFINITY;
    Split known[SPLITS];
    int known_count = 0;
    for (int i = 0; i < tile_count; i++) {
        Tiled tiled = tiled_of(machine, gemm, &tiles[i]);
        for (int j = 0; j < SPLITS; j++) {
            if (splits[j] > 1 && tiled.blocks * tiles[i].sms * splits[j - 1] > 2 * machine->sms)
                break; /* the SMs are full: splitting further only adds work */
            if (j == known_count)
                known[known_count++] = split_of(machine, gemm, splits[j]);
            best_s = fmin(best_s, tile_s(machine, gemm, &tiled, &known[j], best_s));
        }
    }
    return best_s;
}

typedef struct Asked {
    Machine machine;
    CostGemm gemm;
    int64_t tile_count;
} Asked;

static double fastest_s(const Machine *machine, const CostGemm *gemm, int tile_count)
{
    static OrrMemo memo = ORR_MEMO(Asked, double, 2048);
    Asked asked;
    bool known;
    memset(&asked, 0, sizeof asked);
    asked.machine = *machine;
    asked.gemm = *gemm;
    asked.tile_count = tile_count;
    double *fastest = orr_memo_place(&memo, &asked, &known);
    if (!known)
        *fastest = tried_s(machine, gemm, tile_count);
    return *fastest;
}

/* FLOPs of an SM, a clock of the sheet's peak, whose operands arrive in pieces of 2 bytes: rows that 16 bytes do not divide
 * cannot be loaded by TMA or wide asynchronous copies. An H100 does 118 TFLOP/s over whole waves of 128 x 128 outputs.
 * Source: [Float8Padding] */
#define UNALIGNED_FLOPS_PER_CLOCK 489.0

/* Whole waves of tiles at that rate; copies of 4 and 8 bytes need as many times fewer loads. */
static double unaligned_s(const SpecAccelerator *accelerator, const CostGemm *gemm, double peak)
{
    const double clock = accelerator->generation.sm_flops_per_clock, tile = 128;
    if (gemm->align == 0 || clock <= 0 || spec_dtype_bytes(gemm->dtype) != 2)
        return 0;
    const double sms = fmax(1, accelerator->sm_count);
    const double blocks = ceil(gemm->m / tile) * ceil(gemm->n / tile) * gemm->groups;
    const double flops_per_s = peak / sms * UNALIGNED_FLOPS_PER_CLOCK / clock * gemm->align;
    return ceil(blocks / sms) * 2 * tile * tile * gemm->k / flops_per_s;
}

/* Volta's and Turing's libraries leave products with any size that 8 does not divide to CUDA cores, which take 16-bit
 * operands at the rate of fp32.   Source: [TensorCoreTips] */
static bool leaves_tensor_cores(const SpecAccelerator *accelerator, const CostGemm *gemm)
{
    return gemm->align > 0 && accelerator->generation.small_pieces_leave_tensor_cores &&
           spec_dtype_bytes(gemm->dtype) == 2 && accelerator->peak_flops_per_s[SPEC_FP32] > 0;
}

double cost_gemm_s(const SpecAccelerator *accelerator, const CostGemm *gemm)
{
    g_assert(gemm->m >= 0 && gemm->n >= 0 && gemm->k >= 0 && gemm->groups >= 0);
    if (leaves_tensor_cores(accelerator, gemm)) {
        CostGemm wide = *gemm;
        wide.dtype = SPEC_FP32;
        wide.align = 0;
        return cost_gemm_s(accelerator, &wide);
    }
    const SpecGemmShared *shared = cost_gemm_shared(accelerator);
    const SpecGemmModel *model = cost_gemm_model(accelerator, gemm->dtype);
    double peak = cost_dense_peak_flops_per_s(accelerator, gemm->dtype);
    if (gemm->m * gemm->n * gemm->k * gemm->groups <= 0 || peak <= 0)
        return shared->latency_s;

    double speed = model->peak_frac;
    if (gemm->layout == COST_LAYOUT_BACKWARD_INPUT && !gemm->blockwise)
        speed *= model->backward_input_frac;
    if (gemm->layout == COST_LAYOUT_BACKWARD_WEIGHT)
        speed *= model->backward_weight_frac;
    if (gemm->grouped && !gemm->blockwise)
        speed *= model->grouped_frac;
    Machine machine = {
        .shared = *shared,
        .sm_flops_per_s = peak * speed / fmax(1, accelerator->sm_count),
        .tile_half = model->tile_half,
        .sms = accelerator->sm_count - gemm->free_sms,
        .bytes_per_s = accelerator->memory_bytes_per_s * shared->memory_frac,
        .l2_bytes = accelerator->l2_bytes,
        .overlap_power = overlap_power(shared->overlap_loss_frac),
    };
    double t_s;
    if (accelerator->generation.without_sms && accelerator->matrix_unit > 0 && accelerator->l2_bytes > 0)
        t_s = array_s(&machine, gemm);
    else if (accelerator->generation.without_sms)
        t_s = roofline_s(&machine, gemm);
    else if (gemm->rowwise)
        t_s = rowwise_s(&machine, gemm);
    else if (gemm->blockwise)
        t_s = blockwise_s(&machine, gemm);
    else
        t_s = fastest_s(&machine, gemm, accelerator->generation.two_sm_tiles ? TILES : TILES_ONE_SM);
    t_s = fmax(t_s, unaligned_s(accelerator, gemm, peak));
    double used_frac = 2 * gemm->m * gemm->n * gemm->k * gemm->groups / t_s / peak;
    const double demand = used_frac * model->power_frac * cost_power_demand(accelerator);
    t_s = cost_throttled_s(t_s, demand, model->throttle_s) + shared->latency_s;
    const bool one_by_one =
        gemm->grouped && (!gemm->blockwise || gemm->layout == COST_LAYOUT_BACKWARD_WEIGHT);
    return one_by_one ? t_s + gemm->groups * model->group_s : t_s;
}
