/* cli/collective_seeds.c - one collective again and again, each time with other hashes of ecmp: which flows collide is chance. */
#include "base/stats.h"
#include "base/units.h"
#include "cli/collective.h"
#include "network/work.h"
#include "report/page.h"

bool cli_collective_seeds(const CollectiveCase *c, int count, CollectiveRow *row, GError **error)
{
    NetRun run = c->run;
    run.algorithm = row->algorithm;
    run.bytes = row->bytes;
    run.shape.segments = row->segments;
    const NetWork one = net_work(&run, true), all = {one.messages * count, one.seconds * count, one.bytes};
    if (net_work_too_much(&all)) {
        net_work_refuse(&run, &all, error);
        g_prefix_error(error, "--seeds: %d of them: ", count);
        return false;
    }
    g_autofree double *seconds = g_new(double, count);
    for (int i = 0; i < count; i++) {
        NetResult result;
        run.routes = NULL;
        run.seed = c->run.seed + (uint64_t)i;
        if (!net_run(&run, true, &result, error))
            return false;
        seconds[i] = (double)result.flow_ps * 1e-12;
        net_result_clear(&result);
    }
    orr_stats_sort(seconds, (size_t)count);
    static const double fracs[CLI_SEED_MARKS] = {0, 0.5, 0.9, 0.99, 1};
    for (int i = 0; i < CLI_SEED_MARKS; i++)
        row->seed_s[i] = seconds[orr_stats_rank((size_t)count, fracs[i])];
    row->seeds = count;
    return true;
}

void cli_collective_seeds_text(const CollectiveRow *row, GString *out)
{
    char text[CLI_SEED_MARKS][ORR_TEXT_SIZE];
    for (int i = 0; i < CLI_SEED_MARKS; i++)
        orr_text_seconds(text[i], row->seed_s[i]);
    report_page_say(out, 2, "%d seeds: %s to %s; median %s, 90th percentile %s, 99th %s", row->seeds, text[0],
                    text[4], text[1], text[2], text[3]);
}

void cli_collective_seeds_json(const CollectiveRow *row, OrrJsonWriter *w)
{
    static const char *const keys[CLI_SEED_MARKS] = {"least_s", "p50_s", "p90_s", "p99_s", "most_s"};
    orr_jw_begin(w, "seeds", '{');
    orr_jw_int(w, "count", row->seeds);
    for (int i = 0; i < CLI_SEED_MARKS; i++)
        orr_jw_number(w, keys[i], row->seed_s[i]);
    orr_jw_end(w, '}');
}
