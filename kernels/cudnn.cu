/* kernels/cudnn.cu - attention by cuDNN as kernels of the sweep, in bf16 and e4m3: plans kept a shape, workspace, launches.
 *
 * The buffers are those of flash_forward and flash_backward, so that a layer takes either; in e4m3 the scales follow, as
 * cudnn_attention.cu numbers them. Where there is no cuDNN 9 a launch is unsupported and says so.
 */
#include "kernels/dnn.h"

#include <cuda_runtime.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/attention.h"

#define MAX_PLANS 8
#define ROUNDED   256 /* bytes */

/* Scales that put the numbers of the small check into e4m3's range (2^-9 to 448). */
#define S_SCALE  256.0f
#define DS_SCALE 1024.0f
#define DV_SCALE 16.0f
#define DQ_SCALE 256.0f

#define FIRST_BROKEN 91000 /* 9.10.0 and 9.10.1 compute wrong gradients. Source: [cudnn-frontend] */
#define LAST_BROKEN  91001
#define INFINITY_OK  91000 /* before, the masked scores are the least finite number */
#define SUM_CLEARED  90600 /* before, the caller clears the fp32 sums of dQ */

typedef struct DnnPlan {
    KrnShape shape;
    bool backward;
    DnnGraph graph;
    void *plan;
    int64_t workspace_bytes, sum_bytes;
} DnnPlan;

struct KrnDnnState {
    DnnLibrary library;
    void *handle;
    DnnPlan *plans[MAX_PLANS];
    int count, next;
    void *workspace;
    int64_t bytes;
    char why[160]; /* there is none */
};

static void plan_free(DnnPlan *plan)
{
    dnn_graph_free(&plan->graph);
    free(plan);
}

void krn_dnn_state_free(KrnDnnState *state)
{
    if (state == nullptr)
        return;
    for (int i = 0; i < state->count; i++)
        plan_free(state->plans[i]);
    if (state->handle != nullptr)
        state->library.destroy(state->handle);
    cudaFree(state->workspace);
    free(state);
}

/* Loaded at the first question; what came of it is kept. */
static KrnDnnState *state_of(KrnContext *context)
{
    KrnDnnState **slot = krn_dnn_state(context);
    if (*slot != nullptr)
        return *slot;
    KrnDnnState *state = (KrnDnnState *)calloc(1, sizeof *state);
    *slot = state;
    if (dnn_load(&state->library, state->why, sizeof state->why) &&
        state->library.create(&state->handle) != 0) {
        state->handle = nullptr;
        snprintf(state->why, sizeof state->why, "cannot be initialised on this GPU");
    }
    return state;
}

bool krn_dnn_version(KrnContext *context, char *text, size_t size)
{
    const KrnDnnState *state = state_of(context);
    const size_t version = state->handle != nullptr ? state->library.version : 0;
    snprintf(text, size, version > 0 ? "%zu.%zu.%zu" : "", version / 10000, version / 100 % 100,
             version % 100);
    return version > 0;
}

/* --- plans --- */

static bool same_shape(const KrnShape *a, const KrnShape *b)
{
    return a->batch == b->batch && a->seq == b->seq && a->heads == b->heads && a->kv_heads == b->kv_heads &&
           a->head_dim == b->head_dim && a->causal == b->causal && a->packed == b->packed &&
           a->math == b->math;
}

static KrnStatus plan_make(KrnContext *context, KrnDnnState *state, DnnPlan *plan)
{
    const KrnShape *s = &plan->shape;
    plan->graph.library = &state->library;
    plan->graph.next_uid = 1000;
    if (plan->backward)
        dnn_attention_backward(&plan->graph, s);
    else
        dnn_attention_forward(&plan->graph, s);
    if (!plan->graph.failed)
        plan->plan = dnn_plan(&plan->graph, state->handle, nullptr, &plan->workspace_bytes);
    if (plan->plan == nullptr)
        return krn_fail(context, KRN_UNSUPPORTED, "cuDNN", plan->graph.why);
    plan->workspace_bytes = (plan->workspace_bytes + ROUNDED - 1) / ROUNDED * ROUNDED;
    if (plan->backward && s->math != KRN_MATH_FP8)
        plan->sum_bytes = 4 * s->batch * s->seq * s->heads * s->head_dim;
    return KRN_OK;
}

static KrnStatus reserve(KrnContext *context, KrnDnnState *state, int64_t bytes)
{
    if (bytes <= state->bytes)
        return KRN_OK;
    cudaFree(state->workspace);
    state->workspace = nullptr;
    state->bytes = 0;
    if (cudaMalloc(&state->workspace, (size_t)bytes) != cudaSuccess) {
        (void)cudaGetLastError();
        return krn_fail(context, KRN_NO_MEMORY, "cuDNN", "no memory for its workspace");
    }
    state->bytes = bytes;
    return KRN_OK;
}

