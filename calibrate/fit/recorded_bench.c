/* calibrate/fit/recorded_bench.c - see recorded_bench.h. */
#include "calibrate/fit/recorded_bench.h"

#include <math.h>
#include <string.h>

#define BURST_REPEATS 100 /* of less than a second together */

/* --- CSV with a head line --- */

typedef struct Csv {
    GStrv head, cells;
} Csv;

static const char *cell(const Csv *csv, const char *name)
{
    for (int i = 0; csv->head[i] != NULL && csv->cells[i] != NULL; i++)
        if (strcmp(csv->head[i], name) == 0)
            return csv->cells[i];
    return "";
}

static double number(const Csv *csv, const char *name)
{
    return g_ascii_strtod(cell(csv, name), NULL);
}

static const char *dtype_of(const char *word)
{
    if (g_str_has_prefix(word, "torch."))
        word += strlen("torch.");
    return strcmp(word, "bfloat16") == 0 ? "bf16" : strcmp(word, "float16") == 0 ? "fp16" : word;
}

/* The names that calibrate/fit/table.c knows; others stand as they are and are told when they are skipped. */
static const char *kernel_of(const char *backend)
{
    static const struct {
        const char *word, *kernel;
    } words[] = {
        {"cudnn", "cuDNN"}, {"cudnn_fe", "cuDNN"}, {"flash_attention", "FA2"}, {"flash_attention_3", "FA3"}};
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
        if (strcmp(words[i].word, backend) == 0)
            return words[i].kernel;
    return backend;
}

static void common(const Csv *csv, OrrJsonWriter *w, const char *source)
{
    orr_jw_text(w, "gpu", cell(csv, "gpu_name"));
    orr_jw_text(w, "source", source);
    if (number(csv, "num_iterations") < BURST_REPEATS)
        orr_jw_bool(w, "burst", true);
    const int version = (int)CLAMP(number(csv, "cudnn_backend_version"), 0, 999999); /* 91901: 9.19.1 */
    char text[32];
    g_snprintf(text, sizeof text, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    if (version > 0)
        orr_jw_text(w, "cudnn", text);
}

static void attention_pass(const Csv *csv, OrrJsonWriter *w, const char *pass, double ms, int *rows)
{
    if (!(ms > 0))
        return;
    orr_jw_begin(w, NULL, '{');
    common(csv, w, "cudnn-frontend");
    orr_jw_text(w, "kernel", kernel_of(cell(csv, "backend")));
    orr_jw_text(w, "pass", pass);
    orr_jw_number(w, "batch", number(csv, "batch_size"));
    orr_jw_number(w, "seq", number(csv, "q_seqlen"));
    orr_jw_number(w, "heads", number(csv, "num_q_heads"));
    orr_jw_number(w, "kv_heads", number(csv, "num_kv_heads"));
    orr_jw_number(w, "head_dim", number(csv, "head_dim_qk"));
    orr_jw_number(w, "v_dim", number(csv, "head_dim_vo"));
    orr_jw_bool(w, "causal", strcmp(cell(csv, "attn_mask"), "no_mask") != 0);
    if (number(csv, "sliding_window_size") >= 1)
        orr_jw_number(w, "window", number(csv, "sliding_window_size"));
    orr_jw_text(w, "dtype", dtype_of(cell(csv, "data_type")));
    orr_jw_number(w, "time_us", 1e3 * ms);
    orr_jw_end(w, '}');
    (*rows)++;
}

/* No row: a run that failed, keys of another length, a backward pass that forgoes atomics. */
static void attention_row(const Csv *csv, OrrJsonWriter *w, int *rows)
{
    if (strcmp(cell(csv, "success"), "True") != 0 || number(csv, "q_seqlen") != number(csv, "kv_seqlen") ||
        strcmp(cell(csv, "deterministic_bwd"), "True") == 0)
        return;
    const char *pass = cell(csv, "profile_pass");
    if (strcmp(pass, "both") == 0) {
        attention_pass(csv, w, "fwd", number(csv, "fwd_time_ms"), rows);
        attention_pass(csv, w, "bwd", number(csv, "bwd_time_ms"), rows);
    } else {
        attention_pass(csv, w, pass, number(csv, "time_ms"), rows);
    }
}

/* PyTorch's benchmarks/transformer/sdpa.py: microseconds, and which of its kernels where that was chosen. What it chose by
 * itself is not said: such rows are counted as of a kernel that is not modelled. */
static void sdpa_row(const Csv *csv, OrrJsonWriter *w, int *rows)
{
    static const char *const passes[][2] = {{"fwd", "forward_time"}, {"bwd", "backward_time"}};
    const char *backend = cell(csv, "backend");
    for (size_t i = 0; i < G_N_ELEMENTS(passes) && number(csv, "q_seq_len") == number(csv, "kv_seq_len");
         i++) {
        const double us = number(csv, passes[i][1]);
        if (!(us > 0))
            continue;
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "source", "pytorch sdpa benchmark");
        orr_jw_bool(w, "burst", true);
        orr_jw_text(w, "kernel",
                    strstr(backend, "CUDNN") != NULL             ? "cuDNN"
                    : strstr(backend, "FLASH_ATTENTION") != NULL ? "FA2"
                                                                 : "torch SDPA");
        orr_jw_text(w, "pass", passes[i][0]);
        orr_jw_number(w, "batch", number(csv, "batch_size"));
        orr_jw_number(w, "seq", number(csv, "q_seq_len"));
        orr_jw_number(w, "heads", number(csv, "num_heads"));
        orr_jw_number(w, "head_dim", number(csv, "head_dim"));
        orr_jw_bool(w, "causal", strcmp(cell(csv, "is_causal"), "True") == 0);
        orr_jw_text(w, "dtype", dtype_of(cell(csv, "dtype")));
        orr_jw_number(w, "time_us", us);
        orr_jw_end(w, '}');
        (*rows)++;
    }
}

