/* tests/unit/report/test_memory_report.c - run --memory by layer, by tensor and over the first steps: lines add up
 * to the peaks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "costmodel/states.h"
#include "report/report.h"
#include "spec/load.h"
#include "tests/unit/test_spec_support.h"

enum { RANK, STAGE, LAYER, KIND, TENSOR, MICROBATCHES, BYTES, CELLS };

static Report run(const char *const *sets, OrrArena *arena)
{
    const ReportOptions options = {.check = true, .record = SIM_RECORD_SPANS | SIM_RECORD_LEVELS};
    Spec *spec = orr_arena_alloc(arena, sizeof *spec);
    Report report;
    GError *error = NULL;
    char *message = NULL;
    if (!test_load(sets, false, spec, NULL, &message))
        g_error("%s", message);
    if (!report_run(spec, NULL, &options, arena, &report, &error))
        g_error("%s", error->message);
    return report;
}

/* g_strsplit() of a long text at its ends of lines: under the address sanitizer each strstr() in it takes the length of the
 * whole rest. */
static char **lines_of(const char *text)
{
    GPtrArray *lines = g_ptr_array_new();
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1)
        g_ptr_array_add(lines, g_strndup(text, (gsize)(end - text)));
    g_ptr_array_add(lines, g_strdup(text));
    g_ptr_array_add(lines, NULL);
    return (char **)g_ptr_array_free(lines, FALSE);
}

/* Sum of the bytes of a rank's lines; of one layer and kind where these are given ("" : those of no layer). */
static double sum(const Report *report, ReportMemoryBy by, int rank, const char *layer, const char *kind)
{
    g_autoptr(GString) text = g_string_new(NULL);
    report_write_memory_parts(report, by, 0, text);
    g_auto(GStrv) lines = lines_of(text->str);
    double total = 0;
    for (int i = 1; lines[i] != NULL && lines[i][0] != '\0'; i++) {
        g_auto(GStrv) cells = g_strsplit(lines[i], ",", -1);
        g_assert_cmpuint(g_strv_length(cells), ==, CELLS);
        if ((int)g_ascii_strtoll(cells[RANK], NULL, 10) == rank &&
            (layer == NULL || g_str_equal(cells[LAYER], layer)) &&
            (kind == NULL || g_str_equal(cells[KIND], kind)))
            total += g_ascii_strtod(cells[BYTES], NULL);
    }
    return total;
}

static const char *const SCENARIOS[][5] = {
    {"parallel.zero=1", NULL},
    {"parallel.zero=3", "parallel.pipeline=1", NULL},
    {"training.recompute={\"mode\":\"full\",\"layers\":3}", "parallel.virtual_stages=2",
     "parallel.schedule=interleaved", NULL},
    {"parallel.schedule=zb-h1", "model.dropout_frac=0.1", NULL},
    {"model.moe={\"experts\":8,\"top_k\":2,\"expert_ffn_hidden\":512,\"dense_layers\":9}",
     "model.mtp_layers=1", NULL},
    {"offload.activation_layers=2", "training.precision=bf16", NULL},
    {"training.recompute=selective-op", "execution.framework.allocator.pipeline_keeps=boundaries", NULL},
    {"training.task=qlora", "training.adapter={\"rank\":8,\"base_dtype\":\"nf4\",\"targets\":\"all-linear\"}",
     "execution.attention=flash2", NULL},
    {"training.task=qlora", "training.adapter={\"rank\":8,\"base_dtype\":\"int4\"}",
     "training.recompute=full", "execution.attention=flash2", NULL},
    {"training.task=dpo", "training.reference=model", "training.micro_batch=2", "parallel.zero=1", NULL},
    {"training.freeze={\"embedding\":true,\"layers\":12}", "model.tied_embeddings=false", NULL},
};

/* Whatever is parallel, recomputed or moved away: the lines of a rank are its peak, of each kind, and a layer's tensors are
 * its activations. */
