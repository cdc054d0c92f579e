/* tests/unit/report/test_report_kernels.c - run --kernels: FLOPs against the closed form, counts of layers, one
 * meaning a cell. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "report/report.h"

enum {
    PIECE,
    COUNT,
    PASS,
    KERNEL,
    KIND,
    BESIDE,
    AGAIN,
    LAUNCHES,
    SECONDS,
    SIZE,
    GROUPS,
    FLOPS,
    RATE,
    BYTES,
    SPEED,
    READ,
    WRITTEN,
    CELLS
};

static char **lines_of(const char *scenario)
{
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(scenario, strlen(scenario), "kernels", &error);
    g_assert_no_error(error);
    g_autofree Spec *spec = g_new(Spec, 1);
    const char *const none[] = {NULL};
    spec_load_json(orr_json_root(doc), "kernels", none, false, spec, NULL, &error);
    g_assert_no_error(error);
    const Report report = {.spec = spec};
    g_autoptr(GString) text = g_string_new(NULL);
    report_write_kernels(&report, text);
    orr_json_free(doc);
    char **lines = g_strsplit(text->str, "\n", -1);
    const guint count = g_strv_length(lines);
    g_assert_cmpstr(lines[count - 1], ==, "");
    g_clear_pointer(&lines[count - 1], g_free);
    return lines;
}

/* Sum of one cell over the lines of a piece and a pass; 0 where none. */
static double sum(char **lines, const char *piece, const char *pass, const char *kind, int cell)
{
    double total = 0;
    for (int i = 1; lines[i] != NULL; i++) {
        g_auto(GStrv) cells = g_strsplit(lines[i], ",", -1);
        g_assert_cmpuint(g_strv_length(cells), ==, CELLS);
        if (g_str_equal(cells[PIECE], piece) && g_str_equal(cells[PASS], pass) &&
            (kind == NULL || g_str_equal(cells[KIND], kind)))
            total += g_ascii_strtod(cells[cell], NULL);
    }
    return total;
}

#define GPT3_ON(model, recompute, framework)                                                                 \
    "{\"model\":" model ",\"cluster\":{\"preset\":\"dgx-a100-80gb\",\"nodes\":1},\"training\":{"             \
    "\"sequence_length\":2048,\"global_batch\":1,\"micro_batch\":1,\"precision\":\"bf16\",\"recompute\":"    \
    "" recompute                                                                                             \
    "},\"parallel\":{\"tensor\":8},\"execution\":{\"attention\":\"flash2\",\"framework\":" framework "}}"
#define GPT3(recompute) GPT3_ON("\"gpt3-175b\"", "\"" recompute "\"", "\"megatron-lm-2023\"")

/* What kernels read and what they write: together what they move; a norm reads its input and writes its output. */
static void directions(void)
{
    const double t = 2048, h = 12288;
    g_auto(GStrv) lines = lines_of(GPT3("none"));
    int norms = 0;
    for (int i = 1; lines[i] != NULL; i++) {
        g_auto(GStrv) cells = g_strsplit(lines[i], ",", -1);
        const double bytes = g_ascii_strtod(cells[BYTES], NULL), read = g_ascii_strtod(cells[READ], NULL),
                     written = g_ascii_strtod(cells[WRITTEN], NULL);
        if (g_str_equal(cells[KIND], "memory"))
            g_assert_cmpfloat_with_epsilon((read + written) / bytes, 1, 1e-8);
        if (g_str_equal(cells[KIND], "collective"))
            g_assert_cmpfloat(read + written, ==, 0);
        if (g_str_equal(cells[KIND], "gemm"))
            g_assert_true(read > 0 && written > 0);
        if (g_str_equal(cells[KERNEL], "norm") && g_str_equal(cells[PASS], "forward")) {
            g_assert_cmpfloat(read, ==, 2 * t * h);
            g_assert_cmpfloat(written, ==, 2 * t * h);
            norms++;
        }
    }
    g_assert_cmpint(norms, ==, 3); /* two of the layer, one before the head */
    /* forward and 16 bits: queries, keys and values in, the output out */
    g_assert_cmpfloat(sum(lines, "layer", "forward", "attention", READ), ==, 3 * 2 * t * h / 8);
    g_assert_cmpfloat(sum(lines, "layer", "forward", "attention", WRITTEN), ==, 2 * t * h / 8);
}

