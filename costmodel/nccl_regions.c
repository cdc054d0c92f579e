/* costmodel/nccl_regions.c - tuner plug-ins of NCCL that know regions of size and ranks instead of estimates.
 *
 * A region is a polygon in the plane of (bytes, ranks); the first that holds the point names algorithm and protocol,
 * and where none does NCCL chooses itself. Corners are the plug-in's own, of AWS's for EFA, with eight ranks a node.
 * [AwsOfiNccl]
 */
#include "costmodel/nccl.h"

#include <glib.h>
#include <math.h>

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

/* p5en and p6 (B200): the plane of their logarithms, from three nodes on. Corners with a fraction are where a line runs
 * into the end of the plane. */
static const Region efa_p5en_all_reduce[] = {
    {COST_NCCL_TREE, COST_NCCL_LL, 5, {{0, 16}, {196608, 16}, {196608, 1024}, {196608, FAR}, {0, FAR}}},
    {COST_NCCL_TREE,
     COST_NCCL_LL128,
     7,
     {{196608, FAR},
      {196608, 1024},
      {196608, 16},
      {13107200, 16},
      {129499136, 127},
      {218103808, 1024},
      {1231635365, FAR}}},
    {COST_NCCL_RING,
     COST_NCCL_LL128,
     6,
     {{129499136, 127}, {13107200, 16}, {29884416, 16}, {293601280, 32}, {589299712, 64}, {549453824, 128}}},
    {COST_NCCL_NVLS_TREE,
     COST_NCCL_SIMPLE,
     12,
     {{1231635365, FAR},
      {218103808, 1024},
      {129499136, 127},
      {549453824, 128},
      {589299712, 64},
      {293601280, 32},
      {29884416, 16},
      {LARGE, 16},
      {509607936, 32},
      {7516192768, 256},
      {17179869184, 448},
      {LARGE, 1549.0}}},
    {COST_NCCL_RING,
     COST_NCCL_SIMPLE,
     5,
     {{LARGE, 1549.0}, {17179869184, 448}, {7516192768, 256}, {509607936, 32}, {LARGE, 16}}},
};

static const Region efa_p5en_all_gather[] = {
    {COST_NCCL_RING,
     COST_NCCL_LL,
     9,
     {{0, 16},
      {786432, 16},
      {4718592, 128},
      {13630464, 384},
      {19922944, 512},
      {28305408, 768},
      {33554432, 1024},
      {2022280472, FAR},
      {0, FAR}}},
    {COST_NCCL_RING,
     COST_NCCL_LL128,
     12,
     {{2022280472, FAR},
      {33554432, 1024},
      {28305408, 768},
      {19922944, 512},
      {13630464, 384},
      {4718592, 128},
      {786432, 16},
      {236978176, 16},
      {956301312, 64},
      {7247754240, 384},
      {17179865088, 896},
      {LARGE, 5415.8}}},
    {COST_NCCL_RING,
     COST_NCCL_SIMPLE,
     7,
     {{LARGE, 5415.8},
      {17179865088, 896},
      {7247754240, 384},
      {956301312, 64},
      {494927872, 32},
      {236978176, 16},
      {LARGE, 16}}},
};

static const Region efa_p5en_reduce_scatter[] = {
    {COST_NCCL_RING,
     COST_NCCL_LL,
     7,
     {{0, 16}, {786432, 16}, {4718592, 128}, {7340032, 256}, {18874368, 512}, {LARGE, 291817.7}, {0, FAR}}},
    {COST_NCCL_RING,
     COST_NCCL_LL128,
     11,
     {{LARGE, 291817.7},
      {18874368, 512},
      {7340032, 256},
      {4718592, 128},
      {786432, 16},
      {291504128, 16},
      {589299712, 32},
      {2415919104, 128},
      {7247757312, 256},
      {17179869184, 640},
      {LARGE, 4478.8}}},
    {COST_NCCL_RING,
     COST_NCCL_SIMPLE,
     7,
     {{LARGE, 4478.8},
      {17179869184, 640},
      {7247757312, 256},
      {2415919104, 128},
      {589299712, 32},
      {291504128, 16},
      {LARGE, 16}}},
};

static const Region efa_p6_all_reduce[] = {
    {COST_NCCL_TREE, COST_NCCL_LL, 4, {{0, 16}, {393216, 16}, {393216, FAR}, {0, FAR}}},
    {COST_NCCL_TREE,
     COST_NCCL_LL128,
     10,
     {{393216, FAR},
      {393216, 16},
      {4718592, 16},
      {18350080, 32},
      {40370176, 64},
      {57147392, 128},
      {72876032, 256},
      {96993280, 1024},
      {106430464, 2048},
      {245462267, FAR}}},
    {COST_NCCL_RING,
     COST_NCCL_LL128,
     5,
     {{90701824, 128}, {50855936, 64}, {18350080, 32}, {133693440, 32}, {120061952, 64}}},
    {COST_NCCL_NVLS_TREE,
     COST_NCCL_SIMPLE,
     19,
     {{245462267, FAR},
      {106430464, 2048},
      {96993280, 1024},
      {72876032, 256},
      {57147392, 128},
      {40370176, 64},
      {18350080, 32},
      {50855936, 64},
      {90701824, 128},
      {120061952, 64},
      {133693440, 32},
      {18350080, 32},
      {4718592, 16},
      {LARGE, 16},
      {435159040, 32},
      {1072693248, 64},
      {10737418240, 512},
      {34359738368, 1500},
      {LARGE, 4299.3}}},
    {COST_NCCL_RING,
     COST_NCCL_SIMPLE,
     5,
     {{LARGE, 4299.3}, {10737418240, 512}, {1072693248, 64}, {435159040, 32}, {LARGE, 16}}},
};

