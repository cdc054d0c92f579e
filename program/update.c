/* program/update.c - gradients leave for the host, the host updates, weights come back.
 *
 * A piece's gradient is copied out behind its reduction (or, where nothing reduces it, its backward); at most two pieces wait
 * for the link. The order says when the host updates: behind the last copy and the norm, tile by tile; each tile at once;
 * beside the next step; or at the start of a step, whose forwards go on with what has arrived.
 *
 *   barrier    T = F + B + d + max(U + h, u + H)     layerwise  T = F + B + d + u + h     delayed  T = max(F + B, D, U, H)
 * F, B passes, D, U, H all copies out, updates, copies in, d, u, h those of one piece, for d, u, h of at most a piece's
 * backward.     Source: [Ren2021], [SuperOffload]     Tested: unit/step/test_offload_order.c
 */
#include "program/emit.h"
#include "program/works.h"

#include <string.h>

static bool some(const SimWork *work)
{
    return sim_work_duration_ps(work) > 0;
}

static const SimOffload *offload_of(const Chunk *chunk, int segment)
{
    return chunk->stage->segments[segment].offload;
}

void sim_update_init(const Builder *b, Chunk *chunk)
{
    const int count = chunk->stage->segment_count;
    int32_t **const lists[] = {&chunk->grad_left, &chunk->weight_in, &chunk->updated, &chunk->states_read,
                               &chunk->states_written};
    for (size_t l = 0; l < G_N_ELEMENTS(lists); l++) {
        *lists[l] = ORR_ARENA_NEW(b->arena, int32_t, count);
        memset(*lists[l], 0xff, sizeof(int32_t) * (size_t)count);
    }
}

static int32_t emit(RankBuilder *rb, SimStream stream, SimTag tag, const SimWork *work,
                    const SimMemDelta *mem, const Chunk *chunk, int32_t microbatch)
{
    return sim_emit_op(rb, stream,
                       &(SimOp){.kind = SIM_OP,
                                .tag = (uint8_t)tag,
                                .work = sim_intern_work(rb->builder, stream, work),
                                .mem = mem != NULL ? sim_intern_mem(rb->builder, mem) : SIM_NONE,
                                .stage = chunk->stage_index},
                       microbatch);
}

static void wait_if(RankBuilder *rb, SimStream stream, SimStream other, int32_t index)
{
    if (index != SIM_NONE)
        sim_emit_wait(rb, stream, other, index);
}

/* The host has buffers of three tiles at most: one that comes, one at work, one that goes. With none beside another:
 *   read 1, update 1, write 1, read 2 ...      reads beside: read 2 runs with update 1      writes beside: write 1 with update 2
 * Source: [DeepSpeedAio] partitioned_optimizer_swapper.py, pipelined_optimizer_swapper.py */
static void read_states(RankBuilder *rb, Chunk *chunk, int i)
{
    const SimOffloadOrder *order = &rb->builder->plan->offload;
    const int before = order->reads_beside ? 0 : 1; /* the last update but one, or the last */
    wait_if(rb, SIM_STREAM_NVME_READ, SIM_STREAM_HOST, rb->hosts[before]);
    if (!order->writes_beside)
        wait_if(rb, SIM_STREAM_NVME_READ, SIM_STREAM_NVME_WRITE, rb->writes[before]);
    chunk->states_read[i] = emit(rb, SIM_STREAM_NVME_READ, SIM_TAG_OFFLOAD, &offload_of(chunk, i)->state_in,
                                 NULL, chunk, SIM_NONE);
    sim_emit_wait(rb, SIM_STREAM_HOST, SIM_STREAM_NVME_READ, chunk->states_read[i]);
    wait_if(rb, SIM_STREAM_HOST, SIM_STREAM_NVME_WRITE, rb->writes[order->writes_beside ? 0 : 1]);
}

