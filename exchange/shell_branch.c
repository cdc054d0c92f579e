/* exchange/shell_branch.c - the branches of a script; see shell_branch.h. */
#include "exchange/shell_branch.h"

#include <string.h>

#include "exchange/shell.h"

/* --- conditions --- */

typedef struct Condition {
    char *const *words;
    guint count, at;
    bool called;
} Condition;

enum { NO = 0, YES = 1, UNKNOWN = -1 };

static const char *word_at(const Condition *condition, guint ahead)
{
    const guint at = condition->at + ahead;
    return at < condition->count ? condition->words[at] : "";
}

static bool is_joint(const char *word)
{
    return strcmp(word, "&&") == 0 || strcmp(word, "||") == 0;
}

/* What a word holds: NULL where only a run could tell. */
static const char *value_of(const Condition *condition, const char *word)
{
    if (strcmp(word, SHELL_EMPTY) == 0)
        return "";
    if (strpbrk(word, "$`") == NULL)
        return word;
    return condition->called && word[0] == '$' ? "" : NULL;
}

static int compare_numbers(const char *a, const char *op, const char *b)
{
    char *end_a = NULL, *end_b = NULL;
    const gint64 x = g_ascii_strtoll(a, &end_a, 10), y = g_ascii_strtoll(b, &end_b, 10);
    if (end_a == a || *end_a != '\0' || end_b == b || *end_b != '\0')
        return UNKNOWN;
    const struct {
        const char *op;
        bool holds;
    } rows[] = {{"-eq", x == y}, {"-ne", x != y}, {"-gt", x > y},
                {"-ge", x >= y}, {"-lt", x < y},  {"-le", x <= y}};
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++)
        if (strcmp(rows[i].op, op) == 0)
            return rows[i].holds;
    return UNKNOWN;
}

static int compare(const Condition *condition, const char *a, const char *op, const char *b, bool patterns)
{
    const char *left = value_of(condition, a), *right = value_of(condition, b);
    const bool same = strcmp(op, "=") == 0 || strcmp(op, "==") == 0, differs = strcmp(op, "!=") == 0;
    if (left == NULL || right == NULL)
        return UNKNOWN;
    if (!same && !differs)
        return compare_numbers(left, op, right);
    const bool matches = patterns ? g_pattern_match_simple(right, left) : strcmp(left, right) == 0;
    return matches == same;
}

/* The words of one test up to `close` or, in double brackets, a joint. */
static int one_test(Condition *condition, const char *close, bool twice)
{
    guint count = 0;
    while (condition->at + count < condition->count && strcmp(word_at(condition, count), close) != 0 &&
           !(twice && is_joint(word_at(condition, count))))
        count++;
    const char *first = word_at(condition, 0), *second = word_at(condition, 1);
    int holds = UNKNOWN;
    if (count == 3) {
        holds = compare(condition, first, second, word_at(condition, 2), twice);
    } else if (count == 2 && (strcmp(first, "-z") == 0 || strcmp(first, "-n") == 0)) {
        const char *value = value_of(condition, second);
        holds = value == NULL ? UNKNOWN : (value[0] == '\0') == (first[1] == 'z');
    } else if (count == 1) {
        const char *value = value_of(condition, first);
        holds = value == NULL ? UNKNOWN : value[0] != '\0';
    }
    condition->at += count;
    return holds;
}

static int negated(int holds)
{
    return holds == UNKNOWN ? UNKNOWN : !holds;
}

static int joined(int holds, bool both, int next)
{
    const int end = both ? NO : YES;
    return holds == end || next == end ? end : holds == UNKNOWN || next == UNKNOWN ? UNKNOWN : next;
}

