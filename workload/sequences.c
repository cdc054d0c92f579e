/* workload/sequences.c - see sequences.h. */
#include "workload/sequences.h"

#include <glib.h>
#include <math.h>
#include <stdlib.h>

#include "base/draws.h"
#include "base/error.h"
#include "base/memo.h"
#include "base/stats.h"
#include "costmodel/context.h"

enum { MOST_DRAWN = 1 << 16 };

void sequences_of(const SpecWorkload *workload, Sequences *ret_sequences)
{
    const SpecSampling *generation = &workload->generation;
    const SpecAnswerTokens *answer = &generation->answer_tokens;
    Sequences *s = ret_sequences;
    orr_lengths_log_normal(answer->mean, answer->log_sd, answer->max, &s->answers);
    s->count = floor((double)generation->prompts * generation->samples_per_prompt * generation->kept_frac);
    s->count = fmax(1, s->count);
    s->prompt = generation->prompt_tokens;
    s->answer = orr_lengths_mean(&s->answers);
    s->mean = s->prompt + s->answer;
    s->square = s->prompt * s->prompt + 2 * s->prompt * s->answer + orr_lengths_square(&s->answers);
    s->longest = s->prompt + orr_lengths_longest(&s->answers, s->count);
    s->room = workload->padded ? s->prompt + (answer->max > 0 ? answer->max : s->longest - s->prompt) : 0;
}

