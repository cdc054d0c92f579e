/* tests/unit/campaign/test_campaign_mixed.c - elastic jobs on several kinds of nodes: kinds that are alike live the lives of the
 * plain cluster; which layouts there are on fewer nodes, by hand; what is lost costs what it can do. */
#include <math.h>
#include <string.h>

#include "campaign/campaign.h"
#include "spec/load.h"

#define TEXT                                                                                                 \
    "{\"model\":{\"name\":\"m\",\"layers\":8,\"hidden\":1024,\"heads\":16,\"kv_heads\":16,"                  \
    "\"ffn_hidden\":4096,\"vocab\":32000},\"cluster\":%s,\"parallel\":%s,"                                   \
    "\"training\":{\"sequence_length\":1024,\"global_batch\":24,\"micro_batch\":1,\"recompute\":\"none\","   \
    "\"tokens\":1e11},\"execution\":{\"framework\":\"megatron-core\",\"overlap\":[]},\"storage\":"           \
    "\"tectonic\","                                                                                          \
    "\"faults\":{\"gpu_mtbf_s\":4e6,\"node_mtbf_s\":1e6,\"rack_mtbf_s\":3e6,\"rack_nodes\":2,"               \
    "\"repair_s\":100000,\"detection_s\":60,\"elastic\":true%s}}"

typedef struct Case {
    Spec spec;
    OrrArena *arena;
    Report report;
    Campaign campaign;
} Case;

static Case *live(const char *cluster, const char *parallel, const char *faults)
{
    const ReportOptions options = {0};
    const CampaignOptions lives = {.replicas = 200, .seed = 3, .ideal_days = 20, .curve = true};
    GError *error = NULL;
    Case *c = g_new0(Case, 1);
    c->arena = orr_arena_new();
    g_autofree char *text = g_strdup_printf(TEXT, cluster, parallel, faults);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "mixed", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "mixed", NULL, false, &c->spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    report_run(&c->spec, NULL, &options, c->arena, &c->report, &error);
    g_assert_no_error(error);
    campaign_run(&c->report, "mixed", &lives, &c->campaign, &error);
    g_assert_no_error(error);
    return c;
}

static void case_free(Case *c)
{
    orr_arena_free(c->arena);
    g_free(c);
}

static const char *const shapes[] = {
    "{\"tensor\":8,\"pipeline\":1,\"data\":4,\"zero\":1}",
    "{\"tensor\":8,\"pipeline\":2,\"data\":2,\"order\":\"tp-cp-ep-pp-dp\"}",
    "{\"tensor\":8,\"pipeline\":2,\"data\":2}",
    "{\"tensor\":4,\"pipeline\":2,\"data\":4,\"schedule\":\"1f1b\"}",
};

/* Which node fails is drawn apart, so that kinds which are alike change nothing: spare nodes, racks and other degrees too. */
static void test_alike(void)
{
    static const char *const faults[] = {"", ",\"spares\":1", ",\"replan\":true"};
    static const char *const clusters[] = {
        "{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":1},{\"preset\":\"dgx-h100\",\"nodes\":3}]}",
        "{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":2},{\"preset\":\"dgx-h100\",\"nodes\":1},"
        "{\"preset\":\"dgx-h100\",\"nodes\":1}]}"};
    for (gsize i = 0; i < G_N_ELEMENTS(shapes); i++)
        for (gsize k = 0; k < G_N_ELEMENTS(faults); k++)
            for (gsize g = 0; g < G_N_ELEMENTS(clusters); g++) {
                Case *plain = live("{\"preset\":\"dgx-h100\",\"nodes\":4}", shapes[i], faults[k]);
                Case *groups = live(clusters[g], shapes[i], faults[k]);
                const Campaign *a = &plain->campaign, *b = &groups->campaign;
                g_assert_cmpint(b->run.kinds, ==, g == 0 ? 2 : 3);
                g_assert_cmpint(a->run.level_count, >, 0);
                g_assert_true(memcmp(&a->days, &b->days, sizeof a->days) == 0);
                g_assert_true(a->degraded_s == b->degraded_s && a->waiting_s == b->waiting_s &&
                              a->lost_work_s == b->lost_work_s && a->restart_s == b->restart_s);
                g_assert_cmpint(a->spares_count, ==, b->spares_count);
                for (int s = 0; s < a->spares_count; s++)
                    g_assert_true(a->spares_curve[s].days == b->spares_curve[s].days);
                case_free(plain);
                case_free(groups);
            }
}

