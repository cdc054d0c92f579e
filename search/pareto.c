/* search/pareto.c - see front.h. Tested: unit/search/test_search_front.c */
#include "search/pareto.h"

#include <math.h>

#include "report/groups.h"
#include "search/plain.h"
#include "search/write_internal.h"
#include "spec/groups.h"
#include "spec/notes.h"

bool search_pareto_asked(const Spec *spec)
{
    return spec->search.nodes.count > 0 || spec->search.nodes.max > 0;
}

/* Doubled from min to max where no list is given; `ret_nodes` has SPEC_SEARCH_VALUES places. */
static int list_nodes(const Spec *kind, int *ret_nodes)
{
    const SpecChoices *asked = &kind->search.nodes;
    int count = 0;
    for (int i = 0; i < asked->count; i++)
        ret_nodes[count++] = asked->value[i];
    for (int64_t nodes = MAX(1, asked->min); asked->count == 0 && nodes <= asked->max; nodes *= 2)
        ret_nodes[count++] = (int)nodes;
    if (!search_pareto_asked(kind))
        ret_nodes[count++] = kind->cluster.nodes;
    return count;
}

/* A number that does not keep the proportions of cluster.groups stays for the machine's `reason`. */
static Spec *on_nodes(const Spec *kind, int nodes)
{
    Spec *spec = g_memdup2(kind, sizeof *kind);
    if (!spec_set_nodes(&spec->cluster, nodes))
        spec->cluster.nodes = nodes;
    spec->parallel.data = SPEC_AUTO; /* follows the GPUs */
    return spec;
}

/* Why that many nodes, or the program on that chip, do not compete; NULL: they do. g_free. */
static char *refuse(const Spec *kind, int nodes)
{
    char *wrong = spec_wrong_chip(kind);
    if (wrong != NULL)
        return wrong;

    const int unit = spec_groups_unit(&kind->cluster);
    return nodes % unit == 0
               ? NULL
               : g_strdup_printf("%d nodes do not keep the proportions of cluster.groups, which "
                                 "are those of %d",
                                 nodes, unit);
}

static void list_machines(const Spec *const *kinds, int count, SearchPareto *front)
{
    front->machines = g_new0(SearchMachine, (gsize)count * SPEC_SEARCH_VALUES);
    for (int k = 0; k < count; k++) {
        int nodes[SPEC_SEARCH_VALUES];
        const int numbers = list_nodes(kinds[k], nodes);
        for (int i = 0; i < numbers; i++)
            front->machines[front->count++] =
                (SearchMachine){.spec = on_nodes(kinds[k], nodes[i]), .reason = refuse(kinds[k], nodes[i])};
    }
}

static SearchParetoPoint point_of(SearchPareto *front, int index, const SearchRun *run)
{
    const SearchMachine *machine = &front->machines[index];
    const SearchCampaign campaign = search_campaign(&machine->result, run);
    const double beyond = isnan(campaign.effective_days) ? 0 : campaign.effective_days / campaign.days - 1;
    const double steps = campaign.days * 86400 / ((double)run->step_ps * 1e-12),
                 electricity = steps > 0 ? campaign.kwh / steps * machine->spec->cluster.usd_per_kwh : 0;
    const double gpu_s = (double)run->step_ps * 1e-12 * spec_gpus(machine->spec) * (1 + beyond);
    const double usd =
        gpu_s / 3600 * report_groups_mean(machine->spec, REPORT_MEAN_USD_PER_HOUR) + electricity;
    front->effective = front->effective || beyond > 0;
    return (SearchParetoPoint){index, run, front->priced ? usd : gpu_s, beyond};
}

/* At least as good in everything; of two that are alike in everything the first. */
static bool beats(const SearchParetoPoint *a, const SearchParetoPoint *b)
{
    if (a->run->step_ps > b->run->step_ps || a->run->reserved_bytes > b->run->reserved_bytes ||
        a->cost > b->cost)
        return false;
    return a->run->step_ps < b->run->step_ps || a->run->reserved_bytes < b->run->reserved_bytes ||
           a->cost < b->cost || a->machine < b->machine;
}

