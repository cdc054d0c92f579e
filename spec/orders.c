/* spec/orders.c - reading op orders. */
#include "spec/orders.h"

#include <string.h>

#include "base/file.h"
#include "spec/texts.h"

#define MOST_MICROBATCHES 1000000
#define MOST_FILE_BYTES   ((gsize)64 << 20)

typedef struct Reader {
    const char *where;
    int rank; /* being read */
    int64_t op;
    GError **error;
} Reader;

static bool fail(const Reader *reader, const char *word, size_t length, const char *what)
{
    return orr_fail(reader->error, ORR_ERROR_INPUT, "%s: rank %d, op %" G_GINT64_FORMAT ": \"%.*s\" %s",
                    reader->where, reader->rank, (gint64)reader->op, (int)MIN(length, 40), word, what);
}

/* Digits at `*at`; -1 when there are none or too many. */
static int take_number(const char **at, const char *end, int limit)
{
    int64_t value = 0;
    const char *start = *at;
    for (; *at < end && g_ascii_isdigit(**at) && value <= limit; (*at)++)
        value = value * 10 + (**at - '0');
    return *at == start || value >= limit ? -1 : (int)value;
}

/* "0F3" between `word` and `end`. */
static bool read_plain(const Reader *reader, const char *word, const char *end, SpecOrderOp *op)
{
    static const char LETTERS[] = "FBIW";
    const char *at = word;
    op->stage = take_number(&at, end, SPEC_MAX_STAGES);
    const char *letter = op->stage >= 0 && at < end ? strchr(LETTERS, *at) : NULL;
    if (letter != NULL && *letter != '\0') {
        at++;
        op->op = (SpecOp)(letter - LETTERS);
        op->microbatch = take_number(&at, end, MOST_MICROBATCHES);
        if (op->microbatch >= 0 && at == end)
            return true;
    }
    return fail(
        reader, word, (size_t)(end - word),
        "is not an op; give stage, F, B, I or W, and micro-batch, such as 0F3 (messages and gathers are "
        "no ops here)");
}

/* "(4F1;0B0)OVERLAP_F_B" */
static bool read_pair(const Reader *reader, const char *word, const char *end, SpecOrderOp *op)
{
    static const char TAIL[] = ")OVERLAP_F_B";
    const size_t length = (size_t)(end - word), tail = sizeof TAIL - 1;
    const char *middle = memchr(word, ';', length);
    SpecOrderOp backward = {.op = SPEC_OP_BACKWARD};
    if (middle == NULL || length < tail || memcmp(end - tail, TAIL, tail) != 0 || middle > end - tail)
        return fail(reader, word, length, "is not a pair; give it as (4F1;0B0)OVERLAP_F_B");
    if (!read_plain(reader, word + 1, middle, op) || !read_plain(reader, middle + 1, end - tail, &backward))
        return false;
    if (op->op != SPEC_OP_FORWARD || backward.op != SPEC_OP_BACKWARD)
        return fail(reader, word, length,
                    "is not a pair of a forward and a whole backward; give it as (4F1;0B0)OVERLAP_F_B");
    op->op = SPEC_OP_PAIR;
    op->stage2 = backward.stage;
    op->microbatch2 = backward.microbatch;
    return true;
}

static bool is_gap(char c)
{
    return c == ',' || c == ' ' || c == '\t' || c == '\r';
}

static bool read_row(Reader *reader, const char *line, const char *end, OrrArena *arena, SpecOrderRow *row)
{
    int64_t words = 0;
    for (const char *at = line; at < end; at++)
        words += !is_gap(*at) && (at == line || is_gap(at[-1])) ? 1 : 0;
    row->ops = ORR_ARENA_NEW(arena, SpecOrderOp, words);
    reader->op = 0;
    for (const char *at = line; at < end;) {
        const char *word = at;
        for (; at < end && !is_gap(*at); at++)
            ;
        if (at == word) {
            at++;
            continue;
        }
        SpecOrderOp *op = &row->ops[row->count++];
        reader->op++;
        if (!(*word == '(' ? read_pair(reader, word, at, op) : read_plain(reader, word, at, op)))
            return false;
    }
    return row->count > 0 || orr_fail(reader->error, ORR_ERROR_INPUT, "%s: rank %d has no ops; give its line",
                                      reader->where, reader->rank);
}

/* Rank of a stage under a placement. */
static int rank_of(const SpecOrders *orders, SimPlacement placement, int stage)
{
    const int p = orders->ranks;
    return placement == SIM_PLACE_LOOP || stage < p ? stage % p : 2 * p - 1 - stage;
}

