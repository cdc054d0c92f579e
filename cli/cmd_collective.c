/* cli/cmd_collective.c - orrery collective: one collective on one fabric under the microscope. */
#include <math.h>
#include <string.h>

#include "cli/collective.h"
#include "cli/output.h"
#include "network/work.h"

#define MOST_SEGMENTS       256
#define MOST_RANKS_BY_FLOWS 64
#define TRIALS              12  /* algorithms that share the time, where none is asked for */
#define LEAST_TRIAL_S       2.0 /* however many sizes there are */

static void ask_library(const CollectiveCase *c, CollectiveRow *row)
{
    CostCollective collective;
    row->has_library = c->has_cluster && cli_collective_library(&c->cluster, c->op, c->run.shape.ranks,
                                                                (double)row->bytes, &collective);
    if (!row->has_library)
        return;
    row->query = cost_nccl_query(&c->cluster, &collective);
    row->choice = cost_nccl_choose(&row->query);
    row->library_s = cost_collective_s(&c->cluster, &collective);
}

static bool has_segments(const NetAlgorithm *algorithm, const NetShape *shape)
{
    NetShape one = *shape, two = *shape;
    one.segments = 1;
    two.segments = 2;
    return algorithm->chunks(&one) != algorithm->chunks(&two);
}

/* The least analytic time over segments; keeps it in `row` when it beats what is there. With `flows` theirs at once, where
 * there are no segments to choose. */
static bool try_algorithm(const CollectiveCase *c, const NetAlgorithm *algorithm, bool flows,
                          CollectiveRow *row, GError **error)
{
    NetRun run = c->run;
    run.algorithm = algorithm;
    run.bytes = row->bytes;
    const bool varies = c->segments == 0 && has_segments(algorithm, &run.shape);
    run.shape.segments = MAX(c->segments, 1);
    for (; run.shape.segments <= MAX(MOST_SEGMENTS, c->segments); run.shape.segments *= 2) {
        NetResult result;
        if (!net_run(&run, flows && !varies, &result, error))
            return false;
        if (row->algorithm == NULL || result.analytic_ps < row->result.analytic_ps) {
            net_result_clear(&row->result);
            row->result = result;
            row->algorithm = algorithm;
            row->segments = run.shape.segments;
        } else {
            net_result_clear(&result);
        }
        if (!varies || run.shape.segments > row->bytes)
            break;
    }
    return true;
}

static bool run_flows(const CollectiveCase *c, CollectiveRow *row, GError **error)
{
    NetRun run = c->run;
    run.algorithm = row->algorithm;
    run.bytes = row->bytes;
    run.shape.segments = row->segments;
    net_result_clear(&row->result);
    return net_run(&run, true, &row->result, error);
}

/* The faster one stays in `row`. */
static void keep_faster(CollectiveRow *row, CollectiveRow *candidate)
{
    if (row->algorithm != NULL && cli_collective_row_s(row) <= cli_collective_row_s(candidate)) {
        net_result_clear(&candidate->result);
        return;
    }
    net_result_clear(&row->result);
    *row = *candidate;
}

/* What NCCL's tuner picks there, as a row of the table; NULL: not known, or no row. */
static const char *tuned(const CollectiveCase *c, int64_t bytes)
{
    static const char *const rows[COST_NCCL_ALGORITHM_COUNT] = {
        [COST_NCCL_TREE] = "double-binary-tree",
        [COST_NCCL_RING] = "ring",
        [COST_NCCL_NVLS] = "nvls",
        [COST_NCCL_PAT] = "pat",
    };
    const NetLibrary *last = c->library;
    CollectiveRow row = {.bytes = bytes};
    while (last->base != NULL)
        last = last->base;
    if (strcmp(last->name, "nccl") == 0)
        ask_library(c, &row);
    const char *name = row.has_library ? rows[row.choice.algorithm] : NULL;
    const NetAlgorithm *algorithm = name != NULL ? net_algorithm_find(c->op, name, NULL) : NULL;
    return algorithm != NULL && net_algorithm_refuses(algorithm, &c->run.shape) == NULL ? name : NULL;
}

