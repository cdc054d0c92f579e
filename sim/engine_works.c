/* sim/engine_works.c - what is known of a program before it runs: how long its works last, what each class spends in
 * all, and which resources could ever be overfull. Shares of the others cost nothing: they are left out. */
#include "sim/engine_state.h"

bool sim_fail_clock(GError **error)
{
    g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT, "the step lasts longer than the clock can hold (%.0f s)",
                (double)INT64_MAX * 1e-12);
    return false;
}

static bool setup_op(Engine *e, int32_t index, GError **error)
{
    const SimOp *op = &e->program->ops[index];
    const SimWork *work = &e->program->works[op->work];
    OpInfo *info = &e->ops[index];
    int main_part = SIM_PART_COMPUTE;
    for (int part = 0; part < SIM_PART_COUNT; part++) {
        g_assert(work->part_ps[part] >= 0);
        if (work->part_ps[part] > work->part_ps[main_part])
            main_part = part;
    }
    info->duration_ps = sim_work_duration_ps(work);
    if (info->duration_ps == INT64_MAX)
        return sim_fail_clock(error);
    info->kind = op->kind;
    info->group = op->group;
    e->op_rates[index].compute_ps = sim_work_compute_ps(work);
    info->main_part = (uint8_t)main_part;
    info->stretch_part = work->part_ps[SIM_PART_COMPUTE] > 0 ? SIM_PART_COMPUTE : (uint8_t)main_part;
    return true;
}

/* --- what a class spends --- */

typedef struct {
    Engine *engine;
    int32_t *uses;        /* [ops] by the stream being read */
    int32_t *used;        /* ops with uses, in order of their first */
    int64_t *most;        /* [rows] of any op of the stream */
    int64_t *needed;      /* [class][rows] by one rank at once, at most */
    int8_t *group_stream; /* [class][groups] */
} Reader;

static void check_op(const SimProgram *program, const SimOp *op)
{
    g_assert(op->work >= 0 && op->work < program->work_count && op->mem < program->mem_count);
    g_assert(op->kind == SIM_OP || op->group < program->group_count);
}

/* How often each op of the list runs. */
static int32_t count_uses(Reader *reader, const SimList *list)
{
    const int32_t ops = reader->engine->program->op_count,
                  streams = reader->engine->program->classes * SIM_MAX_STREAMS;
    int32_t *const uses = reader->uses;
    int32_t used = 0;
    for (int32_t i = 0; i < list->count; i++) {
        const SimInstr *instr = &list->instrs[i];
        g_assert(instr->wait_on < streams && instr->op < ops);
        if (instr->op != SIM_ONLY_WAITS && uses[instr->op]++ == 0)
            reader->used[used++] = instr->op;
    }
    return used;
}

static bool add_parts(ClassSums *sums, const SimWork *work, int64_t uses, bool compute, GError **error)
{
    for (int part = 0; compute && part < SIM_PART_COUNT; part++) {
        if (work->part_ps[part] > (INT64_MAX - sums->part_ps[part]) / uses)
            return sim_fail_clock(error);
        sums->part_ps[part] += work->part_ps[part] * uses;
    }
    if (work->scale_up_bytes > (INT64_MAX - sums->scale_up_bytes) / uses ||
        work->scale_out_bytes > (INT64_MAX - sums->scale_out_bytes) / uses) {
        g_set_error_literal(error, ORR_ERROR, ORR_ERROR_INPUT,
                            "a rank sends more bytes in a step than can be counted (9.2e18)");
        return false;
    }
    sums->scale_up_bytes += work->scale_up_bytes * uses;
    sums->scale_out_bytes += work->scale_out_bytes * uses;
    return true;
}

