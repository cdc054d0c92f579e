/* tests/gpu/emulate/te.cc - Transformer Engine for the emulation, a library of its own that is loaded as the real one would be.
 *
 * Tensors are handles; a norm that is given no workspace says which one it wants; what is wrong is thrown, past C, as the real
 * one does it. Compiled with EMULATE_OLD it lacks nvte_make_shape, as before 2.4; with EMULATE_THROWING its SwiGLU throws.
 */
#include "kernels/te.h"

#include "cuda_bf16.h"

#include <math.h>
#include <stdexcept>
#include <string.h>

#define WORKSPACE 640

namespace
{
struct Tensor {
    TeScaling scaling;
    TeBuffer parts[6];
};

/* A queue keeps its order, so work runs when it is given: what the emulation of graphs defers is not asked here. */
void demand(bool ok, const char *what)
{
    if (!ok)
        throw std::runtime_error(what);
}

const TeBuffer &part(TeTensor tensor, TePart which, TeType type, size_t rows, size_t cols)
{
    const TeBuffer &buffer = ((const Tensor *)tensor)->parts[which];
    demand(buffer.data != nullptr && buffer.type == type, "a part is missing, or of another type");
    demand(buffer.shape.ndim == (cols > 0 ? 2u : 1u) && buffer.shape.data[0] == rows &&
               (cols == 0 || buffer.shape.data[1] == cols),
           "a part has another shape");
    return buffer;
}

float bf16(const TeBuffer &buffer, size_t i)
{
    return __bfloat162float(((const __nv_bfloat16 *)buffer.data)[i]);
}

void put(const TeBuffer &buffer, size_t i, double value)
{
    ((__nv_bfloat16 *)buffer.data)[i] = __float2bfloat16((float)value);
}

unsigned char e4m3(float x)
{
    const float size = fminf(fabsf(x), 448);
    const int exponent = size >= 0.015625f ? ilogbf(size) : -6;
    const int steps = (int)rintf(ldexpf(size, 3 - exponent));
    const int code = size >= 0.015625f ? ((exponent + 7) << 3) + steps - 8 : steps;
    return (unsigned char)((x < 0 ? 0x80 : 0) | code);
}

/* True when there is a workspace; else says which. */
bool has_workspace(TeTensor workspace, int processors)
{
    Tensor *tensor = (Tensor *)workspace;
    demand(processors > 0, "no multiprocessors");
    if (tensor->parts[TE_DATA].data == nullptr) {
        tensor->parts[TE_DATA] = {nullptr, TE_BYTE, {{WORKSPACE}, 1}};
        return false;
    }
    part(workspace, TE_DATA, TE_BYTE, WORKSPACE, 0);
    memset(tensor->parts[TE_DATA].data, 0xff, WORKSPACE);
    return true;
}

void norm(TeTensor x, TeTensor gamma, TeTensor beta, float eps, TeTensor y, TeTensor mean, TeTensor scale)
{
    const TeShape &shape = ((const Tensor *)x)->parts[TE_DATA].shape;
    const size_t rows = shape.data[0], cols = shape.data[1];
    const TeBuffer &in = part(x, TE_DATA, TE_BF16, rows, cols), &out = part(y, TE_DATA, TE_BF16, rows, cols);
    const TeBuffer &weight = part(gamma, TE_DATA, TE_BF16, cols, 0);
    const TeBuffer &inverse = part(scale, TE_DATA, TE_F32, rows, 0);
    for (size_t row = 0; row < rows; row++) {
        double mu = 0, square = 0;
        for (size_t c = 0; c < cols && beta != nullptr; c++)
            mu += bf16(in, row * cols + c) / (double)cols;
        for (size_t c = 0; c < cols; c++)
            square += pow(bf16(in, row * cols + c) - mu, 2) / (double)cols;
        const double r = 1 / sqrt(square + eps);
        for (size_t c = 0; c < cols; c++)
            put(out, row * cols + c,
                (bf16(in, row * cols + c) - mu) * r * bf16(weight, c) +
                    (beta != nullptr ? bf16(part(beta, TE_DATA, TE_BF16, cols, 0), c) : 0));
        ((float *)inverse.data)[row] = (float)r;
        if (mean != nullptr)
            ((float *)part(mean, TE_DATA, TE_F32, rows, 0).data)[row] = (float)mu;
    }
}

void norm_backward(TeTensor dy, TeTensor x, TeTensor mean, TeTensor scale, TeTensor gamma, TeTensor dx,
                   TeTensor dgamma)
{
    const TeShape &shape = ((const Tensor *)x)->parts[TE_DATA].shape;
    const size_t rows = shape.data[0], cols = shape.data[1];
    const TeBuffer &in = part(x, TE_DATA, TE_BF16, rows, cols), &grad = part(dy, TE_DATA, TE_BF16, rows, cols);
    const TeBuffer &weight = part(gamma, TE_DATA, TE_BF16, cols, 0);
    const TeBuffer &out = part(dx, TE_DATA, TE_BF16, rows, cols);
    const TeBuffer &weight_grad = part(dgamma, TE_DATA, TE_BF16, cols, 0);
    const float *r = (const float *)part(scale, TE_DATA, TE_F32, rows, 0).data;
    const float *mu = mean != nullptr ? (const float *)part(mean, TE_DATA, TE_F32, rows, 0).data : nullptr;
    double *sums = new double[cols]();
    for (size_t row = 0; row < rows; row++) {
        double plain = 0, projected = 0;
        const double centre = mu != nullptr ? mu[row] : 0;
        for (size_t c = 0; c < cols; c++) {
            const double hat = (bf16(in, row * cols + c) - centre) * r[row];
            const double wg = (double)bf16(grad, row * cols + c) * bf16(weight, c);
            plain += mu != nullptr ? wg / (double)cols : 0;
            projected += wg * hat / (double)cols;
            sums[c] += bf16(grad, row * cols + c) * hat;
        }
        for (size_t c = 0; c < cols; c++) {
            const double hat = (bf16(in, row * cols + c) - centre) * r[row];
            const double wg = (double)bf16(grad, row * cols + c) * bf16(weight, c);
            put(out, row * cols + c, r[row] * (wg - plain - hat * projected));
        }
    }
    for (size_t c = 0; c < cols; c++)
        put(weight_grad, c, sums[c]);
    delete[] sums;
}

void cast_tensor(const Tensor *in, TeTensor y)
{
    const size_t rows = in->parts[TE_DATA].shape.data[0], cols = in->parts[TE_DATA].shape.data[1];
    const Tensor *out = (const Tensor *)y;
    const TeBuffer &codes = part(y, TE_DATA, TE_E4M3, rows, cols);
    const float scale = *(const float *)part(y, TE_SCALE, TE_F32, 1, 0).data;
    float most = 0;
    for (size_t i = 0; i < rows * cols; i++) {
        const float value = bf16(in->parts[TE_DATA], i);
        most = fmaxf(most, fabsf(value));
        ((unsigned char *)codes.data)[i] = e4m3(value * scale);
        if (out->parts[TE_COLUMN_DATA].data != nullptr)
            ((unsigned char *)part(y, TE_COLUMN_DATA, TE_E4M3, cols, rows).data)[i % cols * rows + i / cols] =
                e4m3(value * scale);
    }
    *(float *)part(y, TE_AMAX, TE_F32, 1, 0).data = most;
    *(float *)part(y, TE_INVERSE_SCALE, TE_F32, 1, 0).data = 1 / scale;
}

size_t whole(size_t count, size_t unit)
{
    return (count + unit - 1) / unit * unit;
}

/* Blocks of 32 along rows or along columns. */
void cast_blocks(const Tensor *in, TeTensor y, bool columns)
{
    const size_t rows = in->parts[TE_DATA].shape.data[0], cols = in->parts[TE_DATA].shape.data[1];
    demand(rows % 32 == 0 && cols % 32 == 0, "mxfp8 takes whole blocks");
    const size_t high = columns ? whole(rows / 32, 4) : whole(rows, 128);
    const size_t wide = columns ? whole(cols, 128) : whole(cols / 32, 4);
    const TeBuffer &codes = part(y, columns ? TE_COLUMN_DATA : TE_DATA, TE_E4M3, rows, cols);
    const TeBuffer &scales =
        part(y, columns ? TE_COLUMN_INVERSE_SCALE : TE_INVERSE_SCALE, TE_E8M0, high, wide);
    memset(scales.data, 0, high * wide);
    for (size_t block = 0; block < rows * cols / 32; block++) {
        const size_t row = columns ? block / cols * 32 : block / (cols / 32);
        const size_t col = columns ? block % cols : block % (cols / 32) * 32, step = columns ? cols : 1;
        float most = 0;
        for (size_t i = 0; i < 32; i++)
            most = fmaxf(most, fabsf(bf16(in->parts[TE_DATA], row * cols + col + i * step)));
        uint32_t bits;
        const float wanted = most * (1 / 448.0f);
        memcpy(&bits, &wanted, sizeof bits);
        const int biased = (int)(bits >> 23 & 0xff) + ((bits & 0x7fffff) != 0);
        for (size_t i = 0; i < 32; i++) {
            const size_t at = row * cols + col + i * step;
            ((unsigned char *)codes.data)[at] = e4m3(ldexpf(bf16(in->parts[TE_DATA], at), 127 - biased));
        }
        ((unsigned char *)scales.data)[columns ? row / 32 * wide + col : row * wide + col / 32] =
            (unsigned char)biased;
    }
}
} // namespace

