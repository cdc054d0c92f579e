/* campaign/away.c - see away.h. */
#include "campaign/away.h"

#include <math.h>
#include <string.h>

typedef struct Node {
    double back_s;
    int kind;
} Node;

CampaignAway campaign_away_new(void)
{
    return (CampaignAway){g_array_new(FALSE, FALSE, sizeof(Node)), 0};
}

void campaign_away_clear(CampaignAway *away)
{
    g_array_free(away->nodes, TRUE);
}

guint campaign_away_count(const CampaignAway *away)
{
    return away->nodes->len - away->first;
}

static const Node *node_at(const CampaignAway *away, guint index)
{
    return &g_array_index(away->nodes, Node, away->first + index);
}

void campaign_away_return(CampaignAway *away, double now_s)
{
    while (campaign_away_count(away) > 0 && node_at(away, 0)->back_s <= now_s)
        away->first++;
}

/* Nodes for which no spare one stands in. */
static guint missing_count(const CampaignAway *away, const CampaignRun *run)
{
    const guint count = campaign_away_count(away), spares = (guint)MAX(run->spares, 0);
    return run->spares < 0 || count <= spares ? 0 : count - spares;
}

/* Of each kind, when `back` more nodes are back. */
static void count_missing(const CampaignAway *away, const CampaignRun *run, guint back, int *ret_missing)
{
    memset(ret_missing, 0, sizeof *ret_missing * CAMPAIGN_KINDS);
    for (guint i = (guint)MAX(run->spares, 0) + back; run->spares >= 0 && i < campaign_away_count(away); i++)
        ret_missing[node_at(away, i)->kind]++;
}

/* --- who goes --- */

/* Nodes of each kind that may fail: those that have not. Where all of them are away (restarts are hit too) the one that is
 * back first, for it is there before the job is. */
static void count_present(const CampaignAway *away, const CampaignRun *run, int *ret_present)
{
    const guint count = campaign_away_count(away), spares = (guint)MAX(run->spares, 0);
    guint nodes = 0;
    for (int k = 0; k < run->kinds; k++) {
        ret_present[k] = run->kind_nodes[k];
        nodes += (guint)run->kind_nodes[k];
    }
    for (guint i = MAX(spares, count > nodes - 1 ? count - (nodes - 1) : 0); i < count; i++)
        ret_present[node_at(away, i)->kind]--;
}

static int draw_kind(const CampaignRun *run, const int *present, OrrDraws *draws)
{
    int all = 0, kind = 0;
    for (int k = 0; k < run->kinds; k++)
        all += present[k];
    double left = orr_draw(draws) * all;
    while (kind + 1 < run->kinds && left >= present[kind])
        left -= present[kind++];
    return kind;
}

void campaign_away_lose(CampaignAway *away, const CampaignRun *run, int nodes, double back_s, OrrDraws *draws)
{
    Node node = {back_s, 0};
    for (int i = 0; i < nodes; i++) {
        int present[CAMPAIGN_KINDS];
        if (run->kinds > 1) {
            count_present(away, run, present);
            node.kind = i == 0 ? draw_kind(run, present, draws) : node.kind;
            while (present[node.kind] == 0) /* neighbours of the last one are of the next kind */
                node.kind = (node.kind + 1) % run->kinds;
        }
        g_array_append_val(away->nodes, node);
    }
}

/* --- what that leaves --- */

static bool covers(const CampaignLevel *level, const int *missing)
{
    for (int k = 0; k < CAMPAIGN_KINDS; k++)
        if (missing[k] > level->missing[k])
            return false;
    return true;
}

/* The best pace without these nodes; 0: none. */
static double best_rate(const CampaignRun *run, const int *missing)
{
    double best = 0;
    for (int i = 0; i < run->level_count; i++)
        if (run->levels[i].rate > best && covers(&run->levels[i], missing))
            best = run->levels[i].rate;
    return best;
}

/* How many nodes have to come back until the pace is above `rate`; 0: none, it is. All: it is full. */
static guint needed(const CampaignAway *away, const CampaignRun *run, double rate)
{
    const guint all = missing_count(away, run);
    int missing[CAMPAIGN_KINDS];
    if (run->level_count == 0)
        return all;
    count_missing(away, run, 0, missing);
    for (guint back = 0; back < all; back++) {
        if (best_rate(run, missing) > rate)
            return back;
        missing[node_at(away, (guint)run->spares + back)->kind]--;
    }
    return all;
}

double campaign_away_until_s(const CampaignAway *away, const CampaignRun *run)
{
    const guint back = needed(away, run, 0);
    return back == 0 ? 0 : node_at(away, back - 1)->back_s;
}

static double least_rate(const CampaignRun *run)
{
    double least = 1;
    for (int i = 0; i < run->level_count; i++)
        least = fmin(least, run->levels[i].rate);
    return least;
}

double campaign_away_pace(const CampaignAway *away, const CampaignRun *run, double *ret_faster_at_s)
{
    int missing[CAMPAIGN_KINDS];
    *ret_faster_at_s = INFINITY;
    if (run->level_count == 0 || missing_count(away, run) == 0)
        return 1;
    count_missing(away, run, 0, missing);
    double rate = best_rate(run, missing);
    if (!(rate > 0)) /* those that it waited for come during its restart */
        rate = least_rate(run);
    *ret_faster_at_s = node_at(away, needed(away, run, rate) - 1)->back_s;
    return rate;
}
