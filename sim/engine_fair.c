/* sim/engine_fair.c - max-min fair rates over overfull instances and the ops that hold shares of them.
 *
 * An op of weight w (the amount of its first fair share) that runs at rate r has the level w r. All levels rise together;
 * an op stops at rate 1, or when an instance that it needs has nothing left:
 *
 *   level of an instance = the least L with sum over its ops of amount min(1, L / w) = what it has left
 *
 * The instance of the lowest level settles its ops, what they use is taken off their other instances, and so on. With
 * one share an op, or the same amount on every link of a route, this is max-min fairness of flows. An instance that
 * is not overfull constrains nobody, so only overfull ones connect: what changes is what is solved.
 */
#include "sim/engine_fair.h"

#include "sim/engine_rate.h"

typedef struct {
    int32_t event;
    int32_t rate;
    int64_t weight;
    int32_t first_hold, hold_count; /* in Fair.by_op */
    bool settled;
} FairOp;

typedef struct { /* a fair share of a running op in an overfull instance */
    int64_t amount;
    int32_t op, over;
    bool satisfied;
} FairHold;

#define PARTS 1024 /* of a unit of capacity: how finely what is left is counted */

typedef struct {  /* an overfull instance */
    int64_t left; /* in 1/PARTS */
    int64_t level_left,
        level_weight; /* level = left / weight (in 1/SIM_FULL_RATE), once those below it are satisfied */
    double level;     /* in 1/SIM_FULL_RATE of a unit */
    int32_t instance, first_hold, hold_count;
    bool settled, stale;
} FairOver;

struct Fair {
    int32_t *local_op,
        *local_over; /* 1 + index of an op (by event) or instance in what is being solved; 0: not in it */
    FairOp *ops;
    FairOver *overs;
    FairHold *holds;
    int32_t *by_op; /* indices of holds */
    int32_t op_count, over_count, hold_count;
};

Fair *sim_fair_new(const Engine *e)
{
    Fair *fair = ORR_ARENA_NEW(e->arena, Fair, 1);
    const int32_t ops = e->slot_count + e->collective_count;
    int most = 1;
    for (int64_t i = 0; i < e->program->op_count; i++)
        most = MAX(most, e->ops[i].share_count);
    fair->local_op = ORR_ARENA_NEW(e->arena, int32_t, ops);
    fair->local_over = ORR_ARENA_NEW(e->arena, int32_t, e->instance_count);
    fair->ops = ORR_ARENA_NEW(e->arena, FairOp, ops);
    fair->overs = ORR_ARENA_NEW(e->arena, FairOver, e->instance_count);
    fair->holds = ORR_ARENA_NEW(e->arena, FairHold, (int64_t)e->slot_count * most);
    fair->by_op = ORR_ARENA_NEW(e->arena, int32_t, (int64_t)e->slot_count * most);
    return fair;
}

/* --- what is connected --- */

static void add_over(Engine *e, int32_t instance)
{
    Fair *fair = e->fair;
    if (fair->local_over[instance] > 0)
        return;
    fair->overs[fair->over_count] =
        (FairOver){.instance = instance,
                   .left = PARTS * sim_capacity_of(e, e->instances[instance].row, instance),
                   .stale = true};
    fair->local_over[instance] = ++fair->over_count;
    e->instances[instance].dirty = false;
}

/* Every overfull instance that the slot's op needs. */
static void add_instances_of(Engine *e, const Slot *slot)
{
    const OpInfo *op = sim_slot_op(e, slot);
    for (int32_t i = op->first_share; i < op->first_share + op->share_count; i++) {
        const int32_t at = sim_instance_of(e, &e->shares[i], slot->rank);
        if (at >= 0 && e->shares[i].mode == SIM_SHARE_FAIR && e->instances[at].free < 0)
            add_over(e, at);
    }
}

