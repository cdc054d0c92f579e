/* cli/collective.h - what the files of `orrery collective` share. Internal to cli/. */
#ifndef ORR_CLI_COLLECTIVE_H
#define ORR_CLI_COLLECTIVE_H

#include "base/json.h"
#include "cli/commands.h"
#include "costmodel/nccl.h"
#include "network/libraries.h"
#include "network/proof.h"
#include "network/replay.h"

typedef struct CollectiveArgs {
    CliArgs common;
    char *op, *bytes, *ranks, *cluster, *algorithm, *topology, *fidelity, *routing, *seed, *dims, *order,
        *segments, *root, *latency, *rate, *compare, *library, *reduce, *seeds;
    char **fail;
    gboolean show_data, trace;
} CollectiveArgs;

/* The machine and the question, read. */
typedef struct CollectiveCase {
    NetOp op;
    bool has_cluster;
    SpecCluster cluster;
    NetTopology topology;
    NetRun run; /* without algorithm and bytes */
    int32_t *place;
    bool flows;
    NetReduction reduction;
    int segments;              /* 0: the best power of two */
    int seeds;                 /* to try; 0: the one */
    const NetLibrary *library; /* whose choice is shown; NULL: the fastest of all */
} CollectiveCase;

/* What --op says. */
bool cli_collective_op(const char *word, NetOp *ret_op, GError **error);

bool cli_collective_read(const CollectiveArgs *args, CollectiveCase *ret_case, GError **error);
void cli_collective_clear(CollectiveCase *c);
/* "8..8GiB", "1MiB,4MiB": doubles, in bytes. */
bool cli_collective_sizes(const char *text, bool none_allowed, GArray *sizes, GError **error);
/* What a library would decide by. */
NetSituation cli_collective_situation(const CollectiveCase *c, int64_t bytes);
/* A cluster preset with `gpus` GPUs or more. */
bool cli_collective_cluster(const char *name, char **sets, int gpus, SpecCluster *ret_cluster,
                            GError **error);

enum { CLI_SEED_MARKS = 5 }; /* least, median, 90th and 99th percentile, most */

/* One size: the algorithm, its time, and what the library would do. */
typedef struct CollectiveRow {
    int64_t bytes;
    const NetAlgorithm *algorithm;
    int segments;
    NetResult result;
    bool has_library; /* NCCL knows the operation and a cluster is given */
    CostNcclChoice choice;
    CostNcclQuery query;
    double library_s;
    int seeds; /* of ecmp that were tried; 0: one */
    double seed_s[CLI_SEED_MARKS];
} CollectiveRow;

double cli_collective_row_s(const CollectiveRow *row);
/* False: the library has no such operation. */
bool cli_collective_library(const SpecCluster *cluster, NetOp op, int ranks, double bytes,
                            CostCollective *ret_collective);

typedef struct CollectivePage {
    const CollectiveCase *c;
    const CollectiveRow *rows;
    int count;
    bool proved, trace;
    bool named;          /* the algorithm was asked for */
    const GString *data; /* of --show-data; NULL */
} CollectivePage;

void cli_collective_text(const CollectivePage *page, GString *out);
void cli_collective_json(const CollectivePage *page, GString *out);
void cli_collective_csv(const CollectivePage *page, GString *out);

/* Who holds what after each step, appended to `out`; false: the result is not what the operation promises. */
bool cli_collective_show(const CollectiveCase *c, const CollectiveRow *row, GString *out, GError **error);

/* By flows under seeds c->run.seed and the `count` - 1 after it. */
bool cli_collective_seeds(const CollectiveCase *c, int count, CollectiveRow *row, GError **error);
void cli_collective_seeds_text(const CollectiveRow *row, GString *out);
void cli_collective_seeds_json(const CollectiveRow *row, OrrJsonWriter *w);

/* A log of nccl-tests beside predictions. */
bool cli_collective_compare(const CollectiveArgs *args, GString *out, GError **error);

#endif
