/* cli/sweep_page.c - see sweep_page.h. */
#include "cli/sweep_page.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "calibrate/fit/recorded.h"
#include "calibrate/fit/table.h"
#include "cli/output.h"
#include "html/sweep.h"
#include "spec/load.h"

typedef struct Page {
    const char *gpu;
    SpecAccelerator accelerator; /* zeros: the GPU is no preset */
    GArray *kernels, *moves, *buses, *facts;
} Page;

static void fact_clear(gpointer data)
{
    HtmlFact *fact = data;
    g_free(fact->label);
    g_free(fact->value);
}

static void page_init(Page *page)
{
    page->kernels = g_array_new(FALSE, TRUE, sizeof(HtmlSweepKernel));
    page->moves = g_array_new(FALSE, TRUE, sizeof(HtmlSweepMove));
    page->buses = g_array_new(FALSE, TRUE, sizeof(HtmlSweepBus));
    page->facts = g_array_new(FALSE, TRUE, sizeof(HtmlFact));
    g_array_set_clear_func(page->facts, fact_clear);
}

static void page_clear(Page *page)
{
    g_array_unref(page->kernels);
    g_array_unref(page->moves);
    g_array_unref(page->buses);
    g_array_unref(page->facts);
}

/* Each operand once; an output that is added to is read too. */
static double product_bytes(const CostGemm *gemm)
{
    const double in = spec_dtype_bytes(gemm->dtype),
                 wide = gemm->dtype == SPEC_FP32 || gemm->dtype == SPEC_TF32;
    const double out = gemm->accumulate_fp32 ? 8 : wide ? 4 : gemm->accumulate ? 4 : 2;
    return gemm->groups * (in * gemm->k * (gemm->m + gemm->n) + out * gemm->m * gemm->n);
}

static void add_product(Page *page, const CalRow *row)
{
    const CostGemm *gemm = &row->gemm;
    g_autofree char *group = g_strdup_printf("%s %s", gemm->grouped ? "experts" : "products",
                                             spec_word(&spec_words_dtype, (int)gemm->dtype));
    HtmlSweepKernel kernel = {.group = g_intern_string(group),
                              .flops = 2 * gemm->m * gemm->n * gemm->k * gemm->groups,
                              .bytes = product_bytes(gemm),
                              .seconds = row->measured_s,
                              .peak_flops_per_s = page->accelerator.peak_flops_per_s[gemm->dtype]};
    g_snprintf(kernel.what, sizeof kernel.what, "%.0f x %.0f x %.0f x %.0f", gemm->groups, gemm->m, gemm->n,
               gemm->k);
    if (gemm->dtype == SPEC_BF16 && gemm->groups < 2 && gemm->layout == COST_LAYOUT_FORWARD) {
        kernel.m = gemm->m;
        kernel.width = sqrt(gemm->n * gemm->k);
    }
    g_array_append_val(page->kernels, kernel);
}

static void add_attention(Page *page, const CalRow *row)
{
    const CostAttention *a = &row->attention;
    g_autofree char *group = g_strdup_printf("attention %s", spec_word(&spec_words_dtype, (int)a->dtype));
    HtmlSweepKernel kernel = {.group = g_intern_string(group),
                              .flops = cost_attention_executed_flops(a),
                              .bytes = cost_attention_read_bytes(a) + cost_attention_written_bytes(a),
                              .seconds = row->measured_s,
                              .peak_flops_per_s = page->accelerator.peak_flops_per_s[a->dtype]};
    g_snprintf(kernel.what, sizeof kernel.what, "%.0f x %.0f tokens, %.0f heads of %.0f%s", a->batch,
               a->q_tokens, a->heads, a->qk_head_dim, a->backward ? ", backward" : "");
    g_array_append_val(page->kernels, kernel);
}

static void add_move(Page *page, const OrrJson *row)
{
    const HtmlSweepMove move = {g_intern_string(orr_json_text_of(row, "kernel", "")),
                                orr_json_number_of(row, "bytes", 0),
                                1e-6 * orr_json_number_of(row, "time_us", 0)};
    if (move.kernel[0] != '\0' && move.bytes > 0 && move.seconds > 0)
        g_array_append_val(page->moves, move);
}

