/* spec/check_data.c - see check_data.h. */
#include "spec/check_data.h"

static bool plain_data(const SpecParallel *parallel)
{
    return parallel->tensor == 1 && parallel->context == 1 && parallel->pipeline == 1 &&
           parallel->expert == 1 && parallel->virtual_stages == 1;
}

static bool check_list(const Spec *spec, const char *where, GError **error)
{
    if (spec->model.list.text == NULL)
        return true;
    if (spec->parallel.context != 1 || spec->parallel.expert != 1)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: parallel.%s: a list of model.layers has no %s to split; give 1, and split by data, "
            "tensor or pipeline",
            where, spec->parallel.context != 1 ? "context" : "expert",
            spec->parallel.context != 1 ? "sequences" : "experts");
    if (spec->parallel.tensor > 1 &&
        (spec->parallel.tensor_scheme != SPEC_TENSOR_1D || spec->parallel.sequence_parallel == 1))
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: parallel.%s with a list of model.layers, whose outputs tensor ranks share and gather; "
            "give %s",
            where, spec->parallel.sequence_parallel == 1 ? "sequence_parallel: true" : "tensor_scheme",
            spec->parallel.sequence_parallel == 1 ? "false" : "\"1d\"");
    if (spec->training.micro_batch < 1 || spec->parallel.zero < 0)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: parallel.zero: a list of model.layers takes no \"auto\"; give micro_batch as a "
                        "number and zero 0, 1, 2 or 3",
                        where);
    const SpecRecompute *recompute = &spec->training.recompute;
    const bool whole = recompute->mode == SPEC_RECOMPUTE_FULL && recompute->layers == 0 &&
                       !recompute->partitioned && !recompute->halves;
    if (recompute->mode != SPEC_RECOMPUTE_NONE && !whole)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: training.recompute: a list of model.layers recomputes all layers or none; give "
                        "\"full\" or \"none\"",
                        where);
    if (spec->offload.activation_layers != 0 || spec_offloads_states(&spec->offload))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: offload: a list of model.layers stays on the GPU; give no offload", where);
    return true;
}

static bool check_placement(const Spec *spec, const char *where, GError **error)
{
    const SpecServers *servers = &spec->parallel.servers;
    const int machines = spec->cluster.nodes > 1 ? spec->cluster.nodes : spec->cluster.gpus_per_node;
    if (servers->placement != SPEC_SERVERS_DEDICATED && servers->servers > machines)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: parallel.parameter_server.servers: %d with placement \"%s\" and %d workers; give at "
            "most %d, or placement \"dedicated\"",
            where, servers->servers, spec_word(&spec_words_server_placement, (int)servers->placement),
            machines, machines);
    if (servers->placement == SPEC_SERVERS_BYTEPS && machines < 2)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: parallel.parameter_server.placement: \"byteps\" with one worker; give \"dedicated\"", where);
    if (servers->mode != SPEC_SERVERS_BOUNDED && servers->staleness > 0)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: parallel.parameter_server.staleness: %d with mode \"%s\", which has no bound; give mode "
            "\"bounded\", or leave it out",
            where, servers->staleness, spec_word(&spec_words_server_mode, (int)servers->mode));
    return true;
}

static bool check_servers(const Spec *spec, const char *where, GError **error)
{
    const SpecParallel *parallel = &spec->parallel;
    const bool served = parallel->data_scheme == SPEC_DATA_PARAMETER_SERVER;
    if (served != (parallel->servers.servers > 0))
        return orr_fail(
            error, ORR_ERROR_INPUT, "%s: parallel.data_scheme: \"%s\" %s a parameter_server object; %s",
            where, spec_word(&spec_words_data_scheme, (int)parallel->data_scheme), served ? "needs" : "with",
            served ? "give one, such as {\"servers\": 4}"
                   : "give data_scheme \"parameter_server\", or leave the object out");
    if (parallel->data_scheme == SPEC_DATA_ALLREDUCE)
        return true;
    if (!plain_data(parallel) || parallel->zero != 0 || spec->training.micro_batch < 1)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: parallel.data_scheme: \"%s\" goes with data parallelism alone; give tensor, context, "
            "pipeline, virtual_stages and expert 1, zero 0, and micro_batch as a number",
            where, spec_word(&spec_words_data_scheme, (int)parallel->data_scheme));
    if (spec->cluster.network.fidelity == SPEC_FIDELITY_FLOW)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: cluster.network.fidelity: \"flow\" knows collectives alone, not data_scheme \"%s\"; give "
            "\"analytic\", where servers share NICs and the uplinks of cluster.oversubscription",
            where, spec_word(&spec_words_data_scheme, (int)parallel->data_scheme));
    if (spec_offloads_states(&spec->offload))
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: offload: states leave the GPU with data_scheme \"%s\", whose optimizer runs elsewhere; "
            "leave one of the two out",
            where, spec_word(&spec_words_data_scheme, (int)parallel->data_scheme));
    if (served)
        return check_placement(spec, where, error);
    if (spec->cluster.nodes > 1)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: parallel.data_scheme: \"single_process\" with %d nodes; give 1 node, or \"allreduce\"",
            where, spec->cluster.nodes);
    return true;
}

static bool check_compression(const Spec *spec, const char *where, GError **error)
{
    const SpecParallel *parallel = &spec->parallel;
    const SpecCompressionKind kind = parallel->compression.kind;
    if (kind == SPEC_COMPRESSION_NONE)
        return true;
    const char *word = spec_word(&spec_words_compression, (int)kind);
    if (parallel->data_scheme == SPEC_DATA_SINGLE_PROCESS)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: parallel.compression: \"%s\" with data_scheme \"single_process\", which sends whole "
            "gradients; leave one of the two out",
            where, word);
    const int most = kind == SPEC_COMPRESSION_TOPK ? 0 : 2;
    if (parallel->zero > most || parallel->zero < 0)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: parallel.compression: \"%s\" with zero %d; give zero 0%s", where, word,
                        parallel->zero,
                        most > 0 ? ", 1 or 2 (ZeRO-3 has quantized_gradient_reduce)"
                                 : ": the largest elements of each rank are others and cannot be scattered");
    if (spec->model.moe.experts > 0)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: parallel.compression: \"%s\" with experts, whose gradients have replicas of their own; "
            "leave it out",
            where, word);
    return true;
}

bool spec_check_data(const Spec *spec, const char *where, GError **error)
{
    return check_list(spec, where, error) && check_servers(spec, where, error) &&
           check_compression(spec, where, error);
}
