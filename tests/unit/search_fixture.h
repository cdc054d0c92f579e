/* tests/unit/search_fixture.h - random small scenarios with "auto" fields, for the tests of search/. */
#ifndef ORR_TESTS_SEARCH_FIXTURE_H
#define ORR_TESTS_SEARCH_FIXTURE_H

#include "base/json.h"
#include "spec/load.h"

static inline const char *fixture_pick(GRand *rand, const char *const *words, int count)
{
    return words[g_rand_int_range(rand, 0, count)];
}

static const char *const fixture_orders[] = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "dp-tp-cp-ep-pp",
                                             "pp-tp-cp-ep-dp", "cp-tp-dp-ep-pp", "ep-dp-tp-pp-cp"};

/* "auto" where random text is not. */
static inline void fixture_vary(Spec *spec, int number)
{
    if (spec->search.schedule == 0) /* whatever the framework has */
        spec->search.schedule =
            ((1u << sim_schedule_words.count) - 1) & ~(1u << sim_schedule_index("zb-auto"));
    spec->search.zero = (SpecChoices){.count = 4, .value = {0, 1, 2, 3}};
    if (number % 5 == 1) {
        const gsize count = G_N_ELEMENTS(fixture_orders),
                    first = (gsize)number / 5; /* each comes first once */
        g_strlcpy(spec->parallel.order, "auto", sizeof spec->parallel.order);
        for (gsize i = 0; first % 2 == 0 && i < count; i++)
            g_strlcpy(spec->search.order[spec->search.order_count++], fixture_orders[(first / 2 + i) % count],
                      SPEC_ORDER_SIZE);
    }
    if (spec->model.moe.experts > 0 && number % 8 == 7)
        spec->parallel.moe_dispatcher = (SpecMoeDispatcher)SPEC_AUTO;
}

/* A scenario of a few layers on up to 16 GPUs. `few`: only some fields are "auto", so that all points can be run. Every
 * third has another order of the ranks or nodes that groups do not fill evenly; some keep activations on the host. Of
 * `framework`; NULL: of a random one. */
