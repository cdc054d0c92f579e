/* calibrate/fit/check_collectives.c - prints the error of the collective model on measured rows. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "calibrate/fit/collective_rows.h"
#include "calibrate/fit/collectives.h"
#include "spec/load.h"

static const char *const op_names[COST_COLLECTIVE_COUNT] = {
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce", "send-receive"};

static double mean(const GArray *values)
{
    double sum = 0;
    for (guint i = 0; i < values->len; i++)
        sum += g_array_index(values, double, i);
    return values->len ? sum / values->len : 0;
}

static void table_row(OrrTable *table, const char *gpu, const char *what, const GArray *errors)
{
    char cells[4][16];
    const double *values = (const double *)(const void *)errors->data;
    int n = (int)errors->len;
    g_snprintf(cells[0], sizeof cells[0], "%d", n);
    g_snprintf(cells[1], sizeof cells[1], "%.1f", 100 * cal_abs_quantile(values, n, 0.5));
    g_snprintf(cells[2], sizeof cells[2], "%.1f", 100 * cal_abs_quantile(values, n, 0.9));
    g_snprintf(cells[3], sizeof cells[3], "%+.1f", 100 * mean(errors));
    if (n > 0)
        orr_table_row(table, (const char *[]){gpu, what, cells[0], cells[1], cells[2], cells[3]});
}

/* Which rows a line of the table is about. */
typedef enum { LINE_ALL, LINE_OP, LINE_SOURCE, LINE_ACROSS, LINE_LAUNCH, LINE_COARSE } Line;

static bool belongs(const CalCollectiveRow *row, Line line, CostCollectiveOp op, const char *source)
{
    if (row->coarse)
        return line == LINE_COARSE;
    if (line == LINE_LAUNCH)
        return row->launch_bound && !row->across;
    if (line == LINE_ACROSS)
        return row->across && !row->launch_bound && (!source || strcmp(source, row->source) == 0);
    if (row->launch_bound || row->across || line == LINE_COARSE)
        return false;
    return line == LINE_ALL || (line == LINE_OP && row->collective.op == op) ||
           (line == LINE_SOURCE && strcmp(source, row->source) == 0);
}

static GArray *collect(const GArray *rows, const SpecCluster *cluster, Line line, CostCollectiveOp op,
                       const char *source)
{
    GArray *errors = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < rows->len; i++) {
        const CalCollectiveRow *row = &g_array_index(rows, CalCollectiveRow, i);
        if (!belongs(row, line, op, source))
            continue;
        double error = cal_collective_error(cluster, row);
        g_array_append_val(errors, error);
    }
    return errors;
}

static void add_line(OrrTable *table, const GArray *rows, const SpecCluster *cluster, const char *what,
                     Line line, CostCollectiveOp op, const char *source)
{
    GArray *errors = collect(rows, cluster, line, op, source);
    table_row(table, cluster->accelerator.name, what, errors);
    g_array_unref(errors);
}

/* True when an earlier row has the same source and side. */
static bool repeated(const GArray *rows, guint i)
{
    const CalCollectiveRow *row = &g_array_index(rows, CalCollectiveRow, i);
    for (guint j = 0; j < i; j++) {
        const CalCollectiveRow *earlier = &g_array_index(rows, CalCollectiveRow, j);
        if (earlier->across == row->across && strcmp(earlier->source, row->source) == 0)
            return true;
    }
    return false;
}

static void add_lines(OrrTable *table, const GArray *rows, const SpecCluster *cluster)
{
    for (int op = 0; op < COST_COLLECTIVE_COUNT; op++)
        add_line(table, rows, cluster, op_names[op], LINE_OP, (CostCollectiveOp)op, NULL);
    for (guint i = 0; i < rows->len; i++) {
        const CalCollectiveRow *row = &g_array_index(rows, CalCollectiveRow, i);
        char what[CAL_SOURCE_SIZE + 32];
        g_snprintf(what, sizeof what, "%s%s", row->source, row->across ? ", across nodes" : "");
        if (!repeated(rows, i))
            add_line(table, rows, cluster, what, row->across ? LINE_ACROSS : LINE_SOURCE, COST_ALL_REDUCE,
                     row->source);
    }
    add_line(table, rows, cluster, "inside: all", LINE_ALL, COST_ALL_REDUCE, NULL);
    add_line(table, rows, cluster, "launch-bound (not counted)", LINE_LAUNCH, COST_ALL_REDUCE, NULL);
    add_line(table, rows, cluster, "rounded too far (not counted)", LINE_COARSE, COST_ALL_REDUCE, NULL);
}

