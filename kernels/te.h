/* kernels/te.h - NVIDIA's Transformer Engine through its C functions, loaded when the program runs. Internal to kernels/.
 *
 * The library has no function that tells its version, but nvte_make_shape came in 2.4 (June 2025) together with the shapes
 * and the numbers of types below, which every later one keeps: a library without it is refused. What it does not take it
 * throws, past C; so each kernel is tried in a process of its own first (calibrate/measure/trial.cu).
 * Source: [TransformerEngine] transformer_engine.h, normalization.h, activation.h, cast.h of 2.4 to 2.20
 */
#ifndef ORR_KERNELS_TE_H
#define ORR_KERNELS_TE_H

#include "kernels/internal.h"

typedef void *TeTensor;

typedef enum { TE_BYTE = 0, TE_F32 = 4, TE_BF16 = 6, TE_E4M3 = 7, TE_E8M0 = 9 } TeType;
typedef enum { TE_SCALE_OF_TENSOR = 0, TE_SCALES_OF_32 = 1 } TeScaling;

/* What a tensor points at. */
typedef enum {
    TE_DATA = 0,
    TE_COLUMN_DATA = 1,
    TE_SCALE = 2,
    TE_AMAX = 3,
    TE_INVERSE_SCALE = 4,
    TE_COLUMN_INVERSE_SCALE = 5
} TePart;

#define TE_MOST_DIMENSIONS 15
typedef struct TeShape {
    size_t data[TE_MOST_DIMENSIONS], ndim;
} TeShape;

typedef struct TeBuffer {
    void *data;
    TeType type;
    TeShape shape;
} TeBuffer;

typedef struct TeLibrary {
    void *file;
    TeTensor (*create)(TeScaling scaling);
    void (*destroy)(TeTensor tensor);
    void (*set)(TeTensor *tensor, TePart part, const TeBuffer *buffer);
    TeShape (*shape)(TeTensor tensor);
    void (*rms_norm)(TeTensor x, TeTensor gamma, float eps, TeTensor y, TeTensor scale, TeTensor workspace,
                     int processors, bool zero_centered, void *stream);
    void (*rms_norm_backward)(TeTensor dy, TeTensor x, TeTensor scale, TeTensor gamma, TeTensor dx,
                              TeTensor dgamma, TeTensor workspace, int processors, bool zero_centered,
                              void *stream);
    void (*layer_norm)(TeTensor x, TeTensor gamma, TeTensor beta, float eps, TeTensor y, TeTensor mean,
                       TeTensor scale, TeTensor workspace, int processors, bool zero_centered, void *stream);
    void (*layer_norm_backward)(TeTensor dy, TeTensor x, TeTensor mean, TeTensor scale, TeTensor gamma,
                                TeTensor dx, TeTensor dgamma, TeTensor dbeta, TeTensor workspace,
                                int processors, bool zero_centered, void *stream);
    void (*swiglu)(TeTensor x, TeTensor y, void *stream);
    void (*swiglu_backward)(TeTensor dy, TeTensor x, TeTensor dx, void *stream);
    void (*quantize)(TeTensor x, TeTensor y, void *stream);
} TeLibrary;

/* Loads `libtransformer_engine.so`, or $ORRERY_TRANSFORMER_ENGINE, and finds what is above. False with a sentence. */
bool te_load(TeLibrary *ret_library, char *why, size_t size);

/* A function by its name; `at` points to a pointer to it. */
bool te_find(const TeLibrary *library, const char *name, void *at);

#endif
