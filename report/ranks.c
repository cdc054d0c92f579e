/* report/ranks.c - see ranks.h. Tested: unit/plots/test_ranks.c */
#include "report/ranks.h"

static int index_of(const SpecDimension *dimension, int64_t gpu)
{
    return (int)(gpu / dimension->stride % dimension->size);
}

ReportRank report_rank(const SpecPlacement *placement, int gpu)
{
    return (ReportRank){.tensor = index_of(&placement->tensor, gpu),
                        .context = index_of(&placement->context, gpu),
                        .data = index_of(&placement->data, gpu),
                        .pipeline = index_of(&placement->pipeline, gpu),
                        .expert = index_of(&placement->expert, gpu),
                        .expert_data = index_of(&placement->expert_data, gpu)};
}
