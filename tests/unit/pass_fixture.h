/* tests/unit/pass_fixture.h - layers of scenarios timed by the closed forms of costmodel/pass.c and by the program of
 * pass_program.c, for the test that holds one below the other and the bench that prints both. */
#ifndef ORR_TEST_PASS_FIXTURE_H
#define ORR_TEST_PASS_FIXTURE_H

#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "costmodel/layers.h"
#include "spec/load.h"
#include "tests/unit/pass_program.h"

#define PASS_LAYERS 12 /* of a stage at most: forwards, then backwards */
#define PASS_ROUNDS 8  /* of one layer whose host never waits, until it does not change any more */

typedef struct PassFigure {
    CostHostSync meet;
    bool recompute, hidden;     /* something runs again; exchanges hide beside another micro-batch */
    bool overlaps;              /* the host launches anything, or collectives run beside products */
    double closed_s, program_s; /* of all passes of one layer */
    unsigned beside;            /* bits of CostBeside that occur */
    int ops;
    double cold_closed_s[COST_PASS_COUNT], cold_program_s[COST_PASS_COUNT]; /* of each alone */
} PassFigure;

typedef void (*PassVisit)(const Spec *spec, const PassFigure *figure, void *data);

static inline double fixture_program_s(const SimPassRun *runs, int count, int rounds)
{
    OrrArena *arena = orr_arena_new();
    int64_t *ps = ORR_ARENA_NEW(arena, int64_t, count), sum_ps = 0;
    GError *error = NULL;
    sim_pass_program_run(runs, count, rounds, arena, ps, &error);
    g_assert_no_error(error);
    for (int i = 0; i < count; i++)
        sum_ps += ps[i];
    orr_arena_free(arena);
    return (double)sum_ps * 1e-12;
}

/* A stage of `layers` alike: their forwards, then what runs again and the backwards of each. */
static inline double fixture_stage_s(const CostPassSteps *steps, bool recompute, CostHostSync meet,
                                     int layers)
{
    SimPassRun runs[4 * PASS_LAYERS];
    int count = 0;
    for (int i = 0; i < layers; i++)
        runs[count++] = (SimPassRun){&steps[COST_FORWARD], .meets = i == 0 && meet != COST_HOST_SYNC_NONE};
    for (int i = 0; i < layers; i++) {
        const int first = count;
        if (recompute)
            runs[count++] = (SimPassRun){.steps = &steps[COST_PASS_COUNT]};
        runs[count++] = (SimPassRun){.steps = &steps[COST_BACKWARD_INPUT]};
        runs[count++] = (SimPassRun){.steps = &steps[COST_BACKWARD_WEIGHT]};
        runs[first].meets = i == 0 && meet == COST_HOST_SYNC_PASSES;
    }
    return fixture_program_s(runs, count, meet == COST_HOST_SYNC_NONE ? PASS_ROUNDS : 2) / layers;
}

static inline bool fixture_overlaps(const CostPassSteps *steps)
{
    for (int i = 0; i < steps->count; i++) {
        const CostPassStep *step = &steps->step[i];
        if (step->runs &&
            (step->launches * step->launch_s + step->check_s > 0 || step->beside != COST_BESIDE_NOTHING))
            return true;
    }
    return false;
}

