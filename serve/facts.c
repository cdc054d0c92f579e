/* serve/facts.c - see facts.h. Tested: cli/test_mcp.py */
#include "serve/facts.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

typedef enum { GROWS, SHRINKS, NO_INTERVAL } WithStep; /* as the step grows */

/* Figures that are looked for where a tool's answers have them. */
static const struct {
    const char *key;
    const char *unit;
    WithStep with_step;
} figures[] = {
    {"step_s", "s", GROWS},
    {"seconds", "s", NO_INTERVAL},
    {"measured_s", "s", NO_INTERVAL},
    {"predicted_s", "s", NO_INTERVAL},
    {"tokens_per_s", "tokens/s", SHRINKS},
    {"tokens_per_s_per_gpu", "tokens/s", SHRINKS},
    {"mfu", "fraction", SHRINKS},
    {"bubble_frac", "fraction", NO_INTERVAL},
    {"gpus", "GPUs", NO_INTERVAL},
    {"days", "days", GROWS},
    {"effective_days", "days", NO_INTERVAL},
    {"gpu_hours", "GPU-hours", GROWS},
    {"goodput", "fraction", NO_INTERVAL},
    {"interruptions", "failures", NO_INTERVAL},
    {"usd", "US dollars", NO_INTERVAL},
    {"kwh", "kWh", NO_INTERVAL},
    {"peak_bytes", "bytes", NO_INTERVAL},
    {"reserved_bytes", "bytes", NO_INTERVAL},
    {"capacity_bytes", "bytes", NO_INTERVAL},
    {"algbw_bytes_per_s", "bytes/s", NO_INTERVAL},
    {"busbw_bytes_per_s", "bytes/s", NO_INTERVAL},
    {"gap_frac", "fraction", NO_INTERVAL},
    {"gain_frac", "fraction", NO_INTERVAL},
    {"step_frac", "fraction", NO_INTERVAL},
};

typedef struct Fact {
    const char *path, *unit;
    double value, low, high;
    bool has_interval;
    double coverage;
    const ServeLabel *label;
} Fact;

typedef void (*ForFact)(const Fact *fact, void *data);

static bool begins(const char *path, const char *prefix)
{
    const gsize length = strlen(prefix);
    return length == 0 ||
           (strncmp(path, prefix, length) == 0 && (path[length] == '\0' || path[length] == '.'));
}

static const ServeLabel *label_of(const ServeTool *tool, const char *path)
{
    const ServeLabel *best = &tool->labels[0];
    for (int i = 0; i < SERVE_MOST_LABELS && tool->labels[i].path != NULL; i++)
        if (begins(path, tool->labels[i].path) && strlen(tool->labels[i].path) >= strlen(best->path))
            best = &tool->labels[i];
    return best;
}

/* Numbers that hang on the step alone have its interval, scaled. */
static void give_interval(const OrrJson *object, WithStep with_step, Fact *fact)
{
    const OrrJson *interval = orr_json_member(object, "interval");
    const double step = orr_json_number_of(object, "step_s", 0);
    if (interval == NULL || orr_json_type(interval) != ORR_JSON_OBJECT || step <= 0 ||
        with_step == NO_INTERVAL)
        return;
    const double low = orr_json_number_of(interval, "low_s", 0) / step;
    const double high = orr_json_number_of(interval, "high_s", 0) / step;
    if (low <= 0 || high <= 0)
        return;
    fact->has_interval = true;
    fact->low = with_step == GROWS ? fact->value * low : fact->value / high;
    fact->high = with_step == GROWS ? fact->value * high : fact->value / low;
    fact->coverage = orr_json_number_of(interval, "coverage", 0);
}

/* A quantity with its spread over replicas: the mean between what eight of ten lie. */
static bool spread_of(const OrrJson *node, Fact *fact)
{
    fact->value = orr_json_number_of(node, "mean", NAN);
    fact->low = orr_json_number_of(node, "p10", NAN);
    fact->high = orr_json_number_of(node, "p90", NAN);
    fact->coverage = 0.8;
    fact->has_interval = true;
    return isfinite(fact->value) && isfinite(fact->low) && isfinite(fact->high);
}