/* One layer forward, 1/8 of it: 24 T h^2 of products and 4 T s h of attention. Source: [Korthikanti2022] appendix A */
static void flops(void)
{
    const double t = 2048, s = 2048, h = 12288;
    g_auto(GStrv) lines = lines_of(GPT3("none"));
    const double products = sum(lines, "layer", "forward", "gemm", FLOPS);
    const double attention = sum(lines, "layer", "forward", "attention", FLOPS);
    g_assert_cmpfloat_with_epsilon(products / (24 * t * h * h / 8), 1, 1e-8);
    g_assert_cmpfloat_with_epsilon(attention / (4 * t * s * h / 8), 1, 1e-8);
    g_assert_cmpfloat_with_epsilon(sum(lines, "layer", "backward-input", "gemm", FLOPS) / products, 1, 1e-8);
    g_assert_cmpfloat_with_epsilon(sum(lines, "layer", "backward-weight", "gemm", FLOPS) / products, 1, 1e-8);
    for (int i = 1; lines[i] != NULL; i++) {
        g_auto(GStrv) cells = g_strsplit(lines[i], ",", -1);
        const double seconds = g_ascii_strtod(cells[SECONDS], NULL);
        g_assert_cmpfloat(seconds, >, 0);
        g_assert_cmpstr(cells[AGAIN], ==, "no");
        for (int cell = FLOPS; cell <= BYTES; cell += 2) {
            const double amount = g_ascii_strtod(cells[cell], NULL),
                         rate = g_ascii_strtod(cells[cell + 1], NULL);
            g_assert_true((amount > 0) == (cells[cell][0] != '\0'));
            g_assert_cmpfloat(fabs(rate * seconds - amount), <=, 1e-7 * amount);
        }
    }
}

/* Selective recomputation runs attention again and nothing else; full runs all of the forward, but not the head's. */
static void recomputed(void)
{
    g_auto(GStrv) selective = lines_of(GPT3("selective"));
    g_auto(GStrv) full = lines_of(GPT3("full"));
    for (int i = 1; selective[i] != NULL; i++) {
        g_auto(GStrv) cells = g_strsplit(selective[i], ",", -1);
        g_auto(GStrv) all = g_strsplit(full[i], ",", -1);
        const bool forward = g_str_equal(cells[PASS], "forward") && g_str_equal(cells[PIECE], "layer");
        const bool attention = forward && g_str_equal(cells[KIND], "attention");
        g_assert_cmpstr(cells[AGAIN], ==, attention ? "yes" : "no");
        g_assert_cmpstr(all[AGAIN], ==, forward ? "yes" : "no");
    }
}

#define EARLY(dropout)                                                                                       \
    GPT3_ON("{\"preset\":\"gpt3-175b\",\"dropout_frac\":" dropout "}", "\"full\"",                           \
            "{\"preset\":\"megatron-lm-2023\",\"recompute_stops_early\":true}")

/* Ops of a layer's forward from the MLP's output linear on that run again, of `*ret_behind`. */
static int again_behind(char **lines, int *ret_behind)
{
    int again = 0, before = 0;
    *ret_behind = 0;
    for (int i = 1; lines[i] != NULL; i++) {
        g_auto(GStrv) cells = g_strsplit(lines[i], ",", -1);
        if (!g_str_equal(cells[PASS], "forward") || !g_str_equal(cells[PIECE], "layer"))
            continue;
        const bool behind = *ret_behind > 0 || g_str_equal(cells[KERNEL], "mlp out");
        *ret_behind += behind;
        before += !behind;
        again += behind && g_str_equal(cells[AGAIN], "yes");
        if (!behind)
            g_assert_cmpstr(cells[AGAIN], ==, "yes");
    }
    g_assert_cmpint(before, >, 5);
    return again;
}

/* Where it ends with what the backward needs, the MLP's output linear and the add behind it do not run again, unless
 * dropout's mask is to be made once more. */
