/* search/replay.c - the longest path through a schedule's own order: every pass at its full rate, every message behind
 * the pass that makes it, nothing else in the way.
 *
 * The engine runs the same order with the same durations and can only add waiting and slower rates, so no rank's
 * compute is over earlier than here; without data-parallel communication inside passes it is over exactly then.
 * Activations follow the order alone: their peak is that of the engine. Tested: unit/search/test_search_bound.c
 */
#include <string.h>

#include "search/bound_parts.h"
#include "search/orders.h"

typedef struct Rank {
    int64_t left_ps;                                /* work to come */
    int64_t end_ps;                                 /* of the last op */
    int64_t now_ps, next_free_ps, previous_free_ps; /* compute, and the two message streams */
    int64_t gathers_free_ps, reduces_free_ps;       /* those of data parallelism */
    int64_t gathering_ps;                           /* gathers that began with the step are over */
    double gather_sms_frac;                         /* of the SMs that each of them reserves */
    int64_t reduced_ps;                             /* everything that was reduced beside passes */
    int64_t shared_ps; /* the first of these begins, and passes from then on at full rate */
    int64_t taken_ps;  /* of the SMs by all of them, in time of all SMs */
    int64_t open_ps;   /* behind the last op, without what it takes of the SMs */
    int64_t next;      /* op */
    int64_t level_bytes, peak_bytes;
} Rank;

typedef struct Link {
    int producer;   /* stage; -1: none, or on the same rank */
    int64_t hop_ps; /* -1: nothing is sent */
} Link;

struct SearchReplay {
    SearchOrders orders;
    OrrArena *arena;
    Rank *ranks;
    int64_t *forward_ps,
        *backward_ps;        /* [stages][micro-batches]: the result is at the neighbour; -1: not yet */
    SearchActivations *kept; /* [stages] */
    Link (*links)[2];        /* [stages of both copies]: of forwards, of backwards */
    int *stage_of;           /* [ranks][chunks] */
    bool *gathered;          /* [ranks][chunks]: the chunk had a forward */
    int *gradients_left;     /* [ranks][chunks]: weight gradients to come */
};

typedef struct Run {
    SearchWorker *worker;
    struct SearchReplay *replay;
    const SearchWay *way;
    bool pairs;
    int microbatches;
} Run;

void search_replay_free(struct SearchReplay *replay)
{
    if (replay == NULL)
        return;
    search_orders_return(&replay->orders);
    if (replay->arena != NULL)
        orr_arena_free(replay->arena);
    g_free(replay);
}

/* Stage of the model behind stage `stage` of either copy. */
static int model_stage(const Run *run, int stage)
{
    return stage < run->worker->stages ? stage : stage - run->worker->stages;
}

static int rank_of(const Run *run, int stage)
{
    int rank = 0, chunk = 0;
    const SearchOrders *orders = &run->replay->orders;
    sim_place_of(run->worker->partition->order->placement, orders->shape.ranks, orders->shape.chunks, stage,
                 &rank, &chunk);
    return rank;
}

/* What forwards ([0]) and backwards ([1]) of a stage wait for on another rank, and the message to the next one. */
static Link link_of(const Run *run, int stage, bool backward)
{
    const int within = model_stage(run, stage), rank = rank_of(run, stage);
    const int from = backward ? 1 : -1;
    Link link = {.producer = -1, .hop_ps = -1};
    if (within + from >= 0 && within + from < run->worker->stages && rank_of(run, stage + from) != rank)
        link.producer = stage + from;
    if (within - from >= 0 && within - from < run->worker->stages && rank_of(run, stage - from) != rank)
        link.hop_ps = search_hop_ps(run->worker, rank, rank_of(run, stage - from));
    return link;
}

static void fill_links(const Run *run)
{
    struct SearchReplay *replay = run->replay;
    const int chunks = replay->orders.shape.chunks, ranks = replay->orders.shape.ranks;
    replay->links = orr_arena_alloc(replay->arena, sizeof *replay->links * (size_t)(chunks * ranks));
    replay->stage_of = ORR_ARENA_NEW(replay->arena, int, chunks *ranks);
    for (int stage = 0; stage < chunks * ranks; stage++) {
        replay->links[stage][0] = link_of(run, stage, false);
        replay->links[stage][1] = link_of(run, stage, true);
    }
    for (int r = 0; r < ranks; r++)
        for (int c = 0; c < chunks; c++)
            replay->stage_of[r * chunks + c] =
                sim_stage_of(run->worker->partition->order->placement, ranks, chunks, r, c);
}

