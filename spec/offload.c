/* spec/offload.c - the table of offloading schemes, and what a scenario's own words make of a row. */
#include "spec/offload.h"

#include "base/error.h"
#include "spec/read.h"
#include "spec/spec.h"

/* What moves where, and in which order; docs/MODEL.md "Offload". */
static const SpecOffloadRow rows[SPEC_OFFLOAD_SCHEME_COUNT] = {
    [SPEC_OFFLOAD_NONE] = {.help = "nothing but activations leaves", .ratio = 0},
    [SPEC_OFFLOAD_ZERO_OFFLOAD] = {.help =
                                       "gradients stream out, the host updates behind the global norm, tiles "
                                       "of weights come back [Ren2021]",
                                   .optimizer = SPEC_TIER_HOST,
                                   .gradients = SPEC_TIER_HOST,
                                   .update = SPEC_UPDATE_BARRIER,
                                   .ratio = 1,
                                   .least_zero = 1},
    [SPEC_OFFLOAD_ZERO_OFFLOAD_DPU] = {.help = "the same during the next step: weights are one update old "
                                               "[Ren2021]",
                                       .optimizer = SPEC_TIER_HOST,
                                       .gradients = SPEC_TIER_HOST,
                                       .update = SPEC_UPDATE_DELAYED,
                                       .ratio = 1,
                                       .least_zero = 1},
    [SPEC_OFFLOAD_TWIN_FLOW] = {.help = "host and GPU update a part each, at the same time [ZeroOffloadPP]",
                                .optimizer = SPEC_TIER_HOST,
                                .gradients = SPEC_TIER_HOST,
                                .update = SPEC_UPDATE_BARRIER,
                                .ratio = 0.3,
                                .least_zero = 1},
    [SPEC_OFFLOAD_SUPEROFFLOAD] =
        {.help = "each piece is updated when its gradient is there and validated later; "
                 "the GPU casts, fp32 crosses [SuperOffload]",
         .optimizer = SPEC_TIER_HOST,
         .gradients = SPEC_TIER_HOST,
         .update = SPEC_UPDATE_LAYERWISE,
         .fp32_transfer = true,
         .ratio = 1,
         .least_zero = 1},
    [SPEC_OFFLOAD_STRONGHOLD] = {.help =
                                     "a window of layers is on the GPU; the host updates layers beside the "
                                     "backward [Stronghold]",
                                 .optimizer = SPEC_TIER_HOST,
                                 .gradients = SPEC_TIER_HOST,
                                 .weights = SPEC_TIER_HOST,
                                 .update = SPEC_UPDATE_LAYERWISE,
                                 .windowed = true,
                                 .ratio = 1},
    [SPEC_OFFLOAD_MEMFERRY] = {.help =
                                   "forwards start with the weights that are there, and read some where they "
                                   "lie on the host [MemFerry]",
                               .optimizer = SPEC_TIER_HOST,
                               .gradients = SPEC_TIER_HOST,
                               .update = SPEC_UPDATE_FIRST,
                               .direct = true,
                               .ratio = 1,
                               .least_zero = 1},
    [SPEC_OFFLOAD_ZERO3_OFFLOAD] = {.help = "ZeRO-3 with shards of weights, gradients and states on the host "
                                            "[Zero3Offload]",
                                    .optimizer = SPEC_TIER_HOST,
                                    .gradients = SPEC_TIER_HOST,
                                    .weights = SPEC_TIER_HOST,
                                    .update = SPEC_UPDATE_BARRIER,
                                    .ratio = 1,
                                    .prefetch_depth = 2,
                                    .least_zero = 3},
    [SPEC_OFFLOAD_ZERO_INFINITY] =
        {.help = "ZeRO-3 with shards on the node's disks: disks, copies and gathers run "
                 "three, two and one piece ahead [Rajbhandari2021]",
         .optimizer = SPEC_TIER_NVME,
         .gradients = SPEC_TIER_NVME,
         .weights = SPEC_TIER_NVME,
         .update = SPEC_UPDATE_BARRIER,
         .ratio = 1,
         .prefetch_depth = 3,
         .least_zero = 3},
};

