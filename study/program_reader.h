/* study/program_reader.h - the reader of a program's text: words of a line (program_values.c), kinds of lines (program_read.c). */
#ifndef ORR_STUDY_PROGRAM_READER_H
#define ORR_STUDY_PROGRAM_READER_H

#include "study/program_text.h"

/* Of one line: more would let sums of a step leave int64_t. */
#define MOST_BYTES     ((int64_t)1 << 50)
#define MOST_SENT      ((int64_t)1 << 60)
#define MOST_INSTANCES ((int64_t)1 << 24)
#define MOST_SPEED     ((int64_t)1 << 30)
typedef struct ProgramReader {
    const char *name;
    int line;
    const char *at, *end; /* what is left of the line */
    OrrArena *arena;
    GError **error;
    SimProgram *program;
    int own_classes;
    int64_t mapped;
    GArray *tiers, *kinds, *changes, *streams, *resources, *events, *works, *ops, *classes, *instrs;
    int stream; /* whose instructions are read; -1: none's */
} ProgramReader;

typedef struct ProgramField {
    const char *key;
    int64_t low, high;
    int64_t *number; /* holds what an absent key means */
    bool needed;
    bool (*read)(ProgramReader *r, const char *key, void *to); /* in the place of a number */
    void *to;
} ProgramField;

/* A number of each rank. */
typedef struct ProgramMap {
    int64_t low, high;
    const int32_t *of_rank;
} ProgramMap;

/* All but the first take the reader to behind what they read. */
bool program_reader_fail(const ProgramReader *r, const char *format, ...) G_GNUC_PRINTF(2, 3);
bool program_reader_at_end(ProgramReader *r);       /* of the line, blanks skipped */
char *program_reader_shown(const ProgramReader *r); /* the next word for a message; g_free */
gsize program_reader_word(const ProgramReader *r);  /* its length, up to a blank or '=' */
bool program_reader_is(const ProgramReader *r, gsize length, const char *word);
bool program_reader_number(ProgramReader *r, const char *what, int64_t low, int64_t high,
                           int64_t *ret_number);
bool program_reader_fields(ProgramReader *r, const char *line, const ProgramField *fields, int count);
/* Only as many words as there are fields. */
bool program_reader_first(ProgramReader *r, const char *line, const ProgramField *fields, int count);
bool program_reader_name(ProgramReader *r, const char **ret_name); /* in quotation marks */

/* Values of fields; `to` is a ProgramMap, int64_t[SIM_MAX_MEMS], SimWork, SimStreamKind, SimInstr. */
bool program_read_map(ProgramReader *r, const char *key, void *to);
bool program_read_bytes(ProgramReader *r, const char *key, void *to);
bool program_read_shares(ProgramReader *r, const char *key, void *to);
bool program_read_runs(ProgramReader *r, const char *key, void *to);
bool program_read_after(ProgramReader *r, const char *key, void *to);

#endif
