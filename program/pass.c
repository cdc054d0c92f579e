/* program/pass.c - forwards and backwards on the compute stream, and the messages between stages.
 *
 * A pass is one op of its stage's summed work unless data-parallel communication starts or arrives inside
 * it; then it is one op a segment, backwards in reverse. A message of no duration is left out: the receiver
 * waits for the sender's op itself.
 */
#include "program/emit.h"
#include "program/measured.h"
#include "program/works.h"

static SimTag tag_of(SimPass pass)
{
    static const SimTag TAGS[] = {
        [SIM_PASS_FORWARD] = SIM_TAG_FORWARD,
        [SIM_PASS_BACKWARD] = SIM_TAG_BACKWARD,
        [SIM_PASS_BACKWARD_INPUT] = SIM_TAG_BACKWARD_INPUT,
        [SIM_PASS_BACKWARD_WEIGHT] = SIM_TAG_BACKWARD_WEIGHT,
        [SIM_PASS_FORWARD_BACKWARD] = SIM_TAG_FORWARD_BACKWARD,
    };
    return TAGS[pass];
}

static inline Direction direction_of(SimPass pass)
{
    return pass == SIM_PASS_FORWARD ? ALONG_MODEL : AGAINST_MODEL;
}

/* An op (or SIM_ONLY_WAITS) behind the neighbour's result; on the same rank the order itself guarantees that. Where the
 * neighbour is not written yet the wait says for which micro-batch it is, and which wait of the stage was before it. */
static inline int32_t emit_behind_input(RankBuilder *rb, const Pass *pass, int32_t op, int32_t microbatch)
{
    const Builder *b = rb->builder;
    const Direction direction = direction_of(pass->pass);
    const Chunk *chunk = &rb->chunks[pass->chunk];
    const int producer = chunk->producer[direction];
    SimInstr instr = {.op = op, .microbatch = microbatch};
    if (pass->pass == SIM_PASS_BACKWARD_WEIGHT || producer == SIM_NONE)
        return op == SIM_ONLY_WAITS ? SIM_NONE : sim_emit(rb, SIM_STREAM_COMPUTE, &instr);
    const StageEnd *from = &b->ends[direction][producer];
    const int32_t ready = from->ready[pass->microbatch];
    if (ready != SIM_NONE) {
        instr.wait_on = from->ready_on;
        instr.wait_count = ready + 1;
        return sim_emit(rb, SIM_STREAM_COMPUTE, &instr);
    }
    int32_t *unresolved = &b->ends[direction][chunk->stage_index].unresolved;
    instr.wait_on = pass->microbatch;
    instr.wait_count = *unresolved + 1;
    const int32_t index = sim_emit(rb, SIM_STREAM_COMPUTE, &instr);
    *unresolved = index + 1;
    return index;
}

/* The last op of a pass was instruction `index`: its result is there, and leaves for the neighbour. */
static inline void pass_on_result(RankBuilder *rb, const Pass *pass, int32_t index)
{
    if (pass->pass == SIM_PASS_BACKWARD_WEIGHT)
        return;
    const Chunk *chunk = &rb->chunks[pass->chunk];
    const Direction direction = direction_of(pass->pass);
    int32_t *ready = &rb->builder->ends[direction][chunk->stage_index].ready[pass->microbatch];
    *ready = index;
    if (chunk->send_op[direction] == SIM_NONE)
        return;
    const SimStream stream = sim_send_stream(direction);
    rb->waited[stream][SIM_STREAM_COMPUTE] = index;
    *ready = sim_emit(rb, stream,
                      &(SimInstr){.op = rb->builder->plan->measured == NULL
                                            ? chunk->send_op[direction]
                                            : sim_measured_send(rb, chunk, direction, pass->microbatch),
                                  .wait_on = sim_wait_on(SIM_NONE, SIM_STREAM_COMPUTE),
                                  .wait_count = index + 1,
                                  .microbatch = pass->microbatch});
    if (rb->builder->plan->p2p_blocking)
        sim_emit_wait(rb, SIM_STREAM_COMPUTE, stream, *ready);
}