/* The library's choice; of those that it weighs what its tuner picks, or all where that is not known. */
static bool library_takes(const CollectiveCase *c, const NetAlgorithm *a, int64_t bytes)
{
    const NetSituation situation = cli_collective_situation(c, bytes);
    if (!net_library_has(c->library, a, &situation))
        return false;
    const char *name = net_library_choice(c->library, &situation) == NULL ? tuned(c, bytes) : NULL;
    return name == NULL || strcmp(name, a->name) == 0;
}

/* What sums in the network is tried without being named only where the machine is known to do it. */
static bool worth_trying(const CollectiveCase *c, const NetAlgorithm *a, int64_t bytes)
{
    if (a->op != c->op || net_algorithm_refuses(a, &c->run.shape) != NULL ||
        (c->library != NULL && !library_takes(c, a, bytes)))
        return false;
    const bool nvls = c->has_cluster && c->cluster.accelerator.model.collectives.nvls_channels > 0 &&
                      c->run.shape.ranks <= c->topology.gpus_per_node;
    return a->switches == NULL || (nvls && strcmp(a->name, "nvls") == 0);
}

static double trial_s(double most_s)
{
    return MAX(most_s / TRIALS, LEAST_TRIAL_S);
}

/* Whether it can be simulated, in this many seconds. */
static bool affordable(const CollectiveCase *c, const NetAlgorithm *a, int64_t bytes, bool flows,
                       double most_s, GError **error)
{
    NetRun run = c->run;
    run.algorithm = a;
    run.bytes = bytes;
    run.shape.segments = c->segments > 0 ? c->segments : MOST_SEGMENTS;
    const NetWork work = net_work(&run, flows);
    return (!net_work_too_much(&work) && work.seconds <= most_s) || net_work_refuse(&run, &work, error);
}

/* What was too long to be tried, for people. */
static void note_left_out(const CollectiveCase *c, const CollectiveArgs *args, guint sizes, int64_t bytes)
{
    int count = 0;
    const NetAlgorithm *table = net_algorithms(&count);
    g_autoptr(GString) names = g_string_new(NULL);
    const double most_s = trial_s(NET_WORK_MOST_SECONDS / sizes);
    const bool by_flows = c->flows && c->run.shape.ranks <= MOST_RANKS_BY_FLOWS;
    for (int i = 0; args->algorithm == NULL && i < count; i++)
        if (worth_trying(c, &table[i], bytes) && !affordable(c, &table[i], bytes, by_flows, most_s, NULL))
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", table[i].name);
    if (names->len > 0)
        cli_note(args->common.quiet, "orrery: too long to be tried: %s; --algorithm NAME asks for one",
                 names->str);
}

/* Named: that one. Else the fastest of all that are quick to simulate, by flows where these are asked for and few ranks make them quick. */
static bool fill_row(const CollectiveCase *c, const char *name, double most_s, CollectiveRow *row,
                     GError **error)
{
    int count = 0;
    const NetAlgorithm *table = net_algorithms(&count);
    const NetAlgorithm *asked = name != NULL ? net_algorithm_find(c->op, name, error) : NULL;
    if (name != NULL && asked == NULL)
        return false;
    const char *refusal = asked != NULL ? net_algorithm_refuses(asked, &c->run.shape) : NULL;
    if (refusal != NULL)
        return orr_fail(error, ORR_ERROR_INPUT, "--algorithm %s: %s (--dims)", name, refusal);
    const bool by_flows = c->flows && c->run.shape.ranks <= MOST_RANKS_BY_FLOWS;
    g_autoptr(GError) too_much = NULL;
    for (int i = 0; i < count; i++) {
        if (asked != NULL ? &table[i] != asked : !worth_trying(c, &table[i], row->bytes))
            continue;
        const bool flows = asked != NULL ? c->flows : by_flows;
        if (!affordable(c, &table[i], row->bytes, flows, asked != NULL ? most_s : trial_s(most_s),
                        too_much == NULL ? &too_much : NULL))
            continue;
        CollectiveRow candidate = {.bytes = row->bytes, .segments = 1};
        if (!try_algorithm(c, &table[i], flows, &candidate, error))
            return false;
        if (flows && candidate.result.flow_ps < 0 && !run_flows(c, &candidate, error))
            return false;
        keep_faster(row, &candidate);
    }
    if (row->algorithm == NULL && too_much != NULL) {
        g_propagate_error(error, g_steal_pointer(&too_much));
        return false;
    }
    if (row->algorithm == NULL)
        return orr_fail(error, ORR_ERROR_INPUT, "--library %s: it has no %s that this fabric could run",
                        c->library->name, net_op_name(c->op));
    ask_library(c, row);
    if (c->flows && row->result.flow_ps < 0 &&
        !(affordable(c, row->algorithm, row->bytes, true, most_s, error) && run_flows(c, row, error)))
        return false;
    return c->seeds == 0 || cli_collective_seeds(c, c->seeds, row, error);
}

