/* network/libraries.c - libraries as lists of algorithms, as far as their sources and manuals tell.
 *
 * Only what a library can pick stands here; what it picks for a size is its tuner's matter (NCCL's: costmodel/nccl.c).
 * Schedules that a user compiles for MSCCL, or that HCCL names and nobody describes (star, NB, AHC), are left out.
 */
#include "network/libraries.h"

#include <string.h>

static const char *const nccl[] = {"all-reduce ring",
                                   "all-reduce double-binary-tree",
                                   "all-reduce nvls",
                                   "all-reduce sharp",
                                   "all-gather ring",
                                   "all-gather pat",
                                   "reduce-scatter ring",
                                   "reduce-scatter pat",
                                   "broadcast pipelined",
                                   "reduce pipelined",
                                   "all-to-all direct",
                                   "scatter direct",
                                   "gather direct",
                                   "send-recv direct",
                                   NULL};
static const char *const rccl[] = {"all-reduce ring",
                                   "all-reduce double-binary-tree",
                                   "all-gather ring",
                                   "reduce-scatter ring",
                                   "broadcast pipelined",
                                   "reduce pipelined",
                                   "all-to-all direct",
                                   "scatter direct",
                                   "gather direct",
                                   "send-recv direct",
                                   NULL};
static const char *const msccl[] = {"all-reduce ring",
                                    "all-reduce direct",
                                    "all-reduce hierarchical-rails",
                                    "all-reduce recursive-halving-doubling",
                                    "all-reduce double-binary-tree",
                                    "all-gather ring",
                                    "all-gather recursive-doubling",
                                    "all-to-all direct",
                                    "all-to-all hierarchical",
                                    "send-recv direct",
                                    NULL};
static const char *const gloo[] = {"all-reduce ring",
                                   "all-reduce recursive-halving-doubling",
                                   "reduce-scatter recursive-halving",
                                   "all-gather ring",
                                   "broadcast binomial",
                                   "broadcast direct",
                                   "gather direct",
                                   "scatter direct",
                                   "all-to-all pairwise",
                                   "barrier dissemination",
                                   "send-recv direct",
                                   NULL};
static const char *const hccl[] = {"all-reduce ring",
                                   "all-reduce direct",
                                   "all-reduce recursive-halving-doubling",
                                   "all-reduce hierarchical-rails",
                                   "all-gather ring",
                                   "all-gather direct",
                                   "all-gather recursive-doubling",
                                   "all-gather rails",
                                   "reduce-scatter ring",
                                   "reduce-scatter direct",
                                   "reduce-scatter recursive-halving",
                                   "reduce-scatter rails",
                                   "broadcast binomial",
                                   "all-to-all pairwise",
                                   "send-recv direct",
                                   NULL};
static const char *const accl[] = {"all-reduce ring", "all-reduce recursive-halving-doubling",
                                   "all-reduce hierarchical-rails", "send-recv direct", NULL};

static const NetLibrary libraries[] = {
    {"nccl", "NVIDIA/nccl src/graph/tuning.cc, docs [NCCL]", nccl},
    {"rccl", "ROCm's fork of NCCL: its rings and trees, no reduction in the switch", rccl},
    {"msccl", "microsoft/msccl-tools examples: all pairs, rings, trees, hierarchical and two-step", msccl},
    {"gloo", "facebookincubator/gloo allreduce*, allgather, broadcast, alltoall, barrier", gloo},
    {"hccl", "CANN's user guide of HCCL: mesh, ring, halving-doubling, pairwise, in nodes and between", hccl},
    {"accl", "Alibaba's articles: hybrid of rings inside and halving-doubling between nodes", accl},
    {"tccl", "Tencent's articles: built on NCCL, whose algorithms it has", nccl},
};

const NetLibrary *net_libraries(int *ret_count)
{
    *ret_count = (int)G_N_ELEMENTS(libraries);
    return libraries;
}

const NetLibrary *net_library_find(const char *name, GError **error)
{
    g_autoptr(GString) known = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(libraries); i++) {
        if (strcmp(libraries[i].name, name) == 0)
            return &libraries[i];
        g_string_append_printf(known, "%s%s",
                               i == 0 ? "" : (i + 1 < G_N_ELEMENTS(libraries) ? ", " : " and "),
                               libraries[i].name);
    }
    orr_fail(error, ORR_ERROR_INPUT, "no library is called \"%s\"; there are %s", name, known->str);
    return NULL;
}

bool net_library_has(const NetLibrary *library, const NetAlgorithm *algorithm)
{
    g_autofree char *full = g_strconcat(net_op_name(algorithm->op), " ", algorithm->name, NULL);
    return g_strv_contains(library->algorithms, full);
}