/* The host updates a piece, with its states from the disks and back, and the GPU gets the new weights. */
static void update_piece(RankBuilder *rb, Chunk *chunk, int i)
{
    const SimOffload *offload = offload_of(chunk, i);
    if (offload == NULL || !some(&offload->update))
        return;
    if (some(&offload->state_in))
        read_states(rb, chunk, i);
    chunk->updated[i] = emit(rb, SIM_STREAM_HOST, SIM_TAG_OPTIMIZER, &offload->update, NULL, chunk, SIM_NONE);
    rb->hosts[0] = rb->hosts[1];
    rb->hosts[1] = chunk->updated[i];
    if (some(&offload->state_out)) {
        sim_emit_wait(rb, SIM_STREAM_NVME_WRITE, SIM_STREAM_HOST, chunk->updated[i]);
        rb->writes[0] = rb->writes[1];
        rb->writes[1] = chunk->states_written[i] =
            emit(rb, SIM_STREAM_NVME_WRITE, SIM_TAG_OFFLOAD, &offload->state_out, NULL, chunk, SIM_NONE);
    }
}

static void weight_in(RankBuilder *rb, Chunk *chunk, int i)
{
    const SimOffload *offload = offload_of(chunk, i);
    if (offload == NULL || !some(&offload->weight_in) || chunk->weight_in[i] != SIM_NONE)
        return;
    if (chunk->updated[i] != SIM_NONE)
        sim_emit_wait(rb, SIM_STREAM_H2D, SIM_STREAM_HOST, chunk->updated[i]);
    chunk->weight_in[i] =
        emit(rb, SIM_STREAM_H2D, SIM_TAG_OFFLOAD, &offload->weight_in, NULL, chunk, SIM_NONE);
}

static void scale_piece(RankBuilder *rb, const Chunk *chunk, int i)
{
    const SimOffload *offload = offload_of(chunk, i);
    if (offload != NULL && some(&offload->scale))
        emit(rb, SIM_STREAM_HOST, SIM_TAG_OPTIMIZER, &offload->scale, NULL, chunk, SIM_NONE);
}

static void update_and_return(RankBuilder *rb, Chunk *chunk, int i)
{
    const SimOffloadOrder *order = &rb->builder->plan->offload;
    update_piece(rb, chunk, i);
    if (order->update != SIM_UPDATE_FIRST)
        weight_in(rb, chunk, i);
    if (order->one_at_a_time)
        wait_if(rb, SIM_STREAM_HOST, SIM_STREAM_H2D, chunk->weight_in[i]);
}

static void update_all(RankBuilder *rb)
{
    for (int c = 0; c < rb->builder->chunks; c++) {
        Chunk *chunk = &rb->chunks[c];
        for (int i = 0; i < chunk->stage->segment_count; i++)
            scale_piece(rb, chunk, i);
    }
    for (int c = 0; c < rb->builder->chunks; c++) {
        for (int i = 0; i < rb->chunks[c].stage->segment_count; i++)
            update_and_return(rb, &rb->chunks[c], i);
    }
}

/* Each piece behind its own copy, in the order in which they left: the last first. */
static void update_as_they_leave(RankBuilder *rb)
{
    for (int c = rb->builder->chunks - 1; c >= 0; c--) {
        Chunk *chunk = &rb->chunks[c];
        for (int i = chunk->stage->segment_count - 1; i >= 0; i--) {
            wait_if(rb, SIM_STREAM_HOST, SIM_STREAM_D2H, chunk->grad_left[i]);
            scale_piece(rb, chunk, i);
            update_and_return(rb, chunk, i);
        }
    }
}

/* Passes wait for copies, all or a part of each: none is left for the next step. */
static bool copies_stop(const Chunk *chunk, const SimOffloadOrder *order)
{
    bool some_ahead = order->passes_wait;
    for (int i = 0; i < chunk->stage->segment_count; i++)
        some_ahead |= offload_of(chunk, i) != NULL && some(&offload_of(chunk, i)->grad_ahead);
    return some_ahead;
}

/* Gradients whose copies end behind the last backward belong to the next step's start, where the host waits for them:
 * as many of the last pieces as leave the others room beside the backward, two at most, as many as have room on the GPU. */
