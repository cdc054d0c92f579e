/* spec/read_keys.c - keys of field tables: found, and guessed at from what somebody wrote. */
#include <string.h>

#include "base/text.h"
#include "spec/read.h"

const SpecField *spec_table_find(const SpecTable *table, const char *key)
{
    for (int i = 0; i < table->count; i++)
        if (strcmp(table->fields[i].key, key) == 0)
            return &table->fields[i];
    return NULL;
}

/* The key of `table` nearest to `word`, or NULL. */
static const char *spec_table_nearest(const SpecTable *table, const char *word)
{
    g_autofree const char **keys = g_new(const char *, (gsize)table->count);
    for (int i = 0; i < table->count; i++)
        keys[i] = table->fields[i].key;
    return orr_nearest(word, keys, table->count);
}

/* What users of other tools write. */
static const struct {
    const char *alias, *key;
} aliases[] = {
    {"tp", "parallel.tensor"},
    {"tp_size", "parallel.tensor"},
    {"sp", "parallel.sequence_parallel"},
    {"cp", "parallel.context"},
    {"pp", "parallel.pipeline"},
    {"pp_size", "parallel.pipeline"},
    {"vpp", "parallel.virtual_stages"},
    {"vp", "parallel.virtual_stages"},
    {"dp", "parallel.data"},
    {"ep", "parallel.expert"},
    {"etp", "parallel.expert_tensor"},
    {"mbs", "training.micro_batch"},
    {"gbs", "training.global_batch"},
    {"seq_len", "training.sequence_length"},
    {"seq_length", "training.sequence_length"},
    {"dtype", "training.precision"},
    {"num_layers", "model.layers"},
    {"hidden_size", "model.hidden"},
    {"vocab_size", "model.vocab"},
    {"gpus", "cluster.nodes"},
};

/* The scenario's key that other tools call `key`, or NULL. */
static const char *alias_of(const char *key)
{
    for (guint i = 0; i < G_N_ELEMENTS(aliases); i++)
        if (g_ascii_strcasecmp(aliases[i].alias, key) == 0)
            return aliases[i].key;
    return NULL;
}

/* Full path of a key of another part of the scenario; g_free. */
static char *path_elsewhere(const SpecTable *all, const char *key)
{
    for (int i = 0; i < all->count; i++) {
        const SpecField *group = &all->fields[i];
        if (group->table != NULL && spec_table_find(group->table, key) != NULL)
            return g_strconcat(group->key, ".", key, NULL);
    }
    return NULL;
}

/* "group.key" of the key nearest to `word` in a group of `table`, or NULL; g_free. */
static char *nearest_in_groups(const SpecTable *table, const char *word)
{
    for (int i = 0; i < table->count; i++) {
        const SpecField *group = &table->fields[i];
        const char *near = group->table != NULL ? spec_table_nearest(group->table, word) : NULL;
        if (near != NULL)
            return g_strconcat(group->key, ".", near, NULL);
    }
    return NULL;
}

char *spec_table_suggestion(const SpecTable *table, const char *key, const SpecTable *all)
{
    char *inside = table->in_groups ? nearest_in_groups(table, key) : NULL;
    if (inside != NULL)
        return inside;
    const char *meant = alias_of(key);
    if (meant == NULL)
        meant = spec_table_nearest(table, key);
    return meant != NULL ? g_strdup(meant) : path_elsewhere(all, key);
}
