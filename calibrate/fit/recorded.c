/* calibrate/fit/recorded.c - tables, nccl-tests' output and CSV of GEMMs become one table. */
#include "calibrate/fit/recorded.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "calibrate/fit/recorded_bench.h"
#include "calibrate/fit/recorded_nccl.h"
#include "spec/load.h"

static const char *const sections[] = {
    "gemm_measurements",  "grouped_gemm_measurements", "attention_measurements",
    "hbm_stream",         "memory_bound_measurements", "collective_measurements",
    "layer_measurements", "interference_measurements", "copy_measurements",
    "host_measurements",  "together_measurements"};

/* --- devices --- */

/* Letters and digits of one word of a device's name; moves on. */
static bool next_word(const char **at, char *ret_word, size_t size)
{
    size_t length = 0;
    while (**at != '\0' && !g_ascii_isalnum(**at))
        (*at)++;
    for (; g_ascii_isalnum(**at); (*at)++)
        if (length + 1 < size)
            ret_word[length++] = g_ascii_tolower(**at);
    ret_word[length] = '\0';
    return length > 0;
}

/* Words of the device's name found in the preset's ("-" between words); -1 when its first word, the chip, is not. */
static int words_shared(const char *device_name, const char *preset)
{
    g_auto(GStrv) words = g_strsplit(preset, "-", -1);
    char word[64];
    int shared = 0;
    bool chip = false;
    for (const char *at = device_name; next_word(&at, word, sizeof word);)
        for (char **own = words; *own != NULL; own++)
            if (strcmp(word, *own) == 0) {
                shared++;
                chip |= own == words;
            }
    return chip ? shared : -1;
}

/* A slice of a GPU ("NVIDIA H100 80GB HBM3 MIG 1g.10gb") is none of the presets: a part of the SMs, of the cache and of the bandwidth. */
static bool is_slice(const char *device_name)
{
    char word[64];
    for (const char *at = device_name; next_word(&at, word, sizeof word);)
        if (strcmp(word, "mig") == 0)
            return true;
    return false;
}

static double misfit(double ours, double theirs)
{
    return ours > 0 && theirs > 0 ? fabs(log(ours / theirs)) : 0;
}

char *cal_accelerator_of_device(const char *device_name, double sm_count, double memory_bytes)
{
    g_autofree char *scenarios = orr_scenarios_dir(NULL);
    g_autofree char *folder = scenarios != NULL ? g_build_filename(scenarios, "accelerators", NULL) : NULL;
    g_autoptr(GDir) dir = folder != NULL ? g_dir_open(folder, 0, NULL) : NULL;
    g_autofree char *best = NULL;
    double best_score = -1;
    if (is_slice(device_name))
        return NULL;
    for (const char *file = dir != NULL ? g_dir_read_name(dir) : NULL; file != NULL;
         file = g_dir_read_name(dir)) {
        if (!g_str_has_suffix(file, ".json"))
            continue;
        g_autofree char *name = g_strndup(file, strlen(file) - strlen(".json"));
        const int shared = words_shared(device_name, name);
        SpecAccelerator accelerator;
        if (shared < 0 || !spec_load_accelerator(name, &accelerator, NULL))
            continue;
        /* Cards say that they are cards ("NVIDIA H100 PCIe"); modules ("NVIDIA H100 80GB HBM3") say nothing. */
        const bool unsaid = strstr(name, "pcie") != NULL && strstr(device_name, "PCIe") == NULL;
        const double score = 0.1 * shared + 10 - (unsaid ? 0.05 : 0) -
                             misfit(sm_count, accelerator.sm_count) -
                             misfit(memory_bytes, accelerator.memory_bytes);
        if (score > best_score || (!(score < best_score) && strcmp(name, best) < 0)) {
            best_score = score;
            g_free(best);
            best = g_steal_pointer(&name);
        }
    }
    return g_steal_pointer(&best);
}

/* --- CSV of GEMMs --- */

static int column_of(char **head, const char *name)
{
    for (int i = 0; head[i] != NULL; i++)
        if (g_ascii_strcasecmp(g_strstrip(head[i]), name) == 0)
            return i;
    return -1;
}

static bool csv_row(char **head, char **cells, const char *name, int line, OrrJsonWriter *w, GError **error)
{
    orr_jw_begin(w, NULL, '{');
    for (int i = 0; head[i] != NULL; i++) {
        if (cells[i] == NULL)
            return orr_fail(error, ORR_ERROR_INPUT, "%s: line %d has fewer values than the head line", name,
                            line);
        const char *cell = g_strstrip(cells[i]);
        char *end = NULL;
        const double value = g_ascii_strtod(cell, &end);
        if (*cell == '\0')
            continue;
        if (*end == '\0')
            orr_jw_number(w, head[i], value);
        else if (g_ascii_strcasecmp(cell, "true") == 0 || g_ascii_strcasecmp(cell, "false") == 0)
            orr_jw_bool(w, head[i], g_ascii_strcasecmp(cell, "true") == 0);
        else
            orr_jw_text(w, head[i], cell);
    }
    if (column_of(head, "source") < 0)
        orr_jw_text(w, "source", "csv");
    orr_jw_end(w, '}');
    return true;
}

