/* tests/unit/network/test_network_algorithms.c - every algorithm: who holds what in the end, steps, bytes, and the
 * steps of four GPUs one by one. */
#include <math.h>
#include <string.h>

#include "network/libraries.h"
#include "network/proof.h"

/* Shapes of n ranks: flat, and every way to lie in nodes, and one cube. */
static int shapes_of(int n, NetShape *shapes)
{
    int count = 0;
    shapes[count++] = (NetShape){.ranks = n, .dims = {n}, .dim_count = 1, .segments = 3};
    for (int g = 1; g <= n; g++)
        if (n % g == 0)
            shapes[count++] = (NetShape){.ranks = n, .dims = {g, n / g}, .dim_count = 2, .segments = 4};
    for (int x = 2; x * x <= n; x++)
        if (n % (x * 2) == 0 && n / (2 * x) > 1)
            shapes[count++] =
                (NetShape){.ranks = n, .dims = {x, 2, n / (2 * x)}, .dim_count = 3, .segments = 1};
    return count;
}

static void prove_all(int n)
{
    int count = 0;
    const NetAlgorithm *table = net_algorithms(&count);
    NetShape shapes[160];
    const int shape_count = shapes_of(n, shapes);
    for (int a = 0; a < count; a++) {
        int proved = 0;
        for (int s = 0; s < shape_count; s++) {
            if (net_algorithm_refuses(&table[a], &shapes[s]) != NULL || (table[a].least_dims == 0 && s > 0))
                continue;
            for (int root = 0; root<n; root += n - 1> 0 ? n - 1 : 1) {
                shapes[s].root = root;
                g_autoptr(GError) error = NULL;
                net_prove(&table[a], &shapes[s], NET_SUM, NULL, NULL, &error);
                g_assert_no_error(error);
                if (n <= 9 && net_op_reduces(table[a].op))
                    net_prove(&table[a], &shapes[s], NET_MIN, NULL, NULL, &error);
                g_assert_no_error(error);
            }
            shapes[s].root = 0;
            proved++;
        }
        g_assert_true(proved > 0 || table[a].least_dims == 3);
    }
}

static void proof_of_all(void)
{
    for (int n = 2; n <= 64; n++)
        prove_all(n);
}

/* A generator that forgets its last step, and one that adds a part twice, are found out. */
static int one_less(const NetShape *shape)
{
    return 2 * (shape->ranks - 1) - 1;
}

static int three(const NetShape *shape)
{
    (void)shape;
    return 3;
}

static void twice(const NetShape *shape, int rank, int step, NetSends *sends)
{
    const NetAlgorithm *right = net_algorithm_find(NET_ALL_REDUCE, "butterfly", NULL);
    right->sends(shape, rank, step, sends);
    right->sends(shape, rank, step, sends);
}

static void proof_finds_mistakes(void)
{
    const NetShape shape = {.ranks = 4, .dims = {4}, .dim_count = 1, .segments = 1};
    NetAlgorithm broken = *net_algorithm_find(NET_ALL_REDUCE, "ring", NULL);
    broken.steps = one_less;
    g_autoptr(GError) error = NULL;
    g_assert_false(net_prove(&broken, &shape, NET_SUM, NULL, NULL, &error));
    broken = *net_algorithm_find(NET_ALL_REDUCE, "butterfly", NULL);
    broken.steps = three;
    NetShape more = shape;
    g_clear_error(&error);
    g_assert_false(net_prove(&broken, &more, NET_SUM, NULL, NULL, &error));
    /* what is counted twice spoils a sum and no minimum */
    broken.steps = net_algorithm_find(NET_ALL_REDUCE, "butterfly", NULL)->steps;
    broken.sends = twice;
    g_clear_error(&error);
    g_assert_false(net_prove(&broken, &more, NET_SUM, NULL, NULL, &error));
    g_clear_error(&error);
    g_assert_true(net_prove(&broken, &more, NET_MAX, NULL, NULL, &error));
}

typedef struct Count {
    const char *name;
    NetOp op;
    int steps;
    double sent; /* most bytes a rank sends, of 1,200,000 and as many to 8 ranks of 2 nodes */
} Count;