static int32_t add_op(Engine *e, int32_t slot_index)
{
    Fair *fair = e->fair;
    const Slot *slot = &e->slots[slot_index];
    const int32_t joined = sim_collective_of(e, slot, sim_slot_op(e, slot)),
                  event = joined == SIM_NONE ? slot_index : e->slot_count + joined;
    if (fair->local_op[event] > 0)
        return fair->local_op[event] - 1;
    FairOp *op = &fair->ops[fair->op_count];
    *op = (FairOp){
        .event = event, .rate = SIM_FULL_RATE, .weight = e->op_rates[sim_slot_instr(e, slot)->op].weight};
    fair->local_op[event] = ++fair->op_count;
    if (event < e->slot_count) {
        add_instances_of(e, slot);
    } else {
        const Collective *collective = &e->collectives[event - e->slot_count];
        for (int32_t i = 0; i < collective->member_count; i++)
            add_instances_of(e, &e->slots[e->members[collective->first_member + i]]);
    }
    return fair->op_count - 1;
}

/* A running op holds `share` of the instance, which is overfull where `over` says which one it is. */
static void add_holder(Engine *e, int32_t over, int32_t slot, const Share *share)
{
    Fair *fair = e->fair;
    if (share->mode == SIM_SHARE_RESERVED) {
        if (over >= 0)
            fair->overs[over].left -= PARTS * share->amount;
        return;
    }
    const int32_t op = add_op(e, slot);
    if (over < 0)
        return;
    fair->holds[fair->hold_count++] = (FairHold){.amount = share->amount, .op = op, .over = over};
    fair->overs[over].hold_count++;
    fair->ops[op].hold_count++;
}

static void add_holders(Engine *e, int32_t instance, int32_t over)
{
    const int row_index = e->instances[instance].row;
    const Row *row = &e->rows[row_index];
    if (over >= 0)
        e->fair->overs[over].first_hold = e->fair->hold_count;
    if (row->instance_of_rank == NULL) {
        const Rank *rank = &e->ranks[(instance - row->first) / row->stride];
        for (int32_t s = rank->first_slot; s < rank->first_slot + rank->slot_count; s++) {
            const Slot *slot = &e->slots[s];
            if (slot->state != SLOT_RUNNING || !slot->holds)
                continue;
            const OpInfo *op = sim_slot_op(e, slot);
            for (int32_t i = op->first_share; i < op->first_share + op->share_count; i++) {
                if (e->shares[i].row == row_index && !e->shares[i].listed)
                    add_holder(e, over, s, &e->shares[i]);
            }
        }
    }
    for (int32_t h = e->instances[instance].first_hold; h != SIM_NONE; h = e->holds[h].next)
        add_holder(e, over, e->holds[h].slot, &e->shares[e->holds[h].share]);
}

static void connect(Engine *e, int32_t seed)
{
    Fair *fair = e->fair;
    fair->op_count = fair->over_count = fair->hold_count = 0;
    e->instances[seed].dirty = false;
    if (e->instances[seed].free < 0)
        add_over(e, seed);
    else
        add_holders(e, seed, SIM_NONE);
    for (int32_t i = 0; i < fair->over_count; i++)
        add_holders(e, fair->overs[i].instance, i);
    int32_t next = 0;
    for (int32_t i = 0; i < fair->op_count; i++) {
        fair->ops[i].first_hold = next;
        next += fair->ops[i].hold_count;
        fair->ops[i].hold_count = 0;
    }
    for (int32_t i = 0; i < fair->hold_count; i++) {
        FairOp *op = &fair->ops[fair->holds[i].op];
        fair->by_op[op->first_hold + op->hold_count++] = i;
    }
}

/* --- levels --- */

/* weight x sum of amount / weight over ops: what they would use at the level `weight`. `sum` in 1/SIM_FULL_RATE. */
static int64_t used_at(int64_t weight, int64_t sum)
{
    if (sum / SIM_FULL_RATE > INT64_MAX / 4 / weight)
        return INT64_MAX / 2;
    return sum / SIM_FULL_RATE * weight + sum % SIM_FULL_RATE * weight / SIM_FULL_RATE;
}

