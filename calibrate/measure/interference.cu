/* calibrate/measure/interference.cu - a product beside a copy or a collective: how much slower both become. */
#include "calibrate/measure/beside.h"
#include "calibrate/measure/meter.cuh"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EDGE       8192
#define MAX_EVENTS 200
#define WINDOW_S   0.06 /* both run side by side for at least this long */
#define ROUNDS     2    /* the product alone, then beside: as often; a full sweep comes by again */
#define HEAT       1    /* window of the product first, after which the power limit holds the clock */

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

/* Events of one side, in order. */
struct Marks {
    cudaEvent_t event[MAX_EVENTS + 1];
    Marks()
    {
        for (cudaEvent_t &e : event)
            cudaEventCreate(&e);
    }
    ~Marks()
    {
        for (cudaEvent_t e : event)
            cudaEventDestroy(e);
    }
    /* Seconds after `origin` of the first `count` + 1. */
    void read(cudaEvent_t origin, int count, double *ret_s) const
    {
        for (int i = 0; i <= count; i++) {
            float ms = 0;
            cudaEventElapsedTime(&ms, origin, event[i]);
            ret_s[i] = 1e-3 * ms;
        }
    }
};

/* Medians of the products and of the others, enqueued in turn so that both streams stay full; a count of 0 leaves that
 * side out. What ran while the other side did not is not counted. */
static bool run_both(Meter *meter, const KrnRun *run, Other *other, CalBesidePlan plan, double *ret_product_s,
                     double *ret_other_s, char *reason, size_t reason_size)
{
    Marks a, b;
    bool ok = true;
    cudaEventRecord(a.event[0], meter->stream);
    cudaEventRecord(b.event[0], other->stream());
    for (int i = 0, j = 0; ok && (i < plan.products || j < plan.others);) {
        const bool product =
            j >= plan.others || (i < plan.products && (int64_t)i * plan.others <= (int64_t)j * plan.products);
        if (product) {
            ok = krn_run_launch(meter->context, run, meter->stream) == KRN_OK;
            cudaEventRecord(a.event[++i], meter->stream);
            continue;
        }
        for (int k = 0; ok && k < plan.inner; k++)
            ok = other->enqueue(reason, reason_size);
        cudaEventRecord(b.event[++j], other->stream());
    }
    /* A collective whose peer is gone never ends: it is given up after a while, before all is waited for. */
    if (other->collective != nullptr && !other->collective->wait(reason, reason_size))
        ok = false;
    ok = cudaDeviceSynchronize() == cudaSuccess && ok;
    double product_s[MAX_EVENTS + 1] = {0}, other_s[MAX_EVENTS + 1] = {0};
    a.read(a.event[0], ok ? plan.products : 0, product_s);
    b.read(a.event[0], ok ? plan.others : 0, other_s);
    const bool both = plan.products > 0 && plan.others > 0;
    const double from_s = both ? fmax(product_s[0], other_s[0]) : -INFINITY,
                 until_s = both ? fmin(product_s[plan.products], other_s[plan.others]) : INFINITY;
    if (ok && plan.products > 0)
        *ret_product_s = cal_beside_median_s(product_s, plan.products, from_s, until_s);
    if (ok && plan.others > 0)
        *ret_other_s = cal_beside_median_s(other_s, plan.others, from_s, until_s) / plan.inner;
    return ok;
}

