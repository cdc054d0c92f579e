/* spec/texts.h - texts that Specs point to: copies of a Spec share them, so somebody else holds them. */
#ifndef ORR_SPEC_TEXTS_H
#define ORR_SPEC_TEXTS_H

#include <glib.h>

GPtrArray *spec_texts_new(void);
/* `text`, interned: equal texts are at one address while any of them is held. `texts` holds it; with NULL it stays until the
 * process ends. */
const char *spec_keep_text(GPtrArray *texts, const char *text);

#endif
