/* spec/resolve_scenario.c - a scenario with its presets in their places: model, cluster, framework, schedule, faults. */
#include "spec/orders.h"
#include "spec/resolve_faults.h"
#include "spec/resolve_internal.h"
#include "spec/resolve_lengths.h"
#include "spec/resolve_workload.h"

#define DEFAULT_FRAMEWORK "\"megatron-core\""

static bool resolve_framework(const Resolver *resolver, OrrJsonDoc *doc)
{
    const OrrJson *execution = orr_json_member(orr_json_root(doc), "execution");
    if (execution != NULL && orr_json_type(execution) == ORR_JSON_NULL)
        orr_json_remove(doc, "execution");
    else if (execution != NULL && orr_json_type(execution) != ORR_JSON_OBJECT)
        return true; /* the reader says what is wrong */
    execution = orr_json_member(orr_json_root(doc), "execution");
    const OrrJson *framework = execution != NULL ? orr_json_member(execution, "framework") : NULL;
    if (framework == NULL || orr_json_type(framework) == ORR_JSON_NULL) {
        const bool set = orr_json_set(doc, "execution.framework", DEFAULT_FRAMEWORK, NULL);
        g_assert(set);
        framework = orr_json_member(orr_json_member(orr_json_root(doc), "execution"), "framework");
    }
    const OrrJson *cluster = orr_json_member(orr_json_root(doc), "cluster");
    OrrJsonDoc *calibration = NULL;
    if (cluster != NULL && orr_json_type(cluster) == ORR_JSON_OBJECT &&
        !spec_resolver_calibration(resolver, cluster, &calibration))
        return false;
    OrrJsonDoc *object = spec_resolver_object(resolver, "frameworks", "execution.framework", framework,
                                              calibration != NULL ? orr_json_root(calibration) : NULL);
    orr_json_free(calibration);
    if (object == NULL)
        return false;
    orr_json_take(doc, "execution.framework", object);
    return true;
}

/* A schedule that is a path becomes what the file says. */
static bool resolve_orders(const Resolver *resolver, OrrJsonDoc *doc)
{
    const OrrJson *parallel = orr_json_member(orr_json_root(doc), "parallel");
    const bool object = parallel != NULL && orr_json_type(parallel) == ORR_JSON_OBJECT;
    const OrrJson *schedule = object ? orr_json_member(parallel, "schedule") : NULL;
    if (schedule == NULL || orr_json_type(schedule) != ORR_JSON_TEXT ||
        !spec_is_orders_path(orr_json_text(schedule)))
        return true;
    const char *name = orr_json_text(schedule);
    g_autofree char *path = g_path_is_absolute(name) || resolver->base_dir == NULL
                                ? g_strdup(name)
                                : g_build_filename(resolver->base_dir, name, NULL);
    if (!g_file_test(path, G_FILE_TEST_IS_REGULAR))
        return spec_resolver_fail(resolver, "parallel.schedule",
                                  "\"%.200s\" is not a file; give a schedule such as 1f1b, or the path of a "
                                  "file of op orders (.json "
                                  "or .csv), from the scenario's folder",
                                  name);
    OrrJsonDoc *orders = spec_orders_read_file(path, name, resolver->error);
    if (orders == NULL)
        return false;
    spec_resolver_add_profile(resolver, "schedules", name, orr_json_root(orders));
    orr_json_take(doc, "parallel.schedule", orders);
    return true;
}

/* Measured passes that are a path become what the file says. */
static bool resolve_measured(const Resolver *resolver, OrrJsonDoc *doc)
{
    const OrrJson *execution = orr_json_member(orr_json_root(doc), "execution");
    const bool object = execution != NULL && orr_json_type(execution) == ORR_JSON_OBJECT;
    const OrrJson *measured = object ? orr_json_member(execution, "measured_passes") : NULL;
    if (measured == NULL || orr_json_type(measured) != ORR_JSON_TEXT || orr_json_text(measured)[0] == '\0')
        return true;
    const char *name = orr_json_text(measured);
    g_autofree char *path = g_path_is_absolute(name) || resolver->base_dir == NULL
                                ? g_strdup(name)
                                : g_build_filename(resolver->base_dir, name, NULL);
    if (!g_file_test(path, G_FILE_TEST_IS_REGULAR))
        return spec_resolver_fail(
            resolver, "execution.measured_passes",
            "\"%.200s\" is not a file, from the scenario's folder; give the path of one, or an "
            "object with passes",
            name);
    OrrJsonDoc *passes = orr_json_read_file(path, resolver->error);
    if (passes == NULL)
        return false;
    spec_resolver_add_profile(resolver, "measured", name, orr_json_root(passes));
    orr_json_take(doc, "execution.measured_passes", passes);
    return true;
}

OrrJsonDoc *spec_resolve_scenario(const OrrJson *scenario, const char *where, const char *base_dir,
                                  GPtrArray *profiles, GPtrArray *notes, GError **error)
{
    const Resolver resolver = {
        .where = where, .base_dir = base_dir, .profiles = profiles, .notes = notes, .error = error};
    if (orr_json_type(scenario) != ORR_JSON_OBJECT) {
        g_autofree char *shown = orr_json_show(scenario);
        spec_resolver_fail(&resolver, "scenario",
                           "%s is %s; give an object with model, cluster, training, parallel, execution",
                           shown, orr_json_type_name(scenario));
        return NULL;
    }
    OrrJsonDoc *doc = orr_json_copy(scenario, where);
    const OrrJson *model = orr_json_member(orr_json_root(doc), "model");
    if (model != NULL && orr_json_type(model) != ORR_JSON_NULL) {
        OrrJsonDoc *object = spec_resolver_object(&resolver, "models", "model", model, NULL);
        if (object == NULL)
            goto failed;
        orr_json_take(doc, "model", object);
    }
    const OrrJson *cluster = orr_json_member(orr_json_root(doc), "cluster");
    if (cluster != NULL && orr_json_type(cluster) != ORR_JSON_NULL) {
        OrrJsonDoc *object = spec_resolver_cluster(&resolver, cluster);
        if (object == NULL)
            goto failed;
        orr_json_take(doc, "cluster", object);
    }
    if (!resolve_framework(&resolver, doc) || !resolve_orders(&resolver, doc) ||
        !resolve_measured(&resolver, doc) || !spec_resolve_lengths(&resolver, doc) ||
        !spec_resolve_faults(doc, where, base_dir, profiles, error))
        goto failed;
    spec_resolve_workload(doc);
    return doc;
failed:
    orr_json_free(doc);
    return NULL;
}
