/* report/offload.c - what lies below the GPUs' memory, whether it fits there, and how busy the ways to it are. */
#include <math.h>

#include "report/offload.h"

#include "costmodel/offload.h"
#include "report/page.h"

/* What a rank holds in its host's memory, or on the disks: there what is held when the GPU holds most, or at the end. */
static double rank_bytes(const SimRankResult *result, bool disks)
{
    const int64_t nvme_bytes = MAX(result->final_bytes[SIM_MEM_NVME], result->at_peak_bytes[SIM_MEM_NVME]);
    return disks ? (double)nvme_bytes : (double)result->host_peak_bytes;
}

/* Most bytes that the ranks of one node hold in a tier; ranks of a node are neighbours in their numbers. */
static double node_bytes(const Report *report, const SimPlan *plan, bool disks)
{
    const int node = report->spec->cluster.gpus_per_node;
    const int replicas = plan->tensor * plan->context * plan->data, ranks = plan->shape.ranks * replicas;
    const int simulated = report->result.ranks / plan->shape.ranks; /* of one pipeline rank */
    double most = 0, sum = 0;
    for (int rank = 0; rank < ranks; rank++) {
        const int pipeline = rank / replicas;
        const SimRankResult *result =
            &report->result.rank[pipeline * simulated + rank % replicas % simulated];
        sum = rank % node == 0 ? 0 : sum;
        sum += rank_bytes(result, disks);
        most = fmax(most, sum);
    }
    return most;
}

/* Share of the step for which a way is busy at full rate: with the stream of the busiest pipeline rank, as often as there are
 * ranks that share it, of which one alone may not fill it. */
static double busy_frac(const Report *report, SimStream stream, int sharers, double own, double whole)
{
    const SimProgram *program = &report->program;
    double most_ps = 0;
    for (int c = 0; c < program->classes; c++) {
        const SimList *list = &program->class_list[c].streams[stream];
        double busy_ps = 0;
        for (int64_t i = 0; i < list->count; i++)
            if (list->instrs[i].op != SIM_ONLY_WAITS)
                busy_ps +=
                    (double)sim_work_duration_ps(&program->works[program->ops[list->instrs[i].op].work]);
        most_ps = fmax(most_ps, busy_ps);
    }
    return fmin(1, most_ps / (double)report->step_ps * sharers * (whole > 0 ? own / whole : 1));
}

static void fill_busy(const Report *report, ReportOffload *out)
{
    const CostHost host = cost_host(report->spec);
    out->in_busy_frac = busy_frac(report, SIM_STREAM_H2D, host.root_gpus, host.copy, host.root);
    out->out_busy_frac = busy_frac(report, SIM_STREAM_D2H, host.root_gpus, host.copy, host.root);
    out->host_busy_frac = busy_frac(report, SIM_STREAM_HOST, host.socket_gpus, host.optimizer, host.dram);
    out->read_busy_frac =
        busy_frac(report, SIM_STREAM_NVME_READ, host.node_gpus, host.own_read, host.nvme_read);
    out->write_busy_frac =
        busy_frac(report, SIM_STREAM_NVME_WRITE, host.node_gpus, host.own_write, host.nvme_write);
}

/* Activations that wait in a host whose memory is known: they have to fit there. */
static bool holds_activations(const Report *report, const SimPlan *plan)
{
    bool any = false;
    for (int s = 0; s < plan->shape.ranks * plan->shape.chunks; s++)
        any = any || plan->stages[s].offloaded > 0;
    return any && report->spec->cluster.host.dram_bytes > 0;
}

/* What the fullest node of all, by its own kind's room, holds of a tier, and that room. */
static void fill_kinds(const Report *report, bool disks, double *ret_bytes, double *ret_capacity_bytes)
{
    const SpecCluster *cluster = &report->spec->cluster;
    const SimKinds *kinds = &report->kinds;
    const int each = report_ranks_a_stage(report);
    for (int i = 0; i < kinds->ranks * kinds->count; i++) {
        const int rank = i / kinds->count, kind = i % kinds->count;
        const SimRankResult *result = &report->result.rank[rank * each + kind % each];
        const SpecHost *host = &cluster->groups[kinds->kinds[kind].group_of_rank[rank]].host;
        const double room = disks ? host->nvme_bytes : host->dram_bytes;
        const double bytes = cluster->gpus_per_node * rank_bytes(result, disks);
        if (i == 0 || bytes * *ret_capacity_bytes > *ret_bytes * room) {
            *ret_bytes = bytes;
            *ret_capacity_bytes = room;
        }
    }
}

static void fill_bytes(const SimPlan *plan, const Report *report, ReportOffload *out)
{
    const SpecHost *host = &report->spec->cluster.host;
    if (report->spec->cluster.group_count > 0) {
        fill_kinds(report, false, &out->host_bytes, &out->host_capacity_bytes);
        fill_kinds(report, true, &out->nvme_bytes, &out->nvme_capacity_bytes);
        return;
    }
    out->host_bytes = node_bytes(report, plan, false);
    out->host_capacity_bytes = host->dram_bytes;
    out->nvme_bytes = node_bytes(report, plan, true);
    out->nvme_capacity_bytes = host->nvme_bytes;
}

