/* ledger/residuals.c - the list of residuals and its file. */
#include "ledger/residuals.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

static const char *const CLASS_NAMES[LEDGER_CLASS_COUNT] = {"dense", "sharded", "context", "experts"};

/* The columns of a row in the file, in this order. */
enum {
    SOURCE,
    ID,
    CLASS,
    ACCELERATOR,
    PRECISION,
    FRAMEWORK,
    SCHEDULE,
    GPUS,
    SEQUENCE,
    PARAMETERS,
    RATIO,
    COLUMNS
};
static const char *const COLUMN_NAMES[COLUMNS] = {"source",          "id",         "class",    "accelerator",
                                                  "precision",       "framework",  "schedule", "gpus",
                                                  "sequence_length", "parameters", "log_ratio"};

enum {
    MEMORY_SOURCE,
    MEMORY_ID,
    MEMORY_ACCELERATOR,
    MEMORY_FRAMEWORK,
    MEMORY_KIND,
    MEMORY_BEYOND,
    MEMORY_COLUMNS
};
static const char *const MEMORY_NAMES[MEMORY_COLUMNS] = {"source",    "id",   "accelerator",
                                                         "framework", "kind", "beyond_frac"};

LedgerClass ledger_class(const Spec *spec)
{
    return spec->model.moe.experts > 0  ? LEDGER_CLASS_EXPERTS
           : spec->parallel.context > 1 ? LEDGER_CLASS_CONTEXT
           : spec->parallel.zero == 3   ? LEDGER_CLASS_SHARDED
                                        : LEDGER_CLASS_DENSE;
}

const char *ledger_class_name(LedgerClass kind)
{
    return CLASS_NAMES[kind];
}

LedgerResiduals *ledger_residuals_new(void)
{
    LedgerResiduals *residuals = g_new(LedgerResiduals, 1);
    residuals->holders = 1;
    residuals->sources = g_ptr_array_new_with_free_func(g_free);
    residuals->rows = g_array_new(FALSE, FALSE, sizeof(LedgerResidual));
    residuals->memory = g_array_new(FALSE, FALSE, sizeof(LedgerMemoryResidual));
    residuals->text = g_string_chunk_new(4096);
    residuals->judging = g_hash_table_new(g_direct_hash, g_direct_equal);
    return residuals;
}

void ledger_residuals_free(LedgerResiduals *residuals)
{
    if (residuals == NULL || !g_atomic_int_dec_and_test(&residuals->holders))
        return;
    g_ptr_array_unref(residuals->sources);
    g_array_unref(residuals->rows);
    g_array_unref(residuals->memory);
    g_string_chunk_free(residuals->text);
    g_hash_table_destroy(residuals->judging);
    g_free(residuals);
}

int ledger_residuals_source(LedgerResiduals *residuals, const char *source)
{
    for (guint i = residuals->sources->len; i > 0; i--) {
        if (strcmp(residuals->sources->pdata[i - 1], source) == 0)
            return (int)i - 1;
    }
    g_ptr_array_add(residuals->sources, g_strdup(source));
    return (int)residuals->sources->len - 1;
}

void ledger_residuals_add(LedgerResiduals *residuals, const LedgerResidual *row)
{
    LedgerResidual copy = *row;
    g_assert(row->source >= 0 && row->source < (int)residuals->sources->len);
    copy.id = g_string_chunk_insert(residuals->text, row->id);
    copy.accelerator = g_string_chunk_insert_const(residuals->text, row->accelerator);
    copy.precision = g_string_chunk_insert_const(residuals->text, row->precision);
    copy.framework = g_string_chunk_insert_const(residuals->text, row->framework);
    copy.schedule = g_string_chunk_insert_const(residuals->text, row->schedule);
    g_array_append_val(residuals->rows, copy);
}

void ledger_residuals_add_memory(LedgerResiduals *residuals, const LedgerMemoryResidual *row)
{
    LedgerMemoryResidual copy = *row;
    g_assert(row->source >= 0 && row->source < (int)residuals->sources->len);
    copy.id = g_string_chunk_insert(residuals->text, row->id);
    copy.accelerator = g_string_chunk_insert_const(residuals->text, row->accelerator);
    copy.framework = g_string_chunk_insert_const(residuals->text, row->framework);
    copy.kind = g_string_chunk_insert_const(residuals->text, row->kind);
    g_array_append_val(residuals->memory, copy);
}

