/* step/compression.c - gradients that are made smaller before they are sent: what goes over the wire, what the GPU
 * does for it, and from where on it pays.
 *
 *   fp16     a cast; all-reduce or reduce-scatter of 2 bytes an element
 *   int8     blocks of 256 with an fp32 scale; sums overflow, so an all-to-all brings each rank its part of all, which it
 *            adds up in fp32 and compresses again, and an all-gather brings the sums back (ZeRO keeps its part)
 *   onebit   the same with signs
 *   topk     the largest elements with 4-byte indices; those of each rank are others: an all-gather of all lists
 * Selecting costs passes over memory: three reads to find a threshold and a pass that picks; quantising two reads and a
 * write. Error feedback reads and writes an fp32 residual besides.
 * Source: [AlistarhTopk2018], [TangOneBitAdam2021], [Wang2023] (all-to-all); the number of passes is an estimate
 * Ignored: what is lost in accuracy; kernels that compress slow the backward as if they had the GPU alone
 */
#include <math.h>

#include "costmodel/memory_bound.h"
#include "costmodel/states.h"
#include "step/fill.h"

#define BLOCK       256.0
#define INDEX_BYTES 4.0
#define FP32_BYTES  4.0

/* Bytes of an element on the wire, of all elements of the gradient. */
double step_payload_bytes(const Spec *spec)
{
    const double wire = cost_gradient_wire_bytes(spec);
    switch (spec->parallel.compression.kind) {
    case SPEC_COMPRESSION_TOPK:
        return spec->parallel.compression.fraction * (wire + INDEX_BYTES);
    case SPEC_COMPRESSION_INT8:
        return 1 + FP32_BYTES / BLOCK;
    case SPEC_COMPRESSION_FP16:
        return fmin(wire, 2);
    case SPEC_COMPRESSION_ONEBIT:
        return 1.0 / 8 + FP32_BYTES / BLOCK;
    default:
        return wire;
    }
}

static double pass_s(const Spec *spec, double bytes)
{
    return bytes > 0 ? cost_memory_bound_s(&spec->cluster.accelerator, COST_MEMORY_ELEMENTWISE, bytes) : 0;
}

double step_select_s(const Spec *spec, double count)
{
    const SpecCompression *compression = &spec->parallel.compression;
    const double wire = cost_gradient_wire_bytes(spec), payload = step_payload_bytes(spec);
    const double residual = compression->error_feedback ? 2 * FP32_BYTES : 0;
    switch (compression->kind) {
    case SPEC_COMPRESSION_TOPK:
        return pass_s(spec, count * (3 * wire + wire + payload + residual));
    case SPEC_COMPRESSION_INT8:
    case SPEC_COMPRESSION_ONEBIT:
        return pass_s(spec, count * (2 * wire + payload + residual));
    case SPEC_COMPRESSION_FP16:
        return wire > 2 ? pass_s(spec, count * (wire + 2 + residual)) : 0;
    default:
        return 0;
    }
}

double step_restore_s(const Spec *spec, double count, int ranks)
{
    const double wire = cost_gradient_wire_bytes(spec), payload = step_payload_bytes(spec);
    switch (spec->parallel.compression.kind) {
    case SPEC_COMPRESSION_TOPK: /* cleared, then every list is added */
        return pass_s(spec,
                      count * (wire + ranks * (payload + 2 * wire * spec->parallel.compression.fraction)));
    case SPEC_COMPRESSION_INT8:
    case SPEC_COMPRESSION_ONEBIT: /* the own part of all ranks summed and compressed; the whole widened */
        return pass_s(spec, count * (payload + payload / ranks)) + pass_s(spec, count * (payload + wire));
    case SPEC_COMPRESSION_FP16:
        return wire > 2 ? pass_s(spec, count * (wire + 2)) : 0;
    default:
        return 0;
    }
}

static SimWork collective(const Spec *spec, CostCollectiveOp op, double bytes)
{
    return step_collective(
        spec, &(CostCollective){.op = op, .bytes = bytes, .group = cost_group(spec, COST_RANKS_REPLICAS)},
        SIM_PART_DATA_COMM);
}

SimWork step_compressed_reduce(const Spec *spec, bool scatter, double count)
{
    const int ranks = cost_group_ranks(spec, COST_RANKS_REPLICAS);
    const double bytes = count * step_payload_bytes(spec);
    if (spec->parallel.compression.kind == SPEC_COMPRESSION_FP16) {
        return collective(spec, scatter ? COST_REDUCE_SCATTER : COST_ALL_REDUCE, bytes);
    }
    if (spec->parallel.compression.kind == SPEC_COMPRESSION_TOPK) {
        return collective(spec, COST_ALL_GATHER, ranks * bytes);
    }
    SimWork work = collective(spec, COST_ALL_TO_ALL, bytes);
    if (!scatter) {
        const SimWork back = collective(spec, COST_ALL_GATHER, bytes);
        step_add_work(&work, &back);
    }
    return work;
}

static double compressed_s(const Spec *spec, double count)
{
    const SimWork work = step_compressed_reduce(spec, false, count);
    const int ranks = cost_group_ranks(spec, COST_RANKS_REPLICAS);
    return (double)sim_work_duration_ps(&work) * 1e-12 + step_select_s(spec, count) +
           step_restore_s(spec, count, ranks);
}

/* The fraction at which top-k takes as long as the dense all-reduce; 0: none that small. */
static double break_even_fraction(const Spec *spec, double count, double dense_s)
{
    Spec at = *spec;
    double low = 1e-9, high = 1;
    at.parallel.compression.fraction = low;
    if (compressed_s(&at, count) >= dense_s) {
        return 0;
    }
    for (int i = 0; i < 60; i++) {
        at.parallel.compression.fraction = sqrt(low * high);
        if (compressed_s(&at, count) < dense_s) {
            low = at.parallel.compression.fraction;
        } else {
            high = at.parallel.compression.fraction;
        }
    }
    return low;
}

void step_fill_compression(const Spec *spec, double count, SimCompression *out)
{
    const SimWork dense = collective(spec, COST_ALL_REDUCE, count * cost_gradient_wire_bytes(spec));
    const int ranks = cost_group_ranks(spec, COST_RANKS_REPLICAS);
    *out = (SimCompression){.dense_bytes = count * cost_gradient_wire_bytes(spec),
                            .payload_bytes = count * step_payload_bytes(spec),
                            .select_s = step_select_s(spec, count),
                            .restore_s = step_restore_s(spec, count, ranks),
                            .dense_s = (double)sim_work_duration_ps(&dense) * 1e-12,
                            .compressed_s = compressed_s(spec, count)};
    out->residual_bytes = spec->parallel.compression.error_feedback ? FP32_BYTES * count : 0;
    if (spec->parallel.compression.kind == SPEC_COMPRESSION_TOPK) {
        out->break_even_frac = break_even_fraction(spec, count, out->dense_s);
        out->volume_break_even_frac = /* (n - 1) f (w + 4) = 2 (n - 1)/n w */
            2 * cost_gradient_wire_bytes(spec) / (ranks * (cost_gradient_wire_bytes(spec) + INDEX_BYTES));
    }
}
