/* kernels/dnn.h - attention of NVIDIA's cuDNN through its C functions, loaded when the program runs. Internal to kernels/.
 *
 * The numbers below are the library's stable binary interface (version 9); its header is not needed to build, and where it
 * is there cudnn_graph.cu is held against it while it is compiled. A graph is a list of operations over tensors; the
 * library looks for an engine that runs all of them as one kernel. Source: [cudnn-frontend]
 */
#ifndef ORR_KERNELS_DNN_H
#define ORR_KERNELS_DNN_H

#include "kernels/internal.h"

#define CUDNN_LEAST_VERSION 90000

/* Descriptors. */
enum {
    DNN_POINTWISE = 0,
    DNN_ENGINE_CONFIG = 3,
    DNN_HEURISTICS = 4,
    DNN_PLAN = 5,
    DNN_OP_POINTWISE = 13,
    DNN_OP_GRAPH = 15,
    DNN_VARIANT_PACK = 16,
    DNN_TENSOR = 17,
    DNN_MATMUL = 18,
    DNN_OP_MATMUL = 19,
    DNN_REDUCTION = 21,
    DNN_OP_REDUCTION = 22,
    DNN_OP_RESHAPE = 31,
    DNN_DEVICE = 38
};

/* Attributes. */
enum {
    DNN_POINTWISE_MODE = 0,
    DNN_POINTWISE_PRECISION = 1,
    DNN_POINTWISE_AXIS = 9,
    DNN_HEURISTICS_MODE = 200,
    DNN_HEURISTICS_GRAPH = 201,
    DNN_HEURISTICS_RESULTS = 202,
    DNN_HEURISTICS_DEVICE = 204,
    DNN_PLAN_HANDLE = 400,
    DNN_PLAN_CONFIG = 401,
    DNN_PLAN_WORKSPACE = 402,
    DNN_PLAN_DEVICE = 407,
    DNN_OP_POINTWISE_WAY = 750,
    DNN_OP_POINTWISE_X = 751,
    DNN_OP_POINTWISE_B = 752,
    DNN_OP_POINTWISE_Y = 753,
    DNN_OP_POINTWISE_T = 758,
    DNN_GRAPH_HANDLE = 800,
    DNN_GRAPH_OPS = 801,
    DNN_TENSOR_ALIGNMENT = 900,
    DNN_TENSOR_TYPE = 901,
    DNN_TENSOR_DIMS = 902,
    DNN_TENSOR_STRIDES = 903,
    DNN_TENSOR_UID = 906,
    DNN_TENSOR_VIRTUAL = 907,
    DNN_TENSOR_BY_VALUE = 908,
    DNN_PACK_UIDS = 1000,
    DNN_PACK_POINTERS = 1001,
    DNN_PACK_WORKSPACE = 1003,
    DNN_MATMUL_PRECISION = 1500,
    DNN_OP_MATMUL_A = 1520,
    DNN_OP_MATMUL_B = 1521,
    DNN_OP_MATMUL_C = 1522,
    DNN_OP_MATMUL_WAY = 1523,
    DNN_REDUCTION_OPERATOR = 1600,
    DNN_REDUCTION_PRECISION = 1601,
    DNN_OP_REDUCTION_X = 1610,
    DNN_OP_REDUCTION_Y = 1611,
    DNN_OP_REDUCTION_WAY = 1612,
    DNN_OP_RESHAPE_X = 2200,
    DNN_OP_RESHAPE_Y = 2201,
    DNN_DEVICE_JSON = 2702
};

/* Types of attributes. */
enum {
    DNN_IS_HANDLE = 0,
    DNN_IS_DATA_TYPE = 1,
    DNN_IS_BOOLEAN = 2,
    DNN_IS_INT64 = 3,
    DNN_IS_POINTER = 6,
    DNN_IS_HEURISTIC_MODE = 8,
    DNN_IS_POINTWISE_MODE = 14,
    DNN_IS_DESCRIPTOR = 15,
    DNN_IS_REDUCTION_OPERATOR = 18,
    DNN_IS_CHAR = 24
};

/* Types of data, ways of pointwise operations and reductions. */
enum { DNN_F32 = 0, DNN_I32 = 4, DNN_BF16 = 9, DNN_BOOL = 11, DNN_E4M3 = 12 };
enum {
    DNN_ADD = 0,
    DNN_MUL = 1,
    DNN_DIV = 6,
    DNN_SUB = 9,
    DNN_EXP = 13,
    DNN_LOG = 15,
    DNN_IDENTITY = 21,
    DNN_NOT_LESS = 303,
    DNN_INDEX = 501,
    DNN_SELECT = 601
};
enum { DNN_SUM = 0, DNN_MAX = 3, DNN_ABS_MAX = 4 };
enum { DNN_HEURISTIC_A = 3 };

