/* report/formats.c - the table of what a whole report is written as. */
#include "report/report.h"

typedef struct FormatRow {
    const char *word;
    void (*write)(const Report *report, GString *out);
} FormatRow;

static void write_csv(const Report *report, GString *out)
{
    report_write_csv(report, true, out);
}

static const FormatRow FORMATS[] = {
    {"text", report_write_text},
    {"json", report_write_json},
    {"csv", write_csv},
};

const OrrWords report_words_format = {.what = "a format",
                                      .first = &FORMATS[0].word,
                                      .count = (int)G_N_ELEMENTS(FORMATS),
                                      .stride_bytes = sizeof(FormatRow)};

void report_write(const Report *report, int format, GString *out)
{
    g_assert(format >= 0 && format < report_words_format.count);
    FORMATS[format].write(report, out);
}