void report_offload_fill(const SimPlan *plan, Report *report)
{
    ReportOffload *out = &report->offload;
    out->on = plan->offload.on || report->spec->offload.activations.tier == SPEC_TIER_NVME ||
              holds_activations(report, plan);
    if (!out->on)
        return;
    fill_bytes(plan, report, out);
    out->host_fits = out->host_bytes <= out->host_capacity_bytes;
    out->nvme_fits = out->nvme_bytes <= out->nvme_capacity_bytes;
    fill_busy(report, out);
    out->window_layers = plan->offload.window;
    out->direct_layers = 0;
    for (int s = 0; s < plan->shape.ranks * plan->shape.chunks; s++) {
        const SimStage *stage = &plan->stages[s];
        for (int i = 0; i < stage->segment_count; i++)
            if (stage->segments[i].offload != NULL &&
                sim_work_duration_ps(&stage->segments[i].offload->direct) > 0)
                out->direct_layers++;
    }
    const double host_short = out->host_fits ? 0 : out->host_bytes - out->host_capacity_bytes;
    const double nvme_short = out->nvme_fits ? 0 : out->nvme_bytes - out->nvme_capacity_bytes;
    report->fits = report->fits && out->host_fits && out->nvme_fits;
    if (!report->fits)
        report->memory_verdict = REPORT_MEMORY_NONE;
    report->short_bytes = fmax(report->short_bytes, fmax(host_short, nvme_short));
}

static void write_tier(const char *name, double bytes, double capacity_bytes, bool fits, GString *out)
{
    char held[ORR_TEXT_SIZE], room[ORR_TEXT_SIZE];
    if (bytes <= 0)
        return;
    g_autofree char *line =
        g_strdup_printf("  %s: %s of %s a node%s", name, orr_text_bytes(held, bytes),
                        orr_text_bytes(room, capacity_bytes), fits ? "" : ": DOES NOT FIT in them");
    report_page_entry(out, "", 2, line);
}

void report_text_offload(const Report *report, GString *out)
{
    const ReportOffload *offload = &report->offload;
    if (!offload->on)
        return;
    const SpecOffload *spec = &report->spec->offload;
    g_string_append_printf(out, "\nOffload: %s\n",
                           spec_offloads_states(spec) ? spec_word(&spec_words_offload, (int)spec->scheme)
                                                      : "activations");
    write_tier("Host memory", offload->host_bytes, offload->host_capacity_bytes, offload->host_fits, out);
    if (report->spec->cluster.host_assumed)
        report_page_say(out, 2, "Host: that of %s is assumed; cluster.host says another",
                        report->spec->cluster.accelerator.reference_host);
    write_tier("Disks", offload->nvme_bytes, offload->nvme_capacity_bytes, offload->nvme_fits, out);
    g_autoptr(GString) busy = g_string_new(NULL);
    g_string_append_printf(busy, "Busy: to the host %.1f %%, to the GPUs %.1f %%, host %.1f %%",
                           100 * offload->out_busy_frac, 100 * offload->in_busy_frac,
                           100 * offload->host_busy_frac);
    if (offload->read_busy_frac > 0 || offload->write_busy_frac > 0)
        g_string_append_printf(busy, ", disk reads %.1f %%, writes %.1f %%", 100 * offload->read_busy_frac,
                               100 * offload->write_busy_frac);
    g_string_append(busy, " of the step");
    report_page_entry(out, "", 2, busy->str);
    if (offload->window_layers > 0)
        report_page_say(out, 2, "Layers of weights on the GPU at once: %d", offload->window_layers);
    g_autofree char *direct =
        g_strdup_printf("Pieces that forwards read in the host's memory: %d", offload->direct_layers);
    if (offload->direct_layers > 0)
        report_page_entry(out, "", 2, direct);
}

void report_json_offload(const Report *report, OrrJsonWriter *w)
{
    const ReportOffload *offload = &report->offload;
    if (!offload->on)
        return;
    orr_jw_begin(w, "offload", '{');
    orr_jw_text(w, "scheme", spec_word(&spec_words_offload, (int)report->spec->offload.scheme));
    orr_jw_number(w, "host_bytes_per_node", offload->host_bytes);
    orr_jw_number(w, "host_capacity_bytes", offload->host_capacity_bytes);
    orr_jw_bool(w, "host_fits", offload->host_fits);
    orr_jw_number(w, "nvme_bytes_per_node", offload->nvme_bytes);
    orr_jw_number(w, "nvme_capacity_bytes", offload->nvme_capacity_bytes);
    orr_jw_bool(w, "nvme_fits", offload->nvme_fits);
    orr_jw_number(w, "to_host_busy_frac", offload->out_busy_frac);
    orr_jw_number(w, "to_gpu_busy_frac", offload->in_busy_frac);
    orr_jw_number(w, "host_busy_frac", offload->host_busy_frac);
    orr_jw_number(w, "disk_read_busy_frac", offload->read_busy_frac);
    orr_jw_number(w, "disk_write_busy_frac", offload->write_busy_frac);
    orr_jw_int(w, "window_layers", offload->window_layers);
    orr_jw_int(w, "direct_pieces", offload->direct_layers);
    orr_jw_end(w, '}');
}
