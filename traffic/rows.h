/* traffic/rows.h - links of a fabric as resources of a program. Internal. */
#ifndef ORR_TRAFFIC_ROWS_H
#define ORR_TRAFFIC_ROWS_H

#include "traffic/groups.h"

/* Classes first_class .. first_class + classes - 1 of a program and whose they are. */
typedef struct TrafficParty {
    Traffic *traffic;
    const SimPlan *plan;         /* NULL: one op that does nothing but send ... */
    const TrafficMeeting *sends; /* ... over these links (NULL: over links of its own) ... */
    double bytes_per_s;          /* ... at this rate from each GPU */
    int first_class, classes;
    int replicas; /* GPUs that a rank of a folded program stands for */
} TrafficParty;

/* One kind of traffic of one pipeline rank of one party. */
typedef struct TrafficUser {
    const TrafficMeeting *meeting; /* its loads of links at full pace */
    TrafficDimension dimension;
    int party, cls;
    double rate;  /* bytes/s of a rank at full pace */
    double most;  /* the largest part of it that an op uses */
    double bytes; /* that a rank sends in a step */
} TrafficUser;

typedef struct TrafficLoad {
    int user;
    double load;
} TrafficLoad;

/* Adds the row of links to the program and shares of it to what the parties send. What the first one sends goes into
 * the summary: bytes by dimension, busiest links. */
bool traffic_add_links(const TrafficParty *parties, int count, OrrArena *arena, SimProgram *program,
                       bool check, TrafficSummary *summary, GError **error);

/* links.c: kinds of links on which users can be too much for the link: GArray of GArray* of TrafficLoad by user, the fullest
 * first. */
GArray *traffic_shared_links(const NetTopology *topology, const GArray *users, TrafficSummary *summary);
/* What the first party's users send, into the summary; with `check` no switch may send other than it gets. */
bool traffic_summarise(const NetTopology *topology, const GArray *users, int replicas, bool check,
                       OrrArena *arena, TrafficSummary *summary, GError **error);

/* tiers.c: busiest links, tiers and, where they are asked for, all links that carry something. `bytes` are
 * [dimension x links + link]; the parts of a step are seconds until traffic_finish_links() knows the step. */
void traffic_summarise_links(const NetTopology *topology, const double *bytes, OrrArena *arena,
                             TrafficSummary *summary);
void traffic_finish_links(TrafficSummary *summary, double step_s);

#endif