static int32_t compute_op(RankBuilder *rb, SimPass pass, int32_t work, int32_t mem, int stage)
{
    return sim_intern_op(rb->builder, &(SimOp){.kind = rb->together ? SIM_COLLECTIVE : SIM_OP,
                                               .tag = (uint8_t)tag_of(pass),
                                               .group = GROUP_MODEL,
                                               .work = work,
                                               .mem = mem,
                                               .stage = stage});
}

static int32_t emit_compute(RankBuilder *rb, SimPass pass, int32_t work, int32_t mem, int stage,
                            int32_t microbatch)
{
    return sim_emit_row(rb, SIM_STREAM_COMPUTE, compute_op(rb, pass, work, mem, stage), microbatch);
}

/* The unreduced gradient of a segment is there from the first op that adds to it until its reduction, or,
 * when nothing reduces it, until the end of the op after which it would be reduced. */
static void count_gradient(const RankBuilder *rb, Chunk *chunk, int i, const Pass *pass, SimMemDelta *mem)
{
    int64_t bytes = chunk->stage->segments[i].unsharded_grad_bytes;
    if (bytes == 0 || !sim_makes_weight_gradient(pass->pass))
        return;
    if (!chunk->grad_alive[i])
        mem->start_bytes[SIM_MEM_GRADIENTS] += bytes;
    chunk->grad_alive[i] = true;
    bool last = rb->builder->plan->reduce_each_microbatch || pass->position == chunk->last_grad;
    if (last && sim_work_duration_ps(&chunk->stage->segments[i].grad_reduce) == 0) {
        mem->end_bytes[SIM_MEM_GRADIENTS] -= bytes;
        chunk->grad_alive[i] = false;
    }
}

static bool moves_gradient(const Chunk *chunk, SimPass pass)
{
    for (int i = 0; sim_makes_weight_gradient(pass) && i < chunk->stage->segment_count; i++) {
        if (chunk->stage->segments[i].unsharded_grad_bytes > 0)
            return true;
    }
    return false;
}

static int32_t stage_mem(RankBuilder *rb, Chunk *chunk, const Pass *pass)
{
    Builder *b = rb->builder;
    if (!chunk->plain && moves_gradient(chunk, pass->pass)) {
        SimMemDelta mem = sim_stage_mem(chunk->stage, pass->pass);
        for (int i = 0; i < chunk->stage->segment_count; i++)
            count_gradient(rb, chunk, i, pass, &mem);
        return sim_intern_mem(b, &mem);
    }
    int32_t *cached = &b->caches[chunk->stage_index].mem[pass->pass];
    if (*cached == SIM_NONE) {
        SimMemDelta mem = sim_stage_mem(chunk->stage, pass->pass);
        *cached = sim_intern_mem(b, &mem);
    }
    return *cached;
}

/* ... as long as it was measured with this micro-batch. */
static G_GNUC_NO_INLINE int32_t measured_op(RankBuilder *rb, Chunk *chunk, const Pass *pass)
{
    Builder *b = rb->builder;
    const int32_t predicted = sim_stage_work(b, chunk->stage_index, pass->pass);
    SimWork work = g_array_index(b->works, SimWork, predicted);
    sim_measured_pass(b, chunk, pass, 0, &work);
    return compute_op(rb, pass->pass, sim_intern_work(b, SIM_STREAM_COMPUTE, &work),
                      stage_mem(rb, chunk, pass), chunk->stage_index);
}

/* The pass over the whole stage. */
static inline int32_t whole_op(RankBuilder *rb, Chunk *chunk, const Pass *pass)
{
    Builder *b = rb->builder;
    int32_t *cached = &b->caches[chunk->stage_index].op[pass->pass];
    if (b->plan->measured != NULL)
        return measured_op(rb, chunk, pass);
    if (chunk->plain && *cached != SIM_NONE)
        return *cached;
    *cached = compute_op(rb, pass->pass, sim_stage_work(b, chunk->stage_index, pass->pass),
                         stage_mem(rb, chunk, pass), chunk->stage_index);
    return *cached;
}

