/* spec/fields_search.c - field table of what a search may try. The ranges of fields without an entry are said here
 * and nowhere else; search/space.c follows them. */
#include "spec/fields_internal.h"
#include "spec/placement.h"

#define VALUE_MAX 1e6

static const SpecField choices_fields[] = {
    SPEC_F_INT(SpecChoices, min, 0, VALUE_MAX, "0", 0, "The smallest value that may be tried; 0: no limit."),
    SPEC_F_INT(SpecChoices, max, 0, VALUE_MAX, "0", 0, "The largest value that may be tried; 0: no limit."),
};
static SPEC_TABLE(table_choices, "search.range", "Values from min to max.", choices_fields);

/* A list of values, or an object with min and max. */
static bool read_choices(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecChoices *choices = target;
    *choices = (SpecChoices){0};
    if (orr_json_type(node) == ORR_JSON_OBJECT)
        return spec_read_table(context, &table_choices, node, choices, error);
    if (orr_json_type(node) != ORR_JSON_LIST || orr_json_count(node) == 0)
        return spec_read_fail(
            context, node, error,
            "is not a choice of values; give a list such as [1, 2, 4], or {\"min\":1,\"max\":8}");
    if (orr_json_count(node) > SPEC_SEARCH_VALUES)
        return spec_read_fail(context, NULL, error, "lists %d values; give at most %d, or min and max",
                              orr_json_count(node), SPEC_SEARCH_VALUES);
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item))
        if (!spec_read_int(context, item, 0, VALUE_MAX, &choices->value[choices->count++], error))
            return false;
    return true;
}

/* A list of orders of the dimensions. */
static bool read_orders(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecSearch *search = (SpecSearch *)(void *)((char *)target - offsetof(SpecSearch, order));
    search->order_count = 0;
    if (orr_json_type(node) != ORR_JSON_LIST || orr_json_count(node) > SPEC_SEARCH_ORDERS)
        return spec_read_fail(context, node, error,
                              "is not a list of at most %d orders; give one such as "
                              "[\"tp-cp-ep-dp-pp\", \"tp-cp-ep-pp-dp\"]",
                              SPEC_SEARCH_ORDERS);
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item)) {
        if (orr_json_type(item) != ORR_JSON_TEXT)
            return spec_read_fail(context, item, error,
                                  "is not a string; give an order such as \"tp-cp-ep-dp-pp\"");
        const char *text = orr_json_text(item);
        if (!spec_check_order_names(NULL, text, true, error))
            return false;
        g_strlcpy(search->order[search->order_count++], text, SPEC_ORDER_SIZE);
    }
    return true;
}

#define CHOICES(member, text)                                                                                \
    SPEC_F_CUSTOM(SpecSearch, member, read_choices, NULL, SPEC_FIELD_DERIVED,                                \
                  "a list of whole numbers, or an object with min and max", NULL, &table_choices, text)
#define WORD_SET(member, list, text)                                                                         \
    {                                                                                                        \
        .key = #member, .type = SPEC_TYPE_WORD_SET, .offset = offsetof(SpecSearch, member), .words = (list), \
        .default_text = "[]", .help = (text)                                                                 \
    }

