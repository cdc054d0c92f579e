/* kernels/layer.cu - kernels made of kernels: attention with the scores in memory, and a whole transformer layer.
 *
 * Both are lists of steps over shared buffers. The same list is walked on the device by `launch` and on the host by
 * `reference`, and handed out by krn_layer_steps, so that the sum of the parts can be held against the whole.
 * The layer is of Llama's kind: RMS norm, packed projection, flash attention, projection, addition; RMS norm, gate
 * and up projection, SwiGLU, down projection, addition; forward, then backward with weight gradients added in fp32.
 * cols = hidden width, n = width of the feed-forward layer. No rotary embedding, no dropout.
 * Source: [Llama3]
 */
#include "kernels/internal.h"

/* --- walking --- */

static int64_t type_size(KrnType type)
{
    return (int64_t)krn_type_bytes(type);
}

static KrnStatus walk(KrnContext *context, const KrnBuffer *buffers, const KrnStep *steps, int count,
                      void *const *device, void *stream)
{
    KrnStatus status = KRN_OK;
    for (int i = 0; status == KRN_OK && i < count; i++) {
        KrnBuffer own[KRN_MAX_BUFFERS];
        void *pointers[KRN_MAX_BUFFERS];
        const int used = steps[i].kernel->buffers(&steps[i].shape, own);
        for (int j = 0; j < used; j++) {
            const int at = steps[i].buffers[j];
            pointers[j] = (char *)device[at] + steps[i].offsets[j] * type_size(buffers[at].type);
        }
        status = steps[i].kernel->launch(context, &steps[i].shape, pointers, stream);
    }
    return status;
}

KrnStatus krn_run_launch_step(KrnContext *context, const KrnRun *run, const KrnStep *step, void *stream)
{
    return walk(context, run->buffers, step, 1, run->device, stream);
}

/* Results are rounded to the type of their buffer before the next step reads them. */
static void walk_reference(const KrnBuffer *buffers, const KrnStep *steps, int count, float *const *host)
{
    for (int i = 0; i < count; i++) {
        KrnBuffer own[KRN_MAX_BUFFERS];
        float *pointers[KRN_MAX_BUFFERS];
        const int used = steps[i].kernel->buffers(&steps[i].shape, own);
        for (int j = 0; j < used; j++)
            pointers[j] = host[steps[i].buffers[j]] + steps[i].offsets[j];
        steps[i].kernel->reference(&steps[i].shape, pointers);
        for (int j = 0; j < used; j++) {
            const int at = steps[i].buffers[j];
            if (own[j].role != KRN_INPUT)
                for (int64_t e = 0; e < buffers[at].count; e++)
                    host[at][e] = krn_rounded(buffers[at].type, host[at][e]);
        }
    }
}

static KrnStep *add_step(KrnStep *steps, int *count, const KrnKernel *kernel, const KrnShape *shape)
{
    KrnStep *step = &steps[(*count)++];
    *step = KrnStep{};
    step->kernel = kernel;
    step->shape = *shape;
    return step;
}

static void use(KrnStep *step, int position, int buffer, int64_t offset)
{
    step->buffers[position] = buffer;
    step->offsets[position] = offset;
}

/* `count` buffers in the order of the kernel's own. */
static void use_all(KrnStep *step, const int *list, int count)
{
    for (int i = 0; i < count; i++)
        use(step, i, list[i], 0);
}

static KrnShape gemm_shape(KrnLayout layout, int64_t m, int64_t n, int64_t k, bool accumulate)
{
    KrnShape shape = {};
    shape.m = m;
    shape.n = n;
    shape.k = k;
    shape.groups = 1;
    shape.layout = layout;
    shape.accumulate_fp32 = accumulate;
    return shape;
}

static KrnShape row_shape(int64_t rows, int64_t cols)
{
    KrnShape shape = {};
    shape.rows = rows;
    shape.cols = cols;
    return shape;
}

/* --- attention with the scores in memory --- */

static int unfused_steps(const KrnShape *s, KrnStep *steps)
{
    int count = 0;
    KrnShape shape = gemm_shape(KRN_TN, s->seq, s->seq, s->head_dim, false);
    shape.groups = s->batch * s->heads;
    const int scores[] = {0, 1, 3};
    use_all(add_step(steps, &count, &krn_batched_gemm, &shape), scores, 3);
    KrnShape rows = row_shape(s->batch * s->heads * s->seq, s->seq);
    rows.head_dim = s->head_dim;
    rows.causal = s->causal;
    const int softmax[] = {3, 4};
    use_all(add_step(steps, &count, &krn_softmax, &rows), softmax, 2);
    shape = gemm_shape(KRN_NN, s->seq, s->head_dim, s->seq, false);
    shape.groups = s->batch * s->heads;
    const int values[] = {4, 2, 5};
    use_all(add_step(steps, &count, &krn_batched_gemm, &shape), values, 3);
    return count;
}

