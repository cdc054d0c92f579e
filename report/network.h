/* report/network.h - what a step on a fabric says of it: contention, busiest links, by dimension. */
#ifndef ORR_REPORT_NETWORK_H
#define ORR_REPORT_NETWORK_H

#include "base/json.h"
#include "report/report.h"

/* The word of cluster.network.routing. */
const char *report_network_routing(const Report *report);
void report_network_text(const Report *report, GString *out);
void report_network_json(const Report *report, OrrJsonWriter *w);

#endif
