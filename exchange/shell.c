/* exchange/shell.c - a script's words; see shell.h. */
#include "exchange/shell.h"

#include <string.h>

#include "exchange/shell_branch.h"
#include "exchange/shell_expand.h"

enum { DEEPEST = 4, LONGEST = 1 << 16 };

typedef struct Shell {
    GPtrArray *list;       /* char* */
    GHashTable *variables; /* char* to char* */
    GString *word;
    bool open;      /* a word has begun, perhaps an empty one in quotes */
    bool quoted;    /* a part of it was in quotes */
    int arrays;     /* brackets of arrays that are open */
    char *document; /* the word that ends the here-document which begins on this line, or NULL */
    ShellBranches branches;
} Shell;

static void read_text(Shell *shell, const char *text, gsize length, int level);

static void add_end(Shell *shell, const char *end)
{
    shell_branches_command_ends(&shell->branches, shell->list, shell->variables);
    if (shell->list->len > 0 && !shell_branches_skip(&shell->branches) &&
        !shell_is_end(g_ptr_array_index(shell->list, shell->list->len - 1)))
        g_ptr_array_add(shell->list, g_strdup(end));
}

/* Options among words: "--fp8-format hybrid", but no single "--bf16". */
static bool holds_options(const char *text)
{
    const gsize lead = strspn(text, " \t\r\n\\");
    for (const char *at = strstr(text, "--"); at != NULL; at = strstr(at + 2, "--")) {
        const bool first = at == text + lead;
        if (g_ascii_isalpha(at[2]) && (first || g_ascii_isspace(at[-1])))
            return lead > 0 || !first || strpbrk(at, " \t\n") != NULL;
    }
    return false;
}

/* Where the value of "NAME=value" or "NAME+=value" begins; 0: no assignment. */
static gsize assignment(const char *word)
{
    gsize name = 0;
    while (g_ascii_isalnum(word[name]) || word[name] == '_')
        name++;
    if (name == 0 || g_ascii_isdigit(word[0]))
        return 0;
    return word[name] == '=' ? name + 1 : word[name] == '+' && word[name + 1] == '=' ? name + 2 : 0;
}

static void assign(Shell *shell, const char *word, gsize value)
{
    const gsize name = value - 1 - (word[value - 2] == '+');
    if (shell_branches_skip(&shell->branches))
        return;
    const bool usable = strlen(word + value) < LONGEST && !holds_options(word + value);
    g_hash_table_insert(shell->variables, g_strndup(word, name), g_strdup(usable ? word + value : ""));
}

/* A word that belongs to `if` or `case`, a pattern, or one of a branch that is not taken. */
static bool end_word_of_branch(Shell *shell, int level)
{
    ShellBranches *branches = &shell->branches;
    const char *word = shell->word->str;
    const bool plain = level == 0 && shell->arrays == 0, begins = branches->command;
    if (plain && shell_branches_in_pattern(branches) && (shell->quoted || strcmp(word, "esac") != 0)) {
        shell_branches_pattern(branches, word);
        return true;
    }
    if (plain && !shell->quoted && word[0] != '\0' && shell_branches_keyword(branches, shell->list, word))
        return true;
    if (shell_branches_skip(branches))
        return true;
    if (plain && begins && strcmp(word, "set") == 0)
        branches->set_at = (int)shell->list->len;
    branches->command = branches->command && !shell->quoted;
    return false;
}

static void end_word(Shell *shell, int level)
{
    const bool open = shell->open && !end_word_of_branch(shell, level);
    const char *word = shell->word->str;
    const gsize value = assignment(word);
    const bool counts = shell->branches.collecting || shell->branches.set_at >= 0;
    if (open && value > 0)
        assign(shell, word, value);
    if (open && shell->quoted && level < DEEPEST && holds_options(word + value) && !counts) {
        g_autofree char *inner = g_strdup(word + value);
        g_string_truncate(shell->word, 0);
        shell->open = shell->quoted = false;
        add_end(shell, SHELL_END);
        read_text(shell, inner, strlen(inner), level + 1);
        add_end(shell, SHELL_END);
    } else if (open && word[0] != '\0') {
        g_ptr_array_add(shell->list, g_strdup(word));
    } else if (open && shell->quoted && counts) {
        g_ptr_array_add(shell->list, g_strdup(SHELL_EMPTY));
    }
    g_string_truncate(shell->word, 0);
    shell->open = shell->quoted = false;
}

