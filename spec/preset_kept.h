/* spec/preset_kept.h - presets as they were resolved, kept for whoever asks next; from any thread. */
#ifndef ORR_SPEC_PRESET_KEPT_H
#define ORR_SPEC_PRESET_KEPT_H

#include "base/file.h"
#include "base/json.h"

/* A file that was read on the way, as it was before. */
typedef struct PresetFile {
    char *path; /* owned */
    OrrFileStamp stamp;
} PresetFile;

/* Of PresetFile. */
GArray *preset_files_new(void);
/* To be called before the file is read. */
void preset_files_add(GArray *files, const char *path);

/* What a preset gave: the object, and what resolving it said. */
typedef struct PresetGiven {
    OrrJsonDoc *doc;
    GPtrArray *profiles, *notes; /* char* */
} PresetGiven;

/* The preset of this file as it was kept, in new copies. False: it was not, or one of its files has changed since. */
bool preset_kept(const char *path, PresetGiven *ret_given);
/* Copies what was given, unless one of `files` has changed too lately to tell two versions of it apart. */
void preset_keep(const char *path, const PresetGiven *given, const GArray *files);
void preset_given_clear(PresetGiven *given);

#endif