static void adds_up(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(SCENARIOS); i++) {
        OrrArena *arena = orr_arena_new();
        const Report report = run(SCENARIOS[i], arena);
        for (int rank = 0; rank < report.stage_count; rank++) {
            for (int by = REPORT_MEMORY_BY_LAYER; by <= REPORT_MEMORY_BY_TENSOR; by++) {
                g_assert_cmpfloat(sum(&report, (ReportMemoryBy)by, rank, NULL, NULL), ==,
                                  report.stages[rank].peak_bytes);
                g_assert_cmpfloat(sum(&report, (ReportMemoryBy)by, rank, NULL, "activations"), ==,
                                  report.stages[rank].activations_bytes);
            }
            for (int layer = 0; layer < report.spec->model.layers; layer++) {
                g_autofree char *name = g_strdup_printf("%d", layer);
                const double whole = sum(&report, REPORT_MEMORY_BY_LAYER, rank, name, "activations"),
                             parts = sum(&report, REPORT_MEMORY_BY_TENSOR, rank, name, "activations");
                g_assert_cmpfloat(fabs(whole - parts), <=, 32 + 1e-9 * whole);
            }
        }
        orr_arena_free(arena);
    }
}

/* Bytes of a rank's lines of one kind and tensor, of one layer or (NULL) of all lines. */
static double tensor_sum(const Report *report, const char *layer, const char *kind, const char *tensor)
{
    g_autoptr(GString) text = g_string_new(NULL);
    report_write_memory_parts(report, REPORT_MEMORY_BY_TENSOR, 0, text);
    g_auto(GStrv) lines = lines_of(text->str);
    double total = 0;
    for (int i = 1; lines[i] != NULL && lines[i][0] != '\0'; i++) {
        g_auto(GStrv) cells = g_strsplit(lines[i], ",", -1);
        if ((layer == NULL || g_str_equal(cells[LAYER], layer)) && g_str_equal(cells[KIND], kind) &&
            g_str_equal(cells[TENSOR], tensor))
            total += g_ascii_strtod(cells[BYTES], NULL);
    }
    return total;
}

