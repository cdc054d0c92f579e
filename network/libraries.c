/* network/libraries.c - what libraries take, as far as their sources and manuals tell.
 *
 * Rules of one operation are asked in order; the first that applies and is `chosen` decides. What NCCL weighs is its
 * tuner's matter (costmodel/nccl.c). Sizes are those of the source's conditions, in bytes.
 */
#include "network/libraries.h"

#include <string.h>

#include "base/text.h"
#include "base/units.h"

#define KIB 1024
#define MIB (1024 * 1024)

static const NetLibraryRule nccl_rules[] = {
    {NET_ALL_REDUCE, "ring", .note = "by estimated time: docs/MODEL-collectives.md"},
    {NET_ALL_REDUCE, "double-binary-tree", .least_nodes = 2},
    {NET_ALL_REDUCE, "double-binary-tree", .most_nodes = 1, .note = "in a node its trees are chains"},
    {NET_ALL_REDUCE, "nvls", .most_nodes = 1, .note = "GPUs on NVSwitch, Hopper and later"},
    {NET_ALL_REDUCE, "sharp", .least_nodes = 2, .note = "where CollNet is switched on"},
    {NET_ALL_GATHER, "ring", .chosen = false},
    {NET_ALL_GATHER, "pat", .note = "one GPU a node"},
    {NET_REDUCE_SCATTER, "ring", .chosen = false},
    {NET_REDUCE_SCATTER, "pat", .note = "one GPU a node"},
    {NET_BROADCAST, "pipelined", .chosen = true, .note = "along a ring"},
    {NET_REDUCE, "pipelined", .chosen = true, .note = "along a ring"},
    {NET_ALL_TO_ALL, "direct", .chosen = true, .note = "sends and receives of one group"},
    {NET_SCATTER, "direct", .chosen = true},
    {NET_GATHER, "direct", .chosen = true},
    {NET_SEND_RECV, "direct", .chosen = true},
};

static const NetLibraryRule rccl_rules[] = {
    {NET_ALL_REDUCE, "direct", .chosen = true, .most_bytes = 16 * MIB, .least_ranks = 8, .most_ranks = 8,
     .most_nodes = 1, .note = "MI300X: MSCCL's all pairs, LL below 512 KiB; in place not from 11 to 14 MiB"},
    {NET_ALL_REDUCE, "ring",
     .note = "by estimated time, tables of the machine's kind; MI300X in a node: rings"},
    {NET_ALL_REDUCE, "double-binary-tree", .least_nodes = 2},
    {NET_ALL_GATHER, "ring", .chosen = true},
    {NET_REDUCE_SCATTER, "ring", .chosen = true},
    {NET_BROADCAST, "pipelined", .chosen = true, .note = "along a ring"},
    {NET_REDUCE, "pipelined", .chosen = true, .note = "along a ring"},
    {NET_ALL_TO_ALL, "direct", .chosen = true, .note = "MI300X: MSCCL's up to 43 MiB, LL up to 512 KiB"},
    {NET_SCATTER, "direct", .chosen = true},
    {NET_GATHER, "direct", .chosen = true},
    {NET_SEND_RECV, "direct", .chosen = true},
};

/* Of the schedules that come with it, those of Azure's ND A100 v4 and ND H100 v5; the others a user names. */
#define ONE_ND .least_ranks = 8, .most_ranks = 8, .most_nodes = 1
static const NetLibraryRule msccl_rules[] = {
    {NET_ALL_REDUCE, "one-shot", .chosen = true, .most_bytes = 32 * KIB, ONE_ND, .note = "LL"},
    {NET_ALL_REDUCE, "direct", .chosen = true, .least_bytes = 32 * KIB + 1, .most_bytes = 260 * KIB - 1,
     ONE_ND, .note = "LL, 2 channels, from 40 KiB 4"},
    {NET_ALL_REDUCE, "ring", .chosen = true, .least_bytes = 260 * KIB, .most_bytes = 20 * MIB, ONE_ND,
     .note = "rings of 4 channels, LL, from 2030 KiB LL128"},
    {NET_ALL_GATHER, "direct", .chosen = true, .least_bytes = KIB, .most_bytes = 32 * MIB - 1, ONE_ND,
     .note = "in place; LL, from 2 MiB LL128, from 4 MiB Simple"},
    {NET_ALL_GATHER, "ring", .chosen = true, .least_bytes = 32 * MIB, .most_bytes = 1024 * MIB, ONE_ND,
     .note = "in place; Simple"},
    {NET_ALL_TO_ALL, "direct", .chosen = true, .most_bytes = 260 * KIB, ONE_ND, .note = "LL"},
    {NET_ALL_REDUCE, "hierarchical-rails", .least_nodes = 2, .note = "a user's schedule"},
    {NET_ALL_REDUCE, "recursive-halving-doubling", .note = "a user's schedule"},
    {NET_ALL_REDUCE, "binomial", .note = "a user's schedule"},
    {NET_ALL_GATHER, "recursive-doubling", .note = "a user's schedule"},
    {NET_ALL_TO_ALL, "hierarchical", .least_nodes = 2, .note = "a user's schedule: two-step"},
};

