/* kernels/cudnn_graph.cu - cuDNN's graphs: loading the library, tensors, operations, and the plan that runs them.
 *
 * No CUDA here: what is built can be handed to the library where there is no GPU, together with a description of one.
 */
#include "kernels/dnn.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<cudnn.h>)
#include <cudnn.h>
#if CUDNN_MAJOR == 9
#define SAME(own, library) static_assert((int)(own) == (int)(library), "cuDNN numbers " #library " otherwise")
SAME(DNN_HEURISTICS, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
SAME(DNN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
SAME(DNN_PLAN, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
SAME(DNN_OP_POINTWISE, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
SAME(DNN_OP_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
SAME(DNN_VARIANT_PACK, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
SAME(DNN_TENSOR, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
SAME(DNN_OP_MATMUL, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
SAME(DNN_OP_REDUCTION, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
SAME(DNN_OP_RESHAPE, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
SAME(DNN_POINTWISE_AXIS, CUDNN_ATTR_POINTWISE_AXIS);
SAME(DNN_HEURISTICS_RESULTS, CUDNN_ATTR_ENGINEHEUR_RESULTS);
SAME(DNN_PLAN_WORKSPACE, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
SAME(DNN_OP_POINTWISE_T, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
SAME(DNN_GRAPH_OPS, CUDNN_ATTR_OPERATIONGRAPH_OPS);
SAME(DNN_TENSOR_BY_VALUE, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
SAME(DNN_PACK_WORKSPACE, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
SAME(DNN_OP_MATMUL_WAY, CUDNN_ATTR_OPERATION_MATMUL_DESC);
SAME(DNN_OP_REDUCTION_WAY, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
SAME(DNN_OP_RESHAPE_Y, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
SAME(DNN_IS_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR);
SAME(DNN_IS_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
SAME(DNN_E4M3, CUDNN_DATA_FP8_E4M3);
SAME(DNN_BF16, CUDNN_DATA_BFLOAT16);
SAME(DNN_SELECT, CUDNN_POINTWISE_BINARY_SELECT);
SAME(DNN_INDEX, CUDNN_POINTWISE_GEN_INDEX);
SAME(DNN_NOT_LESS, CUDNN_POINTWISE_CMP_GE);
SAME(DNN_ABS_MAX, CUDNN_REDUCE_TENSOR_AMAX);
SAME(DNN_HEURISTIC_A, CUDNN_HEUR_MODE_A);
#undef SAME
#endif
#endif

#define MOST_CONFIGS 16
#define ALIGNMENT    16 /* bytes */

/* --- the library --- */

template <typename F> static bool find(void *file, const char *name, F *at)
{
    void *symbol = dlsym(file, name);
    memcpy(at, &symbol, sizeof symbol);
    return symbol != nullptr;
}

bool dnn_load(DnnLibrary *ret_library, char *reason, size_t reason_size)
{
    const char *chosen = getenv("ORRERY_CUDNN");
    size_t (*get_version)() = nullptr;
    DnnLibrary library = {};
    library.file = dlopen(chosen != nullptr ? chosen : "libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    if (library.file == nullptr) {
        snprintf(reason, reason_size, "%s is not on this machine (ORRERY_CUDNN names another file)",
                 chosen != nullptr ? chosen : "libcudnn.so.9");
        return false;
    }
    const bool ok = find(library.file, "cudnnGetVersion", &get_version) &&
                    find(library.file, "cudnnCreate", &library.create) &&
                    find(library.file, "cudnnDestroy", &library.destroy) &&
                    find(library.file, "cudnnSetStream", &library.set_stream) &&
                    find(library.file, "cudnnBackendCreateDescriptor", &library.descriptor) &&
                    find(library.file, "cudnnBackendDestroyDescriptor", &library.release) &&
                    find(library.file, "cudnnBackendSetAttribute", &library.set) &&
                    find(library.file, "cudnnBackendGetAttribute", &library.get) &&
                    find(library.file, "cudnnBackendFinalize", &library.finish) &&
                    find(library.file, "cudnnBackendExecute", &library.execute);
    find(library.file, "cudnnGetLastErrorString", &library.last_error);
    library.version = ok ? get_version() : 0;
    if (library.version < CUDNN_LEAST_VERSION) {
        snprintf(reason, reason_size, "this cuDNN is too old: attention is taken from 9.0 and later");
        dlclose(library.file);
        return false;
    }
    *ret_library = library;
    return true;
}

/* --- objects --- */

static void fail(DnnGraph *graph, const char *what, int status)
{
    char text[256] = "";
    if (graph->failed)
        return;
    graph->failed = true;
    if (graph->library->last_error != nullptr)
        graph->library->last_error(text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    snprintf(graph->why, sizeof graph->why, "%s: status %d %.100s", what, status, text);
}

static void *object_new(DnnGraph *graph, int type)
{
    void *object = nullptr;
    if (graph->failed)
        return nullptr;
    const int status =
        graph->object_count < DNN_MOST_OBJECTS ? graph->library->descriptor(type, &object) : -1;
    if (status != 0)
        fail(graph, "descriptor", status);
    else
        graph->objects[graph->object_count++] = object;
    return object;
}

static void set(DnnGraph *graph, void *object, int name, int type, int64_t count, const void *values)
{
    const int status = graph->failed ? 0 : graph->library->set(object, name, type, count, values);
    if (status != 0) {
        char what[32];
        snprintf(what, sizeof what, "attribute %d", name);
        fail(graph, what, status);
    }
}

static void set_object(DnnGraph *graph, void *object, int name, void *value)
{
    set(graph, object, name, DNN_IS_DESCRIPTOR, 1, &value);
}

static void finish(DnnGraph *graph, void *object, const char *what)
{
    const int status = graph->failed ? 0 : graph->library->finish(object);
    if (status != 0)
        fail(graph, what, status);
}

static void add_op(DnnGraph *graph, void *op, const char *what)
{
    finish(graph, op, what);
    if (graph->op_count == DNN_MOST_OPS)
        fail(graph, "too many operations", -1);
    else if (!graph->failed)
        graph->ops[graph->op_count++] = op;
}

void dnn_graph_free(DnnGraph *graph)
{
    for (int i = graph->object_count - 1; i >= 0; i--)
        graph->library->release(graph->objects[i]);
    graph->object_count = graph->op_count = 0;
}

/* --- tensors --- */

static DnnTensor tensor_new(DnnGraph *graph, int64_t uid, int type, const DnnSize *size, bool inner,
                            bool by_value)
{
    DnnTensor tensor = {};
    const int64_t alignment = ALIGNMENT;
    tensor.type = type;
    memcpy(tensor.dims, size->dims, sizeof tensor.dims);
    memcpy(tensor.strides, size->strides, sizeof tensor.strides);
    tensor.descriptor = object_new(graph, DNN_TENSOR);
    set(graph, tensor.descriptor, DNN_TENSOR_TYPE, DNN_IS_DATA_TYPE, 1, &type);
    set(graph, tensor.descriptor, DNN_TENSOR_DIMS, DNN_IS_INT64, 4, size->dims);
    set(graph, tensor.descriptor, DNN_TENSOR_STRIDES, DNN_IS_INT64, 4, size->strides);
    set(graph, tensor.descriptor, DNN_TENSOR_UID, DNN_IS_INT64, 1, &uid);
    set(graph, tensor.descriptor, DNN_TENSOR_ALIGNMENT, DNN_IS_INT64, 1, &alignment);
    set(graph, tensor.descriptor, DNN_TENSOR_VIRTUAL, DNN_IS_BOOLEAN, 1, &inner);
    set(graph, tensor.descriptor, DNN_TENSOR_BY_VALUE, DNN_IS_BOOLEAN, 1, &by_value);
    finish(graph, tensor.descriptor, "tensor");
    return tensor;
}

DnnTensor dnn_tensor(DnnGraph *graph, int64_t uid, int type, const DnnSize *size)
{
    return tensor_new(graph, uid, type, size, false, false);
}

DnnTensor dnn_scalar(DnnGraph *graph, int64_t uid, int type, bool by_value)
{
    const DnnSize one = {{1, 1, 1, 1}, {1, 1, 1, 1}};
    return tensor_new(graph, uid, type, &one, false, by_value);
}

DnnTensor dnn_inner_as(DnnGraph *graph, int type, const DnnSize *size)
{
    return tensor_new(graph, graph->next_uid++, type, size, true, false);
}

DnnTensor dnn_inner(DnnGraph *graph, int type, const int64_t d[4])
{
    const DnnSize size = {{d[0], d[1], d[2], d[3]}, {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1}};
    return dnn_inner_as(graph, type, &size);
}

/* --- operations --- */

static void *pointwise_way(DnnGraph *graph, int way, int precision, int64_t axis)
{
    void *object = object_new(graph, DNN_POINTWISE);
    set(graph, object, DNN_POINTWISE_MODE, DNN_IS_POINTWISE_MODE, 1, &way);
    set(graph, object, DNN_POINTWISE_PRECISION, DNN_IS_DATA_TYPE, 1, &precision);
    if (axis >= 0)
        set(graph, object, DNN_POINTWISE_AXIS, DNN_IS_INT64, 1, &axis);
    finish(graph, object, "way of an operation");
    return object;
}

static void pointwise(DnnGraph *graph, void *way, const DnnTensor *x, const DnnTensor *b, const DnnTensor *t,
                      const DnnTensor *y)
{
    void *op = object_new(graph, DNN_OP_POINTWISE);
    set_object(graph, op, DNN_OP_POINTWISE_WAY, way);
    set_object(graph, op, DNN_OP_POINTWISE_X, x->descriptor);
    if (b != nullptr)
        set_object(graph, op, DNN_OP_POINTWISE_B, b->descriptor);
    if (t != nullptr)
        set_object(graph, op, DNN_OP_POINTWISE_T, t->descriptor);
    set_object(graph, op, DNN_OP_POINTWISE_Y, y->descriptor);
    add_op(graph, op, "pointwise operation");
}

void dnn_pointwise(DnnGraph *graph, int way, const DnnTensor *x, const DnnTensor *b, const DnnTensor *y)
{
    pointwise(graph, pointwise_way(graph, way, DNN_F32, -1), x, b, nullptr, y);
}

DnnTensor dnn_apply(DnnGraph *graph, int way, const DnnTensor *x, const DnnTensor *b)
{
    DnnSize size;
    memcpy(size.dims, x->dims, sizeof size.dims);
    memcpy(size.strides, x->strides, sizeof size.strides);
    const DnnTensor y = dnn_inner_as(graph, DNN_F32, &size);
    dnn_pointwise(graph, way, x, b, &y);
    return y;
}

DnnTensor dnn_causal(DnnGraph *graph, const DnnTensor *x, const DnnTensor *other)
{
    const DnnTensor row = dnn_inner(graph, DNN_I32, x->dims), column = dnn_inner(graph, DNN_I32, x->dims);
    const DnnTensor below = dnn_inner(graph, DNN_BOOL, x->dims), y = dnn_inner(graph, DNN_F32, x->dims);
    pointwise(graph, pointwise_way(graph, DNN_INDEX, DNN_F32, 2), x, nullptr, nullptr, &row);
    pointwise(graph, pointwise_way(graph, DNN_INDEX, DNN_F32, 3), x, nullptr, nullptr, &column);
    pointwise(graph, pointwise_way(graph, DNN_NOT_LESS, DNN_BOOL, -1), &row, &column, nullptr, &below);
    pointwise(graph, pointwise_way(graph, DNN_SELECT, DNN_F32, -1), x, other, &below, &y);
    return y;
}

void dnn_matmul(DnnGraph *graph, const DnnTensor *a, const DnnTensor *b, const DnnTensor *c)
{
    const int precision = DNN_F32;
    void *way = object_new(graph, DNN_MATMUL), *op;
    set(graph, way, DNN_MATMUL_PRECISION, DNN_IS_DATA_TYPE, 1, &precision);
    finish(graph, way, "way of a product");
    op = object_new(graph, DNN_OP_MATMUL);
    set_object(graph, op, DNN_OP_MATMUL_A, a->descriptor);
    set_object(graph, op, DNN_OP_MATMUL_B, b->descriptor);
    set_object(graph, op, DNN_OP_MATMUL_C, c->descriptor);
    set_object(graph, op, DNN_OP_MATMUL_WAY, way);
    add_op(graph, op, "product");
}

void dnn_reduce(DnnGraph *graph, int way, const DnnTensor *x, const DnnTensor *y)
{
    const int precision = DNN_F32;
    void *object = object_new(graph, DNN_REDUCTION), *op;
    set(graph, object, DNN_REDUCTION_OPERATOR, DNN_IS_REDUCTION_OPERATOR, 1, &way);
    set(graph, object, DNN_REDUCTION_PRECISION, DNN_IS_DATA_TYPE, 1, &precision);
    finish(graph, object, "way of a reduction");
    op = object_new(graph, DNN_OP_REDUCTION);
    set_object(graph, op, DNN_OP_REDUCTION_X, x->descriptor);
    set_object(graph, op, DNN_OP_REDUCTION_Y, y->descriptor);
    set_object(graph, op, DNN_OP_REDUCTION_WAY, object);
    add_op(graph, op, "reduction");
}

void dnn_reshape(DnnGraph *graph, const DnnTensor *x, const DnnTensor *y)
{
    void *op = object_new(graph, DNN_OP_RESHAPE);
    set_object(graph, op, DNN_OP_RESHAPE_X, x->descriptor);
    set_object(graph, op, DNN_OP_RESHAPE_Y, y->descriptor);
    add_op(graph, op, "reshape");
}

/* --- plans --- */

/* A plan of one engine's configuration, or null: the engine does not take the graph after all. */
static void *plan_of(DnnGraph *graph, void *config, void *handle, void *device)
{
    const DnnLibrary *library = graph->library;
    void *plan = nullptr;
    if (library->descriptor(DNN_PLAN, &plan) != 0)
        return nullptr;
    int status = library->set(plan, DNN_PLAN_CONFIG, DNN_IS_DESCRIPTOR, 1, &config);
    if (status == 0 && handle != nullptr)
        status = library->set(plan, DNN_PLAN_HANDLE, DNN_IS_HANDLE, 1, &handle);
    if (status == 0 && device != nullptr)
        status = library->set(plan, DNN_PLAN_DEVICE, DNN_IS_DESCRIPTOR, 1, &device);
    if (status == 0)
        status = library->finish(plan);
    if (status == 0)
        return plan;
    library->release(plan);
    return nullptr;
}

/* Configurations of engines that the library proposes, into graph->objects; returns how many. */
static int propose(DnnGraph *graph, void *handle, void *device, void **ret_configs)
{
    int64_t count = 0;
    const int mode = DNN_HEURISTIC_A;
    void *whole = object_new(graph, DNN_OP_GRAPH);
    if (handle != nullptr)
        set(graph, whole, DNN_GRAPH_HANDLE, DNN_IS_HANDLE, 1, &handle);
    set(graph, whole, DNN_GRAPH_OPS, DNN_IS_DESCRIPTOR, graph->op_count, graph->ops);
    finish(graph, whole, "graph");
    void *heuristics = object_new(graph, DNN_HEURISTICS);
    set_object(graph, heuristics, DNN_HEURISTICS_GRAPH, whole);
    set(graph, heuristics, DNN_HEURISTICS_MODE, DNN_IS_HEURISTIC_MODE, 1, &mode);
    if (device != nullptr)
        set_object(graph, heuristics, DNN_HEURISTICS_DEVICE, device);
    finish(graph, heuristics, "choice of an engine");
    for (int i = 0; i < MOST_CONFIGS; i++)
        ret_configs[i] = object_new(graph, DNN_ENGINE_CONFIG);
    const int status = graph->failed
                           ? -1
                           : graph->library->get(heuristics, DNN_HEURISTICS_RESULTS, DNN_IS_DESCRIPTOR,
                                                 MOST_CONFIGS, &count, ret_configs);
    if (status != 0)
        fail(graph, "choice of an engine", status);
    return (int)(count < MOST_CONFIGS ? count : MOST_CONFIGS);
}

void *dnn_plan(DnnGraph *graph, void *handle, void *device, int64_t *ret_workspace_bytes)
{
    void *configs[MOST_CONFIGS], *plan = nullptr;
    int64_t one = 0;
    const int count = propose(graph, handle, device, configs);
    for (int i = 0; !graph->failed && i < count && plan == nullptr; i++)
        plan = plan_of(graph, configs[i], handle, device);
    *ret_workspace_bytes = 0;
    if (plan == nullptr) {
        fail(graph, "has no engine for this attention on this GPU", 0);
        return nullptr;
    }
    graph->objects[graph->object_count++] = plan;
    const int status =
        graph->library->get(plan, DNN_PLAN_WORKSPACE, DNN_IS_INT64, 1, &one, ret_workspace_bytes);
    if (status != 0)
        fail(graph, "workspace of a plan", status);
    return graph->failed ? nullptr : plan;
}
