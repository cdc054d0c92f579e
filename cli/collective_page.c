/* cli/collective_page.c - times, rates and steps of a collective, printed. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "report/page.h"
#include "base/units.h"
#include "cli/collective.h"
#include "network/proof.h"

double cli_collective_row_s(const CollectiveRow *row)
{
    return (double)(row->result.flow_ps >= 0 ? row->result.flow_ps : row->result.analytic_ps) * 1e-12;
}

static int64_t row_ps(const CollectiveRow *row)
{
    return row->result.flow_ps >= 0 ? row->result.flow_ps : row->result.analytic_ps;
}

static double algbw(const CollectiveRow *row)
{
    const double seconds = cli_collective_row_s(row);
    return seconds > 0 ? (double)row->bytes / seconds : 0;
}

static double busbw(const CollectivePage *page, const CollectiveRow *row)
{
    return algbw(row) * net_op_bus_factor(page->c->op, page->c->run.shape.ranks);
}

static void choice_text(const CollectiveRow *row, GString *text)
{
    g_string_append_printf(text, "%s %s", cost_nccl_algorithm_name(row->choice.algorithm),
                           cost_nccl_protocol_name(row->choice.protocol));
}

/* --- text --- */

static void sizes_text(const CollectivePage *page, GString *out)
{
    const char *const headers[] = {"size",       "algorithm",      "steps",
                                   "time (us)",  "algbw (GB/s)",   "busbw (GB/s)",
                                   "NCCL picks", "NCCL time (us)", "busbw (GB/s)"};
    const int columns = page->rows[0].has_library ? 9 : 6;
    OrrTable *table = orr_table_new(headers, columns);
    for (int i = 0; i < page->count; i++) {
        const CollectiveRow *row = &page->rows[i];
        char cells[6][ORR_TEXT_SIZE];
        g_autoptr(GString) choice = g_string_new(NULL);
        const double factor = net_op_bus_factor(page->c->op, page->c->run.shape.ranks);
        orr_text_bytes(cells[0], (double)row->bytes);
        g_snprintf(cells[1], ORR_TEXT_SIZE, "%d", row->result.step_count);
        g_snprintf(cells[2], ORR_TEXT_SIZE, "%.2f", cli_collective_row_s(row) * 1e6);
        g_snprintf(cells[3], ORR_TEXT_SIZE, "%.2f", algbw(row) * 1e-9);
        g_snprintf(cells[4], ORR_TEXT_SIZE, "%.2f", busbw(page, row) * 1e-9);
        g_autofree char *time = g_strdup_printf("%.2f", row->library_s * 1e6),
                        *rate = g_strdup_printf(
                            "%.2f",
                            row->library_s > 0 ? (double)row->bytes / row->library_s * factor * 1e-9 : 0);
        if (row->has_library)
            choice_text(row, choice);
        const char *const line[] = {cells[0], row->algorithm->name, cells[1], cells[2], cells[3],
                                    cells[4], choice->str,          time,     rate};
        orr_table_row(table, line);
    }
    report_page_table(table, out, 0);
    orr_table_free(table);
}

/* Why NCCL picks what it picks: its own estimates, the smallest wins. */
static void reasons_text(const CollectiveRow *row, GString *out)
{
    if (row->query.op == COST_ALL_TO_ALL || row->query.op == COST_SEND_RECV) {
        g_string_append(out, "\nNCCL has no tuner for this: LL up to 16 KiB a peer, SIMPLE above.\n");
        return;
    }
    g_autoptr(GString) line =
        g_string_new(row->choice.by_plugin
                         ? "The cluster's tuner plug-in picks by size and ranks. NCCL's own estimates (us):"
                         : "NCCL's own estimates (us), the smallest is picked:");
    for (int a = 0; a < COST_NCCL_ALGORITHM_COUNT; a++) {
        for (int p = 0; p < COST_NCCL_PROTOCOL_COUNT; p++) {
            const double seconds =
                cost_nccl_estimate_s(&row->query, (CostNcclAlgorithm)a, (CostNcclProtocol)p);
            if (isfinite(seconds))
                g_string_append_printf(line, " %s %s %.1f;", cost_nccl_algorithm_name((CostNcclAlgorithm)a),
                                       cost_nccl_protocol_name((CostNcclProtocol)p), seconds * 1e6);
        }
    }
    g_string_truncate(line, line->len - 1);
    g_string_append_c(out, '\n');
    report_page_entry(out, "", 0, line->str);
}

