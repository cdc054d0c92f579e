/* costmodel/lengths_memory.c - see lengths_memory.h. Tested: unit/costmodel/test_lengths_memory.c */
#include "costmodel/lengths_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/draws.h"
#include "base/memo.h"
#include "costmodel/activations.h"
#include "costmodel/caching.h"
#include "costmodel/freeze.h"
#include "costmodel/lengths.h"

enum {
    MOST_GROUPS = 8,      /* of layers, each of which makes what one does and keeps what all of it do */
    ORDERS = 5,           /* of which the median is taken */
    MOST_REQUESTS = 6000, /* of an order; micro-batches follow from it */
    LEAST_BATCHES = 24,
    MOST_BATCHES = 128,
    MOST_TENSORS = COST_MAX_OPS + COST_MAX_TENSORS,
    LOSS_TENSORS = 8,
};

/* Bytes of tensors at the mean length, in the order in which they are made. */
typedef struct Made {
    int count;
    double bytes[MOST_TENSORS];
    bool kept[MOST_TENSORS]; /* until the backward, if nothing runs again */
} Made;

/* What a micro-batch makes on this rank. */
typedef struct Batch {
    int groups, texts;
    double layers_each;     /* of a group */
    bool again, head;       /* layers run again from their inputs */
    double input_bytes;     /* of a layer */
    Made forward, backward; /* of a layer */
    double loss_kept[LOSS_TENSORS], loss_forward[LOSS_TENSORS], loss_backward[LOSS_TENSORS];
} Batch;

static void add_made(Made *made, double bytes, bool kept)
{
    if (bytes <= 0 || made->count == MOST_TENSORS)
        return;
    made->bytes[made->count] = bytes;
    made->kept[made->count++] = kept;
}

static double result_bytes(const CostOp *op)
{
    const CostMoved moved = cost_op_moved(op);
    return op->kind == COST_OP_COLLECTIVE ? 0 : moved.written + moved.undivided / 2;
}

/* Each op's result; of what it writes, tensors that are kept are theirs. */
static void list_forward(const CostOps *forward, Made *made)
{
    for (int i = 0; i < forward->count; i++) {
        double rest = result_bytes(&forward->op[i]);
        for (int k = 0; k < forward->kept_count; k++) {
            if (forward->kept[k].written_by != i)
                continue;
            add_made(made, forward->kept[k].bytes, true);
            rest -= forward->kept[k].bytes;
        }
        add_made(made, rest, false);
    }
}

static void list_backward(const CostOps *backward, Made *made)
{
    for (int i = 0; i < backward->count; i++)
        add_made(made, result_bytes(&backward->op[i]), false);
}

/* Of a logit's bytes: a 16-bit tensor where they are no multiple of 4, then tensors of 32 bits. */
static void list_loss(double bytes, double logits, double out[LOSS_TENSORS])
{
    double each = logits > 0 ? bytes / logits : 0;
    int count = 0;
    if (fmod(each, 4) > 0) {
        out[count++] = fmod(each, 4) * logits;
        each -= fmod(each, 4);
    }
    for (; each >= 4 && count < LOSS_TENSORS; each -= 4)
        out[count++] = 4 * logits;
}

static void list_head(const CostShape *shape, Batch *batch)
{
    g_autofree CostGraph *graph = g_new(CostGraph, 1);
    cost_graph(shape, cost_ops_head, graph);
    const CostOps *forward = &graph->pass[COST_FORWARD], *backward = &graph->pass[COST_BACKWARD_INPUT];
    double kept = 0, before = 0, behind = 0;
    const double logits = shape->tokens * shape->spec->model.vocab / shape->tensor;
    for (int i = 0; i < forward->kept_count; i++)
        kept += strcmp(forward->kept[i].name, "logits") == 0 ? forward->kept[i].bytes : 0;
    for (int i = 0; i < forward->count; i++)
        before = fmax(before, forward->op[i].temp_bytes);
    for (int i = 0; i < backward->count; i++)
        behind = fmax(behind, backward->op[i].temp_bytes);
    list_loss(kept, logits, batch->loss_kept);
    list_loss(before, logits, batch->loss_forward);
    list_loss(behind, logits, batch->loss_backward);
}