static int64_t *result_of(const Run *run, int stage, int microbatch, bool backward)
{
    int64_t *results = backward ? run->replay->backward_ps : run->replay->forward_ps;
    return &results[(int64_t)stage * run->microbatches + microbatch];
}

/* When the input of a pass is there; -1: not known yet. What the same rank makes, the order itself guarantees. */
static int64_t input_ps(const Run *run, int stage, int microbatch, bool backward)
{
    const int producer = run->replay->links[stage][backward].producer;
    return producer < 0 ? 0 : *result_of(run, producer, microbatch, backward);
}

static void pass_on(const Run *run, Rank *state, int stage, int microbatch, bool backward)
{
    const int64_t hop_ps = run->replay->links[stage][backward].hop_ps;
    if (hop_ps < 0)
        return;
    int64_t *stream = backward ? &state->previous_free_ps : &state->next_free_ps;
    *stream = MAX(*stream, state->now_ps) + hop_ps;
    *result_of(run, stage, microbatch, backward) = *stream;
    if (run->way->blocking)
        state->now_ps = *stream;
}

static int64_t pass_ps(const SearchWorker *worker, SimPass pass, int stage)
{
    const int64_t input = worker->input_ps[stage] + worker->recompute_ps[stage];
    switch (pass) {
    case SIM_PASS_FORWARD:
        return worker->forward_ps[stage];
    case SIM_PASS_BACKWARD:
        return input + worker->weight_ps[stage];
    case SIM_PASS_BACKWARD_INPUT:
        return input;
    default:
        return worker->weight_ps[stage];
    }
}

static void count_memory(Rank *state, SimPass pass, const SearchActivations *kept)
{
    const int64_t temp = pass == SIM_PASS_FORWARD ? kept->forward_temp : kept->backward_temp;
    if (pass == SIM_PASS_FORWARD)
        state->level_bytes += kept->all;
    state->peak_bytes = MAX(state->peak_bytes, state->level_bytes + temp);
    if (pass == SIM_PASS_BACKWARD)
        state->level_bytes -= kept->all;
    else if (pass == SIM_PASS_BACKWARD_INPUT)
        state->level_bytes -= kept->all - kept->late;
    else if (pass == SIM_PASS_BACKWARD_WEIGHT)
        state->level_bytes -= kept->late;
}

/* The end of a pass that begins at `begin_ps`: slower as long as gathers that began with the step take SMs. */
static int64_t pass_end_ps(const Run *run, int rank, int64_t begin_ps, int64_t lasts_ps)
{
    const Rank *state = &run->replay->ranks[rank];
    const int64_t beside_ps = state->gathering_ps - begin_ps;
    if (beside_ps <= 0)
        return begin_ps + lasts_ps;
    const int64_t lost_ps = (int64_t)(state->gather_sms_frac * (double)beside_ps);
    if (lasts_ps >= beside_ps - lost_ps)
        return begin_ps + lasts_ps + lost_ps;
    return begin_ps + (int64_t)((double)lasts_ps / (1 - state->gather_sms_frac)) - 1;
}

/* The end of a forward that may begin at `begin_ps`: of a chunk's first, behind its gathers, whose last buckets are waited for
 * halfway. `pair`: all are waited for before. */
static int64_t forward_end_ps(const Run *run, int rank, int chunk, int64_t begin_ps, int64_t lasts_ps,
                              bool pair)
{
    const int at = rank * run->replay->orders.shape.chunks + chunk;
    if (run->way->gathers == STEP_GATHERS_NONE || run->replay->gathered[at])
        return pass_end_ps(run, rank, begin_ps, lasts_ps);
    const SearchStageData *data = &run->way->stages[at];
    Rank *state = &run->replay->ranks[rank];
    int64_t gathers_ps = state->gathers_free_ps;
    if (run->way->gathers == STEP_GATHERS_USE)
        gathers_ps = MAX(gathers_ps, begin_ps);
    run->replay->gathered[at] = true;
    state->gathers_free_ps = gathers_ps + data->gather_ps;
    return MAX(pass_end_ps(run, rank, begin_ps, lasts_ps),
               gathers_ps + (pair ? data->gather_ps : data->wait_ps) + lasts_ps);
}

