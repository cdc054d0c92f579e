/* sim/engine_account.c - what each rank's time was spent on, and how its memory moved; all on the way. What every run
 * of a program spends (the ops' own parts and bytes) is summed once a class in engine_works.c. */
#include "sim/engine_account.h"

#include <stdlib.h>

/* What came before belongs to the rank's previous step. */
void sim_account_start(Engine *e, int32_t index)
{
    SimRankResult *result = &e->result.rank[index];
    Rank *rank = &e->ranks[index];
    if (rank->started)
        return;
    rank->started = true;
    result->start_ps = rank->accounted_ps = e->now_ps;
    rank->idle_ps = 0;
    for (int part = 0; part < SIM_PART_COUNT; part++)
        result->part_ps[part] = 0;
}

/* Time before the op's start goes to another op of the rank that was running then, the first started. */
void sim_account_behind_compute(Engine *e, const Slot *slot, const OpInfo *op)
{
    Rank *rank = &e->ranks[slot->rank];
    const Slot *cover = NULL;
    for (int i = 0; i < rank->slot_count; i++) {
        const Slot *other = &e->slots[rank->first_slot + i];
        if (other != slot && other->state == SLOT_RUNNING && other->since_ps < slot->since_ps &&
            (cover == NULL || other->since_ps < cover->since_ps))
            cover = other;
    }
    if (cover != NULL && slot->since_ps > rank->accounted_ps) {
        sim_account_idle(rank, cover->since_ps);
        e->result.rank[slot->rank].part_ps[sim_slot_op(e, cover)->main_part] +=
            slot->since_ps - rank->accounted_ps;
        rank->accounted_ps = slot->since_ps;
    }
    sim_account_exposed(e, slot->rank, slot->since_ps, op->main_part);
}

static int64_t bytes_in_tier(const Engine *e, const int64_t *bytes, int tier)
{
    int64_t sum = 0;
    for (int kind = 0; kind < e->mem_kinds; kind++)
        sum += e->mem_tier[kind] == tier ? bytes[kind] : 0;
    return sum;
}

static G_GNUC_NO_INLINE void note_level(Engine *e, int32_t index)
{
    Rank *rank = &e->ranks[index];
    const int64_t *bytes = e->memory[index].bytes;
    SimRankResult *result = &e->result.rank[index];
    if (rank->level_bytes > rank->peak_bytes || rank->level_ps == 0) {
        rank->peak_bytes = rank->level_bytes;
        result->peak_time_ps = rank->level_ps;
        for (int kind = 0; kind < SIM_MAX_MEMS; kind++)
            result->at_peak_bytes[kind] = bytes[kind];
    }
    if (e->moves_host)
        result->host_peak_bytes = MAX(result->host_peak_bytes, bytes_in_tier(e, bytes, SIM_TIER_HOST));
    if (e->record & SIM_RECORD_LEVELS) {
        SimLevel *level = &e->result.levels[e->result.level_count++];
        level->time_ps = rank->level_ps;
        level->rank = index;
        for (int kind = 0; kind < SIM_MAX_MEMS; kind++)
            level->bytes[kind] = bytes[kind];
    }
}

/* The level that held since the last change, up to now, says something new. */
static inline bool is_new_level(const Engine *e, const Rank *rank)
{
    return rank->level_bytes > rank->peak_bytes || rank->level_ps == 0 || e->notes_levels;
}

static void settle_tier(TierLevels *levels, int32_t instance)
{
    levels->peak_bytes[instance] = MAX(levels->peak_bytes[instance], levels->level_bytes[instance]);
}

/* Tiers that several ranks share keep a level of their own. */
static G_GNUC_NO_INLINE void account_tiers(Engine *e, int32_t rank, const int64_t *delta_bytes)
{
    for (int kind = 0; kind < e->mem_kinds; kind++) {
        TierLevels *levels = &e->tier_levels[e->mem_tier[kind]];
        if (delta_bytes[kind] == 0 || levels->instance_of_rank == NULL || levels->instance_of_rank[rank] < 0)
            continue;
        const int32_t instance = levels->instance_of_rank[rank];
        if (levels->level_ps[instance] < e->now_ps) {
            settle_tier(levels, instance);
            levels->level_ps[instance] = e->now_ps;
        }
        levels->level_bytes[instance] += delta_bytes[kind];
    }
}

