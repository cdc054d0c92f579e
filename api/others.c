/* api/others.c - the heat map and the front of the report page. */
#include "api/others.h"

#include "api/vary.h"
#include "report/describe.h"
#include "search/limits.h"
#include "search/search.h"
#include "spec/load.h"

enum { MAX_DEGREES = 12, MAX_TENSOR = 64 };

static void cell_clear(void *data)
{
    g_free(((HtmlCell *)data)->words);
}

static void point_clear(void *data)
{
    g_free(((HtmlPoint *)data)->words);
}

/* Powers of two up to `most`, and `own` in its place. */
static int list_degrees(int most, int own, int degrees[MAX_DEGREES])
{
    int count = 0;
    for (int degree = 1; count < MAX_DEGREES - 1 && degree <= most; degree *= 2) {
        if (own > degree / 2 && own < degree)
            degrees[count++] = own;
        degrees[count++] = degree;
    }
    if (count < MAX_DEGREES && own > degrees[count - 1])
        degrees[count++] = own;
    return count;
}

/* The scenario with what a configuration is made of left free. */
static char **free_sets(char **sets)
{
    static const char *const keys[] = {"parallel.tensor",      "parallel.pipeline",
                                       "parallel.data",        "parallel.virtual_stages",
                                       "training.micro_batch", "training.recompute"};
    char **all = g_strdupv(sets);
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        char **more = api_vary_sets(all, keys[i], "auto");
        g_strfreev(all);
        all = more;
    }
    return all;
}

/* A search goes on past its time until something fits; a page does not wait for that. */
typedef struct Patience {
    GTimer *timer;
    double seconds;
} Patience;

static bool is_over(void *data)
{
    const Patience *patience = data;
    return g_timer_elapsed(patience->timer, NULL) > patience->seconds;
}

static bool search(const ApiInput *input, char **sets, double reserve_bytes, double seconds,
                   double most_seconds, int top, bool best_only, Spec *spec, SearchResult *result,
                   GError **error)
{
    g_autoptr(GTimer) timer = g_timer_new();
    Patience patience = {timer, MIN(2 * seconds, most_seconds)};
    const SearchOptions options = {.top = top,
                                   .best_only = best_only,
                                   .front = !best_only,
                                   .max_seconds = seconds,
                                   .stop = {is_over, &patience}};
    if (!api_input_load(input, sets, spec, NULL, error) || !search_supports(spec, error))
        return false;
    spec->search.reserve_memory_bytes = reserve_bytes;
    return search_run(spec, &options, result, error);
}

static HtmlCell search_cell(const ApiInput *input, char **sets, int tensor, int pipeline,
                            double reserve_bytes, double seconds, double most_seconds)
{
    HtmlCell cell = {.tensor = tensor, .pipeline = pipeline};
    if (!(most_seconds > 0)) {
        cell.skipped = true;
        cell.words = g_strdup("not looked at in the time given");
        return cell;
    }
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autofree char *tensor_text = g_strdup_printf("%d", tensor),
                    *pipeline_text = g_strdup_printf("%d", pipeline);
    g_auto(GStrv) with_tensor = api_vary_sets(sets, "parallel.tensor", tensor_text);
    g_auto(GStrv) both = api_vary_sets(with_tensor, "parallel.pipeline", pipeline_text);
    g_autoptr(GError) cause = NULL;
    SearchResult result;
    if (!search(input, both, reserve_bytes, seconds, most_seconds, 1, true, spec, &result, &cause)) {
        cell.words = g_strdup(cause->message);
        return cell;
    }
    cell.found = true;
    cell.proved = result.proved;
    if (result.best->len > 0) {
        const SearchRun *run = &g_array_index(result.best, SearchRun, 0);
        cell.fits = true;
        cell.mfu = run->mfu;
        cell.step_s = (double)run->step_ps * 1e-12;
        cell.reserved_bytes = run->reserved_bytes;
        cell.words = search_describe(&result, run->id);
    } else {
        cell.words = g_strdup(result.proved ? "nothing fits in memory" : "nothing found in time that fits");
    }
    search_result_clear(&result);
    return cell;
}

/* The scenario itself may hold values that no search tries, or use the reserve. */
static void keep_better(const Report *report, HtmlCell *cell)
{
    const SpecParallel *parallel = &report->spec->parallel;
    if (cell->tensor != parallel->tensor || cell->pipeline != parallel->pipeline || !report->fits ||
        (cell->fits && cell->mfu >= report->mfu))
        return;
    g_free(cell->words);
    const bool proved = cell->found && cell->proved && !cell->fits;
    *cell = (HtmlCell){.tensor = cell->tensor,
                       .pipeline = cell->pipeline,
                       .found = true,
                       .fits = true,
                       .proved = proved,
                       .mfu = report->mfu,
                       .step_s = (double)report->step_ps * 1e-12,
                       .reserved_bytes = report->reserved_bytes,
                       .words = g_strdup("this scenario")};
}