static const NetLibraryRule *choice_of(const CollectivePage *page, const CollectiveRow *row)
{
    const NetSituation situation = cli_collective_situation(page->c, row->bytes);
    return net_library_choice(page->c->library, &situation);
}

static void library_text(const CollectivePage *page, const CollectiveRow *row, GString *out)
{
    const NetLibrary *library = page->c->library;
    const NetLibraryRule *rule = choice_of(page, row);
    g_autofree char *when = rule != NULL ? net_library_when(rule) : NULL;
    g_autofree char *line =
        rule != NULL
            ? g_strdup_printf("%s takes it: %s%s%s %s", library->name, when, rule->note != NULL ? "; " : "",
                              rule->note != NULL ? rule->note : "", library->source)
            : g_strdup_printf("%s weighs it among others %s", library->name, library->source);
    report_page_entry(out, "", 2, line);
}

static void one_text(const CollectivePage *page, const CollectiveRow *row, GString *out)
{
    char least[ORR_TEXT_SIZE], most[ORR_TEXT_SIZE], text[ORR_TEXT_SIZE];
    g_autofree char *title = g_strdup_printf("%s: %s", row->algorithm->name, row->algorithm->help),
                    *formula = g_strdup_printf("T = %s", row->algorithm->formula),
                    *work =
                        g_strdup_printf("%d steps, %" G_GINT64_FORMAT " messages, %s to %s sent by a rank",
                                        row->result.step_count, row->result.messages,
                                        orr_text_bytes(least, (double)row->result.sent_least),
                                        orr_text_bytes(most, (double)row->result.sent_most));
    g_string_append_c(out, '\n');
    report_page_entry(out, "", 0, title);
    report_page_entry(out, "", 2, formula);
    report_page_entry(out, "", 2, work);
    if (page->c->library != NULL && !page->named)
        library_text(page, row, out);
    if (row->algorithm->chunks(&page->c->run.shape) != 1 && row->segments > 1)
        g_string_append_printf(out, "  %d segments\n", row->segments);
    if (row->result.flow_ps >= 0) {
        const NetTopology *t = &page->c->topology;
        const int l = row->result.fullest_link;
        g_autoptr(GString) line = g_string_new(NULL);
        g_string_append_printf(
            line, "contention costs %s: %s alone",
            orr_text_seconds(text, (double)(row->result.flow_ps - row->result.analytic_ps) * 1e-12),
            orr_text_seconds(least, (double)row->result.analytic_ps * 1e-12));
        if (l >= 0)
            g_string_append_printf(line, "; the fullest link, %s to %s, carries %s",
                                   t->vertices[t->links[l].from].name, t->vertices[t->links[l].to].name,
                                   orr_text_bytes(most, (double)row->result.fullest_link_bytes));
        report_page_entry(out, "", 2, line->str);
    }
    if (row->seeds > 0)
        cli_collective_seeds_text(row, out);
    if (row->has_library)
        reasons_text(row, out);
}

static void trace_text(const CollectiveRow *row, GString *out)
{
    const char *const headers[] = {"step", "done (us)", "messages", "largest", "sent by all"};
    OrrTable *table = orr_table_new(headers, 5);
    for (int s = 0; s < row->result.step_count; s++) {
        const NetStepTrace *step = &row->result.steps[s];
        char cells[5][ORR_TEXT_SIZE];
        g_snprintf(cells[0], ORR_TEXT_SIZE, "%d", s);
        g_snprintf(cells[1], ORR_TEXT_SIZE, "%.3f", (double)step->end_ps * 1e-6);
        g_snprintf(cells[2], ORR_TEXT_SIZE, "%d", step->messages);
        orr_text_bytes(cells[3], (double)step->largest_bytes);
        orr_text_bytes(cells[4], (double)step->bytes);
        const char *const line[] = {cells[0], cells[1], cells[2], cells[3], cells[4]};
        orr_table_row(table, line);
    }
    g_string_append_c(out, '\n');
    report_page_table(table, out, 0);
    orr_table_free(table);
}

