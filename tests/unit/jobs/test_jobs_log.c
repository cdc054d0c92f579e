/* tests/unit/jobs/test_jobs_log.c - jobs of published logs: Helios's and Alibaba's columns, Philly's attempts, and what is left out. */
#include <string.h>

#include "jobs/log.h"

static JobsTrace table(const char *text, JobsLeftOut *left_out)
{
    GError *error = NULL;
    JobsTrace trace;
    jobs_log_read_table(text, "log.csv", 64, &trace, left_out, &error);
    g_assert_no_error(error);
    return trace;
}

static void assert_job(const JobsTrace *trace, guint index, const char *name, double arrive_s, double work_s,
                       int gpus)
{
    const Job *job = &g_array_index(trace->jobs, Job, index);
    g_assert_cmpstr(job->name, ==, name);
    g_assert_cmpfloat(job->arrive_s, ==, arrive_s);
    g_assert_cmpfloat(job->work_s, ==, work_s);
    g_assert_cmpint(job->gpus, ==, gpus);
}

static void test_helios(void)
{
    JobsLeftOut left_out;
    JobsTrace trace =
        table("job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
              "b,u,v,16,4,2,COMPLETED,2020-04-01 00:01:00,2020-04-01 00:02:00,2020-04-01 01:02:00,3600,60\r\n"
              "a,u,v,8,4,1,FAILED,2020-03-31 23:59:00,2020-03-31 23:59:00,2020-04-01 00:00:30,90,0\n"
              "c,u,v,0,4,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:00,2020-04-01 00:00:30,30,0\n"
              "d,u,v,128,4,16,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:00,2020-04-01 00:00:30,30,0\n"
              "e,u,v,1,4,1,CANCELLED,2020-04-01 00:00:00,,,,0\n\n",
              &left_out);
    g_assert_cmpint(trace.jobs->len, ==, 2);
    assert_job(&trace, 0, "a", 0, 90, 8);
    assert_job(&trace, 1, "b", 120, 3600, 16);
    g_assert_cmpint(left_out.without_gpus, ==, 1);
    g_assert_cmpint(left_out.without_time, ==, 1);
    g_assert_cmpint(left_out.too_large, ==, 1);
    const JobsResult result = jobs_run(&trace, JOBS_FIFO, 3600, NULL);
    g_assert_cmpfloat(result.makespan_s, ==, 3720);
    g_assert_cmpfloat(result.done_gpu_s, ==, 8 * 90 + 16 * 3600);
    jobs_trace_clear(&trace);
}

static void test_alibaba(void)
{
    JobsLeftOut left_out;
    JobsTrace trace =
        table("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_"
              "time,scheduled_time\n"
              "p0,1000,1,1,460,,LS,Running,100,700,200\np1,1000,1,8,1000,,LS,Running,150,900,150\n",
              &left_out);
    assert_job(&trace, 0, "p0", 0, 500, 1);
    assert_job(&trace, 1, "p1", 50, 750, 8);
    g_assert_cmpfloat(g_array_index(trace.jobs, Job, 0).share, ==, 0.46);
    g_assert_cmpfloat(g_array_index(trace.jobs, Job, 1).share, ==, 1);
    jobs_trace_clear(&trace);
}

static void test_philly(void)
{
    const char *text = "[{\"status\":\"Pass\",\"vc\":\"v\",\"jobid\":\"j\",\"submitted_time\":\"2017-10-09 "
                       "07:00:00\",\"user\":\"u\","
                       "\"attempts\":[{\"start_time\":\"2017-10-09 07:02:00\",\"end_time\":\"2017-10-09 "
                       "07:12:00\",\"detail\":[{\"ip\":"
                       "\"m1\",\"gpus\":[\"gpu0\",\"gpu1\"]},{\"ip\":\"m2\",\"gpus\":[\"gpu7\"]}]},{\"start_"
                       "time\":\"2017-10-09 "
                       "08:00:00\",\"end_time\":\"2017-10-09 08:01:00\",\"detail\":[]}]},"
                       "{\"jobid\":\"k\",\"submitted_time\":\"2017-10-09 07:30:00\",\"attempts\":[]}, 7]";
    GError *error = NULL;
    JobsLeftOut left_out;
    JobsTrace trace;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "log", &error);
    g_assert_no_error(error);
    g_assert_true(jobs_log_read_attempts(orr_json_root(doc), "log", 64, &trace, &left_out, &error));
    g_assert_cmpint(trace.jobs->len, ==, 1);
    assert_job(&trace, 0, "j", 0, 660, 3);
    g_assert_cmpint(left_out.without_gpus, ==, 2);
    jobs_trace_clear(&trace);
    orr_json_free(doc);
}

static void test_refused(void)
{
    const struct {
        const char *text, *expect;
    } rows[] = {{"", "no header"},
                {"gpu_num,submit_time\n1,2\n", "no header"},
                {"gpu_num,submit_time,duration\n", "0 jobs ran"},
                {"gpu_num,submit_time,duration\nx,y,z\n", "1 without GPUs"},
                {"gpu_num,submit_time,duration\n65,0,9\n", "1 too large"},
                {"gpu_num,submit_time,duration\n1\n", "1 without times"}};
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        JobsLeftOut left_out;
        JobsTrace trace;
        g_assert_false(jobs_log_read_table(rows[i].text, "log.csv", 64, &trace, &left_out, &error));
        g_assert_nonnull(strstr(error->message, rows[i].expect));
        g_error_free(error);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/jobs/log/helios", test_helios);
    g_test_add_func("/jobs/log/alibaba", test_alibaba);
    g_test_add_func("/jobs/log/philly", test_philly);
    g_test_add_func("/jobs/log/refused", test_refused);
    return g_test_run();
}
