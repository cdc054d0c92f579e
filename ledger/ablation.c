/* ledger/ablation.c - see ablation.h. */
#include "ledger/ablation.h"

#include <math.h>
#include <string.h>

static const char *const SWITCHES[] = {
    "training.recompute", "training.precision",         "parallel.schedule",       "parallel.virtual_stages",
    "parallel.zero",      "parallel.sequence_parallel", "execution.overlap",       "execution.attention",
    "execution.compiled", "execution.cuda_graph",       "parallel.moe_dispatcher", "parallel.context_mode",
};

/* The switch at the head of "path=value"; NULL: none. */
static const char *switch_of(const char *line)
{
    for (size_t i = 0; i < G_N_ELEMENTS(SWITCHES); i++)
        if (g_str_has_prefix(line, SWITCHES[i]) && line[strlen(SWITCHES[i])] == '=')
            return SWITCHES[i];
    return NULL;
}

static bool is_whole(const char *path)
{
    return strcmp(path, "training.recompute") == 0;
}

static void add_lines(const OrrJson *node, const char *path, GPtrArray *lines)
{
    if (orr_json_type(node) != ORR_JSON_OBJECT || is_whole(path)) {
        g_autofree char *value = orr_json_dump(node);
        g_ptr_array_add(lines, g_strdup_printf("%s=%s", path, value));
        return;
    }
    for (const OrrJson *child = orr_json_first(node); child != NULL; child = orr_json_next(child)) {
        g_autofree char *below = path[0] != '\0' ? g_strdup_printf("%s.%s", path, orr_json_key(child))
                                                 : g_strdup(orr_json_key(child));
        if (strcmp(below, "name") != 0)
            add_lines(child, below, lines);
    }
}

static int compare_lines(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char **ledger_row_said(const OrrJson *scenario)
{
    GPtrArray *lines = g_ptr_array_new();
    add_lines(scenario, "", lines);
    g_ptr_array_sort(lines, compare_lines);
    g_ptr_array_add(lines, NULL);
    return (char **)g_ptr_array_free(lines, FALSE);
}

/* The one switch in which two rows differ, and its lines (NULL where a row does not say it); NULL: another difference, or
 * none. */
static const char *one_switch(char **a, char **b, const char **ret_was, const char **ret_is)
{
    const char *found = NULL;
    *ret_was = *ret_is = NULL;
    while (*a != NULL || *b != NULL) {
        const int order = *a == NULL ? 1 : *b == NULL ? -1 : strcmp(*a, *b);
        if (order == 0) {
            a++, b++;
            continue;
        }
        const char *line = order < 0 ? *a : *b, *change = switch_of(line);
        if (change == NULL || (found != NULL && change != found))
            return NULL;
        found = change;
        *(order < 0 ? ret_was : ret_is) = line;
        if (order < 0)
            a++;
        else
            b++;
    }
    return found;
}

static char *value_of(const char *line)
{
    return g_strdup(line != NULL ? strchr(line, '=') + 1 : "not said");
}

static bool comparable(const Ledger *ledger, const LedgerRow *a, const LedgerRow *b)
{
    return a->residual >= 0 && b->residual >= 0 && a->source == b->source && a->said != NULL &&
           b->said != NULL &&
           strcmp(ledger_residual(ledger->residuals, (guint)a->residual)->framework,
                  ledger_residual(ledger->residuals, (guint)b->residual)->framework) == 0;
}

LedgerAblations ledger_ablations(const Ledger *ledger)
{
    LedgerAblations found = {.steps = g_array_new(FALSE, FALSE, sizeof(LedgerAblation))};
    double gap = 0;
    for (guint i = 0; i < ledger->rows->len; i++) {
        for (guint j = i + 1; j < ledger->rows->len; j++) {
            const LedgerRow *a = ledger->rows->pdata[i], *b = ledger->rows->pdata[j];
            const char *was, *is,
                *change = comparable(ledger, a, b) ? one_switch(a->said, b->said, &was, &is) : NULL;
            if (change == NULL)
                continue;
            const LedgerAblation step = {.from = a,
                                         .to = b,
                                         .change = change,
                                         .was = value_of(was),
                                         .is = value_of(is),
                                         .measured_frac = b->measured_step_s / a->measured_step_s - 1,
                                         .predicted_frac = b->predicted_step_s / a->predicted_step_s - 1};
            const bool directed = fabs(step.measured_frac) >= LEDGER_ABLATION_NOISE;
            found.directed += directed;
            found.right += directed && (step.measured_frac > 0) == (step.predicted_frac > 0);
            gap += fabs(step.predicted_frac - step.measured_frac);
            g_array_append_val(found.steps, step);
        }
    }
    found.gap = found.steps->len > 0 ? gap / found.steps->len : NAN;
    return found;
}

void ledger_ablations_clear(LedgerAblations *ablations)
{
    for (guint i = 0; i < ablations->steps->len; i++) {
        LedgerAblation *step = &g_array_index(ablations->steps, LedgerAblation, i);
        g_free(step->was);
        g_free(step->is);
    }
    g_clear_pointer(&ablations->steps, g_array_unref);
}
