/* tests/fuzz/fuzz_orders.c - bytes as a file of op orders, read as JSON and as CSV: a shape, or one sentence; and what has
 * a shape either runs or is refused with one. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program/plan.h"
#include "spec/orders.h"
#include "tests/unit/sim_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(GError *error)
{
    if (error == NULL || error->domain != ORR_ERROR || error->code == ORR_ERROR_INTERNAL ||
        strchr(error->message, '\n') != NULL || !g_utf8_validate(error->message, -1, NULL))
        abort();
    g_error_free(error);
}

static SimPlacement placement_of(const SpecOrders *orders)
{
    return orders->placement == SIM_PLACE_LOOP ? SIM_PLACE_LOOP
           : orders->placement == SIM_PLACE_V  ? SIM_PLACE_V
                                               : SIM_PLACE_BIDIRECTIONAL;
}

static SimOrder *orders_of(const SpecOrderTable *table, OrrArena *arena)
{
    static const uint8_t PASSES[] = {SIM_PASS_FORWARD, SIM_PASS_BACKWARD, SIM_PASS_BACKWARD_INPUT,
                                     SIM_PASS_BACKWARD_WEIGHT, SIM_PASS_FORWARD_BACKWARD};
    const int ranks = table->orders.ranks;
    SimOrder *orders = ORR_ARENA_NEW(arena, SimOrder, ranks);
    for (int r = 0; r < ranks; r++) {
        orders[r].count = table->rows[r].count;
        orders[r].ops = ORR_ARENA_NEW(arena, SimPassOp, orders[r].count);
        for (int64_t i = 0; i < orders[r].count; i++) {
            const SpecOrderOp *op = &table->rows[r].ops[i];
            orders[r].ops[i] = (SimPassOp){.pass = PASSES[op->op],
                                           .chunk = (int16_t)(op->stage / ranks),
                                           .microbatch = op->microbatch,
                                           .chunk2 = (int16_t)(op->stage2 / ranks),
                                           .microbatch2 = op->microbatch2};
        }
    }
    return orders;
}

static void simulate(const SpecOrderTable *table, OrrArena *arena)
{
    const SpecOrders *shape = &table->orders;
    const SimSchedule schedule = {.name = "fuzz", .placement = placement_of(shape)};
    GError *error = NULL;
    SimProgram program;
    SimResult result;
    if ((int64_t)shape->ranks * shape->chunks * shape->microbatches > 100000)
        return;
    SimPlan plan = fixture_plan(
        arena, &(Pipeline){"gpipe", shape->ranks, shape->chunks, shape->microbatches, 0, 2, 3, 1, 4, 1});
    plan.schedule = &schedule;
    plan.orders = orders_of(table, arena);
    if (!sim_program_build(&plan, false, arena, &program, &error) ||
        !sim_engine_run(&program, SIM_RECORD_SPANS | SIM_RECORD_LEVELS, arena, &result, &error))
        check_error(error);
    else if (!sim_run_check(&program, &result, &error))
        g_error("%s", error->message);
}

static void read_as(const uint8_t *data, size_t size, const char *ending)
{
    g_autofree char *path =
        g_strdup_printf("%s/orrery-fuzz-orders-%d%s", g_get_tmp_dir(), (int)getpid(), ending);
    if (!g_file_set_contents_full(path, (const char *)data, (gssize)size, G_FILE_SET_CONTENTS_NONE, 0600,
                                  NULL))
        g_error("cannot write %s", path);
    GError *error = NULL;
    OrrJsonDoc *doc = spec_orders_read_file(path, "fuzz", &error);
    const OrrJson *list = doc != NULL ? orr_json_member(orr_json_root(doc), "orders") : NULL;
    OrrArena *arena = orr_arena_new();
    SpecOrderTable table;
    g_autoptr(GString) text = g_string_new(NULL);
    if (doc == NULL) {
        check_error(error);
    } else if (orr_json_type(list) == ORR_JSON_LIST) {
        for (const OrrJson *line = orr_json_first(list); line != NULL; line = orr_json_next(line))
            g_string_append_printf(text, "%s%s", text->len > 0 ? "\n" : "",
                                   orr_json_type(line) == ORR_JSON_TEXT ? orr_json_text(line) : "0F0");
        if (spec_orders_parse(text->str, "fuzz", arena, &table, &error))
            simulate(&table, arena);
        else
            check_error(error);
    }
    orr_arena_free(arena);
    orr_json_free(doc);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_as(data, size, ".json");
    read_as(data, size, ".csv");
    return 0;
}
