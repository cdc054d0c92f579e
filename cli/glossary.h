/* cli/glossary.h - the words of the field, for `orrery help WORD` and docs/GLOSSARY.md. */
#ifndef ORR_CLI_GLOSSARY_H
#define ORR_CLI_GLOSSARY_H

#include <glib.h>
#include <stdbool.h>

/* Appends what `word` means (case, spaces, hyphens and underscores do not matter); false where it is not known. */
bool cli_glossary_help(const char *word, GString *out);
/* Every word, NULL-terminated; g_free the array only. */
const char **cli_glossary_words(void);
/* The whole as a page of Markdown. */
void cli_glossary_markdown(GString *out);

#endif
