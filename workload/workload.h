/* workload/workload.h - a step of a loop over several models: what every phase takes, when it runs, and what binds.
 *
 * A phase of training is a step asked (answer/answer.h) times the steps of the optimizer; a forward is the same model's
 * forwards through its pipeline; weights go as collectives. Phases then follow each other as loop.h says. Roles that share
 * GPUs are a part of the machine.
 * Ignores: head of a critic is priced as an LM head; what advantage and loss take outside of the models.
 */
#ifndef ORR_WORKLOAD_WORKLOAD_H
#define ORR_WORKLOAD_WORKLOAD_H

#include "base/arena.h"
#include "base/json.h"
#include "base/text.h"
#include "spec/load.h"
#include "workload/loop.h"

typedef struct WorkloadPart { /* GPUs that roles share */
    const char *name;         /* the roles, "actor, reference" */
    int host;                 /* row of the role whose nodes they are; -1: the scenario's */
    int nodes, gpus;
    int64_t busy_ps; /* of a step */
} WorkloadPart;

typedef struct WorkloadRole {
    const SpecRole *role; /* borrowed */
    const Spec *spec;     /* as a scenario, its batch that of one mini-batch; NULL: no phase asks it */
    int part;
    double needed_bytes, capacity_bytes; /* of a GPU, while it works; 0: not known */
    double resting_bytes;                /* of a GPU, while others work there */
    double output_bytes;  /* of a GPU, that its forward returns and that stay until all are over */
    double scoring_bytes; /* of a GPU, beside these and what rests; 0: not known */
} WorkloadRole;

typedef struct WorkloadPhase {
    const SpecPhase *phase;         /* borrowed */
    int part, other;                /* rows of the parts; -1: none */
    int64_t ps, begin_ps, ready_ps; /* ready: what it waits for is over */
    int steps;                      /* of the optimizer */
    int microbatches;               /* of one replica in each */
    double tokens;                  /* of one micro-batch */
    double bytes;                   /* of a sync: of all weights */
    double tail_s;   /* of a generation: with at most half as many answers as at most; NAN: not known */
    bool given;      /* its seconds are the scenario's */
    const char *why; /* what binds it, in words; NULL: not known */
} WorkloadPhase;

typedef struct Workload {
    const Spec *spec; /* borrowed: the scenario's own, which trains */
    WorkloadPart part[LOOP_MOST_PARTS];
    int part_count;
    WorkloadRole role[SPEC_MOST_ROLES];
    WorkloadPhase phase[SPEC_MOST_PHASES];
    int phase_count;
    int gpus, staleness_steps, weights_age; /* age: steps of the weights that generate behind the newest */
    int64_t step_ps;
    double sequences, answer_tokens, sequence_tokens,
        longest_tokens;                        /* trained on in a step; means; of a batch */
    double tokens_per_s, tokens_per_s_per_gpu; /* prompts and answers that are trained on */
    double busiest_frac;                       /* tokens of the busiest replica over the mean */
    bool fits;
    int bound_part, bound_phase; /* that the step waits for most */
    double days, usd, gpu_hours; /* of workload.steps; 0: not given */
} Workload;

/* What a role's forwards and training take on some nodes in some layout. */
typedef struct WorkloadKept {
    bool refused; /* one of them cannot run */
    WorkloadPhase phase[SPEC_MOST_PHASES];
    WorkloadRole role;
    double busiest_frac;
} WorkloadKept;

/* Other nodes for the scenario's part and for the role that generates than the scenario says. */
typedef struct WorkloadSplit {
    const Spec *const *roles;           /* [role_count] as they are loaded: workload_roles() */
    int nodes;                          /* of the scenario's part */
    int apart;                          /* of the role that generates; 0: it shares the scenario's */
    const struct RolloutAnswer *answer; /* of the role that generates, where it is known; may be NULL */
    const WorkloadKept *const *kept; /* [role_count] what is known of roles: workload_keep(); may be NULL */
} WorkloadSplit;

typedef struct WorkloadAsk {
    bool check;                 /* verify what loops promise */
    const WorkloadSplit *split; /* NULL: as the scenario says */
} WorkloadAsk;

/* A role as a scenario, in `arena`, with `ranks` in place of its own; what it points to is held by `source`. NULL with an error. */
const Spec *workload_load_role(const Spec *spec, const SpecSource *source, int row, SpecRanks ranks,
                               OrrArena *arena, GError **error);
/* All roles: [role_count]; `ranks` are of those that have the scenario's layout, and its nodes. NULL with an error. */
const Spec **workload_roles(const Spec *spec, const SpecSource *source, SpecRanks ranks, OrrArena *arena,
                            GError **error);
/* A role on so many nodes, with as many replicas as they hold; false with an error where its layout does not divide them. */
bool workload_resize(const Spec *role, int nodes, Spec *ret_role, const char *name, GError **error);
/* What each role needs of a GPU beside what the others keep there, and whether all of it fits. */
void workload_fill_memory(Workload *workload);
/* Row of the role that generates; -1: none does. */
int workload_generator(const SpecWorkload *workload);
/* `spec` with spec->workload.given and complete, and what it was loaded with. Results live in `arena`. */
bool workload_ask(const Spec *spec, const SpecSource *source, const WorkloadAsk *ask, OrrArena *arena,
                  Workload *ret_workload, GError **error);

/* The phases of `role` that forward and train, of this split alone; *ret_kept says whether they can run, *error why not. */
void workload_keep(const Spec *spec, const SpecSource *source, const WorkloadSplit *split, int role,
                   OrrArena *arena, WorkloadKept *ret_kept, GError **error);

/* Its phases as loop.h takes them; how many. */
int workload_loop_phases(const Workload *workload, LoopPhase phases[LOOP_MOST_PHASES]);

/* "update": what the step waits for most, as a key of JSON. */
const char *workload_bound_word(const Workload *workload);

/* Opens an answer in `out`: schema, version, stamp and scenario. The caller closes the object. */
void workload_begin_json(OrrJsonWriter *w, const Spec *spec, const SpecSource *source, GString *out);
void workload_write_json(const Workload *workload, const SpecSource *source, GString *out);
void workload_write_text(const Workload *workload, GString *out);
void workload_write_csv(const Workload *workload, GString *out);
/* A phase a row, for people; the caller frees it. */
OrrTable *workload_phase_table(const Workload *workload);

#endif
