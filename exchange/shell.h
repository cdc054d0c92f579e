/* exchange/shell.h - the words of a launch script, with the variables that it sets put in.
 *
 * No shell: nothing is run, and what only a run could tell ($(hostname), a variable of the environment, $1 without
 * `set -- ...` before) stays as it is written. Branches of a condition that is known are read or not; of others, all.
 */
#ifndef ORR_EXCHANGE_SHELL_H
#define ORR_EXCHANGE_SHELL_H

#include <glib.h>
#include <stdbool.h>

/* Ends of commands, arrays and quoted texts, and ends of lines, stand among the words as these. */
#define SHELL_END  ""
#define SHELL_LINE "\n"

/* Words (char*) of `text`: quotes and backslashes as a shell reads them, comments and here-documents out. A quoted
 * text that holds options ("--lr 1 --bf16") is read as words of its own. Free with g_ptr_array_unref. */
GPtrArray *shell_words(const char *text, gsize length);

static inline bool shell_is_end(const char *word)
{
    return word[0] == '\0' || word[0] == '\n';
}

#endif
