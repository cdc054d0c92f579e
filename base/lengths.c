/* base/lengths.c - see lengths.h. Tested: unit/base/test_lengths.c */
#include "base/lengths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void orr_lengths_fixed(double tokens, OrrLengths *out)
{
    *out = (OrrLengths){.count = 1, .tokens = {tokens}, .share = {1}};
}

static double below(double z)
{
    return erfc(-z / sqrt(2)) / 2;
}

static double cut(double tokens, double most)
{
    return most > 0 ? fmin(tokens, most) : tokens;
}

/* Strips of equal width in the logarithm, from `low` deviations above the median to `high`; the last one to `end`. */
static void fill_strips(double mean, double log_sd, const double ends[3], double most, OrrLengths *out)
{
    const double low = ends[0], width = (ends[1] - ends[0]) / ORR_LENGTHS_MOST, end = ends[2];
    out->count = ORR_LENGTHS_MOST;
    for (int i = 0; i < ORR_LENGTHS_MOST; i++) {
        const double from = i > 0 ? low + i * width : -INFINITY,
                     to = i + 1 < ORR_LENGTHS_MOST ? low + (i + 1) * width : end;
        const double share = below(to) - below(from), weighed = below(to - log_sd) - below(from - log_sd);
        out->share[i] = share;
        out->tokens[i] =
            cut(share > 0 ? mean * weighed / share : mean * exp(log_sd * (low + i * width)), most);
    }
}

void orr_lengths_log_normal(double mean, double log_sd, double most, OrrLengths *out)
{
    static const double ends[] = {-5, 6, INFINITY};
    if (log_sd > 0)
        fill_strips(mean, log_sd, ends, most, out);
    else
        orr_lengths_fixed(cut(mean, most), out);
}

static bool make_whole(OrrLengths *lengths)
{
    double sum = 0;
    for (int i = 0; i < lengths->count; i++)
        sum += lengths->share[i];
    for (int i = 0; sum > 0 && i < lengths->count; i++)
        lengths->share[i] /= sum;
    return sum > 1e-9;
}

bool orr_lengths_log_normal_below(double mean, double log_sd, double most, OrrLengths *out)
{
    if (!(log_sd > 0)) {
        orr_lengths_fixed(mean, out);
        return mean <= most;
    }
    const double end = log(most / mean) / log_sd + log_sd / 2, high = fmin(end, 6);
    const double ends[] = {fmin(-5, high - 1), high, end};
    fill_strips(mean, log_sd, ends, most, out);
    return make_whole(out);
}

bool orr_lengths_drop(OrrLengths *lengths, double most)
{
    if (lengths->tokens[0] > most)
        return false;
    while (lengths->tokens[lengths->count - 1] > most)
        lengths->count--;
    return make_whole(lengths);
}

void orr_lengths_histogram(const double *tokens, const double *weight, int count, double most,
                           OrrLengths *out)
{
    double sum = 0;
    out->count = count < ORR_LENGTHS_MOST ? count : ORR_LENGTHS_MOST;
    for (int i = 0; i < out->count; i++)
        sum += weight[i];
    for (int i = 0; i < out->count; i++) {
        out->tokens[i] = cut(tokens[i], most);
        out->share[i] = weight[i] / sum;
    }
}

double orr_lengths_quantile(const OrrLengths *lengths, double frac)
{
    double up_to = 0;
    for (int i = 0; i < lengths->count; i++) {
        up_to += lengths->share[i];
        if (frac <= up_to)
            return lengths->tokens[i];
    }
    return lengths->tokens[lengths->count - 1];
}

double orr_lengths_mean(const OrrLengths *lengths)
{
    return orr_lengths_longest(lengths, 1);
}

double orr_lengths_square(const OrrLengths *lengths)
{
    double sum = 0;
    for (int i = 0; i < lengths->count; i++)
        sum += lengths->share[i] * lengths->tokens[i] * lengths->tokens[i];
    return sum;
}

double orr_lengths_longest(const OrrLengths *lengths, double draws)
{
    double sum = 0, up_to = 0, before = 0;
    for (int i = 0; i < lengths->count; i++) {
        up_to += lengths->share[i];
        const double all = i + 1 < lengths->count ? pow(fmin(up_to, 1), draws) : 1;
        sum += lengths->tokens[i] * (all - before);
        before = all;
    }
    return sum;
}

double orr_lengths_longest_variance(const OrrLengths *lengths, double draws)
{
    OrrLengths squares = *lengths;
    const double mean = orr_lengths_longest(lengths, draws);
    for (int i = 0; i < squares.count; i++)
        squares.tokens[i] *= squares.tokens[i];
    return fmax(0, orr_lengths_longest(&squares, draws) - mean * mean);
}

enum { TEXTS = 4096, BUCKETS = 2048 };

/* Rows by the room that they have left, in `BUCKETS` steps of a row. */
double orr_lengths_packed(const OrrLengths *lengths, double capacity)
{
    int room[BUCKETS + 1] = {0}, rows = 0, strip = lengths->count - 1;
    double used = 0, above = 0, carried = 0; /* parts of a step that texts before it left */
    for (int i = 0; i < TEXTS; i++) {        /* from the longest quantile down */
        while (strip > 0 && above + lengths->share[strip] <= (i + 0.5) / TEXTS)
            above += lengths->share[strip--];
        const double tokens = fmin(lengths->tokens[strip], capacity);
        const double steps = tokens / capacity * BUCKETS + carried;
        const int need = (int)floor(steps + 1e-9);
        int left = need;
        carried = steps - need;
        used += tokens;
        if (need == 0)
            continue;
        while (left <= BUCKETS && room[left] == 0)
            left++;
        if (left > BUCKETS) {
            rows++;
            left = BUCKETS;
        } else {
            room[left]--;
        }
        room[left - need]++;
    }
    return rows > 0 ? fmin(1, used / (rows * capacity)) : 1;
}
