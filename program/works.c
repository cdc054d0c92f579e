/* program/works.c - durations and memory of passes, summed over segments and kept once each. */
#include "program/emit.h"
#include "program/works.h"

#include <string.h>

/* One op of both, which holds the shares of the first that has any. */
static void add_work(SimWork *sum, const SimWork *work)
{
    sim_work_add(sum, work);
    if (sim_work_share(sum, 0) == NULL) {
        memcpy(sum->shares, work->shares, sizeof sum->shares);
        sum->more_shares = work->more_shares;
        sum->more_share_count = work->more_share_count;
    }
}

static guint mix(guint hash, int64_t value)
{
    uint64_t bits = ((uint64_t)value + hash) * UINT64_C(0x9E3779B97F4A7C15);
    return (guint)(bits >> 32);
}

static guint hash_work(gconstpointer key)
{
    const SimWork *work = key;
    const SimShare *share;
    guint hash = 0;
    for (int part = 0; part < SIM_PART_COUNT; part++)
        hash = mix(hash, work->part_ps[part]);
    for (int i = 0; (share = sim_work_share(work, i)) != NULL; i++)
        hash = mix(mix(hash, share->amount), share->resource * 2 + share->mode);
    return mix(mix(mix(hash, work->scale_up_bytes), work->scale_out_bytes), work->second_bytes);
}

static bool equal_shares(const SimWork *x, const SimWork *y)
{
    for (int i = 0;; i++) {
        const SimShare *a = sim_work_share(x, i), *b = sim_work_share(y, i);
        if (a == NULL || b == NULL)
            return a == b;
        if (a->amount != b->amount || a->resource != b->resource || a->mode != b->mode ||
            a->instance != b->instance)
            return false;
    }
}

static gboolean equal_work(gconstpointer a, gconstpointer b)
{
    const SimWork *x = a, *y = b;
    for (int part = 0; part < SIM_PART_COUNT; part++) {
        if (x->part_ps[part] != y->part_ps[part])
            return FALSE;
    }
    return x->scale_up_bytes == y->scale_up_bytes && x->scale_out_bytes == y->scale_out_bytes &&
           x->second_bytes == y->second_bytes && equal_shares(x, y);
}

static guint hash_mem(gconstpointer key)
{
    const SimMemDelta *mem = key;
    guint hash = 0;
    for (int kind = 0; kind < SIM_MAX_MEMS; kind++)
        hash = mix(mix(hash, mem->start_bytes[kind]), mem->end_bytes[kind]);
    return hash;
}

static gboolean equal_mem(gconstpointer a, gconstpointer b)
{
    const SimMemDelta *x = a, *y = b;
    for (int kind = 0; kind < SIM_MAX_MEMS; kind++) {
        if (x->start_bytes[kind] != y->start_bytes[kind] || x->end_bytes[kind] != y->end_bytes[kind])
            return FALSE;
    }
    return TRUE;
}

static guint hash_op(gconstpointer key)
{
    const SimOp *op = key;
    return mix(mix(mix(mix(0, op->work), op->mem), op->stage), op->tag);
}

static gboolean equal_op(gconstpointer a, gconstpointer b)
{
    const SimOp *x = a, *y = b;
    return x->kind == y->kind && x->tag == y->tag && x->group == y->group && x->work == y->work &&
           x->mem == y->mem && x->stage == y->stage;
}

/* Index of an equal element, appended when there is none. Table keys are copies in the arena. */
static int32_t intern(OrrArena *arena, GArray *array, GHashTable **table, GHashFunc hash, GEqualFunc equal,
                      const void *value, size_t size)
{
    if (*table == NULL)
        *table = g_hash_table_new(hash, equal);
    gpointer found;
    if (g_hash_table_lookup_extended(*table, value, NULL, &found))
        return GPOINTER_TO_INT(found);
    void *key = orr_arena_alloc(arena, size);
    memcpy(key, value, size);
    g_array_append_vals(array, value, 1);
    g_hash_table_insert(*table, key, GINT_TO_POINTER((int)array->len - 1));
    return (int32_t)array->len - 1;
}

static bool on_network(const SimWork *work)
{
    const SimShare *share;
    for (int i = 0; (share = sim_work_share(work, i)) != NULL; i++) {
        if (share->resource != SIM_RESOURCE_SM && share->mode == SIM_SHARE_FAIR)
            return true;
    }
    return false;
}

