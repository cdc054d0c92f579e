/* spec/resolve_internal.h - what resolves presets; only spec/resolve*.c include it. Functions that fail set the resolver's
 * error. */
#ifndef ORR_SPEC_RESOLVE_INTERNAL_H
#define ORR_SPEC_RESOLVE_INTERNAL_H

#include "spec/preset_kept.h"
#include "spec/resolve.h"

typedef struct Resolver {
    const char *where;
    const char *base_dir;
    GPtrArray *profiles, *notes;
    GArray *files; /* PresetFile: what was read; may be NULL */
    int depth;     /* presets that start from presets */
    GError **error;
} Resolver;

/* "WHERE: KEY: what is wrong"; false. */
bool spec_resolver_fail(const Resolver *resolver, const char *key, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/* The name in error and stamp: what was written, without the folder of presets. */
void spec_resolver_add_profile(const Resolver *resolver, const char *kind, const char *name,
                               const OrrJson *object);
/* A preset's name, a path or an object that may start from one, as one object; `calibration` (may be NULL) goes between. */
OrrJsonDoc *spec_resolver_object(const Resolver *resolver, const char *kind, const char *key,
                                 const OrrJson *node, const OrrJson *calibration);
/* A cluster's calibration; NULL in *ret_doc when it has none. */
bool spec_resolver_calibration(const Resolver *resolver, const OrrJson *cluster, OrrJsonDoc **ret_doc);
OrrJsonDoc *spec_resolver_cluster(const Resolver *resolver, const OrrJson *node);
/* Keys and values of a preset's file, so that messages name `path`; what is absent may come from elsewhere. */
bool spec_preset_check(const OrrJson *root, const char *kind, const char *path, GError **error);
#endif
