/* costmodel/nccl_regions.c - tuner plug-ins of NCCL that know regions of size and ranks instead of estimates.
 *
 * A region is a polygon in the plane of (bytes, ranks); the first that holds the point names algorithm and protocol,
 * and where none does NCCL chooses itself. Corners are the plug-in's own, of AWS's for EFA as of the p5 family.
 * [AwsOfiNccl]
 */
#include "costmodel/nccl.h"

#include <glib.h>

#define FAR   1048576.0      /* ranks beyond which the plug-in leaves it to NCCL */
#define LARGE 107374182400.0 /* bytes, likewise: 100 GiB */

typedef struct Corner {
    double bytes, ranks;
} Corner;

typedef struct Region {
    CostNcclAlgorithm algorithm;
    CostNcclProtocol protocol;
    int corner_count;
    Corner corners[20];
} Region;

/* All-reduce with eight ranks a node. Lines of one size a rank, 48 MiB, divide NVLS-tree from ring for good. */
static const Region efa_p5[] = {
    {COST_NCCL_TREE,
     COST_NCCL_LL128,
     12,
     {{0, 16},
      {31457280, 16},
      {37748736, 32},
      {117440512, 64},
      {301989888, 128},
      {301989888, 256},
      {335544320, 512},
      {536870912, 1024},
      {402653184, 2048},
      {402653184, 4096},
      {402653184, FAR},
      {0, FAR}}},
    {COST_NCCL_NVLS_TREE, COST_NCCL_SIMPLE, 3, {{31457281, 16}, {LARGE, 16}, {31457281, 16}}},
    {COST_NCCL_RING,
     COST_NCCL_LL128,
     11,
     {{31457280, 17},
      {1073741824, 17},
      {2147483648, 64},
      {2147483648, 128},
      {1342177280, 160},
      {2147483648, 256},
      {1074790400, 256},
      {444596224, 160},
      {301989888, 128},
      {117440512, 64},
      {37748736, 32}}},
    {COST_NCCL_NVLS_TREE,
     COST_NCCL_SIMPLE,
     17,
     {{2147483648, 128},
      {6442450944, 128},
      {8053063680, 160},
      {9663676416, 192},
      {FAR * 50331648, FAR},
      {402653184, FAR},
      {402653184, 4096},
      {402653184, 2048},
      {536870912, 1024},
      {335544320, 512},
      {301989888, 256},
      {310378496, 160},
      {444596224, 160},
      {1074790400, 256},
      {2684354560, 256},
      {2147483648, 224},
      {1342177280, 160}}},
    {COST_NCCL_RING,
     COST_NCCL_SIMPLE,
     7,
     {{1073741824, 17},
      {FAR * 50331648, 17},
      {FAR * 50331648, FAR},
      {9663676416, 192},
      {8053063680, 160},
      {2684354560, 64},
      {1610612736, 32}}},
};

static bool on_edge(Corner p, Corner a, Corner b)
{
    const double cross =
        (b.bytes - a.bytes) * (p.ranks - a.ranks) - (b.ranks - a.ranks) * (p.bytes - a.bytes);
    return cross == 0 && p.bytes >= MIN(a.bytes, b.bytes) && p.bytes <= MAX(a.bytes, b.bytes) &&
           p.ranks >= MIN(a.ranks, b.ranks) && p.ranks <= MAX(a.ranks, b.ranks);
}

/* Edges belong to their region; inside, a ray crosses an odd number of them. */
static bool holds(const Region *region, Corner p)
{
    bool inside = false;
    for (int i = 0; i < region->corner_count; i++) {
        const Corner a = region->corners[i], b = region->corners[(i + 1) % region->corner_count];
        if (on_edge(p, a, b))
            return true;
        if ((a.ranks > p.ranks) != (b.ranks > p.ranks) &&
            p.bytes < a.bytes + (p.ranks - a.ranks) / (b.ranks - a.ranks) * (b.bytes - a.bytes))
            inside = !inside;
    }
    return inside;
}

bool cost_nccl_region(const CostNcclQuery *query, CostNcclAlgorithm *ret_algorithm,
                      CostNcclProtocol *ret_protocol)
{
    if (query->tuner != SPEC_TUNER_AWS_P5 || query->op != COST_ALL_REDUCE || query->nodes < 2 ||
        query->ranks != 8 * query->nodes)
        return false;
    const Corner point = {query->bytes, query->ranks};
    for (gsize i = 0; i < G_N_ELEMENTS(efa_p5); i++) {
        if (!holds(&efa_p5[i], point))
            continue;
        *ret_algorithm = efa_p5[i].algorithm;
        *ret_protocol = efa_p5[i].protocol;
        return true;
    }
    return false;
}
