/* spec/notes.h - what a scenario asks of its framework that the framework does not have: said by runs, refused by exports.
 * Beside it what is assumed of a chip of no known generation. */
#ifndef ORR_SPEC_NOTES_H
#define ORR_SPEC_NOTES_H

#include <glib.h>

#include "spec/load.h"
#include "spec/spec.h"

/* True also where the profile names no schedules, and for op orders from a file. */
bool spec_framework_has_schedule(const SpecFramework *framework, SpecSchedule schedule);
/* Likewise of kernels of the attention core, of which the software also has its default on this GPU, and of what carries
 * tokens. */
bool spec_has_attention(const Spec *spec, SpecAttention attention);
/* Bits of SpecOverlap; all of them where the profile names none. */
unsigned spec_framework_overlaps(const SpecFramework *framework);
/* "full", "full/61" of so many layers of a stage, "selective-layer/2" of every second; g_free. */
char *spec_recompute_words(const SpecRecompute *recompute);
/* "1f1b, interleaved"; g_free. */
char *spec_framework_schedules(const SpecFramework *framework);

/* "megatron-core does not run on a tpu (it does on: gpu)"; NULL: it runs there, or nobody knows. g_free. */
char *spec_wrong_chip(const Spec *spec);
/* The same with what the prediction then is; g_free. */
char *spec_chip_note(const Spec *spec);

/* Adds a sentence (char*) for each; `spec` is complete. */
void spec_notes(const Spec *spec, GPtrArray *notes);

/* Adds those of what it was read from; `source` may be NULL. */
void spec_source_notes(const SpecSource *source, GPtrArray *notes);

#endif
