/* tests/unit/campaign/test_campaign_scenarios.c - campaigns of whole scenarios: checkpoints by recipe, people, work that
 * is done again, fewer nodes, losses that diverge, a crash by hand, what is refused. */
#include <math.h>
#include <string.h>

#include "campaign/campaign.h"
#include "campaign/effective.h"
#include "spec/load.h"

#define LLAMA_MTBF_S (54 * 86400.0 / 419)

static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        g_error("%.10g is not within %g of %.10g", value, tolerance, expected);
}

typedef struct Case {
    Spec spec;
    SpecSource source;
    OrrArena *arena;
    Report report;
} Case;

static Case *load(const char *example, const char *const *sets)
{
    GError *error = NULL;
    Case *c = g_new0(Case, 1);
    const ReportOptions options = {0};
    c->arena = orr_arena_new();
    g_autofree char *path = g_build_filename(ORRERY_SOURCE_SCENARIOS, "examples", example, NULL);
    spec_load_file(path, sets, false, &c->spec, &c->source, &error);
    g_assert_no_error(error);
    report_run(&c->spec, &c->source, &options, c->arena, &c->report, &error);
    g_assert_no_error(error);
    return c;
}

static void case_free(Case *c)
{
    orr_arena_free(c->arena);
    spec_source_clear(&c->source);
    g_free(c);
}

static void test_checkpoint_bytes(void)
{
    Case *c = load("campaign-llama3-405b.json", NULL);
    assert_near(campaign_checkpoint_bytes(&c->spec, 70e9), 980e9, 1);
    assert_near(campaign_checkpoint_bytes(&c->spec, 405e9), 5.67e12, 1);
    assert_near(campaign_checkpoint_bytes(&c->spec, c->report.parameters), 5.67e12, .01 * 5.67e12);
    assert_near(campaign_storage_s(980e9, c->spec.storage.write_bytes_per_s, &c->spec.storage, 2048), .49,
                1e-9);
    const SpecStorage disks = {.shared_by = SPEC_SHARED_BY_NODE, .node_bytes_per_s = 10};
    assert_near(campaign_storage_s(1000, 20, &disks, 5), 20, 1e-9); /* 5 nodes, each held to 10 */
    assert_near(campaign_mtbf_s(&c->spec), 3.093 * 3600, .001 * 3600);
    case_free(c);
}

static void test_scenario(void)
{
    GError *error = NULL;
    Campaign campaign;
    const CampaignOptions options = {.replicas = 500, .seed = 1};
    Case *c = load("campaign-llama3-405b.json", NULL);
    campaign_run(&c->report, "x", &options, &campaign, &error);
    g_assert_no_error(error);
    assert_near(campaign.days.mean * 86400, campaign.exact_s, 4 * 86400 * campaign.days_error);
    g_assert_cmpfloat(campaign.days.p10, <, campaign.days.p50);
    g_assert_cmpfloat(campaign.days.p50, <, campaign.days.p90);
    assert_near(campaign.interruptions.mean, campaign.days.mean * 86400 / LLAMA_MTBF_S, 5);
    assert_near(campaign.causes[0].per_replica / campaign.interruptions.mean, 196 / 419., 1e-5);
    case_free(c);
    c = load("llama3-405b-16k.json", NULL); /* nothing fails: the step's own days, to the last bit */
    campaign_run(&c->report, "x", &options, &campaign, &error);
    g_assert_no_error(error);
    g_assert_cmpfloat(campaign.days.mean, ==, campaign.ideal_s / 86400);
    assert_near(campaign.days.p90, c->report.days, 0);
    g_assert_cmpfloat(campaign.goodput.p10, ==, 1);
    case_free(c);
}

/* Failures that wait for a person: the mean is that of failures times their share; a share of none changes no bit, and twice the
 * wait would be told apart. */