static bool lies_so(const SpecOrderTable *table, SimPlacement placement)
{
    const SpecOrders *orders = &table->orders;
    for (int r = 0; r < orders->ranks; r++) {
        const SpecOrderRow *row = &table->rows[r];
        for (int64_t i = 0; i < row->count; i++)
            if (rank_of(orders, placement, row->ops[i].stage) != r ||
                (row->ops[i].op == SPEC_OP_PAIR && rank_of(orders, placement, row->ops[i].stage2) != r))
                return false;
    }
    return true;
}

/* Two copies: every stage runs one half of the micro-batches, those of the first copy the first half. */
static bool has_two_copies(const SpecOrderTable *table)
{
    const SpecOrders *orders = &table->orders;
    const int half = orders->microbatches / 2;
    for (int r = 0; r < orders->ranks; r++) {
        const SpecOrderRow *row = &table->rows[r];
        for (int64_t i = 0; i < row->count; i++)
            if ((row->ops[i].stage < orders->ranks) != (row->ops[i].microbatch < half))
                return false;
    }
    return orders->microbatches % 2 == 0;
}

static bool find_shape(const Reader *reader, SpecOrderTable *table)
{
    SpecOrders *orders = &table->orders;
    int stages = 0;
    for (int r = 0; r < orders->ranks; r++) {
        for (int64_t i = 0; i < table->rows[r].count; i++) {
            const SpecOrderOp *op = &table->rows[r].ops[i];
            const bool pair = op->op == SPEC_OP_PAIR;
            stages = MAX(stages, MAX(op->stage, pair ? op->stage2 : 0) + 1);
            orders->microbatches =
                MAX(orders->microbatches, MAX(op->microbatch, pair ? op->microbatch2 : 0) + 1);
        }
    }
    if (stages % orders->ranks != 0)
        return orr_fail(reader->error, ORR_ERROR_INPUT,
                        "%s: %d model stages on %d ranks; give every rank the same number of stages",
                        reader->where, stages, orders->ranks);
    orders->chunks = stages / orders->ranks;
    orders->placement = SIM_PLACE_LOOP;
    if (lies_so(table, SIM_PLACE_LOOP))
        return true;
    if (orders->chunks != 2 || !lies_so(table, SIM_PLACE_V))
        return orr_fail(reader->error, ORR_ERROR_INPUT,
                        "%s: its %d model stages do not lie on the %d ranks as they can; give stage s to "
                        "rank s modulo %d, or two stages a rank there and back (rank r: r and %d - r)",
                        reader->where, stages, orders->ranks, orders->ranks, 2 * orders->ranks - 1);
    orders->placement = has_two_copies(table) ? SIM_PLACE_BIDIRECTIONAL : SIM_PLACE_V;
    return true;
}

bool spec_orders_parse(const char *text, const char *where, OrrArena *arena, SpecOrderTable *ret_table,
                       GError **error)
{
    Reader reader = {.where = where, .error = error};
    SpecOrderTable table = {.orders = {.text = text}};
    const char *end = text + strlen(text);
    while (end > text && (end[-1] == '\n' || is_gap(end[-1])))
        end--;
    int64_t lines = 1;
    for (const char *at = text; at < end; at++)
        lines += *at == '\n' ? 1 : 0;
    if (lines > SPEC_MAX_STAGES)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: %" G_GINT64_FORMAT " lines, one a pipeline rank; give at most %d", where,
                        (gint64)lines, SPEC_MAX_STAGES);
    table.orders.ranks = (int)lines;
    table.rows = ORR_ARENA_NEW(arena, SpecOrderRow, lines);
    for (const char *line = text; reader.rank < lines; reader.rank++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop != NULL ? stop : end;
        if (!read_row(&reader, line, stop, arena, &table.rows[reader.rank]))
            return false;
        line = stop + 1;
    }
    if (!find_shape(&reader, &table))
        return false;
    *ret_table = table;
    return true;
}

/* --- files --- */

bool spec_is_orders_path(const char *text)
{
    return strchr(text, '/') != NULL || g_str_has_suffix(text, ".json") || g_str_has_suffix(text, ".csv");
}

/* The object with one line a rank. */
static OrrJsonDoc *object_of(const char *path, const char *name, const OrrJson *list, char *const *lines)
{
    g_autoptr(GString) text = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, text, true);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_text(&w, "file", name);
    if (list != NULL) {
        orr_jw_node(&w, "orders", list);
    } else {
        orr_jw_begin(&w, "orders", '[');
        for (int i = 0; lines[i] != NULL; i++)
            orr_jw_text(&w, NULL, lines[i]);
        orr_jw_end(&w, ']');
    }
    orr_jw_end(&w, '}');
    return orr_json_parse(text->str, text->len, path, NULL);
}

