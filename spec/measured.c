/* spec/measured.c - see measured.h. Tested: unit/step/test_measured.c */
#include "spec/measured.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "spec/fields_internal.h"
#include "spec/texts.h"

#define MOST_SECONDS 1e6
#define MOST_NUMBERS 10000000

/* Borrowed from the document while a row is read. */
typedef struct MeasuredRow {
    int stage, replica; /* replica -1: all */
    const OrrJson *seconds[SPEC_MEASURED_COUNT];
} MeasuredRow;

static bool is_seconds(const OrrJson *node)
{
    return orr_json_type(node) == ORR_JSON_NUMBER && orr_json_number(node) >= 0 &&
           orr_json_number(node) <= MOST_SECONDS;
}

static bool read_seconds(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    const bool list = orr_json_type(node) == ORR_JSON_LIST;
    if (!list && !is_seconds(node))
        return spec_read_fail(context, node, error, "is not a number of seconds from 0 to %g", MOST_SECONDS);
    for (const OrrJson *item = list ? orr_json_first(node) : NULL; item != NULL; item = orr_json_next(item))
        if (!is_seconds(item))
            return spec_read_fail(context, item, error, "is not a number of seconds from 0 to %g",
                                  MOST_SECONDS);
    *(const OrrJson **)target = node;
    return true;
}

#define EACH "{\"type\":[\"number\",\"array\"]}"
#define SECONDS(name, place, form_, schema_, text)                                                           \
    {                                                                                                        \
        .key = (name), .type = SPEC_TYPE_CUSTOM, .offset = offsetof(MeasuredRow, seconds[place]),            \
        .flags = SPEC_FIELD_DERIVED, .absent_text = "as predicted", .read = read_seconds, .form = (form_),   \
        .schema = (schema_), .help = (text)                                                                  \
    }
#define OF_PASSES(name, place, text)                                                                         \
    SECONDS(name, place, "seconds, or a list of them, one a micro-batch", EACH, text)
#define OF_STEP(name, place, text) SECONDS(name, place, "seconds", "{\"type\":\"number\"}", text)

/* In the order of SpecMeasuredKey, behind stage and replica. */
static const SpecField row_fields[] = {
    SPEC_F_INT(MeasuredRow, stage, 0, SPEC_MAX_STAGES, NULL, SPEC_FIELD_REQUIRED,
               "Stage of the model, from 0 at its input."),
    SPEC_F_INT(MeasuredRow, replica, -1, SPEC_MOST_REPLICAS, "-1", 0,
               "Data-parallel replica, from 0; -1: all of them."),
    OF_PASSES("forward_s", SPEC_MEASURED_FORWARD, "What the stage's forward of each micro-batch takes."),
    OF_PASSES("backward_s", SPEC_MEASURED_BACKWARD,
              "What the stage's backward of each micro-batch takes, recomputation included."),
    OF_PASSES("send_forward_s", SPEC_MEASURED_SEND_FORWARD,
              "What an activation takes to the next stage once both sides are ready."),
    OF_PASSES("send_backward_s", SPEC_MEASURED_SEND_BACKWARD,
              "What a gradient takes to the previous stage once both sides are ready."),
    OF_STEP("begin_s", SPEC_MEASURED_BEGIN,
            "What the rank of the stage does before its first pass: the host, gathers of parameters."),
    OF_STEP("end_s", SPEC_MEASURED_END,
            "Time from the last pass of this stage's rank to the start of its gradient reduction (the host's "
            "work)."),
    OF_STEP("reduce_s", SPEC_MEASURED_REDUCE,
            "What the reduction of the stage's gradients takes once all replicas are ready."),
    OF_STEP("embedding_reduce_s", SPEC_MEASURED_EMBEDDING,
            "What the reduction of tied embeddings takes once the first and last stage are ready."),
    OF_STEP("norm_s", SPEC_MEASURED_NORM, "What the norm of all gradients takes once all ranks are ready."),
    OF_STEP("optimizer_s", SPEC_MEASURED_OPTIMIZER, "What the rank's optimizer takes."),
};
static SPEC_TABLE(table_row, "execution.measured_passes.passes",
                  "Seconds of one stage's passes, of one replica or of all.", row_fields);

/* Key of a row: "forward_s" ... */
static const char *spec_measured_word(SpecMeasuredKey key)
{
    return row_fields[2 + key].key;
}