static int compare_points(const void *a, const void *b)
{
    const SearchParetoPoint *x = a, *y = b;
    if (x->run->step_ps != y->run->step_ps)
        return x->run->step_ps < y->run->step_ps ? -1 : 1;
    if (x->machine != y->machine)
        return x->machine - y->machine;
    return search_id_compare(&x->run->id, &y->run->id);
}

static void merge(SearchPareto *front)
{
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(SearchParetoPoint));
    for (int m = 0; m < front->count; m++) {
        const SearchMachine *machine = &front->machines[m];
        const GArray *runs = machine->reason == NULL ? machine->result.pareto : NULL;
        for (guint i = 0; runs != NULL && i < runs->len; i++) {
            const SearchRun *run = &g_array_index(runs, SearchRun, i);
            const SearchParetoPoint point = point_of(front, m, run);
            g_array_append_val(all, point);
        }
    }
    for (guint i = 0; i < all->len; i++) {
        const SearchParetoPoint *point = &g_array_index(all, SearchParetoPoint, i);
        bool beaten = false;
        for (guint k = 0; k < all->len && !beaten; k++)
            beaten = k != i && beats(&g_array_index(all, SearchParetoPoint, k), point);
        if (!beaten)
            g_array_append_vals(front->front, point, 1);
    }
    g_array_sort(front->front, compare_points);
}

/* By the best of each; of equal ones the first. */
static int best_machine(const SearchPareto *front)
{
    int chosen = -1;
    double least = INFINITY;
    for (int m = 0; m < front->count; m++) {
        const SearchMachine *machine = &front->machines[m];
        if (machine->reason != NULL || machine->result.best->len == 0)
            continue;
        const SearchRun *best = &g_array_index(machine->result.best, SearchRun, 0);
        const double figure = front->by == SEARCH_FOR_STEP ? (double)best->step_ps : best->figure;
        if (chosen < 0 || figure < least) {
            chosen = m;
            least = figure;
        }
    }
    return chosen;
}

bool search_pareto_run(const Spec *const *kinds, int count, const SearchOptions *options,
                       SearchPareto *ret_front, GError **error)
{
    SearchPareto front = {.priced = true, .by = options->by};
    int answered = 0;
    front.front = g_array_new(FALSE, FALSE, sizeof(SearchParetoPoint));
    list_machines(kinds, count, &front);
    for (int m = 0; m < front.count; m++) {
        SearchMachine *machine = &front.machines[m];
        g_autoptr(GError) refusal = NULL;
        if (machine->reason == NULL && spec_check(machine->spec, "", &refusal) &&
            search_goal_check(options->by, machine->spec, 0, &refusal) &&
            search_run_reserved(machine->spec, options, true, &machine->result, &refusal)) {
            machine->result.assumed = options->assumed;
            answered++;
        } else if (machine->reason == NULL) {
            machine->reason = g_strdup(refusal->message);
        }
        front.priced = front.priced && report_groups_mean(machine->spec, REPORT_MEAN_USD_PER_HOUR) > 0;
    }
    if (answered == 0) {
        if (front.count == 1)
            orr_fail(error, ORR_ERROR_INPUT, "%s", front.machines[0].reason);
        else
            orr_fail(error, ORR_ERROR_INPUT, "none of %d machines has an answer; the first: %s", front.count,
                     front.machines[0].reason);
        search_pareto_clear(&front);
        return false;
    }
    merge(&front);
    front.chosen = best_machine(&front);
    *ret_front = front;
    return true;
}

void search_pareto_clear(SearchPareto *front)
{
    for (int m = 0; m < front->count; m++) {
        SearchMachine *machine = &front->machines[m];
        if (machine->reason == NULL)
            search_result_clear(&machine->result);
        g_free(machine->reason);
        g_free(machine->spec);
    }
    g_free(front->machines);
    g_array_free(front->front, TRUE);
}
