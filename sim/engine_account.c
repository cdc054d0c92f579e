/* sim/engine_account.c - what each rank's time was spent on, and how its memory moved; all on the way. */
#include "sim/engine_internal.h"

#include <stdlib.h>

/* Up to `until_ps` nothing accounts for the compute stream's time: idle. */
static void account_idle(Engine *e, int32_t rank, int64_t until_ps)
{
    int64_t *accounted_ps = &e->ranks[rank].accounted_ps;
    if (until_ps > *accounted_ps) {
        e->result.rank[rank].idle_ps += until_ps - *accounted_ps;
        *accounted_ps = until_ps;
    }
}

/* In a skewed program what came before belongs to the rank's previous step. */
void sim_account_start(Engine *e, int32_t index)
{
    SimRankResult *result = &e->result.rank[index];
    e->ranks[index].started = true;
    if (!e->program->skewed)
        return;
    result->start_ps = e->ranks[index].accounted_ps = e->now_ps;
    result->idle_ps = 0;
    for (int part = 0; part < SIM_PART_COUNT; part++)
        result->part_ps[part] = 0;
}

/* Idle until an op started, then that op's part until now. */
static void account_exposed(Engine *e, int32_t rank, int64_t start_ps, int part)
{
    account_idle(e, rank, start_ps);
    e->result.rank[rank].part_ps[part] += e->now_ps - e->ranks[rank].accounted_ps;
    e->ranks[rank].accounted_ps = e->now_ps;
}

void sim_account_compute(Engine *e, const Slot *slot, const SimInstr *instr)
{
    SimRankResult *result = &e->result.rank[slot->rank];
    const SimWork *work = &e->program->works[instr->work];
    const WorkInfo *info = &e->works[instr->work];
    account_idle(e, slot->rank, slot->start_ps);
    for (int part = 0; part < SIM_PART_COUNT; part++)
        result->part_ps[part] += work->part_ps[part];
    int64_t lasted_ps = e->now_ps - slot->start_ps;
    result->part_ps[info->stretch_part] += lasted_ps - info->duration_ps;
    result->busy_ps += lasted_ps;
    if (result->first_start_ps < 0)
        result->first_start_ps = slot->start_ps;
    result->last_end_ps = e->now_ps;
    e->ranks[slot->rank].accounted_ps = e->now_ps;
}

static bool is_communication(int part)
{
    return part == SIM_PART_TENSOR_COMM || part == SIM_PART_CONTEXT_COMM || part == SIM_PART_EXPERT_COMM ||
           part == SIM_PART_PIPELINE_COMM || part == SIM_PART_DATA_COMM;
}

/* Another rank's work is no cost of this rank, only its messages are. */
void sim_account_wait(Engine *e, const Slot *waiter, const Slot *producer, const SimInstr *instr)
{
    int part = e->works[instr->work].main_part;
    if (waiter->rank == producer->rank || is_communication(part))
        account_exposed(e, waiter->rank, producer->start_ps, part);
}

/* Time before the op's start goes to another op of the rank that was running then, the first started. */
void sim_account_tail(Engine *e, const Slot *slot, const SimInstr *instr)
{
    const Rank *rank = &e->ranks[slot->rank];
    const Slot *cover = NULL;
    for (int i = 0; i < rank->slot_count; i++) {
        const Slot *other = &e->slots[rank->first_slot + i];
        if (other != slot && other->state == SLOT_RUNNING && other->start_ps < slot->start_ps &&
            (cover == NULL || other->start_ps < cover->start_ps))
            cover = other;
    }
    if (cover != NULL && slot->start_ps > rank->accounted_ps) {
        account_idle(e, slot->rank, cover->start_ps);
        e->result.rank[slot->rank].part_ps[sim_slot_work(e, cover)->main_part] +=
            slot->start_ps - rank->accounted_ps;
        e->ranks[slot->rank].accounted_ps = slot->start_ps;
    }
    account_exposed(e, slot->rank, slot->start_ps, e->works[instr->work].main_part);
}

/* The level that held since the last change, up to now. */
static void settle_level(Engine *e, int32_t index)
{
    const Rank *rank = &e->ranks[index];
    SimRankResult *result = &e->result.rank[index];
    if (rank->level_bytes > result->peak_bytes || rank->level_ps == 0) {
        result->peak_bytes = rank->level_bytes;
        result->peak_time_ps = rank->level_ps;
        for (int kind = 0; kind < SIM_MEM_COUNT; kind++)
            result->at_peak_bytes[kind] = rank->bytes[kind];
    }
    result->host_peak_bytes = MAX(result->host_peak_bytes, rank->bytes[SIM_MEM_HOST]);
    if (e->record & SIM_RECORD_LEVELS) {
        SimLevel *level = &e->result.levels[e->result.level_count++];
        level->time_ps = rank->level_ps;
        level->rank = index;
        for (int kind = 0; kind < SIM_MEM_COUNT; kind++)
            level->bytes[kind] = rank->bytes[kind];
    }
}

/* What is given and taken back at one instant, in whatever order, is one change. */
void sim_account_memory(Engine *e, int32_t index, const int64_t *delta_bytes)
{
    Rank *rank = &e->ranks[index];
    if (rank->level_ps < e->now_ps) {
        settle_level(e, index);
        rank->level_ps = e->now_ps;
    }
    for (int kind = 0; kind < SIM_MEM_COUNT; kind++) {
        rank->bytes[kind] += delta_bytes[kind];
        rank->level_bytes += kind < SIM_MEM_GPU_COUNT ? delta_bytes[kind] : 0;
    }
}

void sim_account_span(Engine *e, const Slot *slot, const SimInstr *instr)
{
    e->result.spans[e->result.span_count++] = (SimSpan){.start_ps = slot->start_ps,
                                                        .end_ps = e->now_ps,
                                                        .rank = slot->rank,
                                                        .stream = slot->stream,
                                                        .tag = instr->tag,
                                                        .stage = instr->stage,
                                                        .microbatch = instr->microbatch,
                                                        .work = instr->work};
}

static int compare_levels(const void *a, const void *b)
{
    const SimLevel *x = a, *y = b;
    if (x->time_ps != y->time_ps)
        return x->time_ps < y->time_ps ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

void sim_account_finish(Engine *e)
{
    SimResult *result = &e->result;
    for (int r = 0; r < result->ranks; r++) {
        const SimRankResult *rank = &result->rank[r];
        result->end_ps = MAX(result->end_ps, rank->end_ps);
        if (rank->end_ps - rank->start_ps > result->step_ps) {
            result->step_ps = rank->end_ps - rank->start_ps;
            result->critical_rank = r;
        }
    }
    for (int r = 0; r < result->ranks; r++) {
        account_idle(e, r, result->rank[r].start_ps + result->step_ps);
        settle_level(e, r);
        for (int kind = 0; kind < SIM_MEM_COUNT; kind++)
            result->rank[r].final_bytes[kind] = e->ranks[r].bytes[kind];
        if (result->rank[r].first_start_ps < 0)
            result->rank[r].first_start_ps = 0;
    }
    if (e->record & SIM_RECORD_LEVELS)
        qsort(result->levels, (size_t)result->level_count, sizeof *result->levels, compare_levels);
}