static void list_batch(const CostShape *shape, int layers, bool head, Batch *batch)
{
    g_autofree CostGraph *graph = g_new(CostGraph, 1);
    const int layer = shape->spec->model.layers - 1;
    memset(batch, 0, sizeof *batch);
    cost_graph_layer(shape, layer, graph);
    batch->groups = MIN(layers, MOST_GROUPS);
    batch->layers_each = (double)layers / MAX(batch->groups, 1);
    batch->texts = shape->spec->training.micro_batch;
    batch->head = head;
    batch->again = cost_layer_extent(shape->spec, layer, layer) == COST_RECOMPUTE_OP_ALL;
    batch->input_bytes = shape->part_tokens * shape->hidden * shape->stream_bytes;
    list_forward(&graph->pass[COST_FORWARD], &batch->forward);
    list_backward(&graph->pass[COST_BACKWARD_INPUT], &batch->backward);
    if (head)
        list_head(shape, batch);
}

/* --- the walk --- */

typedef struct Walk {
    CostCaching *caching;
    double longer; /* over the mean length */
    GArray *held;  /* int: blocks that stay until the backward, the latest last */
    int64_t requests;
} Walk;

static int take(Walk *walk, double bytes)
{
    walk->requests++;
    return cost_caching_take(walk->caching, (int64_t)(bytes * walk->longer));
}

/* Makes them in turn; results that nothing keeps go when the op behind their reader has made its own. */
static void run_list(Walk *walk, const Made *made, bool keeps, double times)
{
    int passing[2] = {-1, -1};
    for (int i = 0; i < made->count; i++) {
        const int block = take(walk, made->bytes[i] * (keeps && made->kept[i] ? times : 1));
        if (keeps && made->kept[i]) {
            g_array_append_val(walk->held, block);
            continue;
        }
        cost_caching_give(walk->caching, passing[1]);
        passing[1] = passing[0];
        passing[0] = block;
    }
    cost_caching_give(walk->caching, passing[1]);
    cost_caching_give(walk->caching, passing[0]);
}

static void release_to(Walk *walk, guint count)
{
    for (guint i = walk->held->len; i-- > count;)
        cost_caching_give(walk->caching, g_array_index(walk->held, int, i));
    g_array_set_size(walk->held, count);
}

static void take_loss(Walk *walk, const double bytes[LOSS_TENSORS])
{
    for (int i = 0; i < LOSS_TENSORS && bytes[i] > 0; i++) {
        const int block = take(walk, bytes[i]);
        g_array_append_val(walk->held, block);
    }
}

/* What is only for the moment is made first, then what stays; the former goes. */
static void run_loss(Walk *walk, const Batch *batch)
{
    const guint begin = walk->held->len;
    take_loss(walk, batch->loss_forward);
    const guint middle = walk->held->len;
    take_loss(walk, batch->loss_kept);
    for (guint i = begin; i < middle; i++)
        cost_caching_give(walk->caching, g_array_index(walk->held, int, i));
    if (middle > begin)
        g_array_remove_range(walk->held, begin, middle - begin);
    take_loss(walk, batch->loss_backward);
    release_to(walk, begin);
}

static void run_batch(Walk *walk, const Batch *batch)
{
    g_autofree guint *starts = g_new(guint, batch->groups + 1);
    for (int i = 0; i < batch->groups; i++) {
        starts[i] = walk->held->len;
        const int input = take(walk, batch->input_bytes * batch->layers_each);
        g_array_append_val(walk->held, input);
        run_list(walk, &batch->forward, !batch->again, batch->layers_each);
    }
    if (batch->head)
        run_loss(walk, batch);
    int gradient = take(walk, batch->input_bytes);
    for (int i = batch->groups; i-- > 0;) {
        if (batch->again)
            run_list(walk, &batch->forward, true, 1);
        run_list(walk, &batch->backward, false, 1);
        const int next = take(walk, batch->input_bytes);
        cost_caching_give(walk->caching, gradient);
        gradient = next;
        release_to(walk, starts[i]);
    }
    cost_caching_give(walk->caching, gradient);
}

