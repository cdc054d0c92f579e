/* study/chakra.c - see chakra.h. Tested: unit/study/test_chakra.c, cli/chakra */
#include "study/chakra.h"

#include <math.h>

#include "base/json.h"
#include "study/chakra_pass.h"

#define PS_PER_US    1e6
#define NO_NODE      UINT64_MAX
#define MOST_PACKETS 20000000 /* instructions of all files */

typedef struct Walk {
    const Report *report;
    const SimProgram *program;
    ChakraRanks *ranks;
    ChakraPasses *passes;
    GString *out; /* of the file at hand */
    int64_t rank;
    int cls;
    uint64_t next;
    int64_t at[SIM_MAX_STREAMS];      /* instructions written */
    uint64_t *node[SIM_MAX_STREAMS];  /* [instruction] its last node, or that of the op before it */
    GArray *pending[SIM_MAX_STREAMS]; /* uint64_t: nodes that the stream's next op waits for */
    GHashTable *received;             /* "class stream instruction" -> node that received */
    int rings;                        /* messages around rings of contexts so far */
    GError **error;
} Walk;

/* --- nodes --- */

static uint64_t add(Walk *w, const ChakraNode *what, const uint64_t *deps, int dep_count)
{
    ChakraNode node = *what;
    node.id = w->next++;
    node.deps = deps;
    node.dep_count = dep_count;
    chakra_append_node(w->out, &node);
    return node.id;
}

static uint64_t add_compute(Walk *w, const char *name, double ps, const uint64_t *deps, int dep_count)
{
    return add(
        w, &(ChakraNode){.name = name, .kind = CHAKRA_COMPUTE, .micros = (uint64_t)llround(ps / PS_PER_US)},
        deps, dep_count);
}

static ChakraCollective collective_of(TraceClass kind)
{
    switch (kind) {
    case TRACE_ALL_GATHER:
        return CHAKRA_ALL_GATHER;
    case TRACE_REDUCE_SCATTER:
        return CHAKRA_REDUCE_SCATTER;
    case TRACE_ALL_TO_ALL:
        return CHAKRA_ALL_TO_ALL;
    case TRACE_ALL_REDUCE:
        return CHAKRA_ALL_REDUCE;
    default:
        return CHAKRA_BROADCAST;
    }
}

/* Around a ring of contexts: to the next one, from the one before. */
static uint64_t add_ring(Walk *w, double bytes, const uint64_t *deps, int dep_count)
{
    const int64_t before = chakra_ranks_beside(w->ranks, w->rank, -1),
                  next = chakra_ranks_beside(w->ranks, w->rank, 1);
    const int tag = w->rings++;
    const ChakraNode sent = {.name = "ring send",
                             .kind = CHAKRA_SEND,
                             .bytes = llround(bytes),
                             .from = (int)w->rank,
                             .to = (int)next,
                             .tag = tag},
                     got = {.name = "ring receive",
                            .kind = CHAKRA_RECEIVE,
                            .bytes = llround(bytes),
                            .from = (int)before,
                            .to = (int)w->rank,
                            .tag = tag};
    const uint64_t both[] = {add(w, &sent, deps, dep_count), add(w, &got, deps, dep_count)};
    return add_compute(w, "ring", 0, both, 2);
}

static uint64_t add_collective(Walk *w, TraceClass kind, ChakraGroup group, double bytes,
                               const uint64_t *deps, int dep_count)
{
    if (kind == TRACE_SEND_RECEIVE)
        return add_ring(w, bytes, deps, dep_count);
    return add(w,
               &(ChakraNode){.name = trace_class_word(kind),
                             .kind = CHAKRA_COLLECTIVE,
                             .bytes = llround(bytes),
                             .collective = collective_of(kind),
                             .group = chakra_ranks_group(w->ranks, group, w->rank)},
               deps, dep_count);
}

/* --- ops --- */

