/* report/orders.c - see orders.h. */
#include "report/orders.h"

#include "base/json.h"
#include "step/step.h"

static void append_pass(GString *line, const SimPlan *plan, int rank, SimPass pass, int chunk, int microbatch)
{
    static const char LETTERS[] = {[SIM_PASS_FORWARD] = 'F',
                                   [SIM_PASS_BACKWARD] = 'B',
                                   [SIM_PASS_BACKWARD_INPUT] = 'I',
                                   [SIM_PASS_BACKWARD_WEIGHT] = 'W'};
    const int stage =
        sim_stage_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks, rank, chunk);
    g_string_append_printf(line, "%d%c%d", stage, LETTERS[pass], microbatch);
}

static void append_line(GString *line, const SimPlan *plan, int rank, const SimOrder *order, char separator)
{
    for (int64_t i = 0; i < order->count; i++) {
        const SimPassOp *op = &order->ops[i];
        if (i > 0) {
            g_string_append_c(line, separator);
        }
        if (op->pass != SIM_PASS_FORWARD_BACKWARD) {
            append_pass(line, plan, rank, (SimPass)op->pass, op->chunk, op->microbatch);
            continue;
        }
        g_string_append_c(line, '(');
        append_pass(line, plan, rank, SIM_PASS_FORWARD, op->chunk, op->microbatch);
        g_string_append_c(line, ';');
        append_pass(line, plan, rank, SIM_PASS_BACKWARD, op->chunk2, op->microbatch2);
        g_string_append(line, ")OVERLAP_F_B");
    }
}

static void write_json(const Spec *spec, const SimPlan *plan, const SimOrder *orders, GString *out)
{
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_int(&w, "schema", 1);
    orr_jw_text(&w, "name", plan->schedule->name);
    g_autofree char *source = g_strdup_printf("orrery export: %s", spec->name);
    orr_jw_text(&w, "source", source);
    orr_jw_begin(&w, "orders", '[');
    for (int r = 0; r < plan->shape.ranks; r++) {
        g_autoptr(GString) line = g_string_new(NULL);
        append_line(line, plan, r, &orders[r], ' ');
        orr_jw_text(&w, NULL, line->str);
    }
    orr_jw_end(&w, ']');
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}

bool report_write_orders(const Spec *spec, bool csv, GString *out, GError **error)
{
    OrrArena *arena = orr_arena_new();
    SimPlan plan;
    const bool ok = sim_step_plan(spec, arena, &plan, error);
    if (ok) {
        const SimOrder *orders = sim_plan_orders(&plan, arena);
        for (int r = 0; csv && r < plan.shape.ranks; r++) {
            append_line(out, &plan, r, &orders[r], ',');
            g_string_append_c(out, '\n');
        }
        if (!csv) {
            write_json(spec, &plan, orders, out);
        }
    }
    orr_arena_free(arena);
    return ok;
}