static inline GString *fixture_text(GRand *rand, int number, bool few, const char *framework)
{
    static const char *const frameworks[] = {"megatron-core",      "megatron-lm-2023", "torchtitan-2025",
                                             "megatron-deepspeed", "torchtitan",       "meta-llama3"};
    static const char *const batches[] = {"8", "12", "16", "24", "48"};
    static const char *const layers[] = {"2", "3", "5", "6", "8", "9"};
    static const char *const overlaps[] = {
        "[]", "[\"grad_reduce\"]", "[\"grad_reduce\",\"param_gather\"]",
        "[\"grad_reduce\",\"param_gather\",\"tensor\",\"pipeline\",\"expert\"]"};
    static const char *const recomputes[] = {"\"none\"", "\"full\"", "\"selective\"",
                                             "{\"mode\":\"selective-layer\",\"every_n_layers\":2}"};
    const bool moe = number % 4 == 3, odd = number % 3 == 2;
    const char *order =
        odd ? fixture_pick(rand, fixture_orders, (int)G_N_ELEMENTS(fixture_orders)) : fixture_orders[0];
    GString *text = g_string_new(NULL);
#define MAY(value) (!few || g_rand_boolean(rand) ? "\"auto\"" : (value))
    const int node = odd ? g_rand_int_range(rand, 2, 7) : g_rand_boolean(rand) ? 2 : 4;
    const int domain = odd ? node * g_rand_int_range(rand, 1, 3) : 8;
    g_string_append_printf(
        text,
        "{\"model\":{\"name\":\"small\",\"layers\":%s,\"hidden\":%d,\"heads\":8,\"ffn_hidden\":%d,\"vocab\":%"
        "d,"
        "\"tied_embeddings\":%s%s%s},"
        "\"cluster\":{\"preset\":\"%s\",\"gpus_per_node\":%d,\"scale_up_domain_gpus\":%d,"
        "\"nodes\":%d},",
        fixture_pick(rand, layers, (int)G_N_ELEMENTS(layers)), g_rand_boolean(rand) ? 512 : 2048,
        g_rand_boolean(rand) ? 2048 : 8192, g_rand_boolean(rand) ? 32000 : 128256,
        g_rand_boolean(rand) ? "true" : "false", number % 7 == 5 ? ",\"mtp_layers\":1" : "",
        moe ? ",\"moe\":{\"experts\":8,\"top_k\":2,\"expert_ffn_hidden\":1024,\"dense_layers\":1}" : "",
        g_rand_boolean(rand) ? "dgx-a100-80gb" : "dgx-h100", node, domain, g_rand_int_range(rand, 1, 4));
    g_string_append_printf(
        text,
        "\"training\":{\"sequence_length\":%d,\"global_batch\":%s,\"micro_batch\":\"auto\",\"recompute\":%s%"
        "s},"
        "\"parallel\":{\"tensor\":\"auto\",\"sequence_parallel\":%s,\"context\":%s,\"pipeline\":\"auto\","
        "\"virtual_stages\":\"auto\",\"schedule\":%s,\"data\":\"auto\",\"expert\":%s,\"zero\":%s,"
        "\"zero_group_gpus\":%s,\"order\":\"%s\"},",
        g_rand_boolean(rand) ? 1024 : 4096, fixture_pick(rand, batches, (int)G_N_ELEMENTS(batches)),
        MAY(fixture_pick(rand, recomputes, (int)G_N_ELEMENTS(recomputes))),
        number % 7 == 4   ? ",\"freeze\":{\"embedding\":true,\"head\":true,\"layers\":1}"
        : number % 7 == 1 ? ",\"freeze\":{\"layers\":2}"
                          : "",
        few ? "false" : "\"auto\"", few ? "1" : "\"auto\"",
        g_rand_boolean(rand) ? "\"auto\"" : "\"interleaved\"", moe ? "\"auto\"" : "1", MAY("1"),
        few ? "0" : "\"auto\"", order);
    g_string_append_printf(text,
                           "\"execution\":{\"framework\":\"%s\",\"attention\":%s,\"overlap\":%s}"
                           "%s%s}",
                           framework != NULL ? framework
                                             : fixture_pick(rand, frameworks, (int)G_N_ELEMENTS(frameworks)),
                           few ? "\"flash2\"" : "\"auto\"",
                           few ? fixture_pick(rand, overlaps, (int)G_N_ELEMENTS(overlaps)) : "\"auto\"",
                           few && number % 6 == 4 ? ",\"search\":{\"micro_batch\":{\"max\":4},\"schedule\":["
                                                    "\"1f1b\",\"zb-auto\",\"interleaved\"]}"
                           : few                  ? ",\"search\":{\"micro_batch\":{\"max\":4}}"
                           : number % 5 == 2      ? ",\"search\":{\"precision\":[\"bf16\",\"fp8\",\"fp16\"]}"
                           : number % 5 == 4      ? ",\"search\":{\"schedule\":[\"zb-auto\",\"zb-h2\"]}"
                                                  : "",
                           number % 8 == 6   ? ",\"offload\":{\"activation_layers\":2}"
                           : number % 8 == 4 ? ",\"offload\":{\"activation_layers\":\"auto\"}"
                                             : "");
#undef MAY
    return text;
}

/* The scenario that fixture_text() writes. */
static inline Spec *fixture_space_of(GRand *rand, int number, bool few, const char *framework)
{
    g_autoptr(GString) text = fixture_text(rand, number, few, framework);
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text->str, text->len, "fixture", &error);
    g_assert_no_error(error);
    Spec *spec = g_new0(Spec, 1);
    spec_load_json(orr_json_root(doc), "fixture", NULL, true, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    fixture_vary(spec, number);
    return spec;
}

static inline Spec *fixture_space(GRand *rand, int number, bool few)
{
    return fixture_space_of(rand, number, few, NULL);
}

#endif
