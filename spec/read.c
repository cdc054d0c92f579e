/* spec/read.c - the reader engine: one loop over a field table. */
#include "spec/read.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/text.h"

void spec_read_context_init(SpecReadContext *context, const char *where, const SpecTable *all,
                            bool allow_auto, GPtrArray *defaulted)
{
    *context = (SpecReadContext){.where = where,
                                 .all = all,
                                 .path = g_string_new(NULL),
                                 .allow_auto = allow_auto,
                                 .defaulted = defaulted};
}

void spec_read_context_clear(SpecReadContext *context)
{
    g_string_free(context->path, TRUE);
    context->path = NULL;
}

bool spec_read_fail(const SpecReadContext *context, const OrrJson *node, GError **error, const char *format,
                    ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *message = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_autofree char *shown = node != NULL ? orr_json_show(node) : NULL;
    orr_fail(error, ORR_ERROR_INPUT, "%s: %s%s%s%s%s", context->where, context->path->str,
             context->path->len > 0 ? ": " : "", shown != NULL ? shown : "", shown != NULL ? " " : "",
             message);
    return false;
}

/* Adds ".key"; returns the length to go back to. */
static gsize path_enter(SpecReadContext *context, const char *key)
{
    const gsize length = context->path->len;
    if (length > 0)
        g_string_append_c(context->path, '.');
    g_string_append(context->path, key);
    return length;
}

static void path_leave(SpecReadContext *context, gsize length)
{
    g_string_truncate(context->path, length);
}

bool spec_is_auto(const OrrJson *node)
{
    return orr_json_type(node) == ORR_JSON_TEXT && strcmp(orr_json_text(node), "auto") == 0;
}

static void append_number(GString *out, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append(out, g_ascii_formatd(text, sizeof text, "%.15g", value));
}

static void append_words(GString *out, const SpecWords *words)
{
    for (int i = 0; i < words->count; i++)
        g_string_append_printf(out, "%s%s", i > 0 ? ", " : "", orr_word(words, i));
}

static char *number_form(const char *kind, double min, double max)
{
    GString *out = g_string_new(kind);
    g_string_append(out, " from ");
    append_number(out, min);
    g_string_append(out, " to ");
    append_number(out, max);
    return g_string_free(out, FALSE);
}

char *spec_field_form(const SpecField *field)
{
    GString *out = g_string_new(NULL);
    switch (field->type) {
    case SPEC_TYPE_INT:
    case SPEC_TYPE_DOUBLE: {
        g_autofree char *form =
            number_form(field->type == SPEC_TYPE_INT ? "a whole number" : "a number", field->min, field->max);
        g_string_append(out, form);
        if (orr_unit_symbol(field->unit)[0] != '\0')
            g_string_append_printf(out, " %s", orr_unit_symbol(field->unit));
        break;
    }
    case SPEC_TYPE_BOOL:
    case SPEC_TYPE_TRISTATE:
        g_string_append(out, "true or false");
        break;
    case SPEC_TYPE_WORD:
        g_string_append(out, "one of ");
        append_words(out, field->words);
        break;
    case SPEC_TYPE_WORD_SET:
        g_string_append(out, "a list of ");
        append_words(out, field->words);
        break;
    case SPEC_TYPE_NAME:
        g_string_append_printf(out, "text of at most %d bytes", (int)field->size - 1);
        break;
    case SPEC_TYPE_OBJECT:
        g_string_append(out, field->flags & SPEC_FIELD_PRESET ? "a preset's name or an object" : "an object");
        break;
    case SPEC_TYPE_CUSTOM:
        if (field->words != NULL) {
            g_string_append(out, "one of ");
            append_words(out, field->words);
            g_string_append(out, "; ");
        }
        g_string_append(out, field->form != NULL ? field->form : "text");
        break;
    }
    if (field->flags & SPEC_FIELD_AUTO)
        g_string_append(out, ", or \"auto\"");
    return g_string_free(out, FALSE);
}

static char *number_range(const SpecField *field)
{
    g_autofree char *form = spec_field_form(field);
    return g_strconcat("give ", form, NULL);
}

static bool fail_form(const SpecReadContext *context, const SpecField *field, const OrrJson *node,
                      GError **error)
{
    g_autofree char *form = spec_field_form(field);
    return spec_read_fail(context, node, error, "is %s; give %s", orr_json_type_name(node), form);
}