static Report example(const char *name, const char *const *sets, OrrArena *arena)
{
    const ReportOptions options = {.check = true, .record = SIM_RECORD_SPANS | SIM_RECORD_LEVELS};
    Spec *spec = orr_arena_alloc(arena, sizeof *spec);
    g_autofree char *path = g_build_filename(g_getenv("ORRERY_SCENARIOS"), "examples", name, NULL);
    GError *error = NULL;
    Report report;
    spec_load_file(path, sets, false, spec, NULL, &error);
    g_assert_no_error(error);
    report_run(spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    return report;
}

/* QLoRA of Llama 2 70B, rank 64 on all linear layers: a layer has 855,638,016 weights in matrices, half a byte each and a
 * quantised scale for 64, and 16,384 of norms in 16 bits; adapters of 64 (n + m) for each. */
static void adapters(void)
{
    static const char *const offloaded[] = {"cluster=dgx-h100",
                                            "cluster.nodes=1",
                                            "training.global_batch=128",
                                            "parallel={\"data\":8,\"zero\":1}",
                                            "execution.framework=transformers-deepspeed",
                                            "offload={\"scheme\":\"zero-offload\"}",
                                            NULL};
    static const double MATRICES = 8192.0 * (8192 * 2 + 1024 * 2) + 3 * 8192.0 * 28672,
                        ADAPTER = 64 * (2 * (8192 + 8192) + 2 * (8192 + 1024) + 3 * (8192.0 + 28672));
    OrrArena *arena = orr_arena_new();
    Report report = example("llama2-70b-qlora.json", NULL, arena);
    const Spec *spec = report.spec;
    g_assert_cmpfloat(
        tensor_sum(&report, "7", "weights", "frozen weights"), ==,
        round(MATRICES * (0.5 + 1.0 / 64 + 4.0 / (64 * 256)) + 2 * (cost_autocasts(spec) ? 4 : 2) * 8192));
    g_assert_cmpfloat(tensor_sum(&report, "7", "weights", "adapter"), ==, 2 * ADAPTER);
    g_assert_cmpfloat(tensor_sum(&report, "7", "gradients", "adapter"), ==, 2 * ADAPTER);
    g_assert_cmpfloat(tensor_sum(&report, "7", "optimizer", "adapter"), ==, 4 * ADAPTER);
    g_assert_cmpfloat(tensor_sum(&report, NULL, "weights", "reference"), ==, 0);
    /* the largest product's weights, gate and up, in 16 bits */
    g_assert_cmpfloat(tensor_sum(&report, NULL, "workspace", "widened weights"), ==, 2 * 2 * 8192.0 * 28672);
    report = example("llama2-70b-qlora.json", offloaded, arena);
    g_assert_cmpfloat(sum(&report, REPORT_MEMORY_BY_TENSOR, 0, NULL, NULL), ==, report.stages[0].peak_bytes);
    g_assert_cmpfloat(tensor_sum(&report, NULL, "optimizer", "adapter"), ==, 0);
    g_assert_cmpfloat(tensor_sum(&report, "7", "weights", "adapter"), ==, 2 * ADAPTER);
    orr_arena_free(arena);
}

/* 1F1B on 4 ranks of 8 layers: rank r keeps 4 - r micro-batches, each layer of them 34 bytes less masks and scores; all of
 * the first ranks' activations are in lines of layers. */
static void pipeline(void)
{
    OrrArena *arena = orr_arena_new();
    const Report report = run((const char *[]){"execution.attention=flash2", NULL}, arena);
    for (int rank = 0; rank < 3; rank++) {
        g_autofree char *first = g_strdup_printf("%d", 8 * rank),
                        *other = g_strdup_printf("%d", 8 * rank + 8);
        const double each = (double)report.plan.stages[rank].segments[rank == 0 ? 1 : 0].activation_bytes;
        g_assert_cmpfloat(sum(&report, REPORT_MEMORY_BY_LAYER, rank, first, "activations"), ==,
                          (4 - rank) * each);
        g_assert_cmpfloat(sum(&report, REPORT_MEMORY_BY_TENSOR, rank, first, "activations"), ==,
                          (4 - rank) * each);
        g_assert_cmpfloat(sum(&report, REPORT_MEMORY_BY_LAYER, rank, other, NULL), ==, 0);
        g_assert_cmpfloat(sum(&report, REPORT_MEMORY_BY_LAYER, rank, "", "activations"), ==, 0);
    }
    orr_arena_free(arena);
}

/* Largest total of rank 0 from `from_s` to before `to_s`. */
static double peak(char **lines, double from_s, double to_s)
{
    double most = 0;
    for (int i = 1; lines[i] != NULL && lines[i][0] != '\0'; i++) {
        g_auto(GStrv) cells = g_strsplit(lines[i], ",", -1);
        const double at_s = g_ascii_strtod(cells[0], NULL);
        if (g_str_equal(cells[1], "0") && at_s >= from_s && at_s < to_s)
            most = fmax(most, g_ascii_strtod(cells[7], NULL));
    }
    return most;
}

/* Adam in mixed precision: before the first optimizer step its two moments, 8 bytes a parameter, are not there; all later
 * steps are alike. */
static void first_steps(void)
{
    OrrArena *arena = orr_arena_new();
    const Report report = run((const char *[]){"parallel.zero=0", NULL}, arena);
    const double step_s = (double)report.step_ps * 1e-12, parameters = report.stages[0].weights_bytes / 2;
    g_autoptr(GString) one = g_string_new(NULL), three = g_string_new(NULL);
    report_write_memory(&report, 0, one);
    report_write_memory(&report, 3, three);
    g_auto(GStrv) any = lines_of(one->str), first = lines_of(three->str);
    g_assert_cmpfloat(peak(any, 0, INFINITY), ==, report.stages[0].peak_bytes);
    g_assert_cmpfloat(peak(first, step_s, 2 * step_s), ==, report.stages[0].peak_bytes);
    g_assert_cmpfloat(peak(first, 2 * step_s, INFINITY), ==, report.stages[0].peak_bytes);
    g_assert_cmpfloat(report.stages[0].peak_bytes - peak(first, 0, step_s), ==, 8 * parameters);
    const guint lines = g_strv_length(any) - 2; /* a line more for each rank where its moments come */
    g_assert_cmpuint(g_strv_length(first) - 2, >=, 3 * lines);
    g_assert_cmpuint(g_strv_length(first) - 2, <=, 3 * lines + (guint)report.stage_count);
    orr_arena_free(arena);
}

/* "time,rank" of a line, and the rest of it. */
static char *split_line(char *line, int cells)
{
    char *end = line;
    for (int i = 0; i < cells; i++)
        end = strchr(end, ',') + 1;
    end[-1] = '\0';
    return end;
}

/* Whatever changes: after the lines of an instant those of a rank add up to what the timeline says that it holds then. */
static void check_over_time(const Report *report, ReportMemoryBy by)
{
    g_autoptr(GString) plain = g_string_new(NULL), parts = g_string_new(NULL);
    report_write_memory(report, 2, plain);
    report_write_memory_parts(report, by, 2, parts);
    g_auto(GStrv) totals = lines_of(plain->str), lines = lines_of(parts->str);
    g_autoptr(GHashTable) held = g_hash_table_new(g_str_hash, g_str_equal),
                          last = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (int i = 1; totals[i] != NULL && totals[i][0] != '\0'; i++) {
        const char *rest = split_line(totals[i], 2);
        g_hash_table_insert(held, totals[i], (void *)rest);
    }
    g_autofree double *sums = g_new0(double, report->stage_count);
    int checked = 0;
    for (int i = 1; lines[i] != NULL && lines[i][0] != '\0'; i++) {
        char *rest = split_line(lines[i], 2), *bytes = strrchr(rest, ',');
        const int rank = atoi(strchr(lines[i], ',') + 1);
        *bytes++ = '\0';
        *strrchr(rest, ',') = '\0'; /* micro-batches */
        char *key = g_strdup_printf("%d,%s", rank, rest);
        const char *before = g_hash_table_lookup(last, key);
        sums[rank] += g_ascii_strtod(bytes, NULL) - (before != NULL ? g_ascii_strtod(before, NULL) : 0);
        g_hash_table_insert(last, key, bytes);
        if (lines[i + 1] != NULL && g_str_has_prefix(lines[i + 1], lines[i]))
            continue;
        const char *of_kinds = g_hash_table_lookup(held, lines[i]);
        g_assert_nonnull(of_kinds);
        g_auto(GStrv) cells = g_strsplit(of_kinds, ",", -1);
        g_assert_cmpfloat(sums[rank], ==, g_ascii_strtod(cells[5], NULL));
        checked++;
    }
    g_assert_cmpint(checked, >=, 4 * report->plan.shape.microbatches);
}

static void over_time(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(SCENARIOS); i++) {
        OrrArena *arena = orr_arena_new();
        const Report report = run(SCENARIOS[i], arena);
        check_over_time(&report, REPORT_MEMORY_BY_LAYER);
        if (i == 0)
            check_over_time(&report, REPORT_MEMORY_BY_TENSOR);
        orr_arena_free(arena);
    }
}

