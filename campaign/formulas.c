/* campaign/formulas.c - see formulas.h. */
#include "campaign/formulas.h"

#include <math.h>

double campaign_young_s(double stall_s, double mtbf_s)
{
    return sqrt(2 * stall_s * mtbf_s);
}

double campaign_daly_s(double stall_s, double mtbf_s)
{
    if (stall_s >= 2 * mtbf_s)
        return mtbf_s;
    return sqrt(2 * stall_s * mtbf_s) * (1 + sqrt(stall_s / (2 * mtbf_s)) / 3 + stall_s / (18 * mtbf_s)) -
           stall_s;
}

double campaign_availability_s(double stall_s, double mtbf_s, double restart_s)
{
    return stall_s + sqrt(2 * (mtbf_s + restart_s) * stall_s + stall_s * stall_s);
}

double campaign_first_order(const CampaignRates *rates, double interval_s)
{
    return 1 - rates->stall_s / interval_s - (interval_s / 2 + rates->restart_s) / rates->mtbf_s;
}

/* Mean time of a restart, from the failure until the run goes on. */
static double mean_restart_s(const CampaignRates *rates)
{
    return rates->fails_in_restart ? rates->mtbf_s * expm1(rates->restart_s / rates->mtbf_s)
                                   : rates->restart_s;
}

/* Mean time until `uptime_s` has passed without a failure, from a running start. */
static double unbroken_s(const CampaignRates *rates, double uptime_s)
{
    return (rates->mtbf_s + mean_restart_s(rates)) * expm1(uptime_s / rates->mtbf_s);
}

double campaign_cycle_s(const CampaignRates *rates, double interval_s)
{
    const double period_s = interval_s + rates->stall_s;
    if (isinf(rates->mtbf_s))
        return period_s;
    const double fails = -expm1(-period_s / rates->mtbf_s);
    return fails * (rates->mtbf_s + mean_restart_s(rates) + unbroken_s(rates, rates->write_s + period_s));
}

double campaign_total_s(const CampaignRates *rates, double interval_s, double segments)
{
    const double first_s = rates->write_s + interval_s + rates->stall_s;
    return (isinf(rates->mtbf_s) ? first_s : unbroken_s(rates, first_s)) +
           (segments - 1) * campaign_cycle_s(rates, interval_s);
}

CampaignMeans campaign_means(const CampaignRates *rates, double interval_s, double segments,
                             double load_from_s, double load_s)
{
    const double mtbf_s = rates->mtbf_s, rest_s = rates->restart_s - load_from_s;
    CampaignMeans means = {.total_s = campaign_total_s(rates, interval_s, segments),
                           .checkpoint_s = segments * rates->stall_s + rates->write_s};
    if (isinf(mtbf_s))
        return means;
    const double failures = means.total_s / (mtbf_s + mean_restart_s(rates));
    const double each_s =
        rates->fails_in_restart ? mtbf_s * (exp(rest_s / mtbf_s) - exp((rest_s - load_s) / mtbf_s)) : load_s;
    means.interruptions = failures * (rates->fails_in_restart ? exp(rates->restart_s / mtbf_s) : 1);
    means.loading_s = failures * each_s;
    /* differences of sums: where nothing is left of them rounding may */
    means.restart_s = fmax(0, failures * mean_restart_s(rates) - means.loading_s);
    means.lost_work_s = fmax(0, means.total_s - means.checkpoint_s - means.loading_s - means.restart_s -
                                    interval_s * segments);
    return means;
}

static double cost(const CampaignRates *rates, double log_interval)
{
    const double interval_s = exp(log_interval);
    return campaign_cycle_s(rates, interval_s) / interval_s;
}

double campaign_best_interval_s(const CampaignRates *rates, double longest_s)
{
    const double ratio = (sqrt(5) - 1) / 2;
    const double shortest_s = fmin(longest_s, fmax(rates->write_s - rates->stall_s, 1e-3));
    if (isinf(rates->mtbf_s))
        return longest_s;
    double low = log(shortest_s), high = log(fmin(longest_s, fmax(shortest_s, 20 * rates->mtbf_s)));
    while (high - low > 1e-9) { /* one minimum: golden section */
        const double a = high - ratio * (high - low), b = low + ratio * (high - low);
        if (cost(rates, a) <= cost(rates, b))
            high = b;
        else
            low = a;
    }
    return exp((low + high) / 2);
}