static void append(Shell *shell, char c)
{
    if (shell->word->len < LONGEST)
        g_string_append_c(shell->word, c);
    shell->open = true;
}

static gsize expand(Shell *shell, const char *text, gsize length, gsize at)
{
    const gsize before = shell->word->len;
    const gsize end = shell_expand(shell->variables, text, length, at, shell->word);
    if (before > LONGEST)
        g_string_truncate(shell->word, before);
    shell->open = shell->open || shell->word->len > before;
    return end;
}

/* text[at] is a quote: takes what it holds, returns the place behind the closing one. */
static gsize read_quoted(Shell *shell, const char *text, gsize length, gsize at)
{
    const char quote = text[at++];
    shell->open = shell->quoted = true;
    while (at < length && text[at] != quote) {
        if (quote == '"' && text[at] == '\\' && at + 1 < length && strchr("\\\"$`\n", text[at + 1]) != NULL) {
            if (text[++at] != '\n')
                append(shell, text[at]);
            at++;
        } else if (quote == '"' && (text[at] == '$' || text[at] == '`')) {
            at = expand(shell, text, length, at);
        } else if (text[at] != '\0') {
            append(shell, text[at++]);
        } else {
            at++;
        }
    }
    return MIN(at + 1, length);
}

/* "#SBATCH --nodes=48" is what SLURM_NNODES will be. */
static gsize read_comment(Shell *shell, const char *text, gsize length, gsize at)
{
    gsize end = at;
    while (end < length && text[end] != '\n')
        end++;
    g_autofree char *line = g_strndup(text + at, end - at);
    const char *nodes = g_str_has_prefix(line, "#SBATCH") ? strstr(line, "--nodes=") : NULL;
    if (nodes != NULL) {
        nodes += strlen("--nodes=");
        const gsize digits = strspn(nodes, "0123456789");
        if (digits > 0) {
            g_hash_table_insert(shell->variables, g_strdup("SLURM_NNODES"), g_strndup(nodes, digits));
            g_hash_table_insert(shell->variables, g_strdup("SLURM_JOB_NUM_NODES"), g_strndup(nodes, digits));
        }
    }
    return end;
}

/* "<<EOT": remembers the word. Other redirections end a command; "2>" is no word. */
static gsize read_redirection(Shell *shell, const char *text, gsize length, gsize at, int level)
{
    const bool document = at + 2 < length && text[at] == '<' && text[at + 1] == '<' && text[at + 2] != '<';
    if (shell->open && strspn(shell->word->str, "0123456789") == shell->word->len) {
        g_string_truncate(shell->word, 0);
        shell->open = false;
    }
    end_word(shell, level);
    add_end(shell, SHELL_END);
    while (at < length && strchr("<>&", text[at]) != NULL && text[at] != '\0')
        at++;
    if (!document || shell->document != NULL)
        return at;
    while (at < length && text[at] != '\n' && strchr("- '\"\\", text[at]) != NULL && text[at] != '\0')
        at++;
    const gsize start = at;
    while (at < length && (g_ascii_isalnum(text[at]) || text[at] == '_'))
        at++;
    if (at > start)
        shell->document = g_strndup(text + start, at - start);
    return at;
}

/* text[at] is the line end behind which a here-document begins: the place behind its last line. */
static gsize skip_document(Shell *shell, const char *text, gsize length, gsize at)
{
    const gsize word = strlen(shell->document);
    while (at < length) {
        const gsize start = ++at;
        while (at < length && text[at] != '\n')
            at++;
        gsize first = start;
        while (first < at && text[first] == '\t')
            first++;
        if (at - first == word && strncmp(text + first, shell->document, word) == 0)
            break;
    }
    g_clear_pointer(&shell->document, g_free);
    return at;
}

static bool ends_here(const char *text, gsize length, gsize at)
{
    return at + 1 >= length || g_ascii_isspace(text[at + 1]) || strchr(";|&", text[at + 1]) != NULL;
}