const SpecOffloadRow *spec_offload_row(SpecOffloadScheme scheme)
{
    g_assert((int)scheme >= 0 && scheme < SPEC_OFFLOAD_SCHEME_COUNT);
    return &rows[scheme];
}

static void complete_part(SpecOffloadPart *part, SpecTier tier)
{
    if ((int)part->tier == SPEC_UNSET)
        part->tier = tier;
    if (part->fraction < 0)
        part->fraction = part->tier == SPEC_TIER_GPU ? 0 : 1;
    if (part->fraction <= 0)
        part->tier = SPEC_TIER_GPU;
}

static bool leaves(const SpecOffloadPart *part)
{
    return (int)part->tier > SPEC_TIER_GPU && (part->fraction < 0 || part->fraction > 0);
}

/* Tiers without a scheme: the plainest row that moves as much. */
static SpecOffloadScheme scheme_of(const SpecOffload *offload)
{
    if (leaves(&offload->weights))
        return SPEC_OFFLOAD_ZERO3_OFFLOAD;
    if (leaves(&offload->optimizer) || leaves(&offload->gradients))
        return offload->delayed_update == 1 ? SPEC_OFFLOAD_ZERO_OFFLOAD_DPU : SPEC_OFFLOAD_ZERO_OFFLOAD;
    return SPEC_OFFLOAD_NONE;
}

void spec_offload_complete(SpecOffload *offload, int layers)
{
    if ((int)offload->scheme == SPEC_UNSET)
        offload->scheme = scheme_of(offload);
    if (offload->activations.evicts && (int)offload->activations.tier == SPEC_UNSET)
        offload->activations.tier = SPEC_TIER_HOST;
    if ((int)offload->scheme == SPEC_AUTO) { /* a search completes each */
        if (offload->activation_layers == SPEC_UNSET)
            offload->activation_layers = leaves(&offload->activations) ? SPEC_OFFLOAD_ALL : 0;
        if (offload->activation_layers == SPEC_OFFLOAD_ALL)
            offload->activation_layers = layers;
        return;
    }
    const SpecOffloadRow *row = spec_offload_row(offload->scheme);
    const bool activations = leaves(&offload->activations);
    complete_part(&offload->optimizer, row->optimizer);
    complete_part(&offload->gradients,
                  MIN(row->gradients, offload->optimizer.tier)); /* no lower than states */
    complete_part(&offload->weights, row->weights);
    if (offload->activation_layers == SPEC_UNSET)
        offload->activation_layers = activations ? SPEC_OFFLOAD_ALL : 0;
    if (offload->activation_layers == SPEC_OFFLOAD_ALL)
        offload->activation_layers = layers;
    complete_part(&offload->activations, offload->activation_layers != 0 ? SPEC_TIER_HOST : SPEC_TIER_GPU);
    offload->update = row->update;
    if (offload->delayed_update == SPEC_UNSET)
        offload->delayed_update = row->update == SPEC_UPDATE_DELAYED;
    else if (offload->delayed_update == 1)
        offload->update = SPEC_UPDATE_DELAYED;
    else if (row->update == SPEC_UPDATE_DELAYED)
        offload->update = SPEC_UPDATE_BARRIER;
    offload->direct = row->direct;
    offload->fp32_transfer = row->fp32_transfer;
    if (offload->ratio < 0)
        offload->ratio = row->ratio;
    if (offload->prefetch_depth == SPEC_UNSET)
        offload->prefetch_depth = row->prefetch_depth;
}

SpecOffload spec_offload_with(const SpecOffload *asked, SpecOffloadScheme scheme, double ratio, int layers)
{
    SpecOffload offload = *asked;
    offload.scheme = scheme;
    if (offload.subgroup_parameters < 1) { /* the scenario has no such object: its fields' defaults */
        offload.pinned = true;
        offload.subgroup_parameters = 1e9;
    }
    /* what the scenario says of states is for another scheme */
    if (scheme == SPEC_OFFLOAD_NONE || (int)asked->scheme != SPEC_AUTO) {
        static const SpecOffloadPart unset = {.tier = (SpecTier)SPEC_UNSET, .fraction = SPEC_UNSET};
        offload.optimizer = offload.gradients = offload.weights = unset;
        offload.delayed_update = SPEC_UNSET;
        offload.ratio = SPEC_UNSET;
        offload.prefetch_depth = SPEC_UNSET;
    }
    if (ratio >= 0)
        offload.ratio = ratio;
    spec_offload_complete(&offload, layers);
    return offload;
}

