/* sim/program.c - a plan becomes instruction lists: one class a pipeline rank, written in the order of its
 * schedule. Which passes, sends, gathers and reductions there are is said in program_pass.c, program_data.c
 * and program_sharded.c. */
#include "sim/program_internal.h"

#include <string.h>

static GArray *list_of(const RankBuilder *rb, SimStream stream)
{
    return rb->builder->lists[rb->rank * SIM_STREAM_COUNT + (int)stream];
}

int32_t sim_emit(RankBuilder *rb, SimStream stream, const SimInstr *instr)
{
    GArray *list = list_of(rb, stream);
    g_array_append_vals(list, instr, 1);
    int32_t index = (int32_t)list->len - 1;
    if (stream == SIM_STREAM_COMPUTE && instr->kind != SIM_WAIT)
        rb->last_compute = index;
    return index;
}

void sim_emit_wait(RankBuilder *rb, SimStream stream, SimStream on, int32_t index)
{
    g_assert(index >= 0 && stream != on);
    if (index <= rb->waited[stream][on])
        return;
    rb->waited[stream][on] = index;
    sim_emit(rb, stream,
             &(SimInstr){.kind = SIM_WAIT,
                         .wait_stream = (uint8_t)on,
                         .wait_class = SIM_NONE,
                         .wait_index = index,
                         .stage = SIM_NONE,
                         .microbatch = SIM_NONE});
}

bool sim_makes_weight_gradient(SimPass pass)
{
    return pass == SIM_PASS_BACKWARD || pass == SIM_PASS_BACKWARD_WEIGHT;
}

static void builder_init(Builder *b, const SimPlan *plan, OrrArena *arena)
{
    *b = (Builder){.plan = plan,
                   .arena = arena,
                   .ranks = plan->shape.ranks,
                   .chunks = plan->shape.chunks,
                   .microbatches = plan->shape.microbatches,
                   .stages = plan->shape.ranks * plan->shape.chunks};
    b->orders = sim_plan_orders(plan, arena);
    b->lists = ORR_ARENA_NEW(arena, GArray *, b->ranks * SIM_STREAM_COUNT);
    for (int i = 0; i < b->ranks * SIM_STREAM_COUNT; i++)
        b->lists[i] = g_array_new(FALSE, FALSE, sizeof(SimInstr));
    b->works = g_array_new(FALSE, FALSE, sizeof(SimWork));
    b->mems = g_array_new(FALSE, FALSE, sizeof(SimMemDelta));
    b->pending = g_array_new(FALSE, FALSE, sizeof(Pending));
    b->left_bytes = ORR_ARENA_NEW(arena, int64_t, b->ranks);
    b->caches = ORR_ARENA_NEW(arena, StageCache, b->stages);
    memset(b->caches, 0xff, sizeof(StageCache) * (size_t)b->stages);
    int64_t points = (int64_t)b->stages * b->microbatches;
    b->forward_done = ORR_ARENA_NEW(arena, Point, points);
    b->backward_done = ORR_ARENA_NEW(arena, Point, points);
    memset(b->forward_done, 0xff, sizeof(Point) * (size_t)points);
    memset(b->backward_done, 0xff, sizeof(Point) * (size_t)points);
}

static bool weights_apart(const Builder *b)
{
    for (int r = 0; r < b->ranks; r++) {
        for (int64_t i = 0; i < b->orders[r].count; i++) {
            if (b->orders[r].ops[i].pass == SIM_PASS_BACKWARD_WEIGHT)
                return true;
        }
    }
    return false;
}

static void builder_clear(Builder *b)
{
    for (int i = 0; i < b->ranks * SIM_STREAM_COUNT; i++)
        g_array_free(b->lists[i], TRUE);
    g_array_free(b->works, TRUE);
    g_array_free(b->mems, TRUE);
    g_array_free(b->pending, TRUE);
    if (b->work_index != NULL)
        g_hash_table_destroy(b->work_index);
    if (b->mem_index != NULL)
        g_hash_table_destroy(b->mem_index);
}