/* The bar of a stage shows each kind by its bytes and ends at what is reserved, on the scale on which the line stands at the
 * capacity. Blocks are characters of their own where the terminal has no colours. */
static void test_bar(void)
{
    enum { KINDS = 6 };
    static const char *const blocks[KINDS] = {"\u2588", "\u2593", "\u2592", "\u2591", "\u254d", "\u00b7"};
    OrrArena *arena = orr_arena_new();
    const Report report =
        run((const char *const[]){"parallel.zero=1", "cluster.accelerator.memory_bytes=9 GB", NULL}, arena);
    g_autoptr(GString) text = g_string_new(NULL);
    report_write_text(&report, text);
    g_auto(GStrv) lines = lines_of(text->str);
    int bars = 0;
    for (int i = 0; lines[i] != NULL; i++) {
        const bool row = g_ascii_isdigit(*g_strchug(lines[i])); /* not the frame of the headline */
        const char *bar = row ? strstr(lines[i], blocks[0]) : NULL;
        const char *line = bar != NULL ? strstr(bar, "\u2502") : NULL;
        if (line == NULL)
            continue;
        const ReportStage *stage = &report.stages[g_ascii_strtoll(lines[i], NULL, 10)];
        double bytes[KINDS] = {
            stage->weights_bytes,     stage->gradients_bytes, stage->optimizer_bytes,
            stage->activations_bytes, stage->workspace_bytes,
        };
        bytes[KINDS - 1] = stage->reserved_bytes;
        for (int k = 0; k < KINDS - 1; k++)
            bytes[KINDS - 1] -= bytes[k];
        int cells[KINDS] = {0}, cell = 0, capacity = -1;
        for (const char *at = bar; *at != '\0'; at = g_utf8_next_char(at), cell++) {
            for (int k = 0; k < KINDS; k++)
                cells[k] += g_str_has_prefix(at, blocks[k]);
            if (at == line)
                capacity = cell;
        }
        for (int k = 0; k < KINDS; k++) {
            const double expected = bytes[k] / stage->capacity_bytes * capacity;
            g_test_message("kind %d: %d cells of %d, expected %.2f", k, cells[k], capacity, expected);
            g_assert_cmpfloat(fabs(cells[k] - expected), <=, 1.5);
        }
        bars++;
    }
    g_assert_cmpint(bars, >, 0);
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/memory-report/bar", test_bar);
    g_test_add_func("/memory-report/adds-up", adds_up);
    g_test_add_func("/memory-report/adapters", adapters);
    g_test_add_func("/memory-report/pipeline", pipeline);
    g_test_add_func("/memory-report/first-steps", first_steps);
    g_test_add_func("/memory-report/over-time", over_time);
    return g_test_run();
}
