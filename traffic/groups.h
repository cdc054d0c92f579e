/* traffic/groups.h - groups of ranks as streams on a fabric. Internal. */
#ifndef ORR_TRAFFIC_GROUPS_H
#define ORR_TRAFFIC_GROUPS_H

#include "costmodel/fabric.h"
#include "network/routes.h"
#include "traffic/traffic.h"

/* Which streams run at once. */
typedef struct TrafficKind {
    bool
        pair; /* messages from pipeline rank `from` to `to`; else groups of `ranks` of pipeline rank `from` */
    CostRanks ranks;
    int step, count; /* members, as of cost_group_part() */
    int from, to;
} TrafficKind;

/* What they do to each other, and to links. */
typedef struct TrafficMeeting {
    double up, out; /* times as long of the slowest, inside domains and between them */
    double fastest; /* between them */
    bool across;
    int link_count; /* between domains */
    int32_t *links;
    double *loads; /* of the link's rate that they take at full pace, before they slow each other */
} TrafficMeeting;

struct Traffic {
    struct CostFabric contended, alone; /* the first members: callbacks get these */
    const Spec *spec;
    NetTopology own;
    const NetTopology *topology;
    NetTopology healthy; /* without failures, where links inside domains failed; else empty */
    TrafficPlace place;
    double up_bytes_per_s, out_bytes_per_s;
    NetRoutes *routes, *healthy_routes;
    int32_t *flows_on; /* [links] adaptive routing: routes so far */
    GHashTable *known; /* text of a kind -> TrafficMeeting */
    GError *error;     /* the first that a callback met */
};

const TrafficMeeting *traffic_meeting(Traffic *traffic, const TrafficKind *kind);
/* All of the kind that the dimension's groups are of; for pairs use the kind itself. */
TrafficKind traffic_whole_group(const Spec *spec, CostRanks ranks, int pipeline);

#endif