static int64_t most_sent(const NetAlgorithm *algorithm, const NetShape *shape, int64_t bytes,
                         int64_t *ret_all)
{
    const int ranks = shape->ranks + net_algorithm_switches(algorithm, shape);
    g_autofree int64_t *sent = g_new0(int64_t, ranks);
    NetStep step = {0};
    for (int s = 0; s < algorithm->steps(shape); s++) {
        net_step_fill(&step, algorithm, shape, bytes, s);
        for (int i = 0; i < step.count; i++)
            sent[step.messages[i].from] += step.messages[i].bytes;
    }
    net_step_clear(&step);
    int64_t most = 0;
    *ret_all = 0;
    for (int r = 0; r < shape->ranks; r++) {
        most = MAX(most, sent[r]);
        *ret_all += sent[r];
    }
    return most;
}

/* hardware figures of the table: M = 8,000,000 over 8 ranks. */
static void steps_and_bytes(void)
{
    const double m = 8e6;
    const Count rows[] = {
        {"ring", NET_ALL_REDUCE, 14, 2 * 7 * m / 8},
        {"recursive-halving-doubling", NET_ALL_REDUCE, 6, 2 * 7 * m / 8},
        {"butterfly", NET_ALL_REDUCE, 3, 3 * m},
        {"halving-doubling-naive", NET_ALL_REDUCE, 6, 3 * m},
        {"binomial", NET_ALL_REDUCE, 6, 3 * m},
        {"direct", NET_ALL_REDUCE, 2, 2 * 7 * m / 8},
        {"one-shot", NET_ALL_REDUCE, 1, 7 * m},
        {"hierarchical-halving", NET_ALL_REDUCE, 2 * 3 + 2, 2 * 7 * m / 8},
        {"hierarchical-rails", NET_ALL_REDUCE, 8, 2 * 7 * m / 8},
        {"torus-2d", NET_ALL_REDUCE, 8, 2 * 7 * m / 8},
        {"nvls", NET_ALL_REDUCE, 2, m},
        {"double-binary-tree", NET_ALL_REDUCE, 6 + 4 - 1, 2 * m},
        {"ring", NET_ALL_GATHER, 7, 7 * m / 8},
        {"bruck", NET_ALL_GATHER, 3, 7 * m / 8},
        {"pat", NET_ALL_GATHER, 3, 7 * m / 8},
        {"recursive-doubling", NET_ALL_GATHER, 3, 7 * m / 8},
        {"recursive-halving", NET_REDUCE_SCATTER, 3, 7 * m / 8},
        {"pat", NET_REDUCE_SCATTER, 3, 7 * m / 8},
        {"pairwise", NET_ALL_TO_ALL, 7, 7 * m / 8},
        {"bruck", NET_ALL_TO_ALL, 3, 3 * m / 2},
        {"hierarchical", NET_ALL_TO_ALL, 4, 3 * m / 4 + m / 2},
        {"binomial", NET_SCATTER, 3, 7 * m / 8},
        {"binomial", NET_BROADCAST, 3, 3 * m},
        {"pipelined", NET_BROADCAST, 8 - 2 + 4, m},
        {"scatter-ring", NET_BROADCAST, 3 + 7, 2 * 7 * m / 8},
        {"halving-gather", NET_REDUCE, 3 + 3, 7 * m / 8 + 4 * m / 8},
        {"ring-gather", NET_REDUCE, 8, 7 * m / 8 + m / 8},
        {"dissemination", NET_BARRIER, 3, 0},
        {"direct", NET_COPY, 1, m},
        {"direct", NET_SIGNAL, 1, 0},
        {"binomial", NET_SIGNAL, 3, 0},
        {"direct", NET_WAIT, 1, 0},
        {"binomial", NET_WAIT, 3, 0},
    };
    const NetShape shape = {.ranks = 8, .dims = {4, 2}, .dim_count = 2, .segments = 4};
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        const NetAlgorithm *a = net_algorithm_find(rows[i].op, rows[i].name, NULL);
        int64_t all = 0;
        g_assert_nonnull(a);
        g_assert_cmpint(a->steps(&shape), ==, rows[i].steps);
        const double sent =
            (double)most_sent(a, &shape, !net_op_moves_data(rows[i].op) ? 0 : (int64_t)m, &all);
        g_assert_cmpfloat_with_epsilon(sent, rows[i].sent, 1);
    }
}