static bool read_rows(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    GString *text = target;
    if (orr_json_type(node) != ORR_JSON_LIST)
        return spec_read_fail(context, node, error,
                              "is not a list; give a list of objects with stage and forward_s");
    int64_t numbers = 0;
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item)) {
        MeasuredRow row;
        memset(&row, 0, sizeof row);
        if (!spec_read_table(context, &table_row, item, &row, error))
            return false;
        for (int key = 0; key < SPEC_MEASURED_COUNT; key++) {
            const OrrJson *seconds = row.seconds[key];
            if (seconds == NULL)
                continue;
            const bool list = orr_json_type(seconds) == ORR_JSON_LIST;
            g_string_append_printf(text, "%d %d %d %d", row.stage, row.replica, key,
                                   list ? orr_json_count(seconds) : 0);
            for (const OrrJson *one = list ? orr_json_first(seconds) : seconds; one != NULL;
                 one = list ? orr_json_next(one) : NULL) {
                char number[G_ASCII_DTOSTR_BUF_SIZE];
                g_string_append_printf(text, " %s",
                                       g_ascii_dtostr(number, sizeof number, orr_json_number(one)));
                if (++numbers > MOST_NUMBERS)
                    return spec_read_fail(context, NULL, error, "has more than %d numbers; give fewer",
                                          MOST_NUMBERS);
            }
            g_string_append_c(text, '\n');
        }
    }
    return true;
}

/* `passes` reads into a text of lines. */
static const SpecField file_fields[] = {
    SPEC_F_SCHEMA,
    SPEC_F_EDITOR,
    SPEC_F_NOTE("name", "Name of the step in reports."),
    SPEC_F_NOTE("source", "Where the seconds come from."),
    {.key = "passes",
     .type = SPEC_TYPE_CUSTOM,
     .flags = SPEC_FIELD_REQUIRED,
     .read = read_rows,
     .form = "a list of objects",
     .schema = "{\"type\":\"array\"}",
     .table = &table_row,
     .help = "One object for each stage and replica."},
};
SPEC_TABLE(spec_table_measured, "execution.measured_passes", "Seconds that a step's passes took in a trace.",
           file_fields);

bool spec_read_measured(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    const char **measured = target;
    *measured = NULL;
    if (orr_json_type(node) == ORR_JSON_TEXT && orr_json_text(node)[0] == '\0')
        return true;
    if (orr_json_type(node) != ORR_JSON_OBJECT)
        return spec_read_fail(context, node, error,
                              "is %s; give the path of a file, or an object with passes",
                              orr_json_type_name(node));
    g_autoptr(GString) text = g_string_new(NULL);
    context->quiet++;
    const bool ok = spec_read_table(context, &spec_table_measured, node, text, error);
    context->quiet--;
    if (!ok)
        return false;
    if (text->len == 0 && context->mistakes == NULL) /* which passes the rows over */
        return spec_read_fail(context, NULL, error, "says nothing; give at least one row with forward_s");
    *measured = spec_keep_text(context->texts, text->str);
    return true;
}

/* --- one scenario's --- */

typedef struct Line {
    long stage, replica, key, count; /* count 0: one number for all micro-batches */
} Line;

static bool fits(const SpecMeasured *measured, const Line *line, GError **error)
{
    const char *word = spec_measured_word((SpecMeasuredKey)line->key);
    if (line->stage >= measured->stages)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "execution.measured_passes: stage %ld, but there are %d (pipeline x virtual_stages); "
                        "give 0 to %d",
                        line->stage, measured->stages, measured->stages - 1);
    if (line->replica >= measured->replicas)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "execution.measured_passes: replica %ld, but parallel.data is %d; give 0 to %d, or leave it out",
            line->replica, measured->replicas, measured->replicas - 1);
    const int each = line->key < SPEC_MEASURED_PASSES ? measured->microbatches : 1;
    return line->count == 0 || line->count == each ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "execution.measured_passes: stage %ld: %s: %ld numbers, but a step has %d of them; give "
                    "as many, "
                    "or one number",
                    line->stage, word, line->count, each);
}

static const char *take(const SpecMeasured *measured, const Line *line, const char *at)
{
    const int each = line->key < SPEC_MEASURED_PASSES ? measured->microbatches : 1;
    char *end = NULL;
    double value = 0;
    for (int m = 0; m < each; m++) {
        if (m == 0 || line->count > 0) {
            value = g_ascii_strtod(at, &end);
            at = end;
        }
        for (int replica = 0; replica < measured->replicas; replica++)
            if (line->replica < 0 || line->replica == replica)
                *spec_measured_at(measured, (SpecMeasuredKey)line->key, (int)line->stage, replica, m) = value;
    }
    return at;
}