static void chunk_init(const Builder *b, Chunk *chunk, int stage_index)
{
    const SimPlan *plan = b->plan;
    chunk->stage_index = stage_index;
    chunk->stage = &plan->stages[stage_index];
    chunk->first_forward = chunk->last_grad = SIM_NONE;
    bool gathers = false;
    for (int i = 0; i < chunk->stage->segment_count; i++) {
        const SimSegment *segment = &chunk->stage->segments[i];
        chunk->reduces |= sim_work_duration_ps(&segment->grad_reduce) > 0;
        gathers |= sim_work_duration_ps(&segment->param_gather) > 0 ||
                   (plan->zero == 3 && segment->gathered_param_bytes > 0);
    }
    chunk->sharded = gathers && plan->zero == 3;
    const bool first = plan->offload.on && plan->offload.update == SIM_UPDATE_FIRST;
    chunk->gathered_at_start = gathers && plan->zero < 3 && (plan->overlap_param_gather || first);
    chunk->start_gather = ORR_ARENA_NEW(b->arena, int32_t, chunk->stage->segment_count);
    chunk->grad_alive = ORR_ARENA_NEW(b->arena, bool, chunk->stage->segment_count);
    chunk->copied = ORR_ARENA_NEW(b->arena, int32_t, chunk->stage->segment_count);
    chunk->fetched = ORR_ARENA_NEW(b->arena, int32_t, chunk->stage->segment_count);
    for (int i = 0; i < chunk->stage->segment_count; i++)
        chunk->start_gather[i] = chunk->copied[i] = chunk->fetched[i] = SIM_NONE;
    sim_update_init(b, chunk);
}

static void rank_init(RankBuilder *rb, Builder *b, int rank)
{
    *rb = (RankBuilder){.builder = b,
                        .rank = rank,
                        .last_compute = SIM_NONE,
                        .reduced = {SIM_NONE, SIM_NONE},
                        .left = {SIM_NONE, SIM_NONE},
                        .last_in = SIM_NONE,
                        .direct = SIM_NONE};
    memset(rb->waited, 0xff, sizeof rb->waited);
    rb->chunks = ORR_ARENA_NEW(b->arena, Chunk, b->chunks);
    for (int c = 0; c < b->chunks; c++)
        chunk_init(b, &rb->chunks[c],
                   sim_stage_of(b->plan->schedule->placement, b->ranks, b->chunks, rank, c));
    const SimOrder *order = &b->orders[rank];
    for (int64_t i = 0; i < order->count; i++) {
        const SimPassOp *op = &order->ops[i];
        bool pair = op->pass == SIM_PASS_FORWARD_BACKWARD;
        Chunk *chunk = &rb->chunks[op->chunk];
        if ((pair || op->pass == SIM_PASS_FORWARD) && chunk->first_forward == SIM_NONE)
            chunk->first_forward = i;
        if (pair)
            rb->chunks[op->chunk2].last_grad = i;
        else if (sim_makes_weight_gradient((SimPass)op->pass))
            chunk->last_grad = i;
    }
}

static void write_rank(Builder *b, int rank)
{
    RankBuilder rb;
    rank_init(&rb, b, rank);
    sim_plan_uses(&rb);
    sim_window_plan(&rb);
    sim_update_start(&rb);
    sim_emit_start_gathers(&rb);
    const SimOrder *order = &b->orders[rank];
    for (int64_t i = 0; i < order->count; i++)
        sim_emit_pass_op(&rb, i, &order->ops[i]);
    sim_emit_step_end(&rb);
}

/* Waits for other ranks, now that those are written. */
static void resolve_pending(Builder *b)
{
    for (guint i = 0; i < b->pending->len; i++) {
        const Pending *wait = &g_array_index(b->pending, Pending, i);
        const Point *point = wait->backward ? &b->backward_done[wait->key] : &b->forward_done[wait->key];
        GArray *list = b->lists[wait->rank * SIM_STREAM_COUNT + SIM_STREAM_COMPUTE];
        SimInstr *instr = &g_array_index(list, SimInstr, wait->position);
        g_assert(point->index >= 0);
        instr->wait_class = point->rank;
        instr->wait_stream = point->stream;
        instr->wait_index = point->index;
    }
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
            const GArray *list = b->lists[r * SIM_STREAM_COUNT + s];
            classes[r].streams[s] = (SimList){.instrs = copy_array(b->arena, list), .count = list->len};
        }
        for (int kind = 0; kind < SIM_MAX_MEMS; kind++)
            classes[r].static_bytes[kind] = plan->ranks[r].static_bytes[kind];
        classes[r].static_bytes[SIM_MEM_GRADIENTS] += b->left_bytes[r];
    }
    program.class_list = classes;
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
    builder.post_validation = plan->post_validation && builder.ranks > 1 && weights_apart(&builder);
    bool ok = sim_orders_check(&builder, error);
    if (ok) {
        for (int r = 0; r < builder.ranks; r++)
            write_rank(&builder, r);
        resolve_pending(&builder);
        finish(&builder, unfold, ret_program);
    }
    builder_clear(&builder);
    return ok;
}
