/* sim/engine_resources.c - instances of resources, where their holders are noted, and capacities that change. */
#include "sim/engine_fair.h"
#include "sim/engine_rate.h"

/* Instances of rows which each rank has for itself are neighbours by rank. */
static void setup_rows(Engine *e)
{
    const SimProgram *program = e->program;
    const int ranks = program->classes * program->replicas;
    int own = 0, column = 0;
    for (int row = 0; row < program->resource_count; row++)
        own += e->row_matters[row] && program->resources[row].instance_of_rank == NULL;
    int64_t next = (int64_t)own * ranks;
    e->rows = ORR_ARENA_NEW(e->arena, Row, program->resource_count);
    for (int i = 0; i < program->resource_count; i++) {
        const SimResource *resource = &program->resources[i];
        const bool mapped = resource->instance_of_rank != NULL;
        if (!e->row_matters[i])
            continue;
        e->rows[i] = (Row){.capacity = resource->capacity,
                           .instance_of_rank = resource->instance_of_rank,
                           .first = mapped ? (int32_t)next : column++,
                           .stride = mapped ? 1 : own,
                           .count = mapped ? resource->instances : ranks};
        next += mapped ? resource->instances : 0;
        g_assert(next < INT32_MAX / 2);
    }
    e->instance_count = (int32_t)next;
    e->own_rows = own;
    for (int32_t i = 0; i < e->share_count; i++) {
        if (!e->shares[i].listed)
            e->shares[i].instance = e->rows[e->shares[i].row].first;
    }
}

static void setup_instances(Engine *e)
{
    const SimProgram *program = e->program;
    e->instances = ORR_ARENA_NEW(e->arena, Instance, e->instance_count);
    if (program->capacity_event_count > 0)
        e->capacities = ORR_ARENA_NEW(e->arena, int64_t, e->instance_count);
    for (int i = 0; i < program->resource_count; i++) {
        const Row *row = &e->rows[i];
        for (int32_t k = 0; k < row->count; k++) {
            const int32_t at = row->first + row->stride * k;
            e->instances[at] = (Instance){.free = row->capacity, .first_hold = SIM_NONE, .row = (int16_t)i};
            if (e->capacities != NULL)
                e->capacities[at] = row->capacity;
        }
    }
    e->dirty = ORR_ARENA_NEW(e->arena, int32_t, e->instance_count);
}

static int listed_shares(const Engine *e, const OpInfo *op)
{
    int count = 0;
    for (int k = 0; k < op->share_count; k++)
        count += e->shares[op->first_share + k].listed;
    return count;
}

/* As many Holds for each slot as any of its works needs. */
static void setup_holds(Engine *e)
{
    const SimProgram *program = e->program;
    bool any = false;
    for (int row = 0; row < program->resource_count; row++)
        any |= e->row_matters[row];
    if (!any)
        return;
    e->slot_first_hold = ORR_ARENA_NEW(e->arena, int32_t, e->slot_count);
    for (int c = 0, slot = 0; c < program->classes; c++) {
        int most[SIM_MAX_STREAMS] = {0}, streams = 0;
        for (int s = 0; s < SIM_MAX_STREAMS; s++) {
            const SimList list = program->class_list[c].streams[s];
            for (int64_t i = 0; i < list.count; i++) {
                if (list.instrs[i].op != SIM_ONLY_WAITS)
                    most[streams] = MAX(most[streams], listed_shares(e, &e->ops[list.instrs[i].op]));
            }
            streams += list.count > 0;
        }
        for (int i = 0; i < streams * program->replicas; i++, slot++) {
            e->slot_first_hold[slot] = e->hold_count;
            e->hold_count += most[i % streams];
        }
    }
    e->holds = ORR_ARENA_NEW(e->arena, Hold, e->hold_count);
}

void sim_setup_resources(Engine *e)
{
    setup_rows(e);
    setup_instances(e);
    setup_holds(e);
    e->grain = e->program->rate_grain > 0 ? e->program->rate_grain : SIM_FULL_RATE / 1024;
    g_assert(e->grain <= SIM_FULL_RATE);
    if (e->instance_count > 0) {
        e->progress = ORR_ARENA_NEW(e->arena, Progress, e->slot_count + e->collective_count);
        e->fair = sim_fair_new(e);
    }
}

static void set_capacity(Engine *e, const SimCapacityEvent *event, int32_t number)
{
    const Row *row = &e->rows[event->resource];
    const int32_t at = row->first + row->stride * number;
    Instance *instance = &e->instances[at];
    g_assert(number >= 0 && number < row->count);
    if (instance->free < 0)
        sim_mark_instance(e, at);
    instance->free += event->capacity - e->capacities[at];
    e->capacities[at] = event->capacity;
    if (instance->free < 0)
        sim_mark_instance(e, at);
}

void sim_capacity_change(Engine *e)
{
    const SimProgram *program = e->program;
    while (e->next_capacity < program->capacity_event_count) {
        const SimCapacityEvent *event = &program->capacity_events[e->next_capacity];
        if (event->time_ps > e->now_ps) {
            sim_eventq_push(e->queue, e->slot_count + e->collective_count, event->time_ps);
            return;
        }
        const int32_t first = event->instance < 0 ? 0 : event->instance;
        const int32_t last = event->instance < 0 ? e->rows[event->resource].count - 1 : event->instance;
        for (int32_t i = first; i <= last; i++)
            set_capacity(e, event, i);
        e->next_capacity++;
    }
}