static const SpecField search_fields[] = {
    CHOICES(tensor, "Values of parallel.tensor to try. Default: divisors of the GPUs that the model allows, "
                    "up to max_tensor."),
    CHOICES(context, "Values of parallel.context to try. Default: divisors of the GPUs that leave a rank at "
                     "least 2,048 tokens."),
    CHOICES(pipeline, "Values of parallel.pipeline to try. Default: divisors of the GPUs up to the model's "
                      "layers, dividing them "
                      "or not."),
    CHOICES(virtual_stages,
            "Values of parallel.virtual_stages to try. Default: every number that leaves a stage a layer."),
    CHOICES(data, "Values of parallel.data to try. Default: what the other degrees leave of the GPUs."),
    CHOICES(expert,
            "Values of parallel.expert to try. Default: divisors of the experts that divide the ranks."),
    CHOICES(expert_tensor,
            "Values of parallel.expert_tensor to try. Default: divisors of the tensor degree."),
    CHOICES(zero, "Values of parallel.zero to try. Default: the stages that the framework has, with a "
                  "pipeline and without."),
    CHOICES(zero_group_gpus, "Values of parallel.zero_group_gpus to try. Default: 0 and the divisors of the "
                             "data-parallel degree."),
    CHOICES(micro_batch, "Values of training.micro_batch to try. Default: divisors of the batch of a "
                         "data-parallel rank up to 64."),
    CHOICES(recompute_layers, "Layers of a stage under full recomputation; default: every number up to all."),
    CHOICES(activation_layers, "Values of offload.activation_layers to try. Default: 0 to the layers of the "
                               "largest stage, where the "
                               "accelerator's host_link_bytes_per_s is known."),
    CHOICES(nodes,
            "Values of cluster.nodes: doubled from min to max, or a list. Each gets a search; one front of "
            "time, memory and cost covers all. parallel.data follows the GPUs. Only `search` reads it."),
    SPEC_F_CUSTOM(SpecSearch, order, read_orders, NULL, SPEC_FIELD_DERIVED,
                  "a list of orders of the dimensions",
                  "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}", NULL,
                  "Values of parallel.order to try. Default: tp-cp-ep-dp-pp and tp-cp-ep-pp-dp, which "
                  "Megatron-LM takes as "
                  "--use-tp-pp-dp-mapping."),
    WORD_SET(moe_dispatcher, &spec_words_dispatcher,
             "Values of parallel.moe_dispatcher to try. Default (empty): alltoall, deepep and hybridep."),
    WORD_SET(schedule, &spec_words_schedule,
             "Values of parallel.schedule to try. Default (empty): the framework's, or every one but "
             "zb-auto, which takes longer "
             "to simulate and may be named here."),
    WORD_SET(recompute, &spec_words_recompute,
             "Values of training.recompute to try. Default (empty): what the framework has of none, "
             "selective, selective-op, "
             "selective-layer (every 8th, 4th, 3rd or 2nd) and full."),
    WORD_SET(offload, &spec_words_offload,
             "Values of offload.scheme to try. Default: none, and the schemes that the framework and the "
             "node's tiers support. Shared updates are tried at ratios 0.2, 0.4, 0.6 and 0.8."),
    WORD_SET(attention, &spec_words_attention,
             "Values of execution.attention to try. Default (empty): unfused and the kernels that were "
             "fitted for the "
             "accelerator."),
    WORD_SET(overlap, &spec_words_overlap,
             "Flags of execution.overlap to try with and without. Default (empty): everything that matters."),
    WORD_SET(precision, &spec_words_precision,
             "Values of training.precision to try, of those that the accelerator has a peak for. Default "
             "(empty): the "
             "scenario's own."),
    SPEC_F_INT(SpecSearch, max_tensor, 0, VALUE_MAX, "0", 0,
               "Largest tensor-parallel degree that is tried by default; 0: the GPUs of a node."),
    SPEC_F_DOUBLE(SpecSearch, max_memory_frac, ORR_UNIT_FRAC, 0, 1, "0", 0,
                  "Share of the GPU's memory that a configuration may need; 0: all of it."),
    SPEC_F_DOUBLE(SpecSearch, max_memory_bytes, ORR_UNIT_BYTES, 0, 1e15, "0", 0,
                  "Bytes of the GPU's memory that a configuration may need; 0: all of it."),
    SPEC_F_DOUBLE(SpecSearch, reserve_memory_bytes, ORR_UNIT_BYTES, 0, 1e15, "0", 0,
                  "Bytes of the GPU's memory that a configuration leaves free."),
    SPEC_F_DOUBLE(SpecSearch, max_host_bytes_per_node, ORR_UNIT_BYTES, 0, 1e17, "0", 0,
                  "Bytes of a node's host memory that offloaded activations may take, shared evenly by its "
                  "GPUs; 0: no limit."),
    SPEC_F_INT(SpecSearch, max_tensor_nodes, 0, VALUE_MAX, "0", 0,
               "Nodes that the GPUs of a tensor-parallel group may lie on; 0: no limit."),
    SPEC_F_DOUBLE(SpecSearch, max_micro_batch_tokens, ORR_UNIT_TOKENS, 0, 1e15, "0", 0,
                  "Tokens that a micro-batch may have (micro_batch x sequence_length); 0: no limit."),
    SPEC_F_DOUBLE(SpecSearch, max_batch_tokens, ORR_UNIT_TOKENS, 0, 1e15, "0", 0,
                  "Tokens that a step may have (global_batch x sequence_length); 0: no limit."),
    SPEC_F_INT(SpecSearch, top, 0, 1000, "0", 0, "Configurations to report, the best first; 0: five."),
    SPEC_F_BOOL(SpecSearch, even_only, "false", 0,
                "true: layers are split over stages as the scenario says. false: an \"auto\" pipeline also "
                "tries the embedding and "
                "the head as layers."),
};
SPEC_TABLE(spec_table_search, "search", "Limits and ranges of the fields that are \"auto\".", search_fields);