static void test_manual(void)
{
    static const char *const sets[2][3] = {{"faults.manual_frac=0.1", "faults.response_s=14400", NULL},
                                           {"faults.manual_frac=0", "faults.response_s=14400", NULL}};
    const CampaignOptions options = {.replicas = 2000, .seed = 5};
    Campaign plain, campaigns[2];
    GError *error = NULL;
    Case *c = load("campaign-llama3-405b.json", NULL);
    campaign_run(&c->report, "x", &options, &plain, &error);
    g_assert_no_error(error);
    case_free(c);
    for (int i = 0; i < 2; i++) {
        c = load("campaign-llama3-405b.json", sets[i]);
        campaign_run(&c->report, "x", &options, &campaigns[i], &error);
        g_assert_no_error(error);
        case_free(c);
    }
    g_assert_cmpfloat(campaigns[1].days.mean, ==, plain.days.mean);
    g_assert_cmpfloat(campaigns[1].exact_s, ==, plain.exact_s);
    const Campaign *with = &campaigns[0];
    const double waits_s = with->means.interruptions * .1 * 14400;
    assert_near(with->exact_s - plain.exact_s, waits_s, 1e-6 * waits_s);
    g_assert_cmpfloat(with->best_interval_s, ==,
                      plain.best_interval_s); /* its factor does not depend on it */
    assert_near(with->days.mean * 86400, with->exact_s, 4 * 86400 * with->days_error);
    g_assert_cmpfloat(fabs(with->days.mean * 86400 - with->exact_s - waits_s), >,
                      20 * 86400 * with->days_error);
    assert_near(with->waiting_s, waits_s, .05 * waits_s);
}

/* Every second wait is one more: twice the mean, by formula and by replicas. */
static void test_repeat(void)
{
    static const char *const sets[] = {"faults.manual_frac=0.1", "faults.response_s=7200",
                                       "faults.repeat_frac=0.5", NULL};
    const CampaignOptions options = {.replicas = 2000, .seed = 5};
    Campaign campaign;
    GError *error = NULL;
    Case *c = load("campaign-llama3-405b.json", sets);
    campaign_run(&c->report, "x", &options, &campaign, &error);
    g_assert_no_error(error);
    case_free(c);
    const double waits_s = campaign.means.interruptions * .1 * 14400;
    assert_near(campaign.means.waiting_s, waits_s, 1e-6 * waits_s);
    assert_near(campaign.days.mean * 86400, campaign.exact_s, 4 * 86400 * campaign.days_error);
    assert_near(campaign.waiting_s, waits_s, .05 * waits_s);
}

/* With other degrees the job on fewer nodes is at least as fast as with its own, at every number of nodes that are away; two
 * replicas of a model that would leave half of the nodes idle use three quarters of them. */
static void test_replan(void)
{
    static const char *const own[] = {"model=llama3-8b",           "cluster.nodes=8",
                                      "parallel.tensor=8",         "parallel.pipeline=4",
                                      "parallel.data=2",           "training.global_batch=48",
                                      "parallel.virtual_stages=1", "parallel.schedule=1f1b",
                                      "faults.elastic=true",       NULL};
    static const char *const other[] = {"model=llama3-8b",
                                        "cluster.nodes=8",
                                        "parallel.tensor=8",
                                        "parallel.pipeline=4",
                                        "parallel.data=2",
                                        "training.global_batch=48",
                                        "parallel.virtual_stages=1",
                                        "parallel.schedule=1f1b",
                                        "faults.elastic=true",
                                        "faults.replan=true",
                                        NULL};
    const CampaignOptions options = {.replicas = 50, .seed = 5, .ideal_days = 20};
    Campaign campaigns[2];
    GError *error = NULL;
    for (int i = 0; i < 2; i++) {
        Case *c = load("campaign-llama3-405b.json", i == 0 ? own : other);
        campaign_run(&c->report, "x", &options, &campaigns[i], &error);
        g_assert_no_error(error);
        case_free(c);
    }
    const CampaignRun *kept = &campaigns[0].run, *planned = &campaigns[1].run;
    g_assert_cmpint(kept->level_count, ==, 1);
    g_assert_cmpint(kept->levels[0].missing[0], ==, 4);
    g_assert_cmpint(planned->level_count, >=, 2);
    g_assert_cmpint(planned->levels[0].missing[0], <, 4);
    for (int i = 0; i < planned->level_count; i++) {
        const CampaignLevel *level = &planned->levels[i];
        if (level->missing[0] <= 4)
            g_assert_cmpfloat(level->rate, >=, kept->levels[0].rate);
        if (i > 0) {
            g_assert_cmpint(level->missing[0], >, level[-1].missing[0]);
            g_assert_cmpfloat(level->rate, <, level[-1].rate);
        }
    }
    g_assert_cmpfloat(campaigns[1].days.mean, <=, campaigns[0].days.mean);
}