/* The pace without these nodes of the two kinds, of the layouts that were kept. */
static double rate_of(const CampaignRun *run, int first, int second)
{
    double rate = 0;
    for (int i = 0; i < run->level_count; i++)
        if (run->levels[i].missing[0] >= first && run->levels[i].missing[1] >= second)
            rate = fmax(rate, run->levels[i].rate);
    return rate;
}

#define MIXED                                                                                                \
    "{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":2},{\"preset\":\"dgx-a100-80gb\",\"nodes\":2}]}"

static double step_of(const char *cluster)
{
    Case *c = live(cluster, "{\"tensor\":8,\"pipeline\":1,\"data\":2,\"zero\":1}", ",\"spares\":1");
    const double step_ps = (double)c->report.step_ps;
    case_free(c);
    return step_ps;
}

/* Four replicas of a node each, two of them slow, all at the slow ones' pace: 24 micro-batches by four, three, two. Without the
 * nodes of one kind the job is that of a plain cluster of the other. */
static void test_by_hand(void)
{
    Case *c = live(MIXED, shapes[0], "");
    const CampaignRun *run = &c->campaign.run;
    const double all = (double)c->report.step_ps;
    g_assert_cmpint(run->kinds, ==, 2);
    g_assert_cmpfloat(rate_of(run, 2, 2), ==, 0); /* nobody is left */
    const double slow = rate_of(run, 2, 0), fast = rate_of(run, 0, 2);
    g_assert_true(slow == all / step_of("{\"preset\":\"dgx-a100-80gb\",\"nodes\":2}"));
    g_assert_true(fast == all / step_of("{\"preset\":\"dgx-h100\",\"nodes\":2}"));
    g_assert_cmpfloat(fast, >, 1.3 * slow);
    g_assert_cmpfloat(rate_of(run, 1, 1), <, fast);
    g_assert_cmpfloat(rate_of(run, 1, 0), >, .7); /* eight micro-batches, where there were six */
    g_assert_cmpfloat(rate_of(run, 1, 0), <, .8);
    const Campaign *lived = &c->campaign;
    const double parts = lived->checkpoint_s + lived->lost_work_s + lived->restart_s + lived->loading_s +
                         lived->waiting_s + lived->degraded_s + lived->work_s;
    g_assert_cmpfloat(fabs(parts / 86400 - lived->days.mean), <, 1e-9 * lived->days.mean);
    case_free(c);
}

/* Micro-batches that were dealt out by speed stay so: without a fast replica the others take its share by their kinds. */
static void test_deal(void)
{
    Case *c = live(
        MIXED, "{\"tensor\":8,\"pipeline\":1,\"data\":4,\"zero\":1,\"replica_microbatches\":[8,8,4,4]}", "");
    const CampaignRun *run = &c->campaign.run;
    const double three = rate_of(run, 1, 0), even = 2. / 3;
    g_assert_cmpfloat(three, >,
                      even * .95); /* 8 of 16 shares remain of 12: 12 micro-batches where there were 8 */
    g_assert_cmpfloat(three, <, even * 1.15);
    g_assert_cmpfloat(rate_of(run, 0, 1), >, three);
    g_assert_cmpfloat(rate_of(run, 0, 2), >, rate_of(run, 2, 0) * 1.3);
    case_free(c);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/campaign-mixed/alike", test_alike);
    g_test_add_func("/campaign-mixed/by-hand", test_by_hand);
    g_test_add_func("/campaign-mixed/deal", test_deal);
    return g_test_run();
}
