/* calibrate/fit/profile.c - profiles in, conditions, predictions. Writing is in profile_write.c. */
#include "calibrate/fit/profile.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "costmodel/memory_bound.h"
#include "spec/load.h"

static const OrrJson *member_at(const OrrJson *object, const char *path)
{
    g_auto(GStrv) keys = g_strsplit(path, ".", -1);
    for (char **key = keys; *key != NULL && object != NULL; key++)
        object = orr_json_type(object) == ORR_JSON_OBJECT ? orr_json_member(object, *key) : NULL;
    return object;
}

const char *cal_profile_text(const CalProfile *profile, const char *path)
{
    const OrrJson *node = profile->doc != NULL ? member_at(orr_json_root(profile->doc), path) : NULL;
    return node != NULL && orr_json_type(node) == ORR_JSON_TEXT ? orr_json_text(node) : NULL;
}

void cal_rows_of(GArray *rows, GPtrArray *profiles)
{
    for (guint i = 0; i < rows->len; i++) {
        CalRow *row = &g_array_index(rows, CalRow, i);
        const CalProfile *profile = cal_profile_find(profiles, row->accelerator);
        row->before_bf16 = profile != NULL && profile->accelerator.peak_flops_per_s[SPEC_BF16] <= 0;
    }
}

int cal_row_block(const CalRow *row)
{
    if (row->kind == CAL_GEMM)
        return row->gemm.dtype == SPEC_FP16 && !row->before_bf16 ? SPEC_BF16 : (int)row->gemm.dtype;
    return row->kind == CAL_ATTENTION ? (int)row->attention.kernel : CAL_ANY_BLOCK;
}

CalCondition *cal_condition_find(CalProfile *profile, const char *source, CalKind kind, int block)
{
    for (int i = 0; i < profile->condition_count; i++) {
        CalCondition *condition = &profile->conditions[i];
        if (condition->kind == kind && condition->block == block && strcmp(condition->source, source) == 0)
            return condition;
    }
    return NULL;
}

CalCondition *cal_condition_get(CalProfile *profile, const char *source, CalKind kind, int block)
{
    CalCondition *condition = cal_condition_find(profile, source, kind, block);
    if (condition != NULL)
        return condition;
    g_assert(profile->condition_count < CAL_MAX_CONDITIONS);
    condition = &profile->conditions[profile->condition_count++];
    *condition = (CalCondition){.kind = kind,
                                .block = block,
                                .speed_frac = 1,
                                .tile_scale = 1,
                                .split_k = true,
                                .power_scale = 1,
                                .throttle_scale = 1};
    g_strlcpy(condition->source, source, sizeof condition->source);
    return condition;
}

static void read_fits(CalProfile *profile, const char *path, CalKind kind, int block)
{
    const OrrJson *list = member_at(orr_json_root(profile->doc), path);
    if (list == NULL || orr_json_type(list) != ORR_JSON_LIST)
        return;
    for (const OrrJson *node = orr_json_first(list); node != NULL; node = orr_json_next(node)) {
        const OrrJson *source =
            orr_json_type(node) == ORR_JSON_OBJECT ? orr_json_member(node, "source") : NULL;
        if (source == NULL || orr_json_type(source) != ORR_JSON_TEXT ||
            profile->condition_count == CAL_MAX_CONDITIONS)
            continue;
        CalCondition *condition = cal_condition_get(profile, orr_json_text(source), kind, block);
        condition->pass_s = orr_json_number_of(node, "pass_s", 0);
        condition->pass_memory_frac = orr_json_number_of(node, "pass_memory_frac", 0);
        condition->speed_frac = orr_json_number_of(node, "speed_frac", 1);
        condition->tile_scale = orr_json_number_of(node, "tile_scale", 1);
        const OrrJson *split = orr_json_member(node, "split_k");
        condition->split_k = split == NULL || orr_json_type(split) != ORR_JSON_BOOL || orr_json_bool(split);
        condition->k_s = orr_json_number_of(node, "k_s", 0);
        condition->call_s = orr_json_number_of(node, "call_s", 0);
        condition->power_scale = orr_json_number_of(node, "power_scale", 1);
        condition->throttle_scale = orr_json_number_of(node, "throttle_scale", 1);
    }
}

static void read_conditions(CalProfile *profile)
{
    read_fits(profile, "model.gemm.shared.fits", CAL_GEMM, CAL_ANY_BLOCK);
    read_fits(profile, "model.memory_bound.fits", CAL_STREAM, CAL_ANY_BLOCK);
    for (int i = 0; i < SPEC_DTYPE_COUNT; i++) {
        g_autofree char *path = g_strdup_printf("model.gemm.%s.fits", spec_word(&spec_words_dtype, i));
        read_fits(profile, path, CAL_GEMM, i);
    }
    for (int i = 0; i < SPEC_ATTENTION_COUNT; i++) {
        g_autofree char *path =
            g_strdup_printf("model.attention.%s.fits", spec_word(&spec_words_attention, i));
        read_fits(profile, path, CAL_ATTENTION, i);
    }
}

