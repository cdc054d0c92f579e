/* report/servers.c - see servers.h. */
#include "report/servers.h"

#include "base/text.h"
#include "costmodel/collective.h"
#include "costmodel/placement.h"
#include "report/page.h"

enum { LABEL_COLUMN = 14 };

static void write_split(const Report *report, GString *out)
{
    const SimServerResult *servers = report->plan.servers;
    const SpecServers *asked = &report->spec->parallel.servers;
    char step[ORR_TEXT_SIZE], push[ORR_TEXT_SIZE], pull[ORR_TEXT_SIZE], sum[ORR_TEXT_SIZE],
        exposed[ORR_TEXT_SIZE], up[ORR_TEXT_SIZE], down[ORR_TEXT_SIZE];
    g_string_append_c(out, '\n');
    report_page_say(out, 0, "Parameter servers: %d %s, %s, %s; %d parts", asked->servers,
                    spec_word(&spec_words_server_placement, (int)asked->placement),
                    spec_word(&spec_words_server_scheme, (int)asked->scheme),
                    spec_word(&spec_words_server_mode, (int)asked->mode), servers->parts);
    g_autofree char *split = g_strdup_printf(
        "of %s a worker pushes %s and pulls %s (beside compute and each other); the busiest server "
        "computes %s; %s are waited for",
        orr_text_seconds(step, (double)servers->step_ps * 1e-12),
        orr_text_seconds(push, (double)servers->push_ps * 1e-12),
        orr_text_seconds(pull, (double)servers->pull_ps * 1e-12),
        orr_text_seconds(sum, (double)servers->server_ps * 1e-12),
        orr_text_seconds(exposed, (double)servers->exposed_ps * 1e-12));
    report_page_entry(out, "  Split", LABEL_COLUMN, split);
    g_autofree char *nic = g_strdup_printf("%s out and %s in through the busiest one, a step",
                                           orr_text_si(up, servers->nic_up_bytes, "B"),
                                           orr_text_si(down, servers->nic_down_bytes, "B"));
    report_page_entry(out, "  NIC", LABEL_COLUMN, nic);
}

static void write_staleness(const SimServerResult *servers, GString *out)
{
    g_autoptr(GString) line = g_string_new(NULL);
    g_string_append_printf(line, "%.2f updates of others on average, %d at most;", servers->staleness_mean,
                           servers->staleness_max);
    for (int i = 0; i < SIM_STALENESS_BINS; i++)
        if (servers->staleness[i] > 0)
            g_string_append_printf(line, " %d%s: %.1f\u00a0%%", i, i == SIM_STALENESS_BINS - 1 ? "+" : "",
                                   100.0 * (double)servers->staleness[i] / (double)servers->iterations);
    report_page_entry(out, "  Staleness", LABEL_COLUMN, line->str);
}

static void write_break_even(const Report *report, GString *out)
{
    const SimCompression *compression = report->plan.compression;
    const SpecCompression *asked = &report->spec->parallel.compression;
    g_autoptr(GString) line = g_string_new(NULL);
    if (asked->kind != SPEC_COMPRESSION_TOPK)
        g_string_append_printf(line, "it %s on this network",
                               compression->compressed_s < compression->dense_s ? "pays" : "does not pay");
    else if (compression->break_even_frac > 0)
        g_string_append_printf(line, "top-k pays below a fraction of %.3g (by volume alone below %.3g)",
                               compression->break_even_frac, compression->volume_break_even_frac);
    else
        g_string_append_printf(line,
                               "top-k never pays on this network: selecting alone takes as long (by volume "
                               "alone below %.3g)",
                               compression->volume_break_even_frac);
    report_page_entry(out, "  Break-even", LABEL_COLUMN, line->str);
}

static void write_compression(const Report *report, GString *out)
{
    const SimCompression *compression = report->plan.compression;
    char dense_bytes[ORR_TEXT_SIZE], payload[ORR_TEXT_SIZE], dense[ORR_TEXT_SIZE], whole[ORR_TEXT_SIZE],
        select[ORR_TEXT_SIZE], restore[ORR_TEXT_SIZE];
    g_string_append_printf(out, "\nGradient compression: %s\n",
                           spec_word(&spec_words_compression, (int)report->spec->parallel.compression.kind));
    g_autofree char *line = g_strdup_printf(
        "%s become %s; all of them at once: %s (%s to compress, %s to restore) against %s dense",
        orr_text_si(dense_bytes, compression->dense_bytes, "B"),
        orr_text_si(payload, compression->payload_bytes, "B"),
        orr_text_seconds(whole, compression->compressed_s), orr_text_seconds(select, compression->select_s),
        orr_text_seconds(restore, compression->restore_s), orr_text_seconds(dense, compression->dense_s));
    report_page_entry(out, "  Payload", LABEL_COLUMN, line);
    write_break_even(report, out);
}

