/* program/window.c - whole layers of weights come and go: w of them are on the GPU, the others on the host.
 *
 * The uses of a rank's layers are listed in the order of its compute. A layer that is not there takes the place of the one
 * whose next use is farthest, once that one's last use has run; so a forward fetches layer i + w when layer i is done, the
 * last w layers stay for their backward, and the step ends with those on the GPU with which it began.
 *
 *   forward of L equal layers of f, copies of t:  w = 1: f + (L - 1)(t + f)     hidden from (w - 1) f >= t on, for t <= f
 * Source: [Stronghold]     Tested: unit/step/test_offload_order.c
 */
#include "program/emit.h"
#include "program/works.h"

static bool is_layer(const Chunk *chunk, int segment)
{
    return segment >= chunk->stage->first_layer && segment < chunk->stage->first_layer + chunk->stage->layers;
}

static void list_pass(RankBuilder *rb, int chunk_index, SimPass pass)
{
    const Chunk *chunk = &rb->chunks[chunk_index];
    const int count = chunk->stage->segment_count;
    for (int i = 0; i < count && pass != SIM_PASS_BACKWARD_WEIGHT; i++) {
        const int segment = pass == SIM_PASS_FORWARD ? i : count - 1 - i;
        if (is_layer(chunk, segment))
            rb->window_uses[rb->window_count++] = (WindowUse){.chunk = (int16_t)chunk_index,
                                                              .segment = segment,
                                                              .after = SIM_NONE,
                                                              .compute_index = SIM_NONE};
    }
}

static void list_uses(RankBuilder *rb)
{
    const SimOrder *order = rb->order;
    int64_t most = 0;
    for (int c = 0; c < rb->builder->chunks; c++)
        most += 2 * (int64_t)rb->chunks[c].stage->layers * rb->builder->microbatches;
    rb->window_uses = ORR_ARENA_NEW(rb->builder->arena, WindowUse, most);
    for (int64_t i = 0; i < order->count; i++) {
        const SimPassOp *op = &order->ops[i];
        const bool pair = op->pass == SIM_PASS_FORWARD_BACKWARD;
        list_pass(rb, op->chunk, pair ? SIM_PASS_FORWARD : (SimPass)op->pass);
        if (pair)
            list_pass(rb, op->chunk2, SIM_PASS_BACKWARD);
    }
}

/* [uses] the next use of the same layer, behind the last one that of the next step. */
static int64_t *next_uses(RankBuilder *rb)
{
    const Builder *b = rb->builder;
    int64_t *next = ORR_ARENA_NEW(b->arena, int64_t, rb->window_count);
    int64_t **latest = ORR_ARENA_NEW(b->arena, int64_t *, b->chunks);
    for (int c = 0; c < b->chunks; c++) {
        latest[c] = ORR_ARENA_NEW(b->arena, int64_t, rb->chunks[c].stage->segment_count);
    }
    for (int64_t u = rb->window_count - 1; u >= 0; u--)
        latest[rb->window_uses[u].chunk][rb->window_uses[u].segment] = rb->window_count + u;
    for (int64_t u = rb->window_count - 1; u >= 0; u--) {
        int64_t *place = &latest[rb->window_uses[u].chunk][rb->window_uses[u].segment];
        next[u] = *place;
        *place = u;
    }
    return next;
}

static bool same_layer(const WindowUse *a, const WindowUse *b)
{
    return a->chunk == b->chunk && a->segment == b->segment;
}

void sim_window_plan(RankBuilder *rb)
{
    const int window = rb->builder->plan->offload.window;
    if (window == 0)
        return;
    list_uses(rb);
    const int64_t *next = next_uses(rb);
    int64_t *there =
        ORR_ARENA_NEW(rb->builder->arena, int64_t, window); /* last use of each layer that is there */
    int count = 0;
    for (int64_t u = 0; u < rb->window_count; u++) {
        WindowUse *use = &rb->window_uses[u];
        int place = 0, farthest = 0;
        for (place = 0; place < count && !same_layer(&rb->window_uses[there[place]], use); place++)
            farthest = next[there[place]] > next[there[farthest]] ? place : farthest;
        if (place == count && count == window) {
            place = farthest;
            use->fetch = true;
            use->after = there[place];
            rb->window_uses[use->after].give_back = true;
        } else if (place == count) {
            count++;
        }
        there[place] = u;
    }
}

/* The weights of the use are fetched into the place of the layer that leaves. */
static void fetch(RankBuilder *rb, WindowUse *use)
{
    const Chunk *chunk = &rb->chunks[use->chunk];
    const SimSegment *segment = &chunk->stage->segments[use->segment];
    const SimOffload *offload = segment->offload;
    const WindowUse *before = &rb->window_uses[use->after];
    SimMemDelta mem = {0};
    if (offload == NULL || sim_work_duration_ps(&offload->fetch) == 0)
        return;
    if (sim_work_duration_ps(&offload->read) > 0) {
        const int32_t read =
            sim_emit_op(rb, SIM_STREAM_NVME_READ,
                        &(SimOp){.kind = SIM_OP,
                                 .tag = SIM_TAG_OFFLOAD,
                                 .work = sim_intern_work(rb->builder, SIM_STREAM_NVME_READ, &offload->read),
                                 .mem = SIM_NONE,
                                 .stage = chunk->stage_index},
                        SIM_NONE);
        sim_emit_wait(rb, SIM_STREAM_H2D, SIM_STREAM_NVME_READ, read);
    }
    mem.start_bytes[SIM_MEM_WEIGHTS] = offload->weight_bytes;
    if (before->compute_index != SIM_NONE)
        sim_emit_wait(rb, SIM_STREAM_H2D, SIM_STREAM_COMPUTE, before->compute_index);
    const int32_t index =
        sim_emit_op(rb, SIM_STREAM_H2D,
                    &(SimOp){.kind = SIM_OP,
                             .tag = SIM_TAG_OFFLOAD,
                             .work = sim_intern_work(rb->builder, SIM_STREAM_H2D, &offload->fetch),
                             .mem = sim_intern_mem(rb->builder, &mem),
                             .stage = chunk->stage_index},
                    SIM_NONE);
    sim_emit_wait(rb, SIM_STREAM_COMPUTE, SIM_STREAM_H2D, index);
}

WindowUse *sim_window_use(RankBuilder *rb, const Chunk *chunk, int segment, SimPass pass, SimMemDelta *mem)
{
    if (rb->builder->plan->offload.window == 0 || pass == SIM_PASS_BACKWARD_WEIGHT ||
        !is_layer(chunk, segment))
        return NULL;
    WindowUse *use = &rb->window_uses[rb->next_window++];
    g_assert(use->segment == segment && &rb->chunks[use->chunk] == chunk);
    if (use->fetch)
        fetch(rb, use);
    if (use->give_back)
        mem->end_bytes[SIM_MEM_WEIGHTS] -= chunk->stage->segments[segment].offload->weight_bytes;
    return use;
}