extern "C" {
#ifndef EMULATE_OLD
TeShape nvte_make_shape(const size_t *data, size_t ndim)
{
    TeShape shape = {};
    memcpy(shape.data, data, ndim * sizeof *data);
    shape.ndim = ndim;
    return shape;
}
#endif
TeTensor nvte_create_tensor(TeScaling scaling)
{
    Tensor *tensor = new Tensor();
    tensor->scaling = scaling;
    return tensor;
}
void nvte_destroy_tensor(TeTensor tensor)
{
    delete (Tensor *)tensor;
}
void nvte_set_tensor_param(TeTensor *tensor, TePart which, const TeBuffer *buffer)
{
    demand(which >= TE_DATA && which <= TE_COLUMN_INVERSE_SCALE, "no such part");
    ((Tensor *)*tensor)->parts[which] = *buffer;
}
TeShape nvte_tensor_shape(TeTensor tensor)
{
    return ((const Tensor *)tensor)->parts[TE_DATA].shape;
}
void nvte_rmsnorm_fwd(TeTensor x, TeTensor gamma, float eps, TeTensor y, TeTensor scale, TeTensor workspace,
                      int processors, bool, void *)
{
    if (has_workspace(workspace, processors))
        norm(x, gamma, nullptr, eps, y, nullptr, scale);
}
void nvte_rmsnorm_bwd(TeTensor dy, TeTensor x, TeTensor scale, TeTensor gamma, TeTensor dx, TeTensor dgamma,
                      TeTensor workspace, int processors, bool, void *)
{
    if (has_workspace(workspace, processors))
        norm_backward(dy, x, nullptr, scale, gamma, dx, dgamma);
}
void nvte_layernorm_fwd(TeTensor x, TeTensor gamma, TeTensor beta, float eps, TeTensor y, TeTensor mean,
                        TeTensor scale, TeTensor workspace, int processors, bool, void *)
{
    if (has_workspace(workspace, processors))
        norm(x, gamma, beta, eps, y, mean, scale);
}
void nvte_layernorm_bwd(TeTensor dy, TeTensor x, TeTensor mean, TeTensor scale, TeTensor gamma, TeTensor dx,
                        TeTensor dgamma, TeTensor dbeta, TeTensor workspace, int processors, bool, void *)
{
    if (!has_workspace(workspace, processors))
        return;
    norm_backward(dy, x, mean, scale, gamma, dx, dgamma);
    const TeBuffer &bias = ((const Tensor *)dbeta)->parts[TE_DATA];
    memset(bias.data, 0, 2 * bias.shape.data[0]);
}
void nvte_swiglu(TeTensor x, TeTensor y, void *)
{
    const TeShape &shape = ((const Tensor *)y)->parts[TE_DATA].shape;
    const size_t rows = shape.data[0], cols = shape.data[1];
    const TeBuffer &in = part(x, TE_DATA, TE_BF16, rows, 2 * cols), &out = part(y, TE_DATA, TE_BF16, rows, cols);
#ifdef EMULATE_THROWING
    demand(false, "this library takes no SwiGLU");
#endif
    for (size_t i = 0; i < rows * cols; i++) {
        const size_t at = i / cols * 2 * cols + i % cols;
        const double g = bf16(in, at);
        put(out, i, g / (1 + exp(-g)) * bf16(in, at + cols));
    }
}
void nvte_dswiglu(TeTensor dy, TeTensor x, TeTensor dx, void *)
{
    const TeShape &shape = ((const Tensor *)dy)->parts[TE_DATA].shape;
    const size_t rows = shape.data[0], cols = shape.data[1];
    const TeBuffer &in = part(x, TE_DATA, TE_BF16, rows, 2 * cols), &grad = part(dy, TE_DATA, TE_BF16, rows, cols);
    const TeBuffer &out = part(dx, TE_DATA, TE_BF16, rows, 2 * cols);
    for (size_t i = 0; i < rows * cols; i++) {
        const size_t at = i / cols * 2 * cols + i % cols;
        const double g = bf16(in, at), u = bf16(in, at + cols), d = bf16(grad, i), s = 1 / (1 + exp(-g));
        put(out, at, d * u * s * (1 + g * (1 - s)));
        put(out, at + cols, d * g * s);
    }
}
void nvte_quantize(TeTensor x, TeTensor y, void *)
{
    const Tensor *in = (const Tensor *)x;
    if (((const Tensor *)y)->scaling == TE_SCALE_OF_TENSOR) {
        cast_tensor(in, y);
        return;
    }
    cast_blocks(in, y, false);
    cast_blocks(in, y, true);
}
}