static int unfused_buffers(const KrnShape *s, KrnBuffer *b)
{
    const int64_t rows = s->batch * s->heads * s->seq;
    for (int i = 0; i < 3; i++)
        krn_set(&b[i], KRN_INPUT, KRN_BF16, rows * s->head_dim, -1, 1);
    krn_set(&b[3], KRN_SCRATCH, KRN_BF16, rows * s->seq, 0, 0);
    krn_set(&b[4], KRN_SCRATCH, KRN_BF16, rows * s->seq, 0, 0);
    krn_set(&b[5], KRN_OUTPUT, KRN_BF16, rows * s->head_dim, 0, 0);
    return 6;
}

static double unfused_flops(const KrnShape *s)
{
    return 4.0 * (double)s->batch * (double)s->heads * (double)s->seq * (double)s->seq * (double)s->head_dim;
}

static double unfused_bytes(const KrnShape *s)
{
    const double rows = (double)s->batch * (double)s->heads * (double)s->seq;
    return rows * (8.0 * (double)s->head_dim + 8.0 * (double)s->seq);
}

static KrnStatus launch_unfused(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    KrnBuffer buffers[KRN_MAX_BUFFERS];
    KrnStep steps[4];
    unfused_buffers(s, buffers);
    const int count = unfused_steps(s, steps);
    return walk(context, buffers, steps, count, d, stream);
}

static void reference_unfused(const KrnShape *s, float *const *h)
{
    KrnBuffer buffers[KRN_MAX_BUFFERS];
    KrnStep steps[4];
    unfused_buffers(s, buffers);
    walk_reference(buffers, steps, unfused_steps(s, steps), h);
}

const KrnKernel krn_attention_unfused = {"attention_unfused", "batch seq heads head_dim causal",
                                         unfused_flops,       unfused_bytes,
                                         unfused_buffers,     launch_unfused,
                                         reference_unfused,   0.05};

/* --- transformer layer --- */

enum LayerBuffer {
    X,     /* input */
    NORM1, /* weights */
    W_QKV,
    W_OUT,
    NORM2,
    W_UP,
    W_DOWN,
    Y_GRAD, /* gradient of the output */
    NORMED1,
    MEAN1,
    SCALE1,
    QKV,
    ATTENDED,
    LSE,
    PROJECTED,
    MIDDLE, /* after the first addition */
    NORMED2,
    MEAN2,
    SCALE2,
    UP,
    ACTIVE,
    DOWN,
    Y,
    ACTIVE_GRAD,
    UP_GRAD,
    NORMED_GRAD, /* of both norms' outputs */
    NORM_GRAD,   /* through the norm, before it joins the residual's */
    MIDDLE_GRAD,
    ATTENDED_GRAD,
    DOTS,
    QKV_GRAD,
    X_GRAD,
    NORM1_GRAD,
    W_QKV_GRAD,
    W_OUT_GRAD,
    NORM2_GRAD,
    W_UP_GRAD,
    W_DOWN_GRAD,
    LAYER_BUFFER_COUNT
};

static int64_t qkv_width(const KrnShape *s)
{
    return (s->heads + 2 * s->kv_heads) * s->head_dim;
}