static void clear_row(void *data)
{
    net_result_clear(&((CollectiveRow *)data)->result);
}

static bool fill_rows(const CollectiveArgs *args, const CollectiveCase *c, GArray *rows, GError **error)
{
    g_autoptr(GArray) sizes = g_array_new(FALSE, FALSE, sizeof(double));
    const bool empty = !net_op_moves_data(c->op);
    const char *bytes = args->bytes != NULL ? args->bytes : (empty ? "0" : "256MiB");
    if (!cli_collective_sizes(bytes, empty, sizes, error))
        return false;
    for (guint i = 0; i < sizes->len; i++) {
        CollectiveRow row = {.bytes = empty ? 0 : (int64_t)g_array_index(sizes, double, i), .segments = 1};
        const bool ok = fill_row(c, args->algorithm,
                                 MAX(NET_WORK_MOST_SECONDS / sizes->len, 2 * LEAST_TRIAL_S), &row, error);
        g_array_append_val(rows, row);
        if (!ok)
            return false;
    }
    note_left_out(c, args, sizes->len, g_array_index(rows, CollectiveRow, rows->len - 1).bytes);
    return true;
}

static bool run_case(const CollectiveArgs *args, GString *out, GError **error)
{
    CollectiveCase c = {.has_cluster = false};
    g_autoptr(GArray) rows = g_array_new(FALSE, TRUE, sizeof(CollectiveRow));
    g_array_set_clear_func(rows, clear_row);
    g_autoptr(GString) data = g_string_new(NULL);
    bool ok = cli_collective_read(args, &c, error) && fill_rows(args, &c, rows, error);
    CollectivePage page = {.c = &c,
                           .rows = (const CollectiveRow *)(void *)rows->data,
                           .count = (int)rows->len,
                           .trace = args->trace,
                           .named = args->algorithm != NULL};
    if (ok && args->show_data) {
        ok = page.proved = cli_collective_show(&c, &page.rows[0], data, error);
        page.data = data;
    }
    if (ok && args->common.format == CLI_FORMAT_JSON)
        cli_collective_json(&page, out);
    else if (ok && args->common.format == CLI_FORMAT_CSV)
        cli_collective_csv(&page, out);
    else if (ok)
        cli_collective_text(&page, out);
    cli_collective_clear(&c);
    return ok;
}

static bool run(const CliArgs *common, GError **error)
{
    const CollectiveArgs *args = (const CollectiveArgs *)common;
    g_autoptr(GString) out = g_string_new(NULL);
    const bool ok =
        args->compare != NULL ? cli_collective_compare(args, out, error) : run_case(args, out, error);
    return ok && cli_output_write(common->output, out, error);
}

#define TEXT(name, member, value, help)                                                                      \
    {                                                                                                        \
        name, CLI_FLAG_TEXT, offsetof(CollectiveArgs, member), value, help                                   \
    }
