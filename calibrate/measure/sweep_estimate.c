/* calibrate/measure/sweep_estimate.c - how long a sweep will take, by counts and times, before it begins. */
#include <math.h>
#include <string.h>

#include "calibrate/measure/sweep.h"

#define QUICK_SECONDS   0.2  /* spent on the repeats of a point */
#define FULL_SECONDS    0.2  /* a visit more tells more than repeats more: they share clocks and neighbours */
#define POINT_S         0.05 /* buffers, the answer's check, 20 ms of warm-up */
#define LEAST_REPEATS   10
#define LEAST_CALLS     8   /* of a collective: connecting, checking, timing */
#define SUSTAINED_TIMES 100 /* calibrate/measure/together.cu */
#define BESIDE_WINDOWS  7
#define BESIDE_S        0.06

double cal_point_seconds(const CalSweepOptions *options)
{
    return options->seconds > 0 ? options->seconds : options->full ? FULL_SECONDS : QUICK_SECONDS;
}

CalRepeats cal_plan_repeats(double once_s, double seconds)
{
    const int inner = once_s < 1e-3 ? 20 : once_s < 1e-2 ? 5 : 1;
    const double each_s = once_s * inner, count = each_s > 0 ? seconds / each_s : 5,
                 least = 5 * each_s > 4 * seconds ? 2 : 5;
    return (CalRepeats){inner, (int)CLAMP(count, least, CAL_MAX_SAMPLES)};
}

/* Cautious: a GPU half as fast as an A100. The seconds of a point hold for what is faster. */
static double once_s(const CalPoint *point)
{
    static const double flops_per_s[KRN_MATH_COUNT] = {100e12, 100e12, 50e12,  8e12,
                                                       200e12, 200e12, 200e12, 400e12};
    const KrnShape *s = &point->shape;
    const double tokens = (double)(s->batch * s->seq);
    if (s->m > 0 && s->k > 0)
        return 2.0 * (double)s->m * (double)s->n * (double)s->k * (double)MAX(s->groups, 1) /
               flops_per_s[s->math];
    if (s->seq > 0 && s->cols > 0) /* a layer, both ways */
        return tokens * (24 * (double)(s->cols * s->cols) + 18 * (double)(s->cols * s->n)) / 100e12;
    if (s->seq > 0)
        return 4.0 * tokens * (double)(s->seq * s->heads * s->head_dim) * (s->causal ? 0.5 : 1) * 2.5 / 50e12;
    return 8.0 * (double)s->rows * (double)s->cols / 600e9;
}

static double link_s(const CalPoint *point)
{
    const double bytes_per_s = point->kind == CAL_POINT_COPY ? 10e9 : point->nodes > 1 ? 20e9 : 60e9;
    return point->bytes / bytes_per_s;
}

double cal_point_estimate_s(const CalPoint *point, const CalSweepOptions *options)
{
    const double seconds = cal_point_seconds(options);
    switch (point->kind) {
    case CAL_POINT_KERNEL:
    case CAL_POINT_DRIFT:
        return POINT_S + (strcmp(point->name, "transformer_layer") == 0 ? 2 : 1) *
                             fmax(seconds, LEAST_REPEATS * once_s(point));
    case CAL_POINT_COPY:
        return POINT_S + fmax(seconds, LEAST_REPEATS * link_s(point));
    case CAL_POINT_COLLECTIVE:
        return POINT_S + fmax(seconds, LEAST_CALLS * link_s(point));
    case CAL_POINT_INTERFERENCE:
        return POINT_S + BESIDE_WINDOWS * BESIDE_S;
    case CAL_POINT_TOGETHER:
        return strcmp(point->name, "together_layer") == 0      ? 1 + SUSTAINED_TIMES * seconds
               : strcmp(point->name, "together_cpu_adam") == 0 ? 2 + seconds
                                                               : 0.5 + seconds;
    case CAL_POINT_HOST: /* a disk of 1 GB/s, written before it is read */
        return strncmp(point->name, "file", 4) == 0 ? 3 * point->bytes / 1e9 : 1 + seconds;
    default:
        return POINT_S + seconds;
    }
}

double cal_sweep_estimate_s(const GArray *points, const CalSweepOptions *options)
{
    double sum = 0;
    for (guint i = 0; i < points->len; i++)
        sum += cal_point_estimate_s(&g_array_index(points, CalPoint, i), options);
    return sum;
}
