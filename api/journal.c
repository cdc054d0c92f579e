/* api/journal.c - see journal.h. Tested: unit/api/test_journal.c, cli/test_cli_sweep.c */
#include "api/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define MOST_BYTES ((size_t)4 << 30)

struct ApiJournal {
    char *folder, *file;
    int fd; /* -1: nothing was added */
};

/* --- rows as lines --- */

static const size_t numbers[] = {
    offsetof(ApiSweepRow, step_s),      offsetof(ApiSweepRow, low_s),
    offsetof(ApiSweepRow, high_s),      offsetof(ApiSweepRow, tokens_per_s),
    offsetof(ApiSweepRow, mfu),         offsetof(ApiSweepRow, tokens_per_s_per_gpu),
    offsetof(ApiSweepRow, hfu),         offsetof(ApiSweepRow, bubble_frac),
    offsetof(ApiSweepRow, peak_bytes),  offsetof(ApiSweepRow, reserved_bytes),
    offsetof(ApiSweepRow, short_bytes), offsetof(ApiSweepRow, occupied_bytes),
    offsetof(ApiSweepRow, days),        offsetof(ApiSweepRow, effective_days),
    offsetof(ApiSweepRow, usd),
};

static double *number_at(ApiSweepRow *row, size_t offset)
{
    return (double *)(void *)((char *)row + offset);
}

void api_row_line(guint index, const ApiSweepRow *row, GString *out)
{
    OrrJsonWriter w;
    ApiSweepRow copy = *row;
    orr_jw_init(&w, out, true);
    orr_jw_begin(&w, NULL, '[');
    orr_jw_int(&w, NULL, index);
    orr_jw_text(&w, NULL, row->reason);
    if (row->reason == NULL) {
        orr_jw_text(&w, NULL, row->chosen);
        orr_jw_text(&w, NULL, row->verdict);
        orr_jw_bool(&w, NULL, row->fits);
        orr_jw_int(&w, NULL, row->gpus);
        for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++)
            orr_jw_number(&w, NULL, *number_at(&copy, numbers[i]));
        for (int i = 0; i < REPORT_TIME_COUNT; i++)
            orr_jw_number(&w, NULL, row->time_s[i]);
    }
    orr_jw_end(&w, ']');
    g_string_append_c(out, '\n');
}

/* The next of a line's values where it is of that type (or null), else NULL. */
static const OrrJson *next_of(const OrrJson **at, OrrJsonType type)
{
    const OrrJson *node = *at;
    if (node == NULL || (orr_json_type(node) != type && orr_json_type(node) != ORR_JSON_NULL))
        return NULL;
    *at = orr_json_next(node);
    return node;
}

static bool next_text(const OrrJson **at, const char **ret_text)
{
    const OrrJson *node = next_of(at, ORR_JSON_TEXT);
    *ret_text = node != NULL && orr_json_type(node) == ORR_JSON_TEXT ? orr_json_text(node) : NULL;
    return node != NULL;
}

static bool next_number(const OrrJson **at, double *ret_number)
{
    const OrrJson *node = next_of(at, ORR_JSON_NUMBER);
    *ret_number = node != NULL && orr_json_type(node) == ORR_JSON_NUMBER ? orr_json_number(node) : NAN;
    return node != NULL;
}

static bool read_result(const OrrJson **at, ApiSweepRow *row)
{
    const char *chosen = NULL, *verdict = NULL;
    double gpus = 0;
    bool ok = next_text(at, &chosen) && next_text(at, &verdict);
    const OrrJson *fits = ok ? next_of(at, ORR_JSON_BOOL) : NULL;
    ok = fits != NULL && orr_json_type(fits) == ORR_JSON_BOOL && verdict != NULL && next_number(at, &gpus);
    for (gsize i = 0; ok && i < G_N_ELEMENTS(numbers); i++)
        ok = next_number(at, number_at(row, numbers[i]));
    for (int i = 0; ok && i < REPORT_TIME_COUNT; i++)
        ok = next_number(at, &row->time_s[i]);
    if (!ok || !(gpus >= 0 && gpus < 1e9))
        return false;
    row->fits = orr_json_bool(fits);
    row->gpus = (int)gpus;
    row->verdict = g_intern_string(verdict);
    row->chosen = g_strdup(chosen != NULL ? chosen : "");
    return true;
}

bool api_row_of_line(const char *line, gsize length, guint count, guint *ret_index, ApiSweepRow *ret_row)
{
    OrrJsonDoc *doc = orr_json_parse(line, length, "row", NULL);
    const OrrJson *at = doc != NULL && orr_json_type(orr_json_root(doc)) == ORR_JSON_LIST
                            ? orr_json_first(orr_json_root(doc))
                            : NULL;
    ApiSweepRow row = {.values = NULL};
    const char *reason = NULL;
    double index = -1;
    bool ok = next_number(&at, &index) && index >= 0 && index < count && index <= (guint)index &&
              next_text(&at, &reason) && (reason != NULL || read_result(&at, &row)) && at == NULL;
    row.reason = g_strdup(reason);
    orr_json_free(doc);
    if (!ok) {
        g_free(row.reason);
        g_free(row.chosen);
        return false;
    }
    *ret_index = (guint)index;
    *ret_row = row;
    return true;
}