bool spec_read_int(const SpecReadContext *context, const OrrJson *node, double min, double max,
                   int *ret_value, GError **error)
{
    const bool number = orr_json_type(node) == ORR_JSON_NUMBER;
    const double value = number ? orr_json_number(node) : 0;
    const bool whole = !(value < floor(value)) && !(value > floor(value));
    if (number && whole && value >= min && value <= max) {
        *ret_value = (int)value;
        return true;
    }
    g_autofree char *form = number_form("a whole number", min, max);
    if (!number)
        return spec_read_fail(context, node, error, "is %s; give %s", orr_json_type_name(node), form);
    if (!whole)
        return spec_read_fail(context, node, error, "is not whole; give %s", form);
    return spec_read_fail(context, node, error, "is out of range; give %s", form);
}

/* Rates below are slips of the unit: no GPU does less than a GFLOP/s, no link carries less than a MB/s. */
static double least_rate(OrrUnit unit)
{
    return unit == ORR_UNIT_FLOPS_PER_S ? 1e9 : unit == ORR_UNIT_BYTES_PER_S ? 1e6 : 0;
}

/* " (did you mean 989 TFLOP/s?)" for a plain number in the size that people say aloud; else "". g_free. */
static char *nearest_unit(OrrUnit unit, const OrrJson *node, double value)
{
    static const struct {
        OrrUnit unit;
        const char *word;
    } spoken[] = {{ORR_UNIT_FLOPS_PER_S, "TFLOP/s"}, {ORR_UNIT_BYTES_PER_S, "GB/s"}, {ORR_UNIT_BYTES, "GB"}};
    for (gsize i = 0; i < G_N_ELEMENTS(spoken); i++)
        if (spoken[i].unit == unit && orr_json_type(node) == ORR_JSON_NUMBER && value >= 0.01 && value < 1e5)
            return g_strdup_printf(" (did you mean %.6g %s?)", value, spoken[i].word);
    return g_strdup("");
}

bool spec_read_number(const SpecReadContext *context, const SpecField *field, const OrrJson *node,
                      double *ret_value, GError **error)
{
    double value = 0;
    if (orr_json_type(node) == ORR_JSON_TEXT && field->unit != ORR_UNIT_NONE) {
        GError *problem = NULL;
        if (!orr_parse_quantity(orr_json_text(node), field->unit, &value, &problem)) {
            spec_read_fail(context, NULL, error, "%s", problem->message);
            g_error_free(problem);
            return false;
        }
    } else if (orr_json_type(node) == ORR_JSON_NUMBER) {
        value = orr_json_number(node);
    } else {
        return fail_form(context, field, node, error);
    }
    if (!(value >= field->min && value <= field->max) || (value > 0 && value < least_rate(field->unit))) {
        SpecField above = *field;
        if (least_rate(field->unit) > 0)
            above.min = fmax(field->min, least_rate(field->unit));
        g_autofree char *range = number_range(&above), *meant = nearest_unit(field->unit, node, value);
        return spec_read_fail(context, node, error, "is out of range%s; %s", meant, range);
    }
    *ret_value = value;
    return true;
}

bool spec_read_word(const SpecReadContext *context, const SpecWords *words, const OrrJson *node,
                    int *ret_value, GError **error)
{
    const char *text = orr_json_type(node) == ORR_JSON_TEXT ? orr_json_text(node) : NULL;
    for (int i = 0; text != NULL && i < words->count; i++) {
        if (strcmp(orr_word(words, i), text) == 0) {
            *ret_value = i;
            return true;
        }
    }
    g_autofree const char **list = g_new(const char *, (gsize)words->count);
    for (int i = 0; i < words->count; i++)
        list[i] = orr_word(words, i);
    const char *near = text != NULL ? orr_nearest(text, list, words->count) : NULL;
    if (near != NULL)
        return spec_read_fail(context, node, error, "is not %s; did you mean \"%s\"?", words->what, near);
    g_autoptr(GString) all = g_string_new(NULL);
    append_words(all, words);
    return spec_read_fail(context, node, error, "is not %s; give one of %s", words->what, all->str);
}

static bool read_word_set(SpecReadContext *context, const SpecField *field, const OrrJson *node,
                          unsigned *ret_bits, GError **error)
{
    if (orr_json_type(node) != ORR_JSON_LIST)
        return fail_form(context, field, node, error);
    unsigned bits = 0;
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item)) {
        int index = 0;
        if (!spec_read_word(context, field->words, item, &index, error))
            return false;
        bits |= 1u << index;
    }
    *ret_bits = bits;
    return true;
}

static bool read_name(const SpecReadContext *context, const SpecField *field, const OrrJson *node,
                      char *target, GError **error)
{
    if (orr_json_type(node) != ORR_JSON_TEXT)
        return fail_form(context, field, node, error);
    const char *text = orr_json_text(node);
    if (strlen(text) >= field->size)
        return spec_read_fail(context, node, error, "is too long (%d bytes); give at most %d bytes",
                              (int)strlen(text), (int)field->size - 1);
    g_strlcpy(target, text, field->size);
    return true;
}

