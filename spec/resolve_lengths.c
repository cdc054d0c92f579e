/* spec/resolve_lengths.c - see resolve_lengths.h. Tested: unit/costmodel/test_lengths_file.c */
#include "spec/resolve_lengths.h"

#include <string.h>

#include "base/file.h"
#include "spec/lengths.h"

#define KEY "training.lengths.file"
enum { MOST_BYTES = 256 << 20, MOST_TEXTS = 10000000, FINE = 1024 };
#define MOST_TOKENS 1e9

typedef struct Bin {
    double tokens, texts; /* mean of the texts */
} Bin;

/* --- a line --- */

/* Tokens that a line says; below 0: none. */
static double tokens_of(const OrrJson *node)
{
    static const char *const keys[] = {"length", "tokens", "num_tokens"};
    if (orr_json_type(node) == ORR_JSON_NUMBER)
        return orr_json_number(node);
    if (orr_json_type(node) != ORR_JSON_OBJECT)
        return -1;
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        const OrrJson *member = orr_json_member(node, keys[i]);
        if (member != NULL && orr_json_type(member) == ORR_JSON_NUMBER)
            return orr_json_number(member);
    }
    const OrrJson *ids = orr_json_member(node, "input_ids");
    return ids != NULL && orr_json_type(ids) == ORR_JSON_LIST ? orr_json_count(ids) : -1;
}

/* Whole, and one at least. */
static bool read_line(const char *line, size_t length, double *ret_tokens)
{
    OrrJsonDoc *doc = orr_json_parse(line, length, "line", NULL);
    const double tokens = doc != NULL ? tokens_of(orr_json_root(doc)) : -1;
    orr_json_free(doc);
    *ret_tokens = tokens;
    return tokens >= 1 && tokens <= MOST_TOKENS && tokens == (double)(int64_t)tokens;
}

static bool fail_line(const Resolver *resolver, const char *name, int number, const char *line, size_t length)
{
    g_autofree char *start = g_strndup(line, MIN(length, 60));
    g_autofree char *shown = g_utf8_make_valid(start, -1);
    return spec_resolver_fail(
        resolver, KEY,
        "%.200s: line %d: %s%s is not a number of tokens; give a whole number from 1 to 1e9 a "
        "line, or an object with length, tokens, num_tokens or a list of input_ids",
        name, number, shown, length > 60 ? " ..." : "");
}

static bool read_lines(const Resolver *resolver, const char *name, const GString *text, GArray *lengths)
{
    const char *line = text->str, *end = text->str + text->len;
    for (int number = 1; line < end; number++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop != NULL ? stop : end;
        const char *next = stop < end ? stop + 1 : end;
        while (line < stop && g_ascii_isspace(*line))
            line++;
        while (line < stop && g_ascii_isspace(stop[-1]))
            stop--;
        double tokens = 0;
        if (line < stop && !read_line(line, (size_t)(stop - line), &tokens))
            return fail_line(resolver, name, number, line, (size_t)(stop - line));
        if (line < stop && lengths->len == MOST_TEXTS)
            return spec_resolver_fail(resolver, KEY, "%.200s: more than %d texts; give a sample of them",
                                      name, MOST_TEXTS);
        if (line < stop)
            g_array_append_val(lengths, tokens);
        line = next;
    }
    return lengths->len > 0 ||
           spec_resolver_fail(resolver, KEY, "%.200s: has no line; give a number of tokens a line", name);
}

/* --- bins --- */

