/* program/program.c - a plan becomes instruction lists: one class a pipeline rank, written in the order of its
 * schedule. Which passes, sends, gathers and reductions there are is said in program_pass.c, program_data.c
 * and program_sharded.c. */
#include "program/emit.h"
#include "program/works.h"

#include <string.h>

/* A forward and a backward of each stage and micro-batch, an op and a message each, and where their results are. */
static void reserve_lists(const Builder *b)
{
    const size_t results = (size_t)DIRECTIONS * (size_t)b->stages * (size_t)b->microbatches;
    orr_arena_reserve(b->arena, results * (2 * sizeof(SimInstr) + sizeof(int32_t)));
}

static void builder_init(Builder *b, const SimPlan *plan, OrrArena *arena)
{
    *b = (Builder){.plan = plan,
                   .arena = arena,
                   .ranks = plan->shape.ranks,
                   .chunks = plan->shape.chunks,
                   .microbatches = plan->shape.microbatches,
                   .stages = plan->shape.ranks * plan->shape.chunks};
    b->lists = ORR_ARENA_NEW(arena, InstrList, b->ranks * SIM_STREAM_COUNT);
    b->rank_of_stage = ORR_ARENA_NEW(arena, int32_t, b->stages);
    b->chunk_of_stage = ORR_ARENA_NEW(arena, int32_t, b->stages);
    for (int stage = 0; stage < b->stages; stage++)
        sim_place_of(plan->schedule->placement, b->ranks, b->chunks, stage, &b->rank_of_stage[stage],
                     &b->chunk_of_stage[stage]);
    b->ops = g_array_new(FALSE, FALSE, sizeof(SimOp));
    b->works = g_array_new(FALSE, FALSE, sizeof(SimWork));
    b->mems = g_array_new(FALSE, FALSE, sizeof(SimMemDelta));
    b->left_bytes = ORR_ARENA_NEW(arena, int64_t, b->ranks);
    b->caches = ORR_ARENA_NEW(arena, StageCache, b->stages);
    memset(b->caches, 0xff, sizeof(StageCache) * (size_t)b->stages);
    reserve_lists(b);
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        const int64_t results = (int64_t)b->stages * b->microbatches;
        int32_t *ready = ORR_ARENA_NEW(arena, int32_t, results);
        memset(ready, 0xff, sizeof *ready * (size_t)results);
        b->ends[direction] = ORR_ARENA_NEW(arena, StageEnd, b->stages);
        for (int stage = 0; stage < b->stages; stage++)
            b->ends[direction][stage] = (StageEnd){.ready = ready + (int64_t)stage * b->microbatches};
    }
}

static bool weights_apart(const SimPlan *plan, const SimOrder *orders)
{
    for (int r = 0; r < plan->shape.ranks; r++) {
        for (int64_t i = 0; i < orders[r].count; i++) {
            if (orders[r].ops[i].pass == SIM_PASS_BACKWARD_WEIGHT)
                return true;
        }
    }
    return false;
}

static void builder_clear(Builder *b)
{
    g_array_free(b->ops, TRUE);
    g_array_free(b->works, TRUE);
    g_array_free(b->mems, TRUE);
    if (b->op_index != NULL)
        g_hash_table_destroy(b->op_index);
    if (b->work_index != NULL)
        g_hash_table_destroy(b->work_index);
    if (b->mem_index != NULL)
        g_hash_table_destroy(b->mem_index);
}

/* The stage next to `stage` in the same copy of the model, if it is another rank's; else SIM_NONE. */
static int neighbour_of(const Builder *b, int stage, int step)
{
    const int copies = b->plan->schedule->placement == SIM_PLACE_BIDIRECTIONAL ? 2 : 1;
    const int stages = b->stages / copies, within = stage % stages + step;
    const bool inside = within >= 0 && within < stages;
    return inside && b->rank_of_stage[stage + step] != b->rank_of_stage[stage] ? stage + step : SIM_NONE;
}