/* Milliseconds. Times are printed to the microsecond, bandwidths to 0.1 GB/s: the bytes that the benchmark counts (tensors,
 * weights and their gradients, statistics in fp32) over the bandwidth, where both agree. */
static double norm_ms(const Csv *csv, int pass)
{
    static const char *const times[] = {"fwd_time_ms", "bwd_time_ms"}, *const rates[] = {"fwd_gbps",
                                                                                         "bwd_gbps"};
    const double tokens = number(csv, "N"), width = number(csv, "C"), ms = number(csv, times[pass]),
                 gb_per_s = number(csv, rates[pass]), tensors = pass == 0 ? 2 : 3;
    const bool centred = strcmp(cell(csv, "norm_type"), "layer_norm") == 0,
               biased = strcmp(cell(csv, "has_bias"), "True") == 0;
    const double vectors = pass == 0 ? 1 + (centred && biased) : 2 + (centred || biased),
                 bytes = 2 * (tensors * tokens * width + vectors * width) + 4 * tokens * (centred ? 2 : 1),
                 exact_ms = gb_per_s > 0 ? bytes / gb_per_s / 1e6 : 0;
    return fabs(exact_ms - ms) <= 0.0006 ? exact_ms : ms;
}

/* Bytes: input and output forward; input, output's gradient and input's gradient backward. */
static void norm_row(const Csv *csv, OrrJsonWriter *w, int *rows)
{
    if (strcmp(cell(csv, "success"), "True") != 0)
        return;
    for (int pass = 0; pass < 2; pass++) {
        const double ms = norm_ms(csv, pass),
                     bytes = (pass == 0 ? 4 : 6) * number(csv, "N") * number(csv, "C");
        g_autofree char *kernel = g_strconcat(cell(csv, "norm_type"), pass == 0 ? "" : "_backward", NULL);
        g_autofree char *source = g_strconcat("cudnn-frontend ", cell(csv, "backend"), NULL);
        if (!(ms > 0))
            continue;
        orr_jw_begin(w, NULL, '{');
        common(csv, w, source);
        orr_jw_text(w, "kernel", kernel);
        orr_jw_number(w, "rows", number(csv, "N"));
        orr_jw_number(w, "cols", number(csv, "C"));
        orr_jw_number(w, "bytes", bytes);
        orr_jw_number(w, "time_us", 1e3 * ms);
        orr_jw_end(w, '}');
        (*rows)++;
    }
}

static int csv_rows(GStrv lines, const char *section, void (*row)(const Csv *, OrrJsonWriter *, int *),
                    OrrJsonWriter *w)
{
    g_auto(GStrv) head = g_strsplit(g_strstrip(lines[0]), ",", -1);
    int rows = 0;
    orr_jw_begin(w, section, '[');
    for (int i = 1; lines[i] != NULL; i++) {
        g_auto(GStrv) cells = g_strsplit(g_strstrip(lines[i]), ",", -1);
        const Csv csv = {head, cells};
        if (g_strv_length(cells) == g_strv_length(head))
            row(&csv, w, &rows);
    }
    orr_jw_end(w, ']');
    return rows;
}

