/* tests/gpu/emulate/cudnn.cc - cuDNN's graphs for the emulation, a library of its own that is loaded as cuDNN would be.
 *
 * Descriptors are kept as they are set, checked as the library checks them (known attributes of the right type, everything
 * that an operation needs, sizes that fit), and a plan is executed operation by operation: what the graph means, not how
 * fast it runs. Tensors inside the kernel are rounded to their type. EMULATE_CUDNN=9.3.0 is an older library,
 * EMULATE_CUDNN_NO_ENGINE one whose engines take no graph.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <unordered_map>
#include <vector>

#include "kernels/dnn.h"

namespace {

enum { BAD = 2000, NO_SUPPORT = 3000 };

struct Object {
    int type;
    bool finished = false;
    std::map<int, std::vector<char>> bytes; /* of an attribute */
    std::map<int, int64_t> counts;
};

char last[256];

int refuse(int status, const char *why)
{
    snprintf(last, sizeof last, "%s", why);
    return status;
}

struct Attribute {
    int object, name, type, bytes;
    bool needed;
};

const Attribute attributes[] = {
    {DNN_POINTWISE, DNN_POINTWISE_MODE, DNN_IS_POINTWISE_MODE, 4, true},
    {DNN_POINTWISE, DNN_POINTWISE_PRECISION, DNN_IS_DATA_TYPE, 4, true},
    {DNN_POINTWISE, DNN_POINTWISE_AXIS, DNN_IS_INT64, 8, false},
    {DNN_OP_POINTWISE, DNN_OP_POINTWISE_WAY, DNN_IS_DESCRIPTOR, 8, true},
    {DNN_OP_POINTWISE, DNN_OP_POINTWISE_X, DNN_IS_DESCRIPTOR, 8, true},
    {DNN_OP_POINTWISE, DNN_OP_POINTWISE_B, DNN_IS_DESCRIPTOR, 8, false},
    {DNN_OP_POINTWISE, DNN_OP_POINTWISE_T, DNN_IS_DESCRIPTOR, 8, false},
    {DNN_OP_POINTWISE, DNN_OP_POINTWISE_Y, DNN_IS_DESCRIPTOR, 8, true},
    {DNN_MATMUL, DNN_MATMUL_PRECISION, DNN_IS_DATA_TYPE, 4, true},
    {DNN_OP_MATMUL, DNN_OP_MATMUL_A, DNN_IS_DESCRIPTOR, 8, true},
    {DNN_OP_MATMUL, DNN_OP_MATMUL_B, DNN_IS_DESCRIPTOR, 8, true},
    {DNN_OP_MATMUL, DNN_OP_MATMUL_C, DNN_IS_DESCRIPTOR, 8, true},
    {DNN_OP_MATMUL, DNN_OP_MATMUL_WAY, DNN_IS_DESCRIPTOR, 8, true},
    {DNN_REDUCTION, DNN_REDUCTION_OPERATOR, DNN_IS_REDUCTION_OPERATOR, 4, true},
    {DNN_REDUCTION, DNN_REDUCTION_PRECISION, DNN_IS_DATA_TYPE, 4, true},
    {DNN_OP_REDUCTION, DNN_OP_REDUCTION_X, DNN_IS_DESCRIPTOR, 8, true},
    {DNN_OP_REDUCTION, DNN_OP_REDUCTION_Y, DNN_IS_DESCRIPTOR, 8, true},
    {DNN_OP_REDUCTION, DNN_OP_REDUCTION_WAY, DNN_IS_DESCRIPTOR, 8, true},
    {DNN_OP_RESHAPE, DNN_OP_RESHAPE_X, DNN_IS_DESCRIPTOR, 8, true},
    {DNN_OP_RESHAPE, DNN_OP_RESHAPE_Y, DNN_IS_DESCRIPTOR, 8, true},
    {DNN_TENSOR, DNN_TENSOR_TYPE, DNN_IS_DATA_TYPE, 4, true},
    {DNN_TENSOR, DNN_TENSOR_DIMS, DNN_IS_INT64, 8, true},
    {DNN_TENSOR, DNN_TENSOR_STRIDES, DNN_IS_INT64, 8, true},
    {DNN_TENSOR, DNN_TENSOR_UID, DNN_IS_INT64, 8, true},
    {DNN_TENSOR, DNN_TENSOR_ALIGNMENT, DNN_IS_INT64, 8, true},
    {DNN_TENSOR, DNN_TENSOR_VIRTUAL, DNN_IS_BOOLEAN, 1, false},
    {DNN_TENSOR, DNN_TENSOR_BY_VALUE, DNN_IS_BOOLEAN, 1, false},
    {DNN_OP_GRAPH, DNN_GRAPH_HANDLE, DNN_IS_HANDLE, 8, true},
    {DNN_OP_GRAPH, DNN_GRAPH_OPS, DNN_IS_DESCRIPTOR, 8, true},
    {DNN_HEURISTICS, DNN_HEURISTICS_GRAPH, DNN_IS_DESCRIPTOR, 8, true},
    {DNN_HEURISTICS, DNN_HEURISTICS_MODE, DNN_IS_HEURISTIC_MODE, 4, true},
    {DNN_PLAN, DNN_PLAN_HANDLE, DNN_IS_HANDLE, 8, true},
    {DNN_PLAN, DNN_PLAN_CONFIG, DNN_IS_DESCRIPTOR, 8, true},
    {DNN_VARIANT_PACK, DNN_PACK_UIDS, DNN_IS_INT64, 8, true},
    {DNN_VARIANT_PACK, DNN_PACK_POINTERS, DNN_IS_POINTER, 8, true},
    {DNN_VARIANT_PACK, DNN_PACK_WORKSPACE, DNN_IS_POINTER, 8, true},
};

