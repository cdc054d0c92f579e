/* calibrate/measure/sweep_shapes.c - the points of a user's own scenario, from the CSV that `orrery run --kernels` writes.
 *
 * Products have their sizes there; what moves bytes has them as bytes, which a kernel of the same kind moves over rows of
 * MOVE_COLUMNS; collectives have bytes and ranks, and are measured where this machine has as many. Attention is measured
 * where queries and keys are as many and of one width. What is recomputed or comes twice is measured once.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "calibrate/measure/sweep_plan.h"

#define MOST_FILE    (16u << 20)
#define MOVE_COLUMNS 4096

typedef struct Shapes {
    GArray *points;
    GHashTable *ids;
    const CalStamp *stamp;
    const CalSweepOptions *options;
    bool casts; /* the list has casts: products run in 8 bits where the GPU can */
} Shapes;

static void add(Shapes *shapes, const CalPoint *point)
{
    const char *only = shapes->options->only;
    if ((only == NULL || strstr(point->id, only) != NULL) &&
        g_hash_table_add(shapes->ids, g_strdup(point->id)))
        g_array_append_val(shapes->points, *point);
}

static const char *cell(GStrv head, GStrv cells, const char *name)
{
    for (int i = 0; head[i] != NULL && cells[i] != NULL; i++)
        if (strcmp(head[i], name) == 0)
            return cells[i];
    return "";
}

/* "4096x14336x8192"; weight gradients are added to fp32. */
static void add_product(Shapes *shapes, GStrv head, GStrv cells)
{
    const char *pass = cell(head, cells, "pass");
    char *end = NULL;
    int64_t size[3] = {0};
    const char *at = cell(head, cells, "size");
    for (int i = 0; i < 3; i++, at = *end == 'x' ? end + 1 : end)
        size[i] = g_ascii_strtoll(at, &end, 10);
    const int64_t groups = MAX(g_ascii_strtoll(cell(head, cells, "groups"), NULL, 10), 1);
    const bool weight = strcmp(pass, "backward-weight") == 0;
    const KrnLayout layout = weight ? KRN_NT : strcmp(pass, "backward-input") == 0 ? KRN_NN : KRN_TN;
    const char *name = groups > 1 ? "grouped_gemm_streams" : "gemm";
    CalPoint point;
    if (size[0] < 1 || size[1] < 1 || size[2] < 1 || size[0] > INT32_MAX || size[1] > INT32_MAX ||
        size[2] > INT32_MAX || groups > 4096)
        return;
    cal_point_gemm(name, KRN_MATH_BF16, layout, weight, groups, size, &point);
    add(shapes, &point);
    if (!shapes->casts || shapes->stamp->capability < 89 || groups > 1)
        return;
    cal_point_gemm(name, KRN_MATH_FP8, KRN_TN, weight, groups, size, &point);
    if (layout == KRN_NN)
        cal_point_precise(&point);
    add(shapes, &point);
}

/* Bytes an element of the measured kernel, by words of the model's. */
static void add_move(Shapes *shapes, GStrv head, GStrv cells)
{
    static const struct {
        const char *word, *forward, *backward;
        double bytes[2];
    } kinds[] = {{"norm", "rms_norm", "rms_norm_backward", {4, 6}},
                 {"activation", "swiglu", "swiglu_backward", {6, 10}},
                 {"softmax", "softmax", "softmax_backward", {4, 6}},
                 {"permute", "permute", "permute", {4, 4}},
                 {"", "residual_add", "residual_add", {6, 6}}};
    const char *kernel = cell(head, cells, "kernel");
    const bool back = strcmp(cell(head, cells, "pass"), "forward") != 0;
    const double bytes = g_ascii_strtod(cell(head, cells, "bytes"), NULL),
                 launches = MAX(g_ascii_strtod(cell(head, cells, "launches"), NULL), 1);
    size_t kind = 0;
    while (strstr(kernel, kinds[kind].word) == NULL)
        kind++;
    const char *own = back ? kinds[kind].backward : kinds[kind].forward;
    CalPoint point = {.kind = CAL_POINT_KERNEL, .name = cal_mover(shapes->stamp, own)};
    const double rows = bytes / launches / kinds[kind].bytes[back] / MOVE_COLUMNS;
    if (!(rows >= 1) || rows > 1e8)
        return;
    point.shape = (KrnShape){.rows = (int64_t)rows, .cols = MOVE_COLUMNS};
    g_snprintf(point.id, sizeof point.id, "%s %dx%d", point.name, (int)rows, MOVE_COLUMNS);
    add(shapes, &point);
}