/* Reductions beside or behind a pass that made weight gradients from `begin_ps` to `end_ps`, in `lasts_ps` of compute. */
static void reduce(const Run *run, int rank, int chunk, int64_t begin_ps, int64_t end_ps, int64_t lasts_ps)
{
    const StepReduces reduces = run->way->reduces;
    const int at = rank * run->replay->orders.shape.chunks + chunk;
    if (reduces == STEP_REDUCES_LATE)
        return;
    const bool last = --run->replay->gradients_left[at] == 0;
    const SearchStageData *data = &run->way->stages[at];
    Rank *state = &run->replay->ranks[rank];
    if (reduces == STEP_REDUCES_EACH_ALONE)
        state->now_ps = MAX(state->now_ps, end_ps + data->reduce_ps);
    if (reduces == STEP_REDUCES_EACH_ALONE || (reduces == STEP_REDUCES_LAST && !last))
        return;
    if (state->taken_ps == 0)
        state->shared_ps = begin_ps + lasts_ps + state->left_ps;
    state->taken_ps += data->reduce_sms_ps;
    state->open_ps = data->last_reduce_ps - data->last_reduce_sms_ps;
    state->reduces_free_ps =
        MAX(MAX(state->reduces_free_ps, begin_ps) + data->reduce_ps, end_ps + data->last_reduce_ps);
    state->reduced_ps = state->reduces_free_ps;
}

/* Runs one pass if its input is there. */
static bool run_pass(const Run *run, int rank, SimPass pass, int chunk, int microbatch)
{
    const int stage = run->replay->stage_of[rank * run->replay->orders.shape.chunks + chunk];
    Rank *state = &run->replay->ranks[rank];
    const bool backward = pass != SIM_PASS_FORWARD, passes_on = pass != SIM_PASS_BACKWARD_WEIGHT;
    const int64_t input = passes_on ? input_ps(run, stage, microbatch, backward) : 0;
    if (input < 0)
        return false;
    const bool leaves_head = pass == SIM_PASS_BACKWARD && stage == run->worker->stages - 1 &&
                             microbatch < run->worker->deferred_heads; /* or may: not counted at all */
    const int64_t whole_ps = pass_ps(run->worker, pass, model_stage(run, stage));
    state->open_ps = 0;
    const int64_t begin_ps = MAX(state->now_ps, input);
    const int64_t lasts_ps = whole_ps - (leaves_head ? run->worker->head_left_out_ps : 0);
    state->now_ps =
        backward ? begin_ps + lasts_ps : forward_end_ps(run, rank, chunk, begin_ps, lasts_ps, false);
    state->left_ps -= whole_ps;
    const int64_t end_ps = state->end_ps = state->now_ps;
    count_memory(state, pass, &run->replay->kept[model_stage(run, stage)]);
    if (passes_on)
        pass_on(run, state, stage, microbatch, backward);
    if (pass == SIM_PASS_BACKWARD || pass == SIM_PASS_BACKWARD_WEIGHT)
        reduce(run, rank, chunk, begin_ps, end_ps, lasts_ps);
    return true;
}

/* Forward of one micro-batch and backward of another as one op; both messages leave at its end. */
static bool run_pair(const Run *run, int rank, const SimPassOp *op, int ahead, int back)
{
    Rank *state = &run->replay->ranks[rank];
    const int64_t forward = input_ps(run, ahead, op->microbatch, false);
    const int64_t backward = input_ps(run, back, op->microbatch2, true);
    if (forward < 0 || backward < 0)
        return false;
    const SearchWorker *worker = run->worker;
    const int at = model_stage(run, ahead);
    const SearchActivations *kept = &run->replay->kept[at],
                            *given = &run->replay->kept[model_stage(run, back)];
    state->open_ps = 0;
    const int64_t lasts_ps = worker->pair_ps[at], begin_ps = MAX(state->now_ps, MAX(forward, backward));
    const int64_t end_ps = forward_end_ps(run, rank, op->chunk, begin_ps, lasts_ps, true);
    state->left_ps -= lasts_ps;
    state->level_bytes += kept->all;
    state->peak_bytes =
        MAX(state->peak_bytes, state->level_bytes + kept->forward_temp + given->backward_temp);
    state->level_bytes -= given->all;
    state->now_ps = state->end_ps = end_ps;
    pass_on(run, state, ahead, op->microbatch, false);
    const int64_t sent_ps = state->now_ps;
    state->now_ps = end_ps;
    pass_on(run, state, back, op->microbatch2, true);
    state->now_ps = MAX(state->now_ps, sent_ps);
    reduce(run, rank, op->chunk2, begin_ps, end_ps, lasts_ps);
    return true;
}