/* What one rank holds of the weights, to its replicas. */
static double broadcast_bytes(const Report *report)
{
    const Spec *spec = report->spec;
    const bool sends = spec->execution.framework.data_parallel.initial_broadcast &&
                       spec->parallel.data_scheme == SPEC_DATA_ALLREDUCE && spec->parallel.data > 1;
    double most = 0;
    for (int i = 0; sends && i < report->stage_count; i++)
        most = MAX(most, report->stages[i].weights_bytes);
    return most;
}

static double broadcast_s(const Report *report, double bytes)
{
    const CostCollective all = {
        .op = COST_BROADCAST, .bytes = bytes, .group = cost_group(report->spec, COST_RANKS_REPLICAS)};
    return cost_collective_s(&report->spec->cluster, &all);
}

static void write_broadcast(const Report *report, GString *out)
{
    char size[ORR_TEXT_SIZE], seconds[ORR_TEXT_SIZE];
    const double bytes = broadcast_bytes(report);
    if (bytes <= 0)
        return;
    g_autofree char *line =
        g_strdup_printf("%s of weights from rank 0 to all %d replicas before the first step: %s, once",
                        orr_text_si(size, bytes, "B"), report->spec->parallel.data,
                        orr_text_seconds(seconds, broadcast_s(report, bytes)));
    g_string_append(out, "\nData parallelism\n");
    report_page_entry(out, "  Broadcast", LABEL_COLUMN, line);
}

void report_servers_text(const Report *report, GString *out)
{
    write_broadcast(report, out);
    if (report->plan.servers != NULL) {
        write_split(report, out);
        if (report->spec->parallel.servers.mode != SPEC_SERVERS_SYNC)
            write_staleness(report->plan.servers, out);
    }
    if (report->plan.compression != NULL)
        write_compression(report, out);
}

static void json_servers(const SimServerResult *servers, OrrJsonWriter *w)
{
    int last = SIM_STALENESS_BINS - 1;
    while (last > 0 && servers->staleness[last] == 0)
        last--;
    orr_jw_begin(w, "parameter_server", '{');
    orr_jw_ps(w, "iteration_s", servers->step_ps);
    orr_jw_ps(w, "compute_s", servers->compute_ps);
    orr_jw_ps(w, "push_s", servers->push_ps);
    orr_jw_ps(w, "pull_s", servers->pull_ps);
    orr_jw_ps(w, "server_s", servers->server_ps);
    orr_jw_ps(w, "exposed_s", servers->exposed_ps);
    orr_jw_int(w, "parts", servers->parts);
    orr_jw_number(w, "nic_sent_bytes", servers->nic_up_bytes);
    orr_jw_number(w, "nic_received_bytes", servers->nic_down_bytes);
    orr_jw_begin(w, "staleness", '{');
    orr_jw_number(w, "mean", servers->staleness_mean);
    orr_jw_int(w, "max", servers->staleness_max);
    orr_jw_begin(w, "histogram", '[');
    for (int i = 0; i <= last; i++)
        orr_jw_int(w, NULL, servers->staleness[i]);
    orr_jw_end(w, ']');
    orr_jw_end(w, '}');
    orr_jw_end(w, '}');
}

static void json_compression(const SimCompression *compression, OrrJsonWriter *w)
{
    orr_jw_begin(w, "compression", '{');
    orr_jw_number(w, "dense_bytes", compression->dense_bytes);
    orr_jw_number(w, "payload_bytes", compression->payload_bytes);
    orr_jw_number(w, "residual_bytes", compression->residual_bytes);
    orr_jw_number(w, "select_s", compression->select_s);
    orr_jw_number(w, "restore_s", compression->restore_s);
    orr_jw_number(w, "dense_s", compression->dense_s);
    orr_jw_number(w, "compressed_s", compression->compressed_s);
    orr_jw_number(w, "break_even_frac", compression->break_even_frac);
    orr_jw_number(w, "volume_break_even_frac", compression->volume_break_even_frac);
    orr_jw_end(w, '}');
}

void report_servers_json(const Report *report, OrrJsonWriter *w)
{
    const double bytes = broadcast_bytes(report);
    if (bytes > 0) {
        orr_jw_begin(w, "initial_broadcast", '{');
        orr_jw_number(w, "bytes", bytes);
        orr_jw_number(w, "seconds", broadcast_s(report, bytes));
        orr_jw_end(w, '}');
    }
    if (report->plan.servers != NULL)
        json_servers(report->plan.servers, w);
    if (report->plan.compression != NULL)
        json_compression(report->plan.compression, w);
}

const char *report_servers_scheme(const Report *report)
{
    return spec_word(&spec_words_server_scheme, (int)report->spec->parallel.servers.scheme);
}
