/* Bytes as the text of a program: either one sentence, or a run that keeps every invariant, or a reason why it cannot end. */
#include "study/program_text.h"
#include "tests/fuzz/door.h"

enum { MOST_RANKS = 5000, MOST_INSTRUCTIONS = 200000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool put(const char *text, gsize length, void *data)
{
    g_string_append_len(data, text, (gssize)length);
    return true;
}

static int64_t instructions(const SimProgram *program)
{
    int64_t count = 0;
    for (int cls = 0; cls < program->classes; cls++)
        for (int stream = 0; stream < SIM_MAX_STREAMS; stream++)
            count += program->class_list[cls].streams[stream].count * program->replicas;
    return count;
}

static void check(const ProgramText *program, OrrArena *arena)
{
    g_autoptr(GString) text = g_string_new(NULL), again = g_string_new(NULL);
    GError *error = NULL;
    ProgramText same;
    bool fits = false;
    SimResult result = {0};
    program_text_write(program, "fuzz", put, text);
    require(program_text_read(text->str, text->len, "fuzz", arena, &same, NULL));
    program_text_write(&same, "fuzz", put, again);
    require(g_str_equal(text->str, again->str));
    if (!program_text_run(program, true, arena, &result, &fits, &error)) {
        check_error(error);
        return;
    }
    program_answer_text(program, &result, text);
    program_answer_json(program, &result, again);
    require(g_utf8_validate(text->str, (gssize)text->len, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OrrArena *arena = orr_arena_new();
    ProgramText program;
    GError *error = NULL;
    if (!program_text_read((const char *)data, size, "fuzz", arena, &program, &error))
        check_error(error);
    else if (program.program.classes * program.program.replicas <= MOST_RANKS &&
             instructions(&program.program) <= MOST_INSTRUCTIONS)
        check(&program, arena);
    orr_arena_free(arena);
    return 0;
}
