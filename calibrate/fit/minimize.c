/* calibrate/fit/minimize.c - the simplex method. */
#include "calibrate/fit/minimize.h"

#include <glib.h>
#include <math.h>
#include <string.h>

#define FIRST_STEP           0.2
#define EVALUATIONS_A_NUMBER 250
#define SPREAD               1e-7 /* of the loss over the simplex at which it has settled */

typedef struct Search {
    CalNumber *numbers;
    int count;
    CalLoss loss;
    void *context;
    double prior;
    int evaluations;
    double point[CAL_MAX_NUMBERS + 1][CAL_MAX_NUMBERS];
    double value[CAL_MAX_NUMBERS + 1];
} Search;

static double evaluate(Search *search, const double *x)
{
    double prior = 0;
    for (int i = 0; i < search->count; i++) {
        CalNumber *number = &search->numbers[i];
        *number->value = CLAMP(number->start * exp(x[i]), number->min, number->max);
        prior += x[i] * x[i];
    }
    search->evaluations++;
    return search->loss(search->context) + search->prior * prior;
}

static void sort(Search *search)
{
    for (int i = 1; i <= search->count; i++)
        for (int j = i; j > 0 && search->value[j] < search->value[j - 1]; j--) {
            double point[CAL_MAX_NUMBERS], value = search->value[j];
            memcpy(point, search->point[j], sizeof point);
            memcpy(search->point[j], search->point[j - 1], sizeof point);
            memcpy(search->point[j - 1], point, sizeof point);
            search->value[j] = search->value[j - 1];
            search->value[j - 1] = value;
        }
}

/* The point at `c + t (c - worst)`. */
static void along(const Search *search, const double *center, double t, double *x)
{
    for (int i = 0; i < search->count; i++)
        x[i] = center[i] + t * (center[i] - search->point[search->count][i]);
}

static void replace_worst(Search *search, const double *x, double value)
{
    memcpy(search->point[search->count], x, sizeof search->point[0]);
    search->value[search->count] = value;
}

static void shrink(Search *search, double rate)
{
    for (int i = 1; i <= search->count; i++) {
        for (int j = 0; j < search->count; j++)
            search->point[i][j] = search->point[0][j] + rate * (search->point[i][j] - search->point[0][j]);
        search->value[i] = evaluate(search, search->point[i]);
    }
}

static void step(Search *search)
{
    const int n = search->count;
    const double expand = 1 + 2.0 / n, contract = 0.75 - 0.5 / n;
    double center[CAL_MAX_NUMBERS] = {0}, x[CAL_MAX_NUMBERS] = {0}, y[CAL_MAX_NUMBERS] = {0};
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            center[j] += search->point[i][j] / n;
    along(search, center, 1, x);
    double reflected = evaluate(search, x);
    if (reflected < search->value[0]) {
        along(search, center, expand, y);
        double expanded = evaluate(search, y);
        replace_worst(search, expanded < reflected ? y : x, fmin(expanded, reflected));
    } else if (reflected < search->value[n - 1]) {
        replace_worst(search, x, reflected);
    } else {
        along(search, center, reflected < search->value[n] ? contract : -contract, y);
        double contracted = evaluate(search, y);
        if (contracted < fmin(reflected, search->value[n]))
            replace_worst(search, y, contracted);
        else
            shrink(search, 1 - 1.0 / n);
    }
}

double cal_minimize(CalNumber *numbers, int count, CalLoss loss, void *context, double prior, int rounds)
{
    g_assert(count <= CAL_MAX_NUMBERS);
    if (count == 0)
        return loss(context);
    Search *search = g_new0(Search, 1);
    *search = (Search){.numbers = numbers, .count = count, .loss = loss, .context = context, .prior = prior};
    for (int i = 0; i < count; i++)
        numbers[i].start = CLAMP(*numbers[i].value, numbers[i].min, numbers[i].max);
    double best[CAL_MAX_NUMBERS] = {0}, least = 0;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i <= count; i++) {
            memcpy(search->point[i], best, sizeof best);
            if (i > 0)
                search->point[i][i - 1] += round % 2 == 0 ? FIRST_STEP : -FIRST_STEP;
            search->value[i] = evaluate(search, search->point[i]);
        }
        search->evaluations = 0;
        sort(search);
        while (search->evaluations < EVALUATIONS_A_NUMBER * count &&
               search->value[count] - search->value[0] > SPREAD) {
            step(search);
            sort(search);
        }
        memcpy(best, search->point[0], sizeof best);
        least = search->value[0];
    }
    evaluate(search, best);
    g_free(search);
    return least;
}
