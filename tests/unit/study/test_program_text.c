/* tests/unit/study/test_program_text.c - the text of a program gives the same run to the picosecond and the same text again, for
 * every example; a program written by hand takes the time worked out by hand; what is wrong is told in one sentence. */
#include <string.h>

#include "study/program_text.h"
#include "tests/unit/run_fixture.h"

/* --- by hand --- */

/* Two ranks: 70 ps of computing, then the first sends while it computes again; the second waits for the message. The
 * collective at the end begins when both are there: 70 + 40 + 30 and 20 for both. */
static const char by_hand[] = "orrery-program 1\n"
                              "# two ranks\n"
                              "ranks classes=2 replicas=1\n"
                              "tier \"GPU memory\" capacity=100\n"
                              "memory \"activations\"\n"
                              "change start=0:60\n"
                              "change end=0:-60\n"
                              "stream \"compute\" runs=kernels\n"
                              "stream \"send\" runs=messages\n"
                              "resource \"port\" capacity=10 instances=1 map=0*2\n"
                              "group instances=1 map=0*2\n"
                              "work compute=70\n"
                              "work pipeline_comm=40 up=5 shares=fair:0:10\n"
                              "work compute=30\n"
                              "work data_comm=20\n"
                              "op forward work=0 change=0 stage=0\n"
                              "op send-activation work=1\n"
                              "op backward work=2 change=1 stage=1\n"
                              "collective reduce-gradients work=3 group=0\n"
                              "class\n"
                              "on 0\n"
                              "0 batch=0\n"
                              "2 batch=0\n"
                              "3\n"
                              "on 1\n"
                              "1 batch=0 after=0:1\n"
                              "class bytes=0:60\n"
                              "on 0\n"
                              "2 after=0/1:1\n"
                              "0\n"
                              "3\n";

static bool put(const char *text, gsize length, void *data)
{
    g_string_append_len(data, text, (gssize)length);
    return true;
}

static ProgramText read_text(const char *text, OrrArena *arena)
{
    ProgramText program;
    GError *error = NULL;
    program_text_read(text, strlen(text), "here", arena, &program, &error);
    g_assert_no_error(error);
    return program;
}

static void hand(void)
{
    OrrArena *arena = orr_arena_new();
    SimResult result = {0};
    GError *error = NULL;
    const ProgramText program = read_text(by_hand, arena);
    bool fits = false;
    program_text_run(&program, true, arena, &result, &fits, &error);
    g_assert_no_error(error);
    g_assert_true(fits);
    g_assert_cmpint(result.step_ps, ==, 70 + 40 + 30 + 70 + 20);
    g_assert_cmpint(result.ops, ==, 7);
    g_assert_cmpint(result.rank[0].scale_up_bytes, ==, 5);
    g_assert_cmpint(result.rank[0].peak_bytes, ==, 60);
    g_assert_cmpint(result.rank[0].end_ps, ==, 230);
    g_autoptr(GString) text = g_string_new(NULL), json = g_string_new(NULL);
    program_answer_text(&program, &result, text);
    g_assert_nonnull(strstr(text->str, "(230 ps)"));
    program_answer_json(&program, &result, json);
    OrrJsonDoc *doc = orr_json_parse(json->str, json->len, "answer", &error);
    g_assert_no_error(error);
    g_assert_cmpfloat(orr_json_number_of(orr_json_root(doc), "step_ps", 0), ==, 230);
    orr_json_free(doc);
    orr_arena_free(arena);
}

/* 60 bytes at the peak, and a GPU of 59. */
static void overfull(void)
{
    OrrArena *arena = orr_arena_new();
    g_autoptr(GString) text = g_string_new(by_hand);
    SimResult result = {0};
    GError *error = NULL;
    bool fits = true;
    g_string_replace(text, "capacity=100", "capacity=59", 1);
    const ProgramText program = read_text(text->str, arena);
    program_text_run(&program, true, arena, &result, &fits, &error);
    g_assert_no_error(error);
    g_assert_false(fits);
    orr_arena_free(arena);
}

/* --- every example --- */

static void same_runs(const SimResult *a, const SimResult *b)
{
    g_assert_cmpint(a->step_ps, ==, b->step_ps);
    g_assert_cmpint(a->end_ps, ==, b->end_ps);
    g_assert_cmpint(a->ops, ==, b->ops);
    g_assert_cmpint(a->ranks, ==, b->ranks);
    g_assert_cmpint(a->critical_rank, ==, b->critical_rank);
    for (int r = 0; r < a->ranks; r++)
        g_assert_true(memcmp(&a->rank[r], &b->rank[r], sizeof a->rank[r]) == 0);
}

static void compare_runs(const Report *report, const char *path, OrrArena *arena)
{
    g_autoptr(GString) text = g_string_new(NULL), again = g_string_new(NULL);
    GError *error = NULL;
    ProgramText program = program_text_of(report);
    SimResult result = {0};
    bool fits = false;
    program_text_write(&program, "example", put, text);
    program_text_read(text->str, text->len, path, arena, &program, &error);
    g_assert_no_error(error);
    program_text_write(&program, "example", put, again);
    g_assert_cmpstr(text->str, ==, again->str);
    program_text_run(&program, false, arena, &result, &fits, &error);
    g_assert_no_error(error);
    same_runs(&result, &report->result);
}