static void add_bus(Page *page, const OrrJson *row)
{
    const HtmlSweepBus bus = {g_intern_string(orr_json_text_of(row, "op", "")),
                              (int)CLAMP(orr_json_number_of(row, "gpus", 0), 0, 1e9),
                              orr_json_number_of(row, "bytes", 0),
                              1e9 * orr_json_number_of(row, "busbw_gbps", 0)};
    if (bus.op[0] != '\0' && bus.ranks > 1 && bus.bytes > 0 && bus.bus_bytes_per_s > 0)
        g_array_append_val(page->buses, bus);
}

static void each_row(Page *page, const OrrJson *root, const char *section,
                     void (*add)(Page *, const OrrJson *))
{
    const OrrJson *list = orr_json_member(root, section);
    for (const OrrJson *row = list != NULL && orr_json_type(list) == ORR_JSON_LIST ? orr_json_first(list)
                                                                                   : NULL;
         row != NULL; row = orr_json_next(row))
        if (orr_json_type(row) == ORR_JSON_OBJECT && strcmp(orr_json_text_of(row, "gpu", ""), page->gpu) == 0)
            add(page, row);
}

/* Of the stamp, what people ask first. */
static void add_facts(Page *page, const OrrJson *stamp)
{
    static const char *const keys[] = {"device", "date",     "gpus",         "driver",
                                       "cuda",   "cublaslt", "cudnn",        "transformer_engine",
                                       "nccl",   "cpu",      "power_limit_w"};
    for (size_t i = 0; stamp != NULL && orr_json_type(stamp) == ORR_JSON_OBJECT && i < G_N_ELEMENTS(keys);
         i++) {
        const OrrJson *value = orr_json_member(stamp, keys[i]);
        if (value == NULL)
            continue;
        g_autofree char *dump = orr_json_dump(value);
        const HtmlFact fact = {.label = g_strdup(keys[i]),
                               .value = orr_json_type(value) == ORR_JSON_TEXT ? g_strdup(orr_json_text(value))
                                                                              : g_steal_pointer(&dump)};
        g_array_append_val(page->facts, fact);
    }
}

/* The GPU of the first row that has one. */
static const char *first_gpu(const OrrJson *root)
{
    for (const OrrJson *list = orr_json_first(root); list != NULL; list = orr_json_next(list))
        for (const OrrJson *row = orr_json_type(list) == ORR_JSON_LIST ? orr_json_first(list) : NULL;
             row != NULL; row = orr_json_next(row))
            if (orr_json_type(row) == ORR_JSON_OBJECT && orr_json_text_of(row, "gpu", NULL) != NULL)
                return orr_json_text_of(row, "gpu", NULL);
    return "";
}

static void fill(Page *page, const OrrJson *root)
{
    g_autoptr(GArray) rows = cal_table_rows(root, NULL);
    if (strchr(page->gpu, '/') != NULL || !spec_load_accelerator(page->gpu, &page->accelerator, NULL))
        memset(&page->accelerator, 0, sizeof page->accelerator);
    for (guint i = 0; i < rows->len; i++) {
        const CalRow *row = &g_array_index(rows, CalRow, i);
        if (strcmp(row->accelerator, page->gpu) != 0)
            continue;
        if (row->kind == CAL_GEMM)
            add_product(page, row);
        else if (row->kind == CAL_ATTENTION)
            add_attention(page, row);
    }
    each_row(page, root, "hbm_stream", add_move);
    each_row(page, root, "memory_bound_measurements", add_move);
    each_row(page, root, "collective_measurements", add_bus);
    add_facts(page, orr_json_member(root, "stamp"));
}

bool cli_sweep_page(const char *table, const char *accelerator, const char *log, const char *path,
                    GError **error)
{
    OrrJsonDoc *doc = NULL;
    Page page = {0};
    if (!cal_recorded_open(table, accelerator, &doc, NULL, error))
        return false;
    page.gpu = accelerator != NULL ? accelerator : first_gpu(orr_json_root(doc));
    page_init(&page);
    fill(&page, orr_json_root(doc));
    g_autofree char *command = g_strdup_printf("orrery calibrate fit %s --page %s", table, path);
    const HtmlSweep sweep = {page.gpu,     command,    page.accelerator.memory_bytes_per_s,
                             page.kernels, page.moves, page.buses,
                             page.facts,   log};
    g_autoptr(GString) out = g_string_new(NULL);
    html_sweep_write(&sweep, out);
    const bool ok = cli_output_write(path, out, error);
    page_clear(&page);
    orr_json_free(doc);
    return ok;
}
