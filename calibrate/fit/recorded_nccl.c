/* calibrate/fit/recorded_nccl.c - nccl-tests' text and JSON. */
#include "calibrate/fit/recorded_nccl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What the header of a log says. */
typedef struct Header {
    const char *op;
    char device[128]; /* the first GPU's name */
    char version[24];
    int ranks, nodes;
} Header;

/* Longer names first: "reduce_scatter" holds "reduce". */
static const struct {
    const char *program, *op;
} programs[] = {
    {"reduce_scatter", "reduce_scatter"},
    {"all_reduce", "all_reduce"},
    {"all_gather", "all_gather"},
    {"alltoall", "alltoall"},
    {"broadcast", "broadcast"},
    {"sendrecv", "send_recv"},
    {"reduce", "reduce"},
};

static const char *op_in(const char *text, const char *suffix)
{
    for (size_t i = 0; i < G_N_ELEMENTS(programs); i++) {
        g_autofree char *word = g_strconcat(programs[i].program, suffix, NULL);
        if (strstr(text, word) != NULL)
            return programs[i].op;
    }
    return NULL;
}

static bool no_op(const char *name, GError **error)
{
    return orr_fail(
        error, ORR_ERROR_INPUT,
        "%s: does not say which collective ran; put its name into the file's (all_reduce_perf.txt)", name);
}

bool cal_nccl_is_text(const char *text)
{
    return strstr(text, "algbw") != NULL && strstr(text, "busbw") != NULL;
}

bool cal_nccl_is_json(const OrrJson *root)
{
    const OrrJson *results = orr_json_type(root) == ORR_JSON_OBJECT ? orr_json_member(root, "results") : NULL;
    return results != NULL && orr_json_type(results) == ORR_JSON_LIST;
}

/* 22907 -> 2.29.7; up to 2.8 the code was shorter. */
static void set_version(Header *header, long code)
{
    if (code >= 10000)
        g_snprintf(header->version, sizeof header->version, "%ld.%ld.%ld", code / 10000, code / 100 % 100,
                   code % 100);
    else if (code > 0)
        g_snprintf(header->version, sizeof header->version, "%ld.%ld.%ld", code / 1000, code / 100 % 10,
                   code % 100);
}

static void row(OrrJsonWriter *w, const Header *header, double bytes, double time_us, double bus_gbps)
{
    orr_jw_begin(w, NULL, '{');
    if (header->device[0] != '\0')
        orr_jw_text(w, "gpu", header->device);
    orr_jw_int(w, "nodes", MAX(header->nodes, 1));
    orr_jw_int(w, "gpus", header->ranks);
    orr_jw_text(w, "op", header->op);
    orr_jw_number(w, "bytes", bytes);
    orr_jw_number(w, "time_us", time_us);
    orr_jw_number(w, "busbw_gbps", bus_gbps);
    orr_jw_text(w, "source", "nccl-tests");
    if (header->version[0] != '\0')
        orr_jw_text(w, "nccl", header->version);
    orr_jw_end(w, '}');
}

/* "#  Rank  0 Group  0 Pid  4242 on  node-1 device  0 [0000:18:00] NVIDIA H200" */
static void rank_line(Header *header, const char *line, GHashTable *hosts)
{
    const char *on = strstr(line, " on "), *device = strstr(line, " device "), *name = strrchr(line, ']');
    if (on == NULL || device == NULL || on > device)
        return;
    char *host = g_strndup(on + 4, (gsize)(device - on - 4));
    g_hash_table_add(hosts, g_strdup(g_strstrip(host)));
    g_free(host);
    header->ranks++;
    if (header->device[0] == '\0' && name != NULL) {
        g_strlcpy(header->device, name + 1, sizeof header->device);
        g_strstrip(header->device);
    }
}

static void header_line(Header *header, const char *line, GHashTable *hosts, int *threads_times_gpus)
{
    int threads = 0, gpus = 0;
    long code = 0;
    const char *at;
    if (strstr(line, " Rank ") != NULL)
        rank_line(header, line, hosts);
    else if (sscanf(line, "# nThread %d nGpus %d", &threads, &gpus) == 2)
        *threads_times_gpus = threads * gpus;
    else if ((at = strstr(line, "nccl-library=")) != NULL && sscanf(at, "nccl-library=%ld", &code) == 1)
        set_version(header, code);
    else if (strstr(line, "test starting") != NULL)
        header->op = op_in(line, "");
    header->nodes = (int)g_hash_table_size(hosts);
}

/* size count type [redop] [root] time algbw busbw wrong ...: older versions leave columns out, so the time is the number
 * that agrees with the rate behind it (printed with two decimals, or three digits). */
static bool result_line(const Header *header, char *line, OrrJsonWriter *w)
{
    double values[12];
    int count = 0;
    char *state = NULL;
    for (char *word = strtok_r(line, " \t\r", &state); word != NULL && count < 12;
         word = strtok_r(NULL, " \t\r", &state))
        values[count++] = g_ascii_strtod(word, NULL); /* 0 for a word */
    const double bytes = count > 0 ? values[0] : 0;
    for (int i = 3; i + 2 < count && i < 6 && bytes > 0; i++) {
        const double rate = values[i] > 0 ? bytes / values[i] * 1e-3 : 0;
        if (rate > 0 && fabs(values[i + 1] - rate) <= 0.0101 + 0.01 * rate) {
            row(w, header, bytes, values[i], values[i + 2]);
            return true;
        }
    }
    return false;
}