/* False of a scenario that leaves something "auto" to a search. */
static bool round_trip(const char *path)
{
    Spec *spec = g_new0(Spec, 1);
    SpecSource source = {0};
    OrrArena *arena = orr_arena_new();
    Report *report = g_new0(Report, 1);
    GError *error = NULL;
    const bool loaded = spec_load_file(path, NULL, false, spec, &source, NULL);
    if (loaded) {
        report_run(spec, &source, &(ReportOptions){.ideal = true}, arena, report, &error);
        g_assert_no_error(error);
        compare_runs(report, path, arena);
    }
    orr_arena_free(arena);
    spec_source_clear(&source);
    g_free(report);
    g_free(spec);
    return loaded;
}

static void examples(void)
{
    g_autofree char *scenarios = orr_scenarios_dir(NULL);
    g_autofree char *folder = g_build_filename(scenarios, "examples", NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;
    int count = 0;
    while ((name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        count += g_str_has_suffix(name, ".json") && round_trip(path);
    }
    g_assert_cmpint(count, >, 50);
}

/* --- what is wrong --- */

typedef struct Wrong {
    const char *from, *to, *message;
} Wrong;

static const Wrong wrongs[] = {
    {"orrery-program 1", "orrery-program 2", "line 1: a program begins with a line \"orrery-program 1\""},
    {"ranks classes=2 replicas=1\n", "", "\"ranks\" has to be the line after"},
    {"classes=2", "classes=3", "2 numbers, and there are 3 ranks"},
    {"classes=2", "classes=0", "\"0\" is not a whole number from 1 to 4194304"},
    {"replicas=1", "replicas=9999999", "\"9999999\" is not a whole number"},
    {"replicas=1", "replicas=1 speed=1", "1 numbers, and there are 2 ranks"},
    {"runs=messages", "runs=letters", "give kernels, collectives"},
    {"work compute=70", "work compute=-70", "\"-70\" is not a whole number from 0"},
    {"work compute=70", "work compute=70 compute=7", "\"compute=\" stands twice"},
    {"work compute=70", "work computes=70", "\"computes=70\" is not a word of a line \"work\""},
    {"work compute=70", "work compute=70s", "leave a blank between words"},
    {"op forward", "op forwards", "\"forwards\" is nothing that an op does"},
    {"op forward work=0", "op forward work=9", "\"9\" is not a whole number from 0 to 3"},
    {"shares=fair:0:10", "shares=fair:1:10", "\"1:10\" is not a whole number from 0 to 0"},
    {"shares=fair:0:10", "shares=fair:0:10@3", "op 1 holds instance 3 of resource 0, which has 1"},
    {"shares=fair:0:10", "shares=some:0:10", "give fair:RESOURCE:AMOUNT"},
    {"map=0*2\ngroup instances=1 map=0*2", "map=0*2\ngroup instances=1 map=0,-1",
     "rank 1 is not a member of group 0"},
    {"port\" capacity=10 instances=1", "port\" capacity=10", "instances= and map= stand together"},
    {"port\" capacity=10 instances=1 map=0*2", "port\" capacity=10 instances=1 map=0,1",
     "rank 1 is in instance 1"},
    {"after=0/1:1", "after=0/1:2", "it waits for 2 instructions of stream 1 of class 0, which has 1"},
    {"after=0/1:1", "after=2/1:1", "there are 2 classes"},
    {"after=0/1:1", "after=0/7:1", "there are 2 streams"},
    {"on 1\n", "on 2\n", "\"2\" is not a whole number from 0 to 1"},
    {"on 1\n", "on 0\n", "stream 0 of this class stands twice"},
    {"group instances=1 map=0*2\nwork compute=70\nwork pipeline_comm=40 up=5 shares=fair:0:10\nwork "
     "compute=30\n"
     "work data_comm=20\nop forward work=0 change=0 stage=0\nop send-activation work=1\n",
     "group\nwork compute=70\nwork pipeline_comm=40\nwork compute=30\nwork data_comm=20\nop forward work=0\n"
     "collective send-activation work=1 group=0\n",
     "group 0 has collectives in stream 0 already"},
    {"class\non 0", "on 0", "give a line \"class\" before"},
    {"class\non 0\n", "class\n", "give a line \"on\" before"},
    {"class bytes=0:60", "class bytes=4:60", "\"4:60\" is not a whole number from 0 to 0"},
    {"tier \"GPU memory\"", "tier GPU", "give a name in quotation marks"},
    {"tier \"GPU memory\"", "tier \"GPU", "no closing quotation mark"},
    {"# two ranks", "two ranks", "\"two\" begins no line of a program"},
};

static void wrong(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(wrongs); i++) {
        const Wrong *row = &wrongs[i];
        const char *at = strstr(by_hand, row->from);
        OrrArena *arena = orr_arena_new();
        ProgramText program;
        GError *error = NULL;
        g_assert_nonnull(at);
        g_autofree char *text =
            g_strdup_printf("%.*s%s%s", (int)(at - by_hand), by_hand, row->to, at + strlen(row->from));
        if (program_text_read(text, strlen(text), "here", arena, &program, &error))
            g_error("\"%s\" for \"%s\" is taken", row->to, row->from);
        g_assert_true(g_str_has_prefix(error->message, "here: "));
        if (strstr(error->message, row->message) == NULL)
            g_error("\"%s\" for \"%s\": %s", row->to, row->from, error->message);
        g_error_free(error);
        orr_arena_free(arena);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/program-text/by-hand", hand);
    g_test_add_func("/program-text/overfull", overfull);
    g_test_add_func("/program-text/examples", examples);
    g_test_add_func("/program-text/wrong", wrong);
    return g_test_run();
}
