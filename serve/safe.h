/* serve/safe.h - what may come from another machine: names of presets and figures, and no path of a file. */
#ifndef ORR_SERVE_SAFE_H
#define ORR_SERVE_SAFE_H

#include "base/json.h"
#include "serve/tools.h"

/* Every text below `arguments` (may be NULL); the sentence of a refusal names the key and never what a file holds. */
bool serve_safe(const ServeTool *tool, const OrrJson *arguments, GError **error);

#endif