LedgerResidual ledger_residual_of(const Report *report)
{
    const Spec *spec = report->spec;
    const SpecParallel *parallel = &spec->parallel;
    const char *schedule = parallel->schedule_file[0] != '\0'
                               ? parallel->schedule_file
                               : spec_word(&spec_words_schedule, (int)parallel->schedule);
    return (LedgerResidual){.kind = ledger_class(spec),
                            .id = "",
                            .accelerator = spec->cluster.accelerator.name,
                            .precision = spec_word(&spec_words_precision, (int)spec->training.precision),
                            .framework = spec->execution.framework.name,
                            .schedule = parallel->pipeline > 1 ? schedule : "",
                            .gpus = report->gpus,
                            .sequence_length = spec->training.sequence_length,
                            .parameters = report->parameters};
}

/* --- the file --- */

/* Four decimals: more would change with every rounding. */
static void write_short(OrrJsonWriter *w, double value)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(number, sizeof number, "%.4f", value);
    orr_jw_number(w, NULL, g_ascii_strtod(number, NULL));
}

static void write_row(const LedgerResiduals *residuals, const LedgerResidual *row, GString *out)
{
    OrrJsonWriter w;
    orr_jw_init(&w, out, true);
    orr_jw_begin(&w, NULL, '[');
    orr_jw_text(&w, NULL, residuals->sources->pdata[row->source]);
    orr_jw_text(&w, NULL, row->id);
    orr_jw_text(&w, NULL, CLASS_NAMES[row->kind]);
    orr_jw_text(&w, NULL, row->accelerator);
    orr_jw_text(&w, NULL, row->precision);
    orr_jw_text(&w, NULL, row->framework);
    orr_jw_text(&w, NULL, row->schedule);
    orr_jw_int(&w, NULL, row->gpus);
    orr_jw_int(&w, NULL, row->sequence_length);
    orr_jw_number(&w, NULL, row->parameters);
    write_short(&w, row->log_ratio);
    orr_jw_end(&w, ']');
}

/* Of a fourth decimal: so little above a whole one is the rounding of a product, as of a number that was read. */
#define ROUNDED 1e-6

static void write_memory_row(const LedgerResiduals *residuals, const LedgerMemoryResidual *row, GString *out)
{
    OrrJsonWriter w;
    orr_jw_init(&w, out, true);
    orr_jw_begin(&w, NULL, '[');
    orr_jw_text(&w, NULL, residuals->sources->pdata[row->source]);
    orr_jw_text(&w, NULL, row->id);
    orr_jw_text(&w, NULL, row->accelerator);
    orr_jw_text(&w, NULL, row->framework);
    orr_jw_text(&w, NULL, row->kind);
    write_short(&w, ceil(row->beyond_frac * 1e4 - ROUNDED) * 1e-4); /* what it took, or a little more */
    orr_jw_end(&w, ']');
}

static void write_columns(GString *out, const char *key, const char *const *names, int count)
{
    g_string_append_printf(out, " \"%s\": [", key);
    for (int i = 0; i < count; i++)
        g_string_append_printf(out, "%s\"%s\"", i > 0 ? ", " : "", names[i]);
    g_string_append(out, "],\n");
}

/* A run a line, so that changes can be read. */
void ledger_residuals_write(const LedgerResiduals *residuals, GString *out)
{
    g_string_append(
        out,
        "{\"schema\": 1,\n"
        " \"name\": \"residuals\",\n"
        " \"source\": \"orrery validate scenarios/measurements/*.json scenarios/blind/*.json --residuals "
        "scenarios/residuals.json\",\n");
    write_columns(out, "columns", COLUMN_NAMES, COLUMNS);
    g_string_append(out, " \"rows\": [");
    const char *before = "\n";
    for (guint i = 0; i < residuals->rows->len; i++) {
        const LedgerResidual *row = ledger_residual(residuals, i);
        if (g_hash_table_contains(residuals->judging, GINT_TO_POINTER(row->source)))
            continue;
        g_string_append(out, before);
        write_row(residuals, row, out);
        before = ",\n";
    }
    g_string_append(out, "\n],\n");
    write_columns(out, "memory_columns", MEMORY_NAMES, MEMORY_COLUMNS);
    g_string_append(out, " \"memory_rows\": [");
    for (guint i = 0; i < residuals->memory->len; i++) {
        g_string_append(out, i > 0 ? ",\n" : "\n");
        write_memory_row(residuals, ledger_memory_residual(residuals, i), out);
    }
    g_string_append(out, "\n]}\n");
}