/* The pass leaves the LM head's weight gradient for later. */
static bool leaves_head(const RankBuilder *rb, const Chunk *chunk, const Pass *pass)
{
    const Builder *b = rb->builder;
    return chunk->stage_index == b->stages - 1 && pass->pass == SIM_PASS_BACKWARD &&
           pass->microbatch < b->plan->deferred_heads;
}

/* The segment whose reduction carries the LM head's gradient: the last stage's last bucket. */
static int head_bucket(const Chunk *chunk)
{
    int i = chunk->stage->segment_count - 1;
    while (i > 0 && sim_work_duration_ps(&chunk->stage->segments[i].grad_reduce) == 0)
        i--;
    return i;
}

static void leave_head(const SimPlan *plan, SimWork *work, SimMemDelta *mem)
{
    for (int part = 0; part < SIM_PART_COUNT; part++)
        work->part_ps[part] -= plan->head_left_out.part_ps[part];
    mem->end_bytes[SIM_MEM_ACTIVATIONS] += plan->head_held_bytes;
}

/* At most two unreduced segments of sharded gradients, or chunks where these are reduced as a whole: who reduces each
 * micro-batch waits for the one before the last. Who reduces once keeps sums of the whole stage for the micro-batches before,
 * and with a single one nobody waits either: pipelines reduce what a backward has passed on.
 * Source: FSDP2 (reduce_scatter_state), DeepSpeed (reduce_ipg_grads), torch/distributed/pipelining/stage.py
 * (backward_maybe_with_nosync) */
static bool waits_for_room(const RankBuilder *rb, const Chunk *chunk, int i, const Pass *pass, bool reduce)
{
    const SimPlan *plan = rb->builder->plan;
    const bool begins = sim_makes_weight_gradient(pass->pass) && !chunk->grad_alive[i];
    const bool reduced = plan->whole_chunks ? begins && plan->overlap_grad_reduce : reduce;
    const bool passing =
        plan->zero == 3 || plan->reduce_each_microbatch || plan->whole_chunks || plan->shape.ranks == 1;
    return reduced && passing && (plan->zero == 3 || begins) &&
           chunk->stage->segments[i].unsharded_grad_bytes > 0 && rb->reduced[0] != SIM_NONE;
}

static int32_t emit_segment(RankBuilder *rb, Chunk *chunk, int i, const Pass *pass, bool reduce)
{
    Builder *b = rb->builder;
    const SimSegment *segment = &chunk->stage->segments[i];
    SimMemDelta mem = sim_segment_mem(segment, pass->pass);
    SimWork work = sim_segment_work(segment, pass->pass);
    if (b->plan->measured != NULL)
        sim_measured_pass(b, chunk, pass, sim_measured_before(chunk, pass, i), &work);
    Use *use = NULL;
    if (chunk->sharded && sim_segment_uses_weights(segment, pass->pass)) {
        use = sim_emit_use(rb);
        if (use->give_back)
            mem.end_bytes[SIM_MEM_WEIGHTS] -= segment->gathered_param_bytes;
    } else if (pass->position == chunk->first_forward && chunk->start_gather[i] != SIM_NONE) {
        sim_emit_wait(rb, SIM_STREAM_COMPUTE, SIM_STREAM_DATA, chunk->start_gather[i]);
    }
    if (waits_for_room(rb, chunk, i, pass, reduce))
        sim_emit_wait(rb, SIM_STREAM_COMPUTE, sim_reduce_stream(b->plan), rb->reduced[0]);
    count_gradient(rb, chunk, i, pass, &mem);
    sim_offload_before(rb, chunk, i, pass, &mem);
    sim_update_before(rb, chunk, i, pass, &mem, &work);
    WindowUse *window = sim_window_use(rb, chunk, i, pass->pass, &mem);
    if (i == chunk->stage->segment_count - 1 && leaves_head(rb, chunk, pass))
        leave_head(b->plan, &work, &mem);
    int32_t index = emit_compute(rb, pass->pass, sim_intern_work(b, SIM_STREAM_COMPUTE, &work),
                                 sim_intern_mem(b, &mem), chunk->stage_index, pass->microbatch);
    sim_offload_after(rb, chunk, i, pass, index);
    sim_update_after(rb, index);
    if (use != NULL)
        use->compute_index = index;
    if (window != NULL)
        window->compute_index = index;
    const bool waits_for_head =
        b->plan->deferred_heads > 0 && chunk->stage_index == b->stages - 1 && i == head_bucket(chunk);
    if (reduce && !waits_for_head)
        sim_emit_reduce(rb, chunk, i, pass->microbatch);
    if (sim_makes_weight_gradient(pass->pass) && !waits_for_head)
        sim_update_gradient(rb, chunk, i, pass->position, pass->microbatch);
    return index;
}

