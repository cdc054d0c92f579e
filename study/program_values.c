/* study/program_values.c - words of a line of a program's text: numbers, names, key=value pairs and lists. */
#include "study/program_reader.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

/* Numbers of ranks in all maps together: 512 MiB. A short line can ask for millions of them. */
#define MOST_MAPPED ((int64_t)1 << 27)

bool program_reader_fail(const ProgramReader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    return orr_fail(r->error, ORR_ERROR_INPUT, "%s: line %d: %s", r->name, r->line, message);
}

/* --- words --- */

static bool program_reader_take(ProgramReader *r, char c)
{
    const bool there = r->at < r->end && *r->at == c;
    r->at += there;
    return there;
}

bool program_reader_at_end(ProgramReader *r)
{
    while (program_reader_take(r, ' ') || program_reader_take(r, '\t'))
        continue;
    return r->at == r->end;
}

/* The rest of the word as a message may show it: ASCII, at most 40 characters; g_free. */
char *program_reader_shown(const ProgramReader *r)
{
    gsize length = 0;
    while (r->at + length < r->end && r->at[length] != ' ' && length < 40)
        length++;
    g_autofree char *raw = g_strndup(r->at, length);
    return g_strescape(raw, NULL);
}

bool program_reader_is(const ProgramReader *r, gsize length, const char *word)
{
    return strlen(word) == length && memcmp(r->at, word, length) == 0;
}

/* Up to a blank, '=' or the end. */
gsize program_reader_word(const ProgramReader *r)
{
    gsize length = 0;
    while (r->at + length < r->end && strchr(" \t=", r->at[length]) == NULL)
        length++;
    return length;
}

bool program_reader_number(ProgramReader *r, const char *what, int64_t low, int64_t high, int64_t *ret_number)
{
    g_autofree char *text = program_reader_shown(r);
    const bool negative = program_reader_take(r, '-');
    uint64_t number = 0;
    bool digits = false, fits = true;
    for (; r->at < r->end && g_ascii_isdigit(*r->at); r->at++, digits = true) {
        fits = fits && number <= (uint64_t)INT64_MAX / 10 - 1;
        number = fits ? number * 10 + (uint64_t)(*r->at - '0') : number;
    }
    const int64_t value = negative ? -(int64_t)number : (int64_t)number;
    if (!digits || !fits || value < low || value > high)
        return program_reader_fail(r, "%s: \"%s\" is not a whole number from %" PRId64 " to %" PRId64, what,
                                   text, low, high);
    *ret_number = value;
    return true;
}

/* --- lines of key=value --- */

static bool read_value(ProgramReader *r, const char *line, const ProgramField *fields, int count,
                       unsigned *seen)
{
    const gsize length = program_reader_word(r);
    for (int i = 0; i < count; i++) {
        const ProgramField *field = &fields[i];
        if (!program_reader_is(r, length, field->key) || r->at + length == r->end || r->at[length] != '=')
            continue;
        if (*seen & 1u << i)
            return program_reader_fail(r, "\"%s=\" stands twice", field->key);
        *seen |= 1u << i;
        r->at += length + 1;
        if (!(field->read != NULL
                  ? field->read(r, field->key, field->to)
                  : program_reader_number(r, field->key, field->low, field->high, field->number)))
            return false;
        if (r->at == r->end || *r->at == ' ' || *r->at == '\t')
            return true;
        g_autofree char *rest = program_reader_shown(r);
        return program_reader_fail(r, "%s: \"%s\" follows its value: leave a blank between words", field->key,
                                   rest);
    }
    g_autofree char *word = program_reader_shown(r);
    g_autoptr(GString) known = g_string_new(NULL);
    for (int i = 0; i < count; i++)
        g_string_append_printf(known, "%s%s=", i == 0 ? "" : i < count - 1 ? ", " : " or ", fields[i].key);
    return program_reader_fail(r, "\"%s\" is not a word of a line \"%s\": give %s", word, line,
                               count > 0 ? known->str : "nothing");
}

static bool read_words(ProgramReader *r, const char *line, const ProgramField *fields, int count, int most)
{
    unsigned seen = 0;
    for (int words = 0; words < most && !program_reader_at_end(r); words++)
        if (!read_value(r, line, fields, count, &seen))
            return false;
    for (int i = 0; i < count; i++)
        if (fields[i].needed && !(seen & 1u << i))
            return program_reader_fail(r, "a line \"%s\" needs %s=", line, fields[i].key);
    return true;
}

bool program_reader_fields(ProgramReader *r, const char *line, const ProgramField *fields, int count)
{
    return read_words(r, line, fields, count, INT_MAX);
}

bool program_reader_first(ProgramReader *r, const char *line, const ProgramField *fields, int count)
{
    return read_words(r, line, fields, count, count);
}

/* The name in quotation marks that comes next, in the arena. */
bool program_reader_name(ProgramReader *r, const char **ret_name)
{
    program_reader_at_end(r);
    const char *first = r->at + 1, *last = first;
    if (!program_reader_take(r, '"'))
        return program_reader_fail(r, "give a name in quotation marks");
    while (last < r->end && *last != '"')
        last += *last == '\\' && last + 1 < r->end ? 2 : 1;
    if (last >= r->end)
        return program_reader_fail(r, "the name has no closing quotation mark");
    g_autofree char *raw = g_strndup(first, (gsize)(last - first)), *name = g_strcompress(raw);
    if (!g_utf8_validate(name, -1, NULL))
        return program_reader_fail(r, "the name is not UTF-8");
    *ret_name = orr_arena_strdup(r->arena, name);
    r->at = last + 1;
    return true;
}

/* --- values that are lists --- */