static bool read_stream(Reader *reader, int cls, int stream, GError **error)
{
    Engine *e = reader->engine;
    const SimProgram *program = e->program;
    const SimList list = program->class_list[cls].streams[stream];
    ClassSums *sums = &e->sums[cls];
    const int32_t used = count_uses(reader, &list);
    bool ok = true;
    for (int32_t i = 0; i < used; i++) {
        const SimOp *op = &program->ops[reader->used[i]];
        const SimWork *work = &program->works[op->work];
        const int32_t uses = reader->uses[reader->used[i]];
        reader->uses[reader->used[i]] = 0;
        if (op->kind == SIM_COLLECTIVE) {
            int8_t *of_group = &reader->group_stream[cls * SIM_MAX_GROUPS + op->group];
            g_assert(*of_group == SIM_NONE || *of_group == stream);
            *of_group = (int8_t)stream;
        }
        sums->ops += uses;
        sums->changes += op->mem < 0 ? 0 : 2 * uses;
        ok = ok && add_parts(sums, work, uses, stream == SIM_STREAM_COMPUTE, error);
        const SimShare *share;
        for (int k = 0; (share = sim_work_share(work, k)) != NULL; k++) {
            g_assert(share->resource >= 0 && share->resource < program->resource_count);
            g_assert(share->amount <= SIM_MAX_CAPACITY);
            if (share->instance > 0)
                e->row_matters[share->resource] = true;
            else
                reader->most[share->resource] = MAX(reader->most[share->resource], share->amount);
        }
    }
    for (int row = 0; row < program->resource_count; row++) {
        reader->needed[cls * program->resource_count + row] += reader->most[row];
        reader->most[row] = 0;
    }
    return ok;
}

/* --- which rows matter --- */

static void weigh_row(Engine *e, int row, const int64_t *needed)
{
    const SimProgram *program = e->program;
    const SimResource *resource = &program->resources[row];
    const int rows = program->resource_count;
    g_assert(resource->capacity >= 0 && resource->capacity <= SIM_MAX_CAPACITY);
    if (resource->instance_of_rank == NULL) {
        for (int c = 0; c < program->classes; c++)
            e->row_matters[row] |= needed[c * rows + row] > resource->capacity;
        return;
    }
    int64_t *sums = g_new0(int64_t, (gsize)resource->instances + 1);
    for (int r = 0; r < program->classes * program->replicas; r++) {
        const int32_t instance = resource->instance_of_rank[r];
        g_assert(instance < resource->instances);
        if (instance >= 0)
            sums[instance] += needed[r / program->replicas * rows + row];
    }
    for (int32_t i = 0; i < resource->instances; i++)
        e->row_matters[row] |= sums[i] > resource->capacity;
    g_free(sums);
}

static void find_rows_that_matter(Engine *e, const int64_t *needed)
{
    const SimProgram *program = e->program;
    for (int row = 0; row < program->resource_count; row++)
        weigh_row(e, row, needed);
    int64_t before_ps = 0;
    for (int64_t i = 0; i < program->capacity_event_count; i++) {
        const SimCapacityEvent *event = &program->capacity_events[i];
        g_assert(event->time_ps >= before_ps && event->resource >= 0 &&
                 event->resource < program->resource_count);
        g_assert(event->capacity >= 0 && event->capacity <= SIM_MAX_CAPACITY);
        before_ps = event->time_ps;
        e->row_matters[event->resource] = true;
    }
}

/* --- shares --- */

static int share_count(const Engine *e, const SimWork *work)
{
    int count = 0;
    const SimShare *share;
    for (int k = 0; (share = sim_work_share(work, k)) != NULL; k++)
        count += e->row_matters[share->resource];
    return count;
}

static void setup_shares(Engine *e)
{
    const SimProgram *program = e->program;
    int32_t count = 0;
    for (int32_t i = 0; i < program->op_count; i++) {
        const SimWork *work = &program->works[program->ops[i].work];
        const int own = share_count(e, work);
        g_assert(own <= UINT16_MAX && count < INT32_MAX - UINT16_MAX);
        const SimShare *share;
        for (int k = 0; (share = sim_work_share(work, k)) != NULL; k++) {
            if (share->mode == SIM_SHARE_FAIR && e->op_rates[i].weight == 0)
                e->op_rates[i].weight = share->amount;
        }
        e->ops[i].first_share = count;
        e->ops[i].share_count = (uint16_t)own;
        count += own;
    }
    e->shares = ORR_ARENA_NEW(e->arena, Share, count);
    e->share_count = count;
    Share *to = e->shares;
    for (int32_t i = 0; i < program->op_count; i++) {
        const SimWork *work = &program->works[program->ops[i].work];
        const SimShare *share;
        for (int k = 0; (share = sim_work_share(work, k)) != NULL; k++) {
            const int row = share->resource;
            if (e->row_matters[row])
                *to++ = (Share){.amount = share->amount,
                                .instance = share->instance - 1,
                                .row = (int16_t)row,
                                .mode = share->mode,
                                .listed =
                                    share->instance > 0 || program->resources[row].instance_of_rank != NULL};
        }
    }
}

