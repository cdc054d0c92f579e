/* exchange/import_rl.h - a loop of reinforcement learning as launches of several programs say it, written once. */
#ifndef ORR_EXCHANGE_IMPORT_RL_H
#define ORR_EXCHANGE_IMPORT_RL_H

#include "exchange/import.h"

/* What is 0, false or NULL is not said. Lengths are the longest that the launch allows. */
typedef struct ExchangeLoop {
    bool critic, reward_model, reference, rloo; /* which preset it is */
    const char *engine;                         /* vllm, sglang, tensorrt-llm */
    int prompts, samples, prompt_tokens, answer_tokens;
    int mini_batches, epochs, micro_batch_tokens;
    bool padded;
    double kept_frac;
    int tensor, expert, max_sequences; /* of the engine */
    bool eager;
    double memory_frac;
    int nodes, gpus_per_node; /* of the engine alone; 0: it shares the trainers' GPUs */
    int staleness_steps;
    bool in_flight;
} ExchangeLoop;

void exchange_import_loop(ExchangeImport *import, const ExchangeLoop *loop);

/* The preset that a name or path of a model means, under `to`; warned about where there is none. */
void exchange_import_model(ExchangeImport *import, const char *key, const char *to);
/* A whole number, or what the program does when nobody says. */
int exchange_import_number(const ExchangeImport *import, const char *key, int fallback);
double exchange_import_frac(const ExchangeImport *import, const char *key, double fallback);

/* NeMo-RL's files extend others ("defaults: ../grpo_math_1B.yaml") and refer to their own keys ("${policy.precision}"): those
 * files' settings are put before what the file says, and references replaced. `path`: of the file. */
void exchange_nemo_rl_settle(Settings *settings, const char *path, GPtrArray *problems);

#endif
