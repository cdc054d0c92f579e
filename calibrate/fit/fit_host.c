/* calibrate/fit/fit_host.c - see fit_host.h. */
#include "calibrate/fit/fit_host.h"

#include <math.h>
#include <string.h>

#define LEAST_BYTES 67108864.0 /* a copy that is not mostly latency */
#define MOST_ROOT   16
#define SAME_FRAC   0.05 /* a link beside others is as fast as alone */

static const OrrJson *first_row(const OrrJson *table, const char *section)
{
    const OrrJson *list = orr_json_member(table, section);
    return list != NULL && orr_json_type(list) == ORR_JSON_LIST ? orr_json_first(list) : NULL;
}

static bool is_op(const OrrJson *row, const char *op)
{
    return orr_json_type(row) == ORR_JSON_OBJECT && strcmp(orr_json_text_of(row, "op", ""), op) == 0;
}

/* The largest rate of an op; 0: none. */
static double best_rate(const OrrJson *table, const char *section, const char *op)
{
    double best = 0;
    for (const OrrJson *row = first_row(table, section); row != NULL; row = orr_json_next(row))
        if (is_op(row, op) && orr_json_number_of(row, "bytes", 0) >= LEAST_BYTES)
            best = fmax(best, 1e9 * orr_json_number_of(row, "gbps", 0));
    return best;
}

/* Host to device and back: a step does both. */
static double both_directions(const OrrJson *table, const char *kind)
{
    g_autofree char *up = g_strconcat("h2d_", kind, NULL), *down = g_strconcat("d2h_", kind, NULL);
    const double a = best_rate(table, "copy_measurements", up),
                 b = best_rate(table, "copy_measurements", down);
    return a > 0 && b > 0 ? sqrt(a * b) : 0;
}

static double share(double part, double whole, double least, double most)
{
    return part > 0 && whole > 0 ? CLAMP(part / whole, least, most) : 0;
}

/* Each GPU's rate when `gpus` copy at once, in every direction that was measured. */
typedef struct Group {
    double gpus, rate;
} Group;

/* GPUs behind one port share it: each of g gets min(alone, R / min(g, k)). The k and R that miss the rows least; k = 1 where
 * all are as fast as alone. */
static void fit_root(const OrrJson *table, double alone, CalHost *host)
{
    g_autoptr(GArray) groups = g_array_new(FALSE, FALSE, sizeof(Group));
    bool shared = false;
    for (const OrrJson *row = first_row(table, "together_measurements"); row != NULL;
         row = orr_json_next(row)) {
        const Group group = {orr_json_number_of(row, "gpus", 0), 1e9 * orr_json_number_of(row, "gbps", 0)};
        if ((is_op(row, "together_h2d") || is_op(row, "together_d2h")) && group.gpus > 1 && group.rate > 0) {
            g_array_append_val(groups, group);
            shared = shared || group.rate < alone * (1 - SAME_FRAC);
        }
    }
    double best = G_MAXDOUBLE;
    host->gpus_per_pcie_root = groups->len > 0 ? 1 : 0;
    for (int k = 2; shared && k <= MOST_ROOT; k *= 2) {
        double sum = 0, miss = 0;
        int told = 0;
        for (guint i = 0; i < groups->len; i++) { /* the port's rate, by the rows that it bounds */
            const Group *group = &g_array_index(groups, Group, i);
            const double rate = group->rate * fmin(group->gpus, k);
            told += group->rate < alone * (1 - SAME_FRAC);
            sum += group->rate < alone * (1 - SAME_FRAC) ? log(rate) : 0;
        }
        const double root = exp(sum / told);
        for (guint i = 0; i < groups->len; i++) {
            const Group *group = &g_array_index(groups, Group, i);
            miss += pow(log(group->rate / fmin(alone, root / fmin(group->gpus, k))), 2);
        }
        if (miss >= best * (1 - SAME_FRAC))
            continue;
        best = miss;
        host->gpus_per_pcie_root = k;
        host->pcie_root_bytes_per_s = root / host->pinned_frac;
    }
}

static void fit_links(const OrrJson *table, double link, CalHost *host)
{
    const double pinned = both_directions(table, "pinned"), pageable = both_directions(table, "pageable"),
                 both = best_rate(table, "copy_measurements", "both_pinned");
    host->pinned_frac = share(pinned, link, 0.01, 1);
    host->pageable_frac = share(pageable, link, 0.001, 1);
    host->duplex_frac = share(both, pinned, 0.5, 1);
    if (host->pinned_frac > 0)
        fit_root(table, pinned, host);
}

/* Streams of all cores, of one, and of a rank's share of them: a core keeps moving what the fastest of these says, as long as the
 * memory is not what bounds it. */
