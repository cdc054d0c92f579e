/* calibrate/fit/lint.c - see lint.h. */
#include "calibrate/fit/lint.h"

#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "calibrate/fit/recorded.h"
#include "spec/load.h"

#define MOST_BYTES ((size_t)64 << 20)

/* Columns of every section, then of each. */
static const char *const common[] = {"gpu",        "source",        "run",          "time_us",  "tflops",
                                     "repeats",    "round",         "spread_frac",  "outliers", "drift_frac",
                                     "error_frac", "correct",       "timing",       "power_w",  "sm_clock_hz",
                                     "unsteady",   "temperature_c", "clock_limits", "sweep",    "burst",
                                     "cudnn",      "note",          "throttled"};

static const struct {
    const char *section, *columns;
} sections[] = {
    {"gemm_measurements", "m n k dtype layout accumulate out batch pass"},
    {"grouped_gemm_measurements", "groups m_per_group n k dtype stage calls accumulate eff"},
    {"attention_measurements",
     "kernel floor pass batch seq heads kv_heads head_dim v_dim causal window dtype "
     "tflops_simumax eff_simumax"},
    {"layer_measurements", "batch seq heads kv_heads head_dim hidden ffn_hidden attention parts_us"},
    {"hbm_stream", "kernel rows cols bytes tbps"},
    {"memory_bound_measurements", "kernel rows cols bytes"},
    {"collective_measurements", "nodes gpus op bytes busbw_gbps algbw_gbps nccl ranks_per_process"},
    {"shared_gpu_measurements", "nodes gpus op bytes busbw_gbps nccl ranks_per_process"},
    {"copy_measurements", "op bytes gbps pairs"},
    {"latency_measurements", "op"},
    {"interference_measurements", "op gpus bytes gemm_beside_us other_us other_beside_us gemm_slowdown_frac "
                                  "other_slowdown_frac"},
    {"together_measurements", "op gpus bytes gbps threads speed_spread_frac first_us ranks_us"},
    {"host_measurements", "op bytes gbps threads"},
    {"drift_measurements", "after"}};

/* Members of a table that are no rows. */
static const char *const others[] = {"schema", "stamp", "stamps", "points", "skipped", "about", "left_out"};

static bool among(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0)
            return true;
    return false;
}

static const char *columns_of(const char *section)
{
    for (size_t i = 0; i < G_N_ELEMENTS(sections); i++)
        if (strcmp(sections[i].section, section) == 0)
            return sections[i].columns;
    return NULL;
}

static bool check_column(const OrrJson *cell, const char *columns, const char *where, GError **error)
{
    const char *key = orr_json_key(cell);
    g_auto(GStrv) own = g_strsplit(columns, " ", -1);
    if (!among(key, common, G_N_ELEMENTS(common)) && !g_strv_contains((const char *const *)own, key)) {
        const char *near = orr_nearest(key, (const char *const *)own, (int)g_strv_length(own));
        return orr_fail(error, ORR_ERROR_INPUT, "%s: column \"%s\" is not known there; %s%s", where, key,
                        near != NULL ? "did you mean " : "docs/CALIBRATION.md lists them",
                        near != NULL ? near : "");
    }
    const bool flag =
        g_str_has_suffix(key, "_frac") || strcmp(key, "outliers") == 0 || strcmp(key, "sweep") == 0;
    if (orr_json_type(cell) == ORR_JSON_NUMBER && !flag && !(orr_json_number(cell) > 0))
        return orr_fail(error, ORR_ERROR_INPUT, "%s: \"%s\" is %g; a size, a rate or a time is above 0",
                        where, key, orr_json_number(cell));
    if (orr_json_type(cell) == ORR_JSON_NUMBER && strcmp(key, "time_us") == 0 &&
        !cal_recorded_is_time(orr_json_number(cell)))
        return orr_fail(error, ORR_ERROR_INPUT, "%s: \"time_us\" is %g; microseconds from 0.05 to 3.6e9",
                        where, orr_json_number(cell));
    return true;
}

/* A preset, or what the stamp's sweep ran on. */
static bool check_gpu(const char *gpu, const OrrJson *stamp, GHashTable *known, const char *where,
                      GError **error)
{
    SpecAccelerator accelerator;
    if (g_hash_table_contains(known, gpu))
        return true;
    const bool stamped = stamp != NULL && strcmp(orr_json_text_of(stamp, "device", ""), gpu) == 0;
    if (!stamped && (strchr(gpu, '/') != NULL || !spec_load_accelerator(gpu, &accelerator, NULL)))
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: \"gpu\" is \"%s\", neither a preset nor the stamp's device; `orrery list accelerators` "
            "names the presets",
            where, gpu);
    g_hash_table_add(known, g_strdup(gpu));
    return true;
}