static int one_of(Condition *condition, int depth)
{
    enum { DEEPEST = 16 };
    const char *word = word_at(condition, 0);
    if (condition->at >= condition->count || depth > DEEPEST)
        return UNKNOWN;
    if (strcmp(word, "!") == 0) {
        condition->at++;
        return negated(one_of(condition, depth + 1));
    }
    const bool twice = strcmp(word, "[[") == 0;
    if (!twice && strcmp(word, "[") != 0) { /* a command: its words up to a joint */
        const bool told = strcmp(word, "true") == 0 || strcmp(word, "false") == 0;
        const int holds = told ? word[0] == 't' : UNKNOWN;
        while (condition->at < condition->count && !is_joint(word_at(condition, 0)))
            condition->at++;
        return holds;
    }
    const char *close = twice ? "]]" : "]";
    condition->at++;
    const bool inverse = strcmp(word_at(condition, 0), "!") == 0;
    condition->at += inverse;
    int holds = one_test(condition, close, twice);
    holds = inverse ? negated(holds) : holds;
    while (twice && is_joint(word_at(condition, 0))) {
        const bool both = word_at(condition, 0)[0] == '&';
        condition->at++;
        holds = joined(holds, both, one_test(condition, close, true));
    }
    const bool closed = condition->at < condition->count;
    condition->at++;
    return closed ? holds : UNKNOWN;
}

/* From left to right, as a shell joins. */
static int any_of(Condition *condition, int depth)
{
    int holds = one_of(condition, depth);
    while (is_joint(word_at(condition, 0))) {
        const bool both = word_at(condition, 0)[0] == '&';
        condition->at++;
        holds = joined(holds, both, one_of(condition, depth));
    }
    return condition->at >= condition->count ? holds : UNKNOWN;
}

int shell_condition(char *const *words, guint count, bool called)
{
    Condition condition = {words, count, 0, called};
    return any_of(&condition, 0);
}

/* --- branches --- */

typedef enum {
    READ_ALL, /* the condition is not known */
    READ_THIS,
    SEEK, /* none of the branches so far is the one */
    PAST  /* it has been read, or the whole lies in what is passed over */
} Reading;

typedef struct Branch {
    bool is_case, pattern, matched;
    Reading reading;
    char *subject; /* of a case */
} Branch;

static void clear_branch(void *data)
{
    g_free(((Branch *)data)->subject);
}

ShellBranches shell_branches_new(void)
{
    ShellBranches branches = {
        .open = g_array_new(FALSE, TRUE, sizeof(Branch)), .command = true, .set_at = -1};
    g_array_set_clear_func(branches.open, clear_branch);
    return branches;
}

void shell_branches_clear(ShellBranches *branches)
{
    g_array_unref(branches->open);
}

static Branch *innermost(const ShellBranches *branches)
{
    return branches->open->len > 0 ? &g_array_index(branches->open, Branch, branches->open->len - 1) : NULL;
}

bool shell_branches_skip(const ShellBranches *branches)
{
    const Branch *branch = innermost(branches);
    return branch != NULL && !branches->collecting && (branch->reading == SEEK || branch->reading == PAST);
}

bool shell_branches_in_pattern(const ShellBranches *branches)
{
    const Branch *branch = innermost(branches);
    return branch != NULL && branch->is_case && branch->pattern;
}

void shell_branches_pattern(ShellBranches *branches, const char *word)
{
    Branch *branch = innermost(branches);
    g_auto(GStrv) each = g_strsplit(word, "|", -1);
    for (char **pattern = each; *pattern != NULL; pattern++)
        branch->matched =
            branch->matched || (branch->subject != NULL && g_pattern_match_simple(*pattern, branch->subject));
}

void shell_branches_pattern_ends(ShellBranches *branches)
{
    Branch *branch = innermost(branches);
    branch->pattern = false;
    if (branch->reading == SEEK && branch->matched)
        branch->reading = READ_THIS;
    branch->matched = false;
    branches->command = true;
}

bool shell_branches_case_ends(ShellBranches *branches)
{
    Branch *branch = innermost(branches);
    if (branch == NULL || !branch->is_case || branch->pattern)
        return false;
    branch->pattern = true;
    if (branch->reading == READ_THIS)
        branch->reading = PAST;
    return true;
}

