/* exchange/shell_branch.h - which branches of a script's `if` and `case` are read, and `set -- a b`.
 *
 * A condition is told where what it compares is known: [ $SIZE = 7B ], [[ $TP -gt 1 && -n $EP ]]. Where it is not, all branches
 * are read, as if there were no condition. Behind `set --` the script is called: what nothing has set is empty.
 */
#ifndef ORR_EXCHANGE_SHELL_BRANCH_H
#define ORR_EXCHANGE_SHELL_BRANCH_H

#include <glib.h>
#include <stdbool.h>

#define SHELL_EMPTY "\001" /* an empty word in quotes, where it counts */

typedef struct ShellBranches {
    GArray *open;    /* of `if` and `case` */
    bool command;    /* the next word begins a command */
    bool called;     /* `set --` has said the arguments */
    bool collecting; /* the words of a condition, or the subject of a case: they are list[begin ...] */
    guint begin;
    int set_at; /* where "set" stands in the list; -1: nowhere */
} ShellBranches;

ShellBranches shell_branches_new(void);
void shell_branches_clear(ShellBranches *branches);

/* Words are passed over here. */
bool shell_branches_skip(const ShellBranches *branches);
/* Patterns of a case come: "7B|8B" before a closing bracket. */
bool shell_branches_in_pattern(const ShellBranches *branches);
void shell_branches_pattern(ShellBranches *branches, const char *word);
void shell_branches_pattern_ends(ShellBranches *branches);
/* ";;": false where no case is open. */
bool shell_branches_case_ends(ShellBranches *branches);
/* A word outside quotes. True: it belongs to `if` or `case` and is no word of a command. */
bool shell_branches_keyword(ShellBranches *branches, GPtrArray *list, const char *word);
/* A command ends; the words of `set --` become $1, $2 and leave the list. */
void shell_branches_command_ends(ShellBranches *branches, GPtrArray *list, GHashTable *variables);

/* Whether the words (char*) of a condition hold, by `[`, `[[`, `!`, `&&` and `||`: 1, 0, or -1 where only a run could tell. */
int shell_condition(char *const *words, guint count, bool called);

#endif