static bool is_note(const OrrJson *node, int depth)
{
    if (orr_json_type(node) == ORR_JSON_TEXT)
        return true;
    if (depth > 2 || (orr_json_type(node) != ORR_JSON_OBJECT && orr_json_type(node) != ORR_JSON_LIST))
        return false;
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item))
        if (!is_note(item, depth + 1))
            return false;
    return true;
}

bool spec_read_note(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    (void)target;
    return is_note(node, 0) ||
           spec_read_fail(context, node, error, "is %s; give text, or an object or list of texts",
                          orr_json_type_name(node));
}

/* Puts file and key before a custom reader's message, unless they are there already. */
static bool read_custom(SpecReadContext *context, const SpecField *field, const OrrJson *node, void *target,
                        GError **error)
{
    GError *problem = NULL;
    if (field->read(context, node, target, &problem))
        return true;
    if (problem != NULL && !g_str_has_prefix(problem->message, context->where)) {
        spec_read_fail(context, NULL, error, "%s", problem->message);
        g_error_free(problem);
    } else {
        g_propagate_error(error, problem);
    }
    return false;
}

static bool read_auto(SpecReadContext *context, const SpecField *field, void *target, GError **error)
{
    if (!context->allow_auto) {
        SpecField plain = *field;
        plain.flags &= ~(unsigned)SPEC_FIELD_AUTO;
        g_autofree char *form = spec_field_form(&plain);
        return spec_read_fail(context, NULL, error, "\"auto\" leaves the choice to a search; give %s here",
                              form);
    }
    if (field->type == SPEC_TYPE_NAME)
        g_strlcpy(target, "auto", field->size);
    else if (field->type == SPEC_TYPE_WORD_SET)
        *(unsigned *)target = (unsigned)SPEC_OVERLAP_AUTO;
    else
        *(int *)target = SPEC_AUTO;
    return true;
}

static bool read_object(SpecReadContext *context, const SpecField *field, const OrrJson *node, void *target,
                        GError **error)
{
    if (context->partial && (field->flags & SPEC_FIELD_PRESET) && orr_json_type(node) == ORR_JSON_TEXT)
        return true;
    const int fitted = (field->flags & SPEC_FIELD_FITTED) ? 1 : 0;
    context->quiet += fitted;
    const bool ok = spec_read_table(context, field->table, node, target, error);
    context->quiet -= fitted;
    return ok;
}

static bool read_value(SpecReadContext *context, const SpecField *field, const OrrJson *node, void *target,
                       GError **error)
{
    if ((field->flags & SPEC_FIELD_AUTO) && field->type != SPEC_TYPE_CUSTOM && spec_is_auto(node))
        return read_auto(context, field, target, error);
    switch (field->type) {
    case SPEC_TYPE_INT:
        return spec_read_int(context, node, field->min, field->max, target, error);
    case SPEC_TYPE_DOUBLE:
        return spec_read_number(context, field, node, target, error);
    case SPEC_TYPE_BOOL:
        if (orr_json_type(node) != ORR_JSON_BOOL)
            return fail_form(context, field, node, error);
        *(bool *)target = orr_json_bool(node);
        return true;
    case SPEC_TYPE_TRISTATE:
        if (orr_json_type(node) != ORR_JSON_BOOL)
            return fail_form(context, field, node, error);
        *(int *)target = orr_json_bool(node) ? 1 : 0;
        return true;
    case SPEC_TYPE_WORD:
        return spec_read_word(context, field->words, node, target, error);
    case SPEC_TYPE_WORD_SET:
        return read_word_set(context, field, node, target, error);
    case SPEC_TYPE_NAME:
        return read_name(context, field, node, target, error);
    case SPEC_TYPE_OBJECT:
        return read_object(context, field, node, target, error);
    case SPEC_TYPE_CUSTOM:
        return read_custom(context, field, node, target, error);
    }
    g_assert_not_reached();
}

static void note_default(SpecReadContext *context, const char *text)
{
    if (context->defaulted == NULL || context->quiet > 0)
        return;
    g_autofree char *plain = g_strdup(text);
    const gsize length = strlen(plain);
    if (length >= 2 && plain[0] == '"' && plain[length - 1] == '"') {
        plain[length - 1] = '\0';
        if (plain[1] == '\0')
            return; /* an empty name says nothing */
        g_ptr_array_add(context->defaulted, g_strdup_printf("%s=%s", context->path->str, plain + 1));
        return;
    }
    g_ptr_array_add(context->defaulted, g_strdup_printf("%s=%s", context->path->str, plain));
}

