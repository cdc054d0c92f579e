/* spec/texts.c - texts that Specs point to. */
#include "spec/texts.h"

static void release_text(gpointer text)
{
    g_ref_string_release(text);
}

GPtrArray *spec_texts_new(void)
{
    return g_ptr_array_new_with_free_func(release_text);
}

const char *spec_keep_text(GPtrArray *texts, const char *text)
{
    char *kept = g_ref_string_new_intern(text);
    if (texts != NULL)
        g_ptr_array_add(texts, kept);
    return kept;
}