/* A message of no duration and no bytes is left out: the receiver waits for the op itself. */
static const SimWork *send_to(int neighbour, const SimWork *send)
{
    const bool empty =
        sim_work_duration_ps(send) == 0 && send->scale_up_bytes == 0 && send->scale_out_bytes == 0;
    return neighbour == SIM_NONE || empty ? NULL : send;
}

static int32_t send_op(Builder *b, Direction direction, const SimWork *send, int stage)
{
    const bool along = direction == ALONG_MODEL;
    return sim_intern_op(b, &(SimOp){.kind = SIM_OP,
                                     .tag = along ? SIM_TAG_SEND_FORWARD : SIM_TAG_SEND_BACKWARD,
                                     .work = sim_intern_work(b, sim_send_stream(direction), send),
                                     .mem = SIM_NONE,
                                     .stage = stage});
}

/* What leaves the chunk for its neighbours, and when it is there for them: with its message or, without one, with the op
 * itself. */
static void init_ends(RankBuilder *rb, Chunk *chunk)
{
    Builder *b = rb->builder;
    const int before = neighbour_of(b, chunk->stage_index, -1),
              after = neighbour_of(b, chunk->stage_index, 1);
    const SimWork *sends[DIRECTIONS] = {[ALONG_MODEL] = send_to(after, &chunk->stage->send_next),
                                        [AGAINST_MODEL] = send_to(before, &chunk->stage->send_prev)};
    chunk->producer[ALONG_MODEL] = before;
    chunk->producer[AGAINST_MODEL] = after;
    for (Direction d = 0; d < DIRECTIONS; d++) {
        const SimStream stream = sends[d] == NULL ? SIM_STREAM_COMPUTE : sim_send_stream(d);
        b->ends[d][chunk->stage_index].ready_on = sim_wait_on(rb->rank, (int)stream);
        chunk->send_op[d] = sends[d] == NULL ? SIM_NONE : send_op(b, d, sends[d], chunk->stage_index);
    }
}

static void chunk_init(const Builder *b, Chunk *chunk, int stage_index)
{
    const SimPlan *plan = b->plan;
    chunk->stage_index = stage_index;
    chunk->stage = &plan->stages[stage_index];
    chunk->first_forward = chunk->last_grad = SIM_NONE;
    bool gathers = false, unsharded = false;
    for (int i = 0; i < chunk->stage->segment_count; i++) {
        const SimSegment *segment = &chunk->stage->segments[i];
        chunk->reduces |= sim_work_duration_ps(&segment->grad_reduce) > 0;
        gathers |= sim_work_duration_ps(&segment->param_gather) > 0 ||
                   (plan->zero == 3 && segment->gathered_param_bytes > 0);
        unsharded |= segment->unsharded_grad_bytes > 0;
    }
    chunk->sharded = gathers && plan->zero == 3;
    const bool first = plan->offload.on && plan->offload.update == SIM_UPDATE_FIRST;
    chunk->plain = !chunk->sharded && !unsharded && chunk->stage->offloaded == 0 && !plan->offload.on &&
                   !plan->reduce_each_microbatch && plan->deferred_heads == 0;
    chunk->gathered_at_start = gathers && plan->zero < 3 && (plan->overlap_param_gather || first);
    chunk->start_gather = ORR_ARENA_NEW(b->arena, int32_t, chunk->stage->segment_count);
    chunk->grad_alive = ORR_ARENA_NEW(b->arena, bool, chunk->stage->segment_count);
    chunk->copied = ORR_ARENA_NEW(b->arena, int32_t, chunk->stage->segment_count);
    chunk->fetched = ORR_ARENA_NEW(b->arena, int32_t, chunk->stage->segment_count);
    for (int i = 0; i < chunk->stage->segment_count; i++)
        chunk->start_gather[i] = chunk->copied[i] = chunk->fetched[i] = SIM_NONE;
    sim_update_init(b, chunk);
}

/* The first forward and the last weight gradient of each chunk: near the ends of the order, from where they are looked
 * for. */
