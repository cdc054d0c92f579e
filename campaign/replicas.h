/* campaign/replicas.h - a campaign lived through again and again, from failure to failure.
 *
 * Replica r draws its numbers from (seed, r, how many it has drawn): results are the same on any number of threads
 * and processes.
 */
#ifndef ORR_CAMPAIGN_REPLICAS_H
#define ORR_CAMPAIGN_REPLICAS_H

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

#include "base/stop.h"
#include "base/team.h"
#include "campaign/formulas.h"
#include "spec/spec.h"

enum { CAMPAIGN_CAUSES = 9, CAMPAIGN_LEVELS = 64, CAMPAIGN_SCRIPTED = 64 };

#define CAMPAIGN_KINDS SPEC_MOST_GROUPS

/* A failure is of cause i where its draw in (0, 1) is below causes[i].until and of none before. */
typedef struct CampaignShare {
    double until;
    int nodes;         /* that it takes away */
    double rollback_s; /* of work before the last checkpoint that it costs */
} CampaignShare;

/* With up to missing[k] nodes of each kind fewer the job goes on at `rate` of its full pace. */
typedef struct CampaignLevel {
    int missing[CAMPAIGN_KINDS];
    double rate;
} CampaignLevel;

typedef struct CampaignRun {
    CampaignRates rates;
    double interval_s, segments; /* of equal length */
    double load_from_s, load_s;  /* part of a restart that reads the checkpoint back */
    double manual_frac,
        response_s;     /* this share of failures waits for a person, exponentially with this mean ... */
    double repeat_frac; /* ... and once more by this chance, each time */
    double detection_s; /* first part of a restart: spare nodes are asked for behind it */
    CampaignShare causes[CAMPAIGN_CAUSES];
    int cause_count; /* 0: failures take no nodes */
    double repair_s; /* that a node is away */
    int spares;      /* -1: as many as it takes */
    int kinds,
        kind_nodes[CAMPAIGN_KINDS]; /* of a mixed cluster, of each of its kinds; 0 or 1: all are alike */
    CampaignLevel levels[CAMPAIGN_LEVELS]; /* none is at least as good as another in all */
    int level_count;                       /* 0: it waits for its nodes */
    /* Checkpoints are copies at peers, which failures of several nodes take with them: then it is back to the last of each
     * `store_every` that went to storage. */
    double store_every, stored_write_s, stored_load_s; /* store_every 0: all go to storage */
    double script_s[CAMPAIGN_SCRIPTED]; /* failures at these times, in place of random ones, by rising time */
    int script_count, script_cause;
} CampaignRun;

/* Of one replica; the parts and interval_s x segments of work add up to total_s. */
typedef struct CampaignLife {
    double total_s;
    double checkpoint_s, lost_work_s, restart_s, loading_s, waiting_s;
    double degraded_s;                   /* that intervals took longer on fewer nodes */
    int64_t interruptions, restarts_hit; /* failures; those of them that fell into a restart */
    int64_t nodes_away;                  /* most at one time */
} CampaignLife;

typedef struct CampaignEvent {
    double at_s;
    int cause, nodes, nodes_away; /* nodes: taken by it */
    double lost_s, waited_s;
} CampaignEvent;

/* Interruptions of the life go behind those in `events` (CampaignEvent; may be NULL). */
CampaignLife campaign_live_events(const CampaignRun *run, uint64_t seed, uint64_t replica, GArray *events);
CampaignLife campaign_live(const CampaignRun *run, uint64_t seed, uint64_t replica);
/* Lives 0 to count-1 into `lives`, on `threads` threads (0: all cores). */
void campaign_live_all(const CampaignRun *run, uint64_t seed, int64_t count, int threads,
                       CampaignLife *lives);
/* The same on all processes of `team` (NULL: this one alone), each of which lives a part and has all in the end. */
void campaign_live_team(const CampaignRun *run, uint64_t seed, int64_t count, int threads,
                        const OrrTeam *team, CampaignLife *lives);

typedef struct CampaignCrew {
    int threads;         /* 0: all cores */
    const OrrTeam *team; /* NULL: this process alone */
    OrrStop stop;        /* which a team of several processes does not ask */
    void (*progress)(double done_frac,
                     void *data); /* by one thread at a time, of one process alone; may be NULL */
    void *progress_data;
} CampaignCrew;

/* The same until the crew is stopped: how many of the first lives are there, at least one. */
int64_t campaign_live_until(const CampaignRun *run, uint64_t seed, int64_t count, const CampaignCrew *crew,
                            CampaignLife *lives);

#endif