/* Nothing starts or arrives inside the pass. */
static inline bool in_one_piece(const RankBuilder *rb, const Chunk *chunk, const Pass *pass)
{
    if (chunk->plain && pass->position != chunk->first_forward && pass->position != chunk->last_grad)
        return true;
    const bool gathered = pass->position == chunk->first_forward && chunk->gathered_at_start;
    const bool offloads = chunk->stage->offloaded > 0 && pass->pass != SIM_PASS_BACKWARD_WEIGHT;
    const bool leaves = leaves_head(rb, chunk, pass) || sim_update_splits(rb, chunk, pass);
    return !gathered && !sim_reduces_after(rb, chunk, pass) && !offloads && !leaves &&
           !(chunk->sharded && sim_pass_uses_weights(pass->pass));
}

static G_GNUC_NO_INLINE int32_t emit_segments(RankBuilder *rb, Chunk *chunk, const Pass *pass)
{
    const int segments = chunk->stage->segment_count;
    int32_t index = SIM_NONE;
    emit_behind_input(rb, pass, SIM_ONLY_WAITS, SIM_NONE);
    sim_emit_gathers_on_use(rb, chunk, pass->position);
    const bool reduce = sim_reduces_after(rb, chunk, pass);
    for (int i = 0; i < segments; i++)
        index = emit_segment(rb, chunk, pass->pass == SIM_PASS_FORWARD ? i : segments - 1 - i, pass, reduce);
    return index;
}

static inline void emit_pass(RankBuilder *rb, const Pass *pass)
{
    Chunk *chunk = &rb->chunks[pass->chunk];
    const int32_t index = in_one_piece(rb, chunk, pass)
                              ? emit_behind_input(rb, pass, whole_op(rb, chunk, pass), pass->microbatch)
                              : emit_segments(rb, chunk, pass);
    pass_on_result(rb, pass, index);
}

