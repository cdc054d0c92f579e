/* plots/tornado.c - what single changes do to the step: a row a field, its best value to the left, its worst to the right.
 * Tested: unit/plots/test_tornado.c
 */
#include <math.h>
#include <string.h>

#include "plots/driver.h"

enum { MOST_ROWS = 14 };

static const ExplainChange *change_at(const Explanation *explanation, guint index)
{
    return &g_array_index(explanation->changes, ExplainChange, index);
}

static int compare_rows(gconstpointer a, gconstpointer b)
{
    const PlotSwing *x = a, *y = b;
    const double more = x->best != NULL ? x->best->gain_frac : 0,
                 less = y->best != NULL ? y->best->gain_frac : 0;
    if (more > less || more < less)
        return more > less ? -1 : 1;
    const double worse = x->worst != NULL ? x->worst->gain_frac : 0,
                 better = y->worst != NULL ? y->worst->gain_frac : 0;
    return worse > better || worse < better ? (worse > better) - (worse < better) : strcmp(x->key, y->key);
}

GArray *plot_swings(const Explanation *explanation)
{
    const double shown_from = 0.0005; /* rounds to 0.1 % */
    GArray *swings = g_array_new(FALSE, FALSE, sizeof(PlotSwing));
    for (guint i = 0; i < explanation->changes->len; i++) {
        const ExplainChange *change = change_at(explanation, i);
        const gsize length = strcspn(change->set[0], "=");
        PlotSwing *swing = NULL;
        if (fabs(change->gain_frac) < shown_from)
            continue;
        for (guint k = 0; k < swings->len && swing == NULL; k++) {
            PlotSwing *known = &g_array_index(swings, PlotSwing, k);
            if (strlen(known->key) == length && strncmp(known->key, change->set[0], length) == 0)
                swing = known;
        }
        if (swing == NULL) {
            PlotSwing fresh = {.best = NULL};
            g_snprintf(fresh.key, sizeof fresh.key, "%.*s", (int)length, change->set[0]);
            g_array_append_val(swings, fresh);
            swing = &g_array_index(swings, PlotSwing, swings->len - 1);
        }
        const ExplainChange **end = change->gain_frac > 0 ? &swing->best : &swing->worst;
        if (*end == NULL || ((*end)->fits == change->fits ? fabs(change->gain_frac) > fabs((*end)->gain_frac)
                                                          : change->fits && change->gain_frac > 0))
            *end = change;
    }
    g_array_sort(swings, compare_rows);
    if (swings->len > MOST_ROWS)
        g_array_set_size(swings, MOST_ROWS);
    return swings;
}

/* "4 with data 32": the value, and those of the fields that go with it; no commas, at which gnuplot cuts. */
static char *words_of(const ExplainChange *change)
{
    GString *words = g_string_new(strchr(change->set[0], '=') + 1);
    for (gsize i = 1; i < G_N_ELEMENTS(change->set) && change->set[i] != NULL; i++) {
        g_auto(GStrv) pair = g_strsplit(change->set[i], "=", 2);
        const char *name = pair[0] + strlen(pair[0]);
        while (name > pair[0] && g_ascii_isalpha(name[-1])) /* "stages" of parallel.virtual_stages */
            name--;
        g_string_append_printf(words, "%s%s %s", i == 1 ? " with " : " and ", name, pair[1]);
    }
    g_string_replace(words, "{\"scheme\":", "", 0);
    for (const char *drop = "\"[]{}"; *drop != '\0'; drop++) {
        const char text[] = {*drop, '\0'};
        g_string_replace(words, text, "", 0);
    }
    g_string_replace(words, ",", " + ", 0);
    return g_string_free(words, FALSE);
}

static void add_end(GString *csv, guint row, const PlotSwing *swing, const ExplainChange *change)
{
    char percent[G_ASCII_DTOSTR_BUF_SIZE];
    if (change == NULL)
        return;
    g_autofree char *words = words_of(change);
    g_string_append_printf(csv, "%u,", row);
    plot_csv_text(csv, swing->key);
    g_string_append_c(csv, ',');
    plot_csv_text(csv, words[0] != '\0' ? words : "none");
    g_string_append_printf(csv, ",%s,%d\n",
                           g_ascii_formatd(percent, sizeof percent, "%.4f", -100 * change->gain_frac),
                           change->fits ? 1 : 0);
}

bool plot_tornado(const Report *report, const PlotTarget *target, GError **error)
{
    Explanation explanation = report_explain(report);
    g_autoptr(GArray) swings = plot_swings(&explanation);
    PlotJob job;
    double most = 0, least = 0;
    plot_job_init(&job, "tornado");
    g_string_append(job.csv, "row,key,value,step_percent,fits\n");
    for (guint i = 0; i < swings->len; i++) {
        const PlotSwing *swing = &g_array_index(swings, PlotSwing, i);
        add_end(job.csv, i, swing, swing->best);
        add_end(job.csv, i, swing, swing->worst);
        most = fmax(most, swing->best != NULL ? 100 * swing->best->gain_frac : 0);
        least = fmax(least, swing->worst != NULL ? -100 * swing->worst->gain_frac : 0);
    }
    g_autofree char *caption = g_strdup_printf("step of %.4g s with one field changed, each simulated: its "
                                               "best value and its worst; hollow: does not fit",
                                               (double)report->step_ps * 1e-12);
    plot_set_heading(&job, report->spec->name, caption);
    plot_set_number(&job, "rows", swings->len);
    plot_set_number(&job, "most", most);
    plot_set_number(&job, "least", least);
    const bool ok = swings->len > 0 ? plot_job_run(&job, target, error)
                                    : orr_fail(error, ORR_ERROR_INPUT,
                                               "--what tornado: no change of a field moves this step");
    plot_job_clear(&job);
    report_explain_clear(&explanation);
    return ok;
}
