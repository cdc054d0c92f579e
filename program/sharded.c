/* program/sharded.c - ZeRO-3: weights are gathered before a segment uses them and given back after.
 *
 * The uses of a rank, in the order of its compute, are listed first. The gather of use u may start once use
 * u - 1 - prefetch_units has run, so that prefetch_units + 1 gathered segments exist at most: with one unit
 * ahead, one in use and one arriving (FSDP). The last segment of a forward is kept when its backward is next.
 *
 * Where all micro-batches pass a chunk before another one is turned to (SIM_TRAIT_WHOLE_CHUNKS), its weights stay from
 * the first of them to the last: what is ahead is a chunk then, and two are there at most.
 *
 *   forward of L equal units:  T = g + (L - 1) max(f, g) + f
 *   backward, own queues:      T = b + (L - 1) max(b, g, r) + r
 * g gather, r reduce-scatter, f and b compute. Source: PyTorch FSDP, [LamyPoirier2022]     Tested: unit/program/test_program_sharded.c, test_sharding.c
 */
#include "program/emit.h"
#include "program/works.h"

bool sim_pass_uses_weights(SimPass pass)
{
    return pass != SIM_PASS_BACKWARD_WEIGHT;
}

/* What the stage's last segment brings along is there from the forward on. */
bool sim_segment_uses_weights(const SimSegment *segment, SimPass pass)
{
    return sim_pass_uses_weights(pass) && (pass == SIM_PASS_FORWARD || !segment->stops || segment->root);
}

static void list_uses(RankBuilder *rb, int chunk_index, SimPass pass)
{
    const Chunk *chunk = &rb->chunks[chunk_index];
    if (!chunk->sharded || !sim_pass_uses_weights(pass))
        return;
    int segments = chunk->stage->segment_count;
    for (int i = 0; i < segments; i++) {
        const int segment = pass == SIM_PASS_FORWARD ? i : segments - 1 - i;
        if (sim_segment_uses_weights(&chunk->stage->segments[segment], pass))
            rb->uses[rb->use_count++] = (Use){.chunk = (int16_t)chunk_index,
                                              .segment = segment,
                                              .gather = true,
                                              .give_back = true,
                                              .compute_index = pass == SIM_PASS_FORWARD ? 0 : 1,
                                              .gather_index = SIM_NONE};
    }
}

static int64_t count_uses(const RankBuilder *rb)
{
    int64_t count = 0;
    for (int c = 0; c < rb->builder->chunks; c++) {
        if (rb->chunks[c].sharded)
            count += 2 * (int64_t)rb->chunks[c].stage->segment_count * rb->builder->microbatches;
    }
    return count;
}

/* Uses whose weights are gathered together: one each, or all that a chunk has in a row in passes of one kind. */
static void cut_runs(RankBuilder *rb)
{
    rb->run_first = ORR_ARENA_NEW(rb->builder->arena, int64_t, rb->use_count + 1);
    for (int64_t u = 0; u < rb->use_count; u++) {
        Use *use = &rb->uses[u];
        const Use *before = u > 0 ? use - 1 : NULL;
        const bool same = before != NULL && rb->builder->plan->whole_chunks && before->chunk == use->chunk &&
                          before->compute_index == use->compute_index;
        if (!same)
            rb->run_first[rb->run_count++] = u;
        use->run = rb->run_count - 1;
    }
    rb->run_first[rb->run_count] = rb->use_count;
}

/* Which uses find their weights there already, and which leave them. Until written, a use's compute_index
 * holds 1 in a backward. */
static void keep_weights(RankBuilder *rb)
{
    const SimPlan *plan = rb->builder->plan;
    /* The latest use of each segment so far. */
    Use ***latest = ORR_ARENA_NEW(rb->builder->arena, Use **, rb->builder->chunks);
    for (int c = 0; c < rb->builder->chunks; c++)
        latest[c] = ORR_ARENA_NEW(rb->builder->arena, Use *, rb->chunks[c].stage->segment_count);
    for (int64_t u = 0; u < rb->use_count; u++) {
        Use *use = &rb->uses[u], *before = latest[use->chunk][use->segment];
        const bool backward = use->compute_index == 1;
        const bool turns = before == use - 1 && backward && before->compute_index == 0;
        if (before != NULL && (turns || before->run == use->run))
            before->give_back = false;
        use->gather = before == NULL || before->give_back;
        const bool stays = !backward && rb->chunks[use->chunk].stage->segments[use->segment].root;
        use->give_back =
            !stays && (plan->reshard_after_forward || (backward && plan->reshard_after_backward));
        latest[use->chunk][use->segment] = use;
    }
    for (int c = 0; c < rb->builder->chunks; c++) {
        for (int i = 0; rb->chunks[c].sharded && i < rb->chunks[c].stage->segment_count; i++)
            latest[c][i]->give_back = true;
    }
}