static void fit_memory(const OrrJson *table, CalHost *host)
{
    const OrrJson *stamp = orr_json_member(table, "stamp");
    double stream = 0, core = 0;
    for (const OrrJson *row = first_row(table, "host_measurements"); row != NULL; row = orr_json_next(row)) {
        const double rate = 1e9 * orr_json_number_of(row, "gbps", 0),
                     threads = orr_json_number_of(row, "threads", 0);
        if (is_op(row, "host_triad") && threads <= 0)
            stream = fmax(stream, rate);
        else if (is_op(row, "host_triad"))
            core = fmax(core, rate / threads);
        if (is_op(row, "file_read"))
            host->nvme_read_bytes_per_s = fmax(host->nvme_read_bytes_per_s, rate);
        if (is_op(row, "file_write"))
            host->nvme_write_bytes_per_s = fmax(host->nvme_write_bytes_per_s, rate);
    }
    for (const OrrJson *row = first_row(table, "together_measurements"); row != NULL;
         row = orr_json_next(row)) {
        const double rate = 1e9 * orr_json_number_of(row, "gbps", 0),
                     threads = orr_json_number_of(row, "threads", 0);
        if (is_op(row, "together_cpu_adam") && threads > 0) {
            stream = fmax(stream, rate * orr_json_number_of(row, "gpus", 1));
            core = fmax(core, rate / threads);
        }
    }
    if (stamp == NULL || orr_json_type(stamp) != ORR_JSON_OBJECT)
        return;
    const double sockets = orr_json_number_of(stamp, "sockets", 0),
                 cpus = orr_json_number_of(stamp, "cpus", 0);
    host->dram_bytes = orr_json_number_of(stamp, "dram_bytes", 0);
    if (!(sockets >= 1 && sockets <= 64 && cpus >= 1 && cpus <= 65536) || stream <= 0)
        return;
    host->sockets = (int)sockets;
    host->cores = (int)cpus;
    host->dram_bytes_per_s = stream / sockets; /* what streams reach, in the data sheet's place */
    host->dram_stream_frac = 1;
    host->core_bytes_per_s = CLAMP(core, 0, 1e12);
}

static void fit_chips(const OrrJson *table, CalHost *host)
{
    for (const OrrJson *row = first_row(table, "together_measurements"); row != NULL;
         row = orr_json_next(row)) {
        const double first_us = orr_json_number_of(row, "first_us", 0),
                     warm_us = orr_json_number_of(row, "time_us", 0);
        if (!is_op(row, "together_layer") || !(warm_us > 0))
            continue;
        host->chips = (int)orr_json_number_of(row, "gpus", 1);
        host->clock_hz = orr_json_number_of(row, "sm_clock_hz", 0);
        host->sustained_frac = first_us / warm_us;
        host->speed_spread_frac = CLAMP(orr_json_number_of(row, "speed_spread_frac", 0), 0, 0.5);
    }
}

CalHost cal_fit_host(const OrrJson *table, double link_bytes_per_s)
{
    CalHost host = {0};
    fit_links(table, link_bytes_per_s, &host);
    fit_memory(table, &host);
    fit_chips(table, &host);
    return host;
}

void cal_host_log(const CalHost *h, GString *log)
{
    if (h->pinned_frac > 0) { /* what was not measured stays the preset's, and is not said */
        g_string_append_printf(log, "host links: pinned copies reach %.0f %% of the link",
                               100 * h->pinned_frac);
        if (h->pageable_frac > 0)
            g_string_append_printf(log, ", ordinary ones %.0f %%", 100 * h->pageable_frac);
        if (h->duplex_frac > 0)
            g_string_append_printf(log, ", both ways %.0f %% of each", 100 * h->duplex_frac);
        g_string_append_printf(log, "; %d GPUs on one PCIe root port\n", MAX(h->gpus_per_pcie_root, 1));
    }
    if (h->dram_bytes_per_s > 0)
        g_string_append_printf(log, "host memory: %.0f GB/s a socket of %d, %.1f GB/s a core of %d\n",
                               1e-9 * h->dram_bytes_per_s, h->sockets, 1e-9 * h->core_bytes_per_s, h->cores);
    if (h->nvme_read_bytes_per_s > 0 || h->nvme_write_bytes_per_s > 0)
        g_string_append_printf(log, "files: %.1f GB/s read, %.1f GB/s written\n",
                               1e-9 * h->nvme_read_bytes_per_s, 1e-9 * h->nvme_write_bytes_per_s);
    if (h->sustained_frac > 0)
        g_string_append_printf(
            log,
            "a layer on %d GPUs at once runs warm at %.3f of its first pass's speed, clock %.0f MHz; "
            "chips differ by %.2f %% (standard deviation)\n",
            h->chips, h->sustained_frac, 1e-6 * h->clock_hz, 100 * h->speed_spread_frac);
}

static void write_one(OrrJsonWriter *w, const char *key, double value)
{
    char text[32];
    g_ascii_formatd(text, sizeof text, "%.4g", value);
    if (value > 0)
        orr_jw_number(w, key, g_ascii_strtod(text, NULL));
}

void cal_host_write(const CalHost *h, OrrJsonWriter *w)
{
    const struct {
        const char *key;
        double value;
    } members[] = {{"sockets", h->sockets},
                   {"cores", h->cores},
                   {"dram_bytes", h->dram_bytes},
                   {"dram_bytes_per_s", h->dram_bytes_per_s},
                   {"dram_stream_frac", h->dram_stream_frac},
                   {"core_bytes_per_s", h->core_bytes_per_s},
                   {"gpus_per_pcie_root", h->gpus_per_pcie_root},
                   {"pcie_root_bytes_per_s", h->pcie_root_bytes_per_s},
                   {"pinned_frac", h->pinned_frac},
                   {"pageable_frac", h->pageable_frac},
                   {"duplex_frac", h->duplex_frac},
                   {"nvme_read_bytes_per_s", h->nvme_read_bytes_per_s},
                   {"nvme_write_bytes_per_s", h->nvme_write_bytes_per_s}};
    double any = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(members); i++)
        any = fmax(any, members[i].value);
    if (any > 0) {
        orr_jw_begin(w, "host", '{');
        for (size_t i = 0; i < G_N_ELEMENTS(members); i++)
            write_one(w, members[i].key, members[i].value);
        orr_jw_end(w, '}');
    }
    if (h->chips > 1)
        orr_jw_number(w, "speed_spread_frac", h->speed_spread_frac);
}