/* The op at the rank's turn; false when it has to wait. A pair that is not overlapped runs as two. */
static bool run_op(const Run *run, int rank, bool *half_done)
{
    const struct SearchReplay *replay = run->replay;
    const SimPassOp *op = &replay->orders.ranks[rank].ops[replay->ranks[rank].next];
    const int *stages = &replay->stage_of[rank * replay->orders.shape.chunks];
    const int stage = stages[op->chunk];
    if (op->pass != SIM_PASS_FORWARD_BACKWARD)
        return run_pass(run, rank, (SimPass)op->pass, op->chunk, op->microbatch);
    const int back = stages[op->chunk2];
    if (run->pairs && search_pairs_at(run->worker, model_stage(run, stage)))
        return run_pair(run, rank, op, stage, back);
    if (!*half_done && !run_pass(run, rank, SIM_PASS_FORWARD, op->chunk, op->microbatch))
        return false;
    *half_done = true;
    if (!run_pass(run, rank, SIM_PASS_BACKWARD, op->chunk2, op->microbatch2))
        return false;
    *half_done = false;
    return true;
}

static int64_t op_ps(const Run *run, int rank, const SimPassOp *op)
{
    const SimPlacement placement = run->worker->partition->order->placement;
    const SimScheduleShape *shape = &run->replay->orders.shape;
    const int at = model_stage(run, sim_stage_of(placement, shape->ranks, shape->chunks, rank, op->chunk));
    if (op->pass != SIM_PASS_FORWARD_BACKWARD)
        return pass_ps(run->worker, (SimPass)op->pass, at);
    if (run->pairs && search_pairs_at(run->worker, at))
        return run->worker->pair_ps[at];
    const int back = model_stage(run, sim_stage_of(placement, shape->ranks, shape->chunks, rank, op->chunk2));
    return pass_ps(run->worker, SIM_PASS_FORWARD, at) + pass_ps(run->worker, SIM_PASS_BACKWARD, back);
}

static void count_work(const Run *run)
{
    for (int r = 0; r < run->replay->orders.shape.ranks; r++) {
        const SimOrder *order = &run->replay->orders.ranks[r];
        Rank *state = &run->replay->ranks[r];
        if (search_has_pairs(run->worker)) {
            for (int64_t i = 0; i < order->count; i++)
                state->left_ps += op_ps(run, r, &order->ops[i]);
            continue;
        }
        for (int chunk = 0; chunk < run->worker->chunks; chunk++) {
            const int at = sim_stage_of(run->worker->partition->order->placement, run->worker->ranks,
                                        run->worker->chunks, r, chunk);
            state->left_ps += run->microbatches * (pass_ps(run->worker, SIM_PASS_FORWARD, at) +
                                                   pass_ps(run->worker, SIM_PASS_BACKWARD, at));
        }
    }
}

/* Ranks whose end says how long the step is at least. Where every rank's step runs from its own start, that is known of
 * rank 0 alone, which starts first. */
static bool counts(const SearchWorker *worker, int rank)
{
    return rank == 0 || !search_starts_skewed(worker);
}

/* Stops as soon as a rank cannot be done in time any more: what it has waited is lost. */
static bool run_orders(const Run *run)
{
    struct SearchReplay *replay = run->replay;
    const int ranks = replay->orders.shape.ranks;
    bool *half_done = ORR_ARENA_NEW(replay->arena, bool, ranks);
    int64_t left = 0;
    for (int r = 0; r < ranks; r++)
        left += replay->orders.ranks[r].count;
    for (bool moved = true; moved && left > 0;) {
        moved = false;
        for (int turn = 0; turn < 2 * ranks; turn++) { /* forwards go up the ranks, gradients down */
            const int r = turn < ranks ? turn : 2 * ranks - 1 - turn;
            for (; replay->ranks[r].next < replay->orders.ranks[r].count && run_op(run, r, &half_done[r]);
                 left--) {
                replay->ranks[r].next++;
                moved = true;
                if (counts(run->worker, r) &&
                    replay->ranks[r].end_ps + replay->ranks[r].left_ps > run->worker->give_up_ps)
                    return true;
            }
        }
    }
    return left == 0;
}

/* Gathers that begin with the step run one after the other. */
static void start_gathers(const Run *run)
{
    const int chunks = run->replay->orders.shape.chunks;
    for (int r = 0; run->way->gathers == STEP_GATHERS_STEP && r < run->replay->orders.shape.ranks; r++) {
        Rank *state = &run->replay->ranks[r];
        state->gather_sms_frac = search_costs_of_rank(run->worker, r)->leaves_sms ? 0 : 1;
        for (int chunk = 0; chunk < chunks; chunk++) {
            const SearchStageData *data = &run->way->stages[r * chunks + chunk];
            state->gathering_ps += data->gather_ps;
            state->gather_sms_frac = MIN(state->gather_sms_frac, data->gather_sms_frac);
        }
    }
}

