/* api/kinds.h - "NAME" or "NAME@USD": a kind of GPU on the command line. */
#ifndef ORR_API_KINDS_H
#define ORR_API_KINDS_H

#include "base/error.h"
#include "spec/spec.h"

/* The cluster of a preset (`key` "cluster"), or the reference node of an accelerator (`key` "accelerator"), with as many
 * GPUs as `base` has and the price of a GPU-hour behind the "@". `key` names the flag in errors. */
/* The same as JSON text, for a scenario's "cluster" (without nodes); g_free. */
char *api_kind_json(const char *key, const char *word, const SpecCluster *cluster);

bool api_kind_read(const char *key, const char *word, const Spec *base, SpecCluster *ret_cluster,
                   GError **error);

#endif
