/* spec/workload.h - a loop of phases over several models, as reinforcement learning runs it: answers are drawn from a model,
 * scored, and trained on.
 *
 * A role is a model on a part of the machine; it is the scenario with what the role says in place of it. Roles without
 * nodes of their own share those of the scenario. A phase is one use of a role. Lists are as long as the file says.
 */
#ifndef ORR_SPEC_WORKLOAD_H
#define ORR_SPEC_WORKLOAD_H

#include <stdbool.h>

#include "spec/names.h"

enum { SPEC_MOST_ROLES = 8, SPEC_MOST_PHASES = 16, SPEC_WORKLOAD_NAME = 32 };

typedef enum {
    SPEC_PHASE_GENERATE, /* answers to prompts, token by token */
    SPEC_PHASE_FORWARD,  /* probabilities or values of all tokens */
    SPEC_PHASE_TRAIN,    /* steps of training on all of them */
    SPEC_PHASE_SYNC,     /* weights of one role to another */
    SPEC_PHASE_GIVEN     /* takes the seconds that the file says */
} SpecPhaseKind;

typedef enum {
    SPEC_SYNC_BROADCAST,   /* one sender to all */
    SPEC_SYNC_PEER_TO_PEER /* every sender holds its part, every receiver reads what it needs */
} SpecSyncWay;

typedef enum {
    SPEC_HOST_KEPT, /* buffers that stay, pinned */
    SPEC_HOST_FRESH /* allocated each time */
} SpecHostMemory;

typedef struct SpecRole {
    char name[SPEC_WORKLOAD_NAME];
    char with
        [SPEC_WORKLOAD_NAME]; /* role on whose GPUs it runs; "": its own nodes, or those of the scenario */
    int nodes;                /* of its own; 0: none */
    bool scalar_head;         /* returns one number a token: a critic, or a model of rewards */
    bool offloaded;           /* rests in the host's memory while others work */
    SpecHostMemory host_memory;
    const char
        *scenario; /* interned: keys of a scenario that it has in place of the scenario's own; NULL: none */
} SpecRole;

typedef struct SpecPhase {
    char name[SPEC_WORKLOAD_NAME];
    SpecPhaseKind kind;
    int role, to;   /* rows of the roles; to: of a sync, else -1 */
    double seconds; /* SPEC_UNSET: it is asked */
    unsigned after; /* bits of earlier phases that have to be over */
} SpecPhase;

/* Tokens of an answer: log-normal, cut off at `max`. */
typedef struct SpecAnswerTokens {
    double mean, log_sd, max; /* log_sd 0: all equal; max 0: none */
} SpecAnswerTokens;

typedef struct SpecSampling {
    int prompts, samples_per_prompt; /* of a step of the loop */
    double prompt_tokens;
    SpecAnswerTokens answer_tokens;
    char engine[SPEC_WORKLOAD_NAME]; /* recipe of who generates, where its role names none */
    int max_sequences;               /* of a replica at once; 0: the engine's */
    double kept_frac;                /* of the prompts whose answers are trained on */
    double seconds;                  /* of one batch; SPEC_UNSET: it is asked */
} SpecSampling;

typedef struct SpecSync {
    SpecSyncWay way;
    double seconds; /* SPEC_UNSET: it is asked */
} SpecSync;

typedef struct SpecWorkload {
    bool given; /* the scenario has `workload` */
    char name[SPEC_WORKLOAD_NAME];
    SpecSampling generation;
    SpecRole role[SPEC_MOST_ROLES];
    int role_count;
    SpecPhase phase[SPEC_MOST_PHASES];
    int phase_count;
    int mini_batches, epochs;  /* steps of the optimizer: mini_batches x epochs a step of the loop */
    double micro_batch_tokens; /* most that a micro-batch packs; 0: training.micro_batch sequences */
    bool padded;               /* every sequence takes the room of the longest */
    bool keeps_outputs;        /* forwards keep logits, keys and values until the last of them is over */
    bool balanced;             /* sequences are dealt to replicas so that all have as many tokens */
    double staleness_steps;    /* by which answers may be older than the weights that train on them */
    bool in_flight; /* weights change under answers that are being written: batches do not end together */
    SpecSync sync;
    double steps; /* of the whole run; 0: not given */
    int seed;
} SpecWorkload;

/* Ranks of a role in place of those that its scenario has; 0: as that says. */
typedef struct SpecRanks {
    int tensor, pipeline, context;
} SpecRanks;

/* Whether the role says its own layout; otherwise it has the scenario's. */
bool spec_role_has_layout(const SpecRole *role);

/* Row of the role with this name; -1: none. */
int spec_role_index(const SpecWorkload *workload, const char *name);
/* The role whose nodes a role runs on; -1: those of the scenario. */
int spec_role_host(const SpecWorkload *workload, int role);

#endif