/* "2x4096x4096 heads 32/8 dim 128/128 causal bf16". cuDNN's kernel where there is one. */
static void add_attention(Shapes *shapes, GStrv head, GStrv cells)
{
    int batch, queries, keys, heads, kv_heads, dim, v_dim;
    const char *size = cell(head, cells, "size");
    const bool back = strcmp(cell(head, cells, "pass"), "forward") != 0,
               causal = strstr(size, " causal") != NULL, fp8 = g_str_has_suffix(size, " fp8"),
               library = shapes->stamp->cudnn[0] != '\0';
    CalPoint point;
    if (sscanf(size, "%dx%dx%d heads %d/%d dim %d/%d", &batch, &queries, &keys, &heads, &kv_heads, &dim,
               &v_dim) != 7 ||
        strstr(size, " window ") != NULL || queries != keys || dim != v_dim || queries < 1 || batch < 1 ||
        heads < 1 || kv_heads < 1 || dim < 1 || (fp8 && !(library && shapes->stamp->capability >= 90)))
        return;
    const char *const names[2][2] = {{library ? "cudnn_forward" : "flash_forward", "cudnn_forward_fp8"},
                                     {library ? "cudnn_backward" : "flash_backward", "cudnn_backward_fp8"}};
    cal_point_attention(names[back][fp8], batch, queries, heads, kv_heads, dim, causal, &point);
    add(shapes, &point);
}

/* The list says what a collective is for, not which it is: both that may be meant are measured. */
static void add_collective(Shapes *shapes, GStrv head, GStrv cells)
{
    static const struct {
        const char *word, *ops[2];
    } kinds[] = {{"gather", {"all_gather", NULL}},
                 {"dispatch", {"alltoall", NULL}},
                 {"combine", {"alltoall", NULL}},
                 {"pass", {"send_recv", NULL}},
                 {"", {"all_reduce", "reduce_scatter"}}};
    const char *kernel = cell(head, cells, "kernel");
    const double bytes = g_ascii_strtod(cell(head, cells, "bytes"), NULL);
    const int ranks = (int)g_ascii_strtoll(cell(head, cells, "groups"), NULL, 10);
    size_t kind = 0;
    while (strstr(kernel, kinds[kind].word) == NULL)
        kind++;
    for (int i = 0; i < 2 && kinds[kind].ops[i] != NULL; i++) {
        CalPoint point = {
            .kind = CAL_POINT_COLLECTIVE, .name = kinds[kind].ops[i], .bytes = bytes, .gpus = ranks};
        g_snprintf(point.id, sizeof point.id, "%s %d gpus %.0f", point.name, ranks, bytes);
        if (bytes >= 4 && ranks >= 2 && ranks <= shapes->stamp->gpus &&
            4 * bytes <= shapes->stamp->memory_bytes)
            add(shapes, &point);
    }
}

GArray *cal_sweep_points_of(const char *path, const CalStamp *stamp, const CalSweepOptions *options,
                            GError **error)
{
    g_autoptr(GString) text = orr_text_read(path, MOST_FILE, error);
    if (text == NULL)
        return NULL;
    g_auto(GStrv) lines = g_strsplit(text->str, "\n", -1);
    g_auto(GStrv) head = g_strsplit(lines[0] != NULL ? lines[0] : "", ",", -1);
    Shapes shapes = {g_array_new(FALSE, TRUE, sizeof(CalPoint)),
                     g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL), stamp, options,
                     strstr(text->str, ",cast,") != NULL};
    for (int i = 1; g_strv_contains((const char *const *)head, "kind") && lines[i] != NULL; i++) {
        g_auto(GStrv) cells = g_strsplit(lines[i], ",", -1);
        const char *kind = cell(head, cells, "kind");
        if (strcmp(kind, "gemm") == 0 && stamp->nodes == 0)
            add_product(&shapes, head, cells);
        else if (strcmp(kind, "memory") == 0 && stamp->nodes == 0)
            add_move(&shapes, head, cells);
        else if (strcmp(kind, "attention") == 0 && stamp->nodes == 0)
            add_attention(&shapes, head, cells);
        else if (strcmp(kind, "collective") == 0 && stamp->nodes == 0)
            add_collective(&shapes, head, cells);
    }
    g_hash_table_unref(shapes.ids);
    if (shapes.points->len > 0)
        return shapes.points;
    g_array_unref(shapes.points);
    orr_fail(error, ORR_ERROR_INPUT,
             "%s: no kernel to measure; give what `orrery run SCENARIO --kernels FILE` wrote", path);
    return NULL;
}
