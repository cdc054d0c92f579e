/* calibrate/fit/fit.c - which accelerator is fitted to what, in which order, and where it is written. */
#include "calibrate/fit/fit.h"

#include <string.h>

#include "base/file.h"
#include "calibrate/fit/derive.h"
#include "calibrate/fit/fit_kernels.h"
#include "calibrate/fit/splice.h"

typedef struct Work {
    GArray *rows;        /* CalRow */
    GPtrArray *profiles; /* CalProfile* */
} Work;

static void work_clear(Work *work)
{
    g_clear_pointer(&work->rows, g_array_unref);
    g_clear_pointer(&work->profiles, g_ptr_array_unref);
}

static bool work_read(Work *work, const char *path, const char *folder, GString *log, GError **error)
{
    *work = (Work){0};
    if (cal_table_read(path, &work->rows, log, error) && cal_profiles_read(folder, &work->profiles, error)) {
        cal_rows_of(work->rows, work->profiles);
        return true;
    }
    work_clear(work);
    return false;
}

/* Rows of one accelerator that a fit uses; with `folds` above 1 those outside of (or inside) fold `fold`. */
static GPtrArray *rows_of(const Work *work, const char *accelerator, int folds, int fold, bool inside)
{
    GPtrArray *rows = g_ptr_array_new();
    int index = 0;
    for (guint i = 0; i < work->rows->len; i++) {
        CalRow *row = &g_array_index(work->rows, CalRow, i);
        if (strcmp(row->accelerator, accelerator) != 0 || !cal_row_fitted(row))
            continue;
        /* A full cycle with a step that shares no factor with the grids that tables are swept on. */
        bool in_fold = folds > 1 && (index * 7919 / 13) % folds == fold;
        index++;
        if (folds <= 1 || in_fold == inside)
            g_ptr_array_add(rows, row);
    }
    return rows;
}

static void log_profile(const CalProfile *profile, const char *donor, GString *log)
{
    for (int i = 0; i < profile->condition_count; i++) {
        const CalCondition *condition = &profile->conditions[i];
        const char *block = condition->kind == CAL_GEMM && condition->block >= 0
                                ? spec_word(&spec_words_dtype, condition->block)
                            : condition->kind == CAL_ATTENTION
                                ? spec_word(&spec_words_attention, condition->block)
                                : "memory";
        if (condition->rows > 0)
            g_string_append_printf(
                log, "%-20s %-10s %-12s %4d rows  median %5.1f %%  p90 %5.1f %%  bias %+5.1f %%\n",
                profile->name, block, condition->source, condition->rows, 100 * condition->median_frac,
                100 * condition->p90_frac, 100 * condition->bias_frac);
    }
    if (donor != NULL)
        g_string_append_printf(log, "%-20s carried over from %s\n", profile->name, donor);
}

/* Fits a profile after its donor. A chain of donors that comes back to its start is an error. */
static bool fit_one(Work *work, CalProfile *profile, int depth, GString *log, GError **error)
{
    if (profile->fitted)
        return true;
    const char *name = cal_profile_text(profile, "model.derived_from");
    CalProfile *donor = name != NULL ? cal_profile_find(work->profiles, name) : NULL;
    if (name != NULL && (donor == NULL || depth > 8)) {
        g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT,
                    "%s: model.derived_from: \"%s\" is %s; name another accelerator of the folder",
                    profile->path, name, donor == NULL ? "no accelerator" : "derived from this one");
        return false;
    }
    if (donor != NULL && !fit_one(work, donor, depth + 1, log, error))
        return false;
    g_autoptr(GPtrArray) rows = rows_of(work, profile->name, 1, 0, false);
    cal_fit_profile(profile, rows, donor);
    for (guint i = 0; i < work->rows->len; i++) {
        const CalRow *row = &g_array_index(work->rows, CalRow, i);
        if (strcmp(row->accelerator, profile->name) == 0 && !cal_row_fitted(row))
            cal_fit_best_of_many(profile, row);
    }
    if (log != NULL)
        log_profile(profile, name, log);
    return true;
}

static bool has_rows(const Work *work, const CalProfile *profile)
{
    g_autoptr(GPtrArray) rows = rows_of(work, profile->name, 1, 0, false);
    return rows->len > 0;
}