/* What every rank of a team does; the counts are rank 0's, so that all call the collective equally often. */
static CalOutcome measure(Meter *meter, const KrnRun *run, Other *other, CalSample *sample, char *reason,
                          size_t reason_size)
{
    double product_s = 0, other_s = 0;
    const CalBesidePlan first[2] = {{CAL_BESIDE_LEAST, 0, 1}, {0, CAL_BESIDE_LEAST, 1}};
    bool ok = run_both(meter, run, other, first[0], &product_s, &other_s, reason, reason_size) &&
              run_both(meter, run, other, first[1], &product_s, &other_s, reason, reason_size);
    CalOutcome outcome = meter_agree(meter, ok ? CAL_MEASURED : CAL_SKIPPED, reason, reason_size);
    CalBesidePlan plan = cal_beside_plan(product_s, other_s, WINDOW_S, MAX_EVENTS);
    if (outcome != CAL_MEASURED)
        return outcome;
    if (!cal_team_share(&meter->team, &plan, sizeof plan))
        return CAL_BROKEN;
    const CalBesidePlan products = {plan.products, 0, 1}, others = {0, plan.others, plan.inner};
    ok = run_both(meter, run, other, others, &product_s, &sample->other_s, reason, reason_size);
    for (int i = 0; ok && i < HEAT; i++)
        ok = run_both(meter, run, other, products, &product_s, &other_s, reason, reason_size);
    double beside_s[ROUNDS] = {0}, other_beside_s[ROUNDS] = {0};
    for (int i = 0; ok && i < ROUNDS; i++) {
        ok = run_both(meter, run, other, products, &sample->seconds[i], &other_s, reason, reason_size) &&
             run_both(meter, run, other, plan, &beside_s[i], &other_beside_s[i], reason, reason_size);
        sample->count = i + 1;
    }
    sample->beside_s = cal_summarise(beside_s, ROUNDS).median_s;
    sample->other_beside_s = cal_summarise(other_beside_s, ROUNDS).median_s;
    if (ok && !(sample->beside_s > 0 && sample->other_beside_s > 0 && sample->other_s > 0)) {
        snprintf(reason, reason_size, "the two did not run side by side");
        ok = false;
    }
    return meter_agree(meter, ok ? CAL_MEASURED : CAL_SKIPPED, reason, reason_size);
}

/* The product's buffers on this rank's GPU; what goes wrong goes wrong for all. */
static CalOutcome measure_beside(Meter *meter, Other *other, CalOutcome ready, CalSample *sample,
                                 char *reason, size_t reason_size)
{
    KrnShape shape = {};
    shape.m = shape.n = shape.k = EDGE;
    shape.groups = 1;
    KrnRun run;
    memset(&run, 0, sizeof run);
    const KrnKernel *gemm = krn_find("gemm");
    if (ready == CAL_MEASURED && krn_run_open(meter->context, gemm, &shape, 1, &run) != KRN_OK) {
        snprintf(reason, reason_size, "%s", krn_context_message(meter->context));
        ready = CAL_SKIPPED;
    }
    CalOutcome outcome = meter_agree(meter, ready, reason, reason_size);
    if (outcome == CAL_MEASURED)
        outcome = measure(meter, &run, other, sample, reason, reason_size);
    sample->flops = gemm->flops(&shape);
    krn_run_close(&run);
    return outcome;
}

CalOutcome meter_beside_collective(Meter *meter, const char *op, double bytes, int ranks, CalSample *sample,
                                   char *reason, size_t reason_size)
{
    Collective collective(meter, op, bytes, ranks);
    Other other = {meter, &collective, nullptr, nullptr, 0, cudaMemcpyDeviceToDevice};
    const CalOutcome ready = collective.open(reason, reason_size);
    return ready == CAL_MEASURED ? measure_beside(meter, &other, ready, sample, reason, reason_size) : ready;
}

static CalOutcome beside_copy(Meter *meter, const char *what, size_t bytes, CalSample *sample, char *reason,
                              size_t reason_size)
{
    const bool down = strcmp(what, "d2h") == 0;
    Other other = {meter,   nullptr, nullptr,
                   nullptr, bytes,   down ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice};
    cudaError_t error = cudaMalloc(&other.from, bytes);
    if (error == cudaSuccess)
        error = down ? cudaMallocHost(&other.to, bytes) : cudaMalloc(&other.to, bytes);
    const int ranks = meter->team.ranks;
    meter->team.ranks = 1; /* a copy is this GPU's alone */
    const CalOutcome outcome = error != cudaSuccess
                                   ? meter_failed(CAL_SKIPPED, "buffers", error, reason, reason_size)
                                   : measure_beside(meter, &other, CAL_MEASURED, sample, reason, reason_size);
    meter->team.ranks = ranks;
    cudaFree(other.from);
    if (down)
        cudaFreeHost(other.to);
    else
        cudaFree(other.to);
    return outcome;
}

CalOutcome meter_interference(Meter *meter, const CalPoint *point, double seconds, CalSample *ret_sample,
                              char *reason, size_t reason_size)
{
    (void)seconds;
    const char *what = point->name + strlen("gemm_beside_");
    if (strcmp(what, "d2h") == 0 || strcmp(what, "device_copy") == 0)
        return beside_copy(meter, what, (size_t)point->bytes, ret_sample, reason, reason_size);
    return meter_collective(meter, point, seconds, ret_sample, reason, reason_size);
}
