/* ledger/few_shot_write.c - what a few runs of one's own are worth, as text and as JSON. */
#include <math.h>

#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "ledger/few_shot.h"
#include "report/page.h"

static const int OWN_RUNS[] = {0, 1, 2, 3, 5, 10};

static const char *percent(char text[ORR_TEXT_SIZE], double value)
{
    g_snprintf(text, ORR_TEXT_SIZE, isnan(value) ? "-" : "%.1f %%", 100 * value);
    return text;
}

void ledger_write_few_shot_text(const Ledger *ledger, GString *out)
{
    enum { COLUMNS = 6 };
    static const char *const HEADERS[COLUMNS] = {"own runs",    "places",    "rows",
                                                 "uncorrected", "at random", "most alike"};
    OrrTable *table = orr_table_new(HEADERS, COLUMNS);
    g_string_append(
        out,
        "Mean |error| of step time, each run corrected by others of its place (one source's runs on one\n"
        "accelerator); in brackets the mean of the places\n\n");
    for (size_t i = 0; i < G_N_ELEMENTS(OWN_RUNS); i++) {
        const LedgerFewShot shot = ledger_few_shot(ledger, OWN_RUNS[i]);
        const double values[][2] = {{shot.plain, shot.plain_places},
                                    {shot.drawn, shot.drawn_places},
                                    {shot.nearest, shot.nearest_places}};
        char cell[COLUMNS][2 * ORR_TEXT_SIZE], all[ORR_TEXT_SIZE], places[ORR_TEXT_SIZE];
        g_snprintf(cell[0], sizeof cell[0], "%d", shot.own);
        g_snprintf(cell[1], sizeof cell[1], "%d", shot.places);
        g_snprintf(cell[2], sizeof cell[2], "%d", shot.rows);
        for (int k = 0; k < 3; k++)
            g_snprintf(cell[3 + k], sizeof cell[0], "%s (%s)", percent(all, values[k][0]),
                       percent(places, values[k][1]));
        const char *cells[COLUMNS];
        for (int k = 0; k < COLUMNS; k++)
            cells[k] = cell[k];
        orr_table_row(table, cells);
    }
    report_page_table(table, out, 2);
    orr_table_free(table);
}

static void json_value(OrrJsonWriter *w, const char *key, double value)
{
    if (isnan(value))
        orr_jw_null(w, key);
    else
        orr_jw_number(w, key, value);
}

void ledger_write_few_shot_json(const Ledger *ledger, GString *out)
{
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_begin(&w, "few_shot", '[');
    for (size_t i = 0; i < G_N_ELEMENTS(OWN_RUNS); i++) {
        const LedgerFewShot shot = ledger_few_shot(ledger, OWN_RUNS[i]);
        orr_jw_begin(&w, NULL, '{');
        orr_jw_int(&w, "own_runs", shot.own);
        orr_jw_int(&w, "places", shot.places);
        orr_jw_int(&w, "rows", shot.rows);
        json_value(&w, "uncorrected_mape", shot.plain);
        json_value(&w, "random_mape", shot.drawn);
        json_value(&w, "most_alike_mape", shot.nearest);
        json_value(&w, "uncorrected_places_mape", shot.plain_places);
        json_value(&w, "random_places_mape", shot.drawn_places);
        json_value(&w, "most_alike_places_mape", shot.nearest_places);
        orr_jw_end(&w, '}');
    }
    orr_jw_end(&w, ']');
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}
