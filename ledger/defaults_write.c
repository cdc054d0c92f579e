/* ledger/defaults_write.c - a ledger beside the same rows that name their software and nothing else of it. */
#include "base/json.h"
#include "report/page.h"
#include "base/text.h"
#include "base/units.h"
#include "ledger/validate.h"

const char *const ledger_defaults_sets[] = {"execution.attention=null", "execution.overlap=null",
                                            "execution.compiled=null", "execution.cuda_graph=null", NULL};

static void add_row(OrrTable *table, const char *name, int rows, double stated, double defaults)
{
    char cell[4][ORR_TEXT_SIZE];
    g_snprintf(cell[0], ORR_TEXT_SIZE, "%d", rows);
    g_snprintf(cell[1], ORR_TEXT_SIZE, "%.1f %%", 100 * stated);
    g_snprintf(cell[2], ORR_TEXT_SIZE, "%.1f %%", 100 * defaults);
    g_snprintf(cell[3], ORR_TEXT_SIZE, "%+.1f", 100 * (defaults - stated));
    const char *cells[] = {name, cell[0], cell[1], cell[2], cell[3]};
    orr_table_row(table, cells);
}

void ledger_write_defaults_text(const Ledger *stated, const Ledger *defaults, GString *out)
{
    static const char *const headers[] = {"source", "rows", "as stated", "by defaults", "points"};
    OrrTable *table = orr_table_new(headers, G_N_ELEMENTS(headers));
    g_string_append(
        out, "Mean |error| of step time: rows as stated, and rows of which attention, overlap, compiler "
             "and graphs are\nleft to the framework's defaults\n\n");
    for (guint i = 0; i < stated->sources->len; i++) {
        const LedgerSource *a = stated->sources->pdata[i], *b = defaults->sources->pdata[i];
        add_row(table, a->file, a->all.rows, a->all.mape, b->all.mape);
    }
    add_row(table, "mean of the sources", stated->overall.rows, stated->macro_mape, defaults->macro_mape);
    report_page_table(table, out, 2);
    orr_table_free(table);
}

void ledger_write_defaults_json(const Ledger *stated, const Ledger *defaults, GString *out)
{
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_begin(&w, "sources", '[');
    for (guint i = 0; i < stated->sources->len; i++) {
        const LedgerSource *a = stated->sources->pdata[i], *b = defaults->sources->pdata[i];
        orr_jw_begin(&w, NULL, '{');
        orr_jw_text(&w, "file", a->file);
        orr_jw_int(&w, "rows", a->all.rows);
        orr_jw_number(&w, "mape", a->all.mape);
        orr_jw_number(&w, "defaults_mape", b->all.mape);
        orr_jw_end(&w, '}');
    }
    orr_jw_end(&w, ']');
    orr_jw_number(&w, "macro_mape", stated->macro_mape);
    orr_jw_number(&w, "defaults_macro_mape", defaults->macro_mape);
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}