typedef struct DnnLibrary {
    void *file;
    size_t version; /* 91900: 9.19.0 */
    int (*create)(void **ret_handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, void *stream);
    int (*descriptor)(int type, void **ret_descriptor);
    int (*release)(void *descriptor);
    int (*set)(void *descriptor, int name, int type, int64_t count, const void *values);
    int (*get)(void *descriptor, int name, int type, int64_t count, int64_t *ret_count, void *ret_values);
    int (*finish)(void *descriptor);
    int (*execute)(void *handle, void *plan, void *pack);
    void (*last_error)(char *text, size_t size); /* null before 9.0 */
} DnnLibrary;

/* libcudnn.so.9, or $ORRERY_CUDNN. False with one sentence. */
bool dnn_load(DnnLibrary *ret_library, char *reason, size_t reason_size);

#define DNN_MOST_OBJECTS 192
#define DNN_MOST_OPS     48

typedef struct DnnTensor {
    void *descriptor;
    int type;
    int64_t dims[4], strides[4];
} DnnTensor;

/* A graph under construction: the first failure is kept, and nothing is done after it. */
typedef struct DnnGraph {
    const DnnLibrary *library;
    void *objects[DNN_MOST_OBJECTS], *ops[DNN_MOST_OPS];
    int object_count, op_count;
    int64_t next_uid; /* of tensors that live inside the kernel */
    bool failed;
    char why[160];
} DnnGraph;

typedef struct DnnSize {
    int64_t dims[4], strides[4];
} DnnSize;

/* Tensors [batch, heads, rows, columns]: in memory under the caller's number; of one number that the host hands over; inside
 * the kernel, dense. */
DnnTensor dnn_tensor(DnnGraph *graph, int64_t uid, int type, const DnnSize *size);
DnnTensor dnn_scalar(DnnGraph *graph, int64_t uid, int type, bool by_value);
DnnTensor dnn_inner(DnnGraph *graph, int type, const int64_t dims[4]);
DnnTensor dnn_inner_as(DnnGraph *graph, int type, const DnnSize *size);

/* y = way(x, b); `b` and `t` may be null. Computed in fp32. */
void dnn_pointwise(DnnGraph *graph, int way, const DnnTensor *x, const DnnTensor *b, const DnnTensor *y);
DnnTensor dnn_apply(DnnGraph *graph, int way, const DnnTensor *x, const DnnTensor *b);
/* x where row >= column, `other` above the diagonal. */
DnnTensor dnn_causal(DnnGraph *graph, const DnnTensor *x, const DnnTensor *other);
void dnn_matmul(DnnGraph *graph, const DnnTensor *a, const DnnTensor *b, const DnnTensor *c);
void dnn_reduce(DnnGraph *graph, int way, const DnnTensor *x, const DnnTensor *y);
void dnn_reshape(DnnGraph *graph, const DnnTensor *x, const DnnTensor *y);

/* The first engine of the library's own choice that takes the whole graph. `handle` is of the current device; without one
 * `device` describes it (DNN_DEVICE). Null: `graph->why` says so. The graph stays as it is. */
void *dnn_plan(DnnGraph *graph, void *handle, void *device, int64_t *ret_workspace_bytes);
void dnn_graph_free(DnnGraph *graph);

/* Buffers of attention, by their place in the lists of flash_forward and flash_backward; uid = place + 1. */
enum { DNN_UID_SCALE = 100, DNN_UID_NOTHING = 101, DNN_UID_ONE = 102, DNN_UID_QUERY_SUM = 103 };

/* Builds the graph of attention at a shape; bf16 or e4m3 by shape->math. fp8 tensors' scales follow the buffers of the
 * bf16 kernel in the order of cudnn_attention.cu's tables. */
void dnn_attention_forward(DnnGraph *graph, const KrnShape *shape);
void dnn_attention_backward(DnnGraph *graph, const KrnShape *shape);

/* Plans and workspace of a context. */
typedef struct KrnDnnState KrnDnnState;
KrnDnnState **krn_dnn_state(KrnContext *context);
void krn_dnn_state_free(KrnDnnState *state);

#endif
