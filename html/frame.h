/* html/frame.h - what all pages have: head, tables, what a page rests on, foot. */
#ifndef ORR_HTML_FRAME_H
#define ORR_HTML_FRAME_H

#include "base/text.h"
#include "html/html.h"

/* Up to the heading; `more` (may be empty) follows the title in both. */
void html_begin(const char *title, const char *more, GString *out);
/* The foot. `hash` of the scenario, NULL: none; with the script that zooms, where `zooms`. */
void html_end(const char *hash, const char *command, bool zooms, GString *out);

void html_card(GString *out, const char *value, const char *label);
/* A table of text; columns of numbers are set as such. */
void html_table(const OrrTable *table, GString *out);
/* Profiles with their hashes and sources, GArray of HtmlProfile. */
void html_profiles(const GArray *profiles, GString *out);
/* A list that opens; nothing where it is empty. */
void html_list(const char *summary, const GPtrArray *texts, GString *out);
/* The scenario as it was read, which opens. */
void html_scenario(const char *text, GString *out);

#endif
