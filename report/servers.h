/* report/servers.h - parameter servers and gradient compression of a report, as text and as JSON. Write nothing where a run
 * has neither. */
#ifndef ORR_REPORT_SERVERS_H
#define ORR_REPORT_SERVERS_H

#include "base/json.h"
#include "report/report.h"

void report_servers_text(const Report *report, GString *out);
void report_servers_json(const Report *report, OrrJsonWriter *w);
/* "bytescheduler"; of a run that has parameter servers. */
const char *report_servers_scheme(const Report *report);

#endif