static void add_front(const ApiInput *input, char **sets, double reserve_bytes, double seconds,
                      ApiOthers *others)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autoptr(GError) cause = NULL;
    SearchResult result;
    if (!search(input, sets, reserve_bytes, seconds, 2 * seconds, 0, false, spec, &result, &cause)) {
        others->note = g_strdup_printf("Nothing else was searched: %s.", cause->message);
        return;
    }
    for (guint i = 0; i < result.pareto->len; i++) {
        const SearchRun *run = &g_array_index(result.pareto, SearchRun, i);
        const HtmlPoint point = {.step_s = (double)run->step_ps * 1e-12,
                                 .reserved_bytes = run->reserved_bytes,
                                 .mfu = run->mfu,
                                 .words = search_describe(&result, run->id)};
        g_array_append_val(others->front, point);
    }
    others->note =
        g_strdup_printf("Tensor and pipeline degree, interleaving, micro-batch and recomputation vary, the "
                        "rest is this scenario's: "
                        "%" G_GINT64_FORMAT " configurations, %s.",
                        result.points, result.proved ? "the best one proved" : "as far as the time allowed");
    search_result_clear(&result);
}

/* `one` is no slower and no larger than `other`, and better in one of both. */
static bool beats(const HtmlPoint *one, const HtmlPoint *other)
{
    return one->step_s <= other->step_s && one->reserved_bytes <= other->reserved_bytes &&
           (one->step_s < other->step_s || one->reserved_bytes < other->reserved_bytes);
}

/* The front holds against every other figure of the page: the map's cells join it where nothing beats them, and what the scenario
 * or a cell beats leaves it. */
static void join_front(const Report *report, ApiOthers *others)
{
    const HtmlPoint own = {.step_s = (double)report->step_ps * 1e-12,
                           .reserved_bytes = report->reserved_bytes};
    for (guint i = 0; i < others->cells->len; i++) {
        const HtmlCell *cell = &g_array_index(others->cells, HtmlCell, i);
        const HtmlPoint point = {cell->step_s, cell->reserved_bytes, cell->mfu, NULL};
        bool known = !cell->found || !cell->fits;
        for (guint k = 0; k < others->front->len && !known; k++) {
            const HtmlPoint *other = &g_array_index(others->front, HtmlPoint, k);
            known = !beats(&point, other) && other->step_s <= point.step_s &&
                    other->reserved_bytes <= point.reserved_bytes;
        }
        if (known)
            continue;
        g_array_append_val(others->front, point);
        g_array_index(others->front, HtmlPoint, others->front->len - 1).words = g_strdup(cell->words);
    }
    for (guint i = others->front->len; i-- > 0;) {
        const HtmlPoint *point = &g_array_index(others->front, HtmlPoint, i);
        bool beaten = report->fits && beats(&own, point);
        for (guint k = 0; k < others->front->len && !beaten; k++)
            beaten = beats(&g_array_index(others->front, HtmlPoint, k), point);
        if (beaten)
            g_array_remove_index(others->front, i);
    }
}

ApiOthers api_others_search(const ApiInput *input, char **sets, const Report *report, double reserve_bytes,
                            double seconds, ApiProgress progress, void *data)
{
    const Spec *spec = report->spec;
    const SpecParallel *parallel = &spec->parallel;
    ApiOthers others = {g_array_new(FALSE, TRUE, sizeof(HtmlCell)),
                        g_array_new(FALSE, TRUE, sizeof(HtmlPoint)), NULL};
    g_auto(GStrv) wide = free_sets(sets);
    int tensors[MAX_DEGREES], pipelines[MAX_DEGREES];
    const int tensor_count = list_degrees(
        MIN(MIN(spec->cluster.gpus_per_node, MAX_TENSOR), spec->model.heads), parallel->tensor, tensors);
    const int pipeline_count =
        list_degrees(MIN(spec->model.layers, report->gpus), parallel->pipeline, pipelines);
    const int cells = tensor_count * pipeline_count;
    g_array_set_clear_func(others.cells, cell_clear);
    g_array_set_clear_func(others.front, point_clear);
    g_autoptr(GTimer) timer = g_timer_new();
    add_front(input, wide, reserve_bytes, seconds / 2, &others);
    if (others.front->len == 0)
        return others;
    for (int i = 0; i < cells; i++) {
        HtmlCell cell =
            search_cell(input, wide, tensors[i / pipeline_count], pipelines[i % pipeline_count],
                        reserve_bytes, seconds / 2 / cells, seconds - g_timer_elapsed(timer, NULL));
        keep_better(report, &cell);
        g_array_append_val(others.cells, cell);
        if (progress != NULL && !progress((double)(i + 1) / cells, data))
            break;
    }
    join_front(report, &others);
    return others;
}

void api_others_clear(ApiOthers *others)
{
    g_array_free(others->cells, TRUE);
    g_array_free(others->front, TRUE);
    g_free(others->note);
}
