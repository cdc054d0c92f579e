/* tests/unit/rules_fixture.h - argument rules of frameworks (tests/rules/NAME.json) over an exported file's settings.
 *
 * A rule is "when", "demand": expressions of settings by name (absent: the table's default, else 0; a bare switch and true
 * are 1), env.NAME, names of the table's "let", numbers and 'texts', with ! * / % + - < <= > >= == != ~ (contains) && ||,
 * ceil(x) and parentheses. Minus stands between spaces, since names have hyphens.
 */
#ifndef ORR_TESTS_RULES_FIXTURE_H
#define ORR_TESTS_RULES_FIXTURE_H

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "exchange/settings.h"

typedef struct RuleValue {
    double number;
    char text[512]; /* "" of numbers */
} RuleValue;

typedef struct Rules {
    const OrrJson *table;
    const Settings *settings;
    GHashTable *around; /* char* to double*: world_size, blackwell ... */
    GHashTable *environment;
    const char *at; /* in the expression being read */
} Rules;

static RuleValue rule_or(Rules *rules);

static RuleValue rule_number(double number)
{
    return (RuleValue){.number = number};
}

static bool rule_truth(RuleValue value)
{
    return value.text[0] != '\0' || value.number < 0 || value.number > 0;
}

static RuleValue rule_text(const char *text)
{
    RuleValue value = {0};
    char *end = NULL;
    if (text == NULL || strcmp(text, "true") == 0)
        return rule_number(1);
    if (strcmp(text, "false") == 0 || strcmp(text, "null") == 0 || text[0] == '\0')
        return rule_number(0);
    value.number = g_ascii_strtod(text, &end);
    if (*end != '\0') {
        value.number = 0;
        g_strlcpy(value.text, text, sizeof value.text);
    }
    return value;
}

static RuleValue rule_eval(const Rules *rules, const char *text)
{
    Rules inner = *rules;
    inner.at = text;
    const RuleValue value = rule_or(&inner);
    g_assert_cmpstr(inner.at, ==, "");
    return value;
}

static RuleValue rule_name(const Rules *rules, const char *name)
{
    const double *around = g_hash_table_lookup(rules->around, name);
    const OrrJson *let = orr_json_member(orr_json_member(rules->table, "let"), name);
    const OrrJson *standard = orr_json_member(orr_json_member(rules->table, "defaults"), name);
    if (around != NULL)
        return rule_number(*around);
    if (g_str_has_prefix(name, "env.")) {
        const char *value = g_hash_table_lookup(rules->environment, name + 4);
        return value != NULL ? rule_text(value) : rule_number(0);
    }
    if (let != NULL)
        return rule_eval(rules, orr_json_text(let));
    const Setting *setting = settings_find(rules->settings, name);
    if (setting != NULL)
        return rule_text(setting->value);
    if (standard == NULL)
        return rule_number(0);
    return orr_json_type(standard) == ORR_JSON_NUMBER ? rule_number(orr_json_number(standard))
                                                      : rule_text(orr_json_text(standard));
}

static bool rule_takes(Rules *rules, const char *word)
{
    while (*rules->at == ' ')
        rules->at++;
    if (!g_str_has_prefix(rules->at, word))
        return false;
    rules->at += strlen(word);
    return true;
}

static RuleValue rule_unary(Rules *rules)
{
    char word[128];
    gsize length = 0;
    if (rule_takes(rules, "!"))
        return rule_number(!rule_truth(rule_unary(rules)));
    if (rule_takes(rules, "(")) {
        const RuleValue value = rule_or(rules);
        g_assert_true(rule_takes(rules, ")"));
        return value;
    }
    if (rule_takes(rules, "ceil("))
        return rules->at -= 1, rule_number(ceil(rule_unary(rules).number - 1e-9));
    if (rule_takes(rules, "'")) {
        RuleValue value = {0};
        length = strcspn(rules->at, "'");
        g_strlcpy(value.text, rules->at, MIN(sizeof value.text, length + 1));
        rules->at += length + 1;
        return value;
    }
    while (g_ascii_isalnum(rules->at[length]) ||
           (rules->at[length] != '\0' && strchr("_.-", rules->at[length]) != NULL))
        length++;
    g_assert_cmpuint(length, >, 0);
    g_strlcpy(word, rules->at, MIN(sizeof word, length + 1));
    rules->at += length;
    return g_ascii_isdigit(word[0]) ? rule_number(g_ascii_strtod(word, NULL)) : rule_name(rules, word);
}