/* No algorithm sends less than 2 (n-1)/n S a rank on average, save where the network adds up. */
static void bandwidth_bound(void)
{
    int count = 0;
    const NetAlgorithm *table = net_algorithms(&count);
    for (int n = 2; n <= 24; n++) {
        const NetShape shape = {.ranks = n, .dims = {n, 1}, .dim_count = 2, .segments = 5};
        for (int a = 0; a < count; a++) {
            int64_t all = 0;
            if (table[a].op != NET_ALL_REDUCE || table[a].switches != NULL ||
                net_algorithm_refuses(&table[a], &shape) != NULL)
                continue;
            most_sent(&table[a], &shape, 1000000, &all);
            g_assert_cmpint(all, >=, 2 * (n - 1) * 1000000 - 1);
        }
    }
}

static void watch_ring(const NetHoldings *holdings, int step, void *data)
{
    const NetAlgorithm *ring = data;
    /* The slides: after the reduce-scatter GPU d owns row 0, a row 1, b row 2, c row 3. */
    for (int r = 0; r < 4 && step == 2; r++) {
        g_autofree char *text = net_held_text(holdings, ring, r, (r + 1) % 4);
        g_assert_cmpstr(text, ==, "0+1+2+3");
    }
    if (step == 0) {
        g_autofree char *text = net_held_text(holdings, ring, 1, 0);
        g_assert_cmpstr(text, ==, "0+1"); /* b has added a's row 0 */
    }
    if (step == 1) {
        g_autofree char *text = net_held_text(holdings, ring, 2, 0);
        g_assert_cmpstr(text, ==, "0+1+2");
    }
}

static void four_gpus(void)
{
    const NetShape shape = {.ranks = 4, .dims = {4}, .dim_count = 1, .segments = 1};
    const NetAlgorithm *ring = net_algorithm_find(NET_ALL_REDUCE, "ring", NULL);
    NetSends sends = {0};
    ring->sends(&shape, 2, 1, &sends); /* in step 1 GPU c sends row 1 on to d */
    g_assert_cmpint(sends.count, ==, 1);
    g_assert_cmpint(sends.pieces[0].peer, ==, 3);
    g_assert_cmpint(sends.pieces[0].first, ==, 1);
    g_assert_true(sends.pieces[0].reduce);
    sends.count = 0;
    const NetAlgorithm *halving = net_algorithm_find(NET_ALL_REDUCE, "rabenseifner", NULL);
    halving->sends(&shape, 0, 0, &sends); /* a keeps rows 0 and 1, sends 2 and 3 to c */
    g_assert_cmpint(sends.pieces[0].peer, ==, 2);
    g_assert_cmpint(sends.pieces[0].first, ==, 2);
    g_assert_cmpint(sends.pieces[0].count, ==, 2);
    net_sends_clear(&sends);
    g_assert_true(net_prove(ring, &shape, NET_SUM, watch_ring, (void *)ring, NULL));
}

/* Chunks that do not come out even are a byte longer, the first ones, and add up. */
static void uneven_bytes(void)
{
    const NetShape shape = {.ranks = 7, .dims = {7}, .dim_count = 1, .segments = 1};
    const NetAlgorithm *ring = net_algorithm_find(NET_ALL_GATHER, "ring", NULL);
    int64_t sum = 0;
    for (int c = 0; c < 7; c++) {
        const NetPiece piece = {.first = c, .stride = 1, .count = 1};
        sum += net_piece_bytes(ring, &shape, 1003, &piece);
    }
    g_assert_cmpint(sum, ==, 1003);
    const NetPiece strided = {
        .first = 1, .stride = 2, .count = 3}; /* 1 3 5, of which 1 is longer: 1003 = 7 * 143 + 2 */
    g_assert_cmpint(net_piece_bytes(ring, &shape, 1003, &strided), ==, 3 * 143 + 1);
}

