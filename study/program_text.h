/* study/program_text.h - the program of a step as text: written, changed by hand, read and run again.
 *
 * The idea is GOAL's (LogGOPSim): what is simulated is a file that other programs can write too. docs/PROGRAM.md
 * describes each line. Reading what was written gives the same run to the picosecond; writing it once more gives the same
 * bytes. Of parameter servers it holds what the step waits for as one op: their transfers are decided while they run.
 * Source: [HoeflerLogGOPSim2010]     Tested: unit/study/test_program_text.c, fuzz/fuzz_program.c
 */
#ifndef ORR_STUDY_PROGRAM_TEXT_H
#define ORR_STUDY_PROGRAM_TEXT_H

#include "report/report.h"

/* More ranks than this are refused: the engine takes a kilobyte of each. */
#define PROGRAM_TEXT_MOST_RANKS (1 << 22)

/* "kernels", "collectives": the words of `runs=`; NULL behind the last. */
const char *program_text_stream_kind(int kind);

/* The step is that of the first `own_classes`; what others do runs beside. */
typedef struct ProgramText {
    SimProgram program;
    int own_classes;
} ProgramText;

/* What was simulated of a step, jobs beside it with it. */
ProgramText program_text_of(const Report *report);
/* Gives the text to `put` line by line. `title`: a comment of one line. */
void program_text_write(const ProgramText *text, const char *title,
                        bool (*put)(const char *text, gsize length, void *data), void *data);

/* A program that the engine may run, in `arena`. Fails in one sentence with `name` and the line. */
bool program_text_read(const char *text, gsize length, const char *name, OrrArena *arena,
                       ProgramText *ret_text, GError **error);

/* What the engine needs of a program beyond what a line can tell: false with an error in one sentence. */
bool program_text_check(const SimProgram *program, GError **error);

/* Runs it; the result is that of its own classes. With `check` every invariant is verified, and *ret_fits says whether all
 * tiers hold what lies in them. */
bool program_text_run(const ProgramText *text, bool check, OrrArena *arena, SimResult *ret_result,
                      bool *ret_fits, GError **error);

/* What a run of it came to: the step, where the time of the slowest rank of each class goes, peaks of memory. */
void program_answer_text(const ProgramText *text, const SimResult *result, GString *out);
void program_answer_json(const ProgramText *text, const SimResult *result, GString *out);

#endif
