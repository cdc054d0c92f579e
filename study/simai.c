/* study/simai.c - see simai.h. Tested: unit/study/test_simai.c */
#include "study/simai.h"

#include <math.h>

#include "study/chakra_pass.h"

#define PS_PER_NS  1e3
#define MOST_LINES 4000000

/* What a line computes and then sends; `word` NULL: nothing. */
typedef struct Part {
    double ns;
    const char *word;
    double bytes;
} Part;

typedef struct Writer {
    const Report *report;
    ChakraRanks *ranks;
    ChakraPasses *passes;
    GString *lines;
    int64_t count;
    bool unknown; /* a collective that SimAI has no word for */
} Writer;

static void append_part(GString *out, const Part *part)
{
    g_string_append_printf(out, "\t%.0f\t%s\t%.0f", part->ns, part->word != NULL ? part->word : "NONE",
                           part->word != NULL ? fmax(1, round(part->bytes)) : 0);
}

static void add_line(Writer *w, const char *name, const Part *forward, const Part *input, const Part *weight)
{
    static const Part none = {0, NULL, 0};
    g_string_append_printf(w->lines, "%s\t-1", name);
    append_part(w->lines, forward != NULL ? forward : &none);
    append_part(w->lines, input != NULL ? input : &none);
    append_part(w->lines, weight != NULL ? weight : &none);
    g_string_append(w->lines, "\t100\n");
    w->count++;
}

/* --- passes --- */

static const char *word_of(TraceClass kind, bool experts)
{
    switch (kind) {
    case TRACE_ALL_REDUCE:
        return experts ? "ALLREDUCE_EP" : "ALLREDUCE";
    case TRACE_ALL_GATHER:
        return experts ? "ALLGATHER_EP" : "ALLGATHER";
    case TRACE_REDUCE_SCATTER:
        return experts ? "REDUCESCATTER_EP" : "REDUCESCATTER";
    case TRACE_ALL_TO_ALL:
        return experts ? "ALLTOALL_EP" : "ALLTOALL";
    default:
        return NULL;
    }
}

static Part part_of(Writer *w, const GArray *pieces, guint index, double whole_ps)
{
    const ChakraPiece *piece = &g_array_index(pieces, ChakraPiece, index);
    const double before_frac = index > 0 ? g_array_index(pieces, ChakraPiece, index - 1).until_frac : 0;
    const double begin_ns = round(before_frac * whole_ps / PS_PER_NS),
                 end_ns = round(piece->until_frac * whole_ps / PS_PER_NS);
    Part part = {fmax(0, end_ns - begin_ns), NULL, 0};
    if (!piece->collective)
        return part;
    const bool experts = piece->group == CHAKRA_GROUP_EXPERT;
    const int ranks = chakra_ranks_size(w->ranks, piece->group);
    part.word = word_of(piece->kind, experts);
    part.bytes = piece->bytes * (piece->kind == TRACE_ALL_GATHER ? ranks : 1);
    w->unknown |=
        part.word == NULL || (!experts && ranks != chakra_ranks_size(w->ranks, CHAKRA_GROUP_TENSOR));
    return part;
}

/* Pieces of the backward stand in lines from the last to the first. */
static void add_segment(Writer *w, int stage, int index)
{
    const SimStage *own = &w->report->plan.stages[stage];
    const SimSegment *segment = &own->segments[index];
    const GArray *ahead = chakra_passes_pieces(w->passes, w->ranks, SIM_TAG_FORWARD, stage, index),
                 *back = chakra_passes_pieces(w->passes, w->ranks, SIM_TAG_BACKWARD, stage,
                                              own->segment_count - 1 - index);
    const double ahead_ps = chakra_computing_ps(&segment->forward),
                 back_ps = chakra_computing_ps(&segment->recompute) +
                           chakra_computing_ps(&segment->backward_input) +
                           chakra_computing_ps(&segment->backward_weight);
    const guint lines = MAX(ahead->len, back->len);
    for (guint i = 0; i < lines; i++) {
        const guint from_end = lines - 1 - i;
        const Part forward = i < ahead->len ? part_of(w, ahead, i, ahead_ps) : (Part){0, NULL, 0},
                   input = from_end < back->len ? part_of(w, back, from_end, back_ps) : (Part){0, NULL, 0};
        add_line(w, "layer", &forward, &input, NULL);
    }
}

/* --- data-parallel ranks --- */

/* Dense parameters, then experts, as far as `work` sends any. */
static void add_data(Writer *w, const char *name, TraceClass kind, const SimWork *work)
{
    static const ChakraGroup groups[] = {CHAKRA_GROUP_REPLICAS, CHAKRA_GROUP_EXPERT_REPLICAS};
    const double sent[] = {(double)(work->scale_up_bytes + work->scale_out_bytes - work->second_bytes),
                           (double)work->second_bytes};
    for (int i = 0; i < 2; i++) {
        const int ranks = chakra_ranks_size(w->ranks, groups[i]);
        if (sent[i] <= 0 || ranks < 2)
            continue;
        g_autofree char *word = g_strdup_printf("%s%s", word_of(kind, false), i > 0 ? "_DP_EP" : "");
        const Part part = {0, word,
                           chakra_put_in(kind, ranks, sent[i]) * (kind == TRACE_ALL_GATHER ? ranks : 1)};
        add_line(w, name, NULL, NULL, &part);
    }
}