static bool csv_table(const char *text, const char *name, OrrJsonWriter *w, GError **error)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_auto(GStrv) head = NULL;
    int rows = 0;
    orr_jw_begin(w, "gemm_measurements", '[');
    for (int i = 0; lines[i] != NULL; i++) {
        if (*g_strstrip(lines[i]) == '\0' || lines[i][0] == '#')
            continue;
        g_auto(GStrv) cells = g_strsplit(lines[i], ",", -1);
        if (head == NULL) {
            head = g_steal_pointer(&cells);
            if (column_of(head, "m") < 0 || column_of(head, "n") < 0 || column_of(head, "k") < 0 ||
                (column_of(head, "time_us") < 0 && column_of(head, "tflops") < 0))
                return orr_fail(
                    error, ORR_ERROR_INPUT,
                    "%s: is not one of the formats that are read; give a JSON table, or output of "
                    "nccl-tests, "
                    "nvbandwidth, mamf-finder, cudnn-frontend or PyTorch's sdpa.py; or a CSV whose head line "
                    "names m, n, k and time_us or tflops",
                    name);
            continue;
        }
        if (!csv_row(head, cells, name, i + 1, w, error))
            return false;
        rows++;
    }
    orr_jw_end(w, ']');
    return rows > 0 || orr_fail(error, ORR_ERROR_INPUT, "%s: holds no rows", name);
}

/* --- accelerators of rows --- */

typedef struct Namer {
    const char *accelerator;       /* given, or NULL */
    bool by_device;                /* names are devices': not so in tables that were put together by hand */
    double sm_count, memory_bytes; /* of the stamp */
    GHashTable *presets;           /* a row's name -> preset's; NULL value: none */
    int left_out[CAL_LEFT_OUT_COUNT];
} Namer;

bool cal_recorded_is_time(double us)
{
    return us >= 0.05 && us <= 3.6e9;
}

/* Why nothing may be learnt from a row; CAL_LEFT_OUT_COUNT: it is as good as any. */
static CalLeftOut left_out(const OrrJson *row, const char *section)
{
    const OrrJson *correct = orr_json_member(row, "correct"), *unsteady = orr_json_member(row, "unsteady");
    if (correct != NULL && orr_json_type(correct) == ORR_JSON_BOOL && !orr_json_bool(correct))
        return CAL_LEFT_OUT_WRONG;
    if (unsteady != NULL && orr_json_type(unsteady) == ORR_JSON_BOOL && orr_json_bool(unsteady))
        return CAL_LEFT_OUT_UNSTEADY;
    const OrrJson *time = orr_json_member(row, "time_us");
    if (time != NULL && orr_json_type(time) == ORR_JSON_NUMBER &&
        !cal_recorded_is_time(orr_json_number(time)))
        return CAL_LEFT_OUT_NO_TIME;
    const double gpus = orr_json_number_of(row, "gpus", 0);
    return strcmp(section, "collective_measurements") == 0 && gpus >= 1 && gpus < 2 ? CAL_LEFT_OUT_ALONE
                                                                                    : CAL_LEFT_OUT_COUNT;
}

/* What a sweep says of itself, and what was left out at the door: members of the document that is handed on. */
static const char *const left_out_keys[CAL_LEFT_OUT_COUNT] = {"wrong", "unsteady", "alone", "no_time"};

void cal_recorded_left_out(const OrrJson *root, GString *log)
{
    static const char *const why[CAL_LEFT_OUT_COUNT] = {
        "the kernel's answer was wrong when it was timed (\"correct\": false)",
        "the clocks did not hold while they were timed (\"unsteady\": true)",
        "a collective of one GPU crosses no link",
        "a time below 50 ns or above an hour is too short or long for a kernel (\"time_us\")"};
    const OrrJson *counts = orr_json_member(root, "left_out");
    for (int i = 0; log != NULL && counts != NULL && i < CAL_LEFT_OUT_COUNT; i++) {
        const double rows = orr_json_number_of(counts, left_out_keys[i], 0);
        if (rows > 0)
            g_string_append_printf(log, "left out %.0f rows: %s\n", rows, why[i]);
    }
}

/* What to call the GPU of a row; its own name when nothing better is known. */
static const char *preset_of(Namer *namer, const char *gpu)
{
    if (gpu == NULL || !namer->by_device)
        return gpu == NULL ? namer->accelerator : gpu;
    if (!g_hash_table_contains(namer->presets, gpu)) {
        SpecAccelerator known;
        const bool is_preset = strchr(gpu, '/') == NULL && spec_load_accelerator(gpu, &known, NULL);
        char *preset = is_preset ? g_strdup(gpu)
                       : namer->accelerator != NULL
                           ? g_strdup(namer->accelerator)
                           : cal_accelerator_of_device(gpu, namer->sm_count, namer->memory_bytes);
        g_hash_table_insert(namer->presets, g_strdup(gpu), preset);
    }
    const char *preset = g_hash_table_lookup(namer->presets, gpu);
    return preset != NULL ? preset : gpu;
}