static bool bad_row(const char *path, const char *list, int index, const char *what, GError **error)
{
    return orr_fail(error, ORR_ERROR_INPUT,
                    "%s: %s[%d]: %s; write the file again with orrery validate --residuals", path, list,
                    index, what);
}

/* Of a row: text, or a number. */
typedef union Cell {
    const char *text;
    double number;
} Cell;

static bool take_time(const Cell *cells, LedgerResiduals *residuals, const char **ret_what)
{
    int kind = 0;
    while (kind < LEDGER_CLASS_COUNT && strcmp(CLASS_NAMES[kind], cells[CLASS].text) != 0)
        kind++;
    const double gpus = cells[GPUS].number, sequence = cells[SEQUENCE].number;
    if (kind == LEDGER_CLASS_COUNT || !(gpus >= 1 && gpus <= G_MAXINT) ||
        !(sequence >= 1 && sequence <= G_MAXINT)) {
        *ret_what = kind == LEDGER_CLASS_COUNT ? "class" : "gpus or sequence_length";
        return false;
    }
    const LedgerResidual row = {.source = ledger_residuals_source(residuals, cells[SOURCE].text),
                                .kind = (LedgerClass)kind,
                                .id = cells[ID].text,
                                .accelerator = cells[ACCELERATOR].text,
                                .precision = cells[PRECISION].text,
                                .framework = cells[FRAMEWORK].text,
                                .schedule = cells[SCHEDULE].text,
                                .gpus = (int)gpus,
                                .sequence_length = (int)sequence,
                                .parameters = cells[PARAMETERS].number,
                                .log_ratio = cells[RATIO].number};
    ledger_residuals_add(residuals, &row);
    return true;
}

static bool take_memory(const Cell *cells, LedgerResiduals *residuals, const char **ret_what)
{
    (void)ret_what;
    const LedgerMemoryResidual row = {.source = ledger_residuals_source(residuals, cells[MEMORY_SOURCE].text),
                                      .id = cells[MEMORY_ID].text,
                                      .accelerator = cells[MEMORY_ACCELERATOR].text,
                                      .framework = cells[MEMORY_FRAMEWORK].text,
                                      .kind = cells[MEMORY_KIND].text,
                                      .beyond_frac = cells[MEMORY_BEYOND].number};
    ledger_residuals_add_memory(residuals, &row);
    return true;
}

/* One of the two lists of the file. */
typedef struct RowList {
    const char *key, *columns_key;
    const char *const *columns;
    int texts, count; /* of columns, at most COLUMNS: texts come first, then numbers */
    bool (*take)(const Cell *cells, LedgerResiduals *residuals, const char **ret_what);
} RowList;

static const RowList LISTS[] = {
    {"rows", "columns", COLUMN_NAMES, GPUS, COLUMNS, take_time},
    {"memory_rows", "memory_columns", MEMORY_NAMES, MEMORY_BEYOND, MEMORY_COLUMNS, take_memory}};

static bool parse_row(const char *path, const RowList *list, const OrrJson *node, int index,
                      LedgerResiduals *residuals, GError **error)
{
    Cell cells[COLUMNS];
    const char *column = NULL;
    int count = 0;
    if (orr_json_type(node) != ORR_JSON_LIST)
        return bad_row(path, list->key, index, "is not a list", error);
    if (orr_json_count(node) != list->count)
        return bad_row(path, list->key, index, "does not have as many cells as there are columns", error);
    for (const OrrJson *cell = orr_json_first(node); cell != NULL && column == NULL;
         cell = orr_json_next(cell), count++) {
        const bool text = count < list->texts;
        if (orr_json_type(cell) != (text ? ORR_JSON_TEXT : ORR_JSON_NUMBER))
            column = list->columns[count];
        else if (text)
            cells[count].text = orr_json_text(cell);
        else
            cells[count].number = orr_json_number(cell);
    }
    if (column == NULL && list->take(cells, residuals, &column))
        return true;
    g_autofree char *what = g_strdup_printf("%s is not what it should be", column);
    return bad_row(path, list->key, index, what, error);
}

