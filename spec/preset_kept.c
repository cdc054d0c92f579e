/* spec/preset_kept.c - a table of resolved presets behind a lock. What it holds never changes: it is replaced. */
#include "spec/preset_kept.h"

/* A search over accelerators meets some dozens; a table that is full begins anew. */
enum { MOST_KEPT = 256 };

typedef struct Kept {
    PresetGiven given;
    GArray *files; /* PresetFile */
    gint holders;  /* the last one frees it */
} Kept;

static GMutex lock;
static GHashTable *table; /* path of the preset's file -> Kept */

static void clear_file(gpointer file)
{
    g_free(((PresetFile *)file)->path);
}

GArray *preset_files_new(void)
{
    GArray *files = g_array_new(FALSE, FALSE, sizeof(PresetFile));
    g_array_set_clear_func(files, clear_file);
    return files;
}

void preset_files_add(GArray *files, const char *path)
{
    const PresetFile file = {g_strdup(path), orr_file_stamp(path)};
    g_array_append_val(files, file);
}

void preset_given_clear(PresetGiven *given)
{
    orr_json_free(given->doc);
    g_clear_pointer(&given->profiles, g_ptr_array_unref);
    g_clear_pointer(&given->notes, g_ptr_array_unref);
    given->doc = NULL;
}

static void release(gpointer data)
{
    Kept *kept = data;
    if (!g_atomic_int_dec_and_test(&kept->holders))
        return;
    preset_given_clear(&kept->given);
    g_array_unref(kept->files);
    g_free(kept);
}

static gpointer copy_text(gconstpointer text, gpointer unused)
{
    (void)unused;
    return g_strdup(text);
}

static PresetGiven copy_given(const PresetGiven *given)
{
    PresetGiven copy = {.doc = orr_json_copy(orr_json_root(given->doc), orr_json_name(given->doc)),
                        .profiles = g_ptr_array_copy(given->profiles, copy_text, NULL),
                        .notes = g_ptr_array_copy(given->notes, copy_text, NULL)};
    g_ptr_array_set_free_func(copy.profiles, g_free);
    g_ptr_array_set_free_func(copy.notes, g_free);
    return copy;
}

static bool still_so(const GArray *files)
{
    for (guint i = 0; i < files->len; i++) {
        const PresetFile *file = &g_array_index(files, PresetFile, i);
        const OrrFileStamp now = orr_file_stamp(file->path);
        if (!orr_file_stamp_same(&file->stamp, &now))
            return false;
    }
    return true;
}

bool preset_kept(const char *path, PresetGiven *ret_given)
{
    g_mutex_lock(&lock);
    Kept *kept = table != NULL ? g_hash_table_lookup(table, path) : NULL;
    if (kept != NULL)
        g_atomic_int_inc(&kept->holders);
    g_mutex_unlock(&lock);
    if (kept == NULL)
        return false;
    const bool same = still_so(kept->files);
    if (same)
        *ret_given = copy_given(&kept->given);
    release(kept);
    return same;
}

void preset_keep(const char *path, const PresetGiven *given, const GArray *files)
{
    for (guint i = 0; i < files->len; i++)
        if (!orr_file_stamp_settled(&g_array_index(files, PresetFile, i).stamp))
            return;
    Kept *kept = g_new0(Kept, 1);
    kept->holders = 1;
    kept->given = copy_given(given);
    kept->files = preset_files_new();
    for (guint i = 0; i < files->len; i++) {
        PresetFile file = g_array_index(files, PresetFile, i);
        file.path = g_strdup(file.path);
        g_array_append_val(kept->files, file);
    }
    g_mutex_lock(&lock);
    if (table == NULL)
        table = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, release);
    if (g_hash_table_size(table) >= MOST_KEPT)
        g_hash_table_remove_all(table);
    g_hash_table_replace(table, g_strdup(path), kept);
    g_mutex_unlock(&lock);
}
