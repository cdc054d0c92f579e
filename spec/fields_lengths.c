/* spec/fields_lengths.c - field table of training.lengths, and what must hold beside it. */
#include "spec/checks.h"
#include "spec/fields_internal.h"

/* [[128, 300], [512, 1000]]: lengths, rising, and how many texts have them. */
static bool read_bins(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecLengths *lengths = target;
    int count = 0;
    double before = 0, sum = 0;
    if (orr_json_type(node) != ORR_JSON_LIST || orr_json_count(node) > SPEC_LENGTHS_MOST)
        return spec_read_fail(
            context, NULL, error,
            "is not a list of at most %d pairs; give tokens and texts, as [[128, 300], [512, 90]]",
            SPEC_LENGTHS_MOST);
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item), count++) {
        const bool pair = orr_json_type(item) == ORR_JSON_LIST && orr_json_count(item) == 2;
        const OrrJson *first = pair ? orr_json_first(item) : NULL,
                      *second = pair ? orr_json_next(first) : NULL;
        if (!pair || orr_json_type(first) != ORR_JSON_NUMBER || orr_json_type(second) != ORR_JSON_NUMBER ||
            !(orr_json_number(first) > before) || !(orr_json_number(first) <= 1e9) ||
            !(orr_json_number(second) >= 0) || !(orr_json_number(second) <= 1e18))
            return spec_read_fail(
                context, NULL, error,
                "entry %d is not a pair of rising tokens and a count; give pairs, as [[128, 300], [512, 90]]",
                count + 1);
        before = orr_json_number(first);
        sum += orr_json_number(second);
        lengths->histogram_tokens[count] = (float)before;
        lengths->histogram_weight[count] = (float)orr_json_number(second);
    }
    lengths->histogram_count = count;
    return count == 0 || sum > 0 ||
           spec_read_fail(context, NULL, error, "counts no text; give counts of which one is above 0");
}

/* Where a scenario is read as it was written: what is loaded has the file's histogram in its place. */
static bool read_file(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecLengths *lengths = target;
    lengths->from_file = orr_json_type(node) == ORR_JSON_TEXT;
    return lengths->from_file ||
           spec_read_fail(context, node, error,
                          "is %s; give the path of a file with a number of tokens a line",
                          orr_json_type_name(node));
}

static const SpecField lengths_fields[] = {
    SPEC_F_DOUBLE(
        SpecLengths, mean, ORR_UNIT_TOKENS, 0, 1e9, "0", 0,
        "Mean length of a text, before what is longer than max is cut off. Lengths are log-normal."),
    SPEC_F_DOUBLE(SpecLengths, log_sd, ORR_UNIT_NONE, 0, 5, "0.8", 0,
                  "Standard deviation of the logarithm of the lengths; 0: all are as long as the mean."),
    SPEC_F_INT(SpecLengths, max, 0, 1e9, "0", 0,
               "Longer texts are cut off at this many tokens; 0: training.sequence_length."),
    SPEC_F_BOOL(SpecLengths, drop_longer, "false", 0,
                "Texts of more than max tokens are left out of the training, in place of being cut off."),
    SPEC_F_BOOL(SpecLengths, packed, "true", 0,
                "Several texts fill one row of sequence_length, attention masked between them. Otherwise "
                "every text is "
                "padded to the longest of its micro-batch."),
    {.key = "histogram",
     .type = SPEC_TYPE_CUSTOM,
     .flags = SPEC_FIELD_DERIVED,
     .read = read_bins,
     .form = "a list of pairs, tokens and how many texts have them, as [[128, 300], [512, 90]]",
     .schema =
         "{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":{\"type\":\"number\",\"minimum\":0},"
         "\"minItems\":2,\"maxItems\":2},\"maxItems\":64}",
     .help = "Lengths as counted, in place of mean and log_sd."},
    {.key = "file",
     .type = SPEC_TYPE_CUSTOM,
     .flags = SPEC_FIELD_DERIVED,
     .read = read_file,
     .form = "the path of a file, from the scenario's folder",
     .schema = "{\"type\":\"string\"}",
     .help =
         "A file to count the histogram from. Each line is a text's number of tokens, or a JSON object with "
         "length, tokens, num_tokens or input_ids. 256 MiB and 10 million texts at most."},
};
SPEC_TABLE(spec_table_lengths, "training.lengths", "How long the texts are that are trained on.",
           lengths_fields);

bool spec_read_lengths(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecLengths *lengths = target;
    if (orr_json_type(node) != ORR_JSON_OBJECT)
        return spec_read_fail(context, node, error, "is %s; give an object, as {\"mean\":500}",
                              orr_json_type_name(node));
    SpecReadContext inside = *context;
    inside.quiet++;
    lengths->given = true;
    lengths->packed_frac = 1;
    return spec_read_table(&inside, &spec_table_lengths, node, lengths, error) &&
           (lengths->histogram_count == 0 || lengths->mean <= 0 ||
            spec_read_fail(context, NULL, error, "has both mean and histogram; give one of them")) &&
           (lengths->histogram_count > 0 || lengths->mean >= 1 || lengths->from_file ||
            inside.mistakes != NULL ||
            spec_read_fail(context, NULL, error, "says no length; give mean, in tokens, histogram or file"));
}

bool spec_lengths(const SpecLengths *lengths, int sequence_length, OrrLengths *out)
{
    const double most = lengths->max > 0 ? MIN(lengths->max, sequence_length) : sequence_length;
    double tokens[SPEC_LENGTHS_MOST], weight[SPEC_LENGTHS_MOST];
    for (int i = 0; i < lengths->histogram_count; i++) {
        tokens[i] = lengths->histogram_tokens[i];
        weight[i] = lengths->histogram_weight[i];
    }
    const bool counted = lengths->histogram_count > 0, drops = lengths->drop_longer;
    if (counted)
        orr_lengths_histogram(tokens, weight, lengths->histogram_count, drops ? 0 : most, out);
    else if (!drops)
        orr_lengths_log_normal(lengths->mean, lengths->log_sd, most, out);
    return !drops || (counted ? orr_lengths_drop(out, most)
                              : orr_lengths_log_normal_below(lengths->mean, lengths->log_sd, most, out));
}

bool spec_check_lengths(const Check *check)
{
    const SpecTraining *training = &check->spec->training;
    if (!training->lengths.given)
        return true;
    OrrLengths left;
    if (!spec_lengths(&training->lengths, training->sequence_length, &left))
        return spec_check_fail(check,
                               "training.lengths.drop_longer: true, and no text is as short as %d tokens; "
                               "give a larger max or training.sequence_length",
                               training->lengths.max > 0
                                   ? MIN(training->lengths.max, training->sequence_length)
                                   : training->sequence_length);
    const char *beside = training->document_tokens > 0           ? "training.document_tokens"
                         : check->spec->model.encoder_layers > 0 ? "model.encoder_layers"
                         : check->spec->model.list.text != NULL  ? "a list of layers"
                         : !spec_lengths_split(&training->lengths) &&
                                 spec_check_known(check->spec->parallel.context) &&
                                 check->spec->parallel.context > 1
                             ? "parallel.context above 1 and packed false"
                             : NULL;
    return beside == NULL ||
           spec_check_fail(check, "training.lengths: with %s is not simulated; leave one of them out",
                           beside);
}