/* The signs of conditions and cases: "&&" and "||" between tests, ")" behind a pattern, ";;". Returns `at` where it is none. */
static gsize read_branch_sign(Shell *shell, const char *text, gsize length, gsize at)
{
    const char c = text[at];
    const bool twice = at + 1 < length && text[at + 1] == c;
    ShellBranches *branches = &shell->branches;
    if (branches->collecting && twice && (c == '&' || c == '|')) {
        end_word(shell, 0);
        g_ptr_array_add(shell->list, g_strdup(c == '&' ? "&&" : "||"));
        branches->command = true;
        return at + 2;
    }
    if (c == ')' && shell_branches_in_pattern(branches)) {
        end_word(shell, 0);
        shell_branches_pattern_ends(branches);
        return at + 1;
    }
    if (c == ';' && twice && shell->arrays == 0) {
        end_word(shell, 0);
        add_end(shell, SHELL_END);
        return shell_branches_case_ends(branches) ? at + 2 : at;
    }
    return at;
}

/* What is neither quoted nor a word's letter. Returns the place behind it, or `at` where it is a letter. */
static gsize read_sign(Shell *shell, const char *text, gsize length, gsize at, int level)
{
    const char c = text[at];
    if (c == '#' && !shell->open && level == 0)
        return read_comment(shell, text, length, at);
    if (c == '<' || c == '>')
        return read_redirection(shell, text, length, at, level);
    const gsize behind = level == 0 ? read_branch_sign(shell, text, length, at) : at;
    if (behind > at)
        return behind;
    const bool group = c == '(' && !shell->open,
               bracket = c == ';' && shell->branches.collecting && g_str_has_suffix(shell->word->str, "]");
    if (bracket || ((c == ';' || c == '|' || c == '&') && !shell->open) ||
        ((c == ';' || c == '|' || c == '&' || group) && ends_here(text, length, at))) {
        end_word(shell, level);
        add_end(shell, SHELL_END);
        return at + 1;
    }
    if (c == '(' && g_str_has_suffix(shell->word->str, "=")) { /* an array begins; its words are the list's */
        if (!shell_branches_skip(&shell->branches))
            g_hash_table_insert(shell->variables,
                                g_strndup(shell->word->str, strcspn(shell->word->str, "+=")), g_strdup(""));
        g_string_truncate(shell->word, 0);
        shell->open = shell->quoted = false;
        shell->arrays++;
        add_end(shell, SHELL_END);
        return at + 1;
    }
    if (c == ')' && strchr(shell->word->str, '(') == NULL) {
        end_word(shell, level);
        add_end(shell, SHELL_END);
        shell->arrays = MAX(0, shell->arrays - 1);
        return at + 1;
    }
    return at;
}

static gsize read_space(Shell *shell, const char *text, gsize length, gsize at, int level)
{
    end_word(shell, level);
    if (text[at] == '\n' && shell->arrays == 0 && level == 0)
        add_end(shell, SHELL_LINE);
    if (text[at] == '\n' && shell->document != NULL)
        return skip_document(shell, text, length, at);
    return at + 1;
}

static void read_text(Shell *shell, const char *text, gsize length, int level)
{
    for (gsize i = 0; i < length;) {
        const char c = text[i];
        if (c == '\'' || c == '"') {
            i = read_quoted(shell, text, length, i);
        } else if (c == '$' || c == '`') {
            i = expand(shell, text, length, i);
        } else if (c == '\\' && i + 1 < length) {
            const gsize end = text[i + 1] == '\r' && i + 2 < length && text[i + 2] == '\n' ? i + 2 : i + 1;
            if (text[end] == '\n')
                end_word(shell, level);
            else if (text[end] != '\0')
                append(shell, text[end]);
            i = end + 1;
        } else if (g_ascii_isspace(c)) {
            i = read_space(shell, text, length, i, level);
        } else {
            const gsize next = c != '\0' ? read_sign(shell, text, length, i, level) : i + 1;
            if (next == i)
                append(shell, c);
            i = MAX(next, i + 1);
        }
    }
    end_word(shell, level);
}

GPtrArray *shell_words(const char *text, gsize length)
{
    Shell shell = {.list = g_ptr_array_new_with_free_func(g_free),
                   .variables = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
                   .word = g_string_new(NULL),
                   .branches = shell_branches_new()};
    read_text(&shell, text, length, 0);
    g_string_free(shell.word, TRUE);
    g_free(shell.document);
    shell_branches_clear(&shell.branches);
    g_hash_table_unref(shell.variables);
    return shell.list;
}
