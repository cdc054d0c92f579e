/* network/flows_fill.c - max-min fair rates by progressive filling over what changed.
 *
 * Newcomers are filled beside the others, whose rates stand, from the lowest rate up. At each rate two things may happen
 * on a crowded link. It is full: its members get no more, and others that get more than that join them first. Or it has
 * more left than others have whom it holds: these join. Whoever joins had at least the rate that filling is at, so that
 * what is settled below stands, and every flow joins and is frozen once at most. In the end every flow is held by a link
 * that is full and gives no flow more, which is what max-min fair means.
 */
#include <string.h>

#include "base/bits.h"
#include "network/flows_state.h"

#define SAME NET_SAME
#define TIE  1e-12 /* levels that differ by less come together */

/* Selects without a branch: no predictor can guess the condition. */
static double pick(bool first, double a, double b)
{
    uint64_t bits_a, bits_b;
    const uint64_t mask = -(uint64_t)first;
    memcpy(&bits_a, &a, sizeof a);
    memcpy(&bits_b, &b, sizeof b);
    bits_a = (bits_a & mask) | (bits_b & ~mask);
    memcpy(&a, &bits_a, sizeof a);
    return a;
}

/* The rate at which something happens on a link: it is full, or others that it holds may have more. */
static double level_of(const NetGiven *given)
{
    const bool nothing = (given->loose == 0) & (given->left <= (double)given->full);
    const double full = MAX(given->left, 0) / given->loose;
    return pick(nothing, INFINITY, pick(full > given->held * (1 + SAME), given->held, full));
}

static bool is_concerned(const NetFlows *f, int32_t l)
{
    return (f->given[l].place < f->concerned_count) & (f->concerned[f->given[l].place] == l);
}

/* A crowded link becomes one of those concerned. */
static void concern(NetFlows *f, int32_t l)
{
    NetGiven *given = &f->given[l];
    const bool new = !is_concerned(f, l);
    if (f->concerned_count == f->level_count) {
        for (int k = 0; k < NET_BLOCK; k++)
            f->next_level[f->level_count + k] = INFINITY;
        f->level_count += NET_BLOCK;
    }
    f->concerned[f->concerned_count] = l;
    given->place = new ? f->concerned_count : given->place;
    given->loose = new ? 0 : given->loose;
    f->concerned_count += new;
}

/* A flow becomes a member, not frozen: what it had is left to all. */
static void join(NetFlows *f, int32_t slot)
{
    NetShare *share = &f->shares[slot];
    if (share->mark == f->round)
        return;
    const size_t base = (size_t)slot << f->shift;
    const int hops = f->hop_count[slot];
    int32_t *way = f->ways + base;
    int ways = 0;
    share->mark = f->round;
    share->fresh = 0;
    f->members[f->member_count++] = slot;
    f->least_cap = MIN(f->least_cap, share->cap);
    net_flows_let_go(f, share);
    for (int h = 0; h < hops; h++) {
        way[ways] = f->path[base + (size_t)h];
        ways += net_flows_crowded(f, way[ways]);
    }
    f->way_count[slot] = (uint8_t)ways;
    for (int w = 0; w < ways; w++) {
        const int32_t l = way[w];
        NetGiven *given = &f->given[l];
        concern(f, l);
        given->left += share->rate;
        given->loose++;
        f->next_level[given->place] = level_of(given);
    }
}

/* Others whom a link holds and whose rate is no more than `most` join. */
static void join_held(NetFlows *f, int32_t l, double most)
{
    NetFlowLink *link = &f->links[l];
    const int32_t *entries = net_flows_entries(link);
    NetGiven *given = &f->given[l];
    double held = INFINITY;
    for (int32_t i = 0; i < link->count; i++) {
        const int32_t slot = entries[i] >> f->shift;
        const NetShare *share = &f->shares[slot];
        if (share->held_by != l || share->mark == f->round)
            continue;
        if (share->rate <= most)
            join(f, slot);
        else
            held = MIN(held, share->rate);
    }
    given->held = held;
    if (is_concerned(f, l))
        f->next_level[given->place] = level_of(given);
}

static void become_crowded(NetFlows *f, int32_t l)
{
    NetFlowLink *link = &f->links[l];
    const int32_t *entries = net_flows_entries(link);
    f->crowded[l >> 6] |= UINT64_C(1) << (l & 63);
    f->given[l].left = f->capacity[l];
    for (int32_t i = 0; i < link->count; i++)
        f->given[l].left -= f->shares[entries[i] >> f->shift].rate;
}

/* Members: newcomers, and whom links held that can no longer hold anyone. */
static void begin(NetFlows *f)
{
    f->round++;
    f->member_count = f->concerned_count = f->level_count = 0;
    f->least_cap = INFINITY;
    for (int i = 0; i < f->dirty_count; i++) {
        const int32_t l = f->dirty[i];
        NetFlowLink *link = &f->links[l];
        const bool crowded = net_flows_crowded(f, l);
        link->dirty = false;
        f->eased[i] = crowded && link->spare >= 0;
        if (f->eased[i])
            f->crowded[l >> 6] &= ~(UINT64_C(1) << (l & 63));
        else if (!crowded && link->spare < 0)
            become_crowded(f, l);
    }
    for (int i = 0; i < f->newcomer_count; i++)
        join(f, f->newcomers[i]);
    for (int i = 0; i < f->dirty_count; i++) {
        const int32_t l = f->dirty[i];
        const NetGiven *given = &f->given[l];
        if (given->holds == 0)
            continue;
        if (f->eased[i]) {
            join_held(f, l, INFINITY);
        } else {
            concern(f, l);
            f->next_level[given->place] = level_of(given);
        }
    }
    f->dirty_count = f->newcomer_count = 0;
}