void sim_plan_uses(RankBuilder *rb)
{
    int64_t count = count_uses(rb);
    if (count == 0)
        return;
    const SimOrder *order = rb->order;
    rb->uses = ORR_ARENA_NEW(rb->builder->arena, Use, count);
    for (int64_t i = 0; i < order->count; i++) {
        const SimPassOp *op = &order->ops[i];
        bool pair = op->pass == SIM_PASS_FORWARD_BACKWARD;
        list_uses(rb, op->chunk, pair ? SIM_PASS_FORWARD : (SimPass)op->pass);
        if (pair)
            list_uses(rb, op->chunk2, SIM_PASS_BACKWARD);
    }
    cut_runs(rb);
    keep_weights(rb);
}

/* The use behind which the gather of use `u` may start; below 0: at once. */
static int64_t starts_after(const RankBuilder *rb, int64_t u)
{
    const int64_t run = rb->uses[u].run, ahead = rb->builder->plan->prefetch_units;
    if (ahead == 0)
        return u - 1;
    return run < ahead ? -1 : rb->run_first[run - ahead] - 1;
}

static void emit_gather(RankBuilder *rb, int64_t u)
{
    Builder *b = rb->builder;
    const SimPlan *plan = b->plan;
    Use *use = &rb->uses[u];
    const Chunk *chunk = &rb->chunks[use->chunk];
    const SimSegment *segment = &chunk->stage->segments[use->segment];
    const bool backward = use->compute_index == 1; /* not written yet */
    const SimWork *gather =
        backward && segment->backward_gathers_apart ? &segment->backward_gather : &segment->param_gather;
    const int64_t after = starts_after(rb, u);
    SimMemDelta mem = {0};
    const int32_t fetched = sim_update_fetch(rb, u, after, backward);
    mem.start_bytes[SIM_MEM_WEIGHTS] = segment->gathered_param_bytes;
    if (fetched != SIM_NONE) {
        mem.end_bytes[SIM_MEM_WEIGHTS] = -segment->offload->weight_bytes;
        sim_emit_wait(rb, SIM_STREAM_DATA, SIM_STREAM_H2D, fetched);
    }
    if (after >= 0)
        sim_emit_wait(rb, SIM_STREAM_DATA, SIM_STREAM_COMPUTE, rb->uses[after].compute_index);
    use->gather_index = sim_emit_op(rb, SIM_STREAM_DATA,
                                    &(SimOp){.kind = plan->data * plan->context > 1 ? SIM_COLLECTIVE : SIM_OP,
                                             .tag = SIM_TAG_PARAM_GATHER,
                                             .group = GROUP_GATHER,
                                             .work = sim_intern_work(b, SIM_STREAM_DATA, gather),
                                             .mem = sim_intern_mem(b, &mem),
                                             .stage = chunk->stage_index},
                                    SIM_NONE);
}

Use *sim_emit_use(RankBuilder *rb)
{
    int64_t u = rb->next_use++;
    g_assert(u < rb->use_count);
    Use *use = &rb->uses[u];
    const int64_t ahead = rb->builder->plan->prefetch_units;
    const int64_t until = ahead == 0 ? u + 1 : rb->run_first[MIN(use->run + ahead + 1, rb->run_count)];
    for (; rb->next_gather < until; rb->next_gather++) {
        if (rb->uses[rb->next_gather].gather)
            emit_gather(rb, rb->next_gather);
    }
    if (use->gather)
        sim_emit_wait(rb, SIM_STREAM_COMPUTE, SIM_STREAM_DATA, use->gather_index);
    return use;
}