void cli_collective_text(const CollectivePage *page, GString *out)
{
    const CollectiveCase *c = page->c;
    char width[ORR_TEXT_SIZE];
    g_autoptr(GString) title = g_string_new(NULL);
    g_string_append_printf(title, "%s over %d ranks on %s (%d GPUs", net_op_name(c->op), c->run.shape.ranks,
                           c->topology.name, c->topology.gpus);
    if (c->topology.gpus <= 1024)
        g_string_append_printf(title, ", bisection %s",
                               orr_text_si(width, net_bisection_bytes_per_s(&c->topology), "B/s"));
    g_string_append_printf(title, "), %s, routing %s", c->flows ? "flows" : "analytic",
                           net_routing_name(c->run.routing));
    report_page_entry(out, "", 0, title->str);
    g_string_append_c(out, '\n');
    sizes_text(page, out);
    if (page->count == 1)
        one_text(page, &page->rows[0], out);
    for (int i = 0; page->count > 1 && i < page->count && page->rows[i].seeds > 0; i++) {
        char size[ORR_TEXT_SIZE];
        g_string_append_c(out, '\n');
        report_page_entry(out, "", 0, orr_text_bytes(size, (double)page->rows[i].bytes));
        cli_collective_seeds_text(&page->rows[i], out);
    }
    if (page->trace && page->count == 1)
        trace_text(&page->rows[0], out);
    if (page->data != NULL)
        g_string_append(out, page->data->str);
}

/* --- JSON and CSV --- */

static void row_json(const CollectivePage *page, const CollectiveRow *row, OrrJsonWriter *w)
{
    orr_jw_text(w, "algorithm", row->algorithm->name);
    orr_jw_int(w, "bytes", row->bytes);
    orr_jw_int(w, "step_count", row->result.step_count);
    orr_jw_ps(w, "seconds", row_ps(row));
    orr_jw_number(w, "algbw_bytes_per_s", algbw(row));
    orr_jw_number(w, "busbw_bytes_per_s", busbw(page, row));
    orr_jw_begin(w, "bytes_sent_per_rank", '[');
    orr_jw_int(w, NULL, row->result.sent_least);
    orr_jw_int(w, NULL, row->result.sent_most);
    orr_jw_end(w, ']');
    orr_jw_ps(w, "contention_s",
              row->result.flow_ps >= 0 ? row->result.flow_ps - row->result.analytic_ps : 0);
    orr_jw_int(w, "segments", row->segments);
    if (row->seeds > 0)
        cli_collective_seeds_json(row, w);
    if (page->c->library != NULL && !page->named) {
        orr_jw_begin(w, "library", '{');
        orr_jw_text(w, "name", page->c->library->name);
        orr_jw_bool(w, "chosen", choice_of(page, row) != NULL);
        orr_jw_text(w, "source", page->c->library->source);
        orr_jw_end(w, '}');
    }
    if (!row->has_library)
        return;
    orr_jw_begin(w, "nccl", '{');
    orr_jw_text(w, "algorithm", cost_nccl_algorithm_name(row->choice.algorithm));
    orr_jw_text(w, "protocol", cost_nccl_protocol_name(row->choice.protocol));
    orr_jw_number(w, "estimate_s", row->choice.seconds);
    orr_jw_number(w, "seconds", row->library_s);
    orr_jw_end(w, '}');
}

void cli_collective_json(const CollectivePage *page, GString *out)
{
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_text(&w, "op", net_op_name(page->c->op));
    orr_jw_text(&w, "fidelity", page->c->flows ? "flow" : "analytic");
    orr_jw_text(&w, "topology", page->c->topology.name);
    orr_jw_text(&w, "routing", net_routing_name(page->c->run.routing));
    orr_jw_int(&w, "ranks", page->c->run.shape.ranks);
    row_json(page, &page->rows[0], &w);
    if (page->data != NULL)
        orr_jw_bool(&w, "proved", page->proved);
    orr_jw_begin(&w, "sizes", '[');
    for (int i = 0; i < page->count; i++) {
        orr_jw_begin(&w, NULL, '{');
        row_json(page, &page->rows[i], &w);
        orr_jw_end(&w, '}');
    }
    orr_jw_end(&w, ']');
    if (page->trace) {
        orr_jw_begin(&w, "steps", '[');
        for (int s = 0; s < page->rows[0].result.step_count; s++) {
            const NetStepTrace *step = &page->rows[0].result.steps[s];
            orr_jw_begin(&w, NULL, '{');
            orr_jw_ps(&w, "end_s", step->end_ps);
            orr_jw_int(&w, "messages", step->messages);
            orr_jw_int(&w, "largest_bytes", step->largest_bytes);
            orr_jw_int(&w, "bytes", step->bytes);
            orr_jw_end(&w, '}');
        }
        orr_jw_end(&w, ']');
    }
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}

