/* campaign/replicas.c - see replicas.h.
 *
 * Between two failures everything is arithmetic: an uptime x since a restart holds floor((x - write) / period) new
 * checkpoints. A campaign of a million steps costs as many events as it has failures.
 */
#include "campaign/replicas.h"

#include <glib.h>
#include <math.h>

/* SplitMix64's mixer over a counter.   Source: Steele, Lea, Flood, OOPSLA 2014 */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

typedef struct Draws {
    uint64_t key, counter;
} Draws;

/* In (0, 1). */
static double draw(Draws *draws)
{
    const uint64_t bits = mix(draws->key ^ mix(draws->counter++)) >> 11;
    return ((double)bits + 0.5) * 0x1p-53;
}

/* Nodes away, in the order in which they come back: repairs take all the same time. */
typedef struct Away {
    GArray *back_s;
    guint first;
} Away;

static guint away_count(const Away *away)
{
    return away->back_s->len - away->first;
}

/* A node goes at `now_s`; seconds that the job waits for one to take its place. */
static double lose_node(const CampaignRun *run, Away *away, double now_s, CampaignLife *life)
{
    const double back_s = now_s + run->repair_s;
    while (away_count(away) > 0 && g_array_index(away->back_s, double, away->first) <= now_s)
        away->first++;
    g_array_append_val(away->back_s, back_s);
    const guint count = away_count(away);
    life->nodes_away = MAX(life->nodes_away, (int64_t)count);
    if (run->spares < 0 || count <= (guint)run->spares)
        return 0;
    const guint needed =
        away->first + count - (guint)run->spares - 1; /* the one whose return fills the gap */
    return fmax(0, g_array_index(away->back_s, double, needed) - now_s - run->detection_s);
}

/* `spent_s` of a restart: reading the checkpoint back, and the rest. */
static void spend_restart(const CampaignRun *run, double spent_s, CampaignLife *life)
{
    const double loading_s = fmin(fmax(spent_s - run->load_from_s, 0), run->load_s);
    life->loading_s += loading_s;
    life->restart_s += spent_s - loading_s;
    life->total_s += spent_s;
}

static void fail_once(const CampaignRun *run, Draws *draws, Away *away, CampaignLife *life)
{
    life->interruptions++;
    if (!(draw(draws) < run->node_loss_frac))
        return;
    const double waited_s = lose_node(run, away, life->total_s, life);
    life->waiting_s += waited_s;
    life->total_s += waited_s;
}

static double next_failure_s(const CampaignRun *run, Draws *draws)
{
    return isinf(run->rates.mtbf_s) ? INFINITY : -run->rates.mtbf_s * log(draw(draws));
}

/* From a failure until the run goes on; the time to the next failure then. */
static double restart(const CampaignRun *run, Draws *draws, Away *away, CampaignLife *life)
{
    const double whole_s = run->rates.restart_s;
    fail_once(run, draws, away, life);
    double failure_s = next_failure_s(run, draws);
    while (run->rates.fails_in_restart && failure_s < whole_s) {
        spend_restart(run, failure_s, life);
        life->restarts_hit++;
        fail_once(run, draws, away, life);
        failure_s = next_failure_s(run, draws);
    }
    spend_restart(run, whole_s, life);
    return run->rates.fails_in_restart ? failure_s - whole_s : failure_s;
}

CampaignLife campaign_live(const CampaignRun *run, uint64_t seed, uint64_t replica)
{
    const double period_s = run->interval_s + run->rates.stall_s;
    CampaignLife life = {0};
    Draws draws = {mix(mix(seed) ^ replica), 0};
    Away away = {g_array_new(FALSE, FALSE, sizeof(double)), 0};
    double left = run->segments, failure_s = next_failure_s(run, &draws);
    while (left * period_s + run->rates.write_s > failure_s) {
        const double saved = floor(fmax(failure_s - run->rates.write_s, 0) / period_s);
        left -= fmin(saved, left);
        life.checkpoint_s += saved * run->rates.stall_s;
        life.lost_work_s += failure_s - saved * period_s;
        life.total_s += failure_s;
        failure_s = restart(run, &draws, &away, &life);
    }
    life.checkpoint_s += left * run->rates.stall_s + run->rates.write_s;
    life.total_s += left * period_s + run->rates.write_s;
    g_array_free(away.back_s, TRUE);
    return life;
}

typedef struct Crew {
    const CampaignRun *run;
    uint64_t seed;
    int64_t count;
    CampaignLife *lives;
    gint next; /* atomic: a block of lives */
} Crew;

enum { BLOCK = 16 };

static void *work(void *data)
{
    Crew *crew = data;
    for (;;) {
        const int64_t begin = (int64_t)g_atomic_int_add(&crew->next, 1) * BLOCK;
        if (begin >= crew->count)
            return NULL;
        for (int64_t i = begin; i < MIN(begin + BLOCK, crew->count); i++)
            crew->lives[i] = campaign_live(crew->run, crew->seed, (uint64_t)i);
    }
}

void campaign_live_all(const CampaignRun *run, uint64_t seed, int64_t count, int threads, CampaignLife *lives)
{
    Crew crew = {run, seed, count, lives, 0};
    const int wanted = threads > 0 ? threads : (int)g_get_num_processors();
    const int helpers = (int)CLAMP((count + BLOCK - 1) / BLOCK, 1, wanted) - 1;
    g_autofree GThread **team = g_new0(GThread *, (gsize)helpers + 1);
    int made = 0; /* where threads are short, fewer do the same work */
    while (made < helpers && (team[made] = g_thread_try_new("campaign", work, &crew, NULL)) != NULL)
        made += 1;
    work(&crew);
    for (int i = 0; i < made; i++)
        g_thread_join(team[i]);
}