const Attribute *attribute_of(int object, int name)
{
    for (const Attribute &attribute : attributes)
        if (attribute.object == object && attribute.name == name)
            return &attribute;
    return nullptr;
}

template <typename T> T value(const Object *object, int name, int at = 0)
{
    T result = {};
    const auto found = object->bytes.find(name);
    if (found != object->bytes.end())
        memcpy(&result, found->second.data() + at * (int)sizeof result, sizeof result);
    return result;
}

Object *at(const Object *object, int name, int index = 0)
{
    return value<Object *>(object, name, index);
}

int64_t dim(const Object *tensor, int i)
{
    return value<int64_t>(tensor, DNN_TENSOR_DIMS, i);
}

int64_t stride(const Object *tensor, int i)
{
    return value<int64_t>(tensor, DNN_TENSOR_STRIDES, i);
}

int64_t elements(const Object *tensor)
{
    return dim(tensor, 0) * dim(tensor, 1) * dim(tensor, 2) * dim(tensor, 3);
}

/* --- checks --- */

bool check_matmul(const Object *op)
{
    const Object *a = at(op, DNN_OP_MATMUL_A), *b = at(op, DNN_OP_MATMUL_B), *c = at(op, DNN_OP_MATMUL_C);
    return dim(a, 2) == dim(c, 2) && dim(b, 3) == dim(c, 3) && dim(a, 3) == dim(b, 2) && dim(a, 0) == dim(c, 0) &&
           dim(a, 1) == dim(c, 1) && dim(a, 1) % dim(b, 1) == 0;
}

bool fits(const Object *small, const Object *large)
{
    for (int i = 0; i < 4; i++)
        if (dim(small, i) != dim(large, i) && dim(small, i) != 1)
            return false;
    return true;
}