/* The value of a field that the file leaves out. */
static bool read_absent(SpecReadContext *context, const SpecField *field, void *target, GError **error)
{
    if (field->flags & SPEC_FIELD_REQUIRED) {
        g_autofree char *form = spec_field_form(field);
        return spec_read_fail(context, NULL, error, "missing; give %s", form);
    }
    if (field->flags & SPEC_FIELD_DERIVED) {
        if (field->type == SPEC_TYPE_WORD || field->type == SPEC_TYPE_INT ||
            field->type == SPEC_TYPE_TRISTATE || field->words != NULL)
            *(int *)target = SPEC_UNSET;
        else if (field->type == SPEC_TYPE_DOUBLE)
            *(double *)target = SPEC_UNSET;
        return true;
    }
    const bool whole_object = field->default_text == NULL && field->type == SPEC_TYPE_OBJECT;
    if (field->default_text == NULL && !whole_object)
        return true;
    const char *text = whole_object ? "{}" : field->default_text;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), context->where, error);
    if (doc == NULL)
        return false;
    SpecReadContext inside = *context;
    inside.allow_auto = true;
    if (!whole_object)
        inside.quiet++;
    const bool ok = read_value(&inside, field, orr_json_root(doc), target, error);
    orr_json_free(doc);
    if (ok && !whole_object)
        note_default(context, text);
    return ok;
}

enum { MOST_KEYS_LISTED = 32 };

static bool fail_unknown(SpecReadContext *context, const SpecTable *table, const OrrJson *member,
                         GError **error)
{
    const char *key = orr_json_key(member);
    g_autofree char *shown = orr_json_show(member), *near = spec_table_suggestion(table, key, context->all);
    const gsize length = path_enter(context, key);
    if (near != NULL) {
        spec_read_fail(context, NULL, error, "unknown key (value %s); did you mean \"%s\"?", shown, near);
    } else if (table->count > MOST_KEYS_LISTED || context->mistakes != NULL) {
        spec_read_fail(context, NULL, error, "unknown key (value %s); 'orrery help %s' lists its %d keys",
                       shown, table->name, table->count);
    } else {
        GString *known = g_string_new(NULL);
        for (int i = 0; i < table->count; i++)
            g_string_append_printf(known, "%s%s", i > 0 ? ", " : "", table->fields[i].key);
        spec_read_fail(context, NULL, error, "unknown key (value %s); %s knows %s", shown, table->name,
                       known->str);
        g_string_free(known, TRUE);
    }
    path_leave(context, length);
    return false;
}

/* True where reading goes on: nothing was wrong, or what was is kept with the others. */
static bool goes_on(SpecReadContext *context, bool ok, GError *problem, GError **error)
{
    if (ok)
        return true;
    if (context->mistakes == NULL) {
        g_propagate_error(error, problem);
        return false;
    }
    g_ptr_array_add(context->mistakes, g_strdup(problem->message));
    g_error_free(problem);
    return true;
}

/* Left to the reader that stops at the first mistake: what has rules of its own and is no object with a table, recipes that
 * may have keys of before. */
static bool passed_over(const SpecReadContext *context, const SpecField *field, const OrrJson *node)
{
    if (context->mistakes == NULL)
        return false;
    if (field->type == SPEC_TYPE_CUSTOM && (field->table == NULL || orr_json_type(node) != ORR_JSON_OBJECT))
        return true;
    return field->table != NULL && field->table->in_groups;
}

bool spec_read_table(SpecReadContext *context, const SpecTable *table, const OrrJson *object, void *target,
                     GError **error)
{
    if (orr_json_type(object) != ORR_JSON_OBJECT)
        return spec_read_fail(context, object, error, "is %s; give an object with the keys of %s",
                              orr_json_type_name(object), table->name);
    for (const OrrJson *member = orr_json_first(object); member != NULL; member = orr_json_next(member)) {
        GError *problem = NULL;
        const bool ok = spec_table_find(table, orr_json_key(member)) != NULL ||
                        fail_unknown(context, table, member, &problem);
        if (!goes_on(context, ok, problem, error))
            return false;
    }
    for (int i = 0; i < table->count; i++) {
        const SpecField *field = &table->fields[i];
        const OrrJson *node = orr_json_member(object, field->key);
        void *place = (char *)target + field->offset;
        const gsize length = path_enter(context, field->key);
        const bool absent = node == NULL || orr_json_type(node) == ORR_JSON_NULL;
        bool ok = true;
        GError *problem = NULL;
        if (!absent && !passed_over(context, field, node))
            ok = read_value(context, field, node, place, &problem);
        else if (!context->partial)
            ok = read_absent(context, field, place, &problem);
        path_leave(context, length);
        if (!goes_on(context, ok, problem, error))
            return false;
    }
    return true;
}

bool spec_read_schema_version(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    int version = 0;
    (void)target;
    return spec_read_int(context, node, 1, 1, &version, error);
}