static int by_tokens(const void *a, const void *b)
{
    const double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

static void merge(Bin *into, const Bin *more)
{
    const double texts = into->texts + more->texts;
    into->tokens = (into->tokens * into->texts + more->tokens * more->texts) / texts;
    into->texts = texts;
}

/* Of the sorted lengths those that are equal as one; where they are more than `FINE`, neighbours by rank. */
static int first_bins(const GArray *lengths, Bin *bins)
{
    const double *tokens = (const double *)lengths->data;
    guint distinct = 1;
    for (guint i = 1; i < lengths->len; i++)
        distinct += tokens[i] != tokens[i - 1];
    const guint each = (distinct + FINE - 1) / FINE; /* lengths of a bin */
    int count = 0;
    guint at = 0;
    for (guint i = 0; i < lengths->len; i++) {
        const bool fresh = i == 0 || tokens[i] != tokens[i - 1];
        const Bin one = {tokens[i], 1};
        if (fresh && at++ % each == 0)
            bins[count++] = one;
        else if (bins[count - 1].tokens == tokens[i])
            bins[count - 1].texts++; /* no rounding */
        else
            merge(&bins[count - 1], &one);
    }
    return count;
}

/* What putting two together takes from the sum of squares. */
static double lost(const Bin *a, const Bin *b)
{
    const double apart = b->tokens - a->tokens;
    return a->texts * b->texts / (a->texts + b->texts) * apart * apart;
}

static int put_together(Bin *bins, int count)
{
    for (; count > SPEC_LENGTHS_MOST; count--) {
        int best = 0;
        for (int i = 1; i + 1 < count; i++)
            if (lost(&bins[i], &bins[i + 1]) < lost(&bins[best], &bins[best + 1]))
                best = i;
        merge(&bins[best], &bins[best + 1]);
        memmove(&bins[best + 1], &bins[best + 2], (size_t)(count - best - 2) * sizeof *bins);
    }
    return count;
}

static char *histogram_of(GArray *lengths)
{
    g_autofree Bin *bins = g_new(Bin, FINE);
    qsort(lengths->data, lengths->len, sizeof(double), by_tokens);
    const int count = put_together(bins, first_bins(lengths, bins));
    GString *text = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, text, true);
    orr_jw_begin(&w, NULL, '[');
    for (int i = 0; i < count; i++) {
        orr_jw_begin(&w, NULL, '[');
        orr_jw_number(&w, NULL, bins[i].tokens);
        orr_jw_number(&w, NULL, bins[i].texts);
        orr_jw_end(&w, ']');
    }
    orr_jw_end(&w, ']');
    return g_string_free(text, FALSE);
}

/* --- the file --- */

/* From the scenario's folder; or, as --set has it, from where the user stands. NULL: no such file. */
static char *path_of(const Resolver *resolver, const char *name)
{
    char *path = g_path_is_absolute(name) || resolver->base_dir == NULL
                     ? g_strdup(name)
                     : g_build_filename(resolver->base_dir, name, NULL);
    if (g_file_test(path, G_FILE_TEST_IS_REGULAR))
        return path;
    g_free(path);
    return g_file_test(name, G_FILE_TEST_IS_REGULAR) ? g_strdup(name) : NULL;
}

static bool read_file(const Resolver *resolver, OrrJsonDoc *doc, const char *name)
{
    g_autofree char *path = path_of(resolver, name);
    if (path == NULL)
        return spec_resolver_fail(
            resolver, KEY,
            "\"%.200s\" is not a file, from the scenario's folder; give the path of one with a "
            "number of tokens a line",
            name);
    GString *text = orr_text_read(path, MOST_BYTES, resolver->error);
    if (text == NULL)
        return false;
    g_autoptr(GArray) lengths = g_array_new(FALSE, FALSE, sizeof(double));
    const bool ok = read_lines(resolver, name, text, lengths);
    g_string_free(text, TRUE);
    if (!ok)
        return false;
    g_autofree char *histogram = histogram_of(lengths);
    return orr_json_set(doc, "training.lengths.histogram", histogram, resolver->error);
}

bool spec_resolve_lengths(const Resolver *resolver, OrrJsonDoc *doc)
{
    const OrrJson *training = orr_json_member(orr_json_root(doc), "training");
    const bool object = training != NULL && orr_json_type(training) == ORR_JSON_OBJECT;
    const OrrJson *lengths = object ? orr_json_member(training, "lengths") : NULL;
    if (lengths == NULL || orr_json_type(lengths) != ORR_JSON_OBJECT)
        return true; /* the reader says what is wrong */
    const OrrJson *file = orr_json_member(lengths, "file"), *bins = orr_json_member(lengths, "histogram");
    if (file == NULL || orr_json_type(file) != ORR_JSON_TEXT)
        return true;
    const bool counted = bins != NULL && orr_json_type(bins) != ORR_JSON_NULL;
    if (counted || orr_json_number_of(lengths, "mean", 0) > 0)
        return spec_resolver_fail(resolver, "training.lengths", "has both file and %s; give one of them",
                                  counted ? "histogram" : "mean");
    g_autofree char *name = g_strdup(orr_json_text(file));
    if (!read_file(resolver, doc, name) || !orr_json_set(doc, KEY, "null", resolver->error))
        return false;
    lengths = orr_json_member(orr_json_member(orr_json_root(doc), "training"), "lengths");
    spec_resolver_add_profile(resolver, "lengths", name, orr_json_member(lengths, "histogram"));
    return true;
}