/* Which segment of its pass the op of an instruction is; -1: all. */
static int segment_of(const Walk *w, const SimList *list, int64_t index)
{
    const SimPlan *plan = &w->report->plan;
    const SimInstr *own = &list->instrs[index];
    const SimOp *op = &w->program->ops[own->op];
    int before = 0, behind = 0;
    for (int way = -1; way <= 1; way += 2)
        for (int64_t i = index + way; i >= 0 && i < list->count; i += way) {
            const SimInstr *instr = &list->instrs[i];
            if (instr->op == SIM_ONLY_WAITS)
                continue;
            const SimOp *other = &w->program->ops[instr->op];
            if (other->tag != op->tag || other->stage != op->stage || instr->microbatch != own->microbatch)
                break;
            *(way < 0 ? &before : &behind) += 1;
        }
    const int segments = plan->stages[op->stage % sim_plan_model_stages(plan)].segment_count;
    return segments > 1 && before + behind + 1 == segments ? before : -1;
}

static uint64_t add_pass(Walk *w, const SimList *list, int64_t index, const GArray *deps)
{
    const SimInstr *instr = &list->instrs[index];
    const SimOp *op = &w->program->ops[instr->op];
    const GArray *pieces =
        chakra_passes_pieces(w->passes, w->ranks, (SimTag)op->tag, op->stage, segment_of(w, list, index));
    const double whole_ps = chakra_computing_ps(&w->program->works[op->work]);
    g_autofree char *name = g_strdup_printf("%s %d", sim_tag_label((SimTag)op->tag), instr->microbatch);
    g_autoptr(GArray) after = g_array_copy((GArray *)deps),
                      beside = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    double done_ps = 0;
    for (guint i = 0; i < pieces->len; i++) {
        const ChakraPiece *piece = &g_array_index(pieces, ChakraPiece, i);
        const double until_ps = round(piece->until_frac * whole_ps / PS_PER_US) * PS_PER_US;
        if (until_ps > done_ps || (!piece->collective && beside->len == 0)) {
            const uint64_t node = add_compute(w, name, until_ps - done_ps,
                                              (const uint64_t *)(gpointer)after->data, (int)after->len);
            g_array_set_size(after, 0);
            g_array_append_val(after, node);
            done_ps = until_ps;
        }
        if (!piece->collective)
            continue;
        const uint64_t node = add_collective(w, piece->kind, piece->group, piece->bytes,
                                             (const uint64_t *)(gpointer)after->data, (int)after->len);
        if (!piece->beside)
            g_array_set_size(after, 0);
        g_array_append_val(piece->beside ? beside : after, node);
    }
    if (beside->len == 0)
        return g_array_index(after, uint64_t, 0);
    g_array_append_vals(after, beside->data, beside->len);
    return add_compute(w, name, 0, (const uint64_t *)(gpointer)after->data, (int)after->len);
}

static int32_t tag_of(const Walk *w, const SimOp *op, int32_t microbatch)
{
    const SimScheduleShape *shape = &w->report->plan.shape;
    if (op->stage < 0)
        return shape->ranks * shape->chunks * 2 * shape->microbatches; /* a norm that is passed on */
    return (op->stage * 2 + (op->tag == SIM_TAG_SEND_BACKWARD)) * shape->microbatches + microbatch;
}

/* The pipeline rank that waits for what class `cls` sends. */
static int receiver_of(const Walk *w, int cls, const SimOp *op)
{
    const SimPlan *plan = &w->report->plan;
    int rank = 0, chunk = 0;
    if (op->stage < 0)
        return cls + 1;
    sim_place_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks,
                 op->stage + (op->tag == SIM_TAG_SEND_BACKWARD ? -1 : 1), &rank, &chunk);
    return rank;
}