static int spilled_pieces(const Chunk *chunk, const SimOffloadOrder *order)
{
    const int count = chunk->stage->segment_count;
    int64_t compute_ps = 0, all_ps = 0;
    for (int i = 0; i < count; i++) {
        const SimWork forward = sim_segment_work(&chunk->stage->segments[i], SIM_PASS_FORWARD);
        const SimWork backward = sim_segment_work(&chunk->stage->segments[i], SIM_PASS_BACKWARD);
        compute_ps = sim_sum(compute_ps, sim_work_duration_ps(&forward));
        all_ps = sim_sum(all_ps, sim_work_duration_ps(&backward));
    }
    const int most = copies_stop(chunk, order) ? 0 : MIN(count, 2);
    for (int spilled = 0; spilled < most; spilled++) {
        int64_t now_ps = compute_ps, link_ps = 0;
        for (int i = 0; i < spilled; i++) {
            const SimOffload *offload = offload_of(chunk, i);
            link_ps = sim_sum(link_ps, offload != NULL ? sim_work_duration_ps(&offload->grad_out) : 0);
        }
        for (int i = count - 1; i >= spilled; i--) {
            const SimOffload *offload = offload_of(chunk, i);
            const SimWork backward = sim_segment_work(&chunk->stage->segments[i], SIM_PASS_BACKWARD);
            now_ps = sim_sum(now_ps, sim_work_duration_ps(&backward));
            link_ps =
                sim_sum(MAX(link_ps, now_ps), offload != NULL ? sim_work_duration_ps(&offload->grad_out) : 0);
        }
        if (link_ps <= sim_sum(compute_ps, all_ps))
            return spilled;
    }
    return most;
}

/* Delayed: the previous step's last gradients arrive, then its update runs beside this step. They were on the GPU when
 * the step began. */
static void start_delayed(RankBuilder *rb)
{
    int32_t last = SIM_NONE;
    for (int c = 0; c < rb->builder->chunks; c++) {
        Chunk *chunk = &rb->chunks[c];
        chunk->spilled = spilled_pieces(chunk, &rb->builder->plan->offload);
        for (int i = chunk->spilled - 1; i >= 0; i--) {
            const SimOffload *offload = offload_of(chunk, i);
            if (offload == NULL || !some(&offload->grad_out))
                continue;
            SimMemDelta mem = {0};
            if (rb->builder->plan->offload.each_microbatch) {
                const bool reduced = some(&chunk->stage->segments[i].grad_reduce);
                mem.start_bytes[SIM_MEM_GRADIENTS] = reduced ? offload->grad_bytes : 0;
                mem.end_bytes[SIM_MEM_GRADIENTS] = -offload->grad_bytes;
                rb->builder->left_bytes[rb->rank] += reduced ? 0 : offload->grad_bytes;
            }
            last = emit(rb, SIM_STREAM_D2H, SIM_TAG_OFFLOAD, &offload->grad_out, &mem, chunk, SIM_NONE);
        }
    }
    if (last != SIM_NONE)
        sim_emit_wait(rb, SIM_STREAM_HOST, SIM_STREAM_D2H, last);
    update_all(rb);
}

static bool reads_directly(const Chunk *chunk, int i)
{
    const SimOffload *offload = offload_of(chunk, i);
    return offload != NULL && some(&offload->direct);
}

/* The step begins with the update of the gradients before. Weights that are read where they lie are copied behind all
 * others: their backward needs them. */
static void start_first(RankBuilder *rb)
{
    update_all(rb);
    for (int c = 0; c < rb->builder->chunks; c++) {
        Chunk *chunk = &rb->chunks[c];
        for (int i = 0; chunk->gathered_at_start && i < chunk->stage->segment_count; i++)
            weight_in(rb, chunk, i);
    }
}

void sim_update_start(RankBuilder *rb)
{
    const SimOffloadOrder *order = &rb->builder->plan->offload;
    if (order->on && order->update == SIM_UPDATE_DELAYED)
        start_delayed(rb);
    if (order->on && order->update == SIM_UPDATE_FIRST)
        start_first(rb);
}