static void find_ends(RankBuilder *rb)
{
    const SimOrder *order = rb->order;
    const int chunks = rb->builder->chunks;
    int found = 0;
    for (int64_t i = 0; i < order->count && found < chunks; i++) {
        const SimPassOp *op = &order->ops[i];
        Chunk *chunk = &rb->chunks[op->chunk];
        const bool forward = op->pass == SIM_PASS_FORWARD_BACKWARD || op->pass == SIM_PASS_FORWARD;
        if (!forward || chunk->first_forward != SIM_NONE)
            continue;
        chunk->first_forward = i;
        rb->first_used[found++] = chunk;
    }
    rb->used_count = found;
    found = 0;
    for (int64_t i = order->count - 1; i >= 0 && found < chunks; i--) {
        const SimPassOp *op = &order->ops[i];
        const bool pair = op->pass == SIM_PASS_FORWARD_BACKWARD;
        Chunk *chunk = &rb->chunks[pair ? op->chunk2 : op->chunk];
        if ((!pair && !sim_makes_weight_gradient((SimPass)op->pass)) || chunk->last_grad != SIM_NONE)
            continue;
        chunk->last_grad = i;
        rb->last_graded[found++] = chunk;
    }
    rb->graded_count = found;
}

static void rank_init(RankBuilder *rb, Builder *b, int rank, const SimOrder *order)
{
    *rb = (RankBuilder){.builder = b,
                        .rank = rank,
                        .order = order,
                        .lists = &b->lists[rank * SIM_STREAM_COUNT],
                        .together = b->plan->tensor * b->plan->context > 1,
                        .last_compute = SIM_NONE,
                        .reduced = {SIM_NONE, SIM_NONE},
                        .reduced_stage = SIM_NONE,
                        .left = {SIM_NONE, SIM_NONE},
                        .hosts = {SIM_NONE, SIM_NONE},
                        .writes = {SIM_NONE, SIM_NONE},
                        .last_in = SIM_NONE,
                        .direct = SIM_NONE};
    memset(rb->waited, 0xff, sizeof rb->waited);
    rb->chunks = ORR_ARENA_NEW(b->arena, Chunk, b->chunks);
    rb->first_used = ORR_ARENA_NEW(b->arena, Chunk *, b->chunks);
    rb->last_graded = ORR_ARENA_NEW(b->arena, Chunk *, b->chunks);
    for (int c = 0; c < b->chunks; c++) {
        chunk_init(b, &rb->chunks[c],
                   sim_stage_of(b->plan->schedule->placement, b->ranks, b->chunks, rank, c));
        init_ends(rb, &rb->chunks[c]);
    }
    find_ends(rb);
}

/* Waits of a stage for results of its neighbour, now that those are written: each says of which micro-batch, and names the
 * one before it. */
static void resolve_waits(const Builder *b, int stage, Direction direction, const StageEnd *from)
{
    StageEnd *end = &b->ends[direction][stage];
    SimInstr *instrs = b->lists[b->rank_of_stage[stage] * SIM_STREAM_COUNT + SIM_STREAM_COMPUTE].instrs;
    while (end->unresolved > 0) {
        SimInstr *wait = &instrs[end->unresolved - 1];
        const int32_t index = from->ready[wait->wait_on];
        g_assert(index >= 0);
        end->unresolved = wait->wait_count - 1;
        wait->wait_on = from->ready_on;
        wait->wait_count = index + 1;
    }
}

static void write_rank(Builder *b, int rank, const SimOrder *order)
{
    RankBuilder rb;
    rank_init(&rb, b, rank, order);
    sim_plan_uses(&rb);
    sim_window_plan(&rb);
    sim_update_start(&rb);
    sim_emit_start_gathers(&rb);
    sim_emit_once(&rb, SIM_TAG_OVERHEAD, &b->plan->ranks[rank].begin);
    sim_emit_passes(&rb);
    sim_emit_step_end(&rb);
    for (int c = 0; c < b->chunks; c++) {
        const Chunk *chunk = &rb.chunks[c];
        for (Direction d = 0; d < DIRECTIONS; d++) {
            const int consumer = chunk->producer[DIRECTIONS - 1 - d];
            if (consumer != SIM_NONE)
                resolve_waits(b, consumer, d, &b->ends[d][chunk->stage_index]);
        }
    }
}