double sequences_document_tokens(double tokens, double pairs)
{
    double low = 0, high = 1e9 * tokens;
    if (pairs >= tokens * tokens / 2 * (1 - 1e-9))
        return 0;
    for (int i = 0; i < 200; i++) {
        const double middle = low > 0 ? sqrt(low * high) : high / 1e12;
        if (cost_document_pairs(tokens, middle) < pairs)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* --- replicas --- */

static int by_falling(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

static double drawn_length(const Sequences *sequences, OrrDraws *draws)
{
    double left = orr_draw(draws);
    int i = 0;
    while (i + 1 < sequences->answers.count && left > sequences->answers.share[i])
        left -= sequences->answers.share[i++];
    return sequences->prompt + sequences->answers.tokens[i];
}

/* In a heap with the least on top. */
static void sink(double *heap, int count, int at)
{
    const double value = heap[at];
    for (int below = 2 * at + 1; below < count; below = 2 * at + 1) {
        below += below + 1 < count && heap[below + 1] < heap[below] ? 1 : 0;
        if (heap[below] >= value)
            break;
        heap[at] = heap[below];
        at = below;
    }
    heap[at] = value;
}

static double most_dealt(const Sequences *sequences, const SpecWorkload *workload, int count, int replicas)
{
    g_autofree double *lengths = g_new(double, (gsize)count), *load = g_new0(double, (gsize)replicas);
    OrrDraws draws = orr_draws((uint64_t)workload->seed, 0);
    double sum = 0, most = 0;
    for (int i = 0; i < count; i++)
        sum += lengths[i] = drawn_length(sequences, &draws);
    if (workload->balanced)
        qsort(lengths, (size_t)count, sizeof *lengths, by_falling);
    for (int i = 0; i < count; i++) {
        if (workload->balanced && i >= replicas) {
            load[0] += lengths[i]; /* of whoever has least: on top of a heap */
            most = fmax(most, load[0]);
            sink(load, replicas, 0);
            continue;
        }
        load[i % replicas] += lengths[i];
        most = fmax(most, load[i % replicas]);
        for (int r = replicas / 2 - 1; workload->balanced && i == replicas - 1 && r >= 0; r--)
            sink(load, replicas, r);
    }
    return most / (sum / replicas);
}

/* Most tokens of a replica over the mean of them, of `count` drawn sequences: dealt in turn, or the longest first to
 * whoever has least. */
static double busiest(const Sequences *sequences, const SpecWorkload *workload, int count, int replicas)
{
    typedef struct Key {
        double prompt, mean, log_sd, max, count, replicas, seed, balanced;
    } Key;
    static OrrMemo memo = ORR_MEMO(Key, double, 256);
    const SpecAnswerTokens *answer = &workload->generation.answer_tokens;
    bool known = false;
    if (replicas < 2 || count < replicas || !(answer->log_sd > 0))
        return 1;
    const Key key = {sequences->prompt, answer->mean,   answer->log_sd,    answer->max, count,
                     replicas,          workload->seed, workload->balanced};
    double *frac = orr_memo_place(&memo, &key, &known);
    if (!known)
        *frac = most_dealt(sequences, workload, count, replicas);
    return *frac;
}

static int rounded_up(double value, int to)
{
    return (int)ceil(value / to - 1e-9) * to;
}

/* How many of one length make a micro-batch of `tokens`; 1 where lengths differ, or ranks cannot cut each. */
static int side_by_side(const Sequences *sequences, double in_row, int tokens, int cut)
{
    const double whole = round(in_row), mean = sequences->mean;
    const bool equal = sequences->room > 0 || sequences->square <= mean * mean * (1 + 1e-9);
    return equal && whole > 1 && fabs(in_row - whole) <= 1e-9 * whole && tokens % ((int)whole * cut) == 0
               ? (int)whole
               : 1;
}

SequenceRows sequences_rows(const Sequences *sequences, const SpecWorkload *workload, const Spec *spec,
                            double count, int micro_batch)
{
    const SpecParallel *parallel = &spec->parallel;
    const int replicas = MAX(1, parallel->data);
    const int cut = parallel->tensor * parallel->context * (parallel->context > 1 ? 2 : 1);
    const bool padded = sequences->room > 0;
    SequenceRows rows = {
        .busiest_frac =
            padded ? 1
                   : busiest(sequences, workload, (int)fmin(count, MOST_DRAWN / sqrt(replicas)), replicas)};
    const double each = padded ? sequences->room : sequences->mean; /* tokens of a sequence */
    const double own = fmax(1, ceil(count / replicas - 1e-9));      /* sequences of a replica */
    const double tokens = (padded ? own * each : fmax(count * each / replicas, each)) * rows.busiest_frac;
    const double most = workload->micro_batch_tokens > 0 ? workload->micro_batch_tokens
                                                         : micro_batch * each * rows.busiest_frac;
    rows.microbatches = (int)fmax(1, fmin(own, ceil(tokens / most - 1e-9)));
    if (parallel->virtual_stages > 1)
        rows.microbatches = rounded_up(rows.microbatches, MAX(1, parallel->pipeline));
    rows.tokens = MAX(cut, rounded_up(fmin(1e8, tokens / rows.microbatches), cut));
    const double in_row = tokens / rows.microbatches / each, /* sequences */
        pairs = padded ? in_row * each * each / 2 : in_row * sequences->square / 2;
    rows.document_tokens = sequences_document_tokens(rows.tokens, pairs);
    rows.sequences = workload->micro_batch_tokens > 0 ? 1 : side_by_side(sequences, in_row, rows.tokens, cut);
    if (rows.sequences > 1)
        rows.document_tokens = 0;
    return rows;
}

bool sequences_check_dealt(const Sequences *sequences, const SpecWorkload *workload, const Spec *spec,
                           const char *where, GError **error)
{
    const int64_t count = (int64_t)(sequences->count / workload->mini_batches + 1e-9);
    const int data = MAX(1, spec->parallel.data);
    return count % data == 0 ||
           orr_fail(
               error, ORR_ERROR_INPUT,
               "%s: %" G_GINT64_FORMAT
               " sequences of an optimizer step (prompts x samples_per_prompt / mini_batches) cannot be "
               "split evenly over %d data-parallel ranks; a multiple of %d can, or give a layout with fewer",
               where, count, data, data);
}

void sequences_put(const SequenceRows *rows, Spec *spec)
{
    const int side_by_side = MAX(1, rows->sequences), tokens = rows->tokens / side_by_side;
    /* Texts keep the positions that they have: a row of several needs no more of them. */
    if (spec->model.max_positions > 0)
        spec->model.max_positions = MAX(spec->model.max_positions, tokens);
    spec->training.micro_batch = side_by_side;
    spec->training.sequence_length = tokens;
    spec->training.document_tokens = rows->document_tokens;
    spec->training.global_batch = MAX(1, spec->parallel.data) * rows->microbatches * side_by_side;
    spec->training.tokens = 0;
    spec->training.samples = 0;
}