static void start(const Run *run, const SpecRecompute *recompute)
{
    struct SearchReplay *replay = run->replay;
    const int64_t chunks = replay->orders.shape.chunks, ranks = replay->orders.shape.ranks;
    const int64_t results = chunks * ranks * run->microbatches;
    if (replay->arena != NULL)
        orr_arena_free(replay->arena);
    replay->arena = orr_arena_new();
    replay->ranks = ORR_ARENA_NEW(replay->arena, Rank, ranks);
    replay->forward_ps = ORR_ARENA_NEW(replay->arena, int64_t, results);
    replay->backward_ps = ORR_ARENA_NEW(replay->arena, int64_t, results);
    memset(replay->forward_ps, 0xff, sizeof(int64_t) * (size_t)results);
    memset(replay->backward_ps, 0xff, sizeof(int64_t) * (size_t)results);
    fill_links(run);
    replay->gathered = ORR_ARENA_NEW(replay->arena, bool, chunks *ranks);
    replay->gradients_left = ORR_ARENA_NEW(replay->arena, int, chunks *ranks);
    const bool copies = run->worker->partition->order->placement == SIM_PLACE_BIDIRECTIONAL;
    for (int64_t i = 0; i < chunks * ranks; i++)
        replay->gradients_left[i] = run->microbatches / (copies ? 2 : 1);
    replay->kept = ORR_ARENA_NEW(replay->arena, SearchActivations, run->worker->stages);
    for (int s = 0; s < run->worker->stages; s++)
        replay->kept[s] = search_activations(run->worker, s, recompute);
}

/* When all reductions of a rank are done: those beside passes take SMs from these, so both together are not shorter than the
 * SMs' time. */
static int64_t reduced_ps(const SearchWorker *worker, const Rank *rank, int index)
{
    const int64_t left_out_ps =
        index + 1 == worker->ranks ? worker->deferred_heads * worker->head_left_out_ps : 0;
    if (rank->left_ps > 0 || search_costs_of_rank(worker, index)->leaves_sms)
        return rank->reduced_ps;
    return MAX(rank->reduced_ps, rank->shared_ps + rank->taken_ps + rank->open_ps - left_out_ps);
}

static void note_ends(const Run *run, SearchEnds *ends)
{
    const SearchWorker *worker = run->worker;
    *ends = (SearchEnds){.first_ps = run->replay->ranks[0].end_ps};
    for (int r = 0; r < worker->ranks; r++) {
        const Rank *rank = &run->replay->ranks[r];
        if (!counts(worker, r))
            continue;
        ends->latest_ps = MAX(ends->latest_ps, rank->end_ps + rank->left_ps);
        const int64_t reduced = reduced_ps(worker, rank, r);
        ends->latest_reduced_ps = MAX(ends->latest_reduced_ps, reduced);
        for (int i = 0; i < SEARCH_SAMPLES; i++)
            if (worker->sample[i] == r) {
                ends->own_ps[i] = rank->end_ps;
                ends->reduced_ps[i] = reduced;
            }
    }
}

bool search_worker_replay(SearchWorker *worker, const SpecRecompute *recompute, const SearchWay *way)
{
    if (worker->replay == NULL)
        worker->replay = g_new0(struct SearchReplay, 1);
    search_orders_borrow(worker->space, worker->partition->order, &worker->shape, &worker->replay->orders);
    Run run = {.worker = worker,
               .replay = worker->replay,
               .way = way,
               .pairs = search_has_pairs(worker) && !way->sharded &&
                        worker->spec.offload.activation_layers == 0 &&
                        !spec_offloads_states(&worker->spec.offload),
               .microbatches = worker->group->microbatches};
    start(&run, recompute);
    start_gathers(&run);
    count_work(&run);
    if (!run_orders(&run))
        return false;
    note_ends(&run, way->stages != NULL ? &worker->with_data : &worker->replayed[way->blocking]);
    for (int r = 0; r < worker->ranks && way->stages == NULL; r++) {
        worker->rank_live_bytes[r] = (double)worker->replay->ranks[r].peak_bytes;
        for (int i = 0; i < SEARCH_SAMPLES; i++)
            if (worker->sample[i] == r)
                worker->live_bytes[i] = MAX(worker->live_bytes[i], worker->rank_live_bytes[r]);
    }
    return true;
}