static void recomputed_early(void)
{
    g_auto(GStrv) without = lines_of(EARLY("0"));
    g_auto(GStrv) with = lines_of(EARLY("0.1"));
    int behind;
    g_assert_cmpint(again_behind(without, &behind), ==, 0);
    g_assert_cmpint(behind, >=, 2);
    g_assert_cmpint(again_behind(with, &behind), ==, behind);
}

/* Where the first two layers of a stage are recomputed, the others have lines of their own. */
static void recomputed_in_part(void)
{
    g_auto(GStrv) lines =
        lines_of(GPT3_ON("\"gpt3-175b\"", "{\"mode\":\"full\",\"layers\":2}", "\"megatron-lm-2023\""));
    int again = 0, once = 0;
    for (int i = 1; lines[i] != NULL; i++) {
        g_auto(GStrv) cells = g_strsplit(lines[i], ",", -1);
        const bool layer = g_str_equal(cells[PIECE], "layer"), forward = g_str_equal(cells[PASS], "forward");
        if (!g_str_has_prefix(cells[PIECE], "layer"))
            continue;
        g_assert_cmpstr(cells[COUNT], ==, layer ? "2" : "94");
        g_assert_cmpstr(cells[AGAIN], ==, layer && forward ? "yes" : "no");
        again += layer;
        once += g_str_equal(cells[PIECE], "layer without recomputation");
    }
    g_assert_cmpint(again, ==, once);
    g_assert_cmpint(again, >, 20);
}

/* 3 dense layers, 58 with experts, and one module behind them. */
static void kinds_of_layers(void)
{
    g_auto(GStrv) lines = lines_of(
        "{\"model\":{\"preset\":\"deepseek-v3\",\"mtp_layers\":1},\"cluster\":{\"preset\":\"dgx-h100\","
        "\"nodes\":2},\"training\":{"
        "\"sequence_length\":4096,\"global_batch\":16,\"micro_batch\":1},\"parallel\":{\"expert\":16},"
        "\"execution\":{\"framework\":\"megatron-core\"}}");
    static const struct {
        const char *piece, *count;
    } cases[] = {{"layer", "3"},
                 {"expert layer", "58"},
                 {"embedding", "1"},
                 {"head", "1"},
                 {"multi-token prediction", "1"}};
    for (gsize c = 0; c < G_N_ELEMENTS(cases); c++) {
        int found = 0;
        for (int i = 1; lines[i] != NULL; i++) {
            g_auto(GStrv) cells = g_strsplit(lines[i], ",", -1);
            if (g_str_equal(cells[PIECE], cases[c].piece)) {
                g_assert_cmpstr(cells[COUNT], ==, cases[c].count);
                found++;
            }
        }
        g_assert_cmpint(found, >, 0);
    }
    g_assert_cmpfloat(sum(lines, "expert layer", "forward", "collective", BYTES), >, 0);
}

/* Every second layer of gpt-oss has a window: a piece of its own, whose attention takes less. */
static void windowed_layers(void)
{
    g_auto(GStrv) lines = lines_of(
        "{\"model\":\"gpt-oss-120b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},\"training\":{"
        "\"sequence_length\":4096,\"global_batch\":8,\"micro_batch\":1},\"parallel\":{\"expert\":8},"
        "\"execution\":{\"framework\":\"megatron-core\"}}");
    const double full_s = sum(lines, "expert layer", "forward", "attention", SECONDS);
    const double windowed_s = sum(lines, "windowed expert layer", "forward", "attention", SECONDS);
    g_assert_cmpfloat(sum(lines, "expert layer", "forward", "attention", COUNT), ==, 18);
    g_assert_cmpfloat(sum(lines, "windowed expert layer", "forward", "attention", COUNT), ==, 18);
    g_assert_cmpfloat(windowed_s, >, 0);
    g_assert_cmpfloat(windowed_s, <, full_s / 2);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/report/kernels/directions", directions);
    g_test_add_func("/report/kernels/flops", flops);
    g_test_add_func("/report/kernels/recomputed", recomputed);
    g_test_add_func("/report/kernels/recomputed-early", recomputed_early);
    g_test_add_func("/report/kernels/kinds-of-layers", kinds_of_layers);
    g_test_add_func("/report/kernels/recomputed-in-part", recomputed_in_part);
    g_test_add_func("/report/kernels/windowed-layers", windowed_layers);
    return g_test_run();
}
