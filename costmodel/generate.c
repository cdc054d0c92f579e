/* costmodel/generate.c - see generate.h. Tested: unit/costmodel/test_generate.c */
#include "costmodel/generate.h"

#include <math.h>
#include <string.h>

#include "base/draws.h"
#include "base/error.h"

typedef struct Sequence {
    double
        read; /* tokens that were there when it started: its prompt, and what it wrote before it gave way */
    double left; /* to be written from then on */
    double end;  /* step at which it ends; +inf while it waits */
    double start;
} Sequence;

typedef struct Replica {
    const CostDecode *decode;
    const CostGenerateAsk *ask;
    const SpecEngine *engine;
    Sequence *all;   /* [count] */
    int count, next; /* from next on they wait */
    int *active;     /* a heap by end */
    int active_count, most;
    double step;
    double read_tokens, held_tokens,
        reserved_tokens;     /* of active ones: seen by attention, in the cache, promised */
    double capacity, shared; /* part of a prompt that a sequence brings to the cache by itself */
    double longest, prefill_token_s;
    double most_cache_bytes; /* of a rank, so far */
    double last_many_s;      /* of the clock, when more than half of most_batch were active */
    CostGenerated out;
} Replica;

/* --- a heap of active sequences, the next to end first --- */

static void swap(Replica *r, int i, int j)
{
    const int kept = r->active[i];
    r->active[i] = r->active[j];
    r->active[j] = kept;
}

static double end_of(const Replica *r, int i)
{
    return r->all[r->active[i]].end;
}

static void sift_up(Replica *r, int i)
{
    for (; i > 0 && end_of(r, i) < end_of(r, (i - 1) / 2); i = (i - 1) / 2)
        swap(r, i, (i - 1) / 2);
}

static void sift_down(Replica *r, int i)
{
    for (;;) {
        int least = i;
        for (int child = 2 * i + 1; child <= 2 * i + 2 && child < r->active_count; child++)
            least = end_of(r, child) < end_of(r, least) ? child : least;
        if (least == i)
            return;
        swap(r, i, least);
        i = least;
    }
}

static int take(Replica *r, int i)
{
    const int taken = r->active[i];
    r->active[i] = r->active[--r->active_count];
    if (i < r->active_count) {
        sift_up(r, i);
        sift_down(r, i);
    }
    return taken;
}

/* --- sequences start, end and give way --- */

static double tokens_a_step(const Replica *r)
{
    return 1 + r->engine->drafted_tokens;
}

static double own_tokens(const Replica *r, const Sequence *s)
{
    return s->read - r->ask->prompt_tokens + r->shared;
}

/* Those that run take their next tokens first: one that gave way waits until another ends.
 * Source: [vLLM] v1/core/sched/scheduler.py: running requests before waiting ones */
static bool has_room(const Replica *r, const Sequence *s)
{
    if (r->active_count == 0)
        return true;
    return r->engine->reserves_longest
               ? r->reserved_tokens + r->shared + r->longest <= r->capacity
               : r->held_tokens + own_tokens(r, s) + tokens_a_step(r) * (r->active_count + 1) <= r->capacity;
}

static void start(Replica *r)
{
    Sequence *s = &r->all[r->next];
    s->start = r->step;
    s->end = r->step + ceil(s->left / tokens_a_step(r));
    r->active[r->active_count++] = r->next++;
    sift_up(r, r->active_count - 1);
    r->read_tokens += s->read;
    r->held_tokens += own_tokens(r, s);
    r->reserved_tokens += r->shared + r->longest;
    r->out.prefill_s += own_tokens(r, s) * r->prefill_token_s;
    r->out.seconds += own_tokens(r, s) * r->prefill_token_s;
}

static void leave(Replica *r, const Sequence *s)
{
    const double written = (r->step - s->start) * tokens_a_step(r);
    r->read_tokens -= s->read + written;
    r->held_tokens -= own_tokens(r, s) + written;
    r->reserved_tokens -= r->shared + r->longest;
}