bool check_pointwise(const Object *op)
{
    const int way = value<int>(at(op, DNN_OP_POINTWISE_WAY), DNN_POINTWISE_MODE);
    const Object *x = at(op, DNN_OP_POINTWISE_X), *b = at(op, DNN_OP_POINTWISE_B), *t = at(op, DNN_OP_POINTWISE_T),
                 *y = at(op, DNN_OP_POINTWISE_Y);
    const bool two = way == DNN_ADD || way == DNN_MUL || way == DNN_SUB || way == DNN_DIV || way == DNN_NOT_LESS ||
                     way == DNN_SELECT;
    const bool index = way == DNN_INDEX;
    return elements(x) == elements(y) && (b != nullptr) == two && (b == nullptr || fits(b, y)) &&
           (t != nullptr) == (way == DNN_SELECT) &&
           index == (at(op, DNN_OP_POINTWISE_WAY)->bytes.count(DNN_POINTWISE_AXIS) > 0);
}

bool check_reduction(const Object *op)
{
    const Object *x = at(op, DNN_OP_REDUCTION_X), *y = at(op, DNN_OP_REDUCTION_Y);
    for (int i = 0; i < 4; i++)
        if (dim(x, i) % dim(y, i) != 0 || (i != 1 && dim(y, i) != 1 && dim(y, i) != dim(x, i)))
            return false;
    return true;
}

int check(const Object *object)
{
    for (const Attribute &attribute : attributes)
        if (attribute.object == object->type && attribute.needed && object->bytes.count(attribute.name) == 0)
            return refuse(BAD, "an attribute is missing");
    for (const auto &entry : object->bytes) {
        const Attribute *attribute = attribute_of(object->type, entry.first);
        for (int i = 0; attribute->type == DNN_IS_DESCRIPTOR && i < object->counts.at(entry.first); i++)
            if (!at(object, entry.first, i)->finished && object->type != DNN_PLAN)
                return refuse(BAD, "a descriptor that is not finalised");
    }
    if (object->type == DNN_TENSOR && (object->counts.at(DNN_TENSOR_DIMS) != 4 ||
                                       object->counts.at(DNN_TENSOR_STRIDES) != 4 || elements(object) < 1))
        return refuse(BAD, "a tensor without four sizes");
    if ((object->type == DNN_OP_MATMUL && !check_matmul(object)) ||
        (object->type == DNN_OP_POINTWISE && !check_pointwise(object)) ||
        (object->type == DNN_OP_REDUCTION && !check_reduction(object)) ||
        (object->type == DNN_OP_RESHAPE && elements(at(object, DNN_OP_RESHAPE_X)) != elements(at(object, DNN_OP_RESHAPE_Y))))
        return refuse(BAD, "sizes that do not fit");
    return 0;
}

/* --- numbers --- */

