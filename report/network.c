/* report/network.c - see network.h. */
#include "report/network.h"

#include "base/text.h"
#include "base/units.h"
#include "report/page.h"

enum { LABEL_COLUMN = 14, TIERS_IN_TEXT = 8 };

const char *report_network_routing(const Report *report)
{
    return spec_word(&spec_words_routing, (int)report->spec->cluster.network.routing);
}

static void text_contention(const TrafficSummary *network, GString *out)
{
    char alone[ORR_TEXT_SIZE], more[ORR_TEXT_SIZE];
    g_autofree char *cost = g_strdup_printf(
        "%s, %.2f\u00a0%% of a step that takes %s where everybody has links of his own",
        orr_text_seconds(more, (double)(network->step_ps - network->alone_ps) * 1e-12),
        100.0 * (double)(network->step_ps - network->alone_ps) / (double)MAX(network->alone_ps, 1),
        orr_text_seconds(alone, (double)network->alone_ps * 1e-12));
    report_page_entry(out, "  Contention", LABEL_COLUMN, cost);
    report_page_entry(out, "  Folding", LABEL_COLUMN,
                      network->alike ? "exact: all groups of a kind fare alike"
                                     : "the slowest group of each kind stands for all");
}

static void text_dimensions(const TrafficSummary *network, GString *out)
{
    g_autoptr(GString) line = g_string_new(NULL);
    for (int d = 0; d < TRAFFIC_DIMENSIONS; d++) {
        const TrafficOfDimension *of = &network->dimensions[d];
        char bytes[ORR_TEXT_SIZE];
        if (!of->across)
            continue;
        g_string_append_printf(line, "%s%s %s", line->len > 0 ? "; " : "", traffic_dimension_name(d),
                               orr_text_si(bytes, (double)of->bytes, "B"));
        if (of->slowest > 1)
            g_string_append_printf(line, " in %.2f to %.2f times as long", of->fastest, of->slowest);
    }
    report_page_entry(out, "  Across", LABEL_COLUMN, line->len > 0 ? line->str : "nothing leaves a domain");
}

static void text_links(const TrafficSummary *network, GString *out)
{
    g_autoptr(GString) line = g_string_new(NULL);
    for (int i = 0; i < network->busiest_count; i++)
        g_string_append_printf(line, "%s%s-%s %.1f\u00a0%%", i > 0 ? ", " : "", network->busiest[i].from,
                               network->busiest[i].to, 100 * network->busiest[i].busy_frac);
    if (line->len > 0)
        report_page_entry(out, "  Busiest", LABEL_COLUMN, line->str);
}

static void add_tier(const TrafficTier *tier, OrrTable *table)
{
    char cells[5][ORR_TEXT_SIZE];
    g_autofree char *name = g_strdup_printf("%s-%s", tier->from, tier->to);
    report_page_whole(cells[0], tier->links);
    report_page_whole(cells[1], tier->used);
    orr_text_si(cells[2], tier->bytes, "B");
    g_snprintf(cells[3], ORR_TEXT_SIZE, "%.2f\u00a0%%", 100 * tier->busy_frac);
    g_snprintf(cells[4], ORR_TEXT_SIZE, "%.2f\u00a0%%", 100 * tier->busiest_frac);
    const char *const line[] = {name, cells[0], cells[1], cells[2], cells[3], cells[4]};
    orr_table_row(table, line);
}

/* The kinds of links that carry something, the fullest; those inside a domain are closed forms and carry nothing. */
static void text_tiers(const TrafficSummary *network, GString *out)
{
    const char *const headers[] = {"tier", "links", "used", "carries", "busy, mean", "busiest"};
    OrrTable *table = orr_table_new(headers, 6);
    int used = 0;
    for (int i = 0; i < network->tier_count; i++)
        if (network->tiers[i].used > 0 && ++used <= TIERS_IN_TEXT)
            add_tier(&network->tiers[i], table);
    if (used > 0)
        report_page_table(table, out, 2);
    orr_table_free(table);
    if (used > TIERS_IN_TEXT)
        report_page_say(out, 2, "and %d more tiers: --format json, or --links FILE for every link",
                        used - TIERS_IN_TEXT);
}

static void text_left_out(const TrafficSummary *network, GString *out)
{
    if (network->left_out_links == 0)
        return;
    g_autofree char *line =
        g_strdup_printf("%d kinds of links are shared in time, the fullest; %d more are not: everybody at "
                        "once would ask at most "
                        "%.2f times what the fullest of those carries",
                        network->shared_links, network->left_out_links, 1 + network->left_out_frac);
    report_page_entry(out, "  Left out", LABEL_COLUMN, line);
}

static void text_beside(const TrafficSummary *network, GString *out)
{
    for (int i = 0; i < network->beside_count; i++) {
        char took[ORR_TEXT_SIZE], alone[ORR_TEXT_SIZE];
        g_autofree char *line =
            g_strdup_printf("%s: %s, alone %s", network->beside[i].name,
                            orr_text_seconds(took, (double)network->beside[i].end_ps * 1e-12),
                            orr_text_seconds(alone, (double)network->beside[i].alone_ps * 1e-12));
        report_page_entry(out, "  Beside", LABEL_COLUMN, line);
    }
}

void report_network_text(const Report *report, GString *out)
{
    const TrafficSummary *network = &report->network;
    if (!network->on)
        return;
    g_string_append_c(out, '\n');
    report_page_say(out, 0, "Network: %s, %s routing; flows", network->topology,
                    report_network_routing(report));
    text_contention(network, out);
    text_dimensions(network, out);
    text_links(network, out);
    text_left_out(network, out);
    text_beside(network, out);
    text_tiers(network, out);
}