/* First the measured ones, then what they lend each other, then those that have nothing but a donor. */
static bool fit_all(Work *work, GString *log, GError **error)
{
    for (int measured = 1; measured >= 0; measured--) {
        for (guint i = 0; i < work->profiles->len; i++) {
            CalProfile *profile = g_ptr_array_index(work->profiles, i);
            if (has_rows(work, profile) == (measured == 1) && !fit_one(work, profile, 0, log, error))
                return false;
        }
        for (guint i = 0; i < work->profiles->len; i++) {
            CalProfile *profile = g_ptr_array_index(work->profiles, i);
            if (has_rows(work, profile) == (measured == 1) &&
                !cal_derive_blocks(profile, work->profiles, error))
                return false;
        }
    }
    return true;
}

static char *presets_folder(GError **error)
{
    g_autofree char *scenarios = orr_scenarios_dir(error);
    return scenarios != NULL ? g_build_filename(scenarios, "accelerators", NULL) : NULL;
}

static CalProfile *find(const Work *work, const char *accelerator, GError **error)
{
    return cal_profile_named(work->profiles, accelerator, error);
}

/* The preset's text with three members of its "model" replaced. */
static bool write_preset(const CalProfile *profile, GError **error)
{
    static const char *const members[] = {"gemm", "attention", "memory_bound"};
    g_autofree char *text = NULL;
    if (!g_file_get_contents(profile->path, &text, NULL, error))
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(members); i++) {
        g_autoptr(GString) block = g_string_new(NULL);
        cal_profile_write_member(profile, members[i], block);
        char *spliced = cal_splice(text, "model", members[i], block->str);
        g_free(text);
        text = spliced;
    }
    return orr_file_write(profile->path, text, strlen(text), error);
}

bool cal_fit_presets(const char *path, const char *folder, const char *only, GString *log, GError **error)
{
    Work work;
    if (!work_read(&work, path, folder, log, error))
        return false;
    bool ok = (only == NULL || find(&work, only, error) != NULL) && fit_all(&work, log, error);
    for (guint i = 0; ok && i < work.profiles->len; i++) {
        const CalProfile *profile = g_ptr_array_index(work.profiles, i);
        if (only == NULL || strcmp(profile->name, only) == 0)
            ok = write_preset(profile, error);
    }
    work_clear(&work);
    return ok;
}

bool cal_cross_validate(const char *path, const char *accelerator, int folds, GString *out, GError **error)
{
    g_assert(folds > 1);
    g_autofree char *folder = presets_folder(error);
    Work work;
    if (folder == NULL || !work_read(&work, path, folder, NULL, error))
        return false;
    CalProfile *profile = find(&work, accelerator, error);
    const char *name = profile != NULL ? cal_profile_text(profile, "model.derived_from") : NULL;
    CalProfile *donor = name != NULL ? cal_profile_find(work.profiles, name) : NULL;
    bool ok = profile != NULL && (donor == NULL || fit_one(&work, donor, 0, NULL, error));
    g_autoptr(GHashTable) groups =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_array_unref);
    for (int fold = 0; ok && fold < folds; fold++) {
        g_autoptr(GPtrArray) seen = rows_of(&work, accelerator, folds, fold, false);
        g_autoptr(GPtrArray) unseen = rows_of(&work, accelerator, folds, fold, true);
        cal_fit_profile(profile, seen, donor);
        for (guint i = 0; i < unseen->len; i++) {
            const CalRow *row = g_ptr_array_index(unseen, i);
            const int block = cal_row_block(row);
            char *key = g_strdup_printf("%s %s", row->source,
                                        row->kind == CAL_GEMM        ? spec_word(&spec_words_dtype, block)
                                        : row->kind == CAL_ATTENTION ? spec_word(&spec_words_attention, block)
                                                                     : "memory");
            GArray *errors = g_hash_table_lookup(groups, key);
            if (errors == NULL)
                g_hash_table_insert(groups, g_strdup(key),
                                    errors = g_array_new(FALSE, FALSE, sizeof(double)));
            double error_frac = cal_row_error(profile, row);
            g_array_append_val(errors, error_frac);
            g_free(key);
        }
    }
    GList *keys = g_list_sort(g_hash_table_get_keys(groups), (GCompareFunc)(void (*)(void))strcmp);
    for (GList *item = keys; item != NULL; item = item->next) {
        GArray *errors = g_hash_table_lookup(groups, item->data);
        double median, p90, bias;
        cal_error_summary((double *)(void *)errors->data, (int)errors->len, &median, &p90, &bias);
        g_string_append_printf(
            out, "%-20s %-24s %4u unseen rows  median %5.1f %%  p90 %5.1f %%  bias %+5.1f %%\n", accelerator,
            (const char *)item->data, errors->len, 100 * median, 100 * p90, 100 * bias);
    }
    g_list_free(keys);
    work_clear(&work);
    return ok;
}
