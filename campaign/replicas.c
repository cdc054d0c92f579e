/* campaign/replicas.c - see replicas.h.
 *
 * Between two failures everything is arithmetic: an uptime x since a restart holds floor((x - write) / period) new
 * checkpoints. A campaign of a million steps costs as many events as it has failures.
 */
#include "campaign/replicas.h"

#include <glib.h>
#include <math.h>
#include <string.h>

#include "base/crew.h"
#include "base/draws.h"
#include "campaign/away.h"

/* One replica on its way. */
typedef struct Living {
    const CampaignRun *run;
    OrrDraws draws;
    OrrDraws places; /* which node fails; apart, so that nothing else depends on there being kinds of nodes */
    CampaignAway away;
    double left;    /* segments */
    int scripted;   /* failures of the script that have been */
    GArray *events; /* CampaignEvent; NULL: not recorded */
    CampaignLife life;
} Living;

/* `nodes` go now; seconds that the job waits for some to take their place. */
static double lose_nodes(Living *l, int nodes)
{
    const CampaignRun *run = l->run;
    const double now_s = l->life.total_s;
    campaign_away_return(&l->away, now_s);
    campaign_away_lose(&l->away, run, nodes, now_s + run->repair_s, &l->places);
    l->life.nodes_away = MAX(l->life.nodes_away, (int64_t)campaign_away_count(&l->away));
    return fmax(0, campaign_away_until_s(&l->away, run) - now_s - run->detection_s);
}

/* `spent_s` of a restart: reading the checkpoint back, and the rest. */
static void spend_restart(const CampaignRun *run, double spent_s, double load_s, CampaignLife *life)
{
    const double loading_s = fmin(fmax(spent_s - run->load_from_s, 0), load_s);
    life->loading_s += loading_s;
    life->restart_s += spent_s - loading_s;
    life->total_s += spent_s;
}

/* Copies at peers went with the nodes: back to the last checkpoint in storage. Segments that were saved are work to be
 * done again. */
static void fall_back(Living *l)
{
    const CampaignRun *run = l->run;
    const double done = run->segments - l->left, period_s = run->interval_s + run->rates.stall_s;
    const double stored =
        fmax(0, floor((done - run->stored_write_s / period_s) / run->store_every)) * run->store_every;
    const double again = fmax(0, done - stored);
    l->left += again;
    l->life.lost_work_s += again * period_s;
    l->life.checkpoint_s -= again * run->rates.stall_s;
}

/* Which cause a draw of its share falls on. */
static int cause_of(const CampaignRun *run, double share)
{
    int cause = 0;
    while (cause + 1 < run->cause_count && share >= run->causes[cause].until)
        cause++;
    return cause;
}

/* Until somebody starts the job again that does not do so itself, and it runs. */
static double await_person(Living *l)
{
    const CampaignRun *run = l->run;
    double waited_s = 0;
    if (!(run->manual_frac > 0) || orr_draw(&l->draws) >= run->manual_frac)
        return 0;
    do
        waited_s += orr_draw_exponential(&l->draws, run->response_s);
    while (run->repeat_frac > 0 && orr_draw(&l->draws) < run->repeat_frac);
    return waited_s;
}

/* The run begins anew `back_s` of work before the last checkpoint, at the earliest at its beginning. */
static void roll_back(Living *l, double back_s)
{
    const CampaignRun *run = l->run;
    const double done = run->segments - l->left, again = fmin(done, ceil(back_s / run->interval_s));
    l->left += again;
    l->life.lost_work_s += again * (run->interval_s + run->rates.stall_s);
    l->life.checkpoint_s -= again * run->rates.stall_s;
}

