/* sim/engine_state.h - the engine's own state; only sim/engine* includes it.
 *
 * A slot is a stream of a rank whose list is not empty. Slots of a rank are neighbours; ranks of a class are
 * neighbours. Everything lives in the run's arena and has its final size before the first event. A million ranks are
 * larger than any cache, and then a run takes as long as the lines that it moves: a slot is half a line, what it shares
 * with its replicas is read from their class, and what only contention or memory need lies apart.
 *
 * An op is known by its event: a slot's number, or slot_count + a collective's. Capacity events come behind both.
 */
#ifndef ORR_SIM_ENGINE_STATE_H
#define ORR_SIM_ENGINE_STATE_H

#include "sim/engine.h"
#include "sim/eventq.h"

#define SIM_NONE       (-1)
#define SIM_CACHE_LINE 64
#define SIM_HALF_LINE  32

typedef enum { SLOT_READY, SLOT_RUNNING, SLOT_WAITING, SLOT_ARRIVED, SLOT_DONE } SlotState;

typedef struct {
    _Alignas(SIM_HALF_LINE) int64_t since_ps; /* start of its op; none runs: end of the last one */
    int32_t list;                             /* in Engine.lists */
    int32_t pc;                               /* instructions completed */
    int32_t rank;
    int32_t link_next;    /* next in the list of waiters, or of slots ready to go on */
    int32_t first_waiter; /* slots waiting for this one */
    uint8_t state;        /* SlotState */
    uint8_t stream;
    bool rated;        /* its own op had another rate than full: Progress is in use */
    uint8_t place : 7; /* among the slots of its rank */
    bool holds : 1;    /* the op's shares are counted */
} Slot;

_Static_assert(sizeof(Slot) == SIM_HALF_LINE, "a slot is half a line");

/* The instructions of a stream of a class. */
typedef struct {
    _Alignas(SIM_HALF_LINE) const SimInstr *instrs;
    int32_t count;
    int32_t cls;
    uint8_t place_of_stream[SIM_MAX_STREAMS]; /* among the slots of a rank; SIM_NO_PLACE: no such stream */
} List;

_Static_assert(sizeof(List) == SIM_HALF_LINE, "a list is half a line");

#define SIM_NO_PLACE UINT8_MAX

/* A stream of the ranks of a class. */
typedef struct {
    int32_t first_slot; /* of the class's first rank; SIM_NONE: the class has no such stream */
    int32_t stride;     /* from rank to rank */
} StreamSlots;

typedef struct {
    int64_t start_ps;
    int64_t duration_ps;                /* at full rate, of the slowest member so far */
    int32_t first_member, member_count; /* in Engine.members */
    int32_t arrived;
    bool rated; /* as a slot's */
} Collective;

/* Progress of an op that is or was throttled: the work left at update_ps, in picoseconds at full rate, with a fraction of
 * one in 1/SIM_FULL_RATE. */
typedef struct {
    int64_t update_ps, left_ps;
    int32_t left_frac;
    int32_t rate; /* in 1/SIM_FULL_RATE; 0: not settled, or standing still */
} Progress;

typedef struct {
    _Alignas(SIM_CACHE_LINE) int32_t first_slot;
    int32_t cls;
    int64_t accounted_ps; /* parts and idle time cover the compute stream up to here */
    int64_t idle_ps;
    int64_t level_ps, level_bytes; /* memory since then, all kinds of the GPU */
    int64_t peak_bytes;            /* the most that level_bytes was before */
    int16_t slot_count;
    bool started, computed;
} Rank;

typedef struct {
    _Alignas(SIM_CACHE_LINE) int64_t bytes[SIM_MAX_MEMS];
} RankMemory;

/* What the loop needs of a SimOp and its work. */
typedef struct {
    _Alignas(SIM_HALF_LINE) int64_t duration_ps;
    int32_t first_share;
    int32_t start_mem, end_mem; /* in Engine.mems; SIM_NONE: nothing to note */
    uint16_t share_count;
    uint8_t main_part, stretch_part; /* SimPart: longest; the one that a slowed op grows */
    uint8_t kind, group;             /* the SimOp's */
} OpInfo;