static void init(const Spec *spec, OrrArena *arena, SpecMeasured *measured)
{
    *measured = (SpecMeasured){.stages = spec->parallel.pipeline * spec->parallel.virtual_stages,
                               .replicas = spec->parallel.data,
                               .microbatches = spec_microbatches(spec)};
    for (int key = 0; key < SPEC_MEASURED_COUNT; key++) {
        const int64_t count = (int64_t)measured->stages * measured->replicas *
                              (key < SPEC_MEASURED_PASSES ? measured->microbatches : 1);
        measured->seconds[key] = ORR_ARENA_NEW(arena, double, count);
        for (int64_t i = 0; i < count; i++)
            measured->seconds[key][i] = NAN;
    }
}

bool spec_measured_read(const Spec *spec, OrrArena *arena, SpecMeasured *ret_measured, GError **error)
{
    init(spec, arena, ret_measured);
    for (const char *at = spec->execution.measured_passes; *at != '\0'; at++) {
        long values[4];
        for (int i = 0; i < 4; i++) {
            char *end = NULL;
            values[i] = (long)g_ascii_strtoll(at, &end, 10);
            at = end;
        }
        const Line line = {.stage = values[0], .replica = values[1], .key = values[2], .count = values[3]};
        if (!fits(ret_measured, &line, error))
            return false;
        at = take(ret_measured, &line, at);
    }
    return true;
}

/* --- without differences --- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double middle(double *values, int count, bool median)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    if (!median || count == 0)
        return count > 0 ? sum / count : NAN;
    qsort(values, (size_t)count, sizeof *values, by_size);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static bool is_compute(SpecMeasuredKey key)
{
    return key == SPEC_MEASURED_FORWARD || key == SPEC_MEASURED_BACKWARD || key == SPEC_MEASURED_BEGIN ||
           key == SPEC_MEASURED_END || key == SPEC_MEASURED_OPTIMIZER;
}

typedef struct Range {
    int first, behind;
} Range;

static Range range_of(bool kept, int at, int count)
{
    return kept ? (Range){at, at + 1} : (Range){0, count};
}

/* The middle of all seconds that one at these places is compared with; NAN: none was measured. */
static double middle_of(const SpecMeasured *measured, SpecMeasuredKey key, Range stages, Range replicas,
                        Range each, double *scratch)
{
    int count = 0;
    for (int s = stages.first; s < stages.behind; s++)
        for (int r = replicas.first; r < replicas.behind; r++)
            for (int m = each.first; m < each.behind; m++) {
                const double seconds = *spec_measured_at(measured, key, s, r, m);
                if (!isnan(seconds))
                    scratch[count++] = seconds;
            }
    return middle(scratch, count, !is_compute(key));
}

static void even_key(const SpecMeasured *measured, SpecMeasuredKey key, unsigned along, double *scratch,
                     SpecMeasured *even)
{
    const int each = key < SPEC_MEASURED_PASSES ? measured->microbatches : 1;
    const bool by_stage = (along & SPEC_ALONG_STAGES) != 0, by_replica = (along & SPEC_ALONG_REPLICAS) != 0,
               by_microbatch = (along & SPEC_ALONG_MICROBATCHES) != 0;
    for (int s = 0; s < (by_stage ? measured->stages : 1); s++)
        for (int r = 0; r < (by_replica ? measured->replicas : 1); r++)
            for (int m = 0; m < (by_microbatch ? each : 1); m++) {
                const Range stages = range_of(by_stage, s, measured->stages),
                            replicas = range_of(by_replica, r, measured->replicas),
                            microbatches = range_of(by_microbatch, m, each);
                const double value = middle_of(measured, key, stages, replicas, microbatches, scratch);
                for (int i = stages.first; i < stages.behind; i++)
                    for (int j = replicas.first; j < replicas.behind; j++)
                        for (int k = microbatches.first; k < microbatches.behind; k++)
                            if (!isnan(*spec_measured_at(measured, key, i, j, k)))
                                *spec_measured_at(even, key, i, j, k) = value;
            }
}

void spec_measured_even(const SpecMeasured *measured, unsigned along, OrrArena *arena, SpecMeasured *ret_even)
{
    const int64_t most = (int64_t)measured->stages * measured->replicas * measured->microbatches;
    double *scratch = ORR_ARENA_NEW(arena, double, most);
    *ret_even = *measured;
    for (int key = 0; key < SPEC_MEASURED_COUNT; key++) {
        const int64_t count =
            key < SPEC_MEASURED_PASSES ? most : (int64_t)measured->stages * measured->replicas;
        ret_even->seconds[key] = ORR_ARENA_NEW(arena, double, count);
        memcpy(ret_even->seconds[key], measured->seconds[key], sizeof(double) * (size_t)count);
        even_key(measured, (SpecMeasuredKey)key, along, scratch, ret_even);
    }
}