static int64_t part_of(const FairHold *hold, const FairOp *op)
{
    if (hold->amount == op->weight)
        return SIM_FULL_RATE;
    const double part = (double)hold->amount / (double)op->weight * SIM_FULL_RATE;
    return (int64_t)CLAMP(part, 1, (double)SIM_MAX_CAPACITY);
}

/* What each unsettled op gets of the instance: those that need less than the level are satisfied and leave the rest to
 * the others. */
static void find_level(Fair *fair, FairOver *over)
{
    FairHold *first = &fair->holds[over->first_hold], *end = first + over->hold_count;
    int64_t left = over->left, sum = 0;
    for (FairHold *hold = first; hold < end; hold++) {
        hold->satisfied = fair->ops[hold->op].settled;
        sum += hold->satisfied ? 0 : part_of(hold, &fair->ops[hold->op]);
    }
    for (bool changed = true; changed && sum > 0;) {
        const int64_t left_before = left, sum_before = sum;
        changed = false;
        for (FairHold *hold = first; hold < end; hold++) {
            const FairOp *op = &fair->ops[hold->op];
            if (!hold->satisfied && used_at(op->weight, sum_before) <= left_before / PARTS) {
                hold->satisfied = changed = true;
                left -= PARTS * hold->amount;
                sum -= part_of(hold, op);
            }
        }
    }
    over->stale = false;
    over->level_left = MAX(left, 0);
    over->level_weight = sum;
    over->settled = sum == 0; /* enough for all */
    over->level = (double)over->level_left / PARTS * SIM_FULL_RATE / (double)MAX(sum, 1) * SIM_FULL_RATE;
}

static const FairOver *lowest_level(Fair *fair)
{
    const FairOver *lowest = NULL;
    for (int32_t i = 0; i < fair->over_count; i++) {
        FairOver *over = &fair->overs[i];
        if (!over->settled && over->stale)
            find_level(fair, over);
        if (!over->settled && (lowest == NULL || over->level < lowest->level))
            lowest = over;
    }
    return lowest;
}

static int32_t rate_at(const Engine *e, const FairOver *over, int64_t weight)
{
    const int row = e->instances[over->instance].row;
    if (sim_capacity_of(e, row, over->instance) == 0)
        return 0;
    const int64_t used = used_at(weight, over->level_weight);
    /* A sum of whole weights, as of ops with one share each or of messages, is divided exactly. */
    const int64_t rate = over->level_weight % SIM_FULL_RATE == 0
                             ? over->level_left * (SIM_FULL_RATE / PARTS) / MAX(used, 1)
                             : (int64_t)(over->level / (double)weight);
    return (int32_t)MAX(rate - rate % e->grain, e->grain);
}

static void settle_op(Fair *fair, FairOp *op, int32_t rate)
{
    op->rate = rate;
    op->settled = true;
    for (int32_t i = 0; i < op->hold_count; i++) {
        const FairHold *hold = &fair->holds[fair->by_op[op->first_hold + i]];
        const int64_t divisor = SIM_FULL_RATE / PARTS;
        fair->overs[hold->over].left -= (hold->amount * rate + divisor - 1) / divisor;
        fair->overs[hold->over].stale = true;
    }
}

static void settle_over(Engine *e, FairOver *over)
{
    Fair *fair = e->fair;
    over->settled = true;
    for (int32_t i = over->first_hold; i < over->first_hold + over->hold_count; i++) {
        const FairHold *hold = &fair->holds[i];
        FairOp *op = &fair->ops[hold->op];
        if (!op->settled)
            settle_op(fair, op, hold->satisfied ? SIM_FULL_RATE : rate_at(e, over, op->weight));
    }
}

/* Instances of the same level settle together, so that equal ranks get equal rates however they are rounded. */
static void solve(Engine *e)
{
    Fair *fair = e->fair;
    const FairOver *lowest;
    while ((lowest = lowest_level(fair)) != NULL) {
        const double level = lowest->level;
        for (int32_t i = 0; i < fair->over_count; i++) {
            if (!fair->overs[i].settled && fair->overs[i].level <= level)
                settle_over(e, &fair->overs[i]);
        }
    }
}

/* --- ops that meet no other --- */

