/* program/offload.c - activations of a stage's first layers wait for their backward in the host's memory.
 *
 * Of L layers the first N leave. Layer l is copied out behind its forward and its place on the GPU is taken by layer
 * L - N + l, whose forward waits for the copy; it is fetched into the place that the backward of layer L - N + l leaves, so
 * that a micro-batch never holds more than L - N layers (one more while it is worked on). Where N is L or L - 1 the place
 * is the next layer's and little is hidden. Where copies wait they are part of the passes' own stream.
 * Source: [TransformerEngine] cpu_offload.py, DefaultOffloadSynchronizer     Tested: unit/step/test_offload.c
 */
#include "program/emit.h"
#include "program/works.h"

static SimMem kept_in(const SimStage *stage)
{
    return stage->offloaded_to_disks ? SIM_MEM_NVME : SIM_MEM_HOST;
}

static bool leaves(const SimStage *stage, int layer)
{
    return sim_work_duration_ps(&stage->segments[stage->first_layer + layer].copy_out) > 0;
}

/* The layer whose forward takes over the place of `layer`; stage->layers: what comes behind the layers. */
static int successor_of(const SimStage *stage, int layer)
{
    return MAX(stage->layers - stage->offloaded + layer, layer + 1);
}

/* The layer before whose backward `layer` is fetched. */
static int fetched_before(const SimStage *stage, int layer)
{
    return MAX(stage->layers - stage->offloaded + layer - 1, layer);
}

static int32_t emit_copy(RankBuilder *rb, SimStream stream, const Chunk *chunk, const SimWork *work,
                         const SimMemDelta *mem, int32_t microbatch)
{
    return sim_emit_op(rb, stream,
                       &(SimOp){.kind = SIM_OP,
                                .tag = SIM_TAG_OFFLOAD,
                                .work = sim_intern_work(rb->builder, stream, work),
                                .mem = sim_intern_mem(rb->builder, mem),
                                .stage = chunk->stage_index},
                       microbatch);
}

static void fetch(RankBuilder *rb, Chunk *chunk, int index, int32_t microbatch)
{
    const SimSegment *segment = &chunk->stage->segments[index];
    SimMemDelta mem = {0};
    mem.start_bytes[SIM_MEM_ACTIVATIONS] = segment->leaving_bytes;
    mem.end_bytes[kept_in(chunk->stage)] = -segment->leaving_bytes;
    if (chunk->stage->copies_wait) {
        emit_copy(rb, SIM_STREAM_COMPUTE, chunk, &segment->copy_back, &mem, microbatch);
        return;
    }
    if (rb->last_compute != SIM_NONE)
        sim_emit_wait(rb, SIM_STREAM_H2D, SIM_STREAM_COMPUTE, rb->last_compute);
    sim_emit_wait(rb, SIM_STREAM_H2D, SIM_STREAM_D2H, chunk->copied[index]);
    chunk->fetched[index] = emit_copy(rb, SIM_STREAM_H2D, chunk, &segment->copy_back, &mem, microbatch);
}

/* Layers whose copies wait leave and come back by themselves: nobody takes their place. */
static void bring_back(RankBuilder *rb, Chunk *chunk, int index, const Pass *pass)
{
    const int here = index - chunk->stage->first_layer;
    const bool backward = pass->pass != SIM_PASS_FORWARD && pass->pass != SIM_PASS_BACKWARD_WEIGHT;
    if (backward && here >= 0 && here < chunk->stage->offloaded && leaves(chunk->stage, here))
        fetch(rb, chunk, index, pass->microbatch);
}

void sim_offload_before(RankBuilder *rb, Chunk *chunk, int index, const Pass *pass, SimMemDelta *mem)
{
    const SimStage *stage = chunk->stage;
    const int here = index - stage->first_layer;
    if (stage->offloaded == 0 || pass->pass == SIM_PASS_BACKWARD_WEIGHT)
        return;
    if (stage->copies_wait) {
        bring_back(rb, chunk, index, pass);
        return;
    }
    for (int layer = stage->offloaded - 1; layer >= 0; layer--) {
        const int other = stage->first_layer + layer;
        if (!leaves(stage, layer))
            continue;
        if (pass->pass == SIM_PASS_FORWARD && successor_of(stage, layer) == here) {
            sim_emit_wait(rb, SIM_STREAM_COMPUTE, SIM_STREAM_D2H, chunk->copied[other]);
            mem->start_bytes[SIM_MEM_ACTIVATIONS] -= stage->segments[other].leaving_bytes;
        } else if (pass->pass != SIM_PASS_FORWARD && fetched_before(stage, layer) == here) {
            fetch(rb, chunk, other, pass->microbatch);
        }
    }
    if (pass->pass != SIM_PASS_FORWARD && here >= 0 && here < stage->offloaded && leaves(stage, here))
        sim_emit_wait(rb, SIM_STREAM_COMPUTE, SIM_STREAM_H2D, chunk->fetched[index]);
}

void sim_offload_after(RankBuilder *rb, Chunk *chunk, int index, const Pass *pass, int32_t compute_index)
{
    const SimStage *stage = chunk->stage;
    const int here = index - stage->first_layer;
    if (pass->pass != SIM_PASS_FORWARD || here < 0 || here >= stage->offloaded || !leaves(stage, here))
        return;
    const SimSegment *segment = &stage->segments[index];
    const bool last = stage->first_layer + successor_of(stage, here) >= stage->segment_count;
    SimMemDelta mem = {0};
    mem.start_bytes[kept_in(stage)] = segment->leaving_bytes;
    if (stage->copies_wait) {
        mem.end_bytes[SIM_MEM_ACTIVATIONS] = -segment->leaving_bytes;
        emit_copy(rb, SIM_STREAM_COMPUTE, chunk, &segment->copy_out, &mem, pass->microbatch);
        return;
    }
    mem.end_bytes[SIM_MEM_ACTIVATIONS] = last ? -segment->leaving_bytes : 0;
    sim_emit_wait(rb, SIM_STREAM_D2H, SIM_STREAM_COMPUTE, compute_index);
    chunk->copied[index] = emit_copy(rb, SIM_STREAM_D2H, chunk, &segment->copy_out, &mem, pass->microbatch);
    if (last) /* nothing of this pass comes behind */
        sim_emit_wait(rb, SIM_STREAM_COMPUTE, SIM_STREAM_D2H, chunk->copied[index]);
}