static void facts_of(const ServeTool *tool, const OrrJson *object, const char *path, ForFact each, void *data)
{
    for (gsize i = 0; i < G_N_ELEMENTS(figures); i++) {
        const OrrJson *node = orr_json_member(object, figures[i].key);
        if (node == NULL)
            continue;
        const bool spread = orr_json_type(node) == ORR_JSON_OBJECT;
        g_autofree char *whole =
            g_strconcat(path, path[0] != '\0' ? "." : "", figures[i].key, spread ? ".mean" : NULL, NULL);
        Fact fact = {.path = whole, .unit = figures[i].unit, .label = label_of(tool, whole)};
        if (orr_json_type(node) == ORR_JSON_NUMBER) {
            fact.value = orr_json_number(node);
            give_interval(object, figures[i].with_step, &fact);
        } else if (!spread || !spread_of(node, &fact)) {
            continue;
        }
        each(&fact, data);
    }
}

/* Objects and rows of the answer that hold figures: the root, its memory, the first few of a list. */
static void walk(const ServeTool *tool, const OrrJson *answer, ForFact each, void *data)
{
    static const struct {
        const char *key;
        int most;
        const char *inside; /* NULL: the row itself */
    } places[] = {{"memory", 1, NULL},  {"step", 1, NULL},  {"best", 5, "report"}, {"rows", 10, NULL},
                  {"changes", 5, NULL}, {"binds", 5, NULL}, {"nccl", 1, NULL}};
    if (orr_json_type(answer) != ORR_JSON_OBJECT)
        return;
    facts_of(tool, answer, "", each, data);
    for (gsize i = 0; i < G_N_ELEMENTS(places); i++) {
        const OrrJson *node = orr_json_member(answer, places[i].key);
        if (node != NULL && orr_json_type(node) == ORR_JSON_OBJECT)
            facts_of(tool, node, places[i].key, each, data);
        if (node == NULL || orr_json_type(node) != ORR_JSON_LIST)
            continue;
        const OrrJson *row = orr_json_first(node);
        for (int r = 0; row != NULL && r < places[i].most; r++, row = orr_json_next(row)) {
            const OrrJson *inside = places[i].inside != NULL ? orr_json_member(row, places[i].inside) : row;
            g_autofree char *path =
                g_strdup_printf("%s.%d%s%s", places[i].key, r, places[i].inside != NULL ? "." : "",
                                places[i].inside != NULL ? places[i].inside : "");
            if (inside != NULL && orr_json_type(inside) == ORR_JSON_OBJECT)
                facts_of(tool, inside, path, each, data);
        }
    }
    const OrrJson *summary = orr_json_member(answer, "summary");
    for (const OrrJson *row = summary != NULL ? orr_json_first(summary) : NULL; row != NULL;
         row = orr_json_next(row))
        for (const OrrJson *side = orr_json_first(row); side != NULL; side = orr_json_next(side)) {
            if (orr_json_type(side) != ORR_JSON_NUMBER)
                continue;
            g_autofree char *path = g_strconcat("summary.", orr_json_key(row), ".", orr_json_key(side), NULL);
            const Fact fact = {.path = path,
                               .unit = "as the member before it says",
                               .value = orr_json_number(side),
                               .label = label_of(tool, path)};
            each(&fact, data);
        }
}

static void write_fact(const Fact *fact, void *data)
{
    OrrJsonWriter *w = data;
    orr_jw_begin(w, NULL, '{');
    orr_jw_text(w, "path", fact->path);
    orr_jw_number(w, "value", fact->value);
    orr_jw_text(w, "unit", fact->unit);
    orr_jw_text(w, "label", fact->label->label);
    if (fact->has_interval) {
        orr_jw_begin(w, "interval", '{');
        orr_jw_number(w, "low", fact->low);
        orr_jw_number(w, "high", fact->high);
        orr_jw_number(w, "coverage", fact->coverage);
        orr_jw_end(w, '}');
    } else {
        orr_jw_null(w, "interval");
    }
    orr_jw_text(w, "source", fact->label->source);
    orr_jw_end(w, '}');
}

