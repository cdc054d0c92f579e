/* spec/recipe_facts.c - see recipe_facts.h. Tested: unit/spec/test_model_recipes.c */
#include "spec/recipe_facts.h"

#include <string.h>

#include "spec/generation.h"

static const OrrJson *value_at(const OrrJson *scenario, const char *object, const char *key)
{
    const OrrJson *at = orr_json_member(scenario, object);
    return at != NULL && orr_json_type(at) == ORR_JSON_OBJECT ? orr_json_member(at, key) : NULL;
}

static bool is_text(const OrrJson *node, const char *text)
{
    return node != NULL && orr_json_type(node) == ORR_JSON_TEXT && strcmp(orr_json_text(node), text) == 0;
}

static bool above_one(const OrrJson *node)
{
    return is_text(node, "auto") ||
           (node != NULL && orr_json_type(node) == ORR_JSON_NUMBER && orr_json_number(node) > 1);
}

/* Ranks share layers, sequences, experts or stages, and each keeps the whole of its part's weights: a program that
 * shards its tensors besides (ZeRO-3) is a loop around FSDP. */
static bool shared_model(const OrrJson *scenario)
{
    static const char *const degrees[] = {"tensor", "pipeline", "context", "expert"};
    const OrrJson *zero = value_at(scenario, "parallel", "zero");
    bool shared = false;
    for (gsize i = 0; i < G_N_ELEMENTS(degrees); i++)
        shared = shared || above_one(value_at(scenario, "parallel", degrees[i]));
    return shared && (zero == NULL || orr_json_type(zero) != ORR_JSON_NUMBER || orr_json_number(zero) < 3);
}

/* Ranks share the optimizer's states and nothing else of the model. FSDP cannot do that: least_zero of its profiles. */
static bool sharded_optimizer(const OrrJson *scenario)
{
    const OrrJson *zero = value_at(scenario, "parallel", "zero");
    return zero != NULL && orr_json_type(zero) == ORR_JSON_NUMBER && orr_json_number(zero) == 1;
}

/* GPUs run a module's operations one by one; TPUs and Gaudi compile their graph first. Unsaid: a GPU. */
static bool on_gpus(const OrrJson *scenario)
{
    const OrrJson *accelerator = value_at(scenario, "cluster", "accelerator");
    const bool object = accelerator != NULL && orr_json_type(accelerator) == ORR_JSON_OBJECT;
    const OrrJson *generation = object ? orr_json_member(accelerator, "generation") : NULL;
    if (generation != NULL && orr_json_type(generation) == ORR_JSON_OBJECT)
        generation = orr_json_member(generation, "like");
    const bool text = generation != NULL && orr_json_type(generation) == ORR_JSON_TEXT;
    const SpecGeneration *row = text ? spec_generation(orr_json_text(generation)) : NULL;
    return row == NULL || row->chip == SPEC_CHIP_GPU;
}

/* Modules of Hugging Face's transformers on GPUs, whatever loop stands around them: the software's free text tells. */
static bool hugging_face(const OrrJson *scenario)
{
    static const char *const words[] = {"hugging face", "huggingface", "transformers", "forcausallm"};
    const OrrJson *text = value_at(scenario, "execution", "framework_text");
    if (text == NULL || orr_json_type(text) != ORR_JSON_TEXT || !on_gpus(scenario))
        return false;
    g_autofree char *lower = g_ascii_strdown(orr_json_text(text), -1);
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++)
        if (strstr(lower, words[i]) != NULL)
            return true;
    return false;
}

/* The text names NeMo 2, by its own version (2.3) or its container's (24.x, 25.x), and not Megatron-Bridge that came next. */
static bool names_nemo_2(const char *lower)
{
    const char *at = strstr(lower, "nemo 2");
    if (at == NULL || strstr(lower, "bridge") != NULL)
        return false;
    const char next = at[strlen("nemo 2")];
    return !g_ascii_isalnum(next) || next == '4' || next == '5';
}

/* NeMo 2 under a configuration that switches on no fusion: Megatron-Core's own defaults are off, and only these families
 * set them. Others (Qwen, Gemma, Mistral, Phi, Baichuan) and a bare GPTConfig do not.
 * Source: NVIDIA-NeMo/NeMo v2.3.2 nemo/collections/llm/gpt/model, bias_activation_fusion, bias_dropout_fusion,
 * apply_rope_fusion */