static ChakraNode message(const Walk *w, int from, const SimInstr *instr, bool receives)
{
    const SimOp *op = &w->program->ops[instr->op];
    const SimWork *work = &w->program->works[op->work];
    return (ChakraNode){.name = receives ? "receive" : sim_tag_label((SimTag)op->tag),
                        .kind = receives ? CHAKRA_RECEIVE : CHAKRA_SEND,
                        .bytes = MAX(1, work->scale_up_bytes + work->scale_out_bytes),
                        .from = (int32_t)chakra_ranks_at_stage(w->ranks, w->rank, from),
                        .to = (int32_t)chakra_ranks_at_stage(w->ranks, w->rank, receiver_of(w, from, op)),
                        .tag = tag_of(w, op, instr->microbatch)};
}

/* Who meets in a collective at a step's begin or end. */
static ChakraGroup group_of(const Walk *w, const SimOp *op)
{
    switch ((SimTag)op->tag) {
    case SIM_TAG_GRAD_NORM: /* the last communicator joins the ranks of one pipeline rank */
        return op->group == w->program->group_count - 1 ? CHAKRA_GROUP_STAGE : CHAKRA_GROUP_ALL;
    case SIM_TAG_EMBEDDING_REDUCE:
        return CHAKRA_GROUP_ENDS;
    case SIM_TAG_PARAM_GATHER:
        return CHAKRA_GROUP_GATHERS;
    default:
        return CHAKRA_GROUP_REPLICAS;
    }
}

/* Dense parameters among their replicas, and behind them experts among theirs. */
static int groups_of(const Walk *w, const SimOp *op, const SimWork *work, ChakraGroup ret_groups[2],
                     double ret_sent[2])
{
    const ChakraGroup group = group_of(w, op);
    const ChakraGroup experts =
        group == CHAKRA_GROUP_GATHERS ? CHAKRA_GROUP_EXPERT_GATHERS : CHAKRA_GROUP_EXPERT_REPLICAS;
    const double sent = (double)(work->scale_up_bytes + work->scale_out_bytes),
                 second = (double)work->second_bytes;
    int count = 0;
    if (work->part_ps[SIM_PART_DATA_COMM] <= 0)
        return 0;
    if (chakra_ranks_size(w->ranks, group) > 1 && (second <= 0 || sent > second)) {
        ret_groups[count] = group;
        ret_sent[count++] = sent - second;
    }
    if (chakra_ranks_size(w->ranks, experts) > 1 && second > 0) {
        ret_groups[count] = experts;
        ret_sent[count++] = second;
    }
    return count;
}

/* Reductions and gathers of a step's begin and end: what is computed for them, then they themselves. */
static uint64_t add_other(Walk *w, const SimInstr *instr, const GArray *deps)
{
    const SimOp *op = &w->program->ops[instr->op];
    const SimWork *work = &w->program->works[op->work];
    const char *name = sim_tag_label((SimTag)op->tag);
    const TraceClass kind = op->tag == SIM_TAG_PARAM_GATHER  ? TRACE_ALL_GATHER
                            : op->tag == SIM_TAG_GRAD_REDUCE ? chakra_reduce_class(w->report)
                                                             : TRACE_ALL_REDUCE;
    ChakraGroup groups[2];
    double sent[2];
    const int count = groups_of(w, op, work, groups, sent);
    const double own_ps = count > 0 ? chakra_computing_ps(work) : (double)sim_work_duration_ps(work);
    const uint64_t *before = (const uint64_t *)(gpointer)deps->data;
    int befores = (int)deps->len;
    uint64_t node = NO_NODE;
    if (own_ps > 0 || count == 0) {
        node = add_compute(w, name, own_ps, before, befores);
        before = &node;
        befores = 1;
    }
    for (int i = 0; i < count; i++) {
        node = add_collective(w, kind, groups[i],
                              chakra_put_in(kind, chakra_ranks_size(w->ranks, groups[i]), sent[i]), before,
                              befores);
        before = &node;
        befores = 1;
    }
    return node;
}

/* --- the walk --- */

