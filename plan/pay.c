/* plan/pay.c - what a point is paid by: whole racks, terms of years, electricity, CO2. Tested: unit/plan/test_pay.c */
#include <math.h>

#include "plan/plan.h"
#include "report/groups.h"

int plan_paid_gpus(const Spec *asked, int gpus, bool whole_racks)
{
    const int rack = asked->cluster.rack_gpus;
    return whole_racks && rack > 0 ? (gpus + rack - 1) / rack * rack : gpus;
}

double plan_power_w(const Spec *asked, int gpus)
{
    const double pue = asked->cluster.pue > 0 ? asked->cluster.pue : 1;
    return gpus * report_groups_mean_w(asked, 0) * pue;
}

void plan_pay(const Report *report, const PlanOptions *options, PlanPoint *point)
{
    const SpecCluster *cluster = &report->spec->cluster;
    const int paid = point->paid_gpus;
    point->gpu_hours = report->gpu_hours;
    point->usd = report->usd;
    point->kwh = report->kwh;
    point->co2_kg = report->co2_kg;
    if (!(report->gpu_hours > 0) || (paid == report->gpus && !(options->terms.years > 0)))
        return;
    const double hours = report->gpu_hours / report->gpus,
                 idle_w = report->waiting_w / report->gpus * (paid - report->gpus),
                 usd_per_hour = report_hours_usd(report) / report->gpu_hours * paid,
                 term_hours = options->terms.years * PLAN_YEAR_HOURS;
    point->gpu_hours = hours * paid;
    point->kwh = report->kwh + (report->kwh > 0 ? hours * idle_w / 1000 : 0);
    point->committed_usd = term_hours > 0 ? ceil(hours / term_hours) * term_hours * usd_per_hour : 0;
    point->usd = (options->terms.paid_in_full ? point->committed_usd : hours * usd_per_hour) +
                 point->kwh * cluster->usd_per_kwh;
    point->co2_kg = point->kwh * cluster->co2_g_per_kwh / 1000;
}

/* Days behind the first of `plans` at which a term costs less than the same machine by the hour: hours of it over the price. */
double plan_days_to_pay(const Plan *term, const Plan *hourly)
{
    return hourly->usd_per_gpu_hour > 0 && term->terms.years > 0
               ? term->usd_per_gpu_hour / hourly->usd_per_gpu_hour * term->terms.years * PLAN_YEAR_HOURS / 24
               : 0;
}
