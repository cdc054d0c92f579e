/* spec/check_workload.c - contradictions of a loop over several models. */
#include <math.h>
#include <string.h>

#include "spec/checks.h"

static bool check_answers(const Check *check)
{
    const SpecSampling *generation = &check->spec->workload.generation;
    const SpecAnswerTokens *answer = &generation->answer_tokens;
    /* as many as the step's own sequence has: derived from it, and no limit */
    const int known = check->spec->model.max_positions,
              positions = known == check->spec->training.sequence_length ? 0 : known;
    const double longest = generation->prompt_tokens + fmax(answer->mean, answer->max);
    if (answer->max > 0 && answer->mean > answer->max)
        return spec_check_fail(
            check,
            "workload.generation.answer_tokens.mean: %g tokens are more than max %g; give a mean below it",
            answer->mean, answer->max);
    return positions <= 0 || longest <= positions ||
           spec_check_fail(
               check,
               "workload.generation.answer_tokens: prompt and answer of %g tokens are longer than "
               "the context of %s, %d; give a max of at most %g",
               longest, check->spec->model.name, positions, fmax(1, positions - generation->prompt_tokens));
}

/* A step of more answers would take longer to simulate than to wait for. */
static bool check_batch(const Check *check)
{
    const double most = 1e6;
    const SpecSampling *generation = &check->spec->workload.generation;
    const double answers = (double)generation->prompts * generation->samples_per_prompt;
    return answers <= most ||
           spec_check_fail(
               check,
               "workload.generation: %d prompts of %d samples_per_prompt are %.0f answers a step; "
               "give at most %.0f",
               generation->prompts, generation->samples_per_prompt, answers, most);
}

static bool check_role(const Check *check, const SpecRole *role)
{
    const SpecWorkload *workload = &check->spec->workload;
    if (role->with[0] == '\0')
        return true;
    if (role->nodes > 0)
        return spec_check_fail(check,
                               "workload.roles.%s: nodes %d together with \"%s\"; give nodes of its own or "
                               "the role whose GPUs it shares",
                               role->name, role->nodes, role->with);
    if (spec_role_index(workload, role->with) < 0)
        return spec_check_fail(check, "workload.roles.%s.with: \"%s\" is not one of the roles", role->name,
                               role->with);
    return strcmp(role->with, role->name) != 0 ||
           spec_check_fail(check, "workload.roles.%s.with: a role cannot share its own GPUs; leave it out",
                           role->name);
}

/* Is the role, or one that shares its GPUs, in some phase? */
static bool works(const SpecWorkload *workload, int role)
{
    for (int i = 0; i < workload->phase_count; i++) {
        const SpecPhase *phase = &workload->phase[i];
        const int own[] = {phase->role, phase->kind == SPEC_PHASE_SYNC ? phase->to : -1};
        for (gsize k = 0; k < G_N_ELEMENTS(own); k++)
            if (own[k] == role || (own[k] >= 0 && spec_role_host(workload, own[k]) == role))
                return true;
    }
    return false;
}

/* A role that no phase asks, with nodes or a layout of its own, is a name written wrongly: its GPUs would be paid for, and its
 * layout not looked at. One that a preset has and the phases leave out is none. */
static bool check_works(const Check *check, int role)
{
    const SpecWorkload *workload = &check->spec->workload;
    const SpecRole *idle = &workload->role[role];
    g_autoptr(GString) names = g_string_new(NULL);
    if ((idle->nodes == 0 && idle->scenario == NULL) || works(workload, role))
        return true;
    for (int i = 0; i < workload->role_count; i++)
        if (works(workload, i))
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", workload->role[i].name);
    return spec_check_fail(
        check,
        "workload.roles.%s: no phase asks this role; leave it out, name it in workload.phases, "
        "or give one of the roles that work: %s",
        idle->name, names->str);
}

bool spec_check_workload(const Check *check)
{
    const SpecWorkload *workload = &check->spec->workload;
    bool trains = false;
    if (!workload->given)
        return true;
    if (workload->role_count == 0)
        return spec_check_fail(check,
                               "workload.roles: missing; give a preset such as grpo, or roles by name, "
                               "as {\"actor\":{},\"rollout\":{\"nodes\":4}}");
    if (workload->phase_count == 0)
        return spec_check_fail(
            check, "workload.phases: missing; give a preset such as grpo, or a list of phases, as "
                   "[{\"kind\":\"generate\",\"role\":\"rollout\"},{\"kind\":\"train\",\"role\":\"actor\"}]");
    for (int i = 0; i < workload->role_count; i++)
        if (!check_role(check, &workload->role[i]))
            return false;
    for (int i = 0; i < workload->phase_count; i++)
        trains = trains || workload->phase[i].kind == SPEC_PHASE_TRAIN;
    for (int i = 0; i < workload->role_count && trains; i++)
        if (!check_works(check, i))
            return false;
    if (!trains)
        return spec_check_fail(check, "workload.phases: none of kind \"train\"; a loop trains something");
    return check_batch(check) && check_answers(check);
}
