/* calibrate/fit/profile_write.c - fitted blocks as JSON, in the order of their field tables. */
#include <math.h>
#include <string.h>

#include "calibrate/fit/profile.h"
#include "spec/fields.h"

/* Four digits say more than any of the fits knows. */
static double rounded(double value)
{
    if (value <= 0 || !isfinite(value))
        return value;
    double unit = pow(10, floor(log10(value)) - 3);
    char text[32];
    g_ascii_formatd(text, sizeof text, "%.4g", round(value / unit) * unit);
    return g_ascii_strtod(text, NULL);
}

static const SpecTable *table_at(const SpecTable *table, const char *key)
{
    for (int i = 0; i < table->count; i++)
        if (strcmp(table->fields[i].key, key) == 0)
            return table->fields[i].table;
    g_assert_not_reached();
}

static void write_fits(const CalProfile *profile, OrrJsonWriter *w, CalKind kind, int block)
{
    bool any = false;
    for (int i = 0; i < profile->condition_count; i++) {
        const CalCondition *condition = &profile->conditions[i];
        if (condition->kind != kind || condition->block != block)
            continue;
        if (!any)
            orr_jw_begin(w, "fits", '[');
        any = true;
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "source", condition->source);
        if (condition->rows > 0) {
            orr_jw_int(w, "rows", condition->rows);
            orr_jw_number(w, "median_frac", rounded(condition->median_frac));
            orr_jw_number(w, "p90_frac", rounded(condition->p90_frac));
            orr_jw_number(w, "bias_frac",
                          copysign(rounded(fabs(condition->bias_frac)), condition->bias_frac));
        }
        if (condition->pass_s > 0)
            orr_jw_number(w, "pass_s", rounded(condition->pass_s));
        if (condition->pass_memory_frac > 0)
            orr_jw_number(w, "pass_memory_frac", rounded(condition->pass_memory_frac));
        if (fabs(condition->speed_frac - 1) > 0)
            orr_jw_number(w, "speed_frac", rounded(condition->speed_frac));
        if (fabs(condition->tile_scale - 1) > 0)
            orr_jw_number(w, "tile_scale", rounded(condition->tile_scale));
        if (!condition->split_k)
            orr_jw_bool(w, "split_k", false);
        if (condition->k_s > 0)
            orr_jw_number(w, "k_s", rounded(condition->k_s));
        if (condition->call_s > 0)
            orr_jw_number(w, "call_s", rounded(condition->call_s));
        if (fabs(condition->power_scale - 1) > 0)
            orr_jw_number(w, "power_scale", rounded(condition->power_scale));
        if (fabs(condition->throttle_scale - 1) > 0)
            orr_jw_number(w, "throttle_scale", rounded(condition->throttle_scale));
        orr_jw_end(w, '}');
    }
    if (any)
        orr_jw_end(w, ']');
}

/* Provenance keys of the preset stay. */
static void write_notes(const CalProfile *profile, OrrJsonWriter *w, const char *path)
{
    static const char *const keys[] = {"source", "derived_from", "layouts_from", "backward_from"};
    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_autofree char *full = g_strdup_printf("%s.%s", path, keys[i]);
        const char *text = cal_profile_text(profile, full);
        if (text != NULL)
            orr_jw_text(w, keys[i], text);
    }
}

static void write_block(const CalProfile *profile, OrrJsonWriter *w, const SpecTable *table, const char *path,
                        const void *values, CalKind kind, int block)
{
    const char *key = strrchr(path, '.') + 1;
    orr_jw_begin(w, key, '{');
    write_notes(profile, w, path);
    for (int i = 0; i < table->count; i++) {
        const SpecField *field = &table->fields[i];
        if (field->type == SPEC_TYPE_DOUBLE)
            orr_jw_number(w, field->key, rounded(*(const double *)((const char *)values + field->offset)));
    }
    write_fits(profile, w, kind, block);
    orr_jw_end(w, '}');
}