/* The plan of a shape with its workspace; the oldest gives way. */
static KrnStatus plan_get(KrnContext *context, const KrnShape *s, bool backward, DnnPlan **ret_plan)
{
    KrnDnnState *state = state_of(context);
    if (state->handle == nullptr)
        return krn_fail(context, KRN_UNSUPPORTED, "cuDNN", state->why);
    if (backward && state->library.version >= FIRST_BROKEN && state->library.version <= LAST_BROKEN)
        return krn_fail(context, KRN_UNSUPPORTED, "cuDNN", "9.10.0 and 9.10.1 compute wrong gradients");
    for (int i = 0; i < state->count; i++)
        if (state->plans[i]->backward == backward && same_shape(&state->plans[i]->shape, s)) {
            *ret_plan = state->plans[i];
            return KRN_OK;
        }
    DnnPlan *plan = (DnnPlan *)calloc(1, sizeof *plan);
    plan->shape = *s;
    plan->backward = backward;
    KrnStatus status = plan_make(context, state, plan);
    if (status == KRN_OK)
        status = reserve(context, state, plan->workspace_bytes + plan->sum_bytes);
    if (status != KRN_OK) {
        plan_free(plan);
        return status;
    }
    if (state->count == MAX_PLANS)
        plan_free(state->plans[state->next]);
    else
        state->count++;
    state->plans[state->next] = *ret_plan = plan;
    state->next = (state->next + 1) % MAX_PLANS;
    return KRN_OK;
}

/* --- launches --- */

typedef struct Pack {
    int64_t uids[KRN_MAX_BUFFERS + 4];
    void *pointers[KRN_MAX_BUFFERS + 4];
    int count;
} Pack;

static void give(Pack *pack, int64_t uid, void *pointer)
{
    pack->uids[pack->count] = uid;
    pack->pointers[pack->count++] = pointer;
}

static KrnStatus execute(KrnContext *context, KrnDnnState *state, const DnnPlan *plan, const Pack *values,
                         void *stream)
{
    const DnnLibrary *library = &state->library;
    void *pack = nullptr;
    int status = library->set_stream(state->handle, stream);
    if (status == 0)
        status = library->descriptor(DNN_VARIANT_PACK, &pack);
    if (status == 0)
        status = library->set(pack, DNN_PACK_UIDS, DNN_IS_INT64, values->count, values->uids);
    if (status == 0)
        status = library->set(pack, DNN_PACK_POINTERS, DNN_IS_POINTER, values->count, values->pointers);
    if (status == 0)
        status = library->set(pack, DNN_PACK_WORKSPACE, DNN_IS_POINTER, 1, &state->workspace);
    if (status == 0)
        status = library->finish(pack);
    if (status == 0)
        status = library->execute(state->handle, plan->plan, pack);
    if (pack != nullptr)
        library->release(pack);
    char why[48];
    snprintf(why, sizeof why, "attention failed with status %d", status);
    return status == 0 ? KRN_OK : krn_fail(context, KRN_FAILED, "cuDNN", why);
}

static KrnStatus launch(KrnContext *context, const KrnShape *s, void *const *d, void *stream, bool backward,
                        int buffer_count)
{
    DnnPlan *plan = nullptr;
    const KrnStatus found = plan_get(context, s, backward, &plan);
    if (found != KRN_OK)
        return found;
    KrnDnnState *state = state_of(context);
    float scale = 1 / sqrtf((float)s->head_dim), one = 1;
    float nothing = state->library.version >= INFINITY_OK ? -INFINITY : -FLT_MAX;
    const bool fp8 = s->math == KRN_MATH_FP8;
    Pack pack = {};
    for (int i = 0; i < buffer_count; i++)
        if (!(backward && fp8 && i == 6)) /* e4m3's engine keeps the row sums to itself */
            give(&pack, i + 1, d[i]);
    give(&pack, DNN_UID_SCALE, &scale);
    if (s->causal)
        give(&pack, DNN_UID_NOTHING, &nothing);
    if (backward && !fp8) {
        void *sum = (char *)state->workspace + plan->workspace_bytes;
        give(&pack, DNN_UID_ONE, &one);
        give(&pack, DNN_UID_QUERY_SUM, sum);
        if (state->library.version < SUM_CLEARED)
            cudaMemsetAsync(sum, 0, (size_t)plan->sum_bytes, (cudaStream_t)stream);
    }
    return execute(context, state, plan, &pack, stream);
}

/* --- kernels --- */

static KrnShape as_fp8(const KrnShape *s)
{
    KrnShape shape = *s;
    shape.math = KRN_MATH_FP8;
    return shape;
}

static KrnShape as_bf16(const KrnShape *s)
{
    KrnShape shape = *s;
    shape.math = KRN_MATH_BF16;
    return shape;
}

static KrnStatus launch_forward(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    const KrnShape shape = as_bf16(s);
    return launch(context, &shape, d, stream, false, 5);
}

