/* traffic/traffic.h - one training step on one fabric: who meets whom on which link, and what that costs.
 *
 * Two scales. Groups of one kind and one pipeline rank do the same at the same time (all its gradient reductions, all its
 * messages to the next pipeline rank): they run as streams on the fabric (network/paced.h), and the slowest says how many
 * times as long their bytes take. Kinds and pipeline ranks meet at their own times: the links on which they can be too much
 * for each other become resources of the engine, of which each op holds what it carries on average.
 *
 * docs/NETWORK.md says what is exact and what is not.
 */
#ifndef ORR_TRAFFIC_TRAFFIC_H
#define ORR_TRAFFIC_TRAFFIC_H

#include "program/plan.h"
#include "traffic/fabric.h"

typedef struct Traffic Traffic;

/* `spec` (borrowed) is complete. With `on` another job's fabric (borrowed) is shared; NULL: its own is built. */
Traffic *traffic_new(const Spec *spec, const NetTopology *on, GError **error);
void traffic_free(Traffic *traffic);
const NetTopology *traffic_links(const Traffic *traffic);

/* `spec` on the fabric, for sim_step_plan(); `contended` false: on one of which everybody has links of his own. */
void traffic_on(Traffic *traffic, const Spec *spec, bool contended, Spec *ret_spec);
/* Links of the fabric for a program of a plan on it, whose ranks need not be alike (step/paced.h): each stands for an equal
 * part of the GPUs of its pipeline rank. `program` keeps what it holds besides. */
bool traffic_furnish(Traffic *traffic, const SimPlan *plan, SimProgram *program, OrrArena *arena,
                     GError **error);
/* False with the error that a plan on the fabric met: a way that is too long, too many messages. */
bool traffic_went_well(const Traffic *traffic, GError **error);

typedef enum {
    TRAFFIC_TENSOR,
    TRAFFIC_CONTEXT,
    TRAFFIC_EXPERT,
    TRAFFIC_PIPELINE,
    TRAFFIC_DATA,
    TRAFFIC_BESIDE, /* other jobs, storage */
    TRAFFIC_DIMENSIONS
} TrafficDimension;

/* "data" ... */
const char *traffic_dimension_name(TrafficDimension dimension);

typedef struct TrafficOfDimension {
    bool across;             /* something of it goes between domains */
    double slowest, fastest; /* of its streams: times as long as alone; 1: nobody in the way */
    int64_t bytes;           /* that all ranks send between domains in a step */
} TrafficOfDimension;

typedef struct TrafficLink {
    char from[24], to[24];
    double bytes_per_s, bytes, busy_frac;    /* what it carries, in a step; of the step at its full rate */
    double by_dimension[TRAFFIC_DIMENSIONS]; /* bytes */
} TrafficLink;

/* All links from one kind of vertex to another: gpu-leaf, leaf-spine. */
typedef struct TrafficTier {
    char from[24], to[24];
    int links, used;                         /* used: it carries something */
    double bytes_per_s, bytes;               /* of all together */
    double busy_frac, busiest_frac;          /* of the step: in the mean of all links; of the busiest one */
    double by_dimension[TRAFFIC_DIMENSIONS]; /* bytes */
} TrafficTier;

#define TRAFFIC_BUSIEST 5

typedef struct TrafficSummary {
    bool on;
    char topology[64];
    int64_t step_ps, alone_ps; /* alone: everybody with links of his own */
    bool alike; /* every stream of a kind takes as long as every other: one rank stands for all exactly */
    TrafficOfDimension dimensions[TRAFFIC_DIMENSIONS];
    TrafficLink busiest[TRAFFIC_BUSIEST];
    int busiest_count;
    TrafficTier *tiers; /* [tier_count], that with the busiest link first */
    int tier_count;
    bool all_links;     /* asked for: */
    TrafficLink *links; /* [link_count], in the fabric's order, those that carry something */
    int link_count;
    int shared_links;     /* kinds of links that are resources of the engine */
    int left_out_links;   /* kinds that are not, for there are too many */
    double left_out_frac; /* by so much everybody together could be too much for the fullest of those */
    int classes;          /* of the program, those of jobs and traffic beside with them */
    int beside_count;     /* jobs and traffic beside */
    struct {
        char name[64];
        int64_t end_ps, alone_ps;
    } beside[16];
} TrafficSummary;

/* What a step of a complete Spec whose cluster.network.fidelity is flow comes to: its plan, its program with the links that
 * ops hold (and other jobs' classes behind its own), and the result of its own ranks. With `check` every invariant is
 * verified: those of the engine, bytes conserved at every switch, no link above its rate. With `all_links` the summary lists
 * every link that carries something. All lives in `arena`. */
bool traffic_step(const Spec *spec, bool unfold, bool check, bool all_links, unsigned record, OrrArena *arena,
                  SimPlan *ret_plan, SimProgram *ret_program, SimResult *ret_result,
                  TrafficSummary *ret_summary, GError **error);

#endif