void cli_collective_csv(const CollectivePage *page, GString *out)
{
    g_string_append(
        out, "bytes,algorithm,segments,step_count,seconds,algbw_bytes_per_s,busbw_bytes_per_s,contention_s,"
             "nccl_algorithm,nccl_protocol,nccl_seconds\n");
    for (int i = 0; i < page->count; i++) {
        const CollectiveRow *row = &page->rows[i];
        const double contention =
            row->result.flow_ps >= 0 ? (double)(row->result.flow_ps - row->result.analytic_ps) * 1e-12 : 0;
        g_string_append_printf(out, "%" G_GINT64_FORMAT ",%s,%d,%d,%.12f,%.6g,%.6g,%.12f,", row->bytes,
                               row->algorithm->name, row->segments, row->result.step_count,
                               cli_collective_row_s(row), algbw(row), busbw(page, row), contention);
        if (row->has_library)
            g_string_append_printf(out, "%s,%s,%.12f\n", cost_nccl_algorithm_name(row->choice.algorithm),
                                   cost_nccl_protocol_name(row->choice.protocol), row->library_s);
        else
            g_string_append(out, ",,\n");
    }
}

/* --- who holds what --- */

#define SHOWN 16 /* ranks and chunks that a page has room for */

typedef struct Show {
    const NetAlgorithm *algorithm;
    const NetShape *shape;
    GString *out;
} Show;

static void show_step(const NetHoldings *holdings, int step, void *data)
{
    const Show *show = data;
    if (holdings->ranks > SHOWN || holdings->chunks > SHOWN)
        return;
    if (step < 0)
        g_string_append(show->out, "\nbefore\n");
    else
        g_string_append_printf(show->out, "\nafter step %d\n", step);
    g_autoptr(GPtrArray) headers = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(headers, g_strdup("rank"));
    for (int chunk = 0; chunk < holdings->chunks; chunk++)
        g_ptr_array_add(headers, g_strdup_printf("chunk %d", chunk));
    OrrTable *table = orr_table_new((const char *const *)headers->pdata, holdings->chunks + 1);
    for (int rank = 0; rank < holdings->ranks; rank++) {
        g_autoptr(GPtrArray) cells = g_ptr_array_new_with_free_func(g_free);
        g_ptr_array_add(cells, rank < show->shape->ranks ? g_strdup_printf("%d", rank) : g_strdup("switch"));
        for (int chunk = 0; chunk < holdings->chunks; chunk++)
            g_ptr_array_add(cells, net_held_text(holdings, show->algorithm, rank, chunk));
        orr_table_row(table, (const char *const *)cells->pdata);
    }
    report_page_table(table, show->out, 2);
    orr_table_free(table);
}

bool cli_collective_show(const CollectiveCase *c, const CollectiveRow *row, GString *out, GError **error)
{
    NetShape shape = c->run.shape;
    shape.segments = row->segments;
    Show show = {.algorithm = row->algorithm, .shape = &shape, .out = out};
    if (!net_prove(row->algorithm, &shape, c->reduction, show_step, &show, error))
        return false;
    if (out->len == 0)
        g_string_append_printf(out, "\nmore than %d ranks or chunks: steps not printed\n", SHOWN);
    g_string_append_c(out, '\n');
    report_page_say(out, 0,
                    "proved: every one of the %d ranks ends with what %s promises, each contribution %s",
                    shape.ranks, net_op_name(c->op),
                    net_op_moves_data(c->op) && c->reduction == NET_SUM ? "exactly once" : "at least once");
    return true;
}