static bool columns_match(const OrrJson *columns, const RowList *list)
{
    int i = 0;
    if (columns == NULL || orr_json_type(columns) != ORR_JSON_LIST)
        return false;
    for (const OrrJson *node = orr_json_first(columns); node != NULL; node = orr_json_next(node), i++) {
        if (i >= list->count || orr_json_type(node) != ORR_JSON_TEXT ||
            strcmp(orr_json_text(node), list->columns[i]) != 0)
            return false;
    }
    return i == list->count;
}

static bool parse_list(const char *path, const OrrJson *root, const RowList *list, LedgerResiduals *residuals,
                       GError **error)
{
    const bool object = orr_json_type(root) == ORR_JSON_OBJECT;
    const OrrJson *rows = object ? orr_json_member(root, list->key) : NULL;
    int index = 0;
    if (!object || !columns_match(orr_json_member(root, list->columns_key), list) || rows == NULL ||
        orr_json_type(rows) != ORR_JSON_LIST)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: is not a file of residuals of this version; write it again with orrery validate --residuals",
            path);
    for (const OrrJson *node = orr_json_first(rows); node != NULL; node = orr_json_next(node), index++) {
        if (!parse_row(path, list, node, index, residuals, error))
            return false;
    }
    return true;
}

static void find_judging(LedgerResiduals *residuals)
{
    g_autofree bool *times = g_new0(bool, residuals->sources->len);
    for (guint i = 0; i < residuals->rows->len; i++)
        times[ledger_residual(residuals, i)->source] = true;
    for (guint source = 0; source < residuals->sources->len; source++) {
        if (!times[source])
            g_hash_table_add(residuals->judging, GINT_TO_POINTER((int)source));
    }
}

static bool parse(const char *path, const OrrJson *root, LedgerResiduals *residuals, GError **error)
{
    return parse_list(path, root, &LISTS[0], residuals, error) &&
           (orr_json_member(root, LISTS[1].columns_key) == NULL || /* of a time before there were any */
            parse_list(path, root, &LISTS[1], residuals, error));
}

bool ledger_residuals_read(const char *path, LedgerResiduals **ret_residuals, GError **error)
{
    OrrJsonDoc *doc = orr_json_read_file(path, error);
    if (doc == NULL)
        return false;
    LedgerResiduals *residuals = ledger_residuals_new();
    const bool ok = parse(path, orr_json_root(doc), residuals, error);
    orr_json_free(doc);
    if (ok) {
        find_judging(residuals);
        *ret_residuals = residuals;
    } else {
        ledger_residuals_free(residuals);
    }
    return ok;
}

/* The shipped ones as they were read last: a list for all threads, which nobody changes. */
static GMutex kept_lock;
static LedgerResiduals *kept;
static char *kept_path;
static OrrFileStamp kept_stamp;

static LedgerResiduals *hold_kept(const char *path, const OrrFileStamp *stamp)
{
    LedgerResiduals *held = NULL;
    g_mutex_lock(&kept_lock);
    if (kept != NULL && strcmp(kept_path, path) == 0 && orr_file_stamp_same(&kept_stamp, stamp)) {
        held = kept;
        g_atomic_int_inc(&held->holders);
    }
    g_mutex_unlock(&kept_lock);
    return held;
}

static void keep(LedgerResiduals *residuals, const char *path, const OrrFileStamp *stamp)
{
    if (!orr_file_stamp_settled(stamp))
        return;
    g_atomic_int_inc(&residuals->holders);
    g_mutex_lock(&kept_lock);
    ledger_residuals_free(kept);
    g_free(kept_path);
    kept = residuals;
    kept_path = g_strdup(path);
    kept_stamp = *stamp;
    g_mutex_unlock(&kept_lock);
}

bool ledger_residuals_shipped(LedgerResiduals **ret_residuals, GError **error)
{
    g_autofree char *folder = orr_scenarios_dir(NULL);
    g_autofree char *path = folder != NULL ? g_build_filename(folder, "residuals.json", NULL) : NULL;
    *ret_residuals = NULL;
    if (path == NULL || !g_file_test(path, G_FILE_TEST_EXISTS))
        return true;
    const OrrFileStamp stamp = orr_file_stamp(path);
    *ret_residuals = hold_kept(path, &stamp);
    if (*ret_residuals != NULL)
        return true;
    if (!ledger_residuals_read(path, ret_residuals, error))
        return false;
    keep(*ret_residuals, path, &stamp);
    return true;
}