static const NetLibraryRule gloo_rules[] = {
    {NET_ALL_REDUCE, "ring", .chosen = true,
     .note = "torch takes it too; two segments a rank or more, 1 MiB at most"},
    {NET_ALL_REDUCE, "recursive-halving-doubling", .note = "older interface, by name (Caffe2)"},
    {NET_REDUCE_SCATTER, "recursive-halving", .chosen = true},
    {NET_ALL_GATHER, "ring", .chosen = true, .note = "two segments a rank"},
    {NET_BROADCAST, "binomial", .chosen = true},
    {NET_REDUCE, "ring-gather", .chosen = true},
    {NET_GATHER, "direct", .chosen = true},
    {NET_SCATTER, "direct", .chosen = true},
    {NET_ALL_TO_ALL, "direct", .chosen = true, .note = "all posted at once"},
    {NET_BARRIER, "dissemination", .chosen = true},
    {NET_SEND_RECV, "direct", .chosen = true},
};

static const NetLibraryRule hccl_rules[] = {
    {NET_ALL_REDUCE, "direct", .most_nodes = 1, .note = "Atlas A2: full mesh in a server"},
    {NET_ALL_REDUCE, "ring", .most_nodes = 1, .note = "Ascend 910: rings of 8"},
    {NET_ALL_REDUCE, "hierarchical-halving", .chosen = true, .least_nodes = 8,
     .note = "Atlas A3: NHR, for any number"},
    {NET_ALL_REDUCE, "hierarchical-halving", .chosen = true, .least_nodes = 2, .power_of_two = true},
    {NET_ALL_REDUCE, "hierarchical-rails", .chosen = true, .least_nodes = 2, .most_nodes = 7},
    {NET_ALL_GATHER, "direct", .most_nodes = 1, .note = "Atlas A2"},
    {NET_ALL_GATHER, "ring", .most_nodes = 1, .note = "Ascend 910"},
    {NET_ALL_GATHER, "rails", .least_nodes = 2, .note = "between servers also halving or NHR: fewer steps"},
    {NET_REDUCE_SCATTER, "direct", .most_nodes = 1, .note = "Atlas A2"},
    {NET_REDUCE_SCATTER, "ring", .most_nodes = 1, .note = "Ascend 910"},
    {NET_REDUCE_SCATTER, "rails", .least_nodes = 2,
     .note = "between servers also halving or NHR: fewer steps"},
    {NET_BROADCAST, "scatter-ring", .note = "scatter, then all-gather"},
    {NET_BROADCAST, "binomial", .note = "star, halving"},
    {NET_REDUCE, "halving-gather", .note = "reduce-scatter, then gather"},
    {NET_ALL_TO_ALL, "direct", .chosen = true, .most_nodes = 1, .note = "full mesh"},
    {NET_ALL_TO_ALL, "pairwise", .chosen = true, .least_nodes = 2,
     .note = "so that no port gets from several"},
    {NET_SEND_RECV, "direct", .chosen = true},
};

static const NetLibraryRule accl_rules[] = {
    {NET_ALL_REDUCE, "hierarchical-halving", .chosen = true, .least_nodes = 2,
     .note = "hybrid: rings in the node, halving and doubling between"},
    {NET_ALL_REDUCE, "ring", .chosen = true, .most_nodes = 1},
};

