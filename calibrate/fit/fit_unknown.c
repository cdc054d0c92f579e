/* calibrate/fit/fit_unknown.c - what a sweep's stamp and best rows say of a GPU without a preset. */
#include "calibrate/fit/fit_unknown.h"

#include <string.h>

#define LINK_BYTES_PER_S 70e9 /* a faster bus is no PCIe of five generations */

static double number_of(const OrrJson *object, const char *key)
{
    const OrrJson *node = orr_json_type(object) == ORR_JSON_OBJECT ? orr_json_member(object, key) : NULL;
    return node != NULL && orr_json_type(node) == ORR_JSON_NUMBER ? orr_json_number(node) : 0;
}

/* Best rates of products and streams. */
static void best_rates(const GArray *rows, const char *name, SpecAccelerator *accelerator)
{
    for (guint i = 0; i < rows->len; i++) {
        const CalRow *row = &g_array_index(rows, CalRow, i);
        if (strcmp(row->accelerator, name) != 0)
            continue;
        if (row->kind == CAL_STREAM)
            accelerator->memory_bytes_per_s = MAX(accelerator->memory_bytes_per_s, row->bytes_per_s);
        if (row->kind != CAL_GEMM)
            continue;
        double *peak = &accelerator->peak_flops_per_s[row->gemm.dtype];
        *peak = MAX(*peak, 2 * row->gemm.m * row->gemm.n * row->gemm.k * row->gemm.groups / row->measured_s);
    }
}

/* The fastest bus rate between its GPUs; one GPU: none. */
static void best_links(const OrrJson *table, SpecAccelerator *accelerator)
{
    const OrrJson *list = orr_json_member(table, "collective_measurements");
    double best = 0;
    for (const OrrJson *row = list != NULL ? orr_json_first(list) : NULL; row != NULL;
         row = orr_json_next(row))
        if (number_of(row, "gpus") >= 2 && number_of(row, "nodes") <= 1)
            best = MAX(best, 1e9 * number_of(row, "busbw_gbps"));
    if (best > LINK_BYTES_PER_S)
        accelerator->scale_up_bytes_per_s = best;
    else
        accelerator->host_link_bytes_per_s = best;
}

CalProfile *cal_unknown_profile(const OrrJson *table, const GArray *rows, const char *name, GError **error)
{
    const OrrJson *stamp = orr_json_member(table, "stamp"),
                  *device = stamp != NULL ? orr_json_member(stamp, "device") : NULL;
    if (device == NULL || orr_json_type(device) != ORR_JSON_TEXT ||
        strcmp(orr_json_text(device), name) != 0) {
        orr_fail(error, ORR_ERROR_INPUT,
                 "\"%s\" is not an accelerator; `orrery list accelerators` names them", name);
        return NULL;
    }
    CalProfile *profile = g_new0(CalProfile, 1);
    SpecAccelerator *accelerator = &profile->accelerator;
    g_strlcpy(profile->name, name, sizeof profile->name);
    g_strlcpy(accelerator->name, name, sizeof accelerator->name);
    accelerator->memory_bytes = number_of(stamp, "memory_bytes");
    accelerator->sm_count = (int)CLAMP(number_of(stamp, "sm_count"), 1, 1e7);
    accelerator->l2_bytes = number_of(stamp, "l2_bytes");
    accelerator->generation = *spec_generation_of_capability(number_of(stamp, "compute_capability"));
    accelerator->reference_gpus_per_node = accelerator->reference_scale_up_domain_gpus =
        (int)CLAMP(number_of(stamp, "gpus") / MAX(number_of(stamp, "nodes"), 1), 1, 65536);
    best_rates(rows, name, accelerator);
    best_links(table, accelerator);
    if (accelerator->memory_bytes_per_s > 0 && accelerator->peak_flops_per_s[SPEC_BF16] > 0 &&
        accelerator->memory_bytes > 0)
        return profile;
    g_free(profile);
    orr_fail(error, ORR_ERROR_INPUT,
             "\"%s\" has no preset, and the sweep lacks the bf16 products or the large copies that would "
             "stand for its "
             "data sheet; measure all of --quick",
             name);
    return NULL;
}

static void write_positive(OrrJsonWriter *w, const char *key, double value)
{
    char text[32];
    g_ascii_formatd(text, sizeof text, "%.5g", value);
    if (value > 0)
        orr_jw_number(w, key, g_ascii_strtod(text, NULL));
}

void cal_unknown_write(const CalProfile *profile, const char *source, OrrJsonWriter *w)
{
    static const struct {
        const char *key;
        SpecDtype dtype;
    } peaks[] = {{"fp32", SPEC_FP32},
                 {"tf32", SPEC_TF32},
                 {"fp16", SPEC_FP16},
                 {"bf16", SPEC_BF16},
                 {"fp8", SPEC_FP8}};
    const SpecAccelerator *a = &profile->accelerator;
    orr_jw_int(w, "schema", 1);
    orr_jw_text(w, "name", profile->name);
    orr_jw_text(w, "source", source);
    orr_jw_number(w, "memory_bytes", a->memory_bytes);
    write_positive(w, "memory_bytes_per_s", a->memory_bytes_per_s);
    orr_jw_begin(w, "peak_flops_per_s", '{');
    for (size_t i = 0; i < G_N_ELEMENTS(peaks); i++)
        write_positive(w, peaks[i].key, a->peak_flops_per_s[peaks[i].dtype]);
    orr_jw_end(w, '}');
    orr_jw_int(w, "sm_count", a->sm_count);
    write_positive(w, "l2_bytes", a->l2_bytes);
    orr_jw_text(w, "generation", a->generation.name);
    write_positive(w, "scale_up_bytes_per_s", a->scale_up_bytes_per_s);
    write_positive(w, "host_link_bytes_per_s", a->host_link_bytes_per_s);
    orr_jw_begin(w, "reference_node", '{');
    orr_jw_int(w, "gpus_per_node", a->reference_gpus_per_node);
    orr_jw_int(w, "scale_up_domain_gpus", a->reference_scale_up_domain_gpus);
    orr_jw_end(w, '}');
}
