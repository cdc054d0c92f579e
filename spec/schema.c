/* spec/schema.c - field tables as JSON Schema. The schema says what each key takes; contradictions between keys
 * (products, divisibility) are spec/check.c's. */
#include "spec/schema.h"

#include <string.h>

#include "base/text.h"
#include "spec/fields.h"

const char *const spec_schema_kinds[] = {"scenario",  "model",       "accelerator", "cluster",
                                         "framework", "measurement", NULL};

static void write_table(OrrJsonWriter *w, const SpecTable *table, bool partial);

static void write_type(OrrJsonWriter *w, const char *type)
{
    orr_jw_text(w, "type", type);
}

/* One alternative of an anyOf: {"type": ...}. */
static void write_alternative(OrrJsonWriter *w, const char *type)
{
    orr_jw_begin(w, NULL, '{');
    write_type(w, type);
    orr_jw_end(w, '}');
}

static void write_words(OrrJsonWriter *w, const SpecWords *words)
{
    orr_jw_begin(w, "enum", '[');
    for (int i = 0; i < words->count; i++)
        orr_jw_text(w, NULL, orr_word(words, i));
    orr_jw_end(w, ']');
}

static void write_json(OrrJsonWriter *w, const char *key, const char *text)
{
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "field table", NULL);
    g_assert(doc != NULL);
    orr_jw_node(w, key, orr_json_root(doc));
    orr_json_free(doc);
}

/* The members of a custom field's own schema. */
static void write_members(OrrJsonWriter *w, const char *text)
{
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "field table", NULL);
    g_assert(doc != NULL);
    for (const OrrJson *member = orr_json_first(orr_json_root(doc)); member != NULL;
         member = orr_json_next(member))
        orr_jw_node(w, orr_json_key(member), member);
    orr_json_free(doc);
}

/* What a value must be, without its alternatives. */
static void write_value(OrrJsonWriter *w, const SpecField *field)
{
    switch (field->type) {
    case SPEC_TYPE_INT:
    case SPEC_TYPE_DOUBLE:
        write_type(w, field->type == SPEC_TYPE_INT ? "integer" : "number");
        orr_jw_number(w, "minimum", field->min);
        orr_jw_number(w, "maximum", field->max);
        break;
    case SPEC_TYPE_BOOL:
    case SPEC_TYPE_TRISTATE:
        write_type(w, "boolean");
        break;
    case SPEC_TYPE_WORD:
        write_words(w, field->words);
        break;
    case SPEC_TYPE_WORD_SET:
        write_type(w, "array");
        orr_jw_begin(w, "items", '{');
        write_words(w, field->words);
        orr_jw_end(w, '}');
        break;
    case SPEC_TYPE_NAME:
        write_type(w, "string");
        orr_jw_int(w, "maxLength", (int64_t)field->size - 1);
        break;
    case SPEC_TYPE_OBJECT:
        write_table(w, field->table, (field->flags & SPEC_FIELD_PRESET) != 0);
        break;
    case SPEC_TYPE_CUSTOM:
        if (field->table != NULL)
            write_table(w, field->table, false);
        else if (field->schema != NULL)
            write_members(w, field->schema);
        break;
    }
}

static bool takes_text(const SpecField *field)
{
    if (field->type == SPEC_TYPE_DOUBLE)
        return field->unit != ORR_UNIT_NONE;
    if (field->type == SPEC_TYPE_OBJECT)
        return (field->flags & SPEC_FIELD_PRESET) != 0;
    /* An object has a short form: recompute "full", states "framework", offload "none"; a row's scenario has not. */
    return field->type == SPEC_TYPE_CUSTOM && field->table != NULL && field->table != &spec_table_scenario;
}

static void write_field(OrrJsonWriter *w, const SpecField *field)
{
    const bool automatic = (field->flags & SPEC_FIELD_AUTO) != 0 && !takes_text(field);
    const bool nullable = (field->flags & SPEC_FIELD_REQUIRED) == 0;
    orr_jw_begin(w, field->key, '{');
    orr_jw_text(w, "description", field->help);
    if (field->default_text != NULL)
        write_json(w, "default", field->default_text);
    orr_jw_begin(w, "anyOf", '[');
    orr_jw_begin(w, NULL, '{');
    write_value(w, field);
    orr_jw_end(w, '}');
    if (takes_text(field))
        write_alternative(w, "string");
    if (automatic) {
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "const", "auto");
        orr_jw_end(w, '}');
    }
    if (nullable)
        write_alternative(w, "null");
    orr_jw_end(w, ']');
    orr_jw_end(w, '}');
}

/* `partial`: a preset may supply what is required. */
static void write_table(OrrJsonWriter *w, const SpecTable *table, bool partial)
{
    int required = 0;
    write_type(w, "object");
    orr_jw_text(w, "description", table->help);
    orr_jw_bool(w, "additionalProperties", false);
    orr_jw_begin(w, "properties", '{');
    for (int i = 0; i < table->count; i++) {
        write_field(w, &table->fields[i]);
        required += (table->fields[i].flags & SPEC_FIELD_REQUIRED) != 0;
    }
    orr_jw_end(w, '}');
    if (required == 0)
        return;
    if (partial) {
        orr_jw_begin(w, "if", '{');
        orr_jw_begin(w, "required", '[');
        orr_jw_text(w, NULL, "preset");
        orr_jw_end(w, ']');
        orr_jw_end(w, '}');
        write_json(w, "then", "true");
        orr_jw_begin(w, "else", '{');
    }
    orr_jw_begin(w, "required", '[');
    for (int i = 0; i < table->count; i++)
        if (table->fields[i].flags & SPEC_FIELD_REQUIRED)
            orr_jw_text(w, NULL, table->fields[i].key);
    orr_jw_end(w, ']');
    if (partial)
        orr_jw_end(w, '}');
}

bool spec_schema_write(const char *kind, GString *out, GError **error)
{
    const SpecTable *const tables[] = {&spec_table_scenario, &spec_table_model,     &spec_table_accelerator,
                                       &spec_table_cluster,  &spec_table_framework, &spec_table_measurement};
    const int count = (int)G_N_ELEMENTS(tables);
    const SpecTable *table = NULL;
    for (int i = 0; i < count; i++)
        if (strcmp(spec_schema_kinds[i], kind) == 0)
            table = tables[i];
    if (table == NULL) {
        const char *near = orr_nearest(kind, spec_schema_kinds, count);
        g_autofree char *all = g_strjoinv(", ", (char **)spec_schema_kinds);
        orr_fail(error, ORR_ERROR_INPUT, "schema: \"%s\" is not a kind of file; %s%s", kind,
                 near != NULL ? "did you mean " : "give one of ", near != NULL ? near : all);
        return false;
    }
    const bool rows = table == &spec_table_measurement;
    g_autofree char *id = g_strdup_printf("orrery:%s.schema.json", kind),
                    *title = g_strdup_printf("Orrery %s", kind);
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_text(&w, "$schema", "https://json-schema.org/draft/2020-12/schema");
    orr_jw_text(&w, "$id", id);
    orr_jw_text(&w, "title", title);
    if (rows) {
        write_type(&w, "array");
        orr_jw_begin(&w, "items", '{');
    }
    write_table(&w, table, !rows && table != &spec_table_scenario);
    if (rows)
        orr_jw_end(&w, '}');
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
    return true;
}