static const Region efa_p6_all_gather[] = {
    {COST_NCCL_RING,
     COST_NCCL_LL,
     10,
     {{0, 16},
      {786432, 16},
      {1572864, 32},
      {2621440, 64},
      {4718592, 128},
      {17301504, 256},
      {74973184, 1024},
      {213385216, 2048},
      {LARGE, 126394.5},
      {0, FAR}}},
    {COST_NCCL_RING,
     COST_NCCL_LL128,
     14,
     {{LARGE, 126394.5},
      {213385216, 2048},
      {74973184, 1024},
      {17301504, 256},
      {4718592, 128},
      {2621440, 64},
      {1572864, 32},
      {786432, 16},
      {198705152, 16},
      {456130560, 32},
      {871366656, 64},
      {8321499136, 512},
      {32212254720, 2048},
      {LARGE, 7028.7}}},
    {COST_NCCL_RING,
     COST_NCCL_SIMPLE,
     7,
     {{LARGE, 7028.7},
      {32212254720, 2048},
      {8321499136, 512},
      {871366656, 64},
      {456130560, 32},
      {198705152, 16},
      {LARGE, 16}}},
};

static const Region efa_p6_reduce_scatter[] = {
    {COST_NCCL_RING,
     COST_NCCL_LL,
     11,
     {{0, 16},
      {786432, 16},
      {1572864, 32},
      {2621440, 64},
      {4718592, 128},
      {17301504, 256},
      {35127296, 512},
      {73924608, 1024},
      {209190912, 2048},
      {LARGE, 131038.7},
      {0, FAR}}},
    {COST_NCCL_RING,
     COST_NCCL_LL128,
     15,
     {{LARGE, 131038.7},
      {209190912, 2048},
      {73924608, 1024},
      {35127296, 512},
      {17301504, 256},
      {4718592, 128},
      {2621440, 64},
      {1572864, 32},
      {786432, 16},
      {219676672, 16},
      {508559360, 32},
      {592445440, 64},
      {4294967296, 256},
      {8589934592, 512},
      {LARGE, 6400}}},
    {COST_NCCL_RING,
     COST_NCCL_SIMPLE,
     7,
     {{LARGE, 6400},
      {8589934592, 512},
      {4294967296, 256},
      {592445440, 64},
      {508559360, 32},
      {219676672, 16},
      {LARGE, 16}}},
};

typedef struct Table {
    SpecTuner tuner;
    CostCollectiveOp op;
    const Region *regions;
    int count, least_nodes;
    bool logarithmic;
} Table;

#define TABLE(tuner, op, list, nodes, logarithmic)                                                           \
    {                                                                                                        \
        tuner, op, list, G_N_ELEMENTS(list), nodes, logarithmic                                              \
    }

static const Table tables[] = {
    TABLE(SPEC_TUNER_AWS_P5, COST_ALL_REDUCE, efa_p5, 2, false),
    TABLE(SPEC_TUNER_AWS_P5EN, COST_ALL_REDUCE, efa_p5en_all_reduce, 3, true),
    TABLE(SPEC_TUNER_AWS_P5EN, COST_ALL_GATHER, efa_p5en_all_gather, 3, true),
    TABLE(SPEC_TUNER_AWS_P5EN, COST_REDUCE_SCATTER, efa_p5en_reduce_scatter, 3, true),
    TABLE(SPEC_TUNER_AWS_P6, COST_ALL_REDUCE, efa_p6_all_reduce, 3, true),
    TABLE(SPEC_TUNER_AWS_P6, COST_ALL_GATHER, efa_p6_all_gather, 3, true),
    TABLE(SPEC_TUNER_AWS_P6, COST_REDUCE_SCATTER, efa_p6_reduce_scatter, 3, true),
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

/* Of a plane of logarithms; the plug-in's stand-in for nothing is 1e-6. */
static Corner log_of(Corner corner)
{
    return (Corner){log2(MAX(corner.bytes, 1e-6)), log2(corner.ranks)};
}

static bool holds_log(const Region *region, Corner p)
{
    Region log = *region;
    for (int i = 0; i < log.corner_count; i++)
        log.corners[i] = log_of(log.corners[i]);
    return holds(&log, log_of(p));
}

static const Table *table_of(const CostNcclQuery *query)
{
    for (gsize i = 0; i < G_N_ELEMENTS(tables); i++)
        if (tables[i].tuner == query->tuner && tables[i].op == query->op)
            return query->nodes >= tables[i].least_nodes ? &tables[i] : NULL;
    return NULL;
}

bool cost_nccl_region(const CostNcclQuery *query, CostNcclAlgorithm *ret_algorithm,
                      CostNcclProtocol *ret_protocol)
{
    const Table *table = table_of(query);
    if (table == NULL || query->ranks != 8 * query->nodes)
        return false;
    const Corner point = {query->bytes, query->ranks};
    for (int i = 0; i < table->count; i++) {
        const Region *region = &table->regions[i];
        if (!(table->logarithmic ? holds_log(region, point) : holds(region, point)))
            continue;
        *ret_algorithm = region->algorithm;
        *ret_protocol = region->protocol;
        return true;
    }
    return false;
}
