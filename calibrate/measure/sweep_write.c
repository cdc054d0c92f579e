/* calibrate/measure/sweep_write.c - the table of a sweep: its stamp, its rows by section, and which of them the clocks spoilt. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/stats.h"
#include "calibrate/measure/sweep.h"

static void write_stamp(OrrJsonWriter *w, const CalStamp *stamp)
{
    orr_jw_begin(w, "stamp", '{');
    orr_jw_text(w, "version", ORRERY_VERSION);
    orr_jw_text(w, "device", stamp->device);
    orr_jw_text(w, "uuid", stamp->uuid);
    orr_jw_int(w, "gpus", stamp->gpus);
    orr_jw_int(w, "nodes", MAX(stamp->nodes, 1));
    orr_jw_int(w, "sm_count", stamp->sm_count);
    orr_jw_int(w, "compute_capability", stamp->capability);
    orr_jw_number(w, "memory_bytes", stamp->memory_bytes);
    orr_jw_number(w, "l2_bytes", stamp->l2_bytes);
    orr_jw_text(w, "driver", stamp->driver);
    orr_jw_text(w, "cuda", stamp->cuda);
    orr_jw_text(w, "nccl", stamp->nccl);
    orr_jw_text(w, "cublaslt", stamp->cublaslt);
    orr_jw_text(w, "cudnn", stamp->cudnn);
    orr_jw_text(w, "transformer_engine", stamp->transformer_engine);
    orr_jw_text(w, "cpu", stamp->cpu);
    orr_jw_int(w, "cpus", stamp->cpus);
    orr_jw_int(w, "sockets", stamp->sockets);
    orr_jw_number(w, "dram_bytes", stamp->dram_bytes);
    if (stamp->limits.power_limit_w > 0)
        orr_jw_number(w, "power_limit_w", stamp->limits.power_limit_w);
    if (stamp->limits.boost_clock_hz > 0)
        orr_jw_number(w, "boost_clock_hz", stamp->limits.boost_clock_hz);
    if (stamp->limits.memory_clock_hz > 0)
        orr_jw_number(w, "memory_clock_hz", stamp->limits.memory_clock_hz);
    if (stamp->limits.pcie_lanes > 0) {
        orr_jw_int(w, "pcie_generation", stamp->limits.pcie_generation);
        orr_jw_int(w, "pcie_lanes", stamp->limits.pcie_lanes);
    }
    orr_jw_text(w, "host", stamp->host);
    orr_jw_text(w, "date", stamp->date);
    orr_jw_text(w, "command", stamp->command);
    orr_jw_begin(w, "nics", '[');
    for (int i = 0; i < stamp->nics.count; i++) {
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "name", stamp->nics.nic[i].name);
        orr_jw_bool(w, "infiniband", stamp->nics.nic[i].infiniband);
        orr_jw_number(w, "bytes_per_s", stamp->nics.nic[i].bytes_per_s);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
    orr_jw_end(w, '}');
}

/* --- clocks --- */

static bool is_section(const OrrJson *root, const char *key)
{
    return strcmp(orr_json_text_of(root, "section", ""), key) == 0 && orr_json_member(root, "row") != NULL;
}

/* Seconds of the probe that most of the sweep gave: its median. 0: none. */
static double usual_probe_us(const GPtrArray *docs)
{
    g_autoptr(GArray) times = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < docs->len; i++) {
        const OrrJson *root = orr_json_root(g_ptr_array_index(docs, i));
        const double us = is_section(root, "drift_measurements")
                              ? orr_json_number_of(orr_json_member(root, "row"), "time_us", 0)
                              : 0;
        if (us > 0)
            g_array_append_val(times, us);
    }
    orr_stats_sort((double *)(void *)times->data, times->len);
    return times->len > 0 ? g_array_index(times, double, (times->len - 1) / 2) : 0;
}