/* --- the folder --- */

/* The first line of each file of rows: which question they answer. */
static char *heading(const char *question)
{
    return g_strdup_printf("{\"orrery\":\"sweep\",\"version\":\"%s\",\"question\":\"%s\"}\n", ORRERY_VERSION,
                           question);
}

static void keep_row(GArray *rows, guint index, ApiSweepRow *row, guint8 *known)
{
    if (known[index] != 0) { /* two processes did it */
        g_free(row->reason);
        g_free(row->chosen);
        return;
    }
    known[index] = 1;
    g_array_index(rows, ApiSweepRow, index) = *row;
}

static bool read_rows(const char *file, const char *question, GArray *rows, guint8 *known, GError **error)
{
    GString *text = orr_file_read(file, MOST_BYTES, error);
    if (text == NULL)
        return false;
    g_autofree char *head = heading(question);
    const char *at = text->str, *end = text->str + text->len;
    bool ok = true, first = true;
    for (int line = 1; ok && at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        ApiSweepRow row;
        guint index = 0;
        if (stop == NULL) /* cut short by a kill: it will be done again */
            break;
        if (first && strncmp(at, head, strlen(head)) != 0)
            ok = orr_fail(error, ORR_ERROR_INPUT,
                          "%s: holds the rows of another sweep, or of another version of Orrery or its "
                          "presets; give --journal another folder, or remove this one",
                          file);
        else if (!first && !api_row_of_line(at, (gsize)(stop - at), rows->len, &index, &row))
            ok = orr_fail(
                error, ORR_ERROR_INPUT,
                "%s: line %d is not a row of this sweep; remove that line, and its run is done again", file,
                line);
        else if (!first)
            keep_row(rows, index, &row, known);
        first = false;
        at = stop + 1;
    }
    g_string_free(text, TRUE);
    return ok;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_rows(const char *name)
{
    return g_str_has_prefix(name, "rows-") && g_str_has_suffix(name, ".jsonl");
}

static bool read_all(const char *folder, const char *question, GArray *rows, GError **error)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autofree guint8 *known = g_new0(guint8, rows->len + 1);
    if (dir == NULL)
        return orr_fail(error, ORR_ERROR_IO, "--journal: %s: is not a folder that can be read", folder);
    for (const char *name = g_dir_read_name(dir); name != NULL; name = g_dir_read_name(dir))
        if (is_rows(name))
            g_ptr_array_add(names, g_build_filename(folder, name, NULL));
    g_ptr_array_sort(names, compare_names);
    for (guint i = 0; i < names->len; i++)
        if (!read_rows(g_ptr_array_index(names, i), question, rows, known, error))
            return false;
    return true;
}

static bool write_whole(const ApiJournal *journal, const char *text, gsize length, GError **error)
{
    while (length > 0) {
        const ssize_t wrote = write(journal->fd, text, length);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return orr_fail(error, ORR_ERROR_IO, "--journal: %s: cannot write: %s", journal->file,
                            g_strerror(errno));
        text += wrote;
        length -= (gsize)wrote;
    }
    return true;
}

/* The next name that nobody has: this process's own file. */
static bool begin_file(ApiJournal *journal, const char *head, GError **error)
{
    enum { MOST_FILES = 1000000 };
    for (int number = 0; number < MOST_FILES && journal->fd < 0; number++) {
        g_autofree char *name = g_strdup_printf("rows-%06d.jsonl", number);
        g_free(journal->file);
        journal->file = g_build_filename(journal->folder, name, NULL);
        journal->fd = open(journal->file, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (journal->fd < 0 && errno != EEXIST)
            return orr_fail(error, ORR_ERROR_IO, "--journal: %s: cannot be made: %s", journal->file,
                            g_strerror(errno));
    }
    return write_whole(journal, head, strlen(head), error);
}

ApiJournal *api_journal_open(const char *folder, const char *question, GArray *rows, GError **error)
{
    if (g_mkdir_with_parents(folder, 0777) != 0) {
        orr_fail(error, ORR_ERROR_IO, "--journal: %s: the folder cannot be made: %s", folder,
                 g_strerror(errno));
        return NULL;
    }
    g_autofree char *head = heading(question);
    ApiJournal *journal = g_new0(ApiJournal, 1);
    journal->folder = g_strdup(folder);
    journal->fd = -1;
    if (read_all(folder, question, rows, error) && begin_file(journal, head, error))
        return journal;
    api_journal_close(journal, NULL);
    return NULL;
}

bool api_journal_add(ApiJournal *journal, guint index, const ApiSweepRow *row, GError **error)
{
    g_autoptr(GString) line = g_string_new(NULL);
    api_row_line(index, row, line);
    return write_whole(journal, line->str, line->len, error);
}

bool api_journal_close(ApiJournal *journal, GError **error)
{
    bool ok = true;
    if (journal->fd >= 0)
        ok = fsync(journal->fd) == 0 || errno == EINVAL || errno == EROFS;
    if (!ok)
        orr_fail(error, ORR_ERROR_IO, "--journal: %s: cannot be kept: %s", journal->file, g_strerror(errno));
    if (journal->fd >= 0)
        close(journal->fd);
    g_free(journal->folder);
    g_free(journal->file);
    g_free(journal);
    return ok;
}
