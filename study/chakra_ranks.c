/* study/chakra_ranks.c - see chakra_ranks.h. */
#include "study/chakra_ranks.h"

enum { MOST_DIMENSIONS = 3 };

struct ChakraRanks {
    SpecPlacement at;
    int gpus;
    GHashTable *numbers; /* "kind first" -> number as text */
    GString *json;       /* groups so far, without brackets */
    int count;
};

ChakraRanks *chakra_ranks_new(const Spec *spec)
{
    ChakraRanks *ranks = g_new0(ChakraRanks, 1);
    spec_placement(spec, &ranks->at);
    ranks->gpus = spec_gpus(spec);
    ranks->numbers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    ranks->json = g_string_new(NULL);
    return ranks;
}

void chakra_ranks_free(ChakraRanks *ranks)
{
    g_hash_table_destroy(ranks->numbers);
    g_string_free(ranks->json, TRUE);
    g_free(ranks);
}

static int index_in(const SpecDimension *dimension, int64_t rank)
{
    return (int)(rank / dimension->stride % dimension->size);
}

/* Along which dimensions the members of a group differ; how many. */
static int dimensions_of(const ChakraRanks *ranks, ChakraGroup group,
                         SpecDimension ret_dimensions[MOST_DIMENSIONS])
{
    const SpecPlacement *at = &ranks->at;
    switch (group) {
    case CHAKRA_GROUP_TENSOR:
        ret_dimensions[0] = at->tensor;
        return 1;
    case CHAKRA_GROUP_CONTEXT:
        ret_dimensions[0] = at->context;
        return 1;
    case CHAKRA_GROUP_EXPERT:
        ret_dimensions[0] = at->expert;
        return 1;
    case CHAKRA_GROUP_EXPERT_TENSOR:
        ret_dimensions[0] = at->expert_tensor;
        return 1;
    case CHAKRA_GROUP_EXPERTS:
        ret_dimensions[0] = at->expert_tensor;
        ret_dimensions[1] = at->expert;
        return 2;
    case CHAKRA_GROUP_REPLICAS:
    case CHAKRA_GROUP_GATHERS:
        ret_dimensions[0] = at->context;
        ret_dimensions[1] = at->data;
        return 2;
    case CHAKRA_GROUP_EXPERT_REPLICAS:
    case CHAKRA_GROUP_EXPERT_GATHERS:
        ret_dimensions[0] = at->expert_data;
        return 1;
    case CHAKRA_GROUP_STAGE:
        ret_dimensions[0] = at->tensor;
        ret_dimensions[1] = at->context;
        ret_dimensions[2] = at->data;
        return 3;
    case CHAKRA_GROUP_ENDS:
        ret_dimensions[0] = (SpecDimension){.size = MIN(2, at->pipeline.size),
                                            .stride = (at->pipeline.size - 1) * at->pipeline.stride};
        return 1;
    default:
        return 0;
    }
}

int chakra_ranks_size(const ChakraRanks *ranks, ChakraGroup group)
{
    SpecDimension dimensions[MOST_DIMENSIONS];
    const int count = dimensions_of(ranks, group, dimensions);
    int size = group == CHAKRA_GROUP_ALL ? ranks->gpus : 1;
    for (int i = 0; i < count; i++)
        size *= dimensions[i].size;
    return size;
}

/* The member of the group with all indices 0. */
static int64_t first_of(const ChakraRanks *ranks, ChakraGroup group, int64_t rank)
{
    SpecDimension dimensions[MOST_DIMENSIONS];
    const int count = dimensions_of(ranks, group, dimensions);
    if (group == CHAKRA_GROUP_ENDS)
        return chakra_ranks_at_stage(ranks, rank, 0);
    int64_t first = rank;
    for (int i = 0; i < count; i++)
        first -= index_in(&dimensions[i], rank) * dimensions[i].stride;
    return first;
}

static void append_group(ChakraRanks *ranks, ChakraGroup group, int64_t first)
{
    SpecDimension dimensions[MOST_DIMENSIONS] = {{1, 0}, {1, 0}, {1, 0}};
    dimensions_of(ranks, group, dimensions);
    g_string_append_printf(ranks->json, "%s\n  \"%d\": [", ranks->count > 1 ? "," : "", ranks->count);
    for (int z = 0; z < dimensions[2].size; z++)
        for (int y = 0; y < dimensions[1].size; y++)
            for (int x = 0; x < dimensions[0].size; x++)
                g_string_append_printf(ranks->json, "%s%" G_GINT64_FORMAT, x + y + z > 0 ? ", " : "",
                                       first + x * dimensions[0].stride + y * dimensions[1].stride +
                                           z * dimensions[2].stride);
    g_string_append_c(ranks->json, ']');
}

const char *chakra_ranks_group(ChakraRanks *ranks, ChakraGroup group, int64_t rank)
{
    if (group == CHAKRA_GROUP_ALL)
        return "0";
    const int64_t first = first_of(ranks, group, rank);
    g_autofree char *key = g_strdup_printf("%d %" G_GINT64_FORMAT, (int)group, first);
    const char *known = g_hash_table_lookup(ranks->numbers, key);
    if (known != NULL)
        return known;
    char *number = g_strdup_printf("%d", ++ranks->count);
    append_group(ranks, group, first);
    g_hash_table_insert(ranks->numbers, g_steal_pointer(&key), number);
    return number;
}

int chakra_ranks_stage(const ChakraRanks *ranks, int64_t rank)
{
    return index_in(&ranks->at.pipeline, rank);
}

int64_t chakra_ranks_at_stage(const ChakraRanks *ranks, int64_t rank, int pipeline_rank)
{
    return rank + (pipeline_rank - chakra_ranks_stage(ranks, rank)) * ranks->at.pipeline.stride;
}

int64_t chakra_ranks_beside(const ChakraRanks *ranks, int64_t rank, int step)
{
    const SpecDimension *context = &ranks->at.context;
    const int own = index_in(context, rank);
    return rank + ((own + step + context->size) % context->size - own) * context->stride;
}

char *chakra_ranks_json(const ChakraRanks *ranks)
{
    return g_strdup_printf("{%s\n}\n", ranks->json->str);
}