static void write_section(Namer *namer, OrrJsonWriter *w, const char *key, const OrrJson *list)
{
    orr_jw_begin(w, key, '[');
    for (const OrrJson *row = orr_json_first(list); row != NULL; row = orr_json_next(row)) {
        if (orr_json_type(row) != ORR_JSON_OBJECT) {
            orr_jw_node(w, NULL, row);
            continue;
        }
        const CalLeftOut out = left_out(row, key);
        if (out != CAL_LEFT_OUT_COUNT) {
            namer->left_out[out]++;
            continue;
        }
        const char *gpu = preset_of(namer, orr_json_text_of(row, "gpu", NULL));
        orr_jw_begin(w, NULL, '{');
        if (gpu != NULL)
            orr_jw_text(w, "gpu", gpu);
        for (const OrrJson *member = orr_json_first(row); member != NULL; member = orr_json_next(member))
            if (strcmp(orr_json_key(member), "gpu") != 0)
                orr_jw_node(w, orr_json_key(member), member);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
}

/* Known sections copied, rows named; a bare list counts as collectives. */
static OrrJsonDoc *name_rows(const OrrJsonDoc *doc, const char *accelerator, bool by_device, GString *log,
                             GError **error)
{
    const OrrJson *root = orr_json_root(doc);
    const OrrJson *stamp = orr_json_type(root) == ORR_JSON_OBJECT ? orr_json_member(root, "stamp") : NULL;
    Namer namer = {accelerator,
                   by_device || stamp != NULL,
                   orr_json_number_of(stamp, "sm_count", 0),
                   orr_json_number_of(stamp, "memory_bytes", 0),
                   g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
                   {0}};
    g_autoptr(GString) text = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, text, true);
    orr_jw_begin(&w, NULL, '{');
    if (stamp != NULL && orr_json_type(stamp) == ORR_JSON_OBJECT)
        orr_jw_node(&w, "stamp", stamp);
    if (orr_json_type(root) == ORR_JSON_LIST)
        write_section(&namer, &w, "collective_measurements", root);
    for (size_t i = 0; i < G_N_ELEMENTS(sections) && orr_json_type(root) == ORR_JSON_OBJECT; i++) {
        const OrrJson *list = orr_json_member(root, sections[i]);
        if (list == NULL && strcmp(sections[i], "collective_measurements") == 0)
            list = orr_json_member(root, "collectives");
        if (list == NULL || orr_json_type(list) != ORR_JSON_LIST)
            continue;
        write_section(&namer, &w, sections[i], list);
        if (log != NULL)
            g_string_append_printf(log, "%s: %d rows\n", sections[i], orr_json_count(list));
    }
    orr_jw_begin(&w, "left_out", '{');
    for (int i = 0; i < CAL_LEFT_OUT_COUNT; i++)
        orr_jw_int(&w, left_out_keys[i], namer.left_out[i]);
    orr_jw_end(&w, '}');
    orr_jw_end(&w, '}');
    g_hash_table_unref(namer.presets);
    return orr_json_parse(text->str, text->len, orr_json_name(doc), error);
}

/* --- doors --- */

static bool is_json(const char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    return *text == '{' || *text == '[';
}

bool cal_recorded_parse(const char *text, gsize length, const char *name, const char *accelerator,
                        OrrJsonDoc **ret_doc, GString *log, GError **error)
{
    OrrJsonDoc *doc = NULL;
    g_autoptr(GString) table = g_string_new(NULL);
    bool by_device = false;
    OrrJsonWriter w;
    orr_jw_init(&w, table, true);
    if (is_json(text)) {
        doc = orr_json_parse(text, length, name, error);
        if (doc == NULL)
            return false;
        if (cal_nccl_is_json(orr_json_root(doc))) {
            const bool ok = cal_nccl_json(doc, text, &w, error);
            orr_json_free(doc);
            by_device = true;
            doc = ok ? orr_json_parse(table->str, table->len, name, error) : NULL;
        }
    } else {
        by_device = true;
        orr_jw_begin(&w, NULL, '{');
        const int bench = cal_nccl_is_text(text) ? 0 : cal_bench_text(text, name, &w, error);
        const bool ok = bench != 0               ? bench > 0
                        : cal_nccl_is_text(text) ? cal_nccl_text(text, name, &w, error)
                                                 : csv_table(text, name, &w, error);
        orr_jw_end(&w, '}');
        doc = ok ? orr_json_parse(table->str, table->len, name, error) : NULL;
    }
    if (doc == NULL)
        return false;
    *ret_doc = name_rows(doc, accelerator, by_device, log, error);
    orr_json_free(doc);
    return *ret_doc != NULL;
}

bool cal_recorded_open(const char *path, const char *accelerator, OrrJsonDoc **ret_doc, GString *log,
                       GError **error)
{
    g_autoptr(GString) text = orr_text_read(path, CAL_RECORDED_MOST_BYTES, error);
    return text != NULL && cal_recorded_parse(text->str, text->len, path, accelerator, ret_doc, log, error);
}
