/* network/paced.h - streams of messages that keep one pace, max-min fair among streams.
 *
 * A ring goes at the pace of its slowest hop, and the others wait for it: one stream, several routes. All streams begin at
 * once and have as much to do as their routes carry at full pace in a time of 1; those that are through leave room to the
 * others. A stream that meets nobody takes 1, exactly.
 *
 * Lossless: a switch whose way out is full pauses who sends to it, and a pause stops a whole link. What is behind a held-up
 * message on a link it comes over goes no faster than that message (one queue a link, served in order).
 */
#ifndef ORR_NETWORK_PACED_H
#define ORR_NETWORK_PACED_H

#include "network/topology.h"

typedef struct NetPaced NetPaced;

/* Full pace is `bytes_per_s` on a route of weight 1. The topology is borrowed. */
NetPaced *net_paced_new(const NetTopology *topology, double bytes_per_s, bool lossless);
void net_paced_free(NetPaced *paced);

/* A new stream; its number. */
int net_paced_stream(NetPaced *paced);
/* Of the newest stream: at full pace the route carries `weight` of bytes_per_s. */
void net_paced_route(NetPaced *paced, const int32_t *links, int hops, double weight);

/* Works out when every stream is through, in times that it takes alone; at most once. */
void net_paced_solve(NetPaced *paced);

int net_paced_streams(const NetPaced *paced);
/* 1 or more; infinite: a link on its way carries nothing. */
double net_paced_time(const NetPaced *paced, int stream);
/* While all are under way. */
double net_paced_first_pace(const NetPaced *paced, int stream);
/* [links] sums of weights of all routes over a link. */
const double *net_paced_weights(const NetPaced *paced);

/* What must hold: no link above what it carries while all are under way, and every stream slower than at full pace
 * held by a full link or by one that is. The message names the link or stream. */
bool net_paced_check(const NetPaced *paced, GError **error);

#endif
