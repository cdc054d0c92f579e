/* spec/fields_workload.c - field tables of a loop of phases over several models. */
#include <string.h>

#include "spec/fields_internal.h"
#include "spec/texts.h"

static const char *const kind_list[] = {"generate", "forward", "train", "sync", "given"};
static const SpecWords words_kind = {"one of the kinds of a phase", kind_list, (int)G_N_ELEMENTS(kind_list),
                                     0};
static const char *const way_list[] = {"broadcast", "peer-to-peer"};
static const SpecWords words_way = {"one of the ways that weights take", way_list,
                                    (int)G_N_ELEMENTS(way_list), 0};

static const char *const host_list[] = {"kept", "fresh"};
static const SpecWords words_host = {"one of the ways that host memory is held", host_list,
                                     (int)G_N_ELEMENTS(host_list), 0};

int spec_role_index(const SpecWorkload *workload, const char *name)
{
    for (int i = 0; i < workload->role_count; i++)
        if (strcmp(workload->role[i].name, name) == 0)
            return i;
    return -1;
}

int spec_role_host(const SpecWorkload *workload, int role)
{
    for (int hops = 0; role >= 0 && hops <= workload->role_count; hops++) {
        const SpecRole *at = &workload->role[role];
        if (at->nodes > 0)
            return role;
        role = at->with[0] != '\0' ? spec_role_index(workload, at->with) : -1;
    }
    return -1;
}

/* --- roles --- */

/* Keys of a scenario that a role may have in place of the scenario's own. */
static const char *const role_parts[] = {"model", "cluster", "training", "parallel", "execution", "offload"};

static const SpecField role_fields[] = {
    SPEC_F_INT(SpecRole, nodes, 1, 1e6, NULL, SPEC_FIELD_DERIVED,
               "Extra nodes for this role alone. Without them it shares the GPUs of other roles."),
    SPEC_F_NAME(SpecRole, with, "\"\"",
                "Role whose GPUs it shares; without it and without nodes, the scenario's."),
    SPEC_F_BOOL(
        SpecRole, scalar_head, "false", 0,
        "The role's head returns one number a token in place of logits: a critic, or a model of rewards."),
    SPEC_F_BOOL(
        SpecRole, offloaded, "false", 0,
        "The role's weights and states rest in the host's memory while others work, and are copied back."),
    SPEC_F_WORD(
        SpecRole, host_memory, &words_host, "\"kept\"", 0,
        "Of what is offloaded: buffers that are \"kept\" and pinned, copied at the rate of the host's "
        "link; or \"fresh\" ones each time, as to(\"cpu\") of PyTorch and sleep(level=1) of vLLM have "
        "them: 2.2 GB/s there and 10.8 GB/s back."),
    SPEC_F_NOTE("comment", "What the role is for, for people."),
};
static SPEC_TABLE(table_role, "workload.roles.NAME", "One model of the loop.", role_fields);

/* What of `node` is a scenario's, as one object; g_free. NULL: nothing. */
static char *scenario_part(const OrrJson *node, OrrJsonDoc **ret_own)
{
    OrrJsonDoc *part = orr_json_copy(node, "role"), *own = orr_json_copy(node, "role");
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item)) {
        const char *key = orr_json_key(item);
        const bool is_part =
            g_strv_contains((const char *const[]){role_parts[0], role_parts[1], role_parts[2], role_parts[3],
                                                  role_parts[4], role_parts[5], NULL},
                            key);
        orr_json_remove(is_part ? own : part, key);
    }
    char *text = orr_json_count(orr_json_root(part)) > 0 ? orr_json_dump(orr_json_root(part)) : NULL;
    orr_json_free(part);
    *ret_own = own;
    return text;
}

static bool read_role(SpecReadContext *context, const OrrJson *node, SpecRole *role, GError **error)
{
    const char *name = orr_json_key(node);
    if (strlen(name) >= sizeof role->name || name[0] == '\0')
        return spec_read_fail(context, NULL, error, "\"%.40s\" is not a name of 1 to %d bytes", name,
                              (int)sizeof role->name - 1);
    if (orr_json_type(node) != ORR_JSON_OBJECT)
        return spec_read_fail(context, node, error, "is %s; give role %s an object, as {\"nodes\":4}",
                              orr_json_type_name(node), name);
    g_strlcpy(role->name, name, sizeof role->name);
    OrrJsonDoc *own = NULL;
    g_autofree char *scenario = scenario_part(node, &own);
    role->scenario = scenario != NULL ? spec_keep_text(context->texts, scenario) : NULL;
    const bool ok = spec_read_table(context, &table_role, orr_json_root(own), role, error);
    role->nodes = MAX(0, role->nodes);
    orr_json_free(own);
    return ok;
}