/* The newest waits again, first in the line, with what it has written as part of what is read anew. */
static void give_way(Replica *r)
{
    int newest = 0;
    for (int i = 1; i < r->active_count; i++)
        newest = r->all[r->active[i]].start >= r->all[r->active[newest]].start ? i : newest;
    const int index = take(r, newest);
    Sequence gone = r->all[index];
    leave(r, &gone);
    const double written = (r->step - gone.start) * tokens_a_step(r);
    gone.read += written;
    gone.left -= written;
    r->all[index] = r->all[--r->next]; /* its place is free: the last started one moves there */
    for (int i = 0; i < r->active_count; i++)
        if (r->active[i] == r->next)
            r->active[i] = index;
    r->all[r->next] = gone;
    r->out.preempted++;
}

/* Steps until somebody ends or the cache is full, all at once: attention grows by a token a sequence and step, so that the
 * middle's time is the mean. */
static void advance(Replica *r)
{
    const double batch = r->active_count, grows = batch * tokens_a_step(r);
    double steps = fmax(1, end_of(r, 0) - r->step);
    if (!r->engine->reserves_longest && batch > 1 && r->held_tokens + grows * steps > r->capacity)
        steps = fmax(1, fmin(steps, floor((r->capacity - r->held_tokens) / grows)));
    const CostDecodeTime time = cost_decode_step(r->decode, batch, r->read_tokens + grows * (steps - 1) / 2);
    for (int part = 0; part < COST_DECODE_PART_COUNT; part++)
        r->out.part_s[part] += steps * time.part_s[part];
    r->out.mean_batch += steps * batch;
    r->out.mean_context += steps * (r->read_tokens + grows * (steps - 1) / 2);
    r->out.decode_s += steps * cost_decode_total_s(&time);
    r->out.seconds += steps * cost_decode_total_s(&time);
    if (2 * batch > r->out.most_batch)
        r->last_many_s = r->out.seconds;
    r->step += steps;
    r->read_tokens += steps * grows;
    r->held_tokens += steps * grows;
    const double promised = r->engine->reserves_longest ? r->reserved_tokens : r->held_tokens,
                 bytes = promised * r->decode->token_bytes + batch * r->decode->sequence_bytes;
    r->most_cache_bytes = fmax(r->most_cache_bytes, fmin(bytes, r->decode->cache_bytes));
}

static void run(Replica *r)
{
    while (r->active_count > 0 || r->next < r->count) {
        while (r->next < r->count && r->active_count < r->most && has_room(r, &r->all[r->next]))
            start(r);
        r->out.most_batch = fmax(r->out.most_batch, r->active_count);
        advance(r);
        while (r->active_count > 0 && end_of(r, 0) <= r->step)
            leave(r, &r->all[take(r, 0)]);
        while (!r->engine->reserves_longest && r->active_count > 1 &&
               r->held_tokens + r->active_count * tokens_a_step(r) > r->capacity)
            give_way(r);
    }
}

/* --- the question --- */

static double quantile(const OrrLengths *lengths, double frac)
{
    return fmax(1, ceil(orr_lengths_quantile(lengths, frac)));
}

/* One a quantile, the last that of all replicas, in drawn order. */
static void draw(Replica *r, double all)
{
    OrrLcg lcg = {.state = r->ask->seed + 1u};
    for (int i = 0; i < r->count; i++) {
        const double frac =
            i + 1 < r->count ? (i + 0.5) / r->count : fmax((i + 0.5) / r->count, 1 - 0.5 / all);
        r->all[i] = (Sequence){.read = r->ask->prompt_tokens, .left = quantile(&r->ask->answers, frac)};
    }
    for (int i = r->count - 1; i > 0; i--) {
        const int j = orr_lcg_below(&lcg, i + 1);
        const Sequence kept = r->all[i];
        r->all[i] = r->all[j];
        r->all[j] = kept;
    }
}

static double of_replica(const CostDecode *decode, const CostGenerateAsk *ask)
{
    return ceil(ask->prompts * ask->samples_per_prompt / decode->replicas);
}

static int most_of(const Spec *spec, const CostGenerateAsk *ask)
{
    const int engine = spec->execution.framework.engine.max_sequences;
    return ask->most_sequences > 0 ? ask->most_sequences : engine;
}

bool cost_generate_has_engine(const Spec *spec, GError **error)
{
    const SpecFramework *framework = &spec->execution.framework;
    if (framework->engine.max_sequences > 0)
        return true;
    if (framework->name[0] == '\0')
        return orr_fail(error, ORR_ERROR_INPUT,
                        "execution.framework: a framework without a preset generates nothing before it has "
                        "engine.max_sequences; give a preset: vllm, sglang or tensorrt-llm");
    return orr_fail(
        error, ORR_ERROR_INPUT,
        "execution.framework: \"%s\" generates nothing; give an engine: vllm, sglang or tensorrt-llm",
        framework->name);
}

