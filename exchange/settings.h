/* exchange/settings.h - a flat list of settings, "parallelism.tp = 8", and the syntaxes that frameworks write it in.
 *
 * Readers take the subset that such configuration files use (scalars, inline lists, nesting by section or
 * indentation) and are lenient about the rest: what they cannot read is reported, not fatal.
 */
#ifndef ORR_EXCHANGE_SETTINGS_H
#define ORR_EXCHANGE_SETTINGS_H

#include "base/json.h"

/* How a value that nobody gave is marked: behind it, or in a list of names where a format has no comments. */
#define SETTINGS_PLACEHOLDER      "# placeholder: give your own"
#define SETTINGS_PLACEHOLDERS_KEY "orrery_placeholders"

typedef enum {
    SETTINGS_FLAGS,   /* --key value, in a shell script or on a line */
    SETTINGS_DOTLIST, /* a.b=value, likewise */
    SETTINGS_JSON,
    SETTINGS_TOML,
    SETTINGS_YAML,
} SettingsSyntax;

typedef struct Setting {
    char *key;        /* "tensor-model-parallel-size", "parallelism.tp" */
    char *value;      /* without quotes; NULL: a bare switch */
    bool is_text;     /* quoted where the syntax quotes */
    bool used;        /* an importer has looked at it */
    bool placeholder; /* nobody gave this value: to be replaced before a launch */
} Setting;

typedef struct Settings {
    GArray *list;           /* Setting */
    GPtrArray *environment; /* char*: "NAME=VALUE" that a launch has to export */
    GPtrArray *left; /* char*: what an export leaves to the training script, and changes the prediction */
    char *companion; /* JSON text of the comment; NULL: none */
} Settings;

void settings_init(Settings *settings);
void settings_clear(Settings *settings);

void settings_text(Settings *settings, const char *key, const char *value); /* NULL: a bare switch */
void settings_int(Settings *settings, const char *key, int64_t value);
void settings_bool(Settings *settings, const char *key, bool value);
void settings_raw(Settings *settings, const char *key, const char *value); /* not quoted */

/* What was added last holds a value that nobody gave: marked as such where the syntax has comments. */
void settings_mark_placeholder(Settings *settings);
void settings_environment(Settings *settings, const char *name, const char *value);
void settings_leave(Settings *settings, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* The last setting of that name, marked as used, or NULL. */
Setting *settings_find(const Settings *settings, const char *key);

/* `title`: what the file is, one line; `name`: of the shell array of flags and dotlists. */
void settings_write(const Settings *settings, SettingsSyntax syntax, const char *title, const char *name,
                    GString *out);
/* `problems` (char*): lines that were passed over. Fails only for JSON that is none. */
bool settings_read(const char *text, size_t length, const char *path, SettingsSyntax syntax,
                   Settings *settings, GPtrArray *problems, GError **error);

#endif