/* Versions before 2.17 name the program behind its results alone: "# Collective test concluded: all_reduce_perf", before the next run's
 * header. */
static const char *op_behind(char **lines)
{
    for (; *lines != NULL && strstr(*lines, "nThread") == NULL; lines++)
        if (strstr(*lines, "test concluded") != NULL)
            return op_in(*lines, "");
    return NULL;
}

bool cal_nccl_text(const char *text, const char *name, OrrJsonWriter *w, GError **error)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GHashTable) hosts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autofree char *base = g_path_get_basename(name);
    Header header = {0};
    int rows = 0, from_head = 0;
    orr_jw_begin(w, "collective_measurements", '[');
    for (int i = 0; lines[i] != NULL; i++) {
        if (lines[i][0] == '#') {
            if (strstr(lines[i], "nThread") != NULL) { /* another run in the same file */
                header.ranks = 0;
                header.op = strstr(text, "test starting") != NULL ? header.op : NULL;
            }
            header_line(&header, lines[i], hosts, &from_head);
            continue;
        }
        if (!g_ascii_isdigit(lines[i][strspn(lines[i], " \t")])) /* what a launcher says */
            continue;
        if (header.op == NULL && (header.op = op_behind(lines + i)) == NULL &&
            (header.op = op_in(base, "")) == NULL)
            return no_op(name, error);
        if (header.ranks == 0)
            header.ranks = from_head;
        if (header.ranks < 2)
            return orr_fail(
                error, ORR_ERROR_INPUT,
                "%s: line %d: a result before the header said how many GPUs there are (two or more)", name,
                i + 1);
        rows += result_line(&header, lines[i], w);
    }
    orr_jw_end(w, ']');
    return rows > 0 || orr_fail(error, ORR_ERROR_INPUT, "%s: holds no results of nccl-tests", name);
}

static void read_devices(Header *header, const OrrJson *config)
{
    g_autoptr(GHashTable) hosts = g_hash_table_new(g_str_hash, g_str_equal);
    const OrrJson *devices = orr_json_member(config, "devices");
    const double each = orr_json_number_of(config, "nthreads", 0) * orr_json_number_of(config, "ngpus", 0);
    for (const OrrJson *node = devices != NULL ? orr_json_first(devices) : NULL; node != NULL;
         node = orr_json_next(node)) {
        if (orr_json_type(node) != ORR_JSON_OBJECT)
            continue;
        const OrrJson *host = orr_json_member(node, "hostname"),
                      *device = orr_json_member(node, "device_info");
        if (host != NULL && orr_json_type(host) == ORR_JSON_TEXT)
            g_hash_table_add(hosts, (gpointer)orr_json_text(host));
        if (device != NULL && orr_json_type(device) == ORR_JSON_TEXT && header->device[0] == '\0')
            g_strlcpy(header->device, orr_json_text(device), sizeof header->device);
        header->ranks++; /* a process lists its first GPU only */
    }
    header->nodes = (int)g_hash_table_size(hosts);
    header->ranks = MAX(header->ranks, (int)(each * MAX(header->ranks, 1)));
}

bool cal_nccl_json(const OrrJsonDoc *doc, const char *text, OrrJsonWriter *w, GError **error)
{
    const OrrJson *root = orr_json_root(doc), *config = orr_json_member(root, "config");
    const char *name = orr_json_name(doc);
    g_autofree char *base = g_path_get_basename(name);
    Header header = {.op = op_in(text, "_perf")};
    if (header.op == NULL && (header.op = op_in(base, "")) == NULL)
        return no_op(name, error);
    if (config != NULL && orr_json_type(config) == ORR_JSON_OBJECT)
        read_devices(&header, config);
    if (header.ranks < 2)
        return orr_fail(error, ORR_ERROR_INPUT, "%s: \"config\" does not name two GPUs or more", name);
    int rows = 0;
    orr_jw_begin(w, NULL, '{');
    orr_jw_begin(w, "collective_measurements", '[');
    for (const OrrJson *node = orr_json_first(orr_json_member(root, "results")); node != NULL;
         node = orr_json_next(node)) {
        const OrrJson *out =
            orr_json_type(node) == ORR_JSON_OBJECT ? orr_json_member(node, "out_of_place") : NULL;
        if (out == NULL || orr_json_type(out) != ORR_JSON_OBJECT ||
            !(orr_json_number_of(out, "time", 0) > 0) || !(orr_json_number_of(node, "size", 0) > 0))
            continue;
        row(w, &header, orr_json_number_of(node, "size", 0), orr_json_number_of(out, "time", 0),
            orr_json_number_of(out, "bus_bw", 0));
        rows++;
    }
    orr_jw_end(w, ']');
    orr_jw_end(w, '}');
    return rows > 0 || orr_fail(error, ORR_ERROR_INPUT, "%s: holds no results of nccl-tests", name);
}