#define RULES(of) of, (int)G_N_ELEMENTS(of)
static const NetLibrary libraries[] = {
    {"nccl", "[NCCL]", RULES(nccl_rules), NULL},
    {"rccl", "[RCCL]", RULES(rccl_rules), NULL},
    {"msccl", "[MSCCL]", RULES(msccl_rules), &libraries[0]},
    {"gloo", "[Gloo]", RULES(gloo_rules), NULL},
    {"hccl", "[HCCL]", RULES(hccl_rules), NULL},
    {"accl", "[Accl2021]", RULES(accl_rules), &libraries[0]},
    {"tccl", "[TCCL]", NULL, 0, &libraries[0]},
};

const NetLibrary *net_libraries(int *ret_count)
{
    *ret_count = (int)G_N_ELEMENTS(libraries);
    return libraries;
}

const NetLibrary *net_library_find(const char *name, GError **error)
{
    g_autoptr(GString) known = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(libraries); i++) {
        if (strcmp(libraries[i].name, name) == 0)
            return &libraries[i];
        g_string_append_printf(known, "%s%s",
                               i == 0 ? "" : (i + 1 < G_N_ELEMENTS(libraries) ? ", " : " and "),
                               libraries[i].name);
    }
    orr_fail(error, ORR_ERROR_INPUT, "no library is called \"%s\"; there are %s", name, known->str);
    return NULL;
}

static bool within(int64_t value, int64_t least, int64_t most)
{
    return value >= least && (most == 0 || value <= most);
}

static bool applies(const NetLibraryRule *rule, const NetSituation *s)
{
    return rule->op == s->op && within(s->bytes, rule->least_bytes, rule->most_bytes) &&
           within(s->ranks, rule->least_ranks, rule->most_ranks) &&
           within(s->nodes, rule->least_nodes, rule->most_nodes) &&
           (!rule->power_of_two || net_power_below(s->nodes) == s->nodes);
}

const NetLibraryRule *net_library_choice(const NetLibrary *library, const NetSituation *situation)
{
    for (int i = 0; i < library->rule_count; i++)
        if (library->rules[i].chosen && applies(&library->rules[i], situation))
            return &library->rules[i];
    return library->base != NULL ? net_library_choice(library->base, situation) : NULL;
}

static bool weighs(const NetLibrary *library, const char *algorithm, const NetSituation *situation)
{
    for (int i = 0; i < library->rule_count; i++)
        if (applies(&library->rules[i], situation) && strcmp(library->rules[i].algorithm, algorithm) == 0)
            return true;
    return library->base != NULL && weighs(library->base, algorithm, situation);
}

bool net_library_has(const NetLibrary *library, const NetAlgorithm *algorithm, const NetSituation *situation)
{
    if (algorithm->op != situation->op)
        return false;
    const NetLibraryRule *choice = net_library_choice(library, situation);
    return choice != NULL ? strcmp(choice->algorithm, algorithm->name) == 0
                          : weighs(library, algorithm->name, situation);
}

static void add_bounds(GString *text, int least, int most, const char *before, const char *unit)
{
    if (least == 0 && most == 0)
        return;
    g_string_append_printf(text, "%s%s ", text->len > 0 ? " " : "", before);
    if (least == most || (most == 1 && least < 2))
        g_string_append_printf(text, "%d %s%s", most, unit, most == 1 ? "" : "s");
    else if (most == 0)
        g_string_append_printf(text, "%d %ss or more", least, unit);
    else
        g_string_append_printf(text, "%d to %d %ss", MAX(least, 1), most, unit);
}

char *net_library_when(const NetLibraryRule *rule)
{
    char least[ORR_TEXT_SIZE], most[ORR_TEXT_SIZE];
    GString *text = g_string_new(NULL);
    add_bounds(text, rule->least_ranks, rule->most_ranks, "of", "rank");
    add_bounds(text, rule->least_nodes, rule->most_nodes, "on", "node");
    if (rule->power_of_two)
        g_string_append(text, ", a power of 2");
    const char *comma = text->len > 0 ? ", " : "";
    orr_text_bytes(least, (double)rule->least_bytes);
    orr_text_bytes(most, (double)rule->most_bytes);
    if (rule->least_bytes > 0 && rule->most_bytes > 0)
        g_string_append_printf(text, "%sfrom %s to %s", comma, least, most);
    else if (rule->most_bytes > 0)
        g_string_append_printf(text, "%sup to %s", comma, most);
    else if (rule->least_bytes > 0)
        g_string_append_printf(text, "%sfrom %s", comma, least);
    if (text->len == 0)
        g_string_append(text, "always");
    return g_string_free(text, FALSE);
}