/* --- lines of text --- */

/* The number behind `key` ("headdim="); 0: it is not there. */
static double after(const char *line, const char *key)
{
    const char *at = strstr(line, key);
    return at != NULL ? g_ascii_strtod(at + strlen(key), NULL) : 0;
}

/* The heads fill a width of 2048, as that benchmark has it. */
static void flash_pass(const char *kernel, const char *head, const char *line, const char *key,
                       OrrJsonWriter *w, int *rows)
{
    const double tflops = after(line, key), dim = after(head, "headdim=");
    if (!(tflops > 0 && dim >= 1))
        return;
    orr_jw_begin(w, NULL, '{');
    orr_jw_text(w, "source", "flash-attention benchmark");
    orr_jw_bool(w, "burst", true);
    orr_jw_text(w, "kernel", kernel);
    orr_jw_text(w, "pass", strstr(key, "bwd") != NULL ? "bwd" : "fwd");
    orr_jw_number(w, "batch", after(head, "batch_size="));
    orr_jw_number(w, "seq", after(head, "seqlen="));
    orr_jw_number(w, "heads", 2048 / dim);
    orr_jw_number(w, "head_dim", dim);
    orr_jw_bool(w, "causal", strstr(head, "causal=True") != NULL);
    orr_jw_text(w, "dtype", "bf16");
    orr_jw_number(w, "tflops", tflops);
    orr_jw_end(w, '}');
    (*rows)++;
}

static int flash_rows(GStrv lines, OrrJsonWriter *w)
{
    const char *head = "";
    int rows = 0;
    orr_jw_begin(w, "attention_measurements", '[');
    for (int i = 0; lines[i] != NULL; i++) {
        const char *kernel = g_str_has_prefix(lines[i], "Flash3")   ? "FA3"
                             : g_str_has_prefix(lines[i], "Flash2") ? "FA2"
                             : g_str_has_prefix(lines[i], "cuDNN")  ? "cuDNN"
                                                                    : NULL;
        if (g_str_has_prefix(lines[i], "### causal="))
            head = lines[i];
        if (kernel == NULL)
            continue;
        flash_pass(kernel, head, lines[i], " fwd: ", w, &rows);
        flash_pass(kernel, head, lines[i], ", bwd: ", w, &rows);
    }
    orr_jw_end(w, ']');
    return rows;
}

/* What stands behind `key` up to one of `ends`: a GPU's name in a header; "" where there is none. */
static char *word_after(const char *text, const char *key, const char *ends)
{
    const char *at = strstr(text, key);
    if (at == NULL)
        return g_strdup("");
    at += strlen(key);
    return g_strstrip(g_strndup(at, strcspn(at, ends)));
}

/* The best of many shapes: their own kind of row, from which a peak alone may be taken. The GPU is in the line of its properties,
 * "_CudaDeviceProperties(name='NVIDIA H200', ...". */
static int mamf_rows(GStrv lines, const char *text, OrrJsonWriter *w)
{
    const char *dtype = strstr(text, "float8") != NULL          ? "fp8"
                        : strstr(text, "torch.float16") != NULL ? "fp16"
                                                                : "bf16";
    g_autofree char *gpu = word_after(text, "DeviceProperties(name='", "'\n");
    int rows = 0;
    orr_jw_begin(w, "gemm_measurements", '[');
    for (int i = 0; lines[i] != NULL; i++) {
        const char *at = strstr(lines[i], "TFLOPS @ "), *begin = at;
        while (begin != NULL && begin > lines[i] &&
               (begin[-1] == ' ' || begin[-1] == '.' || g_ascii_isdigit(begin[-1])))
            begin--;
        if (at == NULL)
            continue;
        char *end = (char *)at + strlen("TFLOPS @ ");
        double size[3] = {0};
        for (int d = 0; d < 3; d++)
            size[d] = g_ascii_strtod(end, &end), end += *end == 'x';
        orr_jw_begin(w, NULL, '{');
        if (gpu[0] != '\0')
            orr_jw_text(w, "gpu", gpu);
        orr_jw_text(w, "source", "mamf-finder MAMF");
        orr_jw_number(w, "m", size[0]);
        orr_jw_number(w, "n", size[1]);
        orr_jw_number(w, "k", size[2]);
        orr_jw_text(w, "dtype", dtype);
        orr_jw_number(w, "tflops", g_ascii_strtod(begin, NULL));
        orr_jw_end(w, '}');
        rows++;
    }
    orr_jw_end(w, ']');
    return rows;
}