bool sim_update_splits(const RankBuilder *rb, const Chunk *chunk, const Pass *pass)
{
    const SimOffloadOrder *order = &rb->builder->plan->offload;
    if (!order->on)
        return false;
    if (order->window > 0)
        return true;
    if (order->update == SIM_UPDATE_FIRST && pass->pass != SIM_PASS_BACKWARD_WEIGHT)
        return true;
    return sim_makes_weight_gradient(pass->pass) &&
           (order->each_microbatch || pass->position == chunk->last_grad);
}

/* The first forwards take weights as they arrive; a direct one holds the link for its time: copies wait for it. */
static void wait_for_weights(RankBuilder *rb, Chunk *chunk, int i, const Pass *pass, SimWork *work)
{
    const bool first = pass->position == chunk->first_forward;
    if (first && reads_directly(chunk, i)) {
        const SimOffload *offload = offload_of(chunk, i);
        *work = offload->direct;
        if (chunk->updated[i] != SIM_NONE)
            sim_emit_wait(rb, SIM_STREAM_COMPUTE, SIM_STREAM_HOST, chunk->updated[i]);
        if (rb->last_in != SIM_NONE)
            sim_emit_wait(rb, SIM_STREAM_COMPUTE, SIM_STREAM_H2D, rb->last_in);
        rb->directs = true;
        return;
    }
    if (chunk->weight_in[i] == SIM_NONE) {
        if (rb->direct != SIM_NONE)
            sim_emit_wait(rb, SIM_STREAM_H2D, SIM_STREAM_COMPUTE, rb->direct);
        weight_in(rb, chunk, i);
        rb->last_in = chunk->weight_in[i];
    }
    if (chunk->weight_in[i] != SIM_NONE)
        sim_emit_wait(rb, SIM_STREAM_COMPUTE, SIM_STREAM_H2D, chunk->weight_in[i]);
}

void sim_update_before(RankBuilder *rb, Chunk *chunk, int i, const Pass *pass, SimMemDelta *mem,
                       SimWork *work)
{
    const SimOffloadOrder *order = &rb->builder->plan->offload;
    const SimOffload *offload = offload_of(chunk, i);
    if (!order->on)
        return;
    if (order->update == SIM_UPDATE_FIRST && pass->pass != SIM_PASS_BACKWARD_WEIGHT)
        wait_for_weights(rb, chunk, i, pass, work);
    if (offload == NULL || !sim_makes_weight_gradient(pass->pass) || !some(&offload->grad_out))
        return;
    if (order->each_microbatch || pass->position == chunk->last_grad) {
        if (rb->left[0] != SIM_NONE && order->each_microbatch)
            sim_emit_wait(rb, SIM_STREAM_COMPUTE, SIM_STREAM_D2H, rb->left[0]);
        if (order->each_microbatch && !some(&chunk->stage->segments[i].grad_reduce))
            mem->start_bytes[SIM_MEM_GRADIENTS] += offload->grad_bytes;
    }
}

void sim_update_after(RankBuilder *rb, int32_t compute_index)
{
    if (rb->directs)
        rb->direct = compute_index;
    rb->directs = false;
}

/* Copies wait for the gradient: made, reduced, checked, and added to the sum of the micro-batches before. */
static void wait_for_gradient(RankBuilder *rb, const Chunk *chunk, const SimOffload *offload, bool reduced,
                              bool last, int32_t microbatch)
{
    const bool checked = last && some(&offload->check);
    if (checked)
        emit(rb, SIM_STREAM_COMPUTE, SIM_TAG_OFFLOAD, &offload->check, NULL, chunk, microbatch);
    if (reduced)
        sim_emit_wait(rb, SIM_STREAM_D2H, sim_reduce_stream(rb->builder->plan), rb->reduced[1]);
    if (!reduced || checked)
        sim_emit_wait(rb, SIM_STREAM_D2H, SIM_STREAM_COMPUTE, rb->last_compute);
    if (microbatch > 0 && some(&offload->sum_in)) {
        sim_emit_wait(rb, SIM_STREAM_H2D, SIM_STREAM_COMPUTE, rb->last_compute);
        const int32_t sum =
            emit(rb, SIM_STREAM_H2D, SIM_TAG_OFFLOAD, &offload->sum_in, NULL, chunk, microbatch);
        sim_emit_wait(rb, SIM_STREAM_D2H, SIM_STREAM_H2D, sum);
        if (rb->builder->plan->offload.passes_wait)
            sim_emit_wait(rb, SIM_STREAM_COMPUTE, SIM_STREAM_H2D, sum);
    }
}

