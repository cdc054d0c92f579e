/* workload/rollout.c - see rollout.h. What a step of an engine takes: costmodel/decode.h; batches of answers: generate.h. */
#include "workload/rollout.h"

#include <math.h>

#include "base/error.h"
#include "costmodel/generate.h"

static bool generated(const Spec *role, const CostGenerateAsk *ask, CostGenerated *ret_result, GError **error)
{
    CostDecode decode;
    if (!cost_decode_init(role, cost_generate_most(role, ask), &decode, error))
        return false;
    decode.sequence_host_s +=
        spec_host_s(&role->cluster.host, role->execution.framework.engine.logprob_host_s);
    return cost_generate(&decode, ask, ret_result, error);
}

static const char *part_word(const CostGenerated *result)
{
    static const char *const words[COST_DECODE_PART_COUNT] = {
        "products", "keys and values read", "communication", "small kernels", "the engine's host and gaps"};
    int most = 0;
    for (int part = 1; part < COST_DECODE_PART_COUNT; part++)
        most = result->part_s[part] > result->part_s[most] ? part : most;
    return words[most];
}

static const char *why(const CostGenerated *result)
{
    return result->tail_s > 0.5 * result->seconds      ? "the longest answers"
           : result->preempted > 0                     ? "memory for keys and values"
           : result->prefill_s > 0.5 * result->seconds ? "prompts"
                                                       : part_word(result);
}

/* Seconds in which as many answers are written where new prompts follow at once: what a third batch adds to two, with no more
 * sequences at once than a batch has. Never more than the batch alone. */
static bool streamed(const Spec *role, const CostGenerateAsk *ask, const CostGenerated *batch, double *ret_s,
                     GError **error)
{
    CostGenerateAsk more = *ask;
    CostGenerated two, three;
    more.most_sequences = (int)fmax(1, batch->most_batch);
    more.prompts = 2 * ask->prompts;
    if (!generated(role, &more, &two, error))
        return false;
    more.prompts = 3 * ask->prompts;
    if (!generated(role, &more, &three, error))
        return false;
    *ret_s = fmin(batch->seconds, fmax(0, three.seconds - two.seconds));
    return true;
}

bool rollout_ask(const Spec *role, const SpecWorkload *workload, const Sequences *sequences, bool streams,
                 RolloutAnswer *ret_answer, GError **error)
{
    const SpecSampling *generation = &workload->generation;
    CostGenerated result;
    if (generation->seconds >= 0) {
        *ret_answer = (RolloutAnswer){.seconds = generation->seconds, .tail_s = NAN};
        return true;
    }
    if (!cost_generate_has_engine(role, error))
        return false;
    const CostGenerateAsk ask = {.prompts = generation->prompts,
                                 .samples_per_prompt = generation->samples_per_prompt,
                                 .prompt_tokens = fmax(1, round(generation->prompt_tokens)),
                                 .answers = sequences->answers,
                                 .most_sequences = generation->max_sequences,
                                 .seed = (unsigned)workload->seed};
    RolloutAnswer answer = {.tail_s = NAN};
    if (!generated(role, &ask, &result, error))
        return false;
    answer.seconds = result.seconds;
    answer.weights_bytes = result.weights_bytes;
    answer.cache_bytes = result.cache_bytes;
    answer.peak_bytes = result.peak_bytes;
    if (streams && !streamed(role, &ask, &result, &answer.seconds, error))
        return false;
    answer.tail_s = streams ? NAN : result.tail_s;
    answer.why = streams ? part_word(&result) : why(&result);
    *ret_answer = answer;
    return true;
}