_Static_assert(sizeof(OpInfo) == SIM_HALF_LINE, "an op is half a line");

/* What speeds and contention need of them besides. */
typedef struct {
    int64_t compute_ps; /* of its duration: what the rank's speed scales */
    int64_t weight;     /* amount of its first fair share */
} OpRates;

/* A share that can matter: those of rows which cannot be overfull are left out. */
typedef struct {
    int64_t amount;
    int32_t
        instance; /* column of a row that the rank has for itself; of listed ones the number, -1: the rank's */
    int16_t row;
    uint8_t mode; /* SimShareMode */
    bool listed;  /* holders are found in the instance's list, not by the rank's slots */
} Share;

typedef struct {
    int64_t capacity;
    const int32_t *instance_of_rank; /* NULL: the rank's own */
    int32_t first, stride; /* instance of a rank: first + stride x rank; with a map first + its number */
    int32_t count;         /* instances */
} Row;

/* An instance of a resource. */
typedef struct {
    int64_t free;       /* capacity less all shares of running ops; below 0: overfull */
    int32_t first_hold; /* list of Hold; SIM_NONE */
    int32_t fair_count; /* fair shares held */
    int16_t row;
    bool dirty;
} Instance;

typedef struct {
    int32_t next, prev; /* SIM_NONE */
    int32_t slot, share;
} Hold;

typedef struct {
    int64_t start_bytes, end_bytes; /* of the GPU, together */
    bool shared;                    /* moves bytes of a tier that several ranks share */
} MemInfo;

typedef struct {
    const int32_t *instance_of_rank;
    int64_t *level_bytes, *peak_bytes, *level_ps; /* [instances] */
} TierLevels;

/* Sums over the ops of a class, the same for each of its ranks. */
typedef struct {
    int64_t part_ps[SIM_PART_COUNT]; /* of its compute stream, at full rate and speed */
    int64_t scale_up_bytes, scale_out_bytes;
    int64_t ops, changes;
} ClassSums;

typedef struct Fair Fair; /* engine_fair.c */

typedef struct {
    const SimProgram *program;
    unsigned record;
    OrrArena *arena;
    int64_t now_ps;
    SimEventq *queue;
    Slot *slots;
    int32_t slot_count;
    List *lists; /* of all classes, as slots of a rank are */
    Rank *ranks;
    RankMemory *memory; /* [ranks] */
    OpInfo *ops;
    OpRates *op_rates;
    Share *shares;
    int32_t share_count;
    MemInfo *mems;
    ClassSums *sums;           /* [classes] */
    StreamSlots *stream_slots; /* [class][SIM_MAX_STREAMS] */
    bool runs_kernels[SIM_MAX_STREAMS];
    int mem_kinds, tiers;
    bool mem_on_gpu[SIM_MAX_MEMS];
    int8_t mem_tier[SIM_MAX_MEMS];
    bool moves_host;   /* some op takes or gives back memory of the host */
    bool notes_levels; /* for that or for the record all levels count, not those above the peak alone */
    TierLevels tier_levels[SIM_MAX_TIERS];
    Collective *collectives;
    int32_t collective_count;
    int32_t *members;                         /* slots; SIM_NONE: a member that never joins */
    int32_t first_collective[SIM_MAX_GROUPS]; /* SIM_NONE: groups of one */
    int32_t ready_first, ready_last;          /* slots to go on */
    /* Resources. */
    Row *rows;
    int32_t own_rows;  /* that each rank has for itself; its instances of them are neighbours */
    bool *row_matters; /* some op could find it overfull */
    Instance *instances;
    int64_t *capacities; /* [instances] now; NULL: those of the rows */
    int32_t instance_count;
    int32_t hold_count;
    int32_t *slot_first_hold; /* [slots] its Holds, one for each listed share that one of its works has */
    Hold *holds;
    Progress *progress; /* [slots + collectives] */
    int32_t *dirty;     /* instances to settle */
    int32_t dirty_count;
    Fair *fair;
    int32_t grain;
    int64_t next_capacity; /* index into the program's events */
    bool clock_full;       /* an end does not fit the clock */
    int64_t rate_capacity; /* of result.rates */
    SimResult result;
} Engine;