/* The node that receives what instruction `index` of another class's stream sends; NO_NODE: nothing was written for it. */
static uint64_t receive(Walk *w, int from, int stream, int64_t index, uint64_t before)
{
    g_autofree char *key = g_strdup_printf("%d %d %" G_GINT64_FORMAT, from, stream, index);
    uint64_t *known = g_hash_table_lookup(w->received, key);
    if (known != NULL)
        return *known;
    const SimInstr *sent = &w->program->class_list[from].streams[stream].instrs[index];
    if ((stream != SIM_STREAM_SEND_NEXT && stream != SIM_STREAM_SEND_PREV) || sent->op == SIM_ONLY_WAITS)
        return NO_NODE;
    const ChakraNode node = message(w, from, sent, true);
    const uint64_t id = add(w, &node, &before, before == NO_NODE ? 0 : 1);
    g_hash_table_insert(w->received, g_steal_pointer(&key), g_memdup2(&id, sizeof id));
    return id;
}

static void take_wait(Walk *w, int stream, const SimInstr *instr)
{
    const int from = sim_wait_class(instr, w->cls), on = sim_wait_stream(instr);
    uint64_t node = NO_NODE;
    if (instr->wait_count == 0)
        return;
    if (from == w->cls)
        node = w->node[on][instr->wait_count - 1];
    else
        node = receive(w, from, on, instr->wait_count - 1,
                       w->at[stream] > 0 ? w->node[stream][w->at[stream] - 1] : NO_NODE);
    if (node != NO_NODE)
        g_array_append_val(w->pending[stream], node);
}

static bool ready(const Walk *w, int stream)
{
    const SimList *list = &w->program->class_list[w->cls].streams[stream];
    if (w->at[stream] == list->count)
        return false;
    const SimInstr *instr = &list->instrs[w->at[stream]];
    return instr->wait_count == 0 || sim_wait_class(instr, w->cls) != w->cls ||
           w->at[sim_wait_stream(instr)] >= instr->wait_count;
}

static void step(Walk *w, int stream)
{
    const SimList *list = &w->program->class_list[w->cls].streams[stream];
    const int64_t index = w->at[stream];
    const SimInstr *instr = &list->instrs[index];
    uint64_t node = index > 0 ? w->node[stream][index - 1] : NO_NODE;
    take_wait(w, stream, instr);
    if (instr->op != SIM_ONLY_WAITS) {
        const SimOp *op = &w->program->ops[instr->op];
        GArray *deps = w->pending[stream];
        if (node != NO_NODE)
            g_array_append_val(deps, node);
        if (stream == SIM_STREAM_SEND_NEXT || stream == SIM_STREAM_SEND_PREV) {
            const ChakraNode sent = message(w, w->cls, instr, false);
            node = add(w, &sent, (const uint64_t *)(gpointer)deps->data, (int)deps->len);
        } else if (op->tag <= SIM_TAG_FORWARD_BACKWARD && op->stage >= 0) {
            node = add_pass(w, list, index, deps);
        } else {
            node = add_other(w, instr, deps);
        }
        g_array_set_size(deps, 0);
    }
    w->node[stream][index] = node;
    w->at[stream]++;
}

/* Streams beside the passes first, so that numbers grow as the step goes on. */
static void walk_rank(Walk *w, int64_t rank)
{
    const SimClass *cls = &w->program->class_list[w->cls = chakra_ranks_stage(w->ranks, rank)];
    w->rank = rank;
    w->next = 0;
    w->rings = 0;
    w->received = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (int s = 0; s < SIM_MAX_STREAMS; s++) {
        w->at[s] = 0;
        w->node[s] = g_new(uint64_t, (gsize)cls->streams[s].count + 1);
        w->pending[s] = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    }
    g_string_truncate(w->out, 0);
    chakra_append_header(w->out);
    for (int s = SIM_MAX_STREAMS; s-- > 0;)
        if (ready(w, s)) {
            step(w, s);
            s = SIM_MAX_STREAMS;
        }
    for (int s = 0; s < SIM_MAX_STREAMS; s++) {
        g_assert(w->at[s] == cls->streams[s].count); /* the engine has run it */
        g_free(w->node[s]);
        g_array_free(w->pending[s], TRUE);
    }
    g_hash_table_destroy(w->received);
}

