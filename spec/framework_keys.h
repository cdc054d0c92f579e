/* spec/framework_keys.h - keys of a framework as they were written before today's.
 *
 * {"kernel_host_s": 5e-6} is {"host": {"kernel_host_s": 5e-6}} today. Files of either kind are read; what is written has
 * groups. Keys that are deleted are read as before, noted, and do nothing. Keys that say one thing together are words of
 * one key: {"fused_rope": true} is {"rope": "fused"}, in place of what the preset says.
 */
#ifndef ORR_SPEC_FRAMEWORK_KEYS_H
#define ORR_SPEC_FRAMEWORK_KEYS_H

#include "base/json.h"

/* The group and key of `flat`, "host.kernel_host_s"; NULL where it is no such key. g_free. */
char *spec_framework_grouped_key(const char *flat);

/* Moves the ungrouped keys of the framework object `doc` into their groups. Fails where one is given both ways; `where`
 * and `key` ("execution.framework") begin the message. */
bool spec_framework_group_keys(OrrJsonDoc *doc, const char *where, const char *key, GError **error);

/* The same, and removes the keys that recipes have no more; `notes` (char*, may be NULL) gets a sentence for each. */
bool spec_framework_todays_keys(OrrJsonDoc *doc, const char *where, const char *key, GPtrArray *notes,
                                GError **error);

/* Puts words of today in place of old keys that a framework, its preset's members under its own, still has. Fails where a
 * value has no equal today. */
bool spec_framework_translate(OrrJsonDoc *doc, const char *where, GError **error);

/* `said`, a part of the framework `resolved`, gets the words of that in place of its old keys. */
void spec_framework_say_as(OrrJsonDoc *said, const OrrJson *resolved);

#endif
