/* html/figures.h - the figures of the page, one function each; all append to `out`. */
#ifndef ORR_HTML_FIGURES_H
#define ORR_HTML_FIGURES_H

#include "html/html.h"

void html_pipeline(const Report *report, GString *out);
/* Memory over the step of the fullest rank by kind; what fills each stage at its peak. */
void html_memory(const Report *report, GString *out);
/* Section of parameter servers; nothing where a run has none. */
void html_servers(const Report *report, GString *out);
void html_waterfall(const Report *report, GString *out);
/* The critical rank's step in parts that add up to it. */
void html_split(const Report *report, GString *out);
/* MFU of the best configuration over tensor and pipeline degrees. */
void html_heat_map(const HtmlInput *input, GString *out);
/* Step time against memory: what no other configuration beats in both. */
void html_front(const HtmlInput *input, GString *out);

#endif
