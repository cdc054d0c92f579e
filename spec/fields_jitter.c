/* spec/fields_jitter.c - field table of GPUs and links that are slower than others. */
#include "spec/fields_internal.h"

#define SHARE(member, text) SPEC_F_DOUBLE(SpecJitter, member, ORR_UNIT_FRAC, 0, 0.9, "0", 0, text)

/* {"rank": 5, "frac": 0.1}: one part and what it loses. */
static bool read_slow_item(SpecReadContext *context, const OrrJson *item, SpecSlow *ret_slow, GError **error)
{
    static const SpecField share = {
        .key = "frac", .type = SPEC_TYPE_DOUBLE, .unit = ORR_UNIT_FRAC, .min = 0, .max = 0.99};
    if (orr_json_type(item) != ORR_JSON_OBJECT || orr_json_count(item) != 2 ||
        orr_json_member(item, "frac") == NULL)
        return spec_read_fail(
            context, NULL, error,
            "each entry names one part and what it loses; write {\"node\": 3, \"frac\": 0.1}, "
            "or \"rank\", \"nic\" or \"link\" of a rank");
    SpecSlow slow = {0};
    if (!spec_read_number(context, &share, orr_json_member(item, "frac"), &slow.frac, error))
        return false;
    for (int part = 0; part < spec_words_slow_part.count; part++) {
        const OrrJson *index = orr_json_member(item, spec_word(&spec_words_slow_part, part));
        if (index == NULL)
            continue;
        slow.part = (SpecSlowPart)part;
        if (!spec_read_int(context, index, 0, 1e8, &slow.index, error))
            return false;
        *ret_slow = slow;
        return true;
    }
    return spec_read_fail(
        context, NULL, error,
        "an entry names no part; give \"rank\", \"node\", \"nic\" or \"link\" with a number");
}

static bool read_slow(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecJitter *jitter = target;
    SpecSlow slow[SPEC_MOST_SLOW];
    int count = 0;
    if (orr_json_type(node) != ORR_JSON_LIST || orr_json_count(node) > SPEC_MOST_SLOW)
        return spec_read_fail(context, NULL, error,
                              "is not a list of at most %d entries; write [{\"node\": 3, \"frac\": 0.1}]",
                              SPEC_MOST_SLOW);
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item))
        if (!read_slow_item(context, item, &slow[count++], error))
            return false;
    for (int i = 0; i < count; i++)
        jitter->slow[i] = slow[i];
    jitter->slow_count = count;
    return true;
}

static const SpecField jitter_fields[] = {
    SPEC_F_FILE_KEYS("jitter"),
    SPEC_F_NAME(SpecJitter, name, "\"\"", "Name in reports."),
    SHARE(rank_spread_frac, "Lasting differences in speed between GPUs. Each GPU lacks the absolute value of "
                            "one normal draw of this standard deviation."),
    SHARE(step_noise_frac, "Differences in speed from step to step. In each step a GPU lacks the absolute "
                           "value of a new normal draw of this standard deviation."),
    SHARE(thermal_swing_frac,
          "Speed that all GPUs lack at the hottest time of the day. Steps fall on all times."),
    SHARE(slow_nodes_frac, "Share of the nodes that are slow. Which ones is drawn; above 0 at least one is."),
    SHARE(slow_nodes_by_frac, "Speed that the GPUs of a slow node lack."),
    {.key = "slow",
     .type = SPEC_TYPE_CUSTOM,
     .flags = SPEC_FIELD_DERIVED,
     .read = read_slow,
     .form = "a list of entries like {\"node\": 3, \"frac\": 0.1}",
     .schema = "{\"type\":\"array\",\"items\":{\"type\":\"object\"},\"maxItems\":32}",
     .help =
         "Slow parts and the fraction of speed that each lacks. \"rank\" (a GPU) and \"node\" slow "
         "computing; \"nic\" and \"link\" (the scale-up port) slow messages of stages and replicas. A slow "
         "link does not slow exchanges of tensor, context and expert ranks; give the affected rank too."},
    SPEC_F_INT(SpecJitter, seed, 0, 1e9, "1", 0, "Seed of the random draws."),
    SPEC_F_INT(SpecJitter, steps, 1, 10000, "100", 0, "Steps that are simulated where they differ."),
};
SPEC_TABLE(spec_table_jitter, "jitter",
           "GPUs and links that are slower than others, always or from step to step.", jitter_fields);

bool spec_read_jitter(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecJitter *jitter = target;
    if (orr_json_type(node) != ORR_JSON_OBJECT)
        return spec_read_fail(context, node, error, "is %s; give a preset's name, a path, or an object",
                              orr_json_type_name(node));
    SpecReadContext inside = *context;
    inside.quiet++;
    jitter->given = true;
    return spec_read_table(&inside, &spec_table_jitter, node, jitter, error);
}