static OrrJsonDoc *read_json(const char *path, const char *name, GError **error)
{
    static const char *const KEYS[] = {"schema", "name", "source", "orders"};
    OrrJsonDoc *doc = orr_json_read_file(path, error), *object = NULL;
    if (doc == NULL)
        return NULL;
    const OrrJson *root = orr_json_root(doc);
    const bool is_object = orr_json_type(root) == ORR_JSON_OBJECT;
    const OrrJson *orders = is_object ? orr_json_member(root, "orders") : NULL;
    const OrrJson *schema = is_object ? orr_json_member(root, "schema") : NULL;
    const char *unknown = NULL;
    for (const OrrJson *node = is_object ? orr_json_first(root) : NULL; node != NULL;
         node = orr_json_next(node)) {
        bool known = false;
        for (gsize i = 0; i < G_N_ELEMENTS(KEYS); i++)
            known = known || g_str_equal(KEYS[i], orr_json_key(node));
        unknown = known || unknown != NULL ? unknown : orr_json_key(node);
    }
    if (unknown != NULL)
        orr_fail(error, ORR_ERROR_INPUT,
                 "%s: %.80s: unknown key; a file of op orders knows schema, name, source and "
                 "orders",
                 path, unknown);
    else if (schema != NULL && !(orr_json_type(schema) == ORR_JSON_NUMBER && orr_json_number(schema) == 1))
        orr_fail(error, ORR_ERROR_INPUT, "%s: schema: this version cannot be read; give 1", path);
    else if (orders == NULL)
        orr_fail(error, ORR_ERROR_INPUT,
                 "%s: orders: missing; give a list of texts, one a pipeline rank, such as \"0F0 0B0\"", path);
    else
        object = object_of(path, name, orders, NULL);
    orr_json_free(doc);
    return object;
}

static OrrJsonDoc *read_csv(const char *path, const char *name, GError **error)
{
    g_autoptr(GString) whole = orr_text_read(path, MOST_FILE_BYTES, error);
    if (whole == NULL)
        return NULL;
    char *text = whole->str;
    if (strlen(text) != whole->len || !g_utf8_validate(text, (gssize)whole->len, NULL)) {
        orr_fail(error, ORR_ERROR_INPUT,
                 "%s: is not text of at most 64 MiB; give lines of ops such as 0F0,0B0", path);
        return NULL;
    }
    g_strchomp(text);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    return object_of(path, name, NULL, lines);
}

OrrJsonDoc *spec_orders_read_file(const char *path, const char *name, GError **error)
{
    return g_str_has_suffix(path, ".csv") ? read_csv(path, name, error) : read_json(path, name, error);
}

bool spec_orders_take(const OrrJson *object, GPtrArray *texts, SpecParallel *parallel, GError **error)
{
    const OrrJson *file = orr_json_member(object, "file"), *list = orr_json_member(object, "orders");
    const char *name = file != NULL && orr_json_type(file) == ORR_JSON_TEXT ? orr_json_text(file) : "orders";
    g_autoptr(GString) text = g_string_new(NULL);
    if (list == NULL || orr_json_type(list) != ORR_JSON_LIST)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: orders: %s; give a list of texts, one a pipeline rank, such as \"0F0 0B0\"",
                        name, list == NULL ? "missing" : orr_json_type_name(list));
    if (strlen(name) >= sizeof parallel->schedule_file)
        return orr_fail(error, ORR_ERROR_INPUT, "%.80s: is too long a path; give at most %d bytes", name,
                        (int)sizeof parallel->schedule_file - 1);
    int rank = 0;
    for (const OrrJson *line = orr_json_first(list); line != NULL; line = orr_json_next(line), rank++) {
        if (orr_json_type(line) != ORR_JSON_TEXT || strchr(orr_json_text(line), '\n') != NULL)
            return orr_fail(error, ORR_ERROR_INPUT,
                            "%s: orders: rank %d is %s; give one line of ops, such as \"0F0 0B0\"", name,
                            rank, orr_json_type_name(line));
        g_string_append_printf(text, "%s%s", rank > 0 ? "\n" : "", orr_json_text(line));
    }
    OrrArena *arena = orr_arena_new();
    SpecOrderTable table;
    const bool ok = spec_orders_parse(text->str, name, arena, &table, error);
    if (ok) {
        parallel->orders = table.orders;
        parallel->orders.text = spec_keep_text(texts, text->str);
        g_strlcpy(parallel->schedule_file, name, sizeof parallel->schedule_file);
    }
    orr_arena_free(arena);
    return ok;
}
