/* calibrate/fit/check_moves.c - the error of the presets' memory-bound model on the rows of a table. */
#include <string.h>

#include "calibrate/fit/check.h"
#include "calibrate/fit/fit_kernels.h"
#include "calibrate/fit/fit_moves.h"
#include "spec/load.h"

typedef struct Moves {
    GArray *groups;      /* CalCheckGroup, the new ones alone */
    GPtrArray *errors;   /* GArray* of double, beside them */
    GHashTable *presets; /* name -> SpecAccelerator*; NULL: none */
    GArray *rows;        /* CalCheckRow, instead of groups; NULL: groups */
} Moves;

static const SpecAccelerator *preset_of(Moves *moves, const char *name)
{
    if (!g_hash_table_contains(moves->presets, name)) {
        SpecAccelerator *preset = g_new0(SpecAccelerator, 1);
        if (strchr(name, '/') != NULL || !spec_load_accelerator(name, preset, NULL))
            g_clear_pointer(&preset, g_free);
        g_hash_table_insert(moves->presets, g_strdup(name), preset);
    }
    return g_hash_table_lookup(moves->presets, name);
}

static GArray *errors_of(Moves *moves, const char *gpu, const char *source, const char *kernel)
{
    for (guint i = 0; i < moves->groups->len; i++) {
        const CalCheckGroup *group = &g_array_index(moves->groups, CalCheckGroup, i);
        if (strcmp(group->accelerator, gpu) == 0 && strcmp(group->source, source) == 0 &&
            strcmp(group->block, kernel) == 0)
            return g_ptr_array_index(moves->errors, i);
    }
    CalCheckGroup group = {.kind = "memory_bound", .block = g_intern_string(kernel)};
    g_strlcpy(group.accelerator, gpu, sizeof group.accelerator);
    g_strlcpy(group.source, source, sizeof group.source);
    g_array_append_val(moves->groups, group);
    g_ptr_array_add(moves->errors, g_array_new(FALSE, FALSE, sizeof(double)));
    return g_ptr_array_index(moves->errors, moves->errors->len - 1);
}

static void add_row(Moves *moves, const OrrJson *node, const char *accelerator)
{
    CalMove row;
    char gpu[SPEC_NAME_SIZE], source[SPEC_NAME_SIZE], kernel[64];
    if (!cal_move_read(node, &row))
        return;
    g_strlcpy(gpu, orr_json_text_of(node, "gpu", ""), sizeof gpu);
    g_strlcpy(source, orr_json_text_of(node, "source", ""), sizeof source);
    g_strlcpy(kernel, orr_json_text_of(node, "kernel", ""), sizeof kernel);
    const SpecAccelerator *preset = preset_of(moves, gpu);
    if (preset == NULL || (accelerator != NULL && strcmp(gpu, accelerator) != 0))
        return;
    const double error = cal_move_s(preset, &row) / row.measured_s - 1;
    if (moves->rows == NULL) {
        g_array_append_val(errors_of(moves, gpu, source, kernel), error);
        return;
    }
    CalCheckRow checked = {.kind = "memory_bound",
                           .block = g_intern_string(kernel),
                           .measured_s = row.measured_s,
                           .error_frac = error};
    g_strlcpy(checked.accelerator, gpu, sizeof checked.accelerator);
    g_strlcpy(checked.source, source, sizeof checked.source);
    g_snprintf(checked.sizes, sizeof checked.sizes, "rows=%.0f cols=%.0f bytes=%.0f", row.rows, row.cols,
               row.bytes);
    g_array_append_val(moves->rows, checked);
}

static void add_rows(Moves *moves, const OrrJson *root, const char *accelerator)
{
    const OrrJson *list = orr_json_member(root, "memory_bound_measurements");
    for (const OrrJson *node = list != NULL && orr_json_type(list) == ORR_JSON_LIST ? orr_json_first(list)
                                                                                    : NULL;
         node != NULL; node = orr_json_next(node))
        add_row(moves, node, accelerator);
}

void cal_check_move_rows(const OrrJson *root, const char *accelerator, GArray *rows)
{
    Moves moves = {.presets = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free), .rows = rows};
    add_rows(&moves, root, accelerator);
    g_hash_table_unref(moves.presets);
}

/* Errors of the first group of a GPU. */
static const GArray *first_of(const Moves *moves, const char *gpu)
{
    guint i = 0;
    while (strcmp(g_array_index(moves->groups, CalCheckGroup, i).accelerator, gpu) != 0)
        i++;
    return g_ptr_array_index(moves->errors, i);
}

/* The rows of a group count among all of their GPU's too. */
static void add_all(Moves *moves, guint index)
{
    const CalCheckGroup group = g_array_index(moves->groups, CalCheckGroup, index);
    const GArray *errors = g_ptr_array_index(moves->errors, index);
    g_array_append_vals(errors_of(moves, group.accelerator, "all", "all"), errors->data, errors->len);
}

void cal_check_moves(const OrrJson *root, const char *accelerator, GArray *groups)
{
    Moves moves = {g_array_new(FALSE, TRUE, sizeof(CalCheckGroup)),
                   g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref),
                   g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free), NULL};
    add_rows(&moves, root, accelerator);
    const guint own = moves.groups->len;
    for (guint i = 0; i < own; i++)
        add_all(&moves, i);
    for (guint i = 0; i < moves.groups->len; i++) {
        CalCheckGroup *group = &g_array_index(moves.groups, CalCheckGroup, i);
        GArray *errors = g_ptr_array_index(moves.errors, i);
        group->rows = (int)errors->len;
        cal_error_summary((double *)(void *)errors->data, group->rows, &group->median_frac, &group->p90_frac,
                          &group->bias_frac);
        if (i < own || group->rows > (int)first_of(&moves, group->accelerator)->len)
            g_array_append_val(groups, *group);
    }
    g_array_unref(moves.groups);
    g_ptr_array_unref(moves.errors);
    g_hash_table_unref(moves.presets);
}