static bool read_roles(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecWorkload *workload = target;
    if (orr_json_type(node) != ORR_JSON_OBJECT || orr_json_count(node) > SPEC_MOST_ROLES)
        return spec_read_fail(context, node, error,
                              "is not an object of at most %d roles; write {\"actor\":{},\"rollout\":{}}",
                              SPEC_MOST_ROLES);
    workload->role_count = 0;
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item)) {
        SpecRole role = {.nodes = 0};
        if (!read_role(context, item, &role, error))
            return false;
        workload->role[workload->role_count++] = role;
    }
    return true;
}

/* --- phases --- */

/* As the file has it; names become rows when all roles are known. */
typedef struct PhaseText {
    char name[SPEC_WORKLOAD_NAME], role[SPEC_WORKLOAD_NAME], to[SPEC_WORKLOAD_NAME];
    int kind;
    double seconds;
    unsigned after;
} PhaseText;

static bool read_after(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    (void)target;
    for (const OrrJson *item = orr_json_type(node) == ORR_JSON_LIST ? orr_json_first(node) : NULL;
         item != NULL; item = orr_json_next(item))
        if (orr_json_type(item) != ORR_JSON_TEXT)
            return spec_read_fail(context, item, error, "is not the name of a phase");
    return orr_json_type(node) == ORR_JSON_LIST ||
           spec_read_fail(context, node, error, "is %s; give a list of names of earlier phases",
                          orr_json_type_name(node));
}

static const SpecField phase_fields[] = {
    SPEC_F_NAME(PhaseText, name, "\"\"", "What reports call the phase; without it, its kind and role."),
    SPEC_F_WORD(PhaseText, kind, &words_kind, NULL, SPEC_FIELD_REQUIRED,
                "What is done: answers generated, a forward of all tokens, training, weights sent, or given "
                "seconds."),
    SPEC_F_NAME(PhaseText, role, "\"\"", "Role that does it."),
    SPEC_F_NAME(PhaseText, to, "\"\"", "Role that receives the weights of a sync."),
    SPEC_F_DOUBLE(PhaseText, seconds, ORR_UNIT_SECONDS, 0, 1e7, NULL, SPEC_FIELD_DERIVED,
                  "Time it takes, where it is known; otherwise it is predicted."),
    {.key = "after",
     .type = SPEC_TYPE_CUSTOM,
     .flags = SPEC_FIELD_DERIVED,
     .read = read_after,
     .form = "a list of names of earlier phases",
     .schema = "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}",
     .help = "Phases that have to be over before it begins; without the key, the one before it."},
};
static SPEC_TABLE(table_phase, "workload.phases", "One phase of the loop.", phase_fields);

static bool find_role(SpecReadContext *context, const SpecWorkload *workload, const char *key,
                      const char *name, int *ret_row, GError **error)
{
    *ret_row = spec_role_index(workload, name);
    if (*ret_row >= 0)
        return true;
    g_autoptr(GString) known = g_string_new(NULL);
    for (int i = 0; i < workload->role_count; i++)
        g_string_append_printf(known, "%s%s", i > 0 ? ", " : "", workload->role[i].name);
    return spec_read_fail(context, NULL, error, "%s \"%s\" is not one of the roles; give one of: %s", key,
                          name, known->str);
}

static bool find_after(SpecReadContext *context, const SpecWorkload *workload, const OrrJson *node,
                       SpecPhase *phase, GError **error)
{
    const OrrJson *list = orr_json_member(node, "after");
    if (list == NULL) {
        phase->after = workload->phase_count > 0 ? 1u << (workload->phase_count - 1) : 0;
        return true;
    }
    for (const OrrJson *item = orr_json_first(list); item != NULL; item = orr_json_next(item)) {
        int row = 0;
        while (row < workload->phase_count && strcmp(workload->phase[row].name, orr_json_text(item)) != 0)
            row++;
        if (row == workload->phase_count)
            return spec_read_fail(context, item, error, "is not a phase before \"%s\"", phase->name);
        phase->after |= 1u << row;
    }
    return true;
}