static inline void change(Engine *e, int32_t index, int32_t mem, bool end)
{
    Rank *rank = &e->ranks[index];
    const MemInfo *info = &e->mems[mem];
    const SimMemDelta *delta = &e->program->mems[mem];
    const int64_t *delta_bytes = end ? delta->end_bytes : delta->start_bytes;
    int64_t *bytes = e->memory[index].bytes;
    for (int kind = 0; kind < SIM_MAX_MEMS; kind++)
        bytes[kind] += delta_bytes[kind];
    rank->level_ps = e->now_ps;
    rank->level_bytes += end ? info->end_bytes : info->start_bytes;
    if (info->shared)
        account_tiers(e, index, delta_bytes);
}

static G_GNUC_NO_INLINE void note_and_change(Engine *e, int32_t index, int32_t mem, bool end)
{
    note_level(e, index);
    change(e, index, mem, end);
}

/* What is given and taken back at one instant, in whatever order, is one change. */
void sim_account_change(Engine *e, int32_t index, int32_t mem, bool end)
{
    const Rank *rank = &e->ranks[index];
    if (rank->level_ps < e->now_ps && is_new_level(e, rank))
        note_and_change(e, index, mem, end);
    else
        change(e, index, mem, end);
}

void sim_account_span(Engine *e, const Slot *slot, const SimInstr *instr)
{
    const SimOp *op = &e->program->ops[instr->op];
    e->result.spans[e->result.span_count++] = (SimSpan){.start_ps = slot->since_ps,
                                                        .end_ps = e->now_ps,
                                                        .rank = slot->rank,
                                                        .stream = slot->stream,
                                                        .tag = op->tag,
                                                        .stage = op->stage,
                                                        .microbatch = instr->microbatch,
                                                        .work = op->work};
}

static int compare_levels(const void *a, const void *b)
{
    const SimLevel *x = a, *y = b;
    if (x->time_ps != y->time_ps)
        return x->time_ps < y->time_ps ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* The ops' own parts and bytes, which are those of the rank's class. */
static void add_sums(const Engine *e, int r)
{
    const ClassSums *sums = &e->sums[e->ranks[r].cls];
    SimRankResult *rank = &e->result.rank[r];
    for (int part = 0; part < SIM_PART_COUNT; part++) {
        rank->part_ps[part] += sums->part_ps[part];
        rank->busy_ps += sums->part_ps[part];
    }
    rank->scale_up_bytes = sums->scale_up_bytes;
    rank->scale_out_bytes = sums->scale_out_bytes;
}

/* The last ops of its streams, which are all done. */
static void add_ends(const Engine *e, int r)
{
    SimRankResult *rank = &e->result.rank[r];
    for (int i = 0; i < e->ranks[r].slot_count; i++) {
        const Slot *slot = &e->slots[e->ranks[r].first_slot + i];
        rank->end_ps = MAX(rank->end_ps, slot->since_ps);
        if (slot->stream == SIM_STREAM_COMPUTE)
            rank->last_end_ps = slot->since_ps;
    }
}

void sim_account_finish(Engine *e)
{
    SimResult *result = &e->result;
    for (int r = 0; r < result->ranks; r++) {
        SimRankResult *rank = &result->rank[r];
        add_sums(e, r);
        add_ends(e, r);
        result->ops += e->sums[e->ranks[r].cls].ops;
        result->end_ps = MAX(result->end_ps, rank->end_ps);
        if (rank->end_ps - rank->start_ps > result->step_ps) {
            result->step_ps = rank->end_ps - rank->start_ps;
            result->critical_rank = r;
        }
    }
    for (int r = 0; r < result->ranks; r++) {
        sim_account_idle(&e->ranks[r], result->rank[r].start_ps + result->step_ps);
        result->rank[r].idle_ps = e->ranks[r].idle_ps;
        if (is_new_level(e, &e->ranks[r]))
            note_level(e, r);
        result->rank[r].peak_bytes = e->ranks[r].peak_bytes;
        if (!e->moves_host)
            result->rank[r].host_peak_bytes = bytes_in_tier(e, e->memory[r].bytes, SIM_TIER_HOST);
        for (int kind = 0; kind < SIM_MAX_MEMS; kind++)
            result->rank[r].final_bytes[kind] = e->memory[r].bytes[kind];
    }
    for (int t = 0; t < e->tiers; t++) {
        TierLevels *levels = &e->tier_levels[t];
        for (int32_t i = 0;
             levels->peak_bytes != NULL && i < sim_program_tiers(e->program, NULL)[t].instances; i++)
            settle_tier(levels, i);
        result->tier_peak_bytes[t] = levels->peak_bytes;
    }
    if (e->record & SIM_RECORD_LEVELS)
        qsort(result->levels, (size_t)result->level_count, sizeof *result->levels, compare_levels);
}