float rounded(int type, float x)
{
    if (type == DNN_BF16) {
        uint32_t bits;
        memcpy(&bits, &x, 4);
        bits = (bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u;
        memcpy(&x, &bits, 4);
    } else if (type == DNN_E4M3) {
        const float size = fabsf(x) > 448 ? 448 : fabsf(x);
        const int exponent = size > 0 && ilogbf(size) > -6 ? ilogbf(size) : -6;
        x = copysignf(ldexpf(rintf(ldexpf(size, 3 - exponent)), exponent - 3), x);
    }
    return x;
}

float load(int type, const void *memory, int64_t i)
{
    if (type == DNN_F32)
        return ((const float *)memory)[i];
    if (type == DNN_BF16) {
        const uint32_t bits = (uint32_t)((const uint16_t *)memory)[i] << 16;
        float x;
        memcpy(&x, &bits, 4);
        return x;
    }
    const unsigned bits = ((const uint8_t *)memory)[i];
    const int exponent = (int)(bits >> 3 & 15);
    return ldexpf((float)((exponent > 0 ? 8 : 0) + (bits & 7)), (exponent > 0 ? exponent : 1) - 10) *
           (bits >> 7 ? -1.0f : 1.0f);
}

void store(int type, void *memory, int64_t i, float x)
{
    x = rounded(type, x);
    if (type == DNN_F32) {
        ((float *)memory)[i] = x;
    } else if (type == DNN_BF16) {
        uint32_t bits;
        memcpy(&bits, &x, 4);
        ((uint16_t *)memory)[i] = (uint16_t)(bits >> 16);
    } else {
        const float size = fabsf(x);
        const int exponent = size >= ldexpf(1, -6) ? ilogbf(size) : -7;
        const int mantissa = (int)lrintf(ldexpf(size, 3 - (exponent < -6 ? -6 : exponent)));
        ((uint8_t *)memory)[i] = (uint8_t)((x < 0 ? 0x80 : 0) | (exponent + 7) << 3 | (mantissa & 7));
    }
}

/* --- execution --- */

struct Values {
    std::unordered_map<int64_t, void *> memory;            /* by uid */
    std::unordered_map<int64_t, std::vector<float>> inner; /* dense, by uid */
    std::vector<int64_t> written;
};

struct Index {
    int64_t i[4];
};

/* A tensor's attributes, looked up once for all of its elements. */
struct Tensor {
    int type = 0;
    int64_t dims[4] = {}, strides[4] = {}, count = 0;
    void *memory = nullptr;              /* of one that is outside the kernel */
    std::vector<float> *inner = nullptr; /* of one that is inside */

    Tensor(Values *values, const Object *object)
    {
        if (object == nullptr)
            return;
        const int64_t uid = value<int64_t>(object, DNN_TENSOR_UID);
        type = value<int>(object, DNN_TENSOR_TYPE);
        count = elements(object);
        for (int d = 0; d < 4; d++) {
            dims[d] = dim(object, d);
            strides[d] = stride(object, d);
        }
        if (value<bool>(object, DNN_TENSOR_VIRTUAL))
            inner = &values->inner[uid];
        else
            memory = values->memory.at(uid);
    }
    Index index(int64_t number) const
    {
        Index index;
        for (int d = 3; d >= 0; d--) {
            index.i[d] = number % dims[d];
            number /= dims[d];
        }
        return index;
    }
    int64_t offset(const Index &index) const
    {
        int64_t offset = 0;
        for (int d = 0; d < 4; d++)
            offset += index.i[d] * strides[d];
        return offset;
    }
    /* An element that may be asked for beyond a dimension of one, or of a group's shared heads. */
    float get(const Index &index, int64_t heads) const
    {
        Index own = index;
        int64_t dense = 0;
        for (int d = 0; d < 4; d++) {
            if (dims[d] == 1)
                own.i[d] = 0;
            else if (d == 1 && dims[1] < heads)
                own.i[d] = own.i[d] * dims[1] / heads;
            dense = dense * dims[d] + own.i[d];
        }
        return inner != nullptr ? inner->at((size_t)dense) : load(type, memory, offset(own));
    }
    void put(int64_t number, float x) const
    {
        if (inner != nullptr) {
            inner->resize((size_t)count);
            (*inner)[(size_t)number] = rounded(type, x);
        } else {
            store(type, memory, offset(index(number)), x);
        }
    }
};

void run_matmul(Values *values, const Object *op)
{
    const Tensor a(values, at(op, DNN_OP_MATMUL_A)), b(values, at(op, DNN_OP_MATMUL_B)),
        c(values, at(op, DNN_OP_MATMUL_C));
    for (int64_t n = 0; n < c.count; n++) {
        const Index i = c.index(n);
        double sum = 0;
        for (int64_t k = 0; k < a.dims[3]; k++)
            sum += (double)a.get(Index{{i.i[0], i.i[1], i.i[2], k}}, c.dims[1]) *
                   b.get(Index{{i.i[0], i.i[1], k, i.i[3]}}, c.dims[1]);
        c.put(n, (float)sum);
    }
}

float applied(int way, float x, float b, float t)
{
    switch (way) {
    case DNN_ADD:
        return x + b;
    case DNN_MUL:
        return x * b;
    case DNN_SUB:
        return x - b;
    case DNN_DIV:
        return x / b;
    case DNN_EXP:
        return expf(x);
    case DNN_LOG:
        return logf(x);
    case DNN_NOT_LESS:
        return x >= b ? 1.0f : 0.0f;
    case DNN_SELECT:
        return t > 0 ? x : b;
    default:
        return x;
    }
}

void run_pointwise(Values *values, const Object *op)
{
    const Object *way = at(op, DNN_OP_POINTWISE_WAY), *b_object = at(op, DNN_OP_POINTWISE_B),
                 *t_object = at(op, DNN_OP_POINTWISE_T);
    const Tensor x(values, at(op, DNN_OP_POINTWISE_X)), b(values, b_object), t(values, t_object),
        y(values, at(op, DNN_OP_POINTWISE_Y));
    const int mode = value<int>(way, DNN_POINTWISE_MODE);
    const int64_t axis = value<int64_t>(way, DNN_POINTWISE_AXIS);
    for (int64_t n = 0; n < y.count; n++) {
        const Index i = y.index(n);
        if (mode == DNN_INDEX)
            y.put(n, (float)i.i[axis]);
        else
            y.put(n, applied(mode, x.get(i, 0), b_object != nullptr ? b.get(i, 0) : 0,
                             t_object != nullptr ? t.get(i, 0) : 0));
    }
}

void run_reduction(Values *values, const Object *op)
{
    const Tensor x(values, at(op, DNN_OP_REDUCTION_X)), y(values, at(op, DNN_OP_REDUCTION_Y));
    const int way = value<int>(at(op, DNN_OP_REDUCTION_WAY), DNN_REDUCTION_OPERATOR);
    std::vector<float> sums((size_t)y.count, way == DNN_MAX ? -INFINITY : 0.0f);
    for (int64_t n = 0; n < x.count; n++) {
        const Index i = x.index(n);
        int64_t to = 0;
        for (int d = 0; d < 4; d++)
            to = to * y.dims[d] + (y.dims[d] == 1 ? 0 : i.i[d] * y.dims[d] / x.dims[d]);
        const float v = x.get(i, 0);
        float *sum = &sums[(size_t)to];
        *sum = way == DNN_MAX ? fmaxf(*sum, v) : way == DNN_ABS_MAX ? fmaxf(*sum, fabsf(v)) : *sum + v;
    }
    for (int64_t n = 0; n < y.count; n++)
        y.put(n, sums[(size_t)n]);
}

/* The same memory, read by other strides. */
void run_reshape(Values *values, const Object *op)
{
    const Tensor x(values, at(op, DNN_OP_RESHAPE_X)), y(values, at(op, DNN_OP_RESHAPE_Y));
    std::unordered_map<int64_t, float> by_offset;
    for (int64_t n = 0; n < x.count; n++) {
        const Index i = x.index(n);
        by_offset[x.offset(i)] = x.get(i, 0);
    }
    for (int64_t n = 0; n < y.count; n++)
        y.put(n, by_offset.at(y.offset(y.index(n))));
}

/* Every tensor of the graph in memory has its pointer. */
bool has_pointers(const Values *values, const Object *graph)
{
    for (int i = 0; i < graph->counts.at(DNN_GRAPH_OPS); i++)
        for (const auto &entry : at(graph, DNN_GRAPH_OPS, i)->bytes) {
            const Object *tensor = at(at(graph, DNN_GRAPH_OPS, i), entry.first);
            if (tensor->type == DNN_TENSOR && !value<bool>(tensor, DNN_TENSOR_VIRTUAL) &&
                values->memory.count(value<int64_t>(tensor, DNN_TENSOR_UID)) == 0)
                return false;
        }
    return true;
}

} // namespace

