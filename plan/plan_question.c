/* plan/plan_question.c - see plan_question.h. */
#include <math.h>

#include "plan/plan_question.h"

#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "report/page.h"

enum { LABEL_COLUMN = 14 };

void plan_power_text(char *text, double power_w)
{
    const bool mega = power_w >= 1e5, kilo = power_w >= 1e3;
    g_snprintf(text, ORR_TEXT_SIZE, "%.4g %s",
               power_w * (mega   ? 1e-6
                          : kilo ? 1e-3
                                 : 1),
               mega   ? "MW"
               : kilo ? "kW"
                      : "W");
}

void plan_step_text(char *text, double step_s)
{
    if (step_s < 1000)
        orr_text_seconds(text, step_s);
    else
        g_strlcat(strcpy(text, report_page_whole((char[ORR_TEXT_SIZE]){0}, step_s)), " s", ORR_TEXT_SIZE);
}

void plan_write_question(const PlanPage *page, GString *out)
{
    const Spec *spec = page->spec;
    const PlanOptions *options = page->options;
    char tokens[ORR_TEXT_SIZE], parameters[ORR_TEXT_SIZE], batch[ORR_TEXT_SIZE], sequence[ORR_TEXT_SIZE];
    g_autofree char *title =
        g_strdup_printf("Plan: %s", spec->name[0] != '\0' ? spec->name : spec->model.name);
    report_page_entry(out, "", 0, title);
    const glong width = MIN(g_utf8_strlen(title, -1), report_page_width());
    for (glong i = 0; i < width; i++)
        g_string_append(out, "\u2500");
    g_string_append_c(out, '\n');
    g_autofree char *training =
        g_strdup_printf("%s tokens, %s parameters; %s sequences of %s tokens a step, %s",
                        orr_text_count(tokens, spec->training.tokens),
                        orr_text_count(parameters, page->plans[0].textbook.parameters),
                        report_page_whole(batch, spec->training.global_batch),
                        report_page_whole(sequence, spec->training.sequence_length),
                        spec_word(&spec_words_precision, (int)spec->training.precision));
    report_page_entry(out, "  Training", LABEL_COLUMN, training);
    g_autoptr(GString) asked = g_string_new(NULL);
    if (options->by != SEARCH_FOR_STEP && options->deadline_s > 0)
        g_string_append_printf(asked, "the least %s that trains it in %s", search_goal_word(options->by),
                               orr_text_seconds(tokens, options->deadline_s));
    else if (options->by != SEARCH_FOR_STEP)
        g_string_append_printf(asked, "the least %s", search_goal_word(options->by));
    else if (options->deadline_s > 0)
        g_string_append_printf(asked, "the fewest GPUs that train it in %s",
                               orr_text_seconds(tokens, options->deadline_s));
    else if (options->budget_usd > 0 || options->power_w > 0)
        g_string_append(asked, "the fastest way");
    else
        g_string_append(asked, "how long it takes");
    if (options->budget_usd > 0)
        g_string_append_printf(asked, " for at most %s USD", report_page_whole(tokens, options->budget_usd));
    if (options->power_w > 0)
        g_string_append_printf(asked, " within %.4g MW", options->power_w * 1e-6);
    report_page_entry(out, "  Asked", LABEL_COLUMN, asked->str);
}

#define GIB 1073741824.0

const char *plan_memory_words(const PlanPoint *point, char *text)
{
    if (!point->fits)
        g_snprintf(text, ORR_TEXT_SIZE, "-%.1f GiB", point->short_bytes / GIB);
    else if (point->memory_verdict == REPORT_MEMORY_EDGE && !isnan(point->memory_odds))
        g_snprintf(text, ORR_TEXT_SIZE, "edge, %.0f %%", 100 * point->memory_odds);
    else
        g_strlcpy(text, point->memory_verdict == REPORT_MEMORY_EDGE ? "edge" : "fits", ORR_TEXT_SIZE);
    return text;
}

void plan_days_text(char *text, double days)
{
    g_snprintf(text, ORR_TEXT_SIZE, days < 2 ? "%.2g" : "%.1f", days);
}
