/* calibrate/measure/interference.cu - a product beside a copy or a collective: how much slower both become. */
#include "calibrate/measure/meter.cuh"

#include <stdio.h>
#include <string.h>

#define EDGE       8192
#define MAX_EVENTS 200
#define WINDOW_S   0.15 /* both run side by side for about this long */

struct Other {
    Meter *meter;
    Collective *collective; /* null: a copy */
    void *to, *from;
    size_t bytes;
    cudaMemcpyKind kind;

    cudaStream_t stream() const
    {
        return collective != nullptr ? meter->streams[0] : meter->side;
    }
    bool enqueue(char *reason, size_t reason_size)
    {
        if (collective != nullptr)
            return collective->enqueue(reason, reason_size);
        const cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, meter->side);
        if (error != cudaSuccess)
            snprintf(reason, reason_size, "copy: %s", cudaGetErrorString(error));
        return error == cudaSuccess;
    }
};

/* Medians of the products and of the others, enqueued in turn so that both streams stay full for the whole window; a
 * count of 0 leaves that side out. What ran after the other side had ended is not counted. */
static bool run_both(Meter *meter, const KrnRun *run, Other *other, int products, int others,
                     double *ret_product_s, double *ret_other_s, char *reason, size_t reason_size)
{
    cudaEvent_t a[MAX_EVENTS + 1], b[MAX_EVENTS + 1];
    for (int i = 0; i <= MAX_EVENTS; i++) {
        cudaEventCreate(&a[i]);
        cudaEventCreate(&b[i]);
    }
    bool ok = true;
    cudaEventRecord(a[0], meter->stream);
    cudaEventRecord(b[0], other->stream());
    for (int i = 0, j = 0; ok && (i < products || j < others);) {
        const bool product = j >= others || (i < products && (int64_t)i * others <= (int64_t)j * products);
        if (product) {
            ok = krn_run_launch(meter->context, run, meter->stream) == KRN_OK;
            cudaEventRecord(a[++i], meter->stream);
        } else {
            ok = other->enqueue(reason, reason_size);
            cudaEventRecord(b[++j], other->stream());
        }
    }
    ok = cudaDeviceSynchronize() == cudaSuccess && ok;
    double product_s[MAX_EVENTS], other_s[MAX_EVENTS];
    float ms = 0;
    const int product_count = others > 0 ? products * 3 / 4 : products,
              other_count = products > 0 ? others * 3 / 4 : others;
    for (int i = 0; i < product_count; i++) {
        cudaEventElapsedTime(&ms, a[i], a[i + 1]);
        product_s[i] = 1e-3 * ms;
    }
    for (int i = 0; i < other_count; i++) {
        cudaEventElapsedTime(&ms, b[i], b[i + 1]);
        other_s[i] = 1e-3 * ms;
    }
    if (product_count > 0)
        *ret_product_s = cal_summarise(product_s, product_count).median_s;
    if (other_count > 0)
        *ret_other_s = cal_summarise(other_s, other_count).median_s;
    for (int i = 0; i <= MAX_EVENTS; i++) {
        cudaEventDestroy(a[i]);
        cudaEventDestroy(b[i]);
    }
    return ok;
}

static int repeats(double window_s, double each_s)
{
    const int count = each_s > 0 ? (int)(window_s / each_s) + 1 : 8;
    return count < 8 ? 8 : count > MAX_EVENTS ? MAX_EVENTS : count;
}

static bool measure(Meter *meter, const KrnRun *run, Other *other, CalSample *sample, char *reason,
                    size_t reason_size)
{
    double product_s = 0, other_s = 0;
    if (!run_both(meter, run, other, 8, 0, &product_s, &other_s, reason, reason_size) ||
        !run_both(meter, run, other, 0, 8, &product_s, &other_s, reason, reason_size))
        return false;
    const int products = repeats(WINDOW_S, product_s), others = repeats(WINDOW_S, other_s);
    for (int i = 0; i < 5; i++) {
        if (!run_both(meter, run, other, products, 0, &product_s, &other_s, reason, reason_size))
            return false;
        sample->seconds[i] = product_s;
        sample->count = i + 1;
    }
    if (!run_both(meter, run, other, 0, others, &product_s, &other_s, reason, reason_size))
        return false;
    sample->other_s = other_s;
    return run_both(meter, run, other, products, others, &sample->beside_s, &sample->other_beside_s, reason,
                    reason_size);
}

CalOutcome meter_interference(Meter *meter, const CalPoint *point, double seconds, CalSample *ret_sample,
                              char *reason, size_t reason_size)
{
    (void)seconds;
    const char *what = point->name + strlen("gemm_beside_");
    const bool copy = strcmp(what, "d2h") == 0 || strcmp(what, "device_copy") == 0;
    const size_t bytes = (size_t)point->bytes;
    Collective collective(meter, what, copy ? 4096 : point->bytes, copy ? 1 : point->gpus);
    Other other = {meter,   copy ? nullptr : &collective,
                   nullptr, nullptr,
                   bytes,   strcmp(what, "d2h") == 0 ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice};
    cudaError_t error = cudaSuccess;
    if (copy) {
        error = cudaMalloc(&other.from, bytes);
        if (error == cudaSuccess)
            error = other.kind == cudaMemcpyDeviceToHost ? cudaMallocHost(&other.to, bytes)
                                                         : cudaMalloc(&other.to, bytes);
    }
    CalOutcome outcome = error != cudaSuccess
                             ? meter_failed(CAL_SKIPPED, "buffers", error, reason, reason_size)
                         : copy ? CAL_MEASURED
                                : collective.open(reason, reason_size);
    KrnShape shape = {};
    shape.m = shape.n = shape.k = EDGE;
    shape.groups = 1;
    KrnRun run;
    const KrnKernel *gemm = krn_find("gemm");
    if (outcome == CAL_MEASURED && krn_run_open(meter->context, gemm, &shape, 1, &run) != KRN_OK) {
        snprintf(reason, reason_size, "%s", krn_context_message(meter->context));
        outcome = CAL_SKIPPED;
    } else if (outcome == CAL_MEASURED) {
        outcome = measure(meter, &run, &other, ret_sample, reason, reason_size) ? CAL_MEASURED : CAL_SKIPPED;
        ret_sample->flops = gemm->flops(&shape);
        krn_run_close(&run);
    }
    cudaFree(other.from);
    if (other.kind == cudaMemcpyDeviceToHost)
        cudaFreeHost(other.to);
    else
        cudaFree(other.to);
    return outcome;
}