extern "C" {
size_t cudnnGetVersion(void)
{
    int major = 9, minor = 19, patch = 0;
    const char *text = getenv("EMULATE_CUDNN");
    if (text != nullptr)
        sscanf(text, "%d.%d.%d", &major, &minor, &patch);
    return (size_t)(10000 * major + 100 * minor + patch);
}
int cudnnCreate(void **ret_handle)
{
    static int handle;
    *ret_handle = &handle;
    return 0;
}
int cudnnDestroy(void *)
{
    return 0;
}
int cudnnSetStream(void *, void *)
{
    return 0;
}
void cudnnGetLastErrorString(char *text, size_t size)
{
    snprintf(text, size, "%s", last);
}
int cudnnBackendCreateDescriptor(int type, void **ret_descriptor)
{
    Object *object = new Object;
    object->type = type;
    *ret_descriptor = object;
    return 0;
}
int cudnnBackendDestroyDescriptor(void *descriptor)
{
    delete (Object *)descriptor;
    return 0;
}
int cudnnBackendSetAttribute(void *descriptor, int name, int type, int64_t count, const void *values)
{
    Object *object = (Object *)descriptor;
    const Attribute *attribute = attribute_of(object->type, name);
    if (attribute == nullptr || attribute->type != type || count < 1 || values == nullptr)
        return refuse(BAD, "an attribute that this descriptor does not have");
    if (object->finished)
        return refuse(BAD, "a finalised descriptor is changed");
    object->bytes[name].assign((const char *)values, (const char *)values + count * attribute->bytes);
    object->counts[name] = count;
    return 0;
}
int cudnnBackendFinalize(void *descriptor)
{
    Object *object = (Object *)descriptor;
    const int status = check(object);
    object->finished = status == 0;
    return status;
}
int cudnnBackendGetAttribute(void *descriptor, int name, int, int64_t count, int64_t *ret_count, void *ret_values)
{
    Object *object = (Object *)descriptor;
    if (object->type == DNN_HEURISTICS && name == DNN_HEURISTICS_RESULTS) {
        const bool none = getenv("EMULATE_CUDNN_NO_ENGINE") != nullptr;
        *ret_count = none ? 0 : 1;
        if (!none && count > 0) { /* a configuration remembers its graph */
            Object *config = *(Object **)ret_values;
            Object *graph = at(object, DNN_HEURISTICS_GRAPH);
            config->bytes[0].assign((const char *)&graph, (const char *)&graph + sizeof graph);
        }
        return none ? refuse(NO_SUPPORT, "no engine") : 0;
    }
    if (object->type != DNN_PLAN || name != DNN_PLAN_WORKSPACE)
        return refuse(BAD, "this cannot be asked for");
    *(int64_t *)ret_values = 1000; /* odd on purpose */
    *ret_count = 1;
    return 0;
}
int cudnnBackendExecute(void *, void *plan, void *pack)
{
    const Object *graph = at(at((Object *)plan, DNN_PLAN_CONFIG), 0), *given = (Object *)pack;
    Values values;
    if (given->counts.at(DNN_PACK_UIDS) != given->counts.at(DNN_PACK_POINTERS))
        return refuse(BAD, "pointers and numbers differ");
    for (int i = 0; i < given->counts.at(DNN_PACK_UIDS); i++)
        values.memory[value<int64_t>(given, DNN_PACK_UIDS, i)] = value<void *>(given, DNN_PACK_POINTERS, i);
    if (!has_pointers(&values, graph))
        return refuse(BAD, "a tensor without a pointer");
    for (int i = 0; i < graph->counts.at(DNN_GRAPH_OPS); i++) {
        const Object *op = at(graph, DNN_GRAPH_OPS, i);
        if (op->type == DNN_OP_MATMUL)
            run_matmul(&values, op);
        else if (op->type == DNN_OP_POINTWISE)
            run_pointwise(&values, op);
        else if (op->type == DNN_OP_REDUCTION)
            run_reduction(&values, op);
        else
            run_reshape(&values, op);
    }
    return 0;
}
}