static void begin(ShellBranches *branches, const GPtrArray *list, bool is_case)
{
    enum { MOST = 256 };
    const bool passed = shell_branches_skip(branches) || branches->open->len >= MOST;
    const Branch branch = {.is_case = is_case, .reading = passed ? PAST : READ_ALL};
    g_array_append_val(branches->open, branch);
    branches->collecting = !passed;
    branches->begin = list->len;
}

static void drop_ends(const ShellBranches *branches, GPtrArray *list)
{
    while (list->len > branches->begin && shell_is_end(g_ptr_array_index(list, list->len - 1)))
        g_ptr_array_remove_index(list, list->len - 1);
}

/* Behind "then": the condition's words, told or left. */
static void condition_ends(ShellBranches *branches, GPtrArray *list)
{
    Branch *branch = innermost(branches);
    branches->collecting = false;
    drop_ends(branches, list);
    const int holds = shell_condition((char *const *)list->pdata + branches->begin,
                                      list->len - branches->begin, branches->called);
    branch->reading = holds == UNKNOWN ? READ_ALL : holds == YES ? READ_THIS : SEEK;
    g_ptr_array_set_size(list, (int)branches->begin);
}

static void subject_ends(ShellBranches *branches, GPtrArray *list)
{
    Branch *branch = innermost(branches);
    branches->collecting = false;
    drop_ends(branches, list);
    const Condition condition = {.called = branches->called};
    const char *word = list->len > branches->begin ? g_ptr_array_index(list, branches->begin) : "",
               *value = value_of(&condition, word);
    branch->subject = g_strdup(value);
    branch->reading = value != NULL ? SEEK : READ_ALL;
    branch->pattern = true;
    g_ptr_array_set_size(list, (int)branches->begin);
}

/* "elif" and "else". */
static void next_branch(ShellBranches *branches, const GPtrArray *list, bool has_condition)
{
    Branch *branch = innermost(branches);
    if (branch->reading == READ_THIS)
        branch->reading = PAST;
    else if (branch->reading == SEEK && !has_condition)
        branch->reading = READ_THIS;
    branches->collecting = has_condition && branch->reading == SEEK;
    branches->begin = list->len;
}

bool shell_branches_keyword(ShellBranches *branches, GPtrArray *list, const char *word)
{
    Branch *branch = innermost(branches);
    if (branch != NULL && branch->is_case && branches->collecting && strcmp(word, "in") == 0) {
        subject_ends(branches, list);
        return true;
    }
    if (!branches->command)
        return false;
    const bool in_if = branch != NULL && !branch->is_case;
    if (strcmp(word, "if") == 0 || strcmp(word, "case") == 0) {
        if (branches->collecting) /* inside another's condition: not told */
            return false;
        begin(branches, list, word[0] == 'c');
    } else if (in_if && strcmp(word, "then") == 0) {
        if (branches->collecting)
            condition_ends(branches, list);
    } else if (in_if && (strcmp(word, "elif") == 0 || strcmp(word, "else") == 0)) {
        next_branch(branches, list, word[2] == 'i');
    } else if (branch != NULL && strcmp(word, branch->is_case ? "esac" : "fi") == 0) {
        g_array_set_size(branches->open, branches->open->len - 1);
        branches->collecting = false;
    } else {
        branches->command = strcmp(word, "do") == 0 || strcmp(word, "{") == 0 || strcmp(word, "!") == 0;
        return false;
    }
    branches->command = true;
    return true;
}

void shell_branches_command_ends(ShellBranches *branches, GPtrArray *list, GHashTable *variables)
{
    branches->command = true;
    const guint first = (guint)(branches->set_at + 2);
    const bool says =
        branches->set_at >= 0 && list->len >= first && strcmp(g_ptr_array_index(list, first - 1), "--") == 0;
    for (guint i = first; says && i < list->len; i++) {
        const char *word = g_ptr_array_index(list, i);
        g_hash_table_insert(variables, g_strdup_printf("%u", i - first + 1),
                            g_strdup(strcmp(word, SHELL_EMPTY) == 0 ? "" : word));
    }
    if (says) {
        g_ptr_array_set_size(list, branches->set_at);
        branches->called = true;
    }
    branches->set_at = -1;
}