static void setup_mems(Engine *e)
{
    const SimProgram *program = e->program;
    e->mems = ORR_ARENA_NEW(e->arena, MemInfo, program->mem_count);
    for (int64_t i = 0; i < program->mem_count; i++) {
        const SimMemDelta *mem = &program->mems[i];
        for (int kind = 0; kind < e->mem_kinds; kind++) {
            e->mems[i].start_bytes += e->mem_on_gpu[kind] ? mem->start_bytes[kind] : 0;
            e->mems[i].end_bytes += e->mem_on_gpu[kind] ? mem->end_bytes[kind] : 0;
            e->moves_host |= e->mem_tier[kind] == SIM_TIER_HOST &&
                             (mem->start_bytes[kind] != 0 || mem->end_bytes[kind] != 0);
            e->mems[i].shared |= e->tier_levels[e->mem_tier[kind]].instance_of_rank != NULL &&
                                 (mem->start_bytes[kind] != 0 || mem->end_bytes[kind] != 0);
        }
    }
    e->notes_levels = e->moves_host || (e->record & SIM_RECORD_LEVELS);
}

static bool moves(const Engine *e, const int64_t *bytes)
{
    bool any = false;
    for (int kind = 0; kind < e->mem_kinds; kind++)
        any |= bytes[kind] != 0;
    return any;
}

/* There is something to note where bytes move, or where all levels are recorded. */
static void setup_moves(Engine *e)
{
    const SimProgram *program = e->program;
    for (int32_t i = 0; i < program->op_count; i++) {
        const int32_t mem = program->ops[i].mem;
        const bool start = mem >= 0 && (e->notes_levels || moves(e, program->mems[mem].start_bytes));
        const bool end = mem >= 0 && (e->notes_levels || moves(e, program->mems[mem].end_bytes));
        e->ops[i].start_mem = start ? mem : SIM_NONE;
        e->ops[i].end_mem = end ? mem : SIM_NONE;
    }
}

bool sim_setup_works(Engine *e, int8_t *group_stream, GError **error)
{
    const SimProgram *program = e->program;
    const int rows = program->resource_count;
    e->ops = sim_new_lines(e->arena, sizeof(OpInfo), program->op_count);
    e->op_rates = ORR_ARENA_NEW(e->arena, OpRates, program->op_count);
    e->sums = ORR_ARENA_NEW(e->arena, ClassSums, program->classes);
    e->row_matters = ORR_ARENA_NEW(e->arena, bool, rows);
    Reader reader = {.engine = e,
                     .uses = g_new0(int32_t, (gsize)program->op_count + 1),
                     .used = g_new0(int32_t, (gsize)program->op_count + 1),
                     .most = g_new0(int64_t, (gsize)rows + 1),
                     .needed = g_new0(int64_t, (gsize)program->classes * (gsize)rows + 1),
                     .group_stream = group_stream};
    bool ok = true;
    for (int32_t i = 0; ok && i < program->op_count; i++) {
        check_op(program, &program->ops[i]);
        ok = setup_op(e, i, error);
    }
    for (int i = 0; ok && i < program->classes * SIM_MAX_STREAMS; i++)
        ok = read_stream(&reader, i / SIM_MAX_STREAMS, i % SIM_MAX_STREAMS, error);
    if (ok) {
        find_rows_that_matter(e, reader.needed);
        setup_shares(e);
        setup_mems(e);
        setup_moves(e);
    }
    g_free(reader.uses);
    g_free(reader.used);
    g_free(reader.most);
    g_free(reader.needed);
    return ok;
}