static inline void fixture_time_layer(const Spec *spec, const CostLayerGroup *group, PassVisit visit,
                                      void *data)
{
    g_autofree CostGraph *graph = g_new0(CostGraph, 1);
    g_autofree CostPassSteps *steps = g_new0(CostPassSteps, COST_PASS_COUNT + 1);
    g_autofree CostOps *again_ops = g_new0(CostOps, 1);
    bool runs_again[COST_MAX_OPS];
    CostShape shape;
    CostTime passes[COST_PASS_COUNT], again = {0};
    PassFigure figure = {.recompute = group->extent != COST_RECOMPUTE_OP_NONE};
    cost_shape_init(&shape, spec);
    cost_graph_layer(&shape, group->layer, graph);
    for (int pass = 0; pass < COST_PASS_COUNT; pass++) {
        passes[pass] = cost_time_ops(&shape, &graph->pass[pass], (CostPass)pass);
        cost_pass_steps(&shape, &graph->pass[pass], NULL, (CostPass)pass, &steps[pass]);
        figure.cold_closed_s[pass] = cost_time_total_s(&passes[pass]);
        figure.cold_program_s[pass] = fixture_program_s(&(SimPassRun){.steps = &steps[pass]}, 1, 1);
        figure.hidden |= steps[pass].hidden;
        figure.overlaps |= fixture_overlaps(&steps[pass]);
        figure.ops += steps[pass].count;
        for (int i = 0; i < steps[pass].count; i++)
            figure.beside |= steps[pass].step[i].runs ? 1u << steps[pass].step[i].beside : 0;
    }
    if (figure.recompute) {
        again = cost_time_recompute(&shape, &graph->pass[COST_FORWARD], group->extent);
        cost_again_ops(spec, &graph->pass[COST_FORWARD], group->extent, again_ops, runs_again);
        cost_pass_steps(&shape, again_ops, runs_again, COST_FORWARD, &steps[COST_PASS_COUNT]);
    }
    const int layers = CLAMP(spec->model.layers / MAX(spec->parallel.pipeline, 1), 1, PASS_LAYERS);
    for (int meet = COST_HOST_SYNC_NONE; meet <= COST_HOST_SYNC_PASSES; meet++) {
        CostTime times[COST_PASS_COUNT] = {passes[0], passes[1], passes[2]}, rest = again;
        cost_time_run_ahead(times, &rest, (CostHostSync)meet);
        figure.meet = (CostHostSync)meet;
        figure.closed_s = cost_time_total_s(&rest);
        for (int pass = 0; pass < COST_PASS_COUNT; pass++)
            figure.closed_s += cost_time_total_s(&times[pass]);
        figure.program_s =
            fixture_stage_s(steps, figure.recompute, figure.meet, meet == COST_HOST_SYNC_NONE ? 1 : layers);
        visit(spec, &figure, data);
    }
}

/* Every kind of layer of a scenario. */
static inline void fixture_time_layers(const Spec *spec, PassVisit visit, void *data)
{
    const CostLayerGroups groups = cost_group_model(spec, NULL, 0);
    for (int i = 0; i < groups.count; i++)
        fixture_time_layer(spec, &groups.group[i], visit, data);
}

/* Every row of scenarios/`folder` that leaves nothing "auto", with the settings that `vary` writes (or as it is). */
typedef void (*PassVary)(GPtrArray *sets, void *data);

static inline int fixture_time_file(const char *path, PassVary vary, PassVisit visit, void *data)
{
    int rows = 0;
    OrrJsonDoc *doc = orr_json_read_file(path, NULL);
    for (const OrrJson *row = orr_json_first(orr_json_root(doc)); row != NULL; row = orr_json_next(row)) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_autoptr(GPtrArray) sets = g_ptr_array_new_with_free_func(g_free);
        if (vary != NULL)
            vary(sets, data);
        g_ptr_array_add(sets, NULL);
        if (spec_load_json(orr_json_member(row, "scenario"), path, (const char *const *)(void *)sets->pdata,
                           false, spec, NULL, NULL)) {
            fixture_time_layers(spec, visit, data);
            rows++;
        }
    }
    orr_json_free(doc);
    return rows;
}

static inline int fixture_time_rows(const char *scenarios, const char *folder, PassVary vary, PassVisit visit,
                                    void *data)
{
    g_autofree char *at = g_build_filename(scenarios, folder, NULL);
    g_autoptr(GDir) dir = g_dir_open(at, 0, NULL);
    const char *file;
    int rows = 0;
    while (dir != NULL && (file = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(at, file, NULL);
        if (g_str_has_suffix(file, ".json"))
            rows += fixture_time_file(path, vary, visit, data);
    }
    return rows;
}

#endif