static void freeze(NetFlows *f, int32_t slot, double rate, int32_t held_by)
{
    NetShare *share = &f->shares[slot];
    const int32_t *way = f->ways + ((size_t)slot << f->shift);
    share->fresh = rate;
    share->held_by = held_by;
    for (int w = 0; w < f->way_count[slot]; w++) {
        const int32_t l = way[w];
        NetGiven *given = &f->given[l];
        given->left -= rate;
        given->loose--;
        f->next_level[given->place] = level_of(given);
    }
}

/* Of all links; f->least gets that of each block. */
static double least_level(const NetFlows *f)
{
    double all = INFINITY;
    for (int b = 0; b * NET_BLOCK < f->level_count; b++) {
        const double *level = f->next_level + b * NET_BLOCK;
        double least[4];
        for (int k = 0; k < 4; k++)
            least[k] = level[k] < level[k + 4] ? level[k] : level[k + 4];
        f->least[b] = MIN(MIN(least[0], least[1]), MIN(least[2], least[3]));
        all = MIN(all, f->least[b]);
    }
    return all;
}

/* Members whose own slowest link gives them no more than `level`. */
static bool freeze_capped(NetFlows *f, double level)
{
    if (f->least_cap == INFINITY || f->least_cap > level)
        return false;
    f->least_cap = INFINITY;
    bool any = false;
    for (int i = 0; i < f->member_count; i++) {
        const NetShare *share = &f->shares[f->members[i]];
        if (share->fresh > 0)
            continue;
        if (share->cap <= level)
            any = true, freeze(f, f->members[i], share->cap, -1);
        else
            f->least_cap = MIN(f->least_cap, share->cap);
    }
    return any;
}

/* Others of a full link, f->above, that get more than its members and they together would get of it join. */
static void join_above(NetFlows *f, const NetGiven *given, int count, double most)
{
    double level = MAX(given->left, 0) / given->loose, before = -1;
    while (level > before * (1 + SAME)) {
        double left = MAX(given->left, 0);
        int loose = given->loose;
        for (int i = 0; i < count; i++)
            if (f->shares[f->above[i]].rate > level)
                left += f->shares[f->above[i]].rate, loose++;
        before = level;
        level = left / loose;
    }
    const double least = MIN(level * (1 + SAME), most);
    for (int i = 0; i < count; i++)
        if (f->shares[f->above[i]].rate >= least)
            join(f, f->above[i]);
}

/* A link is full at this level. */
static void fill_up(NetFlows *f, int32_t l, double level)
{
    NetFlowLink *link = &f->links[l];
    const int32_t *entries = net_flows_entries(link);
    NetGiven *given = &f->given[l];
    double most = 0;
    int loose = 0, above = 0;
    for (int32_t i = 0; i < link->count; i++) {
        const int32_t slot = entries[i] >> f->shift;
        const NetShare *share = &f->shares[slot];
        const bool member = share->mark == f->round;
        f->loose[loose] = f->above[above] = slot;
        loose += member & (share->fresh <= 0);
        above += !member & (share->rate > level);
        most = MAX(most, pick(member, 0, share->rate));
    }
    if (most > level * (1 + SAME)) {
        join_above(f, given, above, most);
        return;
    }
    const double rate = MAX((double)(int64_t)(level / f->quantum), 1) * f->quantum;
    given->holds += loose;
    given->held = MIN(given->held, rate);
    for (int i = 0; i < loose; i++)
        freeze(f, f->loose[i], rate, l);
}

/* A bit for each level of a block that is reached. */
static unsigned reached(const double *levels, double limit)
{
    unsigned bits = 0;
    for (int k = 0; k < NET_BLOCK; k++)
        bits |= (unsigned)(levels[k] <= limit) << k;
    return bits;
}

/* On a link on which something happens at this level. */
static void happen(NetFlows *f, int32_t l, double level)
{
    const NetGiven *given = &f->given[l];
    if (given->loose == 0 || MAX(given->left, 0) / given->loose > given->held * (1 + SAME))
        join_held(f, l, given->held * (1 + SAME));
    else
        fill_up(f, l, level);
}

/* On the links of a block at which something happens at this level, if it still does when their turn comes. */
static void happen_in(NetFlows *f, int block, double level)
{
    const double *levels = f->next_level + block * NET_BLOCK, limit = level * (1 + TIE);
    for (unsigned bits = reached(levels, limit); bits != 0; bits &= bits - 1) {
        const int k = orr_lowest_bit(bits);
        if (levels[k] <= limit)
            happen(f, f->concerned[block * NET_BLOCK + k], level);
    }
}

/* Links at which something happens at the least rate; ties are one level. */
void net_flows_fill(NetFlows *f)
{
    begin(f);
    for (;;) {
        const double level = least_level(f);
        if (freeze_capped(f, level))
            continue;
        if (level == INFINITY)
            return;
        const int blocks = f->level_count / NET_BLOCK;
        for (int b = 0; b < blocks; b++)
            if (f->least[b] <= level * (1 + TIE))
                happen_in(f, b, level);
    }
}
