/* exchange/trace.h - what one GPU ran, kernel by kernel, as a profiler's trace has it.
 *
 * The reader takes PyTorch's Kineto JSON (.json or .json.gz) of any year, from CUDA and ROCm. It streams: memory grows with
 * the kernels, launches and operators of a file and not with its bytes. The writer puts the same struct into a file that this reader,
 * Perfetto and other tools open. Times are picoseconds since `base_us`, so that ranks of one machine share a clock.
 */
#ifndef ORR_EXCHANGE_TRACE_H
#define ORR_EXCHANGE_TRACE_H

#include <stdint.h>

#include "base/error.h"

/* What a kernel does, by its name: the table scenarios/profilers/kernel-names.json. */
typedef enum {
    TRACE_PRODUCTS,
    TRACE_ATTENTION,
    TRACE_NORMS,
    TRACE_ELEMENTWISE, /* all else that moves bytes: activations, casts, sums, softmax, lookups, losses */
    TRACE_OPTIMIZER,
    TRACE_ALL_REDUCE,
    TRACE_ALL_GATHER,
    TRACE_REDUCE_SCATTER,
    TRACE_ALL_TO_ALL,
    TRACE_SEND_RECEIVE,
    TRACE_OTHER_COLLECTIVE,
    TRACE_COPIES, /* by the copy engines, and memory that is set */
    TRACE_OTHER,
    TRACE_CLASSES
} TraceClass;

const char *trace_class_word(TraceClass kind);

static inline bool trace_is_communication(TraceClass kind)
{
    return kind >= TRACE_ALL_REDUCE && kind <= TRACE_OTHER_COLLECTIVE;
}

/* Patterns in their order; the first that fits says the class. */
typedef struct TraceTable TraceTable;
TraceTable *trace_table_load(GError **error);
/* `text`: the JSON of such a table; `name`: what messages call it. */
TraceTable *trace_table_read(const char *text, gsize length, const char *name, GError **error);
void trace_table_free(TraceTable *table);
/* `ret_waits` (or NULL): the kernel only meets the other ranks, so that all of it is a wait for the last one. */
TraceClass trace_table_class(const TraceTable *table, const char *kernel, bool *ret_waits);

/* A kernel's name. */
typedef struct TraceName {
    char *text;
    TraceClass kind;
    bool waits; /* moves nothing: it only meets the other ranks */
} TraceName;

/* The operator of the host that launched a kernel. */
typedef struct TraceOp {
    char *name;  /* "aten::mm" */
    char *dims;  /* "[[4096,1024],[1024,4096]]"; "" not recorded */
    char *types; /* "[\"c10::BFloat16\",...]"; "" not recorded */
} TraceOp;

typedef struct TraceKernel {
    int64_t begin_ps, dur_ps;
    int64_t launch_ps; /* when the host called its launch; TRACE_NO_LAUNCH: not recorded */
    int64_t
        wait_ps;  /* of dur_ps, a collective's wait for its last rank; 0: none, or ranks were not compared */
    double bytes; /* a collective's message as its operation counts it, or a copy; 0: not recorded */
    int32_t name; /* of TraceRank.names */
    int32_t op;   /* of TraceRank.ops; -1: not known */
    int32_t stream, ranks; /* ranks: of its group; 0: not recorded */
    uint32_t group;        /* a hash of its process group; 0: not recorded */
} TraceKernel;

#define TRACE_NO_LAUNCH INT64_MIN

typedef struct TraceStep {
    int64_t number;
    int64_t begin_ps, end_ps; /* on the host */
} TraceStep;

typedef struct TraceRank {
    char *path, *device; /* device: "NVIDIA H100 80GB HBM3"; "" not recorded */
    int rank, world;     /* -1, 0: not recorded */
    int64_t base_us;
    GArray *names;     /* TraceName */
    GArray *ops;       /* TraceOp */
    GArray *kernels;   /* TraceKernel, by begin */
    GArray *steps;     /* TraceStep, by begin; empty: none marked */
    int64_t events;    /* of the file */
    int64_t elsewhere; /* kernels of other GPUs in the file, left out */
    int64_t untimed;   /* kernels whose times are no times, left out */
    bool shapes;       /* operators have them */
} TraceRank;

TraceRank *trace_rank_new(const char *path);
void trace_rank_free(TraceRank *rank); /* NULL: nothing */
/* Indices of what is put in; the same again is the same index. For writers of predictions. */
int32_t trace_rank_name(TraceRank *rank, const char *text, TraceClass kind);
int32_t trace_rank_op(TraceRank *rank, const char *name, const char *dims, const char *types);

static inline const TraceKernel *trace_kernel(const TraceRank *rank, guint index)
{
    return &g_array_index(rank->kernels, TraceKernel, index);
}

static inline const TraceName *trace_kernel_name(const TraceRank *rank, const TraceKernel *kernel)
{
    return &g_array_index(rank->names, TraceName, kernel->name);
}

static inline TraceClass trace_kernel_class(const TraceRank *rank, const TraceKernel *kernel)
{
    return trace_kernel_name(rank, kernel)->kind;
}

/* Reads one file. */
TraceRank *trace_rank_read(const char *path, const TraceTable *table, GError **error);
/* The same of a text in memory, whose `name` errors carry. */
TraceRank *trace_rank_parse(const char *text, gsize length, const char *name, const TraceTable *table,
                            GError **error);

/* A file, or the files of a folder, one a rank, by rank. A collective of several ranks begins when the last one does: what
 * the others wait is their kernels' wait_ps. TraceRank*, freed with the array. */
GPtrArray *trace_read(const char *path, const TraceTable *table, GError **error);
/* That of ranks that are already read: collectives met by process group and order. Returns how many were met on all ranks. */
int64_t trace_meet(const GPtrArray *ranks);

/* Kernels by begin, then by stream. */
void trace_rank_sort(TraceRank *rank);

/* As Kineto writes it: read again it has the same kernels, launches, operators and steps. `put` takes the text piece by piece;
 * false: no more of it. */
void trace_rank_write(const TraceRank *rank, bool (*put)(const char *text, gsize length, void *data),
                      void *data);

/* Sizes of the product that an operator of PyTorch ran: [m,k] x [k,n], `groups` times. False: it is none, or has no shapes. */
bool trace_op_product(const TraceOp *op, double size[3], double *ret_groups);

#endif
