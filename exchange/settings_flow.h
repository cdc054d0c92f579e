/* exchange/settings_flow.h - what a configuration writes inside one line: quoted texts, {a: 1, b: {c: 2}} of YAML and
 * {a = 1} of TOML; and lines that belong together.
 */
#ifndef ORR_EXCHANGE_SETTINGS_FLOW_H
#define ORR_EXCHANGE_SETTINGS_FLOW_H

#include "exchange/settings.h"

/* "prefix.key" as a setting; quotes taken off both. */
void settings_add(Settings *settings, const char *prefix, const char *key, const char *value);
/* A text without its quotes, also TOML's three; g_free. */
char *settings_unquote(const char *text);

/* Settings of `text`, "{a: 1, b: {c: 2}}" with `sign` between a key and its value, below `prefix`. False, and nothing added:
 * it is no such map. */
bool settings_flow(Settings *settings, const char *prefix, const char *text, char sign);

/* Whether a value goes on in the next line: a bracket is open, or three quotes are. */
bool settings_goes_on(const char *text);

#endif