/* Forward of one chunk and backward of another as one op; both results are there at its end. */
static void emit_pair(RankBuilder *rb, const Pass *forward, const Pass *backward)
{
    Builder *b = rb->builder;
    Chunk *ahead = &rb->chunks[forward->chunk], *back = &rb->chunks[backward->chunk];
    emit_behind_input(rb, forward, SIM_ONLY_WAITS, SIM_NONE);
    emit_behind_input(rb, backward, SIM_ONLY_WAITS, SIM_NONE);
    sim_emit_gathers_on_use(rb, ahead, forward->position);
    for (int i = 0; forward->position == ahead->first_forward && i < ahead->stage->segment_count; i++) {
        if (ahead->start_gather[i] != SIM_NONE)
            sim_emit_wait(rb, SIM_STREAM_COMPUTE, SIM_STREAM_DATA, ahead->start_gather[i]);
    }
    SimMemDelta mem = sim_stage_mem(ahead->stage, SIM_PASS_FORWARD);
    SimMemDelta other = sim_stage_mem(back->stage, SIM_PASS_BACKWARD);
    for (int i = 0; i < back->stage->segment_count; i++)
        count_gradient(rb, back, i, backward, &other);
    for (int kind = 0; kind < SIM_MAX_MEMS; kind++) {
        mem.start_bytes[kind] += other.start_bytes[kind];
        mem.end_bytes[kind] += other.end_bytes[kind];
    }
    int32_t work = sim_stage_work(b, ahead->stage_index, SIM_PASS_FORWARD_BACKWARD);
    int32_t index = emit_compute(rb, SIM_PASS_FORWARD_BACKWARD, work, sim_intern_mem(b, &mem),
                                 ahead->stage_index, forward->microbatch);
    pass_on_result(rb, forward, index);
    pass_on_result(rb, backward, index);
    if (sim_reduces_after(rb, back, backward)) {
        for (int i = back->stage->segment_count - 1; i >= 0; i--)
            sim_emit_reduce(rb, back, i, backward->microbatch);
    }
}

/* Weights or activations that come and go by segment need the two passes apart. */
static bool overlaps(const RankBuilder *rb, const Chunk *ahead, const Chunk *back)
{
    return sim_work_duration_ps(&ahead->stage->overlapped_pair) > 0 && !ahead->sharded && !back->sharded &&
           ahead->stage->offloaded == 0 && back->stage->offloaded == 0 && !rb->builder->plan->offload.on;
}

static G_GNUC_NO_INLINE void emit_two_passes(RankBuilder *rb, int64_t position, const SimPassOp *op)
{
    const Pass forward = {.pass = SIM_PASS_FORWARD,
                          .position = position,
                          .chunk = op->chunk,
                          .microbatch = op->microbatch},
               backward = {.pass = SIM_PASS_BACKWARD,
                           .position = position,
                           .chunk = op->chunk2,
                           .microbatch = op->microbatch2};
    if (overlaps(rb, &rb->chunks[op->chunk], &rb->chunks[op->chunk2])) {
        emit_pair(rb, &forward, &backward);
    } else {
        emit_pass(rb, &forward);
        emit_pass(rb, &backward);
    }
}

void sim_emit_passes(RankBuilder *rb)
{
    const SimOrder *order = rb->order;
    for (int64_t i = 0; i < order->count; i++) {
        const SimPassOp *op = &order->ops[i];
        if (op->pass == SIM_PASS_FORWARD_BACKWARD)
            emit_two_passes(rb, i, op);
        else
            emit_pass(rb, &(Pass){.pass = (SimPass)op->pass,
                                  .position = i,
                                  .chunk = op->chunk,
                                  .microbatch = op->microbatch});
    }
}

void sim_emit_deferred_head(RankBuilder *rb)
{
    const Builder *b = rb->builder;
    const SimPlan *plan = b->plan;
    Chunk *chunk = &rb->chunks[b->chunks - 1];
    if (plan->deferred_heads == 0 || chunk->stage_index != b->stages - 1)
        return;
    SimWork work = plan->head_later;
    sim_work_repeat(&work, plan->deferred_heads);
    SimMemDelta mem = {0};
    mem.end_bytes[SIM_MEM_ACTIVATIONS] = -plan->deferred_heads * plan->head_held_bytes;
    emit_compute(rb, SIM_PASS_BACKWARD_WEIGHT, sim_intern_work(rb->builder, SIM_STREAM_COMPUTE, &work),
                 sim_intern_mem(rb->builder, &mem), chunk->stage_index, SIM_NONE);
    if (plan->overlap_grad_reduce && !plan->reduce_each_microbatch)
        sim_emit_reduce(rb, chunk, head_bucket(chunk), SIM_NONE);
    sim_update_gradient(rb, chunk, head_bucket(chunk), chunk->last_grad, 0);
}