static int layer_buffers(const KrnShape *s, KrnBuffer *b)
{
    const int64_t t = s->batch * s->seq, h = s->cols, f = s->n, q = s->heads * s->head_dim, p = qkv_width(s);
    const int64_t bf16[][2] = {
        {X, t * h},           {Y_GRAD, t * h},        {NORMED1, t * h},     {QKV, t * p},
        {ATTENDED, t * q},    {PROJECTED, t * h},     {MIDDLE, t * h},      {NORMED2, t * h},
        {UP, t * 2 * f},      {ACTIVE, t * f},        {DOWN, t * h},        {Y, t * h},
        {ACTIVE_GRAD, t * f}, {UP_GRAD, t * 2 * f},   {NORMED_GRAD, t * h}, {NORM_GRAD, t * h},
        {MIDDLE_GRAD, t * h}, {ATTENDED_GRAD, t * q}, {QKV_GRAD, t * p},    {X_GRAD, t * h}};
    for (const auto &entry : bf16)
        krn_set(&b[entry[0]], KRN_SCRATCH, KRN_BF16, entry[1], 0, 0);
    const int64_t fp32[][2] = {{MEAN1, t},  {SCALE1, t},         {MEAN2, t},
                               {SCALE2, t}, {LSE, t * s->heads}, {DOTS, t * s->heads}};
    for (const auto &entry : fp32)
        krn_set(&b[entry[0]], KRN_SCRATCH, KRN_F32, entry[1], 0, 0);
    const int64_t weights[][3] = {{W_QKV, W_QKV_GRAD, p * h},
                                  {W_OUT, W_OUT_GRAD, h * q},
                                  {W_UP, W_UP_GRAD, 2 * f * h},
                                  {W_DOWN, W_DOWN_GRAD, h * f}};
    const float spread = 1.7f / sqrtf((float)h);
    for (const auto &entry : weights) {
        krn_set(&b[entry[0]], KRN_INPUT, KRN_BF16, entry[2], -spread, spread);
        krn_set(&b[entry[1]], KRN_IN_OUT, KRN_F32, entry[2], 0, 0);
    }
    for (int i = 0; i < 2; i++) {
        krn_set(&b[i == 0 ? NORM1 : NORM2], KRN_INPUT, KRN_BF16, h, 0.5, 1.5);
        krn_set(&b[i == 0 ? NORM1_GRAD : NORM2_GRAD], KRN_IN_OUT, KRN_F32, h, 0, 0);
    }
    krn_set(&b[X], KRN_INPUT, KRN_BF16, t * h, -1, 1);
    krn_set(&b[Y_GRAD], KRN_INPUT, KRN_BF16, t * h, -1, 1);
    b[Y].role = b[X_GRAD].role = KRN_OUTPUT;
    return LAYER_BUFFER_COUNT;
}

/* y = x w^T, its two gradients. */
static void linear(KrnStep *steps, int *count, int64_t t, int64_t out, int64_t in, int x, int w, int y)
{
    const KrnShape shape = gemm_shape(KRN_TN, t, out, in, false);
    const int list[] = {x, w, y};
    use_all(add_step(steps, count, &krn_gemm, &shape), list, 3);
}

static void linear_backward(KrnStep *steps, int *count, int64_t t, int64_t out, int64_t in, int x, int w,
                            int dy, int dx, int dw)
{
    const KrnShape to_input = gemm_shape(KRN_NN, t, in, out, false);
    const int input[] = {dy, w, dx};
    use_all(add_step(steps, count, &krn_gemm, &to_input), input, 3);
    const KrnShape to_weight = gemm_shape(KRN_NT, out, in, t, true);
    const int weight[] = {dy, x, dw};
    use_all(add_step(steps, count, &krn_gemm, &to_weight), weight, 3);
}

static void simple(KrnStep *steps, int *count, const KrnKernel *kernel, int64_t rows, int64_t cols,
                   const int *list, int used)
{
    const KrnShape shape = row_shape(rows, cols);
    use_all(add_step(steps, count, kernel, &shape), list, used);
}

static const KrnKernel *attention_of(const KrnShape *s, bool backward)
{
    if (s->library)
        return backward ? &krn_cudnn_backward : &krn_cudnn_forward;
    return backward ? &krn_flash_backward : &krn_flash_forward;
}

static void attend(KrnStep *steps, int *count, const KrnShape *s, bool backward)
{
    KrnShape shape = *s;
    shape.packed = true;
    const int64_t k = s->heads * s->head_dim, v = k + s->kv_heads * s->head_dim;
    KrnStep *step = add_step(steps, count, attention_of(s, backward), &shape);
    use(step, 0, QKV, 0);
    use(step, 1, QKV, k);
    use(step, 2, QKV, v);
    use(step, 3, ATTENDED, 0);
    if (!backward) {
        use(step, 4, LSE, 0);
        return;
    }
    use(step, 4, ATTENDED_GRAD, 0);
    use(step, 5, LSE, 0);
    use(step, 6, DOTS, 0);
    use(step, 7, QKV_GRAD, 0);
    use(step, 8, QKV_GRAD, k);
    use(step, 9, QKV_GRAD, v);
}