/* --- files --- */

static void append_dimension(OrrJsonWriter *json, const char *key, const SpecDimension *dimension)
{
    orr_jw_begin(json, key, '{');
    orr_jw_int(json, "ranks", dimension->size);
    orr_jw_int(json, "stride", dimension->stride);
    orr_jw_end(json, '}');
}

static GString *manifest(const Walk *w, const GArray *written)
{
    GString *out = g_string_new(NULL);
    OrrJsonWriter json;
    SpecPlacement at;
    spec_placement(w->report->spec, &at);
    orr_jw_init(&json, out, false);
    orr_jw_begin(&json, NULL, '{');
    orr_jw_int(&json, "ranks", w->report->gpus);
    orr_jw_text(&json, "note",
                "A rank that was not written differs from one in tensor, context or data index. Its file has "
                "each rank of "
                "messages and groups moved by the difference of the two.");
    append_dimension(&json, "tensor", &at.tensor);
    append_dimension(&json, "context", &at.context);
    append_dimension(&json, "data", &at.data);
    append_dimension(&json, "pipeline", &at.pipeline);
    orr_jw_begin(&json, "written", '[');
    for (guint i = 0; i < written->len; i++)
        orr_jw_int(&json, NULL, g_array_index(written, int64_t, i));
    orr_jw_end(&json, ']');
    orr_jw_end(&json, '}');
    g_string_append_c(out, '\n');
    return out;
}

static bool takes(const Report *report, bool all, GError **error)
{
    const char *what = chakra_lacks(report);
    int64_t instrs = 0;
    if (what != NULL)
        return orr_fail(error, ORR_ERROR_INPUT, "a Chakra trace has no nodes for %s; leave it out", what);
    for (int c = 0; c < report->program.classes; c++)
        instrs += report->program.class_list[c].streams[SIM_STREAM_COMPUTE].count;
    instrs *= all ? report->gpus / MAX(1, report->program.classes) : 1;
    return instrs <= MOST_PACKETS ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "%" G_GINT64_FORMAT " passes in all files; write one rank of each kind", instrs);
}

bool chakra_write(const Report *report, const ChakraAsk *ask, GError **error)
{
    if (!takes(report, ask->all, error))
        return false;
    Walk w = {.report = report, .program = &report->program, .out = g_string_new(NULL)};
    w.ranks = chakra_ranks_new(report->spec);
    w.passes = chakra_passes_new(report);
    g_autoptr(GArray) written = g_array_new(FALSE, FALSE, sizeof(int64_t));
    bool ok = true;
    const int64_t count = ask->all ? report->gpus : report->program.classes;
    for (int64_t i = 0; ok && i < count; i++) {
        const int64_t rank = ask->all ? i : chakra_ranks_at_stage(w.ranks, 0, (int)i);
        g_autofree char *name = g_strdup_printf("step.%" G_GINT64_FORMAT ".et", rank);
        walk_rank(&w, rank);
        ok = ask->put(name, w.out, ask->data, error);
        g_array_append_val(written, rank);
    }
    g_autofree char *groups = chakra_ranks_json(w.ranks);
    g_autoptr(GString) json = g_string_new(groups), ranks = manifest(&w, written);
    ok = ok && ask->put("step.json", json, ask->data, error) &&
         ask->put("step.ranks.json", ranks, ask->data, error);
    chakra_passes_free(w.passes);
    chakra_ranks_free(w.ranks);
    g_string_free(w.out, TRUE);
    return ok;
}