static void profile_free(gpointer data)
{
    CalProfile *profile = data;
    orr_json_free(profile->doc);
    g_free(profile);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool cal_profiles_read(const char *folder, GPtrArray **ret_profiles, GError **error)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    if (dir == NULL) {
        g_set_error(error, ORR_ERROR, ORR_ERROR_IO, "%s: cannot open the folder of accelerators", folder);
        return false;
    }
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (const char *file = g_dir_read_name(dir); file != NULL; file = g_dir_read_name(dir))
        if (g_str_has_suffix(file, ".json") && file[0] != '.')
            g_ptr_array_add(names, g_strndup(file, strlen(file) - strlen(".json")));
    if (names->len > 0)
        qsort(names->pdata, names->len, sizeof(void *), by_text);
    g_autoptr(GPtrArray) profiles = g_ptr_array_new_with_free_func(profile_free);
    for (guint i = 0; i < names->len; i++) {
        CalProfile *profile = g_new0(CalProfile, 1);
        g_ptr_array_add(profiles, profile);
        g_strlcpy(profile->name, g_ptr_array_index(names, i), sizeof profile->name);
        g_snprintf(profile->path, sizeof profile->path, "%s/%s.json", folder, profile->name);
        profile->doc = orr_json_read_file(profile->path, error);
        if (profile->doc == NULL || !spec_load_accelerator(profile->path, &profile->accelerator, error))
            return false;
        read_conditions(profile);
    }
    *ret_profiles = g_steal_pointer(&profiles);
    return true;
}

CalProfile *cal_profile_find(GPtrArray *profiles, const char *name)
{
    for (guint i = 0; i < profiles->len; i++) {
        CalProfile *profile = g_ptr_array_index(profiles, i);
        if (strcmp(profile->name, name) == 0)
            return profile;
    }
    return NULL;
}

CalProfile *cal_profile_named(GPtrArray *profiles, const char *name, GError **error)
{
    CalProfile *profile = cal_profile_find(profiles, name);
    if (profile != NULL)
        return profile;
    g_autofree const char **names = g_new(const char *, profiles->len);
    for (guint i = 0; i < profiles->len; i++)
        names[i] = ((const CalProfile *)g_ptr_array_index(profiles, i))->name;
    const char *near = orr_nearest(name, names, (int)profiles->len);
    orr_fail(error, ORR_ERROR_INPUT, "\"%s\" is not an accelerator%s%s%s", name,
             near != NULL ? "; did you mean \"" : "; `orrery list accelerators` names them",
             near != NULL ? near : "", near != NULL ? "\"?" : "");
    return NULL;
}

/* Bytes of the pass: activations read in 16 bits and written quantised; keys and values read and written. */
static double pass_bytes(const CalRow *row)
{
    if (row->kind == CAL_GEMM)
        return row->gemm.groups * row->gemm.m * row->gemm.k * (2 + spec_dtype_bytes(row->gemm.dtype));
    const CostAttention *attention = &row->attention;
    return 2 * spec_dtype_bytes(attention->dtype) * attention->batch * attention->kv_tokens *
           attention->kv_heads * (attention->qk_head_dim + attention->v_head_dim);
}

static double pass_s(const SpecAccelerator *accelerator, const CalCondition *condition, const CalRow *row)
{
    if (condition == NULL)
        return 0;
    double t_s = condition->pass_s;
    if (condition->pass_memory_frac > 0)
        t_s += pass_bytes(row) / (accelerator->memory_bytes_per_s * condition->pass_memory_frac);
    return t_s;
}

/* The kernel in the state of its source: power and the time after which the limit acts (that of its dtype's products). */
static double attention_s(SpecAccelerator *accelerator, const CalCondition *condition, const CalRow *row)
{
    SpecKernelModel *model = &accelerator->model;
    if (condition == NULL)
        return cost_attention_s(accelerator, &row->attention);
    const SpecKernelModel training = *model;
    SpecAttentionModel *attention = &model->attention[row->attention.kernel];
    attention->power_frac *= condition->power_scale;
    attention->tile_s *= condition->tile_scale;
    attention->backward_tile_s *= condition->tile_scale;
    for (int i = 0; i < SPEC_DTYPE_COUNT; i++)
        model->gemm[i].throttle_s *= condition->throttle_scale;
    const double t_s = cost_attention_s(accelerator, &row->attention);
    *model = training;
    return t_s;
}

double cal_predict_s(CalProfile *profile, const CalRow *row)
{
    SpecAccelerator *accelerator = &profile->accelerator;
    if (row->kind == CAL_STREAM)
        return cost_memory_bound_s(accelerator, COST_MEMORY_ELEMENTWISE, CAL_STREAM_BYTES);
    const int block = cal_row_block(row);
    const CalCondition *condition = cal_condition_find(profile, row->source, row->kind, block);
    const double speed = condition != NULL ? condition->speed_frac : 1;
    if (row->kind == CAL_ATTENTION)
        return pass_s(accelerator, condition, row) + attention_s(accelerator, condition, row) / speed;
    SpecKernelModel *model = &accelerator->model;
    const SpecGemmModel training = model->gemm[block];
    const double split_s = model->gemm_shared.split_s;
    if (condition != NULL) {
        model->gemm[block].power_frac *= condition->power_scale;
        model->gemm[block].throttle_s *= condition->throttle_scale;
        if (!condition->split_k)
            model->gemm_shared.split_s = G_MAXDOUBLE;
    }
    double t_s = cost_gemm_s(accelerator, &row->gemm) / speed;
    if (condition != NULL)
        t_s = fmax(t_s, fmax(row->gemm.k * condition->k_s, condition->call_s));
    model->gemm[block] = training;
    model->gemm_shared.split_s = split_s;
    return pass_s(accelerator, condition, row) + t_s;
}
