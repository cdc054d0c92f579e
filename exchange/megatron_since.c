/* exchange/megatron_since.c - the first release of Megatron-Core that has an option. Tested: unit/exchange/test_exchange.c */
#include "exchange/megatron.h"

#include <string.h>

/* Options that are not in release 0.5. Source: NVIDIA/Megatron-LM, megatron/training/arguments.py and megatron/core at the
 * tags core_v0.5.0 to core_v0.19.0. */
static const struct {
    const char *flag;
    int minor; /* of 0.x */
} releases[] = {
    {"account-for-embedding-in-pipeline-split", 11},
    {"account-for-loss-in-pipeline-split", 11},
    {"attention-backend", 11},
    {"ckpt-format", 9},
    {"data-parallel-sharding-strategy", 12},
    {"decoder-first-pipeline-num-layers", 9},
    {"decoder-last-pipeline-num-layers", 9},
    {"defer-embedding-wgrad-compute", 6},
    {"expert-tensor-parallel-size", 10},
    {"kv-lora-rank", 10},
    {"microbatch-group-size-per-virtual-pipeline-stage", 10},
    {"moe-expert-capacity-factor", 7},
    {"moe-ffn-hidden-size", 10},
    {"moe-flex-dispatcher-backend", 16},
    {"moe-layer-freq", 10},
    {"moe-router-group-topk", 11},
    {"moe-router-num-groups", 11},
    {"moe-shared-expert-intermediate-size", 10},
    {"moe-token-dispatcher-type", 6},
    {"mtp-num-layers", 12},
    {"multi-latent-attention", 10},
    {"num-distributed-optimizer-instances", 10},
    {"num-virtual-stages-per-pipeline-rank", 11},
    {"optimizer-cpu-offload", 12},
    {"overlap-moe-expert-parallel-comm", 14},
    {"pipeline-model-parallel-layout", 13},
    {"q-lora-rank", 10},
    {"qk-head-dim", 10},
    {"qk-layernorm", 6},
    {"qk-pos-emb-head-dim", 10},
    {"recompute-modules", 12},
    {"use-megatron-fsdp", 14},
    {"use-tp-pp-dp-mapping", 7},
    {"v-head-dim", 10},
    {"wgrad-deferral-limit", 8},
};

char *megatron_needs(const Settings *settings)
{
    int least = 0;
    g_autoptr(GString) flags = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(releases); i++) {
        if (settings_find(settings, releases[i].flag) == NULL || releases[i].minor < least)
            continue;
        if (releases[i].minor > least)
            g_string_truncate(flags, 0);
        least = releases[i].minor;
        g_string_append_printf(flags, "%s--%s", flags->len > 0 ? ", " : "", releases[i].flag);
    }
    return least > 0 ? g_strdup_printf("needs Megatron-Core 0.%d or later (%s)", least, flags->str) : NULL;
}