/* What tells one machine and one sweep from another, and by which software. */
static bool check_stamp(const OrrJson *stamp, const char *name, GError **error)
{
    static const char *const words[] = {"device", "driver", "cuda", "date"};
    static const char *const numbers[] = {"sm_count", "memory_bytes"};
    if (stamp == NULL || orr_json_type(stamp) != ORR_JSON_OBJECT)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: rows of orrery-calibrate without the \"stamp\" of their sweep; send the file as it was "
            "written",
            name);
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
        if (orr_json_text_of(stamp, words[i], "")[0] == '\0')
            return orr_fail(error, ORR_ERROR_INPUT,
                            "%s: stamp.%s: is not said; send the file as it was written", name, words[i]);
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        if (!(orr_json_number_of(stamp, numbers[i], 0) > 0))
            return orr_fail(error, ORR_ERROR_INPUT,
                            "%s: stamp.%s: is not said; send the file as it was written", name, numbers[i]);
    return true;
}

typedef struct Lint {
    const char *name;
    const OrrJson *stamp;
    GHashTable *gpus, *rows; /* those seen */
    bool stamped;            /* the stamp was looked at */
} Lint;

static bool check_row(Lint *lint, const OrrJson *row, const char *columns, const char *where, GError **error)
{
    if (orr_json_type(row) != ORR_JSON_OBJECT)
        return orr_fail(error, ORR_ERROR_INPUT, "%s: a row is an object of columns", where);
    for (const OrrJson *cell = orr_json_first(row); cell != NULL; cell = orr_json_next(cell))
        if (!check_column(cell, columns, where, error))
            return false;
    const char *gpu = orr_json_text_of(row, "gpu", ""), *source = orr_json_text_of(row, "source", "");
    if (gpu[0] == '\0' || source[0] == '\0')
        return orr_fail(error, ORR_ERROR_INPUT, "%s: \"%s\" is not said", where,
                        gpu[0] == '\0' ? "gpu" : "source");
    if (strcmp(source, "orrery-calibrate") == 0 && !lint->stamped) {
        if (!check_stamp(lint->stamp, lint->name, error))
            return false;
        lint->stamped = true;
    }
    g_autofree char *dump = orr_json_dump(row);
    char *text = g_strdup_printf("%s %s", columns, dump);
    if (!g_hash_table_add(lint->rows, text))
        return orr_fail(error, ORR_ERROR_INPUT, "%s: the same row is there twice; leave one out", where);
    return check_gpu(gpu, lint->stamp, lint->gpus, where, error);
}

static bool check_section(Lint *lint, const OrrJson *list, GError **error)
{
    const char *key = orr_json_key(list), *columns = columns_of(key);
    if (columns == NULL && !among(key, others, G_N_ELEMENTS(others)))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: \"%s\" is not a section of a table; docs/CALIBRATION.md lists them", lint->name,
                        key);
    if (columns == NULL)
        return true;
    if (orr_json_type(list) != ORR_JSON_LIST)
        return orr_fail(error, ORR_ERROR_INPUT, "%s: %s: is not a list of rows", lint->name, key);
    int index = 0;
    for (const OrrJson *row = orr_json_first(list); row != NULL; row = orr_json_next(row)) {
        g_autofree char *where = g_strdup_printf("%s: %s: row %d", lint->name, key, ++index);
        if (!check_row(lint, row, columns, where, error))
            return false;
    }
    return true;
}

bool cal_lint_table(const OrrJson *root, const char *name, GError **error)
{
    if (orr_json_type(root) != ORR_JSON_OBJECT)
        return orr_fail(error, ORR_ERROR_INPUT, "%s: a table is an object of sections", name);
    Lint lint = {name, orr_json_member(root, "stamp"),
                 g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                 g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL), false};
    bool ok = true;
    for (const OrrJson *list = orr_json_first(root); ok && list != NULL; list = orr_json_next(list))
        ok = check_section(&lint, list, error);
    if (ok && g_hash_table_size(lint.rows) == 0)
        ok = orr_fail(error, ORR_ERROR_INPUT, "%s: holds no rows", name);
    g_hash_table_unref(lint.gpus);
    g_hash_table_unref(lint.rows);
    return ok;
}

bool cal_lint_file(const char *path, const char *accelerator, GError **error)
{
    OrrJsonDoc *doc = NULL;
    g_autoptr(GString) text = orr_file_read(path, MOST_BYTES, error);
    if (text == NULL)
        return false;
    if (text->str[strspn(text->str, " \t\r\n")] == '{')
        doc = orr_json_parse(text->str, text->len, path, error);
    else if (!cal_recorded_parse(text->str, text->len, path, accelerator, &doc, NULL, error))
        doc = NULL;
    const bool ok = doc != NULL && cal_lint_table(orr_json_root(doc), path, error);
    orr_json_free(doc);
    return ok;
}