typedef struct Totals {
    GArray *inside, *across;
    int skipped;
} Totals;

static bool check_one(const OrrJson *measured, const SpecCluster *cluster, OrrTable *table, Totals *totals,
                      GError **error)
{
    GArray *rows = NULL;
    if (!cal_collective_rows(measured, cluster, &rows, error))
        return false;
    add_lines(table, rows, cluster);
    GArray *inside = collect(rows, cluster, LINE_ALL, COST_ALL_REDUCE, NULL);
    GArray *across = collect(rows, cluster, LINE_ACROSS, COST_ALL_REDUCE, NULL);
    g_array_append_vals(totals->inside, inside->data, inside->len);
    g_array_append_vals(totals->across, across->data, across->len);
    totals->skipped += (int)(rows->len - inside->len - across->len);
    g_array_unref(inside);
    g_array_unref(across);
    g_array_unref(rows);
    return true;
}

static void errors_of(const Totals *totals, CalCollectiveErrors *ret_errors)
{
    const double *inside = (const double *)(const void *)totals->inside->data;
    const int n = (int)totals->inside->len;
    *ret_errors = (CalCollectiveErrors){n, totals->skipped, cal_abs_quantile(inside, n, 0.5),
                                        cal_abs_quantile(inside, n, 0.9), mean(totals->inside)};
}

static const char *const headers[] = {"accelerator", "rows of", "rows", "median %", "P90 %", "bias %"};

/* Clusters to compare with: one given, or the reference node of each preset that the table names. */
static bool check(const OrrJson *measured, const SpecCluster *clusters, int count, GString *log,
                  CalCollectiveErrors *ret_errors, GError **error)
{
    OrrTable *table = orr_table_new(headers, (int)G_N_ELEMENTS(headers));
    Totals totals = {g_array_new(FALSE, FALSE, sizeof(double)), g_array_new(FALSE, FALSE, sizeof(double)), 0};
    bool ok = true;
    for (int i = 0; i < count && ok; i++)
        ok = check_one(measured, &clusters[i], table, &totals, error);
    if (ok) {
        orr_table_print(table, log, 0);
        if (ret_errors)
            errors_of(&totals, ret_errors);
    }
    g_array_unref(totals.inside);
    g_array_unref(totals.across);
    orr_table_free(table);
    return ok;
}

bool cal_check_collectives_on(const OrrJson *table, const SpecCluster *cluster, GString *log,
                              CalCollectiveErrors *ret_errors, GError **error)
{
    return check(table, cluster, 1, log, ret_errors, error);
}

/* Presets of the GPUs named in `table`, in order of appearance; names without a preset are passed over. */
static GArray *clusters_in(const OrrJson *table)
{
    GArray *clusters = g_array_new(FALSE, TRUE, sizeof(SpecCluster));
    GHashTable *seen = g_hash_table_new(g_str_hash, g_str_equal);
    if (orr_json_type(table) == ORR_JSON_OBJECT && orr_json_member(table, "collective_measurements"))
        table = orr_json_member(table, "collective_measurements");
    else if (orr_json_type(table) == ORR_JSON_OBJECT && orr_json_member(table, "collectives"))
        table = orr_json_member(table, "collectives");
    for (const OrrJson *row = orr_json_first(table); row; row = orr_json_next(row)) {
        const OrrJson *gpu = orr_json_type(row) == ORR_JSON_OBJECT ? orr_json_member(row, "gpu") : NULL;
        const char *name = gpu && orr_json_type(gpu) == ORR_JSON_TEXT ? orr_json_text(gpu) : NULL;
        SpecAccelerator accelerator;
        if (!name || !g_hash_table_add(seen, (gpointer)name) ||
            !spec_load_accelerator(name, &accelerator, NULL))
            continue;
        SpecCluster cluster;
        cal_reference_cluster(&accelerator, &cluster);
        g_array_append_val(clusters, cluster);
    }
    g_hash_table_unref(seen);
    return clusters;
}

bool cal_check_collectives(const OrrJson *table, const char *accelerator, GString *log,
                           CalCollectiveErrors *ret_errors, GError **error)
{
    SpecAccelerator gpu;
    SpecCluster cluster;
    if (accelerator) {
        if (!spec_load_accelerator(accelerator, &gpu, error))
            return false;
        cal_reference_cluster(&gpu, &cluster);
        return check(table, &cluster, 1, log, ret_errors, error);
    }
    GArray *clusters = clusters_in(table);
    bool ok = check(table, (const SpecCluster *)(const void *)clusters->data, (int)clusters->len, log,
                    ret_errors, error);
    g_array_unref(clusters);
    return ok;
}
