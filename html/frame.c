/* html/frame.c - see frame.h. */
#include "html/frame.h"

#include "html/svg.h"

/* Written by the build from page.css and page.js. */
extern const char html_style[], html_script[];

void html_begin(const char *title, const char *more, GString *out)
{
    g_string_append(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                         "<meta name=\"generator\" content=\"orrery " ORRERY_VERSION "\">\n"
                         "<link rel=\"icon\" href=\"data:,\">\n<title>");
    html_escape(out, title);
    g_string_append_printf(out, "%s</title>\n<style>\n", more);
    g_string_append(out, html_style);
    g_string_append(out, "</style>\n</head>\n<body>\n<main>\n<h1>");
    html_escape(out, title);
    g_string_append_printf(out, "%s</h1>\n", more);
}

void html_end(const char *hash, const char *command, bool zooms, GString *out)
{
    g_string_append(out, "<footer>orrery " ORRERY_VERSION);
    if (hash != NULL) {
        g_string_append(out, ", scenario ");
        html_escape(out, hash);
    }
    g_string_append(out, ", made by <code>");
    html_escape(out, command);
    g_string_append(out, "</code></footer>\n</main>\n");
    if (zooms) {
        g_string_append(out, "<script>\n");
        g_string_append(out, html_script);
        g_string_append(out, "</script>\n");
    }
    g_string_append(out, "</body>\n</html>\n");
}

void html_card(GString *out, const char *value, const char *label)
{
    g_string_append(out, "<li><b>");
    html_escape(out, value);
    g_string_append(out, "</b><span>");
    html_escape(out, label);
    g_string_append(out, "</span></li>\n");
}

static bool numbers(const OrrTable *table, int column)
{
    for (int row = 1; row < orr_table_rows(table); row++)
        if (!orr_text_numeric(orr_table_cell(table, row, column)))
            return false;
    return true;
}

void html_table(const OrrTable *table, GString *out)
{
    const int rows = orr_table_rows(table), columns = orr_table_columns(table);
    g_string_append(out, "<div class=\"scroll\"><table>\n");
    for (int row = 0; row < rows; row++) {
        const char *tag = row == 0 ? "th" : "td";
        g_string_append(out, "<tr>");
        for (int column = 0; column < columns; column++) {
            g_string_append_printf(out, "<%s%s>", tag,
                                   row > 0 && numbers(table, column) ? " class=\"n\"" : "");
            html_escape(out, orr_table_cell(table, row, column));
            g_string_append_printf(out, "</%s>", tag);
        }
        g_string_append(out, "</tr>\n");
    }
    g_string_append(out, "</table></div>\n");
}

/* --- what a page rests on --- */

/* One source for all of a profile, or a line a field: "memory_bytes: ...". */
static void write_source(const char *source, GString *out)
{
    g_auto(GStrv) lines = g_strsplit(source, "\n", -1);
    for (int i = 0; lines[i] != NULL; i++) {
        if (lines[i][0] == '\0')
            continue;
        g_string_append(out, "<dd>");
        html_escape(out, lines[i]);
        g_string_append(out, "</dd>\n");
    }
}

void html_profiles(const GArray *profiles, GString *out)
{
    g_string_append(out, "<p>Profiles, the hash of what they hold, and their sources.</p>\n<dl>\n");
    for (guint i = 0; i < profiles->len; i++) {
        const HtmlProfile *profile = &g_array_index(profiles, HtmlProfile, i);
        g_string_append(out, "<dt><code>");
        html_escape(out, profile->name);
        g_string_append(out, "</code> <code class=\"hash\">");
        html_escape(out, profile->hash);
        g_string_append(out, "</code></dt>\n");
        write_source(profile->source, out);
    }
    g_string_append(out, "</dl>\n");
}

void html_list(const char *summary, const GPtrArray *texts, GString *out)
{
    if (texts == NULL || texts->len == 0)
        return;
    g_string_append_printf(out, "<details><summary>%s: %u</summary><p>", summary, texts->len);
    for (guint i = 0; i < texts->len; i++) {
        g_string_append(out, "<code>");
        html_escape(out, g_ptr_array_index(texts, i));
        g_string_append(out, "</code><br>");
    }
    g_string_append(out, "</p></details>\n");
}

void html_scenario(const char *text, GString *out)
{
    g_string_append(out, "<details><summary>the scenario</summary><pre>");
    html_escape(out, text != NULL ? text : "");
    g_string_append(out, "</pre></details>\n");
}