static bool nemo_unfused(const OrrJson *scenario)
{
    static const char *const fused[] = {"llama", "mixtral", "nemotron", "deepseek", "starcoder", "gpt"};
    const OrrJson *text = value_at(scenario, "execution", "framework_text"),
                  *name = value_at(scenario, "model", "name");
    if (text == NULL || orr_json_type(text) != ORR_JSON_TEXT || name == NULL ||
        orr_json_type(name) != ORR_JSON_TEXT)
        return false;
    g_autofree char *software = g_ascii_strdown(orr_json_text(text), -1),
                    *model = g_ascii_strdown(orr_json_text(name), -1);
    for (gsize i = 0; i < G_N_ELEMENTS(fused); i++)
        if (strstr(model, fused[i]) != NULL)
            return false;
    return names_nemo_2(software);
}

static bool unfused_attention(const OrrJson *scenario)
{
    return is_text(value_at(scenario, "execution", "attention"), "unfused");
}

static bool learned_positions(const OrrJson *scenario)
{
    return is_text(value_at(scenario, "model", "position"), "learned");
}

static bool in_8_bits(const OrrJson *scenario)
{
    const OrrJson *precision = value_at(scenario, "training", "precision");
    return precision != NULL && orr_json_type(precision) == ORR_JSON_TEXT &&
           strstr(orr_json_text(precision), "fp8") != NULL;
}

static bool has_capacity_factor(const OrrJson *scenario)
{
    const OrrJson *moe = value_at(scenario, "model", "moe");
    return moe != NULL && orr_json_type(moe) == ORR_JSON_OBJECT &&
           orr_json_number_of(moe, "capacity_factor", 0) > 0;
}

static bool not_compiled(const OrrJson *scenario)
{
    const OrrJson *compiled = value_at(scenario, "execution", "compiled");
    return compiled == NULL || orr_json_type(compiled) != ORR_JSON_BOOL || !orr_json_bool(compiled);
}

/* LoRA or QLoRA of plain texts: preference and reward training has tasks of its own. */
static bool adapter_task(const OrrJson *scenario)
{
    const OrrJson *task = value_at(scenario, "training", "task");
    return is_text(task, "lora") || is_text(task, "qlora");
}

static bool whole_model_task(const OrrJson *scenario)
{
    return value_at(scenario, "training", "adapter") == NULL;
}

/* Every rank holds all states. A search over ZeRO ("auto") does not have it, as every stage is compared alike. */
static bool unsharded(const OrrJson *scenario)
{
    const OrrJson *zero = value_at(scenario, "parallel", "zero");
    return zero == NULL || (orr_json_type(zero) == ORR_JSON_NUMBER && orr_json_number(zero) == 0);
}

/* A loop that shards nothing, compiled: the model whole, with the loss in which its forward ends. */
static bool compiled_whole(const OrrJson *scenario)
{
    return !not_compiled(scenario) && unsharded(scenario) && !shared_model(scenario);
}

static const struct {
    const char *name;
    bool (*holds)(const OrrJson *scenario);
} facts[] = {
    {"shared-model", shared_model},           {"unfused-attention", unfused_attention},
    {"learned-positions", learned_positions}, {"8-bit", in_8_bits},
    {"not-compiled", not_compiled},           {"capacity-factor", has_capacity_factor},
    {"hugging-face", hugging_face},           {"sharded-optimizer", sharded_optimizer},
    {"adapter-task", adapter_task},           {"whole-model-task", whole_model_task},
    {"compiled-whole", compiled_whole},       {"unsharded", unsharded},
    {"nemo-unfused", nemo_unfused},
};

bool spec_recipe_fact_is(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(facts); i++)
        if (strcmp(name, facts[i].name) == 0)
            return true;
    return false;
}

bool spec_recipe_fact_holds(const char *name, const OrrJson *scenario)
{
    for (gsize i = 0; i < G_N_ELEMENTS(facts); i++)
        if (strcmp(name, facts[i].name) == 0)
            return facts[i].holds(scenario);
    return false;
}