/* One copy, or, of the last micro-batch, what passes wait for and then the rest. Returns the last. */
static int32_t emit_gradient(RankBuilder *rb, Chunk *chunk, int i, bool last, int32_t microbatch)
{
    const SimOffloadOrder *order = &rb->builder->plan->offload;
    const SimOffload *offload = offload_of(chunk, i);
    const bool sum = !last && some(&offload->sum_out);
    SimMemDelta before = {0}, mem = {0};
    if (order->each_microbatch) {
        const bool reduced = some(&chunk->stage->segments[i].grad_reduce);
        before.start_bytes[SIM_MEM_GRADIENTS] = reduced ? offload->grad_bytes : 0;
        mem.end_bytes[SIM_MEM_GRADIENTS] = -offload->grad_bytes;
    }
    if (!sum && some(&offload->grad_ahead)) {
        const int32_t ahead =
            emit(rb, SIM_STREAM_D2H, SIM_TAG_OFFLOAD, &offload->grad_ahead, &before, chunk, microbatch);
        sim_emit_wait(rb, SIM_STREAM_COMPUTE, SIM_STREAM_D2H, ahead);
    } else {
        mem.start_bytes[SIM_MEM_GRADIENTS] = before.start_bytes[SIM_MEM_GRADIENTS];
    }
    const int32_t index = emit(rb, SIM_STREAM_D2H, SIM_TAG_OFFLOAD,
                               sum ? &offload->sum_out : &offload->grad_out, &mem, chunk, microbatch);
    if (order->passes_wait)
        sim_emit_wait(rb, SIM_STREAM_COMPUTE, SIM_STREAM_D2H, index);
    return index;
}

void sim_update_gradient(RankBuilder *rb, Chunk *chunk, int i, int64_t position, int32_t microbatch)
{
    const SimPlan *plan = rb->builder->plan;
    const SimOffload *offload = offload_of(chunk, i);
    const bool last = position == chunk->last_grad;
    const bool reduced = some(&chunk->stage->segments[i].grad_reduce);
    if (offload == NULL || !some(&offload->grad_out) || (!last && !plan->offload.each_microbatch))
        return;
    const bool late = plan->offload.gradients_at_step ||
                      (reduced && !plan->overlap_grad_reduce && !plan->reduce_each_microbatch);
    if (late != (microbatch == SIM_NONE))
        return; /* what is reduced at the end of the step is copied behind that */
    if (last && plan->offload.update == SIM_UPDATE_DELAYED && i < chunk->spilled)
        return; /* its copy is at the start of the next step */
    wait_for_gradient(rb, chunk, offload, reduced, last, microbatch);
    const int32_t index = emit_gradient(rb, chunk, i, last, microbatch);
    rb->left[0] = rb->left[1];
    rb->left[1] = chunk->grad_left[i] = index;
    if (!last && some(&offload->accumulate)) {
        sim_emit_wait(rb, SIM_STREAM_HOST, SIM_STREAM_D2H, index);
        emit(rb, SIM_STREAM_HOST, SIM_TAG_OFFLOAD, &offload->accumulate, NULL, chunk, microbatch);
    }
    if (last && plan->offload.update == SIM_UPDATE_LAYERWISE) {
        sim_emit_wait(rb, SIM_STREAM_HOST, SIM_STREAM_D2H, index);
        update_piece(rb, chunk, i);
        if (plan->offload.window == 0) /* else fetches go first: these come at the end of the step */
            weight_in(rb, chunk, i);
    }
}

void sim_update_gradients_gone(RankBuilder *rb)
{
    const SimOffloadOrder *order = &rb->builder->plan->offload;
    const bool waits = order->update == SIM_UPDATE_BARRIER || order->update == SIM_UPDATE_FIRST;
    if (order->on && waits && !order->update_beside_copies)
        wait_if(rb, SIM_STREAM_COMPUTE, SIM_STREAM_D2H, rb->left[1]);
}