/* engine_setup.c: everything that is allocated. False on times too long for the clock. */
bool sim_engine_setup(Engine *engine, GError **error);
/* engine_works.c: durations, shares and sums of works; which rows can be overfull at all. */
bool sim_setup_works(Engine *engine, int8_t *group_stream, GError **error);
bool sim_fail_clock(GError **error);
/* engine_resources.c: rows, instances and who holds them. */
void sim_setup_resources(Engine *engine);
/* Capacity events of this instant, and the next one into the queue. */
void sim_capacity_change(Engine *engine);

/* Zeroed, on cache lines. */
static inline void *sim_new_lines(OrrArena *arena, size_t size, int64_t count)
{
    const uintptr_t at = (uintptr_t)orr_arena_alloc(arena, size * (size_t)count + SIM_CACHE_LINE);
    return (void *)((at + SIM_CACHE_LINE - 1) / SIM_CACHE_LINE * SIM_CACHE_LINE);
}

static inline const SimInstr *sim_slot_instr(const Engine *engine, const Slot *slot)
{
    return &engine->lists[slot->list].instrs[slot->pc];
}
static inline const OpInfo *sim_slot_op(const Engine *engine, const Slot *slot)
{
    return &engine->ops[sim_slot_instr(engine, slot)->op];
}
/* How long an op takes at full rate on the slot's rank. */
static inline int64_t sim_duration_on_ps(const Engine *engine, const Slot *slot, const OpInfo *op)
{
    if (engine->program->rank_speed == NULL || !engine->runs_kernels[slot->stream])
        return op->duration_ps;
    return sim_duration_at_speed_ps(op->duration_ps, engine->op_rates[op - engine->ops].compute_ps,
                                    engine->program->rank_speed[slot->rank]);
}
/* The collective that an op is for its rank; SIM_NONE: it is an op of its own. */
static inline int32_t sim_collective_of(const Engine *engine, const Slot *slot, const OpInfo *op)
{
    if (op->kind != SIM_COLLECTIVE || engine->first_collective[op->group] == SIM_NONE)
        return SIM_NONE;
    return engine->first_collective[op->group] +
           engine->program->groups[op->group].instance_of_rank[slot->rank];
}
static inline int32_t sim_instance_of(const Engine *engine, const Share *share, int32_t rank)
{
    if (!share->listed)
        return share->instance + engine->own_rows * rank;
    const Row *row = &engine->rows[share->row];
    if (share->instance >= 0)
        return row->first + row->stride * share->instance;
    int32_t own = row->instance_of_rank[rank];
    return own < 0 ? SIM_NONE : row->first + own;
}
static inline int64_t sim_capacity_of(const Engine *engine, int row, int32_t instance)
{
    return engine->capacities != NULL ? engine->capacities[instance] : engine->rows[row].capacity;
}
/* engine_deadlock.c: one sentence naming the cycle, or the resource that never comes back. */
void sim_engine_explain_deadlock(const Engine *engine, GError **error);

static inline void sim_fetch(const void *what)
{
#if defined __GNUC__
    __builtin_prefetch(what);
#else
    (void)what;
#endif
}

/* The slot that slot `index` waits for: a stream of its own rank or of the same replica of another class. */
static inline int32_t sim_wait_target(const Engine *engine, int32_t index, const SimInstr *instr)
{
    const Slot *slot = &engine->slots[index];
    const List *list = &engine->lists[slot->list];
    if (instr->wait_on < 0) {
        const uint8_t place = list->place_of_stream[sim_wait_stream(instr)];
        g_assert(place != SIM_NO_PLACE);
        return index - slot->place + place;
    }
    const StreamSlots *target = &engine->stream_slots[instr->wait_on];
    g_assert(target->first_slot >= 0);
    return target->first_slot + (slot->rank - list->cls * engine->program->replicas) * target->stride;
}

#endif