/* A failure now; `lost_s`: of work since the last checkpoint. Whether peers' copies are gone too. */
static bool fail_once(Living *l, double lost_s)
{
    const CampaignRun *run = l->run;
    CampaignLife *life = &l->life;
    const int cause = run->script_count > 0 ? run->script_cause : cause_of(run, orr_draw(&l->draws));
    const int nodes = run->cause_count > 0 ? run->causes[cause].nodes : 0;
    const double before_s = life->lost_work_s;
    life->interruptions++;
    const bool hard = run->store_every > 0 && nodes > 1;
    if (hard)
        fall_back(l);
    if (run->cause_count > 0 && run->causes[cause].rollback_s > 0)
        roll_back(l, run->causes[cause].rollback_s);
    const double at_s = life->total_s;
    const double waited_s = fmax(nodes > 0 ? lose_nodes(l, nodes) : 0, await_person(l));
    life->waiting_s += waited_s;
    life->total_s += waited_s;
    if (l->events != NULL) {
        const CampaignEvent event = {.at_s = at_s,
                                     .cause = cause,
                                     .nodes = nodes,
                                     .nodes_away = (int)campaign_away_count(&l->away),
                                     .lost_s = lost_s + life->lost_work_s - before_s,
                                     .waited_s = waited_s};
        g_array_append_val(l->events, event);
    }
    return hard;
}

static double next_failure_s(Living *l)
{
    const CampaignRun *run = l->run;
    if (run->script_count > 0) {
        while (l->scripted < run->script_count && run->script_s[l->scripted] <= l->life.total_s)
            l->scripted++;
        return l->scripted < run->script_count ? run->script_s[l->scripted] - l->life.total_s : INFINITY;
    }
    return isinf(run->rates.mtbf_s) ? INFINITY : orr_draw_exponential(&l->draws, run->rates.mtbf_s);
}

/* From a stop until the run goes on; the time to the next failure then, of which `failure_s` are left at the stop. */
static double start_again(Living *l, double failure_s, bool hard)
{
    const CampaignRun *run = l->run;
    CampaignLife *life = &l->life;
    double load_s = hard ? run->stored_load_s : run->load_s;
    double whole_s = run->rates.restart_s + load_s - run->load_s;
    while (run->rates.fails_in_restart && failure_s < whole_s) {
        spend_restart(run, failure_s, load_s, life);
        life->restarts_hit++;
        if (fail_once(l, 0))
            load_s = run->stored_load_s, whole_s = run->rates.restart_s + load_s - run->load_s;
        failure_s = next_failure_s(l);
    }
    spend_restart(run, whole_s, load_s, life);
    return run->rates.fails_in_restart ? failure_s - whole_s : failure_s;
}

static double restart(Living *l, double lost_s)
{
    const bool hard = fail_once(l, lost_s);
    return start_again(l, next_failure_s(l), hard);
}

/* `saved` segments at a pace, and what else of `spent_s` was stall. */
static void keep(Living *l, double saved, double rate, double spent_s)
{
    const CampaignRun *run = l->run;
    l->left -= saved;
    l->life.checkpoint_s += saved * run->rates.stall_s;
    l->life.degraded_s += saved * run->interval_s * (1 / rate - 1);
    l->life.total_s += spent_s;
}

static void live(Living *l)
{
    const CampaignRun *run = l->run;
    double failure_s = next_failure_s(l);
    for (;;) {
        double faster_at_s = INFINITY;
        campaign_away_return(&l->away, l->life.total_s);
        const double rate = campaign_away_pace(&l->away, run, &faster_at_s);
        const double faster_s = faster_at_s - l->life.total_s;
        const double period_s = run->interval_s / rate + run->rates.stall_s;
        const double done_s = l->left * period_s + run->rates.write_s;
        /* Behind the checkpoint after a node's return the job starts again with it. */
        const double stops = fmax(1, ceil((faster_s - run->rates.write_s) / period_s));
        const double stop_s = stops * period_s + run->rates.write_s;
        if (stop_s < done_s && stop_s <= failure_s) {
            keep(l, stops, rate, stop_s);
            l->life.checkpoint_s += run->rates.write_s;
            failure_s = start_again(l, failure_s - stop_s, false);
        } else if (done_s > failure_s) {
            const double saved = fmin(floor(fmax(failure_s - run->rates.write_s, 0) / period_s), l->left);
            const double lost_s = failure_s - saved * period_s;
            keep(l, saved, rate, failure_s);
            l->life.lost_work_s += lost_s;
            failure_s = restart(l, lost_s);
        } else {
            keep(l, l->left, rate, done_s);
            l->life.checkpoint_s += run->rates.write_s;
            return;
        }
    }
}