/* Stages of the first pipeline rank, in the order of its chunks. */
static int stage_at(const SimPlan *plan, int chunk)
{
    const int stages = plan->shape.ranks * plan->shape.chunks;
    for (int stage = 0; stage < stages; stage++) {
        int rank = 0, own = 0;
        sim_place_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks, stage, &rank, &own);
        if (rank == 0 && own == chunk)
            return stage;
    }
    return 0;
}

static void add_reduces(Writer *w, int stage, int index)
{
    add_data(w, "grad_reduce", chakra_reduce_class(w->report),
             &w->report->plan.stages[stage].segments[index].grad_reduce);
}

/* Gradients are reduced behind their layer where that overlaps; what stands first in the file runs last. */
static void add_step(Writer *w)
{
    const SimPlan *plan = &w->report->plan;
    const Part optimizer = {round(chakra_computing_ps(&plan->ranks[0].optimizer) / PS_PER_NS), NULL, 0};
    for (int chunk = 0; chunk < plan->shape.chunks; chunk++) {
        const SimStage *stage = &plan->stages[stage_at(plan, chunk)];
        for (int i = 0; i < stage->segment_count; i++)
            add_data(w, "param_gather", TRACE_ALL_GATHER, &stage->segments[i].param_gather);
    }
    add_line(w, "optimizer", NULL, &optimizer, NULL);
    for (int m = 0; m < plan->shape.microbatches; m++)
        for (int chunk = 0; chunk < plan->shape.chunks; chunk++) {
            const int stage = stage_at(plan, chunk);
            for (int i = 0; i < plan->stages[stage].segment_count; i++) {
                if (m == 0)
                    add_reduces(w, stage, i);
                if (m > 0 || plan->overlap_grad_reduce)
                    add_segment(w, stage, i);
            }
            for (int i = 0; m == 0 && !plan->overlap_grad_reduce && i < plan->stages[stage].segment_count;
                 i++)
                add_segment(w, stage, i);
        }
}

/* --- the file --- */

static bool takes(const Writer *w, GError **error)
{
    const SimPlan *plan = &w->report->plan;
    const Spec *spec = w->report->spec;
    const int expert_tensor = chakra_ranks_size(w->ranks, CHAKRA_GROUP_EXPERT_TENSOR);
    int64_t segments = 0;
    const char *what = chakra_lacks(w->report);
    what = what != NULL                 ? what
           : plan->zero >= 3            ? "gathers of parameters in forwards (parallel.zero 3)"
           : spec->parallel.context > 1 ? "rings of contexts (parallel.context)"
           : expert_tensor > 1 && chakra_ranks_size(w->ranks, CHAKRA_GROUP_EXPERT) > 1
               ? "experts that are split over tensor and expert ranks at once"
               : NULL;
    if (what != NULL)
        return orr_fail(error, ORR_ERROR_INPUT, "SimAI's workload has no words for %s; leave it out", what);
    for (int chunk = 0; chunk < plan->shape.chunks; chunk++)
        segments += plan->stages[stage_at(plan, chunk)].segment_count;
    return segments * plan->shape.microbatches <= MOST_LINES / 16 ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "SimAI's workload has lines for each layer and micro-batch, here of %" G_GINT64_FORMAT
                    " passes; give fewer micro-batches",
                    segments * plan->shape.microbatches);
}

static void append_header(const Writer *w, GString *out)
{
    const SimPlan *plan = &w->report->plan;
    const SimWork *send = &plan->stages[0].send_next;
    g_string_append_printf(
        out,
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: %d ep: %d pp: %d vpp: %d ga: %d "
        "all_gpus: %d checkpoints: 0 checkpoint_initiates: 0 pp_comm: %" G_GINT64_FORMAT "\n",
        chakra_ranks_size(w->ranks, CHAKRA_GROUP_TENSOR), chakra_ranks_size(w->ranks, CHAKRA_GROUP_EXPERT),
        plan->shape.ranks, plan->shape.chunks, plan->shape.microbatches, w->report->gpus,
        plan->shape.ranks > 1 ? send->scale_up_bytes + send->scale_out_bytes : 0);
    g_string_append_printf(out, "%" G_GINT64_FORMAT "\n", w->count);
}

bool simai_write(const Report *report, GString *out, GError **error)
{
    Writer w = {.report = report, .ranks = chakra_ranks_new(report->spec), .lines = g_string_new(NULL)};
    bool ok = takes(&w, error);
    if (ok) {
        w.passes = chakra_passes_new(report);
        add_step(&w);
        chakra_passes_free(w.passes);
        ok = !w.unknown ||
             orr_fail(error, ORR_ERROR_INPUT,
                      "SimAI's workload has no words for a collective of this step: its layers talk in "
                      "tensor and expert groups, by all-reduce, all-gather, reduce-scatter or all-to-all");
    }
    if (ok) {
        append_header(&w, out);
        g_string_append_len(out, w.lines->str, (gssize)w.lines->len);
    }
    chakra_ranks_free(w.ranks);
    g_string_free(w.lines, TRUE);
    return ok;
}
