/* workload/compare.c - see compare.h. Computes nothing but differences. Tested: cli/test_cli_one_answer */
#include "workload/compare.h"

#include <math.h>
#include <string.h>

#include "report/page.h"

enum { MOST_ROWS = 2 * SPEC_MOST_PHASES, LABEL_COLUMN = 18 };

typedef struct Row { /* one name; a phase that a loop lacks is NULL */
    const char *name;
    const WorkloadPhase *phase[2];
} Row;

static int rows_of(const Workload *const loops[2], Row rows[MOST_ROWS])
{
    int count = 0;
    for (int which = 0; which < 2; which++)
        for (int i = 0; i < loops[which]->phase_count; i++) {
            const WorkloadPhase *phase = &loops[which]->phase[i];
            int at = 0;
            while (at < count &&
                   (rows[at].phase[which] != NULL || strcmp(rows[at].name, phase->phase->name) != 0))
                at++;
            if (at == count)
                rows[count++] = (Row){.name = phase->phase->name};
            rows[at].phase[which] = phase;
        }
    return count;
}

static double seconds(const WorkloadPhase *phase)
{
    return phase != NULL ? (double)phase->ps * 1e-12 : NAN;
}

static char *seconds_text(double s, bool plain)
{
    char text[ORR_TEXT_SIZE];
    return isnan(s) ? g_strdup(plain ? "" : "-")
           : plain  ? g_strdup_printf("%.12f", s)
                    : g_strdup(orr_text_seconds(text, s));
}

static char *change_text(double a, double b, bool plain)
{
    if (isnan(a) || isnan(b) || a <= 0)
        return g_strdup("");
    return plain ? g_strdup_printf("%.6g", b / a) : g_strdup_printf("%+.1f %%", 100 * (b / a - 1));
}

static OrrTable *table_of(const Workload *const loops[2], bool plain)
{
    static const char *const headers[] = {"phase", "a_s", "b_s", "b_over_a"}, *const words[] = {
                                                                                  "phase", "A takes",
                                                                                  "B takes", "B against A"};
    Row rows[MOST_ROWS];
    const int count = rows_of(loops, rows);
    OrrTable *table = orr_table_new(plain ? headers : words, (int)G_N_ELEMENTS(headers));
    for (int i = 0; i < count; i++) {
        const double a = seconds(rows[i].phase[0]), b = seconds(rows[i].phase[1]);
        g_autofree char *one = seconds_text(a, plain), *other = seconds_text(b, plain),
                        *change = change_text(a, b, plain);
        const char *const cells[] = {rows[i].name, one, other, change};
        orr_table_row(table, cells);
    }
    const double a = (double)loops[0]->step_ps * 1e-12, b = (double)loops[1]->step_ps * 1e-12;
    g_autofree char *one = seconds_text(a, plain), *other = seconds_text(b, plain),
                    *change = change_text(a, b, plain);
    const char *const cells[] = {"step", one, other, change};
    orr_table_row(table, cells);
    return table;
}

static void text_loop(const char *letter, const char *name, const Workload *loop, GString *out)
{
    char gpus[ORR_TEXT_SIZE], step[ORR_TEXT_SIZE], rate[ORR_TEXT_SIZE];
    g_autoptr(GString) parts = g_string_new(NULL);
    for (int p = 0; p < loop->part_count; p++)
        g_string_append_printf(parts, "%s%s on %d", p > 0 ? ", " : "", loop->part[p].name,
                               loop->part[p].gpus);
    g_autofree char *line = g_strdup_printf(
        "%s: %s (%s), a step takes %s, %s tokens a second and GPU; bound by %s%s", name,
        report_page_gpus(gpus, loop->gpus), parts->str, orr_text_seconds(step, (double)loop->step_ps * 1e-12),
        report_page_whole(rate, loop->tokens_per_s_per_gpu), workload_bound_word(loop),
        loop->fits ? "" : "; it does not fit");
    report_page_entry(out, letter, LABEL_COLUMN, line);
}

void workload_compare_text(const Workload *a, const Workload *b, const char *const names[2], GString *out)
{
    const Workload *const loops[2] = {a, b};
    text_loop("A", names[0], a, out);
    text_loop("B", names[1], b, out);
    g_string_append_c(out, '\n');
    OrrTable *table = table_of(loops, false);
    report_page_table(table, out, 2);
    orr_table_free(table);
    g_string_append(out,
                    "\n  Phases of parts that work at once overlap: they need not add up to the step.\n");
}

void workload_compare_csv(const Workload *a, const Workload *b, GString *out)
{
    const Workload *const loops[2] = {a, b};
    OrrTable *table = table_of(loops, true);
    orr_table_csv(table, out);
    orr_table_free(table);
}

static void write_seconds(OrrJsonWriter *w, const char *key, const WorkloadPhase *phase)
{
    if (phase != NULL)
        orr_jw_ps(w, key, phase->ps);
    else
        orr_jw_number(w, key, NAN);
}

void workload_compare_json(const Workload *a, const Workload *b, const char *const names[2], GString *out)
{
    const Workload *const loops[2] = {a, b};
    Row rows[MOST_ROWS];
    const int count = rows_of(loops, rows);
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_int(&w, "schema", 1);
    orr_jw_text(&w, "version", ORRERY_VERSION);
    for (int which = 0; which < 2; which++) {
        const Workload *loop = loops[which];
        orr_jw_begin(&w, which == 0 ? "a" : "b", '{');
        orr_jw_text(&w, "file", names[which]);
        orr_jw_text(&w, "scenario", loop->spec->name);
        orr_jw_int(&w, "gpus", loop->gpus);
        orr_jw_bool(&w, "fits", loop->fits);
        orr_jw_ps(&w, "step_s", loop->step_ps);
        orr_jw_number(&w, "tokens_per_s_per_gpu", loop->tokens_per_s_per_gpu);
        orr_jw_text(&w, "bound_by", workload_bound_word(loop));
        orr_jw_end(&w, '}');
    }
    orr_jw_begin(&w, "phases", '[');
    for (int i = 0; i < count; i++) {
        orr_jw_begin(&w, NULL, '{');
        orr_jw_text(&w, "name", rows[i].name);
        for (int which = 0; which < 2; which++)
            write_seconds(&w, which == 0 ? "a_s" : "b_s", rows[i].phase[which]);
        orr_jw_end(&w, '}');
    }
    orr_jw_end(&w, ']');
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}