CampaignLife campaign_live_events(const CampaignRun *run, uint64_t seed, uint64_t replica, GArray *events)
{
    Living living = {.run = run,
                     .draws = orr_draws(seed, replica),
                     .places = orr_draws(~seed, replica),
                     .away = campaign_away_new(),
                     .left = run->segments,
                     .events = events};
    live(&living);
    campaign_away_clear(&living.away);
    return living.life;
}

CampaignLife campaign_live(const CampaignRun *run, uint64_t seed, uint64_t replica)
{
    return campaign_live_events(run, seed, replica, NULL);
}

typedef struct Lives {
    const CampaignRun *run;
    uint64_t seed;
    int64_t first, count; /* replicas */
    CampaignLife *lives;  /* [count] */
    const CampaignCrew *crew;
    GMutex lock;
    int64_t done;
} Lives;

enum { BLOCK = 16 };

static void live_block(int block, void *data)
{
    Lives *all = data;
    const int64_t begin = (int64_t)block * BLOCK;
    for (int64_t i = begin; i < MIN(begin + BLOCK, all->count); i++)
        all->lives[i] = campaign_live(all->run, all->seed, (uint64_t)(all->first + i));
    if (all->crew->progress == NULL)
        return;
    g_mutex_lock(&all->lock);
    all->done += MIN(BLOCK, all->count - begin);
    all->crew->progress((double)all->done / (double)all->count, all->crew->progress_data);
    g_mutex_unlock(&all->lock);
}

/* Returns how many were lived: those below. */
static int64_t live_some(Lives *all, const CampaignCrew *crew)
{
    const int blocks = (int)((all->count + BLOCK - 1) / BLOCK);
    all->crew = crew;
    g_mutex_init(&all->lock);
    const int begun = orr_crew(blocks, crew->threads, &crew->stop, live_block, all);
    g_mutex_clear(&all->lock);
    return MIN(all->count, (int64_t)begun * BLOCK);
}

void campaign_live_all(const CampaignRun *run, uint64_t seed, int64_t count, int threads, CampaignLife *lives)
{
    campaign_live_until(run, seed, count, &(CampaignCrew){.threads = threads}, lives);
}

int64_t campaign_live_until(const CampaignRun *run, uint64_t seed, int64_t count, const CampaignCrew *crew,
                            CampaignLife *lives)
{
    Lives all = {.run = run, .seed = seed, .count = count, .lives = lives};
    if (crew->team != NULL) {
        campaign_live_team(run, seed, count, crew->threads, crew->team, lives);
        return count;
    }
    return live_some(&all, crew);
}

/* The first replica of process `rank` of `ranks`. */
static int64_t share(int64_t count, int rank, int ranks)
{
    return count / ranks * rank + MIN(rank, count % ranks);
}

void campaign_live_team(const CampaignRun *run, uint64_t seed, int64_t count, int threads,
                        const OrrTeam *team, CampaignLife *lives)
{
    if (team == NULL) {
        campaign_live_all(run, seed, count, threads, lives);
        return;
    }
    const int64_t first = share(count, team->rank, team->ranks);
    Lives own = {.run = run, .seed = seed, .first = first, .lives = lives + first};
    own.count = share(count, team->rank + 1, team->ranks) - first;
    live_some(&own, &(CampaignCrew){.threads = threads});
    g_autofree GByteArray **all = g_new(GByteArray *, (gsize)team->ranks);
    GByteArray *mine = g_byte_array_new();
    g_byte_array_append(mine, (const guint8 *)own.lives, (guint)((gsize)own.count * sizeof *lives));
    for (int r = 0; r < team->ranks; r++)
        all[r] = g_byte_array_new();
    team->exchange(team->data, mine, all);
    for (int r = 0; r < team->ranks; r++) {
        if (all[r]->len > 0)
            memcpy(lives + share(count, r, team->ranks), all[r]->data, all[r]->len);
        g_byte_array_free(all[r], TRUE);
    }
    g_byte_array_free(mine, TRUE);
}