int32_t sim_intern_work(Builder *b, SimStream stream, const SimWork *work)
{
    SimWork kernels = *work;
    if (stream == SIM_STREAM_COMPUTE && !on_network(work)) {
        memset(kernels.shares, 0, sizeof kernels.shares);
        sim_work_hold(&kernels, SIM_RESOURCE_SM, SIM_SHARE_FAIR, SIM_WHOLE_RESOURCE);
    }
    return intern(b->arena, b->works, &b->work_index, hash_work, equal_work, &kernels, sizeof kernels);
}

int32_t sim_intern_mem(Builder *b, const SimMemDelta *mem)
{
    static const SimMemDelta NOTHING;
    if (equal_mem(mem, &NOTHING))
        return SIM_NONE;
    return intern(b->arena, b->mems, &b->mem_index, hash_mem, equal_mem, mem, sizeof *mem);
}

int32_t sim_intern_op(Builder *b, const SimOp *op)
{
    return intern(b->arena, b->ops, &b->op_index, hash_op, equal_op, op, sizeof *op);
}

SimWork sim_segment_work(const SimSegment *segment, SimPass pass)
{
    SimWork sum = {0};
    if (pass == SIM_PASS_FORWARD)
        return segment->forward;
    if (pass != SIM_PASS_BACKWARD_WEIGHT) {
        add_work(&sum, &segment->recompute);
        add_work(&sum, &segment->backward_input);
    }
    if (pass != SIM_PASS_BACKWARD_INPUT)
        add_work(&sum, &segment->backward_weight);
    return sum;
}

int32_t sim_make_stage_work(Builder *b, int stage, SimPass pass)
{
    const SimStage *plan = &b->plan->stages[stage];
    SimWork sum = {0};
    if (pass == SIM_PASS_FORWARD_BACKWARD) {
        sum = plan->overlapped_pair;
    } else {
        for (int i = 0; i < plan->segment_count; i++) {
            SimWork work = sim_segment_work(&plan->segments[i], pass);
            add_work(&sum, &work);
        }
    }
    return sim_intern_work(b, SIM_STREAM_COMPUTE, &sum);
}

/* Activations that a pass over the segment gives back at its end. */
static int64_t given_back_bytes(const SimSegment *segment, SimPass pass)
{
    switch (pass) {
    case SIM_PASS_BACKWARD:
        return segment->activation_bytes;
    case SIM_PASS_BACKWARD_INPUT:
        return segment->activation_input_only_bytes;
    case SIM_PASS_BACKWARD_WEIGHT:
        return segment->activation_bytes - segment->activation_input_only_bytes;
    default:
        return 0;
    }
}

SimMemDelta sim_segment_mem(const SimSegment *segment, SimPass pass)
{
    SimMemDelta mem = {0};
    int64_t temp_bytes =
        pass == SIM_PASS_FORWARD ? segment->forward_temp_bytes : segment->backward_temp_bytes;
    if (pass == SIM_PASS_FORWARD)
        mem.start_bytes[SIM_MEM_ACTIVATIONS] = segment->activation_bytes;
    mem.start_bytes[SIM_MEM_WORKSPACE] = temp_bytes;
    mem.end_bytes[SIM_MEM_WORKSPACE] = -temp_bytes;
    mem.end_bytes[SIM_MEM_ACTIVATIONS] = -given_back_bytes(segment, pass);
    return mem;
}

/* Segment by segment, a forward holds the activations so far, a backward those that are left. One op for the
 * stage holds all of them throughout, so its workspace is what the highest moment needs on top. */
SimMemDelta sim_stage_mem(const SimStage *stage, SimPass pass)
{
    SimMemDelta mem = {0};
    int64_t above_bytes = 0, missing_bytes = 0;
    for (int i = stage->segment_count - 1; i >= 0; i--) {
        const SimSegment *segment = &stage->segments[i];
        SimMemDelta one = sim_segment_mem(segment, pass);
        above_bytes = MAX(above_bytes, one.start_bytes[SIM_MEM_WORKSPACE] - missing_bytes);
        missing_bytes +=
            pass == SIM_PASS_FORWARD ? segment->activation_bytes : given_back_bytes(segment, pass);
        mem.start_bytes[SIM_MEM_ACTIVATIONS] += one.start_bytes[SIM_MEM_ACTIVATIONS];
        mem.end_bytes[SIM_MEM_ACTIVATIONS] += one.end_bytes[SIM_MEM_ACTIVATIONS];
    }
    mem.start_bytes[SIM_MEM_WORKSPACE] = above_bytes;
    mem.end_bytes[SIM_MEM_WORKSPACE] = -above_bytes;
    return mem;
}