bool spec_offload_allows(const SpecOffload *offload, int zero, bool alone)
{
    if (!spec_offloads_states(offload))
        return true;
    const SpecOffloadRow *row = spec_offload_row(offload->scheme);
    return !(row->windowed && (zero == 3 || (!alone && zero > 0))) &&
           !(zero < row->least_zero && (!alone || row->least_zero == 3)) && !(zero == 3 && row->direct);
}

/* --- contradictions --- */

typedef struct Named {
    const char *key;
    const SpecOffloadPart *part;
} Named;

/* A kind of nodes. */
typedef struct Node {
    const SpecAccelerator *accelerator;
    const SpecHost *host;
    const char *name;
} Node;

static Node node_of(const SpecCluster *cluster, int group)
{
    const SpecGroup *own = &cluster->groups[group];
    if (cluster->group_count > 0)
        return (Node){&own->accelerator, &own->host, own->name};
    return (Node){&cluster->accelerator, &cluster->host,
                  cluster->name[0] != '\0' ? cluster->name : "the cluster"};
}

static bool check_tier(const Node *node, const Named *named, GError **error)
{
    const SpecHost *host = node->host;
    const SpecTier tier = named->part->tier;
    if (tier == SPEC_TIER_GPU || (int)tier == SPEC_UNSET) /* unset: scheme "auto", of which each is checked */
        return true;
    const char *word = spec_word(&spec_words_tier, (int)tier);
    if (node->accelerator->host_link_bytes_per_s <= 0)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "offload.%s.tier: %s, but host_link_bytes_per_s of %s is not known; give it, or tier gpu",
            named->key, word, node->accelerator->name);
    if (host->dram_bytes <= 0 || host->dram_bytes_per_s <= 0 || host->cores <= 0)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "offload.%s.tier: %s, but the host of %s is not described; give cluster.host.dram_bytes, "
            "dram_bytes_per_s, cores and sockets, or tier gpu",
            named->key, word, node->name);
    if (tier == SPEC_TIER_NVME &&
        (host->nvme_bytes <= 0 || host->nvme_read_bytes_per_s <= 0 || host->nvme_write_bytes_per_s <= 0))
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "offload.%s.tier: nvme, but nodes of %s have no disks; give cluster.host.nvme_bytes and its "
            "rates, or tier host",
            named->key, node->name);
    return true;
}

static bool check_tiers(const Spec *spec, GError **error)
{
    const SpecOffload *offload = &spec->offload;
    const Named parts[] = {{"optimizer", &offload->optimizer},
                           {"gradients", &offload->gradients},
                           {"weights", &offload->weights},
                           {"activations", &offload->activations}};
    for (int g = 0; g < MAX(1, spec->cluster.group_count); g++) {
        const Node node = node_of(&spec->cluster, g);
        for (gsize i = 0; i < G_N_ELEMENTS(parts); i++)
            if ((parts[i].part != &offload->activations || parts[i].part->tier == SPEC_TIER_NVME) &&
                !check_tier(&node, &parts[i], error))
                return false;
    }
    return true;
}

static bool check_software(const Spec *spec, GError **error)
{
    const SpecFramework *framework = &spec->execution.framework;
    const char *word = spec_word(&spec_words_offload, (int)spec->offload.scheme);
    g_autoptr(GString) list = g_string_new(NULL);
    if (framework->optimizer.offload_schemes & (1u << spec->offload.scheme))
        return true;
    for (int i = 1; i < SPEC_OFFLOAD_SCHEME_COUNT; i++)
        if (framework->optimizer.offload_schemes & (1u << i))
            g_string_append_printf(list, "%s%s", list->len > 0 ? ", " : "",
                                   spec_word(&spec_words_offload, i));
    return orr_fail(
        error, ORR_ERROR_INPUT,
        "offload.scheme: \"%s\", which framework %s does not have (it has %s); give another framework, "
        "such as deepspeed",
        word, framework->name, list->len > 0 ? list->str : "none");
}

