/* report/effective.c - see effective.h. */
#include "report/effective.h"

#include "base/text.h"
#include "report/page.h"

enum { LABEL_COLUMN = 14 };

static const struct {
    const char *key, *label;
} parts[REPORT_LIFE_COUNT] = {
    [REPORT_LIFE_COMPUTE] = {"compute_days", "compute"},
    [REPORT_LIFE_SLOW] = {"stragglers_days", "waiting for stragglers"},
    [REPORT_LIFE_INPUT] = {"input_days", "waiting for input"},
    [REPORT_LIFE_EVALUATION] = {"evaluation_days", "evaluation"},
    [REPORT_LIFE_SKIPPED] = {"skipped_days", "skipped steps"},
    [REPORT_LIFE_CHECKPOINT] = {"checkpoint_days", "checkpoints"},
    [REPORT_LIFE_FAILURES] = {"failures_days", "failures: work done again"},
    [REPORT_LIFE_RESTARTS] = {"restarts_days", "restarts"},
    [REPORT_LIFE_LOADING] = {"loading_days", "loading checkpoints"},
    [REPORT_LIFE_DEGRADED] = {"degraded_days", "on fewer nodes"},
    [REPORT_LIFE_WAITING] = {"waiting_days", "waiting for nodes or people"},
};

const char *report_life_label(ReportLife part)
{
    return parts[part].label;
}

bool report_life_shown(const ReportEffective *effective, ReportLife part)
{
    return part == REPORT_LIFE_COMPUTE || (part >= REPORT_LIFE_CHECKPOINT && part <= REPORT_LIFE_LOADING) ||
           effective->part_days[part] > 0;
}

static void write_row(const ReportEffective *effective, int part, OrrTable *table)
{
    enum { COLUMNS = 3 };
    char days[ORR_TEXT_SIZE], share[ORR_TEXT_SIZE];
    const bool sum = part == REPORT_LIFE_COUNT;
    const double value = sum ? effective->days : effective->part_days[part];
    g_snprintf(days, sizeof days, "%.2f days", value);
    g_snprintf(share, sizeof share, "%.1f %%", 100 * value / effective->days);
    orr_table_row(table, (const char *[COLUMNS]){sum ? "effective" : parts[part].label, days, share});
}

char *report_effective_basis(const ReportEffective *effective)
{
    GString *line = g_string_new(NULL);
    g_string_append_printf(line, "faults %s%s", effective->faults[0] != '\0' ? effective->faults : "as given",
                           effective->faults_assumed ? " (assumed)" : "");
    if (effective->storage[0] != '\0')
        g_string_append_printf(line, ", checkpoints to %s%s", effective->storage,
                               effective->storage_assumed ? " (assumed)" : "");
    if (effective->faults_assumed || effective->storage_assumed)
        g_string_append(line, "; give \"faults\" and \"storage\" of your own, or --ideal for compute alone");
    return g_string_free(line, FALSE);
}

void report_effective_text(const ReportEffective *effective, GString *out)
{
    if (effective->why_not != NULL)
        report_page_entry(out, "With faults", LABEL_COLUMN, effective->why_not);
    if (!effective->told)
        return;
    OrrTable *table = orr_table_new(NULL, 3);
    for (ReportLife part = 0; part < REPORT_LIFE_COUNT; part++)
        if (report_life_shown(effective, part))
            write_row(effective, part, table);
    write_row(effective, REPORT_LIFE_COUNT, table);
    report_page_table(table, out, 2);
    orr_table_free(table);
    g_autofree char *goodput =
        g_strdup_printf("%.1f %%, %.0f interruptions", 100 * effective->goodput, effective->interruptions);
    g_autofree char *assumed = report_effective_basis(effective);
    report_page_entry(out, "  Goodput", LABEL_COLUMN, goodput);
    report_page_entry(out, "  With", LABEL_COLUMN, assumed);
}

void report_effective_json(const ReportEffective *effective, OrrJsonWriter *w)
{
    if (!effective->told) {
        orr_jw_null(w, "effective_days");
        orr_jw_null(w, "effective");
        return;
    }
    orr_jw_number(w, "effective_days", effective->days);
    orr_jw_begin(w, "effective", '{');
    orr_jw_number(w, "goodput", effective->goodput);
    for (int part = 0; part < REPORT_LIFE_COUNT; part++)
        orr_jw_number(w, parts[part].key, effective->part_days[part]);
    orr_jw_number(w, "interruptions", effective->interruptions);
    orr_jw_text(w, "faults", effective->faults);
    orr_jw_text(w, "storage", effective->storage);
    orr_jw_bool(w, "faults_assumed", effective->faults_assumed);
    orr_jw_bool(w, "storage_assumed", effective->storage_assumed);
    orr_jw_end(w, '}');
}