/* One byte a line: 1 where the probe before or after was off by more than CAL_DRIFT_FRAC. */
static char *find_unsteady(const GPtrArray *docs)
{
    char *unsteady = g_new0(char, docs->len + 1);
    const double usual_us = usual_probe_us(docs);
    guint begin = 0;
    bool off = false;
    for (guint i = 0; i <= docs->len && usual_us > 0; i++) {
        const OrrJson *root = i < docs->len ? orr_json_root(g_ptr_array_index(docs, i)) : NULL;
        const bool probe = root != NULL && is_section(root, "drift_measurements");
        if (!probe && i < docs->len)
            continue;
        const double us = probe ? orr_json_number_of(orr_json_member(root, "row"), "time_us", 0) : usual_us;
        const bool off_now = fabs(us / usual_us - 1) > CAL_DRIFT_FRAC;
        for (guint j = begin; j < i && (off || off_now); j++)
            unsteady[j] = 1;
        begin = i + 1;
        off = off_now;
    }
    return unsteady;
}

/* --- sections --- */

/* The links, the host and the probes themselves do not hang on the SMs' clock. */
static bool by_clock(const char *section)
{
    static const char *const keys[] = {
        "gemm_measurements", "grouped_gemm_measurements", "attention_measurements",   "layer_measurements",
        "hbm_stream",        "memory_bound_measurements", "interference_measurements"};
    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
        if (strcmp(keys[i], section) == 0)
            return true;
    return false;
}

static void write_section(OrrJsonWriter *w, const char *key, const GPtrArray *docs, const char *unsteady)
{
    bool any = false;
    for (guint i = 0; i < docs->len; i++) {
        const OrrJson *root = orr_json_root(g_ptr_array_index(docs, i));
        if (!is_section(root, key))
            continue;
        if (!any)
            orr_jw_begin(w, key, '[');
        any = true;
        orr_jw_begin(w, NULL, '{');
        for (const OrrJson *member = orr_json_first(orr_json_member(root, "row")); member != NULL;
             member = orr_json_next(member))
            orr_jw_node(w, orr_json_key(member), member);
        if (unsteady[i] && by_clock(key))
            orr_jw_bool(w, "unsteady", true);
        orr_jw_end(w, '}');
    }
    if (any)
        orr_jw_end(w, ']');
}

static void write_skipped(OrrJsonWriter *w, const GPtrArray *docs)
{
    orr_jw_begin(w, "skipped", '[');
    for (guint i = 0; i < docs->len; i++) {
        const OrrJson *root = orr_json_root(g_ptr_array_index(docs, i));
        if (orr_json_text_of(root, "skipped", NULL) != NULL)
            orr_jw_node(w, NULL, root);
    }
    orr_jw_end(w, ']');
}

void cal_sweep_write(const CalStamp *stamp, const GArray *points, const GPtrArray *lines, GString *out)
{
    static const char *const sections[] = {
        "gemm_measurements",    "grouped_gemm_measurements", "attention_measurements",  "layer_measurements",
        "hbm_stream",           "memory_bound_measurements", "collective_measurements", "copy_measurements",
        "latency_measurements", "interference_measurements", "together_measurements",   "host_measurements",
        "drift_measurements",   "shared_gpu_measurements"};
    g_autoptr(GPtrArray) docs = g_ptr_array_new_with_free_func((GDestroyNotify)orr_json_free);
    for (guint i = 0; i < lines->len; i++) {
        const char *line = g_ptr_array_index(lines, i);
        OrrJsonDoc *doc = orr_json_parse(line, strlen(line), "journal", NULL);
        if (doc != NULL)
            g_ptr_array_add(docs, doc);
    }
    g_autofree char *unsteady = find_unsteady(docs);
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_int(&w, "schema", 1);
    write_stamp(&w, stamp);
    orr_jw_int(&w, "points", points->len);
    for (size_t i = 0; i < G_N_ELEMENTS(sections); i++)
        write_section(&w, sections[i], docs, unsteady);
    write_skipped(&w, docs);
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}