double cost_generate_most(const Spec *spec, const CostGenerateAsk *ask)
{
    return fmin(most_of(spec, ask),
                ceil(ask->prompts * ask->samples_per_prompt / MAX(1, spec->parallel.data)));
}

static bool check(const CostDecode *decode, const CostGenerateAsk *ask, double longest, GError **error)
{
    const SpecModel *model = &decode->shape.spec->model;
    const double capacity = cost_decode_capacity_tokens(decode, 1), all = ask->prompt_tokens + longest;
    if (of_replica(decode, ask) > 1e6)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "generation: %.0f sequences of a replica; give at most 1,000,000",
                        of_replica(decode, ask));
    if (model->max_positions > 0 && all > model->max_positions)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "generation: prompts of %.0f tokens with answers of up to %.0f, but the model has %d "
                        "positions; give "
                        "shorter ones, or model.max_positions",
                        ask->prompt_tokens, longest, model->max_positions);
    return all <= capacity ||
           orr_fail(
               error, ORR_ERROR_INPUT,
               "generation: one sequence of %.0f tokens, but the caches of a GPU hold %.0f; give a larger "
               "parallel.tensor or shorter answers",
               all, capacity);
}

static void conclude(Replica *r, double all)
{
    CostGenerated *out = &r->out;
    const Spec *spec = r->decode->shape.spec;
    const double gpus = (double)r->decode->replicas * spec->parallel.tensor * r->decode->pipeline;
    out->steps = r->step;
    out->mean_context = out->mean_batch > 0 ? out->mean_context / out->mean_batch : 0;
    out->mean_batch = r->step > 0 ? out->mean_batch / r->step : 0;
    out->tail_s = out->seconds - r->last_many_s;
    out->tokens = all * orr_lengths_mean(&r->ask->answers);
    out->tokens_per_s = out->tokens / out->seconds;
    out->tokens_per_s_per_gpu = out->tokens_per_s / gpus;
    out->sequences = r->count;
    out->capacity_tokens = r->capacity;
    out->capacity_bytes = r->decode->cache_bytes;
    out->weights_bytes = r->decode->weights_bytes;
    out->cache_bytes = r->most_cache_bytes;
    out->peak_bytes = r->decode->weights_bytes + r->decode->work_bytes + r->most_cache_bytes;
}

bool cost_generate(const CostDecode *decode, const CostGenerateAsk *ask, CostGenerated *ret_result,
                   GError **error)
{
    const double longest = quantile(&ask->answers, 1), all = ask->prompts * ask->samples_per_prompt;
    if (!check(decode, ask, longest, error))
        return false;
    Replica r = {.decode = decode,
                 .ask = ask,
                 .engine = &decode->shape.spec->execution.framework.engine,
                 .count = (int)of_replica(decode, ask),
                 .most = most_of(decode->shape.spec, ask),
                 .longest = longest};
    const double chunk = fmax(1, floor(r.engine->prefill_tokens / ask->prompt_tokens));
    r.most = MIN(r.most, r.count);
    r.capacity = cost_decode_capacity_tokens(decode, r.most);
    if (r.engine->whole_batches && r.most * (ask->prompt_tokens + longest) > r.capacity)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "generation: %d answers of a replica are written at once, %.0f tokens in all, but the caches "
            "of a GPU hold %.0f; give fewer prompts or a larger parallel.tensor",
            r.most, r.most * (ask->prompt_tokens + longest), r.capacity);
    r.shared = ask->prompt_tokens / (r.engine->shares_prefixes ? ask->samples_per_prompt : 1);
    r.prefill_token_s = cost_prefill_s(decode, chunk, ask->prompt_tokens) / (chunk * ask->prompt_tokens);
    r.all = g_new(Sequence, (gsize)r.count);
    r.active = g_new(int, (gsize)r.most + 1);
    draw(&r, all);
    run(&r);
    conclude(&r, all);
    g_free(r.all);
    g_free(r.active);
    *ret_result = r.out;
    return true;
}
