/* calibrate/fit/check.c - the error of the presets' kernel models on a table of measurements. */
#include "calibrate/fit/check.h"

#include <string.h>

#include "base/file.h"
#include "calibrate/fit/fit_kernels.h"
#include "calibrate/fit/neighbours.h"

static const char *const kinds[CAL_KIND_COUNT] = {"gemm", "attention", "memory_bound"};

static const char *block_word(const CalRow *row)
{
    const int block = cal_row_block(row);
    return row->kind == CAL_GEMM        ? spec_word(&spec_words_dtype, block)
           : row->kind == CAL_ATTENTION ? spec_word(&spec_words_attention, block)
                                        : "";
}

typedef void (*RowVisit)(CalProfile *profile, const GArray *rows, guint index, void *context);

/* Every row whose accelerator has a preset, in the order of the table. */
static bool visit(const char *path, const char *accelerator, GString *log, RowVisit each, void *context,
                  GError **error)
{
    g_autofree char *scenarios = orr_scenarios_dir(error);
    if (scenarios == NULL)
        return false;
    g_autofree char *folder = g_build_filename(scenarios, "accelerators", NULL);
    g_autoptr(GArray) rows = NULL;
    g_autoptr(GPtrArray) profiles = NULL;
    if (!cal_table_read_as(path, accelerator, &rows, log, error) ||
        !cal_profiles_read(folder, &profiles, error))
        return false;
    cal_rows_of(rows, profiles);
    g_autoptr(GHashTable) unknown = g_hash_table_new(g_str_hash, g_str_equal);
    int seen = 0;
    for (guint i = 0; i < rows->len; i++) {
        const CalRow *row = &g_array_index(rows, CalRow, i);
        if (accelerator != NULL && strcmp(row->accelerator, accelerator) != 0)
            continue;
        CalProfile *profile = cal_profile_find(profiles, row->accelerator);
        if (profile == NULL) {
            if (log != NULL && g_hash_table_add(unknown, (gpointer)row->accelerator))
                g_string_append_printf(log, "skipped the rows of %s: no such preset\n", row->accelerator);
            continue;
        }
        each(profile, rows, i, context);
        seen++;
    }
    if (seen > 0)
        return true;
    g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT,
                "%s: no row of %s; `orrery list accelerators` names the presets", path,
                accelerator != NULL ? accelerator : "any accelerator with a preset");
    return false;
}

typedef struct Groups {
    GArray *groups;    /* CalCheckGroup */
    GPtrArray *errors; /* GArray* of double, beside `groups` */
    GPtrArray *near;   /* the same, interpolated between neighbours */
} Groups;

static void add_error(CalProfile *profile, const GArray *rows, guint index, void *context)
{
    const CalRow *row = &g_array_index(rows, CalRow, index);
    Groups *groups = context;
    const char *block = block_word(row);
    guint i = 0;
    for (; i < groups->groups->len; i++) {
        const CalCheckGroup *group = &g_array_index(groups->groups, CalCheckGroup, i);
        if (group->kind == kinds[row->kind] && strcmp(group->accelerator, row->accelerator) == 0 &&
            strcmp(group->source, row->source) == 0 && strcmp(group->block, block) == 0)
            break;
    }
    if (i == groups->groups->len) {
        CalCheckGroup group = {.kind = kinds[row->kind], .block = block};
        g_strlcpy(group.accelerator, row->accelerator, sizeof group.accelerator);
        g_strlcpy(group.source, row->source, sizeof group.source);
        g_array_append_val(groups->groups, group);
        g_ptr_array_add(groups->errors, g_array_new(FALSE, FALSE, sizeof(double)));
        g_ptr_array_add(groups->near, g_array_new(FALSE, FALSE, sizeof(double)));
    }
    double error_frac = cal_row_error(profile, row);
    g_array_append_val((GArray *)g_ptr_array_index(groups->errors, i), error_frac);
    const double near_s = cal_neighbours_s(rows, index), near_frac = near_s / row->measured_s - 1;
    if (near_s > 0)
        g_array_append_val((GArray *)g_ptr_array_index(groups->near, i), near_frac);
}

bool cal_check_table(const char *path, const char *accelerator, GArray **ret_groups, GString *log,
                     GError **error)
{
    Groups groups = {g_array_new(FALSE, TRUE, sizeof(CalCheckGroup)),
                     g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref),
                     g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref)};
    const bool ok = visit(path, accelerator, log, add_error, &groups, error);
    for (guint i = 0; ok && i < groups.groups->len; i++) {
        CalCheckGroup *group = &g_array_index(groups.groups, CalCheckGroup, i);
        GArray *errors = g_ptr_array_index(groups.errors, i);
        group->rows = (int)errors->len;
        cal_error_summary((double *)(void *)errors->data, group->rows, &group->median_frac, &group->p90_frac,
                          &group->bias_frac);
        GArray *near = g_ptr_array_index(groups.near, i);
        double bias;
        if (near->len > 0)
            cal_error_summary((double *)(void *)near->data, (int)near->len, &group->near_median_frac,
                              &group->near_p90_frac, &bias);
    }
    g_ptr_array_unref(groups.errors);
    g_ptr_array_unref(groups.near);
    if (ok)
        *ret_groups = groups.groups;
    else
        g_array_unref(groups.groups);
    return ok;
}

static void write_sizes(char *sizes, gulong room, const CalRow *row)
{
    if (row->kind == CAL_GEMM)
        g_snprintf(sizes, room, "m=%.0f n=%.0f k=%.0f groups=%.0f layout=%d accumulate=%d", row->gemm.m,
                   row->gemm.n, row->gemm.k, row->gemm.groups, (int)row->gemm.layout,
                   row->gemm.accumulate_fp32);
    else if (row->kind == CAL_ATTENTION)
        g_snprintf(sizes, room,
                   "batch=%.0f tokens=%.0f heads=%.0f kv_heads=%.0f dims=%.0f/%.0f causal=%d backward=%d",
                   row->attention.batch, row->attention.q_tokens, row->attention.heads,
                   row->attention.kv_heads, row->attention.qk_head_dim, row->attention.v_head_dim,
                   row->attention.causal, row->attention.backward);
}

static void add_row(CalProfile *profile, const GArray *rows, guint index, void *context)
{
    const CalRow *row = &g_array_index(rows, CalRow, index);
    CalCheckRow checked = {.kind = kinds[row->kind],
                           .block = block_word(row),
                           .measured_s = row->measured_s,
                           .error_frac = cal_row_error(profile, row)};
    g_strlcpy(checked.accelerator, row->accelerator, sizeof checked.accelerator);
    g_strlcpy(checked.source, row->source, sizeof checked.source);
    write_sizes(checked.sizes, sizeof checked.sizes, row);
    g_array_append_val((GArray *)context, checked);
}

bool cal_check_rows(const char *path, const char *accelerator, GArray *rows, GString *log, GError **error)
{
    return visit(path, accelerator, log, add_row, rows, error);
}