static bool read_phase(SpecReadContext *context, const SpecWorkload *workload, const OrrJson *node,
                       SpecPhase *phase, GError **error)
{
    PhaseText text = {.kind = 0};
    if (orr_json_type(node) != ORR_JSON_OBJECT)
        return spec_read_fail(context, node, error, "is %s; give {\"kind\":\"train\",\"role\":\"actor\"}",
                              orr_json_type_name(node));
    if (!spec_read_table(context, &table_phase, node, &text, error))
        return false;
    *phase = (SpecPhase){.kind = (SpecPhaseKind)text.kind, .role = -1, .to = -1, .seconds = text.seconds};
    g_strlcpy(phase->name, text.name, sizeof phase->name);
    if (text.name[0] == '\0')
        g_snprintf(phase->name, sizeof phase->name, "%s %.20s", kind_list[text.kind], text.role);
    if (phase->kind == SPEC_PHASE_GIVEN && phase->seconds < 0)
        return spec_read_fail(context, NULL, error,
                              "phase \"%s\" of kind \"given\" has no seconds; give them, 0 where it takes "
                              "none",
                              phase->name);
    return ((phase->kind == SPEC_PHASE_GIVEN && text.role[0] == '\0') ||
            find_role(context, workload, "role", text.role, &phase->role, error)) &&
           (phase->kind != SPEC_PHASE_SYNC ||
            find_role(context, workload, "to", text.to, &phase->to, error)) &&
           find_after(context, workload, node, phase, error);
}

static bool read_phases(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecWorkload *workload = target;
    const int count = orr_json_type(node) == ORR_JSON_LIST ? orr_json_count(node) : 0;
    if (count < 1 || count > SPEC_MOST_PHASES)
        return spec_read_fail(context, node, error, "is not a list of 1 to %d phases", SPEC_MOST_PHASES);
    workload->phase_count = 0;
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item)) {
        SpecPhase phase;
        if (!read_phase(context, workload, item, &phase, error))
            return false;
        workload->phase[workload->phase_count++] = phase;
    }
    return true;
}

/* --- the rest --- */

static const SpecField answer_fields[] = {
    SPEC_F_DOUBLE(SpecAnswerTokens, mean, ORR_UNIT_TOKENS, 1, 1e7, "1024", 0,
                  "Mean length, before answers are cut off."),
    SPEC_F_DOUBLE(SpecAnswerTokens, log_sd, ORR_UNIT_NONE, 0, 4, "0", 0,
                  "Standard deviation of the length's logarithm: lengths are log-normal. 0: all are equal."),
    SPEC_F_DOUBLE(SpecAnswerTokens, max, ORR_UNIT_TOKENS, 0, 1e7, "0", 0,
                  "Length at which answers are cut off; 0: none is."),
};
static SPEC_TABLE(table_answer, "workload.generation.answer_tokens", "Tokens of an answer.", answer_fields);

static const SpecField generation_fields[] = {
    SPEC_F_INT(SpecSampling, prompts, 1, 1e7, "64", 0, "Prompts of one step of the loop."),
    SPEC_F_INT(SpecSampling, samples_per_prompt, 1, 1e6, "1", 0, "Answers that are written to each prompt."),
    SPEC_F_DOUBLE(SpecSampling, prompt_tokens, ORR_UNIT_TOKENS, 0, 1e7, "256", 0, "Mean length of a prompt."),
    SPEC_F_OBJECT(SpecSampling, answer_tokens, table_answer, 0, "Tokens of an answer."),
    SPEC_F_NAME(
        SpecSampling, engine, "\"vllm\"",
        "Inference engine of the role that generates: vllm, sglang, tensorrt-llm, or the path of a recipe."),
    SPEC_F_INT(SpecSampling, max_sequences, 0, 1e6, "0", 0,
               "Answers that a replica writes at once; 0: as many as the engine's recipe says."),
    SPEC_F_DOUBLE(SpecSampling, kept_frac, ORR_UNIT_FRAC, 0.01, 1, "1", 0,
                  "Share of the prompts that is trained on; the others are generated and dropped (DAPO)."),
    SPEC_F_DOUBLE(SpecSampling, seconds, ORR_UNIT_SECONDS, 0, 1e7, NULL, SPEC_FIELD_DERIVED,
                  "Time of one batch of answers, where it is known; otherwise it is predicted."),
};
static SPEC_TABLE(table_generation, "workload.generation", "Answers that a step of the loop generates.",
                  generation_fields);