static KrnStatus launch_backward(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    const KrnShape shape = as_bf16(s);
    return launch(context, &shape, d, stream, true, 10);
}

static KrnStatus launch_forward_fp8(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    const KrnShape shape = as_fp8(s);
    return launch(context, &shape, d, stream, false, 13);
}

static KrnStatus launch_backward_fp8(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    const KrnShape shape = as_fp8(s);
    return launch(context, &shape, d, stream, true, 26);
}

/* What the bf16 kernel has, in e4m3, and one number for each scale. */
static int scales(KrnBuffer *b, int count, const float *values, int scale_count, int largest_count)
{
    for (int i = 0; i < count; i++)
        if (b[i].type == KRN_BF16)
            b[i].type = KRN_F8;
    for (int i = 0; i < scale_count; i++)
        krn_set(&b[count++], KRN_INPUT, KRN_F32, 1, values[i], values[i]);
    for (int i = 0; i < largest_count; i++)
        krn_set(&b[count++], KRN_SCRATCH, KRN_F32, 1, 0, 0);
    return count;
}

static int forward_buffers(const KrnShape *s, KrnBuffer *b)
{
    return krn_flash_forward.buffers(s, b);
}

static int backward_buffers(const KrnShape *s, KrnBuffer *b)
{
    return krn_flash_backward.buffers(s, b);
}

static int forward_fp8_buffers(const KrnShape *s, KrnBuffer *b)
{
    const float values[] = {1, 1, 1, 1 / S_SCALE, S_SCALE, 1};
    return scales(b, forward_buffers(s, b), values, 6, 2);
}

static int backward_fp8_buffers(const KrnShape *s, KrnBuffer *b)
{
    const float values[] = {1,       1,        1,        1,        1,       1 / S_SCALE, 1 / DS_SCALE,
                            S_SCALE, DQ_SCALE, DQ_SCALE, DV_SCALE, DS_SCALE};
    return scales(b, backward_buffers(s, b), values, 12, 4);
}

static double forward_flops(const KrnShape *s)
{
    return krn_flash_forward.flops(s);
}

static double backward_flops(const KrnShape *s)
{
    return krn_flash_backward.flops(s);
}

static double moved(const KrnShape *s, int (*buffers)(const KrnShape *, KrnBuffer *))
{
    KrnBuffer b[KRN_MAX_BUFFERS];
    const int count = buffers(s, b);
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += b[i].role == KRN_SCRATCH ? 0 : krn_type_bytes(b[i].type) * (double)b[i].count;
    return sum;
}

static double forward_bytes(const KrnShape *s)
{
    return moved(s, forward_buffers);
}

static double backward_bytes(const KrnShape *s)
{
    return moved(s, backward_buffers);
}

static double forward_fp8_bytes(const KrnShape *s)
{
    return moved(s, forward_fp8_buffers);
}

static double backward_fp8_bytes(const KrnShape *s)
{
    return moved(s, backward_fp8_buffers);
}

static void reference_forward(const KrnShape *s, float *const *h)
{
    krn_flash_forward.reference(s, h);
}

static void reference_backward(const KrnShape *s, float *const *h)
{
    krn_flash_backward.reference(s, h);
}

static void scaled(float *values, int64_t count, float scale)
{
    for (int64_t i = 0; i < count; i++)
        values[i] *= scale;
}

static void reference_backward_fp8(const KrnShape *s, float *const *h)
{
    const int64_t tokens = s->batch * s->seq;
    krn_flash_backward.reference(s, h);
    scaled(h[7], tokens * s->heads * s->head_dim, DQ_SCALE);
    scaled(h[8], tokens * s->kv_heads * s->head_dim, DQ_SCALE);
    scaled(h[9], tokens * s->kv_heads * s->head_dim, DV_SCALE);
}

#define SIZES "batch seq heads kv_heads head_dim causal"

const KrnKernel krn_cudnn_forward = {"cudnn_forward", SIZES,          forward_flops,     forward_bytes,
                                     forward_buffers, launch_forward, reference_forward, 0.05};
const KrnKernel krn_cudnn_backward = {"cudnn_backward", SIZES,           backward_flops,     backward_bytes,
                                      backward_buffers, launch_backward, reference_backward, 0.05};
/* e4m3 has three bits after the point: 6 % of a number at most, three times in a row forward, five times backward; a wrong sum is
 * off by as much as its value. */
const KrnKernel krn_cudnn_forward_fp8 = {
    "cudnn_forward_fp8", SIZES, forward_flops, forward_fp8_bytes, forward_fp8_buffers, launch_forward_fp8,
    reference_forward,   0.2};
const KrnKernel krn_cudnn_backward_fp8 = {"cudnn_backward_fp8",   SIZES,
                                          backward_flops,         backward_fp8_bytes,
                                          backward_fp8_buffers,   launch_backward_fp8,
                                          reference_backward_fp8, 0.3};