/* The slot with the only fair share of an instance. */
static int32_t lone_holder(const Engine *e, int32_t instance)
{
    const int row_index = e->instances[instance].row;
    const Row *row = &e->rows[row_index];
    for (int32_t h = e->instances[instance].first_hold; h != SIM_NONE; h = e->holds[h].next) {
        if (e->shares[e->holds[h].share].mode == SIM_SHARE_FAIR)
            return e->holds[h].slot;
    }
    const Rank *rank = &e->ranks[(instance - row->first) / row->stride];
    for (int32_t s = rank->first_slot; s < rank->first_slot + rank->slot_count; s++) {
        const Slot *slot = &e->slots[s];
        if (slot->state != SLOT_RUNNING || !slot->holds)
            continue;
        const OpInfo *op = sim_slot_op(e, slot);
        for (int32_t i = op->first_share; i < op->first_share + op->share_count; i++) {
            const Share *share = &e->shares[i];
            if (share->row == row_index && !share->listed && share->mode == SIM_SHARE_FAIR)
                return s;
        }
    }
    g_assert_not_reached();
}

/* Lowers `rate` to what the slot's instances leave it; false when another op shares an overfull one. */
static bool limit_rate(Engine *e, const Slot *slot, int32_t *rate)
{
    const OpInfo *op = sim_slot_op(e, slot);
    for (int32_t i = op->first_share; i < op->first_share + op->share_count; i++) {
        const Share *share = &e->shares[i];
        const int32_t at = sim_instance_of(e, share, slot->rank);
        if (at < 0 || share->mode != SIM_SHARE_FAIR)
            continue;
        Instance *instance = &e->instances[at];
        if (instance->fair_count == 1)
            instance->dirty = false;
        else if (instance->free < 0)
            return false;
        if (instance->free >= 0)
            continue;
        const int64_t left = MAX(instance->free + share->amount, 0);
        const int64_t own = left * SIM_FULL_RATE / share->amount;
        const bool standstill = sim_capacity_of(e, share->row, at) == 0;
        *rate = MIN(*rate, standstill ? 0 : (int32_t)MAX(own - own % e->grain, e->grain));
    }
    return true;
}

/* An op all of whose overfull instances are its own, but for reserved shares: kernels beside communication. */
static bool settle_lone(Engine *e, int32_t instance)
{
    const int32_t holder = lone_holder(e, instance);
    const Slot *slot = &e->slots[holder];
    const int32_t joined = sim_collective_of(e, slot, sim_slot_op(e, slot));
    int32_t rate = SIM_FULL_RATE;
    if (joined == SIM_NONE) {
        if (!limit_rate(e, slot, &rate))
            return false;
        sim_rate_change(e, holder, rate);
        return true;
    }
    const Collective *collective = &e->collectives[joined];
    for (int32_t i = 0; i < collective->member_count; i++) {
        if (!limit_rate(e, &e->slots[e->members[collective->first_member + i]], &rate))
            return false;
    }
    sim_rate_change(e, e->slot_count + joined, rate);
    return true;
}

static void settle(Engine *e)
{
    Fair *fair = e->fair;
    for (int32_t i = 0; i < e->dirty_count; i++) {
        Instance *instance = &e->instances[e->dirty[i]];
        if (!instance->dirty)
            continue;
        instance->dirty = false;
        if (instance->fair_count == 0 || (instance->fair_count == 1 && settle_lone(e, e->dirty[i])))
            continue;
        connect(e, e->dirty[i]);
        solve(e);
        for (int32_t k = 0; k < fair->op_count; k++) {
            sim_rate_change(e, fair->ops[k].event, fair->ops[k].rate);
            fair->local_op[fair->ops[k].event] = 0;
        }
        for (int32_t k = 0; k < fair->over_count; k++)
            fair->local_over[fair->overs[k].instance] = 0;
    }
}

void sim_rate_settle(Engine *e)
{
    settle(e);
    for (int32_t i = 0; i < e->dirty_count; i++)
        e->instances[e->dirty[i]].dirty = false;
    e->dirty_count = 0;
}
