/* spec/placement.c - see placement.h. The order is that of Megatron-Core's rank generator: expert layers follow the same
 * string with expert_tensor for tp and nothing for cp. [MegatronCore] */
#include "spec/placement.h"

#include <string.h>

#include "base/error.h"

enum { DIM_TENSOR, DIM_CONTEXT, DIM_EXPERT, DIM_DATA, DIM_PIPELINE, DIM_COUNT };

#define DEFAULT_ORDER "tp-cp-ep-dp-pp"

static const char *const dimension_names[DIM_COUNT] = {"tp", "cp", "ep", "dp", "pp"};

/* Index of the dimension that the text begins with; -1: none. */
static int dimension_of(const char *text)
{
    for (int d = 0; d < DIM_COUNT; d++)
        if (strncmp(text, dimension_names[d], 2) == 0 && (text[2] == '-' || text[2] == '\0'))
            return d;
    return -1;
}

/* Sizes to dimensions, innermost first. No order: the default. */
static void lay_out(const char *order, const int *sizes, SpecDimension *dimensions)
{
    int64_t stride = 1;
    for (int d = 0; d < DIM_COUNT; d++)
        dimensions[d] = (SpecDimension){.size = 1, .stride = 1};
    if (order[0] == '\0')
        order = DEFAULT_ORDER;
    for (const char *text = order; *text != '\0'; text += text[2] == '-' ? 3 : 2) {
        const int d = dimension_of(text);
        g_assert(d >= 0);
        dimensions[d] = (SpecDimension){.size = sizes[d], .stride = stride};
        stride *= sizes[d];
    }
}

void spec_placement(const Spec *spec, SpecPlacement *ret_placement)
{
    const SpecParallel *parallel = &spec->parallel;
    const int slices = MAX(parallel->expert_tensor, 1), expert = MAX(parallel->expert, 1);
    const int64_t ranks = (int64_t)parallel->tensor * parallel->context * parallel->data;
    const int replicas = (int)MAX(ranks / ((int64_t)slices * expert), 1);
    const int dense[DIM_COUNT] = {parallel->tensor, parallel->context, 1, parallel->data, parallel->pipeline};
    const int experts[DIM_COUNT] = {slices, 1, expert, replicas, parallel->pipeline};
    SpecDimension d[DIM_COUNT], e[DIM_COUNT];
    lay_out(parallel->order, dense, d);
    lay_out(parallel->order, experts, e);
    *ret_placement = (SpecPlacement){.tensor = d[DIM_TENSOR],
                                     .context = d[DIM_CONTEXT],
                                     .data = d[DIM_DATA],
                                     .pipeline = d[DIM_PIPELINE],
                                     .expert_tensor = e[DIM_TENSOR],
                                     .expert = e[DIM_EXPERT],
                                     .expert_data = e[DIM_DATA],
                                     .expert_pipeline = e[DIM_PIPELINE]};
}

int spec_domain_gpus(const Spec *spec)
{
    const SpecCluster *cluster = &spec->cluster;
    const int node = cluster->gpus_per_node, gpus = spec_gpus(spec);
    const int domain = cluster->scale_up_domain_gpus > 0 ? cluster->scale_up_domain_gpus : node;
    if (domain <= node || gpus % domain == 0)
        return domain;
    for (int used = domain / node * node; 2 * used >= domain; used -= node)
        if (gpus % used == 0)
            return used;
    return domain;
}

bool spec_order_is_auto(const Spec *spec)
{
    return strcmp(spec->parallel.order, "auto") == 0;
}

bool spec_check_order_names(const char *key, const char *order, bool needs_ep, GError **error)
{
    const unsigned needed = 1u << DIM_TENSOR | 1u << DIM_CONTEXT | 1u << DIM_DATA | 1u << DIM_PIPELINE;
    unsigned seen = 0;
    bool ok = true;
    g_auto(GStrv) parts = g_strsplit(order, "-", -1);
    for (int i = 0; parts[i] != NULL; i++) {
        const int d = dimension_of(parts[i]);
        ok = ok && d >= 0 && strlen(parts[i]) == 2 && (seen & 1u << d) == 0;
        seen |= ok ? 1u << d : 0;
    }
    if (!ok || (seen & needed) != needed)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s%s\"%s\" is not an order of the dimensions; give tp, cp, ep, dp and pp once each, such "
            "as \"tp-cp-ep-dp-pp\"",
            key != NULL ? key : "", key != NULL ? ": " : "", order);
    if ((seen & 1u << DIM_EXPERT) == 0 && needs_ep)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s%s\"%s\" has no ep, but there are expert ranks; say where they lie, such as "
                        "\"tp-cp-ep-dp-pp\"",
                        key != NULL ? key : "", key != NULL ? ": " : "", order);
    return true;
}

bool spec_check_order(const Spec *spec, GError **error)
{
    const SpecParallel *parallel = &spec->parallel;
    SpecPlacement placement;
    if (spec_order_is_auto(spec))
        return true;
    if (!spec_check_order_names("parallel.order", parallel->order, parallel->expert > 1, error))
        return false;
    const bool known = parallel->tensor > 0 && parallel->context > 0 && parallel->data > 0 &&
                       parallel->pipeline > 0 && parallel->expert > 0 && parallel->expert_tensor > 0;
    if (!known || spec->model.moe.experts == 0 || parallel->pipeline == 1)
        return true;
    spec_placement(spec, &placement);
    if (placement.pipeline.stride == placement.expert_pipeline.stride)
        return true;
    orr_fail(error, ORR_ERROR_INPUT,
             "parallel.order: \"%s\" puts the pipeline ranks of dense layers %" G_GINT64_FORMAT
             " apart and those of experts %" G_GINT64_FORMAT
             "; give an order that ends with pp, or expert x expert_tensor equal to tensor x context",
             parallel->order, (gint64)placement.pipeline.stride, (gint64)placement.expert_pipeline.stride);
    return false;
}