/* Fields of the scenario that nobody gave; what software and chips have for defaults is counted. */
static void write_assumed(const OrrJson *answer, OrrJsonWriter *w)
{
    const OrrJson *stamp = answer != NULL ? orr_json_member(answer, "stamp") : NULL;
    const OrrJson *defaulted = stamp != NULL ? orr_json_member(stamp, "defaulted") : NULL;
    int inside = 0;
    orr_jw_begin(w, "assumed", '[');
    for (const OrrJson *row = defaulted != NULL ? orr_json_first(defaulted) : NULL; row != NULL;
         row = orr_json_next(row)) {
        const char *text = orr_json_type(row) == ORR_JSON_TEXT ? orr_json_text(row) : "";
        if (g_str_has_prefix(text, "execution.framework.") || g_str_has_prefix(text, "cluster.accelerator."))
            inside++;
        else
            orr_jw_text(w, NULL, text);
    }
    orr_jw_end(w, ']');
    orr_jw_int(w, "assumed_in_profiles", inside);
}

/* Members "numbers", "labels" and "assumed" of the open object: the figures that matter with their intervals, what all others are, and
 * fields that nobody gave. `answer` NULL: a text. */
static void serve_facts_write(const ServeTool *tool, const OrrJson *answer, OrrJsonWriter *w)
{
    orr_jw_begin(w, "numbers", '[');
    if (answer != NULL)
        walk(tool, answer, write_fact, w);
    orr_jw_end(w, ']');
    orr_jw_begin(w, "labels", '[');
    for (int i = 0; i < SERVE_MOST_LABELS && tool->labels[i].path != NULL; i++) {
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "path", tool->labels[i].path);
        orr_jw_text(w, "label", tool->labels[i].label);
        orr_jw_text(w, "source", tool->labels[i].source);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
    write_assumed(answer, w);
}

static void say_fact(const Fact *fact, void *data)
{
    GString *out = data;
    g_string_append_printf(out, "%s = %.6g %s (%s", fact->path, fact->value, fact->unit, fact->label->label);
    if (fact->has_interval)
        g_string_append_printf(out, ", %.0f %% of cases within %.6g to %.6g", 100 * fact->coverage, fact->low,
                               fact->high);
    g_string_append(out, ")\n");
}

void serve_facts_text(const ServeTool *tool, const OrrJson *answer, GString *out)
{
    if (answer != NULL)
        walk(tool, answer, say_fact, out);
}

/* Rows whose name contains `name`; all of them where it is NULL or the answer is no list. */
static void write_rows(const OrrJson *answer, const char *name, OrrJsonWriter *w)
{
    orr_jw_begin(w, "answer", '[');
    for (const OrrJson *row = orr_json_first(answer); row != NULL; row = orr_json_next(row))
        if (name == NULL || strstr(orr_json_text_of(row, "name", ""), name) != NULL)
            orr_jw_node(w, NULL, row);
    orr_jw_end(w, ']');
}

/* The fields that were defaulted stand under "assumed" already, and are many. */
static void write_answer(const OrrJson *answer, const char *name, OrrJsonWriter *w)
{
    if (orr_json_type(answer) == ORR_JSON_LIST) {
        write_rows(answer, name, w);
        return;
    }
    orr_jw_begin(w, "answer", '{');
    for (const OrrJson *member = orr_json_first(answer); member != NULL; member = orr_json_next(member)) {
        if (strcmp(orr_json_key(member), "stamp") != 0 || orr_json_type(member) != ORR_JSON_OBJECT) {
            orr_jw_node(w, orr_json_key(member), member);
            continue;
        }
        orr_jw_begin(w, "stamp", '{');
        for (const OrrJson *part = orr_json_first(member); part != NULL; part = orr_json_next(part))
            if (strcmp(orr_json_key(part), "defaulted") != 0)
                orr_jw_node(w, orr_json_key(part), part);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, '}');
}

/* What a tool's answer is as a whole: {"tool", "version", "numbers", "labels", "assumed", "notes", "answer"}. */
void serve_whole_write(const ServeTool *tool, const OrrJson *answer, const char *name, const char *text,
                       const char *notes, OrrJsonWriter *w, const char *key)
{
    orr_jw_begin(w, key, '{');
    orr_jw_text(w, "tool", tool->name);
    orr_jw_text(w, "version", ORRERY_VERSION);
    serve_facts_write(tool, answer, w);
    if (notes[0] != '\0')
        orr_jw_text(w, "notes", notes);
    if (answer != NULL)
        write_answer(answer, name, w);
    else
        orr_jw_text(w, "answer", text);
    orr_jw_end(w, '}');
}