/* Losses that diverge every M of training cost B of it: of a mean uptime U the share B / M is done again, besides what is
 * behind the last checkpoint. */
static void test_rollback(void)
{
    enum { LIVES = 400 };
    const double work_s = 4e6, back_s = 7200, mtbf_s = 86400, interval_s = 60, restart_s = 300;
    CampaignRun run = {.rates = {.mtbf_s = mtbf_s, .restart_s = restart_s},
                       .interval_s = interval_s,
                       .segments = work_s / interval_s,
                       .spares = -1,
                       .causes = {{1, 0, back_s}},
                       .cause_count = 1};
    CampaignLife lives[LIVES];
    double mean_s = 0, square = 0;
    campaign_live_all(&run, 3, LIVES, 1, lives);
    for (int i = 0; i < LIVES; i++) {
        const CampaignLife *life = &lives[i];
        assert_near(life->total_s, work_s + life->lost_work_s + life->restart_s + life->checkpoint_s, 1e-3);
        mean_s += life->total_s / LIVES;
    }
    for (int i = 0; i < LIVES; i++)
        square += (lives[i].total_s - mean_s) * (lives[i].total_s - mean_s);
    const double error_s = sqrt(square / LIVES / (LIVES - 1));
    const double uptime_s = work_s / (1 - (back_s + interval_s / 2) / mtbf_s);
    const double expected_s = uptime_s + uptime_s / mtbf_s * restart_s;
    assert_near(mean_s, expected_s, 4 * error_s);
    /* a law that forgets the rollback, or counts it twice, is far off */
    g_assert_cmpfloat(fabs(mean_s - work_s * (1 + restart_s / mtbf_s)), >, 20 * error_s);
    g_assert_cmpfloat(fabs(mean_s - work_s / (1 - 2 * back_s / mtbf_s)), >, 20 * error_s);
    run.causes[0].rollback_s = 0; /* nothing is thrown away: the formula's campaign */
    campaign_live_all(&run, 3, LIVES, 1, lives);
    mean_s = 0;
    for (int i = 0; i < LIVES; i++)
        mean_s += lives[i].total_s / LIVES;
    assert_near(mean_s, campaign_total_s(&run.rates, interval_s, run.segments), 4 * error_s);
}

/* The example of two nodes of two GPUs: the crash loses the work since the last checkpoint, and the run goes on on one node. */
static void test_two_by_two(void)
{
    const CampaignOptions options = {.replicas = 3, .seed = 1};
    GError *error = NULL;
    Campaign campaign;
    Case *c = load("campaign-2x2.json", NULL);
    campaign_run(&c->report, "x", &options, &campaign, &error);
    g_assert_no_error(error);
    const double period_s = campaign.run.interval_s + campaign.run.rates.stall_s;
    assert_near(campaign.lost_work_s, fmod(10000, period_s), 1e-6);
    g_assert_cmpint(campaign.run.level_count, >=, 1);
    g_assert_cmpint(campaign.run.levels[0].missing[0], ==, 1);
    g_assert_cmpfloat(campaign.run.levels[0].rate, <, .6); /* half of the GPUs, each as fast as before */
    g_assert_cmpfloat(campaign.run.levels[0].rate, >, .45);
    g_assert_cmpfloat(campaign.degraded_s, >, 0);
    g_assert_cmpint(campaign.event_count, ==, 1);
    case_free(c);
    const char *const none[] = {"faults.checkpoint.mode=none", NULL};
    c = load("campaign-2x2.json", none);
    campaign_run(&c->report, "x", &options, &campaign, &error);
    g_assert_no_error(error);
    assert_near(campaign.lost_work_s, 10000, 1e-6); /* from zero */
    case_free(c);
}