void sim_update_barrier(RankBuilder *rb)
{
    const SimOffloadOrder *order = &rb->builder->plan->offload;
    if (!order->on || order->update != SIM_UPDATE_BARRIER)
        return;
    wait_if(rb, SIM_STREAM_HOST, SIM_STREAM_COMPUTE, rb->last_compute);
    if (order->update_beside_copies) {
        update_as_they_leave(rb);
        return;
    }
    wait_if(rb, SIM_STREAM_HOST, SIM_STREAM_D2H, rb->left[1]);
    wait_if(rb, SIM_STREAM_NVME_READ, SIM_STREAM_COMPUTE, rb->last_compute);
    wait_if(rb, SIM_STREAM_NVME_READ, SIM_STREAM_D2H, rb->left[1]);
    update_all(rb);
}

/* The step ends with the last of them; in this order each wait says what it is for. */
static void wait_for_piece(RankBuilder *rb, Chunk *chunk, int i)
{
    weight_in(rb, chunk, i);
    if (rb->builder->plan->offload.update_beside_copies)
        wait_if(rb, SIM_STREAM_COMPUTE, SIM_STREAM_D2H, chunk->grad_left[i]);
    wait_if(rb, SIM_STREAM_COMPUTE, SIM_STREAM_NVME_READ, chunk->states_read[i]);
    wait_if(rb, SIM_STREAM_COMPUTE, SIM_STREAM_HOST, chunk->updated[i]);
    wait_if(rb, SIM_STREAM_COMPUTE, SIM_STREAM_NVME_WRITE, chunk->states_written[i]);
    wait_if(rb, SIM_STREAM_COMPUTE, SIM_STREAM_H2D, chunk->weight_in[i]);
}

void sim_update_end(RankBuilder *rb)
{
    const SimOffloadOrder *order = &rb->builder->plan->offload;
    const int chunks = rb->builder->chunks;
    if (!order->on || order->update == SIM_UPDATE_FIRST || order->update == SIM_UPDATE_DELAYED)
        return;
    for (int c = 0; c < chunks; c++) {
        Chunk *chunk = &rb->chunks[order->update_beside_copies ? chunks - 1 - c : c];
        const int count = chunk->stage->segment_count;
        for (int i = 0; i < count; i++)
            wait_for_piece(rb, chunk, order->update_beside_copies ? count - 1 - i : i);
    }
}

int32_t sim_update_fetch(RankBuilder *rb, int64_t u, int64_t after, bool backward)
{
    const SimPlan *plan = rb->builder->plan;
    const Use *use = &rb->uses[u];
    const Chunk *chunk = &rb->chunks[use->chunk];
    const SimOffload *offload = offload_of(chunk, use->segment);
    if (offload == NULL || !some(backward ? &offload->backward_fetch : &offload->fetch))
        return SIM_NONE;
    const SimWork *read = backward ? &offload->backward_read : &offload->read;
    const int64_t copy_after = after - plan->offload.copy_ahead;
    const int64_t read_after = after - plan->offload.read_ahead;
    SimMemDelta mem = {0};
    mem.start_bytes[SIM_MEM_WEIGHTS] = offload->weight_bytes;
    if (some(read)) {
        if (read_after >= 0)
            sim_emit_wait(rb, SIM_STREAM_NVME_READ, SIM_STREAM_COMPUTE, rb->uses[read_after].compute_index);
        const int32_t index = emit(rb, SIM_STREAM_NVME_READ, SIM_TAG_OFFLOAD, read, NULL, chunk, SIM_NONE);
        sim_emit_wait(rb, SIM_STREAM_H2D, SIM_STREAM_NVME_READ, index);
    }
    if (copy_after >= 0)
        sim_emit_wait(rb, SIM_STREAM_H2D, SIM_STREAM_COMPUTE, rb->uses[copy_after].compute_index);
    return emit(rb, SIM_STREAM_H2D, SIM_TAG_OFFLOAD, backward ? &offload->backward_fetch : &offload->fetch,
                &mem, chunk, SIM_NONE);
}