bool program_read_map(ProgramReader *r, const char *key, void *to)
{
    ProgramMap *map = to;
    const int32_t ranks = r->program->classes * r->program->replicas;
    r->mapped += ranks;
    if (r->mapped > MOST_MAPPED)
        return program_reader_fail(r, "%s: all maps together hold more than %" PRId64 " numbers", key,
                                   MOST_MAPPED);
    int32_t *of_rank = ORR_ARENA_NEW(r->arena, int32_t, ranks);
    int64_t filled = 0, number = 0;
    do {
        int64_t times = 1;
        if (!program_reader_number(r, key, map->low, map->high, &number) ||
            (program_reader_take(r, '*') && !program_reader_number(r, key, 1, ranks, &times)))
            return false;
        if (times > ranks - filled)
            return program_reader_fail(r, "%s: more than %d numbers, and there are %d ranks", key, ranks,
                                       ranks);
        for (int64_t i = 0; i < times; i++)
            of_rank[filled++] = (int32_t)number;
    } while (program_reader_take(r, ','));
    map->of_rank = of_rank;
    return filled == ranks ||
           program_reader_fail(r, "%s: %" PRId64 " numbers, and there are %d ranks", key, filled, ranks);
}

/* "0:123,2:-5": bytes of kinds of memory. */
bool program_read_bytes(ProgramReader *r, const char *key, void *to)
{
    int64_t *bytes = to, kind = 0;
    do {
        if (!program_reader_number(r, key, 0, (int64_t)r->kinds->len - 1, &kind))
            return false;
        if (!program_reader_take(r, ':'))
            return program_reader_fail(r, "%s: give KIND:BYTES", key);
        if (!program_reader_number(r, key, -MOST_BYTES, MOST_BYTES, &bytes[kind]))
            return false;
    } while (program_reader_take(r, ','));
    return true;
}

static bool take_word(ProgramReader *r, const char *word)
{
    const gsize length = strlen(word);
    const bool there = (gsize)(r->end - r->at) >= length && memcmp(r->at, word, length) == 0;
    r->at += there ? length : 0;
    return there;
}

/* "fair:0:123,held:1:55@3": of rows of resources, at instances. */
bool program_read_shares(ProgramReader *r, const char *key, void *to)
{
    SimWork *work = to;
    g_autoptr(GArray) more = g_array_new(FALSE, TRUE, sizeof(SimShare));
    int count = 0;
    do {
        int64_t row = 0, amount = 0, instance = -1;
        const bool fair = take_word(r, "fair:");
        if (!fair && !take_word(r, "held:"))
            return program_reader_fail(r, "%s: give fair:RESOURCE:AMOUNT or held:RESOURCE:AMOUNT", key);
        if (!program_reader_number(r, key, 0, (int64_t)r->resources->len - 1, &row))
            return false;
        if (!program_reader_take(r, ':'))
            return program_reader_fail(r, "%s: an amount is missing after resource %" PRId64, key, row);
        if (!program_reader_number(r, key, 1, SIM_MAX_CAPACITY, &amount) ||
            (program_reader_take(r, '@') && !program_reader_number(r, key, 0, MOST_INSTANCES, &instance)))
            return false;
        const SimShare share = {.amount = amount,
                                .resource = (int16_t)row,
                                .mode = fair ? SIM_SHARE_FAIR : SIM_SHARE_RESERVED,
                                .instance = (int32_t)instance + 1};
        if (count < SIM_WORK_SHARES)
            work->shares[count] = share;
        else
            g_array_append_val(more, share);
        if (++count > UINT16_MAX)
            return program_reader_fail(r, "%s: more than %d of them", key, UINT16_MAX);
    } while (program_reader_take(r, ','));
    SimShare *kept = ORR_ARENA_NEW(r->arena, SimShare, more->len);
    if (more->len > 0)
        memcpy(kept, more->data, more->len * sizeof *kept);
    work->more_shares = more->len > 0 ? kept : NULL;
    work->more_share_count = (int32_t)more->len;
    return true;
}

bool program_read_runs(ProgramReader *r, const char *key, void *to)
{
    const gsize length = program_reader_word(r);
    const char *word;
    for (int kind = 0; (word = program_text_stream_kind(kind)) != NULL; kind++)
        if (program_reader_is(r, length, word)) {
            *(SimStreamKind *)to = (SimStreamKind)kind;
            r->at += length;
            return true;
        }
    return program_reader_fail(r, "%s: give kernels, collectives, messages, copies, host or storage", key);
}

/* "2/0:5": until stream 0 of class 2 has completed 5 instructions; without a class that of the own rank. */
bool program_read_after(ProgramReader *r, const char *key, void *to)
{
    SimInstr *instr = to;
    int64_t stream = 0, cls = -1, count = 0;
    if (!program_reader_number(r, key, 0, INT32_MAX, &stream))
        return false;
    if (program_reader_take(r, '/')) {
        cls = stream;
        if (cls >= r->program->classes)
            return program_reader_fail(r, "%s: there are %d classes, the first is 0", key,
                                       r->program->classes);
        if (!program_reader_number(r, key, 0, SIM_MAX_STREAMS - 1, &stream))
            return false;
    }
    if (stream >= (int64_t)r->streams->len)
        return program_reader_fail(r, "%s: there are %u streams, the first is 0", key, r->streams->len);
    if (!program_reader_take(r, ':'))
        return program_reader_fail(r, "%s: give STREAM:COUNT or CLASS/STREAM:COUNT", key);
    if (!program_reader_number(r, key, 1, INT32_MAX, &count))
        return false;
    instr->wait_on = sim_wait_on((int)cls, (int)stream);
    instr->wait_count = (int32_t)count;
    return true;
}