static void test_refused(void)
{
    static const char *const cases[][3] = {
        {"faults.spares=4000", NULL, "more than the cluster's 2048 nodes"},
        {"faults.checkpoint.interval_s=6e6", NULL, "longer than the campaign"},
        {"faults.checkpoint.mode=none", NULL, "would hardly end"},
        {"faults.gpu_mtbf_s=1", NULL, "would hardly end"},
        {"faults.gpu_mtbf_s=1e-300", NULL, "would hardly end"},
        {"faults.manual_frac=0.5", NULL, "response_s does not say"},
        {"faults.repeat_frac=0.5", NULL, "give both"},
        {"storage=null", NULL, "without storage"},
        {"training.tokens=0", NULL, "training.tokens"},
        {"faults.checkpoint.mode=async", "faults.checkpoint.interval_s=1",
         "over before a checkpoint is written"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *const sets[] = {cases[i][0], cases[i][1], NULL};
        const CampaignOptions options = {.replicas = 1};
        Campaign campaign;
        g_autoptr(GError) error = NULL;
        Case *c = load("campaign-llama3-405b.json", sets);
        g_assert_false(campaign_run(&c->report, "x.json", &options, &campaign, &error));
        g_assert_nonnull(strstr(error->message, cases[i][2]));
        case_free(c);
    }
}

static void test_not_read(void)
{
    static const char *const cases[][2] = {
        {"faults.gpu_mtbf_s=-5", "faults.gpu_mtbf_s"},
        {"faults.manual_frac=1.5", "faults.manual_frac"},
        {"faults.repeat_frac=1", "faults.repeat_frac"},
        {"storage={\"read_bytes_per_s\":1e9}", "write_bytes_per_s"},
        {"storage={\"read_bytes_per_s\":1e9,\"write_bytes_per_s\":0}", "storage.write_bytes_per_s"},
        {"storage=tectonik", "did you mean \"tectonic\"?"},
        {"faults.checkpoint.interval_s=never", "faults.checkpoint.interval_s"},
        {"faults=3", "faults"},
    };
    g_autofree char *path =
        g_build_filename(ORRERY_SOURCE_SCENARIOS, "examples", "campaign-llama3-405b.json", NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *const sets[] = {cases[i][0], NULL};
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_autoptr(GError) error = NULL;
        g_assert_false(spec_load_file(path, sets, false, spec, NULL, &error));
        g_assert_nonnull(strstr(error->message, cases[i][1]));
    }
}

/* Without a failure a campaign lasts and takes what its steps do, where ranks wait for the longest texts too. */
static void test_padded_texts(void)
{
    Case *c = load("llama3-8b-sft-padded.json", NULL);
    const CampaignOptions options = {.replicas = 1};
    Campaign campaign;
    GError *error = NULL;
    double days[REPORT_LIFE_COUNT], waiting_kwh = 0;
    g_assert_cmpint(c->report.late_ps[REPORT_LATE_LENGTHS], >, 0);
    g_assert_true(campaign_prepare(&c->report, "padded", &options, &campaign, &error));
    g_assert_no_error(error);
    assert_near(campaign.work_s, c->report.days * 86400, 1e-6 * campaign.work_s);
    campaign_part_days(&campaign, false, days);
    const double kwh = campaign_kwh(&c->report, days, campaign.work_s / 86400, &waiting_kwh);
    assert_near(kwh, c->report.kwh, 1e-6 * kwh);
    case_free(c);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/campaign/manual", test_manual);
    g_test_add_func("/campaign/repeat", test_repeat);
    g_test_add_func("/campaign/rollback", test_rollback);
    g_test_add_func("/campaign/replan", test_replan);
    g_test_add_func("/campaign/two-by-two", test_two_by_two);
    g_test_add_func("/campaign/checkpoint-bytes", test_checkpoint_bytes);
    g_test_add_func("/campaign/scenario", test_scenario);
    g_test_add_func("/campaign/padded-texts", test_padded_texts);
    g_test_add_func("/campaign/refused", test_refused);
    g_test_add_func("/campaign/not-read", test_not_read);
    return g_test_run();
}
