/* base/lengths.h - how long texts are: a distribution of lengths, and what batches of draws from it come to.
 *
 * A distribution is a list of lengths with their shares: exact for a histogram, and of a log-normal one the conditional means
 * of narrow strips, so that its mean is exact. Draws are independent.
 */
#ifndef ORR_BASE_LENGTHS_H
#define ORR_BASE_LENGTHS_H

#include <stdbool.h>

#define ORR_LENGTHS_MOST 256

typedef struct OrrLengths {
    int count;                       /* at least 1 */
    double tokens[ORR_LENGTHS_MOST]; /* rising */
    double share[ORR_LENGTHS_MOST];  /* sum 1 */
} OrrLengths;

/* All of `tokens`. */
void orr_lengths_fixed(double tokens, OrrLengths *out);
/* Log-normal with this mean (above 0) and standard deviation of the logarithm (0: all equal), longer ones cut off at `most`
 * (0: none). The mean is that before the cut. */
void orr_lengths_log_normal(double mean, double log_sd, double most, OrrLengths *out);
/* The same without the texts of more than `most` tokens (above 0). False: fewer than one in 1e9 are left. */
bool orr_lengths_log_normal_below(double mean, double log_sd, double most, OrrLengths *out);
/* Leaves out all of more than `most` tokens. False: none is left. */
bool orr_lengths_drop(OrrLengths *lengths, double most);
/* `count` lengths, rising, with their weights in any unit, of which one is above 0; cut off at `most` (0: none). */
void orr_lengths_histogram(const double *tokens, const double *weight, int count, double most,
                           OrrLengths *out);

/* The length that a share `frac` of texts does not exceed. */
double orr_lengths_quantile(const OrrLengths *lengths, double frac);
double orr_lengths_mean(const OrrLengths *lengths);
/* Mean of the squares: what attention within a text goes by. */
double orr_lengths_square(const OrrLengths *lengths);
/* Mean of the longest of `draws` (at least 1), and the variance of it. */
double orr_lengths_longest(const OrrLengths *lengths, double draws);
double orr_lengths_longest_variance(const OrrLengths *lengths, double draws);
/* Share of rows of `capacity` tokens that is filled where texts are packed whole, the longest first, each into the row that
 * it leaves least room in. 4,096 texts, one at each quantile. Texts of more than a row fill one. Source: best-fit decreasing,
 * as packers of [Axolotl], [TRL] and NeMo do. */
double orr_lengths_packed(const OrrLengths *lengths, double capacity);

#endif