/* nvbandwidth's tests that are copies of a sweep: memory of the host that is pinned, by the copy engine, a GPU at a time; one way while
 * the other runs. */
static const struct {
    const char *test, *op;
} copies[] = {{"host_to_device_memcpy_ce", "h2d_pinned"},
              {"device_to_host_memcpy_ce", "d2h_pinned"},
              {"host_to_device_bidirectional_memcpy_ce", "both_pinned"},
              {"device_to_host_bidirectional_memcpy_ce", "both_pinned"}};
#define NVBANDWIDTH_BYTES                                                                                    \
    67108864 /* its buffer by default, larger in later versions; the output does not say */

/* SUM of one test over the cells of its matrix. */
static void copy_row(OrrJsonWriter *w, const char *gpu, const char *test, int cells, double gbps)
{
    const char *op = test;
    for (size_t i = 0; i < G_N_ELEMENTS(copies); i++)
        if (strcmp(test, copies[i].test) == 0)
            op = copies[i].op;
    orr_jw_begin(w, NULL, '{');
    if (gpu[0] != '\0')
        orr_jw_text(w, "gpu", gpu);
    orr_jw_text(w, "source", "nvbandwidth");
    orr_jw_text(w, "op", op);
    orr_jw_int(w, "pairs", cells);
    if (op != test)
        orr_jw_int(w, "bytes", NVBANDWIDTH_BYTES);
    orr_jw_number(w, "gbps", gbps);
    orr_jw_end(w, '}');
}

/* A matrix has a line a row, "0  55.1  55.2", under a line of columns; its SUM closes it. "Device 0: NVIDIA H200 (00000000:18:00)" stands
 * above all. */
static int nvbandwidth_rows(GStrv lines, const char *text, OrrJsonWriter *w)
{
    g_autofree char *gpu = word_after(text, "Device 0:", "(\n");
    int cells = 0, rows = 0;
    orr_jw_begin(w, "copy_measurements", '[');
    for (int i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) words = g_strsplit_set(g_strstrip(lines[i]), " \t", -1);
        GPtrArray *said = g_ptr_array_new();
        for (int k = 0; words[k] != NULL; k++)
            if (words[k][0] != '\0')
                g_ptr_array_add(said, words[k]);
        const char *first = said->len > 0 ? g_ptr_array_index(said, 0) : "";
        for (guint k = 1; k < said->len && g_ascii_isdigit(first[0]); k++)
            cells += strchr(g_ptr_array_index(said, k), '.') != NULL;
        if (said->len == 3 && strcmp(first, "SUM") == 0) {
            const double sum = g_ascii_strtod(g_ptr_array_index(said, 2), NULL);
            if (isfinite(sum) && sum > 0) {
                copy_row(w, gpu, g_ptr_array_index(said, 1), MAX(cells, 1), sum / MAX(cells, 1));
                rows++;
            }
            cells = 0;
        }
        g_ptr_array_unref(said);
    }
    orr_jw_end(w, ']');
    return rows;
}

int cal_bench_text(const char *text, const char *name, OrrJsonWriter *w, GError **error)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    const char *head = lines[0] != NULL ? lines[0] : "";
    int rows;
    if (strstr(head, "q_seqlen") != NULL && strstr(head, "num_q_heads") != NULL)
        rows = csv_rows(lines, "attention_measurements", attention_row, w);
    else if (strstr(head, "q_seq_len") != NULL && strstr(head, "forward_time") != NULL)
        rows = csv_rows(lines, "attention_measurements", sdpa_row, w);
    else if (strstr(head, "norm_type") != NULL && strstr(head, "fwd_time_ms") != NULL)
        rows = csv_rows(lines, "memory_bound_measurements", norm_row, w);
    else if (strstr(text, "### causal=") != NULL)
        rows = flash_rows(lines, w);
    else if (strstr(text, "TFLOPS @ ") != NULL)
        rows = mamf_rows(lines, text, w);
    else if (strstr(text, "SUM ") != NULL && strstr(text, "memcpy") != NULL)
        rows = nvbandwidth_rows(lines, text, w);
    else
        return 0;
    if (rows > 0)
        return 1;
    orr_fail(error, ORR_ERROR_INPUT, "%s: a benchmark's output that is known, without a row that can be used",
             name);
    return -1;
}
