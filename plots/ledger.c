/* plots/ledger.c - published runs: predicted against measured step time, a colour and shape a source. */
#include "plots/driver.h"

#include <math.h>
#include <string.h>

/* "sc21 megatron" of "sc21_megatron.json" with the number of its runs. */
static void name_source(PlotJob *job, int source, const char *file, int runs)
{
    g_autofree char *key = g_strdup_printf("name%d", source);
    const int length = (int)strlen(file) - (g_str_has_suffix(file, ".json") ? 5 : 0);
    g_autofree char *text = g_strdup_printf("%.*s (%d)", length, file, runs);
    plot_set_text(job, key, g_strdelimit(text, "_", ' '));
}

static void append_point(GString *csv, const PlotMeasured *point)
{
    char measured[G_ASCII_DTOSTR_BUF_SIZE], predicted[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf(csv, "%d,", point->source);
    plot_csv_text(csv, point->name);
    g_string_append_c(csv, ',');
    plot_csv_text(csv, point->id);
    g_string_append_printf(csv, ",%s,%s\n",
                           g_ascii_formatd(measured, sizeof measured, "%.6g", point->measured_s),
                           g_ascii_formatd(predicted, sizeof predicted, "%.6g", point->predicted_s));
}

bool plot_ledger(const PlotMeasured *points, int count, int sources, const PlotTarget *target, GError **error)
{
    PlotJob job;
    double low = INFINITY, high = 0.0, worst = 0.1;
    int within = 0;
    plot_job_init(&job, "ledger");
    g_string_append(job.csv, "source,file,run,measured_s,predicted_s\n");
    for (int source = 0; source < sources; source++) {
        const char *name = "";
        int runs = 0;
        for (int i = 0; i < count; i++) {
            if (points[i].source == source) {
                name = points[i].name;
                runs += 1;
            }
        }
        name_source(&job, source, name, runs);
    }
    for (int i = 0; i < count; i++) {
        append_point(job.csv, &points[i]);
        low = MIN(low, MIN(points[i].measured_s, points[i].predicted_s));
        high = MAX(high, MAX(points[i].measured_s, points[i].predicted_s));
        const double miss = fabs(points[i].predicted_s / points[i].measured_s - 1.0);
        within += miss <= 0.1;
        worst = MAX(worst, miss);
    }
    g_autofree char *caption =
        g_strdup_printf("%d published runs of %d sources; %.0f %% of them inside the ±10 %% band", count,
                        sources, count > 0 ? 100.0 * within / count : 0.0);
    plot_set_heading(&job, "Step time: predicted against measured", caption);
    plot_set_number(&job, "sources", sources);
    plot_set_number(&job, "low", count > 0 ? low : 0.1);
    plot_set_number(&job, "high", count > 0 ? high : 1.0);
    plot_set_number(&job, "worst", worst * 100.0);
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    return ok;
}