static void write_gemm(const CalProfile *profile, OrrJsonWriter *w, const char *key)
{
    const SpecKernelModel *model = &profile->accelerator.model;
    const SpecTable *gemms = table_at(&spec_table_kernel_model, "gemm");
    orr_jw_begin(w, key, '{');
    write_block(profile, w, table_at(gemms, "shared"), "model.gemm.shared", &model->gemm_shared, CAL_GEMM,
                CAL_ANY_BLOCK);
    for (int i = 0; i < SPEC_DTYPE_COUNT; i++) {
        const char *word = spec_word(&spec_words_dtype, i);
        g_autofree char *path = g_strdup_printf("model.gemm.%s", word);
        if (model->gemm[i].peak_frac > 0)
            write_block(profile, w, table_at(gemms, word), path, &model->gemm[i], CAL_GEMM, i);
    }
    orr_jw_end(w, '}');
}

static void write_attention(const CalProfile *profile, OrrJsonWriter *w, const char *key)
{
    const SpecKernelModel *model = &profile->accelerator.model;
    const SpecTable *attentions = table_at(&spec_table_kernel_model, "attention");
    orr_jw_begin(w, key, '{');
    for (int i = 0; i < SPEC_ATTENTION_COUNT; i++) {
        const char *word = spec_word(&spec_words_attention, i);
        g_autofree char *path = g_strdup_printf("model.attention.%s", word);
        if (model->attention[i].peak_frac > 0)
            write_block(profile, w, table_at(attentions, word), path, &model->attention[i], CAL_ATTENTION, i);
    }
    orr_jw_end(w, '}');
}

static void write_memory_bound(const CalProfile *profile, OrrJsonWriter *w, const char *key)
{
    (void)key;
    write_block(profile, w, table_at(&spec_table_kernel_model, "memory_bound"), "model.memory_bound",
                &profile->accelerator.model.memory_bound, CAL_STREAM, CAL_ANY_BLOCK);
}

static const struct {
    const char *key;
    void (*write)(const CalProfile *, OrrJsonWriter *, const char *);
} members[] = {{"gemm", write_gemm}, {"attention", write_attention}, {"memory_bound", write_memory_bound}};

/* A copy that keeps of the unfitted blocks nothing: the writers leave out what has no peak. */
void cal_profile_write_fitted(const CalProfile *profile, OrrJsonWriter *w)
{
    g_autofree CalProfile *fitted = g_new(CalProfile, 1);
    *fitted = *profile;
    SpecKernelModel *model = &fitted->accelerator.model;
    bool gemm = false, attention = false;
    for (int i = 0; i < SPEC_DTYPE_COUNT; i++) {
        if (model->gemm[i].fit_rows <= 0)
            model->gemm[i].peak_frac = 0;
        gemm |= model->gemm[i].peak_frac > 0;
    }
    for (int i = 0; i < SPEC_ATTENTION_COUNT; i++) {
        if (model->attention[i].fit_rows <= 0)
            model->attention[i].peak_frac = 0;
        attention |= model->attention[i].peak_frac > 0;
    }
    if (gemm)
        write_gemm(fitted, w, "gemm");
    if (attention)
        write_attention(fitted, w, "attention");
    if (model->memory_bound.fit_rows > 0)
        write_memory_bound(fitted, w, "memory_bound");
}

void cal_profile_write_all(const CalProfile *profile, OrrJsonWriter *w)
{
    for (size_t i = 0; i < G_N_ELEMENTS(members); i++)
        members[i].write(profile, w, members[i].key);
}

/* The writer indents from the root: the whole is written and the member cut out of it. */
void cal_profile_write_member(const CalProfile *profile, const char *member, GString *out)
{
    g_autoptr(GString) text = g_string_new(NULL);
    OrrJsonWriter writer;
    orr_jw_init(&writer, text, false);
    orr_jw_begin(&writer, NULL, '{');
    orr_jw_begin(&writer, "model", '{');
    for (size_t i = 0; i < G_N_ELEMENTS(members); i++)
        if (strcmp(members[i].key, member) == 0)
            members[i].write(profile, &writer, member);
    orr_jw_end(&writer, '}');
    orr_jw_end(&writer, '}');
    const char *start = strstr(text->str, member) + strlen(member) + strlen("\": ");
    const char *end = strrchr(text->str, '}');
    end = g_strrstr_len(text->str, end - text->str, "}");
    while (end > start && g_ascii_isspace(end[-1]))
        end--;
    g_string_append_len(out, start, end - start);
}
