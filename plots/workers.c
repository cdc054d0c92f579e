/* plots/workers.c - the first iterations of parameter servers' workers: passes, pushes, pulls, and what they wait.
 * Tested: unit/plots/test_plots.c, unit/program/test_servers.c
 */
#include "plots/driver.h"
#include "report/servers.h"

static void append_op(GString *csv, int worker, int band, double start, double end, const char *kind)
{
    char from[G_ASCII_DTOSTR_BUF_SIZE], to[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf(csv, "%d,%d,%s,%s,%s\n", worker, band,
                           g_ascii_formatd(from, sizeof from, "%.9g", start),
                           g_ascii_formatd(to, sizeof to, "%.9g", end), kind);
}

bool plot_workers(const Report *report, const PlotTarget *target, GError **error)
{
    static const char *const kinds[] = {"forward", "backward", "push", "pull"};
    const SimServerResult *servers = report->plan.servers;
    PlotJob job;
    double unit_s = 1;
    int64_t end_ps = 0;
    int64_t last_ps[SIM_SERVERS_SHOWN_WORKERS] = {0};
    int lanes = 0;
    if (servers == NULL)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "--what workers: the scenario has no parameter servers (parallel.data_scheme=parameter_server)");
    for (int i = 0; i < servers->op_count; i++) {
        end_ps = MAX(end_ps, servers->ops[i].end_ps);
        last_ps[servers->ops[i].worker] = MAX(last_ps[servers->ops[i].worker], servers->ops[i].end_ps);
        lanes = MAX(lanes, servers->ops[i].worker + 1);
    }
    plot_job_init(&job, "workers");
    plot_set_text(&job, "unit", plot_time_unit((double)end_ps * 1e-12, &unit_s));
    g_string_append(job.csv, "worker,band,start,end,kind\n");
    for (int i = 0; i < lanes; i++) /* behind its passes, as long as it is shown */
        append_op(job.csv, i, 0, 0, (double)last_ps[i] * 1e-12 / unit_s, "waits");
    for (int i = 0; i < servers->op_count; i++) {
        const SimServerOp *op = &servers->ops[i];
        const int band = op->kind == SIM_SERVERS_PUSH ? 1 : op->kind == SIM_SERVERS_PULL ? 2 : 0;
        append_op(job.csv, op->worker, band, (double)op->start_ps * 1e-12 / unit_s,
                  (double)op->end_ps * 1e-12 / unit_s, kinds[op->kind]);
    }
    static const char *const modes[] = {"synchronous", "asynchronous", "with bounded staleness"};
    g_autofree char *caption =
        g_strdup_printf("scheme %s, updates %s: the first %d iterations of %d worker%s",
                        report_servers_scheme(report), modes[report->spec->parallel.servers.mode],
                        SIM_SERVERS_SHOWN_ITERATIONS, lanes, lanes == 1 ? "" : "s");
    plot_set_heading(&job, report->spec->name, caption);
    plot_set_number(&job, "lanes", lanes);
    plot_set_number(&job, "span", (double)end_ps * 1e-12 / unit_s);
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    return ok;
}