static RuleValue rule_product(Rules *rules)
{
    RuleValue value = rule_unary(rules);
    for (;;) {
        if (rule_takes(rules, "*"))
            value = rule_number(value.number * rule_unary(rules).number);
        else if (rule_takes(rules, "/"))
            value = rule_number(value.number / rule_unary(rules).number);
        else if (rule_takes(rules, "%"))
            value = rule_number(fmod(value.number, rule_unary(rules).number));
        else
            return value;
    }
}

static RuleValue rule_sum(Rules *rules)
{
    RuleValue value = rule_product(rules);
    for (;;) {
        if (rule_takes(rules, "+"))
            value = rule_number(value.number + rule_product(rules).number);
        else if (rule_takes(rules, "- "))
            value = rule_number(value.number - rule_product(rules).number);
        else
            return value;
    }
}

static bool rule_same(RuleValue a, RuleValue b)
{
    return strcmp(a.text, b.text) == 0 && fabs(a.number - b.number) < 1e-9;
}

static RuleValue rule_comparison(Rules *rules)
{
    const RuleValue value = rule_sum(rules);
    if (rule_takes(rules, "=="))
        return rule_number(rule_same(value, rule_sum(rules)));
    if (rule_takes(rules, "!="))
        return rule_number(!rule_same(value, rule_sum(rules)));
    if (rule_takes(rules, "<="))
        return rule_number(value.number <= rule_sum(rules).number);
    if (rule_takes(rules, ">="))
        return rule_number(value.number >= rule_sum(rules).number);
    if (rule_takes(rules, "<"))
        return rule_number(value.number < rule_sum(rules).number);
    if (rule_takes(rules, ">"))
        return rule_number(value.number > rule_sum(rules).number);
    if (rule_takes(rules, "~"))
        return rule_number(strstr(value.text, rule_sum(rules).text) != NULL);
    return value;
}

static RuleValue rule_and(Rules *rules)
{
    RuleValue value = rule_comparison(rules);
    while (rule_takes(rules, "&&")) {
        const bool next = rule_truth(rule_comparison(rules));
        value = rule_number(rule_truth(value) && next);
    }
    return value;
}

static RuleValue rule_or(Rules *rules)
{
    RuleValue value = rule_and(rules);
    while (rule_takes(rules, "||")) {
        const bool next = rule_truth(rule_and(rules));
        value = rule_number(rule_truth(value) || next);
    }
    return value;
}

/* Rules that the settings break; each is printed. `applied` (may be NULL): times a rule's "when" held, by place. */
static inline int rules_broken(const Rules *rules, const char *what, GArray *applied)
{
    int broken = 0;
    guint place = 0;
    for (const OrrJson *rule = orr_json_first(orr_json_member(rules->table, "rules")); rule != NULL;
         rule = orr_json_next(rule), place++) {
        if (!rule_truth(rule_eval(rules, orr_json_text(orr_json_member(rule, "when")))))
            continue;
        if (applied != NULL)
            g_array_index(applied, int, place)++;
        if (rule_truth(rule_eval(rules, orr_json_text(orr_json_member(rule, "demand")))))
            continue;
        g_test_message("%s: breaks %s: %s (%s)", what, orr_json_text(orr_json_member(rule, "source")),
                       orr_json_text(orr_json_member(rule, "says")),
                       orr_json_text(orr_json_member(rule, "demand")));
        broken++;
    }
    return broken;
}

#endif
