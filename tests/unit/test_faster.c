/* tests/unit/test_faster.c - a faster part never makes a slower step: every rate of every accelerator that we ship, with
 * op orders and algorithms held fixed. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report.h"
#include "spec/load.h"
#include "spec/resolve.h"

/* Orders do not depend on times; collectives are of one rank group in the node, so that NCCL has one choice. */
static const char *const layouts[][3] = {
    {"data", "{\"zero\":1}", "{\"overlap\":[\"grad_reduce\",\"param_gather\"]}"},
    {"sharded", "{\"zero\":3}", "{\"overlap\":[\"grad_reduce\",\"param_gather\"]}"},
    {"tensor", "{\"tensor\":4,\"sequence_parallel\":true,\"zero\":0}", "{}"},
    {"pipeline", "{\"pipeline\":4,\"schedule\":\"1f1b\",\"zero\":0}", "{}"},
    {"one GPU of each", "{\"tensor\":2,\"pipeline\":2,\"schedule\":\"gpipe\",\"zero\":0}", "{}"},
};

static bool load(const char *accelerator, const char *const *layout, const char *framework, Spec *spec)
{
    g_autofree char *text = g_strdup_printf(
        "{\"model\":{\"layers\":16,\"hidden\":2048,\"heads\":16,\"vocab\":32000},\"cluster\":{"
        "\"accelerator\":\"%s\","
        "\"gpus_per_node\":8,\"scale_up_domain_gpus\":8,\"nodes\":1,\"scale_out_bytes_per_s_per_gpu\":50e9},"
        "\"training\":{\"sequence_length\":2048,\"global_batch\":64,\"micro_batch\":2,\"precision\":\"fp16\"}"
        ","
        "\"parallel\":%s,\"execution\":%s}",
        accelerator, layout[1], layout[2]);
    g_autofree char *software = g_strdup_printf("execution.framework=%s", framework);
    const char *const sets[] = {software, "execution.attention=unfused", NULL};
    g_autoptr(GError) error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), accelerator, &error);
    g_assert_no_error(error);
    const bool ok = spec_load_json(orr_json_root(doc), accelerator, sets, false, spec, NULL, &error);
    orr_json_free(doc);
    return ok;
}

static int64_t step_ps(const Spec *spec)
{
    const ReportOptions options = {0};
    OrrArena *arena = orr_arena_new();
    Report report;
    const bool ok = report_run(spec, NULL, &options, arena, &report, NULL);
    const int64_t ps = ok ? report.step_ps : 0;
    orr_arena_free(arena);
    return ps;
}

static const struct {
    const char *name;
    size_t offset;
    bool smaller; /* is faster */
} rates[] = {
    {"HBM", offsetof(Spec, cluster.accelerator.memory_bytes_per_s), false},
    {"scale-up", offsetof(Spec, cluster.scale_up_bytes_per_s), false},
    {"scale-out", offsetof(Spec, cluster.scale_out_bytes_per_s_per_gpu), false},
    {"network latency", offsetof(Spec, cluster.scale_out_latency_s), true},
    {"host", offsetof(Spec, execution.framework.host.kernel_host_s), true},
    {"gaps", offsetof(Spec, execution.framework.host.kernel_gap_s), true},
    {"collective gaps", offsetof(Spec, execution.framework.host.collective_gap_s), true},
    {"step overhead", offsetof(Spec, execution.framework.host.step_overhead_s), true},
};

static void faster(Spec *spec, size_t offset, bool smaller, double factor)
{
    double value;
    memcpy(&value, (char *)spec + offset, sizeof value);
    value *= smaller ? 1 / factor : factor;
    memcpy((char *)spec + offset, &value, sizeof value);
}

static void more_peak(Spec *spec, double factor)
{
    for (int dtype = 0; dtype < SPEC_DTYPE_COUNT; dtype++)
        spec->cluster.accelerator.peak_flops_per_s[dtype] *= factor;
}

typedef struct Count {
    int scenarios, comparisons, slower;
} Count;

static void compare(const Spec *slow, const Spec *fast, const char *what, const char *where, Count *count)
{
    const int64_t before = step_ps(slow), after = step_ps(fast);
    if (before == 0 || after == 0)
        return;
    count->comparisons++;
    if ((double)after > (double)before * (1 + 1e-9) + 1000) { /* a nanosecond of rounding */
        printf("slower by %.4f %%: %s with more of %s\n", 100 * ((double)after / (double)before - 1), where,
               what);
        count->slower++;
    }
}

static void every_rate(const Spec *spec, const char *where, Count *count)
{
    static const double factors[] = {1.1, 3};
    g_autofree Spec *fast = g_new(Spec, 1);
    for (gsize f = 0; f < G_N_ELEMENTS(factors); f++) {
        for (gsize i = 0; i < G_N_ELEMENTS(rates); i++) {
            *fast = *spec;
            faster(fast, rates[i].offset, rates[i].smaller, factors[f]);
            compare(spec, fast, rates[i].name, where, count);
        }
        *fast = *spec;
        more_peak(fast, factors[f]);
        compare(spec, fast, "peak", where, count);
    }
}

static void test_every_preset(void)
{
    static const char *const frameworks[] = {"megatron-core", "torchtitan"};
    g_autoptr(GPtrArray) names = spec_preset_names("accelerators", NULL);
    g_autofree Spec *spec = g_new(Spec, 1);
    Count count = {0};
    g_assert_nonnull(names);
    for (guint n = 0; n < names->len; n++)
        for (gsize l = 0; l < G_N_ELEMENTS(layouts); l++)
            for (gsize f = 0; f < G_N_ELEMENTS(frameworks); f++) {
                const char *name = g_ptr_array_index(names, n);
                g_autofree char *where = g_strdup_printf("%s, %s, %s", name, layouts[l][0], frameworks[f]);
                if (!load(name, layouts[l], frameworks[f], spec))
                    continue;
                count.scenarios++;
                every_rate(spec, where, &count);
            }
    printf("%d scenarios, %d comparisons, %d slower\n", count.scenarios, count.comparisons, count.slower);
    g_assert_cmpint(count.scenarios, >=, 150);
    g_assert_cmpint(count.slower, ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/faster/every-preset", test_every_preset);
    return g_test_run();
}