/* Rank after rank: while one is written its order and its neighbours' waits are in the cache. */
static bool write_ranks(Builder *b, GError **error)
{
    OrrArena *scratch = orr_arena_new();
    bool ok = true;
    for (int r = 0; ok && r < b->ranks; r++) {
        SimOrder own;
        orr_arena_clear(scratch);
        if (b->orders == NULL)
            b->plan->schedule->generate(&b->plan->shape, r, scratch, &own);
        const SimOrder *order = b->orders == NULL ? &own : &b->orders[r];
        ok = sim_order_check(b, r, order, scratch, error);
        if (ok)
            write_rank(b, r, order);
    }
    orr_arena_free(scratch);
    return ok;
}

static void *copy_array(OrrArena *arena, const GArray *array)
{
    size_t size = (size_t)array->len * g_array_get_element_size((GArray *)array);
    void *copy = orr_arena_alloc(arena, size);
    if (size > 0)
        memcpy(copy, array->data, size);
    return copy;
}

static void finish(const Builder *b, bool unfold, SimProgram *ret_program)
{
    const SimPlan *plan = b->plan;
    SimProgram program = {.classes = b->ranks, .replicas = 1};
    if (unfold || !sim_plan_folds(plan))
        program.replicas = plan->tensor * plan->context * plan->data;
    SimClass *classes = ORR_ARENA_NEW(b->arena, SimClass, b->ranks);
    for (int r = 0; r < b->ranks; r++) {
        for (int s = 0; s < SIM_STREAM_COUNT; s++) {
            const InstrList *list = &b->lists[r * SIM_STREAM_COUNT + s];
            classes[r].streams[s] = (SimList){.instrs = list->instrs, .count = list->count};
        }
        for (int kind = 0; kind < SIM_MAX_MEMS; kind++)
            classes[r].static_bytes[kind] = plan->ranks[r].static_bytes[kind];
        classes[r].static_bytes[SIM_MEM_GRADIENTS] += b->left_bytes[r];
    }
    program.class_list = classes;
    program.ops = copy_array(b->arena, b->ops);
    program.op_count = (int32_t)b->ops->len;
    program.works = copy_array(b->arena, b->works);
    program.work_count = b->works->len;
    program.mems = copy_array(b->arena, b->mems);
    program.mem_count = b->mems->len;
    program.skewed = b->post_validation;
    sim_program_groups(b, &program);
    sim_program_resources(plan, b->arena, &program);
    *ret_program = program;
}

bool sim_program_build(const SimPlan *plan, bool unfold, OrrArena *arena, SimProgram *ret_program,
                       GError **error)
{
    const SimSchedule *schedule = plan->schedule;
    g_assert(plan->shape.ranks > 0 && plan->shape.chunks > 0 && plan->shape.microbatches > 0);
    g_assert(plan->tensor > 0 && plan->context > 0 && plan->data > 0);
    if (schedule->fixed_chunks != 0 && plan->shape.chunks != schedule->fixed_chunks) {
        g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT,
                    "schedule \"%s\" works with %d stage(s) a pipeline rank, not %d", schedule->name,
                    schedule->fixed_chunks, plan->shape.chunks);
        return false;
    }
    if (schedule->check != NULL && !schedule->check(&plan->shape, error))
        return false;
    Builder builder;
    builder_init(&builder, plan, arena);
    if (plan->orders != NULL || plan->post_validation || schedule->generate_all != NULL ||
        schedule->generate_ranks != NULL)
        builder.orders = sim_plan_orders(plan, arena);
    builder.post_validation =
        plan->post_validation && builder.ranks > 1 && weights_apart(plan, builder.orders);
    const bool ok = write_ranks(&builder, error);
    if (ok)
        finish(&builder, unfold, ret_program);
    builder_clear(&builder);
    return ok;
}