int krn_layer_steps(const KrnShape *s, KrnStep *steps)
{
    const int64_t t = s->batch * s->seq, h = s->cols, f = s->n, q = s->heads * s->head_dim, p = qkv_width(s);
    int n = 0;
    const int norm1[] = {X, NORM1, NORMED1, MEAN1, SCALE1}, norm2[] = {MIDDLE, NORM2, NORMED2, MEAN2, SCALE2};
    const int add1[] = {X, PROJECTED, MIDDLE}, add2[] = {MIDDLE, DOWN, Y}, act[] = {UP, ACTIVE};
    simple(steps, &n, &krn_rms_norm, t, h, norm1, 5);
    linear(steps, &n, t, p, h, NORMED1, W_QKV, QKV);
    attend(steps, &n, s, false);
    linear(steps, &n, t, h, q, ATTENDED, W_OUT, PROJECTED);
    simple(steps, &n, &krn_residual_add, t, h, add1, 3);
    simple(steps, &n, &krn_rms_norm, t, h, norm2, 5);
    linear(steps, &n, t, 2 * f, h, NORMED2, W_UP, UP);
    simple(steps, &n, &krn_swiglu, t, f, act, 2);
    linear(steps, &n, t, h, f, ACTIVE, W_DOWN, DOWN);
    simple(steps, &n, &krn_residual_add, t, h, add2, 3);

    const int act_back[] = {UP, ACTIVE_GRAD, UP_GRAD};
    const int norm2_back[] = {MIDDLE, NORM2, MEAN2, SCALE2, NORMED_GRAD, NORM_GRAD, NORM2_GRAD};
    const int norm1_back[] = {X, NORM1, MEAN1, SCALE1, NORMED_GRAD, NORM_GRAD, NORM1_GRAD};
    const int join2[] = {Y_GRAD, NORM_GRAD, MIDDLE_GRAD}, join1[] = {MIDDLE_GRAD, NORM_GRAD, X_GRAD};
    linear_backward(steps, &n, t, h, f, ACTIVE, W_DOWN, Y_GRAD, ACTIVE_GRAD, W_DOWN_GRAD);
    simple(steps, &n, &krn_swiglu_backward, t, f, act_back, 3);
    linear_backward(steps, &n, t, 2 * f, h, NORMED2, W_UP, UP_GRAD, NORMED_GRAD, W_UP_GRAD);
    simple(steps, &n, &krn_rms_norm_backward, t, h, norm2_back, 7);
    simple(steps, &n, &krn_residual_add, t, h, join2, 3);
    linear_backward(steps, &n, t, h, q, ATTENDED, W_OUT, MIDDLE_GRAD, ATTENDED_GRAD, W_OUT_GRAD);
    attend(steps, &n, s, true);
    linear_backward(steps, &n, t, p, h, NORMED1, W_QKV, QKV_GRAD, NORMED_GRAD, W_QKV_GRAD);
    simple(steps, &n, &krn_rms_norm_backward, t, h, norm1_back, 7);
    simple(steps, &n, &krn_residual_add, t, h, join1, 3);
    return n;
}

static double layer_sum(const KrnShape *s, bool of_flops)
{
    KrnStep steps[KRN_MAX_STEPS];
    const int count = krn_layer_steps(s, steps);
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += of_flops ? steps[i].kernel->flops(&steps[i].shape) : steps[i].kernel->bytes(&steps[i].shape);
    return sum;
}

static double layer_flops(const KrnShape *s)
{
    return layer_sum(s, true);
}

static double layer_bytes(const KrnShape *s)
{
    return layer_sum(s, false);
}

static KrnStatus launch_layer(KrnContext *context, const KrnShape *s, void *const *d, void *stream)
{
    KrnBuffer buffers[KRN_MAX_BUFFERS];
    KrnStep steps[KRN_MAX_STEPS];
    layer_buffers(s, buffers);
    const int count = krn_layer_steps(s, steps);
    return walk(context, buffers, steps, count, d, stream);
}

static void reference_layer(const KrnShape *s, float *const *h)
{
    KrnBuffer buffers[KRN_MAX_BUFFERS];
    KrnStep steps[KRN_MAX_STEPS];
    layer_buffers(s, buffers);
    walk_reference(buffers, steps, krn_layer_steps(s, steps), h);
}

const KrnKernel krn_transformer_layer = {
    "transformer_layer", "batch seq heads kv_heads head_dim causal cols n",
    layer_flops,         layer_bytes,
    layer_buffers,       launch_layer,
    reference_layer,     0.1};