static const CliFlag flags[] = {
    TEXT("op", op, "OP", "all-reduce (default), all-gather ...: `orrery list collectives`"),
    TEXT("bytes", bytes, "SIZES", "256MiB (default), 1MiB,4MiB or 8..8GiB (doubling)"),
    TEXT("ranks", ranks, "COUNT", "GPUs that take part; default, on a file of nodes and links, all of them"),
    TEXT("cluster", cluster, "NAME", "a cluster's preset; it grows to as many nodes as the ranks need"),
    TEXT("algorithm", algorithm, "NAME", "this algorithm; default the fastest of all for each size"),
    TEXT("library", library, "NAME",
         "what nccl, rccl, msccl, gloo, hccl, accl or tccl takes there: `orrery list libraries`"),
    TEXT("fidelity", fidelity, "WORD",
         "analytic (default), or flow: messages share the links of their routes"),
    {"topology", CLI_FLAG_FILE, offsetof(CollectiveArgs, topology), "NAME|FILE",
     "another fabric: `orrery list topologies`, or JSON with nodes and links"},
    TEXT("routing", routing, "WORD", "shortest (default), ecmp, e-ecmp, adaptive or rail"),
    TEXT("seed", seed, "NUMBER", "of the hashes of ecmp and e-ecmp"),
    TEXT("seeds", seeds, "COUNT",
         "tries this seed and those after it by flows: median, 90th and 99th percentile of the time"),
    TEXT("dims", dims, "XxY", "sizes of a grid, or ranks a node and nodes"),
    TEXT("order", order, "WORD|LIST",
         "where ranks sit: node (default), scatter, or the GPU of each rank: 0,8,1,9"),
    TEXT("segments", segments, "COUNT", "of pipelined algorithms; default the best power of two up to 256"),
    TEXT("root", root, "RANK", "of broadcast, reduce, scatter, gather, copy, signal, wait (0)"),
    TEXT("reduce", reduce, "WORD", "sum (default), min or max: what --show-data proves of a reduction"),
    TEXT("rate", rate, "BYTES/s", "every port's rate instead of the cluster's"),
    TEXT("latency", latency, "TIME", "every message's latency instead of the cluster's"),
    {"fail", CLI_FLAG_TEXTS, offsetof(CollectiveArgs, fail), "A-B[=FRAC]",
     "the link between two vertices fails, or has this part of its rate; repeatable"},
    {"show-data", CLI_FLAG_SWITCH, offsetof(CollectiveArgs, show_data), NULL,
     "which rank holds which sum after each step, and the proof of the result"},
    {"trace", CLI_FLAG_SWITCH, offsetof(CollectiveArgs, trace), NULL,
     "when each step is done and what it sends"},
    {"compare", CLI_FLAG_FILE, offsetof(CollectiveArgs, compare), "LOG",
     "text or JSON of nccl-tests: compare what was measured with what NCCL is predicted to take; --op NAME: "
     "its "
     "rows alone, "
     "or what a log that names no program is of"},
};

const CliCommand cli_command_collective = {
    .name = "collective",
    .usage = "",
    .summary = "one collective on one fabric: time, steps, flows, proof",
    .help = "Times a collective step by step, as its algorithm sends it, at the line rate of the links. "
            "Next to it is what NCCL would choose: algorithm, protocol, the estimates behind them, "
            "and the calibrated time. With --fidelity flow messages share the links of their routes, "
            "max-min fair, and the report says what contention costs. Bus bandwidth is counted as "
            "nccl-tests does.\n\n"
            "  orrery collective --op all-reduce --bytes 256MiB --ranks 64 --cluster dgx-h100\n"
            "  orrery collective --bytes 8..8GiB --ranks 8 --cluster dgx-h100 --format csv\n"
            "  orrery collective --ranks 4 --rate 50GB/s --latency 5us --bytes 1GB --algorithm ring "
            "--show-data\n"
            "  orrery collective --ranks 64 --bytes 1MiB --cluster dgx-h100 --library gloo\n"
            "  orrery collective --cluster dgx-h200 --compare all_reduce_perf.txt\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .max_words = 0,
    .args_size = sizeof(CollectiveArgs),
    .run = run,
};
