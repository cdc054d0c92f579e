/* calibrate/fit/profile.h - an accelerator, its fitted blocks and the conditions under which each source measured.
 *
 * A source times more or less than the kernel alone. What it adds is named here, fitted beside the model and
 * kept in the block's "fits", so that the parameters describe the kernel and `check` compares like with like:
 *   pass_s, pass_memory_frac   a pass timed together with the kernel: quantising the activations of an fp8 or
 *                              fp4 GEMM, appending to the key-value cache, starting the kernel
 *   speed_frac                 the serving engine's kernels against the training library's, where both were measured
 *   tile_scale                 the same of their prologue and epilogue of a block of queries
 *   split_k false              its kernels do not split the inner dimension
 *   k_s                        and take at least this for each element of it
 *   call_s                     what the host takes for one call: a loop timed by its clock is never faster
 *   power_scale                demand of short bursts against that of the training loop, where both were measured
 *   throttle_scale             the same of the time after which the power limit acts
 * The preset says where a block without rows comes from: "derived_from" in the model, a dtype or a kernel,
 * "backward_from" in a kernel, "layouts_from" in a dtype; each names another accelerator.
 */
#ifndef ORR_CALIBRATE_PROFILE_H
#define ORR_CALIBRATE_PROFILE_H

#include "calibrate/fit/table.h"

#define CAL_ANY_BLOCK (-1)

typedef struct CalCondition {
    char source[SPEC_NAME_SIZE];
    CalKind kind;
    int block; /* SpecDtype of a GEMM, SpecAttention of a kernel, CAL_ANY_BLOCK: of the source */
    double pass_s, pass_memory_frac;
    double speed_frac, tile_scale;
    bool split_k;
    double k_s;
    double call_s;
    double power_scale, throttle_scale;
    int rows;
    double median_frac, p90_frac, bias_frac; /* of predicted / measured - 1 */
} CalCondition;

#define CAL_MAX_CONDITIONS 48

typedef struct CalProfile {
    char name[SPEC_NAME_SIZE];
    char path[1024];
    SpecAccelerator accelerator;
    CalCondition conditions[CAL_MAX_CONDITIONS];
    int condition_count;
    bool fitted;     /* fitted or derived in this run */
    GString *untold; /* the fit names there what its rows do not tell (CAL_TOLD_FRAC); NULL: nobody asks */
    OrrJsonDoc *doc;
} CalProfile;

/* Every accelerator of `folder`, sorted by name (CalProfile*, owned by the array). */
bool cal_profiles_read(const char *folder, GPtrArray **ret_profiles, GError **error);
CalProfile *cal_profile_find(GPtrArray *profiles, const char *name); /* NULL: none */
/* The same, with an error that says what was meant. */
CalProfile *cal_profile_named(GPtrArray *profiles, const char *name, GError **error);

/* Text at "a.b.c" of the preset, or NULL; a profile without `doc` has none. */
const char *cal_profile_text(const CalProfile *profile, const char *path);

/* Tells rows what their GPU is, once both are read. */
void cal_rows_of(GArray *rows, GPtrArray *profiles);
/* The block that a row is fitted into: the dtype of a product (16-bit types share one, where the GPU has bf16), an
 * attention kernel, CAL_ANY_BLOCK of bytes. */
int cal_row_block(const CalRow *row);

CalCondition *cal_condition_find(CalProfile *profile, const char *source, CalKind kind, int block);
/* Adds it with nothing to add where it is not there yet. */
CalCondition *cal_condition_get(CalProfile *profile, const char *source, CalKind kind, int block);

/* Seconds that the source of `row` would have measured, by the profile's model. */
double cal_predict_s(CalProfile *profile, const CalRow *row);

/* The blocks that rows were fitted to, as members of the open object: gemm, attention, memory_bound, each with its fit
 * and provenance. */
void cal_profile_write_fitted(const CalProfile *profile, OrrJsonWriter *writer);
/* All three, fitted or not. */
void cal_profile_write_all(const CalProfile *profile, OrrJsonWriter *writer);
/* One of them ("gemm"), as JSON text for two levels deep in a preset. */
void cal_profile_write_member(const CalProfile *profile, const char *member, GString *out);

#endif