/* Every algorithm of a library is a row of the table, and a rule that can decide says when. */
static void libraries(void)
{
    int count = 0;
    const NetLibrary *list = net_libraries(&count);
    for (int i = 0; i < count; i++) {
        for (const NetLibraryRule *rule = list[i].rules; rule < list[i].rules + list[i].rule_count; rule++) {
            GError *error = NULL;
            const NetAlgorithm *algorithm = net_algorithm_find(rule->op, rule->algorithm, &error);
            g_assert_no_error(error);
            const NetSituation situation = {.op = rule->op,
                                            .ranks = MAX(rule->least_ranks, 2),
                                            .nodes = MAX(rule->least_nodes, 1),
                                            .bytes = rule->least_bytes};
            const NetLibraryRule *choice = net_library_choice(&list[i], &situation);
            g_assert_true(net_library_has(&list[i], algorithm, &situation) ||
                          (choice != NULL && choice != rule));
            g_autofree char *when = net_library_when(rule);
            g_assert_true(*when != '\0');
        }
        g_assert_true(net_library_find(list[i].name, NULL) == &list[i]);
        const NetSituation any = {.op = NET_ALL_REDUCE, .ranks = 8, .nodes = 1, .bytes = 1};
        g_assert_false(
            net_library_has(&list[i], net_algorithm_find(NET_ALL_REDUCE, "butterfly", NULL), &any));
    }
    g_assert_null(net_library_find("mpi", NULL));
}

/* Where the choice turns, a byte, a rank and a node to either side. */
static void library_choices(void)
{
    static const struct {
        const char *library;
        NetSituation at;
        const char *algorithm; /* NULL: several are weighed */
    } rows[] = {
        {"gloo", {NET_ALL_REDUCE, 7, 3, 1}, "ring"},
        {"gloo", {NET_BARRIER, 7, 3, 0}, "dissemination"},
        {"msccl", {NET_ALL_REDUCE, 8, 1, 32768}, "one-shot"},
        {"msccl", {NET_ALL_REDUCE, 8, 1, 32769}, "direct"},
        {"msccl", {NET_ALL_REDUCE, 8, 1, 266239}, "direct"},
        {"msccl", {NET_ALL_REDUCE, 8, 1, 266240}, "ring"},
        {"msccl", {NET_ALL_REDUCE, 8, 1, 20971521}, NULL},
        {"msccl", {NET_ALL_REDUCE, 7, 1, 32768}, NULL},
        {"msccl", {NET_ALL_GATHER, 8, 1, 33554431}, "direct"},
        {"msccl", {NET_ALL_GATHER, 8, 1, 33554432}, "ring"},
        {"rccl", {NET_ALL_REDUCE, 8, 1, 16777216}, "direct"},
        {"rccl", {NET_ALL_REDUCE, 8, 1, 16777217}, NULL},
        {"rccl", {NET_ALL_REDUCE, 16, 2, 1}, NULL},
        {"hccl", {NET_ALL_REDUCE, 32, 4, 1}, "hierarchical-halving"},
        {"hccl", {NET_ALL_REDUCE, 48, 6, 1}, "hierarchical-rails"},
        {"hccl", {NET_ALL_REDUCE, 72, 9, 1}, "hierarchical-halving"},
        {"accl", {NET_ALL_REDUCE, 8, 1, 1}, "ring"},
        {"accl", {NET_ALL_TO_ALL, 8, 1, 1}, "direct"},
        {"tccl", {NET_BROADCAST, 8, 1, 1}, "pipelined"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        const NetLibraryRule *choice =
            net_library_choice(net_library_find(rows[i].library, NULL), &rows[i].at);
        g_assert_cmpstr(choice != NULL ? choice->algorithm : NULL, ==, rows[i].algorithm);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/network/algorithms/proof", proof_of_all);
    g_test_add_func("/network/algorithms/mistakes", proof_finds_mistakes);
    g_test_add_func("/network/algorithms/steps-and-bytes", steps_and_bytes);
    g_test_add_func("/network/algorithms/bound", bandwidth_bound);
    g_test_add_func("/network/algorithms/four-gpus", four_gpus);
    g_test_add_func("/network/algorithms/uneven", uneven_bytes);
    g_test_add_func("/network/libraries", libraries);
    g_test_add_func("/network/library-choices", library_choices);
    return g_test_run();
}