static const SpecField sync_fields[] = {
    SPEC_F_WORD(SpecSync, way, &words_way, "\"broadcast\"", 0,
                "How weights reach other nodes: one sender to all, or each reader from who holds its part."),
    SPEC_F_DOUBLE(SpecSync, seconds, ORR_UNIT_SECONDS, 0, 1e7, NULL, SPEC_FIELD_DERIVED,
                  "Time of one sync, where it is known; otherwise it is predicted."),
};
static SPEC_TABLE(table_sync, "workload.sync", "How new weights reach the role that generates.", sync_fields);

static const SpecField workload_fields[] = {
    SPEC_F_FILE_KEYS("workloads"),
    SPEC_F_NAME(SpecWorkload, name, "\"\"", "Name of the loop in reports."),
    SPEC_F_NOTE("comment", "What the loop does, for readers of the file."),
    SPEC_F_OBJECT(SpecWorkload, generation, table_generation, 0,
                  "Answers that a step of the loop generates."),
    {.key = "roles",
     .type = SPEC_TYPE_CUSTOM,
     .flags = SPEC_FIELD_DERIVED,
     .read = read_roles,
     .form = "an object of roles, as {\"actor\":{},\"rollout\":{\"nodes\":4}}",
     .schema = "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"object\"},\"maxProperties\":8}",
     .help = "Models of the loop by name: nodes, with, offloaded, and model, cluster, training, parallel or "
             "execution in place of the scenario's."},
    {.key = "phases",
     .type = SPEC_TYPE_CUSTOM,
     .flags = SPEC_FIELD_DERIVED,
     .read = read_phases,
     .form = "a list of phases, as [{\"kind\":\"train\",\"role\":\"actor\"}]",
     .schema = "{\"type\":\"array\",\"items\":{\"type\":\"object\"},\"maxItems\":16}",
     .help = "What a step of the loop does, in order: name, kind, role, to, seconds, after."},
    SPEC_F_INT(SpecWorkload, mini_batches, 1, 1e6, "1", 0,
               "Steps of the optimizer into which a batch of answers is divided."),
    SPEC_F_INT(SpecWorkload, epochs, 1, 1000, "1", 0, "Passes of training over a batch of answers."),
    SPEC_F_DOUBLE(SpecWorkload, micro_batch_tokens, ORR_UNIT_TOKENS, 0, 1e9, "0", 0,
                  "Most tokens that a micro-batch packs; 0: it holds training.micro_batch sequences."),
    SPEC_F_BOOL(SpecWorkload, padded, "false", 0, "Every sequence takes the room of the longest one."),
    SPEC_F_BOOL(
        SpecWorkload, keeps_outputs, "false", 0,
        "Forward passes keep logits, keys and values of their models until the last of these passes is "
        "over, as Transformers' models return them. They then count as needed memory."),
    SPEC_F_BOOL(SpecWorkload, balanced, "true", 0,
                "Sequences are assigned to replicas so that all have nearly as many tokens."),
    SPEC_F_DOUBLE(SpecWorkload, staleness_steps, ORR_UNIT_NONE, 0, 1000, "0", 0,
                  "Steps by which answers may be older than the weights that train on them. 0: synchronous."),
    SPEC_F_BOOL(SpecWorkload, in_flight, "false", 0,
                "New weights are taken under answers that are being written, and new prompts follow at "
                "once: no batch waits for its longest answer."),
    SPEC_F_OBJECT(SpecWorkload, sync, table_sync, 0, "How new weights reach the role that generates."),
    SPEC_F_DOUBLE(SpecWorkload, steps, ORR_UNIT_NONE, 0, 1e12, "0", 0,
                  "Steps of the loop in the whole run; 0: not given."),
    SPEC_F_INT(SpecWorkload, seed, 0, 1e9, "1", 0, "Seed of drawn lengths."),
};
SPEC_TABLE(spec_table_workload, "workload",
           "A loop of phases over several models, as reinforcement learning runs it.", workload_fields);

bool spec_read_workload(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecWorkload *workload = target;
    if (context->partial && orr_json_type(node) == ORR_JSON_TEXT)
        return true;
    if (orr_json_type(node) != ORR_JSON_OBJECT)
        return spec_read_fail(context, node, error, "is %s; give a preset's name or an object",
                              orr_json_type_name(node));
    SpecReadContext inside = *context;
    inside.quiet++;
    workload->given = true;
    return spec_read_table(&inside, &spec_table_workload, node, workload, error);
}
