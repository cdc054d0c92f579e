/* report/groups.h - a mixed cluster in a report: what each group of nodes does and how long it waits. */
#ifndef ORR_REPORT_GROUPS_H
#define ORR_REPORT_GROUPS_H

#include "base/json.h"
#include "report/report.h"

typedef enum { REPORT_MEAN_PEAK_FLOPS, REPORT_MEAN_USD_PER_HOUR, REPORT_MEAN_WAITING_W } ReportMean;

/* Mean over all GPUs: the dense peak of the training precision, the price of an hour, watts of a GPU that waits with
 * the host's share (without PUE). */
double report_groups_mean(const Spec *spec, ReportMean what);

/* Mean watts of a GPU, with the host's share, of which every kind waits for this part of the time. */
double report_groups_mean_w(const Spec *spec, double idle_frac);

/* "H100" or "H100 + A100": the kinds of GPUs of a cluster, as they follow each other; g_free. */
char *report_groups_names(const Spec *spec);

/* "H100" or "4 x 8 H100 + 8 x 8 A100": the GPUs of a cluster; g_free. */
char *report_groups_words(const Spec *spec);

/* Mean watts of a GPU over a step, with the host's share: at its limit but while it waits. */
double report_groups_step_w(const Report *report);

/* Behind fill_memory(): report->groups. Does nothing where all nodes are alike. */
void report_groups_fill(Report *report);

void report_groups_cluster(const Report *report, GString *out); /* the line "Cluster" */
void report_groups_text(const Report *report, GString *out);
void report_groups_json(const Report *report, OrrJsonWriter *w);

#endif