static bool check_degrees(const Spec *spec, GError **error)
{
    const SpecOffload *offload = &spec->offload;
    const SpecParallel *parallel = &spec->parallel;
    const SpecOffloadRow *row = spec_offload_row(offload->scheme);
    const char *word = spec_word(&spec_words_offload, (int)offload->scheme);
    const bool alone = parallel->data == 1 && parallel->context == 1;
    if (parallel->zero < 0 || parallel->data < 0 || parallel->context < 0)
        return true;
    if (row->windowed && (parallel->zero == 3 || (!alone && parallel->zero > 0)))
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "offload.scheme: \"%s\" keeps whole layers on each GPU and all states on its host, not shards of "
            "data %d with zero %d; give zero 0%s, or scheme zero3-offload",
            word, parallel->data, parallel->zero, alone ? " to 2" : "");
    if (parallel->zero < row->least_zero && (!alone || row->least_zero == 3))
        return orr_fail(error, ORR_ERROR_INPUT, "parallel.zero: %d with offload.scheme \"%s\"; give %d%s",
                        parallel->zero, word, row->least_zero, row->least_zero < 3 ? " or more" : "");
    if (parallel->zero == 3 && row->direct)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "parallel.zero: 3 with offload.scheme \"%s\", which reads whole layers on the host; give 0 to 2",
            word);
    if (offload->weights.tier != SPEC_TIER_GPU && offload->optimizer.tier == SPEC_TIER_GPU)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "offload.weights.tier: %s, but the optimizer's states are on the GPU, which updates weights "
            "there; give offload.optimizer tier host",
            spec_word(&spec_words_tier, (int)offload->weights.tier));
    if (offload->gradients.tier > offload->optimizer.tier)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "offload.gradients.tier: %s, but the optimizer's states are on the %s and need them there; "
            "give offload.optimizer tier %s",
            spec_word(&spec_words_tier, (int)offload->gradients.tier),
            offload->optimizer.tier == SPEC_TIER_GPU ? "GPU" : "host",
            spec_word(&spec_words_tier, (int)offload->gradients.tier));
    if (offload->window_layers > spec->model.layers)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "offload.window_layers: %d is more than the %d layers; give at most %d, or 0 for the fewest "
            "that hide the copies",
            offload->window_layers, spec->model.layers, spec->model.layers);
    return true;
}

bool spec_offload_available(const Spec *spec)
{
    return !spec_offloads_states(&spec->offload) || (check_software(spec, NULL) && check_tiers(spec, NULL));
}

/* Gradients that left beside the backward have no copies behind it that an update could run beside. */
static bool check_overlap(const Spec *spec, GError **error)
{
    const bool late = spec->execution.framework.optimizer.host_gradients == SPEC_HOST_GRADIENTS_AT_STEP &&
                      spec->offload.update == SPEC_UPDATE_BARRIER;
    return !spec->offload.overlap_update || (late && spec->offload.optimizer.tier != SPEC_TIER_NVME) ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "offload.overlap_update: true, but %s; give false, or software whose gradients leave at "
                    "the step, such as megatron-core with scheme zero-offload",
                    late ? "states come from the disks tile by tile (offload.aio.pipeline_read)"
                         : "gradients do not leave at the step");
}

static bool check_evicting(const Spec *spec, GError **error)
{
    const SpecOffload *offload = &spec->offload;
    const SpecOffloadPart *part = &offload->activations;
    if (!part->evicts)
        return true;
    if (offload->activation_layers != spec->model.layers || part->fraction < 1 || part->modules != 0)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "offload.activations.resident_bytes: given with activation_layers, fraction or modules, which "
            "say otherwise what leaves; give one of them");
    if (spec->cluster.accelerator.host_link_bytes_per_s <= 0)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "offload.activations.resident_bytes: given, but host_link_bytes_per_s of %s is not known; give "
            "it, or leave the field out",
            spec->cluster.accelerator.name);
    return true;
}

bool spec_offload_check(const Spec *spec, GError **error)
{
    if (!check_evicting(spec, error))
        return false;
    if (spec->offload.activations.tier == SPEC_TIER_NVME && !check_tiers(spec, error))
        return false;
    if (!spec_offloads_states(&spec->offload))
        return true;
    return check_software(spec, error) && check_tiers(spec, error) && check_degrees(spec, error) &&
           check_overlap(spec, error);
}
