/* ledger/generation.c - see generation.h. */
#include <string.h>

#include "ledger/generation.h"
#include "spec/load.h"
#include "spec/resolve.h"

/* Containers are named by year and month. */
#define RELEASE "NeMo "

char *ledger_software_month(const char *text, const char *date)
{
    const char *at = text != NULL ? strstr(text, RELEASE) : NULL;
    for (; at != NULL; at = strstr(at, RELEASE)) {
        at += strlen(RELEASE);
        const bool month = g_ascii_isdigit(at[0]) && g_ascii_isdigit(at[1]) && at[2] == '.' &&
                           g_ascii_isdigit(at[3]) && g_ascii_isdigit(at[4]);
        const int number = month ? 10 * (at[3] - '0') + at[4] - '0' : 0;
        if (number >= 1 && number <= 12)
            return g_strdup_printf("20%.2s-%.2s", at, at + 3);
    }
    return g_strdup(date);
}

const char *ledger_framework_launched(const char *framework, const char *text)
{
    const bool by_flags = framework != NULL && text != NULL && strcmp(framework, "megatron-core") == 0 &&
                          g_str_has_prefix(text, "Megatron-LM ");
    return by_flags ? "megatron-lm" : framework;
}

char *ledger_framework_of_date(const char *framework, const char *date)
{
    g_autoptr(GPtrArray) names = spec_preset_names("frameworks", NULL);
    SpecFramework today; /* its name is not `framework` where that is an old name */
    if (!spec_load_framework(framework, &today, NULL))
        return NULL;
    g_autofree char *prefix = g_strconcat(today.name, "-", NULL);
    char until[sizeof((SpecFramework *)0)->until] = "";
    char *found = NULL;
    for (guint i = 0; names != NULL && i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);
        SpecFramework profile;
        if (!g_str_has_prefix(name, prefix) || !spec_load_framework(name, &profile, NULL) ||
            strcmp(date, profile.until) > 0 || (found != NULL && strcmp(profile.until, until) >= 0)) {
            continue;
        }
        g_free(found);
        found = g_strdup(name);
        g_strlcpy(until, profile.until, sizeof until);
    }
    return found;
}

/* Whether `text` (lower case) has all words of "A + B". */
static bool has_words(const char *text, const char *entry)
{
    g_auto(GStrv) words = g_strsplit(entry, "+", -1);
    bool all = entry[0] != '\0';
    for (int i = 0; words[i] != NULL && all; i++) {
        g_autofree char *word = g_ascii_strdown(g_strstrip(words[i]), -1);
        all = word[0] != '\0' && strstr(text, word) != NULL;
    }
    return all;
}

char *ledger_framework_of_text(const char *text)
{
    g_autofree char *lower = text != NULL ? g_ascii_strdown(text, -1) : NULL;
    g_autoptr(GPtrArray) names = lower != NULL ? spec_preset_names("frameworks", NULL) : NULL;
    gsize longest = 0;
    char *found = NULL;
    for (guint i = 0; names != NULL && i < names->len; i++) {
        SpecFramework profile;
        if (!spec_load_framework(names->pdata[i], &profile, NULL))
            continue;
        g_auto(GStrv) entries = g_strsplit(profile.software, ";", -1);
        for (int k = 0; entries[k] != NULL; k++) {
            g_strstrip(entries[k]);
            if (strlen(entries[k]) > longest && has_words(lower, entries[k])) {
                longest = strlen(entries[k]);
                g_free(found);
                found = g_strdup(names->pdata[i]);
            }
        }
    }
    return found;
}
