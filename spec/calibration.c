/* spec/calibration.c - see calibration.h. */
#include "spec/calibration.h"

#include <string.h>

#include "spec/framework_keys.h"
#include "spec/read.h"
#include "spec/resolve.h"

static bool check_block(const char *path, const OrrJson *calibration, const char *key, const SpecTable *table,
                        void *scratch, GError **error)
{
    const OrrJson *block = orr_json_member(calibration, key);
    if (block == NULL)
        return true;
    SpecReadContext context;
    spec_read_context_init(&context, path, &spec_table_scenario, false, NULL);
    g_string_assign(context.path, key);
    const bool ok = spec_read_table(&context, table, block, scratch, error);
    spec_read_context_clear(&context);
    return ok;
}

static bool check_frameworks(const char *path, const OrrJson *calibration, GError **error)
{
    const OrrJson *blocks = orr_json_member(calibration, "frameworks");
    if (blocks != NULL && orr_json_type(blocks) != ORR_JSON_OBJECT)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: frameworks: is %s; give an object with an object for each framework's name",
                        path, orr_json_type_name(blocks));
    bool ok = true;
    for (const OrrJson *block = blocks != NULL ? orr_json_first(blocks) : NULL; ok && block != NULL;
         block = orr_json_next(block)) {
        g_autofree SpecFramework *framework = g_new0(SpecFramework, 1);
        SpecReadContext context;
        spec_read_context_init(&context, path, &spec_table_scenario, false, NULL);
        g_string_printf(context.path, "frameworks.%s", orr_json_key(block));
        context.partial = true;
        OrrJsonDoc *grouped = orr_json_copy(block, path);
        ok = (orr_json_type(block) != ORR_JSON_OBJECT ||
              spec_framework_todays_keys(grouped, path, context.path->str, NULL, error)) &&
             spec_read_table(&context, &spec_table_framework, orr_json_root(grouped), framework, error);
        orr_json_free(grouped);
        spec_read_context_clear(&context);
    }
    return ok;
}

/* A profile that says of which GPU it is goes with no other preset. */
static bool check_accelerator(const char *path, const OrrJson *calibration, const OrrJson *cluster,
                              GError **error)
{
    const OrrJson *of = orr_json_member(calibration, "accelerator");
    const OrrJson *asked = orr_json_member(cluster, "accelerator");
    if (asked != NULL && orr_json_type(asked) == ORR_JSON_OBJECT)
        asked = orr_json_member(asked, "preset");
    if (of == NULL || orr_json_type(of) != ORR_JSON_TEXT || asked == NULL ||
        orr_json_type(asked) != ORR_JSON_TEXT || spec_is_path(orr_json_text(asked)) ||
        strcmp(orr_json_text(of), orr_json_text(asked)) == 0)
        return true;
    return orr_fail(
        error, ORR_ERROR_INPUT,
        "%s: is fitted for %s, but the cluster has %s; give a profile of that, or take \"accelerator\" "
        "out of the file to carry it over",
        path, orr_json_text(of), orr_json_text(asked));
}

static bool check_spread(const char *path, const OrrJson *calibration, GError **error)
{
    const OrrJson *spread = orr_json_member(calibration, "speed_spread_frac");
    if (spread == NULL || (orr_json_type(spread) == ORR_JSON_NUMBER && orr_json_number(spread) >= 0 &&
                           orr_json_number(spread) <= 0.5))
        return true;
    g_autofree char *shown = orr_json_show(spread);
    return orr_fail(
        error, ORR_ERROR_INPUT,
        "%s: speed_spread_frac: %s; give the standard deviation of the chips' speed, from 0 to 0.5", path,
        shown);
}

bool spec_calibration_check(const OrrJson *calibration, const char *path, const OrrJson *cluster,
                            GError **error)
{
    g_autofree SpecKernelModel *model = g_new0(SpecKernelModel, 1);
    g_autofree SpecCollectiveModel *collectives = g_new0(SpecCollectiveModel, 1);
    g_autofree SpecHost *host = g_new0(SpecHost, 1);
    if (orr_json_member(calibration, "model") == NULL &&
        orr_json_member(calibration, "collectives") == NULL &&
        orr_json_member(calibration, "frameworks") == NULL && orr_json_member(calibration, "host") == NULL)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: holds no \"model\", \"collectives\", \"frameworks\" or \"host\"; a calibration "
                        "is what 'orrery "
                        "calibrate fit TABLE --output FILE' writes",
                        path);
    return check_accelerator(path, calibration, cluster, error) &&
           check_block(path, calibration, "model", &spec_table_kernel_model, model, error) &&
           check_block(path, calibration, "collectives", &spec_table_collective_model, collectives, error) &&
           check_block(path, calibration, "host", &spec_table_host, host, error) &&
           check_spread(path, calibration, error) && check_frameworks(path, calibration, error);
}