static void json_dimensions(const TrafficSummary *network, OrrJsonWriter *w)
{
    orr_jw_begin(w, "dimensions", '{');
    for (int d = 0; d < TRAFFIC_DIMENSIONS; d++) {
        const TrafficOfDimension *of = &network->dimensions[d];
        if (!of->across)
            continue;
        orr_jw_begin(w, traffic_dimension_name((TrafficDimension)d), '{');
        orr_jw_int(w, "bytes", of->bytes);
        orr_jw_number(w, "slowest_times", of->slowest);
        orr_jw_number(w, "fastest_times", of->fastest);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, '}');
}

static void json_by_dimension(const double *bytes, OrrJsonWriter *w)
{
    for (TrafficDimension d = 0; d < TRAFFIC_DIMENSIONS; d++) {
        g_autofree char *key = g_strconcat(traffic_dimension_name(d), "_bytes", NULL);
        if (bytes[d] > 0)
            orr_jw_number(w, key, bytes[d]);
    }
}

static void write_load(double bytes_per_s, double bytes, double busy_frac, OrrJsonWriter *w)
{
    orr_jw_number(w, "bytes_per_s", bytes_per_s);
    orr_jw_number(w, "bytes", bytes);
    orr_jw_number(w, "busy_frac", busy_frac);
}

static void json_tiers(const TrafficSummary *network, OrrJsonWriter *w)
{
    orr_jw_begin(w, "tiers", '[');
    for (int i = 0; i < network->tier_count; i++) {
        const TrafficTier *tier = &network->tiers[i];
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "from", tier->from);
        orr_jw_text(w, "to", tier->to);
        orr_jw_int(w, "links", tier->links);
        orr_jw_int(w, "links_used", tier->used);
        write_load(tier->bytes_per_s, tier->bytes, tier->busy_frac, w);
        orr_jw_number(w, "busiest_frac", tier->busiest_frac);
        json_by_dimension(tier->by_dimension, w);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
}

static void json_links(const TrafficSummary *network, OrrJsonWriter *w)
{
    orr_jw_begin(w, "busiest_links", '[');
    for (int i = 0; i < network->busiest_count; i++) {
        const TrafficLink *link = &network->busiest[i];
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "from", link->from);
        orr_jw_text(w, "to", link->to);
        write_load(link->bytes_per_s, link->bytes, link->busy_frac, w);
        json_by_dimension(link->by_dimension, w);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
}

void report_network_json(const Report *report, OrrJsonWriter *w)
{
    const TrafficSummary *network = &report->network;
    if (!network->on) {
        orr_jw_null(w, "network");
        return;
    }
    orr_jw_begin(w, "network", '{');
    orr_jw_text(w, "fidelity", "flow");
    orr_jw_text(w, "topology", network->topology);
    orr_jw_text(w, "routing", report_network_routing(report));
    orr_jw_ps(w, "uncontended_step_s", network->alone_ps);
    orr_jw_ps(w, "contention_s", network->step_ps - network->alone_ps);
    orr_jw_bool(w, "folding_exact", network->alike);
    orr_jw_int(w, "shared_links", network->shared_links);
    orr_jw_bool(w, "shared_links_complete", network->left_out_links == 0);
    orr_jw_int(w, "shared_links_left_out", network->left_out_links);
    orr_jw_number(w, "left_out_times", network->left_out_links > 0 ? 1 + network->left_out_frac : 0);
    json_dimensions(network, w);
    json_tiers(network, w);
    json_links(network, w);
    if (network->beside_count > 0) {
        orr_jw_begin(w, "beside", '[');
        for (int i = 0; i < network->beside_count; i++) {
            orr_jw_begin(w, NULL, '{');
            orr_jw_text(w, "name", network->beside[i].name);
            orr_jw_ps(w, "seconds", network->beside[i].end_ps);
            orr_jw_ps(w, "alone_s", network->beside[i].alone_ps);
            orr_jw_end(w, '}');
        }
        orr_jw_end(w, ']');
    }
    orr_jw_end(w, '}');
}

void report_write_links(const Report *report, GString *out)
{
    enum { FIXED = 5, COLUMNS = FIXED + TRAFFIC_DIMENSIONS };
    const TrafficSummary *network = &report->network;
    const char *headers[COLUMNS] = {"from", "to", "bytes_per_s", "bytes", "busy_frac"};
    char names[TRAFFIC_DIMENSIONS][ORR_TEXT_SIZE], cells[COLUMNS][ORR_TEXT_SIZE];
    for (TrafficDimension d = 0; d < TRAFFIC_DIMENSIONS; d++) {
        g_snprintf(names[d], ORR_TEXT_SIZE, "%s_bytes", traffic_dimension_name(d));
        headers[FIXED + d] = names[d];
    }
    OrrTable *table = orr_table_new(headers, COLUMNS);
    for (int i = 0; i < network->link_count; i++) {
        const TrafficLink *link = &network->links[i];
        const char *line[COLUMNS] = {link->from, link->to};
        g_snprintf(cells[2], ORR_TEXT_SIZE, "%.0f", link->bytes_per_s);
        g_snprintf(cells[3], ORR_TEXT_SIZE, "%.0f", link->bytes);
        g_ascii_formatd(cells[4], ORR_TEXT_SIZE, "%.9g", link->busy_frac);
        for (TrafficDimension d = 0; d < TRAFFIC_DIMENSIONS; d++)
            g_snprintf(cells[FIXED + d], ORR_TEXT_SIZE, "%.0f", link->by_dimension[d]);
        for (int c = 2; c < COLUMNS; c++)
            line[c] = cells[c];
        orr_table_row(table, line);
    }
    orr_table_csv(table, out);
    orr_table_free(table);
}