/* The longest of a micro-batch's texts: its distribution is that of one to the power of their number. */
static double draw_longest(const OrrLengths *lengths, int texts, OrrDraws *draws)
{
    return orr_lengths_quantile(lengths, pow(orr_draw(draws), 1.0 / texts));
}

/* Beyond tensors, and tensors, at their most. */
typedef struct Most {
    double stranded_bytes, used_bytes;
} Most;

static Most run_order(const Batch *batch, const OrrLengths *lengths, double mean, uint64_t order)
{
    CostCaching caching;
    OrrDraws draws = orr_draws(order, 0);
    cost_caching_init(&caching);
    Walk walk = {.caching = &caching, .held = g_array_new(FALSE, FALSE, sizeof(int))};
    int64_t most = MOST_BATCHES;
    for (int64_t i = 0; i < most; i++) {
        walk.longer = draw_longest(lengths, batch->texts, &draws) / mean;
        run_batch(&walk, batch);
        if (i == 0)
            most = CLAMP(MOST_REQUESTS / MAX(walk.requests, 1), LEAST_BATCHES, MOST_BATCHES);
    }
    const Most found = {(double)(caching.peak_reserved_bytes - caching.peak_used_bytes),
                        (double)caching.peak_used_bytes};
    g_array_free(walk.held, TRUE);
    cost_caching_clear(&caching);
    return found;
}

static int by_bytes(const void *a, const void *b)
{
    const double x = ((const Most *)a)->stranded_bytes, y = ((const Most *)b)->stranded_bytes;
    return (x > y) - (x < y);
}

static uint64_t mixed(const void *data, gsize bytes, uint64_t sum)
{
    for (gsize i = 0; i + sizeof(uint64_t) <= bytes; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, (const char *)data + i, sizeof word);
        sum = orr_mix(sum ^ word);
    }
    return sum;
}

/* Of a search many points ask the same: kept by what a micro-batch makes and how long texts are. */
static Most median_order(const Batch *batch, const OrrLengths *lengths, double mean)
{
    typedef struct Key {
        uint64_t batch, lengths, again, mean;
    } Key;
    static OrrMemo memo = ORR_MEMO(Key, Most, 256);
    Key key = {mixed(batch, sizeof *batch, 1), mixed(lengths, sizeof *lengths, 2),
               mixed(batch, sizeof *batch, 3), 0};
    bool known = false;
    memcpy(&key.mean, &mean, sizeof mean);
    Most *place = orr_memo_place(&memo, &key, &known);
    if (!known) {
        Most each[ORDERS];
        for (int i = 0; i < ORDERS; i++)
            each[i] = run_order(batch, lengths, mean, (uint64_t)i + 1);
        qsort(each, ORDERS, sizeof each[0], by_bytes);
        *place = each[ORDERS / 2];
    }
    return *place;
}

double cost_lengths_stranded_bytes(const CostShape *shape, int layers, bool head, double room_bytes)
{
    const Spec *spec = shape->spec;
    const SpecLengths *given = &spec->training.lengths;
    OrrLengths lengths;
    if (!given->given || given->packed || spec->execution.compiled || spec->model.list.text != NULL ||
        spec->execution.framework.allocator.expandable_segments)
        return 0;
    memset(&lengths, 0, sizeof lengths);
    spec_lengths(given, spec->training.sequence_length, &lengths);
    if (lengths.count < 2 || spec->training.micro_batch < 1)
        return 0;
    g_autofree Batch *batch = g_new(Batch, 1);
    list_batch(shape, layers, head, batch);
    const Most most = median_order(batch, &lengths, shape->sequence);
    /* a GPU without room has its segments given back */
    return fmax(0, fmin(most.stranded_bytes, room_bytes - most.used_bytes));
}
